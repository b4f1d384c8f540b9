package method

import (
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// attrMasking is attribute masking as in Hu et al.: of atoms in molecules, of edges
// in protein networks.
var attrMasking = &Method{
	Name:    "attrmasking",
	Title:   "AttrMasking",
	Regimes: []Regime{Transfer},
	Recipe:  map[Regime]Recipe{Transfer: {Epochs: 100}},
	new: func(s Setup) (*Learner, error) {
		return newPretext(s, func(s Setup, e gnn.Encoder, rng *rand.Rand) (Task, error) {
			switch s.Encoder.Kind {
			case gnn.KindChemGIN:
				return NewAtomMasking(s.Backend, e.(*gnn.ChemGIN).Columns, e, s.Encoder.Hidden, rng), nil
			case gnn.KindBioGIN:
				return NewEdgeMasking(s.Backend, e, s.Encoder.Hidden, rng), nil
			}
			return nil, errNoDomain("attrmasking", s)
		})
	},
}

// errNoDomain says that a task is for molecules and proteins.
func errNoDomain(name string, s Setup) error {
	return fmt.Errorf("method: %s is for molecules and proteins, not for encoder %s",
		name, s.Encoder.Kind)
}

// NodeMasking hides the categories of ⌊0.15·n⌋ + 1 nodes of every graph and asks
// for their class ("AttrMasking"): the mean cross-entropy of a linear layer on the
// embeddings of those nodes.
type NodeMasking struct {
	gnn.NodeEncoder
	Output *nn.Linear // [width×classes]
	// Mask is the category that takes the place of the hidden ones, and Class the
	// class of a category.
	Mask  int32
	Class func(category int32) int32
}

// NewAtomMasking returns the task for molecules of some categories: which of 119 types did an
// atom have? width is the width of the encoder's node embeddings.
func NewAtomMasking(be backend.Backend, c *feature.Set, e gnn.NodeEncoder, width int, rng *rand.Rand) *NodeMasking {
	const classes = feature.AtomTypes - 1
	return &NodeMasking{
		NodeEncoder: e,
		Output:      newOutput(be, width, classes, rng),
		Mask:        c.Masked(),
		Class:       c.Element,
	}
}

// newOutput returns a linear layer that is initialised as PyTorch does it by default.
func newOutput(be backend.Backend, width, out int, rng *rand.Rand) *nn.Linear {
	l := nn.NewLinear(be, "pretext.output", width, out, nn.KaimingUniform, rng)
	l.ResetBias(be, rng)
	return l
}

// Loss implements [Task].
func (m *NodeMasking) Loss(b *graph.Batch, t *autodiff.Tape, rng *rand.Rand) *autodiff.Var {
	var nodes []int32
	var classes []int
	for g := range b.Graphs() {
		n := int(b.GraphPtr[g+1] - b.GraphPtr[g])
		for _, k := range sample(rng, n, masked(n)) {
			i := b.GraphPtr[g] + int32(k)
			nodes = append(nodes, i)
			classes = append(classes, int(m.Class(b.X.Category[i])))
			b.X.Category[i] = m.Mask
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	return nn.CrossEntropy(m.Output.Forward(m.Nodes(gnn.NewBatch(t, b), nn.Train).GatherRows(nodes)), classes)
}

// Parameters returns the encoder's and the output's.
func (m *NodeMasking) Parameters() []*autodiff.Param {
	return parameters(m.NodeEncoder, m.Output)
}

// EdgeMasking hides the labels of ⌊0.15·e⌋ + 1 edges of every graph of e edges and
// asks for the first of their channels: the mean cross-entropy of a linear layer on
// the sum of the embeddings of the edge's two nodes. It is Hu et al.'s task for
// proteins, whose encoder is gnn.BioGIN.
type EdgeMasking struct {
	gnn.NodeEncoder
	Output *nn.Linear // [width×channels]
}

// edgeMask is the label of a hidden edge.
const edgeMask = 1 << (gnn.EdgeBits - 1)

// edgeChannels is the number of channels of evidence; the other bits of a label
// are for self-loops and hidden edges.
const edgeChannels = gnn.EdgeBits - 2

// NewEdgeMasking returns the task. width is the width of the encoder's node
// embeddings.
func NewEdgeMasking(be backend.Backend, e gnn.NodeEncoder, width int, rng *rand.Rand) *EdgeMasking {
	return &EdgeMasking{e, newOutput(be, width, edgeChannels, rng)}
}

// Loss implements [Task].
func (m *EdgeMasking) Loss(b *graph.Batch, t *autodiff.Tape, rng *rand.Rand) *autodiff.Var {
	var tails, heads []int32
	var classes []int
	type entry struct{ index, i, j int32 } // Adj[index] = j in the row of i
	var edges []entry
	for g := range b.Graphs() {
		edges = edges[:0]
		for i := b.GraphPtr[g]; i < b.GraphPtr[g+1]; i++ {
			for e := b.Ptr[i]; e < b.Ptr[i+1]; e++ {
				if j := b.Adj[e]; j < i {
					edges = append(edges, entry{e, i, j})
				}
			}
		}
		if len(edges) == 0 {
			continue
		}
		for _, k := range sample(rng, len(edges), masked(len(edges))) {
			e := edges[k]
			tails = append(tails, e.i)
			heads = append(heads, e.j)
			classes = append(classes, firstChannel(b.EdgeLabel[e.index]))
			b.EdgeLabel[e.index] = edgeMask
			for r := b.Ptr[e.j]; r < b.Ptr[e.j+1]; r++ {
				if b.Adj[r] == e.i {
					b.EdgeLabel[r] = edgeMask
				}
			}
		}
	}
	if len(tails) == 0 {
		return nil
	}
	h := m.Nodes(gnn.NewBatch(t, b), nn.Train)
	return nn.CrossEntropy(m.Output.Forward(h.GatherRows(tails).Add(h.GatherRows(heads))), classes)
}

// firstChannel returns the lowest bit of a label, 0 if none is set.
func firstChannel(label int32) int {
	for k := range edgeChannels {
		if label>>k&1 == 1 {
			return k
		}
	}
	return 0
}

// Parameters returns the encoder's and the output's.
func (m *EdgeMasking) Parameters() []*autodiff.Param {
	return parameters(m.NodeEncoder, m.Output)
}
