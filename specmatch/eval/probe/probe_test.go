package probe_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/eval/probe"
)

const (
	rows = 60
	dim  = 5
)

// wave is the vectors of testdata/golden.py, and its targets.
func wave() (x []float32, target, answer []float64) {
	w := [dim]float64{1, -2, 0.5, 0, 3}
	for i := range rows {
		y := 4 + 0.3*math.Sin(7.1*float64(i))
		for f := range dim {
			v := math.Sin(1.7*float64(i) + 0.9*float64(f) + 0.37*float64(i*f))
			x = append(x, float32(v))
			y += w[f] * v
		}
		target = append(target, y)
		answer = append(answer, 0)
		if y > 3.5 {
			answer[i] = 1
		}
	}
	return x, target, answer
}

func numbers(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// TestAgainstScikitLearn: predictions of ridge and logistic regression. A second task with gaps
// changes nothing in the first.
func TestAgainstScikitLearn(t *testing.T) {
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string]map[string][]float64
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	x, target, answer := wave()
	for strength, want := range golden {
		s, err := strconv.ParseFloat(strength, 64)
		if err != nil {
			t.Fatal(err)
		}
		for kind, y := range map[probe.Kind][]float64{probe.Squares: target, probe.Logistic: answer} {
			name := map[probe.Kind]string{probe.Squares: "Squares", probe.Logistic: "Logistic"}[kind]
			d := probe.Data{X: x, Dim: dim, Tasks: 2, Kind: kind}
			for i, v := range y {
				other := math.NaN()
				if i%3 == 0 {
					other = 1 - answer[i]
				}
				d.Y = append(d.Y, v, other)
			}
			m, err := probe.Fit(t.Context(), d, numbers(rows), s)
			if err != nil {
				t.Fatal(err)
			}
			got := m.Predict(x)
			for i := range y {
				if diff := math.Abs(got[2*i] - want[name][i]); !(diff <= 2e-3) {
					t.Errorf("%s, strength %s, row %d: %v, want %v", name, strength, i, got[2*i], want[name][i])
				}
			}
		}
	}
}

// TestWeights: a row with the weight 2 counts as two rows, in a descent and in the exact minimum of few rows.
func TestWeights(t *testing.T) {
	x, target, answer := wave()
	for _, n := range []int{dim - 2, rows} {
		for kind, y := range map[probe.Kind][]float64{probe.Squares: target, probe.Logistic: answer} {
			weighted := probe.Data{X: x, Dim: dim, Y: y, Tasks: 1, Kind: kind}
			fitted := numbers(n)
			for i := range rows {
				weighted.Weights = append(weighted.Weights, float64(1+i%2))
			}
			for i := 1; i < n; i += 2 {
				fitted = append(fitted, i)
			}
			a, err := probe.Fit(t.Context(), weighted, numbers(n), 1e-3)
			if err != nil {
				t.Fatal(err)
			}
			weighted.Weights = nil
			b, err := probe.Fit(t.Context(), weighted, fitted, 1e-3)
			if err != nil {
				t.Fatal(err)
			}
			got, want := a.Predict(x), b.Predict(x)
			for i := range got {
				if !(math.Abs(got[i]-want[i]) <= 2e-3) {
					t.Errorf("kind %d, %d rows: row %d: %v with weights, %v with repeated rows", kind, n, i, got[i], want[i])
				}
			}
		}
	}
}

// TestSparse: vectors that are mostly zeros, which are fitted without them, give what the others alone give.
func TestSparse(t *testing.T) {
	x, _, answer := wave()
	const wide = 64
	sparse := make([]float32, rows*wide)
	for i := range rows {
		for f := range dim {
			sparse[i*wide+11*f] = x[i*dim+f]
		}
	}
	var predicted [2][]float64
	for k, d := range []probe.Data{{X: x, Dim: dim}, {X: sparse, Dim: wide}} {
		d.Y, d.Tasks, d.Kind = answer, 1, probe.Logistic
		m, err := probe.Fit(t.Context(), d, numbers(rows), 0.01)
		if err != nil {
			t.Fatal(err)
		}
		predicted[k] = m.Predict(d.X)
	}
	for i, want := range predicted[0] {
		if got := predicted[1][i]; !(math.Abs(got-want) <= 1e-3) {
			t.Errorf("row %d: %v, want %v", i, got, want)
		}
	}
}

