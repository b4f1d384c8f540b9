package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/report/grid"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/specmatch/theory"
	"github.com/specmatch/specmatch/specmatch/train"
)

type group struct {
	ds       *dataset.Dataset
	method   string
	runs     []*training.Run
	outcomes []outcome
}

func (x *experiment) groups(runs []*training.Run, outcomes []outcome) [][]group {
	var groups []group
	for i := 0; i < len(runs); i += x.Recipe.Seeds { // which runs have innermost
		end := i + x.Recipe.Seeds
		groups = append(groups, group{runs[i].Dataset, runs[i].Method, runs[i:end], outcomes[i:end]})
	}
	return slices.Collect(slices.Chunk(groups, len(methods)))
}

// at returns a quantity of every seed at a checkpoint, for the i-th similarity graph.
func (g group) at(checkpoint, i int, name string) []float64 {
	var values []float64
	for _, o := range g.outcomes {
		values = append(values, o.Checkpoints[checkpoint].Graphs[i].get(name))
	}
	return values
}

// last returns the mean over seeds of a quantity at the last checkpoint, without those that
// do not exist (NaN).
func (g group) last(i int, name string) float64 {
	return stat.Mean(existing(g.at(g.checkpoints()-1, i, name)), nil)
}

func existing(values []float64) []float64 { return slices.DeleteFunc(values, math.IsNaN) }

// all returns a quantity of every seed at every checkpoint where it exists.
func (g group) all(i int, name string) (values []float64) {
	for k := range g.checkpoints() {
		values = append(values, existing(g.at(k, i, name))...)
	}
	return values
}

// largest returns the maximum over seeds and checkpoints, NaN if there is none.
func (g group) largest(i int, name string) float64 {
	values := g.all(i, name)
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.Max(values)
}

func (g group) total(i int, name string) float64 { return floats.Sum(g.all(i, name)) }

func (g group) checkpoints() int { return len(g.outcomes[0].Checkpoints) }

func (x *experiment) label(name string) string {
	if name == method.InfoNCE {
		return "β = 0"
	}
	return fmt.Sprint("β = ", method.Beta.Of(x.Settings.Options))
}

func (x *experiment) report(stdout io.Writer, runs []*training.Run, outcomes []outcome) error {
	sets := x.groups(runs, outcomes)
	var rows []run.Row
	var tables []*table.Table
	for _, groups := range sets {
		first := x.alignmentTable(groups[0].ds)
		second := x.uniformityTable(groups[0].ds)
		for _, g := range groups {
			x.addAlignment(first, g)
			x.addUniformity(second, g)
			rows = append(rows, x.rows(g)...)
		}
		tables = append(tables, first, second)
	}
	if err := x.Dir.Report(stdout, rows, tables...); err != nil {
		return err
	}
	if err := x.figures(sets); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "results, metrics and figures: %s\n", x.Dir.Path)
	return nil
}

func (x *experiment) lastEpoch() int {
	return x.Recipe.Epochs / x.check.every * x.check.every
}

func share(part, whole float64) table.Cell {
	return table.Text(fmt.Sprintf("%v of %v", part, whole))
}

func (x *experiment) alignmentTable(ds *dataset.Dataset) *table.Table {
	t := table.New("run and graph", table.Names(
		"t_d", "L_G", "c", "right side", "left side", "left/right, negatives fixed",
		"z* = z¹", "z* = midpoint", "z* = z¹ violates", "Duhamel", "L¹ = L²",
	)...)
	t.Caption = fmt.Sprintf("%s, Theorem 4.2 on a batch of %d graphs, %d seeds. L_G, c, right side t_d²·c·L_G/τ and "+
		"left side |L_C-L_C*| with the negatives fixed: means at epoch %d. Left/right and Duhamel, "+
		"‖P¹-P²‖²/(t_d²·L_G): the largest of all pairs of views at all checkpoints (1 is the limit). Last columns: "+
		"pairs in which z* = z¹ violates the theorem, and pairs with equal graphs, for which c does not exist.",
		ds.Name, min(x.Recipe.Batch, len(ds.Graphs)), x.Recipe.Seeds, x.lastEpoch())
	return t
}

