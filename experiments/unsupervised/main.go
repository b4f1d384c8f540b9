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

	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/pretrain"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/method"
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
		loss:     cli.Loss{Methods: method.Names(method.Unsupervised), Beta: cli.Beta{Weight: 0.05}, P: 80, Tau: 0.2, Kappa: 10},
		recipe:   cli.Recipe{Epochs: 20, Batch: 128, LR: 0.01, Seeds: 5},
		protocol: cli.Protocol{Protocols: []string{"graphcl", "linear"}, Choices: []string{"graphcl", "linear"}},
		settings: pretrain.DefaultSettings(),
	}
	flags := cli.NewFlagSet("unsupervised", synopsis, "", "-dataset MUTAG,PROTEINS -data DIR -seeds 3", "-dataset NCI1 -data DIR -method infonce,specmatch -beta auto:0.2")
	flags.Add(&x.data, &x.loss, &x.recipe, &x.protocol, &x.engine, &x.output, &x.settings)
	x.settings.RegisterGraphCL(flags)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	sets, err := x.data.Open(ctx, stderr, dataset.Options{})
	if err != nil {
		return err
	}
	runs := x.runs(sets)
	if err := pretrain.Check(runs, x.protocol); err != nil {
		return err
	}
	x.dir, err = rundir.Start("unsupervised", flags, x.data.Datasets, x.recipe, x.engine, x.output)
	if err != nil {
		return err
	}
	defer x.dir.Close()

	var list []units.Unit[pretrain.Outcome]
	for _, r := range runs {
		list = append(list, units.Unit[pretrain.Outcome]{Name: name(r), Run: func(ctx context.Context, say units.Say) (pretrain.Outcome, error) {
			be, err := x.engine.Open()
			if err != nil {
				return pretrain.Outcome{}, err
			}
			defer be.Close()
			out, l, err := r.Do(ctx, be, x.dir, name(r), x.protocol, say)
			if err != nil {
				return out, err
			}
			defer l.Close()
			return out, r.Save(x.dir.Path, l, len(out.Epochs))
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
		for _, name := range x.loss.Methods {
			for s := range x.recipe.Seeds {
				runs = append(runs, &pretrain.Run{
					Dataset: ds, Regime: method.Unsupervised, Encoder: pretrain.GIN(ds),
					Method: name, Seed: x.recipe.FirstSeed + s,
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
