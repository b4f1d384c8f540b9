package gnn

import (
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// Environments is the memory of a [ChemGIN] in Eval mode: after l layers the row of a node is a
// function of its environment, what lies within l bonds of it, and of nothing else, so that an
// environment needs computing once. Molecules share most of theirs: of 250,000 drug-like ones a
// fifth of what five layers compute is new, and a third if 320 MB are remembered.
//
// Environments are told apart by tables: one of radius l is the number of the node's own of
// radius l-1 and, for each bond, its label and the number of the neighbour's. Bonds are in the
// order of labels and of hashes, which depend on the environments and not on when they were
// met; equal hashes of two only cost the order. So the bits of a vector depend on neither the batch
// nor the molecules before it.
//
// A number is given once: an environment that was forgotten gets a new one when it comes again, and
// so do the larger ones around it, whose old numbers then find nothing and are forgotten in turn.
type Environments struct {
	encoder *ChemGIN
	radii   []*radius // one for each number of layers, from 0
	sets    []int     // how many each is to have
	widths  []int     // of their rows
	columns int       // of the counts of labels of edges
	next    uint32    // the number of the next new environment
	batch   uint32    // that of the present batch
	around  []neighbour
	order   []int32 // the neighbours of the batch's nodes in their order, as in graph.Batch.Adj
	last    *radius // what the last layer reads, unless its rows are remembered: see sums
	touched uint32  // keeps the compiler from leaving out reads
}

// radius is the environments of a radius. A table has sets of [ways] slots, and an environment may be
// in any slot of the set that its hash chooses.
//
// Which of a set is forgotten follows Jaleel, Theobald, Steely and Emer (2010): one that
// is new is old until it comes again, so that what comes once does not drive out what comes often.
// What the present batch needs stays.
type radius struct {
	sets []set
	kept []environment  // [slots]
	rows *tensor.Tensor // [slots+room×Hidden, or wider, see sums]: of the slots, and then of what the batch finds no slot for

	// Of the nodes of the present batch: the numbers, hashes and keys of their environments, and
	// their rows.
	numbers []uint32
	hashes  []uint64
	keys    []key
	at      []int32
	// Of those that are new: where their rows go, and how many of these are none of the slots; the rows, of
	// the radius before, of the node and its neighbours, or the category; and the counts of labels of edges.
	fresh    []int32
	homeless int
	ptr, col []int32
	edges    []float32
}

// set is what finds environments in a set of slots. It is small enough for all sets to stay in the
// processor's cache.
type set struct {
	tags  uint64 // a byte of the hash of each slot
	ages  uint64 // a byte each: 0 to oldest, or a little more, with [needed] in batch
	batch uint32 // the last one that found something here
}

const (
	ways   = 8
	oldest = 7
	needed = 1 << 7
	each   = 0x0101010101010101 // times a byte: that in every slot
	bonds  = 4                  // of an environment that is remembered; carbon has no more
)

// key is the number of a node, of the radius before, and the labels of bonds and numbers of
// neighbours; of radius 0 it is the category, which is the node, and 1.
type key struct {
	node   uint32
	others [bonds]uint32
	labels [bonds]uint16
}

type environment struct {
	key    key
	number uint32
}

// neighbour is a bond, the node at its other end, and the hash of that.
type neighbour struct {
	label, node int32
	hash        uint64
}

// NewEnvironments returns an empty memory of so many bytes, about, or of the few that
// the atoms of one batch need. It is for the encoder's weights as they are: whoever
// changes them needs a new one. It is not safe for concurrent use.
func NewEnvironments(e *ChemGIN, bytes int) *Environments {
	m := &Environments{encoder: e, columns: e.Columns.EdgeColumns().Width()}
	radii := len(e.Convs) + 1
	if radii > 2 && e.reads()[0] == len(e.Convs) && !e.Config.Readout.reads(Reads{}).Host {
		m.last, radii = new(radius), radii-1
	}
	// There are few environments of small radii, and all come often.
	shares, total := make([]int, radii), 0
	for l := range radii {
		m.radii, m.widths = append(m.radii, new(radius)), append(m.widths, e.Config.Hidden)
		shares[l] = []int{1, 4, 16, 32}[min(l, 3)]
		if m.last != nil && l == radii-1 { // products, which are wider
			m.widths[l] = e.Convs[l].MLP.Layers[0].W.Value.Cols
			shares[l] *= 2
		}
		total += shares[l]
	}
	for l, share := range shares {
		m.sets = append(m.sets, max(bytes/total*share/(4*m.widths[l]+entryBytes)/ways, 256))
	}
	return m
}

// entryBytes is what a slot takes besides its row.
const entryBytes = int(unsafe.Sizeof(environment{}) + unsafe.Sizeof(set{})/ways)

// remembers reports whether vectors are computed by environment on an engine.
func remembers(be backend.Backend) bool {
	return backend.CapabilitiesOf(be).Rows != nil && be.Precision() == tensor.Float32
}

// embed returns the vectors [B×Width] of the graphs of a batch.
func (m *Environments) embed(t *autodiff.Tape, b *graph.Batch) *autodiff.Var {
	batch := NewBatch(t, b)
	batch.wantCategories("ChemGIN", m.encoder.Columns.NodeWidth())
	be, keeper := t.Backend(), backend.CapabilitiesOf(t.Backend()).Rows
	counts, want := b.EdgeCounts(m.encoder.Columns.EdgeColumns()), m.encoder.reads()
	var layers []pooled
	m.makeRoom(be, b.Nodes())
	for l, r := range m.radii {
		m.find(b, l, counts)
		if len(r.fresh) > 0 {
			m.compute(t, l, r, keeper)
		}
		if slices.Contains(want, l) {
			sum, largest := t.Alloc(b.Graphs(), r.rows.Cols), t.Alloc(b.Graphs(), r.rows.Cols)
			keeper.PoolRows(sum, largest, r.rows, t.Indices(r.at), batch.GraphPtr)
			layers = append(layers, batch.pooled(t.Const(sum), t.Const(largest)))
		}
	}
	if m.last != nil {
		layers = append(layers, batch.pooled(m.sums(batch, counts, keeper), nil))
	}
	return m.encoder.read(layers)
}

// sums returns the sums [B×Hidden] of the nodes of each graph after the last layer. Its second product and its norm
// are affine, so that the mean of nodes before them will do, and are computed once for a graph. The first product is kept
// with the environments of the radius before, as no readout wants their rows.
func (m *Environments) sums(b *Batch, counts []float32, keeper backend.RowKeeper) *autodiff.Var {
	r, l, layers := m.last, len(m.radii), m.encoder.Convs[len(m.radii)-1].MLP.Layers
	r.reset()
	m.order = m.order[:0]
	for i := range int32(b.Host.Nodes()) {
		for _, n := range m.neighbours(b.Host, m.radii[l-1], i) {
			m.order = append(m.order, n.node)
		}
		m.compose(b.Host, l, r, i)
	}
	r.edges = counts
	layer, edges := m.layer(b.tape, l, r)
	layer.E, layer.Graphs = edges.MatMul(b.tape.Param(layers[0].W)).Value(), b.GraphPtr
	layer.Y = b.tape.Alloc(b.Host.Graphs(), layers[0].W.Value.Cols)
	keeper.LayerRows(layer)
	mean := layers[1].Forward(b.pooled(b.tape.Const(layer.Y), nil)(readMean))
	return m.encoder.Norms[l-1].Forward(mean, nil, nn.Eval).MulCol(b.column(func(nodes float64) float64 { return nodes }))
}

// pooled returns how the nodes of each graph are put together, of which these are the sums and the largest.
func (b *Batch) pooled(sum, largest *autodiff.Var) pooled {
	return func(kind string) *autodiff.Var {
		switch kind {
		case readSum:
			return sum
		case readMean:
			return sum.MulCol(b.column(func(nodes float64) float64 { return 1 / max(1, nodes) }))
		}
		return largest
	}
}

// column returns what f has for the number of nodes of every graph [B×1].
func (b *Batch) column(f func(nodes float64) float64) *autodiff.Var {
	x, ptr := make([]float64, b.Host.Graphs()), b.Host.GraphPtr
	for g := range x {
		x[g] = f(float64(ptr[g+1] - ptr[g]))
	}
	return b.tape.Matrix(len(x), 1, x)
}

// makeRoom makes room for so many nodes.
func (m *Environments) makeRoom(be backend.Backend, nodes int) {
	room := nodes
	for _, r := range m.radii {
		if r.rows == nil || r.rows.Rows < len(r.kept)+nodes {
			room = nodes + nodes/2 + 1 // more than nodes, for one node too
		}
	}
	if room > nodes || uint64(m.next)+uint64(nodes*len(m.radii)) > math.MaxUint32 { // numbers begin anew
		m.Close(be)
		m.next = 1
		for l, r := range m.radii {
			r.sets, r.kept = make([]set, m.sets[l]), make([]environment, ways*m.sets[l])
			r.rows = be.Alloc(len(r.kept)+room, m.widths[l])
		}
	}
	m.batch++
	for _, r := range m.radii {
		r.reset()
	}
}

// reset forgets the nodes of a batch.
func (r *radius) reset() {
	r.numbers, r.hashes, r.keys, r.at = r.numbers[:0], r.hashes[:0], r.keys[:0], r.at[:0]
	r.fresh, r.homeless = r.fresh[:0], 0
	r.ptr, r.col, r.edges = append(r.ptr[:0], 0), r.col[:0], r.edges[:0]
}

// Close frees the memory; it can be used again.
func (m *Environments) Close(be backend.Backend) {
	for _, r := range m.radii {
		if r.rows != nil {
			be.Free(r.rows)
		}
		*r = radius{}
	}
}

// find finds the environments of radius l of all nodes, and notes what rows are made of that are new.
func (m *Environments) find(b *graph.Batch, l int, counts []float32) {
	r := m.radii[l]
	m.order = m.order[:0]
	r.keys = slices.Grow(r.keys, b.Nodes())[:b.Nodes()]
	for i := range r.keys {
		r.hashes = append(r.hashes, m.describe(b, l, int32(i), &r.keys[i]))
	}
	// What is not in the processor's cache is fetched for all nodes at once, not for one after the other.
	for _, hash := range r.hashes {
		at := r.set(hash)
		if alike := r.sets[at].alike(hash); alike != 0 {
			m.touched += r.kept[ways*at+bits.TrailingZeros64(alike)/8].number
		}
	}
	for i, hash := range r.hashes {
		slot := -1
		if int(b.Ptr[i+1]-b.Ptr[i]) <= bonds || l == 0 {
			var known bool
			if slot, known = r.place(hash, &r.keys[i], m.batch); known {
				r.numbers, r.at = append(r.numbers, r.kept[slot].number), append(r.at, int32(slot))
				continue
			}
		}
		if slot >= 0 {
			r.kept[slot] = environment{r.keys[i], m.next}
		} else {
			slot = len(r.kept) + r.homeless
			r.homeless++
		}
		r.numbers, r.at, r.fresh = append(r.numbers, m.next), append(r.at, int32(slot)), append(r.fresh, int32(slot))
		m.next++
		m.compose(b, l, r, int32(i))
		r.edges = append(r.edges, counts[i*m.columns:][:m.columns]...)
	}
}

// describe returns the hash of the environment of radius l of a node, sets its key, and notes the order of
// its neighbours. The key of one with too many bonds is of the first.
func (m *Environments) describe(b *graph.Batch, l int, i int32, k *key) (hash uint64) {
	if l == 0 {
		*k = key{node: uint32(b.X.Category[i]), others: [bonds]uint32{1}}
		return mix(mix(0) ^ uint64(k.node))
	}
	before := m.radii[l-1]
	*k, hash = key{node: before.numbers[i]}, mix(uint64(l))^before.hashes[i]
	for j, n := range m.neighbours(b, before, i) {
		if j < bonds {
			k.labels[j], k.others[j] = uint16(n.label), before.numbers[n.node]
		}
		hash = mix(mix(hash^uint64(n.label)) ^ n.hash)
		m.order = append(m.order, n.node)
	}
	return mix(hash)
}

// neighbours returns those of a node in their order; it is valid until the next call.
func (m *Environments) neighbours(b *graph.Batch, before *radius, i int32) []neighbour {
	m.around = m.around[:0]
	for k := b.Ptr[i]; k < b.Ptr[i+1]; k++ {
		n := neighbour{b.EdgeLabel[k], b.Adj[k], before.hashes[b.Adj[k]]}
		m.around = append(m.around, n)
		at := len(m.around) - 1
		for ; at > 0 && n.less(m.around[at-1]); at-- {
			m.around[at] = m.around[at-1]
		}
		m.around[at] = n
	}
	return m.around
}

// compose notes what the row of a node of radius l is made of.
func (m *Environments) compose(b *graph.Batch, l int, r *radius, i int32) {
	if l == 0 {
		r.col = append(r.col, b.X.Category[i])
	} else {
		before := m.radii[l-1]
		r.col = append(r.col, before.at[i])
		for _, node := range m.order[b.Ptr[i]:b.Ptr[i+1]] {
			r.col = append(r.col, before.at[node])
		}
	}
	r.ptr = append(r.ptr, int32(len(r.col)))
}

// set returns the number of the set of a hash.
func (r *radius) set(hash uint64) int {
	set, _ := bits.Mul64(hash, uint64(len(r.sets)))
	return int(set)
}

// alike returns the highest bits of the bytes of slots that may have a hash: of all that have its tag,
// and perhaps of one above such a slot.
func (s *set) alike(hash uint64) uint64 {
	differ := s.tags ^ uint64(byte(hash))*each
	return (differ - each) &^ differ & (needed * each)
}

// place returns the slot of an environment and that it is known, or the one to put it, or -1 if there is none.
func (r *radius) place(hash uint64, key *key, batch uint32) (slot int, known bool) {
	at := r.set(hash)
	s := &r.sets[at]
	if s.batch != batch {
		s.batch, s.ages = batch, s.ages&^(needed*each)
	}
	for alike := s.alike(hash); alike != 0; alike &= alike - 1 {
		k := bits.TrailingZeros64(alike) / 8
		if slot := ways*at + k; r.kept[slot].key == *key {
			s.ages = s.ages&^(0xff<<(8*k)) | needed<<(8*k)
			return slot, true
		}
	}
	victim, age := 0, -1
	for k := range ways {
		if a := int(int8(s.ages >> (8 * k))); a > age { // below 0 are those that are needed
			victim, age = k, a
		}
	}
	if age < 0 {
		return -1, false
	}
	if age < oldest {
		s.ages += uint64(oldest-age) * each
	}
	s.tags = s.tags&^(0xff<<(8*victim)) | uint64(byte(hash))<<(8*victim)
	s.ages = s.ages&^(0xff<<(8*victim)) | (needed|oldest-1)<<(8*victim)
	return ways*at + victim, false
}

func (n neighbour) less(o neighbour) bool {
	return n.label < o.label || n.label == o.label && n.hash < o.hash
}

// compute computes the rows of the new environments of radius l.
func (m *Environments) compute(t *autodiff.Tape, l int, r *radius, keeper backend.RowKeeper) {
	be, e := t.Backend(), m.encoder
	if l == 0 {
		x := e.sums(t, e.rowsFor(r.col, t.Indices)).Value()
		for k, row := range r.fresh {
			be.CopyBlock(r.rows, int(row), 0, x, k, 0, 1, e.Config.Hidden)
		}
		return
	}
	layer, edges := m.layer(t, l, r)
	first, second := e.Convs[l-1].MLP.Layers[0], e.Convs[l-1].MLP.Layers[1]
	scale, shift := e.Norms[l-1].Affine(t)
	layer.E, layer.W1, layer.W2, layer.B2 = edges.Value(), first.W.Value, second.W.Value, second.B.Value
	layer.Scale, layer.Shift, layer.ReLU = scale.Value(), shift.Value(), l < len(e.Convs)
	if m.last != nil && l == len(m.radii)-1 {
		layer.W = e.Convs[l].MLP.Layers[0].W.Value
	}
	layer.Y, layer.To = r.rows, r.fresh
	keeper.LayerRows(layer)
}

// layer returns layer l with what the rows of r are made of, and what it has for labels of edges.
func (m *Environments) layer(t *autodiff.Tape, l int, r *radius) (layer *backend.RowsLayer, edges *autodiff.Var) {
	before, conv, rows := m.radii[l-1].rows, m.encoder.Convs[l-1], len(r.ptr)-1
	counts := t.Alloc(rows, m.columns)
	t.Backend().Upload32(counts, r.edges)
	return &backend.RowsLayer{
		A: &backend.CSR{Rows: rows, Cols: before.Rows, Ptr: t.Indices(r.ptr), Col: t.Indices(r.col)}, X: before,
		C: counts, B1: conv.MLP.Layers[0].B.Value,
	}, autodiff.ConcatRows(conv.tables(t)...)
}

// mix is a step of SplitMix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
