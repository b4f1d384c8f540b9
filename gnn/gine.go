package gnn

import (
	"fmt"
	"math/rand/v2"
	"slices"

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
	// Tables has one table [width×in] for each column.
	Tables []*nn.Embedding
}

// NewGINEConv returns a layer in → hidden → out with PyTorch's default linear
// layers and Xavier-uniform tables.
func NewGINEConv(be backend.Backend, name string, in, hidden, out int, columns graph.EdgeColumns, rng *rand.Rand) *GINEConv {
	c := &GINEConv{MLP: defaultMLP(be, name+".mlp", []int{in, hidden, out}, rng), Columns: columns}
	for k, w := range columns.Widths {
		c.Tables = append(c.Tables, nn.NewEmbedding(be, fmt.Sprintf("%s.edge_embedding%d", name, k+1), w, in, rng))
	}
	return c
}

// defaultMLP returns an MLP that is initialised as PyTorch does it by default.
func defaultMLP(be backend.Backend, name string, widths []int, rng *rand.Rand) *nn.MLP {
	m := nn.NewMLP(be, name, widths, nn.KaimingUniform, rng)
	for _, l := range m.Layers {
		l.ResetBias(be, rng)
	}
	return m
}

// Forward returns y [N×out] for x [N×in].
func (c *GINEConv) Forward(b *Batch, x *autodiff.Var) *autodiff.Var {
	return c.MLP.Forward(c.messages(x, b.Adj, 1, b.EdgeCounts(ColumnLabels(c.Columns))))
}

// messages returns A·x + self·x and the embeddings of edges, of whose categories row i has
// counts_i [R×width]; counts is constant.
func (c *GINEConv) messages(x *autodiff.Var, a *autodiff.Sparse, self float64, counts *autodiff.Var) *autodiff.Var {
	t := x.Tape()
	tables := make([]*autodiff.Var, len(c.Tables))
	for k, e := range c.Tables {
		tables[k] = t.Param(e.Table)
	}
	if fuser := t.Fused().Messages; fuser != nil {
		return messagesFused(fuser, x, a, self, counts, tables)
	}
	return x.SpMM(a, self).Add(counts.MatMul(autodiff.ConcatRows(tables...)))
}

// Parameters returns those of the MLP and the tables.
func (c *GINEConv) Parameters() []*autodiff.Param {
	ps := c.MLP.Parameters()
	for _, t := range c.Tables {
		ps = append(ps, t.Parameters()...)
	}
	return ps
}

// Buffers returns none.
func (c *GINEConv) Buffers() []*nn.Buffer { return nil }

// BondColumns are the columns of a bond's label.
func BondColumns() graph.EdgeColumns {
	return graph.EdgeColumns{Widths: []int{graph.BondTypes, graph.BondDirections}, SelfLoop: []int{4, 0}}
}

// ChemGINConfig describes a [ChemGIN].
type ChemGINConfig struct {
	Hidden  int     // width of every layer; 300 in the literature
	Layers  int     // 5 in the literature
	Dropout float64 // probability; 0 while pre-training and 0.5 while fine-tuning
	Sum     bool    // the readout is a sum over the nodes, for what grows with a molecule
	// Readout replaces the mean; Sum must then be false.
	Readout Readout
}

// SumUnit divides the sum of a [ChemGIN] with Sum: about the atoms of a molecule, so
// that sums are about as large as means, and a head on them starts and learns alike.
const SumUnit = 20

// ChemGIN is the encoder of molecules of Hu et al. (2020), which GraphCL and
// SpecMatch-CL use for transfer learning:
//
//	x ← E_atom[atom] + E_chirality[tag]                        [N×Hidden]
//	x ← Dropout(ReLU(BatchNorm(GINEConv(x))))                  Layers times, the last without ReLU
//	h ← the mean of x over the nodes of a graph                [B×Hidden]
//
// with an MLP of hidden width 2·Hidden in every GINEConv; with Sum, h is the sum of x
// divided by [SumUnit]. Features must be
// categories of width [graph.AtomTypes]·[graph.ChiralityTags], as package molecule
// makes them.
//
// Up to the first dropout the rows of x are nodes, or stand for several equal ones: see equal.go.
type ChemGIN struct {
	Config          ChemGINConfig
	Atom, Chirality *nn.Embedding
	Convs           []*GINEConv
	Norms           []*nn.BatchNorm
	Drops           []*nn.Dropout

	// categories has two ones in the row of every category of nodes: in the column of
	// its atom, and in that of its chirality tag, which come after all atoms.
	categories *autodiff.Sparse
}

