package records

import (
	"bufio"
	"bytes"
	"cmp"
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

// Bounds of what the decoder of XML holds in memory: the bytes of one tag or text, and how deep tags
// are nested.
const (
	maxTag   = 1 << 20
	maxDepth = 64
)

// graphML reads a file of GraphML, graph by graph. The keys before the first graph declare what nodes
// and graphs have.
type graphML struct {
	*reader
	in    *tagReader
	xml   *xml.Decoder
	depth int
	keys  map[string]*mlKey // by their id
	order []*mlKey          // as they stand in the file
	begun xml.StartElement  // the next graph
	err   error             // that ends the reading, io.EOF at the end of the file
}

// mlKey declares a value that nodes, edges or graphs have.
type mlKey struct {
	name      string
	domain    string // "node", "edge", "graph", or "all"
	preset    string // the value where there is none
	hasPreset bool
	attribute int  // its place among the attributes of nodes, or -1
	label     bool // whether it is the label of nodes
	// Whether it is the label or the weight of edges. One that all elements may have is none until an edge has it.
	edgeLabel, edgeWeight bool
	onEdges               bool // whether the reading says so
}

// appliesTo reports whether nodes, edges or graphs have the key.
func (k *mlKey) appliesTo(domain string) bool {
	return k.domain == domain || k.domain == "all"
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
	if err := r.setContent(Graphs); err != nil {
		return nil, err
	}
	if err := r.openText(); err != nil {
		return nil, err
	}
	m := &graphML{reader: r, in: &tagReader{Reader: bufio.NewReader(r.text)}, keys: map[string]*mlKey{}}
	m.xml = xml.NewDecoder(m.in)
	m.xml.CharsetReader = func(charset string, input io.Reader) (io.Reader, error) {
		if c := strings.ToLower(charset); strings.HasPrefix(c, "utf-16") || c == "us-ascii" {
			return input, nil // which is UTF-8 by now
		}
		return nil, fmt.Errorf("the encoding %s is not read: write the file in UTF-8", charset)
	}
	// The keys, up to the first graph.
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

// token returns the next token. err is io.EOF at </graphml>, and another error where the file ends
// before it.
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

// bad returns an error about the current line.
func (m *graphML) bad(format string, args ...any) error {
	line, _ := m.xml.InputPos()
	return &dataset.SyntaxError{File: m.file, Line: line, Reason: fmt.Sprintf(format, args...)}
}

// inside reads the tag that has begun to its end. It calls tag for each tag right inside, which tag reads
// to its end, and text for the texts.
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

// skip skips the rest of a tag that has begun.
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

// attribute returns the value of an attribute of a tag, "" if there is none.
func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// key reads the declaration of a key.
func (m *graphML) key(start xml.StartElement) (*mlKey, error) {
	id := attribute(start, "id")
	k := &mlKey{
		name:      attribute(start, "attr.name"),
		domain:    cmp.Or(attribute(start, "for"), "all"),
		attribute: -1,
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
		k.hasPreset = true
		k.preset, err = m.text()
		return err
	}, func([]byte) {})
}

// roles finds out what the keys are used for, and says so in the reading.
func (m *graphML) roles() error {
	named, err := m.namedAttributes()
	if err != nil {
		return err
	}
	label := "label"
	if !slices.ContainsFunc(
		m.order, func(k *mlKey) bool { return k.appliesTo("node") && k.name == label },
	) {
		label = "labels" // as Neo4j writes it
	}
	graphs := map[string]bool{"id": true}
	nodes := map[string]bool{}
	unused := map[string]bool{}
	for _, k := range m.order {
		used := false
		if k.appliesTo("graph") {
			graphs[k.name] = true
			used = k.name == m.o.ID || slices.Contains(m.o.Fields, k.name)
		}
		if k.appliesTo("node") {
			if nodes[k.name] {
				return m.bad("two keys of nodes are called %q", k.name)
			}
			nodes[k.name] = true
			if err := m.nodeRole(k, label, named); err != nil {
				return m.bad("%v", err)
			}
			used = used || k.label || k.attribute >= 0
		}
		if k.appliesTo("edge") {
			if err := m.edgeRole(k); err != nil {
				return m.bad("%v", err)
			}
		}
		if k.domain == "edge" && (k.edgeLabel || k.edgeWeight) {
			m.useForEdges(k)
			used = true
		}
		if !used {
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

// nodeRole makes a key of nodes their label, if it has that name, or one of their attributes. The names
// of the attributes are named or, if that is nil, begin with "attribute".
func (m *graphML) nodeRole(k *mlKey, label string, named []string) error {
	switch {
	case named == nil && strings.HasPrefix(k.name, "attribute") && !slices.Contains(m.o.Ignore, k.name):
		k.attribute = len(m.reading.Attributes)
		m.reading.Attributes = append(m.reading.Attributes, k.name)
	case slices.Contains(named, k.name):
		k.attribute = slices.Index(named, k.name)
	case k.name == label && !m.o.skips("labels", label):
		k.label = true
		m.reading.Labels = label
	default:
		return m.o.refused(k.name, "label")
	}
	return nil
}

// edgeRole makes a key of edges their label or their weight, if it has that name.
func (m *graphML) edgeRole(k *mlKey) error {
	switch {
	case k.name == "label" && !m.o.skips("edge_labels", k.name, "edge_label"):
		k.edgeLabel = true
	case k.name == "weight" && !m.o.skips("edge_weights", k.name):
		k.edgeWeight = true
	case k.domain == "edge": // others may be of nodes and graphs only
		return m.o.refused(k.name, "edge_label", "edge_weight")
	}
	return nil
}

// useForEdges says in the reading that a key is the label or the weight of edges.
func (m *graphML) useForEdges(k *mlKey) {
	if k.onEdges {
		return
	}
	k.onEdges = true
	if k.edgeLabel {
		m.reading.EdgeLabels = k.name
	} else {
		m.reading.EdgeWeights = k.name
	}
	m.reading.Unused = slices.DeleteFunc(m.reading.Unused, func(name string) bool { return name == k.name })
}

// mlGraph is the body of a graph of a GraphML file.
type mlGraph struct {
	rawGraph
	number map[string]int    // of the nodes, by id
	ends   [][2]string       // of the edges, by id
	values map[string]string // of the graph's keys, by name
	size   int
	err    error // the first error in it
}

// bad notes an error, unless there is one already.
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

// next reads the next graph.
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
		if k.hasPreset && k.appliesTo("graph") {
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

// part reads a tag right inside of a graph.
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
		return m.edge(g)
	case "hyperedge", "port":
		g.bad("a %s is not read", t.Name.Local)
	}
	return m.skip()
}

// node reads a node, with its label and its attributes.
func (m *graphML) node(g *mlGraph, t xml.StartElement) error {
	id := attribute(t, "id")
	if _, ok := g.number[id]; ok || id == "" {
		g.bad("the id %q of a node is missing or there twice", id)
	}
	values, err := m.values(g, "node "+id)
	m.addNode(g, id, values)
	return err
}

// values reads the rest of a node or an edge that has begun: its values by their keys.
func (m *graphML) values(g *mlGraph, item string) (values map[*mlKey]string, err error) {
	values = map[*mlKey]string{}
	isEdge := strings.HasPrefix(item, "edge ")
	for _, k := range m.order {
		if k.hasPreset && (!isEdge || k.domain == "edge") { // others are those of nodes or graphs
			values[k] = k.preset
		}
	}
	err = m.inside(func(t xml.StartElement) error {
		k := m.keys[attribute(t, "key")]
		switch {
		case t.Name.Local != "data":
			if t.Name.Local == "graph" || t.Name.Local == "port" {
				g.bad("%s has a %s inside, which is not read", item, t.Name.Local)
			}
			return m.skip()
		case k == nil:
			g.bad("there is no key %q", attribute(t, "key"))
			return m.skip()
		}
		value, err := m.text()
		values[k] = value
		return err
	}, func([]byte) {})
	return values, err
}

// edge reads the label or the weight of an edge whose ends have been read.
func (m *graphML) edge(g *mlGraph) error {
	item := fmt.Sprintf("edge %d", len(g.ends)-1)
	values, err := m.values(g, item)
	for _, k := range m.order {
		if g.err != nil || !k.edgeLabel && !k.edgeWeight {
			continue
		}
		value, ok := values[k]
		if !ok && k.domain == "all" {
			continue // only some elements have it; if these are some of the edges, their count is an error
		}
		if !ok {
			g.bad("%s has no %q", item, k.name)
			continue
		}
		m.useForEdges(k)
		add := g.addWeight
		if k.edgeLabel {
			add = g.edgeLabels.add
		}
		if err := add(value); err != nil {
			g.bad("%s: %v", item, err)
		}
	}
	return err
}

// addNode adds a node with these values of the keys to a graph.
func (m *graphML) addNode(g *mlGraph, id string, values map[*mlKey]string) {
	var row []float32
	if n := len(m.reading.Attributes); n > 0 {
		row = make([]float32, n)
	}
	for _, k := range m.order {
		if g.err != nil || !k.label && k.attribute < 0 {
			continue
		}
		value, ok := values[k]
		if !ok {
			g.bad("node %s has no %q", id, k.name)
			continue
		}
		if k.label {
			if err := g.labels.add(value); err != nil {
				g.bad("node %s: the label %q: %v", id, value, err)
			}
			continue
		}
		v, err := strconv.ParseFloat(value, 32)
		if err != nil || v-v != 0 {
			g.bad("node %s: %q of %s is not a finite number", id, value, k.name)
		}
		row[k.attribute] = float32(v)
	}
	if g.err != nil {
		return
	}
	g.number[id] = g.nodes
	g.nodes++
	if row != nil {
		g.attributes = append(g.attributes, row)
	}
	g.size += 1 + len(row)
}

// finish gives a graph its edges, and the record its ID and fields.
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
