package eval

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/specmatch/specmatch/gnn/dataset"
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

// ParseProtocol returns the protocol of a name.
func ParseProtocol(name string) (Protocol, error) {
	if p := Protocol(name); slices.Contains(Protocols(), p) {
		return p, nil
	}
	return "", fmt.Errorf("eval: unknown protocol %q (have: %s, %s, %s)", name, GraphCL, Linear, GraphCLC10)
}

// Options are the settings of [Evaluate]. The zero value is GraphCL's grid.
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
	// Progress, if set, is called after each outer fold with the number done and
	// the number in all. Calls do not overlap.
	Progress func(done, total int)
}

// Result is the outcome of one evaluation.
type Result struct {
	// Protocol is that of [Evaluate]; other evaluations leave it empty.
	Protocol Protocol
	// FoldAccuracies is the fraction of test points right, for each outer fold.
	FoldAccuracies []float64
	// Mean is the mean of FoldAccuracies, the value of a run. The spread of the
	// folds is several times that of runs and is not what tables report.
	Mean float64
	// ChosenC is the C that won the grid search of each outer fold.
	ChosenC []float64
	// ChosenInput is the place of the kernel or matrix that won it, where there
	// was more than one to choose from; see [EvaluateKernels].
	ChosenInput []int
	// InnerAccuracies holds, for each outer fold and each C of the grid, the mean
	// validation accuracy; for each C of the first input, then of the second, and
	// so on. It is nil if there was one C, and so no search.
	InnerAccuracies [][]float64
}

const (
	defaultInnerFolds       = 5
	kernelBytes       int64 = 2 << 30 // for all workers together
)

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
	if _, err := ParseProtocol(string(p)); err != nil {
		return nil, err
	}
	if err := data.Validate(); err != nil {
		return nil, err
	}
	if p == GraphCLC10 && opt.Cs == nil {
		opt.Cs = []float64{10}
	}
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	inner, err := splitInner(data, outer, opt.InnerFolds)
	if err != nil {
		return nil, err
	}
	workers := opt.Workers
	var newScorer func() scorer
	if p == Linear {
		if err := checkColumns(data.Dim); err != nil {
			return nil, err
		}
		newScorer = func() scorer { return &linearScorer{data: data, cs: opt.Cs} }
	} else {
		shared, err := newSVCShared(ctx, data, workers)
		if err != nil {
			return nil, err
		}
		var train int
		train, workers = opt.fitting(outer, data.Classes())
		newScorer = func() scorer {
			s := &svcScorer{svcShared: shared, cs: opt.Cs}
			s.w.k = growMatrix(nil, train*train)
			return s
		}
	}
	res, err := search{outer: outer, inner: inner, settings: len(opt.Cs), opt: opt, workers: workers, newScorer: newScorer}.run(ctx)
	if err != nil {
		return nil, err
	}
	res.Protocol = p
	for _, q := range res.chosen {
		res.ChosenC = append(res.ChosenC, opt.Cs[q])
	}
	return &res.Result, nil
}

// Accuracy evaluates embeddings: x is row-major [n×d] with n = len(y), one row per graph,
// and y holds their classes 0..C-1. It is [Evaluate] on stratified folds, shuffled with
// the seed; papers use ten. The accuracy is the Mean of the result.
func (p Protocol) Accuracy(ctx context.Context, x []float64, y []int, folds int, seed uint32, opt Options) (*Result, error) {
	outer, err := dataset.StratifiedKFold(y, folds, true, seed)
	if err != nil {
		return nil, err
	}
	return Evaluate(ctx, p, Data{X: x, Dim: len(x) / len(y), Y: y}, outer, opt)
}

// Check returns the error that [Protocol.Accuracy] would return for these labels and
// folds, whatever the features and the seed: something to know before an encoder is
// trained.
func Check(y []int, folds int, opt Options) error {
	data := Data{Y: y}
	if err := data.validateLabels(); err != nil {
		return err
	}
	outer, err := dataset.StratifiedKFold(y, folds, true, 0)
	if err != nil {
		return err
	}
	_, err = splitInner(data, outer, opt.innerFolds())
	return err
}

