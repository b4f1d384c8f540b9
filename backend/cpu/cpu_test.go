package cpu_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/backendtest"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

func TestConformance(t *testing.T) {
	backendtest.Run(t, func(p tensor.Precision) (backend.Backend, error) { return cpu.New(p), nil })
}

// TestEveryUnaryFunction: the engine has a loop for every function. The conformance suite
// only panics where one is missing.
func TestEveryUnaryFunction(t *testing.T) {
	be := cpu.New(tensor.Float64)
	x := be.Alloc(1, 1)
	defer be.Free(x)
	for _, op := range backend.UnaryOps() {
		func() {
			defer func() {
				if v := recover(); v != nil {
					t.Errorf("%v: %v; add its loop to the table unary in kernels.go", op, v)
				}
			}()
			be.Unary(x, op, x)
		}()
	}
}

// TestConformanceDebug runs the suite on memory that is NaN unless it was
// written, in one precision and on small shapes to save time.
func TestConformanceDebug(t *testing.T) {
	t.Setenv("SPECMATCH_DEBUG", "1")
	backendtest.Run(t, func(p tensor.Precision) (backend.Backend, error) {
		if p != tensor.Float32 {
			return nil, errors.New("not now")
		}
		return cpu.New(p, cpu.Workers(3)), nil
	}, backendtest.Only(tensor.Float32), backendtest.Serial(), backendtest.Small())
}

func precisions(t *testing.T, f func(t *testing.T, p tensor.Precision)) {
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		t.Run(p.String(), func(t *testing.T) { f(t, p) })
	}
}

// raceDetector is set in builds with the race detector.
var raceDetector bool

// TestAllocationFree checks every primitive at two sizes, inline and on the
// workers: none allocates, once its scratch memory has grown.
func TestAllocationFree(t *testing.T) {
	precisions(t, func(t *testing.T, p tensor.Precision) {
		b := newBench(p, cpu.Workers(2))
		cases := append(b.width(7, 5), b.width(4999, 33)...)
		cases = append(cases, b.batch(257, 33)...)
		cases = append(cases, b.layers(4999, 33)...)
		cases = append(cases, b.losses(257, 33)...)
		cases = append(cases, kernelCase{name: "Alloc", call: func() { b.be.Free(b.be.Alloc(77, 5)) }})
		host := []int32{1, 2, 3}
		cases = append(cases, kernelCase{name: "Indices", call: func() { b.be.FreeIndices(b.be.Indices(host)) }})
		for _, c := range cases {
			// A worker that comes late to its first chunk grows its scratch then.
			n := 1.0
			for try := 0; n != 0 && try < 10; try++ {
				n = testing.AllocsPerRun(10, c.call)
			}
			if n != 0 && !raceDetector {
				t.Errorf("%s allocates %v times, want 0", c.name, n)
			}
		}
	})
}

