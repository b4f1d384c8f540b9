package pretrain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/eval"
)

// Outcome is the result of a run of the unsupervised regime in the journal.
type Outcome struct {
	Trained
	Accuracy    map[string]float64 // by protocol, in per cent
	EvalSeconds float64
}

// Check returns an error unless there are accuracies, all above 0 and at most 100.
func (o *Outcome) Check() error {
	if len(o.Accuracy) == 0 {
		return errors.New("no accuracy")
	}
	for _, protocol := range slices.Sorted(maps.Keys(o.Accuracy)) {
		if err := (&Score{Accuracy: o.Accuracy[protocol]}).Check(); err != nil {
			return fmt.Errorf("%s: %w", protocol, err)
		}
	}
	return nil
}

// Score is the result of an evaluation of trained weights in the journal.
type Score struct {
	Accuracy float64 // in per cent
	Seconds  float64
	// By outer fold, in per cent: the accuracy on its test part, whose mean is
	// Accuracy, and that of the best C on validation parts of its training part, by
	// which settings can be chosen without looking at the test part. Inner is empty
	// where there was nothing to choose; runs of version 0.1 have neither.
	Folds []float64 `json:",omitempty"`
	Inner []float64 `json:",omitempty"`
}

// Check returns an error unless the accuracy is above 0 and at most 100.
func (s *Score) Check() error {
	if !(s.Accuracy > 0 && s.Accuracy <= 100) {
		return fmt.Errorf("an accuracy of %v %%", s.Accuracy)
	}
	return nil
}

// Score evaluates the run's model file in a run directory under one protocol.
func (r *Run) Score(ctx context.Context, be backend.Backend, dir, protocol string, folds int) (s Score, err error) {
	start := time.Now()
	m, err := specmatch.Open(r.Weights(dir), be)
	if err != nil {
		return s, err
	}
	results, err := r.Evaluate(ctx, m, cli.Protocol{Protocols: []string{protocol}, Folds: folds})
	if err != nil {
		return s, err
	}
	result := results[protocol]
	s = Score{Accuracy: 100 * result.Mean, Seconds: time.Since(start).Seconds()}
	for f, accuracy := range result.FoldAccuracies {
		s.Folds = append(s.Folds, 100*accuracy)
		if f < len(result.InnerAccuracies) && len(result.InnerAccuracies[f]) > 0 {
			s.Inner = append(s.Inner, 100*slices.Max(result.InnerAccuracies[f]))
		}
	}
	return s, nil
}

// cores is a semaphore with one slot per core. A run holds one while it trains, and
// so does every fold of an evaluation, so that parallel runs do not compete for
// cores, and the last run is evaluated on all of them.
var cores = make(chan struct{}, runtime.GOMAXPROCS(0))

// Do trains and evaluates under the name of a unit.
func (r *Run) Do(ctx context.Context, be backend.Backend, dir *rundir.Dir, unit string, protocol cli.Protocol, status units.Status) (out Outcome, err error) {
	l, err := r.Learner(be)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	cores <- struct{}{}
	out.Trained, err = r.Train(ctx, l, dir, unit, status)
	<-cores
	if err != nil {
		return out, err
	}
	status("evaluation")
	start := time.Now()
	results, err := r.Evaluate(ctx, l, protocol)
	out.Accuracy = map[string]float64{}
	for name, result := range results {
		out.Accuracy[name] = 100 * result.Mean
	}
	out.EvalSeconds = time.Since(start).Seconds()
	return out, err
}

// Check returns an error if it would be impossible to evaluate a run after training.
func Check(runs []*Run, protocol cli.Protocol) error {
	alike := func(a, b *Run) bool { return a.Dataset == b.Dataset }
	for _, r := range slices.CompactFunc(slices.Clone(runs), alike) { // the sizes of folds do not depend on the seed
		if err := eval.Check(r.Dataset.Labels(), protocol.Folds, eval.Options{}); err != nil {
			return fmt.Errorf("%s in %d folds: %w", r.Dataset.Name, protocol.Folds, err)
		}
	}
	return nil
}

// Embedder embeds graphs: a learner, or the model in a file.
type Embedder interface {
	// Embed returns the embeddings of n graphs, row-major [n×d].
	Embed(ctx context.Context, graphs []*graph.Graph) ([]float64, error)
}

// Evaluate returns what a support vector machine makes of the embeddings of all
// graphs, by protocol.
func (r *Run) Evaluate(ctx context.Context, e Embedder, protocol cli.Protocol) (map[string]*eval.Result, error) {
	h, err := e.Embed(ctx, r.Dataset.Graphs)
	if err != nil {
		return nil, err
	}
	results, y := map[string]*eval.Result{}, r.Dataset.Labels()
	for _, name := range protocol.Protocols {
		p := eval.Protocol(name)
		results[name], err = p.Accuracy(ctx, h, y, protocol.Folds, uint32(r.Seed), eval.Options{Slots: cores})
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}
