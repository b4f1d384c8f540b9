package eval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// twoClass is a linear machine for two classes with the buffers of one goroutine.
type twoClass interface {
	// load prepares for a training part of an input.
	load(input int, train []int)
	// begin forgets the last solution. t holds ±1 for each training point.
	begin(t []float64)
	// solve trains at a C, from the solution of the last one.
	solve(ctx context.Context, c float64) error
	// decide returns w·x + b of a point, which may be in training or not.
	decide(point int) float64
}

// oneVsRest is a machine of two classes for every class against the rest; of two classes, for the
// second alone.
type oneVsRest struct{ twoClass }

func (m oneVsRest) predict(ctx context.Context, input int, p part, test []int, cs []float64) ([][]int, error) {
	m.load(input, p.train)
	positive := p.class
	if len(positive) == 2 {
		positive = positive[1:]
	}
	n := len(positive)
	decisions := make([]float64, len(cs)*len(test)*n) // by C, test point, machine
	t := make([]float64, len(p.train))
	for q, class := range positive {
		for a, i := range p.train {
			t[a] = -1
			if p.y[i] == class {
				t[a] = 1
			}
		}
		m.begin(t)
		for c, price := range cs {
			if err := m.solve(ctx, price); err != nil {
				return nil, err
			}
			for a, i := range test {
				decisions[(c*len(test)+a)*n+q] = m.decide(i)
			}
		}
	}
	predicted := make([][]int, len(cs))
	for c := range predicted {
		for range test {
			predicted[c] = append(predicted[c], strongest(decisions[:n]))
			decisions = decisions[n:]
		}
	}
	return predicted, nil
}

// strongest returns the place of the class that the decision values of one point
// select.
func strongest(dec []float64) int {
	if len(dec) == 1 {
		if dec[0] > 0 {
			return 1
		}
		return 0
	}
	return floats.MaxIdx(dec)
}

// maxColumns bounds the features of linear machines, whose Hessian takes 8·d² bytes.
const maxColumns = 8192

// newton is the machine of dense rows. It finds the minimum of
//
//	f(w,b) = ½‖w‖² + ½b² + C Σ_i max(0, 1 − t_i(w·x_i + b))²
//
// which is scikit-learn's LinearSVC(dual=False, intercept_scaling=1): liblinear
// treats the intercept as the weight of one more feature of value 1, so it is
// regularised, too.
//
// f is within a millionth of its minimum, and within rounding of it unless the
// features are both large and nearly collinear. An error says so where that cannot
// be had: where features agree to twelve digits, or are so large that rounding the
// weights to float64 alone would miss it; or where they are so large and nearly collinear
// that it would take hundreds of times as long as usual.
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
// within a fit and from one C to the next. Where it loses so many digits that its factor
// no longer helps, the factor is computed from the points instead.
type newton struct {
	data    Data
	x       blas64.General   // n×m, m = d+1
	full    blas64.Symmetric // Σ over all points of x_i x_iᵀ
	gram    blas64.Symmetric // the same over the active points
	hessian blas64.Symmetric // H, then its factor
	factor  blas64.Triangular
	// orthogonal says that the factor comes from X and not from Σ x_i x_iᵀ.
	orthogonal bool
	stacked    blas64.General // √2C times the active points, and one row for each weight
	t          []float64      // ±1
	short      []float64      // s_i
	in         []bool         // active points
	w, low     []float64      // the weights are w + low
	g          []float64      // ∇f
	p, tp      []float64      // the Newton step, and t_i p·x_i
	// Conjugate gradients: residual, direction d and t_i d·x_i, and a product.
	r, d, td, q []float64
	rows        []float64 // scratch, one for each point
	steps       int       // Newton steps of the last solution
	conjugates  int       // steps of conjugate gradients since begin
}

