package method_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// lookup is an encoder whose embedding of a node is its category's row of a table,
// so that losses can be written down by hand.
type lookup struct{ *nn.Embedding }

func (l lookup) Nodes(b *gnn.Batch, _ nn.Mode) *autodiff.Var {
	return l.Forward(b.Tape(), b.Host.X.Category)
}

const width = 4

func newLookup(be backend.Backend, categories int) lookup {
	return lookup{nn.NewEmbedding(be, "encoder.table", categories, width, newRand(1))}
}

// values returns the table's rows.
func (l lookup) values(be backend.Backend) func(i int32) []float64 {
	v := make([]float64, l.Table.Value.Len())
	be.Download(v, l.Table.Value)
	return func(i int32) []float64 { return v[int(i)*width : int(i+1)*width] }
}

// ring is a cycle of n nodes with a tail of the given length at node 0.
func ring(n, tail, categories int, seed uint64) *graph.Graph {
	rng := newRand(seed)
	rows := make([][]int32, n+tail)
	connect := func(i, j int) { rows[i], rows[j] = append(rows[i], int32(j)), append(rows[j], int32(i)) }
	for i := range n {
		connect(i, (i+1)%n)
	}
	for k := range tail {
		if k == 0 {
			connect(0, n)
		} else {
			connect(n+k-1, n+k)
		}
	}
	g := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: categories}}
	for i, row := range rows {
		slices.Sort(row)
		g.Adj = append(g.Adj, row...)
		g.Ptr = append(g.Ptr, int32(len(g.Adj)))
		g.X.Category = append(g.X.Category, rng.Int32N(int32(categories)))
		for _, j := range row {
			g.EdgeLabel = append(g.EdgeLabel, (int32(i)+j)%7)
		}
	}
	return g
}

func batchOf(t *testing.T, gs ...*graph.Graph) *graph.Batch {
	t.Helper()
	for _, g := range gs {
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
	}
	return graph.Collate(gs...)
}

func dot(a, b []float64) (s float64) {
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-12*(1+math.Abs(want))) {
		t.Errorf("%s: %.15g, want %.15g", what, got, want)
	}
}

// TestEdgePrediction: with as many pairs without edge as there can be, the loss
// does not depend on the draw.
func TestEdgePrediction(t *testing.T) {
	be := ref.New()
	e := newLookup(be, 5)
	row := e.values(be)
	// A ring of 5 has 5 edges and 5 pairs without.
	b := batchOf(t, ring(5, 0, 5, 1), ring(5, 0, 5, 2))
	var yes, no float64
	for g := range int32(2) {
		for i := range int32(5) {
			for j := range i {
				s := dot(row(b.X.Category[5*g+i]), row(b.X.Category[5*g+j]))
				if i-j == 1 || i-j == 4 {
					yes += softplus(-s) / 10
				} else {
					no += softplus(s) / 10
				}
			}
		}
	}
	tape := autodiff.NewTape(be)
	near(t, "loss", method.NewEdgePrediction(e).Loss(b, tape, newRand(3)).Float(), yes+no)
	// A triangle has no pair without an edge.
	b, yes = batchOf(t, ring(3, 0, 5, 1)), 0
	for i := range 3 {
		yes += softplus(-dot(row(b.X.Category[i]), row(b.X.Category[(i+1)%3]))) / 3
	}
	near(t, "loss of a triangle", method.NewEdgePrediction(e).Loss(b, tape, newRand(3)).Float(), yes)
	lonely := batchOf(t, &graph.Graph{Ptr: []int32{0, 0}, X: graph.Features{Width: 5, Category: []int32{1}}})
	if method.NewEdgePrediction(e).Loss(lonely, tape, newRand(3)) != nil {
		t.Error("a loss without an edge")
	}
	tape.Reset()
}

