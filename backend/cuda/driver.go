package cuda

// A Finding is a line of the report of [Diagnose]: a value, or an error that says what to
// do.
type Finding struct {
	What, Value string
	Err         error
}

// pointer is an address in device memory; 0 stands for an operand that is nil.
type pointer uint64

// event marks a place in the stream.
type event uint64

// dims are the extents of a grid or a block.
type dims [3]uint32

// driver is one device with one stream. Calls in the stream return before the device has
// done them, and the device runs them in order. Copies to the device run beside the
// stream, in an order of their own. A driver is used from one goroutine at a time.
type driver interface {
	// name returns the engine's name, as in [backend.Open].
	name() string
	// alloc returns device memory, aligned to 256 bytes at least.
	alloc(bytes int) (pointer, error)
	free(p pointer) error
	// pinned returns host memory that the device can read and write.
	pinned(bytes int) ([]byte, error)
	freePinned(mem []byte) error

	// copyIn and copyOut copy all of the host memory, copyOut in the stream and
	// copyIn beside it. The memory must be pinned and stay untouched until an event
	// behind the copy has passed.
	copyIn(dst pointer, src []byte) error
	copyOut(dst []byte, src pointer) error
	// follow makes the stream wait for the copyIns so far.
	follow() error
	// move copies on the device, in the stream.
	move(dst, src pointer, bytes int) error
	// launch runs a kernel, in the stream. Each parameter is a word.
	launch(kernel string, grid, block dims, params []uint64) error
	// gemm computes c = alpha·op(a)·op(b) + beta·c, in the stream, for row-major c [m×n]
	// and sums of k > 0 terms. The rows of a, b and c are lda, ldb and n apart.
	gemm(
		transA, transB bool,
		m, n, k int,
		alpha float64,
		a pointer,
		lda int,
		b pointer,
		ldb int,
		beta float64, c pointer,
	) error
	// gemmParts computes parts of aᵀ·b, of the rows of a [parts·k × m] and b [parts·k × n], in the
	// stream: part i is the product of k of them, times alpha, and goes to row i of c [parts × m·n].
	gemmParts(parts, m, n, k int, alpha float64, a, b, c pointer) error
	// round lets the gemms that follow round their float32 inputs to TF32, or forbids it.
	round(on bool) error

	newEvent() (event, error)
	freeEvent(e event) error
	record(e event) error
	// wait returns when the device has passed the last record of e.
	wait(e event) error

	// capture calls record and returns the calls that it made in the stream, which
	// do not run.
	capture(record func()) (graph, error)
	// close waits for the stream and frees everything.
	close() error
}

// graph is a recorded sequence of calls in the stream.
type graph interface {
	launch() error
	close() error
}
