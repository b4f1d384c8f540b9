package main

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/pretrain"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/rundirtest"
	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/theory"
	"github.com/specmatch/specmatch/tensor"
)

func newExperiment() *experiment {
	return &experiment{
		loss:   cli.Loss{Beta: cli.Beta{Weight: 0.5}, P: 80, Tau: 0.2, Kappa: 10},
		check:  check{every: 1, draws: 4, times: []float64{0.1, 2}},
		recipe: cli.Recipe{Epochs: 2, Batch: 12, LR: 0.01, Seeds: 2}, settings: pretrain.DefaultSettings(),
	}
}

// near compares numbers to nine digits; what does not exist is equal.
var near = cmp.Options{
	cmpopts.EquateApprox(1e-9, 0), cmpopts.EquateNaNs(),
	cmp.Transformer("float64", func(f rundir.Float) float64 { return float64(f) }),
}

// TestBounds: four pairs of draws, of which the last has equal graphs, against the
// definitions.
func TestBounds(t *testing.T) {
	x := newExperiment()
	rng := random.Stream(1, 0, 0, 0)
	const n, d = 12, 4
	var views []*theory.View
	for k := range 8 {
		z := make([]float64, n*d)
		for i := range z {
			z[i] = rng.NormFloat64()
		}
		if k == 7 {
			views = append(views, views[6])
			break
		}
		v, err := theory.NewView(z, n, d, specmatch.LaplacianMatch{Adjacency: specmatch.Sigmoid, Kappa: 10, Percentile: 50})
		if err != nil {
			t.Fatal(err)
		}
		views = append(views, v)
	}
	// The last left side is the largest, and must not count in ratios; the second
	// with z* = z¹ is above the bound.
	gaps := []theory.Gap{{Fixed: 1, View1: 2, Midpoint: 3}, {Fixed: 4, View1: 1e9, Midpoint: 6}, {Fixed: 3, View1: 1, Midpoint: 2}, {Fixed: 1e6, View1: 1e10, Midpoint: 1e6}}
	got, err := x.bounds(views, gaps)
	if err != nil {
		t.Fatal(err)
	}
	want := bounds{
		Pairs: 4, Equal: 1,
		Gap:   theory.Gap{Fixed: (1 + 4 + 3 + 1e6) / 4, View1: (2 + 1e9 + 1 + 1e10) / 4, Midpoint: (3 + 6 + 2 + 1e6) / 4.},
		Draws: 8, Connected: 8,
		Times: make([]diffusion, len(x.check.times)),
	}
	for k, gap := range gaps[:3] {
		v1, v2 := views[2*k], views[2*k+1]
		lossG := theory.LossG(v1, v2)
		want.PairG += rundir.Float(lossG / 4)
		for i, td := range x.check.times {
			a, w := theory.Alignment(v1, v2, 0.2, td), &want.Times[i]
			w.C, w.Right = w.C+rundir.Float(a.C/3), w.Right+rundir.Float(a.Right/3)
			w.Duhamel = max(w.Duhamel, rundir.Float(a.Heat/(td*td*lossG)))
			w.Ratio.Fixed = max(w.Ratio.Fixed, gap.Fixed/a.Right)
			w.Ratio.View1 = max(w.Ratio.View1, gap.View1/a.Right)
			w.Ratio.Midpoint = max(w.Ratio.Midpoint, gap.Midpoint/a.Right)
			w.Violated = 1
			if (gap.View1 > a.Right) != (k == 1) {
				t.Fatalf("the right side %v of pair %d does not suit the test", a.Right, k)
			}
		}
	}
	u, err := theory.Uniformity(views, 2)
	if err != nil {
		t.Fatal(err)
	}
	want.LossG, want.Mu2, want.Unif = rundir.Float(u.LossG), rundir.Float(u.Mu2), rundir.Float(u.Unif)
	want.LambdaBar, want.LambdaBarNonZero = rundir.Float(u.LambdaBar), rundir.Float(u.LambdaBarNonZero)
	want.Direct, want.Right, want.RightNonZero = rundir.Float(u.Direct), rundir.Float(u.Right), rundir.Float(u.RightNonZero)
	want.Hoffman, want.HoffmanNonZero = rundir.Float(u.Hoffman), rundir.Float(u.HoffmanNonZero)
	if d := cmp.Diff(want, got, near); d != "" {
		t.Error(d)
	}
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
	r := x.runs([]*dataset.Dataset{ds})[2]
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

	z1, z2, d, err := m.views(t.Context(), model, m.sample, 0, nn.Eval)
	if err != nil {
		t.Fatal(err)
	}
	diagnosis := specmatch.Diagnose(z1, z2, len(z1)/d, d, specmatch.LaplacianMatch{Percentile: 80})
	if got.Align != rundir.Float(diagnosis.Alignment) || got.Uniform != rundir.Float(diagnosis.Uniformity) {
		t.Errorf("alignment %v and uniformity %v, want %v and %v", got.Align, got.Uniform, diagnosis.Alignment, diagnosis.Uniformity)
	}
	if len(got.Bounds) != 3 {
		t.Fatalf("%d kinds of graphs", len(got.Bounds))
	}
	for i, g := range x.graphs() {
		var gap theory.Gap
		lossG := 0.0
		for k := range 2 {
			z1, z2, d, err := m.views(t.Context(), model, m.batch, k, nn.Train)
			if err != nil {
				t.Fatal(err)
			}
			v1, err1 := theory.NewView(z1, 12, d, g.match)
			v2, err2 := theory.NewView(z2, 12, d, g.match)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			a := theory.AlignmentGap(v1, v2, 0.2)
			gap.Fixed, gap.View1, gap.Midpoint = gap.Fixed+a.Fixed/2, gap.View1+a.View1/2, gap.Midpoint+a.Midpoint/2
			lossG += theory.LossG(v1, v2) / 2
		}
		b := got.Bounds[i]
		if d := cmp.Diff([]any{gap, rundir.Float(lossG), 2, 4}, []any{b.Gap, b.PairG, b.Pairs, b.Draws}, near); d != "" {
			t.Errorf("%s: %s", g.name, d)
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
			f := func() rundir.Float { return rundir.Float(number()) }
			c := checkpoint{Epoch: epoch + 1, Align: f(), Uniform: f()}
			for range x.graphs() {
				b := bounds{Pairs: 7, Equal: 2, PairG: f(), Gap: theory.Gap{Fixed: number(), View1: number(), Midpoint: number()}, Draws: 14, Connected: 2, LossG: f(), Mu2: f(), Unif: f(), LambdaBar: f(), LambdaBarNonZero: f(), Direct: f(), Right: f(), RightNonZero: f(), Hoffman: f(), HoffmanNonZero: f()}
				for range x.check.times {
					b.Times = append(b.Times, diffusion{C: f(), Right: f(), Duhamel: f(), Ratio: theory.Gap{Fixed: number(), View1: number(), Midpoint: number()}, Violated: 3})
				}
				c.Bounds = append(c.Bounds, b)
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
	quantity := func(f func(b bounds) rundir.Float) []float64 {
		return []float64{float64(f(o[0].Checkpoints[1].Bounds[graph])), float64(f(o[1].Checkpoints[1].Bounds[graph]))}
	}
	mean := func(f func(b bounds) rundir.Float) float64 { v := quantity(f); return (v[0] + v[1]) / 2 }
	top := func(f func(b bounds) rundir.Float) float64 { return quantity(f)[1] }

	o[1].Checkpoints[0].Bounds[graph].Right = -5    // a bound that says something
	o[0].Checkpoints[0].Bounds[graph].Connected = 1 // no bound
	o[0].Checkpoints[1].Bounds[graph].Times[0].Violated = 1
	alignment, uniformity := x.alignmentTable(ds), x.uniformityTable(ds)
	x.addAlignment(alignment, g)
	x.addUniformity(uniformity, g)
	first := x.alignmentTable(ds)
	fixed := func(b bounds) rundir.Float { return rundir.Float(b.Gap.Fixed) }
	view1 := func(b bounds) rundir.Float { return rundir.Float(b.Gap.View1) }
	time := func(f func(d diffusion) rundir.Float) func(b bounds) rundir.Float {
		return func(b bounds) rundir.Float { return f(b.Times[0]) }
	}
	first.Add("β = 0.5, hard, p = 50",
		table.Number(0.1, 1), table.Number(mean(func(b bounds) rundir.Float { return b.PairG }), 2),
		table.Number(mean(time(func(d diffusion) rundir.Float { return d.C })), 1), table.Number(mean(time(func(d diffusion) rundir.Float { return d.Right })), 0),
		table.Number(mean(fixed), 0),
		table.Number(top(time(func(d diffusion) rundir.Float { return rundir.Float(d.Ratio.Fixed) })), 3),
		table.Number(top(time(func(d diffusion) rundir.Float { return rundir.Float(d.Ratio.View1) })), 3),
		table.Number(top(time(func(d diffusion) rundir.Float { return rundir.Float(d.Ratio.Midpoint) })), 3),
		table.Text("10 of 20"), // 3·4-2 of 4·(7-2)
		table.Number(top(time(func(d diffusion) rundir.Float { return d.Duhamel })), 3),
		table.Text("8 of 28"))
	if d := cmp.Diff(rundirtest.Rows(t, first)[0], rundirtest.Rows(t, alignment)[graph*len(x.check.times)]); d != "" {
		t.Errorf("Theorem 4.2: %s", d)
	}
	second := x.uniformityTable(ds)
	second.Add("β = 0.5, hard, p = 50",
		table.Text("7 of 56"), table.Number(mean(func(b bounds) rundir.Float { return b.LossG }), 3), table.Number(mean(func(b bounds) rundir.Float { return b.Mu2 }), 3),
		table.Number(mean(func(b bounds) rundir.Float { return b.LambdaBar }), 3), table.Number(mean(func(b bounds) rundir.Float { return b.Unif }), 3),
		table.Number(mean(func(b bounds) rundir.Float { return b.Direct }), 3), table.Number(mean(func(b bounds) rundir.Float { return b.Right }), 3),
		table.Number(mean(func(b bounds) rundir.Float { return b.RightNonZero }), 3), table.Text("2 of 3"),
		table.Number(top(func(b bounds) rundir.Float { return b.Hoffman }), 3), table.Number(top(func(b bounds) rundir.Float { return b.HoffmanNonZero }), 2))
	if d := cmp.Diff(rundirtest.Rows(t, second)[0], rundirtest.Rows(t, uniformity)[graph]); d != "" {
		t.Errorf("Theorem 4.3: %s", d)
	}

	values := map[string][]float64{
		"L_align": {float64(o[0].Checkpoints[1].Align), float64(o[1].Checkpoints[1].Align)},
		"L_unif":  {float64(o[0].Checkpoints[1].Uniform), float64(o[1].Checkpoints[1].Uniform)},
	}
	for metric, f := range map[string]func(b bounds) rundir.Float{
		"4.2 left, negatives fixed": fixed, "4.2 left, z* = z1": view1,
		"4.2 right, t_d = 0.1":         time(func(d diffusion) rundir.Float { return d.Right }),
		"4.2 right, t_d = 2":           func(b bounds) rundir.Float { return b.Times[1].Right },
		"4.3 left":                     func(b bounds) rundir.Float { return b.Unif },
		"4.3 right":                    func(b bounds) rundir.Float { return b.Right },
		"4.3 right, smallest non-zero": func(b bounds) rundir.Float { return b.RightNonZero },
	} {
		values[metric] = quantity(f)
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
		if r.Beta.Weight != 0.5 || r.P != 80 || r.Epochs != 2 || r.Seconds != o[0].Seconds+o[1].Seconds {
			t.Errorf("%+v", r)
		}
	}
	if seen != len(values) {
		t.Errorf("%d rows, want %d", seen, len(values))
	}
	g.method = method.InfoNCE
	if r := x.rows(g)[0]; r.Beta != (cli.Beta{}) {
		t.Errorf("the row of β = 0 has β = %v", r.Beta)
	}

	// What does not exist counts as nothing.
	o[0].Checkpoints[1].Align = rundir.Float(math.NaN())
	align := func(c checkpoint) rundir.Float { return c.Align }
	if got := g.last(align); got != float64(o[1].Checkpoints[1].Align) {
		t.Errorf("mean %v", got)
	}
	if got := g.largest(func(checkpoint) rundir.Float { return rundir.Float(math.NaN()) }); !math.IsNaN(got) {
		t.Errorf("the largest of nothing is %v", got)
	}
}