// chain runs every primitive on random matrices, each on results of the last
// ones, and returns all values, in the memory of earlier ones.
func chain(be backend.Backend, n, f int, values []float64) []float64 {
	b := &bench{be, rand.New(rand.NewPCG(3, 4))}
	values = values[:0]
	keep := func(t *tensor.Tensor) {
		end := len(values) + t.Len()
		values = slices.Grow(values, t.Len())[:end]
		be.Download(values[end-t.Len():], t)
	}
	x, w, h := b.random(n, f), b.random(f, f), be.Alloc(n, f)
	adj, graphs := b.molecules(n)
	views := be.Indices([]int32{0, int32(n / 3), int32(n)})
	row, col, scalar := be.Alloc(1, f), be.Alloc(n, 1), be.Alloc(1, 1)
	pooled, sums := be.Alloc(graphs.Len()-1, f), be.Alloc(2, f)
	dw, step, rate := be.Alloc(f, f), be.Alloc(1, 1), be.Alloc(1, 1)
	m, v := be.Alloc(f, f), be.Alloc(f, f)
	be.Fill(m, 0)
	be.Fill(v, 0)
	be.Fill(step, 1)
	be.Fill(rate, 0.01)
	for range 2 {
		be.SpMM(h, adj, x, 1.5)
		be.Gemm(x, false, false, 0.1, h, w, 0)
		be.ColSums(row, x)
		keep(row)
		be.Affine(row, 1/float64(n), row, 0)
		be.BinaryRow(x, backend.Sub, x, row)
		for _, op := range backend.UnaryOps() {
			be.Unary(h, op, x)
			if op != backend.Log && op != backend.Sqrt { // x has both signs
				keep(h)
			}
		}
		for _, op := range backend.RowOps() {
			be.ReduceRows(col, op, x)
			keep(col)
		}
		for _, op := range backend.BinaryOps() {
			be.Binary(h, op, x, h)
			be.BinaryCol(h, op, h, col)
			keep(h)
		}
		be.Gemm(dw, true, false, 1, x, x, 0)
		keep(dw)
		be.Adam(w, dw, m, v, rate, step, backend.AdamConfig{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.01})
		keep(w)
		be.Dot(scalar, x, x)
		keep(scalar)
		be.Dot(scalar, x, nil)
		keep(scalar)
		be.SegmentSum(pooled, graphs, x)
		be.SegmentSum(sums, views, x)
		keep(sums)
		be.SegmentExpand(h, graphs, pooled)
		be.Axpby(x, 1, x, 0.5, h)
		be.DropoutMask(h, 0.8, 7, step)
		be.Binary(x, backend.Mul, x, h)
		keep(x)
	}
	s, weights, wide := be.Alloc(n/8, n/8), be.Alloc(n/8, n/8), be.Alloc(n/8, f)
	be.CopyBlock(wide, 0, 0, x, 0, 0, n/8, f)
	be.Gemm(s, false, true, 1, wide, wide, 0)
	be.UpperPercentile(scalar, weights, s, 77)
	keep(s)
	keep(weights)
	keep(scalar)
	be.Transpose(weights, s)
	keep(weights)
	return values
}

// TestThreadsDoNotMatter runs a long computation with several numbers of workers
// and of processors, and asks for the same bits.
func TestThreadsDoNotMatter(t *testing.T) {
	precisions(t, func(t *testing.T, p tensor.Precision) {
		n := 5001
		if testing.Short() {
			n = 3001
		}
		var want, got []float64
		for _, procs := range []int{1, 2, 4} {
			for _, workers := range []int{1, 2, 5} {
				func() {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
					got = chain(cpu.New(p, cpu.Workers(workers)), n, 37, got)
					if want == nil {
						want = slices.Clone(got)
					}
					for i, v := range got {
						if math.Float64bits(v) != math.Float64bits(want[i]) {
							t.Fatalf("GOMAXPROCS %d, %d workers: value %d of %d is %v, with one of each it is %v", procs, workers, i, len(got), v, want[i])
						}
					}
				}()
			}
		}
	})
}

// TestProductsInBlocks: products for many workers are cut along the sum and along the rows, and
// have the bits of one worker.
func TestProductsInBlocks(t *testing.T) {
	const m, n, k = 131, 40, 4099
	var want []float64
	for _, workers := range []int{1, 20, 64} {
		b := &bench{cpu.New(tensor.Float32, cpu.Workers(workers)), rand.New(rand.NewPCG(5, 6))}
		var got []float64
		for _, tr := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			x, y := b.random(m, k), b.random(k, n)
			if tr[0] {
				x = b.random(k, m)
			}
			if tr[1] {
				y = b.random(n, k)
			}
			dst, part := b.be.Alloc(m, n), make([]float64, m*n)
			b.be.Gemm(dst, tr[0], tr[1], 1, x, y, 0)
			b.be.Download(part, dst)
			got = append(got, part...)
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d workers have other bits than one", workers)
		}
	}
}

