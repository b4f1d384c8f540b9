package theory_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/theory"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*max(1, math.Abs(want))) {
		t.Errorf("%s: got %.15g, want %.15g", what, got, want)
	}
}

// views returns the views with the embeddings z, each [n×d].
func views(t *testing.T, n, d int, c specmatch.LaplacianMatch, z ...[]float64) []*theory.View {
	t.Helper()
	var all []*theory.View
	for _, z := range z {
		v, err := theory.NewView(z, n, d, c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// The worked example: two views of four graphs in three dimensions, with the
// median as threshold. The expected values were computed independently with
// PyTorch 1.13 in float64.
var (
	exampleZ1 = []float64{1, 0, 0, .8, .6, 0, 0, 1, 0, 0, .6, .8}
	exampleZ2 = []float64{.6, .8, 0, .8, 0, .6, 0, 1, 0, 0, 0, 1}
	median    = specmatch.LaplacianMatch{Adjacency: specmatch.Hard, Percentile: 50}
)

func TestWorkedExample(t *testing.T) {
	v := views(t, 4, 3, median, exampleZ1, exampleZ2)
	lossG := theory.LossG(v[0], v[1])
	near(t, "L_G", lossG, 3.585786437627, 1e-11)
	for i, v := range v {
		for k, want := range []float64{0, 0.5, 1.5, 2} {
			near(t, fmt.Sprintf("view %d, eigenvalue %d", i+1, k+1), v.Spectrum.Values[k], want, 1e-12)
		}
		near(t, "λ₂", v.Spectrum.Lambda2(), 0.5, 1e-12)
	}
	for td, want := range map[float64]float64{0.1: 0.028337613014, 1: 0.419306039071, 5: 0.120994831456} {
		near(t, fmt.Sprint("‖P¹-P²‖² at t_d = ", td), theory.Alignment(v[0], v[1], 0.2, td).Heat, want, 1e-11)
	}

	b, err := theory.Uniformity(v, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ mu2, half, step float64 }{
		{0.606666666667, 0.333333333333, 0.196666666667},
		{0.54, 0.373333333333, 0.23},
	} {
		d := b.Draws[i]
		near(t, "‖μ‖²", d.Mu2, want.mu2, 1e-11)
		near(t, "½E‖z_i-z_j‖² over edges", d.EdgeMean/2, want.half, 1e-11)
		near(t, "λ₂(1-‖μ‖²)", d.Lambda2*(1-d.Mu2), want.step, 1e-11)
	}
	near(t, "E[L_G] of two draws", b.LossG, lossG/2, 1e-12) // half of the pairs are a draw with itself
	near(t, "L_unif", b.Unif, math.Log((math.Exp(-1.825256256287)+math.Exp(-1.976761482065))/2), 1e-11)
}

// TestPyTorch compares every quantity with testdata/make_golden.py, which takes
// other ways: the matrix exponential for the heat kernels, cross-entropy for L_C,
// and all pairs of draws for E[L_G].
func TestPyTorch(t *testing.T) {
	var g struct {
		N, D              int
		Percentile, Kappa float64
		Tau, T            float64
		Draws             [][]float64
		Theorem42         map[string][]map[string]float64
		Theorem43         map[string]map[string]any
		PyTorch           string
	}
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	const tol = 1e-9
	for _, name := range []string{"hard", "sigmoid"} {
		t.Run(name, func(t *testing.T) {
			adjacency, err := specmatch.ParseAdjacency(name)
			if err != nil {
				t.Fatal(err)
			}
			c := specmatch.LaplacianMatch{Adjacency: adjacency, Kappa: g.Kappa, Percentile: g.Percentile}
			v := views(t, g.N, g.D, c, g.Draws...)
			if len(g.Theorem42[name]) != 3 {
				t.Fatalf("golden.json has %d diffusion times, want 3", len(g.Theorem42[name]))
			}
			for _, want := range g.Theorem42[name] {
				b, gap := theory.Alignment(v[0], v[1], g.Tau, want["t_d"]), theory.AlignmentGap(v[0], v[1], g.Tau)
				for key, got := range map[string]float64{
					"loss_g": theory.LossG(v[0], v[1]), "heat": b.Heat, "distance": b.Distance, "c": b.C, "bound": b.Right,
					"fixed": gap.Fixed, "view1": gap.View1, "midpoint": gap.Midpoint,
				} {
					near(t, fmt.Sprintf("t_d = %v: %s", want["t_d"], key), got, want[key], tol)
				}
			}
			b, err := theory.Uniformity(v, g.T)
			if err != nil {
				t.Fatal(err)
			}
			want := g.Theorem43[name]
			for key, got := range map[string]float64{
				"unif": b.Unif, "loss_g": b.LossG, "direct": b.Direct, "lambda_bar": b.LambdaBar, "bound": b.Right,
				"lambda_bar_nonzero": b.LambdaBarNonZero, "bound_nonzero": b.RightNonZero,
				"hoffman": b.Hoffman, "hoffman_nonzero": b.HoffmanNonZero,
			} {
				near(t, key, got, want[key].(float64), tol)
			}
			for i, d := range b.Draws {
				if !d.Connected {
					t.Errorf("draw %d is not connected", i)
				}
				for key, got := range map[string]float64{"lambda2": d.Lambda2, "mu2": d.Mu2, "edge_mean": d.EdgeMean, "pair_mean": d.PairMean} {
					near(t, fmt.Sprintf("draw %d: %s", i, key), got, want[key].([]any)[i].(float64), tol)
				}
			}
		})
	}
}
