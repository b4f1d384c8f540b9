package dataset

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/specmatch/specmatch/gnn/graph"
)

// files are the files of a data set by the part of the name after "NAME_".
type files map[string]string

// with returns a copy with one file replaced.
func (f files) with(part, text string) files {
	g := maps.Clone(f)
	g[part] = text
	return g
}

// without returns a copy that lacks one file.
func (f files) without(part string) files {
	g := maps.Clone(f)
	delete(g, part)
	return g
}

// fsys returns the files as an in-memory file system.
func (f files) fsys(name string) fstest.MapFS {
	m := make(fstest.MapFS)
	for part, text := range f {
		m[name+"_"+part+".txt"] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// folder writes the files to dir/name and returns that path.
func (f files) folder(t testing.TB, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(path, 0o777); err != nil {
		t.Fatal(err)
	}
	for part, text := range f {
		write(t, filepath.Join(path, name+"_"+part+".txt"), text)
	}
	return path
}

// archive writes the files to dir/name.zip and returns that path.
func (f files) archive(t testing.TB, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name+".zip")
	write(t, path, string(f.zip(t, name)))
	return path
}

func (f files) zip(t testing.TB, name string) []byte {
	members := make(map[string]string)
	for part, text := range f {
		members[name+"/"+name+"_"+part+".txt"] = text
	}
	return zipOf(t, members)
}

func zipOf(t testing.TB, members map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(members[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// small is a set of two graphs: a triangle 1-2-3 and the path 4-5-6 with an
// isolated node 7, all edges in both directions and in no order.
var small = files{
	"A":               "2, 1\n1, 2\n3, 1\n1, 3\n2, 3\n3, 2\n5, 4\n6, 5\n5, 6\n4, 5\n",
	"graph_indicator": "1\n1\n1\n2\n2\n2\n2\n",
	"graph_labels":    "1\n-1\n",
	"node_labels":     "3\n5\n3\n4\n3\n3\n5\n",
	"edge_labels":     "1\n1\n2\n2\n3\n3\n1\n2\n2\n1\n",
	"node_attributes": "0.5, 1\n-1, 2\n1e-3, 3\n4, 4\n5, 5\n6, 6\n7, 7\n",
}

// bare is small with only the files that every set has.
var bare = files{"A": small["A"], "graph_indicator": small["graph_indicator"], "graph_labels": small["graph_labels"]}

func load(t *testing.T, f files, opts Options) *Dataset {
	t.Helper()
	ds, err := LoadFS(t.Context(), f.fsys("S"), "S", opts)
	if err != nil {
		t.Fatal(err)
	}
	validate(t, ds)
	return ds
}

// validate checks what every loaded set promises.
func validate(t testing.TB, ds *Dataset) {
	t.Helper()
	if ds.Classes != len(ds.ClassValues) || !slices.IsSorted(ds.ClassValues) {
		t.Fatalf("%d classes with values %v", ds.Classes, ds.ClassValues)
	}
	if err := ds.checkLayout(); err != nil {
		t.Fatal(err)
	}
	for k, g := range ds.Graphs {
		if g.Directed == g.Symmetric() {
			t.Fatalf("graph %d: Directed = %t, Symmetric() = %t", k, g.Directed, g.Symmetric())
		}
	}
}

func TestLoadSmall(t *testing.T) {
	ds := load(t, small, Options{})
	want := &Dataset{
		Name: "S", Classes: 2, AttributesLeftOut: true, ClassValues: []int{-1, 1}, FeatureWidth: 3,
		NodeLabels: []LabelColumn{{Min: 3, Width: 3, Distinct: 3}},
		EdgeLabels: []LabelColumn{{Min: 1, Width: 3, Distinct: 3}},
		Graphs: []*graph.Graph{
			{Ptr: []int32{0, 2, 4, 6}, Adj: []int32{1, 2, 0, 2, 0, 1}, EdgeLabel: []int32{0, 1, 0, 2, 1, 2},
				X: graph.Features{Width: 3, Category: []int32{0, 2, 0}}, Class: 1},
			{Ptr: []int32{0, 1, 3, 4, 4}, Adj: []int32{1, 0, 2, 1}, EdgeLabel: []int32{0, 0, 1, 1},
				X: graph.Features{Width: 3, Category: []int32{1, 0, 0, 2}}, Class: 0},
		},
	}
	if !reflect.DeepEqual(ds, want) {
		t.Errorf("got %s\nwant %s", describe(ds), describe(want))
	}
	if got := ds.Labels(); !slices.Equal(got, []int{1, 0}) {
		t.Errorf("Labels() = %v", got)
	}
	if got := ds.EdgeCategories(); got != 3 {
		t.Errorf("EdgeCategories() = %d, want 3", got)
	}
}

func describe(ds *Dataset) string {
	var b strings.Builder
	head := *ds
	head.Graphs = nil
	fmt.Fprintf(&b, "%d graphs, %+v", len(ds.Graphs), head)
	for _, g := range ds.Graphs {
		fmt.Fprintf(&b, "\n  %+v", *g)
	}
	return b.String()
}

func TestLoadFeatures(t *testing.T) {
	attributes := Options{NodeAttributes: true}
	for _, c := range []struct {
		name     string
		files    files
		opts     Options
		width    int
		attrs    int
		category []int32   // of graph 1
		dense    []float32 // of its node 0
	}{
		{"labels", small, Options{}, 3, 0, []int32{1, 0, 0, 2}, nil},
		{"attributes and labels", small, attributes, 5, 2, nil, []float32{4, 4, 0, 1, 0}},
		{"attributes alone", small.without("node_labels"), attributes, 2, 2, nil, []float32{4, 4}},
		{"attributes not asked for", small.without("node_labels"), Options{}, 1, 0, []int32{0, 0, 0, 0}, nil},
		{"asked for but not there", small.without("node_attributes"), attributes, 3, 0, []int32{1, 0, 0, 2}, nil},
		{"constant", bare, Options{}, 1, 0, []int32{0, 0, 0, 0}, nil},
		{"constant, attributes asked for", bare, attributes, 1, 0, []int32{0, 0, 0, 0}, nil},
		{"gaps in the labels", small.with("node_labels", "1\n89\n1\n1\n40\n89\n1\n"), Options{}, 89, 0, []int32{0, 39, 88, 0}, nil},
		{"negative labels", small.with("node_labels", "-2\n-2\n-2\n0\n-1\n-2\n0\n"), Options{}, 3, 0, []int32{2, 1, 0, 2}, nil},
		{"two columns of labels", small.with("node_labels", "0, 7\n1, 7\n0, 7\n1, 9\n0, 7\n0, 7\n0, 7\n"), Options{}, 5, 0, nil, []float32{0, 1, 0, 0, 1}},
		{"attributes and two columns", small.with("node_labels", "0,7\n1,7\n0,7\n1,9\n0,7\n0,7\n0,7\n"), attributes, 7, 2, nil, []float32{4, 4, 0, 1, 0, 0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds := load(t, c.files, c.opts)
			x := ds.Graphs[1].X
			if ds.FeatureWidth != c.width || x.Width != c.width || ds.NodeAttributes != c.attrs {
				t.Errorf("width %d and %d, %d attributes; want %d, %d", ds.FeatureWidth, x.Width, ds.NodeAttributes, c.width, c.attrs)
			}
			if !slices.Equal(x.Category, c.category) {
				t.Errorf("categories %v, want %v", x.Category, c.category)
			}
			if c.dense == nil {
				return
			}
			row := make([]float32, c.width)
			if x.Row(row, 0); !slices.Equal(row, c.dense) {
				t.Errorf("features of node 0 %v, want %v", row, c.dense)
			}
		})
	}
}

// The ways of writing the same numbers that real sets have.
func TestLoadSpellings(t *testing.T) {
	want := load(t, small, Options{NodeAttributes: true})
	each := func(change func(string) string) files {
		f := make(files)
		for part, text := range small {
			f[part] = change(text)
		}
		return f
	}
	for name, f := range map[string]files{
		"no blank after the comma": each(func(s string) string { return strings.ReplaceAll(s, ", ", ",") }),
		"blanks everywhere": each(func(s string) string {
			return strings.ReplaceAll(strings.ReplaceAll(s, ",", " \t,\t "), "\n", "  \n  ")
		}),
		"CRLF":               each(func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }),
		"no final newline":   each(func(s string) string { return strings.TrimSuffix(s, "\n") }),
		"blank lines at end": each(func(s string) string { return s + "\n \n\r\n" }),
		"signs and zeros":    small.with("A", strings.ReplaceAll(small["A"], "2", "+002")),
		"reals":              small.with("node_attributes", "5e-1, 1.\n-1.0, 2\n.001, 3\n4, 4\n5, 5\n6, +6\n7, 7\n"),
		"other files too":    small.with("README", "no numbers here\n"),
	} {
		t.Run(name, func(t *testing.T) {
			if got := load(t, f, Options{NodeAttributes: true}); !reflect.DeepEqual(got, want) {
				t.Errorf("got %s\nwant %s", describe(got), describe(want))
			}
		})
	}
}

func TestLoadLoopsAndDuplicates(t *testing.T) {
	f := files{
		// 1→2 three times (the first is labelled 7), a self-loop at 2 twice and
		// at 3 once, 3→1 only one way.
		"A":               "1, 2\n2, 2\n1, 2\n2, 1\n3, 3\n3, 1\n2, 2\n1, 2\n",
		"edge_labels":     "7\n9\n8\n7\n9\n5\n9\n6\n",
		"graph_indicator": "1\n1\n1\n",
		"graph_labels":    "4\n",
	}
	ds := load(t, f, Options{})
	g := ds.Graphs[0]
	if want := []int32{0, 2, 3, 3}; !slices.Equal(g.Ptr, want) {
		t.Errorf("Ptr = %v, want %v", g.Ptr, want)
	}
	if want := []int32{1, 2, 0}; !slices.Equal(g.Adj, want) {
		t.Errorf("Adj = %v, want %v", g.Adj, want)
	}
	if want := []int32{2, 0, 2}; !slices.Equal(g.EdgeLabel, want) {
		t.Errorf("EdgeLabel = %v, want %v (the first of the repeated ones)", g.EdgeLabel, want)
	}
	if ds.SelfLoops != 2 || ds.Duplicates != 3 {
		t.Errorf("%d self-loops, %d duplicates; want 2, 3", ds.SelfLoops, ds.Duplicates)
	}
	if !g.Directed {
		t.Error("3→1 has no reverse, but the graph is not Directed")
	}
	// What was only asymmetric because of a duplicate or a loop is not.
	ds = load(t, f.with("A", "1, 2\n2, 2\n1, 2\n2, 1\n3, 3\n1, 2\n2, 2\n1, 2\n"), Options{})
	if ds.Graphs[0].Directed {
		t.Error("Directed, but only loops and repeated edges lack a reverse")
	}
}

func TestLoadEdgeLabelColumns(t *testing.T) {
	f := small.with("edge_labels", "0,5\n1,5\n0,7\n1,7\n0,6\n1,6\n0,5\n1,5\n0,7\n1,7\n")
	ds := load(t, f, Options{})
	if want := []LabelColumn{{Min: 0, Width: 2, Distinct: 2}, {Min: 5, Width: 3, Distinct: 3}}; !reflect.DeepEqual(ds.EdgeLabels, want) {
		t.Errorf("EdgeLabels = %v, want %v", ds.EdgeLabels, want)
	}
	// Row 0 holds 2→1 (0,5) and 3→1 (0,7); row 1 holds 1→2 (1,5) and 3→2 (1,6).
	if got, want := ds.Graphs[0].EdgeLabel[:4], []int32{0, 2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("EdgeLabel begins %v, want %v", got, want)
	}
	if got := ds.EdgeCategories(); got != 6 {
		t.Errorf("EdgeCategories() = %d, want 6", got)
	}
}

// An unsorted indicator is the sorted one with its nodes renumbered: here the
// nodes of the two graphs alternate.
func TestLoadUnsortedIndicator(t *testing.T) {
	number := []int{1, 3, 5, 2, 4, 6, 7} // of the sorted set's node n in the unsorted set
	var a strings.Builder
	for line := range strings.Lines(small["A"]) {
		i, j := int(line[0]-'0'), int(line[3]-'0')
		fmt.Fprintf(&a, "%d, %d\n", number[i-1], number[j-1])
	}
	permute := func(text string) string {
		lines := strings.SplitAfter(text, "\n")
		out := make([]string, len(number))
		for n, to := range number {
			out[to-1] = lines[n]
		}
		return strings.Join(out, "")
	}
	f := small.with("A", a.String())
	for _, part := range []string{"graph_indicator", "node_labels", "node_attributes"} {
		f[part] = permute(small[part])
	}
	if f["graph_indicator"] == small["graph_indicator"] {
		t.Fatal("the indicator is still sorted")
	}
	for _, opts := range []Options{{}, {NodeAttributes: true}} {
		if got, want := load(t, f, opts), load(t, small, opts); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: got %s\nwant %s", opts, describe(got), describe(want))
		}
	}
}

func TestLoadMalformed(t *testing.T) {
	long := strings.Repeat("1", 100)
	for _, c := range []struct {
		name  string
		files files
		part  string // file named in the error
		line  int
		value string
		want  string // in the reason
	}{
		{"A: node too large", small.with("A", "2, 1\n1, 8\n"), "A", 2, "8", "numbered 1 to 7"},
		{"A: node zero", small.with("A", "0, 1\n"), "A", 1, "0", "numbered 1 to 7"},
		{"A: negative node", small.with("A", "1, 2\n2, 1\n1, -3\n"), "A", 3, "-3", "numbered 1 to 7"},
		{"A: overflow", small.with("A", "1, 99999999999999999999\n"), "A", 1, "99999999999999999999", "32 bits"},
		{"A: 2^31", small.with("A", "1, 2147483648\n"), "A", 1, "2147483648", "32 bits"},
		{"A: letters", small.with("A", "1, 2\n1, two\n"), "A", 2, "two", "not an integer"},
		{"A: letters after digits", small.with("A", "1, 2x\n"), "A", 1, "2x", "not an integer"},
		{"A: real", small.with("A", "1.0, 2.0\n"), "A", 1, "1.0", "not an integer"},
		{"A: only a sign", small.with("A", "1, -\n"), "A", 1, "-", "not an integer"},
		{"A: byte order mark", small.with("A", "\ufeff1, 2\n"), "A", 1, "\ufeff1", "not an integer"},
		{"A: NUL", small.with("A", "1, 2\n\x00\n"), "A", 2, "\x00", "not an integer"},
		{"A: blank as separator", small.with("A", "1 2\n"), "A", 1, "1 2", "not an integer"},
		{"A: semicolon", small.with("A", "1; 2\n"), "A", 1, "1; 2", "not an integer"},
		{"A: one number", small.with("A", "1, 2\n3\n"), "A", 2, "", "one number"},
		{"A: three numbers", small.with("A", "1, 2, 3\n"), "A", 1, "", "more than two"},
		{"A: trailing comma", small.with("A", "1,\n"), "A", 1, "", "missing"},
		{"A: leading comma", small.with("A", ", 1\n"), "A", 1, "", "missing"},
		{"A: cut in a line", small.with("A", "1, 2\n2,"), "A", 2, "", "missing"},
		{"A: between graphs", small.with("A", "1, 2\n2, 1\n3, 4\n"), "A", 3, "3, 4", "graph 1 to graph 2"},
		{"A: blank line inside", small.with("A", "1, 2\n\n2, 1\n"), "A", 2, "", "blank line"},
		{"A: blank line first", small.with("A", "\n1, 2\n"), "A", 1, "", "blank line"},
		{"A: long token", small.with("A", "1, "+strings.Repeat("x", 1<<20)), "A", 1, strings.Repeat("x", 32) + "…", "not an integer"},
		{"A: long number", small.with("A", long+"\n"), "A", 1, long[:32] + "…", "32 bits"},
		{"A: zeros without end", small.with("A", strings.Repeat("0", 1<<20)), "A", 1, long[:0] + strings.Repeat("0", 32) + "…", "too long"},
		{"A: carriage return inside", small.with("A", "1, 2\r2, 1\n"), "A", 1, "2\r2", "not an integer"},

		{"indicator: beyond the graphs", small.with("graph_indicator", "1\n1\n3\n"), "graph_indicator", 3, "3", "numbered 1 to 2"},
		{"indicator: zero", small.with("graph_indicator", "0\n"), "graph_indicator", 1, "0", "numbered 1 to 2"},
		{"indicator: letters", small.with("graph_indicator", "1\nb\n"), "graph_indicator", 2, "b", "not an integer"},
		{"indicator: two columns", small.with("graph_indicator", "1,1\n2,1\n"), "graph_indicator", 1, "", "2 columns"},
		{"indicator: ragged", small.with("graph_indicator", "1\n2,1\n"), "graph_indicator", 2, "", "2 columns, but the first line has 1"},
		{"indicator: short, a graph is empty", small.with("graph_indicator", "1\n1\n"), "node_attributes", 3, "", "more than 2 lines"},
		{"indicator: short, an edge is left over", bare.with("graph_indicator", "1\n1\n1\n2\n2\n"), "A", 8, "6", "numbered 1 to 5"},
		{"indicator: empty", small.with("graph_indicator", ""), "graph_indicator", 1, "", "none of the 2 graphs has nodes"},

		{"graph labels: empty", small.with("graph_labels", ""), "graph_labels", 1, "", "empty"},
		{"graph labels: only blank lines", small.with("graph_labels", "\n\n"), "graph_labels", 1, "", "empty"},
		{"graph labels: word", small.with("graph_labels", "1\ncat\n"), "graph_labels", 2, "cat", "not an integer"},
		{"graph labels: short", small.with("graph_labels", "1\n"), "graph_indicator", 4, "2", "numbered 1 to 1"},
		{"graph attributes: short", small.with("graph_attributes", "0.5\n"), "graph_attributes", 2, "", "want 2, one per graph"},
		{"graph attributes: empty", small.with("graph_attributes", "").without("graph_labels"), "graph_attributes", 1, "", "empty"},
		{"graph attributes: nan", small.with("graph_attributes", "nan\n1\n"), "graph_attributes", 1, "nan", "finite"},

		{"node labels: short", small.with("node_labels", "1\n2\n"), "node_labels", 3, "", "ends after 2 lines, want 7, one per node"},
		{"node labels: long", small.with("node_labels", small["node_labels"]+"1\n"), "node_labels", 8, "", "more than 7 lines"},
		{"node labels: letter", small.with("node_labels", "1\n2\nC\n"), "node_labels", 3, "C", "not an integer"},
		{"node labels: ragged", small.with("node_labels", "1,1\n2,2\n3\n"), "node_labels", 3, "", "1 columns, but the first line has 2"},
		{"node labels: underflow", small.with("node_labels", "-2147483649\n"), "node_labels", 1, "-2147483649", "32 bits"},

		{"edge labels: short", small.with("edge_labels", "1\n"), "edge_labels", 2, "", "ends after 1 lines, want 10, one per line of _A.txt"},
		{"edge labels: long", small.with("edge_labels", small["edge_labels"]+"1\n"), "edge_labels", 11, "", "more than 10 lines"},
		{"edge labels: letter", small.with("edge_labels", "1\n=\n"), "edge_labels", 2, "=", "not an integer"},

		{"attributes: short", small.with("node_attributes", "1, 2\n"), "node_attributes", 2, "", "want 7"},
		{"attributes: ragged", small.with("node_attributes", "1, 2\n1\n"), "node_attributes", 2, "", "1 columns"},
		{"attributes: nan", small.with("node_attributes", "1, nan\n"), "node_attributes", 1, "nan", "finite"},
		{"attributes: inf", small.with("node_attributes", "-Inf, 1\n"), "node_attributes", 1, "-Inf", "finite"},
		{"attributes: beyond float32", small.with("node_attributes", "1, 1e39\n"), "node_attributes", 1, "1e39", "finite"},
		{"attributes: hexadecimal", small.with("node_attributes", "0x1p3, 1\n"), "node_attributes", 1, "0x1p3", "finite"},
		{"attributes: dots", small.with("node_attributes", "1.2.3, 1\n"), "node_attributes", 1, "1.2.3", "finite"},
		{"attributes: missing", small.with("node_attributes", "1,\n"), "node_attributes", 1, "", "missing"},
		{"attributes: long", small.with("node_attributes", "1, 0."+long+"\n"), "node_attributes", 1, "0." + long[:30] + "…", "too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds, err := LoadFS(t.Context(), c.files.fsys("S"), "S", Options{NodeAttributes: true})
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("got %v, %v; want a *SyntaxError", ds, err)
			}
			if want := "S_" + c.part + ".txt"; syntax.File != want || syntax.Line != c.line || syntax.Value != c.value || !strings.Contains(syntax.Reason, c.want) {
				t.Errorf("got  %+v\nwant File %s, Line %d, Value %q, Reason with %q", *syntax, want, c.line, c.value, c.want)
			}
			if text := err.Error(); !strings.HasPrefix(text, "dataset: ") || !strings.Contains(text, fmt.Sprintf("S_%s.txt:%d: ", c.part, c.line)) {
				t.Errorf("error %q does not name package, file and line", text)
			}
			if ds != nil {
				t.Error("a data set came with the error")
			}
		})
	}
}

