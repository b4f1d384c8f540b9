package records

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// readAll returns what records say in a line each.
func readAll(t testing.TB, path string, o Options) (lines []string, err error) {
	t.Helper()
	err = Read(t.Context(), path, o, func(r *Record) error {
		s := fmt.Sprintf("%d %d %s %q", r.Number, r.Line, r.ID, r.Fields)
		if (r.Graph == nil) == (r.Err == nil) {
			t.Errorf("record %d has a graph (%v) and the error %v", r.Number, r.Graph != nil, r.Err)
		}
		if r.Err != nil {
			s += " " + strings.TrimPrefix(r.Err.Error(), "dataset: "+path)
		} else {
			s += fmt.Sprintf(" %d×%d %d", r.Graph.Nodes(), r.Graph.X.Width, r.Graph.Entries()/2)
			if err := r.Graph.Validate(); err != nil {
				t.Error(err)
			}
		}
		lines = append(lines, s)
		return nil
	})
	return lines, err
}

func TestRead(t *testing.T) {
	six := graph.Columns{Labels: []graph.LabelValues{{Min: 6, Width: 3, Unseen: []int{7}}}}
	molecules := "name,SMILES,y\na,CCO,1\nb,C(C,2\nc,c1ccccc1,\n,,\nd,C,3,4\ne,\"C\"\"x\",5\nf,\"CO\",6\n"
	want := []string{
		`1 2 a ["1"] 3×360 2`,
		`2 3 b ["2"] :3: "C(C": character 2 of the SMILES: `,
		`3 4 c [""] 6×360 6`,
		`4 5  [""] :5: `,
		`5 6 5 [] :6: wrong number of fields`,
		`6 7 e ["5"] :7: "C\"x": character 2 of the SMILES: `,
		`7 8 f ["6"] 2×360 1`,
	}
	table := Options{ID: "name", Fields: []string{"y"}}
	for name, c := range map[string]struct {
		file, text string
		o          Options
		want       []string
	}{
		"a table":                  {"m.csv", molecules, table, want},
		"with a mark":              {"m.csv", "\uFEFF" + molecules, table, want},
		"of Windows":               {"m.csv", strings.ReplaceAll(molecules, "\n", "\r\n"), table, want},
		"with mixed line ends":     {"m.csv", strings.Replace(molecules, "\n", "\r\n", 3), table, want},
		"compressed":               {"m.csv.gz", molecules, table, want},
		"taken up":                 {"m.csv", molecules, Options{ID: "name", Fields: []string{"y"}, Skip: 6}, want[6:]},
		"another column":           {"m.csv", "smiles,x\nC,CC\n", Options{SMILES: "x"}, []string{"1 2 1 [] 2×360 1"}},
		"the only one like it":     {"m.csv", "x,Canonical_SMILES\nC,CC\n", Options{}, []string{"1 2 1 [] 2×360 1"}},
		"a damaged row in a graph": {"e.csv", "graph,source,target\na,1,2\na,2\na,2,3\nb,1,2\n", Options{}, []string{"1 2 a [] :3: wrong number of fields: 2 where the header has 3", "2 5 b [] 2×1 1"}},
		"a damaged row between":    {"e.csv", "graph,source,target\na,1,2\na,\"2,3\nb,1,2\nc,1,2\n", Options{}, []string{`1 2 a [] :3: "a,\"2,3": a quote`, `2 4 b [] :3: "a,\"2,3": a quote`, "3 5 c [] 2×1 1"}},
		"damaged rows at the ends": {"e.csv", "graph,source,target\na\na,1,2\nb,1,2\nb\n", Options{}, []string{"1 3 a [] :2: wrong number", "2 4 b [] :5: wrong number"}},
		"an open quote":            {"m.csv", "name,smiles\na,C\n\"5 inch,C\nb,CC\nc,\"CC\"\n", Options{ID: "name"}, []string{"1 2 a [] 1×360 0", `2 3 2 [] :3: "\"5 inch,C": a quote that opens here is not closed`, "3 4 b [] 2×360 1", "4 5 c [] 2×360 1"}},
		"one over lines":           {"m.csv", "name,smiles\n\"a\r\nb\",C\nc,CC\n", Options{ID: "name"}, []string{"1 3 a\nb [] 1×360 0", "2 4 c [] 2×360 1"}},
		"tabs":                     {"m.tsv", "smiles\ty\nC\t1\n", Options{Fields: []string{"y"}}, []string{`1 2 1 ["1"] 1×360 0`}},
		"semicolons, CR only":      {"m.csv", "smiles;y\rC;0,5\r", Options{Fields: []string{"y"}}, []string{`1 2 1 ["0,5"] 1×360 0`}},
		"UTF-16":                   {"m.csv", "\xff\xfes\x00m\x00i\x00l\x00e\x00s\x00,\x00\xe9\x00\n\x00C\x00,\x00\x3d\xd8\x00\xde\n\x00", Options{Fields: []string{"é"}}, []string{`1 2 1 ["😀"] 1×360 0`}},
		"blanks in the header":     {"m.csv", " smiles , y\n C , 1\n", Options{Fields: []string{"y"}}, []string{`1 2 1 [" 1"] 1×360 0`}},
		"CXSMILES":                 {"m.smi", "C[C@H](O)N |&1:1|\tone\nCC |$R1;$|\n", Options{}, []string{"1 1 one [] 4×360 3", "2 2 2 [] 2×360 1"}},
		"a list":                   {"m.smi", "CCO  ethanol\n\nC\nC( x\n", Options{}, []string{"1 1 ethanol [] 3×360 2", "2 3 2 [] 1×360 0", `3 4 x [] :4: "C(": `}},
		"a quote in a table":       {"m.tsv", "name\tsmiles\ty\n2\"-x\tC\ta \"b\"\n3',4\"-x\tCC\t\n", Options{ID: "name", Fields: []string{"y"}}, []string{`1 2 2"-x ["a \"b\""] 1×360 0`, `2 3 3',4"-x [""] 2×360 1`}},
		"columns without names":    {"m.csv", "smiles,y,,,n,n\nC,1,,,,\n", Options{Fields: []string{"y"}}, []string{`1 2 1 ["1"] 1×360 0`}},
		"a line of Excel":          {"m.csv", "sep=;\nsmiles;y\nC;0,5\n", Options{Fields: []string{"y"}}, []string{`1 3 1 ["0,5"] 1×360 0`}},
		"no SMILES":                {"m.csv", "smiles,y\n,1\nCC–O,2\n", Options{}, []string{"1 2 1 [] :2: the SMILES is empty", `2 3 2 [] :3: "CC–O": character 3 of the SMILES: '–' is not an atom`}},
		"a list with a header":     {"m.smi", "SMILES;ID\nC a\n", Options{}, []string{`1 1 1 [] :1: "SMILES;ID": there is no SMILES in front`, "2 2 a [] 1×360 0"}},
		"a list of salts":          {"m.txt", "CCCCCCCCO.N(C)(C)(C)C\ta\nC\n", Options{Standard: feature.Standardisation{LargestFragment: true}}, []string{"1 1 a [] 9×360 8", "2 2 2 [] 1×360 0"}},
		"a list, by its format":    {"m.dat", "CCO\n", Options{Format: SMI}, []string{"1 1 1 [] 3×360 2"}},
		"graphs": {"g.jsonl", `{"id":"a","nodes":3,"edges":[[0,1],[1,2],[2,1],[0,0]],"labels":[6,6,8],"y":0.5}

{"id":7,"edges":[[0,1]],"labels":[6,8],"y":null}
{"id":"c","edges":[],"labels":[9]}
{"id":"d","edges":[],"labels":[7]}
{"id":"e","nodes":2,"edges":[[0,2]],"labels":[6,6]}
{"id":"f","nodes":2,"edges":[[0,1,1]],"labels":[6,6]}
{"id":"g","nodes":2,"labels":[6,6]}
{"id":"h","edges":[]}
{"id":"i","nodes":2,"edges":[],"labels":[6]}
{"id":"j","edges":[],"labels":[6.5]}
{"id":"k",
[1]
{"id":"l","nodes":2,"edges":[]}
{"id":["m"],"nodes":2,"edges":[]}
`, Options{ID: "id", Fields: []string{"y"}, Columns: &six}, []string{
			`1 1 a ["0.5"] 3×3 2`, `2 3 7 [""] 2×3 1`,
			`3 4 c [""] :4: node 0 has the label 9, which the model has not seen; it has seen 6 to 8 except 1 of them`,
			`4 5 d [""] :5: node 0 has the label 7, which the model has not seen`,
			`5 6 e [""] :6: edge 0, 0→2: node 2 is outside 0..1`,
			`6 7 f [""] :7: "edges": [0 1 1] is not a pair of nodes`,
			`7 8 g [""] :8: there are no "edges"`,
			`8 9 h [""] :9: nothing says how many nodes there are`,
			`9 10 i [""] :10: 1 labels for 2 nodes`,
			`10 11 j [""] :11: "labels": want a whole number or a text for each node`,
			`11 12 11 [] :12: column 10: unexpected end of JSON input`,
			`12 13 12 [] :13: want a JSON object`,
			`13 14 l [""] :14: nodes have 0 columns of labels, the model wants 1`,
			`14 15 14 [] :15: "id": want a number or a text`,
		}},
		"attributes": {"g.jsonl", `{"edges":[[0,1]],"attributes":[[1,2],[3,4]],"labels":[1,4]}
{"edges":[],"attributes":[[1,2],[3]]}
{"edges":[],"attributes":[[]]}
{"edges":[[0,1],[1,2]],"nodes":3,"directed":true}
`, Options{}, []string{"1 1 1 [] 2×6 1", "2 2 2 [] :2: node 1 has 1 attributes, node 0 has 2", "3 3 3 [] :3: node 0 has an empty list of attributes", "4 4 4 [] 3×1 1"}},
		"nulls and keys": {"g.jsonl", `{"edges":[[0,1]],"attributes":[[null],[1]]}
{"edges":[],"labels":[null,2,1]}
{"edges":[[0,1],[null,2]],"nodes":3}
{"edges":[],"nodes":null}
{"edges":null,"nodes":1}
{"edges":[],"nodes":3,"nodes":1}
{"edges":[],"nodes":1,"s":"\":{","t":{"nodes":2,"nodes":2}}
{"edges":[],"nodes":1,"label":[1]}
{"edges":[],"nodes":1,"x":[[1]]}
{"edges":[],"nodes":1,"edge_weight":[]}
{"edges":[],"nodes":1,"Labels":[1]}
{"edge_index":[],"nodes":1}
{"edges":[],"labels":null,"attributes":[[1]]}
{"edges":[],"nodes":-1,"labels":[1]}
`, Options{}, []string{
			`1 1 1 [] :1: "attributes": attribute 0 of node 0 is null, which is no finite number: fill missing values`, `2 2 2 [] :2: "labels": want`, `3 3 3 [] :3: "edges": want`, `4 4 4 [] :4: nothing says`,
			`5 5 5 [] :5: there are no "edges"`, `6 6 6 [] :6: a key is there twice`, `7 7 7 [] 1×1 0`, `8 8 8 [] :8: "label" is not read: is it meant to be "labels"?`,
			`9 9 9 [] :9: "x" is not read: is it meant to be "attributes"?`, `10 10 10 [] :10: "edge_weight" is not read: is it meant to be "edge_weights"?`,
			`11 11 11 [] :11: "Labels" is not read`, `12 12 12 [] :12: "edge_index" is not read: is it meant to be "edges"?`, `13 13 13 [] 1×1 0`,
			`14 14 14 [] :14: -1 nodes; want 1 to`,
		}},
		"no finite numbers": {"g.jsonl", `{"edges":[],"attributes":[[1,2],[NaN,2]]}
{"edges":[],"attributes":[[1,-Infinity]]}
{"edges":[],"attributes":[[1,2],[1,-1e300]]}
{"edges":[[0,1]],"nodes":2,"edge_weights":[1e400]}
{"edges":[[0,1]],"nodes":2,"edge_weights":[null]}
{"edges":[],"attributes":[["a"]]}
{"edges":[],"attributes":[1e300]}
{"edges":[],"attributes":[[None]]}
`, Options{}, []string{
			`1 1 1 [] :1: column 34: NaN is not JSON: fill missing values`, `2 2 2 [] :2: column 31: Infinity is not JSON`,
			`3 3 3 [] :3: "attributes": attribute 1 of node 1 is -1e300, beyond ±3.4e+38, the largest float32`,
			`4 4 4 [] :4: "edge_weights": the weight of edge 0 is 1e400, beyond`,
			`5 5 5 [] :5: "edge_weights": the weight of edge 0 is null`, `6 6 6 [] :6: "attributes": want a list of numbers for each node`,
			`7 7 7 [] :7: "attributes": want a list of numbers for each node`, `8 8 8 [] :8: column 28: invalid character 'N'`,
		}},
		"node-link": {"g.jsonl", `{"directed":false,"multigraph":false,"graph":{},"nodes":[{"id":"a","label":1},{"id":7,"label":2}],"links":[{"source":7,"target":"a"}],"y":3}
{"directed":false,"multigraph":true,"graph":{},"nodes":[{"id":0,"label":1},{"id":1,"label":1},{"id":2,"label":2}],"edges":[{"source":0,"target":2,"key":0}]}
{"nodes":[{"id":0},{"id":1,"label":1}],"edges":[]}
{"nodes":[{"id":0},{"id":0}],"edges":[]}
{"nodes":[{"id":0}],"edges":[{"source":0,"target":1}]}
{"nodes":[{"id":0}],"edges":[{"source":0,"target":0,"weight":1},{"source":0,"target":0}]}
{"nodes":[{"id":0,"x":1}],"edges":[]}
{"nodes":[{"id":0}],"edges":[[0,0]]}
{"nodes":[{"id":0,"label":null}],"links":[]}
{"nodes":[],"links":[]}
{"nodes":[{"id":0,"label":1,"attributes":[1]},{"id":1}],"edges":[]}
{"nodes":[{"id":0,"x":1,"feat":1,"edge_attr":1,"attr":1}],"edges":[]}
{"nodes":[{"id":0}],"edges":[{"source":0,"target":0,"edge_type":1,"edge_feature":1,"edge_attr":1,"weights":1}]}
`, Options{Fields: []string{"y"}, Columns: &graph.Columns{Labels: []graph.LabelValues{{Min: 1, Width: 2}}}}, []string{
			`1 1 1 ["3"] 2×2 1`, `2 2 2 [""] 3×2 1`, `3 3 3 [""] :3: 1 of 2 nodes have "label"`, `4 4 4 [""] :4: node 1: the id 0 is missing or there twice`,
			`5 5 5 [""] :5: edge 0, from 0 to 1: there is no such node`, `6 6 6 [""] :6: 1 of 2 edges have "weight"`,
			`7 7 7 [""] :7: "x" is not read`, `8 8 8 [""] :8: nodes are objects with an "id"`, `9 9 9 [""] :9: "labels": want`, `10 10 10 [""] :10: `,
			`11 11 11 [""] :11: 1 of 2 nodes have "attributes"`, `12 12 12 [""] :12: "attr" is not read`,
			`13 13 13 [""] :13: "edge_attr": features of edges`,
		}},
		"keys in use": {"g.jsonl", `{"edges":[],"nodes":1,"label":[1],"x":"a","weight":2}
{"edges":[],"nodes":1,"label":[1,2],"x":"b"}
{"edges":[],"nodes":1}
{"edges":[],"nodes":1,"label":[[1]],"x":"d"}
{"edges":[],"nodes":1,"label":[[1,0]],"x":"e"}
`, Options{ID: "x", Fields: []string{"label"}, Ignore: []string{"weight"}}, []string{
			`1 1 a ["1"] 1×1 0`, `2 2 b [] :2: "label": want a number or a text`, `3 3 3 [] :3: there is no "x", which is to name`,
			`4 4 d ["1"] 1×1 0`, `5 5 e [] :5: "label": want a number or a text`,
		}},
		"edges": {"e.csv", "graph,source,target,y\np,a,b,1\np,b,c,1\nq,x,,0\nq,x,y,0\n", Options{Fields: []string{"y"}},
			[]string{`1 2 p ["1"] 3×1 2`, `2 4 q ["0"] 2×1 1`}},
		"fields in later rows": {"e.csv", "graph,source,target,y\np,a,b,\np,b,c,1\np,c,a, 1\nq,x,y,0\nq,y,z,\nr,x,y,2\nr,y,z,3\ns,x,y,\n",
			Options{Fields: []string{"y"}},
			[]string{`1 2 p ["1"] 3×1 3`, `2 5 q ["0"] 3×1 2`, `3 7 r ["2"] :8: "3": column y: earlier rows of this graph have "2"`,
				`4 9 s [""] 2×1 1`}},
		"gaps in fields": {"e.csv", "graph,source,target,y\np,a,b,NA\np,b,c,1\np,c,a,nan\nq,x,y,0\nq,y,z,None\nr,x,y,null\nr,y,z,NA\n",
			Options{Fields: []string{"y"}}, []string{`1 2 p ["1"] 3×1 3`, `2 5 q ["0"] 3×1 2`, `3 7 r ["null"] 3×1 2`}},
		"gaps as targets": {"e.csv", "graph,source,target,label\np,a,NA,6\np,b,NA,8\np,a,b,NA\nq,NA,,6\nq,a,NA,7\nr,a,NA,6\nr,NA,NA,6\nr,a,NA,NA\nr,a,null,6\n",
			Options{}, []string{`1 2 p [] 2×3 1`, `2 5 q [] :6: "a": a node without a row of its own`, `3 7 r [] :10: "a": a node that was listed before`}},
		"gaps as nodes": {"e.csv", "graph,source,target\np,a,NA\np,NA,b\n", Options{}, []string{`1 2 p [] 3×1 2`}},
		"blanks around a graph": {"e.csv", "graph,source,target,y\na,1,2,1\na ,2,3,1\n a,3,1,1\n b,1,2,0\n", Options{Fields: []string{"y"}},
			[]string{`1 2 a ["1"] 3×1 3`, `2 5 b ["0"] 2×1 1`}},
		"edges and nodes": {"e.csv", "graph,source,target,label,x\np,a,,6,0.5\np,b,,8,1\np,a,b,,\nq,a,,6,1\nq,a,c,,\nr,a,,6,1\nr,a,,6,1\ns,a,,6.5,1\nt,a,,6,u\nu,,,6,1\n", Options{Attributes: []string{"x"}},
			[]string{
				`1 2 p [] 2×4 1`, `2 5 q [] :6: "c": a node without a row of its own`, `3 7 r [] :8: "a": a node that was listed before`,
				`4 9 s [] :9: "6.5": want a whole number or a text`, `5 10 t [] :10: "u": column x: want a finite number`, `6 11 u [] :11: a node has no name`,
			}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.file)
			text := c.text
			if strings.HasSuffix(path, ".gz") {
				text = string(zipped(t, text))
			}
			write(t, path, text)
			got, err := readAll(t, path, c.o)
			if err != nil {
				t.Fatal(err)
			}
			for i := range max(len(got), len(c.want)) {
				if i >= len(got) || i >= len(c.want) || !strings.HasPrefix(got[i], c.want[i]) {
					t.Fatalf("record %d of\n%s\nwant\n%s", i+1, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
				}
			}
			// The same from another reader.
			o := c.o
			o.Input = strings.NewReader(c.text)
			if o.Format == "" {
				if o.Format, err = FormatOf(path); err != nil {
					t.Fatal(err)
				}
			}
			piped, err := readAll(t, "-", o)
			for i, line := range piped {
				piped[i] = strings.Replace(line, "-:", ":", 1)
			}
			if d := cmp.Diff(got, piped, cmp.Transformer("", func(s string) string { return strings.ReplaceAll(s, "dataset: :", ":") })); d != "" || err != nil {
				t.Errorf("from a pipe: %v\n%s", err, d)
			}
		})
	}
}

