package augment

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
)

// tagWidth is the feature width of test graphs. Category i marks node i, so
// that a view tells where its nodes come from.
const tagWidth = 40

// tagged returns the graph of n ≤ tagWidth nodes with the entries for which has
// says so.
func tagged(n int, directed bool, has func(j, i int) bool) *graph.Graph {
	g := &graph.Graph{Ptr: []int32{0}, Directed: directed, X: graph.Features{Width: tagWidth, Category: []int32{}}}
	for i := range n {
		for j := range n {
			if i != j && has(j, i) {
				g.Adj = append(g.Adj, int32(j))
			}
		}
		g.Ptr = append(g.Ptr, int32(len(g.Adj)))
		g.X.Category = append(g.X.Category, int32(i))
	}
	return g
}

// undirected returns the graph with the given edges.
func undirected(n int, edges ...[2]int) *graph.Graph {
	return tagged(n, false, func(j, i int) bool {
		return slices.Contains(edges, [2]int{i, j}) || slices.Contains(edges, [2]int{j, i})
	})
}

func path(n int) *graph.Graph {
	return tagged(n, false, func(j, i int) bool { return j == i+1 || i == j+1 })
}

func complete(n int) *graph.Graph {
	return tagged(n, false, func(j, i int) bool { return true })
}

// randomGraph returns a graph in which every possible edge exists with probability p.
func randomGraph(rng *rand.Rand, n int, p float64, directed bool) *graph.Graph {
	var coin [tagWidth][tagWidth]bool
	for i := range n {
		for j := range n {
			coin[i][j] = rng.Float64() < p
		}
	}
	return tagged(n, directed, func(j, i int) bool {
		if !directed {
			return coin[max(i, j)][min(i, j)]
		}
		return coin[i][j]
	})
}