// Errors that are not about a line.
func TestLoadRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		files files
		is    error
		want  string
	}{
		{"no edges file", small.without("A"), fs.ErrNotExist, "S_A.txt"},
		{"no indicator", small.without("graph_indicator"), fs.ErrNotExist, "S_graph_indicator.txt"},
		{"no classes", small.without("graph_labels"), fs.ErrNotExist, "S_graph_labels.txt"},
		{"node label range", small.with("node_labels", "0\n2000000000\n0\n0\n0\n0\n0\n"), nil, "from 0 to 2000000000"},
		{"full range", small.with("node_labels", "-2147483648\n2147483647\n0\n0\n0\n0\n0\n"), nil, "from -2147483648 to 2147483647"},
		{"edge label range", small.with("edge_labels", "0\n0\n0\n0\n0\n0\n0\n0\n0\n1048576\n"), nil, "at most 1048576"},
		{"edge label combinations", small.with("edge_labels", strings.Repeat("0,0,0\n", 9)+"9999,9999,9999\n"), nil, "categories"},
		{"edge label combinations, a few too many", small.with("edge_labels", strings.Repeat("0,0\n", 9)+"1024,1023\n"), nil, "1049600 categories"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ds, err := LoadFS(t.Context(), c.files.fsys("S"), "S", Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Fatalf("got %v, %v; want an error with %q", ds, err, c.want)
			}
		})
	}
	if ds := load(t, small.with("edge_labels", strings.Repeat("0,0\n", 9)+"1023,1023\n"), Options{}); ds.EdgeCategories() != 1<<20 {
		t.Errorf("%d combinations of edge labels, want 1<<20", ds.EdgeCategories())
	}
	// 300 nodes of 1,048,576 columns each would be more than a GiB.
	nodes := files{"A": "", "graph_labels": "1\n", "graph_indicator": strings.Repeat("1\n", 300),
		"node_labels": strings.Repeat("0,0\n", 299) + "1048575,1\n"}
	if _, err := LoadFS(t.Context(), nodes.fsys("S"), "S", Options{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("dense features of 1.2 GB: %v, want ErrTooLarge", err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	want := load(t, small, Options{})
	small.archive(t, dir, "S")
	other := small.with("graph_labels", "3\n3\n")
	other.folder(t, dir, "S") // the archive has precedence
	other.folder(t, dir, "T")
	if err := os.Mkdir(filepath.Join(dir, "not-a-set"), 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "notes.txt"), "")

	if got, err := Open(t.Context(), dir, "S", Options{}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Open(S) = %v, %v", got, err)
	}
	if _, err := Open(t.Context(), dir, "t", Options{}); err == nil || !strings.Contains(err.Error(), "is T meant?") {
		t.Errorf("a name in the wrong case: %v", err)
	}
	if got, err := Open(t.Context(), dir, "T", Options{}); err != nil || !slices.Equal(got.ClassValues, []int{3}) {
		t.Errorf("Open(T) = %v, %v", got, err)
	}
	if got, err := LoadTU(t.Context(), filepath.Join(dir, "S")+"/", Options{}); err != nil || got.Name != "S" || got.Classes != 1 {
		t.Errorf("LoadTU(S/) = %v, %v", got, err)
	}
	if names, err := List(dir); err != nil || !slices.Equal(names, []string{"S", "T"}) {
		t.Errorf("List = %v, %v", names, err)
	}

	_, err := Open(t.Context(), dir, "MUTAG", Options{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of a missing set: %v, want ErrNotExist", err)
	}
	for _, part := range []string{"MUTAG", filepath.Join(dir, "MUTAG.zip"), filepath.Join(dir, "MUTAG") + "/", "S, T"} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("error %q does not mention %q", err, part)
		}
	}
	if _, err := Open(t.Context(), t.TempDir(), "MUTAG", Options{}); err == nil || !strings.Contains(err.Error(), "no data sets in it") {
		t.Errorf("Open in an empty folder: %v", err)
	}
	if _, err := Open(t.Context(), filepath.Join(dir, "nowhere"), "MUTAG", Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open in a missing folder: %v", err)
	}
	for _, name := range []string{"", ".", "..", "../S", "S/../T", "/etc", `a\b`, "a b", ".hidden", "C:", "é", strings.Repeat("x", 101)} {
		if _, err := Open(t.Context(), dir, name, Options{}); err == nil || !strings.Contains(err.Error(), "not the name") {
			t.Errorf("Open(%q): %v", name, err)
		}
		if _, err := LoadFS(t.Context(), small.fsys("S"), name, Options{}); err == nil || !strings.Contains(err.Error(), "not the name") {
			t.Errorf("LoadFS(%q): %v", name, err)
		}
	}
}

