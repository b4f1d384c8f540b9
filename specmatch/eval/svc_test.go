package eval

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu/simd"
)

// blobs is a problem of n points in d dimensions: one bell-shaped cloud per class,
// their centres spread apart.
func blobs(seed uint64, n, d, classes int, spread float64) Data {
	out := Data{X: make([]float64, n*d), Dim: d, Y: make([]int, n)}
	for i := range out.Y {
		c := int((uniform(seed, uint64(i)) + 1) / 2 * float64(classes))
		if i < classes {
			c = i
		}
		out.Y[i] = c
		for k := range d {
			out.X[i*d+k] = bell(seed+1, i*d+k) + spread*bell(seed+2, c*d+k)
		}
	}
	return out
}

// svcOptions are the settings of a fit by itself.
type svcOptions struct {
	c       float64
	gamma   float64 // 0: of scaleGamma
	maxIter int     // 0: mostSteps
	whole   bool    // nothing is shrunk
}

// svc is what the kernel machine finds on all of d, one solution for each pair of classes.
type svc struct {
	d     Data
	p     part
	gamma float64
	pairs []solution
	s     smo
}

func trySVC(d Data, o svcOptions) (*svc, error) {
	shared, err := rbf(context.Background(), d, 1)
	if err != nil {
		return nil, err
	}
	m := &svc{d: d, p: newPart(d.Y, upTo(len(d.Y))), gamma: o.gamma}
	if o.gamma == 0 {
		if m.gamma, err = scaleGamma(d, m.p.points); err != nil {
			return nil, err
		}
	}
	k := kernelMachine{kernels: shared, s: smo{maxIter: o.maxIter, whole: o.whole}}
	k.load(shared.inputs[0], upTo(len(d.Y)), nil, m.gamma)
	found, err := k.fit(context.Background(), m.p.start, []float64{o.c})
	if err != nil {
		return nil, err
	}
	m.pairs, m.s = found[0], k.s
	return m, nil
}

