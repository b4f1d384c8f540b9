package run_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run"
)

func openSquares(t *testing.T, path string) *run.Dir {
	t.Helper()
	dir, err := run.Open(run.Options{Experiment: "squares", Flags: cli.NewFlagSet("squares", "", ""), Out: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

// runPlan runs a plan of one stage.
func runPlan[T any](ctx context.Context, dir *run.Dir, stderr io.Writer, list []run.Unit[T]) ([]T, error) {
	plan := run.NewPlan(dir)
	results := run.Add(plan, list)
	err := plan.Run(ctx, io.Discard, stderr, func() error { return nil })
	return *results, err
}

// squares are units that return the square of their number.
func squares(n int, ran *atomic.Int32, failAt int) []run.Unit[int] {
	list := make([]run.Unit[int], n)
	for i := range list {
		list[i] = run.Unit[int]{Name: fmt.Sprint("unit ", i), Run: func(_ context.Context, _ backend.Backend, status run.Status) (int, error) {
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
		dir := openSquares(t, path)
		got, err := runPlan(t.Context(), dir, io.Discard, squares(20, &ran, -1))
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

// TestMetricsAreInOrder: metrics.csv has the rows of one unit after another, whichever ends first.
func TestMetricsAreInOrder(t *testing.T) {
	dir := openSquares(t, t.TempDir())
	var list []run.Unit[int]
	second := make(chan struct{})
	for i := range 2 {
		name := fmt.Sprintf("seed=%d", 9+i) // in the order of the plan, not of the alphabet
		list = append(list, run.Unit[int]{Name: name, Run: func(context.Context, backend.Backend, run.Status) (int, error) {
			if i == 0 {
				<-second
			} else {
				defer close(second)
			}
			err := errors.Join(dir.Metrics(name, 1, slog.Int("loss", i)), dir.Metrics(name+"/fold", 1, slog.Int("loss", i)))
			return i, errors.Join(err, dir.Metrics(name, 2, slog.Int("loss", i)))
		}})
	}
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("one unit at a time")
	}
	if _, err := runPlan(t.Context(), dir, io.Discard, list); err != nil {
		t.Fatal(err)
	}
	want := "unit,epoch,loss\nseed=9,1,0\nseed=9,2,0\nseed=9/fold,1,0\nseed=10,1,1\nseed=10,2,1\nseed=10/fold,1,1\n"
	if got := read(t, dir, "metrics.csv"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if err := dir.Metrics("seed=11", 1, slog.Int("loss", 2)); err != nil { // to the new file
		t.Fatal(err)
	}
	if got := read(t, dir, "metrics.csv"); got != want+"seed=11,1,2\n" {
		t.Errorf("then\n%s", got)
	}
}

func TestErrorNamesTheUnitAndKeepsTheRest(t *testing.T) {
	path := t.TempDir()
	var ran atomic.Int32
	dir := openSquares(t, path)
	var stderr bytes.Buffer
	_, err := runPlan(t.Context(), dir, &stderr, squares(8, &ran, 5))
	if err == nil || err.Error() != "unit 5: no square" {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(stderr.String(), "-out") {
		t.Error("a failure is no interruption, but the output says how to go on")
	}
	dir.Close()

	before := ran.Load()
	got, err := runPlan(t.Context(), openSquares(t, path), io.Discard, squares(8, &ran, -1))
	if err != nil || got[5] != 25 || got[0] != 0 || got[7] != 49 {
		t.Fatalf("second start: %v, %v", got, err)
	}
	if ran.Load() != 8 || before < 5 {
		t.Errorf("%d units ran before the failure and %d in all; want at least 5 and 8", before, ran.Load())
	}
}

func TestNoUnits(t *testing.T) {
	var stderr bytes.Buffer
	if got, err := runPlan(t.Context(), openSquares(t, t.TempDir()), &stderr, squares(0, nil, -1)); len(got) > 0 || err != nil || stderr.Len() > 0 {
		t.Errorf("%v, %v, and the progress %q", got, err, &stderr)
	}
}

func TestInterruption(t *testing.T) {
	path := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	list := []run.Unit[int]{{Name: "interrupted", Run: func(ctx context.Context, _ backend.Backend, _ run.Status) (int, error) {
		cancel()
		return 0, ctx.Err()
	}}}
	var stderr bytes.Buffer
	if _, err := runPlan(ctx, openSquares(t, path), &stderr, list); !errors.Is(err, context.Canceled) {
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
	start := func() error {
		dir := openSquares(t, path)
		defer dir.Close()
		_, err := runPlan(t.Context(), dir, io.Discard, []run.Unit[int]{{Name: "u", Files: []string{"left"}, Run: func(context.Context, backend.Backend, run.Status) (int, error) {
			return 1, os.WriteFile(dir.Join("left"), []byte("x"), 0o644)
		}}})
		return err
	}
	for range 2 {
		if err := start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(path, "left")); err != nil {
		t.Fatal(err)
	}
	if err := start(); err == nil || !strings.Contains(err.Error(), filepath.Join(path, "left")+" is missing") {
		t.Errorf("got %v", err)
	}
}

// chain starts an experiment of two stages with flags: n units that leave a file with
// their number, and one after each that adds 1 to what is in the file; all have a row of
// metrics. It returns the report and what the second stage ran.
func chain(t *testing.T, n int, args ...string) (report string, ran []string, stdout string, err error) {
	t.Helper()
	var output run.Output
	recipe := cli.Recipe{Seeds: n}
	flags := cli.NewFlagSet("chain", "", "")
	flags.Add(&output)
	recipe.RegisterSeeds(flags)
	if err := flags.Parse(args, io.Discard); err != nil {
		return "", nil, "", err
	}
	dir, err := run.StartHost("chain", flags, nil, recipe, "host", output)
	if err != nil {
		return "", nil, "", err
	}
	defer dir.Close()
	var first, second []run.Unit[int]
	var mu sync.Mutex
	for k := range recipe.Seeds {
		name := fmt.Sprintf("seed=%d", recipe.FirstSeed+k)
		file := name + ".txt"
		first = append(first, run.Unit[int]{Name: name, Files: []string{file}, Run: func(context.Context, backend.Backend, run.Status) (int, error) {
			time.Sleep(2 * time.Millisecond) // for -list
			if err := dir.Metrics(name, 1, slog.Int("loss", k)); err != nil {
				return 0, err
			}
			return k, os.WriteFile(dir.Join(file), []byte(strconv.Itoa(k)), 0o644)
		}})
		second = append(second, run.Unit[int]{Name: name + "/more", With: name, Run: func(context.Context, backend.Backend, run.Status) (int, error) {
			mu.Lock()
			ran = append(ran, name)
			mu.Unlock()
			data, err := os.ReadFile(dir.Join(file))
			if err != nil {
				return 0, err
			}
			if err := dir.Metrics(name+"/more", 1, slog.Int("loss", k)); err != nil {
				return 0, err
			}
			x, err := strconv.Atoi(string(data))
			return x + 1, err
		}})
	}
	plan := run.NewPlan(dir)
	a, b := run.Add(plan, first), run.Add(plan, second)
	var out bytes.Buffer
	err = plan.Run(t.Context(), &out, io.Discard, func() error {
		report = fmt.Sprint(*a, *b)
		return nil
	})
	return report, ran, out.String(), err
}

// TestShares: shares run each unit once, in directories of their own, and what follows
// on a unit where its files are; together they leave what one process leaves.
func TestShares(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	for i := range 3 {
		report, ran, text, err := chain(t, 8, "-out", out, "-shard", fmt.Sprintf("%d/3", i))
		if want := []int{3, 3, 2}[i]; err != nil || report != "" || len(ran) != want || !strings.Contains(text, "is finished") {
			t.Fatalf("share %d: ran %v, %q, %v", i, ran, text, err)
		}
	}
	if _, ran, _, err := chain(t, 8, "-out", out, "-shard", "4/5"); err != nil || len(ran) != 0 {
		t.Errorf("another division: ran %v, which other shares have; %v", ran, err)
	}
	for range 2 { // the second time there is nothing to take over
		report, ran, _, err := chain(t, 8, "-out", out)
		if want := "[0 1 2 3 4 5 6 7] [1 2 3 4 5 6 7 8]"; err != nil || report != want || len(ran) > 0 {
			t.Errorf("together: %q, ran %v, %v; want %q", report, ran, err, want)
		}
	}
	data, err := os.ReadFile(filepath.Join(out, "metrics.csv"))
	if err != nil || strings.Count(string(data), "\n") != 17 {
		t.Errorf("metrics %q, %v; want a head and 16 rows", data, err)
	}
}

// TestCollect: runs of other seeds are put together, and what is missing is said so
// that it can be run.
func TestCollect(t *testing.T) {
	root := t.TempDir()
	path := func(name string) string { return filepath.Join(root, name) }
	for _, args := range [][]string{
		{"-out", path("a"), "-seeds", "3"},
		{"-out", path("b"), "-seeds", "5", "-first-seed", "3", "-shard", "0/2"},
	} {
		if _, _, _, err := chain(t, 1, args...); err != nil {
			t.Fatal(err)
		}
	}
	_, ran, _, err := chain(t, 1, "-out", path("c"), "-collect", path("a")+","+path("b"))
	if err == nil || !strings.Contains(err.Error(), "4 of 16 units are missing") || !strings.Contains(err.Error(), "--array=4,6 and -shard auto/8") || len(ran) > 0 {
		t.Fatalf("ran %v, %v", ran, err)
	}
	for _, k := range []string{"4", "6"} {
		if _, ran, _, err := chain(t, 1, "-out", path("c"), "-shard", k+"/8"); err != nil || len(ran) != 1 {
			t.Fatalf("share %s: ran %v, %v", k, ran, err)
		}
	}
	report, ran, _, err := chain(t, 1, "-out", path("c"), "-collect", path("c"))
	if want := "[0 1 2 0 1 2 3 4] [1 2 3 1 2 3 4 5]"; err != nil || report == "" || len(ran) > 0 {
		t.Errorf("%q, ran %v, %v; want %q", report, ran, err, want)
	}
	// A file that has changed since is not taken over.
	if err := os.WriteFile(filepath.Join(path("a"), "seed=1.txt"), []byte("7"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := chain(t, 1, "-out", path("d"), "-collect", path("a")); err == nil || !strings.Contains(err.Error(), "seed=1.txt has changed") {
		t.Errorf("got %v", err)
	}
}

// TestList: units with what they took, and what the like of them took.
func TestList(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	_, _, text, err := chain(t, 2, "-out", out, "-list")
	if err != nil || text != "seed=0\t?\nseed=1\t?\nseed=0/more\t?\nseed=1/more\t?\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("-list made the directory")
	}
	if _, _, _, err := chain(t, 2, "-out", out, "-shard", "1/2"); err != nil {
		t.Fatal(err)
	}
	_, ran, text, err := chain(t, 2, "-out", out, "-list")
	if err != nil || len(ran) > 0 || !strings.Contains(text, "seed=0\tabout 0.0 s\n") || !strings.Contains(text, "seed=1\tdone in 0.0 s\n") {
		t.Errorf("%q, %v", text, err)
	}
}
