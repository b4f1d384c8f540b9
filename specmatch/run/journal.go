package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
)

// journal is done.jsonl: one line per finished unit.
type journal struct {
	f    *os.File
	done map[string]Record
}

// Record is a finished unit: its result, and a summary of its files and metrics.
type Record struct {
	Name   string          `json:"unit"`
	Result json.RawMessage `json:"result"`
	// rows of metrics.csv of the unit and of the units below it (a/b is below a)
	Metrics int               `json:"metrics,omitempty"`
	Files   map[string]string `json:"files,omitempty"`   // SHA-256 by path in the run directory
	Seconds float64           `json:"seconds,omitempty"` // 0 in earlier versions
	// Sum is the SHA-256 of the record without it and Seconds, so that an edited result is noticed.
	// Records of earlier versions have none.
	Sum string `json:"sha256,omitempty"`
}

// sum returns what Sum should be.
func (u Record) sum() (string, error) {
	u.Sum = ""
	u.Seconds = 0
	text, err := json.Marshal(u)
	return fmt.Sprintf("%x", sha256.Sum256(text)), err
}

func (j *journal) open(path string) (err error) {
	j.f, err = openLines(path)
	if err == nil {
		j.done, err = readJournal(path)
	}
	return err
}

// readJournal reads the units of a done.jsonl, by name. The file may be missing, or still grow. Records
// without a checksum are valid in a run that an earlier version began, before the first one that has it.
func readJournal(path string) (map[string]Record, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	done := map[string]Record{}
	number := 0
	summed := false // the record before has a checksum, or all have
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) { // incomplete
			break
		}
		number++
		var u Record
		if err := json.Unmarshal(line, &u); err != nil {
			return nil, fmt.Errorf(
				"%s:%d: %w: the line is damaged; remove it to compute its unit again",
				path, number, err,
			)
		}
		if sum, err := u.sum(); u.Sum != "" && (err != nil || sum != u.Sum) {
			return nil, fmt.Errorf(
				"%s:%d: the line of unit %q was changed after it was written; remove it to have the unit "+
					"computed again",
				path, number, cli.Shorten(u.Name),
			)
		}
		if _, dup := done[u.Name]; dup || u.Name == "" || u.Result == nil {
			return nil, fmt.Errorf(
				"%s:%d: unit %q is empty or listed twice: did two runs use the same directory?",
				path, number, u.Name,
			)
		}
		if u.Sum == "" && number == 1 {
			c, err := readConfig(filepath.Join(filepath.Dir(path), "config.json"))
			if err != nil {
				return nil, err
			}
			summed = c.Checksums
		}
		if u.Sum == "" && summed {
			return nil, fmt.Errorf(
				"%s:%d: the line of unit %q has lost its checksum; remove it to have the unit computed again",
				path, number, cli.Shorten(u.Name),
			)
		}
		summed = u.Sum != ""
		done[u.Name] = u
	}
	return done, nil
}

// Finished returns the seconds of the finished units of a run and its shards, by name. The run may
// still be active.
func Finished(path string) (map[string]float64, error) {
	seconds := map[string]float64{}
	for _, dir := range append([]string{path}, Shards(path)...) {
		done, err := readJournal(filepath.Join(dir, "done.jsonl"))
		if err != nil {
			return nil, err
		}
		for name, u := range done {
			seconds[name] = u.Seconds
		}
	}
	return seconds, nil
}

// Done reports whether the unit is finished.
func (d *Dir) Done(unit string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.journal.done[unit]
	return ok
}

// Do returns the result of a unit from the journal, or else calls run and records its result. An
// error of run is returned, not recorded. Once the result is on disk, Do removes the unit's
// checkpoint. T must survive JSON; a float64 in it that may not be finite must be a [Float].
//
// files lists the paths, in the directory, of the files that run writes, such as weights. Do uses a
// result in the journal only if the files are unchanged, the unit's rows are in metrics.csv, and T's
// method Check() error, if any, accepts the result. Otherwise it returns an error that says what is
// missing.
func Do[T any](d *Dir, unit string, run func() (T, error), files ...string) (result T, err error) {
	if d.Done(unit) {
		err = reuse(d, unit, &result, files)
		return result, err
	}
	begin := time.Now()
	if result, err = run(); err != nil {
		return result, err
	}
	return result, d.finish(unit, result, files, time.Since(begin))
}

