// Command theory checks the paper's Theorems 4.2 and 4.3 on real batches during training, and draws its
// Figures 2 and 3.
//
//	go run ./experiments/theory
//	go run ./experiments/theory -dataset NCI1 -data DIR
//
// It trains the contrastive loss alone (β = 0) and SpecMatch-CL. Every few epochs it embeds one batch, the
// same at every checkpoint, with many draws of the augmentations. It computes both sides of both theorems
// in every reading (package specmatch/theory), for the paper's hard threshold and the soft threshold of
// training. It also tracks alignment and uniformity of a sample of the data set, and lays the last
// embeddings out in the plane.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/specmatch/specmatch/backend"
	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

func main() { cli.Main(execute) }

const synopsis = `Computes both sides of Theorems 4.2 and 4.3 on real batches during training, with
and without the Laplacian loss.`

type experiment struct {
	paper.Experiment // its Settings are those of SpecMatch-CL; the other method is the same without L_G
	check            check
}

type check struct {
	every int       // epochs between checkpoints
	draws int       // of the augmentations; an even number, since Theorem 4.2 takes them in pairs
	times []float64 // diffusion times t_d
}

func (c *check) Register(f *cli.FlagSet) {
	cli.Var(f, &c.every, "every", setting.Int(1), "number of `epochs` between two checkpoints")
	cli.Var(f, &c.draws, "draws", setting.Int(2),
		"number of `draws` of the augmentations per checkpoint, even, since Theorem 4.2 uses pairs")
	cli.Var(f, &c.times, "diffusion", setting.List(setting.Float(1e-6, 1e6)),
		"diffusion `times` t_d of the heat kernels")
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	x := &experiment{
		Experiment: paper.Unsupervised(3, training.Settings{
			Options: method.Options{"beta": train.Beta{Weight: 0.5}},
		}),
		check: check{every: 2, draws: 16, times: []float64{0.1, 1, 5}},
	}
	flags := cli.NewFlagSet("theory", synopsis, "", "-dataset NCI1 -data DIR",
		"-dataset MUTAG -data DIR -draws 64 -diffusion 0.1,10")
	flags.Add(&x.Data, &x.check, &x.Recipe, &x.Engine, &x.Output)
	x.Settings.Register(flags, method.Unsupervised, methods, func() []string {
		return methods
	})
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	switch {
	case x.check.draws%2 != 0:
		return cli.Usagef("-draws %d: want an even number: Theorem 4.2 uses pairs of draws",
			x.check.draws)
	case x.Recipe.Epochs < x.check.every:
		return cli.Usagef("-epochs %d ends before the first checkpoint at -every %d",
			x.Recipe.Epochs, x.check.every)
	case method.Beta.Of(x.Settings.Options) == (train.Beta{}):
		return cli.Usagef("-beta 0 is the baseline of the comparison; want another weight")
	}
	sets, err := x.Data.Read(ctx, stderr)
	if err != nil {
		return err
	}
	if err := x.checkSizes(sets); err != nil {
		return err
	}
	runs := x.Runs(sets, methods)
	plan, err := x.Plan(flags, runs, false)
	if err != nil {
		return err
	}
	defer x.Dir.Close()
	var list []run.Unit[outcome]
	for _, r := range runs {
		compute := func(ctx context.Context, be backend.Backend, status run.Status) (outcome, error) {
			return x.do(ctx, be, r, status)
		}
		list = append(list, run.Unit[outcome]{Name: r.Name(), Engine: &x.Engine, Run: compute})
	}
	outcomes := run.Add(plan, list)
	return plan.Run(ctx, stdout, stderr, func() error {
		return x.report(stdout, runs, *outcomes)
	})
}

// checkSizes returns an error if a set has too few graphs, or the machine too little memory.
func (x *experiment) checkSizes(sets []*dataset.Dataset) error {
	for _, ds := range sets {
		if n := len(ds.Graphs); n < minGraphs {
			return fmt.Errorf("%s: %d graphs are too few; want at least %d", ds.Name, n, minGraphs)
		}
		// A view has its similarities, adjacency, Laplacian and eigenvectors.
		n := float64(min(x.Recipe.Batch, len(ds.Graphs)))
		if err := train.MemoryFits("comparing views", 4*8*n*n*float64(x.check.draws)); err != nil {
			return cli.Usagef("-dataset %s -batch %d -draws %d: %w",
				ds.Name, x.Recipe.Batch, x.check.draws, err)
		}
	}
	return nil
}

// minGraphs is the smallest number of points that package tsne lays out; a similarity graph needs two.
const minGraphs = 4

var methods = []string{method.InfoNCE, method.SpecMatch}

type outcome struct {
	Seconds     float64
	Checkpoints []checkpoint
	Layout      []float64 // of the sample's embeddings in the plane [n×2]; of the first seed only
}

func (o *outcome) Check() error {
	if len(o.Checkpoints) == 0 {
		return errors.New("no checkpoints")
	}
	for _, c := range o.Checkpoints {
		if len(c.Graphs) == 0 {
			return fmt.Errorf("the checkpoint of epoch %d has no bounds", c.Epoch)
		}
	}
	return nil
}
