package run_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// started writes the config.json that a run with the flags leaves, and returns its
// directory.
func started(t *testing.T, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	_, f, err := parseSet(args...)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(map[string]any{"experiment": "unsupervised", "flags": f.All()}, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// parseSet is parse, with flags of other types too.
func parseSet(args ...string) (*runtest.Experiment, *cli.FlagSet, error) {
	c, f := runtest.NewExperiment()
	f.Bool("sum", false, "a switch")
	betas := []train.Beta{{Weight: 1}}
	cli.Var(f, &betas, "betas", setting.List(train.ParseBeta), "a list of numbers and words")
	f.Grows("betas", "protocol")
	f.Small("without -dataset", func() bool { return len(c.Data.Datasets) == 0 }, map[string]string{"epochs": "3", "kappa": "8"})
	return c, f, f.Parse(args, io.Discard)
}

// TestTakeUp: -out alone takes up the run with its flags, all of them.
func TestTakeUp(t *testing.T) {
	args := strings.Fields("-dataset MUTAG,NCI1 -data d -method infonce,specmatch -beta auto:0.2 -p 50 -tau 0.5 -epochs 7 -batch 64 -lr 1e-07" +
		" -seeds 3 -first-seed 2 -protocol linear -folds 5 -precision float64 -sum -checkpoint 90s -betas 0.5,auto:0.1")
	dir := started(t, args...)
	_, want, err := parseSet(append(args, "-out", dir)...)
	if err != nil {
		t.Fatal(err)
	}
	c, got, err := parseSet("-out", dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range want.All() {
		if g := got.All()[name]; string(g) != string(v) {
			t.Errorf("-%s is %s, want %s", name, g, v)
		}
	}
	if c.Recipe.LR != 1e-7 || c.Engine.Precision != tensor.Float64 || c.Loss.Beta.Ratio != 0.2 {
		t.Errorf("values %+v", c)
	}
	// Without a run, -out says nothing about other flags.
	if c, _, err := parseSet("-out", t.TempDir(), "-dataset", "MUTAG"); err != nil || c.Recipe.Epochs != 20 {
		t.Errorf("an empty directory: %+v, %v", c, err)
	}
}

// TestSmall: a run of a kind has other defaults, which a flag or a run that is taken
// up overrides.
func TestSmall(t *testing.T) {
	for _, tt := range []struct {
		args   string
		epochs int
		kappa  float64
	}{
		{"", 3, 8}, {"-epochs 20", 20, 8}, {"-dataset MUTAG", 20, 10}, {"-out " + started(t, "-kappa", "10"), 3, 10},
	} {
		c, _, err := parseSet(strings.Fields(tt.args)...)
		if err != nil || c.Recipe.Epochs != tt.epochs || c.Loss.Kappa != tt.kappa {
			t.Errorf("%s: %d epochs, κ = %v, %v; want %d and %v", tt.args, c.Recipe.Epochs, c.Loss.Kappa, err, tt.epochs, tt.kappa)
		}
	}
	f := cli.NewFlagSet("x", "X.", "")
	f.Int("epochs", 20, "`epochs`")
	f.Small("without -dataset", func() bool { return false }, map[string]string{"epochs": "3"})
	var help bytes.Buffer
	if err := f.Parse([]string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "default: 20; without -dataset 3\n") {
		t.Errorf("%v\n%s", err, help.String())
	}
}

// TestGrow: what has results of its own is added, what does not matter changes, and
// all else is refused.
func TestGrow(t *testing.T) {
	dir := started(t, strings.Fields("-dataset MUTAG -data d -method specmatch -epochs 7 -seeds 2 -first-seed 3 -betas auto:0.1 -checkpoint 90s")...)
	for _, tt := range []struct {
		args string
		want map[string]string // flags as JSON
		err  string
	}{
		{args: "-method infonce,specmatch", want: map[string]string{"method": `["specmatch","infonce"]`, "dataset": `["MUTAG"]`}},
		{args: "-dataset NCI1 -data moved", want: map[string]string{"dataset": `["MUTAG","NCI1"]`, "data": `"moved"`}},
		{args: "-betas 1,auto:0.10", want: map[string]string{"betas": `["auto:0.1",1]`}},
		{args: "-protocol linear", want: map[string]string{"protocol": `["rbf","linear"]`}},
		{args: "-seeds 4", want: map[string]string{"seeds": "4", "first-seed": "3"}},
		{args: "-seeds 1", want: map[string]string{"seeds": "2", "first-seed": "3"}},
		{args: "-first-seed 1", want: map[string]string{"seeds": "4", "first-seed": "1"}},
		{args: "-first-seed 0 -seeds 9", want: map[string]string{"seeds": "9", "first-seed": "0"}},
		{args: "-first-seed 5 -seeds 1", want: map[string]string{"seeds": "3", "first-seed": "3"}},
		{args: "-checkpoint 5m -epochs 7", want: map[string]string{"checkpoint": `"5m0s"`, "epochs": "7"}},
		{args: "-mixed", want: map[string]string{"mixed": "true"}},
		{args: "-epochs 20", err: "-epochs was 7, now it is 20; drop the flag, or give a new -out"},
		{args: "-sum", err: "-sum was false, now it is true"},
		{args: "-precision float64", err: "-precision was float32, now it is float64"},
		{args: "-first-seed 6 -seeds 1", err: "want -first-seed 3 -seeds 4 for all"},
		{args: "-first-seed 9223372036854775807 -seeds 2", err: "leaves a gap"},
	} {
		_, f, err := parseSet(append(strings.Fields(tt.args), "-out", dir)...)
		var usage *cli.UsageError
		switch {
		case tt.err != "":
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: got %v, want %s", tt.args, err, tt.err)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.args, err)
		}
		for name, v := range tt.want {
			if got := string(f.All()[name]); got != v {
				t.Errorf("%s: -%s is %s, want %s", tt.args, name, got, v)
			}
		}
	}
	t.Setenv("SPECMATCH_PRECISION", "float64")
	if _, _, err := parseSet("-out", dir); err == nil || !strings.Contains(err.Error(), "-precision was float32") {
		t.Errorf("another engine from the environment: %v", err)
	}
}

// The embedded set has no name that could stand beside others.
func TestGrowSynthetic(t *testing.T) {
	if _, _, err := parseSet("-out", started(t), "-dataset", "MUTAG", "-data", "d"); err == nil || !strings.Contains(err.Error(), "-dataset was none, now it is MUTAG") {
		t.Errorf("got %v", err)
	}
}

func TestTakeUpOfSomethingElse(t *testing.T) {
	for _, tt := range []struct{ config, want string }{
		{`{"experiment":"transfer"}`, "a run of experiment transfer, not unsupervised"},
		{`{`, "config.json: unexpected end"},
		{`{"experiment":"unsupervised","flags":{"method":["magic"]}}`, `config.json: -method "magic": `},
		{`{"experiment":"unsupervised","flags":{"wisdom":3}}`, `-wisdom was 3, and this version has no such flag`},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(tt.config), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := parseSet("-out", dir); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.config, err, tt.want)
		}
	}
}

// Seeds that no int holds, or no memory, are refused.
// TestLongValues: messages cut off what a config.json has, which may be megabytes.
func TestLongValues(t *testing.T) {
	long := strings.Repeat("à", 1<<20)
	for _, config := range []string{
		`{"experiment": "unsupervised", "flags": {"tau": "` + long + `"}}`,
		`{"experiment": "unsupervised", "flags": {"` + "protocol" + `": ["` + long + `"]}}`,
		`{"experiment": "` + long + `", "flags": {}}`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := parseSet("-out", dir, "-tau", "0.5")
		if err == nil || len(err.Error()) > 4000 || !strings.Contains(err.Error(), "bytes)") {
			t.Errorf("%.60s: %.3000v", config, err)
		}
	}
}

func TestManySeeds(t *testing.T) {
	for _, args := range []string{"-first-seed 9223372036854775807 -seeds 2", "-seeds 1000000", "-seeds 9223372036854775807 -first-seed 1"} {
		_, _, err := runtest.ParseExperiment(strings.Fields(args)...)
		if flag, _, _ := strings.Cut(args, " "); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if c, _, err := runtest.ParseExperiment("-first-seed", fmt.Sprint(9223372036854775807-5)); err != nil || c.Recipe.Seeds != 5 {
		t.Errorf("the last seeds of all: %v", err)
	}
}

func TestInputSums(t *testing.T) {
	f := cli.NewFlagSet("x", "X.", "")
	f.Input("b", "2")
	f.Input("a", "1")
	var names []string
	for name := range f.Inputs() {
		names = append(names, name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("inputs %v", f.Inputs())
	}
}
