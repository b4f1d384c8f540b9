// Package parquet reads tables from Parquet files as CSV text, which package records reads,
// and writes rows of numbers to them.
//
// It is a package of its own because the library for the format is larger than package
// dataset itself. That library believes what a file says of itself. Before it reads a file,
// this package therefore compares every size and count with the bytes that are there.
package parquet

import (
	"bytes"
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

// Text reads the table in a Parquet file as the text of a CSV file with a header. It has the
// columns of numbers (with all decimals), texts, truth values (0 and 1), and dates and times
// in the formats of ISO 8601. Bytes that are no text are written in hexadecimal, and the zeros
// that pad texts are dropped. Lists and structures are skipped. A missing value is empty.
type Text struct {
	file   *os.File
	rows   parquet.RowReader            // nil if there are none
	left   int64                        // how many rows are still to come
	column []int                        // the places of the file's columns in the text, -1 if skipped
	format []func(parquet.Value) string // of the columns in the text
	line   []string
	buffer []parquet.Row
	text   bytes.Buffer
}

// Open opens a Parquet file. Errors, also those of reading, name the file. The reader closes it
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
	p, err := parquet.OpenFile(
		f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
	)
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
	if x.left > 0 { // the library fails where there are no rows
		x.rows = parquet.NewReader(p)
	}
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
	x.writeLine()
	return x, nil
}

// columns gives the columns below c their places in the text, and line their names. types are
// the logical types of all leaves of the file.
func (t *Text) columns(c *parquet.Column, root bool, types []format.LogicalTypeValue) {
	for _, child := range c.Columns() {
		if !child.Leaf() {
			t.columns(child, false, types)
			continue
		}
		place := -1
		write := formatOf(child.Type(), types[len(t.column)])
		if root && !child.Repeated() && write != nil {
			place = len(t.line)
			t.line = append(t.line, child.Name())
			t.format = append(t.format, write)
		}
		t.column = append(t.column, place)
	}
}

