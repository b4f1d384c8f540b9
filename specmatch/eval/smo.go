package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/specmatch/specmatch/backend/cpu/simd"
)

// tau replaces a quadratic coefficient that is not positive, as in libsvm:
// two points at distance zero have the kernel block [1 1; 1 1].
const tau = 1e-12

// tolerance bounds the violation of the optimality conditions, as in libsvm, and mostSteps
// the iterations for a two-class problem, where libsvm has no limit.
const (
	tolerance = 1e-3
	mostSteps = 100_000_000
)

// ErrNotConverged is wrapped by the error of a solver that ran out of iterations.
var ErrNotConverged = errors.New("did not converge")

// smo solves the dual of the two-class support vector machine
//
//	min ½ αᵀQα − Σα_t   subject to 0 ≤ α_t ≤ C, Σ y_t α_t = 0,   Q_st = y_s y_t K_st
//
// by sequential minimal optimisation: two variables at a time, chosen by second
// order information (WSS2 of Fan, Chen and Lin 2005), with shrinking.
//
// Where libsvm keeps the gradient G = Qα − 1, this keeps f_t = −y_t G_t. That
// drops every sign from the inner loops and changes no rounding:
//
//	I_up  = {y=+1, α<C} ∪ {y=−1, α>0}    α can move so that yα grows
//	I_low = {y=+1, α>0} ∪ {y=−1, α<C}    α can move so that yα falls
//	i = argmax {f_t : t ∈ I_up}
//	j = argmax {(f_i − f_t)²/(2 − 2K_it) : t ∈ I_low, f_t < f_i}
//	stop when f_i − min {f_t : t ∈ I_low} < tolerance
//
// The order of every sum, the rounding of K to float32, the tie rule (the last
// of equals) and the moments of shrinking are libsvm's, so the iterates are the
// same numbers, not just the same optimum: two solutions that are both within
// the tolerance can differ in the class of a test graph.
//
// Two families of arrays: "by position" is the order the solver works in, which
// shrinking permutes so that the active variables come first; "by point" is the
// order of the kernel matrix. perm maps the first to the second.
type smo struct {
	n int
	k []float32 // kernel matrix, row-major n×n, by point
	// diag is the diagonal of the kernel before it was rounded, by point; nil
	// stands for ones.
	diag []float64
	y    []float64 // ±1 by position

	c       float64
	maxIter int  // 0: mostSteps
	whole   bool // nothing is shrunk

	perm     []int32   // point at a position
	alpha    []float64 // by position
	f        []float64 // −y_t G_t by position; stale beyond active
	up       []float64 // 0 if t ∈ I_up, −Inf if not
	low      []float64 // 2 if t ∈ I_low, +Inf if not, as simd.ArgmaxGain wants it
	active   int
	moved    bool // perm is no longer the identity
	unshrunk bool // the one return of all variables near convergence has happened

	// bar_t = Σ {C·y_s·K_st : α_s = C} by point, the part of the gradient that
	// shrunk variables need back. It is only read when they return, so changes
	// are logged and applied then.
	bar      []float64
	log      []term    // rows to be added to bar: point and ±C·y
	logLimit int       // entries, 0: 4n; a long run must not fill the memory
	sums     []float64 // scratch, by point

	rows rowCache

	iter    int
	counter int  // iterations until the next shrinking
	touched bool // some α reached C on the way
	before  path // where the path stood before one did
}

// path is the state of a solver whose variables are all below C, so that a larger C would
// have brought it there, too.
type path struct {
	perm            []int32
	alpha, y, f     []float64
	up, low         []float64
	active          int
	moved, unshrunk bool
	iter, counter   int
}

// save keeps the state at the beginning of the present iteration.
func (s *smo) save() {
	b := &s.before
	b.perm = append(b.perm[:0], s.perm...)
	for i, v := range [][]float64{s.alpha, s.y, s.f, s.up, s.low} {
		saved := []*[]float64{&b.alpha, &b.y, &b.f, &b.up, &b.low}[i]
		*saved = append((*saved)[:0], v...)
	}
	b.active = s.active
	b.moved = s.moved
	b.unshrunk = s.unshrunk
	b.iter = s.iter - 1
	b.counter = s.counter + 1
}

