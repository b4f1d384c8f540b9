// Package tasks reads tables of labels: numbers of many tasks for records, with gaps.
//
// The mental model: a training file has records, such as molecules; a table of labels says what is known
// about them. It has a column of keys, which are the records' ids or SMILES, and one of two forms:
//
//	smiles,CHEMBL203,CHEMBL279     a column a task; an empty field is a gap
//	CCO,1,
//	c1ccccc1O,0,5.2
//
//	smiles,task,value              long form: a row a label
//	CCO,CHEMBL203,1
//	c1ccccc1O,CHEMBL279,5.2
//
// [Read] streams a table and keeps the labels of known records.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
)

// Columns of the long form.
const (
	taskColumn  = "task"
	valueColumn = "value"
)

// MaxTasks is the largest number of tasks of a table.
const MaxTasks = 1 << 20

// Label is a number of a task for a record.
type Label struct {
	Task  int32 // its index in Labels.Names
	Value float32
}

// Labels holds the labels of records.
type Labels struct {
	File  string
	Names []string  // of the tasks
	Rows  [][]Label // of each record, ordered by task
	// Unknown counts the rows of the table whose keys are no record's, and First is the first such key.
	Unknown int
	First   string
}

// Count returns the number of labels of all records.
func (l *Labels) Count() (n int) {
	for _, row := range l.Rows {
		n += len(row)
	}
	return n
}

// Labelled returns the number of records with labels.
func (l *Labels) Labelled() (n int) {
	for _, row := range l.Rows {
		if len(row) > 0 {
			n++
		}
	}
	return n
}

// Options says how to read a table.
type Options struct {
	// Key is the name of the column of keys; "" is the column whose name is smiles in any case, or else
	// the only one whose name contains it.
	Key string
	// Keys has the key of each record. Records with the same key have the same labels.
	Keys []string
	// Tasks names the tasks to read; nil is all.
	Tasks []string
	// Input is read instead of the file if it is set.
	Input io.Reader
}

// Read reads the labels of the records from a table, compressed or not. A label that a table has several
// times becomes the mean. It returns an error, which names the file, the line and the value, for a value
// that is not a finite number, for a task that is missing, and if no row has the key of a record.
func Read(ctx context.Context, path string, o Options) (*Labels, error) {
	r := &reader{
		options: o,
		labels:  &Labels{File: path, Rows: make([][]Label, len(o.Keys))},
		records: map[string][]int{},
		index:   map[string]int32{},
		found:   map[string]bool{},
	}
	for i, key := range o.Keys {
		key = strings.TrimSpace(key)
		r.records[key] = append(r.records[key], i)
	}
	if err := textfile.ReadRows(ctx, path, o.Input, r.header, r.row); err != nil {
		return nil, err
	}
	return r.labels, r.finish()
}

// reader reads one table.
type reader struct {
	options Options
	labels  *Labels
	records map[string][]int // by key
	index   map[string]int32 // of tasks by name
	found   map[string]bool  // the tasks with rows of the long form
	rows    int

	key         int
	task, value int      // columns of the long form, or -1
	columns     []column // of the other form
}

// column is a column of a task.
type column struct {
	position int
	task     int32
}

// header chooses the form of the table and its columns.
func (r *reader) header(rows *textfile.Rows) error {
	var err error
	r.key, err = r.keyColumn(rows)
	if err != nil {
		return err
	}
	r.task = slices.Index(rows.Header, taskColumn)
	r.value = slices.Index(rows.Header, valueColumn)
	if r.task >= 0 && r.value >= 0 {
		for _, name := range []string{taskColumn, valueColumn} {
			if _, err := rows.Column(name); err != nil {
				return err
			}
		}
		for _, name := range r.options.Tasks {
			r.number(name)
		}
		return nil
	}
	r.task = -1
	return r.wideHeader(rows)
}

// wideHeader chooses the columns of a table with one for each task.
func (r *reader) wideHeader(rows *textfile.Rows) error {
	if r.options.Tasks == nil {
		if err := rows.Distinct(); err != nil {
			return err
		}
	}
	wanted := map[int]string{} // tasks by position: headers may have blanks around names
	for _, name := range r.options.Tasks {
		position, err := rows.Column(name)
		if err != nil {
			return err
		}
		wanted[position] = name
	}
	for i, name := range rows.Header {
		task, isWanted := wanted[i]
		if r.options.Tasks == nil {
			task = name
			isWanted = true
		}
		if i != r.key && isWanted {
			r.columns = append(r.columns, column{position: i, task: r.number(task)})
		}
	}
	if len(r.columns) == 0 {
		return rows.BadHeader(strings.Join(rows.Header, ","), "want a column of keys and a column for each "+
			"task, or the columns task and value")
	}
	return nil
}

