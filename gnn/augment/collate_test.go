package augment

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
)

// TestWorkspaceStream: a workspace's streams are those of package random, at no
// allocation.
func TestWorkspaceStream(t *testing.T) {
	var ws Workspace
	for _, p := range []random.Purpose{0, 1, purposeOrder, 1 << 32} {
		want := random.Stream(1, p, 2, 3)
		got := ws.Stream(1, p, 2, 3)
		for range 3 {
			if got, want := got.Uint64(), want.Uint64(); got != want {
				t.Errorf("purpose %d: %#x, want %#x", p, got, want)
			}
		}
	}
	if n := testing.AllocsPerRun(100, func() { ws.Stream(1, 2, 3, 4).Uint64() }); n != 0 {
		t.Errorf("Workspace.Stream makes %v allocations", n)
	}
}

// mixture has views that turn some chunks of a batch dense and leave others.
func mixture() []Augmentation {
	return []Augmentation{
		NodeDropping{0.2},
		Choice{Subgraph{0.2}, EdgePerturbation{0.2}, GraphCLSemi{PermE, 0.2}},
		Choice{Identity{}, AttributeMasking{0.2}},
	}
}

func sameBatch(t *testing.T, got, want *graph.Batch) {
	t.Helper()
	for name, same := range map[string]bool{
		"GraphPtr": slices.Equal(got.GraphPtr, want.GraphPtr), "ViewPtr": slices.Equal(got.ViewPtr, want.ViewPtr),
		"Ptr": slices.Equal(got.Ptr, want.Ptr), "Adj": slices.Equal(got.Adj, want.Adj),
		"EdgeLabel": slices.Equal(got.EdgeLabel, want.EdgeLabel),
		"Category":  slices.Equal(got.X.Category, want.X.Category), "Dense": slices.Equal(got.X.Dense, want.X.Dense),
		"the kind of features": got.X.OneHot() == want.X.OneHot() && (got.X.Category == nil) == (want.X.Category == nil),
		"Width":                got.X.Width == want.X.Width,
		"Asymmetric":           got.Asymmetric == want.Asymmetric, "Multigraph": got.Multigraph == want.Multigraph,
	} {
		if !same {
			t.Fatalf("%s differs", name)
		}
	}
}

// TestCollateWorkers: bit for bit the same for any number of workers, and the
// same as the definition by single graphs.
func TestCollateWorkers(t *testing.T) {
	graphs := molecules(600, 1)
	samples := rand.New(rand.NewPCG(1, 1)).Perm(600)[:222]
	for name, views := range map[string][]Augmentation{
		"one-hot":  {NodeDropping{0.2}, Subgraph{0.2}},
		"dense":    {AttributeMasking{0.2}, AttributeMasking{0.2}},
		"mixture":  mixture(),
		"one view": {Choice{NodeDropping{0.2}, Subgraph{0.2}}},
		// Some chunks have no masked row: the batch turns dense in the middle.
		"edge labels": mixture(),
		"late mask":   {Identity{}, Identity{}, AttributeMasking{0.2}},
	} {
		t.Run(name, func(t *testing.T) {
			graphs := graphs
			if name == "edge labels" {
				graphs = labelledAll(graphs)
			}
			var want graph.Batch
			var ws Workspace
			for v, a := range views {
				for _, s := range samples {
					a.Append(&want, graphs[s], random.Stream(9, random.Purpose(v), 4, s), &ws)
				}
				want.EndView()
			}
			if err := want.Validate(); err != nil {
				t.Fatal(err)
			}
			for _, workers := range []int{0, 1, 2, 4, 7} {
				col := Collator{Views: views, Seed: 9, Workers: workers}
				var got graph.Batch
				for _, epoch := range []int{0, 4} { // the second in used memory
					col.Collate(&got, graphs, samples, epoch)
				}
				sameBatch(t, &got, &want)
			}
		})
	}
}

// TestCollateDependsOnTheSampleOnly: not on which samples come along, nor in
// which order.
func TestCollateDependsOnTheSampleOnly(t *testing.T) {
	graphs := molecules(40, 2)
	for _, g := range graphs {
		g.X = graph.Features{Width: tagWidth, Category: make([]int32, g.Nodes())}
	}
	collate := func(samples ...int) (views [][]viewOf) {
		col := Collator{Views: mixture()[:2], Seed: 3}
		var b graph.Batch
		col.Collate(&b, graphs, samples, 1)
		for v := range b.Views() {
			var of []viewOf
			for k := b.ViewPtr[v]; k < b.ViewPtr[v+1]; k++ {
				of = append(of, extract(&b, int(k), false))
			}
			views = append(views, of)
		}
		return views
	}
	a, b := collate(3, 1, 20), collate(7, 20, 30, 3)
	for v := range 2 {
		if !reflect.DeepEqual(a[v][0], b[v][3]) || !reflect.DeepEqual(a[v][2], b[v][1]) {
			t.Errorf("view %d of a sample depends on its batch", v)
		}
		if reflect.DeepEqual(a[v][0], a[v][2]) {
			t.Errorf("views %d of two samples are equal", v)
		}
	}
}

