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
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/specmatch/specmatch/gnn/dataset/parquet"
	"github.com/specmatch/specmatch/specmatch/shard"
	"github.com/specmatch/specmatch/tensor/files"
)

// format is a format of outputs. It appends to files, so that a job can resume after every batch.
type format interface {
	// endings returns the endings of its files, after the name of the output.
	endings() []string
	// begin returns the beginning of each file.
	begin(columns []string) [][]byte
	// batch returns the bytes of a batch for each file.
	batch(b Batch) [][]byte
	// end completes the files, which have a number of rows. It reports whether it made the output from
	// them, and they are scratch.
	end(out string, parts []*os.File, rows int, columns []string) (scratch bool, err error)
}

// formatOf returns the format of an output by its name, with float16 if half is set.
func formatOf(path string, half bool) (format, error) {
	ending := strings.ToLower(filepath.Ext(path))
	switch {
	case ending == ".npy":
		return npyFormat{half: half}, nil
	case half:
		return nil, fmt.Errorf("%s: float16 is for a name that ends in .npy", path)
	case ending == ".csv":
		return csvFormat{}, nil
	case ending == ".parquet":
		return parquetFormat{}, nil
	}
	return nil, fmt.Errorf("%s: want a name that ends in .npy, .csv or .parquet", path)
}

// Outputs returns the names of all files that [Job.WriteFile] may write for an output, temporary ones included, and
// those of a shard of it, unless that is the zero Shard. It is an error if the name has no known ending.
func Outputs(path string, part shard.Shard) ([]string, error) {
	format, err := formatOf(path, false)
	if err != nil {
		return nil, err
	}
	names := outputsOf(path, partsOf(format, path))
	if part.N > 0 {
		path = shardPath(part, path)
		names = append(names, outputsOf(path, append(partsOf(format, path), path+index))...)
	}
	return names, nil
}

// outputsOf returns the names of the files that are there while the parts of an output are written.
func outputsOf(path string, parts []string) []string {
	names := []string{path + journalEnding, path + files.LockEnding}
	for _, name := range parts {
		names = append(names, name, name+partialEnding)
	}
	return names
}

// partsOf returns the names of a format's files, and last the name of the list of rejected records.
func partsOf(f format, path string) (names []string) {
	for _, ending := range append(f.endings(), Rejected) {
		names = append(names, path+ending)
	}
	return names
}

// csvFormat is a table with a header.
type csvFormat struct{ keep int } // number of fields after the id

func (csvFormat) endings() []string { return []string{""} }

func (csvFormat) begin(columns []string) [][]byte {
	return [][]byte{csvLines(append([]string{"id"}, columns...))}
}

func (f csvFormat) batch(b Batch) [][]byte {
	var lines [][]string
	for r, row := range b.Rows() {
		line := append([]string{r.ID}, r.Fields[:f.keep]...)
		for _, v := range row {
			line = append(line, strconv.FormatFloat(v, 'g', -1, 32))
		}
		lines = append(lines, line)
	}
	return [][]byte{csvLines(lines...)}
}

func (csvFormat) end(string, []*os.File, int, []string) (bool, error) {
	return false, nil
}

// csvLines encodes rows as CSV, with text as [files.Data] has it.
func csvLines(rows ...[]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b) // a bytes.Buffer returns no error
	var line []string
	for _, row := range rows {
		if len(row) == 1 && row[0] == "" {
			// A csv.Writer would write a blank line, which readers skip.
			w.Flush()
			b.WriteString("\"\"\n")
			continue
		}
		line = files.Cells(line[:0], row) // a copy, since several jobs may have the row
		w.Write(line)
	}
	w.Flush()
	return b.Bytes()
}

// npyFormat is a matrix in NumPy's format 1.0, of float32 or float16, and a table of ids.
type npyFormat struct{ half bool }

// size returns the number of bytes of a number.
func (f npyFormat) size() int {
	if f.half {
		return 2
	}
	return 4
}

func (npyFormat) endings() []string { return []string{"", ".ids.csv"} }

func (f npyFormat) begin(columns []string) [][]byte {
	return [][]byte{f.header(0, len(columns)), csvLines([]string{"id"})}
}

