package ptx

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// Memory is the device's memory: the pieces that were allocated.
type Memory struct {
	pieces []*piece // in the order of their addresses
	recent *piece   // the piece found last
	// Unchecked switches off all checks but those of addresses, for large launches.
	Unchecked bool
}

// piece is a piece of memory, with the accesses to its words.
type piece struct {
	address uint64
	data    []byte
	words   []cell
}

// cell has the accesses to a word of four bytes.
type cell struct {
	valid   bool // it was written, or copied there
	written access
	read    [2]access // the latest by two warps
	first   uint32    // the first block that read it in this launch
	cached  uint32    // the latest block that read it through the read-only cache
}

// access says which warp touched a word, and between which of the block's barriers.
// Blocks are numbered through all launches.
type access struct {
	block, epoch uint32
	warp         int32
	atomic       bool
}

// Add makes data the memory at an address. All of it counts as never written.
func (m *Memory) Add(address uint64, data []byte) {
	p := &piece{address: address, data: data}
	if !m.Unchecked {
		p.words = make([]cell, (len(data)+3)/4)
	}
	k, _ := slices.BinarySearchFunc(m.pieces, address, compareAddress)
	m.pieces = slices.Insert(m.pieces, k, p)
}

// Remove removes the memory that was added at an address.
func (m *Memory) Remove(address uint64) {
	m.pieces = slices.DeleteFunc(m.pieces, func(p *piece) bool {
		return p.address == address
	})
	m.recent = nil
}

// Mark records that n bytes were written from outside the kernels or, if they are not
// valid, that their contents are lost.
func (m *Memory) Mark(address uint64, n int, valid bool) error {
	words, err := m.words(address, n)
	for k := range words {
		words[k] = cell{valid: valid}
	}
	return err
}

// Known returns an error unless n bytes were written.
func (m *Memory) Known(address uint64, n int) error {
	words, err := m.words(address, n)
	for k, w := range words {
		if !w.valid {
			return fmt.Errorf("reads %#x, which was never written",
				address&^3+uint64(4*k))
		}
	}
	return err
}

// words returns the words of n bytes, or nil if they are unchecked.
func (m *Memory) words(address uint64, n int) ([]cell, error) {
	p, offset, err := m.find(address, n)
	if err != nil || p.words == nil {
		return nil, err
	}
	return p.words[offset/4 : (offset+n+3)/4], nil
}

func compareAddress(p *piece, address uint64) int {
	return cmp.Compare(p.address, address)
}

// holds reports whether n bytes at an address are in p.
func (p *piece) holds(address uint64, n int) bool {
	return address >= p.address &&
		address+uint64(n) <= p.address+uint64(len(p.data))
}

// find returns the piece that has n bytes at an address, and their offset.
func (m *Memory) find(address uint64, n int) (*piece, int, error) {
	if p := m.recent; p != nil && p.holds(address, n) {
		return p, int(address - p.address), nil
	}
	k, found := slices.BinarySearchFunc(m.pieces, address, compareAddress)
	if !found {
		k--
	}
	if k >= 0 {
		if p := m.pieces[k]; p.holds(address, n) {
			m.recent = p
			return p, int(address - p.address), nil
		}
	}
	return nil, 0, fmt.Errorf(
		"touches %d bytes at %#x, which were not allocated",
		n, address,
	)
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
	slot   int64 // cycles between two instructions of a warp while all warps are busy
}

// warp is the state of 32 threads. Times are in cycles.
type warp struct {
	number int32
	regs   []vector
	ready  []int64 // when the value of a register is available
	clock  int64   // when the next instruction can be issued
	issued int64   // when the latest instruction was issued
	paths  []path  // by falling pc
	waits  int     // the pc of the barrier where it waits, or -1
}

// path is the threads of a warp that are at the same instruction.
type path struct {
	pc   int
	mask uint32
}

const whole = 0xffffffff

