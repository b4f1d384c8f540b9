package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// engine implements [backend.Backend] on a driver. This file has memory, transfers and
// recording; primitives.go and fused_*.go have the primitives.
type engine struct {
	d         driver
	precision tensor.Precision
	bytes     int        // of an element
	split     *splitting // nil if no product is split
	rounds    bool       // whether products round their operands to TF32

	heap  heap
	main  *pool   // of tensors that outlive a step
	pool  *pool   // of the next Alloc: main, or the recorded step's
	pools []*pool // those with live tensors or a step; main is the first
	step  *step   // being recorded, or nil
	inRun bool    // within the driver's capture

	staging    [stagingSlots]slot
	stagingNow int        // the slot to use next
	late       []*slot    // free slots of Fetch
	lateAll    []*slot    // all slots of Fetch
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

// slot is pinned host memory, with the event behind the last copy from or to it. A slot
// for uploads has device memory of the same size: a copy arrives there while the stream
// still runs earlier work, and the stream then only moves it to its destination.
type slot struct {
	mem    []byte
	device pointer // of a slot for uploads
	done   event
	busy   bool // until done has passed
}

// pool allocates tensors of one lifetime. The tensors of a recorded step have fixed
// addresses, which nothing else may use until the step is closed.
type pool struct {
	arena  backend.Arena
	made   int // bytes
	closed bool
}

// buffer is the device memory of a tensor.
type buffer struct {
	address  pointer
	elements int
	home     *pool
}

// open returns an engine of precision p on a driver, which it closes if it fails.
func open(d driver, p tensor.Precision) (*engine, error) {
	e := &engine{d: d, precision: p, bytes: p.Bytes()}
	e.heap.alloc = d.alloc
	e.heap.least = pieceBytes
	e.main = e.newPool()
	e.pool = e.main
	for i := range e.staging {
		s := &e.staging[i]
		err := e.newSlot(s, stagingBytes)
		if err == nil {
			s.device, err = e.heap.take(stagingBytes)
		}
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	return e, nil
}

func (e *engine) Name() string                { return e.d.name() }
func (e *engine) Precision() tensor.Precision { return e.precision }

// check panics with *[backend.Error] if err is not nil.
func (e *engine) check(op string, err error) {
	if err != nil {
		e.fail(op, err)
	}
}

// fail panics with *[backend.Error].
func (e *engine) fail(op string, err error) {
	panic(&backend.Error{Backend: e.Name(), Op: op, Err: err})
}

// heap carves device memory out of large pieces: an allocation by the driver takes as
// long as many kernels and waits for the device.
type heap struct {
	alloc  func(bytes int) (pointer, error)
	least  int // bytes of a piece
	pieces []pointer
	next   pointer           // free memory of the newest piece
	left   int               // bytes of it
	spare  map[int][]pointer // memory that was given back, by size
}

const (
	pieceBytes = 32 << 20
	alignment  = 256
)

// round rounds a size up to the alignment.
func round(bytes int) int {
	return (bytes + alignment - 1) &^ (alignment - 1)
}

// has reports whether take needs no new piece.
func (h *heap) has(bytes int) bool {
	return round(bytes) <= h.left || len(h.spare[round(bytes)]) > 0
}

// take returns device memory.
func (h *heap) take(bytes int) (pointer, error) {
	bytes = round(bytes)
	if s := h.spare[bytes]; len(s) > 0 {
		h.spare[bytes] = s[:len(s)-1]
		return s[len(s)-1], nil
	}
	if err := h.reserve(bytes); err != nil {
		return 0, err
	}
	p := h.next
	h.next += pointer(bytes)
	h.left -= bytes
	return p, nil
}

// reserve gets a new piece unless the newest has that many bytes left.
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
	h.next = p
	h.left = n
	return nil
}

// give takes memory of take back.
func (h *heap) give(p pointer, bytes int) {
	if h.spare == nil {
		h.spare = map[int][]pointer{}
	}
	bytes = round(bytes)
	h.spare[bytes] = append(h.spare[bytes], p)
}

// newPool returns an empty pool, which is one of e.pools.
func (e *engine) newPool() *pool {
	p := new(pool)
	p.arena = backend.Arena{
		Engine:       e.Name(),
		ElementBytes: e.bytes,
		Make: func(n int) (tensor.Buffer, error) {
			bytes := n * e.bytes
			if e.inRun && !e.heap.has(bytes) {
				return nil, errRepeat
			}
			address, err := e.heap.take(bytes)
			p.made += round(bytes)
			return &buffer{address, n, p}, err
		},
		Poison: func(b tensor.Buffer) {
			x := b.(*buffer)
			e.flat(
				"fill",
				x.elements,
				uint64(x.address),
				floatWord(math.NaN()),
				intWord(x.elements),
			)
		},
	}
	e.pools = append(e.pools, p)
	return p
}

// release gives the free memory of a closed step back to the heap, and forgets the pool
// once it has no live tensor.
func (e *engine) release(p *pool) {
	p.arena.Drain(func(b tensor.Buffer) {
		x := b.(*buffer)
		e.heap.give(x.address, x.elements*e.bytes)
	})
	if p.arena.InUse() == 0 {
		e.pools = slices.DeleteFunc(e.pools, func(q *pool) bool {
			return q == p
		})
	}
}

func (e *engine) Alloc(rows, cols int) *tensor.Tensor {
	backend.CheckAlloc(rows, cols)
	if cols > 0 && rows > math.MaxInt32/cols {
		op := fmt.Sprintf("Alloc [%d×%d]", rows, cols)
		e.fail(op, errors.New("more than 2³¹-1 elements: split the batch"))
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

// address returns the address of t. It panics with *[backend.Error] if t has been freed or
// belongs to another engine.
func (e *engine) address(t *tensor.Tensor) pointer {
	b, ok := t.Buf.(*buffer)
	if !ok {
		e.fail("use of "+t.String(), backend.ErrFreed)
	}
	return b.address
}

// ptr makes all of t an operand of the next launch and returns its address as a
// parameter; nil gives a null pointer.
func (e *engine) ptr(t *tensor.Tensor) uint64 {
	if t == nil {
		return 0
	}
	return e.part(t, t.Len())
}

// part is ptr for a tensor of which the launch touches only so many elements.
func (e *engine) part(t *tensor.Tensor, elements int) uint64 {
	e.moves += elements * e.bytes
	return uint64(e.address(t))
}

// launched counts the launch whose operands were collected.
func (e *engine) launched() {
	e.work.Add(1, backend.Work{Launches: 1, Bytes: int64(e.moves)})
	e.moves = 0
}

// productFlops returns the operations of a product of [m×k] and [k×n], in any order.
func productFlops(m, n, k int) int64 {
	return 2 * int64(m) * int64(n) * int64(k)
}

func (e *engine) Work() backend.Work {
	return e.work
}

// scratch returns memory for n items of the given size in bytes. The caller frees it.
func (e *engine) scratch(n, size int) *tensor.Tensor {
	return e.Alloc(1, (n*size+e.bytes-1)/e.bytes)
}

// newSlot fills in the host memory and the event of a slot.
func (e *engine) newSlot(s *slot, bytes int) (err error) {
	s.mem, err = e.d.pinned(bytes)
	if err != nil {
		return err
	}
	s.done, err = e.d.newEvent()
	return err
}

// upload copies n elements of the given size to the device. put writes the elements
// lo to hi-1 into dst. While a step is recorded it panics.
func (e *engine) upload(
	op string, dst pointer, n, size int, put func(dst []byte, lo, hi int),
) {
	if e.step != nil {
		e.fail(op, errRecording)
	}
	e.stage(op, dst, n, size, put)
}

// nextSlot returns the staging slot whose turn it is.
func (e *engine) nextSlot() *slot {
	s := &e.staging[e.stagingNow]
	e.stagingNow = (e.stagingNow + 1) % stagingSlots
	return s
}

// stage is upload, also while a step is recorded.
func (e *engine) stage(
	op string, dst pointer, n, size int, put func(dst []byte, lo, hi int),
) {
	for lo := 0; lo < n; {
		s := e.nextSlot()
		if s.busy {
			e.check(op, e.d.wait(s.done))
			s.busy = false
		}
		hi := min(n, lo+len(s.mem)/size)
		part := s.mem[:(hi-lo)*size]
		put(part, lo, hi)
		// The copy runs beside the stream; the stream waits for it and moves the data.
		e.check(op, e.d.copyIn(s.device, part))
		e.check(op, e.d.follow())
		e.check(op, e.d.move(dst+pointer(lo*size), s.device, len(part)))
		e.check(op, e.d.record(s.done))
		s.busy = true
		lo = hi
	}
}

// table is an array of words on the device.
type table struct {
	words []uint64
	mem   *tensor.Tensor
}

// table calls use with the address of words on the device, which are valid until it
// returns. The tables of a recorded step live as long as the step. They are copied once,
// after the recording, so replays copy nothing.
func (e *engine) table(op string, words []uint64, use func(address uint64)) {
	s := e.step
	if e.inRun {
		// The second run of a recorded step asks for the tables of the first.
		if s.used == len(s.tables) ||
			len(s.tables[s.used].words) != len(words) {
			e.fail(op, errRepeat)
		}
		t := s.tables[s.used]
		s.used++
		t.words = words
		use(uint64(e.address(t.mem)))
		return
	}
	t := &table{words: words}
	if s == nil {
		t.mem = e.scratch(len(words), 8)
		defer e.Free(t.mem)
	} else {
		// The step's own memory is reused within the step.
		e.pool = e.main
		t.mem = e.scratch(len(words), 8)
		e.pool = s.pool
		s.tables = append(s.tables, t)
	}
	e.fill(op, t)
	use(uint64(e.address(t.mem)))
}

// fill copies a table to the device.
func (e *engine) fill(op string, t *table) {
	e.stage(op, e.address(t.mem), len(t.words), 8,
		func(mem []byte, lo, hi int) {
			copy(view[uint64](mem), t.words[lo:hi])
		})
}

// view returns mem as a slice of numbers.
func view[T any](mem []byte) []T {
	var x T
	return unsafe.Slice(
		(*T)(unsafe.Pointer(unsafe.SliceData(mem))),
		len(mem)/int(unsafe.Sizeof(x)),
	)
}

func convert[D, S float32 | float64](dst []D, src []S) {
	for i, v := range src {
		dst[i] = D(v)
	}
}

func (e *engine) Upload(dst *tensor.Tensor, src []float64) {
	backend.CheckHost("backend: Upload", dst, len(src))
	e.upload("Upload", e.address(dst), len(src), e.bytes,
		func(mem []byte, lo, hi int) {
			if e.precision == tensor.Float32 {
				convert(view[float32](mem), src[lo:hi])
			} else {
				copy(view[float64](mem), src[lo:hi])
			}
		})
}

func (e *engine) Upload32(dst *tensor.Tensor, src []float32) {
	backend.CheckHost("backend: Upload32", dst, len(src))
	e.upload("Upload32", e.address(dst), len(src), e.bytes,
		func(mem []byte, lo, hi int) {
			if e.precision == tensor.Float32 {
				copy(view[float32](mem), src[lo:hi])
			} else {
				convert(view[float64](mem), src[lo:hi])
			}
		})
}

func (e *engine) Download(dst []float64, src *tensor.Tensor) {
	backend.CheckHost("backend: Download", src, len(dst))
	e.download("Download", src, func(mem []byte, lo, hi int) {
		e.widen(dst[lo:hi], mem)
	})
}

// Download32 implements [backend.NarrowDownloader].
func (e *engine) Download32(dst []float32, src *tensor.Tensor) {
	backend.CheckHost("backend: Download32", src, len(dst))
	if e.precision != tensor.Float32 {
		panic("backend: Download32 from an engine of float64")
	}
	e.download(
		"Download32",
		src,
		func(mem []byte, lo, hi int) {
			copy(dst[lo:hi], view[float32](mem))
		},
	)
}

// download calls store with the elements lo to hi-1 of src, part after part.
func (e *engine) download(op string, src *tensor.Tensor, store func(mem []byte, lo, hi int)) {
	address := e.address(src)
	if e.step != nil {
		e.fail(op, errRecording)
	}
	n := src.Len()
	for lo := 0; lo < n; {
		s := e.nextSlot()
		hi := min(n, lo+len(s.mem)/e.bytes)
		part := s.mem[:(hi-lo)*e.bytes]
		// The stream has waited for an upload that still reads the slot.
		e.check(op, e.d.copyOut(part, address+pointer(lo*e.bytes)))
		e.check(op, e.d.record(s.done))
		e.check(op, e.d.wait(s.done))
		s.busy = false
		store(part, lo, hi)
		lo = hi
	}
}

// widen converts elements to float64.
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
		s = e.late[n-1]
		e.late = e.late[:n-1]
	} else {
		s = new(slot)
		e.check(op, e.newSlot(s, lateBytes))
		e.lateAll = append(e.lateAll, s)
	}
	if bytes > 0 {
		e.check(op, e.d.copyOut(s.mem[:bytes], e.address(src)))
	}
	e.check(op, e.d.record(s.done))
	return &pending{e, s, src.Len()}
}

// pending is the result of a Fetch, in a slot until Values has read it.
type pending struct {
	e *engine
	s *slot // nil once it was read
	n int
}

func (p *pending) Values(dst []float64) {
	if p.s == nil || len(dst) != p.n {
		panic(fmt.Sprintf("backend %s: Pending.Values: want %d values, once",
			p.e.Name(), p.n))
	}
	p.e.check("Fetch", p.e.d.wait(p.s.done))
	p.e.widen(dst, p.s.mem[:p.n*p.e.bytes])
	p.e.late = append(p.e.late, p.s)
	p.s = nil
}

// indexBlock is the memory of adjacent index vectors.
type indexBlock struct {
	mem   *tensor.Tensor
	users int // vectors that are not freed
}

// indexBuffer is the device memory of an index vector.
type indexBuffer struct {
	address pointer
	block   *indexBlock
	e       *engine
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
	address := e.address(block.mem)
	for k, h := range hosts {
		xs[k] = &backend.Indices{Host: h, Buf: &indexBuffer{address, block, e}}
		address += pointer(4 * len(h))
	}
	e.UpdateIndices(xs, hosts)
	return xs
}

// UpdateIndices moves adjacent vectors with one copy.
func (e *engine) UpdateIndices(xs []*backend.Indices, hosts [][]int32) {
	backend.CheckUpdateIndices(xs, hosts)
	for lo := 0; lo < len(xs); {
		// Find the vectors lo to hi-1 that are adjacent, and their n elements.
		start := e.indexAddress(xs[lo])
		n := 0
		hi := lo
		for hi < len(xs) && e.indexAddress(xs[hi]) == start+pointer(4*n) {
			n += len(hosts[hi])
			hi++
		}
		run := hosts[lo:hi]
		e.upload("UpdateIndices", start, n, 4, func(mem []byte, first, _ int) {
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
	e.indexAddress(x)
	b := x.Buf.(*indexBuffer)
	*x = backend.Indices{}
	b.block.users--
	if b.block.users == 0 {
		e.Free(b.block.mem)
	}
}

// indexAddress is address for an index vector.
func (e *engine) indexAddress(x *backend.Indices) pointer {
	b, ok := x.Buf.(*indexBuffer)
	if !ok || b.e != e {
		e.fail("use of indices", backend.ErrFreed)
	}
	return b.address
}

// idx is ptr for an index vector.
func (e *engine) idx(x *backend.Indices) uint64 {
	if x == nil {
		return 0
	}
	e.moves += 4 * x.Len()
	return uint64(e.indexAddress(x))
}

var (
	errRecording = errors.New(
		"a step that is being recorded cannot move data between host and device: " +
			"upload before the step, read results after it",
	)
	errRepeat = errors.New(
		"a step to be recorded asked for more memory when it ran again",
	)
	errClosed = errors.New("it was closed")
)

func (e *engine) Records() bool {
	return true
}

// step is a recorded sequence of launches: a graph, and its memory.
type step struct {
	e      *engine
	pool   *pool
	graph  graph
	tables []*table // that the graph reads
	used   int      // tables that the second run has asked for
	work   backend.Work
}

// Capture runs f twice: once for its effect, which also shows how much memory the step
// needs, and once to record. The second run may need as much again, if tensors of the
// first are still in use. It is reserved before, since the driver cannot allocate while
// it records.
func (e *engine) Capture(f func()) (_ backend.Step, err error) {
	if e.step != nil {
		err := errors.New("another step is being recorded")
		return nil, &backend.Error{Backend: e.Name(), Op: "Capture", Err: err}
	}
	s := &step{e: e, pool: e.newPool()}
	e.step = s
	e.pool = s.pool
	defer func() {
		e.step = nil
		e.pool = e.main
		e.inRun = false
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
	// The work of the second run is that of a replay, and not done yet.
	done := e.work
	e.work = backend.Work{}
	defer func() {
		s.work = e.work
		e.work = done
	}()
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

// drain waits for everything in the stream. The driver must not free memory before.
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