func (f npyFormat) batch(b Batch) [][]byte {
	var ids [][]string
	for _, r := range b.Records {
		if r.Err == nil {
			ids = append(ids, []string{r.ID})
		}
	}
	return [][]byte{f.matrix(b, isLittleEndian), csvLines(ids...)}
}

// matrix returns the bytes of the rows of a batch. Numbers that are there in float32 stay where they
// are if they are little-endian in memory.
func (f npyFormat) matrix(b Batch, little bool) []byte {
	if len(b.narrow) > 0 {
		if little {
			return unsafe.Slice((*byte)(unsafe.Pointer(&b.narrow[0])), 4*len(b.narrow))
		}
		text, _ := binary.Append((*b.text)[:0], binary.LittleEndian, b.narrow) // no error for numbers
		*b.text = text[:0]
		return text
	}
	size := f.size()
	rows := slices.Grow(*b.text, size*len(b.Values))[:size*len(b.Values)]
	for k, v := range b.Values {
		if f.half {
			binary.LittleEndian.PutUint16(rows[2*k:], float16(float32(v)))
		} else {
			binary.LittleEndian.PutUint32(rows[4*k:], math.Float32bits(float32(v)))
		}
	}
	*b.text = rows[:0]
	return rows
}

// isLittleEndian says whether numbers in memory are laid out as in a .npy.
var isLittleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

func (f npyFormat) end(_ string, parts []*os.File, rows int, columns []string) (bool, error) {
	_, err := parts[0].WriteAt(f.header(rows, len(columns)), 0)
	return false, err
}

// header returns the 128 bytes before a matrix [rows×cols] in NumPy's format 1.0.
func (f npyFormat) header(rows, cols int) []byte {
	text := fmt.Sprintf("{'descr': '<f%d', 'fortran_order': False, 'shape': (%d, %d), }",
		f.size(), rows, cols)
	return fmt.Appendf(nil, "\x93NUMPY\x01\x00\x76\x00%-117s\n", text)
}

// streamFormat is a matrix for each batch, with rows of NaN, for [Job.WriteNPY].
type streamFormat struct {
	csvFormat
	columns int
}

func (streamFormat) begin([]string) [][]byte { return [][]byte{nil} }

func (f streamFormat) batch(b Batch) [][]byte {
	size := 4 * f.columns
	header := npyFormat{}.header(len(b.Records), f.columns)
	var missing []byte
	for range f.columns {
		missing = binary.LittleEndian.AppendUint32(missing, math.Float32bits(float32(math.NaN())))
	}
	text := make([]byte, 0, len(header)+len(b.Records)*size)
	text = append(text, header...)
	rows := npyFormat{}.matrix(b, isLittleEndian)
	for _, r := range b.Records {
		if r.Err != nil {
			text = append(text, missing...)
			continue
		}
		text = append(text, rows[:size]...)
		rows = rows[size:]
	}
	return [][]byte{text}
}

// parquetFormat is a matrix until the job ends, since nothing can be appended to a Parquet file
// that another process began.
type parquetFormat struct{ npyFormat }

func (parquetFormat) end(out string, parts []*os.File, rows int, columns []string) (bool, error) {
	matrix := bufio.NewReader(io.NewSectionReader(
		parts[0], int64(len(npyFormat{}.header(0, 0))), math.MaxInt64,
	))
	ids := csv.NewReader(bufio.NewReader(io.NewSectionReader(parts[1], 0, math.MaxInt64)))
	ids.FieldsPerRecord = 1
	if _, err := ids.Read(); err != nil { // the header
		return true, err
	}
	return true, files.Write(out, func(file io.Writer) error {
		w := parquet.NewWriter(file, columns)
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

// float16 returns the bits of the float16 nearest to v, the even one of two.
func float16(v float32) uint16 {
	bits := math.Float32bits(v)
	sign := uint16(bits >> 16 & 0x8000)
	abs := bits &^ (1 << 31)
	switch {
	case abs > 0x7f800000: // NaN
		return sign | 0x7e00
	case abs >= 0x477ff000: // 65,520 and above
		return sign | 0x7c00
	case abs < 0x38800000: // subnormal: below 2⁻¹⁴, in steps of 2⁻²⁴
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(abs))*0x1p24))
	}
	abs += 0xfff + abs>>13&1 // round, since 13 bits are cut off
	return sign | uint16((abs-112<<23)>>13)
}