// TestChoose: where half of the targets' variance is noise and most columns say nothing, a
// strength in between is chosen, and no other has a higher score.
func TestChoose(t *testing.T) {
	x, target, _ := wave()
	d := probe.Data{X: x, Dim: dim, Y: target, Tasks: 1}
	score := func(p, y []float64) float64 {
		sum := 0.0
		for i := range p {
			sum -= (p[i] - y[i]) * (p[i] - y[i])
		}
		return sum
	}
	all := numbers(rows)
	m, err := probe.Choose(t.Context(), d, all[:30], all[30:], score)
	if err != nil {
		t.Fatal(err)
	}
	chosen := score(m.Predict(x[30*dim:]), target[30:])
	for _, s := range probe.Strengths {
		other, err := probe.Fit(t.Context(), d, all[:30], s)
		if err != nil {
			t.Fatal(err)
		}
		if v := score(other.Predict(x[30*dim:]), target[30:]); v > chosen+1e-2 {
			t.Errorf("strength %v has the score %v, the chosen one, %v, has %v", s, v, m.Strength, chosen)
		}
	}
	none, err := probe.Choose(t.Context(), d, all[:30], nil, func(_, _ []float64) float64 { return math.NaN() })
	if err != nil || none.Strength != probe.Strengths[0] {
		t.Errorf("without a score the strongest is chosen, not %+v, %v", none, err)
	}
}

