package records

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn/graph"
)

// edgeFiles are a path of three nodes, whose edges 0-1 and 1-2 have the labels and weights given, in each
// format.
func edgeFiles(key string, values [2]string) map[string]string {
	xml := `<graphml><key id="d" for="edge" attr.name="` + map[bool]string{true: "label", false: "weight"}[key == "edge_labels"] + `"/>
<graph edgedefault="undirected"><node id="a"/><node id="b"/><node id="c"/>
<edge source="a" target="b"><data key="d">` + strings.Trim(values[0], `"`) + `</data></edge>
<edge source="c" target="b"><data key="d">` + strings.Trim(values[1], `"`) + `</data></edge></graph></graphml>`
	name := map[bool]string{true: "label", false: "weight"}[key == "edge_labels"]
	column := map[bool]string{true: "edge_label", false: "weight"}[key == "edge_labels"]
	return map[string]string{
		"a.jsonl": `{"nodes":3,"edges":[[0,1],[2,1],[1,2]],"` + key + `":[` + values[0] + `,` + values[1] + `,` + values[1] + `]}`,
		"b.jsonl": `{"nodes":[{"id":"a"},{"id":"b"},{"id":"c"}],"links":[{"source":"a","target":"b","` + name + `":` + values[0] +
			`},{"source":"b","target":"c","` + name + `":` + values[1] + `}]}`,
		"c.csv":     "graph,source,target," + column + "\ng,a,b," + values[0] + "\ng,c,b," + values[1] + "\n",
		"d.graphml": xml,
	}
}

// TestEdgeValues: every format gives the labels or weights of edges in the order of the adjacency, and
// -ignore drops them unless a model wants them.
func TestEdgeValues(t *testing.T) {
	weight := graph.WeightLabel(0.5)
	for _, c := range []struct {
		key    string
		values [2]string
		want   []int32 // of 1→0, 0→1, 2→1, 1→2
		edges  graph.EdgeValues
	}{
		{"edge_labels", [2]string{"4", "2"}, []int32{2, 2, 0, 0},
			graph.EdgeValues{Labels: &graph.LabelValues{Min: 2, Width: 3, Unseen: []int{3}}}},
		{"edge_labels", [2]string{`"double"`, "1"}, []int32{1, 1, 0, 0},
			graph.EdgeValues{Labels: &graph.LabelValues{Width: 2, Names: []string{"1", "double"}}}},
		{"edge_weights", [2]string{"0.5", "-3"}, []int32{weight, weight, graph.WeightLabel(-3), graph.WeightLabel(-3)},
			graph.EdgeValues{Weights: true}},
	} {
		for file, text := range edgeFiles(c.key, c.values) {
			table := readText(t, file, text, Options{})
			if g := table.Set.Graphs[0]; !cmp.Equal(g.EdgeLabel, c.want) || !cmp.Equal(*table.Set.Edges, c.edges) {
				t.Errorf("%s: %v of %v, %+v", file, g.EdgeLabel, g.Adj, table.Set.Edges)
			}
			columns, err := table.Set.Columns()
			if err != nil || !cmp.Equal(columns.Edges, &c.edges) {
				t.Errorf("%s: columns %+v, %v", file, columns, err)
			}
			ignored := []string{"label", "weight", "edge_label", "edge_labels", "edge_weights"}
			again := readText(t, file, text, Options{Columns: &columns, Ignore: ignored})
			if !cmp.Equal(again.Set.Graphs, table.Set.Graphs) {
				t.Errorf("%s: other graphs by the columns of the set", file)
			}
			bare := readText(t, file, text, Options{Ignore: ignored})
			if g := bare.Set.Graphs[0]; g.EdgeLabel != nil || bare.Set.Edges != nil {
				t.Errorf("%s: ignored, %v, %+v", file, g.EdgeLabel, bare.Set.Edges)
			}
		}
	}
	for _, w := range []float32{0, 1, -2.5, 1e-30, -3e38, 0.1} {
		if v := graph.LabelWeight(graph.WeightLabel(w)); graph.WeightLabel(w) < 0 || max(v-w, w-v) > 2e-7*max(w, -w) {
			t.Errorf("the weight %v becomes %v", w, v)
		}
	}
}

