package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/pretrain"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/eval/tsne"
	"github.com/specmatch/specmatch/specmatch/theory"
	"github.com/specmatch/specmatch/specmatch/train"
)

// temperature is the t of L_unif, as in the paper's section 4.
const temperature = 2

// sampleSize is how many graphs alignment, uniformity and layout look at, at
// most.
const sampleSize = 1000

// similarityGraph is a way to make the graph that the theorems are about.
type similarityGraph struct {
	name  string
	match specmatch.LaplacianMatch
}

// graphs lists them: the paper's hard threshold, the same at the median, where
// graphs are denser, and the soft threshold that trains.
func (x *experiment) graphs() []similarityGraph {
	hard := func(p float64) similarityGraph {
		return similarityGraph{fmt.Sprint("hard, p = ", p), specmatch.LaplacianMatch{Adjacency: specmatch.Hard, Percentile: p}}
	}
	list := []similarityGraph{hard(x.loss.P)}
	if x.loss.P != 50 {
		list = append(list, hard(50))
	}
	return append(list, similarityGraph{
		fmt.Sprintf("sigmoid, κ = %v, p = %v", x.loss.Kappa, x.loss.P),
		specmatch.LaplacianMatch{Adjacency: specmatch.Sigmoid, Kappa: x.loss.Kappa, Percentile: x.loss.P},
	})
}

// checkpoint is what is measured after some epochs.
type checkpoint struct {
	Epoch          int
	Align, Uniform rundir.Float // of the sample's projections z, in evaluation mode; t = 2
	Bounds         []bounds     // one per similarity graph
}

// bounds are both theorems for one batch and one kind of similarity graph.
type bounds struct {
	// Theorem 4.2, for pairs of draws.
	Pairs int
	Equal int          // pairs with L¹ = L², where Assumption 4.1 fails
	PairG rundir.Float // L_G, the mean over pairs
	Gap   theory.Gap   // |L_C-L_C*|, means over pairs
	Times []diffusion  // one per diffusion time

	// Theorem 4.3: how many draws are connected, and if they are two or more, what
	// [theory.UniformityBound] has over those.
	Draws, Connected            int
	LossG, Mu2, Unif            rundir.Float
	LambdaBar, LambdaBarNonZero rundir.Float
	Direct, Right, RightNonZero rundir.Float
	Hoffman, HoffmanNonZero     rundir.Float
}

// diffusion is Theorem 4.2 at one diffusion time, over the pairs with L¹ ≠ L².
type diffusion struct {
	C, Right rundir.Float // means of the least constant and of the right side
	Duhamel  rundir.Float // largest ‖P¹-P²‖²/(t_d²·L_G)
	Ratio    theory.Gap   // largest left side divided by the right one
	Violated int          // pairs in which z* = z¹ violates the theorem
}

// do trains with checkpoints.
func (x *experiment) do(ctx context.Context, be backend.Backend, r *pretrain.Run, status units.Status) (out outcome, err error) {
	start := time.Now()
	m, err := newMeter(be, r)
	if err != nil {
		return out, err
	}
	l, err := r.Learner(be)
	if err != nil {
		return out, err
	}
	defer l.Close()
	_, err = train.Run(ctx, l, train.Options{Epochs: r.Recipe.Epochs}, func(p train.Progress) error {
		if !p.Ended || p.Epoch%x.check.every != 0 {
			return nil
		}
		status("checkpoint after epoch %d", p.Epoch)
		c, err := x.checkpoint(ctx, m, l.Model)
		if err != nil {
			return fmt.Errorf("after epoch %d: %w", p.Epoch, err)
		}
		c.Epoch = p.Epoch
		out.Checkpoints = append(out.Checkpoints, c)
		return x.log(r, c)
	})
	if err != nil {
		return out, err
	}
	if r.Seed == x.recipe.FirstSeed {
		status("layout")
		var graphs []*graph.Graph
		for _, i := range m.sample.Samples {
			graphs = append(graphs, r.Dataset.Graphs[i])
		}
		h, err := l.Embed(ctx, graphs)
		if err != nil {
			return out, err
		}
		if out.Layout, err = tsne.Embed(ctx, h, len(graphs), l.Model.Encoder.Width(), tsne.Options{}); err != nil {
			return out, err
		}
	}
	out.Seconds = time.Since(start).Seconds()
	return out, nil
}

// meter embeds the graphs that a run is measured on.
type meter struct {
	be            backend.Backend
	tape          *autodiff.Tape
	batch, sample *augment.Loader
}

