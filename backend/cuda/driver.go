package cuda

// A Finding is a line of what [Diagnose] found: a value, or what is wrong and what
// to do.
type Finding struct {
	What, Value string
	Err         error
}

// pointer is an address in device memory; 0 stands for a tensor that is not
// there.
type pointer uint64

// event marks a place in the stream.
type event uint64

// dims are the extents of a grid or a block.
type dims [3]uint32

// A driver is one device with one stream: all that an engine needs of it. The
// calls that take part in the stream return before the device has done them and
// run in the order of the calls. Beside it, in the order of their calls, run copies
// to the device. A driver is used from one goroutine at a time.
type driver interface {
	// name is the engine's, as in [backend.Open].
	name() string
	// alloc returns device memory, aligned to 256 bytes at least.
	alloc(bytes int) (pointer, error)
	free(p pointer) error
	// pinned returns host memory that the device reads and writes by itself.
	pinned(bytes int) ([]byte, error)
	freePinned(mem []byte) error

	// copyIn and copyOut copy all of the host memory, copyOut in the stream and
	// copyIn beside it. It must be pinned and stay untouched until an event behind
	// the copy has passed.
	copyIn(dst pointer, src []byte) error
	copyOut(dst []byte, src pointer) error
	// follow puts into the stream that it waits for the copyIns so far.
	follow() error
	// move copies on the device, in the stream.
	move(dst, src pointer, bytes int) error
	// launch runs a kernel, in the stream. Each parameter has a word.
	launch(kernel string, grid, block dims, params []uint64) error
	// gemm computes c = alpha·op(a)·op(b) + beta·c, in the stream, on row-major
	// c [m×n] and sums of k > 0 terms, with rows lda, ldb and n apart.
	gemm(transA, transB bool, m, n, k int, alpha float64, a pointer, lda int, b pointer, ldb int, beta float64, c pointer) error

	newEvent() (event, error)
	freeEvent(e event) error
	record(e event) error
	// wait returns when the device has come to where e was recorded last.
	wait(e event) error

	// capture runs record and returns what it put in the stream, without running
	// it.
	capture(record func()) (graph, error)
	// close waits for the stream and gives everything back.
	close() error
}

// A graph is a recorded stretch of the stream.
type graph interface {
	launch() error
	close() error
}
