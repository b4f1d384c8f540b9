// Command ablation changes one switch of SpecMatch-CL at a time: the percentile
// p (the paper's Table 4), the weight β (its Figure 4), and what the paper
// leaves open, which are the sharpness κ, how a similarity becomes an edge, the
// normalisation of the Laplacian, the embeddings that L_G sees, and whether L_C
// is a mean or a sum.
//
//	go run ./experiments/ablation
//	go run ./experiments/ablation -dataset NCI1 -data DIR -seeds 3
//
// Every row is the unsupervised experiment with the settings of the flags but
// for what the row names. Rows of a seed share the initial weights, the
// batches, the augmentations and the folds with the row β = 0, which is L_C
// alone, so that no row has the easier ones.
package main

import (
	"context"
	"io"

	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/train"
)

func main() { cli.Main(execute) }

const synopsis = `Trains SpecMatch-CL with one switch changed at a time, and compares each row with
the contrastive loss alone (β = 0).`

type experiment struct {
	paper.Experiment // every row starts from its Settings
	vary             vary
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	x := &experiment{
		// The smallest β of the paper's range. At the 0.05 of Table 1, L_G is too weak for its
		// switches to have a visible effect.
		Experiment: paper.Unsupervised(5, training.Settings{
			Options: method.Options{"beta": train.Beta{Weight: 0.5}},
		}, "graphcl", "linear"),
		vary: vary{
			factors: factors,
			betas: []train.Beta{
				{Weight: 0.05},
				{Weight: 0.1},
				{Weight: 0.5},
				{Weight: 1},
				{Weight: 1.5},
			},
			ps:     []float64{60, 80, 100},
			kappas: []float64{5, 10, 50},
		},
	}

	flags := cli.NewFlagSet("ablation", synopsis, "", "-dataset NCI1 -data DIR -seeds 3",
		"-dataset MUTAG -data DIR -vary p -p-values 50,60,70,80,90,100 -beta 0.05")
	flags.Add(&x.Data, &x.vary, &x.Recipe, &x.Protocol, &x.Engine, &x.Output)
	methods := []string{method.InfoNCE, method.SpecMatch}
	x.Settings.Register(flags, method.Unsupervised, methods, func() []string {
		return methods
	})
	flags.Check(func() error {
		if x.Recipe.Epochs == 0 {
			return cli.Usagef("-epochs 0 makes all rows equal")
		}
		return nil
	})
	sets, err := x.Open(ctx, flags, args, stdout, stderr)
	if err != nil {
		return err
	}
	runs := x.runs(sets)
	plan, err := x.Plan(flags, runs, true)
	if err != nil {
		return err
	}
	defer x.Dir.Close()
	trained, scores := x.Add(plan, runs)
	return plan.Run(ctx, stdout, stderr, func() error {
		return x.report(stdout, sets, runs, x.outcomes(*trained, *scores))
	})
}

// runs lists every distinct setting on every data set with every seed. Rows with the same setting, such
// as p = 80 if 80 is the base, share their runs. All seeds of a row are adjacent, so that an interrupted
// experiment has complete rows.
func (x *experiment) runs(sets []*dataset.Dataset) (runs []*training.Run) {
	listed := map[string]bool{}
	for _, ds := range sets {
		for _, row := range x.rows() {
			for _, r := range x.Seeds(ds, row.method, row.options) {
				r.Setting = row.key()
				if !listed[r.Name()] {
					listed[r.Name()] = true
					runs = append(runs, r)
				}
			}
		}
	}
	return runs
}
