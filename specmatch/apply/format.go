package apply

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
	"path/filepath"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/autodiff/nn/files"
	"github.com/specmatch/specmatch/gnn/dataset/parquet"
)

// format is a form of output. It appends to files, so that a job can go on after every
// batch.
type format interface {
	// endings are those of its files, behind the name of the output.
	endings() []string
	// begin returns what each file begins with.
	begin(columns []string) [][]byte
	// batch returns what each file gets of a batch.
	batch(b Batch) [][]byte
	// end completes the files, which have a number of rows. If it makes the output out of
	// them, it reports that they themselves are none.
	end(out string, parts []*os.File, rows int, columns []string) (scratch bool, err error)
}

// formatOf returns the format of an output by its name.
func formatOf(path string) (format, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		return csvFormat{}, nil
	case ".npy":
		return npyFormat{}, nil
	case ".parquet":
		return parquetFormat{}, nil
	}
	return nil, fmt.Errorf("%s: want a name that ends in .npy, .csv or .parquet", path)
}

// Outputs returns the names of all files that [Job.WriteFile] may write for an output, for a
// time or for good. It is an error if the name tells no format.
func Outputs(path string) ([]string, error) {
	form, err := formatOf(path)
	if err != nil {
		return nil, err
	}
	all := []string{path, path + journal, path + files.LockEnding}
	for _, name := range partsOf(form, path) {
		all = append(all, name, name+partial)
	}
	return all, nil
}

// partsOf returns the names of a format's files, and last that of the rejected records.
func partsOf(form format, path string) (all []string) {
	for _, ending := range append(form.endings(), Rejected) {
		all = append(all, path+ending)
	}
	return all
}

// csvFormat is a table with a header.
type csvFormat struct{}

func (csvFormat) endings() []string { return []string{""} }

func (csvFormat) begin(columns []string) [][]byte {
	return [][]byte{csvLines(append([]string{"id"}, columns...))}
}

func (csvFormat) batch(b Batch) [][]byte {
	var lines [][]string
	for r, row := range b.Rows() {
		line := []string{r.ID}
		for _, v := range row {
			line = append(line, strconv.FormatFloat(v, 'g', -1, 32))
		}
		lines = append(lines, line)
	}
	return [][]byte{csvLines(lines...)}
}

func (csvFormat) end(string, []*os.File, int, []string) (bool, error) { return false, nil }

// csvLines encodes rows as CSV, of text that is [files.Printable].
func csvLines(rows ...[]string) []byte {
	var b bytes.Buffer
	for _, row := range rows {
		for i, field := range row {
			row[i] = files.Printable(field)
		}
	}
	csv.NewWriter(&b).WriteAll(rows) // a bytes.Buffer takes everything
	return b.Bytes()
}

// npyFormat is a matrix in NumPy's format 1.0, and a table of ids.
type npyFormat struct{}

func (npyFormat) endings() []string { return []string{"", ".ids.csv"} }

func (npyFormat) begin(columns []string) [][]byte {
	return [][]byte{npyHeader(0, len(columns)), csvLines([]string{"id"})}
}

func (npyFormat) batch(b Batch) [][]byte {
	var rows []byte
	var ids [][]string
	for r, row := range b.Rows() {
		for _, v := range row {
			rows = binary.LittleEndian.AppendUint32(rows, math.Float32bits(float32(v)))
		}
		ids = append(ids, []string{r.ID})
	}
	return [][]byte{rows, csvLines(ids...)}
}

func (npyFormat) end(_ string, parts []*os.File, rows int, columns []string) (bool, error) {
	_, err := parts[0].WriteAt(npyHeader(rows, len(columns)), 0)
	return false, err
}

// npyHeader returns the 128 bytes with which NumPy's format 1.0 begins a matrix
// [rows×cols] of float32.
func npyHeader(rows, cols int) []byte {
	text := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols)
	return fmt.Appendf(nil, "\x93NUMPY\x01\x00\x76\x00%-117s\n", text)
}

// streamFormat is a matrix for each batch, with rows of NaN, for [Job.WriteNPY].
type streamFormat struct {
	csvFormat
	columns int
}

func (streamFormat) begin([]string) [][]byte { return [][]byte{nil} }

func (f streamFormat) batch(b Batch) [][]byte {
	text, nan := npyHeader(len(b.Records), f.columns), math.Float32bits(float32(math.NaN()))
	at := 0
	for _, r := range b.Records {
		for k := range f.columns {
			bits := nan
			if r.Err == nil {
				bits = math.Float32bits(float32(b.Values[at+k]))
			}
			text = binary.LittleEndian.AppendUint32(text, bits)
		}
		if r.Err == nil {
			at += f.columns
		}
	}
	return [][]byte{text}
}

// parquetFormat is a matrix until its end: nothing can be appended to a Parquet file that
// another process has begun.
type parquetFormat struct{ npyFormat }

func (parquetFormat) end(out string, parts []*os.File, rows int, columns []string) (bool, error) {
	matrix := bufio.NewReader(io.NewSectionReader(parts[0], int64(len(npyHeader(0, 0))), math.MaxInt64))
	ids := csv.NewReader(bufio.NewReader(io.NewSectionReader(parts[1], 0, math.MaxInt64)))
	ids.FieldsPerRecord = 1
	if _, err := ids.Read(); err != nil { // the header
		return true, err
	}
	return true, files.Write(out, func(to io.Writer) error {
		w := parquet.NewWriter(to, columns)
		row := make([]float32, len(columns))
		for range rows {
			id, err := ids.Read()
			if err := errors.Join(err, binary.Read(matrix, binary.LittleEndian, row)); err != nil {
				return err
			}
			if err := w.Write(id[0], row); err != nil {
				return err
			}
		}
		return w.Close()
	})
}
