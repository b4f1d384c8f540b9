#!/usr/bin/env bash
# Fetches the parts of NVIDIA's CUDA toolkit that builds and checks with -tags cuda need
# and prints their folder:
#
#	export CGO_CFLAGS="-I$(backend/cuda/kernels/toolkit.sh)/include"
#	go build -tags cuda ./...
#
# include/cuda.h, lib/libnvrtc.so.12, bin/ptxas and bin/nvdisasm, from the wheels that
# toolkit.txt pins by version and hash. Nothing is installed; the files stay in the
# user's cache. Needs python3 with pip, but no GPU and no driver. The files are under
# NVIDIA's licence, which does not allow them in the repository.
set -euo pipefail
cd "$(dirname "$0")"
list=$PWD/toolkit.txt
root=${XDG_CACHE_HOME:-$HOME/.cache}/specmatch
folder=$root/cuda-$(sha256sum < "$list" | cut -c 1-16)
if [ ! -d "$folder" ]; then
  mkdir -p "$root"
  new=$(mktemp -d "$root/fetching.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
    --python-version 3.11 --implementation cp --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 --platform manylinux1_x86_64 \
    --dest "$new/wheels" --requirement "$list" >&2
  python3 - "$new" <<'PYTHON'
import pathlib, sys, zipfile
new = pathlib.Path(sys.argv[1])
want = {"cuda.h": "include", "libnvrtc.so.12": "lib", "libnvrtc-builtins.so.12.6": "lib", "ptxas": "bin", "nvdisasm": "bin"}
for wheel in (new / "wheels").iterdir():
    with zipfile.ZipFile(wheel) as z:
        for member in z.namelist():
            name = member.rsplit("/", 1)[-1]
            if name in want and not (name == "ptxas" and "triton" in member):
                file = new / "files" / want.pop(name) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(z.read(member))
                file.chmod(0o755)
if want:
    sys.exit(f"toolkit.sh: the wheels have no {', '.join(want)}")
PYTHON
  mv -T "$new/files" "$folder" 2>/dev/null || [ -d "$folder" ] # someone else may have been faster
fi
echo "$folder"
