package eval

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/kernel"
)

// Protocol names a way to turn embeddings and labels into accuracies.
type Protocol string

const (
	// GraphCL is what GraphCL's published script runs (svc_classify in
	// evaluate_embedding.py): SVC() with its RBF kernel, gamma="scale", features
	// as they are.
	GraphCL Protocol = "graphcl"
	// Linear is the linear support vector machine that papers describe: the
	// same nesting with LinearSVC(dual=False), features as they are.
	Linear Protocol = "linear"
	// GraphCLC10 is [GraphCL] with C = 10 in place of the search, for comparisons
	// over many seeds: many times as fast, as nothing is searched.
	GraphCLC10 Protocol = "graphcl-c10"
)

// Protocols lists the protocols that [Evaluate] knows.
func Protocols() []Protocol { return []Protocol{GraphCL, Linear, GraphCLC10} }

// Options are the settings of an evaluation. The zero value is GraphCL's grid.
type Options struct {
	// Cs are the values of C tried, ascending. nil means 1e-3, 1e-2, …, 1e3, or what
	// the protocol says.
	Cs []float64
	// InnerFolds is the number of folds of the grid search; 0 means 5.
	InnerFolds int
	// Workers bounds the goroutines; 0 means GOMAXPROCS. There may be fewer, so
	// that kernel matrices stay under 2 GB. Results do not depend on it.
	Workers int
	// Slots, if set, is a semaphore that several evaluations share: a worker sends
	// a value before it scores a fold and receives one afterwards, so that no more
	// workers of all of them are busy than the channel holds.
	Slots chan struct{}
}

