package library_test

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/library"
)

// golden is what RDKit and scikit-learn make of 2,000 molecules; see testdata/make_golden.py.
type golden struct {
	SMILES       []string
	Bits, Counts []float64 // similarities of pairs
	Clusters     [][]int
	Picks        map[string][]int
	Scaffolds    []string
	PCA          [][2]float64
	Ratios       [2]float64
}

func readGolden(t testing.TB) (g golden) {
	t.Helper()
	file, err := os.Open("testdata/golden.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err == nil {
		err = json.NewDecoder(text).Decode(&g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// sets returns the fingerprints of some molecules.
func sets(t testing.TB, smiles []string) (*library.Bits, *library.Counts) {
	t.Helper()
	var parser molecule.Parser
	bits := library.NewBits(2, 2048)
	counts := library.NewCounts(2)
	for _, s := range smiles {
		m, err := parser.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		bits.Add(m)
		counts.Add(m)
	}
	return bits, counts
}

// TestRDKit: similarities of 10,000 pairs, clusters and picks of 2,000 molecules are RDKit's.
func TestRDKit(t *testing.T) {
	g := readGolden(t)
	bits, counts := sets(t, g.SMILES)
	n := bits.Len()
	for k := range g.Bits {
		i, j := k%n, (k*7919+k/n)%n
		if s := bits.Similarity(i, j); s != g.Bits[k] {
			t.Fatalf("bits of %s and %s: %v, RDKit %v", g.SMILES[i], g.SMILES[j], s, g.Bits[k])
		}
		if s := counts.Similarity(i, j); s != g.Counts[k] {
			t.Fatalf("counts of %s and %s: %v, RDKit %v", g.SMILES[i], g.SMILES[j], s, g.Counts[k])
		}
	}
	clusters, err := library.Butina(t.Context(), bits, 0.4, nil)
	if err != nil || !slices.EqualFunc(clusters, g.Clusters, slices.Equal) {
		t.Errorf("%d clusters, RDKit %d: %v", len(clusters), len(g.Clusters), err)
	}
	for name, want := range g.Picks {
		var first []int
		seed := uint32(0)
		if _, err := fmt.Sscanf(name, "seed %d", &seed); err != nil {
			first = want[:3]
		}
		picks, err := library.MaxMin(t.Context(), bits, len(want), first, seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k, pick := range picks {
			if pick.Index != want[k] {
				t.Errorf("%s: pick %d is %d, RDKit's %d", name, k, pick.Index, want[k])
				break
			}
		}
		if len(g.Bits) != 10000 || n != 2000 || len(picks) != 200 {
			t.Errorf("%d pairs of %d molecules, %d picks", len(g.Bits), n, len(picks))
		}
	}
}

// TestScaffolds: molecules have one scaffold exactly if RDKit says so, and a parser reads what is written.
func TestScaffolds(t *testing.T) {
	g := readGolden(t)
	var parser, reader molecule.Parser
	theirs := map[string]string{} // by ours
	ours := map[string]string{}
	for i, want := range g.Scaffolds {
		m, err := parser.Parse(g.SMILES[i])
		if err != nil {
			t.Fatal(err)
		}
		identity := parser.Scaffold(m)
		got := parser.ScaffoldSMILES(m)
		if theirs[got] == "" && ours[want] == "" {
			theirs[got] = want
			ours[want] = got
		}
		if theirs[got] != want || ours[want] != got {
			t.Errorf("%s: the scaffold is %s, RDKit's %s", g.SMILES[i], got, want)
		}
		if got == "" {
			continue
		}
		again, err := reader.Parse(got)
		if err != nil || reader.Canonical(again) != identity {
			t.Errorf("%s: the scaffold is read as another: %v", got, err)
		}
		if again, err := reader.Parse(want); err != nil || reader.CanonicalSMILES(again) != got {
			t.Errorf("%s: the scaffold is %s, not RDKit's %s: %v", g.SMILES[i], got, want, err)
		}
	}
	if len(g.Scaffolds) != 200 || len(ours) < 100 {
		t.Errorf("%d scaffolds of %d molecules", len(ours), len(g.Scaffolds))
	}
}

// TestSearch: the nearest molecules are those of a sorted list, whole or in parts, by bits, counts and vectors.
func TestSearch(t *testing.T) {
	g := readGolden(t)
	bits, counts := sets(t, g.SMILES[:500])
	vectors := library.NewVectors(5)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		row := make([]float64, 5)
		for k := range row {
			row[k] = rng.NormFloat64()
		}
		vectors.Add(row)
	}
	for _, s := range []library.Set{bits, counts, vectors} {
		for _, c := range []struct {
			top   int
			least float64
		}{{1, 0}, {10, 0}, {10, 0.4}, {0, 0.3}, {1000, 0}} {
			var want []library.Hit
			for i := range s.Len() {
				if similarity := s.Similarity(i, 7); similarity >= c.least {
					want = append(want, library.Hit{Index: i, Similarity: similarity})
				}
			}
			slices.SortStableFunc(want, func(a, b library.Hit) int { return cmp.Compare(b.Similarity, a.Similarity) })
			if c.top > 0 {
				want = want[:min(c.top, len(want))]
			}
			best := library.NewBest(c.top, c.least)
			for begin := 0; begin < s.Len(); begin += 120 {
				s.Search(best, s, 7, begin, min(begin+120, s.Len()), 0)
			}
			if got := best.Hits(); !slices.Equal(got, want) {
				t.Errorf("%T %v: %v\nwant %v", s, c, got, want)
			}
		}
	}
}

// TestCosine: the cosine of vectors, and of zeros.
func TestCosine(t *testing.T) {
	v := library.NewVectors(5)
	v.Add([]float64{3, 0, 0, 0, 4})
	v.Add([]float64{0, 0, 0, 0, 2})
	v.Add(make([]float64, 5))
	if a, b := v.Similarity(0, 1), v.Similarity(0, 2); math.Abs(a-0.8) > 1e-6 || b != 0 {
		t.Errorf("%v and %v, want 0.8 and 0", a, b)
	}
}

// TestClusters: every molecule is in one cluster, on any number of processors, and near its centre.
func TestClusters(t *testing.T) {
	g := readGolden(t)
	_, counts := sets(t, g.SMILES[:400])
	clusters, err := library.Butina(t.Context(), counts, 0.3, nil)
	if err != nil {
		t.Fatal(err)
	}
	old := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(old)
	once := 0
	again, err := library.Butina(t.Context(), counts, 0.3, func(n int) { once += n })
	if err != nil || !slices.EqualFunc(clusters, again, slices.Equal) || once != 400 {
		t.Errorf("other clusters on one processor, %d molecules, %v", once, err)
	}
	seen := map[int]bool{}
	for _, cluster := range clusters {
		for _, i := range cluster {
			if i != cluster[0] && counts.Similarity(i, cluster[0]) < 0.3 || seen[i] {
				t.Errorf("molecule %d in a cluster of %d", i, cluster[0])
			}
			seen[i] = true
		}
	}
	if len(seen) != 400 {
		t.Errorf("%d molecules in clusters", len(seen))
	}
	groups := library.Group([]string{"a", "b", "a", "", "b", "a"})
	if want := "[[0 2 5] [1 4] [3]]"; fmt.Sprint(groups) != want {
		t.Errorf("groups %v, want %s", groups, want)
	}
}

// TestPicks: distances are those to the picks before; wrong first picks are errors; a stop is heard.
func TestPicks(t *testing.T) {
	g := readGolden(t)
	bits, _ := sets(t, g.SMILES[:60])
	picks, err := library.MaxMin(t.Context(), bits, 100, []int{5}, 0, nil)
	if err != nil || len(picks) != 60 {
		t.Fatalf("%d picks, %v", len(picks), err)
	}
	for k, pick := range picks[1:] {
		nearest := 0.0
		for _, earlier := range picks[:k+1] {
			nearest = max(nearest, bits.Similarity(pick.Index, earlier.Index))
		}
		if pick.Distance != 1-nearest || k > 0 && pick.Distance > picks[k].Distance {
			t.Errorf("pick %d at %v, want %v", k+1, pick.Distance, 1-nearest)
		}
	}
	for _, first := range [][]int{{-1}, {60}, {3, 3}} {
		if _, err := library.MaxMin(t.Context(), bits, 10, first, 0, nil); err == nil {
			t.Errorf("no error for the first picks %v", first)
		}
	}
	if picks, err := library.MaxMin(t.Context(), library.NewBits(2, 64), 10, nil, 0, nil); picks != nil || err != nil {
		t.Errorf("%v and %v for an empty set", picks, err)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := library.MaxMin(stopped, bits, 10, nil, 0, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := library.Butina(stopped, bits, 0.5, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := library.TSNE(stopped, bits, library.TSNEOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestPCA: coordinates and shares of the variance are those of scikit-learn, up to the sign.
func TestPCA(t *testing.T) {
	g := readGolden(t)
	bits, _ := sets(t, g.SMILES)
	p, err := library.PCA(t.Context(), bits)
	if err != nil {
		t.Fatal(err)
	}
	for k := range 2 {
		if math.Abs(p.Ratios[k]-g.Ratios[k]) > 1e-7 {
			t.Errorf("share %v of the variance, scikit-learn %v", p.Ratios[k], g.Ratios[k])
		}
		for i, want := range g.PCA {
			if math.Abs(math.Abs(p.XY[i][k])-math.Abs(want[k])) > 1e-3 {
				t.Errorf("coordinate %d of molecule %d: %v, scikit-learn %v", k, i, p.XY[i][k], want[k])
			}
		}
	}
}

// TestTSNE: the nearest molecule in the set is close in the map; the same on any number of processors.
func TestTSNE(t *testing.T) {
	g := readGolden(t)
	bits, _ := sets(t, g.SMILES[:150])
	o := library.TSNEOptions{Perplexity: 10, Iterations: 400}
	p, err := library.TSNE(t.Context(), bits, o)
	if err != nil {
		t.Fatal(err)
	}
	old := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(old)
	if again, err := library.TSNE(t.Context(), bits, o); err != nil || !slices.Equal(p.XY, again.XY) {
		t.Errorf("another map on one processor, %v", err)
	}
	near := 0
	for i := range p.XY {
		best := library.NewBest(2, 0)
		bits.Search(best, bits, i, 0, 150, 0)
		neighbour := best.Hits()[1].Index
		if neighbour == i {
			neighbour = best.Hits()[0].Index
		}
		closer := 0
		for j := range p.XY {
			if distance(p.XY[i], p.XY[j]) < distance(p.XY[i], p.XY[neighbour]) {
				closer++
			}
		}
		if closer <= 15 {
			near++
		}
	}
	if near < 90 {
		t.Errorf("the nearest molecule of %d of 150 is among the closest tenth", near)
	}
}

// TestTSNEOpposite: vectors whose cosines are all negative are neighbours, too, which keeps them together.
func TestTSNEOpposite(t *testing.T) {
	v := library.NewVectors(3)
	for _, corner := range [][]float64{{1, 1, 1}, {1, -1, -1}, {-1, 1, -1}, {-1, -1, 1}} {
		v.Add(corner)
	}
	p, err := library.TSNE(t.Context(), v, library.TSNEOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, xy := range p.XY[1:] {
		if d := distance(xy, p.XY[0]); d > 1000 {
			t.Errorf("%v apart", d)
		}
	}
}

func distance(a, b [2]float64) float64 { return math.Hypot(a[0]-b[0], a[1]-b[1]) }

// TestSmall: maps of no, one and two molecules, and of equal ones, are finite, and each molecule is picked once.
func TestSmall(t *testing.T) {
	for _, smiles := range [][]string{nil, {"C"}, {"C", "CCO"}, {"C", "C", "C", "C", "C"}} {
		bits, _ := sets(t, smiles)
		p, err := library.TSNE(t.Context(), bits, library.TSNEOptions{Iterations: 50})
		if err != nil || len(p.XY) != len(smiles) {
			t.Errorf("%q: %v, %v", smiles, p, err)
		}
		for _, xy := range p.XY {
			if math.IsNaN(xy[0]+xy[1]) || math.IsInf(xy[0]+xy[1], 0) {
				t.Errorf("%q: %v", smiles, p.XY)
			}
		}
		clusters, err := library.Butina(t.Context(), bits, 0.5, nil)
		if err != nil || len(smiles) == 5 && len(clusters) != 1 {
			t.Errorf("%q: %v, %v", smiles, clusters, err)
		}
		picks, err := library.MaxMin(t.Context(), bits, 10, nil, 1, nil)
		if err != nil || len(picks) != len(smiles) {
			t.Errorf("%q: picks %v, %v", smiles, picks, err)
		}
	}
}

// Three alcohols and benzene: the nearest to ethanol, clusters, and two molecules that differ.
func Example() {
	var parser molecule.Parser
	set := library.NewBits(2, 2048)
	for _, smiles := range []string{"CCO", "CCCO", "CCCCO", "c1ccccc1"} {
		m, err := parser.Parse(smiles)
		if err != nil {
			fmt.Println(err)
			return
		}
		set.Add(m)
	}
	nearest := library.NewBest(2, 0)
	set.Search(nearest, set, 0, 0, set.Len(), 0)
	for _, hit := range nearest.Hits() {
		fmt.Printf("%d %.2f\n", hit.Index, hit.Similarity)
	}
	clusters, err := library.Butina(context.Background(), set, 0.4, nil)
	fmt.Println(clusters, err)
	picks, err := library.MaxMin(context.Background(), set, 2, []int{0}, 0, nil)
	fmt.Println(picks, err)
	// Output:
	// 0 1.00
	// 1 0.56
	// [[2 0 1] [3]] <nil>
	// [{0 1} {3 1}] <nil>
}

// BenchmarkSearch compares a query with a million fingerprints on one core.
func BenchmarkSearch(b *testing.B) {
	g := readGolden(b)
	million := library.NewBits(2, 2048)
	var parser molecule.Parser
	for k := range 1_000_000 {
		if k < len(g.SMILES) {
			m, err := parser.Parse(g.SMILES[k])
			if err != nil {
				b.Fatal(err)
			}
			million.Add(m)
			continue
		}
		library.Append(million, million, (k*7919)%len(g.SMILES))
	}
	for _, top := range []int{10, 1000} {
		b.Run(fmt.Sprintf("top=%d", top), func(b *testing.B) {
			q := 0
			for b.Loop() {
				million.Search(library.NewBest(top, 0), million, q, 0, million.Len(), 0)
				q++
			}
		})
	}
}

// BenchmarkButina clusters fingerprints of 5,000 molecules; the work grows with the square of their number.
func BenchmarkButina(b *testing.B) {
	g := readGolden(b)
	set, _ := sets(b, g.SMILES)
	for k := range 3000 {
		library.Append(set, set, k%len(g.SMILES))
	}
	for b.Loop() {
		if _, err := library.Butina(b.Context(), set, 0.4, nil); err != nil {
			b.Fatal(err)
		}
	}
}
