package gnn

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// Environments is the memory of a [ChemGIN] in Eval mode: after l layers the row of a node is a
// function of its environment, what lies within l bonds of it, and of nothing else, so that an
// environment needs computing once. Molecules share most of theirs: of 50,000 drug-like ones a
// third of what five layers compute is new.
//
// Environments are told apart by tables: one of radius l is the number of the node's own of
// radius l-1 and, for each bond, its label and the number of the neighbour's. Bonds are in the
// order of labels and of hashes, which depend on the environments and not on when they were
// met; equal hashes of two only cost the order. So the bits of a vector depend on neither the batch
// nor the molecules before it.
//
// A radius whose table is full starts anew, and with it all larger ones.
type Environments struct {
	encoder *ChemGIN
	radii   []*radius // one for each number of layers, from 0
	columns int       // of the counts of labels of edges

	key    []byte
	around []neighbour
}

// radius is the environments of a radius, by number.
type radius struct {
	limit  int            // environments, unless a batch alone has more
	rows   *tensor.Tensor // [capacity×Hidden]
	hashes []uint64
	keys   []byte
	ends   []uint32 // of the keys
	slots  []int32  // of a hash table with open addressing: number+1, or 0

	of []int32 // the environments of the nodes of the present batch
	// Of those that have no rows yet: the numbers, of the radius before, of the node and its
	// neighbours, or the category; and the counts of labels of edges.
	ptr, col []int32
	edges    []float32
}

// neighbour is a bond and an environment at its other end.
type neighbour struct {
	label  int32
	number int32
	hash   uint64
}

// NewEnvironments returns an empty memory of so many bytes, about; with 0 nothing is remembered
// from one batch to the next. It is for the encoder's weights as they are: whoever
// changes them needs a new one. It is not safe for concurrent use.
func NewEnvironments(e *ChemGIN, bytes int) *Environments {
	m := &Environments{encoder: e, columns: e.Columns.EdgeColumns().Width()}
	limit := bytes / max(1, len(e.Convs)-1) / (4*e.Config.Hidden + entryBytes)
	for l := range len(e.Convs) + 1 {
		m.radii = append(m.radii, &radius{limit: limit})
		if l < 2 { // there are few of them
			m.radii[l].limit = limit / 16
		}
	}
	return m
}

// entryBytes is about what an environment takes besides its row.
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
	m.makeRoom(t.Backend(), b.Nodes())
	for l, r := range m.radii {
		known := len(r.hashes)
		for i := range int32(b.Nodes()) {
			r.of = append(r.of, m.find(b, l, i, counts))
		}
		if fresh := len(r.hashes) - known; fresh > 0 {
			t.Backend().CopyBlock(r.rows, known, 0, m.compute(t, l, fresh).Value(), 0, 0, fresh, m.encoder.Config.Hidden)
		}
		if slices.Contains(want, l) {
			xs = append(xs, t.Const(r.rows).GatherRows(r.of))
		}
	}
	return m.encoder.read(batch, xs)
}

// makeRoom forgets what has to be forgotten for the environments of so many nodes, and makes
// room for them.
func (m *Environments) makeRoom(be backend.Backend, nodes int) {
	full := false
	for _, r := range m.radii {
		r.of, r.ptr, r.col, r.edges = r.of[:0], append(r.ptr[:0], 0), r.col[:0], r.edges[:0]
		if full = full || r.rows == nil || len(r.hashes)+nodes > r.rows.Rows; !full {
			continue
		}
		r.hashes, r.keys, r.ends = r.hashes[:0], r.keys[:0], r.ends[:0]
		clear(r.slots)
		if want := max(r.limit, nodes); r.rows == nil || r.rows.Rows < want {
			if r.rows != nil {
				be.Free(r.rows)
			}
			r.rows = be.Alloc(want, m.encoder.Config.Hidden)
			size := 2
			for size < 2*want {
				size *= 2
			}
			r.slots = make([]int32, size)
		}
	}
}

// Close frees the memory; it can be used again.
func (m *Environments) Close(be backend.Backend) {
	for _, r := range m.radii {
		if r.rows != nil {
			be.Free(r.rows)
		}
		*r = radius{limit: r.limit}
	}
}

// find returns the number of the environment of radius l of a node, and notes what a row is
// made of if it is new.
func (m *Environments) find(b *graph.Batch, l int, i int32, counts []float32) int32 {
	r, own := m.radii[l], b.X.Category[i]
	hash := mix(uint64(l)) ^ uint64(own)
	m.around = m.around[:0]
	if l > 0 {
		before := m.radii[l-1]
		own = before.of[i]
		hash = mix(uint64(l)) ^ before.hashes[own]
		for k := b.Ptr[i]; k < b.Ptr[i+1]; k++ {
			j := before.of[b.Adj[k]]
			m.around = append(m.around, neighbour{b.EdgeLabel[k], j, before.hashes[j]})
			for at := len(m.around) - 1; at > 0 && m.around[at].less(m.around[at-1]); at-- {
				m.around[at], m.around[at-1] = m.around[at-1], m.around[at]
			}
		}
	}
	m.key = binary.AppendUvarint(m.key[:0], uint64(own))
	for _, n := range m.around {
		m.key = binary.AppendUvarint(binary.AppendVarint(m.key, int64(n.label)), uint64(n.number))
		hash = mix(mix(hash^uint64(n.label)) ^ n.hash)
	}
	hash = mix(hash)
	slot := hash & uint64(len(r.slots)-1)
	for ; r.slots[slot] != 0; slot = (slot + 1) & uint64(len(r.slots)-1) {
		if k := r.slots[slot] - 1; r.hashes[k] == hash && bytes.Equal(r.key(k), m.key) {
			return k
		}
	}
	number := int32(len(r.hashes))
	r.slots[slot] = number + 1
	r.hashes, r.keys = append(r.hashes, hash), append(r.keys, m.key...)
	r.ends = append(r.ends, uint32(len(r.keys)))
	r.col = append(r.col, own)
	for _, n := range m.around {
		r.col = append(r.col, n.number)
	}
	r.ptr = append(r.ptr, int32(len(r.col)))
	r.edges = append(r.edges, counts[int(i)*m.columns:][:m.columns]...)
	return number
}

// key returns the key of environment k.
func (r *radius) key(k int32) []byte {
	if k == 0 {
		return r.keys[:r.ends[0]]
	}
	return r.keys[r.ends[k-1]:r.ends[k]]
}

func (n neighbour) less(o neighbour) bool {
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
