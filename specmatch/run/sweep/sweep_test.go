package sweep_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/run/sweep"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/tensor/files"
)

func TestMain(m *testing.M) { runtest.Main(m, toy) }

// toy is an experiment whose unit of a seed gives seed·β, fails for β = 13, and waits
// for its end for β = 99.
func toy(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var output run.Output
	var beta float64
	recipe := cli.Recipe{Seeds: 1}
	flags := cli.NewFlagSet("toy", "", "")
	flags.Add(&output)
	flags.Float64Var(&beta, "beta", 0, "")
	recipe.RegisterSeeds(flags)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	dir, err := run.StartHost("toy", flags, nil, recipe, "host", output)
	if err != nil {
		return err
	}
	defer dir.Close()
	var list []run.Unit[float64]
	for seed := range recipe.Seeds {
		list = append(list, run.Unit[float64]{Name: fmt.Sprintf("set/method/seed=%d", seed), Run: func(ctx context.Context, _ backend.Backend, _ run.Status) (float64, error) {
			switch beta {
			case 13:
				return 0, fmt.Errorf("no luck with β = %v", beta)
			case 99:
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return float64(seed) * beta, nil
		}})
	}
	plan := run.NewPlan(dir)
	results := run.Add(plan, list)
	return plan.Run(ctx, stdout, stderr, func() error {
		t := table.New("seed", table.Column{Name: "x"})
		for seed, x := range *results {
			t.Add(fmt.Sprint(seed), table.Number(x, 2))
		}
		return dir.Report(stdout, []run.Row{{Experiment: "toy", Dataset: "set", Method: "method", PerSeed: *results}}, t)
	})
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sweep.txt")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestParseUnicode: letters whose bytes are spaces when they are taken for characters stay in
// their word, and a no-break space ends one; every text ends.
func TestParseUnicode(t *testing.T) {
	s, err := sweep.Parse(file(t, "unsupervised -seeds 1\nrun -data voilà\u00a0-dataset Å\u0085-p 5\u00a0# 5\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"-seeds", "1", "-data=voilà", "-dataset=Å", "-p=5"}
	if len(s.Runs) != 1 || !slices.Equal(s.Runs[0].Args, want) {
		t.Errorf("%+v, want the arguments %q", s.Runs, want)
	}
}

var mutants = flag.Int("mutants", 1000, "damaged files of TestParseAnything")

// TestParseAnything: every text, of pieces or a damaged sweep, ends in little time and memory; what is said about
// it is TestParse's.
func TestParseAnything(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"à", "Å", "\u00a0", "\u2003", "\xa0", "\x85", "\xc3", "'", `"`, "#", " ", "-p", "=", "\n", "run", "grid", "unsupervised"}
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	sound := "unsupervised -seeds 3\n" + strings.Repeat("grid -beta 0.05 1 2 3 4 5 6 7 8 9\n", 3) +
		"run -data \"my sets\"/'#1' -dataset \"it's\" # 'x\n"
	for range *mutants {
		var text strings.Builder
		damaged := []byte(sound)
		for range rng.IntN(10) {
			i := rng.IntN(len(damaged))
			damaged = slices.Replace(damaged, i, i+rng.IntN(2), []byte(pieces[rng.IntN(len(pieces))])...)
		}
		if rng.IntN(2) == 0 {
			text.Write(damaged)
		}
		for range rng.IntN(20) {
			text.WriteString(pieces[rng.IntN(len(pieces))])
		}
		path := file(t, text.String())
		metrics.Read(allocated)
		before := allocated[0].Value.Uint64()
		start := time.Now()
		sweep.Parse(path)
		metrics.Read(allocated)
		if bytes := allocated[0].Value.Uint64() - before; bytes > 1<<30 || time.Since(start) > 2*time.Second {
			t.Errorf("%q: %d bytes of memory, %v", text.String(), bytes, time.Since(start))
		}
	}
}

func TestParse(t *testing.T) {
	s, err := sweep.Parse(file(t, "# what β and p are worth\n\nunsupervised -seeds 3\ngrid -beta 0.05 1 # two\ngrid --dataset A,B C\nrun -beta 2 -p 50 -data a#b\nrun -data \"my sets\"/'#1' -dataset \"it's\" # 'x\nrun -dataset '' -p 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range s.Runs {
		got = append(got, r.Name+": "+strings.Join(r.Args, " "))
	}
	want := []string{
		"beta=0.05+dataset=A_B: -seeds 3 -beta=0.05 -dataset=A,B",
		"beta=0.05+dataset=C: -seeds 3 -beta=0.05 -dataset=C",
		"beta=1+dataset=A_B: -seeds 3 -beta=1 -dataset=A,B",
		"beta=1+dataset=C: -seeds 3 -beta=1 -dataset=C",
		"beta=2+p=50+data=a#b: -seeds 3 -beta=2 -p=50 -data=a#b",
		"data=my_sets_#1+dataset=it's: -seeds 3 -data=my sets/#1 -dataset=it's",
		"dataset=+p=1: -seeds 3 -dataset= -p=1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if s, err := sweep.Parse(file(t, "toy\nrun -beta 2\n")); err != nil || len(s.Runs) != 1 {
		t.Errorf("a list alone: %+v, %v", s, err)
	}
	if s, err := sweep.Parse(file(t, "toy -beta 2\n")); err != nil || len(s.Runs) != 1 || s.Runs[0].Name != "toy" {
		t.Errorf("one run: %+v, %v", s, err)
	}
	for _, c := range []struct{ text, want string }{
		{"# nothing\n", "the file names no experiment"},
		{"toy -data 'my sets\n", `:1: the quote before "my sets" has no end`},
		{"toy\ngird -beta 1\n", `:2: "gird"`},
		{"toy\ngrid -beta\n", ":2: want a flag and its values"},
		{"toy\n\nrun -beta 1 -p\n", ":3: want flags with values"},
		{"toy\nrun beta 1\n", `:2: "beta": want a flag`},
		{"toy -out x\n", ":1: -out is set by the sweep itself"},
		{"toy\ngrid -shard 0/2 1/2\n", ":2: -shard is set by the sweep itself"},
		{"toy\ngrid -beta 1 2\ngrid --beta 3 4\n", ":3: -beta already has a grid"},
		{"toy\nrun -beta 1 -beta 3\n", ":2: -beta is given twice"},
		{"toy\ngrid -beta=1 2\n", `:2: "-beta=1": want a flag and its value`},
		{"toy -h\n", ":1: -h prints help"},
		{"toy\nrun -data a\x1b[2Jb\n", `:2: "a\x1b[2Jb" has control characters`},
		{"toy -data \xff\n", `:1: "\xff" has control characters or is not UTF-8`},
		{"toy\n" + strings.Repeat("grid -beta"+strings.Repeat(" 1", 101)+"\n", 2), ":3: the grid has 10201 runs"},
		{strings.Repeat("# a picture\n", 1<<17), "is it a sweep?"},
		{"toy\ngrid -beta 1 1\n", "two runs have the name beta=1"},
	} {
		if _, err := sweep.Parse(file(t, c.text)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "sweep.txt") {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// Only experiments run, and only what lists units is one.
func TestPrograms(t *testing.T) {
	for _, name := range []string{"rm", "/bin/sh", "../bin/unsupervised", "datasets", "finetune"} {
		s, err := sweep.Parse(file(t, name+" -seeds 2\n"))
		if err != nil {
			t.Fatal(err)
		}
		err = s.Prepare(t.TempDir())
		for _, want := range []string{
			"is no experiment: want one of ablation, admet, kernels",
			"a command of specmatch is written with its program, as in specmatch finetune",
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
	}
	echo, err := exec.LookPath("echo")
	if err != nil {
		t.Skip("no echo here")
	}
	s := &sweep.Sweep{Program: echo, Runs: []sweep.Run{{Name: "a"}}}
	if err := s.Prepare(t.TempDir()); err == nil || !strings.Contains(err.Error(), "which is no unit") {
		t.Errorf("what lists no units: %v", err)
	}
}

// prepared is a sweep of the toy, in a directory.
func prepared(t *testing.T, dir, text string) *sweep.Sweep {
	t.Helper()
	t.Setenv(runtest.AsExperiment, "1")
	s, err := sweep.Parse(file(t, text))
	if err != nil {
		t.Fatal(err)
	}
	if s.Program, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	if err := s.Prepare(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// finished is the status, in words.
func finished(t *testing.T, dir string) string {
	t.Helper()
	s, err := sweep.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	status, err := s.Status()
	if err != nil {
		t.Fatal(err)
	}
	return status.Caption
}

// A sweep leaves the tables of its runs. A run that fails does not end the others, and
// is named; a sweep that has grown goes on.
func TestLocal(t *testing.T) {
	dir := t.TempDir()
	s := prepared(t, dir, "toy -seeds 3\ngrid -beta 2 13 5\n")
	if got := finished(t, dir); got != "toy: 0 of 9 units are finished" {
		t.Errorf("before: %s", got)
	}
	var stderr bytes.Buffer
	err := s.Local(t.Context(), &stderr, 2, s.Tasks(2), s.Gather())
	if err == nil || strings.Count(err.Error(), "beta=13-0-of-2:")+strings.Count(err.Error(), "beta=13-1-of-2:") != 2 || strings.Contains(err.Error(), "beta=2") {
		t.Errorf("two shares fail: %v", err)
	}
	if log, err := os.ReadFile(filepath.Join(dir, "logs", "beta=13-0-of-2.log")); err != nil || !strings.Contains(string(log), "no luck with β = 13") {
		t.Errorf("the log of what failed is %q, %v", log, err)
	}
	if got := finished(t, dir); got != "toy: 6 of 9 units are finished" {
		t.Errorf("after: %s", got)
	}

	if err := (&sweep.Sweep{Program: s.Program}).Prepare(dir); !errors.Is(err, files.ErrLocked) || !strings.Contains(err.Error(), "is the sweep running already?") {
		t.Errorf("two sweeps in one directory: %v", err)
	}
	s.Close()
	s = prepared(t, dir, "toy -seeds 3\ngrid -beta 2 5 7\n")
	if err := s.Local(t.Context(), &stderr, 2, s.Tasks(0), s.Gather()); err != nil {
		t.Fatal(err)
	}
	if got := finished(t, dir); !strings.HasPrefix(got, "toy: 9 of 9 units are finished") {
		t.Errorf("after it has grown: %s", got)
	}
	for _, beta := range []string{"2", "5", "7"} {
		alone := filepath.Join(t.TempDir(), "alone")
		if out, err := exec.Command(s.Program, "-seeds", "3", "-beta", beta, "-out", alone).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		want, err := os.ReadFile(filepath.Join(alone, "tables.md"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "beta="+beta, "tables.md")); err != nil || string(got) != string(want) {
			t.Errorf("β = %s: got\n%s%v, want\n%s", beta, got, err, want)
		}
	}
}

// The units of another experiment's run are not kept, although it has the name and the flags of this one.
func TestOtherExperiment(t *testing.T) {
	dir := t.TempDir()
	before := `{"Experiment":"unsupervised","Runs":[{"Name":"beta=2","Args":["-seeds","2","-beta=2"],"Units":["other"]}]}`
	if err := os.WriteFile(filepath.Join(dir, "sweep.json"), []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	s := prepared(t, dir, "toy -seeds 2\ngrid -beta 2\n")
	if units := s.Runs[0].Units; len(units) != 2 {
		t.Errorf("units %q", units)
	}
}

// A sweep that is interrupted ends what it has started.
func TestInterruption(t *testing.T) {
	dir := t.TempDir()
	s := prepared(t, dir, "toy\nrun -beta 99\n")
	ctx, cancel := context.WithCancel(t.Context())
	log := filepath.Join(dir, "logs", "beta=99-0-of-1.log")
	go func() {
		for ctx.Err() == nil { // until the unit is on its way
			time.Sleep(10 * time.Millisecond)
			if _, err := os.Stat(filepath.Join(dir, "beta=99", "shards", "0-of-1", "log.jsonl")); err == nil {
				time.Sleep(100 * time.Millisecond)
				cancel()
			}
		}
	}()
	var stderr bytes.Buffer
	if err := s.Local(ctx, &stderr, 1, s.Tasks(0), s.Gather()); !errors.Is(err, context.Canceled) || !strings.Contains(stderr.String(), "repeat the command to resume") {
		t.Errorf("%v, %s", err, &stderr)
	}
	if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), "interrupted") {
		t.Errorf("the task has not been interrupted: %s %v", text, err)
	}
}

// TestWaiting: a share that another process has open, such as one that a killed sweep has left, is
// waited for, which a line says and an interruption ends.
func TestWaiting(t *testing.T) {
	dir := t.TempDir()
	s := prepared(t, dir, "toy -seeds 2\n")
	share := filepath.Join(dir, "toy", "shards", "0-of-1")
	if err := os.MkdirAll(share, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, interrupt := range []bool{true, false} {
		unlock, err := files.Lock(share)
		if err != nil || unlock == nil {
			t.Skip("no locks here")
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		read, stderr := io.Pipe()
		go func() {
			defer io.Copy(io.Discard, read)
			var said []byte
			for buffer := make([]byte, 1024); !bytes.Contains(said, []byte(share+": waiting for the process")); {
				n, err := read.Read(buffer)
				if said = append(said, buffer[:n]...); err != nil {
					t.Errorf("not said: %s", said)
					break
				}
			}
			if interrupt {
				cancel()
			} else {
				unlock()
			}
		}()
		err = s.Local(ctx, stderr, 1, s.Tasks(1), s.Gather())
		stderr.Close()
		if interrupt && !errors.Is(err, context.Canceled) || !interrupt && err != nil {
			t.Errorf("interrupted %t: %v", interrupt, err)
		}
		unlock()
	}
	if got := finished(t, dir); !strings.HasPrefix(got, "toy: 2 of 2 units are finished") {
		t.Error(got)
	}
}

// TestTasks: shares divide the units that do not need one another.
func TestTasks(t *testing.T) {
	s := &sweep.Sweep{Runs: []sweep.Run{
		{Name: "a", Units: []string{"x/1", "x/2", "x/1/score", "x/2/score"}},
		{Name: "b", Units: []string{"x/1", "x/10", "x/1/score", "x/10/score", "y"}},
	}}
	for shares, want := range map[int]string{0: "a0/2 a1/2 b0/3 b1/3 b2/3", 1: "a0/1 b0/1", 2: "a0/2 a1/2 b0/2 b1/2"} {
		var got []string
		for _, task := range s.Tasks(shares) {
			got = append(got, fmt.Sprintf("%s%d/%d", task.Run.Name, task.Share, task.N))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%d shares: %s, want %s", shares, got, want)
		}
	}
}
