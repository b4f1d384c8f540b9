package network

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn/dataset"
)

// writeNetwork writes the files of a network into a new folder.
func writeNetwork(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		data := []byte(text)
		if strings.HasSuffix(name, ".gz") {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			if _, err := w.Write(data); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOpen(t *testing.T) {
	dir := writeNetwork(t, map[string]string{
		"n_edges.csv.gz": "u,v,binding,score,catalysis\n0,2,1,900,0\n2,3,0,150,1\n1,1,1,1,1\n2,0,0,5,1\n0,1,0,0,0\n4,4,0,0,0\n",
		"n_labels.csv":   "node,a,b\n3,1,0\n0,,1\n",
	})
	got, err := Open(t.Context(), dir, "n")
	if err != nil {
		t.Fatal(err)
	}
	want := &Network{
		Name: "n", Channels: []string{"binding", "catalysis"},
		Ptr: []int32{0, 2, 3, 5, 6, 6}, Adj: []int32{1, 2, 0, 0, 3, 2}, EdgeBits: []int32{0, 3, 0, 3, 2, 2},
		Tasks: []string{"a", "b"}, Labels: []int8{0, 1, 0, 0, 0, 0, 1, -1, 0, 0},
		SelfLoops: 2, Duplicates: 1,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestOpenErrors(t *testing.T) {
	const edges = "u,v\n0,1\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  string // in the message
		line  int
	}{
		"empty":            {map[string]string{"n_edges.csv": ""}, "want a header", 1},
		"header":           {map[string]string{"n_edges.csv": "v,u\n"}, "begins with u,v", 1},
		"two columns":      {map[string]string{"n_edges.csv": "u,v,a,a\n"}, `two columns named "a"`, 1},
		"channels":         {map[string]string{"n_edges.csv": "u,v,score,a,b,c,d,e,f,g,h\n"}, `"h": more than 7 channels`, 1},
		"fields":           {map[string]string{"n_edges.csv": "u,v\n0,1\n0\n"}, "wrong number of fields", 3},
		"quotes":           {map[string]string{"n_edges.csv": "u,v\n0,\"1\n2\"x\n"}, "a quote that opens here is not closed", 2},
		"no number":        {map[string]string{"n_edges.csv": "u,v\n0,1\n0,x\n"}, `"x": want a node`, 3},
		"negative":         {map[string]string{"n_edges.csv": "u,v\n-1,0\n"}, `"-1": want a node`, 2},
		"large":            {map[string]string{"n_edges.csv": "u,v\n0,16777216\n"}, `"16777216": want a node`, 2},
		"channel":          {map[string]string{"n_edges.csv": "u,v,a\n0,1,2\n"}, `"2": want 0 or 1`, 2},
		"label header":     {map[string]string{"n_edges.csv": edges, "n_labels.csv": "protein,a\n"}, "begins with node", 1},
		"label":            {map[string]string{"n_edges.csv": edges, "n_labels.csv": "node,a\n0,1\n1,yes\n"}, `"yes": want 1, 0 or nothing`, 3},
		"labelled twice":   {map[string]string{"n_edges.csv": edges, "n_labels.csv": "node,a\n0,1\n0,1\n"}, "listed before", 3},
		"labelled nowhere": {map[string]string{"n_edges.csv": edges, "n_labels.csv": "node,a\n2,1\n"}, "nodes 0 to 1 only", 2},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), writeNetwork(t, c.files), "n")
			var syntax *dataset.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("error %v, want a SyntaxError", err)
			}
			if syntax.Line != c.line || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q at line %d, want %q at line %d", err, syntax.Line, c.want, c.line)
			}
		})
	}
	if _, err := Open(t.Context(), t.TempDir(), "n"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a network that is not there: %v", err)
	}
	dir := writeNetwork(t, map[string]string{"n_edges.csv": edges})
	if _, err := Open(t.Context(), filepath.Join(dir, "n_edges.csv"), "n"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file in the place of the folder: %v", err)
	}
	if _, err := Open(t.Context(), dir, "../"+filepath.Base(dir)+"/n"); err == nil || !strings.Contains(err.Error(), "is not the name of a data set") {
		t.Errorf("a path in the place of a name: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "m_edges.csv.gz"), []byte(edges), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, "m"); err == nil || !strings.Contains(err.Error(), "m_edges.csv.gz") {
		t.Errorf("a compressed file that is not: %v", err)
	}
}

