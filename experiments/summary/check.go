package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
)

type check struct {
	on            bool
	data          string
	sets, methods []string
	cells         int
	draw          uint64
}

func (c *check) Register(f *cli.FlagSet) {
	f.BoolVar(&c.on, "check", false, "compute one seed of every row of results again, drawn at random, with the programs as they are\nnow, and compare the bits; the working directory is the root of the repository. Rows of transfer are left out:\neach takes a pre-training of hours")
	cli.Var(f, &c.data, "data", cli.Text, "`DIR` with the data sets of the rows to check; without it, those on the embedded set are checked")
	cli.Var(f, &c.sets, "sets", cli.List(cli.Text), "data `sets` whose rows -check takes, all if none is named")
	cli.Var(f, &c.methods, "methods", cli.List(cli.Text), "`methods` whose rows -check takes, all if none is named")
	cli.Var(f, &c.cells, "cells", cli.Int(0), "the `number` of rows that -check draws; 0 is all")
	cli.Var(f, &c.draw, "draw", func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }, "`number` that chooses rows and seeds of -check; 0 is another one each time")
}

// again is one seed of a method on a data set, to be computed again under all protocols
// that have it.
type again struct {
	rows []*result // of one experiment, data set, method and settings
	seed int
}

// run computes cells again, a line of stdout each, and returns an error if one has other bits.
func (c *check) run(ctx context.Context, all results, stdout io.Writer) error {
	todo, err := c.drawn(all, stdout)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "summary-check")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var programs []string
	for _, a := range todo {
		if path := "./experiments/" + a.rows[0].Experiment; !slices.Contains(programs, path) {
			programs = append(programs, path)
		}
	}
	build := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-o", dir + string(filepath.Separator)}, programs)...)
	if text, err := build.CombinedOutput(); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("-check: go build %s: %w: %s", strings.Join(programs, " "), err, text))
	}
	differ := 0
	for i, a := range todo {
		same, err := a.compare(ctx, stdout, dir, filepath.Join(dir, fmt.Sprint("run", i)), c.data)
		if err != nil {
			return err
		}
		if !same {
			differ++
		}
	}
	if differ > 0 {
		return fmt.Errorf("%d of %d cells differ from today's code, with the instruction set %v (results are those of AVX2 or AVX-512)", differ, len(todo), simd.Level())
	}
	fmt.Fprintf(stdout, "all %d have the same bits\n", len(todo))
	return nil
}

// drawn returns what to compute, chosen by c.draw, and says what it leaves out.
func (c *check) drawn(all results, stdout io.Writer) ([]again, error) {
	groups := map[string]*again{}
	left := map[string]int{} // rows by the reason
	for _, r := range all {
		named := func(list []string, x string) bool { return len(list) == 0 || slices.Contains(list, x) }
		if !named(c.sets, r.Dataset) || !named(c.methods, r.Method) {
			continue
		}
		if reason := c.reason(r); reason != "" {
			left[reason]++
			continue
		}
		key := strings.Join(append([]string{r.Experiment, r.Dataset, r.Method}, r.flags()...), " ")
		if groups[key] == nil {
			groups[key] = &again{}
		}
		groups[key].rows = append(groups[key].rows, r)
	}
	for _, reason := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(stdout, "left out: %d rows %s\n", left[reason], reason)
	}
	if len(groups) == 0 {
		return nil, errors.New("-check: there is no row to compute again")
	}
	draw := cmp.Or(c.draw, rand.Uint64())
	rng := rand.New(rand.NewPCG(draw, 0))
	keys := slices.Sorted(maps.Keys(groups))
	if c.cells > 0 {
		rng.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
		keys = keys[:min(c.cells, len(keys))]
	}
	var todo []again
	for _, key := range keys {
		a := groups[key]
		slices.SortFunc(a.rows, func(x, y *result) int {
			return cmp.Or(cmp.Compare(len(x.Seeds), len(y.Seeds)), cmp.Compare(x.Protocol, y.Protocol))
		})
		a.seed = a.rows[0].Seeds[rng.IntN(len(a.rows[0].Seeds))]
		a.rows = slices.DeleteFunc(a.rows, func(r *result) bool { return !slices.Contains(r.Seeds, a.seed) })
		todo = append(todo, *a)
	}
	fmt.Fprintf(stdout, "%d of %d cells, drawn by -draw %d\n", len(todo), len(groups), draw)
	return todo, nil
}