func TestLoadPaths(t *testing.T) {
	dir := t.TempDir()
	zipped := small.archive(t, dir, "S")
	folder := small.folder(t, dir, "F")
	upper := filepath.Join(dir, "U.ZIP")
	write(t, upper, string(small.zip(t, "U")))
	if ds, err := LoadTU(t.Context(), upper, Options{}); err != nil || ds.Name != "U" {
		t.Errorf("U.ZIP: %v, %v", ds, err)
	}
	t.Run("relative", func(t *testing.T) {
		t.Chdir(folder)
		if ds, err := LoadTU(t.Context(), ".", Options{}); err != nil || ds.Name != "F" {
			t.Errorf("LoadTU(.) = %v, %v", ds, err)
		}
	})

	renamed := filepath.Join(dir, "renamed.zip")
	write(t, renamed, string(small.zip(t, "S")))
	asFolder := filepath.Join(dir, "dir.zip")
	missing := filepath.Join(dir, "missing.zip")
	member := filepath.Join(folder, "F_A.txt")
	partFolder := small.without("A").folder(t, dir, "D")
	for _, path := range []string{asFolder, filepath.Join(partFolder, "D_A.txt")} {
		if err := os.Mkdir(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	escape := small.without("A").folder(t, dir, "E")
	if err := os.Symlink(member, filepath.Join(escape, "E_A.txt")); err != nil {
		t.Fatal(err)
	}
	broken := small.without("node_labels").folder(t, dir, "B")
	if err := os.Symlink("nowhere", filepath.Join(broken, "B_node_labels.txt")); err != nil {
		t.Fatal(err)
	}
	inside := small.without("A").folder(t, dir, "I")
	write(t, filepath.Join(inside, "edges"), small["A"])
	if err := os.Symlink("edges", filepath.Join(inside, "I_A.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadTU(t.Context(), inside, Options{}); err != nil {
		t.Errorf("a link that stays in the folder: %v", err)
	}
	linked := filepath.Join(dir, "L.zip")
	if err := os.Symlink("S.zip", linked); err != nil {
		t.Fatal(err)
	}
	if ds, err := LoadTU(t.Context(), linked, Options{}); err == nil || !strings.Contains(err.Error(), "renamed from S") {
		t.Errorf("a link to S.zip called L.zip: %v, %v", ds, err)
	}
	empty := filepath.Join(dir, "empty.zip")
	write(t, empty, "")
	whole, err := os.ReadFile(zipped)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut.zip")
	write(t, cut, string(whole[:len(whole)/2]))
	page := filepath.Join(dir, "page.zip")
	write(t, page, "<html>404 not found</html>")

	for _, c := range []struct{ path, want string }{
		{missing, "no such file"},
		{filepath.Join(dir, "nowhere"), "no such file"},
		{asFolder, "is a folder, want a zip archive"},
		{member, "is not a data set; give NAME.zip or the folder"},
		{renamed, "no member renamed_graph_labels.txt"},
		{renamed, "renamed from S"},
		{partFolder, "D_A.txt: is not a regular file"},
		{escape, "E_A.txt: path escapes from parent"},
		{broken, "no file B_node_labels.txt"},
		{empty, "not a complete zip archive"},
		{cut, "not a complete zip archive"},
		{page, "not a complete zip archive"},
	} {
		ds, err := LoadTU(t.Context(), c.path, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Base(c.path)) {
			t.Errorf("LoadTU(%s) = %v, %v; want an error with %q", c.path, ds, err, c.want)
		}
	}
}

func TestLoadZip(t *testing.T) {
	want := load(t, small, Options{})
	members := func(path string) map[string]string {
		m := make(map[string]string)
		for part, text := range small {
			m[fmt.Sprintf(path, "S_"+part+".txt")] = text
		}
		return m
	}
	extra := func(m map[string]string, name, text string) map[string]string {
		m[name] = text
		return m
	}
	for _, c := range []struct {
		name    string
		members map[string]string
		want    string // in the error; "" if the archive is fine
	}{
		{"folder", members("S/%s"), ""},
		{"flat", members("%s"), ""},
		{"double slash, as in old archives", members("S//%s"), ""},
		{"deep", members("data/ds/S/%s"), ""},
		{"macOS", extra(members("S/%s"), "__MACOSX/S/._S_A.txt", "\x00\x05"), ""},
		{"folder entries", extra(members("S/%s"), "S/", ""), ""},
		{"dots that lead nowhere", extra(members("S/%s"), "S/..README", ""), ""},
		{"parent", extra(members("S/%s"), "../evil", "x"), `"../evil"`},
		{"parent inside", extra(members("S/%s"), "S/../../evil", "x"), `"S/../../evil"`},
		{"parent at the end", extra(members("S/%s"), "S/..", "x"), `"S/.."`},
		{"the data itself from the parent", members("../%s"), "leads out of the archive"},
		{"absolute", extra(members("S/%s"), "/etc/passwd", "x"), `"/etc/passwd"`},
		{"drive", extra(members("S/%s"), "C:evil", "x"), `"C:evil"`},
		{"backslashes", extra(members("S/%s"), `..\evil`, "x"), `"..\\evil"`},
		{"NUL", extra(members("S/%s"), "S/a\x00b", "x"), "leads out"},
		{"two of one name", extra(members("S/%s"), "T/S_A.txt", "1, 2\n"), "have the same file name"},
		{"two of a name that does not matter", extra(extra(members("S/%s"), "S/README.txt", "x"), "README.txt", "y"), ""},
		{"another set", map[string]string{"T/T_A.txt": ""}, "renamed from T"},
		{"nothing", map[string]string{}, "no member S_graph_labels.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "S.zip")
			write(t, path, string(zipOf(t, c.members)))
			ds, err := LoadTU(t.Context(), path, Options{})
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want == "" && !reflect.DeepEqual(ds, want):
				t.Errorf("got %s\nwant %s", describe(ds), describe(want))
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path)):
				t.Errorf("got %v, %v; want an error with %q and the path", ds, err, c.want)
			}
		})
	}
	t.Run("position in a member", func(t *testing.T) {
		path := small.with("A", "1, 2\n1, 9\n").archive(t, t.TempDir(), "S")
		_, err := LoadTU(t.Context(), path, Options{})
		if want := path + "/S/S_A.txt:2: \"9\": "; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	})
	t.Run("too many members", func(t *testing.T) {
		m := members("S/%s")
		for i := range maxMembers - len(m) {
			m[strconv.Itoa(i)] = ""
		}
		path := filepath.Join(t.TempDir(), "S.zip")
		write(t, path, string(zipOf(t, m)))
		if _, err := LoadTU(t.Context(), path, Options{}); err != nil {
			t.Errorf("%d members: %v", len(m), err)
		}
		write(t, path, string(zipOf(t, extra(m, "one more", ""))))
		if _, err := LoadTU(t.Context(), path, Options{}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v, want ErrTooLarge", err)
		}
	})
}

