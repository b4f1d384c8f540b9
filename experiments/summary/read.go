package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/specmatch/run"
)

type cell struct{ set, method, protocol string }

type result struct {
	run.Row
	file    string
	number  string // see numberOf and takeFlags
	smaller bool   // a smaller form of the method
	shown   bool   // by a table
}

type results map[cell]*result

// get returns the results of a method on a set, which a table then shows; false if there
// are none.
func (outcomes results) get(set, method, protocol string) (r result, ok bool) {
	found := outcomes[cell{set, method, protocol}]
	if found == nil {
		return r, false
	}
	found.shown = true
	return *found, true
}

// paired returns what two methods have measured on a set with the seeds that both have.
func (outcomes results) paired(set, a, b, protocol string) (x, y []float64) {
	first, _ := outcomes.get(set, a, protocol)
	second, _ := outcomes.get(set, b, protocol)
	return run.Paired(first.Row, second.Row)
}

// read gathers the results in all files. A figure in two files is an error, unless one
// of them is of a smaller form of the method, which gives way.
func read(folders []string) (results, error) {
	outcomes := results{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !hasRows(path) {
				return err
			}
			return outcomes.add(path)
		})
		if err != nil {
			return nil, err
		}
	}
	if len(outcomes) == 0 {
		return nil, fmt.Errorf("no results in %s", strings.Join(folders, ", "))
	}
	return outcomes, nil
}

// hasRows reports whether a file has rows of results: of those of a run, results.json alone.
func hasRows(path string) bool {
	name := filepath.Base(path)
	if filepath.Ext(name) != ".json" || name == "config.json" || name == "sweep.json" {
		return false
	}
	_, err := os.Stat(filepath.Join(filepath.Dir(path), "config.json"))
	return err != nil || name == "results.json"
}

func (outcomes results) add(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var list []run.Row
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("%s: not a results.json: %w", path, err)
	}
	saved, err := run.Read(filepath.Dir(path))
	isRun := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, x := range list {
		if len(x.PerSeed) == 0 {
			return fmt.Errorf("%s: %s on %s has no seeds", path, x.Method, x.Dataset)
		}
		if i := slices.IndexFunc(x.PerSeed, math.IsNaN); i >= 0 {
			return fmt.Errorf("%s: %s on %s under %s has no number for seed %d of %d",
				path, x.Method, x.Dataset, x.Protocol, i+1, len(x.PerSeed))
		}
		if x.Seeds == nil { // of an earlier version: the first ones
			for seed := range x.PerSeed {
				x.Seeds = append(x.Seeds, seed)
			}
		}
		r := &result{
			Row:     x,
			file:    path,
			number:  numberOf(path),
			smaller: strings.HasSuffix(path, "-smaller.json"),
		}
		if isRun {
			r.takeFlags(saved.Flags)
		}
		key := cell{x.Dataset + variant(x.Experiment, r.number), x.Method, x.Protocol}
		switch old := outcomes[key]; {
		case old != nil && old.smaller == r.smaller:
			return fmt.Errorf("%s and %s both have %s on %s under %s",
				old.file, path, key.method, key.set, key.protocol)
		case old == nil || old.smaller:
			outcomes[key] = r
		}
	}
	return nil
}

// unshown says which results no table has shown, with their files.
func (outcomes results) unshown() (lines []string) {
	files := map[string][]string{}
	for key, r := range outcomes {
		if !r.shown {
			files[r.file] = append(files[r.file], fmt.Sprintf("%s on %s under %s",
				key.method, key.set, key.protocol))
		}
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		slices.Sort(files[file])
		lines = append(lines, fmt.Sprintf("no table has a place for what is in %s: %s",
			file, strings.Join(files[file], "; ")))
	}
	return lines
}

// degrees ends the name of a file of runs with -node-features degrees.
const degrees = "degrees"

// numberOf returns what ends the name of a file after a hyphen, without ".json": the share of the labels, a number of
// epochs of fine-tuning, or degrees.
func numberOf(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), ".json")
	return base[strings.LastIndex(base, "-")+1:]
}

// takeFlags sets number and smaller by the flags of the run that made a row.
func (r *result) takeFlags(flags map[string]json.RawMessage) {
	text := func(name string) string { return strings.Trim(string(flags[name]), `"`) }
	r.number = ""
	switch r.Experiment {
	case "semisupervised":
		r.number = text("label-rate")
	case "unsupervised":
		if text("node-features") == degrees {
			r.number = degrees
		}
	case "transfer":
		if epochs := text("finetune-epochs"); epochs != tunedFor(r.Dataset) {
			r.number = epochs
		}
	case "kernels":
		flags := r.smallerForm()
		for k := 0; k < len(flags); k += 2 {
			r.smaller = r.smaller || text(flags[k][1:]) == flags[k+1]
		}
	}
}

// tunedFor returns for how many epochs the tables have a set of transfer fine-tuned.
func tunedFor(set string) string {
	epochs := map[string]string{"tox21": "15", "toxcast": "15", "hiv": "3", "muv": "2", proteins: "8"}
	return cmp.Or(epochs[set], "30")
}

// smallerForm returns the flags of the smaller form of a method, nil if it has none.
func (r *result) smallerForm() []string {
	switch r.Method {
	case "node2vec":
		return []string{"-walks", "1", "-walk-length", "20"}
	case "sub2vec":
		return []string{"-steps", "2000"}
	case "gin":
		epochs := map[string]string{"REDDIT-BINARY": "20", "REDDIT-MULTI-5K": "7"}
		return []string{"-gin-epochs", cmp.Or(epochs[r.Dataset], "50")}
	}
	return nil
}

// variant is what a share of the labels, a number of epochs of fine-tuning, or degrees as
// features of nodes add to the names of sets.
func variant(experiment, number string) string {
	if number == degrees {
		return ", " + degrees
	}
	x, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || x == 0.1:
	case experiment == "semisupervised" && x < 1:
		return fmt.Sprintf(", %v %%", 100*x)
	case experiment == "transfer" && x >= 1:
		return fmt.Sprintf(", %v epochs", x)
	}
	return ""
}
