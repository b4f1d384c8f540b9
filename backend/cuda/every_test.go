package cuda

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cuda/kernels"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/tensor"
)

// counting is a driver that counts the launches of every kernel.
type counting struct {
	driver
	launches map[string]int
}

func (d *counting) launch(kernel string, grid, block dims, params []uint64) error {
	d.launches[kernel]++
	return d.driver.launch(kernel, grid, block, params)
}

// everyKernel launches every kernel of kernels.cu through the engine, on shapes of
// one element, of whole vectors and blocks, and of neither, and in steps of
// training, recorded and replayed: little enough for NVIDIA's sanitizers. Each
// tensor has a piece of device memory for itself, so that they see its end. It
// prints what ran.
func everyKernel(t *testing.T, d driver, p tensor.Precision) {
	t.Helper()
	count := &counting{d, map[string]int{}}
	e, err := open(count, p)
	if err != nil {
		t.Fatal(err)
	}
	e.heap.least = 1
	for _, s := range [][2]int{{1, 1}, {33, 5}, {64, 32}, {600, 37}, {1024, 64}} {
		everyPrimitive(e, s[0], s[1])
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, encoder := range []func() gnn.Encoder{
		func() gnn.Encoder { return gnn.NewGIN(e, gnn.GINConfig{In: 5, Hidden: 32, Layers: 2}, rng) },
		func() gnn.Encoder { return gnn.NewGIN(e, gnn.GINConfig{In: 5, Hidden: narrow - 1, Layers: 2}, rng) },
		func() gnn.Encoder {
			return gnn.NewGIN(e, gnn.GINConfig{In: 5, Hidden: narrow + 6, Layers: 2}, rng)
		},
		func() gnn.Encoder {
			return gnn.NewResGCN(e, gnn.ResGCNConfig{In: 5, Hidden: 33, Layers: 2, Residual: true}, rng)
		},
	} {
		for _, dense := range []bool{false, true} {
			tr := specmatch.NewTrainer(e, specmatch.NewModel(e, encoder(), rng), specmatch.Objective{
				Contrast: specmatch.InfoNCE{Tau: 0.2}, Match: specmatch.DefaultLaplacianMatch(), Beta: specmatch.Beta{Weight: 0.1},
			}, 0.01)
			r, err := specmatch.NewRecorded(tr)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				b := batchOf(9, 41)
				if dense {
					b.Densify(b.Nodes())
				}
				if _, err := r.Step(b); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.Last(); err != nil {
				t.Error(err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	var ran []string
	for _, k := range slices.Sorted(maps.Keys(count.launches)) {
		ran = append(ran, fmt.Sprint(k, " ", count.launches[k]))
	}
	fmt.Printf("launches, %v: %s\n", p, strings.Join(ran, ", "))
	for _, m := range regexp.MustCompile(`(?m)^KERNEL(?:_\w+)?\((\w+),`).FindAllStringSubmatch(kernels.Source(), -1) {
		if count.launches[m[1]] == 0 {
			t.Errorf("%s was not launched", m[1])
		}
	}
}

// everyPrimitive calls every primitive, and what is fused of a few, on matrices of
// n rows of f numbers.
func everyPrimitive(e *engine, n, f int) {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(f)))
	random := func(rows, cols int) *tensor.Tensor {
		v := make([]float64, rows*cols)
		for i := range v {
			v[i] = rng.Float64()
		}
		t := e.Alloc(rows, cols)
		e.Upload(t, v)
		return t
	}
	x, y, z := random(n, f), random(n, f), random(n, f)
	row, col, one, square := random(1, f), random(n, 1), random(1, 1), random(n, n)
	e.Fill(x, 1)
	e.splitOperand(z, false, 0)
	e.splitOperand(z, true, 1)
	e.CopyBlock(y, n/2, f/3, x, 0, 0, n-n/2, f-f/3)
	e.CopyBlocks([]backend.Block{{Dst: y, DI: n / 2, Src: x, Rows: n - n/2, Cols: f}, {Dst: y, Src: z, SI: n - n/2, Rows: n / 2, Cols: f / 2}})
	e.Normalize(y, e.Alloc(n, 1), z, 1e-12)
	e.NormalizeBackward(e.Alloc(n, f), x, y, random(n, 1), 1e-12)
	e.Transpose(e.Alloc(f, n), x)
	reversed, ends := make([]int32, n), []int32{0, int32(n / 3), int32(n / 3), int32(n)}
	for i := range reversed {
		reversed[i] = int32(n - 1 - i)
	}
	e.GatherRows(y, z, e.Indices(reversed))
	e.FillDiagonal(square, 2)
	for _, op := range backend.UnaryOps() {
		e.Unary(y, op, z)
	}
	for _, op := range backend.BinaryOps() {
		e.Binary(y, op, x, z)
		e.BinaryRow(y, op, x, row)
		e.BinaryCol(y, op, x, col)
		e.BinaryScalar(y, op, x, one)
	}
	e.Affine(y, 2, z, 1)
	e.Axpby(y, 2, z, 3, x)
	for _, op := range backend.RowOps() {
		e.ReduceRows(col, op, z)
	}
	e.ColSums(row, z)
	e.Dot(one, z, y)
	segments, sums := e.Indices(ends), e.Alloc(3, f)
	e.SegmentSum(sums, segments, z)
	e.SegmentExpand(y, segments, sums)
	// The first row has all columns, so it may be a hub.
	ptr, adj := []int32{0}, slices.Clone(reversed)
	for i := range n {
		ptr = append(ptr, int32(len(adj)))
		adj = append(adj, int32(i/2))
	}
	a := &backend.CSR{Rows: n, Cols: n, Ptr: e.Indices(ptr), Col: e.Indices(adj[:ptr[n]])}
	e.SpMM(y, a, z, 1)
	a.Val = random(a.Col.Len(), 1)
	e.SpMM(y, a, z, 0)
	e.UpperPercentile(one, e.Alloc(n, n), square, 70)
	e.DropoutMask(y, 0.8, 1, one)
	e.Adam(x, y, random(n, f), random(n, f), one, one, backend.AdamConfig{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.1})
	for _, relu := range []bool{false, true} {
		norm := &backend.Norm{Groups: segments, Eps: 1e-5, ReLU: relu, X: z, Gamma: row, Beta: row, Y: y, Mean: sums, Var: e.Alloc(3, f)}
		e.NormForward(norm)
		e.NormBackward(norm, &backend.NormGradients{DY: random(n, f), DX: x, Gamma: e.Alloc(1, f), Beta: e.Alloc(1, f)})
		norm.Bias, norm.BiasedMean = row, e.Alloc(3, f)
		e.NormForward(norm)
		e.NormBackward(norm, &backend.NormGradients{DY: random(n, f), DX: x, Gamma: e.Alloc(1, f), Beta: e.Alloc(1, f), Bias: e.Alloc(1, f)})
	}
	a.Val = nil
	for _, kinds := range []int{2, maxKinds, maxKinds + 1} {
		e.Messages(y, a, z, 1, random(n, kinds), []*tensor.Tensor{random(kinds-1, f), row})
	}
}

// TestEveryKernel: everyKernel leaves none out.
func TestEveryKernel(t *testing.T) {
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		everyKernel(t, newLedger(t), p)
	}
}
