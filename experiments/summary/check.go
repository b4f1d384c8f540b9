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
	"time"

	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/setting"
)

type check struct {
	on                  bool
	data, sets, methods []string
	cells               int
	draw                uint64
}

func (c *check) Register(f *cli.FlagSet) {
	f.BoolVar(&c.on, "check", false,
		"recompute a random seed of every row of results with the present programs and compare the bits;\n"+
			"if they differ, recompute it with the row's commits, whose bits it must have. The working\n"+
			"directory must be the root of the repository. Rows of transfer on molecules are skipped, except\n"+
			"for those without pre-training")
	cli.Var(f, &c.data, "data", setting.List(setting.Text),
		"`folders` A,B with the data sets for -check; by default it checks only rows of the embedded set")
	cli.Var(f, &c.sets, "sets", setting.List(setting.Text),
		"data `sets` for -check; by default all")
	cli.Var(f, &c.methods, "methods", setting.List(setting.Text),
		"`methods` for -check; by default all")
	cli.Var(f, &c.cells, "cells", setting.Int(0), "`number` of random rows for -check; 0 is all")
	cli.Var(f, &c.draw, "draw", func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) },
		"`seed` for the random rows and seeds of -check; 0 is a new one each time")
}

// again is one seed of a method on a data set, to be recomputed under all its protocols.
type again struct {
	rows []*result // of one experiment, data set, method, settings and code
	seed int
}

// run computes cells again, a line of stdout for each row, and returns an error if one has
// the bits neither of today's code nor of its own.
func (c *check) run(ctx context.Context, outcomes results, stdout, stderr io.Writer) error {
	todo, err := c.drawn(outcomes, stdout)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "summary-check")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	code := &code{dir: dir, built: map[string]error{}, stderr: stderr}
	var older, differ int
	for _, a := range todo {
		tried, found, err := a.compare(ctx, stdout, code, c.place(a.rows[0].Dataset))
		switch {
		case err != nil:
			return fmt.Errorf("-check: %w", err)
		case !found:
			differ++
		case tried > 1:
			older++
		}
	}
	if differ > 0 {
		return fmt.Errorf(
			"%d of %d cells differ from today's code and from the commits that they name, with the "+
				"instruction set %v (results are those of AVX2 or AVX-512)",
			differ,
			len(todo),
			simd.Level(),
		)
	}
	fmt.Fprintf(stdout, "all %d have the same bits, %d of them by older code\n", len(todo), older)
	return nil
}

// drawn returns what to compute, chosen by c.draw, and says what it leaves out.
func (c *check) drawn(outcomes results, stdout io.Writer) ([]again, error) {
	groups := map[string]*again{}
	left := map[string]int{} // rows by the reason
	for _, r := range outcomes {
		named := func(list []string, x string) bool {
			return len(list) == 0 || slices.Contains(list, x)
		}
		if !named(c.sets, r.Dataset) || !named(c.methods, r.Method) {
			continue
		}
		if reason := c.reason(r); reason != "" {
			left[reason]++
			continue
		}
		key := strings.Join(
			append([]string{r.Experiment, r.Dataset, r.Method, r.Code}, r.flags()...), " ",
		)
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
		a.rows = slices.DeleteFunc(a.rows, func(r *result) bool {
			return !slices.Contains(r.Seeds, a.seed)
		})
		todo = append(todo, *a)
	}
	fmt.Fprintf(stdout, "%d of %d cells, drawn by -draw %d\n", len(todo), len(groups), draw)
	return todo, nil
}

// reason says why a row is not computed again, "" if it is.
func (c *check) reason(r *result) string {
	switch {
	case r.Experiment == "transfer" && r.Method != paper.None && r.Dataset != proteins:
		return "of transfer, each after a pre-training on 50,000 molecules"
	case r.Dataset == embedded || c.place(r.Dataset) != "":
		return ""
	case c.data == nil:
		return "of data sets, without -data"
	}
	return "of " + r.Dataset + ", which is not in " + strings.Join(c.data, ", ")
}

// place returns the folder of -data that a set lies in, "" if it is in none.
func (c *check) place(set string) string {
	for _, dir := range c.data {
		for _, end := range []string{".zip", "", ".csv", ".csv.gz", "_edges.csv", "_edges.csv.gz"} {
			if _, err := os.Stat(filepath.Join(dir, set+end)); err == nil {
				return dir
			}
		}
	}
	return ""
}

const (
	embedded = "motifs"       // the set that needs no data
	proteins = "homo_sapiens" // the set of transfer whose pre-training takes minutes
)

// flags are those of a row's run that are not its experiment's defaults, as the pages of
// results have them.
func (r *result) flags() []string {
	switch {
	case r.Experiment == "semisupervised":
		return []string{"-label-rate", r.number}
	case r.Experiment == "transfer":
		epochs := tunedFor(r.Dataset)
		if _, err := strconv.Atoi(r.number); err == nil {
			epochs = r.number
		}
		flags := []string{"-finetune-epochs", epochs}
		if r.Dataset == proteins {
			flags = append(flags, "-domain", "bio", "-corpus", "shs27k", "-epochs", "20")
		}
		return flags
	case r.number == degrees:
		return []string{"-node-features", degrees}
	case strings.HasPrefix(filepath.Base(r.file), "graph-"):
		return []string{"-tau", "0.1"}
	case !r.smaller:
		return nil
	}
	return r.smallerForm()
}

