package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/experiments/internal/pretrain"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/method"
)

// group is the seeds of one method on one data set.
type group struct {
	ds       *dataset.Dataset
	method   string
	runs     []*pretrain.Run
	outcomes []outcome
}

// groups returns those of every data set, in the order of the methods.
func (x *experiment) groups(runs []*pretrain.Run, outcomes []outcome) [][]group {
	var all []group
	for i := 0; i < len(runs); i += x.recipe.Seeds { // which runs have innermost
		end := i + x.recipe.Seeds
		all = append(all, group{runs[i].Dataset, runs[i].Method, runs[i:end], outcomes[i:end]})
	}
	return slices.Collect(slices.Chunk(all, len(methods)))
}

// at returns a quantity of every seed at a checkpoint.
func (g group) at(checkpoint int, quantity func(c checkpoint) rundir.Float) []float64 {
	var values []float64
	for _, o := range g.outcomes {
		values = append(values, float64(quantity(o.Checkpoints[checkpoint])))
	}
	return values
}

// ofGraph returns a quantity of the theorems for the i-th similarity graph.
func ofGraph(i int, quantity func(b bounds) rundir.Float) func(c checkpoint) rundir.Float {
	return func(c checkpoint) rundir.Float { return quantity(c.Bounds[i]) }
}

// last returns the mean over seeds of a quantity at the last checkpoint, without
// those that do not exist (NaN).
func (g group) last(quantity func(c checkpoint) rundir.Float) float64 {
	return stat.Mean(existing(g.at(g.checkpoints()-1, quantity)), nil)
}

func existing(values []float64) []float64 { return slices.DeleteFunc(values, math.IsNaN) }

// largest returns the maximum over seeds and checkpoints.
func (g group) largest(quantity func(c checkpoint) rundir.Float) float64 {
	var found []float64
	for k := range g.checkpoints() {
		found = append(found, existing(g.at(k, quantity))...)
	}
	if len(found) == 0 {
		return math.NaN()
	}
	return slices.Max(found)
}

// total returns the sum over seeds and checkpoints.
func (g group) total(count func(c checkpoint) int) (sum int) {
	for _, o := range g.outcomes {
		for _, c := range o.Checkpoints {
			sum += count(c)
		}
	}
	return sum
}

func (g group) checkpoints() int { return len(g.outcomes[0].Checkpoints) }

// label names a method by its weight.
func (x *experiment) label(name string) string {
	if name == method.InfoNCE {
		return "β = 0"
	}
	return fmt.Sprint("β = ", x.loss.Beta)
}

// report writes results.json, the tables and the figures.
func (x *experiment) report(stdout io.Writer, runs []*pretrain.Run, outcomes []outcome) error {
	sets := x.groups(runs, outcomes)
	var rows []rundir.Row
	var tables []*table.Table
	for _, groups := range sets {
		first, second := x.alignmentTable(groups[0].ds), x.uniformityTable(groups[0].ds)
		for _, g := range groups {
			x.addAlignment(first, g)
			x.addUniformity(second, g)
			rows = append(rows, x.rows(g)...)
		}
		tables = append(tables, first, second)
	}
	if err := x.dir.Report(stdout, rows, tables...); err != nil {
		return err
	}
	if err := x.figures(sets); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "results, metrics and figures: %s\n", x.dir.Path)
	return nil
}

func (x *experiment) alignmentTable(ds *dataset.Dataset) *table.Table {
	t := table.New("run and graph", table.Names("t_d", "L_G", "c", "right side", "left side",
		"left/right, negatives fixed", "z* = z¹", "z* = midpoint", "z* = z¹ violates", "Duhamel", "L¹ = L²")...)
	t.Caption = fmt.Sprintf("%s, Theorem 4.2 on a batch of %d graphs, %d seeds. L_G, c, right side t_d²·c·L_G/τ and left side |L_C-L_C*| with the negatives fixed: means at epoch %d. Left/right and Duhamel, ‖P¹-P²‖²/(t_d²·L_G): the largest of all pairs of views at all checkpoints (1 is the limit). Last columns: pairs in which z* = z¹ violates the theorem, and pairs with equal graphs, for which c does not exist.",
		ds.Name, min(x.recipe.Batch, len(ds.Graphs)), x.recipe.Seeds, x.lastEpoch())
	return t
}

func (x *experiment) lastEpoch() int { return x.recipe.Epochs / x.check.every * x.check.every }

func (x *experiment) addAlignment(t *table.Table, g group) {
	for i, graph := range x.graphs() {
		pairs := g.total(func(c checkpoint) int { return c.Bounds[i].Pairs })
		equal := g.total(func(c checkpoint) int { return c.Bounds[i].Equal })
		for k, td := range x.check.times {
			atTime := func(quantity func(d diffusion) rundir.Float) func(checkpoint) rundir.Float {
				return ofGraph(i, func(b bounds) rundir.Float { return quantity(b.Times[k]) })
			}
			violated := g.total(func(c checkpoint) int { return c.Bounds[i].Times[k].Violated })
			t.Add(x.label(g.method)+", "+graph.name,
				table.Number(td, 1),
				table.Number(g.last(ofGraph(i, func(b bounds) rundir.Float { return b.PairG })), 2),
				table.Number(g.last(atTime(func(d diffusion) rundir.Float { return d.C })), 1),
				table.Number(g.last(atTime(func(d diffusion) rundir.Float { return d.Right })), 0),
				table.Number(g.last(ofGraph(i, func(b bounds) rundir.Float { return rundir.Float(b.Gap.Fixed) })), 0),
				table.Number(g.largest(atTime(func(d diffusion) rundir.Float { return rundir.Float(d.Ratio.Fixed) })), 3),
				table.Number(g.largest(atTime(func(d diffusion) rundir.Float { return rundir.Float(d.Ratio.View1) })), 3),
				table.Number(g.largest(atTime(func(d diffusion) rundir.Float { return rundir.Float(d.Ratio.Midpoint) })), 3),
				table.Text(fmt.Sprintf("%d of %d", violated, pairs-equal)),
				table.Number(g.largest(atTime(func(d diffusion) rundir.Float { return d.Duhamel })), 3),
				table.Text(fmt.Sprintf("%d of %d", equal, pairs)))
		}
	}
}

