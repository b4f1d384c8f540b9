package eval

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/kernel"
)

// goldenKernels is what scikit-learn says of problems with three rounds of counts,
// written by testdata/golden_kernels.py.
type goldenKernels struct {
	Problems []struct {
		Name                                   string
		Seed                                   uint64
		Sizes                                  []int
		Width                                  int
		Spread                                 float64
		Labels, Folds                          string
		Subtree, Assignment, Held, Linear, Raw goldenSearch
	}
}

type goldenSearch struct {
	Accuracies []float64
	Input      []int
	C          []float64
	Inner      [][]float64
}

func (g goldenSearch) check(t *testing.T, got *Result) {
	t.Helper()
	if !slices.Equal(got.ChosenInput, g.Input) || !slices.Equal(got.ChosenC, g.C) {
		t.Errorf("chosen %v with C %v, scikit-learn %v with %v", got.ChosenInput, got.ChosenC, g.Input, g.C)
	}
	if !slices.Equal(got.FoldAccuracies, g.Accuracies) {
		t.Errorf("accuracies %v, scikit-learn's %v", got.FoldAccuracies, g.Accuracies)
	}
	for o, want := range g.Inner {
		if !slices.Equal(got.InnerAccuracies[o], want) {
			t.Errorf("fold %d: inner accuracies\n%v, scikit-learn's\n%v", o, got.InnerAccuracies[o], want)
		}
	}
}

// countRows returns whole numbers, more of some columns in some classes, as the
// function counts of golden_kernels.py does.
func countRows(seed uint64, y []int, width int, spread float64) *kernel.Sparse {
	m := &kernel.Sparse{Width: width, Ptr: make([]int, 1)}
	for i, class := range y {
		for c := range width {
			v := uniform(seed+1, uint64(i*width+c)) + float64(spread*uniform(seed, uint64(class*width+c)))
			v = max(math.Floor(v*4), 0)
			if c == 0 {
				v++
			}
			if v != 0 {
				m.Index, m.Value = append(m.Index, int32(c)), append(m.Value, v)
			}
		}
		m.Ptr = append(m.Ptr, len(m.Index))
	}
	return m
}

func normalized(kernels []*kernel.Matrix) []*kernel.Matrix {
	for _, k := range kernels {
		k.Normalize()
	}
	return kernels
}

// kernelProblem is one of the golden problems, ready for evaluation.
type kernelProblem struct {
	y                   []int
	subtree, assignment []*kernel.Matrix
	raw                 []*kernel.Matrix // subtree, not normalized
	rows                []*kernel.Sparse // normalized, for h = 0, 1, 2
	outer, held         []dataset.Fold
}

func readKernels(t testing.TB) (goldenKernels, []kernelProblem) {
	t.Helper()
	b, err := os.ReadFile("testdata/golden_kernels.json")
	if err != nil {
		t.Fatal(err)
	}
	var g goldenKernels
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Problems) == 0 {
		t.Fatal("testdata/golden_kernels.json is empty")
	}
	var problems []kernelProblem
	for _, p := range g.Problems {
		q := kernelProblem{y: digits(p.Labels)}
		var rounds []*kernel.Sparse
		for r := range uint64(3) {
			rounds = append(rounds, countRows(p.Seed+10*(r+1), q.y, p.Width, p.Spread))
			m := kernel.Join(rounds...)
			m.Normalize()
			q.rows = append(q.rows, m)
		}
		q.raw = kernel.Subtree(rounds)
		q.subtree, q.assignment = normalized(kernel.Subtree(rounds)), normalized(kernel.Assignment(rounds))
		q.outer = make([]dataset.Fold, 10)
		for i, f := range digits(p.Folds) {
			for o := range q.outer {
				if o == f {
					q.outer[o].Test = append(q.outer[o].Test, i)
				} else {
					q.outer[o].Train = append(q.outer[o].Train, i)
				}
			}
		}
		for _, f := range q.outer {
			var h dataset.Fold
			for i, p := range f.Train {
				if i%10 == 0 {
					h.Test = append(h.Test, p)
				} else {
					h.Train = append(h.Train, p)
				}
			}
			q.held = append(q.held, h)
		}
		problems = append(problems, q)
	}
	return g, problems
}