// TestEdgePredictionDraws: every edge counts once, and in every graph as many
// pairs without an edge, none of them twice. Where every node has a unit vector of
// its own, the gradient counts them.
func TestEdgePredictionDraws(t *testing.T) {
	be := ref.New()
	const n, rings = 12, 2 // a ring of 12 has 12 edges and 54 pairs without
	const nodes = n * rings
	table := make([]float64, nodes*nodes)
	for i := range nodes {
		table[i*nodes+i] = 1
	}
	e := lookup{&nn.Embedding{Table: autodiff.NewParam(be, "encoder.table", nodes, nodes, table)}}
	b := batchOf(t, ring(n, 0, nodes, 1), ring(n, 0, nodes, 2))
	for i := range b.X.Category {
		b.X.Category[i] = int32(i)
	}
	tape := autodiff.NewTape(be)
	defer tape.Reset()
	tape.Backward(method.NewEdgePrediction(e).Loss(b, tape, newRand(3)))
	be.Download(table, e.Table.Grad)
	drawn := [rings]int{}
	for i := range nodes {
		for j := range i {
			// A product of 0 has the slope ∓σ(0) divided by the number of pairs.
			count := int(math.Round(2 * nodes * table[i*nodes+j]))
			edge := i/n == j/n && (i-j == 1 || i-j == n-1)
			switch {
			case edge && count == -1, !edge && count == 0:
			case !edge && count == 1 && i/n == j/n:
				drawn[i/n]++
			default:
				t.Errorf("nodes %d and %d count %d times", i, j, count)
			}
		}
	}
	if drawn != [rings]int{n, n} {
		t.Errorf("%v pairs without an edge, want %d of each graph", drawn, n)
	}
}

func TestAtomMasking(t *testing.T) {
	be := ref.New()
	const categories = feature.AtomTypes * feature.ChiralityTags
	e := newLookup(be, categories)
	m := method.NewAtomMasking(be, feature.Hu, e, width, newRand(2))
	b := batchOf(t, ring(6, 0, categories/2, 1), ring(7, 7, categories/2, 2))
	b.X.Width = categories
	before := slices.Clone(b.X.Category)
	tape := autodiff.NewTape(be)
	loss := m.Loss(b, tape, newRand(3)).Float()

	const mask = 119 * feature.ChiralityTags
	w, bias := make([]float64, m.Output.W.Value.Len()), make([]float64, m.Output.B.Value.Len())
	be.Download(w, m.Output.W.Value)
	be.Download(bias, m.Output.B.Value)
	h := e.values(be)(mask) // all masked nodes look the same to this encoder
	logits, total := make([]float64, 119), 0.0
	for k := range logits {
		logits[k] = bias[k]
		for f := range width {
			logits[k] += h[f] * w[f*119+k]
		}
		total += math.Exp(logits[k])
	}
	want, hidden := 0.0, [2]int{}
	for i, c := range b.X.Category {
		if c != mask {
			if c != before[i] {
				t.Fatalf("node %d changed from %d to %d", i, before[i], c)
			}
			continue
		}
		hidden[min(i/6, 1)]++
		want += math.Log(total) - logits[before[i]/feature.ChiralityTags]
	}
	if hidden != [2]int{1, 3} { // ⌊0.15·6⌋+1 and ⌊0.15·14⌋+1
		t.Errorf("%v nodes are hidden, want 1 of 6 and 3 of 14", hidden)
	}
	near(t, "loss", loss, want/4)
	tape.Reset()
}

// TestMaskingIsUniform: every node is hidden as often as any other.
func TestMaskingIsUniform(t *testing.T) {
	const n, hidden, trials = 14, 3, 2000
	be := ref.New()
	e := newLookup(be, feature.AtomTypes*feature.ChiralityTags)
	m := method.NewAtomMasking(be, feature.Hu, e, width, newRand(2))
	tape, rng, times := autodiff.NewTape(be), newRand(3), [n]float64{}
	for range trials {
		b := batchOf(t, ring(n, 0, 3, 1))
		m.Loss(b, tape, rng)
		tape.Reset()
		for i, c := range b.X.Category {
			if c == m.Mask {
				times[i]++
			}
		}
	}
	const p = float64(hidden) / n
	for i, k := range times {
		if math.Abs(k-p*trials) > 5*math.Sqrt(trials*p*(1-p)) {
			t.Errorf("node %d is hidden %v times of %d, want about %v", i, k, trials, p*trials)
		}
	}
}