// compare computes the cell by today's code and, as long as a row has other bits, by the
// commits that it names. It prints a line for every row and counts what it has tried.
func (a *again) compare(
	ctx context.Context, stdout io.Writer, code *code, data string,
) (tried int, found bool, err error) {
	verdicts := make([]string, len(a.rows))
	names := make([]string, len(a.rows))
	for _, commit := range append([]string{""}, strings.FieldsFunc(
		a.rows[0].Code, func(c rune) bool { return c == ',' || c == ' ' },
	)...) {
		got, err := a.compute(ctx, code, commit, data)
		if err != nil && (commit == "" || ctx.Err() != nil) {
			return 0, false, err
		}
		for i, r := range a.rows {
			switch x := got[r.Protocol]; {
			case verdicts[i] != "":
			case err != nil:
				names[i] += fmt.Sprintf("; %s: %v", commit, err)
			case math.Float64bits(x) != math.Float64bits(a.stored(r)):
				names[i] += fmt.Sprintf("; %s: %v", cmp.Or(commit, "today's code"), x)
			case commit == "":
				verdicts[i] = "as before"
			default:
				verdicts[i] = fmt.Sprintf("as before, by %s (%s)",
					commit, strings.TrimPrefix(names[i], "; "))
			}
		}
		tried++
		found = !slices.Contains(verdicts, "")
		if found {
			break
		}
	}
	for i, r := range a.rows {
		verdict := cmp.Or(verdicts[i], fmt.Sprintf("in %s differs (%s)",
			r.file, strings.TrimPrefix(names[i], "; ")))
		fmt.Fprintf(stdout, "%s on %s, seed %d, %s: %v %s\n",
			r.Method, r.Dataset, a.seed, r.Protocol, a.stored(r), verdict)
	}
	return tried, found, nil
}

// stored is what results have of a row of the cell.
func (a *again) stored(r *result) float64 {
	return r.PerSeed[slices.Index(r.Seeds, a.seed)]
}

// compute returns what the program has for the cell, by protocol, as [code.program] has it.
func (a *again) compute(
	ctx context.Context, code *code, commit, data string,
) (map[string]float64, error) {
	r := a.rows[0]
	program, err := code.program(ctx, commit, r.Experiment)
	if err != nil {
		return nil, err
	}
	out, err := os.MkdirTemp(code.dir, "run")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(out)
	args := append(
		[]string{"-method", r.Method, "-first-seed", strconv.Itoa(a.seed), "-seeds", "1", "-out", out},
		r.flags()...,
	)
	if r.Dataset != embedded {
		args = append(args, "-dataset", r.Dataset, "-data", data)
	}
	if r.Experiment == "unsupervised" || r.Experiment == "kernels" {
		var protocols []string
		for _, r := range a.rows {
			protocols = append(protocols, r.Protocol)
		}
		args = append(args, "-protocol", strings.Join(protocols, ","))
	}
	fmt.Fprintf(code.stderr, "%s on %s, seed %d, by %s\n",
		r.Method, r.Dataset, a.seed, cmp.Or(commit, "today's code"))
	if err := code.run(ctx, ".", program, args...); err != nil {
		return nil, err
	}
	var list []run.Row
	written, err := os.ReadFile(filepath.Join(out, "results.json"))
	if err == nil {
		err = json.Unmarshal(written, &list)
	}
	found := map[string]float64{}
	for _, x := range list {
		if len(x.PerSeed) == 1 {
			found[x.Protocol] = x.PerSeed[0]
		}
	}
	for _, r := range a.rows {
		if _, ok := found[r.Protocol]; err == nil && !ok {
			err = fmt.Errorf("%s %s: no result under %s",
				r.Experiment, strings.Join(args, " "), r.Protocol)
		}
	}
	return found, err
}

// code has the programs of experiments as they are now and as commits have them.
type code struct {
	dir    string           // a temporary folder
	built  map[string]error // what came of building a program, by its path
	stderr io.Writer
}

// program returns the path of an experiment's program as a commit has it, or the working
// directory for "".
func (c *code) program(ctx context.Context, commit, experiment string) (path string, err error) {
	bin := filepath.Join(c.dir, "bin"+commit)
	source := "."
	path = filepath.Join(bin, experiment)
	if err, tried := c.built[path]; tried {
		return path, err
	}
	if commit != "" {
		// A clone, and not a worktree, which the repository would know of if this program was killed.
		source = filepath.Join(c.dir, "source"+commit)
		defer os.RemoveAll(source)
		err = c.run(ctx, ".", "git", "clone", "--quiet", "--shared", "--no-checkout", ".", source)
		if err == nil {
			err = c.run(ctx, source, "git", "checkout", "--quiet", commit)
		}
	}
	if err == nil {
		err = c.run(ctx, source, "go", "build", "-o", bin+string(filepath.Separator),
			"./experiments/"+experiment)
	}
	c.built[path] = err
	return path, err
}

// run runs a program in a folder. If it fails the error has the end of what it wrote.
func (c *code) run(ctx context.Context, folder, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	// go build leaves it if it is interrupted
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOTMPDIR="+c.dir)
	cmd.WaitDelay = time.Second / 4 // for what go build has started
	text, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return errors.Join(ctx.Err(), fmt.Errorf(
		"%s %s: %w: %s",
		filepath.Base(program), strings.Join(args, " "), err,
		strings.Join(lines[max(0, len(lines)-3):], "; "),
	))
}
