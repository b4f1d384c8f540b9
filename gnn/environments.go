package gnn

import (
	"math"
	"math/bits"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// Environments is the memory of a [ChemGIN] in Eval mode: after l layers the row of a node is a
// function of its environment, what lies within l bonds of it, and of nothing else, so that an
// environment needs computing once. Molecules share most of theirs: of 250,000 drug-like ones a
// quarter of what five layers compute is new, and a third if 256 MB are remembered.
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
	columns int       // of the counts of labels of edges
	next    uint32    // the number of the next new environment
	around  []neighbour
	touched uint64 // keeps the compiler from leaving out reads
}

// radius is the environments of a radius. A table has sets of [ways] slots, and an environment may be
// in any slot of the set that its hash chooses.
//
// Which of a set is forgotten follows Jaleel, Theobald, Steely and Emer (2010): one that
// is new is old until it comes again, so that what comes once does not drive out what comes often.
type radius struct {
	slots int
	tags  []uint64 // [slots] hashes, with the age, 0 to oldest, in the last bits
	kept  []environment
	rows  *tensor.Tensor // [slots+room×Hidden]: of the slots, and then of what is new in the batch

	// Of the nodes of the present batch: the numbers, hashes and keys of their environments, and
	// their rows.
	numbers []uint32
	hashes  []uint64
	keys    []key
	at      []int32
	// Of those that have no rows yet: the number of the first, their slots, or -1; the rows, of the
	// radius before, of the node and its neighbours, or the category; and the counts of labels of edges.
	first    uint32
	slot     []int32
	ptr, col []int32
	edges    []float32
}

const (
	ways   = 8
	oldest = 7
	bonds  = 4 // of an environment that is remembered; carbon has no more
)

// key is the number of a node, of the radius before, and then labels of bonds and numbers of
// neighbours; of radius 0 it is the category and 1.
type key [1 + 2*bonds]uint32

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
	// There are few environments of small radii, and all come often.
	shares := []int{1, 4, 16}
	total := 0
	for l := range len(e.Convs) + 1 {
		if l >= len(shares) {
			shares = append(shares, 32)
		}
		total += shares[l]
	}
	for l := range len(e.Convs) + 1 {
		sets := bytes / total * shares[l] / (4*e.Config.Hidden + entryBytes) / ways
		m.radii = append(m.radii, &radius{slots: ways * max(sets, 256)})
	}
	return m
}

// entryBytes is what a slot takes besides its row.
const entryBytes = 48

// remembers reports whether vectors are computed by environment on an engine.
func remembers(be backend.Backend) bool {
	return backend.CapabilitiesOf(be).Rows != nil && be.Precision() == tensor.Float32
}

// embed returns the vectors [B×Width] of the graphs of a batch.
func (m *Environments) embed(t *autodiff.Tape, b *graph.Batch) *autodiff.Var {
	batch := NewBatch(t, b)
	batch.wantCategories("ChemGIN", m.encoder.Columns.Nodes())
	be, keeper := t.Backend(), backend.CapabilitiesOf(t.Backend()).Rows
	counts, want := b.EdgeCounts(m.encoder.Columns.EdgeColumns()), m.encoder.reads()
	var layers []pooled
	m.makeRoom(be, b.Nodes())
	for l, r := range m.radii {
		m.find(b, l, counts)
		if len(r.slot) > 0 {
			m.compute(t, l, keeper)
		}
		if slices.Contains(want, l) {
			layers = append(layers, r.pool(batch, keeper))
		}
	}
	h := m.encoder.read(layers)
	for _, r := range m.radii { // now nobody reads the rows that are forgotten
		for k, slot := range r.slot {
			if slot >= 0 && r.kept[slot].number != r.first+uint32(k) {
				r.slot[k] = -1
			}
		}
		keeper.StoreRows(r.rows, r.slot, r.slots)
	}
	return h
}

