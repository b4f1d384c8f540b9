package eval

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/specmatch/specmatch/gnn/dataset"
)

// machine is a kind of classifier with the buffers of one goroutine.
type machine interface {
	// predict trains on a part of an input with each C in cs, ascending. It returns the predicted
	// classes of the test points for each C, as positions in p.class.
	predict(ctx context.Context, input int, p part, test []int, cs []float64) ([][]int, error)
}

// search selects an input and C inside each outer fold. A setting is a pair of them; settings are in the
// order of inputs, then of C.
type search struct {
	y      []int
	inputs int
	outer  []dataset.Fold
	// inner holds the inner folds of each outer fold's Train, equally many for each. The setting with
	// the best mean accuracy on them is chosen, the first one in a tie.
	inner [][]dataset.Fold
	// held says that the best setting is trained on the Train of the single inner fold instead of the
	// outer fold, and that settings are in descending order of C.
	held bool
	opt  Options
	// forgets says that a worker's machine is too large to be kept between tasks, see boundMemory.
	forgets bool
}

// newSearch checks the folds and the options. y is valid.
func newSearch(y []int, inputs int, outer, held []dataset.Fold, opt Options) (*search, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &search{
		y:      y,
		inputs: inputs,
		outer:  outer,
		held:   held != nil,
		opt:    opt,
	}
	s.inner, err = splitInner(y, outer, opt.InnerFolds)
	if err != nil {
		return nil, err
	}
	if s.held && len(held) != len(outer) {
		return nil, fmt.Errorf("eval: %d held-out parts for %d outer folds", len(held), len(outer))
	}
	for o, f := range held {
		if len(f.Train) == 0 || len(f.Test) == 0 {
			return nil, fmt.Errorf("eval: outer fold %d: held out are %d of %d points",
				o, len(f.Test), len(f.Train)+len(f.Test))
		}
		s.inner[o] = []dataset.Fold{f}
	}
	if inputs == 1 && len(opt.Cs) == 1 {
		return s, nil // nothing is searched
	}
	return s, s.checkInner()
}

// checkInner returns an error if an inner training part has one class only, as where a class has two points.
func (s *search) checkInner() error {
	for o, folds := range s.inner {
		for i, f := range folds {
			if p := newPart(s.y, f.Train); len(p.class) < 2 {
				return fmt.Errorf("eval: outer fold %d, inner fold %d: the training part has only class %d",
					o, i, p.class[0])
			}
		}
	}
	return nil
}

// keptBytes bounds the kernel matrices that a worker keeps for its next task where several evaluations share slots.
const keptBytes = 64 << 20

// boundMemory lowers the number of workers until their kernel matrices take 2 GB at most. Large ones live as long as
// a slot is held, so that there are no more of them than slots.
func (s *search) boundMemory() {
	var train, test int
	for _, f := range s.outer {
		train = max(train, len(f.Train))
		test = max(test, len(f.Test), len(f.Train)/s.opt.InnerFolds+1)
	}
	bytes := 4*int64(train)*int64(train) + 8*int64(train)*int64(test)
	if classesOf(s.y) > 2 {
		bytes += 4 * int64(train) * int64(train)
	}
	s.opt.Workers = min(s.opt.Workers, int(max(1, (2<<30)/max(1, bytes))))
	s.forgets = s.opt.Slots != nil && bytes > keptBytes
}

// classify reports which points of test a machine trained on train classifies correctly, for each C
// of cs.
func (s *search) classify(
	ctx context.Context, m machine, input int, train, test []int, cs []float64,
) ([][]bool, error) {
	p := newPart(s.y, train)
	if len(p.class) < 2 {
		return nil, fmt.Errorf("the training part has only class %d", p.class[0])
	}
	predicted, err := m.predict(ctx, input, p, test, cs)
	if err != nil {
		return nil, err
	}
	correct := make([][]bool, len(cs))
	for c := range cs {
		correct[c] = make([]bool, len(test))
		for t, i := range test {
			correct[c][t] = p.class[predicted[c][t]] == s.y[i]
		}
	}
	return correct, nil
}

// count returns how many values are true.
func count(values []bool) (n int) {
	for _, v := range values {
		if v {
			n++
		}
	}
	return n
}

