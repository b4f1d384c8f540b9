package augment

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
)

// The tests of this file have every augmentation twice: the package's code, and
// here its description without regard to cost, as a list of everything that can
// happen with its probability. Views are drawn and counted. A view that cannot
// happen fails the test, and so do frequencies that are too far off.

// outcomes is the probability of every possible view, by viewOf.key.
type outcomes map[string]float64

func (o outcomes) add(p float64, nodes []int, edges [][2]int) {
	o[viewOf{nodes: nodes, edges: edges}.key()] += p
}

// subsets returns all subsets of k of 0..n-1, ascending.
func subsets(n, k int) [][]int {
	if k == 0 {
		return [][]int{nil}
	}
	if n < k {
		return nil
	}
	all := subsets(n-1, k)
	for _, s := range subsets(n-1, k-1) {
		all = append(all, append(slices.Clone(s), n-1))
	}
	return all
}

// entries lists the entries of a graph as (source, target).
func entries(g *graph.Graph) (e [][2]int) {
	for i := range g.Nodes() {
		for _, j := range g.Neighbors(i) {
			e = append(e, [2]int{int(j), i})
		}
	}
	return e
}

// within keeps the entries whose ends are both listed.
func within(e [][2]int, nodes []int) (in [][2]int) {
	for _, x := range e {
		if slices.Contains(nodes, x[0]) && slices.Contains(nodes, x[1]) {
			in = append(in, x)
		}
	}
	return in
}

func without(n int, gone []int) (left []int) {
	for i := range n {
		if !slices.Contains(gone, i) {
			left = append(left, i)
		}
	}
	return left
}

// pick returns the listed elements.
func pick[T any](s []T, at []int) (out []T) {
	for _, k := range at {
		out = append(out, s[k])
	}
	return out
}

func naiveNodeDropping(g *graph.Graph, drop int) outcomes {
	o := outcomes{}
	all := subsets(g.Nodes(), drop)
	for _, gone := range all {
		nodes := without(g.Nodes(), gone)
		o.add(1/float64(len(all)), nodes, within(entries(g), nodes))
	}
	return o
}

func naiveSubgraph(g *graph.Graph, want int) outcomes {
	o := outcomes{}
	var grow func(taken []int, p float64)
	grow = func(taken []int, p float64) {
		if len(taken) == want {
			nodes := slices.Sorted(slices.Values(taken))
			o.add(p, nodes, within(entries(g), nodes))
			return
		}
		var next []int
		for _, j := range without(g.Nodes(), taken) {
			if slices.ContainsFunc(taken, func(i int) bool { return g.HasEdge(j, i) }) {
				next = append(next, j)
			}
		}
		if next == nil {
			next = without(g.Nodes(), taken)
		}
		for _, j := range next {
			grow(append(slices.Clone(taken), j), p/float64(len(next)))
		}
	}
	grow(nil, 1)
	return o
}

func naiveEdgePerturbation(g *graph.Graph, drop int) outcomes {
	n := g.Nodes()
	var edges, free [][2]int
	for i := range n {
		for j := range n {
			switch {
			case i == j, !g.Directed && j > i:
			case g.HasEdge(j, i):
				edges = append(edges, [2]int{j, i})
			default:
				free = append(free, [2]int{j, i})
			}
		}
	}
	o := outcomes{}
	gone, come := subsets(len(edges), drop), subsets(len(free), min(drop, len(free)))
	for _, out := range gone {
		for _, in := range come {
			e := append(pick(edges, without(len(edges), out)), pick(free, in)...)
			if !g.Directed {
				for _, x := range e {
					e = append(e, [2]int{x[1], x[0]})
				}
			}
			o.add(1/float64(len(gone)*len(come)), indices(n), e)
		}
	}
	return o
}