// pool puts the rows of each graph of a batch together.
func (r *radius) pool(b *Batch, keeper backend.RowKeeper) pooled {
	t, graphs := b.tape, b.GraphPtr.Len()-1
	sum, largest := t.Alloc(graphs, r.rows.Cols), t.Alloc(graphs, r.rows.Cols)
	keeper.PoolRows(sum, largest, r.rows, t.Indices(r.at), b.GraphPtr)
	return func(kind string) *autodiff.Var {
		switch kind {
		case readSum:
			return t.Const(sum)
		case readMean:
			return t.Const(sum).MulCol(b.inverseSizes())
		}
		return t.Const(largest)
	}
}

// inverseSizes returns the column [B×1] of 1/nodes of every graph; 1 for one without.
func (b *Batch) inverseSizes() *autodiff.Var {
	ptr := b.Host.GraphPtr
	sizes := make([]float64, b.Host.Graphs())
	for g := range sizes {
		sizes[g] = float64(max(1, ptr[g+1]-ptr[g]))
	}
	x := b.tape.Matrix(len(sizes), 1, sizes)
	b.tape.Backend().Unary(x.Value(), backend.Reciprocal, x.Value())
	return x
}

// makeRoom makes room for so many nodes.
func (m *Environments) makeRoom(be backend.Backend, nodes int) {
	room := nodes
	for _, r := range m.radii {
		if r.rows == nil || r.rows.Rows < r.slots+nodes {
			room = nodes + nodes/2 + 1 // more than nodes, for one node too
		}
	}
	if room > nodes || uint64(m.next)+uint64(nodes*len(m.radii)) > math.MaxUint32 { // numbers begin anew
		m.Close(be)
		m.next = 1
		for _, r := range m.radii {
			r.rows = be.Alloc(r.slots+room, m.encoder.Config.Hidden)
			r.tags, r.kept = make([]uint64, r.slots), make([]environment, r.slots)
			for k := range r.tags {
				r.tags[k] = oldest
			}
		}
	}
	for _, r := range m.radii {
		r.numbers, r.hashes, r.keys, r.at, r.slot = r.numbers[:0], r.hashes[:0], r.keys[:0], r.at[:0], r.slot[:0]
		r.ptr, r.col, r.edges = append(r.ptr[:0], 0), r.col[:0], r.edges[:0]
	}
}

// Close frees the memory; it can be used again.
func (m *Environments) Close(be backend.Backend) {
	for _, r := range m.radii {
		if r.rows != nil {
			be.Free(r.rows)
		}
		*r = radius{slots: r.slots}
	}
}

// find finds the environments of radius l of all nodes, and notes what rows are made of that are new.
func (m *Environments) find(b *graph.Batch, l int, counts []float32) {
	r := m.radii[l]
	r.first = m.next
	for i := range int32(b.Nodes()) {
		hash, key := m.describe(b, l, i)
		r.hashes, r.keys = append(r.hashes, hash), append(r.keys, key)
	}
	// What is not in the processor's cache is fetched for all nodes at once, not for one after the other.
	for _, hash := range r.hashes {
		m.touched += r.tags[r.set(hash)]
	}
	for _, hash := range r.hashes {
		first := r.set(hash)
		for k, tag := range r.tags[first:][:ways] {
			if tag|oldest == hash|oldest {
				m.touched += uint64(r.kept[int(first)+k].number)
			}
		}
	}
	for i, key := range r.keys {
		slot := int32(-1)
		if int(b.Ptr[i+1]-b.Ptr[i]) <= bonds || l == 0 {
			var known bool
			if slot, known = r.place(r.hashes[i], &key); known {
				r.note(r.kept[slot].number, slot)
				continue
			}
			r.kept[slot] = environment{key, m.next}
		}
		r.note(m.next, 0)
		m.next++
		r.slot = append(r.slot, slot)
		m.compose(b, l, int32(i))
		r.edges = append(r.edges, counts[i*m.columns:][:m.columns]...)
	}
}

