package gnn

import (
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
)

// GINEConv is the GIN layer with edge embeddings of Hu et al. (2020):
//
//	y_i = MLP(x_i + e_loop + Σ_{j→i} (x_j + e_ji)),
//
// where e_ji is the sum of one row of each table, chosen by the columns of the
// edge's label, and e_loop is the same for a self-loop. There is no ReLU in the
// message, so the sum of the e_ji is the matrix of [graph.Batch.EdgeCounts] times
// the tables: no matrix has a row for each edge.
type GINEConv struct {
	MLP     *nn.MLP
	Columns graph.EdgeColumns
	// Tables holds a table [width×in] for each column.
	Tables []*nn.Embedding
}

// NewGINEConv returns a layer in → hidden → out with PyTorch's default linear
// layers and Xavier-uniform tables.
func NewGINEConv(
	be backend.Backend, name string, in, hidden, out int, columns graph.EdgeColumns, rng *rand.Rand,
) *GINEConv {
	c := &GINEConv{MLP: defaultMLP(be, name+".mlp", []int{in, hidden, out}, rng), Columns: columns}
	for k, w := range columns.Widths {
		c.Tables = append(c.Tables, nn.NewEmbedding(
			be, fmt.Sprintf("%s.edge_embedding%d", name, k+1), w, in, rng,
		))
	}
	return c
}

// defaultMLP returns an MLP with PyTorch's default initialisation.
func defaultMLP(be backend.Backend, name string, widths []int, rng *rand.Rand) *nn.MLP {
	m := nn.NewMLP(be, name, widths, nn.KaimingUniform, rng)
	for _, l := range m.Layers {
		l.ResetBias(be, rng)
	}
	return m
}

// Forward returns y [N×out] for x [N×in].
func (c *GINEConv) Forward(b *Batch, x *autodiff.Var) *autodiff.Var {
	var tables []*autodiff.Var
	for _, e := range c.Tables {
		tables = append(tables, b.tape.Param(e.Table))
	}
	edges := b.EdgeCounts(ColumnLabels(c.Columns)).MatMul(autodiff.ConcatRows(tables...))
	return c.MLP.Forward(x.SpMM(b.Adj, 1).Add(edges))
}

// Parameters returns the parameters of the MLP, then the tables.
func (c *GINEConv) Parameters() []*autodiff.Param {
	ps := c.MLP.Parameters()
	for _, t := range c.Tables {
		ps = append(ps, t.Parameters()...)
	}
	return ps
}

// Buffers returns none.
func (c *GINEConv) Buffers() []*nn.Buffer { return nil }
