package method

import (
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// edgePred is edge prediction as in Hu et al., after GraphSAGE.
var edgePred = &Method{
	Name:    "edgepred",
	Title:   "EdgePred",
	Regimes: []Regime{Transfer},
	Recipe:  map[Regime]Recipe{Transfer: {Epochs: 100}},
	new: func(s Setup) (*Learner, error) {
		return newPretext(s, func(_ Setup, e gnn.Encoder, _ *rand.Rand) (Task, error) {
			return NewEdgePrediction(e), nil
		})
	},
}

// EdgePrediction asks whether two nodes of a graph have an edge, by the dot product
// of their embeddings as logit. The loss is the mean binary cross-entropy over the
// edges plus that over pairs of nodes without an edge. Each edge counts in one
// direction; in every graph as many pairs without an edge are drawn as it has edges,
// or as many as 10 draws per edge find.
type EdgePrediction struct{ gnn.NodeEncoder }

// NewEdgePrediction returns the task for an encoder.
func NewEdgePrediction(e gnn.NodeEncoder) *EdgePrediction { return &EdgePrediction{e} }

// Loss implements [Task].
func (p *EdgePrediction) Loss(b *graph.Batch, t *autodiff.Tape, rng *rand.Rand) *autodiff.Var {
	var tails, heads, noFrom, noTo []int32
	for g := range b.Graphs() {
		lo, hi := b.GraphPtr[g], b.GraphPtr[g+1]
		edges := len(tails)
		for i := lo; i < hi; i++ {
			for _, j := range b.Adj[b.Ptr[i]:b.Ptr[i+1]] {
				if j < i {
					tails, heads = append(tails, j), append(heads, i)
				}
			}
		}
		edges = len(tails) - edges
		if edges == 0 {
			continue
		}
		drawn := map[[2]int32]bool{}
		for range 10 * edges {
			i, j := lo+rng.Int32N(hi-lo), lo+rng.Int32N(hi-lo)
			if i == j || drawn[[2]int32{min(i, j), max(i, j)}] || hasEdge(b, i, j) || hasEdge(b, j, i) {
				continue
			}
			drawn[[2]int32{min(i, j), max(i, j)}] = true
			noFrom = append(noFrom, i)
			noTo = append(noTo, j)
			if len(drawn) == edges {
				break
			}
		}
	}
	if len(tails) == 0 {
		return nil
	}
	h := p.Nodes(gnn.NewBatch(t, b), nn.Train)
	loss := isTrue(rowDots(h.GatherRows(tails), h.GatherRows(heads)))
	if len(noFrom) > 0 {
		loss = loss.Add(isFalse(rowDots(h.GatherRows(noFrom), h.GatherRows(noTo))))
	}
	return loss
}

func hasEdge(b *graph.Batch, i, j int32) bool {
	for _, k := range b.Adj[b.Ptr[i]:b.Ptr[i+1]] {
		if k == j {
			return true
		}
	}
	return false
}
