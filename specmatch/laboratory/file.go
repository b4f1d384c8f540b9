package laboratory

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/specmatch/specmatch/gnn/dataset/records"
)

// source says what a file is and which of its columns are used.
type source struct {
	Format string   `json:"format"` // one of records.Formats
	SMILES string   `json:"smiles"` // column of a table
	ID     string   `json:"id"`     // column or property; "" for the number of the record
	Fields []string `json:"fields"` // columns or properties that rows repeat
}

// options returns how to read a text of the file.
func (q source) options(text string) records.Options {
	return records.Options{
		Format:    q.Format,
		Input:     strings.NewReader(text),
		Want:      records.Molecules,
		SMILES:    q.SMILES,
		ID:        q.ID,
		Fields:    q.Fields,
		Molecules: true,
	}
}

// part is a piece of a file that is a file itself.
type part struct {
	Text  string `json:"text"`
	First int    `json:"first"` // records before it
	Line  int    `json:"line"`  // lines of the file before its own, without those of a header
	Count int    `json:"count"` // records in it
}

// file is an open file.
type file struct {
	source
	name    string
	text    string
	columns []string // all but that of SMILES
	parts   []part

	library *collection // nil until it is needed
}

// opening is what the page says of a file: its name, and what it cannot tell by itself.
type opening struct {
	Name string `json:"name"`
	source
}

// opened is what the page hears of an open file.
type opened struct {
	source
	Columns []string `json:"columns"`
	Parts   []part   `json:"parts"`
	Records int      `json:"records"`
}

// open reads a file. Without data, it reads the open file again, with other columns.
func (s *Session) open(q opening, data []byte) (any, error) {
	f := &file{source: q.source, name: cmp.Or(q.Name, "molecules")}
	switch {
	case data != nil:
		text, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		f.text = text
	case s.file == nil:
		return nil, errors.New("there is no file: drop one, or paste SMILES")
	default:
		f.name, f.text = s.file.name, s.file.text
	}
	if strings.TrimSpace(f.text) == "" {
		return nil, fmt.Errorf("%s is empty: drop a CSV, a list of SMILES or an SD file", f.name)
	}
	f.Format = cmp.Or(f.Format, formatOf(f.name, f.text))
	if err := f.readColumns(); err != nil {
		return nil, err
	}
	f.divide()
	s.file = f
	answer := opened{
		source:  f.source,
		Columns: f.columns,
		Parts:   f.parts,
	}
	for _, p := range f.parts {
		answer.Records += p.Count
	}
	return answer, nil
}

// maxText bounds an unpacked file.
const maxText = 256 << 20

// decode returns a file as UTF-8: unpacked, and from UTF-16 if it has that mark.
func decode(data []byte) (string, error) {
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			data, err = io.ReadAll(io.LimitReader(z, maxText+1))
		}
		if err != nil {
			return "", err
		}
	}
	if len(data) > maxText {
		return "", fmt.Errorf("has more than %d MB: use the command line, specmatch predict -model admet", maxText>>20)
	}
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return string(bytes.TrimPrefix(data, []byte("\ufeff"))), nil
	}
	var units []uint16
	for i := 2; i+1 < len(data); i += 2 {
		units = append(units, order.Uint16(data[i:]))
	}
	return string(utf16.Decode(units)), nil
}

// formatOf returns the format of a file by its name or, for a paste, by its text.
func formatOf(name, text string) string {
	format, err := records.FormatOf(strings.TrimSuffix(name, ".gz"))
	if err == nil && slices.Contains([]string{records.CSV, records.SMI, records.SDF}, format) && name != pasted {
		return format
	}
	header, _, _ := strings.Cut(text, "\n")
	switch {
	case strings.Contains(text, "M  END"):
		return records.SDF
	case strings.ContainsAny(header, ",;\t") && strings.Contains(strings.ToLower(header), "smiles"),
		strings.TrimSpace(strings.ToLower(header)) == "smiles":
		return records.CSV
	}
	return records.SMI
}

// pasted is the name of a file that was pasted.
const pasted = "pasted text"

// idNames are columns that name molecules, unless the page says otherwise.
var idNames = []string{"id", "name", "compound", "compound_id", "molecule_id", "mol_id", "title", "cas"}

// readColumns sets the columns that the file has.
func (f *file) readColumns() error {
	options := f.options(f.text)
	options.ID = ""
	options.Fields = nil
	count := 0
	reading := records.Reading{}
	options.Reading = &reading
	enough := errors.New("enough")
	err := records.Read(context.Background(), f.name, options, func(r *records.Record) error {
		if count++; count < 50 {
			return nil
		}
		return enough
	})
	if err != nil && err != enough {
		return err
	}
	if count == 0 {
		return fmt.Errorf("%s has no molecules: drop a CSV, a list of SMILES or an SD file", f.name)
	}
	f.SMILES = reading.SMILES
	f.columns = reading.Unused
	f.Fields = reading.Unused
	if f.Format == records.SMI {
		f.columns, f.Fields = nil, nil
	}
	if f.Format == records.CSV {
		f.sortColumns()
	}
	if f.ID == "" {
		for _, name := range idNames {
			for _, column := range f.columns {
				if strings.EqualFold(name, column) && f.ID == "" {
					f.ID = column
				}
			}
		}
	}
	return nil
}

// sortColumns puts the columns of a table into the order of its header.
func (f *file) sortColumns() {
	header, _, _ := strings.Cut(f.text, "\n")
	slices.SortStableFunc(f.columns, func(a, b string) int {
		return strings.Index(header, a) - strings.Index(header, b)
	})
}

// The sizes of parts: the first ones are small, so that their rows come soon.
var partSizes = []int{8, 8, 16, 16, 32, 32}

const partSize = 32

// divide divides the file into parts.
func (f *file) divide() {
	header := ""
	text := f.text
	line := 0
	if f.Format == records.CSV {
		n := recordEnd(text, records.CSV)
		header = text[:n]
		text = text[n:]
		if !strings.HasSuffix(header, "\n") {
			header += "\n"
		}
	}
	first := 0
	for text != "" {
		size := partSize
		if len(f.parts) < len(partSizes) {
			size = partSizes[len(f.parts)]
		}
		end := 0
		count := 0
		for count < size && end < len(text) {
			n := recordEnd(text[end:], f.Format)
			if strings.TrimSpace(text[end:end+n]) != "" {
				count++
			}
			end += n
		}
		f.parts = append(f.parts, part{
			Text:  header + text[:end],
			First: first,
			Line:  line,
			Count: count,
		})
		first += count
		line += strings.Count(text[:end], "\n")
		text = text[end:]
	}
	f.parts = slices.DeleteFunc(f.parts, func(p part) bool { return p.Count == 0 })
}

// recordEnd returns where the first record of a text ends. A row of a table may have line breaks within quotes.
func recordEnd(text, format string) int {
	end := 0
	for end < len(text) {
		n := strings.IndexByte(text[end:], '\n') + 1
		if n == 0 {
			return len(text)
		}
		line := text[end : end+n]
		end += n
		switch format {
		case records.SDF:
			if strings.HasPrefix(line, "$$$$") {
				return end
			}
		case records.CSV:
			if strings.Count(text[:end], `"`)%2 == 0 {
				return end
			}
		default:
			return end
		}
	}
	return end
}