// TestEdgeValuesRefused: edges that do not fit together, or not to the model, are errors.
func TestEdgeValuesRefused(t *testing.T) {
	labelled := &graph.Columns{Edges: &graph.EdgeValues{Labels: &graph.LabelValues{Width: 1, Names: []string{"a"}}}}
	for text, want := range map[string]string{
		`{"nodes":3,"edges":[[0,1],[1,2]],"edge_labels":[1]}`:                        "1 labels for 2 edges",
		`{"nodes":3,"edges":[[0,1],[1,2]],"edge_labels":[1,0.5]}`:                    `"edge_labels": want a whole number or a text for each edge`,
		`{"nodes":3,"edges":[[0,1],[1,2]],"edge_weights":[1]}`:                       "1 weights for 2 edges",
		`{"nodes":3,"edges":[[0,1],[1,2]],"edge_weights":[1,"a"]}`:                   `"edge_weights": want a number for each edge`,
		`{"nodes":3,"edges":[[0,1],[1,2]],"edge_weights":[1,2],"edge_labels":[1,2]}`: "edges have labels and weights",
		`{"nodes":3,"edges":[[0,1],[1,0]],"edge_labels":[1,2]}`:                      "edge 1 joins 1 and 0 once more, with another label or weight",
		`{"nodes":2,"edges":[[0,1]]}`:                                                "edges have no labels, which the model wants",
		`{"nodes":2,"edges":[[0,1]],"edge_labels":["b"]}`:                            `edge 0: the label "b", which the model has not seen`,
		`{"nodes":2,"edges":[[0,1]],"edge_weights":[1]}`:                             "edges have no labels, which the model wants",
	} {
		o := Options{}
		if strings.Contains(want, "model") {
			o.Columns = labelled
		}
		path := filepath.Join(t.TempDir(), "g.jsonl")
		write(t, path, text)
		if _, err := ReadAll(t.Context(), path, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	// A graph of another kind is rejected, one without edges is not, wherever it stands.
	const withLabel = `{"nodes":2,"edges":[[0,1]],"edge_labels":["a"]}` + "\n"
	const empty, plain = `{"nodes":1,"edges":[]}` + "\n", `{"nodes":2,"edges":[[0,1]]}` + "\n"
	const emptyWeights = `{"nodes":1,"edges":[],"edge_weights":[]}` + "\n"
	for lines, want := range map[string]string{
		withLabel + empty + plain: "g.jsonl:3: nodes have 0 attributes and labels (false); those of graph 1 have " +
			"0 attributes and labels (false), and edges have labels",
		empty + withLabel + plain: "g.jsonl:3: nodes have 0 attributes and labels (false); those of graph 2 have " +
			"0 attributes and labels (false), and edges have labels",
		empty + plain + withLabel: "g.jsonl:3: nodes have 0 attributes and labels (false), and edges have labels; " +
			"those of graph 2 have 0 attributes and labels (false)",
		emptyWeights + plain + withLabel: "g.jsonl:3: nodes have",
	} {
		table := readText(t, "g.jsonl", lines, Options{})
		if len(table.Records) != 2 || len(table.Rejected) != 1 || !strings.Contains(table.Rejected[0].Error(), want) {
			t.Errorf("%s%d records, %v, want %s", lines, len(table.Records), table.Rejected, want)
			continue
		}
		for i, g := range table.Set.Graphs {
			if table.Set.Edges != nil && len(g.EdgeLabel) != len(g.Adj) {
				t.Errorf("%sgraph %d has %d entries and the labels %v", lines, i, len(g.Adj), g.EdgeLabel)
			}
		}
	}
}

// TestLargeLabel: a label that does not fit in 32 bits is refused with its node or edge.
func TestLargeLabel(t *testing.T) {
	for text, want := range map[string]string{
		`{"nodes":2,"edges":[[0,1]],"labels":[1,3000000000]}`:    "node 1 has the label 3000000000, which does not fit",
		`{"nodes":2,"edges":[[0,1]],"labels":[-3000000000,1]}`:   "node 0 has the label -3000000000, which does not fit",
		`{"nodes":2,"edges":[[0,1]],"edge_labels":[3000000000]}`: "edge 0 has the label 3000000000, which does not fit",
	} {
		path := filepath.Join(t.TempDir(), "a.jsonl")
		write(t, path, text)
		if _, err := ReadAll(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}