func TestEdgeMasking(t *testing.T) {
	be := ref.New()
	e := newLookup(be, 3)
	m := method.NewEdgeMasking(be, e, width, newRand(2))
	g := ring(5, 9, 3, 1)
	for k := range g.EdgeLabel {
		g.EdgeLabel[k] = []int32{0, 1, 2, 6, 4, 1 << 6, 3}[g.EdgeLabel[k]]
	}
	first := map[int32]int{0: 0, 1: 0, 2: 1, 6: 1, 4: 2, 1 << 6: 6, 3: 0}
	b := batchOf(t, g)
	before := slices.Clone(b.EdgeLabel)
	tape := autodiff.NewTape(be)
	loss := m.Loss(b, tape, newRand(3)).Float()
	w, bias := make([]float64, m.Output.W.Value.Len()), make([]float64, m.Output.B.Value.Len())
	be.Download(w, m.Output.W.Value)
	be.Download(bias, m.Output.B.Value)
	row := e.values(be)
	want, hidden := 0.0, 0
	for i := range int32(b.Nodes()) {
		for k := b.Ptr[i]; k < b.Ptr[i+1]; k++ {
			j := b.Adj[k]
			if b.EdgeLabel[k] != 1<<8 {
				if b.EdgeLabel[k] != before[k] {
					t.Fatalf("entry %d changed", k)
				}
				continue
			}
			hidden++
			if j > i {
				continue
			}
			logits, total := make([]float64, 7), 0.0
			for c := range logits {
				logits[c] = bias[c]
				for f := range width {
					logits[c] += (row(b.X.Category[i])[f] + row(b.X.Category[j])[f]) * w[f*7+c]
				}
				total += math.Exp(logits[c])
			}
			want += math.Log(total) - logits[first[before[k]]]
		}
	}
	if hidden != 2*3 { // ⌊0.15·14⌋+1 edges, both directions
		t.Errorf("%d entries are hidden, want 6", hidden)
	}
	near(t, "loss", loss, want/3)
	tape.Reset()
}

func TestInfomax(t *testing.T) {
	be := ref.New()
	e := newLookup(be, 5)
	m := method.NewInfomax(be, e, width, newRand(2))
	b := batchOf(t, ring(3, 0, 5, 1), ring(4, 2, 5, 2), ring(5, 0, 5, 3))
	row := e.values(be)
	w := make([]float64, width*width)
	be.Download(w, m.W.Value)
	summary := make([][]float64, 3)
	for g := range summary {
		mean := make([]float64, width)
		n := float64(b.GraphPtr[g+1] - b.GraphPtr[g])
		for i := b.GraphPtr[g]; i < b.GraphPtr[g+1]; i++ {
			for f, v := range row(b.X.Category[i]) {
				mean[f] += v / n
			}
		}
		summary[g] = make([]float64, width)
		for f := range width {
			for k := range width {
				summary[g][f] += w[k*width+f] / (1 + math.Exp(-mean[k]))
			}
		}
	}
	want := 0.0
	for g := range 3 {
		for i := b.GraphPtr[g]; i < b.GraphPtr[g+1]; i++ {
			h := row(b.X.Category[i])
			want += (softplus(-dot(h, summary[g])) + softplus(dot(h, summary[(g+1)%3]))) / float64(b.Nodes())
		}
	}
	tape := autodiff.NewTape(be)
	near(t, "loss", m.Loss(b, tape, nil).Float(), want)
	if m.Loss(batchOf(t, ring(3, 0, 5, 1)), tape, nil) != nil {
		t.Error("a loss without negatives")
	}
	tape.Reset()
}

// TestContextPrediction: on a ring of 16 every root sees the same: a neighbourhood
// of 11 nodes, a context of 6, the outermost two of the former among them.
func TestContextPrediction(t *testing.T) {
	be := ref.New()
	e, c := newLookup(be, 40), lookup{nn.NewEmbedding(be, "encoder.table", 40, width, newRand(9))}
	p := method.NewMoleculeContext(e, c, 5)
	// Categories are the places on the rings, 16 to 31 on the second; the third
	// graph is too small for a context.
	a, b2, small := ring(16, 0, 40, 1), ring(16, 0, 40, 1), ring(8, 0, 40, 1)
	for i := range int32(16) {
		a.X.Category[i], b2.X.Category[i] = i, 16+i
	}
	tape := autodiff.NewTape(be)
	got := p.Loss(batchOf(t, a, small, b2), tape, newRand(5)).Float()
	row, context := e.values(be), c.values(be)
	loss := func(r1, r2 int32) float64 {
		roots := [2]int32{r1, r2}
		var h, ctx [2][]float64
		for g, r := range roots {
			h[g], ctx[g] = row(int32(16*g)+r), make([]float64, width)
			for _, step := range []int32{5, 11} {
				for f, v := range context(int32(16*g) + (r+step)%16) {
					ctx[g][f] += v / 2
				}
			}
		}
		sum := 0.0
		for g := range 2 {
			sum += (softplus(-dot(h[g], ctx[g])) + softplus(dot(h[g], ctx[1-g]))) / 2
		}
		return sum
	}
	found := 0
	for r1 := range int32(16) {
		for r2 := range int32(16) {
			if math.Abs(loss(r1, r2)-got) < 1e-12 {
				found++
			}
		}
	}
	if found != 1 {
		t.Errorf("the loss %v is that of %d pairs of roots, want one", got, found)
	}
	if p.Loss(batchOf(t, a, small), tape, newRand(5)) != nil {
		t.Error("a loss without negatives")
	}
	tape.Reset()
	names := map[string]bool{}
	for _, x := range p.Parameters() {
		if names[x.Name] {
			t.Errorf("two parameters named %s", x.Name)
		}
		names[x.Name] = true
	}
}