// TestBF16: the engine says what it is, rounds the inputs of products, has the same bits
// with any number of workers, and is refused where the processor lacks the instruction.
func TestBF16(t *testing.T) {
	be, err := backend.Open("cpu-bf16", tensor.Float32)
	if want := simd.BF16Error(); want != nil || err != nil {
		if fmt.Sprint(err) != fmt.Sprint(want) {
			t.Errorf("opening: %v, want %v", err, want)
		}
		t.Skip(err)
	}
	if _, err := backend.Open("cpu-bf16", tensor.Float64); err == nil {
		t.Error("bfloat16 in float64 is not refused")
	}
	if err := ref.CheckProducts(be); err != nil || be.Name() != "cpu-bf16" {
		t.Errorf("%s: %v", be.Name(), err)
	}
	const n = 3001
	want := chain(cpu.New(tensor.Float32, cpu.BF16(), cpu.Workers(1)), n, 37, nil)
	for i, v := range chain(cpu.New(tensor.Float32, cpu.BF16(), cpu.Workers(3)), n, 37, nil) {
		if math.Float64bits(v) != math.Float64bits(want[i]) {
			t.Fatalf("value %d of %d is %v with three workers, %v with one", i, len(want), v, want[i])
		}
	}
	if slices.Equal(want, chain(cpu.New(tensor.Float32), n, 37, nil)) {
		t.Error("products are those of float32")
	}
}

// TestUseAfterFree checks that every use of a freed tensor is found, in debug
// mode even when its memory is somebody else's by then.
func TestUseAfterFree(t *testing.T) {
	for _, debug := range []string{"", "1"} {
		t.Run("debug="+debug, func(t *testing.T) {
			t.Setenv("SPECMATCH_DEBUG", debug)
			be := cpu.New(tensor.Float32)
			x, y := be.Alloc(2, 3), be.Alloc(2, 3)
			be.Free(x)
			if debug != "" {
				be.Alloc(2, 3)
			}
			defer func() {
				err, _ := recover().(error)
				if !errors.Is(err, backend.ErrFreed) || !strings.Contains(err.Error(), "[2×3]") {
					t.Errorf("panicked with %v, want ErrFreed and the shape", err)
				}
			}()
			be.Unary(y, backend.Exp, x)
		})
	}
}

func TestFreeIndicesTwice(t *testing.T) {
	for _, debug := range []string{"", "1"} {
		t.Setenv("SPECMATCH_DEBUG", debug)
		be := cpu.New(tensor.Float32)
		x := be.Indices([]int32{1, 2})
		be.FreeIndices(x)
		if debug != "" { // found even when the handle could be somebody else's
			be.Indices([]int32{3})
		}
		func() {
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, backend.ErrFreed) {
					t.Errorf("debug=%q: panicked with %v, want ErrFreed", debug, err)
				}
			}()
			be.FreeIndices(x)
		}()
	}
}

func TestDebugPoisons(t *testing.T) {
	t.Setenv("SPECMATCH_DEBUG", "1")
	precisions(t, func(t *testing.T, p tensor.Precision) {
		be := cpu.New(p)
		x := be.Alloc(100, 7)
		got := make([]float64, x.Len())
		be.Download(got, x)
		for i, v := range got {
			if !math.IsNaN(v) {
				t.Fatalf("element %d of fresh memory is %v, want NaN", i, v)
			}
		}
	})
}

// TestEnginesEnd checks that the workers of an engine that nobody holds end.
func TestEnginesEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		be := cpu.New(tensor.Float32, cpu.Workers(4))
		x := be.Alloc(1000, 1000)
		be.Fill(x, 1)
		be.Unary(x, backend.Exp, x)
	}
	for range 1000 {
		runtime.GC()
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines, %d before the engines were opened", runtime.NumGoroutine(), before)
}

func TestRegistered(t *testing.T) {
	be, err := backend.Open("cpu", tensor.Float64)
	if err != nil || be.Name() != "cpu" || be.Precision() != tensor.Float64 {
		t.Errorf(`Open("cpu") = %v, %v`, be, err)
	}
}
