package gnn

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// The kinds of encoders, as [Architecture] names them.
const (
	KindGIN     = "gin"
	KindResGCN  = "resgcn"
	KindChemGIN = "chemgin"
	KindBioGIN  = "biogin"
)

// Architecture describes an encoder completely, except its weights. It can be stored as
// JSON.
type Architecture struct {
	Kind string `json:"kind"` // one of the Kind constants
	// In is the width F of the node features. The encoders of molecules and of
	// proteins define their own features and leave it 0.
	In     int `json:"in,omitempty"`
	Hidden int `json:"hidden"` // width of every layer
	Layers int `json:"layers"`
	// Residual is [ResGCNConfig.Residual], Sum [ChemGINConfig.Sum], Center
	// [BioGINConfig.Center].
	Residual bool `json:"residual,omitempty"`
	Sum      bool `json:"sum,omitempty"`
	Center   bool `json:"center,omitempty"`
	// Eps is [GINConfig.Eps]. EdgeLabels and Weights are the [EdgeInput] of a gin.
	Eps        float64 `json:"eps,omitempty"`
	EdgeLabels int     `json:"edge_labels,omitempty"`
	Weights    bool    `json:"edge_weights,omitempty"`
	// Atoms names the categories of atoms and bonds of a chemgin, see [feature.ByName].
	Atoms string `json:"atoms,omitempty"`
	// Dropout is the probability while training, for chemgin and biogin.
	Dropout float64 `json:"dropout,omitempty"`
	// Readout replaces the encoder's own readout; Sum and Center must then be false.
	Readout Readout `json:"readout,omitempty"`
}

// Check returns an error unless an encoder of the architecture can be built.
func (a Architecture) Check() error {
	ownFeatures := a.Kind == KindChemGIN || a.Kind == KindBioGIN
	switch {
	case !ownFeatures && a.Kind != KindGIN && a.Kind != KindResGCN:
		return fmt.Errorf("gnn: encoder %q is unknown (have: %s)",
			a.Kind, strings.Join([]string{KindGIN, KindResGCN, KindChemGIN, KindBioGIN}, ", "))
	case a.Hidden < 1 || a.Hidden > maxSize || a.Layers < 1 || a.Layers > maxSize:
		return fmt.Errorf("gnn: an encoder of %d layers of width %d; want 1 to %d of each",
			a.Layers, a.Hidden, maxSize)
	case ownFeatures && a.In != 0 || !ownFeatures && (a.In < 1 || a.In > maxSize):
		return fmt.Errorf("gnn: encoder %s with node features of width %d", a.Kind, a.In)
	case a.Residual && a.Kind != KindResGCN || a.Sum && a.Kind != KindChemGIN ||
		a.Center && a.Kind != KindBioGIN:
		return fmt.Errorf("gnn: encoder %s has no residual layers, no choice of a sum or no center",
			a.Kind)
	case !(a.Dropout >= 0 && a.Dropout < 1) || a.Dropout > 0 && !ownFeatures:
		return fmt.Errorf("gnn: encoder %s with dropout %v", a.Kind, a.Dropout)
	case !(math.Abs(a.Eps) <= maxSize) || a.Eps != 0 && a.Kind != KindGIN:
		return fmt.Errorf("gnn: encoder %s with ε = %v", a.Kind, a.Eps)
	case (a.EdgeLabels != 0 || a.Weights) && a.Kind != KindGIN ||
		a.EdgeLabels < 0 || a.EdgeLabels > maxSize || a.EdgeLabels > 0 && a.Weights:
		return fmt.Errorf("gnn: encoder %s with %d labels of edges and weights %v; a gin reads one or the other",
			a.Kind, a.EdgeLabels, a.Weights)
	case a.Atoms != "" && a.Kind != KindChemGIN:
		return fmt.Errorf("gnn: encoder %s with categories %q of atoms", a.Kind, a.Atoms)
	case a.Readout != "" && (a.Sum || a.Center):
		return fmt.Errorf("gnn: encoder %s with readout %q, and with a sum or a center",
			a.Kind, string(a.Readout))
	case a.Readout != "":
		if _, _, err := a.Readout.parse(a.Layers); err != nil {
			return err
		}
	}
	_, err := feature.ByName(a.Atoms)
	return err
}

