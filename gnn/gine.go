package gnn

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
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
	if fuser := x.Tape().Fused().Messages; fuser != nil {
		return messagesFused(fuser, x, a, self, counts, c.tables(x.Tape()))
	}
	return x.SpMM(a, self).Add(c.edges(counts))
}

// edges returns the sums of the embeddings of edges of whose categories row i has counts_i.
func (c *GINEConv) edges(counts *autodiff.Var) *autodiff.Var {
	return counts.MatMul(autodiff.ConcatRows(c.tables(counts.Tape())...))
}

func (c *GINEConv) tables(t *autodiff.Tape) (tables []*autodiff.Var) {
	for _, e := range c.Tables {
		tables = append(tables, t.Param(e.Table))
	}
	return tables
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

// ChemGINConfig describes a [ChemGIN].
type ChemGINConfig struct {
	Hidden  int     // width of every layer; 300 in the literature
	Layers  int     // 5 in the literature
	Dropout float64 // probability; 0 while pre-training and 0.5 while fine-tuning
	Sum     bool    // the readout is a sum over the nodes, for what grows with a molecule
	Atoms   string  // the name of the categories of atoms and bonds, see [feature.ByName]
	// Readout replaces the mean; Sum must then be false.
	Readout Readout
}

// SumUnit divides the sum of a [ChemGIN] with Sum: about the atoms of a molecule, so
// that sums are about as large as means, and a head on them starts and learns alike.
const SumUnit = 20

// ChemGIN is the encoder of molecules of Hu et al. (2020), which GraphCL and
// SpecMatch-CL use for transfer learning, on any categories of molecules:
//
//	x ← Σ_k E_k[category k of the atom]                        [N×Hidden]
//	x ← Dropout(ReLU(BatchNorm(GINEConv(x))))                  Layers times, the last without ReLU
//	h ← the mean of x over the nodes of a graph                [B×Hidden]
//
// with an MLP of hidden width 2·Hidden in every GINEConv; with Sum, h is the sum of x
// divided by [SumUnit]. Features must be categories as [feature.Set] describes them; those
// of Hu et al. are the default.
//
// Up to the first dropout the rows of x are nodes, or stand for several equal ones: see equal.go.
type ChemGIN struct {
	Config  ChemGINConfig
	Columns *feature.Set
	Atoms   []*nn.Embedding // a table for each column of atoms
	Convs   []*GINEConv
	Norms   []*nn.BatchNorm
	Drops   []*nn.Dropout

	// tables chooses the rows of the tables for every category of nodes, unless those are too
	// many.
	tables *autodiff.Sparse
}

// maxTable is how many categories of nodes have their sum of rows computed in advance; of
// more of them, only those in a batch.
const maxTable = 1 << 12

// NewChemGIN returns an encoder with Xavier-uniform tables and PyTorch's default
// linear layers. It panics unless all sizes are positive, 0 ≤ Dropout < 1, and there are such
// features.
func NewChemGIN(be backend.Backend, c ChemGINConfig, rng *rand.Rand) *ChemGIN {
	if c.Hidden < 1 || c.Layers < 1 {
		panic(fmt.Sprintf("gnn: NewChemGIN: want positive sizes, have %+v", c))
	}
	f, err := feature.ByName(c.Atoms)
	if err != nil {
		panic(err)
	}
	g := &ChemGIN{Config: c, Columns: f}
	for k, a := range f.Atoms {
		g.Atoms = append(g.Atoms, nn.NewEmbedding(be, fmt.Sprintf("encoder.x_embedding%d", k+1), a.Size, c.Hidden, rng))
	}
	for l := range c.Layers {
		g.Convs = append(g.Convs, NewGINEConv(be, fmt.Sprintf("encoder.gnns.%d", l), c.Hidden, 2*c.Hidden, c.Hidden, f.EdgeColumns(), rng))
		g.Norms = append(g.Norms, nn.NewBatchNorm(be, fmt.Sprintf("encoder.batch_norms.%d", l), c.Hidden))
		g.Drops = append(g.Drops, nn.NewDropout(be, c.Dropout, rng.Uint64()))
	}
	if n := f.NodeWidth(); n <= maxTable {
		every := make([]int32, n)
		for k := range every {
			every[k] = int32(k)
		}
		g.tables = g.rowsFor(every, be.Indices)
	}
	return g
}

// rowsFor returns the matrix that has in the row of a category a one for each column of atoms,
// in the place of its row in the tables under one another.
func (g *ChemGIN) rowsFor(categories []int32, indices func([]int32) *backend.Indices) *autodiff.Sparse {
	n, rows := len(g.Columns.Atoms), 0
	ptr, col := []int32{0}, make([]int32, n*len(categories))
	for _, a := range g.Columns.Atoms {
		rows += a.Size
	}
	for i, c := range categories {
		end := rows
		for k := n - 1; k >= 0; k-- {
			w := int32(g.Columns.Atoms[k].Size)
			end -= int(w)
			col[i*n+k], c = int32(end)+c%w, c/w
		}
		ptr = append(ptr, int32((i+1)*n))
	}
	ptrT, colT := backend.Members(nil, nil, col, rows)
	for k := range colT { // from entries to rows
		colT[k] /= int32(n)
	}
	return &autodiff.Sparse{
		A: &backend.CSR{Rows: len(categories), Cols: rows, Ptr: indices(ptr), Col: indices(col)},
		T: &backend.CSR{Rows: rows, Cols: len(categories), Ptr: indices(ptrT), Col: indices(colT)},
	}
}

// embed returns the rows of the nodes before the first layer.
func (g *ChemGIN) embed(r *rows) *autodiff.Var {
	if g.tables != nil {
		return r.choose(g.sums(r.b.tape, g.tables))
	}
	category := r.categories()
	different := slices.Compact(slices.Sorted(slices.Values(category)))
	at := make([]int32, len(category))
	for i, c := range category {
		k, _ := slices.BinarySearch(different, c)
		at[i] = int32(k)
	}
	return g.sums(r.b.tape, g.rowsFor(different, r.b.tape.Indices)).GatherRows(at)
}

// sums returns the sums of the tables' rows that a matrix of rowsFor chooses.
func (g *ChemGIN) sums(t *autodiff.Tape, rows *autodiff.Sparse) *autodiff.Var {
	var tables []*autodiff.Var
	for _, e := range g.Atoms {
		tables = append(tables, t.Param(e.Table))
	}
	return autodiff.ConcatRows(tables...).SpMM(rows, 0)
}

// Reads implements [Encoder]: a ChemGIN needs the counts of the bonds' labels.
func (g *ChemGIN) Reads() Reads {
	return g.Config.Readout.reads(Reads{Edges: ColumnLabels(g.Columns.EdgeColumns()), Host: g.tables == nil})
}

// Width returns the width of the embedding, without a Readout Hidden.
func (g *ChemGIN) Width() int { return widthOf(g) }

// Forward returns the embeddings [B×Width] of the graphs of a batch. It panics unless
// the features are the categories that ChemGIN describes.
func (g *ChemGIN) Forward(b *Batch, mode nn.Mode) *autodiff.Var {
	var layers []pooled
	for _, x := range g.layers(b, mode, g.reads()) {
		layers = append(layers, poolOf(b, x))
	}
	return g.read(layers)
}

// reads returns the numbers, from 1, of the layers that are read out.
func (g *ChemGIN) reads() []int {
	if r := g.Config.Readout; r != "" {
		return r.layers(len(g.Convs))
	}
	return []int{len(g.Convs)}
}

// read returns the embeddings of graphs by their nodes after the layers of reads.
func (g *ChemGIN) read(layers []pooled) *autodiff.Var {
	switch r := g.Config.Readout; {
	case r != "":
		return r.concat(len(g.Convs), layers, 1./SumUnit)
	case g.Config.Sum:
		return layers[0](readSum).Scale(1. / SumUnit)
	}
	return layers[0](readMean)
}

// Nodes returns the features [N×Hidden] of the nodes after the last layer.
func (g *ChemGIN) Nodes(b *Batch, mode nn.Mode) *autodiff.Var {
	return g.layers(b, mode, []int{len(g.Convs)})[0]
}

// layers returns the features [N×Hidden] of the nodes after the wanted layers, by their
// numbers from 1.
func (g *ChemGIN) layers(b *Batch, mode nn.Mode, want []int) (xs []*autodiff.Var) {
	b.wantCategories("ChemGIN", g.Columns.NodeWidth())
	layers := len(g.Convs)
	if mode == nn.Train && g.Config.Dropout > 0 {
		layers = 1 // after its dropout, nodes differ
	}
	r := b.rowsOf(graph.Labelled, layers)
	if r.color != nil { // before the first layer, nothing is computed
		r = r.next
	}
	x := g.embed(r)
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
	a, self := r.sum()
	x = g.Convs[l].messages(x, a, self, r.edgeCounts(ColumnLabels(g.Convs[l].Columns)))
	return g.finish(l, x, r.norm(), r.b.ViewNodes, mode)
}

// finish returns the result of layer l for its messages x.
func (g *ChemGIN) finish(l int, x *autodiff.Var, n autodiff.Norm, views *backend.Indices, mode nn.Mode) *autodiff.Var {
	t, first, second := x.Tape(), g.Convs[l].MLP.Layers[0], g.Convs[l].MLP.Layers[1]
	n.Bias, n.ReLU = t.Param(second.B), l < len(g.Convs)-1
	return g.Norms[l].ForwardNorm(first.ForwardReLU(x).MatMul(t.Param(second.W)), n, views, mode)
}

// wantCategories panics unless the features are categories of that number.
func (b *Batch) wantCategories(encoder string, n int) {
	if x := &b.Host.X; x.Width != n || !x.OneHot() {
		panic(fmt.Sprintf("gnn: %s: want %d categories of nodes; the features have width %d (one-hot: %v)", encoder, n, x.Width, x.OneHot()))
	}
}

func (g *ChemGIN) modules() []nn.Module {
	var ms []nn.Module
	for _, t := range g.Atoms {
		ms = append(ms, t)
	}
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
