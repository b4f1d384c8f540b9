package eval

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval/roc"
)

// The reference is scikit-learn 1.2.1 (with its libsvm and liblinear), NumPy
// 1.24.2, run by testdata/golden.py.
type golden struct {
	Cs       []float64
	Problems []goldenProblem
	AUC      []struct {
		Seed   uint64
		N      int
		Levels float64
		Rate   float64
		AUC    float64
	}
}

type goldenProblem struct {
	Name            string
	Seed            uint64
	Sizes           []int
	Dim             int
	Spread          float64
	Kind            string
	Labels, Folds   string
	Checksum        float64
	GraphCL, Linear goldenNested
	Converged       goldenNested `json:"linear_converged"`
	SVC             []goldenFit
	LinearSVC       []goldenFit `json:"linear_svc"`
}

type goldenNested struct {
	Accuracies, Chosen []float64
	Inner              [][]float64
}

type goldenFit struct {
	C          float64
	Gamma      float64
	Iterations []int
	Support    int
	Decision   []float64
	Predicted  string
}

func readGolden(t testing.TB) golden {
	t.Helper()
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Problems) == 0 || len(g.AUC) == 0 {
		t.Fatal("testdata/golden.json is empty")
	}
	return g
}

// uniform is SplitMix64 of seed·2^32 + i as a multiple of 2^-52 in [-1, 1); bell is
// a sum of four of them. golden.py has the same.
func uniform(seed, i uint64) float64 {
	z := (seed<<32 + i + 1) * 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	z ^= z >> 31
	return float64(float64(z>>11)*0x1p-52) - 1
}

func bell(seed uint64, i int) float64 {
	j := uint64(i) * 4
	return ((uniform(seed, j) + uniform(seed, j+1)) + uniform(seed, j+2)) + uniform(seed, j+3)
}

func digits(s string) []int {
	v := make([]int, len(s))
	for i, c := range s {
		v[i] = int(c - '0')
	}
	return v
}

func (p goldenProblem) data(t testing.TB) Data {
	t.Helper()
	y := digits(p.Labels)
	n, d := len(y), p.Dim
	x := make([]float64, n*d)
	point := func(i int) []float64 { return x[i*d : (i+1)*d] }
	for i, c := range y {
		for k, row := 0, point(i); k < d; k++ {
			row[k] = bell(p.Seed+1, i*d+k) + float64(p.Spread*bell(p.Seed+2, c*d+k))
			if p.Kind == "equal" {
				row[k] = 3
			}
		}
	}
	for i := range n {
		row := point(i)
		switch p.Kind {
		case "heavy":
			size := math.Abs(bell(p.Seed+3, i))
			f := 0.1 + float64(20*float64(size*size))
			for k, v := range row {
				row[k] = (v + 1.5) * f
			}
		case "duplicates":
			copy(row, point(i%(n/4)))
		case "constant":
			row[0], row[1], row[2] = 0, 1, 50
			row[4], row[5] = row[3], 2*row[3]
		}
	}
	var sum float64
	for _, v := range x {
		sum += v
	}
	if !(math.Abs(sum-p.Checksum) <= 1e-9*(1+math.Abs(sum))) {
		t.Fatalf("%s: features sum to %v, in golden.py to %v: the generators differ", p.Name, sum, p.Checksum)
	}
	return Data{X: x, Dim: d, Y: y}
}

func (p goldenProblem) outer() []dataset.Fold {
	folds := make([]dataset.Fold, 10)
	for i, test := range digits(p.Folds) {
		for f := range folds {
			if f == test {
				folds[f].Test = append(folds[f].Test, i)
			} else {
				folds[f].Train = append(folds[f].Train, i)
			}
		}
	}
	return folds
}

// half returns every other row as a training set and the first twelve of the
// others, as golden.py does.
func half(d Data) (train Data, test []float64) {
	var first, rest []int
	var y []int
	for i := range d.Y {
		if i%2 == 0 {
			first = append(first, i)
			y = append(y, d.Y[i])
		} else if i < 24 {
			rest = append(rest, i)
		}
	}
	return Data{X: rows(d, first), Dim: d.Dim, Y: y}, rows(d, rest)
}

// rows returns rows of features.
func rows(d Data, idx []int) (x []float64) {
	for _, i := range idx {
		x = append(x, d.row(i)...)
	}
	return x
}