// describe returns the hash and the key of the environment of radius l of a node. The key of one with
// too many bonds is of the first.
func (m *Environments) describe(b *graph.Batch, l int, i int32) (hash uint64, key key) {
	if l == 0 {
		category := uint64(b.X.Category[i])
		return mix(mix(0) ^ category), [len(key)]uint32{uint32(category) + 1}
	}
	before := m.radii[l-1]
	key[0], hash = before.numbers[i], mix(uint64(l))^before.hashes[i]
	for k, n := range m.neighbours(b, before, i) {
		if k < bonds {
			key[1+2*k], key[2+2*k] = uint32(n.label), before.numbers[n.node]
		}
		hash = mix(mix(hash^uint64(n.label)) ^ n.hash)
	}
	return mix(hash), key
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

// compose notes what the row of a node is made of.
func (m *Environments) compose(b *graph.Batch, l int, i int32) {
	r := m.radii[l]
	if l == 0 {
		r.col = append(r.col, b.X.Category[i])
	} else {
		before := m.radii[l-1]
		r.col = append(r.col, before.at[i])
		for _, n := range m.neighbours(b, before, i) {
			r.col = append(r.col, before.at[n.node])
		}
	}
	r.ptr = append(r.ptr, int32(len(r.col)))
}

// note notes the environment of the next node, and its row: that of a slot only from the next batch on.
func (r *radius) note(number uint32, slot int32) {
	if number >= r.first {
		slot = int32(r.slots) + int32(number-r.first)
	}
	r.numbers, r.at = append(r.numbers, number), append(r.at, slot)
}

// set returns the first slot of the set of a hash.
func (r *radius) set(hash uint64) int32 {
	set, _ := bits.Mul64(hash, uint64(r.slots/ways))
	return int32(set) * ways
}

// place returns the slot of an environment and that it is known, or the one to put it.
func (r *radius) place(hash uint64, key *key) (slot int32, known bool) {
	first := r.set(hash)
	tags := (*[ways]uint64)(r.tags[first:])
	hash &^= oldest
	victim, age := 0, uint64(0)
	for k, tag := range tags {
		if tag&^oldest == hash && r.kept[first+int32(k)].key == *key {
			tags[k] = hash
			return first + int32(k), true
		}
		if tag&oldest > age {
			victim, age = k, tag&oldest
		}
	}
	if age < oldest {
		for k := range tags {
			tags[k] += oldest - age
		}
	}
	tags[victim] = hash | (oldest - 1)
	return first + int32(victim), false
}

func (n neighbour) less(o neighbour) bool {
	if n.label != o.label {
		return n.label < o.label
	}
	return n.hash < o.hash
}

// compute computes the rows of the new environments of radius l, behind those of the slots.
func (m *Environments) compute(t *autodiff.Tape, l int, keeper backend.RowKeeper) {
	r, e := m.radii[l], m.encoder
	be, fresh := t.Backend(), len(r.slot)
	if l == 0 {
		be.CopyBlock(r.rows, r.slots, 0, e.sums(t, e.rowsFor(r.col, t.Indices)).Value(), 0, 0, fresh, e.Config.Hidden)
		return
	}
	before, conv := m.radii[l-1].rows, e.Convs[l-1]
	counts := t.Alloc(fresh, m.columns)
	be.Upload32(counts, r.edges)
	first, second := conv.MLP.Layers[0], conv.MLP.Layers[1]
	scale, shift := e.Norms[l-1].Affine(t)
	keeper.LayerRows(&backend.RowsLayer{
		A: &backend.CSR{Rows: fresh, Cols: before.Rows, Ptr: t.Indices(r.ptr), Col: t.Indices(r.col)}, X: before,
		C: counts, E: autodiff.ConcatRows(conv.tables(t)...).Value(),
		W1: first.W.Value, B1: first.B.Value, W2: second.W.Value, B2: second.B.Value,
		Scale: scale.Value(), Shift: shift.Value(), ReLU: l < len(e.Convs), Y: r.rows, From: r.slots,
	})
}

// mix is a step of SplitMix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
