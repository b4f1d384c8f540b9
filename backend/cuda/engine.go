package cuda

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// engine implements [backend.Backend] on a driver. Its methods are in
// primitives.go and fused_*.go; here are memory, transfers and recording.
type engine struct {
	d         driver
	precision tensor.Precision
	bytes     int // of an element

	heap   heap
	main   *pool // where tensors come from, but while a step is recorded
	pool   *pool
	pools  []*pool // with live tensors or a step: main is the first
	step   *step   // being recorded
	inRun  bool    // within the driver's capture
	poison bool    // debug mode

	staging    [stagingSlots]slot
	stagingNow int
	late       []*slot // free slots of Fetch
	lateAll    []*slot
	words      [32]uint64 // parameters of the launch in progress
	moves      int        // bytes of its operands
	work       backend.Work
	closed     bool
}

const (
	stagingSlots = 4
	stagingBytes = 4 << 20
	lateBytes    = 256
)

// A slot is pinned host memory and the event behind the last copy from or to it. Those
// of uploads have as much on the device: copies arrive there while the stream is at work
// on what it had before, and the stream only moves them where they belong.
type slot struct {
	mem  []byte
	at   pointer
	done event
	busy bool
}

// A pool is where tensors of one kind of life come from: those of a recorded
// step have fixed places, which nobody else may use until the step is closed.
type pool struct {
	arena  backend.Arena
	made   int // bytes
	closed bool
}

type buffer struct {
	at       pointer
	elements int
	home     *pool
}