// resume goes back to the saved state, under a larger C.
func (s *smo) resume() {
	b := &s.before
	copy(s.perm, b.perm)
	for i, v := range [][]float64{b.alpha, b.y, b.f, b.up, b.low} {
		copy([][]float64{s.alpha, s.y, s.f, s.up, s.low}[i], v)
	}
	s.active = b.active
	s.moved = b.moved
	s.unshrunk = b.unshrunk
	s.iter = b.iter
	s.counter = b.counter
	s.touched = false
	s.log = s.log[:0]
	clear(s.bar)
	s.rows.clear()
}

// reset prepares for n points: the first pos of class +1, the others of class
// −1, with the row-major kernel matrix k. Buffers are kept.
func (s *smo) reset(k []float32, n, pos int) {
	s.n = n
	s.k = k
	s.y = grow(s.y, n)
	s.perm = grow(s.perm, n)
	s.alpha = grow(s.alpha, n)
	s.f = grow(s.f, n)
	s.up = grow(s.up, n)
	s.low = grow(s.low, n)
	s.bar = grow(s.bar, n)
	for t := range s.perm {
		s.perm[t] = int32(t)
		s.alpha[t] = 0
		s.y[t] = 1
		if t >= pos {
			s.y[t] = -1
		}
		s.f[t] = s.y[t] // G = −1 at α = 0
		s.bar[t] = 0
	}
	s.active = n
	s.moved = false
	s.unshrunk = false
	s.iter = 0
	s.counter = min(n, 1000) + 1
	s.touched = false
	s.log = s.log[:0]
	s.rows.clear()
	for t := range s.perm {
		s.setStatus(t)
	}
}

// setStatus derives the membership of position t in I_up and I_low from α.
func (s *smo) setStatus(t int) {
	atC := s.alpha[t] >= s.c
	at0 := s.alpha[t] <= 0
	if s.y[t] < 0 {
		atC, at0 = at0, atC
	}
	s.up[t], s.low[t] = 0, 2
	if atC {
		s.up[t] = math.Inf(-1)
	}
	if at0 {
		s.low[t] = math.Inf(1)
	}
}

func (s *smo) atUpper(t int) bool { return s.alpha[t] >= s.c }
func (s *smo) isFree(t int) bool  { return s.alpha[t] > 0 && s.alpha[t] < s.c }

// solve runs to convergence. ctx is checked every thousand iterations.
func (s *smo) solve(ctx context.Context) error {
	period := min(s.n, 1000) // iterations between two shrinkings
	fresh := false           // i and fi are those of the present f
	var i int
	var fi float64
	for {
		if s.iter%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		s.counter--
		if s.counter == 0 {
			s.counter = period
			if !s.whole && s.doShrink() {
				fresh = false
			}
		}
		if !fresh {
			fi, i = argmaxUp(s.f[:s.active], s.up[:s.active])
		}
		j := s.partner(i, fi)
		if j < 0 {
			if s.active == s.n {
				return nil // selecting again would select the same
			}
			s.unshrink()
			fi, i = argmaxUp(s.f[:s.active], s.up[:s.active])
			j = s.partner(i, fi)
			if j < 0 {
				return nil
			}
			s.counter = 1
		}
		if s.iter >= cmp.Or(s.maxIter, mostSteps) {
			return fmt.Errorf("eval: SMO with C=%g on %d points: %w in %d iterations; is the scale of "+
				"the features extreme?",
				s.c, s.n, ErrNotConverged, s.iter)
		}
		s.iter++
		ki := s.row(i, -1)
		kj := s.row(j, i)
		bi, bj := s.step(i, j, float64(ki[j]))
		fi, i = simd.SubtractArgmax(s.f[:s.active], s.up[:s.active], ki, kj, bi, bj)
		fresh = true
	}
}