// naiveUnsupervised follows GraphCL's loader and training loop, dense matrices
// and lists replaced by the lists of entries that they amount to.
func naiveUnsupervised(g *graph.Graph, op Op, ratio float64, strip bool) outcomes {
	n, e := g.Nodes(), entries(g)
	last := 0 // the loader: self-loops up to the largest index in the edge list
	for _, x := range e {
		last = max(last, x[0], x[1])
	}
	for i := range last {
		e = append(e, [2]int{i, i})
	}

	o := outcomes{}
	finish := func(p float64, e [][2]int, keeper int) {
		if !strip {
			o.add(p, indices(n), e)
			return
		}
		var nodes []int
		for i := range n {
			if slices.ContainsFunc(e, func(x [2]int) bool { return x[0] == i || x[1] == i }) {
				nodes = append(nodes, i)
			}
		}
		if nodes == nil {
			nodes = []int{keeper}
		}
		var bare [][2]int
		for _, x := range e {
			if x[0] != x[1] {
				bare = append(bare, x)
			}
		}
		o.add(p, nodes, bare)
	}

	switch op {
	case None:
		finish(1, e, 0)
	case DropN:
		all := subsets(n, int(float64(n)*ratio))
		for _, gone := range all {
			left := without(n, gone)
			keeper := 0
			if left != nil {
				keeper = left[0]
			}
			finish(1/float64(len(all)), within(e, left), keeper)
		}
	case PermE:
		all := subsets(len(e), int(float64(len(e))*ratio))
		for _, gone := range all {
			finish(1/float64(len(all)), pick(e, without(len(e), gone)), 0)
		}
	case Sub:
		for seed := range n {
			naiveStar(e, n, seed, int(float64(n)*ratio), 1/float64(n), func(p float64, sub []int) {
				finish(p, within(e, sub), seed)
			})
		}
	}
	return o
}

// naiveStar runs the sampling loop from a seed: at most n attempts, until more
// than sub nodes are in.
func naiveStar(e [][2]int, n, seed, sub int, p float64, done func(p float64, nodes []int)) {
	var neighbors []int
	for _, x := range e {
		if x[1] == seed {
			neighbors = append(neighbors, x[0])
		}
	}
	var attempt func(nodes []int, count int, p float64)
	attempt = func(nodes []int, count int, p float64) {
		if len(nodes) > sub || count == n || neighbors == nil {
			done(p, nodes)
			return
		}
		for _, v := range neighbors {
			more := nodes
			if !slices.Contains(nodes, v) {
				more = append(slices.Clone(nodes), v)
			}
			attempt(more, count+1, p/float64(len(neighbors)))
		}
	}
	attempt([]int{seed}, 0, p)
}

func naiveSemi(g *graph.Graph, op Op, ratio float64) outcomes {
	n, e := g.Nodes(), entries(g)
	o := outcomes{}
	switch op {
	case None:
		o.add(1, indices(n), e)
	case DropN:
		return naiveNodeDropping(g, int(float64(n)*ratio))
	case PermE:
		k := int(float64(len(e)) * ratio)
		var pairs [][][2]int // all lists of k pairs
		pairs = append(pairs, nil)
		for range k {
			var longer [][][2]int
			for _, list := range pairs {
				for j := range n {
					for i := range n {
						longer = append(longer, append(slices.Clone(list), [2]int{j, i}))
					}
				}
			}
			pairs = longer
		}
		all := subsets(len(e), k)
		for _, gone := range all {
			for _, come := range pairs {
				view := pick(e, without(len(e), gone))
				for _, x := range come {
					if x[0] != x[1] { // the GCN removes self-loops
						view = append(view, x)
					}
				}
				o.add(1/float64(len(all)*len(pairs)), indices(n), view)
			}
		}
	case Sub:
		for seed := range n {
			naiveStar(e, n, seed, int(float64(n)*ratio), 1/float64(n), func(p float64, nodes []int) {
				o.add(p, nodes, within(e, nodes))
			})
		}
	}
	return o
}

// mix is the outcome of a Choice.
func mix(parts ...outcomes) outcomes {
	o := outcomes{}
	for _, part := range parts {
		for k, p := range part {
			o[k] += p / float64(len(parts))
		}
	}
	return o
}

// checkFrequencies draws and compares by a chi-square test. Its bound is
// exceeded by chance once in 30000 times, and the seed is fixed.
func checkFrequencies(t *testing.T, want outcomes, draw func(trial int) string) {
	t.Helper()
	draws := 10000
	if testing.Short() {
		draws = 2000
	}
	count := make(map[string]int)
	for trial := range draws {
		k := draw(trial)
		if want[k] == 0 {
			t.Fatalf("outcome %q is impossible", k)
		}
		count[k]++
	}
	sum, stat := 0.0, 0.0
	df := -1
	rareP, rareCount := 0.0, 0 // outcomes too rare for the statistic, together
	cell := func(p float64, count int) {
		e := p * float64(draws)
		stat += (float64(count) - e) * (float64(count) - e) / e
		df++
	}
	for k, p := range want {
		sum += p
		if p*float64(draws) < 8 {
			rareP, rareCount = rareP+p, rareCount+count[k]
		} else {
			cell(p, count[k])
		}
	}
	if rareP*float64(draws) >= 1 {
		cell(rareP, rareCount)
	}
	if !(math.Abs(sum-1) <= 1e-9) {
		t.Fatalf("the oracle's probabilities add up to %v", sum)
	}
	if df < 1 {
		return // one outcome, and it was the one
	}
	// Wilson and Hilferty's approximation of the quantile at 4 standard deviations.
	d := float64(df)
	bound := d * math.Pow(1-2/(9*d)+4*math.Sqrt(2/(9*d)), 3)
	if stat > bound {
		t.Errorf("chi-square %.1f with %d degrees of freedom, bound %.1f", stat, df, bound)
	}
}