func indices(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// denseTags replaces the categories by rows of real numbers that mark the nodes.
func denseTags(g *graph.Graph) *graph.Graph {
	d := *g
	d.X = graph.Features{Width: tagWidth, Dense: make([]float32, g.Nodes()*tagWidth)}
	for i := range g.Nodes() {
		for c := range tagWidth {
			d.X.Dense[i*tagWidth+c] = denseTag(i, c)
		}
	}
	return &d
}

// viewOf is one graph of a batch in terms of the original's nodes.
type viewOf struct {
	nodes []int    // original node of every node of the view; -1 for a row that is not a tag
	edges [][2]int // (source, target), original nodes, in the batch's order
	rows  [][]float32
}

// extract reads graph k of the batch. dense says which tags the original had.
func extract(b *graph.Batch, k int, dense bool) viewOf {
	lo, hi := b.GraphPtr[k], b.GraphPtr[k+1]
	var v viewOf
	for i := lo; i < hi; i++ {
		row := make([]float32, b.X.Width)
		b.X.Row(row, int(i))
		v.rows = append(v.rows, row)
		v.nodes = append(v.nodes, tagOf(row, dense))
	}
	for i := lo; i < hi; i++ {
		for _, j := range b.Adj[b.Ptr[i]:b.Ptr[i+1]] {
			v.edges = append(v.edges, [2]int{v.nodes[j-lo], v.nodes[i-lo]})
		}
	}
	return v
}

// denseTag is column c of the row that marks node i. It is a parabola in i, on
// which no mean of several rows lies.
func denseTag(i, c int) float32 { return float32(i) + float32(i*i*c)/64 }

func tagOf(row []float32, dense bool) int {
	if dense {
		for c, x := range row {
			if x != denseTag(int(row[0]), c) {
				return -1
			}
		}
		return int(row[0])
	}
	tag := -1
	for c, x := range row {
		switch {
		case x == 0:
		case x == 1 && tag < 0:
			tag = c
		default:
			return -1
		}
	}
	return tag
}

// one returns the view that a makes of g with the given generator.
func one(t testing.TB, a Augmentation, g *graph.Graph, rng *rand.Rand, ws *Workspace) viewOf {
	t.Helper()
	var b graph.Batch
	a.Append(&b, g, rng, ws)
	b.EndView()
	if err := b.Validate(); err != nil {
		t.Fatalf("%#v: %v", a, err)
	}
	return extract(&b, 0, !g.X.OneHot())
}

// everything is all augmentations, with one ratio.
func everything(ratio float64) []Augmentation {
	all := []Augmentation{
		Identity{}, Identity{SelfLoops: true}, NodeDropping{ratio}, EdgePerturbation{ratio},
		AttributeMasking{ratio}, Subgraph{ratio},
		Choice{NodeDropping{ratio}, EdgePerturbation{ratio}, AttributeMasking{ratio}, Subgraph{ratio}},
	}
	for _, op := range []Op{None, DropN, PermE, MaskN, Sub} {
		all = append(all, GraphCLUnsupervised{op, ratio, false}, GraphCLUnsupervised{op, ratio, true}, GraphCLSemi{op, ratio})
	}
	return all
}

// checkView checks a view against what its augmentation promises for g.
func checkView(t testing.TB, a Augmentation, g *graph.Graph, v viewOf) {
	t.Helper()
	n := g.Nodes()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%#v of Ptr %v, Adj %v: nodes %v, edges %v: %s", a, g.Ptr, g.Adj, v.nodes, v.edges, fmt.Sprintf(format, args...))
	}
	if len(v.nodes) == 0 {
		fail("empty")
	}
	if len(v.nodes) > n {
		fail("more nodes than the graph's %d", n)
	}
	masks := 0
	for _, i := range v.nodes {
		if i < 0 {
			masks++
		}
	}
	allowed := 0
	wantNodes := -1
	switch a := a.(type) {
	case Identity, EdgePerturbation:
		wantNodes = n
	case AttributeMasking:
		wantNodes, allowed = n, Share(a.Ratio, n)
	case Choice:
		allowed = n
	case NodeDropping:
		wantNodes = max(n-Share(a.Ratio, n), 1)
	case Subgraph:
		wantNodes = min(n, Share(1-a.Ratio, n)+1)
	case GraphCLUnsupervised:
		if a.Op == MaskN {
			allowed = Share(a.Ratio, n)
		}
		if !a.Strip {
			wantNodes = n
		}
	case GraphCLSemi:
		switch a.Op {
		case MaskN:
			wantNodes, allowed = n, Share(a.Ratio, n)
		case DropN:
			wantNodes = max(n-Share(a.Ratio, n), 1)
		case Sub:
			wantNodes = -1
			if len(v.nodes) > Share(a.Ratio, n)+1 {
				fail("more than %d nodes", Share(a.Ratio, n)+1)
			}
		default:
			wantNodes = n
		}
	}
	if wantNodes >= 0 && len(v.nodes) != wantNodes {
		fail("%d nodes, want %d", len(v.nodes), wantNodes)
	}
	if masks > allowed {
		fail("%d rows are no node's, at most %d may be", masks, allowed)
	}
	if masks > 0 {
		return // edges cannot be told
	}
	// The rest holds node for node.
	if semi, ok := a.(GraphCLSemi); (!ok || semi.Op != Sub) && !slices.IsSorted(v.nodes) {
		fail("nodes changed their order")
	}
	sorted := slices.Sorted(slices.Values(v.nodes))
	if len(slices.Compact(sorted)) != len(v.nodes) {
		fail("a node twice")
	}
	switch a := a.(type) {
	case NodeDropping:
		checkInduced(fail, g, v)
	case Subgraph:
		checkInduced(fail, g, v)
		checkGrown(fail, g, v)
	case AttributeMasking:
		checkInduced(fail, g, v)
	case EdgePerturbation:
		checkPerturbed(fail, g, v, a.Ratio)
	case Identity:
		if !a.SelfLoops {
			checkInduced(fail, g, v)
		}
	case GraphCLUnsupervised:
		if a.Strip && (a.Op == DropN || a.Op == Sub || a.Op == MaskN || a.Op == None) {
			checkInduced(fail, g, v)
		}
	case GraphCLSemi:
		if a.Op != PermE {
			checkInduced(fail, g, v)
		}
	}
}

