package backendtest

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/roofline"
	"github.com/specmatch/specmatch/tensor"
)

// KernelTime is how long a kernel takes by itself, in milliseconds.
type KernelTime struct {
	Backend   string          `json:"backend"`
	Precision string          `json:"precision"`
	Kernel    string          `json:"kernel"`
	MS        float64         `json:"ms"`
	Floor     *roofline.Floor `json:"floor"`
}

// kernelWidth is the width of the matrices, that of the encoder of molecules.
const kernelWidth = 300

// products are the shapes m, n, k of the workloads' layers, heads and similarities:
// m×n with sums of k terms.
var products = [][3]int{
	{15300, 32, 32},
	{1024, 96, 96},
	{15300, 128, 128},
	{13600, 600, 300},
	{13600, 300, 600},
	{1024, 1024, 96}, {4096, 4096, 4096},
}

// kernelTimer times calls of an engine against their floors.
type kernelTimer struct {
	backend.Backend
	ctx    context.Context
	offers backend.Capabilities
	clock  *roofline.Clock
	rates  roofline.Rates
	rng    *rand.Rand
	report func(KernelTime) error
	err    error // the first; calls after it are skipped
}

// TimeKernels times kernels that move matrices of n rows, and products of up to n
// rows, each by itself, against their floors. It calls report for each.
func TimeKernels(
	ctx context.Context,
	be backend.Backend,
	n int,
	report func(KernelTime) error,
) error {
	offers := backend.CapabilitiesOf(be)
	if offers.Meter == nil {
		return fmt.Errorf(
			"backendtest: TimeKernels: %s does not count its work, as cuda does",
			be.Name(),
		)
	}
	rates, err := roofline.Measure(be)
	if err != nil {
		return err
	}
	k := &kernelTimer{
		Backend: be,
		ctx:     ctx,
		offers:  offers,
		clock:   roofline.NewClock(be),
		rates:   rates,
		rng:     rand.New(rand.NewPCG(1, 2)),
		report:  report,
	}
	defer k.clock.Close()
	k.timeRows(n)
	k.timeProducts(n)
	return k.err
}

// measure times a call and reports it, unless something has failed before.
func (k *kernelTimer) measure(name string, call func()) {
	if k.err == nil {
		k.err = k.ctx.Err()
	}
	if k.err != nil {
		return
	}
	ms := k.clock.Time(call)
	before := k.offers.Meter.Work()
	call()
	work := k.offers.Meter.Work()
	work.Add(-1, before)
	k.err = k.report(KernelTime{
		Backend:   k.Name(),
		Precision: k.Precision().String(),
		Kernel:    name,
		MS:        ms,
		Floor:     k.rates.Floor(work, 1, false, ms),
	})
}

// random returns a matrix of random numbers. Constants would take less power, and may
// be faster.
func (k *kernelTimer) random(rows, cols int) *tensor.Tensor {
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = k.rng.Float32() - 0.5
	}
	t := k.Alloc(rows, cols)
	k.Upload32(t, v)
	return t
}

func (k *kernelTimer) free(ts ...*tensor.Tensor) {
	for _, t := range ts {
		k.Free(t)
	}
}

// timeRows times kernels that move a matrix of n rows.
func (k *kernelTimer) timeRows(n int) {
	const f = kernelWidth
	x := k.random(n, f)
	dy := k.random(n, f)
	y := k.Alloc(n, f)
	row := k.random(1, f)
	gamma := k.random(1, f)
	col := k.Alloc(n, 1)
	defer k.free(x, dy, y, row, gamma, col)
	k.measure("one launch", func() { k.Fill(col, 1) })
	k.measure("copy", func() {
		k.CopyBlock(y, 0, 0, x, 0, 0, n, f)
	})
	k.measure("row sums", func() {
		k.ReduceRows(col, backend.RowSum, x)
	})
	k.measure("row logsumexp", func() {
		k.ReduceRows(col, backend.RowLogSumExp, x)
	})
	k.measure("column sums", func() {
		k.ColSums(row, x)
	})
	if fuser := k.offers.Bias; fuser != nil {
		k.measure("bias and ReLU", func() {
			fuser.BiasReLU(y, x, row)
		})
	}
	if fuser := k.offers.Norm; fuser != nil {
		groups := k.Indices([]int32{0, int32(n / 2), int32(n)})
		norm := &backend.Norm{
			Groups: groups,
			Eps:    1e-5,
			X:      x,
			Gamma:  gamma,
			Beta:   row,
			Y:      y,
			Mean:   k.Alloc(2, f),
			Var:    k.Alloc(2, f),
		}
		grads := &backend.NormGradients{
			DY:    dy,
			DX:    k.Alloc(n, f),
			Gamma: k.Alloc(1, f),
			Beta:  k.Alloc(1, f),
		}
		k.measure("batch norm", func() {
			fuser.NormForward(norm)
		})
		k.measure("batch norm, backward", func() {
			fuser.NormBackward(norm, grads)
		})
		k.free(norm.Mean, norm.Var, grads.DX, grads.Gamma, grads.Beta)
		k.FreeIndices(groups)
	}
	adj := chain(k.Backend, n)
	k.measure("SpMM", func() {
		k.SpMM(y, adj, x, 1)
	})
	k.FreeIndices(adj.Ptr)
	k.FreeIndices(adj.Col)
}

// timeProducts times the products of up to n rows.
func (k *kernelTimer) timeProducts(n int) {
	for _, p := range products {
		rows := p[0]
		cols := p[1]
		inner := p[2]
		if rows > n {
			continue
		}
		x := k.random(rows, inner)
		w := k.random(inner, cols)
		y := k.Alloc(rows, cols)
		name := fmt.Sprintf("product %d×%d×%d", rows, cols, inner)
		k.measure(name, func() {
			k.Gemm(y, false, false, 1, x, w, 0)
		})
		k.free(x, w, y)
	}
}

// chain returns the adjacency of a chain of n nodes with a chord at every fifth.
func chain(be backend.Backend, n int) *backend.CSR {
	ptr := []int32{0}
	var col []int32
	for i := range n {
		for _, j := range []int{i - 1, i + 1} {
			if j >= 0 && j < n {
				col = append(col, int32(j))
			}
		}
		if i%5 == 0 {
			col = append(col, int32((i+7)%n))
		}
		ptr = append(ptr, int32(len(col)))
	}
	return &backend.CSR{
		Rows: n,
		Cols: n,
		Ptr:  be.Indices(ptr),
		Col:  be.Indices(col),
	}
}

// Metered counts fills and products, as an engine with a device does.
type Metered struct {
	backend.Backend
	work backend.Work
}

// Work returns what has been counted.
func (m *Metered) Work() backend.Work {
	return m.work
}

// Fill counts a launch and a byte for each number.
func (m *Metered) Fill(dst *tensor.Tensor, v float64) {
	m.Backend.Fill(dst, v)
	m.work.Add(1, backend.Work{Launches: 1, Bytes: int64(dst.Len())})
}

// Gemm counts a launch and 1000 operations.
func (m *Metered) Gemm(
	dst *tensor.Tensor,
	transA, transB bool,
	alpha float64,
	a, b *tensor.Tensor,
	beta float64,
) {
	m.Backend.Gemm(dst, transA, transB, alpha, a, b, beta)
	m.work.Add(1, backend.Work{Launches: 1, Flops: 1000})
}