func open(d driver, p tensor.Precision) (*engine, error) {
	e := &engine{d: d, precision: p, bytes: p.Bytes()}
	e.heap.alloc, e.heap.least = d.alloc, pieceBytes
	e.main = e.newPool()
	e.pool = e.main
	e.poison = backend.Debug()
	for i := range e.staging {
		s := &e.staging[i]
		err := e.newSlot(s, stagingBytes)
		if err == nil {
			s.at, err = e.heap.take(stagingBytes)
		}
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	return e, nil
}

func (e *engine) Name() string                { return e.d.name() }
func (e *engine) Precision() tensor.Precision { return e.precision }

// check panics with *[backend.Error] if the device failed.
func (e *engine) check(op string, err error) {
	if err != nil {
		e.fail(op, err)
	}
}

func (e *engine) fail(op string, err error) {
	panic(&backend.Error{Backend: e.Name(), Op: op, Err: err})
}

// heap carves device memory from large pieces: a driver's allocation takes as
// long as many kernels and waits for the device.
type heap struct {
	alloc  func(bytes int) (pointer, error)
	least  int // bytes of a piece
	pieces []pointer
	at     pointer // the rest of the newest piece
	left   int
	spare  map[int][]pointer // given back, by size
}

const (
	pieceBytes = 32 << 20
	alignment  = 256
)

func round(bytes int) int { return (bytes + alignment - 1) &^ (alignment - 1) }

func (h *heap) has(bytes int) bool {
	return round(bytes) <= h.left || len(h.spare[round(bytes)]) > 0
}

func (h *heap) take(bytes int) (pointer, error) {
	bytes = round(bytes)
	if s := h.spare[bytes]; len(s) > 0 {
		h.spare[bytes] = s[:len(s)-1]
		return s[len(s)-1], nil
	}
	if err := h.reserve(bytes); err != nil {
		return 0, err
	}
	p := h.at
	h.at += pointer(bytes)
	h.left -= bytes
	return p, nil
}

// reserve makes sure that the newest piece has so many bytes left.
func (h *heap) reserve(bytes int) error {
	if bytes <= h.left {
		return nil
	}
	n := max(bytes, h.least)
	p, err := h.alloc(n)
	if err != nil {
		return err
	}
	h.pieces = append(h.pieces, p)
	h.at, h.left = p, n
	return nil
}

func (h *heap) give(p pointer, bytes int) {
	if h.spare == nil {
		h.spare = map[int][]pointer{}
	}
	h.spare[round(bytes)] = append(h.spare[round(bytes)], p)
}

func (e *engine) newPool() *pool {
	p := new(pool)
	p.arena = backend.Arena{
		Engine: e.Name(), ElementBytes: e.bytes,
		Make: func(n int) (tensor.Buffer, error) {
			if e.inRun && !e.heap.has(n*e.bytes) {
				return nil, errRepeat
			}
			at, err := e.heap.take(n * e.bytes)
			p.made += n * e.bytes
			return &buffer{at, n, p}, err
		},
		Poison: func(b tensor.Buffer) {
			x := b.(*buffer)
			e.flat("fill", x.elements, uint64(x.at), f(math.NaN()), i(x.elements))
		},
	}
	e.pools = append(e.pools, p)
	return p
}

// release gives the free memory of a closed step back.
func (e *engine) release(p *pool) {
	p.arena.Drain(func(b tensor.Buffer) {
		x := b.(*buffer)
		e.heap.give(x.at, x.elements*e.bytes)
	})
	if p.arena.InUse() == 0 {
		for k, q := range e.pools {
			if q == p {
				e.pools = append(e.pools[:k], e.pools[k+1:]...)
				break
			}
		}
	}
}

func (e *engine) Alloc(rows, cols int) *tensor.Tensor {
	backend.CheckAlloc(rows, cols)
	if cols > 0 && rows > math.MaxInt32/cols {
		e.fail(fmt.Sprintf("Alloc [%d×%d]", rows, cols), errors.New("more than 2³¹-1 elements: split the batch"))
	}
	return e.pool.arena.Alloc(rows, cols)
}

func (e *engine) Free(t *tensor.Tensor) {
	if t == nil {
		return
	}
	b, ok := t.Buf.(*buffer)
	if !ok {
		e.fail("Free "+t.String(), backend.ErrFreed)
	}
	b.home.arena.Free(t)
	if b.home.closed {
		e.release(b.home)
	}
}

func (e *engine) InUse() int64 {
	n := int64(0)
	for _, p := range e.pools {
		n += p.arena.InUse()
	}
	return n
}

// at returns where t lies. It panics with *[backend.Error] if t has been freed or
// is another engine's.
func (e *engine) at(t *tensor.Tensor) pointer {
	b, ok := t.Buf.(*buffer)
	if !ok {
		e.fail("use of "+t.String(), backend.ErrFreed)
	}
	return b.at
}

// ptr makes all of t an operand of the next launch and returns where it lies, as a
// parameter; nil gives a null pointer.
func (e *engine) ptr(t *tensor.Tensor) uint64 {
	if t == nil {
		return 0
	}
	return e.part(t, t.Len())
}

// part is ptr of a tensor of which so many elements are touched.
func (e *engine) part(t *tensor.Tensor, elements int) uint64 {
	e.moves += elements * e.bytes
	return uint64(e.at(t))
}

func (e *engine) launched() {
	e.work.Add(1, backend.Work{Launches: 1, Bytes: int64(e.moves)})
	e.moves = 0
}

// productFlops are those of a product of [m×k] and [k×n], in any order.
func productFlops(m, n, k int) int64 { return 2 * int64(m) * int64(n) * int64(k) }

func (e *engine) Work() backend.Work { return e.work }

// scratch returns memory for n doubles or, with another size, other things,
// until it is freed.
func (e *engine) scratch(n, size int) *tensor.Tensor {
	return e.Alloc(1, (n*size+e.bytes-1)/e.bytes)
}

func (e *engine) newSlot(s *slot, bytes int) (err error) {
	if s.mem, err = e.d.pinned(bytes); err != nil {
		return err
	}
	s.done, err = e.d.newEvent()
	return err
}

// upload copies n elements of the given size to the device; put writes the
// elements lo..hi-1 to dst.
func (e *engine) upload(op string, at pointer, n, size int, put func(dst []byte, lo, hi int)) {
	if e.step != nil {
		e.fail(op, errRecording)
	}
	e.stage(op, at, n, size, put)
}

func (e *engine) stage(op string, at pointer, n, size int, put func(dst []byte, lo, hi int)) {
	for lo := 0; lo < n; {
		s := &e.staging[e.stagingNow]
		e.stagingNow = (e.stagingNow + 1) % stagingSlots
		if s.busy {
			e.check(op, e.d.wait(s.done))
			s.busy = false
		}
		hi := min(n, lo+len(s.mem)/size)
		part := s.mem[:(hi-lo)*size]
		put(part, lo, hi)
		e.check(op, e.d.copyIn(s.at, part))
		e.check(op, e.d.follow())
		e.check(op, e.d.move(at+pointer(lo*size), s.at, len(part)))
		e.check(op, e.d.record(s.done))
		s.busy = true
		lo = hi
	}
}

// A table is words on the device.
type table struct {
	words []uint64
	mem   *tensor.Tensor
}

// table calls use with words on the device, which are there until it returns. Those of
// a step that is being recorded stay as long as the step, and are copied when it has
// been: its replays copy nothing.
func (e *engine) table(op string, words []uint64, use func(at uint64)) {
	switch s := e.step; {
	case !e.inRun:
		t := &table{words, nil}
		if s != nil { // not from the step's own memory, which is used again within it
			e.pool = e.main
			t.mem = e.scratch(len(words), 8)
			e.pool = s.pool
			s.tables = append(s.tables, t)
		} else {
			t.mem = e.scratch(len(words), 8)
			defer e.Free(t.mem)
		}
		e.fill(op, t)
		use(uint64(e.at(t.mem)))
	case s.used == len(s.tables) || len(s.tables[s.used].words) != len(words):
		e.fail(op, errRepeat)
	default:
		t := s.tables[s.used]
		s.used++
		t.words = words
		use(uint64(e.at(t.mem)))
	}
}

// fill copies a table to the device.
func (e *engine) fill(op string, t *table) {
	e.stage(op, e.at(t.mem), len(t.words), 8, func(mem []byte, lo, hi int) { copy(view[uint64](mem), t.words[lo:hi]) })
}

// view returns mem as numbers.
func view[T any](mem []byte) []T {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/int(unsafe.Sizeof(x)))
}