// checkInduced: an edge is in the view if and only if its ends are and it is in
// the graph.
func checkInduced(fail func(string, ...any), g *graph.Graph, v viewOf) {
	for _, i := range v.nodes {
		for _, j := range v.nodes {
			if want, got := g.HasEdge(j, i), slices.Contains(v.edges, [2]int{j, i}); want != got {
				fail("edge %d→%d is in the graph: %v, in the view: %v", j, i, want, got)
			}
		}
	}
}

// checkGrown: in an undirected graph a grown subgraph takes its connected
// components whole, except the last.
func checkGrown(fail func(string, ...any), g *graph.Graph, v viewOf) {
	if g.Directed {
		return
	}
	component := func(nodes []int) map[int]int { // smallest node that each is connected to
		c := make(map[int]int)
		for _, i := range nodes {
			c[i] = i
		}
		for range nodes {
			for _, i := range nodes {
				for _, j := range nodes {
					if g.HasEdge(j, i) {
						c[i] = min(c[i], c[j])
					}
				}
			}
		}
		return c
	}
	all := component(indices(g.Nodes()))
	partial := 0
	for root := range g.Nodes() {
		size, taken := 0, 0
		var nodes []int
		for i, c := range all {
			if c == root {
				size++
				if slices.Contains(v.nodes, i) {
					taken++
					nodes = append(nodes, i)
				}
			}
		}
		if taken > 0 && taken < size {
			partial++
			for _, c := range component(nodes) {
				if c != slices.Min(nodes) {
					fail("nodes %v are not connected", nodes)
				}
			}
		}
	}
	if partial > 1 {
		fail("%d components are taken in part", partial)
	}
}

func checkPerturbed(fail func(string, ...any), g *graph.Graph, v viewOf, ratio float64) {
	n, unit := g.Nodes(), 1
	if !g.Directed {
		unit = 2
	}
	edges, pairs := g.Entries()/unit, n*(n-1)/unit
	k := Share(ratio, edges)
	kept, added := 0, 0
	for _, e := range v.edges {
		if e[0] == e[1] {
			fail("self-loop at %d", e[0])
		}
		if g.HasEdge(e[0], e[1]) {
			kept++
		} else {
			added++
		}
	}
	if kept != unit*(edges-k) || added != unit*min(k, pairs-edges) {
		fail("%d entries kept and %d added, want %d and %d", kept, added, unit*(edges-k), unit*min(k, pairs-edges))
	}
}

// TestViewsOfRandomGraphs checks every augmentation on graphs of all kinds:
// what it promises, that the batch around it stays intact and that the
// workspace carries nothing from one graph to the next.
func TestViewsOfRandomGraphs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var used Workspace
	sentinel := path(3)
	for trial := range 400 {
		n := 1 + rng.IntN(20)
		if trial%4 == 0 {
			n = 1 + rng.IntN(4)
		}
		p := []float64{0, 0.1, 0.3, 0.7, 1}[rng.IntN(5)]
		g := randomGraph(rng, n, p, rng.IntN(3) == 0)
		dense := rng.IntN(2) == 0
		if dense {
			g = denseTags(g)
		}
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		ratio := []float64{0, 0.1, 0.2, 0.5, 0.8, 1}[rng.IntN(6)]
		for _, a := range everything(ratio) {
			seed := rng.Uint64()
			v := one(t, a, g, rand.New(rand.NewPCG(seed, 0)), &used)
			checkView(t, a, g, v)

			var b graph.Batch
			b.Append(sentinel)
			a.Append(&b, g, rand.New(rand.NewPCG(seed, 0)), new(Workspace))
			b.Append(sentinel)
			b.EndView()
			if err := b.Validate(); err != nil {
				t.Fatalf("%#v between others: %v", a, err)
			}
			if b.Graphs() != 3 {
				t.Fatalf("%#v made %d graphs", a, b.Graphs()-2)
			}
			w := extract(&b, 1, dense)
			if !slices.EqualFunc(v.rows, w.rows, slices.Equal) || !slices.Equal(v.edges, w.edges) {
				t.Fatalf("%#v: alone and in a used workspace %v, in a batch and a new workspace %v", a, v, w)
			}
			for _, k := range []int{0, 2} {
				s := extract(&b, k, false)
				if !slices.Equal(s.nodes, []int{0, 1, 2}) || !slices.Equal(s.edges, [][2]int{{1, 0}, {0, 1}, {2, 1}, {1, 2}}) {
					t.Fatalf("%#v spoilt graph %d of the batch: %v", a, k, s)
				}
			}
		}
	}
}

