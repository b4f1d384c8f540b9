package records

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
)

// smiles is the body of a molecule that is written as a SMILES.
type smiles string

func (s smiles) build(w *worker, rec *Record) (*graph.Graph, error) {
	if len(s) > maxSMILES {
		return nil, fmt.Errorf("a SMILES of %d bytes; want at most %d", len(s), maxSMILES)
	}
	if s == "" {
		return nil, errors.New("the SMILES is empty")
	}
	rec.SMILES = string(s)
	m, err := w.parser.Parse(string(s))
	g, err := w.molecule(rec, m, err)
	if err == nil {
		return g, nil
	}
	reason := err.Error()
	if e := new(molecule.Error); errors.As(err, &e) {
		reason = fmt.Sprintf("character %d of the SMILES: %s", e.Column, e.Reason)
	}
	return nil, &dataset.SyntaxError{Value: textfile.Shorten(string(s)), Reason: reason}
}

// molecule returns the graph of a molecule, unless parsing it returned an error, and gives the record
// its scaffold and its identity if these are wanted.
func (w *worker) molecule(rec *Record, m *molecule.Molecule, err error) (*graph.Graph, error) {
	if err != nil {
		return nil, err
	}
	g, err := m.GraphOf(w.categories)
	if ce := new(molecule.CategoryError); errors.As(err, &ce) {
		err = errors.New(ce.Reason)
	}
	if err == nil && w.o.Hu2020 {
		if i := slices.IndexFunc(m.Atoms, func(a molecule.Atom) bool { return a.Z == 0 }); i >= 0 {
			err = fmt.Errorf("atom %d is a wildcard, of which Hu et al. have no category", i)
		}
	}
	if err != nil {
		return nil, err
	}
	if w.vectors != nil {
		g.Globals = w.vectors.Vector(m)
	}
	if w.o.Molecules {
		rec.Molecule = m.Clone()
	}
	if w.o.Scaffolds || w.o.Identities {
		m = w.parser.Unmapped(m) // the numbers of a reaction do not make another molecule
	}
	if w.o.Scaffolds {
		rec.Scaffold = w.parser.Scaffold(m)
	}
	if w.o.Identities {
		sum := sha256.Sum256([]byte(w.parser.Canonical(m)))
		rec.Identity = [16]byte(sum[:])
	}
	return g, nil
}

// name returns the name behind a SMILES, without the extension |…| of CXSMILES.
func name(text string) string {
	text = strings.TrimSpace(text)
	if extension, ok := strings.CutPrefix(text, "|"); ok {
		if _, after, ok := strings.Cut(extension, "|"); ok {
			return strings.TrimSpace(after)
		}
	}
	return text
}

// maxSMILES is how many bytes a SMILES may have, far more than that of any molecule.
const maxSMILES = 1 << 20

// openSMI opens a list of SMILES.
func (r *reader) openSMI() (next func() (*Record, error), err error) {
	if err := r.setContent(Molecules); err != nil {
		return nil, err
	}
	if len(r.o.Fields) > 0 {
		return nil, fmt.Errorf("dataset: %s: has no columns, such as %q; want a .csv",
			r.file, r.o.Fields[0])
	}
	if err := r.openText(); err != nil {
		return nil, err
	}
	lines := r.text.Lines()
	return func() (*Record, error) {
		text, rec, err := r.line(lines)
		if err != nil {
			return nil, err
		}
		line := text
		if end := strings.IndexAny(text, " \t"); end > 0 {
			id := name(text[end:])
			text = text[:end]
			rec.ID = cmp.Or(id, rec.ID)
			if err := textfile.CheckUTF8(id); err != nil && rec.Err == nil {
				rec.Err = &dataset.SyntaxError{
					File:   r.file,
					Line:   rec.Line,
					Value:  textfile.Shorten(id),
					Reason: err.Error(),
				}
			}
		}
		rec.body = smiles(text)
		if rec.Number == 1 && r.mayBeTable(line) {
			rec.body = firstOfList{smiles(text), line}
		}
		return rec, nil
	}, nil
}

// mayBeTable reports whether the first line of a list may be the header of a table instead, as it has separators.
// Lists may have a header, too; tables are often named .txt.
func (r *reader) mayBeTable(line string) bool {
	isLikely := endingOf(r.file) == ".txt" || strings.Contains(strings.ToLower(line), "smiles")
	return isLikely && strings.ContainsAny(line, "\t,;")
}

// firstOfList is the body of the molecule in the first line of a list, which may be the header of a table instead.
type firstOfList struct {
	smiles
	line string
}

func (f firstOfList) build(w *worker, rec *Record) (*graph.Graph, error) {
	g, err := f.smiles.build(w, rec)
	if err == nil {
		return g, nil
	}
	front := f.line[:strings.IndexAny(f.line, " \t,;")]
	if _, parsing := w.parser.Parse(front); parsing == nil {
		return nil, err
	}
	return nil, &dataset.SyntaxError{
		Value:  textfile.Shorten(f.line),
		Reason: "there is no SMILES in front: if this is a table, -format csv reads it",
	}
}

