package ptx

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// Memory is the device's memory: pieces that were allocated.
type Memory struct {
	pieces []*piece // in the order of their addresses
	last   *piece
	// Unchecked keeps no books, for the time of large launches: only addresses are
	// checked.
	Unchecked bool
}

// piece is memory with what is known of its words.
type piece struct {
	at    uint64
	data  []byte
	words []cell
}

// cell is what is known of four bytes.
type cell struct {
	known   bool // written, or copied there
	written access
	read    [2]access // the last by two warps
	first   uint32    // block that read it in this launch
	cached  uint32    // block that read it through the read-only cache
}

// access is who touched a word, and between which of the block's barriers. Blocks
// are numbered through all launches.
type access struct {
	block, epoch uint32
	warp         int32
	atomic       bool
}

// Add makes data the memory at an address; nothing of it is known.
func (m *Memory) Add(at uint64, data []byte) {
	p := &piece{at: at, data: data}
	if !m.Unchecked {
		p.words = make([]cell, (len(data)+3)/4)
	}
	k, _ := slices.BinarySearchFunc(m.pieces, at, func(p *piece, at uint64) int { return compare(p.at, at) })
	m.pieces = slices.Insert(m.pieces, k, p)
}

// Remove takes what was added at an address away.
func (m *Memory) Remove(at uint64) {
	m.pieces = slices.DeleteFunc(m.pieces, func(p *piece) bool { return p.at == at })
	m.last = nil
}

// Mark says that n bytes were written by somebody else, or that they are not known
// any more.
func (m *Memory) Mark(at uint64, n int, known bool) error {
	p, off, err := m.find(at, n)
	if err != nil || p.words == nil {
		return err
	}
	for k := off / 4; k < (off+n+3)/4; k++ {
		p.words[k] = cell{known: known}
	}
	return nil
}