// partner returns the second variable for i, or −1 if no pair violates the
// optimality conditions by the tolerance or more.
func (s *smo) partner(i int, fi float64) int {
	if i < 0 {
		return -1
	}
	f := s.f[:s.active]
	low := s.low[:s.active]
	j := -1
	if s.diag == nil {
		j = simd.ArgmaxGain(f, low, s.row(i, -1), fi, tau)
	} else {
		j = s.argmaxGain(i, fi)
	}
	if j < 0 || fi-f[j] >= tolerance {
		return j
	}
	// The best partner violates by less than that; another might by more.
	for t, v := range f {
		if low[t] == 2 && fi-v >= tolerance {
			return j
		}
	}
	return -1
}

// argmaxGain is simd.ArgmaxGain for a kernel of any diagonal.
func (s *smo) argmaxGain(i int, fi float64) int {
	best := math.Inf(-1)
	position := -1
	for t, k := range s.row(i, -1) {
		if gap := fi - s.f[t]; gap > 0 && s.low[t] == 2 {
			if gain := gap * gap / s.curvature(i, t, float64(k)); gain >= best {
				best = gain
				position = t
			}
		}
	}
	return position
}

// curvature is K_ii + K_jj − 2K_ij, which is not to be 0, of positions i and j.
func (s *smo) curvature(i, j int, kij float64) float64 {
	quad := 2 - 2*kij
	if s.diag != nil {
		quad = s.diag[s.perm[i]] + s.diag[s.perm[j]] - float64(2*kij)
	}
	if quad <= 0 {
		quad = tau
	}
	return quad
}

// step minimises over the variables at i and j alone and returns the changes of
// y_iα_i and y_jα_j. The order of the operations is libsvm's.
func (s *smo) step(i, j int, kij float64) (bi, bj float64) {
	oldI := s.alpha[i]
	oldJ := s.alpha[j]
	ai := oldI
	aj := oldJ
	quad := s.curvature(i, j, kij)
	if s.y[i] != s.y[j] {
		// −G = y·f, so −G_i − G_j is f_i − f_j up to the sign of y_i.
		delta := (s.y[i]*s.f[i] + s.y[j]*s.f[j]) / quad
		diff := ai - aj
		ai += delta
		aj += delta
		if diff > 0 {
			if aj < 0 {
				ai = diff
				aj = 0
			}
			if ai > s.c {
				ai = s.c
				aj = s.c - diff
			}
		} else {
			if ai < 0 {
				ai = 0
				aj = -diff
			}
			if aj > s.c {
				ai = s.c + diff
				aj = s.c
			}
		}
	} else {
		delta := (s.y[j]*s.f[j] - s.y[i]*s.f[i]) / quad
		sum := ai + aj
		ai -= delta
		aj += delta
		if sum > s.c {
			if ai > s.c {
				ai = s.c
				aj = sum - s.c
			}
			if aj > s.c {
				ai = sum - s.c
				aj = s.c
			}
		} else {
			if aj < 0 {
				ai = sum
				aj = 0
			}
			if ai < 0 {
				ai = 0
				aj = sum
			}
		}
	}
	if !s.touched && max(ai, aj) >= s.c {
		s.save()
	}
	wasI := s.atUpper(i)
	wasJ := s.atUpper(j)
	s.alpha[i], s.alpha[j] = ai, aj
	s.setStatus(i)
	s.setStatus(j)
	s.logBar(i, wasI)
	s.logBar(j, wasJ)
	return s.y[i] * (ai - oldI), s.y[j] * (aj - oldJ)
}

// logBar notes that the variable at t reached or left C.
func (s *smo) logBar(t int, wasBound bool) {
	if isBound := s.atUpper(t); isBound != wasBound {
		change := s.c * s.y[t]
		if wasBound {
			change = -change
		}
		s.touched = true
		s.log = append(s.log, term{int(s.perm[t]), change})
		if len(s.log) >= cmp.Or(s.logLimit, 4*s.n) {
			s.flush()
		}
	}
}