func (s *newton) load(_ int, train []int) {
	n := len(train)
	m := s.data.Dim + 1
	s.x = blas64.General{
		Rows:   n,
		Cols:   m,
		Stride: m,
		Data:   grow(s.x.Data, n*m),
	}
	for a, i := range train {
		s.row(a)[copy(s.row(a), s.data.row(i))] = 1
	}
	for _, a := range []*blas64.Symmetric{&s.full, &s.gram, &s.hessian} {
		*a = blas64.Symmetric{
			N:      m,
			Stride: m,
			Uplo:   blas.Upper,
			Data:   grow(a.Data, m*m),
		}
	}
	s.in = grow(s.in, n)
	for _, v := range []*[]float64{&s.short, &s.tp, &s.td, &s.rows} {
		*v = grow(*v, n)
	}
	for _, v := range []*[]float64{&s.w, &s.low, &s.g, &s.p, &s.r, &s.d, &s.q} {
		*v = grow(*v, m)
	}
	blas64.Syrk(blas.Trans, 1, s.x, 0, s.full)
	s.orthogonal = false
}

func (s *newton) row(i int) []float64 { return s.x.Data[i*s.x.Cols : (i+1)*s.x.Cols] }

func (s *newton) begin(t []float64) {
	s.t = t
	s.conjugates = 0
	for i := range s.in {
		s.in[i] = true // margin 0 at w = 0
	}
	clear(s.w)
	copy(s.gram.Data, s.full.Data)
}

func (s *newton) decide(point int) float64 {
	d := s.data.Dim
	return floats.Dot(s.w[:d], s.data.row(point)) + s.w[d]
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
	// times the number of weights, of all solutions from the same beginning, and again with a
	// factor of the points themselves; most take less than one
	conjugateLimit = 150
)

