package eval

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
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

// dense is the textbook form of a two-class problem: labels, kernel matrix in
// float64 of float32 values, coefficients yα.
type dense struct {
	y, beta []float64
	k       [][]float64
}

func denseProblem(d Data, gamma float64) dense {
	g := groupByClass(upTo(d.Len()), d.Y)
	p := dense{y: make([]float64, d.Len()), k: make([][]float64, d.Len())}
	for a, i := range g.points {
		p.y[a] = 1
		if d.Y[i] == g.class[1] {
			p.y[a] = -1
		}
		for _, j := range g.points {
			r := distance(d.X[i*d.Dim:(i+1)*d.Dim], d.X[j*d.Dim:(j+1)*d.Dim])
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

// machine puts the coefficients of a machine into the order of p.
func (p *dense) take(d Data, m *SVC) {
	g := groupByClass(upTo(d.Len()), d.Y)
	p.beta = make([]float64, d.Len())
	for s, i := range m.Machines[0].Support {
		p.beta[slices.Index(g.points, i)] = m.Machines[0].Coef[s]
	}
}

func TestSVCSatisfiesOptimalityConditions(t *testing.T) {
	for seed := range uint64(6) {
		d := blobs(100*seed+1, 120+20*int(seed), 3+int(seed), 2, 0.4)
		for _, c := range []float64{1e-3, 0.1, 1, 10, 1000} {
			for _, noShrink := range []bool{false, true} {
				m, err := FitSVC(context.Background(), d.X, d.Dim, d.Y, SVCConfig{C: c, NoShrinking: noShrink})
				if err != nil {
					t.Fatal(err)
				}
				p := denseProblem(d, m.Gamma)
				p.take(d, m)
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
				primal, dual := p.objectives(c, m.Machines[0].Rho)
				// Each point is at most tol from its margin, and a violation costs C.
				if gap := primal - dual; gap < -1e-9*primal || gap > 1e-3*c*float64(len(p.y)) {
					t.Errorf("seed %d, C=%g: duality gap %g of %g", seed, c, gap, primal)
				}
				if got := m.Machines[0].Dual; !(math.Abs(got+dual) <= 1e-9*(1+math.Abs(dual))) {
					t.Errorf("seed %d, C=%g: objective %v, want %v", seed, c, got, -dual)
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

// Without shrinking, the solver must come to the same place. A cache of two rows
// and a log that is applied at once must not change a bit.
func TestShrinkingChangesNothing(t *testing.T) {
	d := blobs(7, 400, 4, 2, 0.2)
	n := d.Len()
	g := groupByClass(upTo(n), d.Y)
	d2, err := squaredDistances(context.Background(), rows(d.X, d.Dim, g.points), d.Dim, 1)
	if err != nil {
		t.Fatal(err)
	}
	k := make([]float32, n*n)
	rbfTrain(k, d2, upTo(n), 0.2, make([]float64, n))
	for _, c := range []float64{1, 10, 300} {
		run := func(shrink bool, floats, log int) (beta []float64, s *smo) {
			s = &smo{c: c, tol: 1e-3, maxIter: 1e7, shrink: shrink}
			s.rows.limit, s.logLimit = floats, log
			s.reset(k, n, g.start[1])
			if err := s.solve(context.Background()); err != nil {
				t.Fatal(err)
			}
			beta = make([]float64, n)
			s.coefficients(beta)
			return beta, s
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
	d := blobs(7, 400, 4, 2, 0.2)
	g := groupByClass(upTo(d.Len()), d.Y)
	d2, err := squaredDistances(context.Background(), rows(d.X, d.Dim, g.points), d.Dim, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, noShrink := range []bool{false, true} {
		cfg, err := SVCConfig{C: 10, NoShrinking: noShrink}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		w := svcWorker{k: make([]float32, d.Len()*d.Len())}
		rbfTrain(w.k, d2, upTo(d.Len()), 0.2, make([]float64, d.Len()))
		if err := w.fitPairs(context.Background(), g.start, []float64{10}, cfg, func(_, _, _ int, _ pairSolution) {}); err != nil {
			t.Fatal(err)
		}
		if w.s.moved == noShrink {
			t.Errorf("NoShrinking %v: variables were set aside: %v", noShrink, w.s.moved)
		}
	}
}

// The solution for a C that no coefficient reached is reused for larger ones: it has
// to be what solving them gives.
func TestUntouchedSolutionIsReused(t *testing.T) {
	d := blobs(11, 150, 6, 3, 0.5)
	cs := []float64{1, 10, 100, 1000}
	g := groupByClass(upTo(d.Len()), d.Y)
	d2, err := squaredDistances(context.Background(), rows(d.X, d.Dim, g.points), d.Dim, 1)
	if err != nil {
		t.Fatal(err)
	}
	var w svcWorker
	n := d.Len()
	w.k, w.tmp = make([]float32, n*n), make([]float64, n)
	rbfTrain(w.k, d2, upTo(n), 0.1, w.tmp)
	solve := func(cs []float64) map[[3]int]pairSolution {
		out := make(map[[3]int]pairSolution)
		cfg, _ := SVCConfig{C: 1}.withDefaults()
		err := w.fitPairs(context.Background(), g.start, cs, cfg, func(a, b, c int, s pairSolution) {
			out[[3]int{a, b, int(cs[c])}] = s
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	together, reused := solve(cs), 0
	for _, c := range cs {
		for key, alone := range solve([]float64{c}) {
			if !reflect.DeepEqual(alone, together[key]) {
				t.Errorf("classes %d and %d, C=%g: the shared solution is not the one found alone", key[0], key[1], c)
			}
			if prev, ok := together[[3]int{key[0], key[1], int(c / 10)}]; ok && &prev.beta[0] == &together[key].beta[0] {
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
	x, y := []float64{-1, 0, 1, 0}, []int{0, 1}
	k := math.Exp(-1)
	for _, tc := range []struct{ c, alpha float64 }{{10, 1 / (1 - k)}, {0.5, 0.5}} {
		m, err := FitSVC(context.Background(), x, 2, y, SVCConfig{C: tc.c, Gamma: 0.25})
		if err != nil {
			t.Fatal(err)
		}
		closeTo(t, "coefficient", m.Machines[0].Coef, []float64{tc.alpha, -tc.alpha}, 1e-6)
		dec, err := m.Decision(append(x, 0, 5))
		if err != nil {
			t.Fatal(err)
		}
		at := tc.alpha * (1 - k)
		closeTo(t, "decision", dec, []float64{at, -at, 0}, 1e-6)
	}
	// gamma="scale" of these rows: variance of {−1,0,1,0} is ½, so 1/(2·½) = 1.
	m, err := FitSVC(context.Background(), x, 2, y, SVCConfig{C: 1})
	if err != nil {
		t.Fatal(err)
	}
	if m.Gamma != 1 {
		t.Errorf("gamma = %v, want 1", m.Gamma)
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
		if got := vote(tc.dec, make([]int, tc.classes)); got != tc.want {
			t.Errorf("%s: class %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestSVCIterationLimit(t *testing.T) {
	d := blobs(3, 60, 4, 2, 0.1)
	_, err := FitSVC(context.Background(), d.X, d.Dim, d.Y, SVCConfig{C: 100, MaxIter: 3})
	if !errors.Is(err, ErrNotConverged) {
		t.Errorf("error is %v, want ErrNotConverged", err)
	}
}

func TestSolverAsksTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := smo{c: 1, tol: 1e-3, maxIter: 10}
	s.reset([]float32{1, 0, 0, 1}, 2, 1)
	if err := s.solve(ctx); err != context.Canceled {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestSVCNeedsNoConsecutiveLabels(t *testing.T) {
	x := []float64{0, 0.1, 5, 5.1, 9, 9.1}
	m, err := FitSVC(context.Background(), x, 1, []int{7, 7, 2, 2, 4, 4}, SVCConfig{C: 10})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Predict([]float64{0.05, 5.05, 9.05})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{7, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("predicted %v, want %v", got, want)
	}
}

func TestSquaredDistances(t *testing.T) {
	// Sizes around the blocks of 64 rows and the tiles of 2 by 4.
	for _, n := range []int{2, 3, 5, 63, 64, 65, 66, 67, 131} {
		const d = 3
		x := make([]float64, n*d)
		for i := range x {
			x[i] = 1e3 + bell(5, i)
		}
		copy(x[(n-1)*d:], x[:d]) // equal rows have distance 0
		for _, workers := range []int{1, 3} {
			tri, err := squaredDistances(context.Background(), x, d, workers)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				for q, got := range tri.row(i) {
					j := i + 1 + q
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
	tri, err := squaredDistances(context.Background(), d.X, d.Dim, 1)
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
	at := func(i, j int) float64 {
		return math.Exp(-0.2 * distance(d.X[i*5:i*5+5], d.X[j*5:j*5+5]))
	}
	n := len(train)
	k := make([]float32, n*n)
	rbfTrain(k, tri, train, 0.2, make([]float64, n))
	for a, i := range train {
		for b, j := range train {
			if got, want := k[a*n+b], float32(at(i, j)); !(math.Abs(float64(got-want)) <= 6e-8*float64(want)) {
				t.Fatalf("training kernel of points %d and %d is %v, want %v", i, j, got, want)
			}
		}
	}
	c := make([]float64, len(test)*n)
	rbfCross(c, tri, test, train, 0.2)
	for a, i := range test {
		for b, j := range train {
			// An error of the exponent is one of the result.
			if got, want := c[a*n+b], at(i, j); !(math.Abs(got-want) <= 0x1p-52*(4-math.Log(want))*want) {
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
	expNeg(got, -1)
	for i, x := range v {
		want := math.Exp(-x)
		worst = max(worst, math.Abs(got[i]-want)/want)
	}
	if worst > 4.5e-16 { // two units in the last place: one each for this and math.Exp
		t.Errorf("relative error %g", worst)
	}
	edge := []float64{0, 70.1, 80, 701, 1e308}
	expNeg(edge, -10)
	if !slices.Equal(edge, []float64{1, 0, 0, 0, 0}) {
		t.Errorf("exp(−10·{0, 70.1, 80, 701, 1e308}) = %v, want {1, 0, 0, 0, 0}", edge)
	}
}
