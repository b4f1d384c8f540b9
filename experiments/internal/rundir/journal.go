package rundir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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
)

// journal is done.jsonl: one line per finished unit.
type journal struct {
	f    *os.File
	done map[string]entry
}

// entry is a line: a unit with its result, and what else it left in the directory.
type entry struct {
	Unit    string            `json:"unit"`
	Result  json.RawMessage   `json:"result"`
	Metrics int               `json:"metrics,omitempty"` // rows of metrics.csv under its name, or below: a/b is below a
	Files   map[string]string `json:"files,omitempty"`   // SHA-256 by path in the run directory
	Seconds float64           `json:"seconds,omitempty"` // that the unit took; earlier versions did not say
}

func (j *journal) open(path string) (err error) {
	if j.f, err = openLines(path); err != nil {
		return err
	}
	return j.read(path)
}

func (j *journal) read(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	j.done = map[string]entry{}
	number := 0
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) { // being written, or never finished
			break
		}
		number++
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s:%d: %w", path, number, err)
		}
		if _, dup := j.done[e.Unit]; dup || e.Unit == "" || e.Result == nil {
			return fmt.Errorf("%s:%d: unit %q is empty or listed twice: have two runs shared the directory?", path, number, e.Unit)
		}
		j.done[e.Unit] = e
	}
	return nil
}

// Done reports whether the journal holds the unit.
func (d *Dir) Done(unit string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.journal.done[unit]
	return ok
}

// Do returns the result of a unit: from the journal if it has one, and otherwise
// from run, in which case it is recorded. An error of run is returned and not
// recorded. The unit's checkpoint, if it kept one, is removed when its result is on
// the disk. T must survive JSON; a float64 in it that may not be finite must be a
// [Float].
//
// The files are those that run writes in the directory, such as weights, by their
// paths there. A result in the journal is used only if the files are unchanged, the
// unit's rows are in metrics.csv, and T's method Check() error, if it has one,
// accepts the result; otherwise Do returns an error that says what is missing.
func Do[T any](d *Dir, unit string, run func() (T, error), files ...string) (result T, err error) {
	for i, file := range files {
		files[i] = filepath.ToSlash(file)
	}
	d.mu.Lock()
	e, ok := d.journal.done[unit]
	rows := d.metrics.rows[unit]
	d.mu.Unlock()
	if !ok {
		begin := time.Now()
		if result, err = run(); err != nil {
			return result, err
		}
		if err := d.record(unit, result, files, time.Since(begin)); err != nil {
			return result, err
		}
		return result, d.forget(unit)
	}
	if err := d.whole(e, rows, files); err != nil {
		return result, fmt.Errorf("%w; put it back, or remove the line of unit %q from %s to have it computed again", err, unit, d.Join("done.jsonl"))
	}
	err = json.Unmarshal(e.Result, &result)
	if c, ok := any(&result).(interface{ Check() error }); ok && err == nil {
		err = c.Check()
	}
	if err != nil {
		return result, fmt.Errorf("%s: unit %q: %w; remove its line to have it computed again", d.Join("done.jsonl"), unit, err)
	}
	return result, d.forget(unit)
}

// whole returns an error unless everything that a finished unit wrote is there.
func (d *Dir) whole(e entry, rows int, files []string) error {
	if rows < e.Metrics {
		return fmt.Errorf("%s: %d rows of unit %q, which left %d", d.Join("metrics.csv"), rows, e.Unit, e.Metrics)
	}
	all := slices.Concat(slices.Collect(maps.Keys(e.Files)), files)
	slices.Sort(all)
	for _, file := range slices.Compact(all) {
		if err := intact(d.Path, file, e.Files[file]); err != nil {
			return err
		}
	}
	return nil
}

// intact returns an error if a file in dir is missing or, unless want is empty, has
// another SHA-256 than that.
func intact(dir, file, want string) error {
	path := filepath.Join(dir, filepath.FromSlash(file))
	sum, err := sumFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is missing", path)
	case err != nil:
		return err
	case want != "" && sum != want:
		return fmt.Errorf("%s has changed since the run wrote it: its SHA-256 is %s, and was %s", path, sum, want)
	}
	return nil
}

// sumFile returns the SHA-256 of a file in hexadecimal.
func sumFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// record adds a unit that took so long to the journal.
func (d *Dir) record(unit string, result any, files []string, took time.Duration) error {
	data, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("rundir: result of unit %q: %w", unit, err)
	}
	e := entry{Unit: unit, Result: data, Seconds: took.Round(time.Millisecond).Seconds()}
	for _, file := range files {
		sum, err := sumFile(d.Join(filepath.FromSlash(file)))
		if err != nil {
			return fmt.Errorf("rundir: what unit %q leaves: %w", unit, err)
		}
		if e.Files == nil {
			e.Files = map[string]string{}
		}
		e.Files[file] = sum
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, dup := d.journal.done[unit]; dup || unit == "" {
		return fmt.Errorf("rundir: unit %q is empty or ran twice", unit)
	}
	e.Metrics = d.metrics.rows[unit]
	return d.append(e)
}

// append adds an entry to the journal, on the disk.
func (d *Dir) append(e entry) error {
	line, err := json.Marshal(e)
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
	d.journal.done[e.Unit] = e
	return nil
}

// openLines opens a file of lines for appending, and creates it if there is none.
// Text after the last newline is a line that was interrupted, and is cut off.
func openLines(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	size, err := lastLine(f)
	if err == nil {
		err = f.Truncate(size)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// appendWhole appends all of data or, if the disk is full, nothing, so that whatever
// is appended next begins a line.
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

// lastLine returns the offset just after the last newline of f.
func lastLine(f *os.File) (int64, error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	block := make([]byte, 4096)
	for end > 0 {
		start := max(0, end-int64(len(block)))
		b := block[:end-start]
		if _, err := f.ReadAt(b, start); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}
