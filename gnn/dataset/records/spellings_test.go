package records

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn/graph"
)

// readText reads a file of this name and these contents.
func readText(t *testing.T, name, text string, o Options) *Table {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, text)
	table, err := ReadAll(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestSpellings: a node is the same whether it is written as 1 or as 1.0, as columns with gaps are, and
// so is a label.
func TestSpellings(t *testing.T) {
	for name, text := range map[string]string{
		"as they are":  "graph,source,target\n1,1,2\n1,2,3\n1,3,1\n",
		"with gaps":    "graph,source,target\n1,1,2.0\n1,2,3.0\n1,3,1.0\n",
		"more zeros":   "graph,source,target\n1,1.000,2\n1,2,3.\n1,3.00,1\n",
		"with a label": "graph,source,target,label\n1,1,,4.0\n1,2.0,,4.0\n1,3,,4.0\n1,1.0,2.0,\n1,2,3.0,\n1,3,1,\n",
	} {
		g := readText(t, "e.csv", text, Options{}).Set.Graphs[0]
		if want := []int32{1, 2, 0, 2, 0, 1}; !cmp.Equal(g.Adj, want) {
			t.Errorf("%s: neighbours %v, want %v", name, g.Adj, want)
		}
	}
	table := readText(t, "e.csv", "graph,source,target,label\n1,-0.5,,4.0\n1,1.5,,6\n1,v1.0,,6.00\n1,v1,,6\n", Options{})
	columns, err := table.Set.Columns()
	want := []graph.LabelValues{{Min: 4, Width: 3, Unseen: []int{5}}}
	if err != nil || !cmp.Equal(columns.Labels, want) || table.Set.Graphs[0].Nodes() != 4 {
		t.Errorf("%+v of %d nodes, %v", columns, table.Set.Graphs[0].Nodes(), err)
	}
	if got := readText(t, "g.jsonl", `{"edges":[],"labels":[4.0,6,"6"]}`, Options{}).Set.NodeLabels; got[0].Min != 4 || got[0].Width != 3 || got[0].Names != nil {
		t.Errorf("%+v", got)
	}
}

// TestDroppedEdges: self-loops and repeated edges are said, and an undirected edge that is listed in both
// directions is no repeated one.
func TestDroppedEdges(t *testing.T) {
	for text, want := range map[string]string{
		`{"nodes":3,"edges":[[0,1],[1,2],[0,0]]}`:                                  "1 graphs; no features of nodes; 1 self-loops dropped",
		`{"nodes":3,"edges":[[0,1],[1,0],[1,2],[2,1]]}`:                            "1 graphs; no features of nodes",
		`{"nodes":3,"edges":[[0,1],[1,0],[1,2]]}`:                                  "1 graphs; no features of nodes",
		`{"nodes":3,"edges":[[0,1],[0,1],[1,0],[2,2],[2,2]]}` + "\n" + `{"a":1}`:   "2 graphs, of which 1 are skipped; no features of nodes; 1 self-loops and 2 repeated edges dropped",
		`{"nodes":2,"edges":[[0,1],[0,0],[0,0],[1,1]]}`:                            "1 graphs; no features of nodes; 2 self-loops and 1 repeated edges dropped",
		`{"nodes":3,"edges":[[0,1],[1,0],[0,1]],"directed":true}`:                  "1 graphs; no features of nodes; 1 repeated edges dropped",
		`{"nodes":3,"edges":[[0,1]]}` + "\n" + `{"nodes":2,"edges":[[1,1],[0,1]]}`: "2 graphs; no features of nodes; 1 self-loops dropped",
	} {
		table := readText(t, "g.jsonl", text, Options{})
		if got := table.Reading.String(); got != want {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
		if s := table.Set; s.SelfLoops != table.Reading.SelfLoops || s.Duplicates != table.Reading.Repeats {
			t.Errorf("%s: the set has %d and %d", text, s.SelfLoops, s.Duplicates)
		}
	}
}

// TestTextLabels: labels of nodes may be texts. A model finds them by name in another file, whatever
// its format and the order of the labels there, and refuses others.
func TestTextLabels(t *testing.T) {
	const jsonl = `{"edges":[[0,1],[1,2]],"labels":["C","O","7"]}` + "\n" + `{"edges":[],"labels":[7]}`
	trained := readText(t, "g.jsonl", jsonl, Options{})
	if r := trained.Reading.String(); r != "2 graphs; labels of nodes labels" {
		t.Error(r)
	}
	columns, err := trained.Set.Columns()
	want := []graph.LabelValues{{Width: 3, Names: []string{"7", "C", "O"}}}
	if err != nil || !cmp.Equal(columns.Labels, want) {
		t.Fatalf("%+v, %v", columns, err)
	}
	if x := trained.Set.Graphs[0].X; x.Width != 3 || !cmp.Equal(x.Category, []int32{1, 2, 0}) || trained.Set.Graphs[1].X.Category[0] != 0 {
		t.Errorf("%+v", x)
	}
	card, err := json.Marshal(columns)
	if err != nil {
		t.Fatal(err)
	}
	columns = graph.Columns{}
	if err := json.Unmarshal(card, &columns); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"g.jsonl":   `{"edges":[[1,0],[0,2]],"labels":["O","C",7]}`,
		"n.jsonl":   `{"nodes":[{"id":"a","label":"O"},{"id":"b","label":"C"},{"id":"c","label":"7"}],"links":[{"source":"b","target":"a"},{"source":"c","target":"a"}]}`,
		"e.csv":     "graph,source,target,label\ng,a,,O\ng,b,,C\ng,c,,7.0\ng,a,b,\ng,c,a,\n",
		"g.graphml": `<graphml><key id="l" for="node" attr.name="label"/><graph><node id="a"><data key="l">O</data></node><node id="b"><data key="l">C</data></node><node id="c"><data key="l">7</data></node><edge source="a" target="b"/><edge source="a" target="c"/></graph></graphml>`,
	} {
		got := readText(t, name, text, Options{Columns: &columns}).Set.Graphs[0]
		if !cmp.Equal(got.X.Category, []int32{2, 1, 0}) || !cmp.Equal(got.Adj, []int32{1, 2, 0, 0}) {
			t.Errorf("%s: %+v", name, got)
		}
		// The columns of a set of its own are exchanged by name, too.
		set := readText(t, name, text, Options{}).Set
		with, err := set.WithColumns(columns)
		if err != nil || !cmp.Equal(with.Graphs[0], got) {
			t.Errorf("%s: %v", name, err)
		}
	}
	numbers := graph.Columns{Labels: []graph.LabelValues{{Min: 1, Width: 2}}}
	other := 0
	lenient := graph.Columns{Labels: []graph.LabelValues{{Width: 1, Names: []string{"C"}, Other: &other}}}
	for _, c := range []struct {
		text    string
		columns *graph.Columns
		want    string
	}{
		{`{"edges":[],"labels":["N"]}`, &columns, `node 0: the label "N", which the model has not seen; it has seen ["7" "C" "O"]`},
		{`{"edges":[],"labels":[1,3]}`, &columns, `node 0: the label "1", which the model has not seen`},
		{`{"edges":[],"labels":["1","b"]}`, &numbers, `node 1: has the label "b", a text; the model has seen 1 to 2`},
		{`{"edges":[],"labels":["1","2"]}`, &numbers, "<nil>"},
		{`{"edges":[],"labels":["N",5]}`, &lenient, "<nil>"},
		{`{"edges":[],"labels":["a",""]}`, nil, `"labels": want a whole number or a text`},
		{`{"edges":[],"labels":["","a"]}`, nil, `"labels": want a whole number or a text`},
		{`{"edges":[],"labels":["a",true]}`, nil, `"labels": want a whole number or a text`},
		{`{"edges":[],"labels":["a",["b"]]}`, nil, `"labels": want a whole number or a text`},
		{`{"edges":[],"labels":["a",1.5]}`, nil, `"labels": want a whole number or a text`},
		{`{"edges":[],"labels":["null",1]}`, nil, "<nil>"},
	} {
		path := filepath.Join(t.TempDir(), "g.jsonl")
		write(t, path, c.text)
		if _, err := ReadAll(t.Context(), path, Options{Columns: c.columns}); !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v; want %s", c.text, err, c.want)
		}
	}
	for _, l := range []graph.LabelValues{{Width: 2, Names: []string{"a"}}, {Width: 2, Names: []string{"b", "a"}}, {Min: 1, Width: 1, Names: []string{"a"}}} {
		if err := (graph.Columns{Labels: []graph.LabelValues{l}}).Check(); err == nil {
			t.Errorf("%+v can be columns", l)
		}
	}
}

