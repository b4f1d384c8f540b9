package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/eval/tsne"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
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
	percentile := method.Percentile.Of(x.Settings.Options)
	kappa := method.Kappa.Of(x.Settings.Options)
	hard := func(p float64) similarityGraph {
		return similarityGraph{
			fmt.Sprint("hard, p = ", p),
			specmatch.LaplacianMatch{Adjacency: specmatch.Hard, Percentile: p},
		}
	}
	list := []similarityGraph{hard(percentile)}
	if percentile != 50 {
		list = append(list, hard(50))
	}
	return append(list, similarityGraph{
		fmt.Sprintf("sigmoid, κ = %v, p = %v", kappa, percentile),
		specmatch.LaplacianMatch{Adjacency: specmatch.Sigmoid, Kappa: kappa, Percentile: percentile},
	})
}

// checkpoint is what is measured after some epochs: quantities by the kind of similarity
// graph, in the order of [experiment.graphs].
type checkpoint struct {
	Epoch  int
	Graphs []quantities
}

// quantities are those of package theory, and align and uniform, which are of the sample's
// projections z, in evaluation mode; t = 2.
type quantities map[string]run.Float

func (q quantities) get(name string) float64 {
	if v, ok := q[name]; ok {
		return float64(v)
	}
	return math.NaN()
}

func (x *experiment) do(
	ctx context.Context, be backend.Backend, r *training.Run, status run.Status,
) (out outcome, err error) {
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
	if r.Seed == x.Recipe.FirstSeed {
		status("layout")
		var graphs []*graph.Graph
		for _, i := range m.sample.Samples {
			graphs = append(graphs, r.Dataset.Graphs[i])
		}
		h, err := l.Embed(ctx, graphs)
		if err != nil {
			return out, err
		}
		out.Layout, err = tsne.Embed(ctx, h, len(graphs), l.Model.Encoder.Width(), tsne.Options{})
		if err != nil {
			return out, err
		}
	}
	out.Seconds = time.Since(start).Seconds()
	return out, nil
}

type meter struct {
	be            backend.Backend
	batch, sample *augment.Loader
}

// Random streams of their own: what is measured, and the views of it.
const (
	purposeSample random.Purpose = 1<<32 + 32
	seedOfViews                  = 1 << 63
)

func newMeter(be backend.Backend, r *training.Run) (*meter, error) {
	view, err := r.Setup(be).View()
	if err != nil {
		return nil, err
	}
	loader := func(samples []int) *augment.Loader {
		return &augment.Loader{
			Graphs:  r.Dataset.Graphs,
			Samples: samples,
			Batch:   r.Recipe.Batch,
			Order:   augment.Sequential,
			Collator: augment.Collator{
				Views: []augment.Augmentation{view, view},
				Seed:  seedOfViews | uint64(r.Seed),
			},
		}
	}
	order := random.Stream(uint64(r.Seed), purposeSample, 0, 0).Perm(len(r.Dataset.Graphs))
	return &meter{
		be:     be,
		batch:  loader(order[:min(len(order), r.Recipe.Batch)]),
		sample: loader(order[:min(len(order), sampleSize)]),
	}, nil
}

// checkpoint measures the model, and leaves it as it was.
func (x *experiment) checkpoint(
	ctx context.Context, m *meter, model *specmatch.Model,
) (c checkpoint, err error) {
	z, d, err := theory.Draws(ctx, m.be, model, m.sample, 1, nn.Eval)
	if err != nil {
		return c, err
	}
	diagnosis := specmatch.Diagnose(z[0], z[1], len(z[0])/d, d, specmatch.LaplacianMatch{
		Percentile: method.Percentile.Of(x.Settings.Options),
	})
	// As the loss sees it: with the batch's own statistics for batch normalisation.
	draws, d, err := theory.Draws(ctx, m.be, model, m.batch, x.check.draws/2, nn.Train)
	if err != nil {
		return c, err
	}
	tau := method.Tau.Of(x.Settings.Options)
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
			gaps = append(gaps, theory.AlignmentGap(views[k], views[k+1], tau))
		}
		bounds, err := theory.Measure(views, gaps, tau, temperature, x.check.times)
		if err != nil {
			return c, err
		}
		q := quantities{
			"align":   run.Float(diagnosis.Alignment),
			"uniform": run.Float(diagnosis.Uniformity),
		}
		for name, v := range bounds {
			q[name] = run.Float(v)
		}
		c.Graphs = append(c.Graphs, q)
	}
	return c, nil
}

// log writes the checkpoint's lines of metrics.csv, one per similarity graph.
func (x *experiment) log(r *training.Run, c checkpoint) error {
	for i, g := range x.graphs() {
		columns := []slog.Attr{
			slog.String("dataset", r.Dataset.Name), slog.String("method", r.Method),
			slog.Int("seed", r.Seed), slog.String("graph", g.name),
		}
		for _, name := range slices.Sorted(maps.Keys(c.Graphs[i])) {
			columns = append(columns, slog.Float64(name, c.Graphs[i].get(name)))
		}
		if err := x.Dir.Metrics(r.Name()+"/"+g.name, c.Epoch, columns...); err != nil {
			return err
		}
	}
	return nil
}