func convert[D, S float32 | float64](dst []D, src []S) {
	for i, v := range src {
		dst[i] = D(v)
	}
}

func (e *engine) Upload(dst *tensor.Tensor, src []float64) {
	backend.CheckHost("backend: Upload", dst, len(src))
	e.upload("Upload", e.at(dst), len(src), e.bytes, func(mem []byte, lo, hi int) {
		if e.precision == tensor.Float32 {
			convert(view[float32](mem), src[lo:hi])
		} else {
			copy(view[float64](mem), src[lo:hi])
		}
	})
}

func (e *engine) Upload32(dst *tensor.Tensor, src []float32) {
	backend.CheckHost("backend: Upload32", dst, len(src))
	e.upload("Upload32", e.at(dst), len(src), e.bytes, func(mem []byte, lo, hi int) {
		if e.precision == tensor.Float32 {
			copy(view[float32](mem), src[lo:hi])
		} else {
			convert(view[float64](mem), src[lo:hi])
		}
	})
}

func (e *engine) Download(dst []float64, src *tensor.Tensor) {
	const op = "Download"
	backend.CheckHost("backend: Download", src, len(dst))
	at := e.at(src)
	if e.step != nil {
		e.fail(op, errRecording)
	}
	for lo := 0; lo < len(dst); {
		s := &e.staging[e.stagingNow]
		e.stagingNow = (e.stagingNow + 1) % stagingSlots
		hi := min(len(dst), lo+len(s.mem)/e.bytes)
		part := s.mem[:(hi-lo)*e.bytes]
		// The stream has waited for an upload that still reads the slot.
		e.check(op, e.d.copyOut(part, at+pointer(lo*e.bytes)))
		e.check(op, e.d.record(s.done))
		e.check(op, e.d.wait(s.done))
		s.busy = false
		e.widen(dst[lo:hi], part)
		lo = hi
	}
}