// NewChemGIN returns an encoder with Xavier-uniform tables and PyTorch's default
// linear layers. It panics unless all sizes are positive and 0 ≤ Dropout < 1.
func NewChemGIN(be backend.Backend, c ChemGINConfig, rng *rand.Rand) *ChemGIN {
	if c.Hidden < 1 || c.Layers < 1 {
		panic(fmt.Sprintf("gnn: NewChemGIN: want positive sizes, have %+v", c))
	}
	g := &ChemGIN{
		Config:    c,
		Atom:      nn.NewEmbedding(be, "encoder.x_embedding1", graph.AtomTypes, c.Hidden, rng),
		Chirality: nn.NewEmbedding(be, "encoder.x_embedding2", graph.ChiralityTags, c.Hidden, rng),
	}
	for l := range c.Layers {
		g.Convs = append(g.Convs, NewGINEConv(be, fmt.Sprintf("encoder.gnns.%d", l), c.Hidden, 2*c.Hidden, c.Hidden, BondColumns(), rng))
		g.Norms = append(g.Norms, nn.NewBatchNorm(be, fmt.Sprintf("encoder.batch_norms.%d", l), c.Hidden))
		g.Drops = append(g.Drops, nn.NewDropout(be, c.Dropout, rng.Uint64()))
	}
	const categories, columns = graph.AtomTypes * graph.ChiralityTags, graph.AtomTypes + graph.ChiralityTags
	ptr, col := []int32{0}, []int32(nil)
	for k := range int32(categories) {
		col = append(col, k/graph.ChiralityTags, graph.AtomTypes+k%graph.ChiralityTags)
		ptr = append(ptr, int32(len(col)))
	}
	ptrT, colT := backend.Members(nil, nil, col, columns)
	for k := range colT { // from entries, of which a row has two, to rows
		colT[k] /= 2
	}
	g.categories = &autodiff.Sparse{
		A: &backend.CSR{Rows: categories, Cols: columns, Ptr: be.Indices(ptr), Col: be.Indices(col)},
		T: &backend.CSR{Rows: columns, Cols: categories, Ptr: be.Indices(ptrT), Col: be.Indices(colT)},
	}
	return g
}

// Reads implements [Encoder]: a ChemGIN needs the counts of the bonds' labels.
func (g *ChemGIN) Reads() Reads {
	return g.Config.Readout.reads(Reads{Edges: ColumnLabels(BondColumns())})
}

// Width returns the width of the embedding, without a Readout Hidden.
func (g *ChemGIN) Width() int { return widthOf(g) }

// Forward returns the embeddings [B×Width] of the graphs of a batch. It panics unless
// the features are the categories that ChemGIN describes.
func (g *ChemGIN) Forward(b *Batch, mode nn.Mode) *autodiff.Var {
	switch r := g.Config.Readout; {
	case r != "":
		return r.pool(b, len(g.Convs), g.layers(b, mode, r.layers(len(g.Convs))), 1./SumUnit)
	case g.Config.Sum:
		return GlobalAddPool(g.Nodes(b, mode), b).Scale(1. / SumUnit)
	}
	return GlobalMeanPool(g.Nodes(b, mode), b)
}

// Nodes returns the features [N×Hidden] of the nodes after the last layer.
func (g *ChemGIN) Nodes(b *Batch, mode nn.Mode) *autodiff.Var {
	return g.layers(b, mode, []int{len(g.Convs)})[0]
}

// layers returns the features [N×Hidden] of the nodes after the wanted layers, by their
// numbers from 1.
func (g *ChemGIN) layers(b *Batch, mode nn.Mode, want []int) (xs []*autodiff.Var) {
	b.wantCategories("ChemGIN", g.categories.A.Rows)
	table := autodiff.ConcatRows(b.tape.Param(g.Atom.Table), b.tape.Param(g.Chirality.Table)).SpMM(g.categories, 0)
	layers := len(g.Convs)
	if mode == nn.Train && g.Config.Dropout > 0 {
		layers = 1 // after its dropout, nodes differ
	}
	r := b.rowsOf(graph.Labelled, layers)
	if r.color != nil { // before the first layer, nothing is computed
		r = r.next
	}
	x := r.choose(table)
	for l := range g.Convs {
		r, x = r.next.settle(g.layer(l, r.next, x, mode))
		x = g.Drops[l].Forward(x, mode)
		if slices.Contains(want, l+1) {
			xs = append(xs, r.nodes(x))
		}
	}
	return xs
}

// layer returns the rows r of the result of layer l, before dropout; x are the rows before.
func (g *ChemGIN) layer(l int, r *rows, x *autodiff.Var, mode nn.Mode) *autodiff.Var {
	t, conv := x.Tape(), g.Convs[l]
	first, second := conv.MLP.Layers[0], conv.MLP.Layers[1]
	a, self := r.sum()
	x = first.ForwardReLU(conv.messages(x, a, self, r.edgeCounts(ColumnLabels(conv.Columns))))
	n := r.norm()
	n.Bias, n.ReLU = t.Param(second.B), l < len(g.Convs)-1
	return g.Norms[l].ForwardNorm(x.MatMul(t.Param(second.W)), n, r.b.ViewPtr, mode)
}

// wantCategories panics unless the features are categories of that number.
func (b *Batch) wantCategories(encoder string, n int) {
	if x := &b.Host.X; x.Width != n || !x.OneHot() {
		panic(fmt.Sprintf("gnn: %s: want %d categories of nodes; the features have width %d (one-hot: %v)", encoder, n, x.Width, x.OneHot()))
	}
}

func (g *ChemGIN) modules() []nn.Module {
	ms := []nn.Module{g.Atom, g.Chirality}
	for l := range g.Convs {
		ms = append(ms, g.Convs[l], g.Norms[l])
	}
	return ms
}

// Parameters returns the parameters of all layers, from the tables to the last norm.
func (g *ChemGIN) Parameters() []*autodiff.Param { return parameters(g.modules()) }

// DropoutState returns what training changes besides parameters and buffers, for
// checkpoints; see [nn.Dropout.State].
func (g *ChemGIN) DropoutState() []*nn.Buffer { return dropoutState(g.Drops) }

func dropoutState(drops []*nn.Dropout) []*nn.Buffer {
	var state []*nn.Buffer
	for l, d := range drops {
		state = append(state, d.State(fmt.Sprintf("encoder.dropouts.%d", l)))
	}
	return state
}

// Buffers returns the running statistics, layer by layer.
func (g *ChemGIN) Buffers() []*nn.Buffer { return buffers(g.modules()) }
