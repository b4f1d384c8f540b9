package method

import (
	"math/rand/v2"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// gae is the graph autoencoder (Kipf and Welling, Variational graph auto-encoders,
// 2016) as GraphCL's code for the semi-supervised regime has it; the loss is
// [Autoencoder]'s. How it was trained is not published. The layers between the
// readout and the embedding learn nothing.
var gae = &Method{
	Name:    "gae",
	Title:   "GAE",
	Regimes: []Regime{SemiSupervised},
	new: func(s Setup) (*Learner, error) {
		return newPretext(s, func(s Setup, e gnn.Encoder, rng *rand.Rand) (Task, error) {
			w := s.Encoder.NodeWidth()
			head := nn.NewMLP(s.Backend, "proj_head", []int{w, w, w}, nn.XavierUniform, rng)
			return &Autoencoder{e, head}, nil
		})
	},
}

// Autoencoder tells which pairs of nodes of a graph have an edge: with z = Head(h) of
// the nodes and y_ij = 1 for an edge i→j, else 0,
//
//	loss = mean over graphs of the mean over i ≠ j of the binary cross-entropy of y_ij and σ(z_i·z_j).
//
// Edges count no more than pairs without one, of which there are many more. Graphs
// of fewer than two nodes do not count.
type Autoencoder struct {
	gnn.NodeEncoder
	Head *nn.MLP
}

// Loss implements [Task].
func (m *Autoencoder) Loss(b *graph.Batch, t *autodiff.Tape, _ *rand.Rand) *autodiff.Var {
	for g := range b.Graphs() {
		if b.GraphPtr[g+1]-b.GraphPtr[g] > 1 {
			return reconstruction(m.Head.Forward(m.Nodes(gnn.NewBatch(t, b), nn.Train)), b)
		}
	}
	return nil
}

// reconstruction is the loss of the vectors z [N×D] of nodes, of which some graph has
// two or more.
func reconstruction(z *autodiff.Var, b *graph.Batch) *autodiff.Var {
	// -ln(1-σ(s)) = softplus(s) for all pairs, and -ln σ(s) = softplus(s) - s for those
	// with an edge. The diagonal is put so low that its part is 0.
	var terms []*autodiff.Var
	var tails, heads []int32
	var weights []float64 // of the edges' products
	for g := range b.Graphs() {
		lo, hi := b.GraphPtr[g], b.GraphPtr[g+1]
		if hi-lo < 2 {
			continue
		}
		part := z.SliceRows(int(lo), int(hi))
		share := 1 / (float64(hi-lo) * float64(hi-lo-1))
		terms = append(terms, part.MatMulT(part).FillDiagonal(never).Softplus().Sum().Scale(share))
		for i := lo; i < hi; i++ {
			for _, j := range slices.Compact(slices.Clone(b.Adj[b.Ptr[i]:b.Ptr[i+1]])) {
				if i != j {
					tails = append(tails, i)
					heads = append(heads, j)
					weights = append(weights, share)
				}
			}
		}
	}
	loss := autodiff.ConcatRows(terms...).Sum()
	if len(tails) > 0 {
		loss = loss.Sub(rowDots(z.GatherRows(tails), z.GatherRows(heads)).Dot(z.Tape().Matrix(
			len(weights), 1, weights,
		)))
	}
	return loss.Scale(1 / float64(len(terms)))
}

// never is a logit whose softplus is 0 in either precision.
const never = -1e4

// Parameters returns the encoder's and the head's.
func (m *Autoencoder) Parameters() []*autodiff.Param {
	return parameters(m.NodeEncoder, m.Head)
}
