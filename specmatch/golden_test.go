package specmatch_test

import (
	"math"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/tensor"
)

// The worked example: two views of four graphs in three dimensions. The
// expected values were computed independently with PyTorch 1.13 in float64.
var (
	goldenZ1 = []float64{1, 0, 0, .8, .6, 0, 0, 1, 0, 0, .6, .8}
	goldenZ2 = []float64{.6, .8, 0, .8, 0, .6, 0, 1, 0, 0, 0, 1}
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*max(1, math.Abs(want))) {
		t.Errorf("%s: got %.12f, want %.12f", what, got, want)
	}
}

func bothForms(t *testing.T, f func(t *testing.T, tape *autodiff.Tape)) {
	for form, opts := range forms() {
		t.Run(form, func(t *testing.T) {
			tape := autodiff.NewTape(cpu.New(tensor.Float64), opts...)
			defer tape.Reset()
			f(t, tape)
		})
	}
}

func TestGoldenLaplacianMatch(t *testing.T) {
	// The authors' code divides the similarities by the temperature 0.2 and has κ = 10
	// and θ = 0.5 for what comes of it: κ = 50 and θ = 0.1 for cosines. It divides the
	// loss by n².
	fixed := specmatch.LaplacianMatch{Adjacency: specmatch.Sigmoid, Kappa: 50, RandomWalk: true}
	adaptive := fixed
	adaptive.Percentile, adaptive.ThresholdGradient = 50, true
	const n2 = 4 * 4
	for _, c := range []struct {
		name string
		loss specmatch.LaplacianMatch
		want float64
	}{
		{"hard p=50", specmatch.LaplacianMatch{Adjacency: specmatch.Hard, Percentile: 50}, 3.585786437627},
		{"hard p=80", specmatch.LaplacianMatch{Adjacency: specmatch.Hard, Percentile: 80}, 4},
		{"straight-through p=50", specmatch.LaplacianMatch{Adjacency: specmatch.StraightThrough, Kappa: 10, Percentile: 50}, 3.585786437627},
		{"sigmoid", specmatch.LaplacianMatch{Kappa: 10, Percentile: 50}, 2.309321793027},
		{"authors' code, fixed threshold", fixed, 2.574925495832},
		{"authors' code, fixed threshold, 1/n²", fixed, n2 * 0.160932843489},
		{"authors' code, percentile", adaptive, 4.487578562013},
		{"authors' code, percentile, 1/n²", adaptive, n2 * 0.280473660126},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothForms(t, func(t *testing.T, tape *autodiff.Tape) {
				z1, z2 := tape.Matrix(4, 3, goldenZ1), tape.Matrix(4, 3, goldenZ2)
				tol := 1e-11
				if c.loss.RandomWalk {
					tol = 1e-9 // the authors' code adds 1e-10 to every degree
				}
				loss := c.loss.Loss(z1, z2)
				if c.loss == fixed {
					loss = specmatch.LossWithThresholds(fixed, z1, z2, 0.1, 0.1)
				}
				near(t, "L_G", loss.Float(), c.want, tol)
			})
		})
	}
}

func TestGoldenLaplacianMatchGradient(t *testing.T) {
	bothForms(t, func(t *testing.T, tape *autodiff.Tape) {
		z1, z2 := tape.Leaf(4, 3, goldenZ1), tape.Leaf(4, 3, goldenZ2)
		tape.Backward(specmatch.LaplacianMatch{Kappa: 10, Percentile: 50}.Loss(z1, z2))
		g1, g2 := z1.Grad()[3:6], z2.Grad()[3:6]
		for j, want := range []float64{1.123928366332, -1.498571155110, -3.045861093420} {
			near(t, "view 1", g1[j], want, 1e-11)
		}
		for j, want := range []float64{-0.237280084830, -1.993310839963, 0.316373446440} {
			near(t, "view 2", g2[j], want, 1e-11)
		}
	})
}

func TestGoldenInfoNCE(t *testing.T) {
	for _, c := range []struct {
		name string
		loss specmatch.InfoNCE
		want float64
	}{
		{"NT-Xent, sum", specmatch.InfoNCE{Tau: .2, Sum: true}, 10.641597341383},
		{"NT-Xent, mean", specmatch.InfoNCE{Tau: .2}, 1.330199667673},
		{"cross-view", specmatch.InfoNCE{Variant: specmatch.CrossView, Tau: .2}, 0.393193166435},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothForms(t, func(t *testing.T, tape *autodiff.Tape) {
				near(t, "L_C", c.loss.Loss(tape.Matrix(4, 3, goldenZ1), tape.Matrix(4, 3, goldenZ2)).Float(), c.want, 1e-11)
			})
		})
	}
}

func TestGoldenAlignmentUniformity(t *testing.T) {
	tape := autodiff.NewTape(ref.New())
	z1, z2 := tape.Matrix(4, 3, goldenZ1), tape.Matrix(4, 3, goldenZ2)
	near(t, "alignment", specmatch.Alignment(z1, z2).Float(), 0.48, 1e-12)
	// The rows are √0.8, √0.72, 0 and √0.4 apart.
	near(t, "uniformity, view 1", specmatch.Uniformity(z1).Float(), -1.825256256287, 1e-11)
	near(t, "uniformity, view 2", specmatch.Uniformity(z2).Float(), -1.976761482065, 1e-11)

	d := specmatch.Diagnose(goldenZ1, goldenZ2, 4, 3, specmatch.LaplacianMatch{Percentile: 50})
	near(t, "diagnosed alignment", d.Alignment, 0.48, 1e-12)
	near(t, "diagnosed uniformity", d.Uniformity, (-1.825256256287-1.976761482065)/2, 1e-11)
	near(t, "diagnosed hard loss", d.LossHard, 3.585786437627, 1e-11)
	near(t, "diagnosed density", d.Density, 0.5, 1e-12)
	near(t, "diagnosed isolated, p=80", specmatch.Diagnose(goldenZ1, goldenZ2, 4, 3, specmatch.LaplacianMatch{Percentile: 80}).Isolated, 0.5, 1e-12)
}