// Random streams of their own: what is measured, and the views of it.
const (
	purposeSample random.Purpose = 1<<32 + 32
	seedOfViews                  = 1 << 63
)

func newMeter(be backend.Backend, r *pretrain.Run) (*meter, error) {
	view, err := augment.ParsePolicy(r.Policy(), augment.ImplIntended, r.Settings.Ratio)
	if err != nil {
		return nil, err
	}
	loader := func(samples []int) *augment.Loader {
		return &augment.Loader{
			Graphs: r.Dataset.Graphs, Samples: samples, Batch: r.Recipe.Batch, Order: augment.Sequential,
			Collator: augment.Collator{Views: []augment.Augmentation{view, view}, Seed: seedOfViews | uint64(r.Seed)},
		}
	}
	order := random.Stream(uint64(r.Seed), purposeSample, 0, 0).Perm(len(r.Dataset.Graphs))
	return &meter{
		be: be, tape: autodiff.NewInference(be),
		batch:  loader(order[:min(len(order), r.Recipe.Batch)]),
		sample: loader(order[:min(len(order), sampleSize)]),
	}, nil
}

// views returns z of two views [n×d] of what the loader visits; another draw of
// the augmentations for every number.
func (m *meter) views(ctx context.Context, model *specmatch.Model, l *augment.Loader, draw int, mode nn.Mode) (z1, z2 []float64, d int, err error) {
	for _, batch := range l.Epoch(ctx, draw) {
		_, z := model.Forward(gnn.NewBatch(m.tape, batch), mode)
		d = z.Cols()
		data, n := z.Data(), z.Rows()/2*d
		z1, z2 = append(z1, data[:n]...), append(z2, data[n:]...)
		m.tape.Reset()
	}
	return z1, z2, d, ctx.Err()
}

// checkpoint measures the model, and leaves it as it was.
func (x *experiment) checkpoint(ctx context.Context, m *meter, model *specmatch.Model) (c checkpoint, err error) {
	z1, z2, d, err := m.views(ctx, model, m.sample, 0, nn.Eval)
	if err != nil {
		return c, err
	}
	diagnosis := specmatch.Diagnose(z1, z2, len(z1)/d, d, specmatch.LaplacianMatch{Percentile: x.loss.P})
	c.Align, c.Uniform = rundir.Float(diagnosis.Alignment), rundir.Float(diagnosis.Uniformity)

	// The batch is embedded as the loss sees it, with its own statistics for
	// batch normalisation, which must not leave a trace in the running ones.
	defer preserve(m.be, model)()
	var draws [][]float64
	for k := range x.check.draws / 2 {
		if z1, z2, d, err = m.views(ctx, model, m.batch, k, nn.Train); err != nil {
			return c, err
		}
		draws = append(draws, z1, z2)
	}
	var gaps []theory.Gap
	for i, g := range x.graphs() {
		var views []*theory.View
		for _, z := range draws {
			if err := ctx.Err(); err != nil {
				return c, err
			}
			v, err := theory.NewView(z, len(z)/d, d, g.match)
			if err != nil {
				return c, err
			}
			views = append(views, v)
		}
		for k := 0; i == 0 && k < len(views); k += 2 { // the same for all graphs
			gaps = append(gaps, theory.AlignmentGap(views[k], views[k+1], x.loss.Tau))
		}
		b, err := x.bounds(views, gaps)
		if err != nil {
			return c, err
		}
		c.Bounds = append(c.Bounds, b)
	}
	return c, nil
}

// preserve returns a function that restores the running statistics.
func preserve(be backend.Backend, model *specmatch.Model) (restore func()) {
	var kept [][]float64
	for _, b := range model.Buffers() {
		v := make([]float64, b.Value.Len())
		be.Download(v, b.Value)
		kept = append(kept, v)
	}
	return func() {
		for i, b := range model.Buffers() {
			be.Upload(b.Value, kept[i])
		}
	}
}

