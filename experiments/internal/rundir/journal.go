package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// journal is done.jsonl: one line {"unit":…,"result":…} per finished unit.
type journal struct {
	f    *os.File
	done map[string]json.RawMessage
}

type entry struct {
	Unit   string          `json:"unit"`
	Result json.RawMessage `json:"result"`
}

func (j *journal) open(path string) (err error) {
	if j.f, err = openLines(path); err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	j.done = map[string]json.RawMessage{}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s:%d: %w", path, number, err)
		}
		if _, dup := j.done[e.Unit]; dup || e.Unit == "" || e.Result == nil {
			return fmt.Errorf("%s:%d: unit %q is empty or stands twice: have two runs shared the directory?", path, number, e.Unit)
		}
		j.done[e.Unit] = e.Result
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

// Do returns the result of a unit: from the journal if it has one, else by run,
// recording what it returns. An error of run is returned and not recorded. The
// unit's checkpoint, if it kept one, is removed when its result is on the disk.
// T must survive JSON; a float64 in it that may not be finite is a [Float].
func Do[T any](d *Dir, unit string, run func() (T, error)) (result T, err error) {
	d.mu.Lock()
	data, ok := d.journal.done[unit]
	d.mu.Unlock()
	if ok {
		if err := json.Unmarshal(data, &result); err != nil {
			return result, fmt.Errorf("%s: unit %q: %w", d.Join("done.jsonl"), unit, err)
		}
		return result, d.forget(unit)
	}
	if result, err = run(); err != nil {
		return result, err
	}
	if err := d.record(unit, result); err != nil {
		return result, err
	}
	return result, d.forget(unit)
}

func (d *Dir) record(unit string, result any) error {
	data, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("rundir: result of unit %q: %w", unit, err)
	}
	line, err := json.Marshal(entry{unit, data})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, dup := d.journal.done[unit]; dup || unit == "" {
		return fmt.Errorf("rundir: unit %q is empty or ran twice", unit)
	}
	// A finished unit's metrics are on the disk before the journal says that
	// it is finished.
	if err := d.metrics.f.Sync(); err != nil {
		return err
	}
	if err := appendWhole(d.journal.f, append(line, '\n')); err != nil {
		return err
	}
	if err := d.journal.f.Sync(); err != nil {
		return err
	}
	d.journal.done[unit] = data
	return nil
}

// openLines opens a file of lines for appending, made if need be. What stands
// behind the last newline is a line that was interrupted, and is cut off.
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

// appendWhole appends data, all of it or, if the disk is full, nothing: what is
// appended next must begin a line.
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

// lastLine returns the offset behind the last newline of f.
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
