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

	"github.com/specmatch/specmatch/internal/files"
)

// metrics is metrics.csv: the columns unit and epoch, then those of the rows, in the
// order of their first appearance.
type metrics struct {
	f      *os.File
	path   string
	header []string
	last   map[string]int // unit → its largest epoch in an earlier start
	rows   map[string]int // unit → rows under its name, or below: a/b is below a
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
	m.last, m.rows = map[string]int{}, map[string]int{}
	for i, row := range rows {
		epoch, err := strconv.Atoi(row[1])
		if err != nil {
			return fmt.Errorf("%s:%d: epoch %q: want a number", path, i+2, row[1])
		}
		m.last[row[0]] = max(epoch, m.last[row[0]])
		m.count(row[0], 1)
	}
	return nil
}

// count adds n to the rows of a unit and of those that it is below.
func (m *metrics) count(unit string, n int) {
	for {
		m.rows[unit] += n
		slash := strings.LastIndexByte(unit, '/')
		if slash < 0 {
			return
		}
		unit = unit[:slash]
	}
}

// read reads the file, up to its last whole line: the header into m, and returns the
// rows.
func (m *metrics) read() ([][]string, error) {
	data, err := os.ReadFile(m.path)
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(bytes.NewReader(data[:bytes.LastIndexByte(data, '\n')+1])).ReadAll()
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

// Metrics appends the row of one epoch of one unit to metrics.csv. A row that lacks
// a column has an empty cell there, and one with a new column widens the file.
//
// A unit that was interrupted and runs again, from its beginning or from a
// checkpoint, repeats epochs: the earlier start's rows of the unit from this epoch
// on are dropped first.
func (d *Dir) Metrics(unit string, epoch int, columns ...slog.Attr) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := &d.metrics
	header := slices.Clone(m.header)
	if header == nil {
		header = []string{"unit", "epoch"}
	}
	row := []string{unit, strconv.Itoa(epoch)}
	seen := map[string]bool{"unit": true, "epoch": true}
	for _, c := range columns {
		if seen[c.Key] {
			return fmt.Errorf("rundir: metric %q is given twice", c.Key)
		}
		seen[c.Key] = true
		i := slices.Index(header, c.Key)
		if i < 0 {
			i = len(header)
			header = append(header, c.Key)
		}
		row = append(row, make([]string, max(0, i+1-len(row)))...)
		row[i] = cell(c.Value.Resolve())
	}
	row = append(row, make([]string, len(header)-len(row))...)

	last, again := m.last[unit]
	delete(m.last, unit)
	if again = again && epoch <= last; again || m.header != nil && len(header) > len(m.header) {
		if err := m.rewrite(header, func(u string, e int) bool { return !again || u != unit || e < epoch }); err != nil {
			return err
		}
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
	m.count(unit, 1)
	switch {
	case !d.Output.TensorBoard:
		return nil
	case again:
		return d.board(unit)
	}
	return d.boardRow(row)
}

// rewrite replaces the file by one with the columns of header, which begins with
// those that the file has, and the rows that keep chooses.
func (m *metrics) rewrite(header []string, keep func(unit string, epoch int) bool) error {
	rows, err := m.read()
	if err != nil {
		return err
	}
	kept := [][]string{header}
	dropped := map[string]int{}
	for _, row := range rows {
		if e, _ := strconv.Atoi(row[1]); keep(row[0], e) { // open has checked the numbers
			kept = append(kept, append(row, make([]string, len(header)-len(row))...))
		} else {
			dropped[row[0]]++
		}
	}
	if err := files.Write(m.path, func(w io.Writer) error { _, err := w.Write(encode(kept)); return err }); err != nil {
		return err
	}
	m.header = header
	for unit, n := range dropped {
		m.count(unit, -n)
	}
	// The name now refers to another file.
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
// everything on one line, because rows are appended and cut off by lines.
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
