package run

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/specmatch/specmatch/tensor/files"
)

// metrics is metrics.csv: the columns unit and epoch, then those of the rows, in the
// order of their first appearance.
type metrics struct {
	f       *os.File
	path    string
	columns []string       // after unit and epoch; nil if there is no header yet
	last    map[string]int // unit → its largest epoch in an earlier start
	rows    map[string]int // unit → rows under its name, or below: a/b is below a
}

// Epoch is a row of metrics.csv.
type Epoch struct {
	Unit   string
	Epoch  int
	Values map[string]string // by column; those that the row has
}

func (m *metrics) open(path string) (err error) {
	m.path = path
	m.f, err = openLines(path)
	if err != nil {
		return err
	}
	columns, rows, err := readMetrics(path)
	m.columns = columns
	m.last = map[string]int{}
	m.rows = map[string]int{}
	for _, row := range rows {
		m.last[row.Unit] = max(row.Epoch, m.last[row.Unit])
		m.count(row.Unit, 1)
	}
	return err
}

// count adds n to the row counts of a unit and of the units above it.
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

// readMetrics reads the complete lines of a metrics.csv, which may be missing, or still grow.
func readMetrics(path string) (columns []string, rows []Epoch, err error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	lines, err := csv.NewReader(bytes.NewReader(data[:bytes.LastIndexByte(data, '\n')+1])).ReadAll()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, cells := range lines {
		if i == 0 {
			if len(cells) < 2 || cells[0] != "unit" || cells[1] != "epoch" {
				return nil, nil, fmt.Errorf("%s:1: columns %q: want unit, epoch, …", path, cells)
			}
			columns = cells[2:]
			continue
		}
		row := Epoch{Unit: cells[0], Values: map[string]string{}}
		row.Epoch, err = strconv.Atoi(cells[1])
		if err != nil {
			return nil, nil, fmt.Errorf("%s:%d: epoch %q: want a number", path, i+1, cells[1])
		}
		for k, cell := range cells[2:] {
			if cell != "" {
				row.Values[columns[k]] = cell
			}
		}
		rows = append(rows, row)
	}
	return columns, rows, nil
}

// Metrics appends the row of one epoch of one unit to metrics.csv. A missing column becomes an empty
// cell, and a new one widens the file.
//
// A resumed unit repeats epochs: Metrics first drops the rows that an earlier start wrote for this
// epoch and later ones.
func (d *Dir) Metrics(unit string, epoch int, columns ...slog.Attr) error {
	row := Epoch{unit, epoch, map[string]string{"unit": "", "epoch": ""}}
	var names []string
	for _, c := range columns {
		if _, dup := row.Values[c.Key]; dup {
			return fmt.Errorf("run: metric %q is given twice", c.Key)
		}
		row.Values[c.Key] = cell(c.Value.Resolve())
		names = append(names, c.Key)
	}
	return d.addRow(row, names)
}

func (d *Dir) addRow(row Epoch, names []string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := &d.metrics
	columns := append([]string{}, m.columns...)
	for _, name := range names {
		if !slices.Contains(columns, name) {
			columns = append(columns, name)
		}
	}
	epoch, again := m.last[row.Unit]
	delete(m.last, row.Unit)
	again = again && row.Epoch <= epoch
	if again || m.columns != nil && len(columns) > len(m.columns) {
		keep := func(r Epoch) bool {
			return !again || r.Unit != row.Unit || r.Epoch < row.Epoch
		}
		if err := m.rewrite(columns, keep); err != nil {
			return err
		}
	}
	// One write, so that a reader sees whole rows.
	if err := appendWhole(m.f, encode(m.columns == nil, columns, row)); err != nil {
		return err
	}
	m.columns = columns
	m.count(row.Unit, 1)
	switch {
	case !d.Output.TensorBoard:
		return nil
	case again:
		return d.board(row.Unit)
	}
	return d.boardRow(row)
}

// sortMetrics puts the rows of metrics.csv in the order of their units' ranks, which does not depend on
// which unit ends first. The rows of a unit keep their order.
func (d *Dir) sortMetrics(rank func(unit string) int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	byRank := func(a, b Epoch) int {
		return cmp.Or(cmp.Compare(rank(a.Unit), rank(b.Unit)), strings.Compare(a.Unit, b.Unit))
	}
	columns, rows, err := readMetrics(d.metrics.path)
	if err != nil || slices.IsSortedFunc(rows, byRank) {
		return err
	}
	slices.SortStableFunc(rows, byRank)
	return d.metrics.replace(columns, rows)
}

// rewrite replaces the file by one with these columns, which extend the present ones, and the rows
// that keep selects.
func (m *metrics) rewrite(columns []string, keep func(row Epoch) bool) error {
	_, rows, err := readMetrics(m.path)
	if err != nil {
		return err
	}
	dropped := map[string]int{}
	rows = slices.DeleteFunc(rows, func(row Epoch) bool {
		drop := !keep(row)
		if drop {
			dropped[row.Unit]++
		}
		return drop
	})
	if err := m.replace(columns, rows); err != nil {
		return err
	}
	for unit, n := range dropped {
		m.count(unit, -n)
	}
	return nil
}

// replace replaces the file by one with these columns and rows.
func (m *metrics) replace(columns []string, rows []Epoch) error {
	err := files.Write(m.path, func(w io.Writer) error {
		_, err := w.Write(encode(true, columns, rows...))
		return err
	})
	if err != nil {
		return err
	}
	m.columns = columns
	// The name now refers to another file.
	old := m.f
	m.f, err = openLines(m.path)
	if err != nil {
		m.f = old
		return err
	}
	return old.Close()
}

// encode returns rows as CSV, after a header on request.
func encode(header bool, columns []string, rows ...Epoch) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b) // to memory: this cannot fail
	if header {
		w.Write(append([]string{"unit", "epoch"}, columns...))
	}
	for _, row := range rows {
		cells := []string{row.Unit, strconv.Itoa(row.Epoch)}
		for _, name := range columns {
			cells = append(cells, row.Values[name])
		}
		w.Write(cells)
	}
	w.Flush()
	return b.Bytes()
}

// cell formats a value on one line: numbers in full precision, durations in seconds.
func cell(v slog.Value) string {
	switch v.Kind() {
	case slog.KindFloat64:
		return strconv.FormatFloat(v.Float64(), 'g', -1, 64)
	case slog.KindDuration:
		return strconv.FormatFloat(v.Duration().Seconds(), 'g', -1, 64)
	case slog.KindTime:
		return v.Time().Format(time.RFC3339)
	default:
		return strings.Join(strings.FieldsFunc(v.String(), func(r rune) bool {
			return r == '\n' || r == '\r'
		}), " ")
	}
}