func (x *experiment) addAlignment(t *table.Table, g group) {
	for i, graph := range x.graphs() {
		mean := func(name string, decimals int) table.Cell {
			return table.Number(g.last(i, name), decimals)
		}
		largest := func(name string) table.Cell {
			return table.Number(g.largest(i, name), 3)
		}
		pairs := g.total(i, "pairs")
		equal := g.total(i, "equal_pairs")
		for _, td := range x.check.times {
			t.Add(
				x.label(g.method)+", "+graph.name,
				table.Number(td, 1),
				mean("pair_loss_g", 2),
				mean(theory.AtTime("c", td), 1),
				mean(theory.AtTime("right", td), 0),
				mean("gap_fixed", 0),
				largest(theory.AtTime("ratio_fixed", td)),
				largest(theory.AtTime("ratio_view1", td)),
				largest(theory.AtTime("ratio_midpoint", td)),
				share(g.total(i, theory.AtTime("violated_view1", td)), pairs-equal),
				largest(theory.AtTime("duhamel", td)),
				share(equal, pairs),
			)
		}
	}
}

func (x *experiment) uniformityTable(ds *dataset.Dataset) *table.Table {
	t := table.New("run and graph", table.Names("connected draws", "E[L_G]", "E‖μ‖²", "λ̄₂",
		"L_unif", "direct bound", "right side", "right side, smallest non-zero λ̄", "says nothing",
		"Hoffman, second smallest", "Hoffman, smallest non-zero")...)
	t.Caption = fmt.Sprintf("%s, Theorem 4.3 over %d draws of the augmentations of a batch of %d graphs, %d seeds, "+
		"t = %d. Connected draws: at all checkpoints. E[L_G] to right side: means at epoch %d over the connected "+
		"draws, where there are two or more. Says nothing: of the checkpoints with two connected draws, those with "+
		"a right side of 0 or more, though L_unif ≤ 0 always. Hoffman: largest (λ₂-λ̄₂)²/‖L-L̄‖² (1 is the limit).",
		ds.Name,
		x.check.draws,
		min(x.Recipe.Batch, len(ds.Graphs)),
		x.Recipe.Seeds,
		temperature,
		x.lastEpoch(),
	)
	return t
}

func (x *experiment) addUniformity(t *table.Table, g group) {
	for i, graph := range x.graphs() {
		mean := func(name string) table.Cell { return table.Number(g.last(i, name), 3) }
		bounds := g.all(i, "right_4.3") // where two draws or more are connected
		vacuous := floats.Count(func(bound float64) bool { return bound >= 0 }, bounds)
		t.Add(
			x.label(g.method)+", "+graph.name, share(g.total(i, "connected"), g.total(i, "draws")),
			mean("expected_loss_g"), mean("mu2"), mean("lambda_bar"), mean("unif"), mean("direct"),
			mean("right_4.3"), mean("right_4.3_nonzero"),
			share(float64(vacuous), float64(len(bounds))), table.Number(g.largest(i, "hoffman"), 3),
			table.Number(g.largest(i, "hoffman_nonzero"), 2),
		)
	}
}

// rows are a group's lines of results.json: both sides of both theorems at the
// last checkpoint.
func (x *experiment) rows(g group) []run.Row {
	var rows []run.Row
	add := func(protocol, metric string, i int, name string) {
		r := grid.Common("theory", metric, x.Engine, x.Settings.Options)
		r.Dataset = g.ds.Name
		r.Method = g.method
		r.Protocol = protocol
		r.PerSeed = g.at(g.checkpoints()-1, i, name)
		r.Epochs = x.lastEpoch()
		r.GraphsPerSecond = math.NaN()
		if g.method != method.SpecMatch {
			r.Beta = train.Beta{}
		}
		r.Mean, r.Std = stat.MeanStdDev(r.PerSeed, nil)
		for _, o := range g.outcomes {
			r.Seconds += o.Seconds
		}
		rows = append(rows, r)
	}
	add("sample", "L_align", 0, "align")
	add("sample", "L_unif", 0, "uniform")
	for i, graph := range x.graphs() {
		add(graph.name, "4.2 left, negatives fixed", i, "gap_fixed")
		add(graph.name, "4.2 left, z* = z1", i, "gap_view1")
		for _, td := range x.check.times {
			add(graph.name, fmt.Sprintf("4.2 right, t_d = %v", td), i, theory.AtTime("right", td))
		}
		add(graph.name, "4.3 left", i, "unif")
		add(graph.name, "4.3 right", i, "right_4.3")
		add(graph.name, "4.3 right, smallest non-zero", i, "right_4.3_nonzero")
	}
	return rows
}
