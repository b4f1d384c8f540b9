package eval

import (
	"context"
	"fmt"
	"math"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/kernel"
)

// EvaluateKernels cross-validates support vector machines on the kernel matrices of
// a data set, [n×n], with labels y. It follows GraphCL's protocol, as [Evaluate] does,
// with another kernel: one of the matrices, such as a WL kernel's for h = 0…5, and C
// are chosen together, by mean accuracy over the inner folds. The first matrix wins
// among equally good ones, and the smallest C for it. Accuracies are those of
// scikit-learn's SVC(kernel="precomputed") on the same folds.
//
// Matrices should be normalized ([kernel.Matrix.Normalize]): on graphs of very
// different sizes machines converge slowly at large C otherwise.
//
// With held, the protocol is that of the kernel literature (C. Morris et al.,
// TUDataset, 2020; auxiliarymethods/kernel_evaluation.py): held[o] divides
// outer[o].Train, the settings are chosen by accuracy on its Test, of equally good C
// the largest, and the final fit is on its Train alone, so that the graphs of its Test
// have no part in it. [HoldOut] draws such divisions.
func EvaluateKernels(ctx context.Context, kernels []*kernel.Matrix, y []int, outer, held []dataset.Fold, opt Options) (*Result, error) {
	if len(kernels) == 0 {
		return nil, fmt.Errorf("eval: no kernel to choose from")
	}
	data := Data{Y: y}
	if err := data.validateLabels(); err != nil {
		return nil, err
	}
	for m, k := range kernels {
		if k.Size() != len(y) {
			return nil, fmt.Errorf("eval: kernel %d is of %d points, but there are %d labels", m, k.Size(), len(y))
		}
		for i := range k.Size() {
			for j, v := range k.Row(i) {
				if math.IsNaN(v) || math.Abs(v) > math.MaxFloat32 {
					return nil, fmt.Errorf("eval: kernel %d: element (%d,%d) is %g", m, i, i+j, v)
				}
			}
		}
	}
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	_, opt.Workers = opt.fitting(outer, data.Classes())
	shared, err := newKernelShared(ctx, kernels, y, opt.Workers)
	if err != nil {
		return nil, err
	}
	shared.cs, shared.descending = opt.Cs, held != nil
	return chooseInput(ctx, data, outer, held, opt, len(kernels), shared.descending, func() scorer {
		return &kernelScorer{kernelShared: shared}
	})
}

// chooseInput runs the search over inputs and C, numbered as [settingOf] does.
func chooseInput(ctx context.Context, data Data, outer, held []dataset.Fold, opt Options, inputs int, descending bool, newScorer func() scorer) (*Result, error) {
	s := search{outer: outer, settings: inputs * len(opt.Cs), opt: opt, workers: opt.Workers, newScorer: newScorer}
	var err error
	if s.inner, err = splitInner(data, outer, opt.InnerFolds); err != nil {
		return nil, err
	}
	if held != nil {
		if len(held) != len(outer) {
			return nil, fmt.Errorf("eval: %d held-out parts for %d outer folds", len(held), len(outer))
		}
		s.alone = true
		for o, f := range held {
			if len(f.Train) == 0 || len(f.Test) == 0 {
				return nil, fmt.Errorf("eval: outer fold %d: held out are %d of %d points", o, len(f.Test), len(f.Train)+len(f.Test))
			}
			s.inner[o] = []dataset.Fold{f}
		}
	}
	found, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	res := &found.Result
	for _, q := range found.chosen {
		input, c := settingOf(q, len(opt.Cs), descending)
		res.ChosenInput = append(res.ChosenInput, input)
		res.ChosenC = append(res.ChosenC, opt.Cs[c])
	}
	return res, nil
}

// settingOf returns the input and the place of C that setting q stands for: all C of
// the first input, then all of the second, the C ascending or descending.
func settingOf(q, cs int, descending bool) (input, c int) {
	input, c = q/cs, q%cs
	if descending {
		c = cs - 1 - c
	}
	return input, c
}