// TestFiles: either table may be compressed, and of both forms the plain
// one is read.
func TestFiles(t *testing.T) {
	const edges, other, labels, otherLabels = "u,v\n3,1\n", "u,v\n0,1\n", "node,a\n3,1\n", "node,a\n3,0\n"
	for _, files := range []map[string]string{
		{"n_edges.csv": edges, "n_labels.csv": labels},
		{"n_edges.csv": edges, "n_edges.csv.gz": other, "n_labels.csv.gz": labels},
		{"n_edges.csv.gz": edges, "n_labels.csv": labels, "n_labels.csv.gz": otherLabels},
	} {
		n, err := Open(t.Context(), writeNetwork(t, files), "n")
		if err != nil {
			t.Fatalf("%v: %v", files, err)
		}
		if !slices.Equal(n.Ptr, []int32{0, 0, 1, 1, 2}) || !slices.Equal(n.Labels, []int8{0, 0, 0, 1}) {
			t.Errorf("%v: adjacency %v, labels %v", files, n.Ptr, n.Labels)
		}
	}
}

// star is a network: node 0 with the neighbours 1 to 5, of which 5 has 6 and 7,
// and 7 has 8; 9 is alone but for 10.
const star = "u,v\n0,1\n0,2\n0,3\n0,4\n0,5\n5,6\n5,7\n7,8\n1,2\n9,10\n"

func TestEgo(t *testing.T) {
	n, err := Open(t.Context(), writeNetwork(t, map[string]string{"n_edges.csv": star}), "n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		center         int
		config         EgoConfig
		nodes, entries int
	}{
		{0, EgoConfig{}, 8, 16}, // all but 8, which is three steps away
		{0, EgoConfig{Radius: 1}, 6, 12},
		{0, EgoConfig{Radius: 3}, 9, 18},
		{0, EgoConfig{MaxNodes: 1}, 1, 0},
		{9, EgoConfig{}, 2, 2},
		{8, EgoConfig{Radius: 1}, 2, 2},
	} {
		g := n.Ego(c.center, c.config, 1)
		if g.Nodes() != c.nodes || g.Entries() != c.entries {
			t.Errorf("node %d, %+v: %d nodes and %d entries, want %d and %d", c.center, c.config, g.Nodes(), g.Entries(), c.nodes, c.entries)
		}
		if err := g.Validate(); err != nil {
			t.Errorf("node %d, %+v: %v", c.center, c.config, err)
		}
		if g.X.Width != 2 || slices.Contains(g.X.Category, 0) { // as in the data of Hu et al.
			t.Errorf("node %d, %+v: features %+v", c.center, c.config, g.X)
		}
	}
	// Of five neighbours two are kept, any of them, and never one further away.
	seen := map[int]int{}
	for seed := range uint64(200) {
		g := n.Ego(0, EgoConfig{MaxNodes: 3}, seed)
		if g.Nodes() != 3 || len(g.Neighbors(0)) != 2 {
			t.Fatalf("seed %d: %d nodes, %d neighbours of the centre; want 3, 2", seed, g.Nodes(), len(g.Neighbors(0)))
		}
		seen[g.Entries()]++
	}
	if share := float64(seen[6]) / 200; share < 0.03 || share > 0.2 { // 1 and 2 are neighbours: 1 in 10
		t.Errorf("nodes 1 and 2 are kept together in %.2f of the draws, want 0.1", share)
	}
	all := n.EgoNetworks(EgoConfig{MaxNodes: 3}, 7)
	if len(all) != 11 {
		t.Fatalf("%d ego networks, want 11", len(all))
	}
	if d := cmp.Diff(all[0], n.Ego(0, EgoConfig{MaxNodes: 3}, 7)); d != "" {
		t.Errorf("an ego network depends on the others: %s", d)
	}
	// Two stars alike, whose edges say which leaf they lead to: each draws for itself.
	twins := "u,v,a,b,c,d,e\n"
	for k := range 5 {
		for _, center := range []int{0, 6} {
			twins += fmt.Sprintf("%d,%d%s,1%s\n", center, center+1+k, strings.Repeat(",0", k), strings.Repeat(",0", 4-k))
		}
	}
	if n, err = Open(t.Context(), writeNetwork(t, map[string]string{"n_edges.csv": twins}), "n"); err != nil {
		t.Fatal(err)
	}
	alike := 0
	for seed := range uint64(20) {
		a, b := n.Ego(0, EgoConfig{MaxNodes: 3}, seed).EdgeLabel, n.Ego(6, EgoConfig{MaxNodes: 3}, seed).EdgeLabel
		if a[0] == 0 || a[0] == a[1] || !slices.Equal(a[:2], a[2:]) {
			t.Errorf("seed %d: labels of edges are %v", seed, a)
		}
		if slices.Equal(a, b) {
			alike++
		}
	}
	if alike == 20 {
		t.Error("two nodes draw alike")
	}
	if d := cmp.Diff(n.EgoNetworks(EgoConfig{MaxNodes: 3}, 7)[6], n.Ego(6, EgoConfig{MaxNodes: 3}, 7)); d != "" {
		t.Errorf("among all, a node draws otherwise: %s", d)
	}
	wide := "u,v\n"
	for i := range 50 {
		wide += fmt.Sprintf("0,%d\n", i+1)
	}
	if n, err = Open(t.Context(), writeNetwork(t, map[string]string{"n_edges.csv": wide}), "n"); err != nil {
		t.Fatal(err)
	}
	if g := n.Ego(0, EgoConfig{}, 1); g.Nodes() != 40 {
		t.Errorf("%d nodes by default, want 40", g.Nodes())
	}
}