// New returns an encoder of the architecture with initial weights drawn from rng.
func (a Architecture) New(be backend.Backend, rng *rand.Rand) (Encoder, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if be == nil {
		return nil, errors.New("gnn: the backend is nil; want an engine, such as cpu.New(tensor.Float32)")
	}
	switch a.Kind {
	case KindGIN:
		g := NewGIN(be, GINConfig{
			In:      a.In,
			Hidden:  a.Hidden,
			Layers:  a.Layers,
			Eps:     a.Eps,
			Readout: a.Readout,
		}, rng)
		if e := (EdgeInput{a.EdgeLabels, a.Weights}); e != (EdgeInput{}) {
			g.ReadEdges(be, e, rng)
		}
		return g, nil
	case KindResGCN:
		return NewResGCN(be, ResGCNConfig{
			In:       a.In,
			Hidden:   a.Hidden,
			Layers:   a.Layers,
			Residual: a.Residual,
			Readout:  a.Readout,
		}, rng), nil
	case KindChemGIN:
		return NewChemGIN(be, ChemGINConfig{
			Hidden:  a.Hidden,
			Layers:  a.Layers,
			Dropout: a.Dropout,
			Sum:     a.Sum,
			Atoms:   a.Atoms,
			Readout: a.Readout,
		}, rng), nil
	default:
		return NewBioGIN(be, BioGINConfig{
			Hidden:  a.Hidden,
			Layers:  a.Layers,
			Dropout: a.Dropout,
			Center:  a.Center,
			Readout: a.Readout,
		}, rng), nil
	}
}

// ArchitectureOf describes an encoder of this package. For any other type it returns
// an error.
func ArchitectureOf(e Encoder) (Architecture, error) {
	switch e := e.(type) {
	case *GIN:
		c := e.Config
		edges := e.edges()
		return Architecture{
			Kind:    KindGIN,
			In:      c.In,
			Hidden:  c.Hidden,
			Layers:  c.Layers,
			Eps:     c.Eps,
			Readout: c.Readout,

			EdgeLabels: edges.Labels,
			Weights:    edges.Weights,
		}, nil
	case *ResGCN:
		c := e.Config
		return Architecture{
			Kind:     KindResGCN,
			In:       c.In,
			Hidden:   c.Hidden,
			Layers:   c.Layers,
			Residual: c.Residual,
			Readout:  c.Readout,
		}, nil
	case *ChemGIN:
		c := e.Config
		return Architecture{
			Kind:    KindChemGIN,
			Hidden:  c.Hidden,
			Layers:  c.Layers,
			Dropout: c.Dropout,
			Sum:     c.Sum,
			Atoms:   c.Atoms,
			Readout: c.Readout,
		}, nil
	case *BioGIN:
		c := e.Config
		return Architecture{
			Kind:    KindBioGIN,
			Hidden:  c.Hidden,
			Layers:  c.Layers,
			Dropout: c.Dropout,
			Center:  c.Center,
			Readout: c.Readout,
		}, nil
	}
	return Architecture{}, fmt.Errorf("gnn: an encoder of type %T has no architecture that a file "+
		"could name",
		e)
}

// Width returns the width of an embedding.
func (a Architecture) Width() int {
	switch {
	case a.Readout != "":
		layers, kinds := a.Readout.mustParse(a.Layers)
		return len(layers) * len(kinds) * a.Hidden
	case a.Center:
		return 2 * a.Hidden
	}
	return a.NodeWidth()
}

// NodeWidth returns the width F of what [NodeEncoder.Nodes] returns, which no readout changes.
func (a Architecture) NodeWidth() int {
	if a.Kind == KindGIN {
		return a.Layers * a.Hidden
	}
	return a.Hidden
}

// Size returns how many parameters and buffers an encoder of the architecture has,
// and how many values they hold together, without building it. The architecture must
// pass Check.
func (a Architecture) Size() (tensors, values int) {
	h := a.Hidden
	l := a.Layers
	linear := func(in, out int) int { return in*out + out }
	norm := func(n int) int { return 4 * n }
	switch a.Kind {
	case KindGIN:
		tensors = 8 * l
		values = linear(a.In, h) + linear(h, h) + (l-1)*2*linear(h, h) + l*norm(h)
		if rows := a.edgeRows(); rows > 0 {
			tensors += l
			values += rows * (a.In + (l-1)*h)
		}
		return tensors, values
	case KindResGCN:
		return 15 + 6*l, norm(a.In) + a.In*h + l*(norm(h)+linear(h, h)) + norm(h) + linear(h, h) +
			norm(h)
	case KindChemGIN:
		c := a.categories()
		rows := 0
		for _, column := range c.Atoms {
			rows += column.Size
		}
		return len(c.Atoms) + l*(8+len(c.Bonds)),
			rows*h + l*(linear(h, 2*h)+linear(2*h, h)+c.EdgeColumns().Width()*h+norm(h))
	default:
		return 1 + 10*l, NodeFlags*h + l*(linear(EdgeBits, h)+linear(2*h, 2*h)+norm(2*h)+linear(2*h, h))
	}
}

