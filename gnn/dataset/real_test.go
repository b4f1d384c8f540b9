package dataset

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
)

// shared is where the real sets lie, beside the project's root; tests that need
// them are skipped where they are not.
const shared = "../../../shared/data"

func openReal(t testing.TB, name string) *Dataset {
	t.Helper()
	ds, err := Open(t.Context(), filepath.Join(shared, "tu"), name, Options{})
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no real data here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

var realSets sync.Map

// realSet returns a set that no test changes; large ones take a second to read.
func realSet(t *testing.T, name string) *Dataset {
	t.Helper()
	ds, ok := realSets.Load(name)
	if !ok {
		ds = openReal(t, name)
		realSets.Store(name, ds)
	}
	return ds.(*Dataset)
}

// TestOfficialAgree measures the real sets: the official statistics, and what
// is known of their quirks.
func TestOfficialAgree(t *testing.T) {
	type facts struct {
		width, attributes          int
		labels                     int // distinct node labels
		edgeLabels                 int
		isolated, minN, maxN       int
		loops, duplicates, entries int
		values                     []int
		sizes                      []int
	}
	want := map[string]facts{
		"MUTAG":           {7, 0, 7, 4, 0, 10, 28, 0, 0, 7442, []int{-1, 1}, []int{63, 125}},
		"NCI1":            {37, 0, 37, 0, 428, 3, 111, 0, 0, 265506, []int{0, 1}, []int{2053, 2057}},
		"PROTEINS":        {3, 1, 3, 0, 5, 4, 620, 0, 0, 162088, []int{1, 2}, []int{663, 450}},
		"DD":              {89, 0, 82, 0, 0, 30, 5748, 0, 0, 1686092, []int{1, 2}, []int{691, 487}},
		"COLLAB":          {1, 0, 0, 0, 0, 32, 492, 2837, 0, 24574995 - 2837, []int{1, 2, 3}, []int{2600, 775, 1625}},
		"IMDB-BINARY":     {1, 0, 0, 0, 0, 12, 136, 0, 193062, 193062, []int{0, 1}, []int{500, 500}},
		"REDDIT-BINARY":   {1, 0, 0, 0, 21, 6, 3782, 0, 0, 1991016, []int{-1, 1}, []int{1000, 1000}},
		"REDDIT-MULTI-5K": {1, 0, 0, 0, 45, 22, 3648, 0, 0, 5947556, []int{1, 2, 3, 4, 5}, []int{1000, 1000, 1000, 1000, 999}},
		"AIDS":            {38, 4, 38, 3, 210, 2, 95, 0, 0, 64780, []int{0, 1}, []int{400, 1600}},
	}
	for _, o := range Known() {
		t.Run(o.Name, func(t *testing.T) {
			w, ok := want[o.Name]
			if !ok {
				t.Fatal("no facts to compare with")
			}
			if w.entries > 5e6 && os.Getenv("SPECMATCH_LARGE") == "" {
				t.Skip("large, and SPECMATCH_LARGE is not set")
			}
			ds := realSet(t, o.Name)
			validate(t, ds)
			s := Stats(ds)
			for _, d := range o.Disagreements(s) {
				t.Error(d)
			}
			entries := 0
			for _, g := range ds.Graphs {
				entries += g.Entries()
			}
			labels := 0
			if len(ds.NodeLabels) > 0 {
				labels = ds.NodeLabels[0].Distinct
			}
			got := facts{ds.FeatureWidth, 0, labels, ds.EdgeCategories(), s.Isolated, s.MinNodes, s.MaxNodes, ds.SelfLoops, ds.Duplicates, entries, ds.ClassValues, s.ClassSizes}
			got.attributes = w.attributes // left out here, measured below
			if fmt.Sprint(got) != fmt.Sprint(w) {
				t.Errorf("got  %+v\nwant %+v", got, w)
			}
			ownColumns(t, ds)
			if s.Directed != 0 {
				t.Errorf("%d directed graphs, want none", s.Directed)
			}
			if w.attributes > 0 {
				ds, err := Open(t.Context(), filepath.Join(shared, "tu"), o.Name, Options{NodeAttributes: true})
				if err != nil {
					t.Fatal(err)
				}
				validate(t, ds)
				ownColumns(t, ds)
				if ds.NodeAttributes != w.attributes || ds.FeatureWidth != w.attributes+w.width {
					t.Errorf("with attributes: %d of width %d", ds.NodeAttributes, ds.FeatureWidth)
				}
			}
		})
	}
}

// ownColumns: with its own columns a set is the same, and its labels have gaps where
// the files have.
func ownColumns(t *testing.T, ds *Dataset) {
	t.Helper()
	c, err := ds.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for k, l := range c.Labels {
		if have, want := l.Width-len(l.Unseen), ds.NodeLabels[k].Distinct; have != want {
			t.Errorf("column %d of the labels: %d values seen, want %d", k, have, want)
		}
	}
	e, err := ds.WithColumns(c)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(e, ds) {
		t.Error("with its own columns the set is another")
	}
}

// The same graphs in the text form of the GIN code, which another program
// wrote, must have the same edges in the same node order.
func TestAgreesWithGINForm(t *testing.T) {
	for _, name := range []string{"DD", "REDDIT-BINARY", "COLLAB"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("large")
			}
			f, err := os.Open(filepath.Join(shared, "gin", name+".txt.gz"))
			if errors.Is(err, fs.ErrNotExist) {
				t.Skipf("no real data here: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			z, err := gzip.NewReader(f)
			if err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReaderSize(z, 1<<16)
			ds := realSet(t, name)
			if n := readInt(t, r); n != len(ds.Graphs) {
				t.Fatalf("%d graphs, want %d", len(ds.Graphs), n)
			}
			class := make(map[int]int) // of the GIN form's label
			var row []int32
			for k, g := range ds.Graphs {
				n, label := readInt(t, r), readInt(t, r)
				if c, ok := class[label]; !ok {
					class[label] = g.Class
				} else if c != g.Class {
					t.Fatalf("graph %d: class %d, but other graphs of label %d have class %d", k, g.Class, label, c)
				}
				if g.Nodes() != n {
					t.Fatalf("graph %d has %d nodes, want %d", k, g.Nodes(), n)
				}
				for i := range n {
					readInt(t, r) // the node's tag
					row = row[:0]
					for range readInt(t, r) {
						if j := readInt(t, r); j != i {
							row = append(row, int32(j))
						}
					}
					slices.Sort(row)
					if !slices.Equal(row, g.Neighbors(i)) {
						t.Fatalf("graph %d, node %d: neighbours %v, want %v", k, i, g.Neighbors(i), row)
					}
				}
			}
			if len(class) != ds.Classes {
				t.Errorf("%d classes, want %d", ds.Classes, len(class))
			}
		})
	}
}