// TestNeo4j: a graph as Neo4j's apoc.export.graphml writes it has its labels as labels of nodes, and what
// is not used is said.
func TestNeo4j(t *testing.T) {
	table := readText(t, "g.graphml", `<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="name" for="node" attr.name="name" attr.type="string"/>
<key id="labels" for="node" attr.name="labels" attr.type="string"/>
<key id="label" for="edge" attr.name="label" attr.type="string"/>
<graph id="G" edgedefault="directed">
<node id="n0" labels=":Person"><data key="labels">:Person</data><data key="name">Ann</data></node>
<node id="n1" labels=":Film"><data key="labels">:Film</data><data key="name">Alien</data></node>
<edge id="e0" source="n0" target="n1" label="SAW"><data key="label">SAW</data></edge>
</graph></graphml>`, Options{})
	if r := table.Reading.String(); r != "1 graphs; labels of nodes labels; labels of edges label; not used name" {
		t.Error(r)
	}
	g := table.Set.Graphs[0]
	if !cmp.Equal(table.Set.Edges, &graph.EdgeValues{Labels: &graph.LabelValues{Width: 1, Names: []string{"SAW"}}}) {
		t.Errorf("edges %+v", table.Set.Edges)
	}
	if !g.Directed || !cmp.Equal(g.X.Category, []int32{1, 0}) || !cmp.Equal(table.Set.NodeLabels[0].Names, []string{":Film", ":Person"}) {
		t.Errorf("%+v, %+v", g, table.Set.NodeLabels)
	}
}

