package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
)

// small are flags with which every method finishes in seconds on the embedded set.
var small = []string{
	"-seeds", "2", "-folds", "3", "-rounds", "2", "-dim", "8", "-epochs", "4",
	"-walks", "1", "-walk-length", "10", "-steps", "60", "-gin-epochs", "30",
}

func runOK(t *testing.T, out string, args ...string) string {
	t.Helper()
	var stdout bytes.Buffer
	if err := execute(t.Context(), append(append([]string{"-out", out}, small...), args...), &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	return stdout.String()
}

// TestRows: the embedded set is made so that neither sizes nor labels tell the classes
// apart, and motifs do, which WL names see and pairs of labels do in part.
func TestRows(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	stdout := runOK(t, dir, "-protocol", "graphcl,holdout")
	rows := runtest.Results(t, dir)
	accuracy := func(method, protocol string) float64 {
		r, ok := runtest.Find(rows, "motifs", method, protocol)
		if !ok || len(r.PerSeed) != 2 {
			t.Fatalf("no row of %s under %s with two seeds", method, protocol)
		}
		return r.Mean
	}
	if a := accuracy("majority", "graphcl"); math.Abs(a-100./3) > 2 {
		t.Errorf("majority class: %v", a)
	}
	for _, blind := range []string{"size", "labels"} {
		if a := accuracy(blind, "graphcl"); a > 45 {
			t.Errorf("%s: %.1f %%, but it cannot see the classes", blind, a)
		}
	}
	for _, seeing := range []string{"wl", "wloa", "dgk"} {
		for _, p := range []string{"graphcl", "holdout"} {
			if a := accuracy(seeing, p); a < 80 {
				t.Errorf("%s under %s: %.1f %%", seeing, p, a)
			}
		}
	}
	for _, m := range []string{"pairs", "node2vec", "sub2vec", "graph2vec"} {
		if a := accuracy(m, "graphcl"); !(a >= 15 && a <= 100) {
			t.Errorf("%s: %.1f %%", m, a)
		}
	}
	if a := accuracy("gin", "graphcl"); a < 50 {
		t.Errorf("gin: %.1f %%", a)
	}
	if _, ok := runtest.Find(rows, "motifs", "graph2vec", "holdout"); ok {
		t.Error("the protocol of kernels has a row of vectors")
	}
	for _, want := range []string{"WL optimal assignment", "which is not added back", "Seconds for features"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the output lacks %q:\n%s", want, stdout)
		}
	}
	runtest.Files(t, dir, "config.json", "tables.md", "log.jsonl", "done.jsonl")

	// Once more, from the journal.
	if again := runOK(t, dir, "-protocol", "graphcl,holdout"); again != stdout {
		t.Error("a finished run prints something else when it is repeated")
	}
}

// TestDeterminism: equal seeds give equal results at any number of threads, under
// every protocol.
func TestDeterminism(t *testing.T) {
	if testing.Short() {
		t.Skip("evaluates many times; left out with -short")
	}
	var first []run.Row
	data := runtest.FewGraphs(t, 96)
	for _, procs := range []int{1, 3} {
		old := runtime.GOMAXPROCS(procs)
		dir := filepath.Join(t.TempDir(), "run")
		runOK(t, dir, "-protocol", "graphcl,linear,holdout", "-method", "labels,wl,wloa,dgk,node2vec,graph2vec", "-seeds", "1", "-data", data, "-dataset", "few")
		runtime.GOMAXPROCS(old)
		rows := runtest.Results(t, dir)
		if first == nil {
			first = rows
		} else if d := cmp.Diff(first, rows, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("GOMAXPROCS %d: results differ:\n%s", procs, d)
		}
	}
}

// large is a set of one graph that is repeated, large enough to be refused.
func large(copies int) *dataset.Dataset {
	ds := dataset.Default()
	d := *ds
	d.Graphs = slices.Repeat(ds.Graphs, copies)
	return &d
}

func TestRefusals(t *testing.T) {
	s := defaultSettings()
	s.Epochs = 1000
	ds := large(500) // 120,000 graphs, 3 million nodes
	for name, want := range map[string]string{"node2vec": "-walks 1", "sub2vec": "-steps", "graph2vec": "-epochs 100", "gin": "-gin-epochs 6"} {
		var usage *cli.UsageError
		if err := methodOf(name).refuse(&s, ds); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a usage error that names %s", name, err, want)
		}
		if err := methodOf(name).refuse(&s, dataset.Default()); err != nil {
			t.Errorf("%s refuses the embedded set: %v", name, err)
		}
	}
	s.Walks, s.WalkLength, s.Steps, s.Epochs, s.ginEpochs = 1, 20, 100, 10, 6
	for _, name := range []string{"node2vec", "sub2vec", "graph2vec", "gin"} {
		if err := methodOf(name).refuse(&s, ds); err != nil {
			t.Errorf("%s, made smaller: %v", name, err)
		}
	}
}

// TestGIN: a seed trains alike at any number of threads.
func TestGIN(t *testing.T) {
	ds, s := dataset.Default(), defaultSettings()
	s.ginEpochs = 8
	outer, err := dataset.StratifiedKFold(ds.Labels(), 3, true, 0)
	if err != nil {
		t.Fatal(err)
	}
	var first float64
	for i, procs := range []int{1, 3} {
		old := runtime.GOMAXPROCS(procs)
		a, err := gin(t.Context(), &s, ds, 0, outer[:1])
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = a
		} else if a != first {
			t.Errorf("accuracy %v, and %v with %d threads", first, a, procs)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args  []string
		usage bool
		want  string
	}{
		{[]string{"-dataset", "MUTAG"}, true, "-data"},
		{[]string{"-method", "magic"}, true, "-method"},
		{[]string{"-rounds", "-1"}, true, "-rounds"},
		{[]string{"-rounds", "11"}, true, "-rounds 11: want at most 10"},
		{[]string{"-dim", "1000000000000"}, true, "-dim"},
		{[]string{"-method", "node2vec", "-walks", "1000000000000000000"}, true, "-walks 1"},
		{[]string{"-property", "x"}, true, "-property"},
		{[]string{"-method", "sub2vec", "-token-limit", "0", "-steps", "10000000"}, true, "motifs, sub2vec: 2.9e+11 updates"},
		{[]string{"-folds", "300"}, false, "motifs, majority"},
		{[]string{"-dataset", "MUTAG", "-data", "nowhere"}, false, "nowhere"},
	} {
		err := execute(context.Background(), append([]string{"-out", filepath.Join(t.TempDir(), "run")}, c.args...), io.Discard, io.Discard)
		var usage *cli.UsageError
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &usage) != c.usage {
			t.Errorf("%v: got %v, want a usage error (%v) that names %q", c.args, err, c.usage, c.want)
		}
	}
	var help bytes.Buffer
	if err := execute(context.Background(), []string{"-h"}, &help, io.Discard); err == nil || !strings.Contains(help.String(), "-token-limit") {
		t.Errorf("-h: %v\n%s", err, help.String())
	}
}

func TestOddSets(t *testing.T) { runtest.OddSets(t, execute, "-method", "majority,wl,gin") }
