package model

import (
	"context"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Contributions say what the nodes of a graph contribute to the predictions of models. All values are
// scores: numbers in the unit of the targets, log-odds of binary tasks, or logarithms of the probabilities
// of classes. For each output,
//
//	Prediction = Mean + Σ Nodes + Rest
type Contributions struct {
	Prediction []float64 // [Outputs]
	// Mean is the prediction that ignores the graph; nil for models of earlier versions. See [Head.Ignorant].
	Mean []float64
	// Nodes has by how much the prediction falls when a node is removed, [nodes×Outputs], or whatever else
	// the removals are of. A positive value says that the node raises the prediction.
	Nodes []float64
	// Rest is what the nodes do not explain one by one: what the graph without any node would differ from
	// the mean, and what nodes do together, such as two that can stand in for each other. Nil without Mean.
	Rest []float64
}

// Removal is a graph before and after a node is removed. Before is nil for the whole graph.
type Removal struct{ Before, After *graph.Graph }

// Explain explains the mean prediction of models that predict the same things, by occlusion: a node, or a group of
// nodes, contributes the mean of the drops of its removals, 0 without one. They are those of [WithoutNodes] or, for
// molecules, molecules without the atom, with their own features (Sheridan, J. Chem. Inf. Model. 59 (2019)
// 1324).
//
// Integrated gradients, which Sanchez-Lengeling et al. (NeurIPS 2020) prefer for networks of graphs, need a
// graph without information to integrate from, and one-hot features of atoms have none. Occlusion asks the
// models about graphs only, and suits any encoder and features.
func Explain(
	ctx context.Context, models []*Trained, whole *graph.Graph, removals [][]Removal,
) (c Contributions, err error) {
	graphs := []*graph.Graph{whole}
	for _, r := range slices.Concat(removals...) {
		if r.Before != nil {
			graphs = append(graphs, r.Before)
		}
		graphs = append(graphs, r.After)
	}
	scores, err := MeanScores(ctx, models, graphs)
	if err != nil {
		return c, err
	}
	h := *models[0].Card.Head
	next := func() []float64 { // the scores of the next graph
		row := scores[:h.Outputs:h.Outputs]
		scores = scores[h.Outputs:]
		return row
	}
	c.Prediction = next()
	c.Nodes = make([]float64, len(removals)*h.Outputs)
	for v, ofNode := range removals {
		row := c.Nodes[v*h.Outputs : (v+1)*h.Outputs]
		for _, r := range ofNode {
			before := c.Prediction
			if r.Before != nil {
				before = next()
			}
			for k, after := range next() {
				row[k] += (before[k] - after) / float64(len(ofNode))
			}
		}
	}
	c.Mean = meanIgnorant(models)
	if c.Mean == nil {
		return c, nil
	}
	c.Rest = make([]float64, h.Outputs)
	floats.SubTo(c.Rest, c.Prediction, c.Mean)
	for i, v := range c.Nodes {
		c.Rest[i%h.Outputs] -= v
	}
	return c, nil
}

// MeanScores returns the scores of the mean prediction of some models, [n×Outputs]; see [Contributions].
func MeanScores(ctx context.Context, models []*Trained, graphs []*graph.Graph) (scores []float64, err error) {
	defer backend.Recover(&err)
	var members [][]float64
	for _, m := range models {
		if m.Head == nil {
			return nil, errors.New("specmatch: the model is an encoder without a head: it predicts nothing to explain")
		}
		embeddings, err := m.Embed(ctx, graphs)
		if err != nil {
			return nil, err
		}
		scores, err := m.scores(embeddings, graphs)
		if err != nil {
			return nil, err
		}
		members = append(members, scores)
	}
	return models[0].Card.Head.meanScores(members), nil
}

// meanScores returns the scores of the mean of predictions, from the scores of each.
func (h Head) meanScores(members [][]float64) []float64 {
	if len(members) == 1 {
		return members[0]
	}
	scores := make([]float64, len(members[0]))
	terms := make([]float64, len(members))
	logMean := func(logarithm func(scores []float64) float64) float64 {
		for k, scores := range members {
			terms[k] = logarithm(scores)
		}
		return floats.LogSumExp(terms) - math.Log(float64(len(members)))
	}
	for i := range scores {
		switch h.Kind {
		case Regression:
			for _, values := range members {
				scores[i] += values[i] / float64(len(members))
			}
		case Binary:
			logYes := logMean(func(s []float64) float64 { return logSigmoid(s[i]) })
			logNo := logMean(func(s []float64) float64 { return logSigmoid(-s[i]) })
			scores[i] = logYes - logNo
		default:
			scores[i] = logMean(func(s []float64) float64 { return s[i] })
		}
	}
	return scores
}

// Ignorant returns the scores [Outputs] of the prediction that ignores the graph: the mean of the training
// set on the scale of the target, or the frequencies of its answers. It is nil for a head of earlier versions.
func (h Head) Ignorant() []float64 {
	const least = 1e-6 // of the probabilities
	if h.Kind == Regression {
		if len(h.Mean) == 0 {
			return nil
		}
		return h.InUnits(make([]float64, h.Outputs))
	}
	var scores []float64
	for _, p := range h.Prior {
		p = max(least, min(1-least, p))
		if h.Kind == Binary {
			scores = append(scores, math.Log(p)-math.Log1p(-p))
		} else {
			scores = append(scores, math.Log(p))
		}
	}
	return scores
}

// meanIgnorant returns the scores of the mean of [Head.Ignorant] over some models; nil if one lacks it.
func meanIgnorant(models []*Trained) []float64 {
	var members [][]float64
	for _, m := range models {
		scores := m.Card.Head.Ignorant()
		if scores == nil {
			return nil
		}
		members = append(members, scores)
	}
	return models[0].Card.Head.meanScores(members)
}

// Explain explains the predictions for a graph by [WithoutNodes].
func (m *Trained) Explain(ctx context.Context, g *graph.Graph) (Contributions, error) {
	return Explain(ctx, []*Trained{m}, g, WithoutNodes(g))
}

// WithoutNodes returns the removals of each node from a graph: one, or none from a graph of one node. Other nodes
// keep their features, and the graph its global numbers.
func WithoutNodes(g *graph.Graph) [][]Removal {
	removals := make([][]Removal, g.Nodes())
	if len(removals) < 2 {
		return removals
	}
	for v := range removals {
		removals[v] = []Removal{{After: withoutNode(g, int32(v))}}
	}
	return removals
}

// withoutNode returns the graph without node v and its edges.
func withoutNode(g *graph.Graph, v int32) *graph.Graph {
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
