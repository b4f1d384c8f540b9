package rundir

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Run is what a run directory holds. Unlike a [Dir] it is not open: the run may be
// going on in another process, or may be of an earlier version.
type Run struct {
	Path       string
	Experiment string
	Flags      map[string]json.RawMessage // by name, without the hyphen
	Seeds      []int
	Inputs     map[string]string // SHA-256 of the files that were read
	Started    time.Time
	Engine     string
	Program    string // its version, in words, at the last start
	Machine    string // in words, at the last start
	Rows       []Row  // of results.json; none before the end of the run
	Metrics    []Epoch
	Columns    []string // of Metrics, in the order of their first appearance
	Units      []Unit   // that are finished, by name
}

// Epoch is a row of metrics.csv.
type Epoch struct {
	Unit   string
	Epoch  int
	Values map[string]string // by column; those that the row has
}

// Unit is a finished unit.
type Unit struct {
	Name    string
	Result  json.RawMessage
	Seconds float64 // that it took; 0 if the run does not say
}

// Read reads a run directory. One without results, metrics or finished units is not an
// error, one without config.json is.
func Read(path string) (*Run, error) {
	c, err := readConfig(filepath.Join(path, "config.json"))
	if err != nil {
		return nil, err
	}
	last := c.last()
	r := &Run{
		Path: path, Experiment: c.Experiment, Flags: c.Flags, Seeds: c.Seeds, Inputs: c.Inputs,
		Started: c.Started, Engine: last.Engine, Program: last.Build.String(), Machine: last.Machine.String(),
	}
	if err := r.readResults(filepath.Join(path, "results.json")); err != nil {
		return nil, err
	}
	if err := r.readMetrics(filepath.Join(path, "metrics.csv")); err != nil {
		return nil, err
	}
	return r, r.readUnits(filepath.Join(path, "done.jsonl"))
}

func (r *Run) readResults(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		if err = json.Unmarshal(data, &r.Rows); err != nil {
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

func (r *Run) readMetrics(path string) error {
	rows, err := readMetrics(path)
	for _, row := range rows {
		e := Epoch{Unit: row.unit, Epoch: row.epoch, Values: map[string]string{}}
		for _, c := range row.columns {
			e.Values[c.Key] = c.Value.String()
			if !slices.Contains(r.Columns, c.Key) {
				r.Columns = append(r.Columns, c.Key)
			}
		}
		r.Metrics = append(r.Metrics, e)
	}
	return err
}

func (r *Run) readUnits(path string) error {
	var j journal
	err := j.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range j.done {
		r.Units = append(r.Units, Unit{e.Unit, e.Result, e.Seconds})
	}
	slices.SortFunc(r.Units, func(a, b Unit) int { return cmp.Compare(a.Name, b.Name) })
	return err
}

// String returns the build in words, as in "v0.1.0 (0123456789ab, changed), go1.26,
// linux/amd64".
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

// String returns the machine in words.
func (m machine) String() string {
	s := []string{cmp.Or(m.CPU, "unknown processor"), fmt.Sprintf("%d of %d cores", m.GOMAXPROCS, m.NumCPU)}
	if m.InstructionSet != "" {
		s = append(s, m.InstructionSet)
	}
	return strings.Join(s, ", ")
}
