package units_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/units"
)

func open(t *testing.T, path string) *rundir.Dir {
	t.Helper()
	dir, err := rundir.Open(rundir.Options{Experiment: "squares", Flags: cli.NewFlagSet("squares", "", ""), Out: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

// squares are units that return the square of their number.
func squares(n int, ran *atomic.Int32, failAt int) []units.Unit[int] {
	list := make([]units.Unit[int], n)
	for i := range list {
		list[i] = units.Unit[int]{Name: fmt.Sprint("unit ", i), Run: func(_ context.Context, status units.Status) (int, error) {
			if i == failAt {
				return 0, errors.New("no square")
			}
			status("squaring %d", i)
			ran.Add(1)
			return i * i, nil
		}}
	}
	return list
}

func TestResultsAreInOrderAndKept(t *testing.T) {
	path := t.TempDir()
	var ran atomic.Int32
	for start := range 2 {
		dir := open(t, path)
		got, err := units.Run(t.Context(), dir, io.Discard, squares(20, &ran, -1))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if v != i*i {
				t.Errorf("start %d: result %d is %d", start+1, i, v)
			}
		}
		if ran.Load() != 20 {
			t.Errorf("start %d: %d units ran in all, want each once", start+1, ran.Load())
		}
		dir.Close()
	}
}

func TestErrorNamesTheUnitAndKeepsTheRest(t *testing.T) {
	path := t.TempDir()
	var ran atomic.Int32
	dir := open(t, path)
	var stderr bytes.Buffer
	_, err := units.Run(t.Context(), dir, &stderr, squares(8, &ran, 5))
	if err == nil || err.Error() != "unit 5: no square" {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(stderr.String(), "-out") {
		t.Error("a failure is no interruption, but the output says how to go on")
	}
	dir.Close()

	before := ran.Load()
	got, err := units.Run(t.Context(), open(t, path), io.Discard, squares(8, &ran, -1))
	if err != nil || got[5] != 25 || got[0] != 0 || got[7] != 49 {
		t.Fatalf("second start: %v, %v", got, err)
	}
	if ran.Load() != 8 || before < 5 {
		t.Errorf("%d units ran before the failure and %d in all; want at least 5 and 8", before, ran.Load())
	}
}

func TestNoUnits(t *testing.T) {
	var stderr bytes.Buffer
	if got, err := units.Run(t.Context(), open(t, t.TempDir()), &stderr, squares(0, nil, -1)); len(got) > 0 || err != nil || stderr.Len() > 0 {
		t.Errorf("%v, %v, and the progress %q", got, err, &stderr)
	}
}

func TestInterruption(t *testing.T) {
	path := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	list := []units.Unit[int]{{Name: "interrupted", Run: func(ctx context.Context, _ units.Status) (int, error) {
		cancel()
		return 0, ctx.Err()
	}}}
	var stderr bytes.Buffer
	if _, err := units.Run(ctx, open(t, path), &stderr, list); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	if !strings.Contains(stderr.String(), "-out "+path) {
		t.Errorf("the output does not say how to go on:\n%s", stderr.String())
	}
	if !strings.Contains(stderr.String(), "0/1") || strings.Contains(stderr.String(), "1/1") {
		t.Errorf("an interrupted unit counts as done:\n%s", stderr.String())
	}
}

// A unit whose file has gone is not done.
func TestFiles(t *testing.T) {
	path := t.TempDir()
	run := func() error {
		dir := open(t, path)
		defer dir.Close()
		_, err := units.Run(t.Context(), dir, io.Discard, []units.Unit[int]{{Name: "u", Files: []string{"left"}, Run: func(context.Context, units.Status) (int, error) {
			return 1, os.WriteFile(dir.Join("left"), []byte("x"), 0o644)
		}}})
		return err
	}
	for range 2 {
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(path, "left")); err != nil {
		t.Fatal(err)
	}
	if err := run(); err == nil || !strings.Contains(err.Error(), filepath.Join(path, "left")+" is missing") {
		t.Errorf("got %v", err)
	}
}