// TestProteinContext: the first node, whatever the root, meets all nodes more than
// one step from the root: 13 of a ring of 16.
func TestProteinContext(t *testing.T) {
	be := ref.New()
	e, c := &recorder{lookup: newLookup(be, 40)}, lookup{nn.NewEmbedding(be, "encoder.table", 40, width, newRand(9))}
	p := method.NewProteinContext(e, c)
	a, b2, small := ring(16, 0, 40, 1), ring(16, 0, 40, 1), ring(3, 0, 40, 1)
	for i := range int32(16) {
		a.X.Category[i], b2.X.Category[i] = i, 16+i
	}
	tape := autodiff.NewTape(be)
	defer tape.Reset()
	got := p.Loss(batchOf(t, a, small, b2), tape, newRand(5)).Float()
	if n := e.batch.Nodes(); n != 32 {
		t.Errorf("the encoder gets %d nodes, want both rings", n)
	}
	row, context := e.values(be), c.values(be)
	meet := func(g, root int32) (h, ctx []float64) {
		ctx = make([]float64, width)
		for step := range int32(13) {
			for f, v := range context(16*g + (root+2+step)%16) {
				ctx[f] += v / 13
			}
		}
		return row(16 * g), ctx
	}
	found := 0
	for r1 := range int32(16) {
		for r2 := range int32(16) {
			h1, c1 := meet(0, r1)
			h2, c2 := meet(1, r2)
			loss := (softplus(-dot(h1, c1)) + softplus(-dot(h2, c2)) + softplus(dot(h1, c2)) + softplus(dot(h2, c1))) / 2
			if math.Abs(loss-got) < 1e-12 {
				found++
			}
		}
	}
	if found != 1 {
		t.Errorf("the loss %v is that of %d pairs of roots, want one", got, found)
	}
	// No root reaches the first node, or it reaches nothing.
	apart := &graph.Graph{Ptr: slices.Concat([]int32{0}, a.Ptr), X: graph.Features{Width: 40, Category: make([]int32, 17)}, EdgeLabel: a.EdgeLabel}
	for _, j := range a.Adj {
		apart.Adj = append(apart.Adj, j+1)
	}
	if p.Loss(batchOf(t, apart, apart, a), tape, newRand(5)) != nil {
		t.Error("a loss of graphs whose first node belongs to nothing")
	}
}

// recorder is a lookup that keeps what it was given last.
type recorder struct {
	lookup
	batch *graph.Batch
}

func (r *recorder) Nodes(b *gnn.Batch, mode nn.Mode) *autodiff.Var {
	r.batch = b.Host
	return r.lookup.Nodes(b, mode)
}