// shared is where the real data lie, beside the project's root.
const shared = "../../../../shared/data"

// TestRealNetworks reads the stand-ins for the data of Hu et al.
func TestRealNetworks(t *testing.T) {
	for _, c := range []struct {
		name                                   string
		nodes, entries, loops, channels, tasks int
	}{
		{"homo_sapiens", 3890, 2 * (38739 - 894), 894, 0, 50},
		{"shs27k", 1690, 2 * 7624, 0, 7, 0},
		{"dip_multispecies", 11527, 2 * (32957 - 1279), 1279, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := Open(t.Context(), filepath.Join(shared, "ppi"), c.name)
			if errors.Is(err, fs.ErrNotExist) {
				t.Skipf("no real data here: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if n.Nodes() != c.nodes || len(n.Adj) != c.entries || n.SelfLoops != c.loops || len(n.Channels) != c.channels || len(n.Tasks) != c.tasks || n.Duplicates != 0 {
				t.Errorf("%d nodes, %d entries, %d self-loops, %d channels, %d tasks, %d duplicates", n.Nodes(), len(n.Adj), n.SelfLoops, len(n.Channels), len(n.Tasks), n.Duplicates)
			}
			if i := slices.Index(n.Labels, 0); i >= 0 {
				t.Errorf("node %d has no label", i/len(n.Tasks))
			}
			total := 0
			for i := 0; i < n.Nodes(); i += 97 {
				g := n.Ego(i, EgoConfig{}, 0)
				if err := g.Validate(); err != nil {
					t.Fatalf("node %d: %v", i, err)
				}
				total += g.Nodes()
			}
			t.Logf("%.1f nodes in an ego network", float64(total)/float64((n.Nodes()+96)/97))
		})
	}
}

func FuzzNetwork(f *testing.F) {
	f.Add("u,v,a\n0,1,1\n1,2,0\n", "node,t\n0,1\n")
	f.Add(star, "node\n")
	f.Add("u,v,score\n\"0\",1,\"a\"\"b\"\n", "")
	f.Fuzz(func(t *testing.T, edges, labels string) {
		n, err := Open(t.Context(), writeNetwork(t, map[string]string{"n_edges.csv": edges, "n_labels.csv": labels}), "n")
		if err != nil || n.Nodes() > 1000 {
			return
		}
		if len(n.Labels) != n.Nodes()*len(n.Tasks) || len(n.EdgeBits) != len(n.Adj) {
			t.Fatal("sizes do not fit")
		}
		for i, g := range n.EgoNetworks(EgoConfig{MaxNodes: 5}, 3) {
			if err := g.Validate(); err != nil {
				t.Fatalf("node %d: %v", i, err)
			}
		}
	})
}