// FuzzViews is the same for graphs that the fuzzer draws: a byte per row of the
// adjacency of at most eight nodes.
func FuzzViews(f *testing.F) {
	f.Add([]byte{1}, false, uint64(1), 0.2)
	f.Add([]byte{2, 5, 2, 0}, false, uint64(2), 0.5)
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255}, true, uint64(3), 1.0)
	f.Fuzz(func(t *testing.T, rows []byte, directed bool, seed uint64, ratio float64) {
		if !(ratio >= 0 && ratio <= 1) || len(rows) == 0 {
			return
		}
		n := min(len(rows), 8)
		g := tagged(n, directed, func(j, i int) bool {
			if !directed {
				i, j = max(i, j), min(i, j)
			}
			return rows[i]>>j&1 == 1
		})
		var ws Workspace
		for _, a := range everything(ratio) {
			checkView(t, a, g, one(t, a, g, ws.Stream(seed, 0, 0, 0), &ws))
		}
	})
}

// TestSizes states sizes in numbers rather than in the formulas they come from.
func TestSizes(t *testing.T) {
	star := func(n int) *graph.Graph {
		return tagged(n, false, func(j, i int) bool { return i == 0 || j == 0 })
	}
	for _, c := range []struct {
		a            Augmentation
		g            *graph.Graph
		nodes, edges int // edges counts entries, -1 if it varies
	}{
		{NodeDropping{0.2}, path(1), 1, 0},
		{NodeDropping{0.2}, path(2), 2, 2},
		{NodeDropping{0.2}, path(4), 4, 6},
		{NodeDropping{0.2}, complete(5), 4, 12},
		{NodeDropping{0.2}, complete(9), 8, 56},
		{NodeDropping{0.2}, complete(10), 8, 56},
		{NodeDropping{0.2}, complete(29), 24, 552},
		{NodeDropping{0.2}, complete(30), 24, 552},
		{NodeDropping{0.3}, complete(10), 7, 42},
		{NodeDropping{1}, complete(10), 1, 0},
		{NodeDropping{0}, complete(10), 10, 90},
		{Subgraph{0.2}, path(1), 1, 0},
		{Subgraph{0.2}, path(2), 2, 2},
		{Subgraph{0.2}, path(5), 5, 8},
		{Subgraph{0.2}, path(6), 5, 8},
		{Subgraph{0.2}, path(10), 9, 16},
		{Subgraph{0.2}, path(30), 25, 48},
		{Subgraph{0.2}, star(30), 25, 48},
		{Subgraph{0.2}, undirected(10), 9, 0},
		{Subgraph{0.5}, path(10), 6, 10},
		{Subgraph{1}, path(10), 1, 0},
		{Subgraph{0}, path(10), 10, 18},
		{EdgePerturbation{0.2}, path(1), 1, 0},
		{EdgePerturbation{0.2}, path(5), 5, 8},        // ⌊0.8⌋ = 0 edges
		{EdgePerturbation{0.2}, path(12), 12, 22},     // 2 out, 2 in
		{EdgePerturbation{0.2}, complete(5), 5, 16},   // 2 out, none can come
		{EdgePerturbation{0.5}, complete(10), 10, 46}, // 22 of 45 out
		{EdgePerturbation{1}, path(3), 3, 2},          // both out, the only other one in
		{EdgePerturbation{0.2}, undirected(10), 10, 0},
		{AttributeMasking{0.2}, path(10), 10, 18},
		{GraphCLUnsupervised{DropN, 0.1, true}, complete(9), 9, 72},
		{GraphCLUnsupervised{DropN, 0.1, true}, complete(30), 27, 702},
		{GraphCLUnsupervised{DropN, 0.1, false}, complete(30), 30, -1},
		{GraphCLUnsupervised{PermE, 0.1, false}, complete(10), 10, 90 + 9 - 9},
		{GraphCLUnsupervised{PermE, 0.1, false}, path(4), 4, 6 + 3},
		{GraphCLUnsupervised{Sub, 0.2, true}, complete(4), 1, 0},
		{GraphCLUnsupervised{None, 0, false}, complete(4), 4, 12 + 3},
		{GraphCLUnsupervised{None, 0, true}, complete(4), 4, 12},
		{GraphCLSemi{DropN, 0.2}, complete(30), 24, 552},
		{GraphCLSemi{Sub, 0.2}, complete(4), 1, 0},
		{Identity{}, path(4), 4, 6},
		{Identity{SelfLoops: true}, path(4), 4, 9},
		{Identity{SelfLoops: true}, undirected(4, [2]int{0, 2}), 4, 2 + 2},
		{Identity{SelfLoops: true}, undirected(4), 4, 0},
	} {
		t.Run(fmt.Sprintf("%T%v of %d nodes and %d entries", c.a, c.a, c.g.Nodes(), c.g.Entries()), func(t *testing.T) {
			var ws Workspace
			for epoch := range 20 {
				v := one(t, c.a, c.g, ws.Stream(1, 0, epoch, 0), &ws)
				if len(v.nodes) != c.nodes || c.edges >= 0 && len(v.edges) != c.edges {
					t.Fatalf("%d nodes and %d entries, want %d and %d", len(v.nodes), len(v.edges), c.nodes, c.edges)
				}
			}
		})
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct {
		ratio float64
		n     int
		want  int
	}{{0.2, 4, 0}, {0.2, 5, 1}, {0.2, 29, 5}, {0.2, 30, 6}, {0.29, 100, 29}, {0.7, 10, 7}, {1 - 0.9, 10, 1}, {1, 7, 7}, {0, 7, 0}, {0.2, 0, 0}} {
		if got := Share(c.ratio, c.n); got != c.want {
			t.Errorf("Share(%v, %d) = %d, want %d", c.ratio, c.n, got, c.want)
		}
	}
	for _, bad := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		for _, a := range []Augmentation{NodeDropping{bad}, EdgePerturbation{bad}, AttributeMasking{bad}, Subgraph{bad}, GraphCLUnsupervised{Op: DropN, Ratio: bad}, GraphCLSemi{Op: Sub, Ratio: bad}} {
			wantPanic(t, fmt.Sprintf("augment: ratio %v is outside [0, 1]", bad), func() {
				a.Append(new(graph.Batch), path(5), random.Stream(1, 0, 0, 0), new(Workspace))
			})
		}
	}
	wantPanic(t, "augment: Choice of nothing", func() {
		Choice{}.Append(new(graph.Batch), path(5), random.Stream(1, 0, 0, 0), new(Workspace))
	})
	for want, a := range map[string]Augmentation{
		`augment: GraphCLUnsupervised has no augmentation "dnodes"`: GraphCLUnsupervised{Op: "dnodes"},
		`augment: GraphCLSemi has no augmentation "dnodes"`:         GraphCLSemi{Op: "dnodes"},
	} {
		wantPanic(t, want, func() { a.Append(new(graph.Batch), path(5), random.Stream(1, 0, 0, 0), new(Workspace)) })
	}
}

func wantPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if r := recover(); r != want {
			t.Errorf("panic %v, want %q", r, want)
		}
	}()
	f()
}

// TestGraphWithoutNodes: there is nothing to keep, and nothing to crash on.
func TestGraphWithoutNodes(t *testing.T) {
	for _, a := range everything(0.5) {
		var b graph.Batch
		a.Append(&b, tagged(0, false, nil), random.Stream(1, 0, 0, 0), new(Workspace))
		b.EndView()
		if err := b.Validate(); err != nil || b.Graphs() != 1 || b.Nodes() != 0 {
			t.Errorf("%#v: %d graphs, %d nodes, %v", a, b.Graphs(), b.Nodes(), err)
		}
	}
}

// TestMaskedRows checks number and distribution of what masking writes. The
// statistics of a fixed seed do not vary; their bounds are 4 standard errors.
func TestMaskedRows(t *testing.T) {
	for _, a := range []Augmentation{AttributeMasking{0.2}, GraphCLUnsupervised{MaskN, 0.2, true}, GraphCLUnsupervised{MaskN, 0.2, false}} {
		for _, g := range []*graph.Graph{path(30), denseTags(path(30))} {
			var ws Workspace
			var sum, square, third float64
			count := 0
			times := make([]int, 30)
			const rounds = 500
			for epoch := range rounds {
				v := one(t, a, g, ws.Stream(7, 0, epoch, 0), &ws)
				masked := 0
				for i, tag := range v.nodes {
					if tag == i {
						continue
					}
					masked++
					times[i]++
					for _, x := range v.rows[i] {
						z := (float64(x) - 0.5) / 0.5
						sum += z
						square += z * z
						third += z * z * z
						count++
					}
				}
				if masked != 6 {
					t.Fatalf("%#v masked %d of 30 rows, want 6", a, masked)
				}
			}
			n := float64(count)
			if e := 4 / math.Sqrt(n); math.Abs(sum/n) > e {
				t.Errorf("%#v: mean of the noise is %v standard deviations off", a, sum/n)
			}
			if e := 4 * math.Sqrt(2/n); math.Abs(square/n-1) > e {
				t.Errorf("%#v: variance of the noise is %v of what it should be", a, square/n)
			}
			if e := 4 * math.Sqrt(15/n); math.Abs(third/n) > e {
				t.Errorf("%#v: third moment of the noise is %v", a, third/n)
			}
			for i, k := range times { // binomial(rounds, 0.2)
				if e := 4.5 * math.Sqrt(rounds*0.2*0.8); math.Abs(float64(k)-0.2*rounds) > e {
					t.Errorf("%#v: row %d is masked %d times of %d", a, i, k, rounds)
				}
			}
		}
	}
}