// raw writes an archive member by member with headers of the test's choosing.
func rawZip(t *testing.T, path string, f files, header func(part string, h *zip.FileHeader)) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for part, text := range f {
		h := &zip.FileHeader{Name: "S_" + part + ".txt", Method: zip.Deflate}
		header(part, h)
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(text))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, path, b.String())
}

func TestLoadZipMembers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "S.zip")
	t.Run("stored", func(t *testing.T) {
		rawZip(t, path, small, func(_ string, h *zip.FileHeader) { h.Method = zip.Store })
		if _, err := LoadTU(t.Context(), path, Options{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("symbolic link", func(t *testing.T) {
		rawZip(t, path, small, func(part string, h *zip.FileHeader) {
			if part == "node_labels" {
				h.SetMode(fs.ModeSymlink | 0o777)
			}
		})
		if _, err := LoadTU(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), "S_node_labels.txt: is not a regular file") {
			t.Error(err)
		}
	})
	t.Run("encrypted", func(t *testing.T) {
		rawZip(t, path, small, func(part string, h *zip.FileHeader) {
			if part == "A" {
				h.Flags |= 1
			}
		})
		if _, err := LoadTU(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), "S_A.txt: is encrypted") {
			t.Error(err)
		}
	})
	t.Run("unknown compression", func(t *testing.T) {
		rawZip(t, path, small, func(string, *zip.FileHeader) {})
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// Method of every local (offset 8) and central (offset 10) header.
		for sig, at := range map[string]int{"PK\x03\x04": 8, "PK\x01\x02": 10} {
			for i := 0; ; {
				j := bytes.Index(b[i:], []byte(sig))
				if j < 0 {
					break
				}
				b[i+j+at] = 99
				i += j + 4
			}
		}
		write(t, path, string(b))
		if _, err := LoadTU(t.Context(), path, Options{}); !errors.Is(err, zip.ErrAlgorithm) {
			t.Error(err)
		}
	})
	t.Run("damaged", func(t *testing.T) {
		// Stored, so that a changed byte is still text, and only the checksum
		// can tell.
		rawZip(t, path, small, func(_ string, h *zip.FileHeader) { h.Method = zip.Store })
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(b, []byte("3\n5\n3\n4\n")) // node labels
		b[at] = '4'
		write(t, path, string(b))
		if _, err := LoadTU(t.Context(), path, Options{}); !errors.Is(err, zip.ErrChecksum) || !strings.Contains(err.Error(), "S_node_labels.txt:") {
			t.Errorf("got %v, want a checksum error of S_node_labels.txt", err)
		}
	})
}

func TestLimits(t *testing.T) {
	dir := t.TempDir()
	zipped, folder := small.archive(t, dir, "S"), small.folder(t, dir, "F")
	total := 0
	for _, part := range []string{"A", "graph_indicator", "graph_labels", "node_labels", "edge_labels"} {
		total += len(small[part])
	}
	for _, c := range []struct {
		name   string
		limits limits
		ok     bool
	}{
		{"largest file just fits", limits{file: int64(len(small["A"]))}, true},
		{"largest file does not", limits{file: int64(len(small["A"])) - 1}, false},
		{"all just fit", limits{total: int64(total)}, true},
		{"all do not", limits{total: int64(total) - 1}, false},
		{"one byte", limits{file: 1}, false},
		{"ratio matters only for large members", limits{ratio: 1}, true},
	} {
		for _, path := range []string{zipped, folder} {
			_, err := LoadTU(t.Context(), path, Options{limits: c.limits})
			if c.ok && err != nil || !c.ok && !errors.Is(err, ErrTooLarge) {
				t.Errorf("%s: %s: %v", c.name, filepath.Base(path), err)
			}
			if !c.ok && !strings.Contains(fmt.Sprint(err), ".txt:") {
				t.Errorf("%s: error %q does not say where", c.name, err)
			}
		}
	}

	// 17 MiB of one edge, in 17 KiB: the ratio of 1000 is beyond the default.
	bomb := bare.with("A", strings.Repeat("1, 2\n", 17<<20/5)).archive(t, dir, "B")
	if _, err := LoadTU(t.Context(), bomb, Options{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a ratio of 1000: %v, want ErrTooLarge", err)
	}
	if ds, err := LoadTU(t.Context(), bomb, Options{limits: limits{ratio: 2000}}); err != nil || ds.Duplicates != 17<<20/5-1 {
		t.Errorf("the same with a higher limit: %v, %v", ds, err)
	}
	if err := CheckArchive(t.Context(), bomb, "B"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("CheckArchive of a ratio of 1000: %v, want ErrTooLarge", err)
	}
}

// naive reads a set the obvious way, line by line into maps: the definition of
// what readTU does for sets of integers. It knows nothing of malformed input.
func naive(f files, name string) *Dataset {
	table := func(part string) [][]int {
		text := strings.TrimRight(f[part], "\r\n \t")
		if text == "" {
			return nil
		}
		var rows [][]int
		for line := range strings.SplitSeq(text, "\n") {
			var row []int
			for field := range strings.SplitSeq(line, ",") {
				v, err := strconv.Atoi(strings.TrimSpace(field))
				if err != nil {
					panic(err)
				}
				row = append(row, v)
			}
			rows = append(rows, row)
		}
		return rows
	}
	column := func(rows [][]int) LabelColumn {
		lo := slices.MinFunc(rows, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })[0]
		hi := slices.MaxFunc(rows, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })[0]
		seen := make(map[int]bool)
		for _, r := range rows {
			seen[r[0]] = true
		}
		return LabelColumn{Min: lo, Width: hi - lo + 1, Distinct: len(seen)}
	}

	ds := &Dataset{Name: name, FeatureWidth: 1}
	labels, indicator, nodeLabels, edgeLabels := table("graph_labels"), table("graph_indicator"), table("node_labels"), table("edge_labels")
	if nodeLabels != nil {
		ds.NodeLabels = []LabelColumn{column(nodeLabels)}
		ds.FeatureWidth = ds.NodeLabels[0].Width
	}
	if edgeLabels != nil {
		ds.EdgeLabels = []LabelColumn{column(edgeLabels)}
	}
	local := make([]int, len(indicator))  // of node n in its graph
	members := make([][]int, len(labels)) // nodes of graph g
	for n, g := range indicator {
		local[n] = len(members[g[0]-1])
		members[g[0]-1] = append(members[g[0]-1], n)
	}
	values := make(map[int]bool)
	for g, l := range labels {
		if len(members[g]) == 0 {
			ds.Empty = append(ds.Empty, g)
		} else {
			values[l[0]] = true
		}
	}
	ds.ClassValues = slices.Sorted(maps.Keys(values))
	ds.Classes = len(ds.ClassValues)
	incoming := make([]map[int]int, len(indicator)) // target → source → label
	for n := range incoming {
		incoming[n] = make(map[int]int)
	}
	for e, a := range table("A") {
		i, j := a[0]-1, a[1]-1
		if _, ok := incoming[j][i]; ok {
			ds.Duplicates++
			continue
		}
		incoming[j][i] = 0
		if edgeLabels != nil {
			incoming[j][i] = edgeLabels[e][0] - ds.EdgeLabels[0].Min
		}
		if i == j {
			ds.SelfLoops++
		}
	}
	for g, l := range labels {
		if len(members[g]) == 0 {
			continue
		}
		h := &graph.Graph{Ptr: []int32{0}, Adj: []int32{}, Class: slices.Index(ds.ClassValues, l[0]), X: graph.Features{Width: ds.FeatureWidth}}
		if edgeLabels != nil {
			h.EdgeLabel = []int32{}
		}
		for _, n := range members[g] {
			sources := slices.SortedFunc(maps.Keys(incoming[n]), func(a, b int) int { return local[a] - local[b] })
			for _, m := range sources {
				if m == n {
					continue
				}
				h.Adj = append(h.Adj, int32(local[m]))
				if edgeLabels != nil {
					h.EdgeLabel = append(h.EdgeLabel, int32(incoming[n][m]))
				}
				if _, ok := incoming[m][n]; !ok {
					h.Directed = true
				}
			}
			h.Ptr = append(h.Ptr, int32(len(h.Adj)))
			category := 0
			if nodeLabels != nil {
				category = nodeLabels[n][0] - ds.NodeLabels[0].Min
			}
			h.X.Category = append(h.X.Category, int32(category))
		}
		ds.Graphs = append(ds.Graphs, h)
	}
	return ds
}

