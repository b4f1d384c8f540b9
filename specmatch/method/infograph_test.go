package method

import (
	"math/rand/v2"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch/train"
)

func TestJensenShannonGolden(t *testing.T) {
	tape := autodiff.NewTape(newFloat64())
	defer tape.Reset()
	l, g := tape.Leaf(3, 2, []float64{1, 0, .5, -1, -.2, .3}), tape.Leaf(2, 2, []float64{.4, .6, 1, -.5})
	loss := jensenShannon(l, g, tape.Indices([]int32{0, 2, 3}))
	nearly(t, "loss", loss.Float(), .50714987, 5e-9)
	tape.Backward(loss)
	for i, want := range []float64{.19017788, -.20210556, .16386117, -.24158063, -.12554197, .20276543} {
		nearly(t, "dl", l.Grad()[i], want, 5e-9)
	}
	for i, want := range []float64{-.26855067, .25206047, .40463713, -.30234795} {
		nearly(t, "dg", g.Grad()[i], want, 5e-9)
	}
}

func newTableInfoGraph(be backend.Backend) *InfoGraph {
	rng := rand.New(rand.NewPCG(1, 1))
	m := &InfoGraph{newTable(be), newShortcut(be, "local", tableWidth, rng), newShortcut(be, "global", tableWidth, rng)}
	wave(m)
	return m
}

func TestInfoGraphGolden(t *testing.T) {
	be := newFloat64()
	m := newTableInfoGraph(be)
	steps := train.NewMinimizer(be, m, 0.05)
	checkGolden(t, "infograph", steps, m, func(int) *autodiff.Var {
		return m.Loss(tableGraphs(rawPaths), steps.Tape, nil)
	})
}

func TestInfoGraphGradients(t *testing.T) {
	be := newFloat64()
	m := newTableInfoGraph(be)
	checkGradients(t, be, m.Parameters(), "", func(tape *autodiff.Tape) *autodiff.Var {
		return m.Loss(tableGraphs(rawPaths), tape, nil)
	})
}

// TestInfoGraphPermutation: the order of the graphs of a batch does not matter, and
// one graph has no negatives.
func TestInfoGraphPermutation(t *testing.T) {
	be := newFloat64()
	m, tape := newTableInfoGraph(be), autodiff.NewTape(be)
	defer tape.Reset()
	loss := func(paths ...[]int32) float64 { return m.Loss(tableGraphs(paths), tape, nil).Float() }
	nearly(t, "loss", loss(rawPaths[2], rawPaths[0], rawPaths[1]), loss(rawPaths...), 1e-13)
	if m.Loss(tableGraphs(rawPaths[:1]), tape, nil) != nil {
		t.Error("a loss without negatives")
	}
}