// recovered turns a panic into an error: the library does not check everything that a damaged
// file may say.
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
			t.writeLine()
		}
		if n == 0 {
			switch {
			case err == nil:
				err = io.ErrNoProgress
			case err == io.EOF && t.left != 0:
				err = fmt.Errorf("its groups have %d rows less or more than they say",
					max(t.left, -t.left))
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

// writeLine appends the line to the text. A csv.Writer would not do: it quotes neither a field that is alone and
// empty, whose line a reader takes for a blank one, nor other separators in a header, by which a reader counts.
func (t *Text) writeLine() {
	for i, field := range t.line {
		if i > 0 {
			t.text.WriteByte(',')
		}
		isBlank := field == "" && len(t.line) == 1
		if isBlank || strings.ContainsAny(field, ",;\t\"\r\n") {
			field = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
		}
		t.text.WriteString(field)
	}
	t.text.WriteByte('\n')
}

// Close closes the file. It may be called after the end, and twice.
func (t *Text) Close() error {
	t.file.Close()
	return nil
}

// formatOf returns the function that writes values of a type into a CSV file, nil for a type that is
// skipped. logical is the file's name for the type, which the library does not always know.
func formatOf(t parquet.Type, logical format.LogicalTypeValue) func(parquet.Value) string {
	if l := t.LogicalType(); l != nil {
		logical = l.Value
	}
	integer := integerOf(t)
	switch l := logical.(type) {
	case *format.DecimalType:
		return decimalFormat(int(l.Scale), integer)
	case *format.IntType:
		if !l.IsSigned && integer != nil {
			return unsignedFormat(t.Kind())
		}
	case *format.DateType:
		return func(v parquet.Value) string {
			return time.Unix(integer(v)*86400, 0).UTC().Format(time.DateOnly)
		}
	case *format.TimestampType:
		layout := timestampLayout
		if l.IsAdjustedToUTC {
			layout += "Z"
		}
		return timeFormat(integer, l.Unit, layout)
	case *format.TimeType:
		return timeFormat(integer, l.Unit, "15:04:05.999999999")
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
	case *format.StringType:
		if t.Kind() == parquet.ByteArray {
			return func(v parquet.Value) string { return string(v.ByteArray()) }
		}
	case *format.BsonType, *format.VariantType, *format.GeometryType, *format.GeographyType:
		return nil
	}
	return physicalFormat(t.Kind(), integer)
}

// physicalFormat is formatOf for values without a logical type.
func physicalFormat(kind parquet.Kind, integer func(parquet.Value) int64) func(parquet.Value) string {
	switch kind {
	case parquet.Boolean:
		return func(v parquet.Value) string {
			if v.Boolean() {
				return "1"
			}
			return "0"
		}
	case parquet.Int32, parquet.Int64:
		return func(v parquet.Value) string { return strconv.FormatInt(integer(v), 10) }
	case parquet.Int96: // nanoseconds of a day, and the Julian day, which for 1970-01-01 is 2440588
		return func(v parquet.Value) string {
			n := v.Int96()
			instant := time.Unix((int64(n[2])-2440588)*86400, int64(uint64(n[0])|uint64(n[1])<<32))
			return instant.UTC().Format(timestampLayout)
		}
	case parquet.Float:
		return func(v parquet.Value) string {
			return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32)
		}
	case parquet.Double:
		return func(v parquet.Value) string {
			return strconv.FormatFloat(v.Double(), 'g', -1, 64)
		}
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return bytesAsText
	}
	return nil
}

// integerOf returns the function that gives values of a type as integers, nil for other types.
func integerOf(t parquet.Type) func(parquet.Value) int64 {
	switch t.Kind() {
	case parquet.Int32:
		return func(v parquet.Value) int64 { return int64(v.Int32()) }
	case parquet.Int64:
		return parquet.Value.Int64
	}
	return nil
}

// decimalFormat writes numbers of a scale, from integers or, if integer is nil, from bytes.
func decimalFormat(scale int, integer func(parquet.Value) int64) func(parquet.Value) string {
	return func(v parquet.Value) string {
		if integer != nil {
			return decimal(big.NewInt(integer(v)), scale)
		}
		b := v.ByteArray() // big-endian, in two's complement
		n := new(big.Int).SetBytes(b)
		if len(b) > 0 && b[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		return decimal(n, scale)
	}
}

func unsignedFormat(kind parquet.Kind) func(parquet.Value) string {
	if kind == parquet.Int32 {
		return func(v parquet.Value) string {
			return strconv.FormatUint(uint64(uint32(v.Int32())), 10)
		}
	}
	return func(v parquet.Value) string {
		return strconv.FormatUint(uint64(v.Int64()), 10)
	}
}

const timestampLayout = "2006-01-02T15:04:05.999999999"

// timeFormat writes times that are counted in a unit.
func timeFormat(
	integer func(parquet.Value) int64, unit format.TimeUnit, layout string,
) func(parquet.Value) string {
	second := ticks(unit)
	return func(v parquet.Value) string {
		n := integer(v)
		return time.Unix(n/second, n%second*(1e9/second)).UTC().Format(layout)
	}
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

// ticks returns how many units make a second.
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

// half converts a number of 16 bits.
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

// ordered is a group of columns in an order of its own. The tags of a struct cannot replace it, since
// names may have commas.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

// Fields implements [parquet.Node].
func (o ordered) Fields() []parquet.Field { return o.fields }

// Write appends a row.
func (w *Writer) Write(id string, row []float32) error {
	w.row = append(w.row[:0], parquet.ByteArrayValue([]byte(id)).Level(0, 0, 0))
	for k, v := range row {
		w.row = append(w.row, parquet.FloatValue(v).Level(0, 0, k+1))
	}
	_, err := w.to.WriteRows([]parquet.Row{w.row})
	return err
}

// Close ends the table. It does not close the underlying writer.
func (w *Writer) Close() error { return w.to.Close() }