// Known returns an error unless n bytes were written.
func (m *Memory) Known(at uint64, n int) error {
	p, off, err := m.find(at, n)
	if err != nil || p.words == nil {
		return err
	}
	for k := off / 4; k < (off+n+3)/4; k++ {
		if !p.words[k].known {
			return fmt.Errorf("reads %#x, which nobody has written", at+uint64(4*k-off))
		}
	}
	return nil
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (m *Memory) find(at uint64, n int) (*piece, int, error) {
	if p := m.last; p != nil && at >= p.at && at+uint64(n) <= p.at+uint64(len(p.data)) {
		return p, int(at - p.at), nil
	}
	k, found := slices.BinarySearchFunc(m.pieces, at, func(p *piece, at uint64) int { return compare(p.at, at) })
	if !found {
		k--
	}
	if k >= 0 {
		if p := m.pieces[k]; at+uint64(n) <= p.at+uint64(len(p.data)) {
			m.last = p
			return p, int(at - p.at), nil
		}
	}
	return nil, 0, fmt.Errorf("touches %d bytes at %#x, which is not its memory", n, at)
}

// sharedBase is where a block's shared memory begins.
const sharedBase = 1 << 20

// A Machine runs kernels, one block after the other.
type Machine struct {
	Memory *Memory
	blocks uint32 // that have run
	spare  map[*kernel]*block
}

// block is the state of the block that runs.
type block struct {
	m      *Machine
	k      *kernel
	id     uint32
	launch uint32 // id of the first block
	epoch  uint32 // counts barriers
	params []uint64
	shared piece
	warps  []warp
	slot   int64 // cycles between two instructions of a warp, when all have some
}

// warp is the state of 32 threads.
type warp struct {
	number int32
	regs   []vector
	ready  []int64 // when a register's value is there
	now    int64   // when the next instruction can be issued
	last   int64   // when the last was
	paths  []path  // by falling pc
	waits  int     // where, or -1
}

// path is the threads of a warp that are at the same instruction.
type path struct {
	pc   int
	mask uint32
}

const whole = 0xffffffff

// Run launches a kernel: every parameter has a word of params. Only the blocks that
// are named run, if any are, of those of the grid in their order. It returns how
// many cycles each takes, by the latencies of the instructions, if it has a
// multiprocessor for itself and all that it reads is in the cache between them.
func (m *Machine) Run(mod *Module, name string, grid, size [3]uint32, params []uint64, only ...int) (cycles []int64, err error) {
	k, ok := mod.kernels[name]
	if !ok {
		return nil, fmt.Errorf("there is no kernel %s", name)
	}
	threads := int(size[0] * size[1] * size[2])
	if len(params) != len(k.params) || threads == 0 || threads > k.bound || threads%lanes != 0 {
		return nil, fmt.Errorf("%s: %d parameters for %d, or %d threads for at most %d", name, len(params), len(k.params), threads, k.bound)
	}
	if m.spare == nil {
		m.spare = map[*kernel]*block{}
	}
	b := m.spare[k]
	if b == nil || len(b.warps) != threads/lanes {
		b = &block{m: m, k: k, warps: make([]warp, threads/lanes)}
		b.shared = piece{at: sharedBase, data: make([]byte, k.bytes), words: make([]cell, k.bytes/4)}
		for i := range b.warps {
			b.warps[i] = warp{number: int32(i), regs: make([]vector, len(k.names)), ready: make([]int64, len(k.names))}
		}
		m.spare[k] = b
	}
	b.params, b.slot = params, max(1, int64(threads/lanes/4))
	b.launch = m.blocks + 1
	if len(only) == 0 {
		for i := range int(grid[0] * grid[1] * grid[2]) {
			only = append(only, i)
		}
	}
	for _, i := range only {
		at := [3]uint32{uint32(i) % grid[0], uint32(i) / grid[0] % grid[1], uint32(i) / grid[0] / grid[1]}
		took, err := b.run(grid, size, at)
		if err != nil {
			return nil, fmt.Errorf("%s, block %v: %w", name, at, err)
		}
		cycles = append(cycles, took)
	}
	return cycles, nil
}

func (b *block) run(grid, size, at [3]uint32) (int64, error) {
	b.m.blocks++
	b.id, b.epoch = b.m.blocks, 0
	for axis, letter := range []string{"x", "y", "z"} {
		for name, value := range map[string]func(t uint32) uint32{
			"%ntid.":   func(uint32) uint32 { return size[axis] },
			"%nctaid.": func(uint32) uint32 { return grid[axis] },
			"%ctaid.":  func(uint32) uint32 { return at[axis] },
			"%tid.": func(t uint32) uint32 {
				return [3]uint32{t % size[0], t / size[0] % size[1], t / size[0] / size[1]}[axis]
			},
		} {
			if r, ok := b.k.names[name+letter]; ok {
				for i := range b.warps {
					for l := range lanes {
						b.warps[i].regs[r][l] = uint64(value(uint32(lanes*i + l)))
					}
				}
			}
		}
	}
	for i := range b.warps {
		w := &b.warps[i]
		clear(w.ready)
		w.now, w.last, w.waits = 0, 0, -1
		w.paths = append(w.paths[:0], path{0, whole})
	}
	for {
		waiting, end := 0, int64(0)
		for i := range b.warps {
			w := &b.warps[i]
			if err := b.proceed(w); err != nil {
				return 0, err
			}
			end = max(end, w.now)
			if w.waits >= 0 {
				waiting++
			}
		}
		if waiting == 0 {
			return end, nil
		}
		for i := range b.warps {
			w := &b.warps[i]
			if w.waits != b.warps[0].waits {
				return 0, fmt.Errorf("divergence: %d of %d warps wait at a barrier, warp 0 and warp %d not at the same", waiting, len(b.warps), i)
			}
			w.now = end + 30
		}
		for i := range b.warps {
			b.warps[i].waits = -1
		}
		b.epoch++
	}
}

// put adds threads that go on at pc.
func (w *warp) put(pc int, mask uint32) {
	if mask == 0 {
		return
	}
	k := len(w.paths)
	for k > 0 && w.paths[k-1].pc < pc {
		k--
	}
	if k > 0 && w.paths[k-1].pc == pc {
		w.paths[k-1].mask |= mask
		return
	}
	w.paths = slices.Insert(w.paths, k, path{pc, mask})
}

// proceed runs a warp until a barrier or its end: always the threads that are least
// far, so that those that parted come together again.
func (b *block) proceed(w *warp) error {
	for len(w.paths) > 0 {
		p := w.paths[len(w.paths)-1]
		if p.pc >= len(b.k.code) {
			return fmt.Errorf("the code ends without ret")
		}
		in := &b.k.code[p.pc]
		mask := p.mask
		t := w.now + b.slot
		if in.pred != noReg {
			t = max(t, w.ready[in.pred])
			v := &w.regs[in.pred]
			for l := range lanes {
				if (v[l] != 0) == in.negate {
					mask &^= 1 << l
				}
			}
		}
		for _, r := range in.src {
			if r >= 0 {
				t = max(t, w.ready[r])
			}
		}
		// Between branches, barriers and stores the assembler puts what need not wait
		// first, and the others when what they need is there.
		w.last = max(w.last, t)
		w.now += b.slot
		if in.kind >= store {
			w.now = w.last
		}
		for _, r := range in.dst {
			w.ready[r] = t + in.latency
		}
		w.paths = w.paths[:len(w.paths)-1]
		switch in.kind {
		case branch:
			w.now += 8
			w.put(in.target, mask)
			w.put(p.pc+1, p.mask&^mask)
			continue
		case exit:
			w.put(p.pc+1, p.mask&^mask)
			continue
		case barrier:
			if mask != whole || len(w.paths) > 0 {
				return fmt.Errorf("divergence: threads %#x of warp %d are at a barrier: %s", mask, w.number, in.text)
			}
			w.waits = p.pc
			w.put(p.pc+1, mask)
			return nil
		}
		if mask != 0 {
			if err := b.step(w, in, mask); err != nil {
				return fmt.Errorf("warp %d: %s: %w", w.number, in.text, err)
			}
		}
		w.put(p.pc+1, p.mask)
	}
	return nil
}

var zeros vector

func (b *block) value(w *warp, in *instr, k int) *vector {
	if k >= len(in.src) {
		return &zeros
	}
	if r := in.src[k]; r < 0 {
		return &b.k.consts[-1-r]
	}
	return &w.regs[in.src[k]]
}

// step runs an instruction in the threads of mask.
func (b *block) step(w *warp, in *instr, mask uint32) error {
	switch in.kind {
	case compute:
		if in.param >= 0 {
			v := b.params[in.param]
			if in.size == 4 {
				v &= whole
			}
			for l := range lanes {
				w.regs[in.dst[0]][l] = v
			}
			return nil
		}
		if len(in.dst) == 2 { // both halves of a register
			v := *b.value(w, in, 0)
			for m := mask; m != 0; m &= m - 1 {
				l := bits.TrailingZeros32(m)
				w.regs[in.dst[0]][l], w.regs[in.dst[1]][l] = v[l]&whole, v[l]>>32
			}
			return nil
		}
		d, x, y, z := &w.regs[in.dst[0]], b.value(w, in, 0), b.value(w, in, 1), b.value(w, in, 2)
		if mask == whole {
			for l := range lanes {
				d[l] = in.f(x[l], y[l], z[l])
			}
			return nil
		}
		for m := mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			d[l] = in.f(x[l], y[l], z[l])
		}
	case shuffle:
		return b.shuffle(w, in, mask)
	case ballot:
		if mask != whole || b.value(w, in, 1)[0] != whole {
			return fmt.Errorf("divergence: a vote of threads %#x", mask)
		}
		v := uint64(0)
		for l, p := range b.value(w, in, 0) {
			v |= p << l
		}
		for l := range lanes {
			w.regs[in.dst[0]][l] = v
		}
	default:
		return b.access(w, in, mask)
	}
	return nil
}

