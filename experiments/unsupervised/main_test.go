package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
)

// small are flags that finish in a second or two.
var small = []string{"-seeds", "2", "-epochs", "2", "-folds", "3"}

func runOK(t *testing.T, out string, args ...string) string {
	t.Helper()
	var stdout bytes.Buffer
	if err := execute(t.Context(), append(append([]string{"-out", out}, small...), args...), &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	return stdout.String()
}

func weights(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "weights", "*.safetensors"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no weights in %s (%v)", dir, err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		if all[filepath.Base(f)], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestRunDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	data := []string{"-data", runtest.FewGraphs(t, 64), "-dataset", "few"}
	threads := runtime.GOMAXPROCS(1)
	stdout := runOK(t, dir, data...)
	runtime.GOMAXPROCS(threads)
	for _, want := range []string{"untrained encoder", "GraphCL", "InfoNCE (β = 0)", "SpecMatch-CL", "Protocol linear", "Difference to InfoNCE"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the output lacks %q:\n%s", want, stdout)
		}
	}
	rows := runtest.Results(t, dir)
	methods := method.Rows(method.Unsupervised)
	if len(rows) != 2*len(methods) {
		t.Errorf("%d rows in results.json, want 2 protocols × %d methods", len(rows), len(methods))
	}
	for _, r := range rows {
		if !(r.Mean >= 20 && r.Mean <= 100) || len(r.PerSeed) != 2 {
			t.Errorf("row %+v", r)
		}
	}
	if n := len(weights(t, dir)); n != 2*len(methods) {
		t.Errorf("%d files of weights, want 2 seeds × %d methods", n, len(methods))
	}
	if n := len(runtest.Metrics(t, dir)); n != (len(methods)-1)*2*2 {
		t.Errorf("%d lines in metrics.csv, want %d methods × 2 seeds × 2 epochs", n, len(methods)-1)
	}
	runtest.Files(t, dir, "config.json", "tables.md", "log.jsonl", "plots/curves-few.svg")
	t.Run("with three threads", func(t *testing.T) { sameWithThreads(t, dir, data) })
	t.Run("model files", func(t *testing.T) { modelFiles(t, dir, data[1], rows) })
}

// sameWithThreads: equal seeds give equal results and weights at any number of threads.
func sameWithThreads(t *testing.T, dir string, data []string) {
	if testing.Short() {
		t.Skip("trains a second time; left out with -short")
	}
	again := filepath.Join(t.TempDir(), "run")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	runOK(t, again, data...)
	if d := cmp.Diff(runtest.Results(t, dir), runtest.Results(t, again), cmpopts.EquateNaNs()); d != "" {
		t.Errorf("results differ:\n%s", d)
	}
	if !maps.EqualFunc(weights(t, dir), weights(t, again), bytes.Equal) {
		t.Error("weights differ")
	}
}

// numbers is a file of weights without its header, whose metadata name the method.
func numbers(file []byte) []byte {
	return file[8+binary.LittleEndian.Uint64(file):]
}

// TestSeedsDiffer: a seed that did nothing would pass TestDeterminism.
func TestSeedsDiffer(t *testing.T) {
	if testing.Short() {
		t.Skip("trains many times; left out with -short")
	}
	dir := filepath.Join(t.TempDir(), "run")
	runOK(t, dir, "-method", "untrained,specmatch")
	w := weights(t, dir)
	for _, name := range []string{"untrained", "specmatch"} {
		if bytes.Equal(w["motifs-"+name+"-0.safetensors"], w["motifs-"+name+"-1.safetensors"]) {
			t.Errorf("%s: seeds 0 and 1 have equal weights", name)
		}
	}
	if bytes.Equal(numbers(w["motifs-untrained-0.safetensors"]), numbers(w["motifs-specmatch-0.safetensors"])) {
		t.Error("training changed nothing")
	}
}

// TestHardThresholdIsInfoNCE: trained literally, the paper's loss changes
// nothing, bit for bit.
func TestHardThresholdIsInfoNCE(t *testing.T) {
	if testing.Short() {
		t.Skip("trains many times; left out with -short")
	}
	dir := filepath.Join(t.TempDir(), "run")
	runOK(t, dir, "-method", "infonce,specmatch", "-adjacency", "hard", "-beta", "1")
	w := weights(t, dir)
	if !bytes.Equal(numbers(w["motifs-infonce-0.safetensors"]), numbers(w["motifs-specmatch-0.safetensors"])) {
		t.Error("SpecMatch-CL with the hard threshold differs from InfoNCE")
	}
}

func TestInterruptedRunIsTakenUpAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("trains many times; left out with -short")
	}
	dir := filepath.Join(t.TempDir(), "run")
	whole := filepath.Join(t.TempDir(), "whole")
	few := []string{"-method", "graphcl,specmatch"}
	runOK(t, whole, few...)

	// The first unit that finishes ends the run.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if data, err := os.ReadFile(filepath.Join(dir, "done.jsonl")); err == nil && len(data) > 0 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	err := execute(ctx, slices.Concat([]string{"-out", dir}, small, few), io.Discard, io.Discard)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "results.json")); err == nil {
		t.Fatal("an interrupted run has results")
	}
	runOK(t, dir)
	if d := cmp.Diff(runtest.Results(t, whole), runtest.Results(t, dir), cmpopts.EquateNaNs()); d != "" {
		t.Errorf("the resumed run differs from an uninterrupted one:\n%s", d)
	}
}

// TestGrow: -out alone repeats the run; other methods, seeds and protocols are added to
// it, and all is as if it had been asked for at once. What was trained stays.
func TestGrow(t *testing.T) {
	if testing.Short() {
		t.Skip("trains many times; left out with -short")
	}
	grown, whole := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "whole")
	start := func(dir string, args ...string) error {
		return execute(t.Context(), append([]string{"-out", dir}, args...), io.Discard, io.Discard)
	}
	small := []string{"-epochs", "2", "-folds", "3", "-lr", "0.02"}
	for _, args := range [][]string{
		append(small, "-seeds", "1", "-method", "infonce", "-protocol", "linear"),
		nil,
		{"-protocol", "graphcl"},
		{"-method", "untrained", "-seeds", "2"},
		nil,
	} {
		before := journal(t, grown)
		if err := start(grown, args...); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		after := journal(t, grown)
		if !strings.HasPrefix(after, before) || (args == nil) != (after == before) {
			t.Errorf("%v: the journal\n%swas\n%s", args, after, before)
		}
	}
	if err := start(whole, append(small, "-seeds", "2", "-method", "infonce,untrained", "-protocol", "linear,graphcl")...); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(runtest.Results(t, whole), runtest.Results(t, grown), cmpopts.EquateNaNs()); d != "" {
		t.Errorf("the grown run differs from one at once:\n%s", d)
	}
	if !maps.EqualFunc(weights(t, whole), weights(t, grown), bytes.Equal) {
		t.Error("the weights differ")
	}

	if err := start(grown, "-lr", "0.1"); err == nil || !strings.Contains(err.Error(), "-lr was 0.02, now it is 0.1; drop the flag") {
		t.Errorf("another learning rate: %v", err)
	}
	lost := filepath.Join(grown, "weights", "motifs-infonce-0.safetensors")
	if err := os.Remove(lost); err != nil {
		t.Fatal(err)
	}
	if err := start(grown); err == nil || !strings.Contains(err.Error(), lost+" is missing") {
		t.Errorf("without its weights: %v", err)
	}
}

// journal returns done.jsonl, nothing if there is none.
func journal(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "done.jsonl"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args  []string
		usage bool
		want  string
	}{
		{[]string{"-dataset", "MUTAG"}, true, "-data"},
		{[]string{"-beta", "-1"}, true, "-beta"},
		{[]string{"-method", "magic"}, true, "-method"},
		{[]string{"-policy", "random9"}, true, "random9"},
		{[]string{"-p", "101"}, true, "-p"},
		{[]string{"-adjacency", "soft"}, true, "adjacency"},
		{[]string{"-backend", "cuda"}, false, "rebuild with -tags cuda"},
		{[]string{"-dataset", "MUTAG", "-data", "nowhere"}, false, "nowhere"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		err := execute(t.Context(), append([]string{"-out", dir}, c.args...), io.Discard, io.Discard)
		var usage *cli.UsageError
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &usage) != c.usage {
			t.Errorf("%v: got %v, want a usage error (%v) that names %q", c.args, err, c.usage, c.want)
		}
	}
	var help bytes.Buffer
	if err := execute(t.Context(), []string{"-h"}, &help, io.Discard); err == nil || !strings.Contains(help.String(), "-adjacency") {
		t.Errorf("-h: %v\n%s", err, help.String())
	}
}

func TestOddSets(t *testing.T) {
	runtest.OddSets(t, execute, "-method", "untrained,infonce", "-epochs", "2")
}
