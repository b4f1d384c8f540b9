//go:build (cuda && linux && amd64 && cgo) || emulate

package cuda

import (
	"fmt"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// BenchmarkDevice measures what limits a step: the cost of a launch, alone and in
// a recorded step, the rate of a copy, and kernels against it, in GB/s of what
// they must move; products in GFLOP/s. With -short the matrices are small.
//
//	cuda.test -test.run '^$' -test.bench Device
func BenchmarkDevice(b *testing.B) {
	name := "cuda"
	if !slices.Contains(backend.Names(), name) {
		name = "cuda-emulator"
	}
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		b.Run(p.String(), func(b *testing.B) {
			be, err := backend.Open(name, p)
			if err != nil {
				b.Skip(err)
			}
			defer be.Close()
			benchmarkDevice(b, be)
		})
	}
}

func benchmarkDevice(b *testing.B, be backend.Backend) {
	n, f, big := 200000, 300, 1<<26
	if testing.Short() {
		n, f, big = 500, 300, 1<<12
	}
	random := func(rows, cols int) *tensor.Tensor {
		t, step := be.Alloc(rows, cols), be.Alloc(1, 1)
		be.Fill(step, 1)
		be.DropoutMask(t, 0.5, uint64(rows), step)
		be.Free(step)
		return t
	}
	var one [1]float64
	probe := be.Alloc(1, 1)
	// measure times calls, and reports a rate of amount a call.
	measure := func(name string, amount float64, unit string, call func()) {
		b.Run(name, func(b *testing.B) {
			call()
			be.Download(one[:], probe)
			b.ResetTimer()
			for range b.N {
				call()
			}
			be.Download(one[:], probe)
			if amount > 0 {
				b.ReportMetric(amount*float64(b.N)/b.Elapsed().Seconds()/1e9, unit)
			}
		})
	}
	bytes := float64(be.Precision().Bytes())
	measure("launch", 0, "", func() { be.Fill(probe, 1) })
	step, err := be.Capture(func() {
		for range 100 {
			be.Fill(probe, 1)
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	measure("100 launches recorded", 0, "", func() {
		if err := step.Replay(); err != nil {
			b.Fatal(err)
		}
	})
	x, y := random(big, 1), be.Alloc(big, 1)
	measure("copy", 2*bytes*float64(big), "GB/s", func() { be.CopyBlock(y, 0, 0, x, 0, 0, big, 1) })
	be.Free(x)
	be.Free(y)

	x, y, dy := random(n, f), be.Alloc(n, f), random(n, f)
	row, gamma, col := random(1, f), random(1, f), be.Alloc(n, 1)
	matrix := bytes * float64(n) * float64(f)
	measure("row sums", matrix, "GB/s", func() { be.ReduceRows(col, backend.RowSum, x) })
	measure("row logsumexp", matrix, "GB/s", func() { be.ReduceRows(col, backend.RowLogSumExp, x) })
	measure("column sums", matrix, "GB/s", func() { be.ColSums(row, x) })
	measure("bias and ReLU", 2*matrix, "GB/s", func() { be.(backend.BiasFuser).BiasReLU(y, x, row) })
	groups := be.Indices([]int32{0, int32(n / 2), int32(n)})
	norm := &backend.Norm{Groups: groups, Eps: 1e-5, X: x, Gamma: gamma, Beta: row, Y: y, Mean: be.Alloc(2, f), Var: be.Alloc(2, f)}
	measure("batch norm", 3*matrix, "GB/s", func() { be.(backend.NormFuser).NormForward(norm) })
	grads := &backend.NormGradients{DY: dy, DX: be.Alloc(n, f), Gamma: be.Alloc(1, f), Beta: be.Alloc(1, f)}
	measure("batch norm, backward", 5*matrix, "GB/s", func() { be.(backend.NormFuser).NormBackward(norm, grads) })
	adj := chain(be, n)
	entries := float64(adj.Col.Len())
	measure("SpMM", bytes*(entries+2*float64(n))*float64(f)+4*entries, "GB/s", func() { be.SpMM(y, adj, x, 1) })

	for _, s := range [][3]int{{15300, 32, 32}, {1024, 96, 96}, {15300, 128, 128}, {13600, 600, 300}, {13600, 300, 600}, {1024, 1024, 96}, {4096, 4096, 4096}} {
		if testing.Short() && s[0] > 2000 {
			continue
		}
		x, w, y := random(s[0], s[2]), random(s[2], s[1]), be.Alloc(s[0], s[1])
		flops := 2 * float64(s[0]) * float64(s[1]) * float64(s[2])
		measure(fmt.Sprintf("product %dx%dx%d", s[0], s[1], s[2]), flops, "GFLOP/s", func() { be.Gemm(y, false, false, 1, x, w, 0) })
		for _, t := range []*tensor.Tensor{x, w, y} {
			be.Free(t)
		}
	}
	if err := step.Close(); err != nil {
		b.Error(err)
	}
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
