package method

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// infoGraph is InfoGraph (Sun et al., Unsupervised and semi-supervised graph-level
// representation learning via mutual information maximization, ICLR 2020); the loss
// is [InfoGraph]'s. Its code's learning rate is 0.001, where the paper searches
// rates, epochs and layers.
//
// What the code does otherwise: it draws the order of the batches once for all
// epochs, and it evaluates the untrained encoder and all epochs with four
// classifiers each; which of them the paper prints is not said. Its featureless
// graphs have no self-loops, unlike GraphCL's. The prior on the embeddings, off by
// default there, is left out.
var infoGraph = &Method{
	Name:    "infograph",
	Title:   "InfoGraph",
	Regimes: []Regime{Unsupervised},
	Recipe:  map[Regime]Recipe{Unsupervised: {Rate: 0.001}},
	new:     func(s Setup) (*Learner, error) { return newInfoGraph(s, newShortcut) },
}

// newInfoGraph returns the learner with heads of a kind.
func newInfoGraph(
	s Setup, newHead func(be backend.Backend, name string, width int, rng *rand.Rand) block,
) (*Learner, error) {
	return newPretext(s, func(s Setup, e gnn.Encoder, rng *rand.Rand) (Task, error) {
		r, ok := e.(gnn.ReadoutEncoder)
		if !ok || s.Encoder.Readout != "" {
			return nil, fmt.Errorf(
				"method: the task needs the own readout of a GIN or ResGCN, not that of encoder %s %s",
				s.Encoder.Kind, s.Encoder.Readout,
			)
		}
		// Both kinds of encoders that there are have nodes as wide as graphs.
		local := newHead(s.Backend, "local", e.Width(), rng)
		return &InfoGraph{r, local, newHead(s.Backend, "global", e.Width(), rng)}, nil
	})
}

// InfoGraph tells the nodes of a graph from those of the others in the batch: with
// l_i the head Local of node i, g_k the head Global of graph k, s_ik = l_i·g_k, N
// nodes and B graphs,
//
//	loss = Σ_{i∉k} (softplus(s_ik) - ln 2)/(N(B-1)) - Σ_{i∈k} (ln 2 - softplus(-s_ik))/N,
//
// a bound on the Jensen-Shannon divergence of pairs that belong together and pairs
// that do not. It is -2·ln 2 at the least, and 0 where all products are.
type InfoGraph struct {
	gnn.ReadoutEncoder
	Local, Global block
}

type block interface {
	nn.Module
	Forward(x *autodiff.Var) *autodiff.Var
}

// Loss implements [Task]. A batch of one graph has no negatives.
func (m *InfoGraph) Loss(b *graph.Batch, t *autodiff.Tape, _ *rand.Rand) *autodiff.Var {
	if b.Graphs() < 2 || b.Nodes() == 0 {
		return nil
	}
	batch := gnn.NewBatch(t, b)
	x := m.Nodes(batch, nn.Train)
	return jensenShannon(m.Local.Forward(x), m.Global.Forward(m.Readout(batch, x, nn.Train)), batch.GraphPtr)
}

// jensenShannon is the loss of local [N×D] and global [B×D] vectors, the rows
// ptr[k] ≤ i < ptr[k+1] of the first belonging to row k of the second.
func jensenShannon(local, global *autodiff.Var, ptr *backend.Indices) *autodiff.Var {
	n := float64(local.Rows())
	b := float64(global.Rows())
	inside := rowDots(local, global.SegmentExpand(ptr, local.Rows()))
	outside := local.MatMulT(global).Softplus().Sum().Sub(inside.Softplus().Sum())
	return outside.Scale(1 / (n * (b - 1))).Add(isTrue(inside)).Shift(-2 * math.Ln2)
}

// Parameters returns the encoder's and the heads'.
func (m *InfoGraph) Parameters() []*autodiff.Param {
	return parameters(m.ReadoutEncoder, m.Local, m.Global)
}

// shortcut is InfoGraph's head: three linear layers, each with a ReLU, the last too,
// and a linear layer beside them.
type shortcut struct {
	block  *nn.MLP
	beside *nn.Linear
}

func newShortcut(be backend.Backend, name string, width int, rng *rand.Rand) block {
	return shortcut{
		nn.NewMLP(be, name+".block", []int{width, width, width, width}, nn.XavierUniform, rng),
		nn.NewLinear(be, name+".linear_shortcut", width, width, nn.XavierUniform, rng),
	}
}

func (s shortcut) Forward(x *autodiff.Var) *autodiff.Var {
	return s.block.Forward(x).ReLU().Add(s.beside.Forward(x))
}

func (s shortcut) Parameters() []*autodiff.Param { return parameters(s.block, s.beside) }

func (s shortcut) Buffers() []*nn.Buffer { return nil }
