package records

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
)

// The most that a GraphML file has of one tag or text, in bytes, and of tags within tags: what the
// decoder of XML holds in memory.
const (
	maxTag   = 1 << 20
	maxDepth = 64
)

// graphML reads a file of GraphML, graph by graph. What nodes and graphs have is told by the
// keys before the first graph.
type graphML struct {
	*reader
	in    *tagReader
	xml   *xml.Decoder
	depth int
	keys  map[string]*mlKey // by their id
	order []*mlKey          // as they stand in the file
	begun xml.StartElement  // the next graph
	err   error             // that ends the file, io.EOF at its end
}

// mlKey is something that nodes, edges or graphs have.
type mlKey struct {
	name      string
	of        string // "node", "edge", "graph", or "all"
	preset    string // the value where there is none
	set       bool   // that there is a preset
	attribute int    // of nodes: its place among their attributes, or -1
	label     bool   // of nodes
}

// tagReader gives the decoder the bytes of one tag or text.
type tagReader struct {
	*bufio.Reader
	left int
}

var errTag = fmt.Errorf("a tag or text of more than %d bytes: %w", maxTag, dataset.ErrTooLarge)

// ReadByte implements [io.ByteReader], which is all that the decoder uses.
func (t *tagReader) ReadByte() (byte, error) {
	t.left--
	if t.left < 0 {
		return 0, errTag
	}
	return t.Reader.ReadByte()
}

func (r *reader) openGraphML() (next func() (*Record, error), err error) {
	if err := r.is(Graphs); err != nil {
		return nil, err
	}
	if err := r.openText(); err != nil {
		return nil, err
	}
	m := &graphML{reader: r, in: &tagReader{Reader: bufio.NewReader(r.text)}, keys: map[string]*mlKey{}}
	m.xml = xml.NewDecoder(m.in)
	m.xml.CharsetReader = func(charset string, input io.Reader) (io.Reader, error) {
		// which is UTF-8 by now
		if c := strings.ToLower(charset); strings.HasPrefix(c, "utf-16") || c == "us-ascii" {
			return input, nil
		}
		return nil, fmt.Errorf("the encoding %s is not read: write the file in UTF-8", charset)
	}
	root := false
	for m.begun.Name.Local == "" && m.err == nil {
		t, err := m.token()
		if err == io.EOF { // without graphs
			m.err = err
			break
		}
		if err != nil {
			return nil, err
		}
		start, ok := t.(xml.StartElement)
		switch {
		case !ok:
		case !root && start.Name.Local != "graphml":
			return nil, m.bad("the file begins with <%s>, want <graphml>", start.Name.Local)
		case !root:
			root = true
		case start.Name.Local == "key":
			k, err := m.key(start)
			if err != nil {
				return nil, err
			}
			m.order = append(m.order, k)
		case start.Name.Local == "graph":
			m.begun = start
		default:
			m.err = m.skip()
		}
	}
	if m.err != nil && m.err != io.EOF {
		return nil, m.err
	}
	if err := m.roles(); err != nil {
		return nil, err
	}
	return m.next, nil
}

// token returns the next token. At the end of the file it is an error, as a file ends with
// </graphml>, where err is io.EOF.
func (m *graphML) token() (xml.Token, error) {
	m.in.left = maxTag
	t, err := m.xml.Token()
	switch t.(type) {
	case xml.StartElement:
		m.depth++
		if m.depth > maxDepth {
			return nil, m.bad("more than %d tags within one another", maxDepth)
		}
	case xml.EndElement:
		m.depth--
		if m.depth == 0 {
			return nil, m.end()
		}
	}
	syntax, isSyntax := err.(*xml.SyntaxError)
	switch {
	case err == io.EOF:
		return nil, m.bad("the file ends too early")
	case isSyntax:
		return nil, m.bad("%s", syntax.Msg)
	case err != nil && m.ctx.Err() == nil:
		return nil, m.bad("%v", strings.TrimPrefix(err.Error(), "xml: "))
	}
	return t, err
}

// end returns io.EOF if only blanks and comments follow </graphml>.
func (m *graphML) end() error {
	for {
		m.in.left = maxTag
		t, err := m.xml.Token()
		text, isText := t.(xml.CharData)
		_, isTag := t.(xml.StartElement)
		switch {
		case err == io.EOF:
			return err
		case err != nil || isTag || isText && len(bytes.TrimSpace(text)) > 0:
			return m.bad("something follows </graphml>: put all graphs into one")
		}
	}
}

// bad returns an error about the line where the reading is.
func (m *graphML) bad(format string, args ...any) error {
	line, _ := m.xml.InputPos()
	return &dataset.SyntaxError{File: m.file, Line: line, Reason: fmt.Sprintf(format, args...)}
}

