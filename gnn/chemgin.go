package gnn

import (
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/internal/plan"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// ChemGINConfig describes a [ChemGIN].
type ChemGINConfig struct {
	Hidden  int     // width of every layer; 300 in the literature
	Layers  int     // 5 in the literature
	Dropout float64 // probability; 0 while pre-training and 0.5 while fine-tuning
	Sum     bool    // read out the sum over the nodes, for targets that grow with the molecule
	Atoms   string  // the name of the categories of atoms and bonds, see [feature.ByName]
	// Readout replaces the mean; Sum must then be false.
	Readout Readout
}

// SumUnit divides the sums of a [ChemGIN]. It is about the number of atoms of a molecule, so
// that sums are about as large as means and a head trains on both alike.
const SumUnit = 20

// ChemGIN is the encoder of molecules of Hu et al. (2020), which GraphCL and
// SpecMatch-CL use for transfer learning, on any categories of molecules:
//
//	x ← Σ_k E_k[category k of the atom]                        [N×Hidden]
//	x ← Dropout(ReLU(BatchNorm(GINEConv(x))))                  Layers times, the last without ReLU
//	h ← the mean of x over the nodes of a graph                [B×Hidden]
//
// where the MLP of each GINEConv has hidden width 2·Hidden. With Sum, h is the sum of x
// divided by [SumUnit]. Features must be categories as [feature.Set] describes them; the
// default is the set of Hu et al.
type ChemGIN struct {
	Config  ChemGINConfig
	Columns *feature.Set
	Atoms   []*nn.Embedding // a table for each column of atoms
	Convs   []*GINEConv
	Norms   []*nn.BatchNorm
	Drops   []*nn.Dropout

	// tables adds the rows of the tables for every category; nil if there are too many.
	tables *autodiff.Sparse
}

// NewChemGIN returns an encoder with Xavier-uniform tables and PyTorch's default
// linear layers. It panics unless all sizes are positive, 0 ≤ Dropout < 1, and a feature set
// has the name c.Atoms.
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
		g.Atoms = append(g.Atoms, nn.NewEmbedding(
			be, fmt.Sprintf("encoder.x_embedding%d", k+1), a.Size, c.Hidden, rng,
		))
	}
	for l := range c.Layers {
		g.Convs = append(g.Convs, NewGINEConv(
			be, fmt.Sprintf("encoder.gnns.%d", l), c.Hidden, 2*c.Hidden, c.Hidden, f.EdgeColumns(), rng,
		))
		g.Norms = append(g.Norms, nn.NewBatchNorm(
			be, fmt.Sprintf("encoder.batch_norms.%d", l), c.Hidden,
		))
		g.Drops = append(g.Drops, nn.NewDropout(be, c.Dropout, rng.Uint64()))
	}
	g.tables = g.allAtoms(be)
	return g
}

// Forward returns the embeddings [B×Width] of the graphs of a batch. It panics unless
// the features are the categories that ChemGIN describes.
func (g *ChemGIN) Forward(b *Batch, mode nn.Mode) *autodiff.Var {
	return g.forward(g.plan(b), b, mode)
}

// forward is [ChemGIN.Forward] with the given plan.
func (g *ChemGIN) forward(p plan.Plan, b *Batch, mode nn.Mode) *autodiff.Var {
	readout := Readout("last:mean")
	if g.Config.Sum {
		readout = "last:sum"
	}
	return readOutBy(p, g, b, mode, readout, 1./SumUnit)
}

// layers returns the features [N×Hidden] of the nodes after each layer.
func (g *ChemGIN) layers(b *Batch, mode nn.Mode) (xs []*autodiff.Var) {
	x := g.batchAtoms(b)
	for l, conv := range g.Convs {
		x = g.Norms[l].Forward(conv.Forward(b, x), b.ViewNodes, mode)
		if l < len(g.Convs)-1 {
			x = x.ReLU()
		}
		x = g.Drops[l].Forward(x, mode)
		xs = append(xs, x)
	}
	return xs
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

// DropoutState returns the state of the dropout layers, which checkpoints hold besides
// parameters and buffers; see [nn.Dropout.State].
func (g *ChemGIN) DropoutState() []*nn.Buffer { return dropoutState(g.Drops) }

func dropoutState(drops []*nn.Dropout) []*nn.Buffer {
	var state []*nn.Buffer
	for l, d := range drops {
		state = append(state, d.State(fmt.Sprintf("encoder.dropouts.%d", l)))
	}
	return state
}