// run runs the grid search of every outer fold, and then the final fits. With a single setting it runs
// only the final fits.
func (s *search) run(ctx context.Context, newMachine func() machine) (*Result, error) {
	eachTask := s.tasks(ctx, newMachine)
	cs := s.opt.Cs
	res := &Result{
		FoldAccuracies: make([]float64, len(s.outer)),
		Correct:        make([][]bool, len(s.outer)),
	}
	best := make([]int, len(s.outer)) // setting by outer fold
	if s.inputs*len(cs) > 1 {
		var err error
		best, res.InnerAccuracies, err = s.choose(ctx, eachTask)
		if err != nil {
			return nil, err
		}
	}
	for _, q := range best {
		c := q % len(cs)
		if s.held {
			c = len(cs) - 1 - c
		}
		res.ChosenInput = append(res.ChosenInput, q/len(cs))
		res.ChosenC = append(res.ChosenC, cs[c])
	}
	err := eachTask(len(s.outer), func(m machine, o int) error {
		train := s.outer[o].Train
		test := s.outer[o].Test
		if s.held {
			train = s.inner[o][0].Train
		}
		correct, err := s.classify(ctx, m, res.ChosenInput[o], train, test, res.ChosenC[o:o+1])
		if err != nil {
			return foldError(err, fmt.Sprintf("outer fold %d, final fit", o))
		}
		res.Correct[o] = correct[0]
		res.FoldAccuracies[o] = float64(count(correct[0])) / float64(len(test))
		return nil
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

// tasks returns a function that runs tasks side by side, each with the machine of its worker.
func (s *search) tasks(
	ctx context.Context, newMachine func() machine,
) func(tasks int, f func(m machine, task int) error) error {
	machines := make([]machine, s.opt.Workers)
	return func(tasks int, f func(m machine, task int) error) error {
		return parallel(ctx, tasks, s.opt.Workers, func(worker, task int) error {
			if s.opt.Slots != nil {
				s.opt.Slots <- struct{}{}
				defer func() { <-s.opt.Slots }()
			}
			if machines[worker] == nil {
				machines[worker] = newMachine()
			}
			if s.forgets {
				defer func() { machines[worker] = nil }()
			}
			return f(machines[worker], task)
		})
	}
}

// choose returns the best setting of each outer fold, and the mean inner accuracies by outer fold and
// setting.
func (s *search) choose(
	ctx context.Context, eachTask func(tasks int, f func(m machine, task int) error) error,
) (best []int, accuracies [][]float64, err error) {
	k := len(s.inner[0])
	cs := s.opt.Cs
	inner := make([][]float64, len(s.outer)*k) // by outer fold, inner fold; setting
	err = eachTask(len(inner), func(m machine, task int) error {
		o := task / k
		i := task % k
		f := s.inner[o][i]
		for input := range s.inputs {
			correct, err := s.classify(ctx, m, input, f.Train, f.Test, cs)
			if err != nil {
				return foldError(err, fmt.Sprintf("outer fold %d, inner fold %d", o, i))
			}
			if s.held {
				slices.Reverse(correct)
			}
			for _, c := range correct {
				inner[task] = append(inner[task], float64(count(c))/float64(len(f.Test)))
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	best = make([]int, len(s.outer))
	for o := range best {
		means := make([]float64, s.inputs*len(cs))
		for q := range means {
			// NumPy's order of operations, since the last bit decides ties.
			for i := range k {
				means[q] += inner[o*k+i][q]
			}
			means[q] /= float64(k)
			if means[q] > means[best[o]] {
				best[o] = q
			}
		}
		accuracies = append(accuracies, means)
	}
	return best, accuracies, nil
}

// foldError adds the fold to err. The error of a context is returned unchanged.
func foldError(err error, where string) error {
	if err == context.Canceled || err == context.DeadlineExceeded {
		return err
	}
	return fmt.Errorf("eval: %s: %w", where, err)
}

// parallel calls f(worker, task) for every task in 0..tasks-1 on at most
// workers goroutines and returns the error of the lowest failing task. Tasks
// start in order; after an error, or when ctx is done, no further one starts.
func parallel(ctx context.Context, tasks, workers int, f func(worker, task int) error) error {
	errs := make([]error, tasks)
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range min(workers, tasks) {
		wg.Go(func() {
			for {
				t := int(next.Add(1)) - 1
				if t >= tasks {
					return
				}
				errs[t] = ctx.Err()
				if errs[t] == nil {
					errs[t] = f(w, t)
				}
				if errs[t] != nil {
					next.Store(int64(tasks))
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