// inside calls f with the tags right inside of the one that has begun, each of which f reads to its end,
// and with the texts, until the end of that tag.
func (m *graphML) inside(tag func(xml.StartElement) error, text func([]byte)) error {
	for {
		t, err := m.token()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			err = tag(t)
		case xml.EndElement:
			return nil
		case xml.CharData:
			text(t)
		}
		if err != nil {
			return err
		}
	}
}

// skip passes over the rest of a tag that has begun.
func (m *graphML) skip() error {
	for end := m.depth - 1; m.depth > end; {
		if _, err := m.token(); err != nil {
			return err
		}
	}
	return nil
}

// text returns the text of a tag that has begun.
func (m *graphML) text() (string, error) {
	var b strings.Builder
	err := m.inside(func(xml.StartElement) error { return m.skip() }, func(t []byte) {
		if b.Len()+len(t) <= maxTag {
			b.Write(t)
		}
	})
	return strings.TrimSpace(b.String()), err
}

func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (m *graphML) key(start xml.StartElement) (*mlKey, error) {
	id := attribute(start, "id")
	k := &mlKey{name: attribute(start, "attr.name"), of: attribute(start, "for"), attribute: -1}
	if k.of == "" {
		k.of = "all"
	}
	if k.name == "" {
		k.name = id
	}
	if m.keys[id] != nil || id == "" {
		return nil, m.bad("the id %q of a key is missing or there twice", id)
	}
	m.keys[id] = k
	return k, m.inside(func(t xml.StartElement) (err error) {
		if t.Name.Local != "default" {
			return m.skip()
		}
		k.set = true
		k.preset, err = m.text()
		return err
	}, func([]byte) {})
}

// roles finds out what the keys are used for.
func (m *graphML) roles() error {
	named := m.o.Attributes
	if c := m.o.Columns; c != nil && c.Names != nil {
		if named != nil && !slices.Equal(named, c.Names) {
			return fmt.Errorf("dataset: %s: the model's attributes are %q, and not %q",
				m.file, c.Names, named)
		}
		named = c.Names
	}
	belongs := func(k *mlKey, kind string) bool { return k.of == kind || k.of == "all" }
	graphs := map[string]bool{"id": true}
	unused := map[string]bool{}
	nodes := map[string]bool{}
	label := "label"
	if !slices.ContainsFunc(m.order, func(k *mlKey) bool { return belongs(k, "node") && k.name == label }) {
		label = "labels" // as Neo4j writes it
	}
	for _, k := range m.order {
		if belongs(k, "graph") {
			graphs[k.name] = true
		}
		used := belongs(k, "graph") && (k.name == m.o.ID || slices.Contains(m.o.Fields, k.name))
		if belongs(k, "node") {
			if nodes[k.name] {
				return m.bad("two keys of nodes are called %q", k.name)
			}
			nodes[k.name] = true
		}
		switch {
		case !belongs(k, "node"):
		case named == nil && strings.HasPrefix(k.name, "attribute"):
			k.attribute = len(m.reading.Attributes)
			m.reading.Attributes = append(m.reading.Attributes, k.name)
		case slices.Contains(named, k.name):
			k.attribute = slices.Index(named, k.name)
		case k.name == label:
			k.label = true
			m.reading.Labels = label
		default:
			if err := m.o.refused(k.name, "label"); err != nil {
				return m.bad("%v", err)
			}
		}
		if belongs(k, "edge") {
			if err := m.o.refused(k.name); err != nil && k.of == "edge" {
				return m.bad("%v", err)
			}
		}
		if !used && k.attribute < 0 && !k.label {
			unused[k.name] = true
		}
	}
	for i, name := range named {
		if !slices.ContainsFunc(m.order, func(k *mlKey) bool { return k.attribute == i }) {
			return fmt.Errorf("dataset: %s: nodes have no %q, which is to be an attribute", m.file, name)
		}
	}
	if named != nil {
		m.reading.Attributes = named
	}
	m.reading.named = len(m.reading.Attributes) > 0
	for _, name := range append(slices.Clone(m.o.Fields), m.o.ID) {
		if name != "" && !graphs[name] {
			return fmt.Errorf("dataset: %s: graphs have no %q; they have %s",
				m.file, name, strings.Join(slices.Sorted(maps.Keys(graphs)), ", "))
		}
	}
	m.reading.Unused = slices.Sorted(maps.Keys(unused))
	return nil
}

type mlGraph struct {
	rawGraph
	number map[string]int // of the nodes, by id
	ends   [][2]string    // of the edges, by id
	values map[string]string
	size   int
	err    error // the first thing wrong with it
}

func (g *mlGraph) bad(format string, args ...any) {
	if g.err == nil {
		g.err = fmt.Errorf(format, args...)
	}
}

func (g *mlGraph) build(w *worker, rec *Record) (*graph.Graph, error) {
	if g.err != nil {
		return nil, g.err
	}
	return g.rawGraph.build(w, rec)
}