// Run launches a kernel: every parameter is a word of params. If only names blocks, Run
// runs just those, in that order. It returns the cycles of each block that has run, by the
// latencies of the instructions. It assumes that a block has a multiprocessor to itself
// and that all its reads hit the level-2 cache.
func (m *Machine) Run(
	mod *Module,
	name string,
	grid, size [3]uint32,
	params []uint64,
	only ...int,
) (cycles []int64, err error) {
	k, ok := mod.kernels[name]
	if !ok {
		return nil, fmt.Errorf("there is no kernel %s", name)
	}
	threads := int(size[0] * size[1] * size[2])
	if len(params) != len(k.params) || threads == 0 || threads > k.bound ||
		threads%lanes != 0 {
		return nil, fmt.Errorf(
			"%s: %d parameters for %d, or %d threads for at most %d",
			name,
			len(params),
			len(k.params),
			threads,
			k.bound,
		)
	}
	b := m.block(k, threads/lanes)
	b.params = params
	b.slot = max(1, int64(threads/lanes/4))
	b.launch = m.blocks + 1
	if len(only) == 0 {
		for i := range int(grid[0] * grid[1] * grid[2]) {
			only = append(only, i)
		}
	}
	for _, i := range only {
		index := unravel(uint32(i), grid)
		took, err := b.run(grid, size, index)
		if err != nil {
			return nil, fmt.Errorf("%s, block %v: %w", name, index, err)
		}
		cycles = append(cycles, took)
	}
	return cycles, nil
}

// block returns the state of a block of a kernel, that of an earlier one if it fits.
func (m *Machine) block(k *kernel, warps int) *block {
	if m.spare == nil {
		m.spare = map[*kernel]*block{}
	}
	if b := m.spare[k]; b != nil && len(b.warps) == warps {
		return b
	}
	b := &block{m: m, k: k, warps: make([]warp, warps)}
	b.shared = piece{
		address: sharedBase,
		data:    make([]byte, k.bytes),
		words:   make([]cell, k.bytes/4),
	}
	for i := range b.warps {
		b.warps[i] = warp{
			number: int32(i),
			regs:   make([]vector, len(k.names)),
			ready:  make([]int64, len(k.names)),
		}
	}
	m.spare[k] = b
	return b
}

// unravel returns the place of number i in a grid or a block.
func unravel(i uint32, extents [3]uint32) [3]uint32 {
	return [3]uint32{
		i % extents[0], i / extents[0] % extents[1],
		i / extents[0] / extents[1],
	}
}

// run runs one block and returns its cycles.
func (b *block) run(grid, size, index [3]uint32) (int64, error) {
	b.m.blocks++
	b.id = b.m.blocks
	b.epoch = 0
	b.setIndices(grid, size, index)
	for i := range b.warps {
		w := &b.warps[i]
		clear(w.ready)
		w.clock = 0
		w.issued = 0
		w.waits = -1
		w.paths = append(w.paths[:0], path{0, whole})
	}
	// Run every warp up to the next barrier, until all have ended.
	for {
		waiting := 0
		end := int64(0)
		for i := range b.warps {
			w := &b.warps[i]
			if err := b.proceed(w); err != nil {
				return 0, err
			}
			end = max(end, w.clock)
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
				return 0, fmt.Errorf(
					"divergence: %d of %d warps wait at a barrier, warp 0 and warp %d not "+
						"at the same",
					waiting,
					len(b.warps),
					i,
				)
			}
			w.clock = end + 30
		}
		for i := range b.warps {
			b.warps[i].waits = -1
		}
		b.epoch++
	}
}

// setIndices sets the registers that tell a thread its place.
func (b *block) setIndices(grid, size, index [3]uint32) {
	for axis, letter := range []string{"x", "y", "z"} {
		for name, value := range map[string]func(thread uint32) uint32{
			"%ntid.":   func(uint32) uint32 { return size[axis] },
			"%nctaid.": func(uint32) uint32 { return grid[axis] },
			"%ctaid.":  func(uint32) uint32 { return index[axis] },
			"%tid.": func(thread uint32) uint32 {
				return unravel(thread, size)[axis]
			},
		} {
			r, ok := b.k.names[name+letter]
			if !ok {
				continue
			}
			for i := range b.warps {
				for l := range lanes {
					b.warps[i].regs[r][l] = uint64(value(uint32(lanes*i + l)))
				}
			}
		}
	}
}

// put adds threads that continue at pc.
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

