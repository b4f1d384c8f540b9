package model

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Numbers describes the numbers of a graph that a head sees next to its embedding. It can be stored as JSON.
type Numbers struct {
	// Features are the parts of Graph.Globals, by their names in package apply.
	Features []string `json:"features"`
	Size     int      `json:"size"`   // length of Graph.Globals
	Hidden   int      `json:"hidden"` // width of the layer that they pass
	// Linear says that a linear model of the numbers takes part in the predictions.
	Linear bool `json:"linear,omitempty"`
	// Trees is the number of trees of a random forest that takes part in the predictions; 0 for none. See
	// [Card.Forest].
	Trees int `json:"trees,omitempty"`
}

// Beside gives the head of a model numbers of the whole graph, such as descriptors of a molecule, next to its
// embedding h:
//
//	h ⊕ ReLU(z·W + b),  z = ((v - Mean)∘Scale, clipped at ±6),  v = sign(x)·ln(1+|x|) of Graph.Globals x
//
// It mixes the outputs of the head with those of a linear model of z, and the result with those of a forest;
// see [Head.Mix].
type Beside struct {
	Mean, Scale *nn.Buffer // [1×Size]; see [Beside.Fit]
	Hidden      *nn.Linear // [Size×Hidden]
	Dropout     *nn.Dropout
	Linear      *Linear // nil unless [Numbers.Linear]
}

// Linear is a linear model z·W + b. Package finetune fits it; until then, its share is 0.
type Linear struct {
	W     *nn.Buffer // [Size×Outputs]
	B     *nn.Buffer // [1×Outputs]
	Share *nn.Buffer // [1×1], from 0 to 1, of all tasks that have none in [Card.Shares]
}

const (
	beside  = "beside" // prefix of the tensors' names
	maxSize = 1 << 17  // of Numbers
	maxZ    = 6        // z is clipped at ±maxZ

	maxTrees = 1 << 16
)

// check returns an error unless the sizes are in range.
func (n Numbers) check() error {
	if len(n.Features) == 0 || n.Size < 1 || n.Size > maxSize || n.Hidden < 1 || n.Hidden > maxSize {
		return fmt.Errorf("a head that sees %d numbers of the features %q through a layer of width %d",
			n.Size, n.Features, n.Hidden)
	}
	if n.Trees < 0 || n.Trees > maxTrees {
		return fmt.Errorf("a forest of %d trees", n.Trees)
	}
	return nil
}

// accepts returns an error unless each graph has these numbers.
func (n *Numbers) accepts(graphs []*graph.Graph) error {
	for i, g := range graphs {
		if n != nil && len(g.Globals) != n.Size {
			return fmt.Errorf("specmatch: graph %d has %d global numbers, but the model needs the %d of %q",
				i, len(g.Globals), n.Size, n.Features)
		}
	}
	return nil
}

// newBeside returns an untrained Beside of a head with this many outputs. rng also seeds the masks
// of dropout.
func newBeside(be backend.Backend, n Numbers, outputs int, dropout float64, rng *rand.Rand) *Beside {
	x := &Beside{
		Mean:   nn.NewBuffer(be, beside+".mean", 1, n.Size, 0),
		Scale:  nn.NewBuffer(be, beside+".scale", 1, n.Size, 1),
		Hidden: nn.NewLinear(be, beside+".hidden", n.Size, n.Hidden, nn.KaimingUniform, rng),
	}
	x.Mean.Layout, x.Scale.Layout = autodiff.Vector, autodiff.Vector
	x.Hidden.ResetBias(be, rng)
	x.Dropout = nn.NewDropout(be, dropout, rng.Uint64())
	if n.Linear {
		const name = beside + ".linear."
		x.Linear = &Linear{W: nn.NewBuffer(be, name+"weight", n.Size, outputs, 0),
			B:     nn.NewBuffer(be, name+"bias", 1, outputs, 0),
			Share: nn.NewBuffer(be, name+"share", 1, 1, 0),
		}
		x.Linear.W.Layout, x.Linear.B.Layout, x.Linear.Share.Layout = autodiff.Transposed,
			autodiff.Vector,
			autodiff.Vector
	}
	return x
}

// buffers returns the tensors that gradients do not change.
func (x *Beside) buffers() []*nn.Buffer {
	if x == nil {
		return nil
	}
	buffers := []*nn.Buffer{x.Mean, x.Scale}
	if l := x.Linear; l != nil {
		buffers = append(buffers, l.W, l.B, l.Share)
	}
	return buffers
}