// keyColumn returns the position of the column of keys.
func (r *reader) keyColumn(rows *textfile.Rows) (int, error) {
	if r.options.Key != "" {
		return rows.Column(r.options.Key)
	}
	var similar []int
	for i, name := range rows.Header {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "smiles" {
			return rows.Column(rows.Header[i])
		}
		if strings.Contains(name, "smiles") {
			similar = append(similar, i)
		}
	}
	if len(similar) != 1 {
		return 0, rows.BadHeader(strings.Join(rows.Header, ","),
			`no column "smiles" that says which records the labels belong to; labels by id need -id`)
	}
	return similar[0], nil
}

// number returns the index of a task.
func (r *reader) number(name string) int32 {
	i, ok := r.index[name]
	if !ok {
		i = int32(len(r.labels.Names))
		r.index[name] = i
		r.labels.Names = append(r.labels.Names, name)
	}
	return i
}

// row takes the labels of a row.
func (r *reader) row(rows *textfile.Rows) error {
	r.rows++
	key := strings.TrimSpace(rows.Row[r.key])
	records := r.records[key]
	if records == nil {
		if r.labels.Unknown == 0 {
			r.labels.First = strings.Clone(key)
		}
		r.labels.Unknown++
	}
	if r.task >= 0 {
		return r.longRow(rows, records)
	}
	labels := make([]Label, 0, len(r.columns))
	for _, c := range r.columns {
		v, ok, err := parseNumber(rows, c.position)
		if err != nil {
			return err
		}
		if ok {
			labels = append(labels, Label{Task: c.task, Value: v})
		}
	}
	for _, i := range records {
		if r.labels.Rows[i] == nil {
			r.labels.Rows[i] = slices.Clone(labels)
		} else {
			r.labels.Rows[i] = append(r.labels.Rows[i], labels...)
		}
	}
	return nil
}

// longRow takes the label of a row of the long form.
func (r *reader) longRow(rows *textfile.Rows, records []int) error {
	v, ok, err := parseNumber(rows, r.value)
	if err != nil {
		return err
	}
	name := strings.TrimSpace(rows.Row[r.task])
	switch _, listed := r.index[name]; {
	case name == "":
		return rows.Bad(r.task, "want the name of a task")
	case listed:
	case r.options.Tasks != nil:
		return nil
	case len(r.labels.Names) == MaxTasks:
		return rows.Bad(r.task, fmt.Sprintf("more than %d tasks", MaxTasks))
	}
	task := r.number(strings.Clone(name))
	r.found[name] = true
	if !ok {
		return nil
	}
	for _, i := range records {
		r.labels.Rows[i] = append(r.labels.Rows[i], Label{Task: task, Value: v})
	}
	return nil
}

// parseNumber returns the number in a field; ok is false for a gap.
func parseNumber(rows *textfile.Rows, column int) (v float32, ok bool, err error) {
	text := strings.TrimSpace(rows.Row[column])
	if text == "" || strings.EqualFold(text, "nan") {
		return 0, false, nil
	}
	x, err := strconv.ParseFloat(text, 32)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0, false, rows.Bad(column, fmt.Sprintf("column %s: want a finite number, or nothing for a gap",
			rows.Header[column]))
	}
	return float32(x), true, nil
}

// finish orders the labels of each record, and returns an error if there are none.
func (r *reader) finish() error {
	l := r.labels
	for _, task := range r.options.Tasks {
		if r.task >= 0 && !r.found[task] {
			return fmt.Errorf("dataset: %s: no task %q", l.File, task)
		}
	}
	for i, row := range l.Rows {
		l.Rows[i] = merge(row)
	}
	switch {
	case r.rows == 0:
		return fmt.Errorf("dataset: %s: there are no rows in it", l.File)
	case l.Unknown == r.rows:
		return fmt.Errorf("dataset: %s: %w, such as %q; the records have keys such as %q",
			l.File, ErrNoRecord, textfile.Shorten(l.First), textfile.Shorten(r.options.Keys[0]))
	case l.Count() == 0:
		return fmt.Errorf("dataset: %s: there are no labels of the records in it", l.File)
	}
	return nil
}

// ErrNoRecord says that no row of a table belongs to a record.
var ErrNoRecord = errors.New("no row has the key of a record")

// merge orders labels by task, and replaces several of a task by their mean.
func merge(row []Label) []Label {
	increasing := func(i, k int) bool { return row[i].Task < row[k].Task }
	sorted := true
	for i := 1; i < len(row) && sorted; i++ {
		sorted = increasing(i-1, i)
	}
	if sorted {
		return row
	}
	slices.SortStableFunc(row, func(a, b Label) int { return int(a.Task) - int(b.Task) })
	merged := row[:0]
	for lo := 0; lo < len(row); {
		hi := lo
		sum := 0.0
		task := row[lo].Task
		for hi < len(row) && row[hi].Task == task {
			sum += float64(row[hi].Value)
			hi++
		}
		merged = append(merged, Label{Task: task, Value: float32(sum / float64(hi-lo))})
		lo = hi
	}
	return merged
}