// TestContextPredictionParts: the encoders get the nodes of the neighbourhoods and
// of the contexts with the edges between them, of the present batch only.
func TestContextPredictionParts(t *testing.T) {
	be := ref.New()
	near, far := &recorder{lookup: newLookup(be, 40)}, &recorder{lookup: newLookup(be, 40)}
	p := method.NewMoleculeContext(near, far, 5)
	a, b2 := ring(16, 0, 40, 1), ring(16, 0, 40, 1)
	for _, g := range []*graph.Graph{a, b2} {
		for i := range int32(16) {
			g.X.Category[i] = i
		}
		// A node that no root reaches.
		g.Ptr, g.X.Category = append(g.Ptr, g.Ptr[16]), append(g.X.Category, 39)
	}
	tape := autodiff.NewTape(be)
	defer tape.Reset()
	for range 2 {
		if p.Loss(batchOf(t, a, b2), tape, newRand(5)) == nil {
			t.Fatal("a root without context; the test wants another seed")
		}
		for _, part := range []struct {
			name           string
			b              *graph.Batch
			nodes, entries int
		}{
			{"neighbourhood", near.batch, 11, 20}, // a path
			{"context", far.batch, 6, 8},          // two paths of three
		} {
			if err := part.b.Validate(); err != nil {
				t.Fatalf("%s: %v", part.name, err)
			}
			if part.b.Graphs() != 2 || part.b.Nodes() != 2*part.nodes || len(part.b.Adj) != 2*part.entries {
				t.Errorf("%s: %d graphs with %d nodes and %d entries, want 2 with %d and %d", part.name, part.b.Graphs(), part.b.Nodes(), len(part.b.Adj), 2*part.nodes, 2*part.entries)
			}
			for i := range int32(part.b.Nodes()) {
				for e := part.b.Ptr[i]; e < part.b.Ptr[i+1]; e++ {
					x, y := part.b.X.Category[i], part.b.X.Category[part.b.Adj[e]]
					if d := (x - y + 16) % 16; d != 1 && d != 15 || part.b.EdgeLabel[e] != (x+y)%7 {
						t.Errorf("%s: nodes %d and %d of the ring have an edge with label %d", part.name, x, y, part.b.EdgeLabel[e])
					}
				}
			}
		}
	}
}

// pretextTasks are all tasks on small encoders, with graphs for them.
var pretextTasks = map[string]struct {
	new    func(be backend.Backend) method.Task
	graphs func() []*graph.Graph
}{
	"edges": {func(be backend.Backend) method.Task { return method.NewEdgePrediction(chem(be, 1)) }, molecules},
	"atoms": {func(be backend.Backend) method.Task {
		return method.NewAtomMasking(be, feature.Hu, chem(be, 1), 3, newRand(3))
	}, molecules},
	"labels":  {func(be backend.Backend) method.Task { return method.NewEdgeMasking(be, bio(be), 3, newRand(3)) }, proteins},
	"infomax": {func(be backend.Backend) method.Task { return method.NewInfomax(be, chem(be, 1), 3, newRand(3)) }, molecules},
	"context": {func(be backend.Backend) method.Task { return method.NewMoleculeContext(chem(be, 1), chem(be, 2), 5) }, molecules},
	"centres": {func(be backend.Backend) method.Task { return method.NewProteinContext(bio(be), bio(be)) }, proteins},
}

func chem(be backend.Backend, seed uint64) *gnn.ChemGIN {
	return gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 3, Layers: 2}, newRand(seed))
}

func bio(be backend.Backend) *gnn.BioGIN {
	return gnn.NewBioGIN(be, gnn.BioGINConfig{Hidden: 3, Layers: 2}, newRand(1))
}

func molecules() []*graph.Graph {
	gs := []*graph.Graph{ring(14, 3, 30, 1), ring(6, 7, 30, 2), ring(3, 0, 30, 3), ring(5, 9, 30, 4)}
	for _, g := range gs {
		g.X.Width = feature.AtomTypes * feature.ChiralityTags
	}
	return gs
}

func proteins() []*graph.Graph {
	gs := []*graph.Graph{ring(6, 3, 1, 1), ring(4, 2, 1, 2), ring(3, 0, 1, 3)}
	for _, g := range gs {
		g.X.Width = gnn.NodeFlags
	}
	return gs
}

// TestModules: a task has the parameters and buffers of its encoders and its own,
// under names that differ, and training moves all running statistics.
func TestModules(t *testing.T) {
	be := ref.New()
	chemSize, bioSize := len(chem(be, 1).Parameters()), len(bio(be).Parameters())
	want := map[string]int{"edges": chemSize, "atoms": chemSize + 2, "labels": bioSize + 2, "infomax": chemSize + 1, "context": 2 * chemSize, "centres": 2 * bioSize}
	buffers := map[string]int{"labels": len(bio(be).Buffers()), "context": 2 * len(chem(be, 1).Buffers()), "centres": 2 * len(bio(be).Buffers())}
	for name, task := range pretextTasks {
		m := task.new(be)
		wantBuffers, special := buffers[name]
		if !special {
			wantBuffers = len(chem(be, 1).Buffers())
		}
		if p, b := len(m.Parameters()), len(m.Buffers()); p != want[name] || b != wantBuffers {
			t.Errorf("%s: %d parameters and %d buffers, want %d and %d", name, p, b, want[name], wantBuffers)
		}
		names := map[string]bool{}
		for _, p := range m.Parameters() {
			names[p.Name] = true
		}
		var before [][]float64
		for _, b := range m.Buffers() {
			names[b.Name] = true
			before = append(before, download(be, b.Value))
		}
		if len(names) != want[name]+wantBuffers {
			t.Errorf("%s: %d names for %d parameters and %d buffers", name, len(names), want[name], wantBuffers)
		}
		tape := autodiff.NewTape(be)
		m.Loss(batchOf(t, task.graphs()...), tape, newRand(7))
		tape.Reset()
		for i, b := range m.Buffers() {
			if slices.Equal(download(be, b.Value), before[i]) {
				t.Errorf("%s: %s did not move", name, b.Name)
			}
		}
	}
}