func (b *block) shuffle(w *warp, in *instr, mask uint32) error {
	if mask != whole || b.value(w, in, 3)[0] != whole {
		return fmt.Errorf("divergence: a shuffle of threads %#x", mask)
	}
	v, by, clamp := *b.value(w, in, 0), *b.value(w, in, 1), *b.value(w, in, 2)
	for l := range lanes {
		segment, c := int(clamp[l])>>8&31, int(clamp[l])&31
		most := l&segment | c&^segment
		from, n := 0, int(by[l])&31
		inside := false
		switch in.mode {
		case "up":
			from = l - n
			inside = from >= most
		case "bfly":
			from = l ^ n
			inside = from <= most
		case "idx":
			from = l&segment | n&^segment
			inside = from <= most
		default:
			return fmt.Errorf("a shuffle %s is not known", in.mode)
		}
		if !inside {
			from = l
		}
		w.regs[in.dst[0]][l] = v[from]
		if len(in.dst) > 1 {
			w.regs[in.dst[1]][l] = truth(inside)
		}
	}
	return nil
}

// access moves elements between registers and memory.
func (b *block) access(w *warp, in *instr, mask uint32) error {
	at := *b.value(w, in, 0)
	elements := len(in.dst)
	if in.kind == store {
		elements = len(in.src) - 1
	}
	bytes := in.size * elements
	for m := mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		a := at[l] + in.offset
		var p *piece
		var off int
		if in.space == shared {
			a &= whole
			p, off = &b.shared, int(a)-sharedBase
			if off < 0 || off+bytes > len(p.data) {
				return fmt.Errorf("lane %d touches byte %d of %d of shared memory", l, off, len(p.data))
			}
		} else {
			var err error
			if p, off, err = b.m.Memory.find(a, bytes); err != nil {
				return fmt.Errorf("lane %d: %w", l, err)
			}
		}
		if a%uint64(bytes) != 0 {
			return fmt.Errorf("lane %d: %d bytes at %#x, which is not a multiple", l, bytes, a)
		}
		if p.words != nil {
			for k := off / 4; k < (off+bytes)/4; k++ {
				if err := b.book(&p.words[k], w, in); err != nil {
					return fmt.Errorf("lane %d, %#x: %w", l, p.at+uint64(4*k), err)
				}
			}
		}
		for k := range elements {
			mem := p.data[off+k*in.size:]
			switch {
			case in.kind == store && in.size == 4:
				binary.LittleEndian.PutUint32(mem, uint32(b.value(w, in, 1+k)[l]))
			case in.kind == store:
				binary.LittleEndian.PutUint64(mem, b.value(w, in, 1+k)[l])
			case in.kind == atomicAdd:
				old := binary.LittleEndian.Uint32(mem)
				binary.LittleEndian.PutUint32(mem, old+uint32(b.value(w, in, 1)[l]))
				w.regs[in.dst[0]][l] = uint64(old)
			case in.size == 4:
				w.regs[in.dst[k]][l] = uint64(binary.LittleEndian.Uint32(mem))
			default:
				w.regs[in.dst[k]][l] = binary.LittleEndian.Uint64(mem)
			}
		}
	}
	return nil
}

