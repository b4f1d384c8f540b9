package pretrain

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/run"
)

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
	m, err := model.Open(r.Weights(dir), be)
	if err != nil {
		return s, err
	}
	result, err := r.Evaluate(ctx, m, protocol, folds)
	if err != nil {
		return s, err
	}
	s = Score{Accuracy: 100 * result.Mean, Seconds: time.Since(start).Seconds()}
	for f, accuracy := range result.FoldAccuracies {
		s.Folds = append(s.Folds, 100*accuracy)
		if f < len(result.InnerAccuracies) && len(result.InnerAccuracies[f]) > 0 {
			s.Inner = append(s.Inner, 100*slices.Max(result.InnerAccuracies[f]))
		}
	}
	return s, nil
}

// ScoreUnit is the evaluation of the run's model file under a name, after the unit of the
// run's name that trains it.
func (r *Run) ScoreUnit(name string, e cli.Engine, dir *run.Dir, protocol string, folds int) run.Unit[Score] {
	compute := func(ctx context.Context, be backend.Backend, _ run.Status) (Score, error) {
		return r.Score(ctx, be, dir.Path, protocol, folds)
	}
	return run.Unit[Score]{Name: name, With: r.Name(), Run: run.OnEngine(e, compute)}
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

// cores has a slot for each core. Every fold of an evaluation holds one, so that parallel
// runs do not compete, and the last one is evaluated on all of them.
var cores = make(chan struct{}, runtime.GOMAXPROCS(0))

// Evaluate returns what a support vector machine makes of the embeddings of all graphs under
// a protocol.
func (r *Run) Evaluate(ctx context.Context, e Embedder, protocol string, folds int) (*eval.Result, error) {
	h, err := e.Embed(ctx, r.Dataset.Graphs)
	if err != nil {
		return nil, err
	}
	return eval.Protocol(protocol).Accuracy(ctx, h, r.Dataset.Labels(), folds, uint32(r.Seed), eval.Options{Slots: cores})
}