// reason says why a row is not computed again, "" if it is.
func (c *check) reason(r *result) string {
	if r.Experiment == "transfer" {
		return "of transfer, each after a pre-training of hours"
	}
	if r.Dataset == embedded {
		return ""
	}
	if c.data == "" {
		return "of data sets, without -data"
	}
	for _, name := range []string{r.Dataset + ".zip", r.Dataset} {
		if _, err := os.Stat(filepath.Join(c.data, name)); err == nil {
			return ""
		}
	}
	return "of " + r.Dataset + ", which is not in " + c.data
}

// embedded is the name of the set that needs no data.
const embedded = "motifs"

// flags are those of a row's run that are not its experiment's defaults, as the pages of
// results have them.
func (r *result) flags() []string {
	switch {
	case r.Experiment == "semisupervised":
		return []string{"-label-rate", r.number}
	case r.number == degrees:
		return []string{"-node-features", degrees}
	case strings.HasPrefix(filepath.Base(r.file), "graph-"):
		return []string{"-tau", "0.1"}
	case !r.smaller:
		return nil
	case r.Method == "node2vec":
		return []string{"-walks", "1", "-walk-length", "20"}
	case r.Method == "sub2vec":
		return []string{"-steps", "2000"}
	}
	epochs := map[string]string{"REDDIT-BINARY": "20", "REDDIT-MULTI-5K": "7"}
	return []string{"-gin-epochs", cmp.Or(epochs[r.Dataset], "50")}
}

// compare computes the cell in the run directory out, with the program in the folder
// programs, and prints a line for every row.
func (a *again) compare(ctx context.Context, stdout io.Writer, programs, out, data string) (same bool, err error) {
	r := a.rows[0]
	args := append([]string{"-method", r.Method, "-first-seed", strconv.Itoa(a.seed), "-seeds", "1", "-out", out}, r.flags()...)
	if r.Dataset != embedded {
		args = append(args, "-dataset", r.Dataset, "-data", data)
	}
	if r.Experiment == "unsupervised" {
		var protocols []string
		for _, r := range a.rows {
			protocols = append(protocols, r.Protocol)
		}
		args = append(args, "-protocol", strings.Join(protocols, ","))
	}
	text, err := exec.CommandContext(ctx, filepath.Join(programs, r.Experiment), args...).CombinedOutput()
	if err != nil {
		return false, errors.Join(ctx.Err(), fmt.Errorf("-check: %s %s: %w: %s", r.Experiment, strings.Join(args, " "), err, text))
	}
	var list []rundir.Row
	written, err := os.ReadFile(filepath.Join(out, "results.json"))
	if err == nil {
		err = json.Unmarshal(written, &list)
	}
	if err != nil {
		return false, fmt.Errorf("-check: %w", err)
	}
	same = true
	for _, r := range a.rows {
		want, got := r.PerSeed[slices.Index(r.Seeds, a.seed)], math.NaN()
		for _, x := range list {
			if x.Protocol == r.Protocol && len(x.PerSeed) == 1 {
				got = x.PerSeed[0]
			}
		}
		verdict := "as before"
		if math.Float64bits(got) != math.Float64bits(want) {
			same, verdict = false, fmt.Sprintf("but %s has %v, by %s", r.file, want, cmp.Or(r.Code, "code that it does not name"))
		}
		fmt.Fprintf(stdout, "%s on %s, seed %d, %s: %v %s\n", r.Method, r.Dataset, a.seed, r.Protocol, got, verdict)
	}
	return same, nil
}
