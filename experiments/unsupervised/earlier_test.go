package main

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/specmatch/report"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
)

// earlier is a run directory that version 0.1 has left, by -method untrained,infonce
// -seeds 2 -epochs 2 -folds 3 -protocol linear, without its figures and log.
const earlier = "testdata/run-0.1"

// TestEarlierVersion: a run of an earlier version is collected, without training, and
// reported.
func TestEarlierVersion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "collected")
	if err := execute(t.Context(), []string{"-out", dir, "-collect", earlier, "-mixed"}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(figures(t, earlier), figures(t, dir)); d != "" {
		t.Error(d)
	}
	for _, path := range []string{earlier, dir} {
		runs, err := report.Read([]string{path})
		if err != nil {
			t.Fatal(err)
		}
		page, err := report.New(runs, report.Options{})
		if err == nil {
			err = page.WriteHTML(io.Discard)
		}
		if err != nil {
			t.Error(err)
		}
		if r := runs[0]; len(r.Rows) != 2 || len(r.Metrics) != 4 || len(r.Units) != 8 {
			t.Errorf("%s: %d rows, %d epochs and %d units, want 2, 4 and 8", path, len(r.Rows), len(r.Metrics), len(r.Units))
		}
	}
}

// figures are what a run has measured, by method.
func figures(t *testing.T, dir string) map[string][]float64 {
	all := map[string][]float64{}
	for _, r := range runtest.Results(t, dir) {
		all[r.Method] = r.PerSeed
	}
	return all
}
