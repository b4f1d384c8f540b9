package main

import (
	"context"
	"fmt"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// kernelResult is a line of what -kernels prints.
type kernelResult struct {
	Backend   string  `json:"backend"`
	Precision string  `json:"precision"`
	Kernel    string  `json:"kernel"`
	MS        float64 `json:"ms"`
	Floor     *floor  `json:"floor"`
}

// kernelWidth is the width of the matrices, that of the encoder of molecules.
const kernelWidth = 300

// products are those of the workloads' layers, heads and similarities, m×n with
// sums of k terms.
var products = [][3]int{
	{15300, 32, 32}, {1024, 96, 96}, {15300, 128, 128}, {13600, 600, 300}, {13600, 300, 600}, {1024, 1024, 96}, {4096, 4096, 4096},
}

// timeKernels times kernels that move matrices of n rows, and products of up to n
// rows, each by itself, against their floors.
func timeKernels(ctx context.Context, be backend.Backend, n int, each func(kernelResult) error) error {
	offers := backend.CapabilitiesOf(be)
	meter := offers.Meter
	if meter == nil {
		return fmt.Errorf("bench: -kernels needs an engine that counts its work, as cuda does; %s does not", be.Name())
	}
	rates, err := measureRates(be)
	if err != nil {
		return err
	}
	clock := newClock(be)
	defer clock.close()
	measure := func(name string, call func()) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return
		}
		ms := clock.time(call)
		work := meter.Work()
		call()
		done := meter.Work()
		done.Add(-1, work)
		err = each(kernelResult{be.Name(), be.Precision().String(), name, ms, rates.floor(done, 1, false, ms)})
	}
	const f = kernelWidth
	x, dy, y := randomMatrix(be, n, f), randomMatrix(be, n, f), be.Alloc(n, f)
	row, gamma, col := randomMatrix(be, 1, f), randomMatrix(be, 1, f), be.Alloc(n, 1)
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
		norm := &backend.Norm{Groups: groups, Eps: 1e-5, X: x, Gamma: gamma, Beta: row, Y: y, Mean: be.Alloc(2, f), Var: be.Alloc(2, f)}
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
		x, w, y := randomMatrix(be, p[0], p[2]), randomMatrix(be, p[2], p[1]), be.Alloc(p[0], p[1])
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