func (e *engine) widen(dst []float64, mem []byte) {
	if e.precision == tensor.Float32 {
		convert(dst, view[float32](mem))
	} else {
		copy(dst, view[float64](mem))
	}
}

// Fetch is Download without the wait.
func (e *engine) Fetch(src *tensor.Tensor) backend.Pending {
	const op = "Fetch"
	backend.CheckFetch(src)
	bytes := src.Len() * e.bytes
	if e.step != nil {
		e.fail(op, errRecording)
	}
	var s *slot
	if n := len(e.late); n > 0 {
		s, e.late = e.late[n-1], e.late[:n-1]
	} else {
		s = new(slot)
		e.check(op, e.newSlot(s, lateBytes))
		e.lateAll = append(e.lateAll, s)
	}
	if bytes > 0 {
		e.check(op, e.d.copyOut(s.mem[:bytes], e.at(src)))
	}
	e.check(op, e.d.record(s.done))
	return &pending{e, s, src.Len()}
}

type pending struct {
	e *engine
	s *slot
	n int
}

func (p *pending) Values(dst []float64) {
	if p.s == nil || len(dst) != p.n {
		panic(fmt.Sprintf("backend %s: Pending.Values: want %d values, once", p.e.Name(), p.n))
	}
	p.e.check("Fetch", p.e.d.wait(p.s.done))
	p.e.widen(dst, p.s.mem[:p.n*p.e.bytes])
	p.e.late = append(p.e.late, p.s)
	p.s = nil
}

// indexBlock is the memory of index vectors that lie side by side.
type indexBlock struct {
	mem   *tensor.Tensor
	users int
}

type indexBuffer struct {
	at    pointer
	block *indexBlock
	e     *engine
}

func (e *engine) Indices(host []int32) *backend.Indices {
	return e.IndexBlock([][]int32{host})[0]
}

func (e *engine) IndexBlock(hosts [][]int32) []*backend.Indices {
	n := 0
	for _, h := range hosts {
		n += len(h)
	}
	block := &indexBlock{e.scratch(n, 4), len(hosts)}
	xs := make([]*backend.Indices, len(hosts))
	at := e.at(block.mem)
	for k, h := range hosts {
		xs[k] = &backend.Indices{Host: h, Buf: &indexBuffer{at, block, e}}
		at += pointer(4 * len(h))
	}
	e.UpdateIndices(xs, hosts)
	return xs
}

// UpdateIndices moves what lies side by side with one copy.
func (e *engine) UpdateIndices(xs []*backend.Indices, hosts [][]int32) {
	backend.CheckUpdateIndices(xs, hosts)
	for lo := 0; lo < len(xs); {
		at := e.place(xs[lo])
		n, hi := 0, lo
		for hi < len(xs) && e.place(xs[hi]) == at+pointer(4*n) {
			n += len(hosts[hi])
			hi++
		}
		run := hosts[lo:hi]
		e.upload("UpdateIndices", at, n, 4, func(mem []byte, first, _ int) {
			dst := view[int32](mem)
			for _, h := range run {
				if first >= len(h) {
					first -= len(h)
					continue
				}
				dst = dst[copy(dst, h[first:]):]
				first = 0
			}
		})
		lo = hi
	}
	for k, x := range xs {
		x.Host = hosts[k]
	}
}

func (e *engine) FreeIndices(x *backend.Indices) {
	e.place(x)
	b := x.Buf.(*indexBuffer)
	x.Host, x.Buf = nil, nil
	if b.block.users--; b.block.users == 0 {
		e.Free(b.block.mem)
	}
}