// signedLog returns sign(x)·ln(1+|x|).
func signedLog(x float32) float64 {
	switch {
	case x == 0:
		return 0
	case x < 0:
		return -math.Log1p(-float64(x))
	}
	return math.Log1p(float64(x))
}

// Fit sets Mean to the mean of v over some graphs, and Scale to the inverse of its standard
// deviation, but to at most 1, and to 0 where v is constant. A number that varies less, such as the
// count of a rare substructure, keeps its size: enlarged, it is what a fit overfits to. weights are those of
// the graphs; nil for equal ones.
func (x *Beside) Fit(graphs []*graph.Graph, samples []int, weights []float64) {
	be := x.Hidden.W.Backend()
	size := x.Mean.Value.Cols
	mean := make([]float64, size)
	squares := make([]float64, size)
	weight := func(i int) float64 {
		if weights == nil {
			return 1
		}
		return weights[i]
	}
	total := 0.0
	for _, i := range samples {
		total += weight(i)
	}
	for _, i := range samples {
		for k, v := range graphs[i].Globals {
			mean[k] += weight(i) * signedLog(v) / total
		}
	}
	for _, i := range samples {
		for k, v := range graphs[i].Globals {
			d := signedLog(v) - mean[k]
			squares[k] += weight(i) * d * d / total
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

// Standardise returns z [n×Size] of n graphs.
func (x *Beside) Standardise(graphs []*graph.Graph) []float64 {
	z := make([]float64, len(graphs)*x.Mean.Value.Cols)
	x.standardise(z, graphs, nil)
	return z
}

// standardise is [Beside.Standardise] into z, with the logarithms of the graphs' numbers; nil computes them.
func (x *Beside) standardise(z []float64, graphs []*graph.Graph, logs []sparseLogs) {
	be := x.Hidden.W.Backend()
	size := x.Mean.Value.Cols
	mean := make([]float64, size)
	scale := make([]float64, size)
	be.Download(mean, x.Mean.Value)
	be.Download(scale, x.Scale.Value)
	standardise := func(k int, logarithm float64) float64 {
		place := (logarithm - mean[k]) * scale[k]
		if place > maxZ { // branches are faster than min and max in WebAssembly
			return maxZ
		}
		if place < -maxZ {
			return -maxZ
		}
		return place
	}
	ofZero := make([]float64, size) // what most numbers are
	for k := range ofZero {
		ofZero[k] = standardise(k, 0)
	}
	for i, g := range graphs {
		row := z[i*size : (i+1)*size]
		copy(row, ofZero)
		if logs != nil {
			for n, k := range logs[i].columns {
				row[k] = standardise(int(k), logs[i].values[n])
			}
			continue
		}
		for k, v := range g.Globals {
			if v != 0 {
				row[k] = standardise(k, signedLog(v))
			}
		}
	}
}

// Forward returns the input of the head [n×width] for n graphs with embeddings h [n×Width], and z
// [n×Size]. A nil Beside returns the embeddings alone.
func (x *Beside) Forward(h *autodiff.Var, graphs []*graph.Graph, mode nn.Mode) (input, z *autodiff.Var) {
	if x != nil {
		z = x.numbers(h.Tape(), graphs)
	}
	return x.input(h, z, mode), z
}

// input returns the input of the head for embeddings h and z.
func (x *Beside) input(h, z *autodiff.Var, mode nn.Mode) *autodiff.Var {
	if x == nil {
		return h
	}
	return autodiff.ConcatCols(h, x.Dropout.Forward(x.Hidden.ForwardReLU(z), mode))
}

// numbers returns z [n×Size] of n graphs on a tape.
func (x *Beside) numbers(t *autodiff.Tape, graphs []*graph.Graph) *autodiff.Var {
	return t.Matrix(len(graphs), x.Mean.Value.Cols, x.Standardise(graphs))
}

// Forward returns z·W + b [n×Outputs]: standardised numbers, the log-odds of 1, or of each class
// against the others.
func (l *Linear) Forward(z *autodiff.Var) *autodiff.Var {
	t := z.Tape()
	return z.MatMul(t.Const(l.W.Value)).AddRow(t.Const(l.B.Value))
}
