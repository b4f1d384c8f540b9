package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/specmatch/specmatch/specmatch/cli"
)

// takeUp merges the flags of the run in -out, if there is one, of its shards and of the runs of
// -collect, see [cli.FlagSet.Merge].
func (o *Output) takeUp(f *cli.FlagSet, given map[string]bool) error {
	if o.Dir == "" {
		return nil
	}
	for _, dir := range o.Collect {
		if err := checkRun(dir); err != nil {
			return err
		}
	}
	given = maps.Clone(given)
	merged := "" // the first run
	for _, dir := range o.directories() {
		found, err := takeUpRun(f, dir, given, merged)
		if err != nil {
			return err
		}
		if found && merged == "" {
			merged = dir
		}
	}
	return nil
}

// directories returns -out, its shards, and the runs of -collect with theirs. The first may hold no run yet.
func (o *Output) directories() (dirs []string) {
	if o.Dir == "" {
		return nil
	}
	for _, dir := range append([]string{o.Dir}, o.Collect...) {
		dirs = append(append(dirs, dir), Shards(dir)...)
	}
	return dirs
}

// Runs returns the directories of the runs that this start takes up: none if its run is new.
func (o *Output) Runs() []string {
	return slices.DeleteFunc(o.directories(), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "config.json"))
		return err != nil
	})
}

// checkRun returns an error unless a directory of -collect holds a run or shards.
func checkRun(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return cli.Usagef("-collect %s: there is no such run directory", dir)
	}
	_, err := os.Stat(filepath.Join(dir, "config.json"))
	switch {
	case err == nil || len(Shards(dir)) > 0:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return cli.Usagef("-collect: %s holds no run: it has neither a config.json nor shards", dir)
	}
	return fmt.Errorf("-collect: %w", err)
}

// takeUpRun merges the flags of the run in one directory, and reports whether there is one. merged is the directory of
// a run whose flags were merged before; "" is none.
func takeUpRun(f *cli.FlagSet, dir string, given map[string]bool, merged string) (found bool, err error) {
	path := filepath.Join(dir, "config.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || isFile(dir) { // the check of -out says that it is a file
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var run struct {
		Experiment string
		Flags      map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &run); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if run.Experiment != f.Name() {
		return false, cli.Usagef("%s holds a run of experiment %s, not %s; give a new -out",
			dir, cli.Shorten(run.Experiment), f.Name())
	}
	if err := f.Merge(dir, run.Flags, given, merged != ""); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	switch err := f.Compare(run.Flags); {
	case err != nil && merged != "":
		return false, cli.Usagef("the runs in %s and %s differ, and cannot be joined: of %[2]s, %[3]w",
			merged, dir, err)
	case err != nil:
		return false, cli.Usagef("the run in %s cannot be resumed: %w; drop the flag, or give a new -out", dir, err)
	}
	return true, nil
}
