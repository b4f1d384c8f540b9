// Package parquet reads tables from Parquet files, as the CSV text that package dataset
// takes, and writes rows of numbers to them.
//
// It stands apart because its reader of the format is larger than package dataset itself.
package parquet

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// Text is the table in a Parquet file as the text of a CSV file with a header. It has the
// columns of numbers, texts and truth values (0 and 1), and leaves out lists and
// structures; a missing value is empty.
type Text struct {
	file   *os.File
	rows   parquet.RowReader
	column []int // in the text, of the file's columns; -1 is left out
	line   []string
	buffer []parquet.Row
	text   bytes.Buffer
	csv    *csv.Writer // to text
}

// Open opens a Parquet file. Errors, also of reading, name the file; the reader closes it
// at its end.
func Open(path string) (t *Text, err error) {
	defer recovered(path, &err)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if t == nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkFooter(f, info.Size()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := checkPages(f, info.Size(), p.Metadata()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	x := &Text{file: f, rows: parquet.NewReader(p), buffer: make([]parquet.Row, 256)}
	x.csv = csv.NewWriter(&x.text)
	x.columns(p.Root(), true)
	if len(x.line) == 0 {
		return nil, fmt.Errorf("%s: has no column of numbers or texts", path)
	}
	x.csv.Write(x.line) // a bytes.Buffer takes everything
	x.csv.Flush()
	return x, nil
}

// columns gives the columns below c their places in the text, whose header is line.
func (t *Text) columns(c *parquet.Column, root bool) {
	for _, below := range c.Columns() {
		if !below.Leaf() {
			t.columns(below, false)
			continue
		}
		at, kind := -1, below.Type().Kind()
		if root && !below.Repeated() && kind != parquet.FixedLenByteArray && kind != parquet.Int96 {
			at, t.line = len(t.line), append(t.line, below.Name())
		}
		t.column = append(t.column, at)
	}
}

// recovered makes an error of a panic: the reader does not check all that a damaged file
// may say.
func recovered(path string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s: a damaged Parquet file: %.200v", path, r)
	}
}

// Read implements [io.Reader].
func (t *Text) Read(p []byte) (n int, err error) {
	defer recovered(t.file.Name(), &err)
	for t.text.Len() == 0 {
		n, err := t.rows.ReadRows(t.buffer)
		for _, row := range t.buffer[:n] {
			clear(t.line)
			for _, v := range row {
				if c := v.Column(); c >= 0 && c < len(t.column) && t.column[c] >= 0 {
					t.line[t.column[c]] = text(v)
				}
			}
			t.csv.Write(t.line)
		}
		t.csv.Flush()
		if n == 0 {
			if err == nil {
				err = io.ErrNoProgress
			}
			if err != io.EOF {
				err = fmt.Errorf("%s: %w", t.file.Name(), err)
			}
			t.file.Close()
			return 0, err
		}
	}
	return t.text.Read(p)
}

// Close closes the file. It does no harm after the end, nor twice.
func (t *Text) Close() error {
	t.file.Close()
	return nil
}

// text returns a value as it stands in a CSV file.
func text(v parquet.Value) string {
	switch {
	case v.IsNull():
		return ""
	case v.Kind() == parquet.Boolean && v.Boolean():
		return "1"
	case v.Kind() == parquet.Boolean:
		return "0"
	case v.Kind() == parquet.Int32:
		return strconv.Itoa(int(v.Int32()))
	case v.Kind() == parquet.Int64:
		return strconv.FormatInt(v.Int64(), 10)
	case v.Kind() == parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32)
	case v.Kind() == parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	}
	return string(v.ByteArray())
}

// Writer writes a table with a column "id" of texts and columns of float32.
type Writer struct {
	to  *parquet.GenericWriter[any]
	row parquet.Row
}

// NewWriter returns a writer of rows of these columns.
func NewWriter(w io.Writer, columns []string) *Writer {
	fields := []reflect.StructField{{Name: "ID", Type: reflect.TypeFor[string](), Tag: `parquet:"id"`}}
	for i, name := range columns {
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprint("V", i), Type: reflect.TypeFor[float32](), Tag: reflect.StructTag(`parquet:` + strconv.Quote(name)),
		})
	}
	schema := parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface())
	return &Writer{to: parquet.NewGenericWriter[any](w, schema, parquet.MaxRowsPerRowGroup(1<<16))}
}

// Write adds a row.
func (w *Writer) Write(id string, row []float32) error {
	w.row = append(w.row[:0], parquet.ByteArrayValue([]byte(id)).Level(0, 0, 0))
	for k, v := range row {
		w.row = append(w.row, parquet.FloatValue(v).Level(0, 0, k+1))
	}
	_, err := w.to.WriteRows([]parquet.Row{w.row})
	return err
}

// Close ends the table. It does not close what the writer writes to.
func (w *Writer) Close() error { return w.to.Close() }
