package main

import (
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
	number  string // see labelRate
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
			if err != nil || e.IsDir() || filepath.Ext(path) != ".json" || e.Name() == "config.json" {
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

func (outcomes results) add(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var list []run.Row
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("%s: not a results.json: %w", path, err)
	}
	number, err := labelRate(path)
	if err != nil {
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
		key := cell{x.Dataset + variant(x.Experiment, number), x.Method, x.Protocol}
		r := &result{
			Row:     x,
			file:    path,
			number:  number,
			smaller: strings.HasSuffix(path, "-smaller.json"),
		}
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

// labelRate is the share of the labels that the run in a directory had, or else what ends the
// name of a file after a hyphen, without ".json".
func labelRate(path string) (string, error) {
	if saved, err := run.Read(filepath.Dir(path)); err == nil {
		return string(saved.Flags["label-rate"]), nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	base := strings.TrimSuffix(filepath.Base(path), ".json")
	return base[strings.LastIndex(base, "-")+1:], nil
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