func TestDistributions(t *testing.T) {
	// A triangle with a tail, an isolated node in the middle and one at the end.
	mixed := undirected(6, [2]int{0, 1}, [2]int{0, 2}, [2]int{1, 2}, [2]int{2, 4})
	// Two components, the last node linked.
	parts := undirected(6, [2]int{0, 1}, [2]int{0, 2}, [2]int{3, 5}, [2]int{4, 5})
	// Few pairs are free: permE walks over them.
	full := undirected(5, [2]int{0, 1}, [2]int{0, 2}, [2]int{0, 3}, [2]int{0, 4}, [2]int{1, 2}, [2]int{1, 3}, [2]int{3, 4})
	arrows := tagged(4, true, func(j, i int) bool { return j == i+1 || i == 0 && j == 3 })
	fullArrows := tagged(4, true, func(j, i int) bool { return j != (i+1)%4 })
	bare := undirected(4)
	edge := undirected(4, [2]int{0, 1})

	type graphs map[string]*graph.Graph
	all := graphs{"mixed": mixed, "parts": parts, "full": full, "bare": bare, "edge": edge, "complete": complete(5)}
	for _, c := range []struct {
		name   string
		graphs graphs
		a      Augmentation
		want   func(g *graph.Graph) outcomes
	}{
		{"dropN 0.2", graphs{"mixed": mixed}, NodeDropping{0.2}, func(g *graph.Graph) outcomes { return naiveNodeDropping(g, 1) }},
		{"dropN 0.4", graphs{"mixed": mixed, "parts": parts}, NodeDropping{0.4}, func(g *graph.Graph) outcomes { return naiveNodeDropping(g, 2) }},
		{"dropN 0.7", graphs{"mixed": mixed, "parts": parts}, NodeDropping{0.7}, func(g *graph.Graph) outcomes { return naiveNodeDropping(g, 4) }},
		{"dropN of arrows", graphs{"arrows": arrows}, NodeDropping{0.5}, func(g *graph.Graph) outcomes { return naiveNodeDropping(g, 2) }},
		{"subgraph 0.2", graphs{"mixed": mixed, "parts": parts}, Subgraph{0.2}, func(g *graph.Graph) outcomes { return naiveSubgraph(g, 5) }},
		{"subgraph 0.5", graphs{"mixed": mixed, "parts": parts}, Subgraph{0.5}, func(g *graph.Graph) outcomes { return naiveSubgraph(g, 4) }},
		{"subgraph 0.7", graphs{"mixed": mixed, "parts": parts}, Subgraph{0.7}, func(g *graph.Graph) outcomes { return naiveSubgraph(g, 2) }},
		{"subgraph of 4", graphs{"bare": bare, "edge": edge, "arrows": arrows}, Subgraph{0.5}, func(g *graph.Graph) outcomes { return naiveSubgraph(g, 3) }},
		{"permE of 4 edges", graphs{"mixed": mixed, "parts": parts}, EdgePerturbation{0.25}, func(g *graph.Graph) outcomes { return naiveEdgePerturbation(g, 1) }},
		{"permE of half", graphs{"mixed": mixed}, EdgePerturbation{0.5}, func(g *graph.Graph) outcomes { return naiveEdgePerturbation(g, 2) }},
		{"permE of 7 edges", graphs{"full": full}, EdgePerturbation{0.2}, func(g *graph.Graph) outcomes { return naiveEdgePerturbation(g, 1) }},
		{"permE of 7 edges, all free ones come", graphs{"full": full}, EdgePerturbation{0.6}, func(g *graph.Graph) outcomes { return naiveEdgePerturbation(g, 4) }},
		{"permE of arrows", graphs{"arrows": arrows}, EdgePerturbation{0.5}, func(g *graph.Graph) outcomes { return naiveEdgePerturbation(g, 2) }},
		{"permE of many arrows", graphs{"arrows": fullArrows}, EdgePerturbation{0.25}, func(g *graph.Graph) outcomes { return naiveEdgePerturbation(g, 2) }},
		{"choice", graphs{"mixed": mixed}, Choice{Identity{}, NodeDropping{0.4}, NodeDropping{0.4}}, func(g *graph.Graph) outcomes {
			return mix(naiveSemi(g, None, 0), naiveNodeDropping(g, 2), naiveNodeDropping(g, 2))
		}},
		{"self-loops", all, Identity{SelfLoops: true}, func(g *graph.Graph) outcomes { return naiveUnsupervised(g, None, 0, false) }},
		{"unsupervised none", all, GraphCLUnsupervised{None, 0, true}, func(g *graph.Graph) outcomes { return naiveUnsupervised(g, None, 0, true) }},
		{"unsupervised dropN", all, GraphCLUnsupervised{DropN, 0.4, true}, func(g *graph.Graph) outcomes { return naiveUnsupervised(g, DropN, 0.4, true) }},
		{"unsupervised dropN, most", all, GraphCLUnsupervised{DropN, 0.8, true}, func(g *graph.Graph) outcomes { return naiveUnsupervised(g, DropN, 0.8, true) }},
		{"unsupervised dropN, everything", all, GraphCLUnsupervised{DropN, 1, true}, func(g *graph.Graph) outcomes { return naiveUnsupervised(g, DropN, 1, true) }},
		{"unsupervised dropN unstripped", all, GraphCLUnsupervised{DropN, 0.4, false}, func(g *graph.Graph) outcomes { return naiveUnsupervised(g, DropN, 0.4, false) }},
		{"unsupervised permE", all, GraphCLUnsupervised{PermE, 0.2, true}, func(g *graph.Graph) outcomes { return naiveUnsupervised(g, PermE, 0.2, true) }},
		{"unsupervised permE, everything", all, GraphCLUnsupervised{PermE, 1, true}, func(g *graph.Graph) outcomes { return naiveUnsupervised(g, PermE, 1, true) }},
		{"unsupervised permE unstripped", graphs{"mixed": mixed, "parts": parts, "edge": edge}, GraphCLUnsupervised{PermE, 0.2, false}, func(g *graph.Graph) outcomes { return naiveUnsupervised(g, PermE, 0.2, false) }},
		{"unsupervised permE of arrows", graphs{"arrows": arrows}, GraphCLUnsupervised{PermE, 0.5, true}, func(g *graph.Graph) outcomes { return naiveUnsupervised(g, PermE, 0.5, true) }},
		{"unsupervised subgraph", all, GraphCLUnsupervised{Sub, 0.4, true}, func(g *graph.Graph) outcomes { return naiveUnsupervised(g, Sub, 0.4, true) }},
		{"unsupervised subgraph of most", all, GraphCLUnsupervised{Sub, 0.8, true}, func(g *graph.Graph) outcomes { return naiveUnsupervised(g, Sub, 0.8, true) }},
		{"unsupervised subgraph unstripped", all, GraphCLUnsupervised{Sub, 0.4, false}, func(g *graph.Graph) outcomes { return naiveUnsupervised(g, Sub, 0.4, false) }},
		{"unsupervised subgraph of arrows", graphs{"arrows": arrows}, GraphCLUnsupervised{Sub, 0.5, true}, func(g *graph.Graph) outcomes { return naiveUnsupervised(g, Sub, 0.5, true) }},
		{"semi none", all, GraphCLSemi{None, 0.2}, func(g *graph.Graph) outcomes { return naiveSemi(g, None, 0.2) }},
		{"semi dropN", all, GraphCLSemi{DropN, 0.4}, func(g *graph.Graph) outcomes { return naiveSemi(g, DropN, 0.4) }},
		{"semi permE", graphs{"mixed": mixed, "parts": parts, "bare": bare}, GraphCLSemi{PermE, 0.2}, func(g *graph.Graph) outcomes { return naiveSemi(g, PermE, 0.2) }},
		{"semi permE, everything", graphs{"edge": edge}, GraphCLSemi{PermE, 1}, func(g *graph.Graph) outcomes { return naiveSemi(g, PermE, 1) }},
		{"semi subgraph", all, GraphCLSemi{Sub, 0.4}, func(g *graph.Graph) outcomes { return naiveSemi(g, Sub, 0.4) }},
		{"semi subgraph of all", all, GraphCLSemi{Sub, 1}, func(g *graph.Graph) outcomes { return naiveSemi(g, Sub, 1) }},
	} {
		for name, g := range c.graphs {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				var ws Workspace
				checkFrequencies(t, c.want(g), func(trial int) string {
					return one(t, c.a, g, ws.Stream(2, 0, trial, 0), &ws).key()
				})
			})
		}
	}
}