// TestHuggingFace: graphs in the layout of the data sets on Hugging Face.
func TestHuggingFace(t *testing.T) {
	const text = `{"edge_index":[[0,1,1,2],[1,0,2,1]],"edge_attr":[[1],[1],[2],[2]],"y":[[1]],"num_nodes":3,"node_feat":[[5,0],[6,0],[7,1]]}`
	table := readText(t, "g.jsonl", text, Options{Fields: []string{"y"}, Ignore: []string{"edge_attr"}})
	if r := table.Reading.String(); r != "1 graphs; also read y; attributes of nodes attributes; not used edge_attr" {
		t.Error(r)
	}
	g := table.Set.Graphs[0]
	if g.Directed || !cmp.Equal(g.Adj, []int32{1, 0, 2, 1}) || !cmp.Equal(g.X.Dense, []float32{5, 0, 6, 0, 7, 1}) || table.Records[0].Fields[0] != "1" {
		t.Errorf("%+v, %q", g, table.Records[0].Fields)
	}
	labelled := readText(t, "g.jsonl", text, Options{})
	if r := labelled.Reading.String(); r != "1 graphs; attributes of nodes attributes; labels of edges edge_labels; not used y" {
		t.Error(r)
	}
	if g := labelled.Set.Graphs[0]; !cmp.Equal(g.EdgeLabel, []int32{0, 0, 1, 1}) {
		t.Errorf("labels of edges %v", g.EdgeLabel)
	}
	path := filepath.Join(t.TempDir(), "g.jsonl")
	for bad, want := range map[string]string{
		strings.Replace(text, "[1],[1],[2]", "[1],[1,0],[2]", 1):                                                                              `"edge_attr": features of edges are not read`,
		strings.Replace(text, "[1],[1],[2]", "[1],[1.5],[2]", 1):                                                                              `"edge_attr": features of edges are not read`,
		strings.Replace(text, "[1],[1],[2]", "[1],[null],[2]", 1):                                                                             `"edge_attr": features of edges are not read`,
		strings.Replace(text, `"y"`, `"edge_labels":[1,1,2,2],"y"`, 1):                                                                        `"edge_attr": features of edges are not read`,
		`{"edge_index":[[0,1],[1,0]],"edge_attr":[[1]],"num_nodes":2}`:                                                                        `"edge_attr": 1 labels for 2 edges; -ignore edge_attr reads`,
		`{"edge_index":[[0,1],[1,0]],"edge_attr":[[1],[2]],"num_nodes":2}`:                                                                    `"edge_attr": edge 1 joins 1 and 0 once more, with another label or weight; -ignore edge_attr`,
		`{"edge_index":[[0,1],[1,2]],"edge_attr":[[-5],[3000000]],"num_nodes":3}`:                                                             `"edge_attr": columns: column 1 of the labels has 3000006 values`,
		`{"edge_index":[[0],[1]],"edge_attr":[[-5]],"num_nodes":2}` + "\n" + `{"edge_index":[[0],[1]],"edge_attr":[[3000000]],"num_nodes":2}`: `3000006 values from -5 on; want 1 to 1048576; -ignore edge_attr reads the graph without them`,
		`{"edge_index":[[0,1],[1]],"num_nodes":3}`:                                                                                            `"edge_index": want two lists of nodes of the same length`,
		`{"edge_index":[[null],[1]],"num_nodes":3}`:                                                                                           `"edge_index": want two lists`,
		`{"edge_index":[[0],[3]],"num_nodes":3}`:                                                                                              "node 3 is outside 0..2",
		`{"edge_index":[[0],[1]],"num_nodes":"many"}`:                                                                                         `"nodes": want the number of nodes`,
		`{"edge_index":[[0],[1]],"num_nodes":2,"attributes":[[1],[2]],"node_feat":[[3],[4]]}`:                                                 `has "attributes" and "node_feat"`,
	} {
		write(t, path, bad)
		if _, err := ReadAll(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", bad, err, want)
		}
	}
}

