// Package cuda is the engine that computes on an NVIDIA GPU, in float32 or
// float64.
//
// # The mental model
//
// The host only writes a list. A primitive is one or a few kernel launches on
// one stream; the launches return at once and the device works through them in
// order. The host waits only when it reads a value ([backend.Backend.Download]).
// A small network's training step is a few dozen kernels of a few microseconds each,
// so launching them one by one costs more than running them.
// [backend.Backend.Capture] records the list once, as a CUDA graph, and a
// replay launches all of it with one call. Uploads have a stream of their own, so
// a batch arrives while the device computes the previous step.
//
// # Layers
//
//	primitives.go, fused_*.go   a primitive → kernels, grids and parameters
//	engine.go                   memory, transfers, recording
//	driver.go                   what an engine needs of a device: 17 calls
//	  split.go                  products in TF32 at the accuracy of float32
//	  device.go, table.go …     the NVIDIA driver (tag cuda, linux/amd64)
//	  emulator.go               the same kernels on the processor (tag emulate)
//	kernels/                    kernels.cu, its PTX, statistics of the machine code
//	                            (sass.txt), and the emulation
//	internal/ptx/               an interpreter of the PTX, for tests
//	testdata/latency.txt        estimates of a step, launch by launch
//	gpu.sh                      every check and measurement on a GPU, in one call
//	README.md                   what gpu.sh measured on an H200
//	DEVICES.md                  how to use several devices: a design
//
// Everything above the driver is plain Go and in every build. With the tag cuda the
// package registers the engine "cuda" on gorgonia.org/cu. With the tag emulate it
// registers "cuda-emulator", which runs the same kernels, compiled by the host's C++
// compiler, thread by thread. That is slow, but tests them without a GPU. With that tag
// the tests also interpret the embedded PTX, which finds faults that the emulation
// cannot, and compare the estimates of a step with those in testdata.
//
//	export CGO_CFLAGS="-I$(backend/cuda/kernels/toolkit.sh)/include"
//	go build -tags cuda ./...
//	go test -tags emulate ./backend/cuda/
//
// A binary of the tag cuda starts on any machine: it links no library of NVIDIA, but
// opens them together with the engine ([backend.Open]). The error for a missing library
// says what to do. SPECMATCH_LIBCUDA and SPECMATCH_LIBCUBLAS name the libraries' files if
// the loader does not find them.
//
// With SPECMATCH_NVRTC=compute_90, or another architecture, an engine compiles the kernels
// for it by NVIDIA's libnvrtc (SPECMATCH_LIBNVRTC) when it opens, instead of using the
// embedded PTX. This is for measurements.
//
// # Products on tensor cores
//
// The engine "cuda-tf32" rounds the operands of float32 products to 11 significant bits. The engine
// "cuda-3xtf32" keeps about the accuracy of float32: it splits each operand into a head and a rest of 11
// bits, and adds three products (split.go). On a GPU it was timed only. Its emulation passes what the
// others pass.
//
// # Determinism
//
// Grids and the trees of reductions depend on shapes only, and no float is added
// by an atomic: equal inputs give equal bits on one device type and library
// version. On other devices the last bits of matrix products, which cuBLAS computes,
// may differ.
//
// # Indices
//
// The device does not check index vectors: an index out of range reads or writes outside
// its tensor. Package graph validates what it loads.
package cuda