func TestMaskLeavesOneHotWhereItCan(t *testing.T) {
	var b graph.Batch
	AttributeMasking{0.2}.Append(&b, path(4), random.Stream(1, 0, 0, 0), new(Workspace))
	if !b.X.OneHot() {
		t.Error("a batch without a masked row became dense")
	}
}

// TestAugmentationsDoNotAllocate: not per graph, whatever the order of large
// and small, one-hot and dense.
func TestAugmentationsDoNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	graphs := []*graph.Graph{randomGraph(rng, 30, 0.2, false), denseTags(randomGraph(rng, 20, 0.8, true)), randomGraph(rng, 25, 0, false), complete(12)}
	for _, a := range everything(0.3) {
		var ws Workspace
		var b graph.Batch
		round := func() {
			b.Reset(tagWidth)
			for i, g := range graphs {
				a.Append(&b, g, ws.Stream(1, 2, 3, i), &ws)
			}
			b.EndView()
		}
		round()
		if n := testing.AllocsPerRun(10, round); n != 0 {
			t.Errorf("%#v: %v allocations in 4 graphs", a, n)
		}
	}
}

// key is a view as a string, the outcome of a random experiment.
func (v viewOf) key() string {
	var k []byte
	for _, i := range v.nodes {
		k = binary.AppendVarint(k, int64(i))
	}
	k = append(k, '|')
	edges := slices.Clone(v.edges)
	slices.SortFunc(edges, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	for _, e := range edges {
		k = binary.AppendVarint(binary.AppendVarint(k, int64(e[0])), int64(e[1]))
	}
	return string(k)
}