// edgeRows returns the rows of the table of the edges in each layer of a gin, 0 without.
func (a Architecture) edgeRows() int {
	if a.Weights {
		return 1
	}
	return a.EdgeLabels
}

// categories returns the categories of a chemgin. The architecture must pass Check.
func (a Architecture) categories() *feature.Set {
	c, _ := feature.ByName(a.Atoms)
	return c
}

// Accepts returns an error unless an encoder of the architecture can read g: a valid
// graph with at least one node, whose features and edge labels are of its kind.
func (a Architecture) Accepts(g *graph.Graph) error {
	if g == nil {
		return errors.New("gnn: a nil graph")
	}
	if err := g.Validate(); err != nil {
		return err
	}
	width := a.In
	labels := 0
	switch a.Kind {
	case KindGIN:
		labels = a.EdgeLabels
		if a.Weights {
			labels = math.MaxInt32
		}
	case KindChemGIN:
		width = a.categories().NodeWidth()
		labels = a.categories().EdgeLabels()
	case KindBioGIN:
		width = NodeFlags
		labels = 1 << EdgeBits
	}
	switch {
	case g.Nodes() == 0 && a.Center:
		return errors.New("gnn: a graph without nodes; the encoder reads its first node")
	case g.X.Width != width:
		if a.Kind == KindChemGIN {
			return fmt.Errorf("gnn: node features of width %d; encoder %s wants %d: read the molecules "+
				"with the atom features %q",
				g.X.Width, a.Kind, width, a.categories().Name)
		}
		return fmt.Errorf("gnn: node features of width %d; encoder %s wants %d",
			g.X.Width, a.Kind, width)
	case labels == 0:
		return nil
	case !g.X.OneHot() && a.Kind != KindGIN:
		return fmt.Errorf("gnn: node features are a matrix; encoder %s wants categories", a.Kind)
	case len(g.EdgeLabel) != len(g.Adj):
		values := "labels"
		if a.Weights {
			values = "weights"
		}
		return fmt.Errorf("gnn: edges have no %s; encoder %s wants some", values, a.Kind)
	}
	for _, l := range g.EdgeLabel {
		if l < 0 || int(l) >= labels {
			return fmt.Errorf("gnn: edge label %d; encoder %s wants 0 to %d", l, a.Kind, labels-1)
		}
	}
	return nil
}

// Columns names the columns of an embedding: h0, h1 and so on or, with a [Readout], by layer
// and kind, as in l2_max_17.
func (a Architecture) Columns() (names []string) {
	if a.Readout == "" {
		for i := range a.Width() {
			names = append(names, fmt.Sprintf("h%d", i))
		}
		return names
	}
	layers, kinds := a.Readout.mustParse(a.Layers)
	for _, l := range layers {
		for _, kind := range kinds {
			for i := range a.Hidden {
				names = append(names, fmt.Sprintf("l%d_%s_%d", l, kind, i))
			}
		}
	}
	return names
}

// WithReadout returns a copy of an encoder of this package with another readout. Both share
// the weights.
func WithReadout(e Encoder, r Readout) (Encoder, error) {
	a, err := ArchitectureOf(e)
	if err != nil {
		return nil, err
	}
	a.Readout = r
	if r != "" {
		a.Sum = false
		a.Center = false
	}
	if err := a.Check(); err != nil {
		return nil, err
	}
	switch e := e.(type) {
	case *GIN:
		g := *e
		g.Config.Readout = r
		return &g, nil
	case *ResGCN:
		g := *e
		g.Config.Readout = r
		return &g, nil
	case *ChemGIN:
		g := *e
		g.Config.Readout = r
		g.Config.Sum = a.Sum
		return &g, nil
	default:
		g := *e.(*BioGIN)
		g.Config.Readout = r
		g.Config.Center = a.Center
		return &g, nil
	}
}