// bounds computes both theorems for draws of one batch; gaps are the left sides
// of Theorem 4.2 for the pairs of draws.
func (x *experiment) bounds(views []*theory.View, gaps []theory.Gap) (b bounds, err error) {
	b.Pairs, b.Times = len(gaps), make([]diffusion, len(x.check.times))
	n := float64(b.Pairs)
	for k, gap := range gaps {
		v1, v2 := views[2*k], views[2*k+1]
		lossG := theory.LossG(v1, v2)
		b.PairG += rundir.Float(lossG / n)
		b.Gap.Fixed += gap.Fixed / n
		b.Gap.View1 += gap.View1 / n
		b.Gap.Midpoint += gap.Midpoint / n
		if lossG == 0 {
			b.Equal++
			continue
		}
		for i, td := range x.check.times {
			a, t := theory.Alignment(v1, v2, x.loss.Tau, td), &b.Times[i]
			t.C += rundir.Float(a.C)
			t.Right += rundir.Float(a.Right)
			t.Duhamel = max(t.Duhamel, rundir.Float(a.Heat/(td*td*lossG)))
			t.Ratio.Fixed = max(t.Ratio.Fixed, gap.Fixed/a.Right)
			t.Ratio.View1 = max(t.Ratio.View1, gap.View1/a.Right)
			t.Ratio.Midpoint = max(t.Ratio.Midpoint, gap.Midpoint/a.Right)
			if gap.View1 > a.Right {
				t.Violated++
			}
		}
	}
	for i := range b.Times {
		unequal := rundir.Float(b.Pairs - b.Equal) // none: 0/0, NaN
		b.Times[i].C /= unequal
		b.Times[i].Right /= unequal
	}

	u, err := theory.Uniformity(views, temperature)
	if err != nil {
		return b, err
	}
	b.Draws, b.Connected = len(views), u.Connected()
	if b.Connected < 2 { // E[L_G] of a single draw is 0, which says nothing about augmentations
		nan := rundir.Float(math.NaN())
		b.LossG, b.Mu2, b.Unif, b.LambdaBar, b.LambdaBarNonZero = nan, nan, nan, nan, nan
		b.Direct, b.Right, b.RightNonZero, b.Hoffman, b.HoffmanNonZero = nan, nan, nan, nan, nan
		return b, nil
	}
	b.LossG, b.Mu2, b.Unif = rundir.Float(u.LossG), rundir.Float(u.Mu2), rundir.Float(u.Unif)
	b.LambdaBar, b.LambdaBarNonZero = rundir.Float(u.LambdaBar), rundir.Float(u.LambdaBarNonZero)
	b.Direct, b.Right, b.RightNonZero = rundir.Float(u.Direct), rundir.Float(u.Right), rundir.Float(u.RightNonZero)
	b.Hoffman, b.HoffmanNonZero = rundir.Float(u.Hoffman), rundir.Float(u.HoffmanNonZero)
	return b, nil
}

// log writes the checkpoint's lines of metrics.csv, one per similarity graph.
func (x *experiment) log(r *pretrain.Run, c checkpoint) error {
	for i, g := range x.graphs() {
		b := c.Bounds[i]
		columns := []slog.Attr{
			slog.String("dataset", r.Dataset.Name), slog.String("method", r.Method), slog.Int("seed", r.Seed), slog.String("graph", g.name),
		}
		add := func(name string, v float64) { columns = append(columns, slog.Float64(name, v)) }
		add("align", float64(c.Align))
		add("uniform", float64(c.Uniform))
		add("pairs", float64(b.Pairs))
		add("equal_pairs", float64(b.Equal))
		add("pair_loss_g", float64(b.PairG))
		add("gap_fixed", b.Gap.Fixed)
		add("gap_view1", b.Gap.View1)
		add("gap_midpoint", b.Gap.Midpoint)
		for k, td := range x.check.times {
			t := b.Times[k]
			atTime := func(name string) string { return fmt.Sprintf("%s(t_d=%v)", name, td) }
			add(atTime("c"), float64(t.C))
			add(atTime("right"), float64(t.Right))
			add(atTime("duhamel"), float64(t.Duhamel))
			add(atTime("ratio_fixed"), t.Ratio.Fixed)
			add(atTime("ratio_view1"), t.Ratio.View1)
			add(atTime("ratio_midpoint"), t.Ratio.Midpoint)
			add(atTime("violated_view1"), float64(t.Violated))
		}
		add("draws", float64(b.Draws))
		add("connected", float64(b.Connected))
		add("expected_loss_g", float64(b.LossG))
		add("mu2", float64(b.Mu2))
		add("lambda_bar", float64(b.LambdaBar))
		add("lambda_bar_nonzero", float64(b.LambdaBarNonZero))
		add("unif", float64(b.Unif))
		add("direct", float64(b.Direct))
		add("right_4.3", float64(b.Right))
		add("right_4.3_nonzero", float64(b.RightNonZero))
		add("hoffman", float64(b.Hoffman))
		add("hoffman_nonzero", float64(b.HoffmanNonZero))
		if err := x.dir.Metrics(r.Name()+"/"+g.name, c.Epoch, columns...); err != nil {
			return err
		}
	}
	return nil
}
