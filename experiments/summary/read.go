package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/experiments/internal/rundir"
)

// cell is the results of a method on a set under a protocol.
type cell struct{ set, method, protocol string }

type result struct {
	rundir.Row
	file    string
	smaller bool // a smaller form of the method
}

type results map[cell]result

// read gathers the results in all files. A figure in two files is an error, unless one
// of them is of a smaller form of the method, which gives way.
func read(folders []string) (results, error) {
	all := results{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(path) != ".json" || e.Name() == "config.json" {
				return err
			}
			return all.add(path)
		})
		if err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no results in %s", strings.Join(folders, ", "))
	}
	return all, nil
}

func (all results) add(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var list []rundir.Row
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("%s: not a results.json: %w", path, err)
	}
	base := strings.TrimSuffix(filepath.Base(path), ".json")
	suffix := variant(base[strings.LastIndex(base, "-")+1:])
	for _, x := range list {
		if len(x.PerSeed) == 0 {
			return fmt.Errorf("%s: %s on %s has no seeds", path, x.Method, x.Dataset)
		}
		at, r := cell{x.Dataset + suffix, x.Method, x.Protocol}, result{x, path, strings.HasSuffix(path, "-smaller.json")}
		old, known := all[at]
		switch {
		case known && old.smaller == r.smaller:
			return fmt.Errorf("%s and %s both have %s on %s under %s", old.file, path, at.method, at.set, at.protocol)
		case !known || old.smaller:
			all[at] = r
		}
	}
	return nil
}

// variant is what a number in the name of a file adds to the names of its sets.
func variant(number string) string {
	x, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || x == 0.1:
		return ""
	case x < 1:
		return fmt.Sprintf(", %v %%", 100*x)
	}
	return fmt.Sprintf(", %v epochs", x)
}