func readInt(t *testing.T, r *bufio.Reader) int {
	v, digits := 0, 0
	for {
		c, err := r.ReadByte()
		switch {
		case err == nil && c >= '0' && c <= '9':
			v = 10*v + int(c-'0')
			digits++
		case digits > 0 && (err == nil || err == io.EOF):
			return v
		case err != nil:
			t.Fatal(err)
		}
	}
}

// The naive reader agrees on a whole real set, whose quirks nobody invented.
func TestRealAgainstNaive(t *testing.T) {
	for _, name := range []string{"MUTAG", "IMDB-BINARY"} {
		t.Run(name, func(t *testing.T) {
			ds := openReal(t, name)
			s, err := openSource(t.Context(), filepath.Join(shared, "tu", name+".zip"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.closer.Close()
			f := make(files)
			for _, part := range []string{"A", "graph_indicator", "graph_labels", "node_labels", "edge_labels"} {
				if !s.has(part) {
					continue
				}
				r, err := s.files[s.base(part)].open()
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				f[part] = string(b)
			}
			if want := naive(f, name); describe(ds) != describe(want) {
				t.Error("the loader and the naive reader disagree")
			}
		})
	}
}

func BenchmarkLoadTU(b *testing.B) {
	for _, name := range []string{"MUTAG", "DD", "COLLAB"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				openReal(b, name)
			}
		})
	}
}

func TestStats(t *testing.T) {
	// 2→3, 6→4 and 7→6 lack their reverse; 3 has a loop; 8 is isolated.
	ds := load(t, bare.with("A", "1, 2\n2, 1\n2, 3\n3, 3\n5, 4\n6, 5\n5, 6\n4, 5\n6, 4\n7, 6\n").with("graph_indicator", small["graph_indicator"]+"2\n"), Options{})
	want := Summary{Graphs: 2, Classes: 2, ClassSizes: []int{1, 1}, Nodes: 8, MinNodes: 3, MaxNodes: 5,
		Isolated: 1, MaxDegree: 2, Edges: 6, SelfLoops: 1, Directed: 2}
	if got := Stats(ds); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := Stats(ds).MeanEdges(); got != 3.5 {
		t.Errorf("MeanEdges() = %v, want 3.5: self-loops count", got)
	}
	if got := Stats(ds).MeanNodes(); got != 4 {
		t.Errorf("MeanNodes() = %v, want 4", got)
	}
	if got := Stats(&Dataset{}); got.MeanNodes() != 0 || got.MeanEdges() != 0 {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestDisagreements(t *testing.T) {
	o, ok := OfficialStats("AIDS")
	if !ok {
		t.Fatal("AIDS is not known")
	}
	agree := Summary{Graphs: 2000, Classes: 2, Nodes: 31385, Edges: 32390} // 16.195 edges are 16.20
	if d := o.Disagreements(agree); len(d) > 0 {
		t.Errorf("got %q, want none", d)
	}
	if d := o.Disagreements(Summary{Graphs: 1999, Classes: 3, Nodes: 31000, Edges: 32370}); len(d) != 4 {
		t.Errorf("got %q, want four", d)
	}
	if _, ok := OfficialStats("NOSUCH"); ok {
		t.Error("NOSUCH is known")
	}
	Known()[0].Name = "changed"
	if Known()[0].Name != "MUTAG" {
		t.Error("Known returns the table itself")
	}
}

// TestRealCopies counts isomorphic graphs as networkx 3.6.1 does, with the labels of nodes and edges.
func TestRealCopies(t *testing.T) {
	for name, want := range map[string][2]int{"MUTAG": {0, 0}, "PROTEINS": {44, 3}, "NCI1": {71, 7}} {
		ds := realSet(t, name)
		c, err := FindCopies(t.Context(), ds.Graphs)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]int{c.Graphs(), c.Conflicts(ds.Labels())}; got != want {
			t.Errorf("%s: copies and groups of two classes %v, want %v", name, got, want)
		}
	}
}