// finish records the result of a unit and removes its checkpoint.
func (d *Dir) finish(unit string, result any, files []string, took time.Duration) error {
	if err := d.record(unit, result, files, took); err != nil {
		return err
	}
	return d.forget(unit)
}

// reuse reads the result of a finished unit, and checks it with the unit's files and metrics.
func reuse[T any](d *Dir, unit string, result *T, files []string) error {
	d.mu.Lock()
	u := d.journal.done[unit]
	rows := d.metrics.rows[unit]
	d.mu.Unlock()
	if err := d.whole(u, rows, files); err != nil {
		return fmt.Errorf("%w; restore it, or remove the line of unit %q from %s to compute it again",
			err, unit, d.Join("done.jsonl"))
	}
	err := json.Unmarshal(u.Result, result)
	if c, ok := any(result).(interface{ Check() error }); ok && err == nil {
		err = c.Check()
	}
	if err != nil {
		return fmt.Errorf("%s: unit %q: %w; remove its line to compute it again",
			d.Join("done.jsonl"), unit, err)
	}
	return d.forget(unit)
}

// whole returns an error unless all files and metrics of a finished unit are there.
func (d *Dir) whole(u Record, rows int, files []string) error {
	if rows < u.Metrics {
		return fmt.Errorf("%s: unit %q has %d rows, but wrote %d",
			d.Join("metrics.csv"), u.Name, rows, u.Metrics)
	}
	names := slices.Collect(maps.Keys(u.Files))
	for _, file := range files {
		names = append(names, filepath.ToSlash(file))
	}
	slices.Sort(names)
	for _, file := range slices.Compact(names) {
		if err := intact(d.Path, file, u.Files[file]); err != nil {
			return err
		}
	}
	return nil
}

// intact returns an error if a file in dir is missing, or if its SHA-256 differs from want. An empty
// want matches every file.
func intact(dir, file, want string) error {
	path := filepath.Join(dir, filepath.FromSlash(file))
	sum, err := dataset.SumFile(context.Background(), path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is missing", path)
	case err != nil:
		return err
	case want != "" && sum != want:
		return fmt.Errorf("%s has changed since the run wrote it: its SHA-256 is %s, but was %s",
			path, sum, want)
	}
	return nil
}

func (d *Dir) record(unit string, result any, files []string, took time.Duration) error {
	data, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("run: result of unit %q: %w", unit, err)
	}
	u := Record{Name: unit, Result: data, Seconds: took.Round(time.Millisecond).Seconds()}
	for _, file := range files {
		file = filepath.ToSlash(file)
		sum, err := dataset.SumFile(context.Background(), d.Join(filepath.FromSlash(file)))
		if err != nil {
			return fmt.Errorf("run: output of unit %q: %w", unit, err)
		}
		if u.Files == nil {
			u.Files = map[string]string{}
		}
		u.Files[file] = sum
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, dup := d.journal.done[unit]; dup || unit == "" {
		return fmt.Errorf("run: unit %q is empty or ran twice", unit)
	}
	u.Metrics = d.metrics.rows[unit]
	return d.append(u)
}

func (d *Dir) append(u Record) error {
	sum, err := u.sum()
	if err != nil {
		return err
	}
	u.Sum = sum
	line, err := json.Marshal(u)
	if err != nil {
		return err
	}
	// A finished unit's metrics must be on the disk before the journal says that it
	// is finished.
	if err := d.metrics.f.Sync(); err != nil {
		return err
	}
	if err := appendWhole(d.journal.f, append(line, '\n')); err != nil {
		return err
	}
	if err := d.journal.f.Sync(); err != nil {
		return err
	}
	d.journal.done[u.Name] = u
	return nil
}

// openLines opens a file of lines for appending, and creates it if there is none. It cuts off an
// incomplete last line.
func openLines(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	if err == nil {
		err = f.Truncate(int64(bytes.LastIndexByte(data, '\n') + 1))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// appendWhole appends all of data or, if the disk is full, nothing, so that the next append starts on
// a new line.
func appendWhole(f *os.File, data []byte) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Truncate(end))
	}
	return nil
}