func TestProtocolsAgreeWithScikitLearn(t *testing.T) {
	for _, p := range readGolden(t).Problems {
		t.Run(p.Name, func(t *testing.T) {
			d := p.data(t)
			outer := p.outer()
			ours, err := dataset.StratifiedKFold(d.Y, 10, true, uint32(p.Seed))
			if err != nil {
				t.Fatal(err)
			}
			for f := range outer {
				if !slices.Equal(outer[f].Test, ours[f].Test) {
					t.Fatalf("outer fold %d: test part is %v, scikit-learn's is %v", f, ours[f].Test, outer[f].Test)
				}
			}
			compare := func(name string, got *Result, want goldenNested, inner bool) {
				t.Helper()
				for f := range outer {
					if got.FoldAccuracies[f] != want.Accuracies[f] {
						t.Errorf("%s: outer fold %d: accuracy %v, want %v", name, f, got.FoldAccuracies[f], want.Accuracies[f])
					}
					if got.ChosenC[f] != want.Chosen[f] {
						t.Errorf("%s: outer fold %d: C = %g, want %g", name, f, got.ChosenC[f], want.Chosen[f])
					}
					if inner && !slices.Equal(got.InnerAccuracies[f], want.Inner[f]) {
						t.Errorf("%s: outer fold %d: validation accuracies %v, want %v", name, f, got.InnerAccuracies[f], want.Inner[f])
					}
				}
			}
			res, err := Evaluate(context.Background(), GraphCL, d, outer, Options{})
			if err != nil {
				t.Fatal(err)
			}
			compare("graphcl", res, p.GraphCL, true)
			res, err = Evaluate(context.Background(), Linear, d, outer, Options{})
			if err != nil {
				t.Fatal(err)
			}
			// liblinear's default tolerance may leave a validation point on the
			// other side; driven to the optimum it has to agree in all.
			compare("linear", res, p.Linear, false)
			compare("linear, converged", res, p.Converged, true)
		})
	}
}

func TestSVCAgreesWithScikitLearn(t *testing.T) {
	for _, p := range readGolden(t).Problems {
		t.Run(p.Name, func(t *testing.T) {
			d, test := half(p.data(t))
			for _, want := range p.SVC {
				m := fitSVC(t, d, svcOptions{c: want.C})
				if !(math.Abs(m.gamma-want.Gamma) <= 1e-13*want.Gamma) {
					t.Errorf("C=%g: gamma %v, want %v", want.C, m.gamma, want.Gamma)
				}
				support := map[int]bool{}
				for q, s := range m.pairs {
					// The same number of steps means the same path.
					if s.steps != want.Iterations[q] {
						t.Errorf("C=%g, pair %d: %d iterations, want %d", want.C, q, s.steps, want.Iterations[q])
					}
					for _, e := range s.terms {
						support[e.at] = true
					}
				}
				if len(support) != want.Support {
					t.Errorf("C=%g: %d support vectors, want %d", want.C, len(support), want.Support)
				}
				closeTo(t, "decision", m.decisions(test), want.Decision, 1e-6) // libsvm's own tolerance is 1e-3
				if got, w := m.predict(test), digits(want.Predicted); !slices.Equal(got, w) {
					t.Errorf("C=%g: predicted %v, want %v", want.C, got, w)
				}
			}
		})
	}
}

func TestLinearSVCAgreesWithScikitLearn(t *testing.T) {
	for _, p := range readGolden(t).Problems {
		t.Run(p.Name, func(t *testing.T) {
			d, test := half(p.data(t))
			for _, want := range p.LinearSVC {
				m := fitLinear(t, d, want.C)
				closeTo(t, "decision", m.decisions(test), want.Decision, 1e-5)
				if got, w := m.predict(test), digits(want.Predicted); !slices.Equal(got, w) {
					t.Errorf("C=%g: predicted %v, want %v", want.C, got, w)
				}
			}
		})
	}
}

func closeTo(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tol*(1+math.Abs(want[i]))) {
			t.Errorf("%s %d: %v, want %v, off by %g", what, i, got[i], want[i], got[i]-want[i])
			return
		}
	}
}

func TestROCAUCAgreesWithScikitLearn(t *testing.T) {
	for _, g := range readGolden(t).AUC {
		scores, labels := make([]float64, g.N), make([]float64, g.N)
		for i := range scores {
			u := uniform(g.Seed, uint64(i))
			scores[i] = u
			if g.Levels > 0 {
				scores[i] = math.Floor(u * g.Levels)
			}
			if uniform(g.Seed+1, uint64(i))+0.3*u < 2*g.Rate-1 {
				labels[i] = 1
			}
		}
		got, err := roc.AUC(scores, labels)
		if err != nil {
			t.Fatal(err)
		}
		if !(math.Abs(got-g.AUC) <= 1e-12) {
			t.Errorf("seed %d, %d samples, %g levels: %v, want %v", g.Seed, g.N, g.Levels, got, g.AUC)
		}
	}
}