// TestIgnoredNodes: labels and attributes of nodes are skipped where they are ignored, in each format, unless a model
// wants them.
func TestIgnoredNodes(t *testing.T) {
	for name, text := range map[string]string{
		"g.jsonl":   `{"edges":[[0,1]],"nodes":2,"labels":[1,2],"attributes":[[3],[4]]}`,
		"h.jsonl":   `{"edge_index":[[0],[1]],"num_nodes":2,"labels":[1,2],"node_feat":[[3],[4]]}`,
		"n.jsonl":   `{"nodes":[{"id":0,"label":1,"attributes":[3]},{"id":1,"label":2,"attributes":[4]}],"links":[{"source":0,"target":1}]}`,
		"e.csv":     "graph,source,target,label,attribute_x\ng,a,,1,3\ng,b,,2,4\ng,a,b,,\n",
		"g.graphml": `<graphml><key id="l" for="node" attr.name="label"/><key id="x" for="node" attr.name="attribute_x"/><graph><node id="a"><data key="l">1</data><data key="x">3</data></node><node id="b"><data key="l">2</data><data key="x">4</data></node><edge source="a" target="b"/></graph></graphml>`,
	} {
		whole := readText(t, name, text, Options{})
		if whole.Set.FeatureWidth != 3 {
			t.Errorf("%s: %d features", name, whole.Set.FeatureWidth)
		}
		for _, c := range []struct {
			ignore []string
			width  int
		}{
			{[]string{"label", "labels"}, 1},
			{[]string{"attribute_x", "attributes"}, 2},
			{[]string{"label", "labels", "attribute_x", "attributes"}, 1},
		} {
			table := readText(t, name, text, Options{Ignore: c.ignore})
			if r := table.Reading.String(); table.Set.FeatureWidth != c.width || strings.Contains(r, "of nodes "+c.ignore[0]) {
				t.Errorf("%s without %v: %d features; %s", name, c.ignore, table.Set.FeatureWidth, r)
			}
		}
		// Targets are ignored by predict, and may have the name of the labels.
		columns, err := whole.Set.Columns()
		if err != nil {
			t.Fatal(err)
		}
		again := readText(t, name, text, Options{Columns: &columns, Ignore: []string{"label", "labels", "attributes"}})
		if !cmp.Equal(again.Set.Graphs, whole.Set.Graphs) {
			t.Errorf("%s: other graphs by the columns of the set", name)
		}
	}
	path := filepath.Join(t.TempDir(), "g.jsonl")
	write(t, path, `{"edges":[[0,1]],"labels":[1,2]}`)
	if _, err := ReadAll(t.Context(), path, Options{Ignore: []string{"labels"}}); err == nil || !strings.Contains(err.Error(), "nothing says how many nodes") {
		t.Errorf("labels alone: %v", err)
	}
	both := readText(t, "g.jsonl", `{"edge_index":[[0],[1]],"num_nodes":2,"attributes":[[1],[2]],"node_feat":[[3,3],[4,4]]}`, Options{Ignore: []string{"node_feat"}})
	if both.Set.FeatureWidth != 1 {
		t.Errorf("node_feat is ignored: %d features", both.Set.FeatureWidth)
	}
}