// TestReading: what is used is said. In a table of edges a column is a feature if it is
// named so, and the class is none.
func TestReading(t *testing.T) {
	const header, rows = "graph,source,target,label,attribute_q,y,class,note,\x1b[1m\n", "a,1,,6,0.5,7,0,n,\na,2,,6,1,8,0,n,\na,1,2,,,,,,\n"
	for _, c := range []struct {
		file, text, want string
		width            int
		o                Options
	}{
		{"e.csv", header + rows, "1 graphs; id graph; also read class; labels of nodes label; attributes of nodes attribute_q; not used y, note, \uFFFD[1m", 2, Options{Fields: []string{"class"}}},
		{"e.csv", header + rows, "1 graphs; id graph; labels of nodes label; attributes of nodes y, attribute_q; not used class, note, \uFFFD[1m", 3, Options{Attributes: []string{"y", "attribute_q"}}},
		{"g.jsonl", `{"edges":[],"labels":[1],"name":"a","note":1}` + "\n{}\n", "2 graphs, of which 1 are skipped; also read name; labels of nodes labels; not used note", 1, Options{Fields: []string{"name"}}},
		{"m.csv", "name,Smiles,y\na,C,1\n", "1 molecules; SMILES Smiles; id name; not used y", 360, Options{ID: "name"}},
	} {
		path := filepath.Join(t.TempDir(), c.file)
		write(t, path, c.text)
		table, err := ReadAll(t.Context(), path, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := table.Reading.String(); got != c.want || table.Set.FeatureWidth != c.width {
			t.Errorf("%s, width %d; want %s, %d", got, table.Set.FeatureWidth, c.want, c.width)
		}
		if c.o.Attributes == nil {
			continue
		}
		// A model finds its attributes by name, in any order of the columns.
		columns, err := table.Set.Columns()
		if err != nil || !cmp.Equal(columns.Names, c.o.Attributes) {
			t.Fatalf("%v, %v", columns, err)
		}
		err = Read(t.Context(), path, Options{Columns: &columns}, func(r *Record) error {
			if d := cmp.Diff(table.Records[0].Graph, r.Graph); d != "" {
				t.Error(d)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		columns.Names[0] = "z"
		if err := Read(t.Context(), path, Options{Columns: &columns}, nil); err == nil || !strings.Contains(err.Error(), `no column "z"`) {
			t.Errorf("a model of other attributes: %v", err)
		}
	}
}

// TestReadTU: a set in TUDataset's format has its classes as a field, and the
// features of a model where one is given.
func TestReadTU(t *testing.T) {
	ds := dataset.Default()
	dir := t.TempDir()
	if err := dataset.WriteTU(dir, ds); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ds.Name)
	table, err := ReadAll(t.Context(), path, Options{Fields: []string{"class"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Records) != len(ds.Graphs) || table.Content != Graphs || table.Records[3].Fields[0] != fmt.Sprint(ds.ClassValues[ds.Graphs[3].Class]) {
		t.Errorf("%d records of %s, the fourth %+v", len(table.Records), table.Content, table.Records[3])
	}
	want, err := ds.Columns()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := table.Set.Columns(); err != nil || !cmp.Equal(got, want) {
		t.Errorf("columns %+v, %v; want %+v", got, err, want)
	}
	want.DegreeColumns = 5
	with, err := ReadAll(t.Context(), path, Options{Columns: &want})
	if err != nil || with.Records[0].Graph.X.Width != want.Width() {
		t.Errorf("with degrees: %v", err)
	}
	if _, err := ReadAll(t.Context(), path, Options{ID: "id"}); err == nil || !strings.Contains(err.Error(), `has no "id"`) {
		t.Errorf("an id: %v", err)
	}
}

// TestReadTargets: numbers of graphs in TUDataset's format are fields, and a graph without nodes
// is a record that cannot be used.
func TestReadTargets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "S")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for part, text := range map[string]string{"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n3\n", "graph_labels": "1234567, 0\n5, 0\n6, 1\n", "graph_attributes": "0.1\n2\n-3e20\n"} {
		write(t, filepath.Join(dir, "S_"+part+".txt"), text)
	}
	var reading Reading
	got, err := readAll(t, dir, Options{Fields: []string{"attribute", "class1"}, Reading: &reading})
	if want := []string{`1 1 1 ["0.1" "1234567"] 2×1 1`, `2 2 2 [] :2: the graph has no nodes`, `3 3 3 ["-3e+20" "6"] 1×1 0`}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if want := "3 graphs, of which 1 are skipped; also read attribute, class1; no features of nodes; not used class2"; reading.String() != want {
		t.Errorf("%s", reading)
	}
	if _, err := readAll(t, dir, Options{Fields: []string{"class"}}); err == nil || !strings.HasSuffix(err.Error(), `has no "class"; it has attribute, class1, class2`) {
		t.Error(err)
	}
	if _, err := Open(t.Context(), filepath.Dir(dir), "S", dataset.Options{}); err == nil || !strings.Contains(err.Error(), "no classes but targets, such as class1") {
		t.Errorf("for classification: %v", err)
	}
}

// TestReadAll: the columns are those of all graphs together, and records give what
// they give with these columns from the beginning.
func TestReadAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.jsonl")
	write(t, path, `{"edges":[[0,1]],"labels":[3,1]}
{"edges":[],"labels":[9]}
{"edges":[],"nodes":1}
{"edges":[],"labels":[1],"attributes":[[1]]}
`)
	table, err := ReadAll(t.Context(), path, Options{})
	if err != nil || len(table.Records) != 2 || len(table.Rejected) != 2 || !strings.Contains(table.Rejected[1].Reason, "1 attributes") {
		t.Fatalf("%+v, %v", table, err)
	}
	c, err := table.Set.Columns()
	if err != nil || !cmp.Equal(c, graph.Columns{Labels: []graph.LabelValues{{Min: 1, Width: 9, Unseen: []int{2, 4, 5, 6, 7, 8}}}}) {
		t.Fatalf("%+v, %v", c, err)
	}
	k := 0
	err = Read(t.Context(), path, Options{Columns: &c}, func(r *Record) error {
		if r.Err == nil && k < 2 {
			if d := cmp.Diff(table.Set.Graphs[k], r.Graph); d != "" {
				t.Error(d)
			}
			k++
		}
		return nil
	})
	if err != nil || k != 2 {
		t.Errorf("%d graphs, %v", k, err)
	}
}

// TestReadingDirected: a set in TUDataset's format that lists an edge once is said to be
// directed there.
func TestReadingDirected(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "S")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for edges, want := range map[string]string{
		"1, 2\n2, 1\n4, 3\n": "2 graphs; no features of nodes; 1 of the graphs directed, an edge being listed in one direction only",
		"1, 2\n2, 1\n":       "2 graphs; no features of nodes",
	} {
		write(t, filepath.Join(dir, "S_A.txt"), edges)
		write(t, filepath.Join(dir, "S_graph_indicator.txt"), "1\n1\n2\n2\n")
		write(t, filepath.Join(dir, "S_graph_labels.txt"), "0\n1\n")
		table, err := ReadAll(t.Context(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := table.Reading.String(); got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

// TestReadErrors: what ends the reading says what is wrong.
func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		file, text, want string
		o                Options
	}{
		"no file":          {"", "", "no such file", Options{}},
		"an unknown name":  {"a.doc", "x", "want .csv, .smi, .sdf, .jsonl", Options{}},
		"GEXF":             {"a.gexf", "x", "is GEXF by its name, which is not read: write it as .graphml, in Python by networkx.write_graphml, or a graph a line into a .jsonl, by json.dumps(networkx.node_link_data(g))", Options{}},
		"bzip2":            {"a.csv.bz2", "x", "is bzip2 by its name, which is not read: unpack it", Options{}},
		"an empty table":   {"a.csv", "", "a.csv:1: want a header", Options{}},
		"no SMILES":        {"b.csv", "a,b\n1,2\n", `"a,b": no column "smiles"`, Options{}},
		"several SMILES":   {"b2.csv", "smiles_a,smiles_b\nC,C\n", "several whose names contain it", Options{}},
		"semicolons":       {"b3.csv", "smiles;y\nC;1\n", `no column "z"`, Options{Fields: []string{"z"}}},
		"no such target":   {"c.csv", "smiles\nC\n", `"smiles": no column "y"`, Options{Fields: []string{"y"}}},
		"twice the column": {"d.csv", "smiles,y,y\nC,1,1\n", `two columns named "y", the columns 2 and 3: rename one of them`, Options{Fields: []string{"y"}}},
		"a list's target":  {"e.smi", "C\n", `has no columns, such as "y"; want a .csv`, Options{Fields: []string{"y"}}},
		"not packed":       {"f.csv.gz", "smiles\n", "f.csv.gz: is no gzip file (unexpected EOF): rename it without .gz", Options{}},
		"a wrong format":   {"g.csv", "smiles\nC\n", `"doc" is not a format`, Options{Format: "doc"}},
		"graphs wanted":    {"h.csv", "smiles\nC\n", "has molecules, want graphs", Options{Want: Graphs}},
		"molecules wanted": {"i.jsonl", "{}\n", "has graphs, want molecules", Options{Want: Molecules}},
		"edges and an id":  {"j.csv", "graph,source,target\na,1,2\n", `by its column graph, not "y"`, Options{ID: "y"}},
		"other names":      {"k1.csv", "graph_id,src,dst\na,1,2\n", `"graph_id, src, dst": a table of edges has the columns graph, source and target by these names`, Options{}},
		"weights":          {"k2.csv", "graph,source,target,weights\na,1,2,3\n", `"weights" is not read: is it meant to be "edge_weight"?`, Options{}},
		"a misspelt label": {"k3.csv", "graph,source,target,labels\na,1,2,3\n", `"labels" is not read: is it meant to be "label"?`, Options{}},
		"a leak":           {"k4.csv", "graph,source,target,y\na,1,,3\n", `"y": a target or a column`, Options{Fields: []string{"y"}, Attributes: []string{"y"}}},
		"graphs' SMILES":   {"k5.jsonl", "{}\n", `has graphs, and so no column of SMILES, such as "s"`, Options{SMILES: "s"}},
		"scattered edges":  {"k.csv", "graph,source,target\na,1,2\nb,1,2\na,2,3\n", `k.csv:4: "a": rows of a graph must stand together`, Options{}},
		"twice the label":  {"k6.csv", "graph,source,target,label,label,x,x\na,1,,3,3,,\n", `two columns named "label", the columns 4 and 5`, Options{}},
		"twice the SMILES": {"k7.csv", "smiles,smiles\nC,C\n", `two columns named "smiles", the columns 1 and 2`, Options{}},
		"damaged rows":     {"l.csv", "graph,source,target\na,1\n", "l.csv:2: wrong number of fields", Options{}},
		"impossible":       {"l.jsonl", "{}\n", "labels", Options{Columns: &graph.Columns{Labels: []graph.LabelValues{{}}}}},
	} {
		path := filepath.Join(dir, c.file+"")
		if c.file == "" {
			path = filepath.Join(dir, "none.csv")
		} else {
			write(t, path, c.text)
		}
		if _, err := readAll(t, path, c.o); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	for file, want := range map[string]string{
		"m.TXT":    `:1: "Compound\tmol": there is no SMILES in front: if this is a table, -format csv reads it`,
		"m.txt.gz": "there is no SMILES in front",
		"m.smi":    `:1: "Compound": character 3 of the SMILES: 'm' is not an atom`,
	} {
		_, err := ReadAll(t.Context(), file, Options{Input: strings.NewReader(string(zipped(t, "Compound\tmol\na\tC\n")))})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
	path := filepath.Join(dir, "m.smi")
	write(t, path, strings.Repeat("C\n", 5000))
	stop := errors.New("stop")
	n := 0
	err := Read(t.Context(), path, Options{}, func(*Record) error { n++; return stop })
	if n != 1 || err != stop {
		t.Errorf("an error of emit: %v after %d records", err, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Read(ctx, path, Options{}, func(*Record) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for text, want := range map[string]string{"": "there are no records in it", "C(\n": "no record of it can be used, such as"} {
		write(t, path, text)
		if _, err := ReadAll(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzRecords: whatever a file has, there is no panic, a record is a valid graph or an
// error with its line, and the reading goes on where it is taken up.
func FuzzRecords(f *testing.F) {
	for _, text := range []string{
		"smiles,y\nCCO,1\nC(,2\n", "graph,source,target,label,x\np,a,,6,0.5\np,b,,8,1\np,a,b,,\nq,c,,1,2\n",
		`{"id":"a","nodes":3,"edges":[[0,1],[1,2]],"labels":[6,6,8],"attributes":[[1],[2],[3]],"directed":true}` + "\n{}\n", `{"nodes":[{"id":"a","label":1},{"id":7,"label":2}],"links":[{"source":7,"target":"a"}]}`, "C x\n\nCC\n", "\xff\xfes\x00m\x00i\x00l\x00e\x00s\x00\n\x00C\x00", "\x28\xb5\x2f\xfd\x04\x00", "smiles;y\rC;\"1\r",
		sdRecord("a", "1") + "$$$$\n\n$$$$\n" + sdRecord("b", "2"), graphMLText,
	} {
		for format := range len(Formats) - 2 { // but for the folders
			f.Add([]byte(text), uint8(format), uint8(1))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, format, skip uint8) {
		o := Options{Format: Formats[int(format)%(len(Formats)-2)]}
		read := func(o Options) (records []*Record, err error) {
			o.Input = bytes.NewReader(text)
			err = Read(t.Context(), "-", o, func(r *Record) error {
				if r.Err == nil {
					if err := r.Graph.Validate(); err != nil {
						t.Error(err)
					}
				} else if r.Err.Line < 1 || r.Err.Reason == "" {
					t.Errorf("an error without line or reason: %+v", r.Err)
				}
				records = append(records, r)
				return nil
			})
			return records, err
		}
		all, err := read(o)
		o.Skip = int(skip)
		rest, again := read(o)
		if fmt.Sprint(err) != fmt.Sprint(again) {
			t.Fatalf("%v, and taken up %v", err, again)
		}
		if err != nil {
			return // which records come before it depends on how far the others have come
		}
		if d := cmp.Diff(all[min(len(all), int(skip)):], rest, cmpopts.IgnoreUnexported(Record{}), cmpopts.EquateEmpty()); d != "" {
			t.Error(d)
		}
	})
}

// TestEdgeListLimit: a graph that is too large is rejected without being held, and the
// next one is read.
func TestEdgeListLimit(t *testing.T) {
	defer func(n int) { maxGraphNumbers = n }(maxGraphNumbers)
	maxGraphNumbers = 10
	path := filepath.Join(t.TempDir(), "e.csv")
	text := "graph,source,target\n" + strings.Repeat("big,a,b\n", 50) + "small,a,b\n"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := Read(t.Context(), path, Options{}, func(r *Record) error {
		got = append(got, fmt.Sprint(r.ID, " ", r.Err))
		return nil
	})
	if err != nil || len(got) != 2 || !strings.Contains(got[0], "e.csv:10: \"big\": a graph of more than 10 edges") || got[1] != "small <nil>" {
		t.Errorf("%q, %v", got, err)
	}
}
