package records

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn/dataset"
)

// graphMLText has two graphs as networkx.write_graphml (3.6.1) writes one, with a default, nested text and a
// key of a program for drawing.
const graphMLText = `<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
  <key id="d3" for="node" attr.name="attribute_q" attr.type="double"><default>0.25</default></key>
  <key id="d2" for="node" attr.name="label" attr.type="long" />
  <key id="d4" for="node" yfiles.type="nodegraphics" />
  <key id="d1" for="graph" attr.name="name" attr.type="string" />
  <key id="d0" for="graph" attr.name="y" attr.type="double" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d2">6</data><data key="d3">0.5</data></node>
    <node id="1"><data key="d2"> 6 </data><data key="d4"><shape><w>3</w></shape>&lt;</data></node>
    <node id="n&quot;2"><data key="d2">8</data><data key="d3">2e0</data></node>
    <edge source="0" target="1" /><!-- a comment -->
    <edge id="e" source="1" target='n"2' directed="false" />
    <data key="d0">1.5</data><data key="d1">a</data>
  </graph>
  <graph edgedefault="directed" id="two">
    <edge source="b" target="a"><desc>nodes may come later</desc></edge>
    <node id="a"><data key="d2">1</data></node><node id="b"><data key="d2">2</data></node>
    <data key="d1">b</data>
  </graph>
</graphml>
`

func TestGraphML(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.graphml")
	jsonl := filepath.Join(t.TempDir(), "g.jsonl")
	write(t, jsonl, `{"edges":[[0,1],[1,2]],"labels":[6,6,8],"attributes":[[0.5],[0.25],[2]],"y":1.5,"name":"a"}`+"\n"+
		`{"edges":[[1,0]],"labels":[1,2],"attributes":[[0.25],[0.25]],"directed":true,"name":"b"}`+"\n")
	o := Options{ID: "name", Fields: []string{"y"}}
	want, err := ReadAll(t.Context(), jsonl, o)
	if err != nil {
		t.Fatal(err)
	}
	utf16 := []byte("\xff\xfe")
	for _, b := range []byte(strings.Replace(graphMLText, "utf-8", "UTF-16", 1)) {
		utf16 = append(utf16, b, 0)
	}
	for name, text := range map[string]string{
		"as it is": graphMLText, "UTF-16": string(utf16), "gzip": string(zipped(t, graphMLText)),
		"without a declaration": graphMLText[strings.Index(graphMLText, "<graphml"):],
	} {
		write(t, path, text)
		got, err := ReadAll(t.Context(), path, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(want.Set.Graphs, got.Set.Graphs); d != "" || got.Records[0].ID != "a" || got.Records[0].Fields[0] != "1.5" || got.Records[1].ID != "b" {
			t.Errorf("%s: %+v, %s", name, got.Records[0], d)
		}
		if r := got.Reading.String(); r != "2 graphs; id name; also read y; labels of nodes label; attributes of nodes attribute_q; not used d4" {
			t.Error(r)
		}
	}
	write(t, path, graphMLText)
	if got, err := readAll(t, path, Options{ID: "id"}); err != nil || !strings.Contains(got[0], `there is no "id"`) || !strings.HasPrefix(got[1], "2 16 two []") {
		t.Errorf("%q, %v", got, err)
	}
	if ds, err := Open(t.Context(), filepath.Dir(path), "g.graphml", dataset.Options{}); err == nil || ds != nil {
		t.Errorf("without classes: %v, %v", ds, err)
	}
	write(t, path, strings.NewReplacer(`<data key="d1">b`, `<data key="d0">2</data><data key="d1">b`).Replace(graphMLText)+"<!-- the end -->\n")
	if _, err := ReadAll(t.Context(), path, Options{Attributes: []string{"attribute_q"}}); err != nil {
		t.Errorf("a comment behind the end: %v", err)
	}
	for _, more := range []string{"trailing", graphMLText[strings.Index(graphMLText, "<graphml"):], "<"} {
		write(t, path, graphMLText+more)
		if _, err := ReadAll(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), "something follows </graphml>") {
			t.Errorf("%.10s behind the end: %v", more, err)
		}
	}
}

// TestGraphMLAll: a key of all elements, as one without "for" is, is the label or the weight of edges that have it, also
// where nodes have it as their label.
func TestGraphMLAll(t *testing.T) {
	text := func(key, node, first, second string) string {
		return `<graphml><key id="k" ` + key + `/><graph edgedefault="directed"><node id="a">` + node + `</node><node id="b">` + node + `</node>
<edge source="a" target="b">` + first + `</edge><edge source="b" target="a">` + second + `</edge></graph></graphml>`
	}
	const value = `<data key="k">7</data>`
	for _, c := range []struct{ text, want string }{
		{text(`attr.name="weight"`, "", value, value), "1 graphs; no features of nodes; weights of edges weight"},
		{text(`for="all" attr.name="weight"`, "", value, value), "1 graphs; no features of nodes; weights of edges weight"},
		{text(`attr.name="weight"`, value, "", ""), "1 graphs; no features of nodes; not used weight"},
		{text(`attr.name="label"`, value, value, value), "1 graphs; labels of nodes label; labels of edges label"},
		{text(`attr.name="label"`, value, "", ""), "1 graphs; labels of nodes label"},
		{text(`attr.name="edge_type"`, value, "", ""), "1 graphs; no features of nodes; not used edge_type"},
	} {
		table := readText(t, "g.graphml", c.text, Options{})
		if r := table.Reading.String(); r != c.want || (table.Set.Edges != nil) != strings.Contains(r, "of edges") {
			t.Errorf("%s\n%s, %+v; want %s", c.text, r, table.Set.Edges, c.want)
		}
	}
	path := filepath.Join(t.TempDir(), "g.graphml")
	write(t, path, text(`attr.name="weight"`, "", value, ""))
	if _, err := ReadAll(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), "1 weights for 2 edges") {
		t.Errorf("one weight: %v", err)
	}
}

