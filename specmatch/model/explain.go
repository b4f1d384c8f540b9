package model

import (
	"context"
	"errors"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Explain returns the contribution of each node of a graph to the predictions, row-major
// [nodes×Outputs]: by how much they fall when the node is removed with its edges (occlusion; for
// molecules Sheridan, J. Chem. Inf. Model. 59 (2019) 1324). They are numbers in the unit of the
// targets, log-odds, or logarithms of the probabilities of classes. A positive value says that the
// node raises the prediction. The only node of a graph contributes 0.
//
// Integrated gradients, which Sanchez-Lengeling et al. (NeurIPS 2020) prefer for networks of
// graphs, need a graph without information to integrate from, and one-hot features of atoms have
// none. Occlusion asks the model about graphs only, and suits any encoder. The global numbers of a
// graph stay as they are, and so does the linear model of [Beside]. Neither method sees two nodes
// that can stand in for each other.
func (m *Trained) Explain(ctx context.Context, g *graph.Graph) (values []float64, err error) {
	defer backend.Recover(&err)
	if m.Head == nil {
		return nil, errors.New("specmatch: the model is an encoder without a head: it predicts nothing to explain")
	}
	h := *m.Card.Head
	n := g.Nodes()
	if n < 2 {
		return make([]float64, n*h.Outputs), nil
	}
	graphs := []*graph.Graph{g}
	for v := range n {
		graphs = append(graphs, without(g, int32(v)))
	}
	embeddings, err := m.Embed(ctx, graphs)
	if err != nil {
		return nil, err
	}
	scores, err := m.scores(embeddings, graphs)
	if err != nil {
		return nil, err
	}
	whole := scores[:h.Outputs]
	values = scores[h.Outputs:]
	for i := range values {
		values[i] = whole[i%h.Outputs] - values[i]
	}
	return values, nil
}

// without returns the graph without node v and its edges.
func without(g *graph.Graph, v int32) *graph.Graph {
	out := &graph.Graph{
		Ptr:      []int32{0},
		Directed: g.Directed,
		Globals:  g.Globals,
		X:        graph.Features{Width: g.X.Width},
		Class:    g.Class,
	}
	for i := range int32(g.Nodes()) {
		if i == v {
			continue
		}
		for k := g.Ptr[i]; k < g.Ptr[i+1]; k++ {
			j := g.Adj[k]
			if j == v {
				continue
			}
			if j > v {
				j--
			}
			out.Adj = append(out.Adj, j)
			if g.EdgeLabel != nil {
				out.EdgeLabel = append(out.EdgeLabel, g.EdgeLabel[k])
			}
		}
		out.Ptr = append(out.Ptr, int32(len(out.Adj)))
		if g.X.Category != nil {
			out.X.Category = append(out.X.Category, g.X.Category[i])
		} else {
			out.X.Dense = append(out.X.Dense, g.X.Dense[int(i)*g.X.Width:int(i+1)*g.X.Width]...)
		}
	}
	if g.EdgeLabel != nil && out.EdgeLabel == nil {
		out.EdgeLabel = []int32{}
	}
	return out
}
