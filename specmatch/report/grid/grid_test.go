package grid_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/eval/published"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/report/grid"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/train"
)

// measured has three methods on two sets under two protocols; the second set has the
// values of the first with a minus sign, the second protocol 1000 more, and no results
// of the untrained encoder.
func measured(seeds int) *grid.Grid {
	g := grid.New(run.Row{Experiment: "unsupervised", Beta: train.Beta{Weight: 1}, Percentile: 80},
		[]string{"NCI1", "other"}, []string{method.Untrained, method.InfoNCE, method.SpecMatch}, []string{"graphcl", "linear"}, method.Title)
	for name, values := range map[string][]float64{method.Untrained: {50, 50}, method.InfoNCE: {60, 70}, method.SpecMatch: {61, 75}} {
		for _, v := range values[:seeds] {
			speed := v
			if name == method.Untrained {
				speed = math.NaN()
			}
			g.Add("NCI1", name, "graphcl", grid.Result{Value: v, Seconds: 3, GraphsPerSecond: speed, Epochs: 20})
			g.Add("other", name, "graphcl", grid.Result{Value: -v})
			if name != method.Untrained {
				g.Add("NCI1", name, "linear", grid.Result{Value: v + 1000})
				g.Add("other", name, "linear", grid.Result{Value: -v + 1000})
			}
		}
	}
	return g
}

// TestRows: what was added comes out in its row, in the order of the tables.
func TestRows(t *testing.T) {
	rows := measured(2).Rows()
	if n := len(rows); n != 2*3+2*2 {
		t.Fatalf("%d rows", n)
	}
	want := run.Row{
		Experiment: "unsupervised", Dataset: "NCI1", Method: method.SpecMatch, Protocol: "graphcl", Mean: 68, Std: rows[2].Std, PerSeed: []float64{61, 75},
		Beta: train.Beta{Weight: 1}, Percentile: 80, Epochs: 20, Seconds: 6, GraphsPerSecond: 68,
	}
	if d := cmp.Diff(want, rows[2]); d != "" {
		t.Error(d)
	}
	if r := rows[0]; r.Method != method.Untrained || r.Beta != (train.Beta{}) || !math.IsNaN(r.Percentile) || !math.IsNaN(r.GraphsPerSecond) {
		t.Errorf("untrained: %+v", r)
	}
}

// TestTable: figures stand in their row and column; a published row stands below the
// protocols that it was measured under, and with its note where it has a figure.
func TestTable(t *testing.T) {
	published := published.Table{
		{Name: "both", Note: "measured twice", Values: map[string][2]float64{"NCI1": {77.87, .41}}},
		{Name: "one", Protocols: []string{"graphcl"}, Values: map[string][2]float64{"other": {1, 2}}},
		{Name: "none", Note: "of another set", Values: map[string][2]float64{"MUTAG": {1, 2}}},
	}
	g := measured(2)
	first := g.Table("graphcl", "caption", published)
	want := [][]string{
		{"untrained encoder", "50.00 ± 0.00", "−50.00 ± 0.00"},
		{"InfoNCE (β = 0)", "65.00 ± 7.07", "−65.00 ± 7.07"},
		{"SpecMatch-CL", "68.00 ± 9.90", "−68.00 ± 9.90"},
		{"both", "77.87 ± 0.41", ""},
		{"one", "", "1.00 ± 2.00"},
	}
	if d := cmp.Diff(want, runtest.Rows(t, first)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"both: measured twice."}, first.Footnotes); d != "" || first.Caption != "caption" {
		t.Error(d)
	}
	want = [][]string{
		{"InfoNCE (β = 0)", "1065.00 ± 7.07", "935.00 ± 7.07"},
		{"SpecMatch-CL", "1068.00 ± 9.90", "932.00 ± 9.90"},
		{"both", "77.87 ± 0.41", ""},
	}
	if d := cmp.Diff(want, runtest.Rows(t, g.Table("linear", "", published))); d != "" {
		t.Error(d)
	}
}

