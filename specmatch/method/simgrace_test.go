package method

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/train"
)

func TestPerturbGolden(t *testing.T) {
	x := []float64{.5, -.25, 0, 1, .75, -.5}
	eps := []float64{1, -1, .5, 0, 2, -.5}
	perturb(x, 0.1, func() float64 { e := eps[0]; eps = eps[1:]; return e })
	for i, want := range []float64{.5591608, -.3091608, .0295804, 1, .8683216, -.5295804} {
		nearly(t, "entry", x[i], want, 5e-8)
	}
	// Equal entries, though their sum is rounded, and single ones stay.
	for _, x := range [][]float64{{.1, .1, .1, .1, .1, .1, .1}, {3}, nil} {
		before := slices.Clone(x)
		perturb(x, 1, func() float64 { return 1 })
		if !slices.Equal(x, before) {
			t.Errorf("%v became %v", before, x)
		}
	}
}

// TestPerturbSpread: the noise has η times the spread of the weights.
func TestPerturbSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n, eta = 40000, 0.5
	x := make([]float64, n)
	for i := range x {
		x[i] = 7 + 3*rng.NormFloat64()
	}
	y := slices.Clone(x)
	perturb(y, eta, rng.NormFloat64)
	mean, square := 0.0, 0.0
	for i := range y {
		mean += (y[i] - x[i]) / n
		square += (y[i] - x[i]) * (y[i] - x[i]) / n
	}
	nearly(t, "mean of the noise", mean, 0, 5*eta*3/math.Sqrt(n))
	nearly(t, "spread of the noise", math.Sqrt(square), eta*3, 0.05)
}

// TestDirections: which view has the anchors makes a difference.
func TestDirections(t *testing.T) {
	tape := autodiff.NewTape(newFloat64())
	defer tape.Reset()
	x := tape.Matrix(3, 2, []float64{1, 0, .6, .8, 0, 1})
	y := tape.Matrix(3, 2, []float64{.8, .6, 0, 1, -.6, .8})
	for tau, want := range map[float64][2]float64{.2: {-.66388539, -.20936815}, .5: {-.00571961, .12075734}} {
		loss := specmatch.InfoNCE{Variant: specmatch.CrossView, Tau: tau}
		nearly(t, "rows x", loss.Loss(x, y).Float(), want[0], 5e-9)
		nearly(t, "rows y", loss.Loss(y, x).Float(), want[1], 5e-9)
	}
}

func newSimGRACE(perturbedRows bool) *perturbed {
	be := newFloat64()
	s := goldenSetup(be)
	s.Options = Options{"simgrace-eta": 0.3, "simgrace-perturbed-rows": perturbedRows}
	return newPerturbed(goldenModel(be), newTable(be), s)
}

func TestSimGRACEGolden(t *testing.T) {
	for name, rows := range map[string]bool{"simgrace": false, "simgrace, perturbed rows": true} {
		g := newSimGRACE(rows)
		checkGolden(t, name, g.Minimizer, g.model, func(step int) *autodiff.Var {
			b := gnn.NewBatch(g.Tape, tableGraphs(rawPaths))
			return g.compare(b, g.noisy(b, noise(step)))
		})
	}
}

// TestSimGRACEGradients: the gradient is that of the clean branch, the noisy one
// held fixed.
func TestSimGRACEGradients(t *testing.T) {
	for _, rows := range []bool{false, true} {
		g := newSimGRACE(rows)
		fixed := g.noisy(gnn.NewBatch(g.Tape, tableGraphs(rawPaths)), noise(0)).Data()
		checkGradients(t, g.Tape.Backend(), g.model.Parameters(), "", func(tape *autodiff.Tape) *autodiff.Var {
			return g.compare(gnn.NewBatch(tape, tableGraphs(rawPaths)), tape.Matrix(len(rawPaths), tableWidth, fixed))
		})
	}
}

// TestSimGRACEPermutation: the order of the graphs of a batch does not matter.
func TestSimGRACEPermutation(t *testing.T) {
	g := newSimGRACE(false)
	defer g.Tape.Reset()
	loss := func(paths ...[]int32) float64 {
		b := gnn.NewBatch(g.Tape, tableGraphs(paths))
		return g.compare(b, g.noisy(b, noise(0))).Float()
	}
	nearly(t, "loss", loss(rawPaths[2], rawPaths[0], rawPaths[1]), loss(rawPaths...), 1e-13)
}

// TestSimGRACEDraws: the noise of a step depends on epoch and batch alone.
func TestSimGRACEDraws(t *testing.T) {
	s := motifs(t, Unsupervised)
	s.Rate = 1e-30 // at which float32 weights stay what they are
	l := newLearner(t, "simgrace", s)
	loss := func(epoch, index int) float64 {
		m, err := l.Step(train.Batch{Epoch: epoch, Index: index, Samples: []int{0, 1, 2}, Graphs: graph.Collate(s.Graphs[:3]...)})
		if err != nil || m == nil {
			t.Fatal(m, err)
		}
		return m["loss"]
	}
	first := loss(0, 0)
	if again, batch, epoch := loss(0, 0), loss(0, 1), loss(1, 0); again != first || batch == first || epoch == first || batch == epoch {
		t.Errorf("losses %v and, the same, %v; of another batch %v, of another epoch %v", first, again, batch, epoch)
	}
}