// TestGraphMLErrors: a graph that cannot be used is a record with the reason, and what is wrong with the
// file ends the reading at its line.
func TestGraphMLErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.graphml")
	graph := func(inside string) string {
		return `<graphml><key id="l" for="node" attr.name="label"/><key id="a" for="all" attr.name="attribute"/><key id="y" for="graph" attr.name="y"/>` +
			"\n<graph edgedefault=\"undirected\">" + inside + "</graph>\n<graph><node id='z'><data key='l'>1</data><data key='a'>2</data></node></graph></graphml>"
	}
	node := func(id, label, a string) string {
		return fmt.Sprintf(`<node id="%s"><data key="l">%s</data><data key="a">%s</data></node>`, id, label, a)
	}
	for inside, want := range map[string]string{
		node("p", "6.5", "1"):                                 `node p: the label "6.5": want a whole number or a text`,
		node("p", "6", "inf"):                                 `node p: "inf" of attribute is not a finite number`,
		`<node id="p"><data key="a">1</data></node>`:          `node p has no "label"`,
		node("p", "6", "1") + node("p", "6", "1"):             `the id "p" of a node is missing or there twice`,
		node("p", "6", "1") + `<edge source="p" target="q"/>`: `an edge from "p" to "q": there is no such node`,
		node("p", "6", "1") + `<edge source="p" target="p"/><edge source="p" target="p" directed="true"/>`: "mixes directed and undirected edges",
		node("p", "6", "1") + `<hyperedge/>`:         "a hyperedge is not read",
		`<node id="p"><graph/></node>`:               "node p has a graph inside",
		`<node id="p"><data key="k">1</data></node>`: `there is no key "k"`,
		`<data key="k">1</data>`:                     `there is no key "k"`,
		"":                                           noNodes,
	} {
		write(t, path, graph(inside))
		got, err := readAll(t, path, Options{})
		if err != nil || len(got) != 2 || !strings.Contains(got[0], ":2: "+want) || !strings.HasPrefix(got[1], "2 3 2 [] 1×2 0") {
			t.Errorf("%s: %q, %v; want %s", inside, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"<html></html>":                       ":1: the file begins with <html>, want <graphml>",
		"\n<graphml>\n<graph>":                ":3: unexpected EOF",
		"":                                    ":1: the file ends too early",
		"<graphml>\n<graph></node></graphml>": ":2: element <graph> closed by </node>",
		"<graphml>\n<graph>&nbsp;</graph></graphml>":                                                   ":2: invalid character entity",
		`<?xml version="1.0" encoding="latin1"?><graphml/>`:                                            "the encoding latin1 is not read",
		`<graphml><key id="w" for="edge" attr.name="edge_attr"/><graph/></graphml>`:                    `"edge_attr": features of edges are not read`,
		`<graphml><key id="w" for="node"/><key id="w" for="node"/></graphml>`:                          `the id "w" of a key`,
		`<graphml><key id="v" for="node" attr.name="x"/><key id="w" attr.name="x"/><graph/></graphml>`: `two keys of nodes are called "x"`,
		"<graphml><graph/><key id='w'/></graphml>":                                                     "a key behind a graph",
		"<graphml>" + strings.Repeat("<a>", maxDepth+1):                                                "more than 64 tags within one another",
		"<graphml><graph>" + strings.Repeat(" ", maxTag+1):                                             "a tag or text of more than 1048576 bytes",
		"<graphml><graph id='" + strings.Repeat("a", maxTag):                                           "a tag or text of more than 1048576 bytes",
	} {
		write(t, path, text)
		err := Read(t.Context(), path, Options{}, func(*Record) error { return nil })
		var e *dataset.SyntaxError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", text, err, want)
		}
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Attributes: []string{"q"}}, `nodes have no "q"`}, {Options{Fields: []string{"z"}}, `graphs have no "z"; they have attribute, id, y`},
		{Options{Ignore: []string{"weight"}}, ""},
	} {
		write(t, path, graph(node("p", "6", "1")))
		if err := Read(t.Context(), path, c.o, func(*Record) error { return nil }); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	for edge, want := range map[string]bool{`directed="true"`: true, `directed="false"`: false, "": false} {
		write(t, path, graph(node("p", "6", "1")+node("q", "6", "1")+`<edge source="p" target="q" `+edge+`/>`))
		table, err := ReadAll(t.Context(), path, Options{})
		if err != nil || table.Records[0].Graph.Directed != want {
			t.Errorf("all edges are %q: %v", edge, err)
		}
	}
	write(t, path, "<graphml/>")
	if _, err := ReadAll(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), "there are no records") {
		t.Errorf("without graphs: %v", err)
	}
	defer func(n int) { maxGraphNumbers = n }(maxGraphNumbers)
	maxGraphNumbers = 10
	var large bytes.Buffer
	for i := range 20 {
		large.WriteString(node(fmt.Sprint(i), "1", "1"))
	}
	write(t, path, graph(large.String()))
	if got, err := readAll(t, path, Options{}); err != nil || len(got) != 2 || !strings.Contains(got[0], "a graph of more than 10 nodes") {
		t.Errorf("a large graph: %q, %v", got, err)
	}
}
