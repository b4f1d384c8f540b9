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
	"io"

	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run/training"
)

func main() { cli.Main(execute) }

const synopsis = `Trains graph encoders without labels and evaluates their embeddings with a
support vector machine: the unsupervised regime of SpecMatch-CL.`

type experiment struct{ paper.Experiment }

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	settings := training.Settings{OwnRecipes: true}
	x := &experiment{paper.Unsupervised(5, settings, "graphcl", "linear", "graphcl-c10")}
	x.Protocol.Protocols = x.Protocol.Choices[:2]
	x.Methods = paper.Methods{
		Names:   method.Rows(method.Unsupervised),
		Choices: method.Names(method.Unsupervised),
	}

	flags := cli.NewFlagSet("unsupervised", synopsis, "", "-dataset MUTAG,PROTEINS -data DIR -seeds 3",
		"-dataset NCI1 -data DIR -method infonce,specmatch -beta auto:0.2")
	x.Register(flags, method.Unsupervised)
	x.RegisterProtocol(flags)
	sets, err := x.Open(ctx, flags, args, stdout, stderr)
	if err != nil {
		return err
	}
	runs := x.Runs(sets, x.Methods.Names)
	plan, err := x.Plan(flags, runs, true)
	if err != nil {
		return err
	}
	defer x.Dir.Close()
	trained, scores := x.Add(plan, runs)
	return plan.Run(ctx, stdout, stderr, func() error {
		return x.report(stdout, runs, *trained, *scores)
	})
}
