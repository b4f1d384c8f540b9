package eval

import (
	"context"
	"fmt"
	"math"
)

// LinearSVC is a linear classifier trained with the squared hinge loss, one
// class against the rest; two classes need one machine.
type LinearSVC struct {
	// Classes are the labels that occurred in training, ascending.
	Classes []int
	// Coef is the row-major matrix of weights, one row of features per machine.
	Coef []float64
	// Intercept has one entry per machine.
	Intercept []float64
	// Iterations is the largest number of Newton steps of any machine.
	Iterations int

	dim int
}

// FitLinearSVC trains on the rows of the row-major [n×dim] matrix x with labels
// y ≥ 0, not all equal. For every class against the rest, with t_i = ±1, it finds
// the minimum of
//
//	f(w,b) = ½‖w‖² + ½b² + C Σ_i max(0, 1 − t_i(w·x_i + b))²
//
// which is scikit-learn's LinearSVC(dual=False, intercept_scaling=1): liblinear
// treats the intercept as the weight of one more feature of value 1, so it is
// regularised, too. With two classes the machine is positive for the larger label.
//
// f is within a millionth of its minimum, and within rounding of it unless the
// features are both large and nearly collinear. An error says so where that cannot
// be had: where features agree to twelve digits, or are so large that rounding the
// weights to float64 alone would miss it.
func FitLinearSVC(ctx context.Context, x []float64, dim int, y []int, c float64) (*LinearSVC, error) {
	if err := checkC(c); err != nil {
		return nil, err
	}
	g, err := trainingGroup(x, dim, y)
	if err != nil {
		return nil, err
	}
	if err := checkColumns(dim); err != nil {
		return nil, err
	}
	m := &LinearSVC{Classes: g.class, dim: dim}
	var w linearWorker
	w.load(x, dim, upTo(len(y)))
	err = w.fit(ctx, y, g.class, []float64{c}, func(_, _ int, weights []float64, iter int) {
		m.Coef = append(m.Coef, weights[:dim]...)
		m.Intercept = append(m.Intercept, weights[dim])
		m.Iterations = max(m.Iterations, iter)
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// maxColumns bounds the features of linear machines, whose Hessian takes 8·d² bytes.
const maxColumns = 8192

func checkColumns(d int) error {
	if d > maxColumns {
		return fmt.Errorf("eval: %d features; the linear solver keeps a matrix of all their pairs and takes up to %d", d, maxColumns)
	}
	return nil
}

func checkC(c float64) error {
	if !(c > 0) || math.IsInf(c, 0) {
		return fmt.Errorf("eval: C is %g, want a positive number", c)
	}
	return nil
}

// Decision returns the row-major matrix of decision values w·x + b of the rows of
// x, one column per machine.
func (m *LinearSVC) Decision(x []float64) ([]float64, error) {
	if err := checkMatrix(x, m.dim); err != nil {
		return nil, err
	}
	n := len(x) / m.dim
	out := make([]float64, 0, n*len(m.Intercept))
	for i := range n {
		for q, b := range m.Intercept {
			out = append(out, dot(m.Coef[q*m.dim:(q+1)*m.dim], x[i*m.dim:(i+1)*m.dim])+b)
		}
	}
	return out, nil
}

// Predict returns the class of every row of x: of two, the larger label if the
// decision is positive; of more, the first with the largest decision.
func (m *LinearSVC) Predict(x []float64) ([]int, error) {
	dec, err := m.Decision(x)
	if err != nil {
		return nil, err
	}
	q := len(m.Intercept)
	out := make([]int, len(dec)/q)
	for i := range out {
		out[i] = m.Classes[strongest(dec[i*q:(i+1)*q])]
	}
	return out, nil
}

// strongest returns the index of the class that the decision values of one point
// select.
func strongest(dec []float64) int {
	if len(dec) == 1 {
		if dec[0] > 0 {
			return 1
		}
		return 0
	}
	best := 0
	for c, v := range dec {
		if v > dec[best] {
			best = c
		}
	}
	return best
}

// linearWorker holds a training set and the buffers of one goroutine.
//
// The solver is the modified finite Newton method of Keerthi and DeCoste (2005).
// f is piecewise quadratic; on the piece given by the active points
// I = {i : s_i > 0}, s_i = 1 − t_i w·x_i, the bias being the last column of X,
//
//	∇f = w − 2C Σ_I t_i s_i x_i        H = 1 + 2C Σ_I x_i x_iᵀ
//
// A step solves H p = −∇f and goes to the minimum of f along p. Once the piece is
// the right one, that step is the solution, so there is nothing to tune and
// convergence does not slow down with C, as it does for dual methods.
//
// The m×m matrix Σ_I x_i x_iᵀ is updated by the few points that enter or leave I,
// within a fit and from one C to the next.
type linearWorker struct {
	n, m, ld int       // points, columns with the bias, row length
	x        []float64 // n×ld, the columns beyond m zero
	full     []float64 // Σ over all points of x_i x_iᵀ, upper triangle, m×ld
	gram     []float64 // the same over the active points
	chol     []float64 // factor of H
	t        []float64 // ±1
	short    []float64 // s_i
	in       []bool    // active points
	w, low   []float64 // the weights are w + low
	g        []float64 // ∇f
	p, tp    []float64 // the Newton step, and t_i p·x_i
	// Conjugate gradients: residual, direction d and t_i d·x_i, and a product.
	r, d, td, q []float64
}

// load copies the rows idx of x.
func (s *linearWorker) load(x []float64, d int, idx []int) {
	s.n, s.m = len(idx), d+1
	s.ld = (s.m + 3) &^ 3
	s.x = grow(s.x, s.n*s.ld)
	clear(s.x)
	for r, i := range idx {
		row := s.x[r*s.ld : (r+1)*s.ld]
		copy(row, x[i*d:(i+1)*d])
		row[d] = 1
	}
	s.full = grow(s.full, s.m*s.ld)
	s.gram = grow(s.gram, s.m*s.ld)
	s.chol = grow(s.chol, s.m*s.ld)
	s.in = grow(s.in, s.n)
	for _, v := range []*[]float64{&s.t, &s.short, &s.tp, &s.td} {
		*v = grow(*v, s.n)
	}
	for _, v := range []*[]float64{&s.w, &s.low, &s.g, &s.p, &s.r, &s.d, &s.q} {
		*v = grow(*v, s.ld)
	}
	clear(s.full)
	all := gramUpdate{dst: s.full, m: s.m, ld: s.ld}
	for i := range s.n {
		all.add(s.row(i), 1)
	}
	all.flush()
}

func (s *linearWorker) row(i int) []float64 { return s.x[i*s.ld : (i+1)*s.ld] }

// fit trains every class of classes against the rest, y being the labels of the
// loaded points, at every C of cs in turn, each starting from the last, and hands
// the m weights to keep(machine, index of C, weights, Newton steps). The weights
// are only valid during the call.
func (s *linearWorker) fit(ctx context.Context, y, classes []int, cs []float64, keep func(q, c int, weights []float64, iter int)) error {
	machines := len(classes)
	if machines == 2 {
		machines = 1
	}
	for q := range machines {
		positive := classes[q]
		if machines == 1 {
			positive = classes[1]
		}
		for i, c := range y {
			s.t[i] = -1
			if c == positive {
				s.t[i] = 1
			}
			s.in[i] = true // margin 0 at w = 0
		}
		clear(s.w)
		copy(s.gram, s.full)
		for c, price := range cs {
			iter, err := s.newton(ctx, price)
			if err != nil {
				return err
			}
			keep(q, c, s.w[:s.m], iter)
		}
	}
	return nil
}

// The Newton decrement λ² = ∇fᵀH⁻¹∇f is twice what a step still gains on the
// present piece, whatever the scale of the features. The goal is zero up to
// rounding; a well-scaled problem reaches it in some ten steps. Where f and the
// decrement have both ceased to fall, rounding is in the way: the shortfalls are
// then computed to twice the precision, and a decrement that is merely small ends
// the search.
const (
	decrementGoal   = 1e-20 // relative to f
	decrementEnough = 1e-10
	roundingEnough  = 5e-7
	progress        = 1e-6 // of f
	stalledSteps    = 5    // without progress, nor a decrement of half the least
	newtonSteps     = 500

	conjugateGoal  = 1e-16 // of the residual, squared in the norm of H⁻¹
	conjugateSteps = 10    // times the number of weights; without rounding, once would do
)

// newton minimises f for one C from the present weights.
func (s *linearWorker) newton(ctx context.Context, c float64) (iter int, err error) {
	least, lowest, stalled := math.Inf(1), math.Inf(1), 0
	precise := false
	clear(s.low)
	for iter = 0; ; iter++ {
		if err := ctx.Err(); err != nil {
			return iter, err
		}
		// Recomputed each time, so that rounding does not pile up.
		if precise {
			s.preciseShortfalls()
		} else {
			s.shortfalls()
		}
		if s.activate() || iter == 0 {
			if err := s.factor(c); err != nil {
				return iter, err
			}
		}
		f := s.objective(c)
		s.gradient(c)
		s.direction(c)
		decrement := -dot(s.g, s.p)
		reached := decrement <= decrementGoal*f
		enough := decrement <= decrementEnough*f && s.staysOnPiece()
		switch {
		case precise && (reached || enough):
			return iter, s.round(c, f)
		case reached && enough:
			return iter, nil
		case iter == newtonSteps:
			return iter, fmt.Errorf("eval: linear SVM with C=%g on %d points: %w in %d Newton steps (decrement %g of %g); is the scale of the features extreme?",
				c, s.n, ErrNotConverged, iter, decrement, f)
		case decrement < 0.5*least || f < (1-progress)*lowest:
			stalled = 0
		case stalled < stalledSteps:
			stalled++
		case precise && decrement <= decrementEnough*f:
			// A point at the edge of its piece that rounding moves in and out.
			return iter, s.round(c, f)
		default:
			precise, stalled = true, 0
		}
		least, lowest = min(least, decrement), min(lowest, f)
		step := s.lineSearch(c)
		for j, v := range s.p {
			move := float64(step * v)
			if precise {
				move += s.low[j]
			}
			s.w[j], s.low[j] = twoSum(s.w[j], move)
		}
	}
}

// staysOnPiece reports whether a full step keeps the active points. Only then is
// its end a minimum of f, and not just of the present piece.
func (s *linearWorker) staysOnPiece() bool {
	for i, v := range s.short {
		if s.in[i] != (v > s.tp[i]) {
			return false
		}
	}
	return true
}

// round rounds the weights to float64. Where features or C are so large that the
// rounding alone moves the objective from its minimum f, no answer is right.
func (s *linearWorker) round(c, f float64) error {
	clear(s.low)
	s.preciseShortfalls()
	if rounded := s.objective(c); rounded > (1+roundingEnough)*f {
		return fmt.Errorf("eval: linear SVM with C=%g on %d points: the features are too large: rounding of the weights takes the objective from %g to %g",
			c, s.n, f, rounded)
	}
	return nil
}

// shortfalls sets short from w.
func (s *linearWorker) shortfalls() {
	matVec(s.short, s.x, s.w, s.t)
	for i, z := range s.short {
		s.short[i] = 1 - z
	}
}

// preciseShortfalls sets short from w + low by compensated dot products (Ogita,
// Rump and Oishi 2005). With large features and C, s_i is many digits smaller than
// the 1 that it is left over from.
func (s *linearWorker) preciseShortfalls() {
	for i, t := range s.t {
		sum, low := 1.0, 0.0
		for j, x := range s.row(i) {
			x *= -t
			product := float64(x * s.w[j])
			var lost float64
			sum, lost = twoSum(sum, product)
			low += lost + math.FMA(x, s.w[j], -product) + float64(x*s.low[j])
		}
		s.short[i] = sum + low
	}
}

// twoSum returns a+b rounded and what rounding lost.
func twoSum(a, b float64) (sum, lost float64) {
	sum = a + b
	z := sum - a
	return sum, (a - (sum - z)) + (b - z)
}

// direction solves H p = −∇f by conjugate gradients with the Cholesky factor as
// preconditioner, and sets tp. One step does unless H is so badly conditioned that
// the factor is poor; products with X instead of XᵀX then recover what squaring X
// has lost.
func (s *linearWorker) direction(c float64) {
	clear(s.p)
	clear(s.tp)
	for j, v := range s.g {
		s.r[j] = -v
	}
	copy(s.d, s.r)
	s.solve(s.d)
	rho := dot(s.r, s.d)
	goal := conjugateGoal * rho
	for k := 0; k < conjugateSteps*s.m && rho > goal; k++ {
		matVec(s.td, s.x, s.d, s.t)
		curvature := 0.0
		for i, v := range s.td {
			if s.in[i] {
				curvature += float64(v * v)
			}
		}
		a := rho / (dot(s.d, s.d) + 2*c*curvature)
		for j, v := range s.d {
			s.p[j] += float64(a * v)
		}
		for i, v := range s.td {
			s.tp[i] += float64(a * v)
		}
		copy(s.q, s.d)
		s.addActive(s.q, 2*c, s.td)
		for j, v := range s.q {
			s.r[j] -= float64(a * v)
		}
		copy(s.q, s.r)
		s.solve(s.q)
		next := dot(s.r, s.q)
		for j, v := range s.q {
			s.d[j] = v + float64(next/rho*s.d[j])
		}
		rho = next
	}
}

// activate finds the active points, moves gram to them and reports whether any
// entered or left.
func (s *linearWorker) activate() bool {
	changed, active := 0, 0
	for i, v := range s.short {
		now := v > 0
		if now != s.in[i] {
			changed++
		}
		if now {
			active++
		}
	}
	u := gramUpdate{dst: s.gram, m: s.m, ld: s.ld}
	if changed > active { // cheaper to start over
		clear(s.gram)
		clear(s.in)
	}
	for i, v := range s.short {
		now := v > 0
		if now == s.in[i] {
			continue
		}
		s.in[i] = now
		if now {
			u.add(s.row(i), 1)
		} else {
			u.add(s.row(i), -1)
		}
	}
	u.flush()
	return changed > 0
}

// objective returns f.
func (s *linearWorker) objective(c float64) float64 {
	var loss float64
	for _, v := range s.short {
		if v > 0 {
			loss += float64(v * v)
		}
	}
	return 0.5*dot(s.w, s.w) + c*loss
}

// gradient sets g = ∇f.
func (s *linearWorker) gradient(c float64) {
	copy(s.g, s.w)
	s.addActive(s.g, -2*c, s.short)
}

// addActive adds c Σ_I t_i v_i x_i to dst.
func (s *linearWorker) addActive(dst []float64, c float64, v []float64) {
	var rows [4][]float64
	var r [4]float64
	k := 0
	for i, in := range s.in {
		if !in {
			continue
		}
		rows[k], r[k] = s.row(i), c*v[i]*s.t[i]
		if k++; k == 4 {
			axpy4(dst, &rows, &r)
			k = 0
		}
	}
	if k > 0 {
		for ; k < 4; k++ {
			rows[k], r[k] = rows[0], 0
		}
		axpy4(dst, &rows, &r)
	}
}

// lineSearch returns the step to the minimum of f along p: the root of
//
//	φ'(a) = w·p + a p·p − 2C Σ {(s_i − a v_i) v_i : s_i > a v_i},  v_i = t_i p·x_i
//
// which rises and is piecewise linear, so that Newton's method, kept inside a
// bracket, ends after a few steps.
func (s *linearWorker) lineSearch(c float64) float64 {
	wp, pp := dot(s.w, s.p), dot(s.p, s.p)
	slope := func(a float64) (d1, d2 float64) {
		tp := s.tp[:len(s.short)]
		for i, short := range s.short {
			v := tp[i]
			if short -= float64(a * v); short > 0 {
				d1 += float64(short * v)
				d2 += float64(v * v)
			}
		}
		return wp + a*pp - 2*c*d1, pp + 2*c*d2
	}
	lo, hi := 0.0, math.Inf(1)
	at, a := 0.0, 1.0
	start, _ := slope(0)
	for range 100 {
		d1, d2 := slope(a)
		if math.Abs(d1) <= 1e-14*math.Abs(start) {
			return a
		}
		if d1 < 0 {
			lo = a
		} else {
			hi = a
		}
		at, a = a, a-d1/d2
		if !(a > lo && a < hi) {
			if math.IsInf(hi, 1) {
				a = 2 * at
			} else {
				a = lo + (hi-lo)/2
			}
		}
		if a == at || hi-lo <= 1e-15*hi {
			return a
		}
	}
	return a
}

// leastPivot is a bound on the pivots of H. They are at least 1, as its eigenvalues
// are, so a smaller one is rounding error.
const leastPivot = 0.5

// factor computes the upper Cholesky factor of H = 1 + 2C·gram, row by row. Rounding
// can cost H its positive definiteness, if features have more than seven digits.
// Every diagonal element is then raised by a part of itself until it is back;
// direction makes up for the difference.
func (s *linearWorker) factor(c float64) error {
	for jitter := 0.0; jitter < 1; jitter = max(10*jitter, 1e-15) {
		for i := range s.m {
			row, src := s.chol[i*s.ld:(i+1)*s.ld], s.gram[i*s.ld:(i+1)*s.ld]
			for j := i; j < s.ld; j++ {
				row[j] = 2 * c * src[j]
			}
			row[i] += 1
			row[i] += jitter * row[i]
		}
		if cholesky(s.chol, s.m, s.ld, leastPivot) {
			return nil
		}
	}
	return fmt.Errorf("eval: linear SVM with C=%g: the features are too large for floating point", c)
}

// solve replaces v by H⁻¹v.
func (s *linearWorker) solve(v []float64) {
	m, ld, u := s.m, s.ld, s.chol
	for i := range m { // Uᵀa = v
		v[i] /= u[i*ld+i]
		for j, r := range u[i*ld+i+1 : i*ld+m] {
			v[i+1+j] -= float64(v[i] * r)
		}
	}
	for i := m - 1; i >= 0; i-- { // Ub = a
		sum := v[i]
		for j, r := range u[i*ld+i+1 : i*ld+m] {
			sum -= float64(v[i+1+j] * r)
		}
		v[i] = sum / u[i*ld+i]
	}
}

// cholesky replaces the upper triangle of the m×m matrix a, whose rows have
// length ld, by U with UᵀU = A. It reports false if a pivot is not above least; a
// least of 0 asks whether A is positive definite. Four rows of U at a time are
// taken off the rows below them.
func cholesky(a []float64, m, ld int, least float64) bool {
	for i := 0; i < m; i += 4 {
		end := min(i+4, m)
		for r := i; r < end; r++ {
			row := a[r*ld : r*ld+m]
			pivot := row[r]
			if !(pivot > least) || math.IsInf(pivot, 1) {
				return false
			}
			inv := 1 / math.Sqrt(pivot)
			for j := r; j < m; j++ {
				row[j] *= inv
			}
			for k := r + 1; k < end; k++ {
				c, src, dst := row[k], row[k:], a[k*ld+k:k*ld+m]
				for j := range dst {
					dst[j] -= float64(c * src[j])
				}
			}
		}
		for k := end; k < m; k++ { // none after an incomplete block
			var rows [4][]float64
			var c [4]float64
			for q := range 4 {
				rows[q] = a[(i+q)*ld+k : (i+q)*ld+m]
				c[q] = -rows[q][0]
			}
			axpy4(a[k*ld+k:k*ld+m], &rows, &c)
		}
	}
	return true
}

// gramUpdate adds ±x xᵀ for one row x after the other to the upper triangle dst,
// four at a time.
type gramUpdate struct {
	dst   []float64
	m, ld int
	rows  [4][]float64
	sign  [4]float64
	k     int
}

func (u *gramUpdate) add(x []float64, sign float64) {
	u.rows[u.k], u.sign[u.k] = x, sign
	if u.k++; u.k == 4 {
		u.apply()
	}
}

func (u *gramUpdate) flush() {
	if u.k == 0 {
		return
	}
	for ; u.k < 4; u.k++ {
		u.rows[u.k], u.sign[u.k] = u.rows[0], 0
	}
	u.apply()
}

func (u *gramUpdate) apply() {
	u.k = 0
	for i := range u.m {
		lo := i &^ 3
		var tail [4][]float64
		var c [4]float64
		for q := range 4 {
			tail[q] = u.rows[q][lo:]
			c[q] = u.sign[q] * u.rows[q][i]
		}
		axpy4(u.dst[i*u.ld+lo:(i+1)*u.ld], &tail, &c)
	}
}

// axpy4 adds c[0]·x[0] + … + c[3]·x[3] to dst.
func axpy4(dst []float64, x *[4][]float64, c *[4]float64) {
	x0, x1, x2, x3 := x[0][:len(dst)], x[1][:len(dst)], x[2][:len(dst)], x[3][:len(dst)]
	c0, c1, c2, c3 := c[0], c[1], c[2], c[3]
	for j, v := range dst {
		v += float64(c0 * x0[j])
		v += float64(c1 * x1[j])
		v += float64(c2 * x2[j])
		v += float64(c3 * x3[j])
		dst[j] = v
	}
}

// matVec sets out_i = t_i · x_i·v for the rows of x, of the length of v, which is
// a multiple of four.
func matVec(out, x, v, t []float64) {
	ld := len(v)
	for i := range out {
		out[i] = t[i] * dot(x[i*ld:(i+1)*ld], v)
	}
}

// dot returns Σ a_k b_k as four interleaved sums.
func dot(a, b []float64) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	for len(a) >= 4 && len(b) >= 4 {
		s0 += float64(a[0] * b[0])
		s1 += float64(a[1] * b[1])
		s2 += float64(a[2] * b[2])
		s3 += float64(a[3] * b[3])
		a, b = a[4:], b[4:]
	}
	for k, v := range a {
		s0 += float64(v * b[k])
	}
	return (s0 + s1) + (s2 + s3)
}
