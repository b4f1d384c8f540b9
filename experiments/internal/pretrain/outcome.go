package pretrain

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/method"
)

// Outcome is what a run of the unsupervised regime leaves in the journal.
type Outcome struct {
	Trained
	Accuracy    map[string]float64 // by protocol, in per cent
	EvalSeconds float64
}

// cores has room for one value for each core: a run that trains puts one in, and
// so does every fold of an evaluation. So runs side by side do not crowd each
// other out, and the last ones are evaluated on all cores.
var cores = make(chan struct{}, runtime.GOMAXPROCS(0))

// Do trains and evaluates. The caller closes the learner, which is nil after an
// error.
func (r *Run) Do(ctx context.Context, be backend.Backend, dir *rundir.Dir, unit string, how cli.Protocol, say units.Say) (out Outcome, l *method.Learner, err error) {
	if l, err = r.Learner(be); err != nil {
		return out, nil, err
	}
	defer func() {
		if err != nil {
			l.Close()
			l = nil
		}
	}()
	cores <- struct{}{}
	out.Trained, err = r.Train(ctx, l, dir, unit, say)
	<-cores
	if err != nil {
		return out, l, err
	}
	say("evaluation")
	start := time.Now()
	out.Accuracy, err = r.Evaluate(ctx, l, how)
	out.EvalSeconds = time.Since(start).Seconds()
	return out, l, err
}

// Check returns an error if a run could not be evaluated at the end of its training.
func Check(runs []*Run, how cli.Protocol) error {
	checked := map[*dataset.Dataset]bool{}
	for _, r := range runs {
		if checked[r.Dataset] { // the sizes of folds do not depend on the seed
			continue
		}
		checked[r.Dataset] = true
		folds, err := r.folds(how)
		if err == nil {
			err = eval.Check(r.Dataset.Labels(), folds, eval.Options{})
		}
		if err != nil {
			return fmt.Errorf("%s in %d folds: %w", r.Dataset.Name, how.Folds, err)
		}
	}
	return nil
}

// folds returns the outer folds of the evaluation.
func (r *Run) folds(how cli.Protocol) ([]dataset.Fold, error) {
	return dataset.StratifiedKFold(r.Dataset.Labels(), how.Folds, true, uint32(r.Seed))
}

// Evaluate returns the accuracy of a support vector machine on the embeddings of
// all graphs, in per cent, by protocol.
func (r *Run) Evaluate(ctx context.Context, l *method.Learner, how cli.Protocol) (map[string]float64, error) {
	folds, err := r.folds(how)
	if err != nil {
		return nil, err
	}
	h, err := l.Embed(ctx, r.Dataset.Graphs)
	if err != nil {
		return nil, err
	}
	data := eval.Data{X: h, Dim: l.Model.Encoder.Width(), Y: r.Dataset.Labels()}
	accuracy := map[string]float64{}
	for _, name := range how.Protocols {
		p, err := eval.ParseProtocol(name)
		if err != nil {
			return nil, err
		}
		result, err := eval.Evaluate(ctx, p, data, folds, eval.Options{Slots: cores})
		if err != nil {
			return nil, err
		}
		accuracy[name] = 100 * result.Mean
	}
	return accuracy, nil
}
