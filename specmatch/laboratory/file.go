package laboratory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

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
	f := &file{
		source: q.source,
		name:   cmp.Or(q.Name, "molecules"),
	}
	switch {
	case data != nil:
		text, err := decode(f.name, data)
		if err != nil {
			return nil, err
		}
		if ending := filepath.Ext(f.name); strings.EqualFold(ending, ".gz") {
			f.name = strings.TrimSuffix(f.name, ending) // the text is not packed any more
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
	if err := f.divide(); err != nil {
		return nil, err
	}
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

// decode returns the text of a file, as its reader has it.
func decode(name string, data []byte) (string, error) {
	r, err := records.Decode(context.Background(), name, bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > maxText {
		return "", fmt.Errorf("%s has more than %d MB: use the command line, specmatch predict -model admet",
			name, maxText>>20)
	}
	// Parts of the text travel as JSON, which has no invalid bytes: the whole must be read as its parts are.
	return strings.ToValidUTF8(string(text), "\uFFFD"), nil
}

// formatOf returns the format of a file by its name or, for a paste, by its text.
func formatOf(name, text string) string {
	format, err := records.FormatOf(name)
	if err == nil && slices.Contains([]string{records.CSV, records.SMI, records.SDF}, format) && name != pasted {
		return format
	}
	header := firstLine(text)
	switch {
	case strings.Contains(text, "M  END"):
		return records.SDF
	case strings.ContainsAny(header, ",;\t") && strings.Contains(strings.ToLower(header), "smiles"),
		strings.TrimSpace(strings.ToLower(header)) == "smiles":
		return records.CSV
	}
	return records.SMI
}

// firstLine returns the first line of a text that is not blank.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(text, "\r\n"), "\n")
	return line
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
	candidates := reading.Unused // for the ID
	switch f.Format {
	case records.CSV:
		f.columns = reading.Unused
	case records.SDF:
		// Properties may begin anywhere in the file, and a record without its ID could not be used.
		f.columns, candidates = f.readProperties()
	case records.SMI:
		candidates = nil
	}
	f.columns = records.Askable(f.columns)
	f.Fields = f.columns
	if f.ID == "" {
		f.ID = chooseID(records.Askable(candidates))
	}
	return nil
}

// chooseID returns the column that names molecules, "" if there is none.
func chooseID(columns []string) string {
	for _, name := range idNames {
		for _, column := range columns {
			if strings.EqualFold(name, column) {
				return column
			}
		}
	}
	return ""
}

// The sizes of parts: the first ones are small, so that their rows come soon.
var partSizes = []int{8, 8, 16, 16, 32, 32}

const partSize = 32

// divide divides the file into parts, where its reader ends a record.
func (f *file) divide() error {
	headerLines, ends, err := records.LineEnds(context.Background(), f.name, f.options(f.text))
	if err != nil {
		return err
	}
	lines := slices.Collect(strings.Lines(f.text))
	header := strings.Join(lines[:headerLines], "")
	start := headerLines
	for first := 0; first < len(ends); {
		size := partSize
		if len(f.parts) < len(partSizes) {
			size = partSizes[len(f.parts)]
		}
		count := min(size, len(ends)-first)
		for first+count < len(ends) && ends[first+count] == ends[first+count-1] {
			count++
		}
		end := min(ends[first+count-1], len(lines))
		text := strings.Join(lines[start:end], "")
		if !strings.HasSuffix(text, "\n") {
			text += "\n" // without any, a CR within the last line would be the end of a line
		}
		f.parts = append(f.parts, part{
			Text:  header + text,
			First: first,
			Line:  start - headerLines,
			Count: count,
		})
		first += count
		start = end
	}
	return nil
}