func fitSVC(t testing.TB, d Data, o svcOptions) *svc {
	t.Helper()
	m, err := trySVC(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func distance(a, b []float64) float64 {
	sum := 0.0
	for k, v := range a {
		sum += float64((v - b[k]) * (v - b[k]))
	}
	return sum
}

// decisions returns the decision values of the rows of x, one column for each pair, from
// the definition.
func (m *svc) decisions(x []float64) (out []float64) {
	for row := range slices.Chunk(x, m.d.Dim) {
		for _, s := range m.pairs {
			sum := -s.rho
			for _, e := range s.terms {
				sum += e.coef * math.Exp(-m.gamma*distance(m.d.row(m.p.points[e.at]), row))
			}
			out = append(out, sum)
		}
	}
	return out
}

func (m *svc) predict(x []float64) (out []int) {
	for dec := range slices.Chunk(m.decisions(x), len(m.pairs)) {
		out = append(out, m.p.class[mostVotes(dec, make([]int, len(m.p.class)))])
	}
	return out
}

// dense is the textbook form of a two-class problem: labels, kernel matrix in
// float64 of float32 values, coefficients yα.
type dense struct {
	y, beta []float64
	k       [][]float64
}

func denseProblem(d Data, gamma float64) dense {
	g := newPart(d.Y, upTo(len(d.Y)))
	p := dense{y: make([]float64, len(d.Y)), k: make([][]float64, len(d.Y))}
	for a, i := range g.points {
		p.y[a] = 1
		if d.Y[i] == g.class[1] {
			p.y[a] = -1
		}
		for _, j := range g.points {
			r := distance(d.row(i), d.row(j))
			p.k[a] = append(p.k[a], float64(float32(math.Exp(-gamma*r))))
		}
	}
	return p
}

// violation is the amount by which the optimality conditions of the dual fail:
// max over I_up minus min over I_low of −yG, from the definition.
func (p dense) violation(c float64) float64 {
	up, low := math.Inf(-1), math.Inf(1)
	for i, y := range p.y {
		f := y // −y_iG_i = y_i − Σ β_jK_ij
		for j, b := range p.beta {
			f -= b * p.k[i][j]
		}
		alpha := y * p.beta[i]
		if y > 0 && alpha < c || y < 0 && alpha > 0 {
			up = max(up, f)
		}
		if y > 0 && alpha > 0 || y < 0 && alpha < c {
			low = min(low, f)
		}
	}
	return up - low
}

// objectives returns the primal and the dual objective at β and ρ.
func (p dense) objectives(c, rho float64) (primal, dual float64) {
	for i, y := range p.y {
		f := 0.0
		for j, b := range p.beta {
			f += b * p.k[i][j]
		}
		primal += p.beta[i]*f/2 + c*max(0, 1-y*(f-rho))
		dual += y*p.beta[i] - p.beta[i]*f/2
	}
	return primal, dual
}

func TestSVCSatisfiesOptimalityConditions(t *testing.T) {
	for seed := range uint64(6) {
		d := blobs(100*seed+1, 120+20*int(seed), 3+int(seed), 2, 0.4)
		for _, c := range []float64{1e-3, 0.1, 1, 10, 1000} {
			for _, noShrink := range []bool{false, true} {
				m := fitSVC(t, d, svcOptions{c: c, whole: noShrink})
				p := denseProblem(d, m.gamma)
				p.beta = make([]float64, len(d.Y))
				for _, e := range m.pairs[0].terms {
					p.beta[e.at] = e.coef
				}
				var sum float64
				for i, b := range p.beta {
					sum += b
					if a := p.y[i] * b; a < 0 || a > c {
						t.Errorf("seed %d, C=%g: α_%d = %g outside [0,C]", seed, c, i, a)
					}
				}
				if !(math.Abs(sum) <= 1e-10*c*float64(len(p.y))) {
					t.Errorf("seed %d, C=%g: Σ yα = %g", seed, c, sum)
				}
				if v := p.violation(c); v >= 1e-3+1e-9*c {
					t.Errorf("seed %d, C=%g, shrinking %v: violation %g, want < 1e-3", seed, c, !noShrink, v)
				}
				primal, dual := p.objectives(c, m.pairs[0].rho)
				// Each point is at most tol from its margin, and a violation costs C.
				if gap := primal - dual; gap < -1e-9*primal || gap > 1e-3*c*float64(len(p.y)) {
					t.Errorf("seed %d, C=%g: duality gap %g of %g", seed, c, gap, primal)
				}
				// The checks must see a wrong solution.
				i := slices.IndexFunc(p.beta, func(b float64) bool { return b != 0 })
				p.beta[i] *= 0.97
				if c >= 1 && p.violation(c) < 1e-3 {
					t.Errorf("seed %d, C=%g: a coefficient changed by 3%% goes unnoticed", seed, c)
				}
			}
		}
	}
}

// loadedMachine returns a machine with the RBF kernel of all points of d.
func loadedMachine(t *testing.T, d Data, gamma float64) (*kernelMachine, part) {
	t.Helper()
	shared, err := rbf(context.Background(), d, 1)
	if err != nil {
		t.Fatal(err)
	}
	m := &kernelMachine{kernels: shared}
	m.load(shared.inputs[0], upTo(len(d.Y)), nil, gamma)
	return m, newPart(d.Y, upTo(len(d.Y)))
}

// Without shrinking, the solver must come to the same place. A cache of two rows
// and a log that is applied at once must not change a bit.
func TestShrinkingChangesNothing(t *testing.T) {
	d := blobs(7, 400, 4, 2, 0.2)
	n := len(d.Y)
	m, p := loadedMachine(t, d, 0.2)
	k := m.k
	for _, c := range []float64{1, 10, 300} {
		run := func(shrink bool, floats, log int) (beta []float64, s *smo) {
			s = &smo{c: c, whole: !shrink}
			s.rows.limit, s.logLimit = floats, log
			s.reset(k, n, p.start[1])
			if err := s.solve(context.Background()); err != nil {
				t.Fatal(err)
			}
			return s.coefficients(), s
		}
		plain, a := run(false, 0, 0)
		shrunk, b := run(true, 0, 0)
		cramped, e := run(true, 1, 1)
		if !b.moved {
			t.Fatalf("C=%g: nothing was shrunk; the test is void", c)
		}
		if !slices.Equal(shrunk, cramped) || b.iter != e.iter {
			t.Errorf("C=%g: the sizes of the row cache and the log change the solution", c)
		}
		decide := func(beta []float64, rho float64, i int) float64 {
			sum := -rho
			for j, v := range beta {
				sum += v * float64(k[i*n+j])
			}
			return sum
		}
		for i := range n {
			u, v := decide(plain, a.rho(), i), decide(shrunk, b.rho(), i)
			if !(math.Abs(u-v) <= 5e-3) {
				t.Errorf("C=%g: decision of point %d is %v with and %v without shrinking", c, i, v, u)
				break
			}
		}
	}
}

func TestNoShrinking(t *testing.T) {
	for _, whole := range []bool{false, true} {
		if m := fitSVC(t, blobs(7, 400, 4, 2, 0.2), svcOptions{c: 10, gamma: 0.2, whole: whole}); m.s.moved == whole {
			t.Errorf("whole %v: variables were set aside: %v", whole, m.s.moved)
		}
	}
}

// The solution for a C that no coefficient reached is reused for larger ones: it has
// to be what solving them gives.
func TestUntouchedSolutionIsReused(t *testing.T) {
	d := blobs(11, 150, 6, 3, 0.5)
	cs := []float64{1, 10, 100, 1000}
	m, p := loadedMachine(t, d, 0.1)
	solve := func(cs ...float64) [][]solution {
		found, err := m.fit(context.Background(), p.start, cs)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	together, reused := solve(cs...), 0
	for c, price := range cs {
		for q, alone := range solve(price)[0] {
			if !reflect.DeepEqual(alone, together[c][q]) {
				t.Errorf("pair %d, C=%g: the shared solution is not the one found alone", q, price)
			}
			if c > 0 && &together[c-1][q].terms[0] == &together[c][q].terms[0] {
				reused++
			}
		}
	}
	if reused == 0 {
		t.Error("no solution was reused; the test is void")
	}
}

func TestSVCClosedForm(t *testing.T) {
	// Two points at squared distance 4, γ = ¼: k = e⁻¹. By symmetry α₁ = α₂ = α
	// and ρ = 0; the dual α²(1−k) − 2α is least at α = 1/(1−k), where both points
	// lie on their margins. A smaller C cuts α off.
	d := Data{X: []float64{-1, 0, 1, 0}, Dim: 2, Y: []int{0, 1}}
	k := math.Exp(-1)
	for _, tc := range []struct{ c, alpha float64 }{{10, 1 / (1 - k)}, {0.5, 0.5}} {
		m := fitSVC(t, d, svcOptions{c: tc.c, gamma: 0.25})
		terms := m.pairs[0].terms
		closeTo(t, "coefficient", []float64{terms[0].coef, terms[1].coef}, []float64{tc.alpha, -tc.alpha}, 1e-6)
		at := tc.alpha * (1 - k)
		closeTo(t, "decision", m.decisions(append(d.X, 0, 5)), []float64{at, -at, 0}, 1e-6)
	}
	// gamma="scale" of these rows: variance of {−1,0,1,0} is ½, so 1/(2·½) = 1.
	if m := fitSVC(t, d, svcOptions{c: 1}); m.gamma != 1 {
		t.Errorf("gamma = %v, want 1", m.gamma)
	}
}

func TestVoteTakesFirstOfEquals(t *testing.T) {
	for _, tc := range []struct {
		name    string
		dec     []float64
		classes int
		want    int
	}{
		{"two, positive is the first", []float64{0.1}, 2, 0},
		{"two, zero is the second", []float64{0}, 2, 1},
		{"three, a cycle", []float64{1, -1, 1}, 3, 0},
		{"three, the last beats both", []float64{1, -1, -1}, 3, 2},
		{"four, 1 and 2 have two votes each", []float64{-1, -1, 1, 1, -1, 1}, 4, 1},
	} {
		if got := mostVotes(tc.dec, make([]int, tc.classes)); got != tc.want {
			t.Errorf("%s: class %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestSVCIterationLimit(t *testing.T) {
	d := blobs(3, 60, 4, 2, 0.1)
	_, err := trySVC(d, svcOptions{c: 100, maxIter: 3})
	if !errors.Is(err, ErrNotConverged) {
		t.Errorf("error is %v, want ErrNotConverged", err)
	}
}

func TestSolverAsksTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := smo{c: 1}
	s.reset([]float32{1, 0, 0, 1}, 2, 1)
	if err := s.solve(ctx); err != context.Canceled {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestSVCNeedsNoConsecutiveLabels(t *testing.T) {
	d := Data{X: []float64{0, 0.1, 5, 5.1, 9, 9.1}, Dim: 1, Y: []int{7, 7, 2, 2, 4, 4}}
	got, want := fitSVC(t, d, svcOptions{c: 10}).predict([]float64{0.05, 5.05, 9.05}), []int{7, 2, 4}
	if !slices.Equal(got, want) {
		t.Errorf("predicted %v, want %v", got, want)
	}
}

func TestSquaredDistances(t *testing.T) {
	for _, n := range []int{2, 3, 5, 131} {
		const d = 3
		x := make([]float64, n*d)
		for i := range x {
			x[i] = 1e3 + bell(5, i)
		}
		copy(x[(n-1)*d:], x[:d]) // equal rows have distance 0
		for _, workers := range []int{1, 3} {
			tri, err := squaredDistances(context.Background(), Data{X: x, Dim: d}, upTo(n), workers)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				for q, got := range tri.Row(i) {
					j := i + q
					want := 0.0
					for k := range d {
						want += (x[i*d+k] - x[j*d+k]) * (x[i*d+k] - x[j*d+k])
					}
					if !(math.Abs(got-want) <= 1e-15*want) {
						t.Fatalf("n=%d: distance of %d and %d is %v, want %v", n, i, j, got, want)
					}
				}
			}
		}
	}
}

func TestKernelBlocks(t *testing.T) {
	d := blobs(9, 140, 5, 2, 0.3)
	d2, err := squaredDistances(context.Background(), d, upTo(140), 1)
	if err != nil {
		t.Fatal(err)
	}
	var train, test []int
	for i := range d.Y {
		if i%7 == 3 {
			test = append(test, i)
		} else {
			train = append(train, i)
		}
	}
	at := func(i, j int) float64 { return math.Exp(-0.2 * distance(d.row(i), d.row(j))) }
	n := len(train)
	var m kernelMachine
	m.load(d2, train, test, 0.2)
	for a, i := range train {
		for b, j := range train {
			if got, want := m.k[a*n+b], float32(at(i, j)); !(math.Abs(float64(got-want)) <= 6e-8*float64(want)) {
				t.Fatalf("training kernel of points %d and %d is %v, want %v", i, j, got, want)
			}
		}
	}
	for a, i := range test {
		for b, j := range train {
			// An error of the exponent is one of the result.
			if got, want := m.cross[b*len(test)+a], at(i, j); !(math.Abs(got-want) <= 0x1p-52*(4-math.Log(want))*want) {
				t.Fatalf("test kernel of points %d and %d is %v, want %v", i, j, got, want)
			}
		}
	}
}

func TestExpNeg(t *testing.T) {
	worst := 0.0
	var v []float64
	for x := 0.0; x < 690; x += 0.00371 {
		v = append(v, x)
	}
	v = append(v, 1e-300, 1e-17, 1e-9, 699.9)
	got := slices.Clone(v)
	simd.ExpScaled(got, make([]float32, len(got)), -1)
	for i, x := range v {
		want := math.Exp(-x)
		worst = max(worst, math.Abs(got[i]-want)/want)
	}
	if worst > 4.5e-16 { // two units in the last place: one each for this and math.Exp
		t.Errorf("relative error %g", worst)
	}
	edge := []float64{0, 70.1, 80, 701, 1e308}
	simd.ExpScaled(edge, make([]float32, len(edge)), -10)
	if !slices.Equal(edge, []float64{1, 0, 0, 0, 0}) {
		t.Errorf("exp(−10·{0, 70.1, 80, 701, 1e308}) = %v, want {1, 0, 0, 0, 0}", edge)
	}
}
