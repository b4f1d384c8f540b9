package plan

import (
	"slices"
	"unsafe"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Environments computes the layers of a ChemGIN in evaluation and caches rows across
// batches. After l layers the row of a node is a function of its environment of radius l,
// that is, of the atoms and bonds within l bonds. Each environment is computed once while
// it stays in the cache. Molecules share most of them: for 250,000 drug-like molecules, a
// fifth of what five layers compute is new, and a third with a cache of 320 MB.
//
// Every environment that is met gets a number, and a [key] is made of numbers: that of the
// node's environment of the radius before and, for each bond, its label and the number of
// the neighbour's. Bonds are sorted by label and hash, which depend on the environments and
// not on when they were met; if two hashes are equal, only the order is lost. So the bits
// of a vector depend neither on the batch nor on the molecules before it.
//
// A number is given once. An environment that was forgotten gets a new number when it
// comes again. So do the larger ones around it; entries with the old numbers are never
// found again and are replaced in time.
//
// Several goroutines can use one cache, each by a view of its own ([Environments.Share]).
type Environments struct {
	encoder ChemGIN
	columns graph.EdgeColumns
	radii   []*radius // one for each number of layers, from 0
	// last is what the last layer reads if only its sums over graphs are wanted, see
	// [Environments.lastSums]; else nil.
	last *radius

	store *store
	view  int // its number in the store
	// Of the present batch:
	*generation
	span

	sorted  []neighbour
	order   []int32 // the sorted neighbours of the batch's nodes, laid out as in graph.Batch.Adj
	touched uint32  // keeps the compiler from dropping reads
}

// radius is the environments of one radius in the present batch.
type radius struct {
	// For each node: the number, hash and key of its environment, and
	// the position of its row.
	numbers   []uint32
	hashes    []uint64
	keys      []key
	positions []int32

	// For each row to compute: its position and the first node with its environment; in compressed
	// form, which rows of the radius before it is made of (its own and its neighbours', or for
	// radius 0 the category); and the counts of the labels of its edges.
	fresh    []int32
	nodes    []int32
	copies   map[uint32]int // see copyOf
	homeless int            // rows without a slot
	chunks   []int32        // of them
	ptr, col []int32
	edges    []float32
}

// neighbour is a bond, the node at its other end, and the hash of that node.
type neighbour struct {
	label, node int32
	hash        uint64
}

func (n neighbour) less(o neighbour) bool {
	return n.label < o.label || n.label == o.label && n.hash < o.hash
}

// NewEnvironments returns an empty cache of about the given size, or of the little that the
// atoms of one batch need. It caches rows for the present weights: a change of weights
// needs a new one. Its Layers are only called for the wanted layers; maxima says whether
// Layer.Max is read.
func NewEnvironments(
	e ChemGIN, columns graph.EdgeColumns, wanted []int, maxima bool, bytes int,
) *Environments {
	layers := len(e.MLPs)
	hidden := e.Norms[0].Gamma.Value.Cols
	count := layers + 1
	skipsLast := layers > 1 && wanted[0] == layers && !maxima
	if skipsLast {
		count = layers
	}
	// There are few environments of small radii, and all of them occur often. Those of the largest
	// radius occur least often.
	shares := make([]int, count)
	widths := make([]int, count)
	total := 0
	for l := range count {
		widths[l] = hidden
		shares[l] = []int{1, 4, 24, 40, 32}[min(l, 4)]
		if l == layers {
			shares[l] /= 2
		}
		if skipsLast && l == count-1 { // rows after the next product, which are wider
			widths[l] = e.MLPs[l].Layers[0].W.Value.Cols
			shares[l] *= 2
		}
		total += shares[l]
	}
	const entryBytes = int(unsafe.Sizeof(entry{}) + unsafe.Sizeof(set{})/ways)
	s := &store{shift: firstShift}
	for l, width := range widths {
		sets := bytes / total * shares[l] / (4*width + entryBytes) / ways
		s.shapes = append(s.shapes, shape{max(sets, smallestCache), width})
	}
	return newView(e, columns, s, skipsLast)
}

// newView returns a view of a store, with last if it is wanted.
func newView(e ChemGIN, columns graph.EdgeColumns, s *store, last bool) *Environments {
	m := &Environments{encoder: e, columns: columns, store: s, view: s.add()}
	for range s.shapes {
		m.radii = append(m.radii, &radius{copies: map[uint32]int{}})
	}
	if last {
		m.last = new(radius)
	}
	return m
}

// Share returns a view of the cache for another goroutine, on another engine of the same kind.
func (m *Environments) Share() *Environments {
	return newView(m.encoder, m.columns, m.store, m.last != nil)
}

// Layers implements [Plan]. It returns sums, means and, where a radius has rows, maxima; mode
// must be Eval.
func (m *Environments) Layers(b *Batch, _ nn.Mode, wanted []int, _ bool) (layers []Layer) {
	be := b.Tape.Backend()
	keeper := backend.CapabilitiesOf(be).Rows
	counts := b.Host.EdgeCounts(m.columns)
	m.generation, m.span = m.store.begin(m.view, be, b.Host.Nodes())
	complete := false
	defer func() { m.end(complete) }()
	for l, r := range m.radii {
		r.reset()
		m.find(b.Host, l, counts)
		if len(r.fresh) > 0 {
			m.compute(b.Tape, l, keeper)
		}
		if slices.Contains(wanted, l) {
			rows := m.levels[l].rows
			sums := b.Tape.Alloc(b.Host.Graphs(), rows.Cols)
			maxima := b.Tape.Alloc(b.Host.Graphs(), rows.Cols)
			keeper.PoolRows(sums, maxima, rows, b.Tape.Indices(r.positions), b.Graphs)
			layer := b.pooled(b.Tape.Const(sums))
			layer.Max = b.Tape.Const(maxima)
			layers = append(layers, layer)
		}
	}
	if m.last != nil {
		layers = append(layers, b.pooled(m.lastSums(b, counts, keeper)))
	}
	complete = true
	return layers
}

// lastSums returns the sums [B×Hidden] over the nodes of each graph after the last layer. The
// second product of this layer and its norm are affine, so they are computed once for each
// graph, of the mean of its nodes. The first product is kept with the environments of the
// radius before, because no readout wants their rows.
func (m *Environments) lastSums(b *Batch, counts []float32, keeper backend.RowKeeper) *autodiff.Var {
	t := b.Tape
	r := m.last
	l := len(m.radii)
	mlp := m.encoder.MLPs[l-1].Layers
	r.reset()
	m.order = m.order[:0]
	for i := range int32(b.Host.Nodes()) {
		for _, n := range m.neighbours(b.Host, m.radii[l-1], i) {
			m.order = append(m.order, n.node)
		}
		m.compose(b.Host, l, r, i)
	}
	r.edges = counts
	layer, tables := m.layer(t, l, r)
	layer.E = tables.MatMul(t.Param(mlp[0].W)).Value()
	layer.Graphs = b.Graphs
	layer.Y = t.Alloc(b.Host.Graphs(), mlp[0].W.Value.Cols)
	keeper.LayerRows(layer)
	mean := mlp[1].Forward(b.pooled(t.Const(layer.Y)).Mean)
	mean = m.encoder.Norms[l-1].Forward(mean, nil, nn.Eval)
	return mean.MulCol(b.ofNodes(func(nodes float64) float64 { return nodes }))
}

// pooled returns the layer with the given sums over the nodes of each graph.
func (b *Batch) pooled(sum *autodiff.Var) Layer {
	inverse := b.ofNodes(func(nodes float64) float64 { return 1 / max(1, nodes) })
	return Layer{Sum: sum, Mean: sum.MulCol(inverse)}
}

// ofNodes returns f of the number of nodes of every graph [B×1].
func (b *Batch) ofNodes(f func(nodes float64) float64) *autodiff.Var {
	ptr := b.Host.GraphPtr
	x := make([]float64, b.Host.Graphs())
	for g := range x {
		x[g] = f(float64(ptr[g+1] - ptr[g]))
	}
	return b.Tape.Matrix(len(x), 1, x)
}

// reset forgets the nodes of a batch.
func (r *radius) reset() {
	r.numbers = r.numbers[:0]
	r.hashes = r.hashes[:0]
	r.keys = r.keys[:0]
	r.positions = r.positions[:0]
	r.fresh = r.fresh[:0]
	r.nodes = r.nodes[:0]
	clear(r.copies)
	r.ptr = append(r.ptr[:0], 0)
	r.col = r.col[:0]
	r.edges = r.edges[:0]
}

// Close frees the part of the cache that this view made. No view may have a batch in work. All can
// be used again.
func (m *Environments) Close(be backend.Backend) { m.store.close(m.view, be) }

// find finds the environments of radius l of all nodes, and notes what the rows of new ones are
// made of.
func (m *Environments) find(b *graph.Batch, l int, counts []float32) {
	r := m.radii[l]
	m.order = m.order[:0]
	r.keys = slices.Grow(r.keys, b.Nodes())[:b.Nodes()]
	for i := range r.keys {
		r.hashes = append(r.hashes, m.describe(b, l, int32(i), &r.keys[i]))
	}
	m.place(b, l)
	width := m.columns.Width()
	for _, i := range r.nodes {
		m.compose(b, l, r, i)
		r.edges = append(r.edges, counts[int(i)*width:][:width]...)
	}
}

// place gives the environment of radius l of each node a number and its row a position.
func (m *Environments) place(b *graph.Batch, l int) {
	r := m.radii[l]
	v := m.levels[l]
	v.Lock()
	defer v.Unlock()
	// Fetching what is not in the processor's cache for all nodes at once, and not for one
	// after the other, hides the wait.
	for _, hash := range r.hashes {
		m.touched += v.touch(hash)
	}
	for i, hash := range r.hashes {
		slot := -1
		found := false
		if int(b.Ptr[i+1]-b.Ptr[i]) <= maxBonds || l == 0 {
			slot, found = v.place(hash, &r.keys[i], m.span)
		}
		number := v.next
		switch {
		case found:
			e := &v.entries[slot]
			number = e.number
			if e.filled != m.batch && !m.ended(e.filled) {
				slot, found = r.copyOf(number, v)
			}
		case slot >= 0:
			v.entries[slot] = entry{r.keys[i], number, m.batch}
			v.next++
		default:
			slot = r.withoutSlot(v)
			v.next++
		}
		r.numbers = append(r.numbers, number)
		r.positions = append(r.positions, int32(slot))
		if !found {
			r.fresh = append(r.fresh, int32(slot))
			r.nodes = append(r.nodes, int32(i))
		}
	}
}

// copyOf returns the position of the batch's own row of an environment whose row in the cache another
// batch computes, and whether the batch had it already.
func (r *radius) copyOf(number uint32, v *level) (position int, found bool) {
	position, found = r.copies[number]
	if !found {
		position = r.withoutSlot(v)
		r.copies[number] = position
	}
	return position, found
}

// withoutSlot returns the position of one more row without a slot.
func (r *radius) withoutSlot(v *level) int {
	used := r.homeless % chunk
	if used == 0 {
		end := len(v.spare) - 1
		r.chunks = append(r.chunks, v.spare[end])
		v.spare = v.spare[:end]
	}
	r.homeless++
	return int(r.chunks[len(r.chunks)-1]) + used
}

// end ends the batch. If it is not complete, as after a panic, the cache may lack rows of it.
func (m *Environments) end(complete bool) {
	for l, r := range m.radii {
		v := m.levels[l]
		v.Lock()
		v.spare = append(v.spare, r.chunks...)
		v.Unlock()
		r.chunks = r.chunks[:0]
		r.homeless = 0
	}
	m.store.end(m.view, m.generation, complete)
}

// describe returns the hash of the environment of radius l of node i, sets its key, and appends
// its neighbours to m.order. With too many bonds, the key has the first ones only.
func (m *Environments) describe(b *graph.Batch, l int, i int32, k *key) (hash uint64) {
	if l == 0 {
		*k = key{node: uint32(b.X.Category[i]), neighbours: [maxBonds]uint32{1}}
		return mix(mix(0) ^ uint64(k.node))
	}
	previous := m.radii[l-1]
	*k = key{node: previous.numbers[i]}
	hash = mix(uint64(l)) ^ previous.hashes[i]
	for j, n := range m.neighbours(b, previous, i) {
		if j < maxBonds {
			k.labels[j] = uint16(n.label)
			k.neighbours[j] = previous.numbers[n.node]
		}
		hash = mix(mix(hash^uint64(n.label)) ^ n.hash)
		m.order = append(m.order, n.node)
	}
	return mix(hash)
}

// neighbours returns the sorted neighbours of node i, valid until the next call.
func (m *Environments) neighbours(b *graph.Batch, previous *radius, i int32) []neighbour {
	m.sorted = m.sorted[:0]
	for k := b.Ptr[i]; k < b.Ptr[i+1]; k++ {
		n := neighbour{b.EdgeLabel[k], b.Adj[k], previous.hashes[b.Adj[k]]}
		m.sorted = append(m.sorted, n)
		j := len(m.sorted) - 1
		for ; j > 0 && n.less(m.sorted[j-1]); j-- {
			m.sorted[j] = m.sorted[j-1]
		}
		m.sorted[j] = n
	}
	return m.sorted
}

// compose notes what the row of node i after layer l is made of.
func (m *Environments) compose(b *graph.Batch, l int, r *radius, i int32) {
	if l == 0 {
		r.col = append(r.col, b.X.Category[i])
	} else {
		previous := m.radii[l-1]
		r.col = append(r.col, previous.positions[i])
		for _, node := range m.order[b.Ptr[i]:b.Ptr[i+1]] {
			r.col = append(r.col, previous.positions[node])
		}
	}
	r.ptr = append(r.ptr, int32(len(r.col)))
}

// compute computes the rows of the new environments of radius l.
func (m *Environments) compute(t *autodiff.Tape, l int, keeper backend.RowKeeper) {
	be := t.Backend()
	e := &m.encoder
	r := m.radii[l]
	if l == 0 {
		x := e.Atoms(t, r.col).Value()
		for k, row := range r.fresh {
			be.CopyBlock(m.levels[0].rows, int(row), 0, x, k, 0, 1, x.Cols)
		}
		return
	}
	layer, tables := m.layer(t, l, r)
	layer.E = tables.Value()
	first := e.MLPs[l-1].Layers[0]
	second := e.MLPs[l-1].Layers[1]
	layer.W1 = first.W.Value
	layer.W2 = second.W.Value
	layer.B2 = second.B.Value
	scale, shift := e.Norms[l-1].Affine(t)
	layer.Scale = scale.Value()
	layer.Shift = shift.Value()
	layer.ReLU = l < len(e.MLPs)
	if m.last != nil && l == len(m.radii)-1 {
		layer.W = e.MLPs[l].Layers[0].W.Value
	}
	layer.Y = m.levels[l].rows
	layer.To = r.fresh
	keeper.LayerRows(layer)
}

// layer returns layer l with its inputs for the rows of r, and its tables of edges under one
// another.
func (m *Environments) layer(
	t *autodiff.Tape, l int, r *radius,
) (layer *backend.RowsLayer, tables *autodiff.Var) {
	previous := m.levels[l-1].rows
	rows := len(r.ptr) - 1
	counts := t.Alloc(rows, m.columns.Width())
	t.Backend().Upload32(counts, r.edges)
	a := &backend.CSR{
		Rows: rows,
		Cols: previous.Rows,
		Ptr:  t.Indices(r.ptr),
		Col:  t.Indices(r.col),
	}
	layer = &backend.RowsLayer{
		A:  a,
		X:  previous,
		C:  counts,
		B1: m.encoder.MLPs[l-1].Layers[0].B.Value,
	}
	return layer, autodiff.ConcatRows(m.encoder.edgeTables(t, l-1)...)
}
