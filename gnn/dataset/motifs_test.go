package dataset

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
)

var update = flag.Bool("update", false, "write testdata/motifs anew: go test ./gnn/dataset -run 'TestDefault$' -update")

// TestDefault regenerates the files of testdata/motifs and compares every byte:
// neither the generator nor the random numbers behind it may change unnoticed.
func TestDefault(t *testing.T) {
	ds := Default()
	validate(t, ds)
	dir := t.TempDir()
	if err := WriteTU(dir, ds); err != nil {
		t.Fatal(err)
	}
	const home = "../../testdata/motifs"
	made := filepath.Join(dir, "motifs")
	if *update {
		if err := errors.Join(os.RemoveAll(home), os.CopyFS(home, os.DirFS(made))); err != nil {
			t.Fatal(err)
		}
	}
	names := ls(t, home)
	if want := ls(t, made); !slices.Equal(names, want) {
		t.Fatalf("%s holds %v, want %v", home, names, want)
	}
	size := 0
	for _, name := range names {
		got, err := os.ReadFile(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(made, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what Motifs generates; if the generator was meant to change, run this test with -update", name)
		}
		size += len(got)
	}
	if size > 200_000 {
		t.Errorf("the files have %d bytes, want at most 200,000", size)
	}
	if read, err := Open(t.Context(), "../../testdata", "motifs", Options{}); err != nil || !reflect.DeepEqual(read, ds) {
		t.Errorf("what is read from the files is not Default(): %v", err)
	}
	ds.Graphs[0].X.Category[0] = 9
	if Default().Graphs[0].X.Category[0] == 9 {
		t.Error("two calls of Default share memory")
	}
}

// Every configuration gives connected, undirected graphs of the sizes and
// classes it asks for.
func TestMotifs(t *testing.T) {
	for _, c := range []MotifConfig{
		{}, {Seed: 1}, {Seed: math.MaxUint64}, {Graphs: 10, MinNodes: 5, MaxNodes: 5}, {Graphs: 50, MinNodes: 5, MaxNodes: 12, Noise: -1},
		{Graphs: 4, MinNodes: 300, MaxNodes: 400, Noise: 1}, {Graphs: 1, Name: "one"},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			ds, err := Motifs(c)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Motifs(c)
			if err != nil || !reflect.DeepEqual(ds, again) {
				t.Fatalf("a second call differs: %v", err)
			}
			validate(t, ds)
			c.MinNodes = cmp.Or(c.MinNodes, 10)
			c.MaxNodes = cmp.Or(c.MaxNodes, 40)
			for k, g := range ds.Graphs {
				if g.Class != k%3 || g.Directed || g.Nodes() < c.MinNodes || g.Nodes() > c.MaxNodes {
					t.Fatalf("graph %d: class %d, directed %t, %d nodes", k, g.Class, g.Directed, g.Nodes())
				}
				if r := reachable(g); r != g.Nodes() {
					t.Fatalf("graph %d: %d of %d nodes are connected with node 0", k, r, g.Nodes())
				}
			}
		})
	}
	a, err := Motifs(MotifConfig{Graphs: 30})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Motifs(MotifConfig{Graphs: 40})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a.Graphs, b.Graphs[:30]) {
		t.Error("the first graphs depend on how many there are")
	}
	if b, err = Motifs(MotifConfig{Graphs: 30, Seed: 1}); err != nil || reflect.DeepEqual(a.Graphs, b.Graphs) {
		t.Error("the seed makes no difference")
	}
}

func reachable(g *graph.Graph) int {
	seen := make([]bool, g.Nodes())
	seen[0] = true
	queue := []int32{0}
	for k := 0; k < len(queue); k++ {
		for _, j := range g.Neighbors(int(queue[k])) {
			if !seen[j] {
				seen[j] = true
				queue = append(queue, j)
			}
		}
	}
	return len(queue)
}

// Without background and noise, what is left of a graph of 5 nodes is the motif
// of its class.
func TestMotifsAreWhatTheyAreCalled(t *testing.T) {
	ds, err := Motifs(MotifConfig{Graphs: 3, MinNodes: 5, MaxNodes: 5, Noise: -1})
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []struct {
		name      string
		degrees   []int
		triangles int
	}{
		{"house", []int{2, 2, 2, 3, 3}, 1},
		{"butterfly", []int{2, 2, 2, 2, 4}, 2},
		{"K2,3", []int{2, 2, 2, 3, 3}, 0},
	} {
		g := ds.Graphs[k]
		var degrees []int
		triangles := 0
		for i := range g.Nodes() {
			degrees = append(degrees, len(g.Neighbors(i)))
			for _, j := range g.Neighbors(i) {
				for _, l := range g.Neighbors(int(j)) {
					if g.HasEdge(int(l), i) {
						triangles++
					}
				}
			}
		}
		slices.Sort(degrees)
		if triangles /= 6; motifTable[k].name != want.name || !slices.Equal(degrees, want.degrees) || triangles != want.triangles {
			t.Errorf("%s: degrees %v, %d triangles; want %+v", motifTable[k].name, degrees, triangles, want)
		}
		labels := slices.Sorted(slices.Values(g.X.Category))
		if !slices.Equal(labels, []int32{0, 0, 1, 1, 2}) {
			t.Errorf("%s: labels %v", want.name, labels)
		}
	}
}

// What is easy to count must not tell the classes of the default set apart: the
// class means of size, edges and labels differ by less than 3 standard errors.
func TestDefaultIsNotTrivial(t *testing.T) {
	ds := Default()
	for _, f := range []struct {
		name string
		of   func(g *graph.Graph) float64
	}{
		{"nodes", func(g *graph.Graph) float64 { return float64(g.Nodes()) }},
		{"edges per node", func(g *graph.Graph) float64 { return float64(g.Entries()) / float64(g.Nodes()) }},
		{"share of label 0", func(g *graph.Graph) float64 {
			n := 0
			for _, l := range g.X.Category {
				if l == 0 {
					n++
				}
			}
			return float64(n) / float64(g.Nodes())
		}},
	} {
		var sum, sum2, n [3]float64
		for _, g := range ds.Graphs {
			v := f.of(g)
			sum[g.Class] += v
			sum2[g.Class] += v * v
			n[g.Class]++
		}
		for a := range 3 {
			for b := range a {
				variance := func(c int) float64 { m := sum[c] / n[c]; return (sum2[c]/n[c] - m*m) / n[c] }
				if d := math.Abs(sum[a]/n[a] - sum[b]/n[b]); d > 3*math.Sqrt(variance(a)+variance(b)) {
					t.Errorf("%s: classes %d and %d differ by %.3g", f.name, a, b, d)
				}
			}
		}
	}
}

func TestMotifsRefuses(t *testing.T) {
	for _, c := range []struct {
		c    MotifConfig
		want string
	}{
		{MotifConfig{Name: "a/b"}, "not the name"},
		{MotifConfig{Graphs: -1}, "-1 graphs"},
		{MotifConfig{Graphs: 1 << 30}, "graphs, want 1 to"},
		{MotifConfig{MinNodes: 4}, "4 to 40 nodes"},
		{MotifConfig{MinNodes: 41}, "41 to 40 nodes"},
		{MotifConfig{MaxNodes: 1 << 20}, "10 to 1048576 nodes"},
		{MotifConfig{Noise: 1.5}, "noise 1.5"},
		{MotifConfig{Noise: math.NaN()}, "noise NaN"},
	} {
		if ds, err := Motifs(c.c); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Motifs(%+v) = %v, %v; want an error with %q", c.c, ds, err, c.want)
		}
	}
}

func ls(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
