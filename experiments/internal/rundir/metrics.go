package rundir

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// metrics is metrics.csv: the columns unit and epoch, then what the first row
// had.
type metrics struct {
	f      *os.File
	path   string
	header []string
	last   map[string]int // unit → its largest epoch in an earlier start
}

func (m *metrics) open(path string) (err error) {
	m.path = path
	if m.f, err = openLines(path); err != nil {
		return err
	}
	rows, err := m.read()
	if err != nil {
		return err
	}
	m.last = map[string]int{}
	for i, row := range rows {
		epoch, err := strconv.Atoi(row[1])
		if err != nil {
			return fmt.Errorf("%s:%d: epoch %q: want a number", path, i+2, row[1])
		}
		m.last[row[0]] = max(epoch, m.last[row[0]])
	}
	return nil
}

// read reads the file: the header into m, and returns the rows.
func (m *metrics) read() ([][]string, error) {
	data, err := os.ReadFile(m.path)
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.path, err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	if m.header = rows[0]; len(m.header) < 2 || m.header[0] != "unit" || m.header[1] != "epoch" {
		return nil, fmt.Errorf("%s:1: columns %q: want unit, epoch, …", m.path, m.header)
	}
	return rows[1:], nil
}

// Metrics appends the row of one epoch of one unit to metrics.csv. The columns
// are those of the first row: a later one may lack some, which leaves cells
// empty, but a column that the first did not have is an error.
//
// A unit that was interrupted and runs again, from its beginning or from a
// checkpoint, says again what it said before: the earlier start's rows of the
// unit from this epoch on are dropped first.
func (d *Dir) Metrics(unit string, epoch int, columns ...slog.Attr) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := &d.metrics
	if last, ok := m.last[unit]; ok {
		delete(m.last, unit)
		if epoch <= last {
			if err := m.drop(unit, epoch); err != nil {
				return err
			}
		}
	}
	header := m.header
	if header == nil {
		header = []string{"unit", "epoch"}
		for _, c := range columns {
			header = append(header, c.Key)
		}
	}
	row := make([]string, len(header))
	row[0], row[1] = unit, strconv.Itoa(epoch)
	seen := map[string]bool{"unit": true, "epoch": true}
	for _, c := range columns {
		i := slices.Index(header, c.Key)
		if i < 0 || seen[c.Key] {
			return fmt.Errorf("rundir: metric %q stands twice or is not a column of the first row (%s)", c.Key, strings.Join(header, ", "))
		}
		seen[c.Key] = true
		row[i] = cell(c.Value.Resolve())
	}
	rows := [][]string{row}
	if m.header == nil {
		rows = [][]string{header, row}
	}
	// One write, so that a reader sees whole rows.
	if err := appendWhole(m.f, encode(rows)); err != nil {
		return err
	}
	m.header = header
	return nil
}

// drop rewrites the file without the unit's rows from epoch on.
func (m *metrics) drop(unit string, epoch int) error {
	rows, err := m.read()
	if err != nil {
		return err
	}
	kept := [][]string{m.header}
	for _, row := range rows {
		if e, _ := strconv.Atoi(row[1]); row[0] != unit || e < epoch { // open has checked the numbers
			kept = append(kept, row)
		}
	}
	if err := WriteFile(m.path, func(w io.Writer) error { _, err := w.Write(encode(kept)); return err }); err != nil {
		return err
	}
	// The name now stands for another file.
	old := m.f
	if m.f, err = openLines(m.path); err != nil {
		m.f = old
		return err
	}
	return old.Close()
}

// encode returns the rows as CSV.
func encode(rows [][]string) []byte {
	var b bytes.Buffer
	csv.NewWriter(&b).WriteAll(rows) // to memory: this cannot fail
	return b.Bytes()
}

// cell formats a value: numbers in full precision, durations as seconds, and
// everything on one line, so that the file is one of lines.
func cell(v slog.Value) string {
	switch v.Kind() {
	case slog.KindFloat64:
		return strconv.FormatFloat(v.Float64(), 'g', -1, 64)
	case slog.KindDuration:
		return strconv.FormatFloat(v.Duration().Seconds(), 'g', -1, 64)
	case slog.KindTime:
		return v.Time().Format(time.RFC3339)
	default:
		return strings.Join(strings.FieldsFunc(v.String(), func(r rune) bool { return r == '\n' || r == '\r' }), " ")
	}
}
