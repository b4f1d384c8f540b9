module github.com/specmatch/specmatch

go 1.26.0

require (
	github.com/chewxy/math32 v1.11.1 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
)