func TestWriteTU(t *testing.T) {
	two := small.with("node_labels", "0,7\n1,7\n0,7\n1,9\n0,7\n0,7\n0,7\n").with("edge_labels", "0,5\n1,5\n0,7\n1,7\n0,6\n1,6\n0,5\n1,5\n0,7\n1,7\n")
	directed := small.with("A", "1, 2\n3, 2\n6, 5\n5, 4\n4, 6\n").with("edge_labels", "1\n2\n3\n4\n5\n")
	for name, f := range map[string]files{
		"small": small, "bare": bare, "two columns": two, "directed": directed,
		"attributes only": small.without("node_labels"), "no edges": bare.with("A", ""),
	} {
		for _, opts := range []Options{{}, {NodeAttributes: true}} {
			t.Run(fmt.Sprintf("%s/%+v", name, opts.NodeAttributes), func(t *testing.T) {
				dir := t.TempDir()
				ds := load(t, f, opts)
				if err := WriteTU(dir, ds); err != nil {
					t.Fatal(err)
				}
				got, err := Open(t.Context(), dir, "S", opts)
				if err != nil {
					t.Fatal(err)
				}
				got.AttributesLeftOut = ds.AttributesLeftOut // which are not written
				if !reflect.DeepEqual(got, ds) {
					t.Errorf("wrote %s\nread %s", describe(ds), describe(got))
				}
				if err := WriteTU(dir, ds); !errors.Is(err, fs.ErrExist) {
					t.Errorf("writing again: %v, want ErrExist", err)
				}
				entries, err := os.ReadDir(dir)
				if err != nil || len(entries) != 1 {
					t.Errorf("left behind: %v, %v", entries, err)
				}
			})
		}
	}
}

func TestWriteTURefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*Dataset)
		want   string
	}{
		{func(d *Dataset) { d.Name = "../S" }, "not the name"},
		{func(d *Dataset) { d.FeatureWidth = 4 }, "FeatureWidth is 4"},
		{func(d *Dataset) { d.Edges = &graph.EdgeValues{Weights: true} }, "edges have weights"},
		{func(d *Dataset) { d.Classes = 3 }, "2 ClassValues of 3"},
		{func(d *Dataset) { d.Graphs[1].Class = 2 }, "graph 1: class 2 of 2"},
		{func(d *Dataset) { d.Graphs[1].X.Width = 4 }, "graph 1: feature width 4"},
		{func(d *Dataset) { d.Graphs[1].EdgeLabel = nil }, "graph 1: 0 edge labels for 4"},
		{func(d *Dataset) { d.Graphs[1].EdgeLabel[2] = 3 }, "graph 1: edge label 3 of 3"},
		{func(d *Dataset) { d.Graphs[0].Adj[0] = 9 }, "graph 0: "},
		{func(d *Dataset) { d.Graphs[0] = &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: 3}} }, "has no nodes"},
		{func(d *Dataset) {
			x := &d.Graphs[0].X
			x.Dense, x.Category = x.Materialize(3), nil
		}, "graph 0: features are dense"},
	} {
		dir := t.TempDir()
		ds := load(t, small, Options{})
		c.change(ds)
		if err := WriteTU(dir, ds); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("%s: left behind %v", c.want, entries)
		}
	}
	if err := WriteTU(filepath.Join(t.TempDir(), "nowhere"), load(t, small, Options{})); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a missing folder: %v", err)
	}
}

