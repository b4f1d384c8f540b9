package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/sweep"
)

// checkPath returns an error unless there is a directory.
func checkPath(path string) error {
	const wanted = "want the -out of a run, or a folder with some"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such run directory; %s", path, wanted)
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s: this is a file; %s", path, wanted)
	}
	return err
}

// Read reads the runs in the paths. A path is a run directory, or a folder with run
// directories in it, at any depth, or a link to one. Of a sweep's the runs are read that it has now.
func Read(paths []string) ([]*run.Run, error) {
	var runs []*run.Run
	for _, path := range paths {
		if err := checkPath(path); err != nil {
			return nil, err
		}
		found, err := readBelow(path)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s holds no run: there is no config.json in it or below it", path)
		}
		runs = append(runs, found...)
	}
	return runs, nil
}

// readBelow reads the runs in a folder and below it.
func readBelow(folder string) (runs []*run.Run, err error) {
	root, err := filepath.EvalSymlinks(folder) // since WalkDir does not follow a link
	if err != nil {
		return nil, err
	}
	sweeps := map[string]*sweep.Sweep{} // by their folders
	err = filepath.WalkDir(root, func(dir string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if planned := sweeps[filepath.Dir(dir)]; planned != nil && !planned.Has(filepath.Base(dir)) {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(dir, "config.json")); err != nil {
			sweeps[dir], err = sweep.Open(dir)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		below, err := filepath.Rel(root, dir)
		if err != nil {
			return err
		}
		r, err := run.Read(filepath.Join(folder, below)) // the path that the user knows
		if err != nil {
			return err
		}
		runs = append(runs, r)
		return fs.SkipDir // what is below belongs to the run
	})
	return runs, err
}

type result struct {
	run.Row
	run   int    // its index
	label string // of the method and, where runs differ, of its run
}

// panel is the results that can be compared with one another.
type panel struct {
	experiment, dataset, protocol, metric string
	results                               []result
}

type collection struct {
	runs   []*run.Run
	swept  []string // flags that results depend on and that differ between runs
	labels []string // of the runs, by the flags that they differ in; "" for a single run
	panels []panel
}

// free are flags that results do not depend on, or whose every entry has results of
// its own, and that are therefore no difference between two runs.
var free = []string{
	"out", "data", "checkpoint", "mixed", "tensorboard", "list", "shard", "collect", "pretrained",
	"jobs", "dataset", "method", "protocol", "seeds", "first-seed", "vary", "beta-values",
	"p-values", "kappa-values", "tau-values",
}

func collate(runs []*run.Run, oracle bool) *collection {
	c := &collection{runs: runs}
	for _, s := range settingsOf(runs) { // a flag that a program does not have differs from any value
		flag, ok := strings.CutPrefix(s.name, "-")
		if ok && s.differs() && !slices.Contains(free, flag) && !c.implied(flag) {
			c.swept = append(c.swept, flag)
		}
	}
	for _, r := range runs {
		var parts []string
		for _, flag := range c.swept {
			parts = append(parts, flag+"="+cli.Shorten(show(r.Flags[flag])))
		}
		c.labels = append(c.labels, strings.Join(parts, ", "))
	}
	// Equal labels are told apart by where their runs lie.
	for _, where := range []func(path string) string{filepath.Base, filepath.ToSlash} {
		settings := make([]string, len(runs))
		for i, r := range runs {
			settings[i] = c.labels[i]
			if r.Experiment == finetuning && len(r.Rows) > 0 { // other targets or data sets have other columns
				settings[i] += " " + tunedSet(r)
			}
		}
		for i, setting := range settings {
			if slices.Index(settings, setting) != i || slices.Contains(settings[i+1:], setting) {
				c.labels[i] = strings.TrimPrefix(c.labels[i]+", "+where(runs[i].Path), ", ")
			}
		}
	}
	for i, r := range runs {
		for _, row := range r.Rows {
			row.Dataset = column(r, row)
			p := c.panel(row)
			p.results = append(p.results, result{Row: row, run: i})
		}
	}
	changed := c.changed()
	for i := range c.panels {
		c.panels[i].name(c.labels, changed)
		c.choose(&c.panels[i], oracle)
	}
	return c
}

// column returns the name of a row's data set. That of a fine-tuning has the targets in front, since scores
// of different targets are not comparable.
func column(r *run.Run, row run.Row) string {
	if r.Experiment == finetuning {
		return tunedSet(r)
	}
	return row.Dataset
}

// describing are the flags that describe the data of a fine-tuning.
var describing = []string{"in", "target", "valid", "test", "id", "smiles-column"}

// implied returns whether a flag describes the data of fine-tunings, and has one value for each data set and its
// targets, which the tables name.
func (c *collection) implied(flag string) bool {
	values := map[string]string{}
	for _, r := range c.runs {
		if r.Experiment != finetuning || len(r.Rows) == 0 || !slices.Contains(describing, flag) {
			return false
		}
		set := tunedSet(r)
		value := show(r.Flags[flag])
		if first, ok := values[set]; ok && first != value {
			return false
		}
		values[set] = value
	}
	return true
}

// changed returns the methods of each experiment whose results differ between runs on the same data.
func (c *collection) changed() map[string]bool {
	methods := map[string]bool{}
	for _, p := range c.panels {
		for i, r := range p.results {
			for _, other := range p.results[:i] {
				if r.Method == other.Method && !sameValues(r.PerSeed, other.PerSeed) {
					methods[p.experiment+" "+r.Method] = true
				}
			}
		}
	}
	return methods
}

// sameValues returns whether two lists are equal, NaN for NaN.
func sameValues(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool {
		return x == y || math.IsNaN(x) && math.IsNaN(y)
	})
}