// proceed runs a warp to a barrier or its end. It always runs the threads with the lowest
// pc, so threads that diverged converge again.
func (b *block) proceed(w *warp) error {
	for len(w.paths) > 0 {
		p := w.paths[len(w.paths)-1]
		if p.pc >= len(b.k.code) {
			return fmt.Errorf("the code ends without ret")
		}
		ins := &b.k.code[p.pc]
		mask := w.predicated(ins, p.mask)
		// The time when all operands are ready.
		t := w.clock + b.slot
		if ins.pred != noReg {
			t = max(t, w.ready[ins.pred])
		}
		for _, r := range ins.src {
			if r >= 0 {
				t = max(t, w.ready[r])
			}
		}
		// Between branches, barriers and stores, the assembler puts instructions that
		// need not wait first, and the others when their operands are ready.
		w.issued = max(w.issued, t)
		w.clock += b.slot
		if ins.kind >= store {
			w.clock = w.issued
		}
		for _, r := range ins.dst {
			w.ready[r] = t + ins.latency
		}
		w.paths = w.paths[:len(w.paths)-1]
		switch ins.kind {
		case branch:
			w.clock += 8
			w.put(ins.target, mask)
			w.put(p.pc+1, p.mask&^mask)
			continue
		case exit:
			w.put(p.pc+1, p.mask&^mask)
			continue
		case barrier:
			if mask != whole || len(w.paths) > 0 {
				return fmt.Errorf(
					"divergence: threads %#x of warp %d are at a barrier: %s",
					mask,
					w.number,
					ins.text,
				)
			}
			w.waits = p.pc
			w.put(p.pc+1, mask)
			return nil
		}
		if mask != 0 {
			if err := b.step(w, ins, mask); err != nil {
				return fmt.Errorf("warp %d: %s: %w", w.number, ins.text, err)
			}
		}
		w.put(p.pc+1, p.mask)
	}
	return nil
}

// predicated returns those threads of mask that an instruction's predicate holds for.
func (w *warp) predicated(ins *instr, mask uint32) uint32 {
	if ins.pred == noReg {
		return mask
	}
	v := &w.regs[ins.pred]
	for l := range lanes {
		if (v[l] != 0) == ins.negate {
			mask &^= 1 << l
		}
	}
	return mask
}

var zeros vector

// value returns source k of an instruction in all lanes, zeros if there is none.
func (b *block) value(w *warp, ins *instr, k int) *vector {
	if k >= len(ins.src) {
		return &zeros
	}
	if r := ins.src[k]; r < 0 {
		return &b.k.consts[-1-r]
	}
	return &w.regs[ins.src[k]]
}

// step runs an instruction in the threads of mask.
func (b *block) step(w *warp, ins *instr, mask uint32) error {
	switch ins.kind {
	case compute:
		if ins.param >= 0 {
			v := b.params[ins.param]
			if ins.size == 4 {
				v &= whole
			}
			for l := range lanes {
				w.regs[ins.dst[0]][l] = v
			}
			return nil
		}
		if len(ins.dst) == 2 { // both halves of a register
			v := *b.value(w, ins, 0)
			for m := mask; m != 0; m &= m - 1 {
				l := bits.TrailingZeros32(m)
				w.regs[ins.dst[0]][l] = v[l] & whole
				w.regs[ins.dst[1]][l] = v[l] >> 32
			}
			return nil
		}
		d := &w.regs[ins.dst[0]]
		x := b.value(w, ins, 0)
		y := b.value(w, ins, 1)
		z := b.value(w, ins, 2)
		if mask == whole {
			for l := range lanes {
				d[l] = ins.f(x[l], y[l], z[l])
			}
			return nil
		}
		for m := mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			d[l] = ins.f(x[l], y[l], z[l])
		}
	case shuffle:
		return b.shuffle(w, ins, mask)
	case ballot:
		if mask != whole || b.value(w, ins, 1)[0] != whole {
			return fmt.Errorf("divergence: a vote of threads %#x", mask)
		}
		v := uint64(0)
		for l, p := range b.value(w, ins, 0) {
			v |= p << l
		}
		for l := range lanes {
			w.regs[ins.dst[0]][l] = v
		}
	default:
		return b.access(w, ins, mask)
	}
	return nil
}

// shuffle moves values between the lanes of a warp.
func (b *block) shuffle(w *warp, ins *instr, mask uint32) error {
	if mask != whole || b.value(w, ins, 3)[0] != whole {
		return fmt.Errorf("divergence: a shuffle of threads %#x", mask)
	}
	v := *b.value(w, ins, 0)
	distance := *b.value(w, ins, 1)
	clamp := *b.value(w, ins, 2)
	for l := range lanes {
		segment := int(clamp[l]) >> 8 & 31
		c := int(clamp[l]) & 31
		n := int(distance[l]) & 31
		bound := l&segment | c&^segment // the end of the segment
		source := 0
		inside := false
		switch ins.mode {
		case "up":
			source = l - n
			inside = source >= bound
		case "bfly":
			source = l ^ n
			inside = source <= bound
		case "idx":
			source = l&segment | n&^segment
			inside = source <= bound
		default:
			return fmt.Errorf("a shuffle %s is not known", ins.mode)
		}
		if !inside {
			source = l
		}
		w.regs[ins.dst[0]][l] = v[source]
		if len(ins.dst) > 1 {
			w.regs[ins.dst[1]][l] = truth(inside)
		}
	}
	return nil
}

