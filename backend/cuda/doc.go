// Package cuda is the engine that computes on an NVIDIA GPU, in float32 or
// float64.
//
// # The mental model
//
// The host only writes a list. A primitive is one or a few kernel launches on
// one stream; the launches return at once and the device works through them in
// order. Nothing is waited for until a value is wanted ([backend.Backend.Download]).
// A small network's training step is a few dozen kernels of a few microseconds,
// so handing them over one by one costs more than running them:
// [backend.Backend.Capture] records the list once, as a CUDA graph, and a
// replay hands all of it over with one call. Uploads have a stream of their own, so that
// a batch arrives while the device computes the step before.
//
// # Layers
//
//	primitives.go, fused_*.go   a primitive → kernels, grids and parameters
//	engine.go                   memory, transfers, recording
//	driver.go                   what an engine needs of a device: 17 calls
//	  device.go, table.go …     the NVIDIA driver (tag cuda, linux/amd64)
//	  emulator.go               the same kernels on the processor (tag emulate)
//	kernels/                    kernels.cu, its PTX, and its emulation; ptx/ interprets
//	                            the PTX, sass.txt has what becomes of it on a device
//	testdata/latency.txt        estimates of a step, launch by launch
//	DEVICES.md                  how to use several devices: a design
//	gpu.sh                      every check and measurement on a GPU, in one call
//
// Everything above the driver is plain Go and in every build. With the tag
// cuda the package registers the engine "cuda" on gorgonia.org/cu; with the tag
// emulate it registers "cuda-emulator", which runs the very kernels, compiled by
// the host's C++ compiler, thread by thread: slow, and the way to test them
// where there is no GPU. With that tag the tests also interpret the embedded PTX,
// which sees what the emulation cannot, and hold a step's estimates against those in
// testdata.
//
//	export CGO_CFLAGS="-I$(backend/cuda/kernels/toolkit.sh)/include"
//	go build -tags cuda ./...
//	go test -tags emulate ./backend/cuda/
//
// A binary of the tag cuda starts on any machine: no library of NVIDIA is linked,
// they are opened when the engine is ([backend.Open]). What is missing then is an
// error that says what to do. SPECMATCH_LIBCUDA and SPECMATCH_LIBCUBLAS may name
// the libraries' files where the loader does not find them.
//
// With SPECMATCH_NVRTC=compute_90, or another architecture, the kernels are compiled
// for it when an engine opens, by NVIDIA's libnvrtc (SPECMATCH_LIBNVRTC), in place of
// the embedded PTX: to measure what that is worth.
//
// # Determinism
//
// Grids and the trees of reductions depend on shapes only, and no float is added
// by an atomic: equal inputs give equal bits on one device type and library
// version. Other devices may differ in the last bits of matrix products, which
// are cuBLAS's.
//
// # Indices
//
// Index vectors are not checked on the device; an index out of range reads or
// writes outside its tensor. Package graph validates what it loads.
package cuda