// withDefaults fills in the grid, the number of inner folds and of workers.
func (o Options) withDefaults() (Options, error) {
	if o.Cs == nil {
		o.Cs = []float64{1e-3, 1e-2, 1e-1, 1, 10, 100, 1000}
	}
	if len(o.Cs) == 0 {
		return o, fmt.Errorf("eval: no C to choose from")
	}
	for i, c := range o.Cs {
		if err := checkC(c); err != nil {
			return o, err
		}
		if i > 0 && c <= o.Cs[i-1] {
			return o, fmt.Errorf("eval: grid of C does not ascend: %g after %g", c, o.Cs[i-1])
		}
	}
	o.InnerFolds = o.innerFolds()
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return o, nil
}

// fitting returns the size of the largest training part and how many workers may have
// the kernel matrices of one at a time: as many as asked for, if those stay under
// kernelBytes.
func (o Options) fitting(outer []dataset.Fold, classes int) (train, workers int) {
	test := 0
	for _, f := range outer {
		train, test = max(train, len(f.Train)), max(test, len(f.Test), len(f.Train)/o.InnerFolds+1)
	}
	bytes := 4*int64(train)*int64(train) + 8*int64(train)*int64(test)
	if classes > 2 {
		bytes += 4 * int64(train) * int64(train)
	}
	return train, min(o.Workers, int(max(1, kernelBytes/max(1, bytes))))
}

// innerFolds is InnerFolds or its default.
func (o Options) innerFolds() int {
	if o.InnerFolds == 0 {
		return defaultInnerFolds
	}
	return o.InnerFolds
}

// splitInner checks the outer folds and splits each training part.
func splitInner(data Data, outer []dataset.Fold, k int) ([][]dataset.Fold, error) {
	if len(outer) == 0 {
		return nil, fmt.Errorf("eval: no outer folds")
	}
	n, classes := data.Len(), data.Classes()
	inner := make([][]dataset.Fold, len(outer))
	seen := make([]int, n) // 1 + the fold in which a point was last seen
	for o, f := range outer {
		if len(f.Train) == 0 || len(f.Test) == 0 {
			return nil, fmt.Errorf("eval: outer fold %d has %d training and %d test points", o, len(f.Train), len(f.Test))
		}
		for _, part := range [][]int{f.Train, f.Test} {
			for _, i := range part {
				if i < 0 || i >= n {
					return nil, fmt.Errorf("eval: outer fold %d: point %d is out of range 0..%d", o, i, n-1)
				}
				if seen[i] == o+1 {
					return nil, fmt.Errorf("eval: outer fold %d: point %d occurs twice", o, i)
				}
				seen[i] = o + 1
			}
		}
		count := make([]int, classes)
		labels := make([]int, len(f.Train))
		for t, i := range f.Train {
			labels[t] = data.Y[i]
			count[data.Y[i]]++
		}
		if c := slices.Index(count, 0); c >= 0 {
			return nil, fmt.Errorf("eval: outer fold %d: no training point of class %d", o, c)
		}
		folds, err := dataset.StratifiedKFold(labels, k, false, 0)
		if err != nil {
			return nil, fmt.Errorf("eval: outer fold %d: grid search: %w", o, err)
		}
		for i, g := range folds { // places in Train -> points
			for _, part := range [][]int{g.Train, g.Test} {
				for t, place := range part {
					part[t] = f.Train[place]
				}
			}
			if len(g.Test) == 0 {
				return nil, fmt.Errorf("eval: outer fold %d: inner fold %d is empty", o, i)
			}
		}
		inner[o] = folds
	}
	return inner, nil
}

// scorer counts, for each of its settings lo, lo+1, …, hi-1, the points of test that
// a classifier trained on train gets right. One goroutine uses it.
type scorer interface {
	score(ctx context.Context, train, test []int, lo, hi int) ([]int, error)
}

// search is the choice of one of several settings inside each outer fold.
type search struct {
	outer []dataset.Fold
	// inner holds the divisions of an outer fold's Train, equally many for each,
	// on which the setting is chosen: the one with the best mean accuracy, the
	// first of equals.
	inner [][]dataset.Fold
	// alone says that the winner is trained on the Train of the one inner fold,
	// and not on that of the outer fold.
	alone     bool
	settings  int
	opt       Options
	workers   int
	newScorer func() scorer
}

