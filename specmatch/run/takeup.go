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

// takeUp resumes the run in the directory of -out, if there is one, and those of its
// shards and of -collect: flags that are not given get its values, and lists and seeds
// that are given are added to its own.
func (o *Output) takeUp(f *cli.FlagSet, given map[string]bool) error {
	if o.Dir == "" {
		return nil
	}
	runs := append([]string{o.Dir}, Shards(o.Dir)...)
	for _, dir := range o.Collect {
		runs = append(append(runs, dir), Shards(dir)...)
	}
	given = maps.Clone(given)
	taken := false
	for _, dir := range runs {
		found, err := takeUpRun(f, dir, given, taken)
		if err != nil {
			return err
		}
		taken = taken || found
	}
	return nil
}

// takeUpRun is takeUp for the run in one directory; found reports whether there is one.
func takeUpRun(f *cli.FlagSet, dir string, given map[string]bool, taken bool) (found bool, err error) {
	path := filepath.Join(dir, "config.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
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
		return false, cli.Usagef(
			"%s holds a run of experiment %s, not %s; start another with a new -out",
			dir,
			run.Experiment,
			f.Name(),
		)
	}
	if err := f.Merge(dir, run.Flags, given, taken); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if err := f.Compare(run.Flags); err != nil {
		return false, cli.Usagef(
			"the run in %s cannot go on: %w; leave the flag out, or start another run with a new -out",
			dir, err,
		)
	}
	return true, nil
}