// HoldOut divides the Train of every outer fold: a tenth of it, drawn at random from
// the seed, becomes Test, and the others are Train.
func HoldOut(outer []dataset.Fold, seed uint32) []dataset.Fold {
	rng := dataset.NewRandomState(seed)
	held := make([]dataset.Fold, len(outer))
	for o, f := range outer {
		test := make([]int, len(f.Train)) // 1 for the points that are held out
		for i := range (len(f.Train) + 9) / 10 {
			test[i] = 1
		}
		rng.Shuffle(test)
		for i, p := range f.Train {
			if test[i] == 1 {
				held[o].Test = append(held[o].Test, p)
			} else {
				held[o].Train = append(held[o].Train, p)
			}
		}
	}
	return held
}

// kernelShared is what all workers of a search over kernels read. As in [svcShared],
// points are numbered by class, so that the kernel of a training part is an ascending
// selection of rows and columns.
type kernelShared struct {
	byClass
	kernels    []*kernel.Matrix
	rounded    []triangle32 // the kernels in the order of the classes
	cs         []float64
	descending bool
}

// triangle32 is the strictly upper triangle of a symmetric n×n matrix, packed by rows
// and rounded to float32 as the kernel is in libsvm.
type triangle32 struct {
	n int
	v []float32
}

// row returns the elements (i,i+1), (i,i+2), …, (i,n-1).
func (t triangle32) row(i int) []float32 {
	lo := i * (2*t.n - i - 1) / 2
	return t.v[lo : lo+t.n-1-i]
}

func newKernelShared(ctx context.Context, kernels []*kernel.Matrix, y []int, workers int) (*kernelShared, error) {
	n := len(y)
	s := &kernelShared{byClass: sortByClass(y), kernels: kernels, rounded: make([]triangle32, len(kernels))}
	for m := range kernels {
		s.rounded[m] = triangle32{n, make([]float32, n*(n-1)/2)}
	}
	err := parallel(ctx, len(kernels)*n, workers, func(_, task int) error {
		m, a := task/n, task%n
		k, to, i := kernels[m], s.rounded[m].row(a), s.points[a]
		for b, j := range s.points[a+1:] {
			to[b] = float32(k.At(i, j))
		}
		return nil
	})
	return s, err
}

type kernelScorer struct {
	*kernelShared
	diag []float64
	w    svcWorker
}

func (s *kernelScorer) score(ctx context.Context, train, test []int, lo, hi int) ([]int, error) {
	train, test = s.sorted(train), s.sorted(test)
	g := groupByClass(train, s.y)
	if len(g.class) < 2 {
		return nil, fmt.Errorf("the training part has only class %d", g.class[0])
	}
	right := make([]int, 0, hi-lo)
	for q := lo; q < hi; {
		input, c := settingOf(q, len(s.cs), s.descending)
		cs := s.cs[c : c+1] // of a final fit
		if hi-lo > 1 {
			cs = s.cs
		}
		cfg, err := SVCConfig{C: cs[0]}.withDefaults()
		if err != nil {
			return nil, err
		}
		s.load(input, train, test)
		counts, err := s.w.right(ctx, g, s.y, test, cs, cfg)
		if err != nil {
			return nil, err
		}
		for c := range counts {
			_, c := settingOf(c, len(counts), s.descending)
			right = append(right, counts[c])
		}
		q += len(cs)
	}
	return right, nil
}

// load copies the kernel of the training points and, not rounded, that of the test
// points against them.
func (s *kernelScorer) load(input int, train, test []int) {
	k, rounded := s.kernels[input], s.rounded[input]
	n := len(train)
	s.w.k = growMatrix(s.w.k, n*n)
	s.diag = grow(s.diag, n)
	s.w.diag = nil
	for a, i := range train {
		row := s.w.k[a*n : (a+1)*n]
		gather(row[a+1:], rounded.row(i), train[a+1:], i+1)
		s.diag[a] = k.At(s.points[i], s.points[i])
		row[a] = float32(s.diag[a])
		if s.diag[a] != 1 {
			s.w.diag = s.diag
		}
	}
	mirror(s.w.k, n)
	s.w.cross = grow(s.w.cross, n*len(test))
	// Row by row of k, of which there is only the upper triangle.
	for a, j := range train {
		j = s.points[j]
		row := k.Row(j)
		for t, i := range test {
			if d := s.points[i] - j; d > 0 {
				s.w.cross[t*n+a] = row[d]
			}
		}
	}
	for t, i := range test {
		i = s.points[i]
		row, cross := k.Row(i), s.w.cross[t*n:(t+1)*n]
		for a, j := range train {
			if d := s.points[j] - i; d >= 0 {
				cross[a] = row[d]
			}
		}
	}
}
