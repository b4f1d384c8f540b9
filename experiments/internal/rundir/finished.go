package rundir

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/specmatch/specmatch/experiments/internal/cli"
)

// Finished returns the finished units of a run and of its shares, with the seconds
// that they took. There may be none, and the run may be going on.
func Finished(path string) (map[string]float64, error) {
	seconds := map[string]float64{}
	for _, dir := range append([]string{path}, cli.Shares(path)...) {
		var j journal
		switch err := j.read(filepath.Join(dir, "done.jsonl")); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		}
		for name, e := range j.done {
			seconds[name] = e.Seconds
		}
	}
	return seconds, nil
}
