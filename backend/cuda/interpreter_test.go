//go:build emulate

package cuda

import (
	"math"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/backendtest"
	"github.com/specmatch/specmatch/backend/cuda/internal/ptx"
	"github.com/specmatch/specmatch/backend/cuda/kernels"
	"github.com/specmatch/specmatch/tensor"
)

// interpreter is the emulator with the kernels that a GPU gets: the embedded PTX,
// interpreted, on memory of which is known what was written.
type interpreter struct {
	*emulator
	module  *ptx.Module
	machine ptx.Machine
}

func newInterpreter(t *testing.T, p tensor.Precision) *interpreter {
	t.Helper()
	module, err := ptx.Parse(kernels.PTX(p))
	if err != nil {
		t.Fatal(err)
	}
	return &interpreter{newEmulator(p), module, ptx.Machine{Memory: new(ptx.Memory)}}
}

func (d *interpreter) alloc(bytes int) (pointer, error) {
	p, err := d.emulator.alloc(bytes)
	if err == nil {
		d.machine.Memory.Add(uint64(p), d.memory[p])
	}
	return p, err
}

func (d *interpreter) free(p pointer) error {
	d.machine.Memory.Remove(uint64(p))
	return d.emulator.free(p)
}

// mark is a call of the stream after which n bytes are known, or are not.
func (d *interpreter) mark(p pointer, n int, known bool) error {
	return d.do(func() error { return d.machine.Memory.Mark(uint64(p), n, known) })
}

func (d *interpreter) known(p pointer, n int) error {
	return d.do(func() error { return d.machine.Memory.Known(uint64(p), n) })
}

func (d *interpreter) copyIn(dst pointer, src []byte) error {
	d.copies = append(d.copies, func() error { return d.machine.Memory.Mark(uint64(dst), len(src), true) })
	return d.emulator.copyIn(dst, src)
}

func (d *interpreter) move(dst, src pointer, bytes int) error {
	if err := d.known(src, bytes); err != nil {
		return err
	}
	if err := d.emulator.move(dst, src, bytes); err != nil {
		return err
	}
	return d.mark(dst, bytes, true)
}

// launch runs a kernel. A fill with NaN is the arena's, for memory that has changed
// hands (SPECMATCH_DEBUG): nothing of it is known then.
func (d *interpreter) launch(kernel string, grid, block dims, params []uint64) error {
	params = append([]uint64(nil), params...)
	err := d.do(func() error {
		_, err := d.machine.Run(d.module, kernel, grid, block, params)
		return err
	})
	if err == nil && kernel == "fill" && math.IsNaN(math.Float64frombits(params[1])) {
		err = d.mark(pointer(params[0]), int(params[2])*d.precision.Bytes(), false)
	}
	return err
}

func (d *interpreter) gemm(transA, transB bool, m, n, k int, alpha float64, a pointer, lda int, b pointer, ldb int, beta float64, c pointer) error {
	size := d.precision.Bytes()
	if err := d.known(a, m*k*size); err != nil {
		return err
	}
	if err := d.known(b, k*n*size); err != nil {
		return err
	}
	if err := d.emulator.gemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c); err != nil {
		return err
	}
	return d.mark(c, m*n*size, true)
}

func (d *interpreter) gemmParts(parts, m, n, k int, alpha float64, a, b, c pointer) error {
	size := d.precision.Bytes()
	if err := d.known(a, parts*m*k*size); err != nil {
		return err
	}
	if err := d.known(b, parts*k*n*size); err != nil {
		return err
	}
	if err := d.emulator.gemmParts(parts, m, n, k, alpha, a, b, c); err != nil {
		return err
	}
	return d.mark(c, parts*m*n*size, true)
}

// TestInterpreted holds the engine and the PTX of its kernels against the
// conformance suite.
func TestInterpreted(t *testing.T) {
	t.Setenv("SPECMATCH_DEBUG", "1")
	backendtest.Run(t, func(p tensor.Precision) (backend.Backend, error) {
		e, err := open(newInterpreter(t, p), p)
		if err == nil {
			e.heap.least = 1
		}
		return e, err
	})
}

// TestInterpretedEveryKernel runs every kernel's PTX within steps of training.
func TestInterpretedEveryKernel(t *testing.T) {
	t.Setenv("SPECMATCH_DEBUG", "1")
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		everyKernel(t, newInterpreter(t, p), p)
	}
}
