package records

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
)

// longestMolfile is how many bytes a record of an SD file may have, with its properties. Tests
// lower it.
var longestMolfile = 8 << 20

// title is the name under which the first line of a molfile is a property.
const title = "_Name"

// molfile is the body of a molecule of an SD file: a molfile and the properties behind it.
type molfile string

// openSDF opens a file of molfiles, each with its properties and a line $$$$.
func (r *reader) openSDF() (next func() (*Record, error), err error) {
	if err := r.setContent(Molecules); err != nil {
		return nil, err
	}
	if r.o.SMILES != "" {
		return nil, fmt.Errorf("dataset: %s: has molfiles, and so no column of SMILES, such as %q",
			r.file, r.o.SMILES)
	}
	if err := r.openText(); err != nil {
		return nil, err
	}
	lines := r.text.Lines()
	absent := r.propertyFields()
	return func() (*Record, error) {
		var text strings.Builder
		var bad *dataset.SyntaxError
		first := lines.Line + 1
		blank := true
		for {
			line, err := lines.Raw()
			syntax, _ := err.(*dataset.SyntaxError) // one that is wrapped ends the reading
			switch {
			case err == io.EOF && blank:
				r.reading.Absent = slices.Sorted(maps.Keys(absent))
				return nil, err
			case err != nil && err != io.EOF && syntax == nil:
				return nil, err
			case err == io.EOF || strings.HasPrefix(line, "$$$$"):
				rec := r.record(first)
				rec.body = molfile(text.String())
				rec.size = text.Len()
				rec.Err = bad
				if bad == nil && blank {
					rec.Err = &dataset.SyntaxError{
						File:   r.file,
						Line:   first,
						Reason: "there is no molfile before the line $$$$",
					}
				}
				return rec, nil
			case bad != nil:
			case syntax != nil:
				bad = syntax
			case text.Len()+len(line) >= longestMolfile:
				bad = &dataset.SyntaxError{
					File:   r.file,
					Line:   first,
					Reason: fmt.Sprintf("a record of more than %d bytes", longestMolfile),
				}
				text.Reset()
			default:
				text.WriteString(line)
				text.WriteByte('\n')
			}
			name, _ := PropertyName(line) // "" is no field
			delete(absent, name)
			blank = blank && syntax == nil && strings.TrimSpace(line) == ""
		}
	}, nil
}

// propertyFields returns the fields without the title, which every record has.
func (r *reader) propertyFields() map[string]bool {
	names := map[string]bool{}
	for _, field := range r.o.Fields {
		names[field] = true
	}
	delete(names, title)
	return names
}

func (text molfile) build(w *worker, rec *Record) (*graph.Graph, error) {
	name, _, _ := strings.Cut(string(text), "\n")
	properties, names, twice := text.properties()
	isUsed := func(s string) bool { return s == w.o.ID || slices.Contains(w.o.Fields, s) }
	if i := slices.IndexFunc(twice, isUsed); i >= 0 {
		return nil, fmt.Errorf("the property %q is there twice", twice[i])
	}
	properties[title] = strings.TrimSpace(name)
	for _, f := range append([]string{w.o.ID}, w.o.Fields...) {
		if err := textfile.CheckUTF8(properties[f]); err != nil {
			return nil, fmt.Errorf("the property %q: %w", f, err)
		}
	}
	if w.o.ID != "" {
		rec.ID = properties[w.o.ID]
		if rec.ID == "" {
			return nil, fmt.Errorf("there is no %q, which is to name the molecule", w.o.ID)
		}
	}
	for _, f := range w.o.Fields {
		rec.Fields = append(rec.Fields, properties[f])
	}
	w.notes.note(slices.DeleteFunc(names, isUsed), new(rawGraph))
	m, err := w.parser.ParseMolfile(string(text))
	g, err := w.molecule(rec, m, err)
	if bad := new(molecule.LineError); errors.As(err, &bad) {
		return nil, &dataset.SyntaxError{
			Line:   rec.Line + bad.Line - 1,
			Value:  textfile.Shorten(properties[title]),
			Reason: bad.Reason,
		}
	}
	if err != nil {
		return nil, &dataset.SyntaxError{Value: textfile.Shorten(properties[title]), Reason: err.Error()}
	}
	if w.o.table != nil { // which keeps SMILES but no molfiles
		rec.SMILES = m.SMILES()
	}
	return g, nil
}

// properties returns the properties of a record by their names, the names in their order, and
// the names that occur twice. A value ends at a blank line that another property follows, or at
// the end.
func (text molfile) properties() (values map[string]string, names, twice []string) {
	values = map[string]string{}
	molEnd := strings.Index(string(text), "\nM  END")
	if molEnd < 0 {
		return values, nil, nil // ParseMolfile refuses it
	}
	_, tail, _ := strings.Cut(string(text[molEnd+1:]), "\n")
	name := ""
	blank := true // whether a property may begin: at the start and after a blank line
	var value []string
	end := func() {
		if name != "" {
			values[name] = strings.TrimSpace(strings.Join(value, "\n"))
		}
	}
	for line := range strings.Lines(tail) {
		line = strings.TrimRight(line, " \t\r\n")
		head, ok := PropertyName(line)
		if !blank || !ok {
			value = append(value, line)
			blank = line == ""
			continue
		}
		end()
		name = head
		value = nil
		blank = false
		if slices.Contains(names, name) {
			twice = append(twice, name)
		} else {
			names = append(names, name)
		}
	}
	end()
	return values, names, twice
}

// PropertyName returns NAME of a line of an SD file such as "> 25 <NAME> (7)", at which a property begins.
func PropertyName(line string) (name string, ok bool) {
	if !strings.HasPrefix(line, ">") {
		return "", false
	}
	_, name, ok = strings.Cut(line, "<")
	end := strings.LastIndexByte(name, '>')
	if !ok || end < 1 {
		return "", false
	}
	return name[:end], true
}
