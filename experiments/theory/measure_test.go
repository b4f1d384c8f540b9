package main

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/specmatch/theory"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

func newExperiment() *experiment {
	return &experiment{
		Experiment: paper.Experiment{
			Recipe: cli.Recipe{Epochs: 2, Batch: 12, LR: 0.01, Seeds: 2}, Settings: training.Settings{Options: method.Options{"beta": train.Beta{Weight: 0.5}}},
		},
		check: check{every: 1, draws: 4, times: []float64{0.1, 2}},
	}
}

// near compares numbers to nine digits; what does not exist is equal.
var near = cmp.Options{
	cmpopts.EquateApprox(1e-9, 0), cmpopts.EquateNaNs(),
	cmp.Transformer("float64", func(f run.Float) float64 { return float64(f) }),
}

// TestCheckpoint: the theorems see every draw of the batch, in pairs, as the loss
// does, and each kind of graph; alignment is that of embeddings in evaluation
// mode.
func TestCheckpoint(t *testing.T) {
	ds, err := dataset.Motifs(dataset.MotifConfig{Graphs: 24})
	if err != nil {
		t.Fatal(err)
	}
	x := newExperiment()
	r := x.Runs([]*dataset.Dataset{ds}, methods)[2]
	be := cpu.New(tensor.Float64)
	model := trained(t, be, r, func(*specmatch.Model) error { return nil })
	m, err := newMeter(be, r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.checkpoint(t.Context(), m, model)
	if err != nil {
		t.Fatal(err)
	}

	z, d, err := theory.Draws(t.Context(), be, model, m.sample, 1, nn.Eval)
	if err != nil {
		t.Fatal(err)
	}
	diagnosis := specmatch.Diagnose(z[0], z[1], len(z[0])/d, d, specmatch.LaplacianMatch{Percentile: 80})
	if len(got.Graphs) != 3 {
		t.Fatalf("%d kinds of graphs", len(got.Graphs))
	}
	for i, g := range x.graphs() {
		var gap theory.Gap
		lossG := 0.0
		z, d, err := theory.Draws(t.Context(), be, model, m.batch, 2, nn.Train)
		if err != nil {
			t.Fatal(err)
		}
		for k := range 2 {
			v1, err1 := theory.NewView(z[2*k], 12, d, g.match)
			v2, err2 := theory.NewView(z[2*k+1], 12, d, g.match)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			a := theory.AlignmentGap(v1, v2, 0.2)
			gap.Fixed, gap.View1, gap.Midpoint = gap.Fixed+a.Fixed/2, gap.View1+a.View1/2, gap.Midpoint+a.Midpoint/2
			lossG += theory.LossG(v1, v2) / 2
		}
		want := quantities{
			"align": run.Float(diagnosis.Alignment), "uniform": run.Float(diagnosis.Uniformity),
			"gap_fixed": run.Float(gap.Fixed), "gap_view1": run.Float(gap.View1), "gap_midpoint": run.Float(gap.Midpoint),
			"pair_loss_g": run.Float(lossG), "pairs": 2, "draws": 4,
		}
		for name, v := range want {
			if d := cmp.Diff(v, got.Graphs[i][name], near); d != "" {
				t.Errorf("%s, %s: %s", g.name, name, d)
			}
		}
	}
}

// outcomes are made-up measurements of two seeds at two checkpoints, all numbers
// different.
func outcomes(x *experiment) (all []outcome) {
	next := 0.0
	number := func() float64 { next++; return next }
	for range 2 {
		o := outcome{Seconds: number()}
		for epoch := range 2 {
			c := checkpoint{Epoch: epoch + 1}
			for range x.graphs() {
				q := quantities{"pairs": 7, "equal_pairs": 2, "draws": 14, "connected": 2}
				fill := func(name string) { q[name] = run.Float(number()) }
				for _, name := range []string{
					"align", "uniform", "pair_loss_g", "gap_fixed", "gap_view1", "gap_midpoint", "expected_loss_g", "mu2", "unif",
					"lambda_bar", "lambda_bar_nonzero", "direct", "right_4.3", "right_4.3_nonzero", "hoffman", "hoffman_nonzero",
				} {
					fill(name)
				}
				for _, td := range x.check.times {
					q[theory.AtTime("violated_view1", td)] = 3
					for _, name := range []string{"c", "right", "duhamel", "ratio_fixed", "ratio_view1", "ratio_midpoint"} {
						fill(theory.AtTime(name, td))
					}
				}
				c.Graphs = append(c.Graphs, q)
			}
			o.Checkpoints = append(o.Checkpoints, c)
		}
		all = append(all, o)
	}
	return all
}

// TestReport: every column and every row of results.json is what its name says.
func TestReport(t *testing.T) {
	x := newExperiment()
	ds := dataset.Default()
	o := outcomes(x)
	g := group{ds: ds, method: method.SpecMatch, outcomes: o}
	const graph = 1 // of the three
	// quantity returns one of both seeds at the last checkpoint, mean their mean, and
	// top the largest of all.
	quantity := func(name string) []float64 {
		return []float64{o[0].Checkpoints[1].Graphs[graph].get(name), o[1].Checkpoints[1].Graphs[graph].get(name)}
	}
	mean := func(name string, decimals int) table.Cell {
		v := quantity(name)
		return table.Number((v[0]+v[1])/2, decimals)
	}
	top := func(name string, decimals int) table.Cell { return table.Number(quantity(name)[1], decimals) }

	o[1].Checkpoints[0].Graphs[graph]["right_4.3"] = -5                    // a bound that says something
	o[0].Checkpoints[0].Graphs[graph]["connected"] = 1                     // no bound
	o[0].Checkpoints[0].Graphs[graph]["right_4.3"] = run.Float(math.NaN()) // so that there is none
	o[0].Checkpoints[1].Graphs[graph]["violated_view1(t_d=0.1)"] = 1
	alignment, uniformity := x.alignmentTable(ds), x.uniformityTable(ds)
	x.addAlignment(alignment, g)
	x.addUniformity(uniformity, g)
	first := x.alignmentTable(ds)
	first.Add("β = 0.5, hard, p = 50",
		table.Number(0.1, 1), mean("pair_loss_g", 2), mean("c(t_d=0.1)", 1), mean("right(t_d=0.1)", 0), mean("gap_fixed", 0),
		top("ratio_fixed(t_d=0.1)", 3), top("ratio_view1(t_d=0.1)", 3), top("ratio_midpoint(t_d=0.1)", 3),
		table.Text("10 of 20"), // 3·4-2 of 4·(7-2)
		top("duhamel(t_d=0.1)", 3),
		table.Text("8 of 28"))
	if d := cmp.Diff(runtest.Rows(t, first)[0], runtest.Rows(t, alignment)[graph*len(x.check.times)]); d != "" {
		t.Errorf("Theorem 4.2: %s", d)
	}
	second := x.uniformityTable(ds)
	second.Add("β = 0.5, hard, p = 50",
		table.Text("7 of 56"), mean("expected_loss_g", 3), mean("mu2", 3), mean("lambda_bar", 3), mean("unif", 3),
		mean("direct", 3), mean("right_4.3", 3), mean("right_4.3_nonzero", 3), table.Text("2 of 3"),
		top("hoffman", 3), top("hoffman_nonzero", 2))
	if d := cmp.Diff(runtest.Rows(t, second)[0], runtest.Rows(t, uniformity)[graph]); d != "" {
		t.Errorf("Theorem 4.3: %s", d)
	}

	sample := func(name string) []float64 {
		return []float64{o[0].Checkpoints[1].Graphs[0].get(name), o[1].Checkpoints[1].Graphs[0].get(name)}
	}
	values := map[string][]float64{
		"L_align": sample("align"), "L_unif": sample("uniform"),
		"4.2 left, negatives fixed": quantity("gap_fixed"), "4.2 left, z* = z1": quantity("gap_view1"),
		"4.2 right, t_d = 0.1": quantity("right(t_d=0.1)"), "4.2 right, t_d = 2": quantity("right(t_d=2)"),
		"4.3 left": quantity("unif"), "4.3 right": quantity("right_4.3"), "4.3 right, smallest non-zero": quantity("right_4.3_nonzero"),
	}
	seen := 0
	for _, r := range x.rows(g) {
		if r.Protocol != "sample" && r.Protocol != x.graphs()[graph].name {
			continue
		}
		seen++
		if d := cmp.Diff(values[r.Metric], r.PerSeed); d != "" || r.Mean != (r.PerSeed[0]+r.PerSeed[1])/2 {
			t.Errorf("%s: mean %v, %s", r.Metric, r.Mean, d)
		}
		if r.Beta.Weight != 0.5 || r.Percentile != 80 || r.Epochs != 2 || r.Seconds != o[0].Seconds+o[1].Seconds {
			t.Errorf("%+v", r)
		}
	}
	if seen != len(values) {
		t.Errorf("%d rows, want %d", seen, len(values))
	}
	g.method = method.InfoNCE
	if r := x.rows(g)[0]; r.Beta != (train.Beta{}) {
		t.Errorf("the row of β = 0 has β = %v", r.Beta)
	}

	// What does not exist counts as nothing.
	o[0].Checkpoints[1].Graphs[0]["align"] = run.Float(math.NaN())
	if got := g.last(0, "align"); got != o[1].Checkpoints[1].Graphs[0].get("align") {
		t.Errorf("mean %v", got)
	}
	if got := g.largest(0, "nothing"); !math.IsNaN(got) {
		t.Errorf("the largest of nothing is %v", got)
	}
}
