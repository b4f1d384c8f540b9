package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

const formatParquet = "parquet"

// parquetText is a table in a Parquet file as the text of a CSV file. It has the columns
// of numbers, texts and truth values, and leaves out lists and structures.
type parquetText struct {
	file   *os.File
	rows   parquet.RowReader
	column []int // in the text, of the file's columns; -1 is left out
	width  int
	buffer []parquet.Row
	text   bytes.Buffer
}

func openParquet(path string) (t *parquetText, err error) {
	defer recoverParquet(path, &err)
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
	p, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	x := &parquetText{file: f, rows: parquet.NewReader(p), buffer: make([]parquet.Row, 256)}
	var header []string
	var columns func(c *parquet.Column, top bool)
	columns = func(c *parquet.Column, top bool) {
		switch {
		case c.Leaf():
			at := -1
			if top && !c.Repeated() && c.Type().Kind() != parquet.FixedLenByteArray && c.Type().Kind() != parquet.Int96 {
				at, header = len(header), append(header, c.Name())
			}
			x.column = append(x.column, at)
		default:
			for _, below := range c.Columns() {
				columns(below, c == p.Root())
			}
		}
	}
	columns(p.Root(), false)
	if x.width = len(header); x.width == 0 {
		return nil, fmt.Errorf("%s: has no column of numbers or texts", path)
	}
	x.text.Write(csvLines(header))
	return x, nil
}

// recoverParquet makes an error of a panic: the reader does not check all that a damaged
// file may say.
func recoverParquet(path string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s: a damaged Parquet file: %v", path, r)
	}
}

// Read implements [io.Reader].
func (t *parquetText) Read(p []byte) (n int, err error) {
	defer recoverParquet(t.file.Name(), &err)
	for t.text.Len() == 0 {
		n, err := t.rows.ReadRows(t.buffer)
		var lines [][]string
		for _, row := range t.buffer[:n] {
			line := make([]string, t.width)
			for _, v := range row {
				if c := v.Column(); c >= 0 && c < len(t.column) && t.column[c] >= 0 {
					line[t.column[c]] = parquetValue(v)
				}
			}
			lines = append(lines, line)
		}
		t.text.Write(csvLines(lines...))
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

// parquetValue returns a value as the text of a CSV file, "" for a missing one.
func parquetValue(v parquet.Value) string {
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

// writeParquet writes the rows of a matrix of float32 under their ids, which are a table
// of CSV with one column.
func writeParquet(w io.Writer, columns []string, matrix, ids io.Reader) error {
	fields := []reflect.StructField{{Name: "ID", Type: reflect.TypeFor[string](), Tag: `parquet:"id"`}}
	for i, name := range columns {
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprint("V", i), Type: reflect.TypeFor[float32](), Tag: reflect.StructTag(`parquet:` + strconv.Quote(name)),
		})
	}
	p := parquet.NewWriter(w, parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface()), parquet.MaxRowsPerRowGroup(1<<16))
	names := csv.NewReader(bufio.NewReader(ids))
	names.FieldsPerRecord = 1
	if _, err := names.Read(); err != nil { // the header
		return err
	}
	numbers := bufio.NewReader(matrix)
	raw := make([]byte, 4*len(columns))
	for {
		id, err := names.Read()
		if err == io.EOF {
			return p.Close()
		}
		if _, e := io.ReadFull(numbers, raw); err != nil || e != nil {
			return errors.Join(err, e)
		}
		row := parquet.Row{parquet.ByteArrayValue([]byte(id[0])).Level(0, 0, 0)}
		for k := range columns {
			row = append(row, parquet.FloatValue(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*k:]))).Level(0, 0, k+1))
		}
		if _, err := p.WriteRows([]parquet.Row{row}); err != nil {
			return err
		}
	}
}
