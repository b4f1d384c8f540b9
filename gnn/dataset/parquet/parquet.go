// Package parquet reads tables from Parquet files, as the CSV text that package dataset
// takes, and writes rows of numbers to them.
//
// It stands apart because its reader of the format is larger than package dataset itself.
package parquet

import (
	"bytes"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Text is the table in a Parquet file as the text of a CSV file with a header. It has the
// columns of numbers (decimal ones as exact as they are), texts, truth values (0 and 1),
// and dates and times as ISO 8601 has them. Bytes that are no text are written in hexadecimal, and
// the zeros that pad texts are dropped. Lists and structures are skipped. A missing
// value is empty.
type Text struct {
	file   *os.File
	rows   parquet.RowReader            // nil if there are none
	left   int64                        // how many rows are to come
	column []int                        // in the text, of the file's columns; -1 is left out
	format []func(parquet.Value) string // of the columns in the text
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
	if err := checkPages(f, info.Size(), p); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	x := &Text{file: f, buffer: make([]parquet.Row, 256)}
	for _, g := range p.RowGroups() {
		x.left += g.NumRows()
	}
	if x.left > 0 { // the library cannot read nothing
		x.rows = parquet.NewReader(p)
	}
	x.csv = csv.NewWriter(&x.text)
	var types []format.LogicalTypeValue // of the leaves
	for _, e := range p.Metadata().Schema {
		if e.NumChildren.V == 0 {
			types = append(types, e.LogicalType.Value)
		}
	}
	x.columns(p.Root(), true, types)
	if len(x.line) == 0 {
		return nil, fmt.Errorf("%s: has no column of numbers or texts", path)
	}
	x.csv.Write(x.line) // a bytes.Buffer takes everything
	x.csv.Flush()
	return x, nil
}

// columns gives the columns below c their places in the text, whose header is line. The
// types are those of all leaves of the file.
func (t *Text) columns(c *parquet.Column, root bool, types []format.LogicalTypeValue) {
	for _, below := range c.Columns() {
		if !below.Leaf() {
			t.columns(below, false, types)
			continue
		}
		place := -1
		as := formatOf(below.Type(), types[len(t.column)])
		if root && !below.Repeated() && as != nil {
			place = len(t.line)
			t.line = append(t.line, below.Name())
			t.format = append(t.format, as)
		}
		t.column = append(t.column, place)
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
		if t.rows == nil {
			t.file.Close()
			return 0, io.EOF
		}
		n, err := t.rows.ReadRows(t.buffer)
		t.left -= int64(n)
		for _, row := range t.buffer[:n] {
			clear(t.line)
			for _, v := range row {
				if c := v.Column(); c >= 0 && c < len(t.column) && t.column[c] >= 0 && !v.IsNull() {
					t.line[t.column[c]] = t.format[t.column[c]](v)
				}
			}
			t.csv.Write(t.line)
		}
		t.csv.Flush()
		if n == 0 {
			switch {
			case err == nil:
				err = io.ErrNoProgress
			case err == io.EOF && t.left != 0:
				err = fmt.Errorf("its groups have %d rows less or more than they say", max(t.left, -t.left))
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

// formatOf returns how values of a type stand in a CSV file; nil if they do not. The file's
// name for the type is logical, which the library does not always know.
func formatOf(t parquet.Type, logical format.LogicalTypeValue) func(parquet.Value) string {
	if l := t.LogicalType(); l != nil {
		logical = l.Value
	}
	integer := parquet.Value.Int64
	if t.Kind() == parquet.Int32 {
		integer = func(v parquet.Value) int64 { return int64(v.Int32()) }
	}
	isInteger := t.Kind() == parquet.Int32 || t.Kind() == parquet.Int64
	switch l := logical.(type) {
	case *format.DecimalType:
		return func(v parquet.Value) string {
			if isInteger {
				return decimal(big.NewInt(integer(v)), int(l.Scale))
			}
			b := v.ByteArray() // big-endian, in two's complement
			n := new(big.Int).SetBytes(b)
			if len(b) > 0 && b[0] >= 0x80 {
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
			}
			return decimal(n, int(l.Scale))
		}
	case *format.IntType:
		if !l.IsSigned && isInteger {
			if t.Kind() == parquet.Int32 {
				return func(v parquet.Value) string {
					return strconv.FormatUint(uint64(uint32(v.Int32())), 10)
				}
			}
			return func(v parquet.Value) string { return strconv.FormatUint(uint64(v.Int64()), 10) }
		}
	case *format.DateType:
		return func(v parquet.Value) string {
			return time.Unix(integer(v)*86400, 0).UTC().Format(time.DateOnly)
		}
	case *format.TimestampType:
		layout := "2006-01-02T15:04:05.999999999"
		if l.IsAdjustedToUTC {
			layout += "Z"
		}
		per := ticks(l.Unit)
		return func(v parquet.Value) string {
			n := integer(v)
			return time.Unix(n/per, n%per*(1e9/per)).UTC().Format(layout)
		}
	case *format.TimeType:
		per := ticks(l.Unit)
		return func(v parquet.Value) string {
			n := integer(v)
			return time.Unix(n/per, n%per*(1e9/per)).UTC().Format("15:04:05.999999999")
		}
	case *format.UUIDType:
		return func(v parquet.Value) string {
			if b := v.ByteArray(); len(b) == 16 {
				return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
			}
			return ""
		}
	case *format.Float16Type:
		return func(v parquet.Value) string {
			b := v.ByteArray()
			if len(b) != 2 {
				return ""
			}
			return strconv.FormatFloat(half(uint16(b[0])|uint16(b[1])<<8), 'g', -1, 32)
		}
	case *format.BsonType, *format.VariantType, *format.GeometryType, *format.GeographyType:
		return nil
	}
	switch t.Kind() {
	case parquet.Boolean:
		return func(v parquet.Value) string {
			if v.Boolean() {
				return "1"
			}
			return "0"
		}
	case parquet.Int32, parquet.Int64:
		return func(v parquet.Value) string { return strconv.FormatInt(integer(v), 10) }
	case parquet.Int96: // nanoseconds of a day, and the day by Julius Caesar's count, of 1970 2440588
		return func(v parquet.Value) string {
			n := v.Int96()
			instant := time.Unix((int64(n[2])-2440588)*86400, int64(uint64(n[0])|uint64(n[1])<<32))
			return instant.UTC().Format("2006-01-02T15:04:05.999999999")
		}
	case parquet.Float:
		return func(v parquet.Value) string {
			return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32)
		}
	case parquet.Double:
		return func(v parquet.Value) string { return strconv.FormatFloat(v.Double(), 'g', -1, 64) }
	case parquet.ByteArray:
		if _, ok := logical.(*format.StringType); ok {
			return func(v parquet.Value) string { return string(v.ByteArray()) }
		}
		return bytesAsText
	case parquet.FixedLenByteArray:
		return bytesAsText
	}
	return nil
}

// bytesAsText returns bytes as the text that they are, without the zeros that NumPy pads it with, or
// in hexadecimal if they are none.
func bytesAsText(v parquet.Value) string {
	b := v.ByteArray()
	text := string(bytes.TrimRight(b, "\x00"))
	binary := text == "" && len(b) > 0 || strings.ContainsFunc(text, func(r rune) bool {
		return r == utf8.RuneError || r < ' ' && r != '\t' && r != '\n'
	})
	if binary {
		return hex.EncodeToString(b)
	}
	return text
}

// ticks returns how many of a unit a second has.
func ticks(u format.TimeUnit) int64 {
	if u.Value == nil {
		return 1e6
	}
	return int64(time.Second / max(1, u.Value.Duration()))
}

// decimal returns n·10^-scale, with all its digits.
func decimal(n *big.Int, scale int) string {
	if scale <= 0 || scale > 1000 {
		return n.String()
	}
	digits := new(big.Int).Abs(n).String()
	digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
	sign := ""
	if n.Sign() < 0 {
		sign = "-"
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

func half(bits uint16) float64 {
	sign := 1 - 2*float64(bits>>15)
	exponent := int(bits >> 10 & 31)
	fraction := float64(bits & 1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// Writer writes a table with a column "id" of texts and columns of float32.
type Writer struct {
	to  *parquet.GenericWriter[any]
	row parquet.Row
}

// NewWriter returns a writer of rows of these columns.
func NewWriter(w io.Writer, columns []string) *Writer {
	group := parquet.Group{"id": parquet.String()}
	for _, name := range columns {
		group[name] = parquet.Leaf(parquet.FloatType)
	}
	order := map[string]int{"id": -1}
	for i, name := range columns {
		order[name] = i
	}
	fields := group.Fields() // by name
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return order[a.Name()] - order[b.Name()]
	})
	return &Writer{to: parquet.NewGenericWriter[any](
		w, parquet.NewSchema("", ordered{group, fields}), parquet.MaxRowsPerRowGroup(1<<16),
	)}
}

// ordered is a group of columns in an order of its own. Tags of a struct would not do: a name may
// have commas.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

// Fields implements [parquet.Node].
func (o ordered) Fields() []parquet.Field { return o.fields }

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
