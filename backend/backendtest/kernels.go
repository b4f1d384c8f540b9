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

// products are those of the workloads' layers, heads and similarities, m×n with
// sums of k terms.
var products = [][3]int{
	{15300, 32, 32}, {1024, 96, 96}, {15300, 128, 128}, {13600, 600, 300}, {13600, 300, 600},
	{1024, 1024, 96}, {4096, 4096, 4096},
}

// TimeKernels times kernels that move matrices of n rows, and products of up to n
// rows, each by itself, against their floors.
func TimeKernels(ctx context.Context, be backend.Backend, n int, each func(KernelTime) error) error {
	offers := backend.CapabilitiesOf(be)
	meter := offers.Meter
	if meter == nil {
		return fmt.Errorf("backendtest: TimeKernels: %s does not count its work, as cuda does", be.Name())
	}
	rates, err := roofline.Measure(be)
	if err != nil {
		return err
	}
	clock := roofline.NewClock(be)
	defer clock.Close()
	measure := func(name string, call func()) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return
		}
		ms := clock.Time(call)
		work := meter.Work()
		call()
		done := meter.Work()
		done.Add(-1, work)
		err = each(KernelTime{be.Name(), be.Precision().String(), name, ms, rates.Floor(done, 1, false, ms)})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	numbers := func(rows, cols int) *tensor.Tensor { // constants take less power, and may be faster
		v := make([]float32, rows*cols)
		for i := range v {
			v[i] = rng.Float32() - 0.5
		}
		t := be.Alloc(rows, cols)
		be.Upload32(t, v)
		return t
	}
	const f = kernelWidth
	x, dy, y := numbers(n, f), numbers(n, f), be.Alloc(n, f)
	row, gamma, col := numbers(1, f), numbers(1, f), be.Alloc(n, 1)
	measure("one launch", func() { be.Fill(col, 1) })
	measure("copy", func() { be.CopyBlock(y, 0, 0, x, 0, 0, n, f) })
	measure("row sums", func() { be.ReduceRows(col, backend.RowSum, x) })
	measure("row logsumexp", func() { be.ReduceRows(col, backend.RowLogSumExp, x) })
	measure("column sums", func() { be.ColSums(row, x) })
	if fuser := offers.Bias; fuser != nil {
		measure("bias and ReLU", func() { fuser.BiasReLU(y, x, row) })
	}
	if fuser := offers.Norm; fuser != nil {
		groups := be.Indices([]int32{0, int32(n / 2), int32(n)})
		norm := &backend.Norm{
			Groups: groups, Eps: 1e-5, X: x, Gamma: gamma, Beta: row, Y: y, Mean: be.Alloc(2, f), Var: be.Alloc(2, f),
		}
		grads := &backend.NormGradients{DY: dy, DX: be.Alloc(n, f), Gamma: be.Alloc(1, f), Beta: be.Alloc(1, f)}
		measure("batch norm", func() { fuser.NormForward(norm) })
		measure("batch norm, backward", func() { fuser.NormBackward(norm, grads) })
		for _, t := range []*tensor.Tensor{norm.Mean, norm.Var, grads.DX, grads.Gamma, grads.Beta} {
			be.Free(t)
		}
		be.FreeIndices(groups)
	}
	adj := chain(be, n)
	measure("SpMM", func() { be.SpMM(y, adj, x, 1) })
	be.FreeIndices(adj.Ptr)
	be.FreeIndices(adj.Col)
	for _, t := range []*tensor.Tensor{x, dy, y, row, gamma, col} {
		be.Free(t)
	}
	for _, p := range products {
		if p[0] > n {
			continue
		}
		x, w, y := numbers(p[0], p[2]), numbers(p[2], p[1]), be.Alloc(p[0], p[1])
		measure(fmt.Sprintf("product %d×%d×%d", p[0], p[1], p[2]), func() { be.Gemm(y, false, false, 1, x, w, 0) })
		for _, t := range []*tensor.Tensor{x, w, y} {
			be.Free(t)
		}
	}
	return err
}

// chain is the adjacency of a chain of n nodes with a chord at every fifth.
func chain(be backend.Backend, n int) *backend.CSR {
	ptr, col := []int32{0}, []int32(nil)
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
	return &backend.CSR{Rows: n, Cols: n, Ptr: be.Indices(ptr), Col: be.Indices(col)}
}

// Metered counts fills and products, as an engine with a device does.
type Metered struct {
	backend.Backend
	work backend.Work
}

// Work returns what has been counted.
func (m *Metered) Work() backend.Work { return m.work }

// Fill counts a launch and a byte for each number.
func (m *Metered) Fill(dst *tensor.Tensor, v float64) {
	m.Backend.Fill(dst, v)
	m.work.Add(1, backend.Work{Launches: 1, Bytes: int64(dst.Len())})
}

// Gemm counts a launch and 1000 operations.
func (m *Metered) Gemm(dst *tensor.Tensor, transA, transB bool, alpha float64, a, b *tensor.Tensor, beta float64) {
	m.Backend.Gemm(dst, transA, transB, alpha, a, b, beta)
	m.work.Add(1, backend.Work{Launches: 1, Flops: 1000})
}
