package gnn

import (
	"math"
	"math/bits"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// Environments is the memory of a [ChemGIN] in Eval mode: after l layers the row of a node is a
// function of its environment, what lies within l bonds of it, and of nothing else, so that an
// environment needs computing once. Molecules share most of theirs: of 250,000 drug-like ones a
// quarter of what five layers compute is new.
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

	// Of the nodes of the present batch: the numbers and hashes of their environments, and
	// their rows.
	numbers []uint32
	hashes  []uint64
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

// environment is a node's number and then labels of bonds and numbers of neighbours; of radius 0 it is
// the category and 1.
type environment struct {
	key    [1 + 2*bonds]uint32
	number uint32
}

// neighbour is a bond and what is at its other end.
type neighbour struct {
	label  int32
	number uint32
	hash   uint64
	row    int32
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

// remembers reports whether vectors are computed by environment on an engine: where
// layers by color are (see equal.go), in float32.
func remembers(be backend.Backend) bool {
	norm := backend.CapabilitiesOf(be).Norm
	if norm == nil || be.Precision() != tensor.Float32 {
		return false
	}
	_, weights := norm.NormOperands()
	return weights
}

// embed returns the vectors [B×Width] of the graphs of a batch.
func (m *Environments) embed(t *autodiff.Tape, b *graph.Batch) *autodiff.Var {
	batch := NewBatch(t, b)
	batch.wantCategories("ChemGIN", m.encoder.Columns.Nodes())
	counts := b.EdgeCounts(m.encoder.Columns.EdgeColumns())
	var xs []*autodiff.Var
	want := m.encoder.reads()
	be, hidden := t.Backend(), m.encoder.Config.Hidden
	m.makeRoom(be, b.Nodes())
	for l, r := range m.radii {
		r.first = m.next
		for i := range int32(b.Nodes()) {
			m.find(b, l, i, counts)
		}
		if fresh := len(r.slot); fresh > 0 {
			be.CopyBlock(r.rows, r.slots, 0, m.compute(t, l, fresh).Value(), 0, 0, fresh, hidden)
		}
		if slices.Contains(want, l) {
			xs = append(xs, t.Const(r.rows).GatherRows(r.at))
		}
	}
	h := m.encoder.read(batch, xs)
	for _, r := range m.radii { // now nobody reads the rows that are forgotten
		for k, slot := range r.slot {
			if slot >= 0 && r.kept[slot].number == r.first+uint32(k) {
				be.CopyBlock(r.rows, int(slot), 0, r.rows, r.slots+k, 0, 1, hidden)
			}
		}
	}
	return h
}

// makeRoom makes room for so many nodes.
func (m *Environments) makeRoom(be backend.Backend, nodes int) {
	room := nodes
	for _, r := range m.radii {
		if r.rows == nil || r.rows.Rows < r.slots+nodes {
			room = nodes + nodes/2
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
		r.numbers, r.hashes, r.at, r.slot = r.numbers[:0], r.hashes[:0], r.at[:0], r.slot[:0]
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

// find finds the environment of radius l of a node, and notes what a row is made of if it is new.
func (m *Environments) find(b *graph.Batch, l int, i int32, counts []float32) {
	r := m.radii[l]
	number, row := uint32(b.X.Category[i])+1, b.X.Category[i]
	hash := mix(uint64(l)) ^ uint64(row)
	m.around = m.around[:0]
	if l > 0 {
		before := m.radii[l-1]
		number, row = before.numbers[i], before.at[i]
		hash = mix(uint64(l)) ^ before.hashes[i]
		for k := b.Ptr[i]; k < b.Ptr[i+1]; k++ {
			j := b.Adj[k]
			n := neighbour{b.EdgeLabel[k], before.numbers[j], before.hashes[j], before.at[j]}
			m.around = append(m.around, n)
			at := len(m.around) - 1
			for ; at > 0 && n.less(&m.around[at-1]); at-- {
				m.around[at] = m.around[at-1]
			}
			m.around[at] = n
		}
	}
	e := environment{key: [1 + 2*bonds]uint32{number}}
	for k, n := range m.around {
		if k < bonds {
			e.key[1+2*k], e.key[2+2*k] = uint32(n.label), n.number
		}
		hash = mix(mix(hash^uint64(n.label)) ^ n.hash)
	}
	hash = mix(hash)
	slot := int32(-1)
	if len(m.around) <= bonds {
		var known bool
		if slot, known = r.place(hash, &e.key); known {
			r.note(r.kept[slot].number, hash, slot)
			return
		}
		e.number = m.next
		r.kept[slot] = e
	}
	r.note(m.next, hash, int32(r.slots+len(r.slot)))
	m.next++
	r.slot, r.col = append(r.slot, slot), append(r.col, row)
	for _, n := range m.around {
		r.col = append(r.col, n.row)
	}
	r.ptr = append(r.ptr, int32(len(r.col)))
	r.edges = append(r.edges, counts[int(i)*m.columns:][:m.columns]...)
}

// note notes the environment of the next node and its row, for which that of a slot stands from the next
// batch on.
func (r *radius) note(number uint32, hash uint64, row int32) {
	if number >= r.first {
		row = int32(r.slots) + int32(number-r.first)
	}
	r.numbers, r.hashes, r.at = append(r.numbers, number), append(r.hashes, hash), append(r.at, row)
}

// place returns the slot of an environment and that it is known, or the one to put it.
func (r *radius) place(hash uint64, key *[1 + 2*bonds]uint32) (slot int32, known bool) {
	set, _ := bits.Mul64(hash, uint64(r.slots/ways))
	first := int32(set) * ways
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

func (n *neighbour) less(o *neighbour) bool {
	if n.label != o.label {
		return n.label < o.label
	}
	return n.hash < o.hash
}

// compute returns the rows [fresh×Hidden] of the new environments of radius l.
func (m *Environments) compute(t *autodiff.Tape, l, fresh int) *autodiff.Var {
	r, e := m.radii[l], m.encoder
	if l == 0 {
		return e.sums(t, e.rowsFor(r.col, t.Indices))
	}
	before := m.radii[l-1].rows
	sum := &autodiff.Sparse{A: &backend.CSR{Rows: fresh, Cols: before.Rows, Ptr: t.Indices(r.ptr), Col: t.Indices(r.col)}}
	counts := t.Alloc(fresh, m.columns)
	t.Backend().Upload32(counts, r.edges)
	x := t.Const(before).SpMM(sum, 0).Add(e.Convs[l-1].edges(t.Const(counts)))
	groups := t.Indices([]int32{0, int32(fresh)})
	return e.finish(l-1, x, autodiff.Norm{Groups: groups}, groups, nn.Eval)
}

// mix is a step of SplitMix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
