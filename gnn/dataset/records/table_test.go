package records

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset"
)

// TestClasses: numbers come by value and first.
func TestClasses(t *testing.T) {
	got := Classes([]string{"b", "10", " 9", "a", "", "9", "1e1", "-1"})
	if want := []string{"-1", "9", "10", "1e1", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestClassValues: classes keep the whole numbers that they are. Others have numbers of their own, and names.
func TestClassValues(t *testing.T) {
	for texts, want := range map[string][]int{
		"-1,2":     {-1, 2},
		"1.0,3.0":  {1, 3},
		"1,2,1a":   {0, 1, 2},
		"1,1.0,2":  {0, 1, 2},
		"0.5,2":    {0, 1},
		"no,yes":   {0, 1},
		"2,10,1e1": {0, 1, 2},
	} {
		lines := ""
		for class := range strings.SplitSeq(texts, ",") {
			lines += strings.Repeat(`{"nodes":1,"edges":[],"class":"`+class+"\"}\n", 2)
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, "x.jsonl"), lines)
		got, err := Open(t.Context(), dir, "x.jsonl", dataset.Options{})
		if err != nil || !slices.Equal(got.ClassValues, want) {
			t.Fatalf("%s: %+v, %v, want %v", texts, got, err, want)
		}
		named := strings.Join(got.ClassNames, ",") == texts
		if renumbered := want[0] == 0; named != renumbered || !named && got.ClassNames != nil {
			t.Errorf("%s: names %q", texts, got.ClassNames)
		}
	}
}

// TestOpenEmpty: graphs without nodes are known by their places among the graphs.
func TestOpenEmpty(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x.jsonl"), strings.Repeat("\n"+`{"nodes":1,"edges":[],"class":1}`+
		"\n\n"+`{"nodes":0,"edges":[],"class":1}`+"\n"+`{"nodes":1,"edges":[],"class":2}`+"\n", 2))
	got, err := Open(t.Context(), dir, "x.jsonl", dataset.Options{})
	if err != nil || !slices.Equal(got.Empty, []int{1, 4}) || len(got.Graphs) != 4 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestOpen: a file of graphs is the data set that TUDataset's files of the same
// graphs are.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	const lines = `{"edges":[[0,1],[1,2]],"labels":[3,5,3],"class":"10"}
{"edges":[[0,1]],"labels":[3,3],"class":9}
{"nodes":1,"edges":[],"labels":[5],"class":9}
{"edges":[[0,1],[1,2],[0,2]],"labels":[3,3,3],"class":10}
`
	write(t, filepath.Join(dir, "s.jsonl"), lines)
	if err := os.Mkdir(filepath.Join(dir, "S"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"A":               "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n7, 8\n8, 7\n8, 9\n9, 8\n7, 9\n9, 7\n",
		"graph_indicator": "1\n1\n1\n2\n2\n3\n4\n4\n4\n",
		"graph_labels":    "10\n9\n9\n10\n",
		"node_labels":     "3\n5\n3\n3\n3\n5\n3\n3\n3\n",
	} {
		write(t, filepath.Join(dir, "S", "S_"+name+".txt"), text)
	}
	write(t, filepath.Join(dir, "e.csv"), "graph,source,target,label,class\n"+
		"a,1,,3,10\na,2,,5,10\na,3,,3,10\na,1,2,,10\na,2,3,,10\nb,1,,3,9\nb,2,,3,9\nb,1,2,,9\nc,1,,5,9\nd,1,,3,10\nd,2,,3,10\nd,3,,3,10\nd,1,2,,10\nd,2,3,,10\nd,1,3,,10\n")
	want, err := Open(t.Context(), dir, "S", dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"s.jsonl", "e.csv"} {
		sums := map[string]string{}
		got, err := Open(t.Context(), dir, name, dataset.Options{Sum: func(file, sum string) { sums[file] = sum }})
		if err != nil {
			t.Error(err)
			continue
		}
		if got.Name != name || got.Classes != 2 || !slices.Equal(got.ClassValues, []int{9, 10}) || len(sums[name]) != 64 {
			t.Errorf("%s: %s, %d classes %d, sums %v", name, got.Name, got.Classes, got.ClassValues, sums)
		}
		for i, g := range want.Graphs {
			h := got.Graphs[i]
			if h.Class != g.Class || !slices.Equal(h.Ptr, g.Ptr) || !slices.Equal(h.Adj, g.Adj) {
				t.Errorf("%s: graph %d is %+v, want %+v", name, i, h, g)
			}
			// TUDataset's width is that of the range of labels, here 3 to 5; a file's has a
			// column for each label.
			for n, c := range g.X.Category {
				if (c == 0) != (h.X.Category[n] == 0) {
					t.Errorf("%s: graph %d, node %d: category %d, want that of %d", name, i, n, h.X.Category[n], c)
				}
			}
		}
	}
	write(t, filepath.Join(dir, "y.jsonl"), strings.NewReplacer(`"class":"10"`, `"y":[10]`, "class", "y").Replace(lines))
	if got, err := Open(t.Context(), dir, "y.jsonl", dataset.Options{}); err != nil || !slices.Equal(got.ClassValues, []int{9, 10}) {
		t.Errorf("classes under y, of PyTorch Geometric: %+v, %v", got, err)
	}
	sum := func(text string) (s string) {
		write(t, filepath.Join(dir, "x.jsonl"), text)
		if _, err := Open(t.Context(), dir, "x.jsonl", dataset.Options{Sum: func(_, sum string) { s = sum }}); err != nil {
			t.Error(err)
		}
		return s
	}
	if a, b := sum(lines), sum(lines+"\n\n"); a == b || a == "" {
		t.Error("the sum is not of all of the file")
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	const graph = `{"nodes":1,"edges":[],"class":1}` + "\n"
	for want, text := range map[string]string{
		"x.jsonl:3: ":                       graph + graph + `{"edges":[[0,9e9]],"class":1}` + "\n",
		"1 of 3 graphs cannot be used":      graph + graph + `{"edges":[[0,-1]],"class":1}` + "\n",
		"x.jsonl:2: the graph has no class": graph + `{"nodes":1,"edges":[],"class":""}` + "\n",
		"1 different values of class on 2":  graph + graph,
		"cannot be classes":                 graph + `{"nodes":1,"edges":[],"class":2}` + "\n",
		"there are no records":              "",
	} {
		write(t, filepath.Join(dir, "x.jsonl"), text)
		if _, err := Open(context.Background(), dir, "x.jsonl", dataset.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	write(t, filepath.Join(dir, "m.csv"), "smiles,class\nC,1\n")
	for name, want := range map[string]string{"m.csv": "has molecules, want graphs", "none.csv": "no such file", "../x.jsonl": "is not the name"} {
		if _, err := Open(t.Context(), dir, name, dataset.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