// withDefaults checks the grid and fills in what is 0.
func (o Options) withDefaults() (Options, error) {
	if o.Cs == nil {
		o.Cs = []float64{1e-3, 1e-2, 1e-1, 1, 10, 100, 1000}
	}
	if len(o.Cs) == 0 {
		return o, fmt.Errorf("eval: no C to choose from")
	}
	for i, c := range o.Cs {
		if !(c > 0) || math.IsInf(c, 0) {
			return o, fmt.Errorf("eval: C is %g, want a positive number", c)
		}
		if i > 0 && c <= o.Cs[i-1] {
			return o, fmt.Errorf("eval: grid of C does not ascend: %g after %g", c, o.Cs[i-1])
		}
	}
	if o.InnerFolds == 0 {
		o.InnerFolds = 5
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return o, nil
}

// Result is the outcome of one evaluation.
type Result struct {
	// FoldAccuracies is the fraction of test points right, for each outer fold.
	FoldAccuracies []float64
	// Correct says of each test point of each outer fold, in the order of its Test, whether its class
	// was predicted.
	Correct [][]bool
	// Mean is the mean of FoldAccuracies, the value of a run. The spread of the
	// folds is several times that of runs and is not what tables report.
	Mean float64
	// ChosenC is the C that won the grid search of each outer fold.
	ChosenC []float64
	// ChosenInput is the place of the kernel or matrix that won it; nil from
	// [Evaluate]. See [EvaluateKernels].
	ChosenInput []int
	// InnerAccuracies holds, for each outer fold and each C of the grid, the mean
	// validation accuracy; for each C of the first input, then of the second, and
	// so on. It is nil if there was one C, and so no search.
	InnerAccuracies [][]float64
}

// Accuracy evaluates embeddings: x is row-major [n×d] with n = len(y), one row per graph,
// and y holds their classes 0..C-1. It is [Evaluate] on stratified folds, shuffled with
// the seed; papers use ten. The accuracy is the Mean of the result.
func (p Protocol) Accuracy(
	ctx context.Context, x []float64, y []int, folds int, seed uint32, opt Options,
) (*Result, error) {
	outer, err := dataset.StratifiedKFold(y, folds, true, seed)
	if err != nil {
		return nil, err
	}
	return Evaluate(ctx, p, Data{X: x, Dim: len(x) / len(y), Y: y}, outer, opt)
}

// Check returns the error that [Protocol.Accuracy] would return for these labels and
// folds, whatever the features and the seed: something to know before an encoder is
// trained.
func (p Protocol) Check(y []int, folds int, opt Options) error {
	if p == HoldOutKernels {
		opt.Cs = []float64{1} // nothing is searched on the folds within Train
	}
	if err := checkLabels(y); err != nil {
		return err
	}
	outer, err := dataset.StratifiedKFold(y, folds, true, 0)
	if err != nil {
		return err
	}
	_, err = newSearch(y, 1, outer, nil, p.fixed(opt))
	return err
}

// fixed returns the options with the C of a protocol that has one.
func (p Protocol) fixed(opt Options) Options {
	if p == GraphCLC10 && opt.Cs == nil {
		opt.Cs = []float64{10}
	}
	return opt
}

// Evaluate cross-validates a classifier on the points of data. For each fold of
// outer, C is chosen by grid search inside Train, by mean accuracy over a
// stratified unshuffled split of it; the first of equally good ones, that is the
// smallest, wins. The classifier is then trained on all of Train and its accuracy
// on Test taken. Test never takes part in the choice of C.
//
// The usual outer folds are dataset.StratifiedKFold(data.Y, 10, true, seed). All
// figures are those of scikit-learn's GridSearchCV(SVC(), …, cv=5) on the same
// folds; gamma="scale" is computed anew on every training part, as there. The
// order of the indices of Train only matters for the inner split.
//
// An error names the fold. When ctx is done, its error is returned.
func Evaluate(ctx context.Context, p Protocol, data Data, outer []dataset.Fold, opt Options) (*Result, error) {
	if !slices.Contains(Protocols(), p) {
		return nil, fmt.Errorf("eval: unknown protocol %q (have: %s, %s, %s)",
			p, GraphCL, Linear, GraphCLC10)
	}
	if err := data.Validate(); err != nil {
		return nil, err
	}
	s, err := newSearch(data.Y, 1, outer, nil, p.fixed(opt))
	if err != nil {
		return nil, err
	}
	var newMachine func() machine
	if p == Linear {
		if data.Dim > maxColumns {
			return nil, fmt.Errorf(
				"eval: %d features; the linear solver keeps a matrix of all their pairs and takes up to %d",
				data.Dim, maxColumns,
			)
		}
		newMachine = func() machine { return oneVsRest{&newton{data: data}} }
	} else {
		shared, err := rbf(ctx, data, s.opt.Workers)
		if err != nil {
			return nil, err
		}
		s.boundMemory()
		newMachine = shared.machine
	}
	res, err := s.run(ctx, newMachine)
	if err == nil {
		res.ChosenInput = nil
	}
	return res, err
}

// EvaluateKernels cross-validates support vector machines on the kernel matrices of
// a data set, [n×n], with labels y. It follows GraphCL's protocol, as [Evaluate] does,
// with another kernel: one of the matrices, such as a WL kernel's for h = 0…5, and C
// are chosen together, by mean accuracy over the inner folds. The first matrix wins
// among equally good ones, and the smallest C for it. Accuracies are those of
// scikit-learn's SVC(kernel="precomputed") on the same folds.
//
// Matrices should be normalized ([kernel.Matrix.Normalize]): on graphs of very
// different sizes machines converge slowly at large C otherwise. Where labels do not
// ascend, they are copied in the order of the classes.
//
// With held, the protocol is that of the kernel literature (C. Morris et al.,
// TUDataset, 2020; auxiliarymethods/kernel_evaluation.py): held[o] divides
// outer[o].Train, the settings are chosen by accuracy on its Test, of equally good C
// the largest, and the final fit is on its Train alone, so that the graphs of its Test
// have no part in it. [HoldOut] draws such divisions.
func EvaluateKernels(
	ctx context.Context, kernels []*kernel.Matrix, y []int, outer, held []dataset.Fold, opt Options,
) (*Result, error) {
	if len(kernels) == 0 {
		return nil, fmt.Errorf("eval: no kernel to choose from")
	}
	if err := checkLabels(y); err != nil {
		return nil, err
	}
	for m, k := range kernels {
		if k.Size() != len(y) {
			return nil, fmt.Errorf("eval: kernel %d is of %d points, but there are %d labels",
				m, k.Size(), len(y))
		}
		for i := range k.Size() {
			for j, v := range k.Row(i) {
				if math.IsNaN(v) || math.Abs(v) > math.MaxFloat32 {
					return nil, fmt.Errorf("eval: kernel %d: element (%d,%d) is %g", m, i, i+j, v)
				}
			}
		}
	}
	s, err := newSearch(y, len(kernels), outer, held, opt)
	if err != nil {
		return nil, err
	}
	s.boundMemory()
	return s.run(ctx, precomputed(kernels, y).machine)
}

// EvaluateSparse cross-validates linear support vector machines on sparse features:
// [EvaluateKernels] with the linear kernel of one of the matrices, [n×Width] each, for
// data sets whose kernel matrix would be large. The machine is that of [Linear], one
// class against the rest with the squared hinge loss,
//
//	f(w,b) = ½‖w‖² + ½b² + C Σ_i max(0, 1 − t_i(w·x_i + b))²
//
// and not the plain hinge loss of the kernel machines: its dual is strictly convex, so
// that the solution does not depend on the order of the coordinates, and the figures
// compare with LinearSVC's, which the kernel literature uses on large sets.
//
// It is solved by dual coordinate descent, until the projected gradient varies by less
// than 1e-3 or for a thousand passes. A problem that needs more than those, as with
// large C and rows that are far from norm 1, is scored as it then stands.
func EvaluateSparse(
	ctx context.Context, inputs []*kernel.Sparse, y []int, outer, held []dataset.Fold, opt Options,
) (*Result, error) {
	if len(inputs) == 0 {
		return nil, fmt.Errorf("eval: no features to choose from")
	}
	if err := checkLabels(y); err != nil {
		return nil, err
	}
	for q, m := range inputs {
		if m.Rows() != len(y) {
			return nil, fmt.Errorf("eval: matrix %d has %d rows, but there are %d labels",
				q, m.Rows(), len(y))
		}
		for i := range m.Rows() {
			columns, values := m.Row(i)
			for k, v := range values {
				if math.IsNaN(v) || math.Abs(v) > maxFeature {
					return nil, fmt.Errorf("eval: matrix %d: feature is %g in row %d, column %d",
						q, v, i, columns[k])
				}
			}
		}
	}
	s, err := newSearch(y, len(inputs), outer, held, opt)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, func() machine {
		return oneVsRest{&dcd{inputs: inputs, tol: 1e-3, passes: 1000}}
	})
}