// TestChoose: every subset of every size is equally likely.
func TestChoose(t *testing.T) {
	for k := range 7 {
		t.Run(fmt.Sprint(k, " of 6"), func(t *testing.T) {
			all := subsets(6, k)
			want := outcomes{}
			for _, s := range all {
				want[fmt.Sprint(s)] = 1 / float64(len(all))
			}
			mark := []bool{true, true, false, false, true, false} // must not matter
			checkFrequencies(t, want, func(trial int) string {
				choose(mark, k, random.Stream(3, 0, trial, k))
				var s []int
				for i, m := range mark {
					if m {
						s = append(s, i)
					}
				}
				return fmt.Sprint(s)
			})
		})
	}
}

// TestMeanMasking: GraphCLSemi's masked rows are the mean over the graph.
func TestMeanMasking(t *testing.T) {
	var ws Workspace
	onehot := path(10)
	onehot.X.Category = []int32{0, 0, 0, 0, 0, 1, 1, 1, 2, 2}
	for _, g := range []*graph.Graph{onehot, denseTags(path(10))} {
		before := g.X.Materialize(10)
		for epoch := range 50 {
			v := one(t, GraphCLSemi{MaskN, 0.3}, g, ws.Stream(4, 0, epoch, 0), &ws)
			changed := 0
			for i, row := range v.rows {
				if slices.Equal(row, before[i*tagWidth:(i+1)*tagWidth]) {
					continue
				}
				changed++
				for c, x := range row {
					mean := 0.0
					for j := range 10 {
						mean += float64(before[j*tagWidth+c]) / 10
					}
					if !(math.Abs(float64(x)-mean) <= 1e-6*max(1, mean)) {
						t.Fatalf("column %d of masked row %d is %v, the mean is %v", c, i, x, mean)
					}
				}
			}
			if changed != 3 {
				t.Fatalf("%d rows changed, want 3", changed)
			}
		}
	}
}