// access moves elements between registers and memory.
func (b *block) access(w *warp, ins *instr, mask uint32) error {
	addresses := *b.value(w, ins, 0)
	elements := len(ins.dst)
	if ins.kind == store {
		elements = len(ins.src) - 1
	}
	bytes := ins.size * elements
	for m := mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		memory, err := b.open(w, ins, addresses[l]+ins.offset, bytes)
		if err != nil {
			return fmt.Errorf("lane %d: %w", l, err)
		}
		for k := range elements {
			mem := memory[k*ins.size:]
			switch {
			case ins.kind == store && ins.size == 4:
				v := b.value(w, ins, 1+k)[l]
				binary.LittleEndian.PutUint32(mem, uint32(v))
			case ins.kind == store:
				binary.LittleEndian.PutUint64(mem, b.value(w, ins, 1+k)[l])
			case ins.kind == atomicAdd:
				old := binary.LittleEndian.Uint32(mem)
				term := uint32(b.value(w, ins, 1)[l])
				binary.LittleEndian.PutUint32(mem, old+term)
				w.regs[ins.dst[0]][l] = uint64(old)
			case ins.size == 4:
				w.regs[ins.dst[k]][l] = uint64(binary.LittleEndian.Uint32(mem))
			default:
				w.regs[ins.dst[k]][l] = binary.LittleEndian.Uint64(mem)
			}
		}
	}
	return nil
}

// open returns the memory from an address, after it has checked and booked an access to the
// first bytes of it.
func (b *block) open(
	w *warp, ins *instr, address uint64, bytes int,
) ([]byte, error) {
	var p *piece
	var offset int
	if ins.space == shared {
		address &= whole
		p = &b.shared
		offset = int(address) - sharedBase
		if offset < 0 || offset+bytes > len(p.data) {
			return nil, fmt.Errorf("byte %d of %d of shared memory is touched",
				offset, len(p.data))
		}
	} else {
		var err error
		p, offset, err = b.m.Memory.find(address, bytes)
		if err != nil {
			return nil, err
		}
	}
	if address%uint64(bytes) != 0 {
		return nil, fmt.Errorf(
			"%d bytes at %#x, which is not a multiple of their number",
			bytes,
			address,
		)
	}
	if p.words != nil {
		for k := offset / 4; k < (offset+bytes)/4; k++ {
			if err := b.book(&p.words[k], w, ins); err != nil {
				return nil, fmt.Errorf("%#x: %w", p.address+uint64(4*k), err)
			}
		}
	}
	return p.data[offset:], nil
}

// collides reports whether nothing orders an earlier access, of block first or a later
// one, before the current one.
func (a access) collides(first uint32, current access) bool {
	return a.block >= first && !(a.atomic && current.atomic) &&
		(a.block != current.block || a.epoch == current.epoch && a.warp != current.warp)
}

// origin names the warp of an earlier access, or its block if that is another one.
func (a access) origin(current access) string {
	if a.block != current.block {
		return "another block"
	}
	return fmt.Sprintf("warp %d", a.warp)
}

// book checks an access to a word against the earlier ones, and records it.
func (b *block) book(c *cell, w *warp, ins *instr) error {
	current := access{b.id, b.epoch, w.number, ins.kind == atomicAdd}
	first := b.launch // the first block whose accesses matter
	valid := c.valid
	if ins.space == shared { // every block starts with new shared memory
		first = b.id
		valid = c.written.block == b.id
	}
	if ins.kind != store {
		if !valid {
			return fmt.Errorf("it is read, and was never written")
		}
		if c.written.collides(first, current) {
			return fmt.Errorf(
				"race: %s has written it, with no barrier between",
				c.written.origin(current),
			)
		}
	}
	if ins.space == readOnly {
		if c.written.block >= first {
			return fmt.Errorf("it is read through the read-only cache, and the launch has written it")
		}
		c.cached = b.id
	}
	if ins.kind == load {
		if c.first < first {
			c.first = b.id
		}
		if c.read[1].block != current.block || c.read[1].warp != current.warp {
			c.read[0] = c.read[1]
		}
		c.read[1] = current
		return nil
	}
	if c.cached >= first {
		return fmt.Errorf("it is written, and the launch has read it through the read-only cache")
	}
	for _, a := range [...]access{c.read[0], c.read[1], c.written} {
		if a.collides(first, current) {
			return fmt.Errorf(
				"race: %s has touched it, with no barrier between",
				a.origin(current),
			)
		}
	}
	if c.first >= first && c.first != b.id {
		return fmt.Errorf("race: another block has read it")
	}
	c.written = current
	c.valid = true
	return nil
}
