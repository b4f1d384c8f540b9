package eval

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
)

// linear is what the linear machine finds on all of d: the weights of a class against the
// rest and then the intercept, for each class that is positive.
type linear struct {
	dim      int
	class    []int // labels that occur
	positive []int
	weights  [][]float64
	steps    int // at most, of a machine
}

func tryLinear(d Data, c float64) (*linear, error) {
	m := &linear{dim: d.Dim, class: newPart(d.Y, upTo(len(d.Y))).class}
	if m.positive = m.class; len(m.class) == 2 {
		m.positive = m.class[1:]
	}
	s := &newton{data: d}
	s.load(0, upTo(len(d.Y)))
	for _, class := range m.positive {
		t := make([]float64, len(d.Y))
		for i, y := range d.Y {
			if t[i] = -1; y == class {
				t[i] = 1
			}
		}
		s.begin(t)
		if err := s.solve(context.Background(), c); err != nil {
			return nil, err
		}
		m.weights, m.steps = append(m.weights, slices.Clone(s.w)), max(m.steps, s.steps)
	}
	return m, nil
}

func fitLinear(t testing.TB, d Data, c float64) *linear {
	t.Helper()
	m, err := tryLinear(d, c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *linear) decisions(x []float64) (out []float64) {
	for row := range slices.Chunk(x, m.dim) {
		for _, w := range m.weights {
			out = append(out, floats.Dot(w[:m.dim], row)+w[m.dim])
		}
	}
	return out
}

func (m *linear) predict(x []float64) (out []int) {
	for dec := range slices.Chunk(m.decisions(x), len(m.weights)) {
		out = append(out, m.class[strongest(dec)])
	}
	return out
}

// objective returns f(w,b) and its gradient for one machine from the definition.
func objective(d Data, positive int, c float64, w []float64, b float64) (f float64, grad []float64) {
	grad = append(append([]float64(nil), w...), b)
	for _, v := range grad {
		f += v * v / 2
	}
	for i, y := range d.Y {
		t := -1.0
		if y == positive {
			t = 1
		}
		z := b
		row := d.X[i*d.Dim : (i+1)*d.Dim]
		for k, v := range row {
			z += w[k] * v
		}
		if short := 1 - t*z; short > 0 {
			f += c * short * short
			for k, v := range row {
				grad[k] -= 2 * c * short * t * v
			}
			grad[d.Dim] -= 2 * c * short * t
		}
	}
	return f, grad
}

func norm(v []float64) float64 {
	var s float64
	for _, x := range v {
		s += x * x
	}
	return math.Sqrt(s)
}

func TestLinearSVCReachesTheOptimum(t *testing.T) {
	for _, tc := range []struct {
		name    string
		classes int
		change  func(d Data)
		tol     float64 // of ‖∇f‖ relative to ‖∇f(0)‖; liblinear stops at about 1e-5 to 1e-4
	}{
		{"two classes", 2, func(Data) {}, 1e-12},
		{"four classes", 4, func(Data) {}, 1e-12},
		{"large features", 2, func(d Data) {
			for i := range d.X {
				d.X[i] *= 1e4
			}
		}, 1e-12},
		{"small features", 2, func(d Data) {
			for i := range d.X {
				d.X[i] *= 1e-4
			}
		}, 1e-12},
		{"features of very different size, two the same", 3, func(d Data) {
			for i := range d.Y {
				row := d.X[i*d.Dim : (i+1)*d.Dim]
				row[0] *= 1e5
				row[1] *= 1e-5
				row[2] = 0
				row[3] = row[4]
			}
		}, 1e-9},
		{"a mean that dwarfs the spread", 2, func(d Data) {
			for i := range d.X {
				d.X[i] += 1e4
			}
		}, 1e-9},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := blobs(21, 300, 12, tc.classes, 0.3)
			tc.change(d)
			for _, c := range []float64{1e-3, 1e-2, 0.1, 1, 10, 100, 1000} {
				m := fitLinear(t, d, c)
				for q, positive := range m.positive {
					w, b := m.weights[q][:d.Dim], m.weights[q][d.Dim]
					_, start := objective(d, positive, c, make([]float64, d.Dim), 0)
					f, grad := objective(d, positive, c, w, b)
					if g := norm(grad); g > tc.tol*norm(start) {
						t.Errorf("C=%g, machine %d: gradient %g, at 0 %g", c, q, g, norm(start))
					}
					// Any other point is worse.
					for k := range d.Dim {
						other := append([]float64(nil), w...)
						other[k] += 1e-2*w[k] + 1e-3*norm(w)
						if g, _ := objective(d, positive, c, other, b); g < f*(1-1e-13) {
							t.Errorf("C=%g, machine %d: moving weight %d lowers the objective from %v to %v", c, q, k, f, g)
						}
					}
				}
			}
		})
	}
}

func TestLinearSVCClosedForm(t *testing.T) {
	// Points ±1 with labels ±1: b = 0 by symmetry, and ½w² + 2C(1−w)² is least at
	// w = 4C/(1+4C).
	for _, c := range []float64{1e-3, 1, 1e3} {
		m := fitLinear(t, Data{X: []float64{-1, 1}, Dim: 1, Y: []int{0, 1}}, c)
		closeTo(t, "weight and intercept", m.weights[0], []float64{4 * c / (1 + 4*c), 0}, 1e-14)
	}
	// One constant feature of 0: only the intercept acts. With p points of class 1
	// and n of class 0, all inside the margin, b(1+2C(p+n)) = 2C(p−n).
	m := fitLinear(t, Data{X: make([]float64, 5), Dim: 1, Y: []int{1, 1, 1, 0, 1}}, 2)
	closeTo(t, "weight and intercept", m.weights[0], []float64{0, 4 * 3 / (1 + 4*5.0)}, 1e-14)
}

func TestStrongestTakesFirstOfEquals(t *testing.T) {
	for _, tc := range []struct {
		dec  []float64
		want int
	}{{[]float64{0}, 0}, {[]float64{1e-9}, 1}, {[]float64{-3, -1, -1}, 1}, {[]float64{2, 2, 1}, 0}} {
		if got := strongest(tc.dec); got != tc.want {
			t.Errorf("decisions %v: class %d, want %d", tc.dec, got, tc.want)
		}
	}
}

// A path of warm starts must end where cold starts do.
func TestLinearWarmStart(t *testing.T) {
	d := blobs(31, 200, 9, 3, 0.4)
	s := &newton{data: d}
	s.load(0, upTo(len(d.Y)))
	for q, class := range []int{0, 1, 2} {
		t1 := make([]float64, len(d.Y))
		for i, y := range d.Y {
			if t1[i] = -1; y == class {
				t1[i] = 1
			}
		}
		s.begin(t1)
		for _, c := range []float64{1e-3, 0.1, 1, 1000} {
			if err := s.solve(context.Background(), c); err != nil {
				t.Fatal(err)
			}
			closeTo(t, "weight", s.w, fitLinear(t, d, c).weights[q], 1e-9)
		}
	}
}