func (x *experiment) uniformityTable(ds *dataset.Dataset) *table.Table {
	t := table.New("run and graph", table.Names("connected draws", "E[L_G]", "E‖μ‖²", "λ̄₂",
		"L_unif", "direct bound", "right side", "right side, smallest non-zero λ̄", "says nothing", "Hoffman, second smallest", "Hoffman, smallest non-zero")...)
	t.Caption = fmt.Sprintf("%s, Theorem 4.3 over %d draws of the augmentations of a batch of %d graphs, %d seeds, t = %d. Connected draws: at all checkpoints. E[L_G] to right side: means at epoch %d over the connected draws, where there are two or more. Says nothing: of the checkpoints with two connected draws, those with a right side of 0 or more, though L_unif ≤ 0 always. Hoffman: largest (λ₂-λ̄₂)²/‖L-L̄‖² (1 is the limit).",
		ds.Name, x.check.draws, min(x.recipe.Batch, len(ds.Graphs)), x.recipe.Seeds, temperature, x.lastEpoch())
	return t
}

func (x *experiment) addUniformity(t *table.Table, g group) {
	for i, graph := range x.graphs() {
		count := func(holds func(b bounds) bool) int {
			return g.total(func(c checkpoint) int {
				if holds(c.Bounds[i]) {
					return 1
				}
				return 0
			})
		}
		applies := count(func(b bounds) bool { return b.Connected >= 2 })
		vacuous := count(func(b bounds) bool { return b.Connected >= 2 && b.Right >= 0 })
		t.Add(x.label(g.method)+", "+graph.name,
			table.Text(fmt.Sprintf("%d of %d", g.total(func(c checkpoint) int { return c.Bounds[i].Connected }), g.total(func(c checkpoint) int { return c.Bounds[i].Draws }))),
			table.Number(g.last(ofGraph(i, func(b bounds) rundir.Float { return b.LossG })), 3),
			table.Number(g.last(ofGraph(i, func(b bounds) rundir.Float { return b.Mu2 })), 3),
			table.Number(g.last(ofGraph(i, func(b bounds) rundir.Float { return b.LambdaBar })), 3),
			table.Number(g.last(ofGraph(i, func(b bounds) rundir.Float { return b.Unif })), 3),
			table.Number(g.last(ofGraph(i, func(b bounds) rundir.Float { return b.Direct })), 3),
			table.Number(g.last(ofGraph(i, func(b bounds) rundir.Float { return b.Right })), 3),
			table.Number(g.last(ofGraph(i, func(b bounds) rundir.Float { return b.RightNonZero })), 3),
			table.Text(fmt.Sprintf("%d of %d", vacuous, applies)),
			table.Number(g.largest(ofGraph(i, func(b bounds) rundir.Float { return b.Hoffman })), 3),
			table.Number(g.largest(ofGraph(i, func(b bounds) rundir.Float { return b.HoffmanNonZero })), 2))
	}
}

// rows are a group's lines of results.json: both sides of both theorems at the
// last checkpoint.
func (x *experiment) rows(g group) []rundir.Row {
	var rows []rundir.Row
	add := func(protocol, metric string, quantity func(c checkpoint) rundir.Float) {
		r := rundir.Row{
			Experiment: "theory", Dataset: g.ds.Name, Method: g.method, Protocol: protocol, Metric: metric,
			PerSeed: g.at(g.checkpoints()-1, quantity), P: x.loss.P, Epochs: x.lastEpoch(),
			Backend: x.engine.Name(), Precision: x.engine.Precision.String(),
		}
		if g.method == method.SpecMatch {
			r.Beta = x.loss.Beta
		}
		r.Mean, r.Std = stat.MeanStdDev(r.PerSeed, nil)
		for _, o := range g.outcomes {
			r.Seconds += o.Seconds
		}
		r.GraphsPerSecond = math.NaN()
		rows = append(rows, r)
	}
	add("sample", "L_align", func(c checkpoint) rundir.Float { return c.Align })
	add("sample", "L_unif", func(c checkpoint) rundir.Float { return c.Uniform })
	for i, graph := range x.graphs() {
		add(graph.name, "4.2 left, negatives fixed", ofGraph(i, func(b bounds) rundir.Float { return rundir.Float(b.Gap.Fixed) }))
		add(graph.name, "4.2 left, z* = z1", ofGraph(i, func(b bounds) rundir.Float { return rundir.Float(b.Gap.View1) }))
		for k, td := range x.check.times {
			add(graph.name, fmt.Sprintf("4.2 right, t_d = %v", td), ofGraph(i, func(b bounds) rundir.Float { return b.Times[k].Right }))
		}
		add(graph.name, "4.3 left", ofGraph(i, func(b bounds) rundir.Float { return b.Unif }))
		add(graph.name, "4.3 right", ofGraph(i, func(b bounds) rundir.Float { return b.Right }))
		add(graph.name, "4.3 right, smallest non-zero", ofGraph(i, func(b bounds) rundir.Float { return b.RightNonZero }))
	}
	return rows
}
