package specmatch

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Numbers describes what a head sees of a graph beside its embedding. It can be stored as JSON.
type Numbers struct {
	// Features are how Graph.Vector is made, in the words of package apply.
	Features []string `json:"features"`
	Size     int      `json:"size"`   // of Graph.Vector
	Hidden   int      `json:"hidden"` // the width of the layer that it goes through
}

// Beside gives the head of a model numbers of the whole graph, such as descriptors of a molecule,
// beside its embedding:
//
//	h ⊕ ReLU(z·W + b),  z = ((v - Mean)∘Scale, clipped at ±6),  v = sign(x)·ln(1+|x|) of Graph.Vector x
type Beside struct {
	Mean, Scale *nn.Buffer // [1×Size]; see [Beside.Fit]
	Hidden      *nn.Linear // [Size×Hidden]
	Dropout     *nn.Dropout
}

const (
	beside    = "beside"
	mostSize  = 1 << 17
	clipAbove = 6
)

func (n Numbers) check() error {
	if len(n.Features) == 0 || n.Size < 1 || n.Size > mostSize || n.Hidden < 1 || n.Hidden > mostSize {
		return fmt.Errorf("a head that sees %d numbers of the features %q by way of %d", n.Size, n.Features, n.Hidden)
	}
	return nil
}

// accepts returns an error unless graphs have these numbers.
func (n *Numbers) accepts(graphs []*graph.Graph) error {
	for i, g := range graphs {
		if n != nil && len(g.Vector) != n.Size {
			return fmt.Errorf("specmatch: graph %d has %d numbers beside it, and the model wants the %d of %q",
				i, len(g.Vector), n.Size, n.Features)
		}
	}
	return nil
}

// newBeside returns an untrained layer. Its masks are drawn by a seed of rng.
func newBeside(be backend.Backend, n Numbers, dropout float64, rng *rand.Rand) *Beside {
	x := &Beside{
		Mean: nn.NewBuffer(be, beside+".mean", 1, n.Size, 0), Scale: nn.NewBuffer(be, beside+".scale", 1, n.Size, 1),
		Hidden: nn.NewLinear(be, beside+".hidden", n.Size, n.Hidden, nn.KaimingUniform, rng),
	}
	x.Mean.Layout, x.Scale.Layout = autodiff.Vector, autodiff.Vector
	x.Hidden.ResetBias(be, rng)
	x.Dropout = nn.NewDropout(be, dropout, rng.Uint64())
	return x
}

func signedLog(x float32) float64 {
	switch {
	case x == 0:
		return 0
	case x < 0:
		return -math.Log1p(-float64(x))
	}
	return math.Log1p(float64(x))
}

// Fit standardises by some graphs: Mean is that of v, and Scale one over its standard deviation, if
// that is more than 1, or 0 where it is constant. What varies less, as the count of a part that few
// molecules have, keeps its size: made large it is what a fit learns by heart.
func (x *Beside) Fit(graphs []*graph.Graph, samples []int) {
	be, size := x.Hidden.W.Backend(), x.Mean.Value.Cols
	mean, squares := make([]float64, size), make([]float64, size)
	for _, i := range samples {
		for k, v := range graphs[i].Vector {
			mean[k] += signedLog(v) / float64(len(samples))
		}
	}
	for _, i := range samples {
		for k, v := range graphs[i].Vector {
			d := signedLog(v) - mean[k]
			squares[k] += d * d / float64(len(samples))
		}
	}
	for k, s := range squares {
		squares[k] = 0
		if std := math.Sqrt(s); std > 1e-8*math.Abs(mean[k]) {
			squares[k] = 1 / max(std, 1)
		}
	}
	be.Upload(x.Mean.Value, mean)
	be.Upload(x.Scale.Value, squares)
}

// Forward returns what the head sees [n×width] of embeddings [n×Width] of n graphs; of a nil
// Beside these alone.
func (x *Beside) Forward(h *autodiff.Var, graphs []*graph.Graph, mode nn.Mode) *autodiff.Var {
	if x == nil {
		return h
	}
	t, be, size := h.Tape(), x.Hidden.W.Backend(), x.Mean.Value.Cols
	mean, scale := make([]float64, size), make([]float64, size)
	be.Download(mean, x.Mean.Value)
	be.Download(scale, x.Scale.Value)
	z := make([]float64, len(graphs)*size)
	for i, g := range graphs {
		row := z[i*size : (i+1)*size]
		for k, v := range g.Vector {
			row[k] = max(-clipAbove, min(clipAbove, (signedLog(v)-mean[k])*scale[k]))
		}
	}
	y := x.Hidden.ForwardReLU(t.Matrix(len(graphs), size, z))
	return autodiff.ConcatCols(h, x.Dropout.Forward(y, mode))
}