// doShrink sets aside variables at a bound that will probably stay there, and
// reports whether anything moved.
func (s *smo) doShrink() bool {
	gmax := math.Inf(-1)
	fmin := math.Inf(1)
	for t, f := range s.f[:s.active] {
		if v := f + s.up[t]; v > gmax {
			gmax = v
		}
		if s.low[t] == 2 && f < fmin {
			fmin = f
		}
	}
	changed := false
	if !s.unshrunk && gmax-fmin <= 10*tolerance {
		s.unshrunk = true
		changed = s.active < s.n
		s.unshrink()
	}
	for t := 0; t < s.active; t++ {
		if !s.hopeless(t, gmax, fmin) {
			continue
		}
		changed = true
		s.active--
		for s.active > t {
			if !s.hopeless(s.active, gmax, fmin) {
				s.swap(t, s.active)
				s.rows.swaps = append(s.rows.swaps, [2]int32{int32(t), int32(s.active)})
				s.moved = true
				break
			}
			s.active--
		}
	}
	if s.active <= s.rows.stride/2 {
		s.rows.clear() // rows half as long use the caches better
	}
	return changed
}

// hopeless reports whether the variable at t is at a bound and the extremes of f
// over I_up and I_low suggest that it will stay there.
func (s *smo) hopeless(t int, gmax, fmin float64) bool {
	return s.up[t] < 0 && s.f[t] > gmax || s.low[t] > 2 && s.f[t] < fmin
}

// flush applies the log to bar, in order.
func (s *smo) flush() {
	s.addRows(s.bar, s.log)
	s.log = s.log[:0]
}

// addRows adds multiples of kernel rows to dst, by point, one after the other.
func (s *smo) addRows(dst []float64, terms []term) {
	for ; len(terms) > 1; terms = terms[2:] {
		a, b := terms[0], terms[1]
		simd.AddRows(dst, s.point(a.at), s.point(b.at), a.coef, b.coef)
	}
	for _, a := range terms { // the last of an odd number
		simd.AddRows(dst, s.point(a.at), s.point(a.at), a.coef, 0)
	}
}

// unshrink makes every variable active again, with its f recomputed.
func (s *smo) unshrink() {
	if s.active == s.n {
		return
	}
	s.flush()
	// Adding whole rows is faster than picking the points that return.
	shrunk := s.perm[s.active:]
	s.sums = append(s.sums[:0], s.bar...)
	for t, p := range shrunk {
		s.sums[p] -= s.y[s.active+t]
	}
	free := s.log // empty: its memory is scratch
	for t := range s.active {
		if s.isFree(t) {
			free = append(free, term{int(s.perm[t]), s.y[t] * s.alpha[t]})
		}
	}
	s.addRows(s.sums, free)
	for t, p := range shrunk {
		s.f[s.active+t] = -s.sums[p]
	}
	s.active = s.n
	s.rows.clear()
}

func (s *smo) swap(t, u int) {
	s.perm[t], s.perm[u] = s.perm[u], s.perm[t]
	s.alpha[t], s.alpha[u] = s.alpha[u], s.alpha[t]
	s.y[t], s.y[u] = s.y[u], s.y[t]
	s.f[t], s.f[u] = s.f[u], s.f[t]
	s.up[t], s.up[u] = s.up[u], s.up[t]
	s.low[t], s.low[u] = s.low[u], s.low[t]
}

// rho is the threshold of the decision function Σ y_tα_t K(x_t,x) − ρ: the mean
// of y_tG_t over the free variables, or the middle of its interval without any.
func (s *smo) rho() float64 {
	lo, hi := math.Inf(-1), math.Inf(1)
	var sum float64
	free := 0
	for t := range s.n {
		g := -s.f[t]
		switch {
		case s.up[t] == 0 && s.low[t] == 2:
			free++
			sum += g
		case s.up[t] == 0:
			hi = min(hi, g)
		default:
			lo = max(lo, g)
		}
	}
	if free > 0 {
		return sum / float64(free)
	}
	return (lo + hi) / 2
}

// coefficients returns y_tα_t by point. The slice is scratch.
func (s *smo) coefficients() []float64 {
	s.sums = grow(s.sums, s.n)
	for t, p := range s.perm[:s.n] {
		s.sums[p] = s.y[t] * s.alpha[t]
	}
	return s.sums
}

