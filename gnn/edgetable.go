package gnn

import (
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
)

// EdgeInput says what the layers of a [GIN] read of edges: labels from 0 to Labels-1 or, with Weights, a
// weight ([graph.WeightLabel]). The zero value is nothing.
type EdgeInput struct {
	Labels  int
	Weights bool
}

// counts returns what the rows of an [EdgeTable] are multiplied with.
func (e EdgeInput) counts() EdgeLabels {
	switch {
	case e.Weights:
		return WeightLabels()
	case e.Labels > 0:
		return ColumnLabels(graph.EdgeColumns{Widths: []int{e.Labels}})
	}
	return EdgeLabels{}
}

// ReadEdges gives every layer a new table of what it reads of edges.
func (g *GIN) ReadEdges(be backend.Backend, e EdgeInput, rng *rand.Rand) {
	counts := e.counts()
	for l, conv := range g.Convs {
		name := fmt.Sprintf("encoder.convs.%d.edge_embedding", l)
		width := conv.MLP.Layers[0].W.Value.Rows
		conv.Edges = &EdgeTable{nn.NewEmbedding(be, name, counts.width, width, rng), e}
	}
}

// edges returns what the layers read of edges.
func (g *GIN) edges() EdgeInput {
	if e := g.Convs[0].Edges; e != nil {
		return e.Input
	}
	return EdgeInput{}
}

// EdgeTable is what a [GINConv] adds to the message of an edge, as a [GINEConv] does: the row that the label
// of the edge chooses or, for weights, the only row times the weight. Nil adds nothing.
type EdgeTable struct {
	Rows  *nn.Embedding // [labels×in]
	Input EdgeInput
}

// Forward returns sums [N×in] with the rows of the edges that end in each node.
func (e *EdgeTable) Forward(b *Batch, sums *autodiff.Var) *autodiff.Var {
	if e == nil {
		return sums
	}
	return sums.Add(b.EdgeCounts(e.Input.counts()).MatMul(b.tape.Param(e.Rows.Table)))
}

// Parameters returns the table.
func (e *EdgeTable) Parameters() []*autodiff.Param {
	if e == nil {
		return nil
	}
	return e.Rows.Parameters()
}
