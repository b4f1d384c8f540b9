package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/theory"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

func number(t *testing.T, line map[string]string, name string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(line[name], 64)
	if err != nil {
		t.Fatalf("column %q: %v", name, err)
	}
	return v
}

// TestRun: the run directory is complete, what must hold holds on every line,
// and both readings of each term are there.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("decomposes many matrices; left out with -short")
	}
	dir := filepath.Join(t.TempDir(), "run")
	var stdout bytes.Buffer
	args := []string{"-out", dir, "-seeds", "2", "-epochs", "4", "-batch", "40", "-draws", "4", "-diffusion", "0.1,2"}
	if err := execute(t.Context(), args, &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Theorem 4.2 on a batch of 40 graphs", "Theorem 4.3 over 4 draws", "β = 0, hard, p = 80", "β = 0.5, sigmoid, κ = 10, p = 80"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, stdout.String())
		}
	}
	for _, f := range []string{"adjacency", "trajectory-motifs", "theorem-4.2-motifs", "theorem-4.3-motifs", "tsne-motifs"} {
		runtest.Files(t, dir, f+".svg")
	}
	all := runtest.Metrics(t, dir)
	if want := 2 * 2 * 2 * 3; len(all) != want { // methods, seeds, checkpoints, graphs
		t.Errorf("metrics.csv has %d lines, want %d", len(all), want)
	}
	connected := 0
	for _, l := range all {
		where := l["unit"] + ", epoch " + l["epoch"]
		atMost := func(small, large string, limit float64) {
			a := number(t, l, small)
			if large != "" {
				limit = number(t, l, large)
			}
			if a > limit+1e-9*max(1, limit) {
				t.Errorf("%s: %s = %v is above %s = %v", where, small, a, large, limit)
			}
		}
		for _, td := range []string{"(t_d=0.1)", "(t_d=2)"} {
			atMost("duhamel"+td, "", 1)
			atMost("ratio_fixed"+td, "", 1)
		}
		if number(t, l, "connected") >= 2 {
			connected++
			atMost("unif", "direct", 0)
			atMost("direct", "right_4.3", 0)
			atMost("right_4.3", "right_4.3_nonzero", 0)
			atMost("hoffman", "", 1)
		}
		if number(t, l, "gap_fixed") <= 0 || number(t, l, "gap_view1") <= 0 || number(t, l, "pair_loss_g") <= 0 {
			t.Errorf("%s: nothing was measured: %v", where, l)
		}
	}
	if connected < len(all)/3 { // the soft graphs always are
		t.Errorf("%d of %d lines have connected draws", connected, len(all))
	}

	rows := runtest.Results(t, dir)
	if want := 2 * (2 + 3*(2+2+3)); len(rows) != want {
		t.Errorf("%d rows in results.json, want %d", len(rows), want)
	}
	for _, r := range rows {
		if len(r.PerSeed) != 2 {
			t.Errorf("%s, %s, %s: %d seeds", r.Method, r.Protocol, r.Metric, len(r.PerSeed))
		}
	}

	// Taken up again, a finished run only draws its figures.
	before := runtest.Metrics(t, dir)
	var again bytes.Buffer
	if err := execute(t.Context(), args, &again, io.Discard); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(stdout.String(), again.String()) + cmp.Diff(before, runtest.Metrics(t, dir)); d != "" {
		t.Errorf("the finished run taken up again differs:\n%s", d)
	}
}

// trained trains a run and calls each after every epoch.
func trained(t *testing.T, be backend.Backend, r *training.Run, each func(*specmatch.Model) error) *specmatch.Model {
	t.Helper()
	l, err := r.Learner(be)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if _, err := train.Run(t.Context(), l, train.Options{Epochs: r.Epochs()}, func(p train.Progress) error {
		if !p.Ended {
			return nil
		}
		return each(l.Model)
	}); err != nil {
		t.Fatal(err)
	}
	return l.Model
}