func (m *graphML) next() (*Record, error) {
	for m.begun.Name.Local != "graph" && m.err == nil {
		t, err := m.token()
		m.err = err
		start, ok := t.(xml.StartElement)
		switch {
		case !ok:
		case start.Name.Local == "graph":
			m.begun = start
		case start.Name.Local == "key":
			m.err = m.bad("a key behind a graph; want all of them before the first")
		default:
			m.err = m.skip()
		}
	}
	if m.err != nil {
		return nil, m.err
	}
	line, _ := m.xml.InputPos()
	rec := m.record(line)
	g := &mlGraph{number: map[string]int{}, values: map[string]string{"id": attribute(m.begun, "id")}}
	g.directed = attribute(m.begun, "edgedefault") == "directed"
	m.begun = xml.StartElement{}
	for _, k := range m.order {
		if k.set && k.of != "node" && k.of != "edge" {
			g.values[k.name] = k.preset
		}
	}
	m.err = m.inside(func(t xml.StartElement) error { return m.part(g, t) }, func([]byte) {})
	if m.err != nil {
		return nil, m.err
	}
	m.finish(g, rec)
	rec.body = g
	rec.size = g.size
	return rec, nil
}

func (m *graphML) part(g *mlGraph, t xml.StartElement) error {
	if g.size >= maxGraphNumbers {
		g.bad("a graph of more than %d nodes, their numbers, and edges", maxGraphNumbers)
	}
	switch t.Name.Local {
	case "data":
		k := m.keys[attribute(t, "key")]
		if k == nil {
			g.bad("there is no key %q", attribute(t, "key"))
			return m.skip()
		}
		value, err := m.text()
		g.values[k.name] = value
		return err
	case "node":
		return m.node(g, t)
	case "edge":
		directed := g.directed
		if text := attribute(t, "directed"); text != "" {
			directed = text == "true"
		}
		if len(g.ends) == 0 {
			g.directed = directed // whatever the default, where all edges say the same
		} else if directed != g.directed {
			g.bad("mixes directed and undirected edges")
		}
		if g.err == nil {
			g.ends = append(g.ends, [2]string{attribute(t, "source"), attribute(t, "target")})
			g.size += 2
		}
	case "hyperedge", "port":
		g.bad("a %s is not read", t.Name.Local)
	}
	return m.skip()
}

func (m *graphML) node(g *mlGraph, t xml.StartElement) error {
	id := attribute(t, "id")
	if _, ok := g.number[id]; ok || id == "" {
		g.bad("the id %q of a node is missing or there twice", id)
	}
	var row []float32
	if n := len(m.reading.Attributes); n > 0 {
		row = make([]float32, n)
	}
	missing := map[*mlKey]bool{}
	label := ""
	assign := func(k *mlKey, value string) {
		delete(missing, k)
		if k.label {
			label = value
		} else if k.attribute >= 0 {
			v, err := strconv.ParseFloat(value, 32)
			if err != nil || v-v != 0 {
				g.bad("node %s: %q of %s is not a finite number", id, value, k.name)
			}
			row[k.attribute] = float32(v)
		}
	}
	for _, k := range m.order {
		missing[k] = k.label || k.attribute >= 0
		if k.set {
			assign(k, k.preset)
		}
	}
	err := m.inside(func(t xml.StartElement) error {
		k := m.keys[attribute(t, "key")]
		switch {
		case t.Name.Local != "data":
			if t.Name.Local == "graph" || t.Name.Local == "port" {
				g.bad("node %s has a %s inside, which is not read", id, t.Name.Local)
			}
			return m.skip()
		case k == nil:
			g.bad("there is no key %q", attribute(t, "key"))
			return m.skip()
		}
		value, err := m.text()
		assign(k, value)
		return err
	}, func([]byte) {})
	for _, k := range m.order {
		if missing[k] {
			g.bad("node %s has no %q", id, k.name)
		}
	}
	if m.reading.Labels != "" && g.err == nil {
		if err := g.addLabel(label); err != nil {
			g.bad("node %s: the label %q: %v", id, label, err)
		}
	}
	if g.err == nil {
		g.number[id] = g.nodes
		g.nodes++
		if row != nil {
			g.attributes = append(g.attributes, row)
		}
		g.size += 1 + len(row)
	}
	return err
}

// finish gives a graph its edges, and the record what stands beside it.
func (m *graphML) finish(g *mlGraph, rec *Record) {
	for _, e := range g.ends {
		source, okS := g.number[e[0]]
		target, okT := g.number[e[1]]
		if !okS || !okT {
			g.bad("an edge from %q to %q: there is no such node", e[0], e[1])
		}
		g.edges = append(g.edges, [2]int{source, target})
	}
	g.number = nil
	g.ends = nil
	for _, name := range m.o.Fields {
		rec.Fields = append(rec.Fields, g.values[name])
	}
	if m.o.ID != "" {
		rec.ID = g.values[m.o.ID]
		if rec.ID == "" {
			g.bad("there is no %q, which is to name the graph", m.o.ID)
		}
	}
}
