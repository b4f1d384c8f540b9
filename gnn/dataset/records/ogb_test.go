package records

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeFolder writes files by their paths in a new folder, and returns it.
func writeFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			text = string(zipped(t, text))
		}
		write(t, path, text)
	}
	return dir
}

// TestOGB: a folder of the Open Graph Benchmark, whose tables list the items of one graph after another.
func TestOGB(t *testing.T) {
	files := map[string]string{
		"raw/num-node-list.csv.gz":  "3\n1\n2\n",
		"raw/num-edge-list.csv.gz":  "2\n0\n1\n",
		"raw/edge.csv.gz":           "0,1\n1,2\n0,1\n",
		"raw/node-feat.csv.gz":      "5,0\n6,0\n7,1\n8,0\n5,0\n5,1\n",
		"raw/edge-feat.csv.gz":      "0\n1\n0\n",
		"raw/graph-label.csv":       "1,0.5\nnan,-1\n0,2\n",
		"split/scaffold/train.csv":  "0\n2\n",
		"split/scaffold/valid.csv":  "",
		"split/scaffold/test.csv":   "1\n",
		"mapping/mol.csv.gz":        "smiles\n",
		"RELEASE_v1.txt":            "",
		"split/scaffold/README.txt": "",
	}
	table, err := ReadAll(t.Context(), writeFolder(t, files), Options{Fields: []string{"y1", "y2", "split"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := table.Reading.String(); r != "3 graphs; also read y1, y2, split; attributes of nodes node-feat; not used edge-feat" {
		t.Error(r)
	}
	var fields [][]string
	for _, rec := range table.Records {
		fields = append(fields, rec.Fields)
	}
	if want := [][]string{{"1", "0.5", "train"}, {"", "-1", "test"}, {"0", "2", "train"}}; !cmp.Equal(fields, want) {
		t.Errorf("%q", fields)
	}
	g := table.Set.Graphs[0]
	if g.Directed || !cmp.Equal(g.Adj, []int32{1, 0, 2, 1}) || !cmp.Equal(g.X.Dense, []float32{5, 0, 6, 0, 7, 1}) || table.Set.Graphs[2].X.Dense[3] != 1 {
		t.Errorf("%+v", g)
	}
	for name, c := range map[string]struct {
		file, text string // in place of one of the files
		fields     []string
		want       string
	}{
		"an edge too few":      {"raw/edge.csv.gz", "0,1\n", nil, "edge.csv.gz:2: the table ends too early"},
		"half an edge":         {"raw/edge.csv.gz", "0\n", nil, "edge.csv.gz:1: 1 numbers, want 2"},
		"no number":            {"raw/num-node-list.csv.gz", "x\n", nil, `num-node-list.csv.gz:1: "x" nodes`},
		"too many edges":       {"raw/num-edge-list.csv.gz", "9999999999\n", nil, "a graph of more than"},
		"features of one node": {"raw/node-feat.csv.gz", "1,2\n", nil, "node-feat.csv.gz:2: the table ends too early"},
		"no feature":           {"raw/node-feat.csv.gz", "1,inf\n", nil, `node-feat.csv.gz:1: "inf" is not a finite number`},
		"another field":        {"", "", []string{"y"}, `has no "y"; it has split and y, or y1 to y2`},
		"a third task":         {"", "", []string{"y3"}, `has no "y3"`},
		"two schemes":          {"split/random/train.csv", "", []string{"split"}, "2 splitting schemes; want one"},
		"a damaged split":      {"split/scaffold/test.csv", "x\n", []string{"split"}, `test.csv:1: "x": want the number of a graph`},
	} {
		other := maps.Clone(files)
		if c.file != "" {
			other[c.file] = c.text
		}
		if _, err := ReadAll(t.Context(), writeFolder(t, other), Options{Fields: c.fields}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", name, err, c.want)
		}
	}
	delete(files, "raw/node-feat.csv.gz")
	delete(files, "raw/graph-label.csv")
	if table, err := ReadAll(t.Context(), writeFolder(t, files), Options{}); err != nil || table.Set.FeatureWidth != 1 {
		t.Errorf("without features: %v", err)
	}
	if _, err := ReadAll(t.Context(), writeFolder(t, files), Options{ID: "id"}); err == nil || !strings.Contains(err.Error(), `have no "id"`) {
		t.Errorf("an id: %v", err)
	}
}
