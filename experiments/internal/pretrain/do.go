package pretrain

import (
	"context"
	"log/slog"
	"math"
	"runtime"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/specmatch"
)

// Outcome is what a run leaves in the journal.
type Outcome struct {
	Accuracy        map[string]float64 // by protocol, in per cent
	TrainSeconds    float64
	EvalSeconds     float64
	GraphsPerSecond rundir.Float // while training; null for the untrained encoder
	Epochs          []Epoch
}

// cores has room for one value for each core: a run that trains puts one in, and
// so does every fold of an evaluation. So runs side by side do not crowd each
// other out, and the last ones are evaluated on all cores.
var cores = make(chan struct{}, runtime.GOMAXPROCS(0))

// Do trains, with a row of metrics.csv per epoch under the name of the unit, and
// evaluates. Interrupted, it goes on from a checkpoint.
func (r *Run) Do(ctx context.Context, be backend.Backend, dir *rundir.Dir, unit string, how cli.Protocol, say units.Say) (out Outcome, model *specmatch.Model, err error) {
	if err := r.Keep(dir, unit); err != nil {
		return out, nil, err
	}
	cores <- struct{}{}
	model = r.Model(be)
	out.TrainSeconds, err = r.Train(ctx, be, model, func(epoch int, e Epoch) error {
		out.Epochs = append(out.Epochs, e)
		return dir.Metrics(unit, epoch, append([]slog.Attr{
			slog.String("dataset", r.Dataset.Name), slog.String("method", r.Method), slog.Int("seed", r.Seed),
		}, e.Columns()...)...)
	})
	<-cores
	if err != nil {
		return out, nil, err
	}
	out.GraphsPerSecond = rundir.Float(float64(len(r.Dataset.Graphs)*len(out.Epochs)) / out.TrainSeconds)
	if len(out.Epochs) == 0 {
		out.GraphsPerSecond = rundir.Float(math.NaN())
	}

	say("evaluation")
	start := time.Now()
	if out.Accuracy, err = r.Evaluate(ctx, be, model, how); err != nil {
		return out, nil, err
	}
	out.EvalSeconds = time.Since(start).Seconds()
	return out, model, nil
}