func (c *collection) panel(r run.Row) *panel {
	return findOrAdd(&c.panels, func(p panel) bool {
		return p.experiment == r.Experiment && p.dataset == r.Dataset && p.protocol == r.Protocol &&
			p.metric == r.Metric
	}, panel{
		experiment: r.Experiment,
		dataset:    r.Dataset,
		protocol:   r.Protocol,
		metric:     r.Metric,
	})
}

// findOrAdd returns the first of a list that is wanted; if there is none, fresh becomes
// its last.
func findOrAdd[T any](list *[]T, wanted func(T) bool, fresh T) *T {
	i := slices.IndexFunc(*list, wanted)
	if i < 0 {
		i = len(*list)
		*list = append(*list, fresh)
	}
	return &(*list)[i]
}

// name labels the results. A method that the runs' differences do not touch, because its results are equal in
// all of them, is named without them.
func (p *panel) name(labels []string, changed map[string]bool) {
	for i := range p.results {
		r := &p.results[i]
		r.label = method.Title(r.Method)
		if label := labels[r.run]; label != "" && changed[p.experiment+" "+r.Method] {
			r.label += ", " + label
		}
	}
}

// distinct returns the results without the repetitions of one that is equal in several
// runs.
func (p *panel) distinct() []result {
	var all []result
	for _, r := range p.results {
		if !slices.ContainsFunc(
			all, func(o result) bool { return o.label == r.label && sameValues(o.PerSeed, r.PerSeed) },
		) {
			all = append(all, r)
		}
	}
	return all
}

func find(results []result, name string) (result, bool) {
	for _, by := range []func(r result) string{
		func(r result) string { return r.label },
		func(r result) string { return r.Method },
	} {
		if i := slices.IndexFunc(results, func(r result) bool { return by(r) == name }); i >= 0 {
			return results[i], true
		}
	}
	return result{}, false
}

// show returns a flag's value as the command line would have it, "–" for one that is
// not there. It may be long: tables and labels shorten it.
func show(v json.RawMessage) string {
	if v == nil {
		return "–"
	}
	return cli.Text(v)
}

func number(v json.RawMessage) float64 {
	if x, err := strconv.ParseFloat(show(v), 64); err == nil {
		return x
	}
	return math.NaN()
}
