// Command unsupervised reproduces the unsupervised regime of the paper (its
// Table 1): train an encoder without labels, freeze it, and see how well a
// support vector machine tells the classes apart from its embeddings.
//
//	go run ./experiments/unsupervised
//	go run ./experiments/unsupervised -dataset MUTAG,NCI1 -data DIR -seeds 5
//
// One row per method of package method, among them the untrained encoder; GraphCL
// as its code does it; the paper's L_C alone on two augmented views; and
// SpecMatch-CL, L_C + β·L_G. All rows of a seed share the folds and, where they have
// the same encoder and learn from the same views, the initial weights, the order of
// the batches and the augmentations: no row has the easier folds or the better start.
// It makes differences hardly more precise, see package specmatch/eval/compare.
// Controls, such as jitter, are rows if they are named.
// Methods whose papers train otherwise do so; -own-recipes=false, which -epochs and
// -lr imply, trains all alike.
package main

import (
	"context"
	"errors"
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

// experiment is the values of the flags.
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
		data:     cli.Data{NodeFeatures: dataset.FeaturesAuto},
		loss:     cli.Loss{Methods: method.Rows(method.Unsupervised), Choices: method.Names(method.Unsupervised), Beta: cli.Beta{Weight: 0.05}, Percentile: 80, Tau: 0.2, Kappa: 10},
		recipe:   cli.Recipe{Epochs: 20, Batch: 128, LR: 0.01, Seeds: 5},
		protocol: cli.Protocol{Protocols: []string{"graphcl", "linear"}, Choices: []string{"graphcl", "linear", "graphcl-c10"}},
		settings: pretrain.DefaultSettings(),
	}
	flags := cli.NewFlagSet("unsupervised", synopsis, "", "-dataset MUTAG,PROTEINS -data DIR -seeds 3", "-dataset NCI1 -data DIR -method infonce,specmatch -beta auto:0.2")
	flags.Add(&x.data, &x.loss, &x.recipe, &x.protocol, &x.engine, &x.output, &x.settings)
	x.settings.RegisterMethods(flags, method.Unsupervised, func() []string { return x.loss.Methods })
	flags.Grows("protocol")
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	sets, err := x.data.Open(ctx, stderr)
	if err != nil {
		return err
	}
	runs := x.runs(sets)
	if !flags.Collecting() {
		if err := errors.Join(pretrain.Fits(runs, x.engine), pretrain.Check(runs, x.protocol)); err != nil {
			return err
		}
	}
	x.dir, err = rundir.Start("unsupervised", flags, x.data.Datasets, x.recipe, x.engine, x.output)
	if err != nil {
		return err
	}
	defer x.dir.Close()

	plan := units.NewPlan(x.dir)
	trained, scores := pretrain.AddRuns(plan, runs, x.engine, x.dir, x.protocol)
	return plan.Run(ctx, stdout, stderr, func() error {
		return x.report(stdout, runs, *trained, *scores)
	})
}

// runs lists the runs: every method on every data set with every seed.
func (x *experiment) runs(sets []*dataset.Dataset) (runs []*pretrain.Run) {
	for _, ds := range sets {
		for _, name := range x.loss.Methods {
			runs = append(runs, pretrain.Seeds(ds, name, x.loss, x.recipe, x.settings)...)
		}
	}
	return runs
}
