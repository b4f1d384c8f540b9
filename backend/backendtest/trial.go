package backendtest

import (
	"fmt"
	"math"
	"runtime"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// trial is one call of a primitive, to be made on any engine.
type trial struct {
	op    string    // the primitive and its variant
	note  string    // flags and kind of data, for messages
	in    []matrix  // inputs
	idx   [][]int32 // index vectors
	out   []output  // destinations
	alias int       // k+1 if the first destination is the tensor of input k
	large bool      // large enough for parallel paths
	call  func(o operands)
}

// operands are an engine and the tensors of a trial in its memory.
type operands struct {
	backend.Backend
	out, in []*tensor.Tensor
	idx     []*backend.Indices
}

// output is one destination of a trial.
type output struct {
	before matrix // its contents before the call
	tol    tolerance
}

// tolerance is how far an element may be from ref's:
// ulps·eps·√terms·scale, plus ulps of the smallest number.
// The zero tolerance demands ref's result, correctly rounded.
type tolerance struct {
	ulps  float64
	terms int     // of the sum; 0 counts as 1
	scale *matrix // by element; nil for |want|
	slack float64 // added
	bits  bool    // compare the sign of zero too
}

// exactly is the destination of a primitive that only moves numbers.
func exactly(rows, cols int) output {
	return output{poison(rows, cols), tolerance{bits: true}}
}

// within is a destination with a tolerance relative to the result.
func within(rows, cols int, ulps float64) output {
	return output{poison(rows, cols), tolerance{ulps: ulps}}
}

// add appends to the note.
func (t *trial) add(note string) {
	if t.note != "" {
		note = t.note + ", " + note
	}
	t.note = note
}

// String describes the trial with its shapes.
func (t trial) String() string {
	x := t.op
	for i, o := range t.out {
		if i > 0 {
			x += ","
		}
		x += " " + o.before.String()
	}
	if len(t.in) > 0 {
		x += " ←"
	}
	for _, m := range t.in {
		x += " " + m.String()
	}
	for _, idx := range t.idx {
		x += fmt.Sprintf(" (%d)", len(idx))
	}
	if t.alias > 0 {
		x += fmt.Sprintf(", dst is input %d", t.alias)
	}
	if t.note != "" {
		x += ", " + t.note
	}
	return x
}

// try makes the trial on ref and on the engine under test, and compares. Then it checks
// that the engine gives the same bits again, and in a replayed step.
func (s *suite) try(t trial) {
	s.Helper()
	if t.large && s.short {
		return
	}
	s.trying = t.String()
	for i := range t.in {
		t.in[i] = s.rounded(t.in[i])
	}
	for i := range t.out {
		t.out[i].before = s.rounded(t.out[i].before)
	}
	want := s.define(t)
	got := s.perform(t)
	for k := range t.out {
		s.compare(t, k, got[k], want[k])
	}
	if t.large && !s.serial {
		usual := runtime.GOMAXPROCS(0)
		defer runtime.GOMAXPROCS(usual)
		for _, n := range []int{1, 2, 4} {
			if n != usual {
				runtime.GOMAXPROCS(n)
				s.repeat(t, got, fmt.Sprintf("with GOMAXPROCS %d, after %d",
					n, usual))
			}
		}
		runtime.GOMAXPROCS(usual)
	} else {
		shift := s.alloc(1, 1+s.rng.IntN(7)) // other addresses
		s.repeat(t, got, "again")
		s.free(shift)
	}
	if len(t.out[0].before.v) > 0 && !s.replayed[t.op] {
		s.replayed[t.op] = true
		s.replay(t, got)
	}
}

// repeat makes the trial once more and fails unless the bits are those of got.
func (s *suite) repeat(t trial, got []matrix, circumstance string) {
	s.Helper()
	for k, m := range s.perform(t) {
		s.wantSame(t.String()+": "+circumstance, m, got[k])
	}
}

// define makes the trial on ref, without aliasing.
func (s *suite) define(t trial) []matrix {
	place := func(m matrix) *tensor.Tensor {
		x := s.ref.Alloc(m.rows, m.cols)
		s.ref.Upload(x, m.v)
		return x
	}
	ops := operands{Backend: s.ref}
	for _, m := range t.in {
		ops.in = append(ops.in, place(m))
	}
	for _, o := range t.out {
		ops.out = append(ops.out, place(o.before))
	}
	for _, host := range t.idx {
		ops.idx = append(ops.idx, s.ref.Indices(host))
	}
	t.call(ops)
	var result []matrix
	for _, x := range ops.out {
		result = append(result, download(s.ref, x))
	}
	return result
}

// magnitude makes the trial on ref with the absolute value of every number and
// returns the first destination: the Σ|term| of the trial's sums. The trial's
// call must have no negative constants.
func (s *suite) magnitude(t trial) *matrix {
	abs := trial{call: t.call, idx: t.idx}
	for _, m := range t.in {
		abs.in = append(abs.in, m.mapped(math.Abs))
	}
	for _, o := range t.out {
		abs.out = append(abs.out, output{before: o.before.mapped(math.Abs)})
	}
	return &s.define(abs)[0]
}

// placed is a trial in the memory of the engine under test. Every destination is
// between two guards, as far as the engine's allocator allows it.
type placed struct {
	operands
	guards []*tensor.Tensor
}

// guardValue fills the guards.
const guardValue = -0.15625

// place allocates and fills the tensors of a trial.
func (s *suite) place(t trial) *placed {
	p := &placed{operands: operands{Backend: s.b}}
	for _, host := range t.idx {
		p.idx = append(p.idx, s.index(host))
	}
	for _, m := range t.in {
		p.in = append(p.in, s.upload(m))
	}
	for k, o := range t.out {
		if k == 0 && t.alias > 0 {
			p.out = append(p.out, p.in[t.alias-1])
			continue
		}
		// An allocator with size classes puts equal sizes side by side.
		guard := constant(min(o.before.rows, 64), o.before.cols, guardValue)
		p.guards = append(p.guards, s.upload(guard))
		p.out = append(p.out, s.alloc(o.before.rows, o.before.cols))
		p.guards = append(p.guards, s.upload(guard))
	}
	s.reset(t, p)
	return p
}

// reset uploads the contents of the trial's tensors before the call.
func (s *suite) reset(t trial, p *placed) {
	for k, o := range t.out {
		s.b.Upload(p.out[k], o.before.v)
	}
	for i, m := range t.in {
		s.b.Upload(p.in[i], m.v)
	}
}

// perform makes the trial on the engine under test and returns the destinations.
func (s *suite) perform(t trial) []matrix {
	s.Helper()
	p := s.place(t)
	t.call(p.operands)
	return s.finish(t, p)
}

// finish checks that nothing but the destinations has changed, frees the tensors and
// returns the destinations.
func (s *suite) finish(t trial, p *placed) []matrix {
	s.Helper()
	var result []matrix
	for _, x := range p.out {
		result = append(result, download(s.b, x))
	}
	for i, m := range t.in {
		if i != t.alias-1 {
			s.wantSame(
				fmt.Sprintf("%v: input %d was changed", t, i+1),
				download(s.b, p.in[i]),
				m,
			)
		}
	}
	for _, g := range p.guards {
		untouched := constant(g.Rows, g.Cols, guardValue)
		s.wantSame(
			fmt.Sprintf("%v: a neighbour of the destination was written", t),
			download(s.b, g),
			untouched,
		)
	}
	for k, x := range p.out {
		if k > 0 || t.alias == 0 {
			s.free(x)
		}
	}
	for _, x := range append(p.guards, p.in...) {
		s.free(x)
	}
	for _, x := range p.idx {
		s.freeIndex(x)
	}
	return result
}

// replay makes the trial within a captured step, and then by a replay of it.
func (s *suite) replay(t trial, want []matrix) {
	s.Helper()
	p := s.place(t)
	step, err := s.b.Capture(func() {
		t.call(p.operands)
	})
	if err != nil {
		s.errorf("%v: Capture: %v", t, err)
		return
	}
	for k, x := range p.out {
		s.wantSame(t.String()+": captured", download(s.b, x), want[k])
	}
	s.reset(t, p)
	if err := step.Replay(); err != nil {
		s.errorf("%v: Replay: %v", t, err)
	}
	for k, m := range s.finish(t, p) {
		s.wantSame(t.String()+": replayed", m, want[k])
	}
	if err := step.Close(); err != nil {
		s.errorf("%v: Close: %v", t, err)
	}
}

// compare fails unless destination k is within its tolerance.
func (s *suite) compare(t trial, k int, got, want matrix) {
	s.Helper()
	bad := 0   // elements out of tolerance
	first := 0 // the first of them
	for i := range want.v {
		if !s.near(t.out[k].tol, i, got.v[i], want.v[i]) {
			if bad == 0 {
				first = i
			}
			bad++
		}
	}
	if bad == 0 {
		return
	}
	which := ""
	if len(t.out) > 1 {
		which = fmt.Sprintf("destination %d, ", k+1)
	}
	g := got.v[first]
	w := want.v[first]
	off := ""
	if d := math.Abs(g - w); d > 0 && !math.IsInf(d, 0) {
		off = fmt.Sprintf(" (off by %.3g, allowed %.3g)",
			d, s.allowed(t.out[k].tol, first, w))
	}
	s.errorf("%v: %selement %s is %v, want %v%s; %d of %d elements are wrong",
		t, which, want.at(first), g, s.round(w), off, bad, len(want.v))
}

// near reports whether got, element i of a destination, is within the tolerance of want.
func (s *suite) near(tol tolerance, i int, got, want float64) bool {
	rounded := s.round(want)
	switch {
	case tol.bits:
		return same(got, rounded)
	case got == rounded || math.IsNaN(got) && math.IsNaN(want):
		return true
	case math.IsInf(rounded, 0) || math.IsInf(got, 0):
		return false
	}
	return math.Abs(got-want) <= s.allowed(tol, i, want)
}

// allowed returns by how much element i may differ from want.
func (s *suite) allowed(tol tolerance, i int, want float64) float64 {
	scale := math.Abs(want)
	if tol.scale != nil {
		scale = tol.scale.v[i]
	}
	return tol.ulps*(s.eps*math.Sqrt(float64(max(tol.terms, 1)))*scale+
		s.smallest) + tol.slack
}