// TestViewsAreIndependent guards against the worst bug of this kind of code:
// views that share random state are equal, and training on them is a no-op.
func TestViewsAreIndependent(t *testing.T) {
	var graphs []*graph.Graph
	for range 200 {
		graphs = append(graphs, path(30))
	}
	collate := func(epoch int, views ...Augmentation) *graph.Batch {
		col := Collator{Views: views, Seed: 3, Workers: 2}
		b := new(graph.Batch)
		col.Collate(b, graphs, indices(len(graphs)), epoch)
		return b
	}
	nodes := func(b *graph.Batch, v, k int) []int { return extract(b, v*len(graphs)+k, false).nodes }
	for _, a := range []Augmentation{NodeDropping{0.2}, Choice{NodeDropping{0.2}}} {
		b, next := collate(0, a, a), collate(1, a, a)
		equal, overlap := 0, 0
		for k := range graphs {
			x, y, z := nodes(b, 0, k), nodes(b, 1, k), nodes(next, 0, k)
			for _, pair := range [][2][]int{{x, y}, {x, z}, {y, z}} {
				if slices.Equal(pair[0], pair[1]) {
					equal++
				}
			}
			for i := range 30 {
				if !slices.Contains(x, i) && !slices.Contains(y, i) {
					overlap++
				}
			}
		}
		if equal > 0 { // 1 in C(30, 6) = 593775 by chance
			t.Errorf("%d of %d pairs of views are equal", equal, 3*len(graphs))
		}
		// Both views drop 6 of 30 nodes: 1.2 common ones are expected, with
		// variance 6·0.2·0.8·24/29 = 0.794.
		if mean := float64(overlap) / 200; mean < 1.2-4*0.063 || mean > 1.2+4*0.063 {
			t.Errorf("views have %v dropped nodes in common on average, want 1.2", mean)
		}
	}
	// What another view does, and how much it draws, changes nothing.
	a, b := collate(0, NodeDropping{0.2}, NodeDropping{0.2}), collate(0, AttributeMasking{0.9}, NodeDropping{0.2})
	c := collate(0, NodeDropping{0.2})
	for k := range graphs {
		if !slices.Equal(nodes(a, 1, k), nodes(b, 1, k)) {
			t.Fatalf("view 1 of graph %d depends on view 0", k)
		}
		if !slices.Equal(nodes(a, 0, k), nodes(c, 0, k)) {
			t.Fatalf("view 0 of graph %d depends on view 1", k)
		}
	}
}

func TestCollateDoesNotAllocate(t *testing.T) {
	graphs := molecules(300, 3)
	for _, workers := range []int{1, 3} {
		col := Collator{Views: mixture(), Seed: 1, Workers: workers}
		var b graph.Batch
		samples := indices(300)
		// Which batch is the largest depends on the epoch: see all of them first.
		round := func() {
			for epoch := range 3 {
				col.Collate(&b, graphs, samples, epoch)
			}
		}
		round()
		// The runtime may make a goroutine's descriptor anew after a collection.
		if n := testing.AllocsPerRun(5, round); n > float64(workers-1) {
			t.Errorf("%d workers: %v allocations in 3 batches", workers, n)
		}
	}
}

func TestCollateEdgeCases(t *testing.T) {
	graphs := molecules(3, 4)
	col := Collator{Views: []Augmentation{Identity{}, Identity{}}, Workers: 4}
	var b graph.Batch
	col.Collate(&b, graphs, nil, 0)
	if err := b.Validate(); err != nil || b.Views() != 2 || b.Graphs() != 0 {
		t.Errorf("of no sample: %d views, %d graphs, %v", b.Views(), b.Graphs(), err)
	}
	col.Collate(&b, graphs, []int{2, 2}, 0)
	if b.Graphs() != 4 || b.Views() != 2 {
		t.Errorf("%d graphs in %d views, want 4 in 2", b.Graphs(), b.Views())
	}
	wantPanic(t, "augment: Collator without views", func() { new(Collator).Collate(&b, graphs, []int{0}, 0) })
}

// TestCollatePanicsInTheCaller: not on a goroutine that nobody can recover, and
// the collator works again afterwards.
func TestCollatePanicsInTheCaller(t *testing.T) {
	graphs := molecules(400, 5)
	odd := *graphs[0]
	odd.X = graph.Features{Width: 5, Category: make([]int32, odd.Nodes())}
	for _, at := range []int{1, 399} { // the caller's chunk, another's
		col := Collator{Views: []Augmentation{Identity{}}, Workers: 4}
		var got, want graph.Batch
		col.Collate(&want, graphs, indices(400), 0)
		spoilt := slices.Clone(graphs)
		spoilt[at] = &odd
		wantPanic(t, "graph: Batch: feature width 5 appended to a batch of width 37", func() {
			col.Collate(&got, spoilt, indices(400), 0)
		})
		col.Collate(&got, graphs, indices(400), 0)
		sameBatch(t, &got, &want)
	}
}
