package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Run is the content of a run directory. Unlike a [Dir] it is not open: the run may be active in
// another process, or come from an earlier version.
type Run struct {
	Path       string
	Experiment string
	Flags      map[string]json.RawMessage // by name, without the hyphen
	Seeds      []int
	Inputs     map[string]string // SHA-256 of the files that were read
	Started    time.Time
	Engine     string
	Program    string // version at the last start
	Machine    string // at the last start
	Rows       []Row  // of results.json; none before the end of the run
	Metrics    []Epoch
	Columns    []string // of Metrics, in the order of their first appearance
	Units      []Record // finished units, by name
}

// Read reads a run directory. A missing config.json is an error; missing results, metrics or units
// are not.
func Read(path string) (*Run, error) {
	c, err := readConfig(filepath.Join(path, "config.json"))
	if err != nil {
		return nil, err
	}
	start := c.last()
	r := &Run{
		Path:       path,
		Experiment: c.Experiment,
		Flags:      c.Flags,
		Seeds:      c.Seeds,
		Inputs:     c.Inputs,
		Started:    c.Started,
		Engine:     start.Engine,
		Program:    start.Build.String(),
		Machine:    start.Machine.String(),
	}
	if err := r.readResults(filepath.Join(path, "results.json")); err != nil {
		return nil, err
	}
	r.Columns, r.Metrics, err = readMetrics(filepath.Join(path, "metrics.csv"))
	if err != nil {
		return nil, err
	}
	r.Units, err = Units(path)
	return r, err
}

// Units returns the finished units of a run directory, by name. A missing journal has none.
func Units(path string) (units []Record, err error) {
	done, err := readJournal(filepath.Join(path, "done.jsonl"))
	for _, name := range slices.Sorted(maps.Keys(done)) {
		units = append(units, done[name])
	}
	return units, err
}

func (r *Run) readResults(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r.Rows)
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	for i := range r.Rows { // of an earlier version
		if row := &r.Rows[i]; row.Seeds == nil && len(row.PerSeed) == len(r.Seeds) {
			row.Seeds = r.Seeds
		}
	}
	return err
}

// String formats the build, as in "v0.1.0 (0123456789ab, changed), go1.26, linux/amd64".
func (b build) String() string {
	s := cmp.Or(b.Version, "(devel)")
	if b.Revision != "" {
		s += " (" + b.Revision[:min(12, len(b.Revision))]
		if b.Modified {
			s += ", changed"
		}
		s += ")"
	}
	s += ", " + b.Go + ", " + b.GOOS + "/" + b.GOARCH
	if b.GOAMD64 != "" && b.GOAMD64 != "v1" {
		s += " " + b.GOAMD64
	}
	if b.Tags != "" {
		s += ", tags " + b.Tags
	}
	return s
}

func (m machine) String() string {
	s := []string{
		cmp.Or(m.CPU, "unknown processor"), fmt.Sprintf("%d of %d cores", m.GOMAXPROCS, m.NumCPU),
	}
	if m.InstructionSet != "" {
		s = append(s, m.InstructionSet)
	}
	return strings.Join(s, ", ")
}