// point returns the kernel row of a point, by point.
func (s *smo) point(p int) []float32 {
	return s.k[p*s.n : (p+1)*s.n]
}

// row returns the kernel row of position t against the active positions. The
// row stays valid while no more than one other is asked for with keep = t.
func (s *smo) row(t, keep int) []float32 {
	if !s.moved {
		return s.point(t)[:s.active]
	}
	p := int(s.perm[t])
	if keep >= 0 {
		keep = int(s.perm[keep])
	}
	return s.rows.get(p, keep, s.perm[:s.active], s.point(p))
}

// rowCache keeps kernel rows in the order of the positions, so that the inner
// loops run over contiguous memory after shrinking, too.
type rowCache struct {
	buf    []float32
	stride int     // elements of a row; 0: the cache is empty
	owner  []int32 // point whose row a slot holds, or −1
	slot   []int32 // slot that holds the row of a point, or −1
	next   int     // slot to be overwritten next
	limit  int     // elements of buf, 0: cacheFloats

	swaps [][2]int32 // exchanges of positions since the cache was empty
	done  []int      // how many of them the row in a slot has seen
	moved []int32    // positions that held other points when seen exchanges had happened
	seen  int
}

// cacheFloats bounds a row cache: 32 MB hold all rows of 2900 active variables.
const cacheFloats = 8 << 20

func (c *rowCache) clear() { c.stride = 0 }

// get returns the row src of point p in the order perm, which covers the active
// positions. The row of point keep is not overwritten, −1 for none.
func (c *rowCache) get(p, keep int, perm []int32, src []float32) []float32 {
	a := len(perm)
	if c.stride == 0 {
		slots := max(2, min(a, cmp.Or(c.limit, cacheFloats)/a)) // two rows are in use at a time
		c.stride = a
		c.buf = growMatrix(c.buf, slots*a)
		c.owner = grow(c.owner, slots)
		c.slot = grow(c.slot, len(src))
		for i := range c.owner {
			c.owner[i] = -1
		}
		for i := range c.slot {
			c.slot[i] = -1
		}
		c.next = 0
		c.swaps = c.swaps[:0]
		c.seen = -1
		c.done = grow(c.done, slots)
	}
	if q := int(c.slot[p]); q >= 0 {
		row := c.buf[q*c.stride:][:c.stride]
		for _, s := range c.swaps[c.done[q]:] {
			row[s[0]] = row[s[1]] // what is swapped out is not read again
		}
		c.done[q] = len(c.swaps)
		return row[:a]
	}
	if keep >= 0 && int(c.slot[keep]) == c.next {
		c.next = (c.next + 1) % len(c.owner)
	}
	q := c.next
	c.next = (c.next + 1) % len(c.owner)
	if o := c.owner[q]; o >= 0 {
		c.slot[o] = -1
	}
	c.owner[q], c.slot[p], c.done[q] = int32(p), int32(q), len(c.swaps)
	if c.seen < len(c.swaps) {
		c.seen = len(c.swaps)
		c.moved = c.moved[:0]
		for t, p := range perm {
			if t != int(p) {
				c.moved = append(c.moved, int32(t))
			}
		}
	}
	dst := c.buf[q*c.stride:][:a]
	copy(dst, src)
	for _, t := range c.moved { // most points are at their place
		if int(t) >= a {
			break // the last positions went without an exchange
		}
		dst[t] = src[perm[t]]
	}
	return dst
}

// grow returns a slice of length n, with the storage of v if that suffices.
// The contents are unspecified.
func grow[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	return v[:n]
}

// growMatrix is grow for what is read at random.
func growMatrix(v []float32, n int) []float32 {
	if cap(v) < n {
		v = make([]float32, n)
		simd.HugePages(v)
	}
	return v[:n]
}

// argmaxUp returns the largest f_t with up_t = 0 and its last index, −1 if none.
func argmaxUp(f, up []float64) (best float64, position int) {
	best = math.Inf(-1)
	position = -1
	up = up[:len(f)]
	for t, v := range f {
		v += up[t]
		if v >= best && v > math.Inf(-1) {
			best = v
			position = t
		}
	}
	return best, position
}