// collides says that nothing orders an access, if it was by a block from first on,
// before that of now.
func (a access) collides(first uint32, now access) bool {
	return a.block >= first && !(a.atomic && now.atomic) &&
		(a.block != now.block || a.epoch == now.epoch && a.warp != now.warp)
}

func (a access) from(now access) string {
	if a.block != now.block {
		return "another block"
	}
	return fmt.Sprintf("warp %d", a.warp)
}

// book checks an access to a word against those before, and notes it.
func (b *block) book(c *cell, w *warp, in *instr) error {
	now := access{b.id, b.epoch, w.number, in.kind == atomicAdd}
	first, unknown := b.launch, !c.known
	if in.space == shared { // which begins anew with each block
		first, unknown = b.id, c.written.block != b.id
	}
	if in.kind != store {
		if unknown {
			return fmt.Errorf("it is read, and nobody has written it")
		}
		if c.written.collides(first, now) {
			return fmt.Errorf("race: %s has written it, with no barrier between", c.written.from(now))
		}
	}
	if in.space == readOnly {
		if c.written.block >= first {
			return fmt.Errorf("it is read through the read-only cache, and the launch has written it")
		}
		c.cached = b.id
	}
	if in.kind == load {
		if c.first < first {
			c.first = b.id
		}
		if c.read[1].block != now.block || c.read[1].warp != now.warp {
			c.read[0] = c.read[1]
		}
		c.read[1] = now
		return nil
	}
	if c.cached >= first {
		return fmt.Errorf("it is written, and the launch has read it through the read-only cache")
	}
	for _, a := range [...]access{c.read[0], c.read[1], c.written} {
		if a.collides(first, now) {
			return fmt.Errorf("race: %s has touched it, with no barrier between", a.from(now))
		}
	}
	if c.first >= first && c.first != b.id {
		return fmt.Errorf("race: another block has read it")
	}
	c.written, c.known = now, true
	return nil
}
