package eval

import (
	"context"
	"math"
	"testing"
)

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
				m, err := FitLinearSVC(context.Background(), d.X, d.Dim, d.Y, c)
				if err != nil {
					t.Fatal(err)
				}
				for q, b := range m.Intercept {
					positive := m.Classes[q]
					if tc.classes == 2 {
						positive = m.Classes[1]
					}
					w := m.Coef[q*d.Dim : (q+1)*d.Dim]
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
		m, err := FitLinearSVC(context.Background(), []float64{-1, 1}, 1, []int{0, 1}, c)
		if err != nil {
			t.Fatal(err)
		}
		closeTo(t, "weight", m.Coef, []float64{4 * c / (1 + 4*c)}, 1e-14)
		closeTo(t, "intercept", m.Intercept, []float64{0}, 1e-14)
	}
	// One constant feature of 0: only the intercept acts. With p points of class 1
	// and n of class 0, all inside the margin, b(1+2C(p+n)) = 2C(p−n).
	m, err := FitLinearSVC(context.Background(), make([]float64, 5), 1, []int{1, 1, 1, 0, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "intercept", m.Intercept, []float64{4 * 3 / (1 + 4*5.0)}, 1e-14)
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
	var w linearWorker
	w.load(d.X, d.Dim, upTo(d.Len()))
	cs := []float64{1e-3, 0.1, 1, 1000}
	err := w.fit(context.Background(), d.Y, []int{0, 1, 2}, cs, func(q, c int, weights []float64, _ int) {
		m, err := FitLinearSVC(context.Background(), d.X, d.Dim, d.Y, cs[c])
		if err != nil {
			t.Fatal(err)
		}
		want := append(append([]float64(nil), m.Coef[q*d.Dim:(q+1)*d.Dim]...), m.Intercept[q])
		closeTo(t, "weight", weights, want, 1e-9)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCholesky(t *testing.T) {
	const m, ld = 5, 8
	var b [m][m]float64
	a := make([]float64, m*ld)
	for i := range m {
		for j := range m {
			b[i][j] = bell(1, i*m+j)
		}
	}
	var want [m][m]float64
	for i := range m {
		for j := range m {
			for k := range m {
				want[i][j] += b[k][i] * b[k][j]
			}
			a[i*ld+j] = want[i][j]
		}
	}
	if !cholesky(a, m, ld, 0) {
		t.Fatal("not positive definite")
	}
	for i := range m {
		for j := i; j < m; j++ {
			got := 0.0
			for k := range i + 1 {
				got += a[k*ld+i] * a[k*ld+j]
			}
			if !(math.Abs(got-want[i][j]) <= 1e-13) {
				t.Errorf("UᵀU at %d,%d is %v, want %v", i, j, got, want[i][j])
			}
		}
	}
	s := linearWorker{m: m, ld: ld, chol: a}
	v := []float64{1, -2, 3, -4, 5}
	s.solve(v)
	for i := range m {
		got := 0.0
		for j := range m {
			got += want[i][j] * v[j]
		}
		if r := []float64{1, -2, 3, -4, 5}[i]; !(math.Abs(got-r) <= 1e-10) {
			t.Errorf("row %d of A·A⁻¹v is %v, want %v", i, got, r)
		}
	}
	if cholesky([]float64{1, 2, 0, 1}, 2, 2, 0) {
		t.Error("an indefinite matrix was factored")
	}
}