// found is a Result without what the settings stand for.
type found struct {
	Result
	chosen []int // by outer fold
}

// run runs the grid search of every outer fold and its final fit. Whichever worker
// finishes the last inner fold of an outer one goes on with that fit. With a single
// setting there is nothing to search for, and only the final fits run.
func (s search) run(ctx context.Context) (*found, error) {
	k := len(s.inner[0])
	res := &found{chosen: make([]int, len(s.outer))}
	res.FoldAccuracies = make([]float64, len(s.outer))
	if s.settings > 1 {
		res.InnerAccuracies = make([][]float64, len(s.outer))
	}
	accuracy := make([][]float64, len(s.outer)*k) // by outer fold, inner fold; setting
	var mu sync.Mutex
	left := make([]int, len(s.outer))
	for o := range left {
		left[o] = k
	}
	done := 0
	final := func(scorer scorer, o int) error {
		best, train := res.chosen[o], s.outer[o].Train
		if s.alone {
			train = s.inner[o][k-1].Train
		}
		right, err := scorer.score(ctx, train, s.outer[o].Test, best, best+1)
		if err != nil {
			return foldError(err, fmt.Sprintf("outer fold %d, final fit", o))
		}
		res.FoldAccuracies[o] = float64(right[0]) / float64(len(s.outer[o].Test))
		mu.Lock()
		defer mu.Unlock()
		done++
		if s.opt.Progress != nil {
			s.opt.Progress(done, len(s.outer))
		}
		return nil
	}
	tasks := len(accuracy)
	if s.settings == 1 {
		tasks = len(s.outer)
	}
	scorers := make([]scorer, s.workers)
	err := parallel(ctx, tasks, s.workers, func(worker, task int) error {
		if s.opt.Slots != nil {
			s.opt.Slots <- struct{}{}
			defer func() { <-s.opt.Slots }()
		}
		if scorers[worker] == nil {
			scorers[worker] = s.newScorer()
		}
		scorer := scorers[worker]
		if s.settings == 1 {
			return final(scorer, task)
		}
		o, i := task/k, task%k
		f := s.inner[o][i]
		right, err := scorer.score(ctx, f.Train, f.Test, 0, s.settings)
		if err != nil {
			return foldError(err, fmt.Sprintf("outer fold %d, inner fold %d", o, i))
		}
		acc := make([]float64, s.settings)
		for q, r := range right {
			acc[q] = float64(r) / float64(len(f.Test))
		}
		accuracy[task] = acc
		mu.Lock()
		left[o]--
		last := left[o] == 0
		mu.Unlock()
		if !last {
			return nil
		}
		means := make([]float64, s.settings)
		best := 0
		for q := range means {
			// Summed and divided as NumPy does, since ties are decided by the
			// last bit.
			for i := range k {
				means[q] += accuracy[o*k+i][q]
			}
			means[q] /= float64(k)
			if means[q] > means[best] {
				best = q
			}
		}
		res.InnerAccuracies[o], res.chosen[o] = means, best
		return final(scorer, o)
	})
	if err != nil {
		return nil, err
	}
	for _, a := range res.FoldAccuracies {
		res.Mean += a
	}
	res.Mean /= float64(len(s.outer))
	return res, nil
}

// foldError says where err happened. The error of a context is returned unchanged.
func foldError(err error, where string) error {
	if err == context.Canceled || err == context.DeadlineExceeded {
		return err
	}
	return fmt.Errorf("eval: %s: %w", where, err)
}

// byClass numbers the points of a data set by class, so that every training part in
// the order of its classes is an ascending selection of them. What of a point is said
// elsewhere by its index is said by its place here.
type byClass struct {
	points []int // by place
	place  []int // of a point
	y      []int // labels, by place
}

func sortByClass(y []int) byClass {
	s := byClass{points: groupByClass(upTo(len(y)), y).points, place: make([]int, len(y)), y: make([]int, len(y))}
	for p, i := range s.points {
		s.place[i], s.y[p] = p, y[i]
	}
	return s
}