// TestFlags: only what is asymmetric or a multigraph says so, for it costs a
// transpose.
func TestFlags(t *testing.T) {
	for _, a := range everything(0.5) {
		perturbs := a.Name() == string(PermE)
		_, intended := a.(EdgePerturbation)
		_, semi := a.(GraphCLSemi)
		var b graph.Batch
		a.Append(&b, path(10), random.Stream(1, 0, 0, 0), new(Workspace))
		if want := perturbs && !intended; b.Asymmetric != want {
			t.Errorf("%#v: Asymmetric = %v, want %v", a, b.Asymmetric, want)
		}
		if want := perturbs && semi; b.Multigraph != want {
			t.Errorf("%#v: Multigraph = %v, want %v", a, b.Multigraph, want)
		}
		b = graph.Batch{}
		a.Append(&b, tagged(10, true, func(j, i int) bool { return j < i }), random.Stream(1, 0, 0, 0), new(Workspace))
		if !b.Asymmetric {
			t.Errorf("%#v: a directed graph became symmetric", a)
		}
	}
	// Without one of its two self-loops a path of three is symmetric, without one
	// of its four entries it is not.
	kinds := map[bool]int{}
	for seed := range uint64(40) {
		var b graph.Batch
		GraphCLUnsupervised{Op: PermE, Ratio: 0.2}.Append(&b, path(3), random.Stream(seed, 0, 0, 0), new(Workspace))
		entries := 0
		for _, e := range extract(&b, 0, false).edges {
			if e[0] != e[1] {
				entries++
			}
		}
		if b.Asymmetric != (entries < 4) {
			t.Errorf("Asymmetric = %v with %d of 4 entries", b.Asymmetric, entries)
		}
		kinds[b.Asymmetric]++
	}
	if len(kinds) != 2 {
		t.Errorf("Asymmetric views: %v; the test wants both kinds", kinds)
	}
}