// TestCheckpointLeavesNoTrace: measuring changes neither weights nor running
// statistics, so that training is what it would be without.
func TestCheckpointLeavesNoTrace(t *testing.T) {
	ds, err := dataset.Motifs(dataset.MotifConfig{Graphs: 24})
	if err != nil {
		t.Fatal(err)
	}
	x := &experiment{
		Experiment: paper.Experiment{
			Recipe: cli.Recipe{Epochs: 2, Batch: 12, LR: 0.01, Seeds: 1}, Settings: training.Settings{Options: method.Options{"beta": train.Beta{Weight: 0.5}}},
		},
		check: check{every: 1, draws: 2, times: []float64{1}},
	}
	r := x.Runs([]*dataset.Dataset{ds}, methods)[1]
	state := func(measure bool) (all [][]float64) {
		be := cpu.New(tensor.Float64)
		m, err := newMeter(be, r)
		if err != nil {
			t.Fatal(err)
		}
		var last checkpoint
		model := trained(t, be, r, func(model *specmatch.Model) error {
			if measure {
				last, err = x.checkpoint(t.Context(), m, model)
			}
			return err
		})
		if measure && !(last.Graphs[0]["align"] > 0 && last.Graphs[0]["uniform"] < 0) {
			t.Errorf("alignment %v, uniformity %v", last.Graphs[0]["align"], last.Graphs[0]["uniform"])
		}
		read := func(v *tensor.Tensor) {
			x := make([]float64, v.Len())
			be.Download(x, v)
			all = append(all, x)
		}
		for _, p := range model.Parameters() {
			read(p.Value)
		}
		for _, b := range model.Buffers() {
			read(b.Value)
		}
		return all
	}
	if with, without := state(true), state(false); !slices.EqualFunc(with, without, slices.Equal) {
		t.Error("training with checkpoints is another training")
	}

	// In training mode a forward pass does leave a trace, and draws take it away.
	be := cpu.New(tensor.Float64)
	model := trained(t, be, r, func(*specmatch.Model) error { return nil })
	m, err := newMeter(be, r)
	if err != nil {
		t.Fatal(err)
	}
	mean := func() []float64 {
		x := make([]float64, model.Buffers()[0].Value.Len())
		be.Download(x, model.Buffers()[0].Value)
		return x
	}
	before := mean()
	z, d, err := theory.Draws(t.Context(), be, model, m.batch, 2, nn.Train)
	if err != nil || len(z) != 4 || len(z[0]) != 12*d || len(z[1]) != 12*d || slices.Equal(z[0], z[1]) {
		t.Fatalf("%d draws of 12 graphs of %d dimensions: %v, %v", len(z), d, z, err)
	}
	if slices.Equal(z[0], z[2]) {
		t.Error("draws 0 and 1 are the same")
	}
	if !slices.Equal(before, mean()) {
		t.Error("the running statistics have changed")
	}
	for _, batch := range m.batch.Epoch(t.Context(), 0) {
		model.Forward(gnn.NewBatch(autodiff.NewInference(be), batch), nn.Train)
	}
	if slices.Equal(before, mean()) {
		t.Error("training mode left the running statistics alone: the test tests nothing")
	}
}

// TestFewGraphs: a set of a few graphs is refused before it is trained on.
func TestFewGraphs(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []int{1, 3, 4} {
		few, err := dataset.Motifs(dataset.MotifConfig{Graphs: n})
		if err != nil {
			t.Fatal(err)
		}
		few.Name = fmt.Sprintf("few%d", n)
		if err := dataset.WriteTU(dir, few); err != nil {
			t.Fatal(err)
		}
		err = execute(t.Context(), []string{"-dataset", few.Name, "-data", dir, "-epochs", "2", "-draws", "2", "-seeds", "1", "-out", filepath.Join(dir, "run-"+few.Name)}, io.Discard, io.Discard)
		if n < 4 && (err == nil || !strings.Contains(err.Error(), fmt.Sprintf("few%d: %d graphs are too few", n, n))) || n == 4 && err != nil {
			t.Errorf("%d graphs: %v", n, err)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-draws", "3"}, "-draws 3: want an even number"},
		{[]string{"-epochs", "3", "-every", "4"}, "-epochs 3 ends before the first checkpoint"},
		{[]string{"-beta", "0"}, "-beta 0"},
		{[]string{"-diffusion", "0"}, "-diffusion"},
		{[]string{"-draws", "1000000000"}, "-dataset motifs -batch 128 -draws 1000000000: comparing views needs about"},
		{[]string{"-diffusion", "1,1e300"}, `"1e300": want a number from 1e-06 to 1e+06`},
		{[]string{"-dataset", "NCI1"}, "-data"},
		{[]string{"-policy", "random9"}, "random9"},
	} {
		err := execute(t.Context(), append([]string{"-out", filepath.Join(t.TempDir(), "run")}, c.args...), io.Discard, io.Discard)
		var usage *cli.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want a usage error with %q", c.args, err, c.want)
		}
	}
}
