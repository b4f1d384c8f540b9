package run_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/train"
)

// options describes a run as a main would, with flags parsed from args.
func options(t *testing.T, out string, args ...string) run.Options {
	t.Helper()
	data := cli.Data{Datasets: []string{"MUTAG"}}
	loss := runtest.Loss{Methods: []string{"untrained", "graphcl", "infonce", "specmatch"}, Beta: train.Beta{Weight: 1}, Percentile: 80, Tau: 0.2, Kappa: 10}
	recipe := cli.Recipe{Epochs: 20, Batch: 128, LR: 0.01, Seeds: 2}
	engine := cli.Engine{}
	output := run.Output{}
	f := cli.NewFlagSet("unsupervised", "Table 1.", "")
	f.Add(&data, &loss, &recipe, &engine, &output)
	f.Bool("quiet", false, "say less")
	f.Float64("limit", math.NaN(), "a flag without a sensible default")
	if err := f.Parse(args, io.Discard); err != nil {
		t.Fatal(err)
	}
	return run.Options{Experiment: "unsupervised", Datasets: data.Datasets, Flags: f, Seeds: recipe.Seeds, Engine: "cpu/float32", Out: out}
}

func open(t *testing.T, o run.Options) *run.Dir {
	t.Helper()
	d, err := run.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func read(t *testing.T, d *run.Dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(d.Join(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// spoil appends to a file behind the back of the run directory.
func spoil(t *testing.T, d *run.Dir, name, text string) {
	t.Helper()
	f, err := os.OpenFile(d.Join(name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestDefaultDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	synctest.Test(t, func(t *testing.T) { // where it is midnight UTC of 2000-01-01, and stays it
		o := options(t, "")
		for _, tt := range []struct {
			datasets []string
			want     string
		}{
			{nil, "unsupervised-synthetic-"},
			{[]string{"MUTAG", "NCI1"}, "unsupervised-MUTAG+NCI1-"},
			{[]string{"A", "B", "C", "D"}, "unsupervised-4-datasets-"},
			{[]string{"../x y"}, "unsupervised-.._x_y-"},
			{[]string{"../x y"}, "unsupervised-.._x_y-"},
		} {
			o.Datasets = tt.datasets
			d := open(t, o)
			if !strings.HasPrefix(d.Path, filepath.Join("runs", tt.want)) || d.Resumed {
				t.Errorf("%q: got %s, resumed %v; want runs/%s…", tt.datasets, d.Path, d.Resumed, tt.want)
			}
			d.Close()
		}
		found, err := filepath.Glob("runs/unsupervised-.._x_y-*-2")
		if err != nil || len(found) != 1 {
			t.Errorf("two runs in a second: %q, %v", found, err)
		}
	})
}

func TestConfig(t *testing.T) {
	d := open(t, options(t, filepath.Join(t.TempDir(), "deep", "run"), "-beta", "auto:0.2", "-precision", "float64"))
	var c struct {
		Experiment string
		Flags      map[string]any
		Seeds      []int
		Engine     string
		Build      struct{ Go, GOOS, GOARCH string }
		Machine    struct{ NumCPU, GOMAXPROCS int }
		Started    string
	}
	text := read(t, d, "config.json")
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "num_cpu", "NumCPU")), &c); err != nil {
		t.Fatal(err)
	}
	wantFlags := map[string]any{
		"backend": "cpu", "batch": 128., "beta": "auto:0.2", "checkpoint": "20s", "data": "", "dataset": []any{"MUTAG"}, "epochs": 20., "first-seed": 0., "kappa": 10., "limit": "NaN", "lr": 0.01, "mixed": false,
		"method": []any{"untrained", "graphcl", "infonce", "specmatch"}, "collect": nil, "list": false, "out": "", "p": 80., "precision": "float64", "quiet": false, "seeds": 2., "shard": "", "tau": 0.2, "tensorboard": false, "tf32": false, "bf16": false,
	}
	if !reflect.DeepEqual(c.Flags, wantFlags) {
		t.Errorf("flags\n%v, want\n%v", c.Flags, wantFlags)
	}
	if c.Experiment != "unsupervised" || !slices.Equal(c.Seeds, []int{0, 1}) || c.Engine != "cpu/float32" {
		t.Errorf("config %+v", c)
	}
	if c.Build.Go == "" || c.Build.GOOS == "" || c.Build.GOARCH == "" || c.Machine.NumCPU < 1 || c.Machine.GOMAXPROCS < 1 || c.Started == "" {
		t.Errorf("config lacks build or machine: %s", text)
	}
}

func TestUnitsRunOnce(t *testing.T) {
	type result struct {
		Accuracy float64
		Folds    []float64
		AUC      run.Float
	}
	want := result{math.Pi, []float64{1. / 3}, run.Float(math.NaN())}
	o := options(t, t.TempDir())
	ran := 0
	unit := func() (result, error) { ran++; return want, nil }
	for start := range 3 {
		d := open(t, o)
		if d.Resumed != (start > 0) || d.Done("MUTAG/specmatch/seed=0") != (start > 0) {
			t.Errorf("start %d: resumed %v", start, d.Resumed)
		}
		got, err := run.Do(d, "MUTAG/specmatch/seed=0", unit)
		if err != nil || !math.IsNaN(float64(got.AUC)) {
			t.Fatalf("start %d: %v, %v", start, got, err)
		}
		if got.AUC = 0; !reflect.DeepEqual(got, result{want.Accuracy, want.Folds, 0}) {
			t.Errorf("start %d: %v, want %v", start, got, want)
		}
		if want := `{"unit":"MUTAG/specmatch/seed=0","result":{"Accuracy":3.141592653589793,"Folds":[0.3333333333333333],"AUC":null}}` + "\n"; withoutSums(read(t, d, "done.jsonl")) != want {
			t.Errorf("journal\n%s, want\n%s", read(t, d, "done.jsonl"), want)
		}
		d.Close()
	}
	if ran != 1 {
		t.Errorf("the unit ran %d times", ran)
	}
}

func TestUnitErrors(t *testing.T) {
	d := open(t, options(t, t.TempDir()))
	failed := errors.New("diverged")
	if _, err := run.Do(d, "a", func() (int, error) { return 0, failed }); !errors.Is(err, failed) || d.Done("a") {
		t.Errorf("failure: %v, done %v", err, d.Done("a"))
	}
	if _, err := run.Do(d, "b", func() (float64, error) { return math.Inf(1), nil }); err == nil || !strings.Contains(err.Error(), `unit "b"`) {
		t.Errorf("infinite float64: %v", err)
	}
	if _, err := run.Do(d, "c", func() (string, error) { return "x", nil }); err != nil {
		t.Error(err)
	}
	if _, err := run.Do(d, "c", func() (int, error) { return 0, nil }); err == nil || !strings.Contains(err.Error(), `unit "c"`) {
		t.Errorf("result of another type: %v", err)
	}
	if _, err := run.Do(d, "", func() (int, error) { return 0, nil }); err == nil {
		t.Error("a unit without a name was recorded")
	}
	if _, err := run.Do(d, "e", func() (int, error) { return run.Do(d, "e", func() (int, error) { return 1, nil }) }); err == nil {
		t.Error("a unit was recorded twice")
	}
}

// What a finished unit left is there, as it left it, or the next start says what is
// missing and what to do.
func TestWhatUnitsLeave(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(d *run.Dir) error
		want  string // "" is nothing to complain about
	}{
		{"all there", func(*run.Dir) error { return nil }, ""},
		{"no weights", func(d *run.Dir) error { return os.Remove(d.Join("weights", "a")) }, "weights/a is missing"},
		{"a flipped bit", func(d *run.Dir) error { return os.WriteFile(d.Join("weights", "a"), []byte("weighty"), 0o644) }, "weights/a has changed since the run wrote it"},
		{"no metrics", func(d *run.Dir) error { return os.Remove(d.Join("metrics.csv")) }, `metrics.csv: unit "u/a" has 0 rows, but wrote 3`},
		{"no accuracy", func(d *run.Dir) error {
			return errors.Join(dropSums(d), replace(d.Join("done.jsonl"), `{"Accuracy":87.5}`, "{}"))
		}, "accuracy 0 %"},
		{"too much", func(d *run.Dir) error { return errors.Join(dropSums(d), replace(d.Join("done.jsonl"), "87.5", "1234")) }, "accuracy 1234 %"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, t.TempDir())
			d := open(t, o)
			unit := func() (checked, error) {
				return run.Do(d, "u/a", func() (checked, error) {
					err := errors.Join(os.Mkdir(d.Join("weights"), 0o755), os.WriteFile(d.Join("weights", "a"), []byte("weights"), 0o644),
						d.Metrics("u/a", 1), d.Metrics("u/a", 2), d.Metrics("u/a/part", 1), d.Metrics("u/ab", 1))
					return checked{87.5}, err
				}, "weights/a")
			}
			if _, err := unit(); err != nil {
				t.Fatal(err)
			}
			if err := tt.spoil(d); err != nil {
				t.Fatal(err)
			}
			d.Close()
			d = open(t, o)
			got, err := unit()
			switch {
			case tt.want == "" && (err != nil || got.Accuracy != 87.5):
				t.Errorf("got %v, %v", got, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "compute it again")):
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	d := open(t, options(t, t.TempDir()))
	if _, err := run.Do(d, "a", func() (int, error) { return 1, nil }, "weights/a"); err == nil || d.Done("a") {
		t.Errorf("a unit that did not leave its file is done: %v", err)
	}
}

// withoutSums returns a journal as earlier versions wrote it.
func withoutSums(text string) string {
	return regexp.MustCompile(`,"sha256":"[0-9a-f]{64}"`).ReplaceAllString(text, "")
}

// dropSums makes the journal one of an earlier version.
func dropSums(d *run.Dir) error {
	path := d.Join("done.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(path, []byte(withoutSums(string(text))), 0o644),
		replace(d.Join("config.json"), `"checksums": true,`, ""),
	)
}

// TestEditedJournal: a result that was edited is refused, whether or not it may be true.
func TestEditedJournal(t *testing.T) {
	o := options(t, t.TempDir())
	d := open(t, o)
	if _, err := run.Do(d, "u", func() (checked, error) { return checked{87.5}, nil }); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if err := replace(d.Join("done.jsonl"), "87.5", "88.5"); err != nil {
		t.Fatal(err)
	}
	want := `done.jsonl:1: the line of unit "u" was changed after it was written; remove it`
	if _, err := run.Open(o); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := replace(d.Join("done.jsonl"), "88.5", "87.5"); err != nil {
		t.Fatal(err)
	}
	open(t, o).Close()
}

// TestLostChecksum: a record without a checksum is refused in a run of this version, and in a run that an
// earlier version began, behind a record that has one.
func TestLostChecksum(t *testing.T) {
	lost := func(d *run.Dir, line int) {
		t.Helper()
		lines := strings.SplitAfter(read(t, d, "done.jsonl"), "\n")
		lines[line] = withoutSums(lines[line])
		if err := os.WriteFile(d.Join("done.jsonl"), []byte(strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(o run.Options, want string) {
		t.Helper()
		want += " has lost its checksum; remove it to have the unit computed again"
		if _, err := run.Open(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := run.Read(o.Out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("read: %v, want %s", err, want)
		}
	}
	do := func(o run.Options, units ...string) *run.Dir {
		t.Helper()
		d := open(t, o)
		defer d.Close()
		for _, unit := range units {
			if _, err := run.Do(d, unit, func() (int, error) { return 1, nil }); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	for line, unit := range []string{"u", "v"} {
		o := options(t, t.TempDir())
		lost(do(o, "u", "v"), line)
		refused(o, fmt.Sprintf("done.jsonl:%d: the line of unit %q", line+1, unit))
	}
	o := options(t, t.TempDir())
	if err := dropSums(do(o, "u", "v")); err != nil {
		t.Fatal(err)
	}
	d := do(o, "w", "x")
	do(o)
	lost(d, 3)
	refused(o, `done.jsonl:4: the line of unit "x"`)
}

// checked is a result that knows what it can be.
type checked struct{ Accuracy float64 }

func (c *checked) Check() error {
	if c.Accuracy <= 0 || c.Accuracy > 100 {
		return fmt.Errorf("accuracy %v %%", c.Accuracy)
	}
	return nil
}

// replace edits a file behind the back of the run directory.
func replace(path, from, to string) error {
	data, err := os.ReadFile(path)
	if err == nil && !bytes.Contains(data, []byte(from)) {
		err = fmt.Errorf("%s: no %s in it", path, from)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, bytes.Replace(data, []byte(from), []byte(to), 1), 0o644)
}

// TestCheckpoint: a unit keeps its checkpoint until the journal has its result, and
// no longer.
func TestCheckpoint(t *testing.T) {
	o := options(t, t.TempDir())
	d := open(t, o)
	path, err := d.Checkpoint("MUTAG/specmatch/seed=3")
	if err != nil {
		t.Fatal(err)
	}
	there := func() bool {
		_, err := os.Stat(path)
		return err == nil
	}
	unit := func(result any, fail error) error {
		_, err := run.Do(d, "MUTAG/specmatch/seed=3", func() (any, error) {
			return result, errors.Join(os.WriteFile(path, []byte("weights"), 0o644), fail)
		})
		return err
	}
	if err := unit(1, errors.New("no weights on a full disk")); err == nil || !there() {
		t.Errorf("after an error of the unit (%v) its checkpoint is there: %v", err, there())
	}
	if err := unit(math.NaN(), nil); err == nil || !there() {
		t.Errorf("after a result that was not recorded (%v) its checkpoint is there: %v", err, there())
	}
	if err := unit(1, nil); err != nil || there() {
		t.Errorf("%v, and after the result its checkpoint is there: %v", err, there())
	}
	// A crash between the two is made up for.
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d.Close()
	d = open(t, o)
	if err := unit(1, nil); err != nil || there() {
		t.Errorf("%v, and the next start finds a checkpoint: %v", err, there())
	}
}

// A run is taken up with equal flags, with more seeds and methods, and with data
// that have moved; what else differs is refused.
func TestAnotherRun(t *testing.T) {
	out := t.TempDir()
	open(t, options(t, out, "-beta", "1", "-seeds", "2", "-out", out)).Close()
	for _, args := range []string{"-beta 1.0 -out ./elsewhere", "-seeds 3 -data moved", "-seeds 3 -dataset NCI1,MUTAG"} {
		open(t, options(t, out, strings.Fields("-seeds 2 "+args)...)).Close()
	}
	for _, tt := range []struct{ args, want string }{
		{"-beta auto:0.2", `-beta was 1, now it is auto:0.2`},
		{"-quiet", `-quiet was false, now it is true`},
		// The run has grown meanwhile.
		{"-seeds 2", `the seeds were 0 to 2, now they are 0 to 1`},
		{"-dataset NCI1", `-dataset was NCI1,MUTAG, now it is NCI1`},
	} {
		_, err := run.Open(options(t, out, strings.Fields("-seeds 3 -dataset NCI1,MUTAG "+tt.args)...))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), out) {
			t.Errorf("%s: got %v, want %s", tt.args, err, tt.want)
		}
	}
	var c struct {
		Seeds   []int
		Flags   struct{ Dataset []string }
		Resumed []struct{ Engine, Started string }
	}
	runtest.JSON(t, filepath.Join(out, "config.json"), &c)
	if !slices.Equal(c.Seeds, []int{0, 1, 2}) || !slices.Equal(c.Flags.Dataset, []string{"NCI1", "MUTAG"}) || len(c.Resumed) != 3 || c.Resumed[2].Engine == "" || c.Resumed[2].Started == "" {
		t.Errorf("config of the grown run: %+v", c)
	}

	grown := []string{"-seeds", "3", "-dataset", "NCI1,MUTAG"}
	o := options(t, out, grown...)
	o.Experiment = "transfer"
	if _, err := run.Open(o); err == nil || !strings.Contains(err.Error(), "experiment unsupervised, not transfer") {
		t.Errorf("another experiment: %v", err)
	}
	o = options(t, out, grown...)
	o.Flags.Int("new", 1, "a flag that the earlier program did not have")
	if err := o.Flags.Set("new", "2"); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Open(o); err == nil || !strings.Contains(err.Error(), "-new was unknown, now it is 2") {
		t.Errorf("a new flag: %v", err)
	}
	if err := o.Flags.Set("new", "1"); err != nil {
		t.Fatal(err)
	}
	open(t, o).Close() // its default is what the earlier program did
	if _, err := run.Open(options(t, out, grown...)); err == nil || !strings.Contains(err.Error(), "-new was 1, and this version has no such flag") {
		t.Errorf("an unknown flag: %v", err)
	}
}

// Files that were read must stay what they were, those that come with a new data
// set are welcome. What an earlier version read from a pipe has no sum.
func TestInputs(t *testing.T) {
	out := t.TempDir()
	start := func(sums map[string]string) error {
		o := options(t, out)
		for name, sum := range sums {
			o.Flags.Input(name, sum)
		}
		d, err := run.Open(o)
		if err == nil {
			err = d.Close()
		}
		return err
	}
	for _, sums := range []map[string]string{{"MUTAG_A.txt": "aa", "pipe": ""}, {"NCI1_A.txt": "bb", "pipe": "dd"}, {"MUTAG_A.txt": "aa", "NCI1_A.txt": "bb"}} {
		if err := start(sums); err != nil {
			t.Errorf("%v: %v", sums, err)
		}
	}
	err := start(map[string]string{"MUTAG_A.txt": "aa", "NCI1_A.txt": "cc"})
	if want := "NCI1_A.txt has changed: its SHA-256 was bb, now it is cc"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Results of two instruction sets are in one run only if that is asked for.
func TestInstructionSet(t *testing.T) {
	o := options(t, t.TempDir())
	open(t, o).Close()
	run.SetInstructionSet(t, "abacus")
	if _, err := run.Open(o); err == nil || !strings.Contains(err.Error(), "instruction set abacus") && !strings.Contains(err.Error(), "would be with abacus") || !strings.Contains(err.Error(), "-mixed") {
		t.Errorf("another instruction set: %v", err)
	}
	o.Mixed = true
	open(t, o).Close()
	o.Mixed = false
	open(t, o).Close() // which it has seen
	run.SetInstructionSet(t, "slide rule")
	if _, err := run.Open(o); err == nil {
		t.Error("a third instruction set was accepted")
	}

	// A run of a version that did not record it goes on, and has one from then on.
	o = options(t, t.TempDir())
	run.SetInstructionSet(t, "")
	open(t, o).Close()
	run.SetInstructionSet(t, "abacus")
	open(t, o).Close()
	run.SetInstructionSet(t, "slide rule")
	if _, err := run.Open(o); err == nil || !strings.Contains(err.Error(), "instruction set abacus") {
		t.Errorf("a second instruction set: %v", err)
	}
}

// itself is the unit of the rows under its name.
func itself(unit string) string { return unit }

// A run that has seen two instruction sets is not taken into one of the second alone.
func TestAbsorbMixed(t *testing.T) {
	all := func(string) bool { return true }
	for name, c := range map[string]struct {
		sets []string // of the run's starts
		ok   bool
	}{"one": {[]string{"abacus"}, true}, "two": {[]string{"slide rule", "abacus"}, false}, "another": {[]string{"slide rule"}, false}} {
		o := options(t, t.TempDir())
		o.Mixed = true
		for _, set := range c.sets {
			run.SetInstructionSet(t, set)
			d := open(t, o)
			if _, err := run.Do(d, set, func() (int, error) { return 1, nil }); err != nil {
				t.Fatal(err)
			}
			d.Close()
		}
		run.SetInstructionSet(t, "abacus")
		into := open(t, options(t, t.TempDir()))
		if err := into.Absorb(o.Out, all, itself); (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "-mixed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAbsorbOtherBuild: units of another build are not collected without -mixed.
func TestAbsorbOtherBuild(t *testing.T) {
	o := options(t, t.TempDir())
	d := open(t, o)
	if _, err := run.Do(d, "u", func() (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if err := replace(d.Join("config.json"), `"go": "go`, `"go": "older go`); err != nil {
		t.Fatal(err)
	}
	all := func(string) bool { return true }
	err := open(t, options(t, t.TempDir())).Absorb(o.Out, all, itself)
	if err == nil || !strings.Contains(err.Error(), "it was computed by version") || !strings.Contains(err.Error(), "-mixed accepts") {
		t.Errorf("got %v", err)
	}
}

// TestCheckPretrained: weights are taken from a run with the same settings that are as
// it left them, also if it was killed while it wrote its journal.
func TestCheckPretrained(t *testing.T) {
	o := options(t, t.TempDir())
	o.Flags.Input("corpus", "aa")
	d := open(t, o)
	weights := d.Join("weights")
	if _, err := run.Do(d, "a", func() (int, error) { return 1, os.WriteFile(weights, []byte("w"), 0o644) }, "weights"); err != nil {
		t.Fatal(err)
	}
	spoil(t, d, "done.jsonl", `{"unit":"b","res`)
	d.Close()
	check := func(sum string, args ...string) error {
		flags := options(t, "", args...).Flags
		flags.Input("corpus", sum)
		return run.CheckPretrained(d.Path, flags, []string{"kappa"}, []string{weights})
	}
	for _, args := range [][]string{nil, {"-kappa", "3", "-data", "moved", "-seeds", "7"}} {
		if err := check("aa", args...); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
	if err := check("aa", "-tau", "3"); err == nil || !strings.Contains(err.Error(), "-tau was 0.2, now it is 3") {
		t.Errorf("another τ: %v", err)
	}
	if err := check("bb"); err == nil || !strings.Contains(err.Error(), "corpus has changed") {
		t.Errorf("another corpus: %v", err)
	}
	for text, want := range map[string]string{"v": "has changed since the run wrote it", "": "is missing"} {
		err := os.Remove(weights)
		if text != "" {
			err = os.WriteFile(weights, []byte(text), 0o644)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := check("aa"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("weights %q: %v, want %s", text, err, want)
		}
	}
}

func TestNotARunDirectory(t *testing.T) {
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "stdout.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, options(t, out)).Close() // a redirection's file does no harm
	if err := os.Remove(filepath.Join(out, "config.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Open(options(t, out)); err == nil || !strings.Contains(err.Error(), "no config.json") {
		t.Errorf("journal without config: %v", err)
	}
	if err := os.WriteFile(filepath.Join(out, "config.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Open(options(t, out)); err == nil || !strings.Contains(err.Error(), "config.json: unexpected end") {
		t.Errorf("spoilt config: %v", err)
	}
	if _, err := run.Open(options(t, filepath.Join(out, "stdout.txt"))); err == nil {
		t.Error("a file was taken for a directory")
	}
}

func TestSpoiltJournal(t *testing.T) {
	const whole = `{"unit":"a","result":1}` + "\n"
	for _, tt := range []struct{ name, tail, kept, err string }{
		{"half a line", `{"unit":"b","res`, whole, ""},
		{"a line without its end", `{"unit":"b","result":2}`, whole, ""},
		{"half a line, long", `{"unit":"` + strings.Repeat("b", 10000), whole, ""},
		{"zeros after a power cut", "\x00\x00\x00", whole, ""},
		{"a broken line", "{\"unit\":\"b\",\n", "", "done.jsonl:2: unexpected end"},
		{"a broken line, then a good one", "b\n" + `{"unit":"c","result":2}` + "\n", "", "done.jsonl:2: invalid character 'b' looking for beginning of value: the line is damaged; remove it"},
		{"a unit twice", `{"unit":"a","result":2}` + "\n", "", `done.jsonl:2: unit "a" is empty or listed twice`},
		{"no unit", "{}\n", "", `done.jsonl:2: unit "" is empty`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, t.TempDir())
			d := open(t, o)
			if _, err := run.Do(d, "a", func() (int, error) { return 1, nil }); err != nil {
				t.Fatal(err)
			}
			spoil(t, d, "done.jsonl", tt.tail)
			d.Close()
			d, err := run.Open(o)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if got := withoutSums(read(t, d, "done.jsonl")); got != tt.kept {
				t.Errorf("kept %q, want %q", got, tt.kept)
			}
			if _, err := run.Do(d, "b", func() (int, error) { return 3, nil }); err != nil {
				t.Fatal(err)
			}
			if got := withoutSums(read(t, d, "done.jsonl")); got != tt.kept+`{"unit":"b","result":3}`+"\n" {
				t.Errorf("journal %q", got)
			}
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	o := options(t, t.TempDir())
	d := open(t, o)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			unit := fmt.Sprint("unit ", i)
			_, err := run.Do(d, unit, func() (int, error) {
				for epoch := range 5 {
					if err := d.Metrics(unit, epoch, slog.Int("i", i)); err != nil {
						return 0, err
					}
				}
				return i, nil
			})
			if err != nil || !d.Done(unit) {
				t.Errorf("%s: %v", unit, err)
			}
			d.Log.Info("done", "unit", unit)
		})
	}
	wg.Wait()
	d.Close()
	d = open(t, o)
	for i := range 8 {
		got, err := run.Do(d, fmt.Sprint("unit ", i), func() (int, error) { return -1, nil })
		if err != nil || got != i {
			t.Errorf("unit %d: %d, %v", i, got, err)
		}
	}
	if got := strings.Count(read(t, d, "metrics.csv"), "\n"); got != 1+8*5 {
		t.Errorf("%d lines of metrics, want 41", got)
	}
}

func TestLog(t *testing.T) {
	o := options(t, t.TempDir())
	d := open(t, o)
	d.Log.Debug("quiet")
	d.Log.Warn("diverged", "loss", math.NaN(), "gradient", math.Inf(-1), "step", 7)
	spoil(t, d, "log.jsonl", `{"half`)
	d.Close()
	d = open(t, o)
	var messages []string
	for line := range strings.Lines(read(t, d, "log.jsonl")) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		messages = append(messages, entry["msg"].(string))
		if loss, ok := entry["loss"]; ok && (loss != nil || entry["gradient"] != nil || entry["step"] != 7.) {
			t.Errorf("log line %s", line)
		}
	}
	if want := []string{"start", "quiet", "diverged", "start"}; !slices.Equal(messages, want) {
		t.Errorf("messages %q, want %q", messages, want)
	}
}

// A run that goes on elsewhere says so.
func TestAnotherMachine(t *testing.T) {
	o := options(t, t.TempDir())
	open(t, o).Close()
	o.Engine = "cpu/float32 of tomorrow"
	d := open(t, o)
	if log := read(t, d, "log.jsonl"); strings.Count(log, "another build or on another machine") != 1 {
		t.Errorf("no warning:\n%s", log)
	}
}

func Example() {
	tmp, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(tmp)
	for range 2 { // the second start takes up the first
		dir, err := run.Open(run.Options{
			Experiment: "unsupervised", Datasets: []string{"MUTAG"}, Flags: cli.NewFlagSet("unsupervised", "", ""), Seeds: 2, Out: tmp,
		})
		if err != nil {
			panic(err)
		}
		for seed := range 2 {
			unit := fmt.Sprintf("MUTAG/specmatch/seed=%d", seed)
			accuracy, err := run.Do(dir, unit, func() (float64, error) {
				fmt.Println("training", unit)
				return 87.5, dir.Metrics(unit, 1, slog.Float64("train/loss", 0.25))
			})
			fmt.Println(accuracy, err)
		}
		dir.Close()
	}
	// Output:
	// training MUTAG/specmatch/seed=0
	// 87.5 <nil>
	// training MUTAG/specmatch/seed=1
	// 87.5 <nil>
	// 87.5 <nil>
	// 87.5 <nil>
}

// TestHalfConfig: a process killed while it wrote the first config.json leaves a file
// that the next start removes, and no other.
func TestHalfConfig(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".config.json.123", ".a.json.1"} {
		if err := os.WriteFile(filepath.Join(out, name), []byte("{"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	open(t, options(t, out)).Close()
	for name, stays := range map[string]bool{".config.json.123": false, ".a.json.1": true} {
		if _, err := os.Stat(filepath.Join(out, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}
