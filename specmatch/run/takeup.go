package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/specmatch/specmatch/specmatch/cli"
)

// takeUp merges the flags of the run in -out, if there is one, of its shards and of the runs of
// -collect, see [cli.FlagSet.Merge].
func (o *Output) takeUp(f *cli.FlagSet, given map[string]bool) error {
	if o.Dir == "" {
		return nil
	}
	runs := append([]string{o.Dir}, Shards(o.Dir)...)
	for _, dir := range o.Collect {
		runs = append(append(runs, dir), Shards(dir)...)
	}
	given = maps.Clone(given)
	merged := false
	for _, dir := range runs {
		found, err := takeUpRun(f, dir, given, merged)
		if err != nil {
			return err
		}
		merged = merged || found
	}
	return nil
}

// takeUpRun merges the flags of the run in one directory, and reports whether there is one.
func takeUpRun(f *cli.FlagSet, dir string, given map[string]bool, merged bool) (found bool, err error) {
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
	if err := f.Merge(dir, run.Flags, given, merged); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if err := f.Compare(run.Flags); err != nil {
		return false, cli.Usagef("the run in %s cannot be resumed: %w; drop the flag, or give a new -out", dir, err)
	}
	return true, nil
}