// sorted returns the places of points, ascending.
func (s *byClass) sorted(points []int) []int {
	out := make([]int, len(points))
	for t, i := range points {
		out[t] = s.place[i]
	}
	slices.Sort(out)
	return out
}

// svcShared is what all workers of the RBF protocol read, with the points by class:
// kernel matrices are filled from the rows of one triangle.
type svcShared struct {
	byClass
	x   []float64
	dim int
	d2  *triangle
}

func newSVCShared(ctx context.Context, data Data, workers int) (*svcShared, error) {
	s := &svcShared{byClass: sortByClass(data.Y), dim: data.Dim}
	s.x = rows(data.X, data.Dim, s.points)
	var err error
	s.d2, err = squaredDistances(ctx, s.x, s.dim, workers)
	return s, err
}

type svcScorer struct {
	*svcShared
	cs []float64
	w  svcWorker
}

func (s *svcScorer) score(ctx context.Context, train, test []int, lo, hi int) ([]int, error) {
	cs := s.cs[lo:hi]
	train, test = s.sorted(train), s.sorted(test)
	g := groupByClass(train, s.y)
	if len(g.class) < 2 {
		return nil, fmt.Errorf("the training part has only class %d", g.class[0])
	}
	gamma, err := scaleGamma(s.x, s.dim, train)
	if err != nil {
		return nil, err
	}
	cfg, err := SVCConfig{C: cs[0], Gamma: gamma}.withDefaults()
	if err != nil {
		return nil, err
	}
	n := len(train)
	s.w.k = growMatrix(s.w.k, n*n)
	s.w.tmp = grow(s.w.tmp, n)
	rbfTrain(s.w.k, s.d2, train, cfg.Gamma, s.w.tmp)
	s.w.cross = grow(s.w.cross, n*len(test))
	rbfCross(s.w.cross, s.d2, test, train, cfg.Gamma)
	return s.w.right(ctx, g, s.y, test, cs, cfg)
}

// right trains on the kernel matrix w.k of the points of g and counts, for every C
// of cs, the points of test with labels y that it gets right, given w.cross.
func (w *svcWorker) right(ctx context.Context, g group, y, test []int, cs []float64, cfg SVCConfig) ([]int, error) {
	sols := make([][]pairSolution, len(cs))
	err := w.fitPairs(ctx, g.start, cs, cfg, func(_, _, c int, sol pairSolution) {
		sols[c] = append(sols[c], sol)
	})
	if err != nil {
		return nil, err
	}
	right := make([]int, len(cs))
	winner := make([]int, len(test))
	for c := range cs {
		w.predictPairs(winner, g.start, sols[c])
		for t, p := range test {
			if g.class[winner[t]] == y[p] {
				right[c]++
			}
		}
	}
	return right, nil
}

type linearScorer struct {
	data Data
	cs   []float64
	w    linearWorker
}

func (s *linearScorer) score(ctx context.Context, train, test []int, lo, hi int) ([]int, error) {
	cs := s.cs[lo:hi]
	d := s.data.Dim
	labels := make([]int, len(train))
	for t, i := range train {
		labels[t] = s.data.Y[i]
	}
	g := groupByClass(upTo(len(train)), labels)
	if len(g.class) < 2 {
		return nil, fmt.Errorf("the training part has only class %d", g.class[0])
	}
	s.w.load(s.data.X, d, train)
	machines := len(g.class)
	if machines == 2 {
		machines = 1
	}
	dec := make([]float64, len(cs)*len(test)*machines) // by C, test point, machine
	err := s.w.fit(ctx, labels, g.class, cs, func(q, c int, weights []float64, _ int) {
		for t, i := range test {
			dec[(c*len(test)+t)*machines+q] = dot(weights[:d], s.data.X[i*d:(i+1)*d]) + weights[d]
		}
	})
	if err != nil {
		return nil, err
	}
	right := make([]int, len(cs))
	for c := range cs {
		for t, i := range test {
			at := (c*len(test) + t) * machines
			if g.class[strongest(dec[at:at+machines])] == s.data.Y[i] {
				right[c]++
			}
		}
	}
	return right, nil
}