// place is at for an index vector, and idx is ptr.
func (e *engine) place(x *backend.Indices) pointer {
	b, ok := x.Buf.(*indexBuffer)
	if !ok || b.e != e {
		e.fail("use of indices", backend.ErrFreed)
	}
	return b.at
}

func (e *engine) idx(x *backend.Indices) uint64 {
	if x == nil {
		return 0
	}
	e.moves += 4 * x.Len()
	return uint64(e.place(x))
}

var (
	errRecording = errors.New("a step that is being recorded cannot move data between host and device: upload before the step, read results after it")
	errRepeat    = errors.New("a step to be recorded asked for more memory when it ran again")
	errClosed    = errors.New("it was closed")
)

func (e *engine) Records() bool { return true }

// step is a recorded sequence: a graph, and the memory that it works in.
type step struct {
	e      *engine
	pool   *pool
	graph  graph
	tables []*table // that the graph reads
	used   int      // tables that the recording has come by
	work   backend.Work
}

// Capture runs f twice: once for its effect, which also shows what memory the
// step needs, and once to record. The second run may need as much again, where
// what the first left behind is still in use; the driver must not be asked then.
func (e *engine) Capture(f func()) (_ backend.Step, err error) {
	if e.step != nil {
		return nil, &backend.Error{Backend: e.Name(), Op: "Capture", Err: errors.New("another step is being recorded")}
	}
	s := &step{e: e, pool: e.newPool()}
	e.step, e.pool = s, s.pool
	defer func() {
		e.step, e.pool, e.inRun = nil, e.main, false
		if r := recover(); r != nil {
			failure, ok := r.(*backend.Error)
			if !ok {
				panic(r)
			}
			err = failure
		}
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	f()
	if err := e.heap.reserve(s.pool.made); err != nil {
		return nil, err
	}
	done := e.work
	e.work = backend.Work{}
	defer func() { s.work, e.work = e.work, done }()
	s.graph, err = e.d.capture(func() {
		e.inRun = true
		defer func() { e.inRun = false }()
		f()
	})
	for k := 0; k < len(s.tables) && err == nil; k++ {
		e.fill("Capture", s.tables[k])
	}
	return s, err
}

func (s *step) Replay() error {
	if s.graph == nil {
		return &backend.Error{Backend: s.e.Name(), Op: "Replay", Err: errClosed}
	}
	if err := s.graph.launch(); err != nil {
		return &backend.Error{Backend: s.e.Name(), Op: "Replay", Err: err}
	}
	s.e.work.Add(1, s.work)
	return nil
}

func (s *step) Close() (err error) {
	if s.graph != nil {
		err = s.graph.close()
		s.graph = nil
	}
	for _, t := range s.tables {
		s.e.Free(t.mem)
	}
	s.tables = nil
	if !s.pool.closed {
		s.pool.closed = true
		s.e.release(s.pool)
	}
	return err
}

// drain waits for all that is in the stream, as must be before memory is given back
// to the driver.
func (e *engine) drain() error {
	if e.staging[0].done == 0 { // open failed
		return nil
	}
	if err := e.d.record(e.staging[0].done); err != nil {
		return err
	}
	return e.d.wait(e.staging[0].done)
}

// Close gives the device's memory back. The engine must not be used afterwards.
func (e *engine) Close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	errs := []error{e.drain()}
	slots := e.lateAll
	for k := range e.staging {
		slots = append(slots, &e.staging[k])
	}
	for _, s := range slots {
		if s.done != 0 {
			errs = append(errs, e.d.freeEvent(s.done))
		}
		if s.mem != nil {
			errs = append(errs, e.d.freePinned(s.mem))
		}
	}
	for _, p := range e.heap.pieces {
		errs = append(errs, e.d.free(p))
	}
	return errors.Join(append(errs, e.d.close())...)
}
