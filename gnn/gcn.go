package gnn

import (
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
)

// GCNConv is the graph convolution of Kipf and Welling (2017):
//
//	y = Â·(x·W) + b,  Â = D^-½·(A+I)·D^-½,
//
// with Â from [Batch.Normalized], which all layers share. Its D counts the edges that leave a node;
// gcn_norm of PyTorch Geometric counts those that arrive. The two differ for directed graphs only.
type GCNConv struct{ Linear *nn.Linear }

// NewGCNConv returns a layer in → out with Xavier-uniform weights and zero
// biases.
func NewGCNConv(be backend.Backend, name string, in, out int, rng *rand.Rand) *GCNConv {
	return &GCNConv{nn.NewLinear(be, name, in, out, nn.XavierUniform, rng)}
}

// Forward returns y [N×out] for x [N×in].
func (c *GCNConv) Forward(b *Batch, x *autodiff.Var) *autodiff.Var {
	return x.MatMul(b.tape.Param(c.Linear.W)).SpMM(b.Normalized(), 0).AddRow(b.tape.Param(c.Linear.B))
}

// Parameters returns W and b.
func (c *GCNConv) Parameters() []*autodiff.Param { return c.Linear.Parameters() }

// Buffers returns none.
func (c *GCNConv) Buffers() []*nn.Buffer { return nil }
