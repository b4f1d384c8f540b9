# The tool alone, static: `docker build -t specmatch .`, then
# `docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" specmatch embed -in molecules.csv -out vectors.npy`.
# The image that builds it is one release of Go; --build-arg GO=golang@sha256:DIGEST pins its bytes, too.
ARG GO=golang:1.26.8
FROM $GO AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN release=$(sed -n -E 's/^## ([^ ]+) \(unreleased\)$/\1.dev0/; s/^## //; t found; d; :found; p; q' CHANGELOG.md) && \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -o /specmatch \
    -ldflags "-s -w -X github.com/specmatch/specmatch/specmatch/cli.release=$release" ./specmatch/cmd/specmatch

FROM scratch
COPY --from=build /specmatch /specmatch
COPY --from=build /src/LICENSE /LICENSE
WORKDIR /data
ENTRYPOINT ["/specmatch"]