// TestDifferences: differences of 1 and 5 are 3 ± 2; of the mean of two sets the error
// is 2/√2. Methods without results of their own or of the base are left out.
func TestDifferences(t *testing.T) {
	want := [][]string{
		{"untrained encoder, graphcl", "−15.00 ± 5.00", "15.00 ± 5.00", "0.00 ± 3.54"},
		{"SpecMatch-CL, graphcl", "3.00 ± 2.00", "−3.00 ± 2.00", "0.00 ± 1.41"},
		{"SpecMatch-CL, linear", "3.00 ± 2.00", "−3.00 ± 2.00", "0.00 ± 1.41"},
		{"deviation by chance, graphcl", "10.00", "10.00", ""}, // √2 times that of 60 and 70
		{"seeds for 0.3 points, graphcl", "4445", "4445", ""},
		{"deviation by chance, linear", "10.00", "10.00", ""},
		{"seeds for 0.3 points, linear", "4445", "4445", ""},
	}
	if d := cmp.Diff(want, runtest.Rows(t, measured(2).Differences(method.InfoNCE, method.Untrained, method.InfoNCE, method.SpecMatch))); d != "" {
		t.Error(d)
	}
	if measured(1).Differences(method.InfoNCE, method.SpecMatch) != nil {
		t.Error("a difference of one seed")
	}
	if measured(2).Differences(method.GraphCL, method.SpecMatch) != nil {
		t.Error("a difference to a method without results")
	}
}

// TestTwins: the table has the sets with twins, a seed without any counts with the value of all its graphs, and
// errors are standard errors.
func TestTwins(t *testing.T) {
	sets := []string{"MUTAG", "DD"}
	g := grid.New(run.Row{Metric: "accuracy"}, sets, []string{method.InfoNCE, method.SpecMatch}, []string{"linear"}, method.Title)
	for _, name := range []string{method.InfoNCE, method.SpecMatch} {
		g.Add("MUTAG", name, "linear", grid.Result{Value: 80})
		g.Add("MUTAG", name, "linear", grid.Result{Value: 90, Twins: &eval.Twins{Graphs: 20, Others: 80, Correct: 64}})
		g.Add("DD", name, "linear", grid.Result{Value: 70})
	}
	table := g.Twins("linear")
	want := [][]string{
		{"InfoNCE (β = 0)", "85.00 ± 5.00", "80.00 ± 0.00", "−5.00 ± 5.00"},
		{"SpecMatch-CL", "85.00 ± 5.00", "80.00 ± 0.00", "−5.00 ± 5.00"},
	}
	if d := cmp.Diff(want, runtest.Rows(t, table)); d != "" {
		t.Error(d)
	}
	if !strings.Contains(table.Caption, "have one: MUTAG: 10.0 %.") || !strings.Contains(table.Caption, "accuracy of all") ||
		!strings.HasSuffix(table.Caption, "n = 2.") {
		t.Error(table.Caption)
	}
	row, _ := g.Row("MUTAG", method.InfoNCE, "linear")
	if !cmp.Equal(row.Twins, []float64{0, 20}) || !cmp.Equal(row.WithoutTwins, []float64{80, 80}) {
		t.Errorf("%v, %v", row.Twins, row.WithoutTwins)
	}
	g.Add("MUTAG", method.InfoNCE, "linear", grid.Result{Value: 70})
	row, _ = g.Row("MUTAG", method.InfoNCE, "linear")
	if !cmp.Equal(row.Twins, []float64{0, 20, 0}) || !cmp.Equal(row.WithoutTwins, []float64{80, 80, 70}) {
		t.Errorf("%v, %v", row.Twins, row.WithoutTwins)
	}
	if measured(2).Twins("graphcl") != nil {
		t.Error("a table without twins")
	}
}

// TestSignificance: of two differences of 1 ± 0.1 and 0.5 ± 0.2 over four seeds the first
// has p = 0.002, corrected 0.004, and the second 0.088, corrected the same. With jitter in
// the table chance is measured.
func TestSignificance(t *testing.T) {
	g := grid.New(run.Row{}, []string{"NCI1"}, []string{method.InfoNCE, method.Jitter, method.SpecMatch}, []string{"graphcl"}, method.Title)
	for _, v := range []float64{-1, 1, -1, 1} {
		add := func(name string, value float64) { g.Add("NCI1", name, "graphcl", grid.Result{Value: value}) }
		add(method.InfoNCE, 80)
		add(method.SpecMatch, 81+v*0.1*math.Sqrt(3))
		add(method.Jitter, 80.5+v*0.2*math.Sqrt(3))
	}
	table := g.Differences(method.InfoNCE, method.Jitter, method.SpecMatch)
	want := [][]string{
		{method.Title(method.Jitter) + ", graphcl", "0.50 ± 0.20"},
		{"SpecMatch-CL, graphcl", "1.00 ± 0.10†"},
		{"deviation by chance, graphcl", "0.40"},
		{"seeds for 0.3 points, graphcl", "8"},
	}
	if d := cmp.Diff(want, runtest.Rows(t, table)); d != "" {
		t.Error(d)
	}
	if !strings.Contains(table.Caption, "over n = 4 seeds") || !strings.Contains(table.Caption, "for the 2 differences") {
		t.Error(table.Caption)
	}
}