// TestOddTasks: one answer alone, no target at all, a constant column.
func TestOddTasks(t *testing.T) {
	x := []float32{1, 7, 2, 7, 3, 7}
	nan := math.NaN()
	m, err := probe.Fit(t.Context(), probe.Data{X: x, Dim: 2, Y: []float64{5, nan, 5, nan, 5, nan}, Tasks: 2}, numbers(3), 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range m.Predict(x) {
		if want := []float64{5, 0}[i%2]; !(math.Abs(v-want) <= 1e-6) {
			t.Errorf("entry %d: %v, want %v", i, v, want)
		}
	}
	z := probe.Standardize(x, 2, numbers(3)).Apply(x)
	for i, want := range []float64{-math.Sqrt(1.5), 0, 0, 0, math.Sqrt(1.5), 0} {
		if !(math.Abs(float64(z[i])-want) <= 1e-6) {
			t.Errorf("standardised %v", z)
		}
	}
	if far := probe.Standardize(x, 2, numbers(3)).Apply([]float32{1e9, 7}); far[0] != 10 {
		t.Errorf("not clipped: %v", far)
	}
}

func TestErrors(t *testing.T) {
	inf := float32(math.Inf(1))
	for want, d := range map[string]probe.Data{
		"and 2 targets":             {X: make([]float32, 6), Dim: 2, Y: make([]float64, 2), Tasks: 1},
		"row 1: target 3":           {X: make([]float32, 4), Dim: 2, Y: []float64{0, 3}, Tasks: 1, Kind: probe.Logistic},
		"row 1: column 0 is +Inf":   {X: []float32{0, 0, inf, 0}, Dim: 2, Y: []float64{0, 1}, Tasks: 1},
		"0 numbers in vectors of 0": {Tasks: 1},
	} {
		if _, err := probe.Fit(t.Context(), d, nil, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	x, target, _ := wave()
	d := probe.Data{X: x, Dim: dim, Y: target, Tasks: 1}
	if _, err := probe.Fit(t.Context(), d, numbers(rows), 0); err == nil || !strings.Contains(err.Error(), "strength of 0") {
		t.Errorf("a strength of 0: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := probe.Fit(ctx, d, numbers(rows), 1); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

// A probe of vectors of one number, whose targets are 2x+1.
func ExampleChoose() {
	x, y := []float32{0, 1, 2, 3, 4, 5}, []float64{1, 3, 5, 7, 9, 11}
	d := probe.Data{X: probe.Standardize(x, 1, []int{0, 1, 2, 3}).Apply(x), Dim: 1, Y: y, Tasks: 1}
	m, err := probe.Choose(context.Background(), d, []int{0, 1, 2, 3}, []int{4, 5}, func(p, y []float64) float64 {
		return -math.Abs(p[0]-y[0]) - math.Abs(p[1]-y[1])
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("strength %v: %.1f\n", m.Strength, m.Predict(d.X))
	// Output: strength 0.0001: [1.0 3.0 5.0 7.0 9.0 11.0]
}

// TestNear: the nearest by hand, of dense and of sparse vectors; a row is not its own neighbour.
func TestNear(t *testing.T) {
	all := numbers(4)
	for _, width := range []int{3, 64} { // 64 columns are mostly zeros
		x := make([]float32, 4*width)
		for i, row := range [][3]float32{{1, 0, 0}, {0, 1, 0}, {3, 0, 0}, {1, 1, 0}} {
			copy(x[i*width:], row[:])
		}
		for by, want := range map[probe.Similarity]string{probe.Cosine: "[[2 3] [3 0] [0 3] [0 1]]", probe.Tanimoto: "[[3 2] [3 0] [0 3] [0 1]]"} {
			near, err := probe.Near(t.Context(), x, width, all, all, 2, by)
			if err != nil || fmt.Sprint(near) != want {
				t.Errorf("%d columns, similarity %d: %v, %v, want %s", width, by, near, err, want)
			}
		}
	}
	nan := math.NaN()
	d := probe.Data{X: []float32{0, 1, 2, 3}, Dim: 1, Y: []float64{1, nan, 2, nan, 4, nan, nan, nan}, Tasks: 2}
	y, err := probe.Neighbours(t.Context(), d, all[:3], all[3:], 2, probe.Cosine)
	if err != nil || !slices.Equal(y, []float64{3, 0}) {
		t.Errorf("%v, %v", y, err)
	}
}

// TestMinimum: with more columns than rows and a small strength, too, a fit ends at the minimum: the loss is strongly
// convex, and so at most ‖g‖²/2λ above it.
func TestMinimum(t *testing.T) {
	const n, wide, strength = 40, 200, 1e-4
	rng := rand.New(rand.NewPCG(3, 4))
	var x []float32
	for range n * wide {
		x = append(x, float32(rng.NormFloat64()))
	}
	for _, kind := range []probe.Kind{probe.Squares, probe.Logistic} {
		d := probe.Data{X: x, Dim: wide, Tasks: 1, Kind: kind}
		for i := range n {
			y := rng.NormFloat64()
			if kind == probe.Logistic {
				y = float64(i * 7 % 3 % 2)
			}
			d.Y = append(d.Y, y)
		}
		m, err := probe.Fit(t.Context(), d, numbers(n), strength)
		if err != nil {
			t.Fatal(err)
		}
		loss := 0.0
		g := make([]float64, wide+1)
		for i, y := range d.Y {
			s := m.Intercept[0]
			for k := range wide {
				s += float64(m.W[k]) * float64(x[i*wide+k])
			}
			slope := 0.0
			if kind == probe.Squares {
				slope = s - (y-m.Mean[0])/m.Std[0]
				loss += 0.5 * slope * slope / n
			} else {
				slope = 1/(1+math.Exp(-s)) - y
				loss += (math.Log1p(math.Exp(s)) - y*s) / n
			}
			for k := range wide {
				g[k] += slope * float64(x[i*wide+k]) / n
			}
			g[wide] += slope / n
		}
		squares := g[wide] * g[wide]
		for k, w := range m.W {
			loss += 0.5 * strength * float64(w) * float64(w)
			g[k] += strength * float64(w)
			squares += g[k] * g[k]
		}
		if gap := squares / (2 * strength) / loss; !(gap < 1e-6) {
			t.Errorf("kind %d: the loss %g may be %g of it above the minimum", kind, loss, gap)
		}
	}
}

// TestChooseStops: after one strength that is worse, the next is still tried; after two, none is.
func TestChooseStops(t *testing.T) {
	x, target, _ := wave()
	d := probe.Data{X: x, Dim: dim, Y: target, Tasks: 1}
	for _, c := range []struct {
		scores   []float64
		strength float64
		fits     int
	}{
		{[]float64{1, 0.5, 2, 1.5, 1.9, 9}, 0.1, 5},
		{[]float64{3, 2, 1, 9, 9, 9}, 10, 3},
		{[]float64{math.NaN(), 1, 0, 2, 3, 4}, 1e-4, 6},
	} {
		fits := 0
		m, err := probe.Choose(t.Context(), d, numbers(40), numbers(60)[40:], func([]float64, []float64) float64 {
			fits++
			return c.scores[fits-1]
		})
		if err != nil {
			t.Fatal(err)
		}
		if m.Strength != c.strength || fits != c.fits {
			t.Errorf("%v: strength %g after %d fits, want %g after %d", c.scores, m.Strength, fits, c.strength, c.fits)
		}
	}
}