// solve minimises f for one C from the present weights.
func (s *newton) solve(ctx context.Context, c float64) error {
	least := math.Inf(1)
	lowest := math.Inf(1)
	stalled := 0
	precise := false
	clear(s.low)
	for s.steps = 0; ; s.steps++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		// Recomputed each time, so that rounding does not pile up.
		if precise {
			s.preciseShortfalls()
		} else {
			s.shortfalls()
		}
		if s.activate() || s.steps == 0 {
			if err := s.factorize(c); err != nil {
				return err
			}
		}
		f := s.objective(c)
		s.gradient(c)
		s.direction(c)
		if s.exhausted() && !s.orthogonal {
			s.orthogonal = true
			s.conjugates = 0
			if err := s.factorize(c); err != nil {
				return err
			}
			s.direction(c)
		}
		if s.exhausted() {
			return fmt.Errorf("eval: linear SVM with C=%g on %d points: %w: the features are too "+
				"large and too nearly collinear, divide them by their size",
				c, len(s.t), ErrNotConverged)
		}
		decrement := -floats.Dot(s.g, s.p)
		reached := decrement <= decrementGoal*f
		enough := decrement <= decrementEnough*f && s.staysOnPiece()
		switch {
		case precise && (reached || enough):
			return s.round(c, f)
		case reached && enough:
			return nil
		case s.steps == newtonSteps:
			return fmt.Errorf("eval: linear SVM with C=%g on %d points: %w in %d Newton steps "+
				"(decrement %g of %g); is the scale of the features extreme?",
				c, len(s.t), ErrNotConverged, s.steps, decrement, f)
		case decrement < 0.5*least || f < (1-progress)*lowest:
			stalled = 0
		case stalled < stalledSteps:
			stalled++
		case precise && decrement <= decrementEnough*f:
			// A point at the edge of its piece that rounding moves in and out.
			return s.round(c, f)
		default:
			precise = true
			stalled = 0
		}
		least = min(least, decrement)
		lowest = min(lowest, f)
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

// exhausted reports that conjugate gradients have made up for a poor factor for too long.
func (s *newton) exhausted() bool { return s.conjugates > conjugateLimit*len(s.w) }

// staysOnPiece reports whether a full step keeps the active points. Only then is
// its end a minimum of f, and not just of the present piece.
func (s *newton) staysOnPiece() bool {
	for i, v := range s.short {
		if s.in[i] != (v > s.tp[i]) {
			return false
		}
	}
	return true
}

// round rounds the weights to float64. Where features or C are so large that the
// rounding alone moves the objective from its minimum f, no answer is right.
func (s *newton) round(c, f float64) error {
	clear(s.low)
	s.preciseShortfalls()
	if rounded := s.objective(c); rounded > (1+roundingEnough)*f {
		return fmt.Errorf("eval: linear SVM with C=%g on %d points: the features are too large: "+
			"rounding of the weights takes the objective from %g to %g",
			c, len(s.t), f, rounded)
	}
	return nil
}

// shortfalls sets short from w.
func (s *newton) shortfalls() {
	s.margins(s.short, s.w)
	for i, z := range s.short {
		s.short[i] = 1 - z
	}
}

// margins sets out_i = t_i · x_i·v.
func (s *newton) margins(out, v []float64) {
	blas64.Gemv(blas.NoTrans, 1, s.x, vector(v), 0, vector(out))
	floats.Mul(out, s.t)
}

// preciseShortfalls sets short from w + low by compensated dot products (Ogita,
// Rump and Oishi 2005). With large features and C, s_i is many digits smaller than
// the 1 that it is left over from.
func (s *newton) preciseShortfalls() {
	for i, t := range s.t {
		sum := 1.0
		low := 0.0
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
func (s *newton) direction(c float64) {
	clear(s.p)
	clear(s.tp)
	floats.ScaleTo(s.r, -1, s.g)
	copy(s.d, s.r)
	s.divide(s.d)
	rho := floats.Dot(s.r, s.d)
	goal := conjugateGoal * rho
	for k := 0; k < conjugateSteps*len(s.w) && rho > goal; k++ {
		s.conjugates++
		s.margins(s.td, s.d)
		curvature := 0.0
		for i, v := range s.td {
			if s.in[i] {
				curvature += float64(v * v)
			}
		}
		a := rho / (floats.Dot(s.d, s.d) + 2*c*curvature)
		floats.AddScaled(s.p, a, s.d)
		floats.AddScaled(s.tp, a, s.td)
		copy(s.q, s.d)
		s.addActive(s.q, 2*c, s.td)
		floats.AddScaled(s.r, -a, s.q)
		copy(s.q, s.r)
		s.divide(s.q)
		next := floats.Dot(s.r, s.q)
		floats.AddScaledTo(s.d, s.q, next/rho, s.d)
		rho = next
	}
}

// activate finds the active points, moves gram to them and reports whether any
// entered or left.
func (s *newton) activate() bool {
	var changed, active int
	for i, v := range s.short {
		if v > 0 != s.in[i] {
			changed++
		}
		if v > 0 {
			active++
		}
	}
	if changed > active { // cheaper to start over
		clear(s.gram.Data)
		clear(s.in)
	}
	for i, v := range s.short {
		if v > 0 == s.in[i] {
			continue
		}
		s.in[i] = v > 0
		sign := 1.0
		if !s.in[i] {
			sign = -1
		}
		blas64.Syr(sign, vector(s.row(i)), s.gram)
	}
	return changed > 0
}

func (s *newton) objective(c float64) float64 {
	var loss float64
	for _, v := range s.short {
		if v > 0 {
			loss += float64(v * v)
		}
	}
	return 0.5*floats.Dot(s.w, s.w) + c*loss
}

func (s *newton) gradient(c float64) {
	copy(s.g, s.w)
	s.addActive(s.g, -2*c, s.short)
}

// addActive adds c Σ_I t_i v_i x_i to dst.
func (s *newton) addActive(dst []float64, c float64, v []float64) {
	for i, active := range s.in {
		s.rows[i] = 0
		if active {
			s.rows[i] = c * v[i] * s.t[i]
		}
	}
	blas64.Gemv(blas.Trans, 1, s.x, vector(s.rows), 1, vector(dst))
}

// lineSearch returns the step to the minimum of f along p: the root of
//
//	φ'(a) = w·p + a p·p − 2C Σ {(s_i − a v_i) v_i : s_i > a v_i},  v_i = t_i p·x_i
//
// which rises and is piecewise linear, so that Newton's method, kept inside a
// bracket, ends after a few steps.
func (s *newton) lineSearch(c float64) float64 {
	wp := floats.Dot(s.w, s.p)
	pp := floats.Dot(s.p, s.p)
	slope := func(a float64) (d1, d2 float64) {
		tp := s.tp[:len(s.short)]
		for i, short := range s.short {
			v := tp[i]
			short -= float64(a * v)
			if short > 0 {
				d1 += float64(short * v)
				d2 += float64(v * v)
			}
		}
		return wp + a*pp - 2*c*d1, pp + 2*c*d2
	}
	lo := 0.0
	hi := math.Inf(1)
	step := 0.0
	a := 1.0
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
		step = a
		a -= d1 / d2
		if !(a > lo && a < hi) {
			if math.IsInf(hi, 1) {
				a = 2 * step
			} else {
				a = lo + (hi-lo)/2
			}
		}
		if a == step || hi-lo <= 1e-15*hi {
			return a
		}
	}
	return a
}

// leastPivot is a bound on the pivots of H. They are at least 1, as its eigenvalues
// are, so a smaller one is rounding error.
const leastPivot = 0.5

// factorize computes the triangle R of H = RᵀR: the Cholesky factor of 1 + 2C·gram, or where
// that cannot be had, the factor of the points themselves.
func (s *newton) factorize(c float64) error {
	if !s.orthogonal && s.factorizeGram(c) {
		return nil
	}
	s.orthogonal = true
	s.factorizePoints(c)
	m := s.factor.N
	for i := range m {
		pivot := s.factor.Data[i*m+i]
		finite := !math.IsInf(pivot, 0) && !math.IsNaN(pivot)
		if !finite {
			return fmt.Errorf("eval: linear SVM with C=%g: the features are too large for floating point", c)
		}
	}
	return nil
}

// factorizeGram computes the Cholesky factor of 1 + 2C·gram and reports success. Rounding
// can cost H its positive definiteness, if features have more than seven digits.
// Every diagonal element is then raised by a part of itself until it is back;
// direction makes up for the difference.
func (s *newton) factorizeGram(c float64) bool {
	m := s.gram.N
	for jitter := 0.0; jitter < 1; jitter = max(10*jitter, 1e-15) {
		floats.ScaleTo(s.hessian.Data, 2*c, s.gram.Data)
		for i := range m {
			pivot := &s.hessian.Data[i*m+i]
			*pivot += 1
			*pivot += jitter * *pivot
		}
		ok := false
		s.factor, ok = lapack64.Potrf(s.hessian)
		for i := 0; ok && i < m; i++ {
			root := s.factor.Data[i*m+i]
			ok = root*root > leastPivot && !math.IsInf(root, 1)
		}
		if ok {
			return true
		}
	}
	return false
}

// factorizePoints computes R from the active points, which takes n/m times as long, for each set of
// them, and as much memory as the points: H = AᵀA = RᵀR of A = QR, the rows √2C x_i over the unit
// matrix. Features of which squaring loses everything below the largest keep all their digits.
func (s *newton) factorizePoints(c float64) {
	m := s.gram.N
	active := 0
	for _, isActive := range s.in {
		if isActive {
			active++
		}
	}
	s.stacked = blas64.General{
		Cols:   m,
		Stride: m,
		Data:   slices.Grow(s.stacked.Data[:0], (active+m)*m),
	}
	scale := math.Sqrt(2 * c)
	for i, isActive := range s.in {
		if !isActive {
			continue
		}
		for _, x := range s.row(i) {
			scaled := scale * x
			s.stacked.Data = append(s.stacked.Data, scaled)
		}
	}
	identity := len(s.stacked.Data)
	s.stacked.Data = s.stacked.Data[:identity+m*m]
	clear(s.stacked.Data[identity:])
	for j := range m {
		s.stacked.Data[identity+j*m+j] = 1
	}
	s.stacked.Rows = len(s.stacked.Data) / m
	scales := make([]float64, m)
	work := make([]float64, 64*m)
	lapack64.Geqrf(s.stacked, scales, work, len(work))
	s.factor = blas64.Triangular{
		N:      m,
		Stride: m,
		Uplo:   blas.Upper,
		Diag:   blas.NonUnit,
		Data:   s.stacked.Data[:m*m],
	}
}

// divide replaces v by H⁻¹v.
func (s *newton) divide(v []float64) {
	blas64.Trsv(blas.Trans, s.factor, vector(v))
	blas64.Trsv(blas.NoTrans, s.factor, vector(v))
}

func vector(v []float64) blas64.Vector {
	return blas64.Vector{N: len(v), Inc: 1, Data: v}
}