// TestIgnoredEdges: edge_label is the label of edges alone, where nodes have one, too.
func TestIgnoredEdges(t *testing.T) {
	for name, text := range map[string]string{
		"g.graphml": `<graphml><key id="l" for="node" attr.name="label"/><key id="e" for="edge" attr.name="label"/><graph><node id="a"><data key="l">1</data></node><node id="b"><data key="l">2</data></node><edge source="a" target="b"><data key="e">5</data></edge></graph></graphml>`,
		"n.jsonl":   `{"nodes":[{"id":0,"label":1},{"id":1,"label":2}],"links":[{"source":0,"target":1,"label":5}]}`,
	} {
		set := readText(t, name, text, Options{Ignore: []string{"edge_label", "edge_labels"}}).Set
		if set.FeatureWidth != 2 || set.Edges != nil {
			t.Errorf("%s: %d features, edges %+v", name, set.FeatureWidth, set.Edges)
		}
	}
}

// TestLatin1: what is used of a record must be in UTF-8, so that two texts do not become one.
func TestLatin1(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		o    Options
		bad  string // the records that are refused
	}{
		"m.csv":   {"smiles,id,class,note\nC,a,h\xe4rt,\nC,b,h\xf6rt,\nC,c\xff,hart,\nC,d,hart,\xe4\n", Options{ID: "id", Fields: []string{"class"}}, "1 2 3"},
		"m.smi":   {"C m\xff1\nC m\xfe1\nC m1\n", Options{}, "1 2"},
		"e.csv":   {"graph,source,target\na,\xe4,\xf6\nb,a,b\n\xe4,1,2\n", Options{}, "1 3"},
		"l.csv":   {"graph,source,target,label\na,1,,\xe4\nb,1,,x\n", Options{}, "1"},
		"g.jsonl": {"{\"edges\":[],\"nodes\":1,\"y\":\"\xe4\"}\n{\"edges\":[],\"nodes\":1}\n", Options{}, "1"},
	} {
		path := filepath.Join(t.TempDir(), name)
		write(t, path, c.text)
		var bad []string
		err := Read(t.Context(), path, c.o, func(r *Record) error {
			if r.Err != nil {
				bad = append(bad, fmt.Sprint(r.Number))
				if !strings.Contains(r.Err.Reason, "not UTF-8, but perhaps Latin-1") {
					t.Error(r.Err)
				}
			}
			return nil
		})
		if err != nil || strings.Join(bad, " ") != c.bad {
			t.Errorf("%s: %v, %v", name, bad, err)
		}
	}
}

// TestBlankInSMILES: a blank in a cell of SMILES does not cut the molecule short.
func TestBlankInSMILES(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.csv")
	write(t, path, "smiles\n\"CC(=O) Oc1ccccc1\"\n\"C\nCC\"\n CC \nC[C@H](O)N |&1:1|\n")
	got, err := readAll(t, path, Options{})
	want := []string{`1 2 1 [] :2: "CC(=O) Oc1ccccc1": character 7 of the SMILES: a blank in a SMILES`, `2 3 2 [] :3: "C\nCC": character 2 of the SMILES: a blank`, "3 5 3 [] 2×360 1", "4 6 4 [] 4×360 3"}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%q, %v", got, err)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%s; want %s", got[i], want[i])
		}
	}
}