// openCSV opens a table of molecules or of edges.
func (r *reader) openCSV() (next func() (*Record, error), err error) {
	if err := r.openText(); err != nil {
		return nil, err
	}
	rows, err := r.text.Rows()
	if err != nil {
		return nil, err
	}
	if isEdgeList(rows.Header) {
		return r.openEdges(rows)
	}
	if err := r.setContent(Molecules); err != nil {
		return nil, err
	}
	column, err := r.smilesColumn(rows)
	if err != nil {
		return nil, err
	}
	ahead := column < 0 // the first row was read to find the column
	if ahead {
		column, err = r.columnOfMolecules(rows)
		if err != nil {
			return nil, err
		}
	}
	id, fields, err := r.columns(rows)
	if err != nil {
		return nil, err
	}
	r.reading.SMILES = rows.Header[column]
	for i, name := range rows.Header {
		if i != column && i != id && !slices.Contains(fields, i) {
			r.reading.Unused = append(r.reading.Unused, name)
		}
	}
	return func() (*Record, error) {
		var err error
		if !ahead {
			err = rows.Next()
		}
		ahead = false
		if bad, ok := err.(*dataset.SyntaxError); ok {
			rec := r.record(bad.Line)
			rec.Err = bad
			return rec, nil
		}
		if err != nil {
			return nil, err
		}
		rec := r.record(rows.Line(column))
		text := strings.TrimSpace(rows.Row[column])
		rec.body = smiles(text)
		rec.size = len(text)
		rec.take(rows, id, fields)
		return rec, nil
	}, nil
}

// smilesColumn returns the position of the column of SMILES, by its name; -1 if no name tells.
func (r *reader) smilesColumn(rows *textfile.Rows) (int, error) {
	if r.o.SMILES != "" {
		return rows.Column(r.o.SMILES)
	}
	var similar []int
	var names []string
	for i, h := range rows.Header {
		switch h := strings.ToLower(strings.TrimSpace(h)); {
		case h == "smiles":
			return rows.Column(rows.Header[i])
		case strings.Contains(h, "smiles"):
			similar = append(similar, i)
			names = append(names, rows.Header[i])
		}
	}
	switch {
	case len(similar) == 1:
		return similar[0], nil
	case len(similar) > 1:
		return 0, rows.BadHeader(strings.Join(rows.Header, ","), fmt.Sprintf(
			`no column "smiles", and several whose names contain it: say which (-smiles-column %s)`,
			strings.Join(names, " or ")))
	}
	if names := almostEdges(rows.Header); names != "" {
		return 0, rows.BadHeader(names,
			"a table of edges has the columns graph, source and target by these names")
	}
	return -1, nil
}

// columnOfMolecules reads the first row, and returns the position of the only column that has a molecule
// of three atoms or more there (NO is an answer), for a table whose header does not tell.
func (r *reader) columnOfMolecules(rows *textfile.Rows) (int, error) {
	header := strings.Join(rows.Header, ",")
	isMolecule := func(text string) bool {
		m, err := molecule.Parse(strings.TrimSpace(text))
		return err == nil && len(m.Atoms) > 2
	}
	if slices.ContainsFunc(rows.Header, isMolecule) {
		return 0, rows.BadHeader(header, `no column "smiles"; this line has a molecule, where the names of the `+
			"columns should be: write smiles above it, or name the file .smi")
	}
	if err := rows.Next(); err != nil {
		return 0, rows.BadHeader(header, `no column "smiles"`)
	}
	var found []int
	var names []string
	for i, text := range rows.Row {
		if isMolecule(text) {
			found = append(found, i)
			names = append(names, rows.Header[i])
		}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(rows.Header, func(column string) bool { return strings.EqualFold(column, name) })
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return 0, rows.BadHeader(header, fmt.Sprintf(`no column "smiles", and several have molecules: say which `+
			"(-smiles-column %s)", strings.Join(names, " or ")))
	case has("source") && has("target"):
		return 0, rows.BadHeader(header, `no column "smiles"; a table of edges has a column graph `+
			"besides source and target")
	}
	return 0, rows.BadHeader(header, `no column "smiles", and the first row has no molecule: say which column has `+
		"them (-smiles-column)")
}

// columns returns the positions of the ID, -1 if there is none, and of the fields in a table.
func (r *reader) columns(rows *textfile.Rows) (id int, fields []int, err error) {
	id = -1
	if r.o.ID != "" {
		id, err = rows.Column(r.o.ID)
		if err != nil {
			return 0, nil, err
		}
	}
	for _, name := range r.o.Fields {
		f, err := rows.Column(name)
		if err != nil {
			return 0, nil, err
		}
		fields = append(fields, f)
	}
	return id, fields, nil
}

// take gives the record its ID and its fields, and an Err if one of them is not in UTF-8.
func (rec *Record) take(rows *textfile.Rows, id int, fields []int) {
	if id >= 0 {
		rec.ID = rows.Row[id]
		rec.checkField(rows, id)
	}
	for _, f := range fields {
		rec.Fields = append(rec.Fields, rows.Row[f])
		rec.checkField(rows, f)
	}
}

func (rec *Record) checkField(rows *textfile.Rows, field int) {
	if err := textfile.CheckUTF8(rows.Row[field]); err != nil && rec.Err == nil {
		rec.Err = rows.Bad(field, err.Error())
	}
}