// TestKernelsAgainstScikitLearn: every inner accuracy, every choice and every fold.
func TestKernelsAgainstScikitLearn(t *testing.T) {
	g, problems := readKernels(t)
	for n, p := range g.Problems {
		q := problems[n]
		for _, c := range []struct {
			name    string
			kernels []*kernel.Matrix
			held    []dataset.Fold
			cs      []float64
			want    goldenSearch
		}{
			{"subtree", q.subtree, nil, nil, p.Subtree},
			{"assignment", q.assignment, nil, nil, p.Assignment},
			{"held out", q.subtree, q.held, nil, p.Held},
			{"raw", q.raw, nil, []float64{1e-3, 1e-2, 1e-1, 1}, p.Raw},
		} {
			t.Run(p.Name+" "+c.name, func(t *testing.T) {
				got, err := EvaluateKernels(t.Context(), c.kernels, q.y, q.outer, c.held, Options{Cs: c.cs})
				if err != nil {
					t.Fatal(err)
				}
				c.want.check(t, got)
			})
		}
	}
}

// TestSparseAgainstScikitLearn: the same by linear machines, solved further than
// usual, since scikit-learn's were. That features of a single row are left out must
// not show.
func TestSparseAgainstScikitLearn(t *testing.T) {
	g, problems := readKernels(t)
	for n, p := range g.Problems {
		t.Run(p.Name, func(t *testing.T) {
			q := problems[n]
			s, err := newSearch(q.y, 3, q.outer, nil, Options{Cs: []float64{1e-3, 1e-2, 1e-1, 1, 10}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.run(t.Context(), func() machine { return oneVsRest{&dcd{inputs: q.rows, tol: 1e-8, passes: 100000}} })
			if err != nil {
				t.Fatal(err)
			}
			p.Linear.check(t, got)
		})
	}
}

// TestSparseOptimum: the solution is a minimum of f, whose gradient vanishes, on rows
// with features of their own as without leaving those out.
func TestSparseOptimum(t *testing.T) {
	g, problems := readKernels(t)
	q := problems[0]
	own := &kernel.Sparse{Width: len(q.y), Ptr: make([]int, 1)}
	for i := range q.y {
		own.Index, own.Value = append(own.Index, int32(i)), append(own.Value, float64(1+i%3))
		own.Ptr = append(own.Ptr, i+1)
	}
	whole := kernel.Join(countRows(g.Problems[0].Seed+10, q.y, g.Problems[0].Width, g.Problems[0].Spread), own)
	train := q.outer[0].Train
	for _, c := range []float64{0.01, 1, 100} {
		fit := func(m *kernel.Sparse) *dcd {
			s := &dcd{inputs: []*kernel.Sparse{m}, tol: 1e-10, passes: 1000000}
			s.load(0, train)
			sign := make([]float64, len(train))
			for a, i := range train {
				sign[a] = float64(2*q.y[i] - 1)
			}
			s.begin(sign)
			if err := s.solve(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			return s
		}
		a, b := fit(whole), fit(whole.Compact())
		gradient := slices.Clone(a.w)
		for _, i := range train {
			sign := float64(2*q.y[i] - 1)
			if short := 1 - sign*a.decide(i); short > 0 {
				columns, values := whole.Row(i)
				for k, j := range columns {
					gradient[j] -= 2 * c * short * sign * values[k]
				}
				gradient[whole.Width] -= 2 * c * short * sign
			}
		}
		for j, v := range gradient {
			if !(math.Abs(v) <= 1e-6*(1+c)) {
				t.Fatalf("C = %g: gradient %g in direction %d", c, v, j)
			}
		}
		for _, i := range q.outer[0].Test {
			if x, y := a.decide(i), b.decide(i); !(math.Abs(x-y) <= 1e-6) {
				t.Errorf("C = %g, point %d: decision %v, without the features of single rows %v", c, i, x, y)
			}
		}
	}
}

// TestKernelWorkers: the number of workers changes no bit.
func TestKernelWorkers(t *testing.T) {
	_, problems := readKernels(t)
	q, cs := problems[1], []float64{0.1, 10}
	var first [2]*Result
	for _, workers := range []int{1, 3} {
		a, err := EvaluateKernels(t.Context(), q.subtree, q.y, q.outer, nil, Options{Workers: workers, Cs: cs})
		if err != nil {
			t.Fatal(err)
		}
		b, err := EvaluateSparse(t.Context(), q.rows, q.y, q.outer, nil, Options{Workers: workers, Cs: cs})
		if err != nil {
			t.Fatal(err)
		}
		if first[0] == nil {
			first = [2]*Result{a, b}
		} else if !reflect.DeepEqual(first, [2]*Result{a, b}) {
			t.Errorf("results differ with %d workers", workers)
		}
	}
}

func TestHoldOut(t *testing.T) {
	outer := stratified(t, []int{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}, 4)
	held := HoldOut(outer, 5)
	for o, f := range held {
		if all := slices.Sorted(slices.Values(slices.Concat(f.Train, f.Test))); !slices.Equal(all, outer[o].Train) || len(f.Test) != 2 {
			t.Errorf("fold %d: %v and %v are not a division of %v", o, f.Train, f.Test, outer[o].Train)
		}
	}
	if reflect.DeepEqual(held, HoldOut(outer, 6)) {
		t.Error("the seed has no effect")
	}
}

func TestKernelErrors(t *testing.T) {
	_, problems := readKernels(t)
	q := problems[0]
	nan := kernel.NewMatrix(len(q.y))
	for i := range q.y {
		nan.Row(i)[0] = 1
	}
	nan.Row(2)[3] = math.NaN()
	bad := &kernel.Sparse{Width: 1, Ptr: make([]int, len(q.y)+1)}
	for i := range q.y {
		bad.Index, bad.Value, bad.Ptr[i+1] = append(bad.Index, 0), append(bad.Value, 1), i+1
	}
	bad.Value[4] = math.Inf(1)
	ctx := context.Background()
	for want, f := range map[string]func() error{
		"no kernel": func() error { _, err := EvaluateKernels(ctx, nil, q.y, q.outer, nil, Options{}); return err },
		"of 3 points": func() error {
			_, err := EvaluateKernels(ctx, []*kernel.Matrix{kernel.NewMatrix(3)}, q.y, q.outer, nil, Options{})
			return err
		},
		"element (2,5) is NaN": func() error {
			_, err := EvaluateKernels(ctx, []*kernel.Matrix{nan}, q.y, q.outer, nil, Options{})
			return err
		},
		"2 held-out parts for 10": func() error {
			_, err := EvaluateKernels(ctx, q.subtree, q.y, q.outer, q.held[:2], Options{})
			return err
		},
		"+Inf in row 4, column 0": func() error {
			_, err := EvaluateSparse(ctx, []*kernel.Sparse{bad}, q.y, q.outer, nil, Options{})
			return err
		},
		"no outer folds": func() error {
			_, err := EvaluateKernels(ctx, q.subtree, q.y, nil, nil, Options{})
			return err
		},
		"no features": func() error { _, err := EvaluateSparse(ctx, nil, q.y, q.outer, nil, Options{}); return err },
		"grid of C does not ascend": func() error {
			_, err := EvaluateSparse(ctx, q.rows, q.y, q.outer, nil, Options{Cs: []float64{1, 1}})
			return err
		},
		"context canceled": func() error {
			ctx, stop := context.WithCancel(ctx)
			stop()
			_, err := EvaluateKernels(ctx, q.subtree, q.y, q.outer, nil, Options{})
			return err
		},
		"outer fold 0: held out are 0 of": func() error {
			h := slices.Clone(q.held)
			h[0].Test = nil
			_, err := EvaluateSparse(ctx, q.rows, q.y, q.outer, h, Options{})
			return err
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %q", err, want)
		}
	}
}
