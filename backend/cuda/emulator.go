//go:build emulate

package cuda

import (
	"fmt"
	"syscall"
	"unsafe"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cuda/kernels"
	"github.com/specmatch/specmatch/tensor"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
)

func init() {
	backend.Register("cuda-emulator",
		func(p tensor.Precision) (backend.Backend, error) {
			return open(newEmulator(p), p)
		})
	backend.Register("cuda-emulator-3xtf32", openSplitEmulator)
}

// openSplitEmulator opens an engine that splits all products.
func openSplitEmulator(p tensor.Precision) (backend.Backend, error) {
	d := newEmulator(p)
	d.split = p == tensor.Float32
	e, err := open(d, p)
	if err == nil && d.split {
		e.split = new(splitting)
	}
	return e, err
}

// emulator is a driver without a device: kernels.cu runs on the processor, device memory
// is memory of this process, and gonum computes the matrix products. A call in the stream
// is done when it returns. A copy beside the stream is done only when the stream waits for
// it. A recorded graph is a list of calls.
type emulator struct {
	precision tensor.Precision
	memory    map[pointer][]byte
	copies    []func() error // that the stream has not waited for
	events    event          // so far
	recording *emulated      // or nil
	split     bool           // for its name
}

// emulated is a recorded sequence of calls in the stream.
type emulated struct{ calls []func() error }

func newEmulator(p tensor.Precision) *emulator {
	return &emulator{precision: p, memory: map[pointer][]byte{}}
}

func (d *emulator) name() string {
	if d.split {
		return "cuda-emulator-3xtf32"
	}
	return "cuda-emulator"
}

// do runs a call in the stream, or records it.
func (d *emulator) do(call func() error) error {
	if d.recording != nil {
		d.recording.calls = append(d.recording.calls, call)
		return nil
	}
	return call()
}

// alloc maps pages outside Go's heap, since kernels see plain addresses.
func (d *emulator) alloc(bytes int) (pointer, error) {
	mem, err := syscall.Mmap(
		-1,
		0,
		bytes,
		syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE,
	)
	if err != nil {
		return 0, fmt.Errorf("mapping %d bytes: %w", bytes, err)
	}
	p := pointer(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	d.memory[p] = mem
	return p, nil
}

func (d *emulator) free(p pointer) error {
	mem, ok := d.memory[p]
	if !ok {
		return fmt.Errorf("free of %#x, which was not allocated", p)
	}
	delete(d.memory, p)
	return syscall.Munmap(mem)
}

func (d *emulator) pinned(bytes int) ([]byte, error) {
	p, err := d.alloc(bytes)
	return d.memory[p], err
}

func (d *emulator) freePinned(mem []byte) error {
	return d.free(pointer(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))))
}

// at returns n numbers of device memory.
func at[T any](p pointer, n int) []T {
	return unsafe.Slice(*(**T)(unsafe.Pointer(&p)), n)
}

func (d *emulator) copyIn(dst pointer, src []byte) error {
	d.copies = append(d.copies, func() error {
		copy(at[byte](dst, len(src)), src)
		return nil
	})
	return nil
}

func (d *emulator) follow() error {
	copies := &emulated{d.copies}
	d.copies = nil
	return d.do(copies.launch)
}

func (d *emulator) move(dst, src pointer, bytes int) error {
	return d.do(func() error {
		copy(at[byte](dst, bytes), at[byte](src, bytes))
		return nil
	})
}

func (d *emulator) copyOut(dst []byte, src pointer) error {
	return d.do(func() error {
		copy(dst, at[byte](src, len(dst)))
		return nil
	})
}

func (d *emulator) launch(
	kernel string, grid, block dims, params []uint64,
) error {
	if d.recording != nil {
		params = append([]uint64(nil), params...)
	}
	return d.do(func() error {
		return kernels.Emulate(d.precision, kernel, grid, block, 0, params)
	})
}

// gemm starts each sum at a term that depends on the shape and wraps around, as the order
// of cuBLAS depends on the shape.
func (d *emulator) gemm(
	transA, transB bool,
	m, n, k int,
	alpha float64,
	a pointer,
	lda int,
	b pointer,
	ldb int,
	beta float64, c pointer,
) error {
	return d.do(func() error {
		first := (7*m + 3*n) % k
		d.product(
			transA, transB, m, n, first, k, alpha, a, lda, b, ldb, beta, c,
		)
		if first > 0 {
			d.product(
				transA, transB, m, n, 0, first, alpha, a, lda, b, ldb, 1, c,
			)
		}
		return nil
	})
}

func (d *emulator) gemmParts(parts, m, n, k int, alpha float64, a, b, c pointer) error {
	bytes := d.precision.Bytes()
	for range parts {
		if err := d.gemm(true, false, m, n, k, alpha, a, m, b, n, 0, c); err != nil {
			return err
		}
		a += pointer(k * m * bytes)
		b += pointer(k * n * bytes)
		c += pointer(m * n * bytes)
	}
	return nil
}

// product is gemm for the terms first to end-1 of each sum.
func (d *emulator) product(
	transA, transB bool,
	m, n, first, end int,
	alpha float64,
	a pointer,
	lda int,
	b pointer,
	ldb int, beta float64, c pointer,
) {
	k := end - first
	skipped := pointer(first * d.precision.Bytes()) // a term is an element, or a row, further
	ta := blas.NoTrans
	ra := m
	ca := k
	if transA {
		ta = blas.Trans
		ra = k
		ca = m
		a += skipped * pointer(lda)
	} else {
		a += skipped
	}
	tb := blas.NoTrans
	rb := k
	cb := n
	if transB {
		tb = blas.Trans
		rb = n
		cb = k
		b += skipped
	} else {
		b += skipped * pointer(ldb)
	}
	if d.precision == tensor.Float32 {
		general := func(p pointer, rows, cols, ld int) blas32.General {
			return blas32.General{
				Rows:   rows,
				Cols:   cols,
				Stride: ld,
				Data:   at[float32](p, (rows-1)*ld+cols),
			}
		}
		blas32.Gemm(
			ta, tb, float32(alpha), general(a, ra, ca, lda),
			general(b, rb, cb, ldb), float32(beta), general(c, m, n, n),
		)
		return
	}
	general := func(p pointer, rows, cols, ld int) blas64.General {
		return blas64.General{
			Rows:   rows,
			Cols:   cols,
			Stride: ld,
			Data:   at[float64](p, (rows-1)*ld+cols),
		}
	}
	blas64.Gemm(
		ta, tb, alpha, general(a, ra, ca, lda),
		general(b, rb, cb, ldb), beta, general(c, m, n, n),
	)
}

// round does nothing: the products are float32's.
func (d *emulator) round(bool) error { return nil }

func (d *emulator) newEvent() (event, error) {
	d.events++
	return d.events, nil
}
func (d *emulator) freeEvent(event) error { return nil }
func (d *emulator) record(event) error    { return nil }
func (d *emulator) wait(event) error      { return nil }

func (d *emulator) capture(record func()) (graph, error) {
	g := new(emulated)
	d.recording = g
	defer func() { d.recording = nil }()
	record()
	return g, nil
}

func (g *emulated) launch() error {
	for _, call := range g.calls {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}

func (g *emulated) close() error {
	return nil
}

func (d *emulator) close() error {
	if n := len(d.memory); n > 0 {
		return fmt.Errorf("%d allocations were not freed", n)
	}
	return nil
}
