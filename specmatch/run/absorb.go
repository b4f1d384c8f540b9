package run

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/specmatch/specmatch/tensor/files"
)

// Absorb copies the wanted units that d lacks from the run in path: their journal lines, their files
// (as hard links if possible) and their rows of metrics.csv. The other directory does not change.
// unitOf returns the unit with which the rows under a name of metrics.csv are copied.
// Absorb returns an error if the results may not be mixed, see [Open], or if a file is missing or has
// changed.
func (d *Dir) Absorb(path string, wanted func(unit string) bool, unitOf func(row string) string) error {
	units, err := readJournal(filepath.Join(path, "done.jsonl"))
	if err != nil {
		return err
	}
	maps.DeleteFunc(units, func(unit string, _ Record) bool {
		return !wanted(unit) || d.Done(unit)
	})
	if len(units) == 0 {
		return nil
	}
	if d.journal.f == nil { // with -list, d is read-only
		maps.Copy(d.journal.done, units)
		return nil
	}
	if err := d.admit(path); err != nil {
		return err
	}
	columns, rows, err := readMetrics(filepath.Join(path, "metrics.csv"))
	if err != nil {
		return err
	}
	byUnit := map[string][]Epoch{}
	for _, row := range rows {
		unit := unitOf(row.Unit)
		byUnit[unit] = append(byUnit[unit], row)
	}
	for _, unit := range slices.Sorted(maps.Keys(units)) {
		if err := d.absorb(path, units[unit], columns, byUnit[unit]); err != nil {
			return fmt.Errorf("unit %q of %s: %w", unit, path, err)
		}
	}
	return nil
}

// admit returns an error unless results of the run in path may be mixed with those of d. It records
// the builds and machines of that run in config.json.
func (d *Dir) admit(path string) error {
	c, err := readConfig(filepath.Join(path, "config.json"))
	if err == nil {
		err = c.mixes(d.config, d.flags, d.Output.Mixed)
	}
	if err != nil {
		return fmt.Errorf("the run in %s cannot be collected into %s: %w", path, d.Path, err)
	}
	starts := append([]start{c.start}, c.Resumed...)
	current := d.config.last()
	for _, s := range starts {
		a, b := s.Build, current.Build
		switch {
		case d.Output.Mixed:
		case a != b:
			err = fmt.Errorf("it was computed by version %s %s, and this is %s %s",
				a.Version, a.Revision, b.Version, b.Revision)
		case s.Machine.InstructionSet != "" &&
			s.Machine.InstructionSet != current.Machine.InstructionSet:
			err = fmt.Errorf("it was computed with the instruction set %s, and this is %s",
				s.Machine.InstructionSet, current.Machine.InstructionSet)
		}
		if err != nil {
			return fmt.Errorf("the run in %s cannot be collected into %s: %w; -mixed accepts the difference",
				path, d.Path, err)
		}
	}
	maps.Copy(d.config.Inputs, c.Inputs)
	for _, s := range starts {
		if !slices.Contains(d.config.Resumed, s) {
			d.config.Resumed = append(d.config.Resumed, s)
		}
	}
	return files.WriteJSON(d.Join("config.json"), d.config)
}

// absorb copies one unit and its rows; its journal line comes last.
func (d *Dir) absorb(path string, u Record, columns []string, rows []Epoch) error {
	for file, sum := range u.Files {
		if err := intact(path, file, sum); err != nil {
			return err
		}
		source := filepath.Join(path, filepath.FromSlash(file))
		target := d.Join(filepath.FromSlash(file))
		if err := link(source, target); err != nil {
			return err
		}
	}
	for _, row := range rows {
		names := slices.DeleteFunc(slices.Clone(columns), func(name string) bool {
			return row.Values[name] == ""
		})
		if err := d.addRow(row, names); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.append(u)
}

// link makes target a hard link to the file source, or a copy if the file system has no links.
func link(source, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return err
	}
	os.Remove(target) // may be left by an interrupted unit
	if os.Link(source, target) == nil {
		return nil
	}
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	return files.Write(target, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// Seconds returns the time that a finished unit took, with done true. For other units it estimates the
// time: the mean over finished units whose names differ only in numbers after an equals sign, such as
// seed=3, or 0 if there are none.
func (d *Dir) Seconds(unit string) (seconds float64, done bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.journal.done[unit]; ok {
		return e.Seconds, true
	}
	n := 0
	for name, e := range d.journal.done {
		if e.Seconds > 0 && kind(name) == kind(unit) {
			seconds += e.Seconds
			n++
		}
	}
	return seconds / float64(max(n, 1)), false
}

// kind returns a unit's name without the numbers of seeds and folds.
func kind(unit string) string { return numbers.ReplaceAllString(unit, "$1") }

var numbers = regexp.MustCompile(`=[-+]?[0-9]+(/|$)`)
