// Command unsupervised reproduces the unsupervised regime of the paper (its
// Table 1): train an encoder without labels, freeze it, and see how well a
// support vector machine tells the classes apart from its embeddings.
//
//	go run ./experiments/unsupervised
//	go run ./experiments/unsupervised -dataset MUTAG,NCI1 -data DIR -seeds 5
//
// One row per method: the untrained encoder; GraphCL as its code does it; the
// paper's L_C alone on two augmented views; and SpecMatch-CL, L_C + β·L_G. All
// rows of a seed share the initial weights, the order of the batches, the
// augmentations and the folds, so that differences between rows are paired.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"time"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/pretrain"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch"
)

func main() { cli.Main(run) }

const synopsis = `Trains graph encoders without labels and evaluates their embeddings with a
support vector machine: the unsupervised regime of SpecMatch-CL.`

// experiment is what the flags say.
type experiment struct {
	data     cli.Data
	loss     cli.Loss
	recipe   cli.Recipe
	protocol cli.Protocol
	engine   cli.Engine
	output   cli.Output
	settings pretrain.Settings

	dir *rundir.Dir
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	x := &experiment{
		loss:     cli.Loss{Beta: cli.Beta{Weight: 0.05}, P: 80, Tau: 0.2, Kappa: 10},
		recipe:   cli.Recipe{Epochs: 20, Batch: 128, LR: 0.01, Seeds: 5},
		protocol: cli.Protocol{Protocols: []string{"graphcl", "linear"}, Choices: []string{"graphcl", "linear"}},
		settings: pretrain.DefaultSettings(),
	}
	flags := cli.NewFlagSet("unsupervised", synopsis, "", "-dataset MUTAG,PROTEINS -data DIR -seeds 3", "-dataset NCI1 -data DIR -method infonce,specmatch -beta auto:0.2")
	flags.Add(&x.data, &x.loss, &x.recipe, &x.protocol, &x.engine, &x.output, &x.settings)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	sets, err := x.data.Open(dataset.Options{})
	if err != nil {
		return err
	}
	runs := x.runs(sets)
	for _, r := range runs {
		if _, err := r.Loader(); err != nil {
			return err
		}
	}
	// Opened here so that a wrong engine is reported before anything runs.
	if _, err := backend.Open(x.engine.Backend, x.engine.Precision); err != nil {
		return err
	}
	x.dir, err = rundir.Open(rundir.Options{
		Experiment: "unsupervised", Datasets: x.data.Datasets, Flags: flags.FlagSet,
		FirstSeed: x.recipe.FirstSeed, Seeds: x.recipe.Seeds, Engine: x.engine.Backend, Out: x.output.Dir,
	})
	if err != nil {
		return err
	}
	defer x.dir.Close()

	var list []units.Unit[outcome]
	for _, r := range runs {
		list = append(list, units.Unit[outcome]{Name: name(r), Run: func(ctx context.Context, say units.Say) (outcome, error) {
			return x.do(ctx, r, say)
		}})
	}
	outcomes, err := units.Run(ctx, x.dir, stderr, list)
	if err != nil {
		return err
	}
	return x.report(stdout, sets, runs, outcomes)
}

// runs lists the runs: every method on every data set with every seed.
func (x *experiment) runs(sets []*dataset.Dataset) []*pretrain.Run {
	var runs []*pretrain.Run
	for _, ds := range sets {
		for _, method := range x.loss.Methods {
			for s := range x.recipe.Seeds {
				runs = append(runs, &pretrain.Run{
					Dataset: ds, Method: method, Seed: x.recipe.FirstSeed + s,
					Loss: x.loss, Recipe: x.recipe, Settings: x.settings,
				})
			}
		}
	}
	return runs
}

func name(r *pretrain.Run) string {
	return fmt.Sprintf("%s/%s/seed=%d", r.Dataset.Name, r.Method, r.Seed)
}

// outcome is what a run leaves in the journal.
type outcome struct {
	Accuracy        map[string]float64 // by protocol, in per cent
	TrainSeconds    float64
	EvalSeconds     float64
	GraphsPerSecond rundir.Float // while training; null for the untrained encoder
	Epochs          []pretrain.Epoch
}

// do trains and evaluates.
func (x *experiment) do(ctx context.Context, r *pretrain.Run, say units.Say) (out outcome, err error) {
	be, err := backend.Open(x.engine.Backend, x.engine.Precision)
	if err != nil {
		return out, err
	}
	start := time.Now()
	model := r.Model(be)
	err = r.Train(ctx, be, model, func(epoch int, e pretrain.Epoch) error {
		out.Epochs = append(out.Epochs, e)
		return x.dir.Metrics(name(r), epoch, append([]slog.Attr{
			slog.String("dataset", r.Dataset.Name), slog.String("method", r.Method), slog.Int("seed", r.Seed),
		}, e.Columns()...)...)
	})
	if err != nil {
		return out, err
	}
	out.TrainSeconds = time.Since(start).Seconds()
	out.GraphsPerSecond = rundir.Float(float64(len(r.Dataset.Graphs)*len(out.Epochs)) / out.TrainSeconds)
	if len(out.Epochs) == 0 {
		out.GraphsPerSecond = rundir.Float(math.NaN())
	}

	say("evaluation")
	start = time.Now()
	if out.Accuracy, err = r.Evaluate(ctx, be, model, x.protocol.Protocols); err != nil {
		return out, err
	}
	out.EvalSeconds = time.Since(start).Seconds()
	return out, x.save(model, r)
}

// save writes the trained weights, one file per run.
func (x *experiment) save(model *specmatch.Model, r *pretrain.Run) error {
	if err := os.MkdirAll(x.dir.Join("weights"), 0o777); err != nil {
		return err
	}
	file := fmt.Sprintf("%s-%s-%d.safetensors", r.Dataset.Name, r.Method, r.Seed)
	return nn.SaveFile(x.dir.Join("weights", file), model, map[string]string{"dataset": r.Dataset.Name, "method": r.Method})
}
