package laboratory

import (
	"fmt"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/records"
)

// mostProperties bounds the columns of an SD file.
const mostProperties = 1000

// propertyReader reads the properties of an SD file by the rules of package records, but no molecules.
type propertyReader struct {
	names   []string       // in the order in which they first occur
	filled  map[string]int // how many records have a value, by name
	records int            // those with a molfile

	known     map[string]bool // the properties of the record, and whether they have a value
	latest    string          // the property whose value is being read
	mayBegin  bool            // a property may: behind the molfile, and behind a blank line
	isMolfile bool            // the molfile has not ended
}

// readProperties returns the properties of an SD file, and those that every record has a value of. A property that a
// record has again gets another name in the text, such as "y_2": the reader refuses a record with two values.
func (f *file) readProperties() (all, complete []string) {
	r := &propertyReader{
		filled:    map[string]int{},
		known:     map[string]bool{},
		isMolfile: true,
	}
	var text strings.Builder // from the first new name on, with all before it
	offset := 0
	for line := range strings.Lines(f.text) {
		named := r.read(line)
		if named != line && text.Len() == 0 {
			text.WriteString(f.text[:offset])
		}
		if text.Len() > 0 {
			text.WriteString(named)
		}
		offset += len(line)
	}
	r.end()
	if text.Len() > 0 {
		f.text = text.String()
	}
	for _, name := range r.names {
		if r.filled[name] == r.records {
			complete = append(complete, name)
		}
	}
	return r.names, complete
}

// end ends a record. One without a molfile cannot be used, and need not have what the others have.
func (r *propertyReader) end() {
	if !r.isMolfile {
		r.records++
	}
	for name, hasValue := range r.known {
		if hasValue {
			r.filled[name]++
		}
	}
	clear(r.known)
	r.isMolfile = true
}

// read reads a line, and returns it with the name that its property has.
func (r *propertyReader) read(line string) string {
	text := strings.TrimRight(line, " \t\r\n")
	name, isProperty := records.PropertyName(text)
	switch {
	case strings.HasPrefix(line, "$$$$"):
		r.end()
		return line
	case r.isMolfile:
		r.isMolfile = !strings.HasPrefix(line, "M  END")
		r.mayBegin = !r.isMolfile
		r.latest = ""
	case isProperty && r.mayBegin:
		r.mayBegin = false
		r.latest = r.distinct(name)
		r.known[r.latest] = false
		if _, isListed := r.filled[r.latest]; !isListed && len(r.names) < mostProperties {
			r.filled[r.latest] = 0
			r.names = append(r.names, r.latest)
		}
		line = strings.Replace(line, "<"+name+">", "<"+r.latest+">", 1)
	default:
		r.mayBegin = text == ""
		if !r.mayBegin && r.latest != "" {
			r.known[r.latest] = true
		}
	}
	return line
}

// distinct returns a name that no property of the record has yet.
func (r *propertyReader) distinct(name string) string {
	unique := name
	for n := 2; ; n++ {
		if _, isTaken := r.known[unique]; !isTaken {
			return unique
		}
		unique = fmt.Sprintf("%s_%d", name, n)
	}
}
