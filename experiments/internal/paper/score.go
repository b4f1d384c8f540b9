package paper

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
)

// Score returns the evaluation of a run's model file under a name, as a unit after the one of the
// run's name that trains it.
func (x *Experiment) Score(r *training.Run, name, protocol string) run.Unit[eval.Score] {
	compute := func(ctx context.Context, be backend.Backend, _ run.Status) (eval.Score, error) {
		return ScoreFile(ctx, be, r, x.Dir.Path, protocol, x.Protocol.Folds)
	}
	return run.Unit[eval.Score]{
		Name:   name,
		With:   r.Name(),
		Engine: &x.Engine,
		Run:    compute,
	}
}

// ScoreFile evaluates a run's model file in a run directory under one protocol.
func ScoreFile(
	ctx context.Context, be backend.Backend, r *training.Run, dir, protocol string, folds int,
) (s eval.Score, err error) {
	start := time.Now()
	m, err := model.Open(r.Weights(dir), be)
	if err != nil {
		return s, err
	}
	result, err := Evaluate(ctx, m, r, protocol, folds)
	if err != nil {
		return s, err
	}
	s = eval.Score{Accuracy: 100 * result.Mean, Seconds: time.Since(start).Seconds()}
	s.Twins, err = countTwins(ctx, r, folds, result)
	if err != nil {
		return s, err
	}
	for f, accuracy := range result.FoldAccuracies {
		s.Folds = append(s.Folds, 100*accuracy)
		if f < len(result.InnerAccuracies) && len(result.InnerAccuracies[f]) > 0 {
			s.Inner = append(s.Inner, 100*slices.Max(result.InnerAccuracies[f]))
		}
	}
	return s, nil
}

// copies holds the copies among the graphs of each data set that was evaluated.
var copies = struct {
	sync.Mutex
	found map[*dataset.Dataset]*dataset.Copies
}{found: map[*dataset.Dataset]*dataset.Copies{}}

// findCopies returns which graphs of a set are equal for the encoders of the unsupervised regime, which do
// not read labels of edges.
func findCopies(ctx context.Context, ds *dataset.Dataset) (*dataset.Copies, error) {
	copies.Lock()
	defer copies.Unlock()
	if c, ok := copies.found[ds]; ok {
		return c, nil
	}
	c, err := dataset.FindCopies(ctx, dataset.WithoutEdgeLabels(ds.Graphs))
	if err == nil {
		copies.found[ds] = c
	}
	return c, err
}

// countTwins counts the graphs of an evaluation that have a copy in the training part of their fold.
func countTwins(
	ctx context.Context, r *training.Run, folds int, result *eval.Result,
) (*eval.Twins, error) {
	c, err := findCopies(ctx, r.Dataset)
	if err != nil {
		return nil, err
	}
	outer, err := dataset.StratifiedKFold(r.Dataset.Labels(), folds, true, uint32(r.Seed))
	if err != nil {
		return nil, err
	}
	return eval.CountTwins(c, outer, result), nil
}

// Check returns an error if it would be impossible to evaluate a run after training.
func Check(runs []*training.Run, protocol cli.Protocol) error {
	alike := func(a, b *training.Run) bool { return a.Dataset == b.Dataset }
	// the sizes of folds do not depend on the seed
	for _, r := range slices.CompactFunc(slices.Clone(runs), alike) {
		for _, p := range protocol.Protocols {
			if err := eval.Protocol(p).Check(r.Dataset.Labels(), protocol.Folds, eval.Options{}); err != nil {
				return fmt.Errorf("%s in %d folds: %w", r.Dataset.Name, protocol.Folds, err)
			}
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

// Evaluate returns what a support vector machine makes of the embeddings of a run's graphs under a
// protocol.
func Evaluate(
	ctx context.Context, e Embedder, r *training.Run, protocol string, folds int,
) (*eval.Result, error) {
	h, err := e.Embed(ctx, r.Dataset.Graphs)
	if err != nil {
		return nil, err
	}
	options := eval.Options{Slots: cores}
	return eval.Protocol(protocol).Accuracy(ctx, h, r.Dataset.Labels(), folds, uint32(r.Seed), options)
}