func download(be backend.Backend, x *tensor.Tensor) []float64 {
	v := make([]float64, x.Len())
	be.Download(v, x)
	return v
}

// TestInitialWeights: the output is PyTorch's linear layer, bias and all, and the
// discriminator uniform, both in ±1/√width.
func TestInitialWeights(t *testing.T) {
	be := ref.New()
	const width = 100
	m := method.NewAtomMasking(be, feature.Hu, newLookup(be, 1), width, newRand(2))
	for name, p := range map[string]*autodiff.Param{
		"weight": m.Output.W, "bias": m.Output.B, "discriminator": method.NewInfomax(be, newLookup(be, 1), width, newRand(2)).W,
	} {
		v := download(be, p.Value)
		if lo, hi := slices.Min(v), slices.Max(v); lo < -0.1 || lo > -0.09 || hi > 0.1 || hi < 0.09 {
			t.Errorf("%s: from %v to %v, want almost ±0.1", name, lo, hi)
		}
	}
}

// TestNothingToLearnFrom: batches that a task has no question about have no loss,
// and graphs without nodes, or without edges, do not matter.
func TestNothingToLearnFrom(t *testing.T) {
	be := ref.New()
	for name, task := range pretextTasks {
		m, x := task.new(be), task.graphs()[0].X
		empty := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: x.Width}}
		single := &graph.Graph{Ptr: []int32{0, 0}, X: graph.Features{Width: x.Width, Category: x.Category[:1]}}
		tape := autodiff.NewTape(be)
		if m.Loss(batchOf(t, empty, empty), tape, newRand(7)) != nil {
			t.Errorf("%s: a loss of no nodes", name)
		}
		// The tasks about nodes find something in a single one.
		if loss := m.Loss(batchOf(t, single, single), tape, newRand(7)); (loss != nil) != (name == "atoms" || name == "infomax") {
			t.Errorf("%s: of single nodes the loss is %v", name, loss)
		}
		loss := m.Loss(batchOf(t, append(task.graphs(), empty)...), tape, newRand(7))
		if loss == nil || math.IsNaN(loss.Float()) {
			t.Errorf("%s: an empty graph among others spoils the loss", name)
		}
		tape.Reset()
	}
}

func TestGradients(t *testing.T) {
	for name, task := range pretextTasks {
		t.Run(name, func(t *testing.T) {
			be := cpu.New(tensor.Float64)
			m := task.new(be)
			var visible []*autodiff.Param
			for _, p := range m.Parameters() {
				// A bias in front of a norm has no gradient but rounding.
				if p.Name[max(0, len(p.Name)-11):] != ".mlp.2.bias" && p.Name[max(0, len(p.Name)-11):] != ".mlp.0.bias" {
					visible = append(visible, p)
				}
			}
			if err := gradcheck.Params(be, func(tape *autodiff.Tape) *autodiff.Var {
				return m.Loss(batchOf(t, task.graphs()...), tape, newRand(7))
			}, visible); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLearns: thirty steps on one batch bring every loss down, the same way twice.
func TestLearns(t *testing.T) {
	for name, task := range pretextTasks {
		t.Run(name, func(t *testing.T) {
			run := func() (losses []float64) {
				be := cpu.New(tensor.Float32)
				m := task.new(be)
				steps := train.NewMinimizer(be, m, 0.02)
				for range 30 {
					metrics, err := steps.Minimize(func() *autodiff.Var {
						return m.Loss(batchOf(t, task.graphs()...), steps.Tape, newRand(7))
					})
					if err != nil {
						t.Fatal(err)
					}
					losses = append(losses, metrics["loss"])
				}
				return losses
			}
			first := run()
			if !(first[29] < 0.9*first[0]) {
				t.Errorf("the loss went from %v to %v", first[0], first[29])
			}
			if !slices.Equal(first, run()) {
				t.Error("a second run differs")
			}
		})
	}
}
