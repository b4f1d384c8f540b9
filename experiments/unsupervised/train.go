package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/specmatch"
)

// purposeInit is the random stream of the initial weights.
const purposeInit augment.Purpose = 1 << 32

// loader returns the mini-batches of augmented views of a unit. All methods of
// a seed see the same graphs in the same batches; GraphCL by its code keeps one
// order for all epochs and takes the raw graph as its first view.
func (x *experiment) loader(u *unit) (*augment.Loader, error) {
	policy := x.settings.policy
	if policy == "auto" {
		policy, _ = augment.PolicyFor(u.ds.Name)
	}
	l := &augment.Loader{Graphs: u.ds.Graphs, Batch: x.recipe.Batch, Collator: augment.Collator{Seed: uint64(u.seed)}}
	impl, ratio := augment.ImplIntended, x.settings.ratio
	if x.asGraphCLCode(u) {
		impl, ratio = augment.ImplUnsupervised, 0 // the ratios of its code
		l.Order = augment.ShuffleOnce
	}
	view, err := augment.ParsePolicy(policy, impl, ratio)
	if err != nil {
		return nil, cli.Usagef("-policy: %w", err)
	}
	first := view
	switch {
	case x.asGraphCLCode(u):
		first = augment.Identity{SelfLoops: true}
	case u.method == cli.GraphCL:
		first = augment.Identity{}
	}
	l.Collator.Views = []augment.Augmentation{first, view}
	return l, nil
}

// epochStats is one line of metrics.csv: means over the epoch's batches, and
// the probe of its first batch.
type epochStats struct {
	Loss, LossC, LossG rundir.Float // LossG is the trained one
	Beta               rundir.Float
	LossHard           rundir.Float // L_G with the hard threshold
	Ratio, Cosine      rundir.Float // of the gradients β∇L_G and ∇L_C
	Spread, Density    rundir.Float
	Isolated           rundir.Float
	Align, Uniform     rundir.Float
}

// train is the training loop: the part of this program to read first.
func (x *experiment) train(ctx context.Context, be backend.Backend, u *unit) (*specmatch.Model, []epochStats, error) {
	model := specmatch.NewGINModel(be, u.ds.FeatureWidth, augment.Stream(uint64(u.seed), purposeInit, 0, 0))
	if u.method == cli.Untrained {
		return model, nil, nil
	}
	loader, err := x.loader(u)
	if err != nil {
		return nil, nil, err
	}
	trainer := specmatch.NewTrainer(be, model, x.objective(u.method), x.recipe.LR)

	var history []epochStats
	for epoch := range x.recipe.Epochs {
		var sum epochStats
		batches := 0
		for _, batch := range loader.Epoch(ctx, epoch) {
			stats, err := trainer.Step(batch, batches == 0)
			if err != nil {
				return nil, nil, fmt.Errorf("epoch %d, batch %d: %w", epoch+1, batches+1, err)
			}
			sum.add(stats)
			batches++
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		history = append(history, sum.mean(batches))
		if err := x.log(u, epoch+1, history[epoch]); err != nil {
			return nil, nil, err
		}
	}
	return model, history, nil
}

// add adds a step's losses, and takes its probe if it has one.
func (e *epochStats) add(s specmatch.Stats) {
	e.Loss += rundir.Float(s.Loss)
	e.LossC += rundir.Float(s.LossC)
	if p := s.Probe; p != nil {
		// L_G is not computed at every step of a method that does not train
		// it, so the first batch stands for the epoch.
		e.LossG, e.Beta = rundir.Float(s.LossG), rundir.Float(s.Beta)
		e.LossHard = rundir.Float(p.LossHard)
		e.Ratio, e.Cosine = rundir.Float(p.Ratio), rundir.Float(p.Cosine)
		e.Spread, e.Density, e.Isolated = rundir.Float(p.Spread), rundir.Float(p.Density), rundir.Float(p.Isolated)
		e.Align, e.Uniform = rundir.Float(p.Alignment), rundir.Float(p.Uniformity)
	}
}

func (e epochStats) mean(batches int) epochStats {
	e.Loss /= rundir.Float(batches)
	e.LossC /= rundir.Float(batches)
	return e
}

// log writes the epoch's line of metrics.csv.
func (x *experiment) log(u *unit, epoch int, e epochStats) error {
	col := func(name string, v rundir.Float) slog.Attr { return slog.Float64(name, float64(v)) }
	return x.dir.Metrics(u.name(), epoch,
		slog.String("dataset", u.ds.Name), slog.String("method", u.method), slog.Int("seed", u.seed),
		col("loss", e.Loss), col("loss_c", e.LossC), col("loss_g", e.LossG), col("loss_g_hard", e.LossHard),
		col("beta", e.Beta), col("gradient_ratio", e.Ratio), col("gradient_cosine", e.Cosine),
		col("similarity_std", e.Spread), col("edge_density", e.Density), col("isolated", e.Isolated),
		col("align", e.Align), col("uniform", e.Uniform))
}

// save writes the trained weights, one file per unit.
func (x *experiment) save(model *specmatch.Model, u *unit) error {
	dir := x.dir.Join("weights")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%s-%d.safetensors", u.ds.Name, u.method, u.seed)
	return nn.SaveFile(x.dir.Join("weights", name), model, map[string]string{"dataset": u.ds.Name, "method": u.method})
}