// TestTargets: numbers of graphs, several labels of a graph, and graphs without nodes, which are left out
// with all that belongs to them; what is written is read again.
func TestTargets(t *testing.T) {
	graphs := func(labels, attributes string) files {
		f := files{"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n3\n4\n", "graph_labels": labels, "graph_attributes": attributes}
		for part, text := range f {
			if text == "" {
				delete(f, part)
			}
		}
		return f
	}
	for _, c := range []struct {
		files   files
		values  []int // of the classes
		class   []int
		targets []Target
		empty   []int
	}{
		{graphs("", "0.1\n2\n-3e5\n7\n"), []int{0}, []int{0, 0, 0}, []Target{{"attribute", []float64{0.1, -3e5, 7}}}, []int{1}},
		{graphs("", "1,2\n3,4\n5,6\n7,8\n9,10\n"), []int{0}, []int{0, 0, 0}, []Target{{"attribute1", []float64{1, 5, 7}}, {"attribute2", []float64{2, 6, 8}}}, []int{1, 4}},
		{graphs("7\n-1\n2\n2\n", "0.5\n0\n1\n2\n"), []int{2, 7}, []int{1, 0, 0}, []Target{{"attribute", []float64{0.5, 1, 2}}}, []int{1}},
		{graphs("1234567, 0\n0, 0\n-20000000, 1\n1, 1\n", ""), []int{0}, []int{0, 0, 0}, []Target{{"class1", []float64{1234567, -2e7, 1}}, {"class2", []float64{0, 1, 1}}}, []int{1}},
		{graphs("1, 0\n0, 0\n0, 1\n1, 1\n", ""), []int{0}, []int{0, 0, 0}, []Target{{"class1", []float64{1, 0, 1}}, {"class2", []float64{0, 1, 1}}}, []int{1}},
	} {
		ds, err := LoadTU(t.Context(), c.files.folder(t, t.TempDir(), "S"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		check := func(ds *Dataset, empty []int) {
			t.Helper()
			if !slices.Equal(ds.ClassValues, c.values) || !slices.Equal(ds.Labels(), c.class) || !reflect.DeepEqual(ds.Targets, c.targets) || !slices.Equal(ds.Empty, empty) {
				t.Errorf("%v: classes %v of %v, targets %v, without nodes %v", c, ds.Labels(), ds.ClassValues, ds.Targets, ds.Empty)
			}
		}
		check(ds, c.empty)
		dir := t.TempDir()
		if err := WriteTU(dir, ds); err != nil {
			t.Fatal(err)
		}
		if ds, err = Open(t.Context(), dir, "S", Options{}); err != nil {
			t.Fatal(err)
		}
		check(ds, nil)
		if ds.Targets[0].Values = nil; WriteTU(t.TempDir(), ds) == nil {
			t.Error("targets that are too short are written")
		}
	}
}
