package gnn

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
)

// Encoder maps the graphs of a batch to embeddings [B×Width].
type Encoder interface {
	nn.Module
	Forward(b *Batch, mode nn.Mode) *autodiff.Var
	Width() int
	// Reads returns what Forward reads of a batch, for [NewInputs].
	Reads() Reads
}

// NodeEncoder embeds the nodes of a batch, as [ChemGIN] and [BioGIN] do.
type NodeEncoder interface {
	nn.Module
	// Nodes returns the embeddings [N×F] of the nodes of a batch.
	Nodes(b *Batch, mode nn.Mode) *autodiff.Var
}

// The kinds of encoders, as [Architecture] names them.
const (
	KindGIN     = "gin"
	KindResGCN  = "resgcn"
	KindChemGIN = "chemgin"
	KindBioGIN  = "biogin"
)

// Architecture describes an encoder: all that is needed to build it again, short
// of its weights. It survives JSON.
type Architecture struct {
	Kind string `json:"kind"` // one of the Kind constants
	// In is the width F of the node features. The encoders of molecules and of
	// proteins define their own features and leave it 0.
	In     int `json:"in,omitempty"`
	Hidden int `json:"hidden"` // width of every layer
	Layers int `json:"layers"`
	// Residual is [ResGCNConfig.Residual], Center [BioGINConfig.Center].
	Residual bool `json:"residual,omitempty"`
	Center   bool `json:"center,omitempty"`
	// Dropout is the probability while training, for chemgin and biogin.
	Dropout float64 `json:"dropout,omitempty"`
}

// maxSize bounds the sizes of an architecture, so that products of them do not
// overflow: what is larger fits into no memory.
const maxSize = 1 << 20

// Check returns an error unless an encoder of the architecture can be built.
func (a Architecture) Check() error {
	own := a.Kind == KindChemGIN || a.Kind == KindBioGIN
	switch {
	case !own && a.Kind != KindGIN && a.Kind != KindResGCN:
		return fmt.Errorf("gnn: encoder %q is unknown (have: %s)", a.Kind, strings.Join([]string{KindGIN, KindResGCN, KindChemGIN, KindBioGIN}, ", "))
	case a.Hidden < 1 || a.Hidden > maxSize || a.Layers < 1 || a.Layers > maxSize:
		return fmt.Errorf("gnn: an encoder of %d layers of width %d; want 1 to %d of each", a.Layers, a.Hidden, maxSize)
	case own && a.In != 0 || !own && (a.In < 1 || a.In > maxSize):
		return fmt.Errorf("gnn: encoder %s with node features of width %d", a.Kind, a.In)
	case a.Residual && a.Kind != KindResGCN || a.Center && a.Kind != KindBioGIN:
		return fmt.Errorf("gnn: encoder %s has no residual layers or no center", a.Kind)
	case !(a.Dropout >= 0 && a.Dropout < 1) || a.Dropout > 0 && !own:
		return fmt.Errorf("gnn: encoder %s with dropout %v", a.Kind, a.Dropout)
	}
	return nil
}

// New returns an encoder of the architecture with initial weights drawn from rng.
func (a Architecture) New(be backend.Backend, rng *rand.Rand) (Encoder, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	switch a.Kind {
	case KindGIN:
		return NewGIN(be, GINConfig{In: a.In, Hidden: a.Hidden, Layers: a.Layers}, rng), nil
	case KindResGCN:
		return NewResGCN(be, ResGCNConfig{In: a.In, Hidden: a.Hidden, Layers: a.Layers, Residual: a.Residual}, rng), nil
	case KindChemGIN:
		return NewChemGIN(be, ChemGINConfig{Hidden: a.Hidden, Layers: a.Layers, Dropout: a.Dropout}, rng), nil
	default:
		return NewBioGIN(be, BioGINConfig{Hidden: a.Hidden, Layers: a.Layers, Dropout: a.Dropout, Center: a.Center}, rng), nil
	}
}
