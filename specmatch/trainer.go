package specmatch

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Beta is the weight β of L_G.
type Beta = train.Beta

// Objective is the training loss L_C + β·L_G.
type Objective struct {
	Contrast InfoNCE
	Match    LaplacianMatch
	// OnH applies L_G to the encoder's output h instead of z.
	OnH bool
	// Center subtracts the mean over the batch from each view before L_G.
	Center bool
	Beta   Beta
	Warmup int // steps over which β grows linearly from 0
}

// Trainer trains a model on an objective: its main loss is L_C, its auxiliary loss L_G.
type Trainer struct {
	*train.Minimizer
	Model     *Model
	Objective Objective
}

// NewTrainer returns a trainer with a fresh Adam of the given learning rate.
func NewTrainer(be backend.Backend, m *Model, o Objective, rate float64, opts ...autodiff.Option) *Trainer {
	tr := &Trainer{train.NewMinimizer(be, m, rate, opts...), m, o}
	tr.Beta = o.Beta
	tr.Warmup = o.Warmup
	return tr
}

// Stats are the figures of one training step; Main is L_C and Aux is L_G.
type Stats struct {
	train.Stats
	// Diagnosis is the diagnosis of z, from at most 1024 graphs; nil without a probe.
	Diagnosis *Diagnosis
}

// Step trains on a batch of two views with the same number of graphs. It returns an error for other
// batches. For probe and other errors see [train.Minimizer.Step].
func (tr *Trainer) Step(b *graph.Batch, probe bool) (s Stats, err error) {
	if err := checkViews(b); err != nil {
		return s, err
	}
	step, err := tr.Minimizer.Step(probe, func(match bool) train.Losses {
		l, z1, z2 := tr.losses(gnn.NewBatch(tr.Tape, b), match, probe)
		if probe {
			s.Diagnosis = diagnose(z1, z2, tr.Objective.Match)
		}
		return l
	})
	if step != nil {
		s.Stats = *step
	}
	return s, err
}

// checkViews returns an error unless b has two equal views.
func checkViews(b *graph.Batch) error {
	if len(b.ViewPtr) != 3 || b.ViewPtr[2] != 2*b.ViewPtr[1] || b.ViewPtr[1] == 0 {
		return fmt.Errorf("specmatch: Step: view pointers %v: want two equal, non-empty views", b.ViewPtr)
	}
	return nil
}

// losses runs the model and returns L_C and, with match, L_G. With probe it also returns the projections z1
// and z2 of the views, which otherwise may be nil. Losses that the engine does not offer in one call
// (infonce_fused.go) are computed by their definitions.
func (tr *Trainer) losses(b *gnn.Batch, match, probe bool) (l train.Losses, z1, z2 *autodiff.Var) {
	n := int(b.Host.ViewPtr[1])
	h, z := tr.Model.Forward(b, nn.Train)
	o := &tr.Objective
	var matched *LaplacianMatch // if L_G depends on the same similarities as L_C
	if match && !o.OnH && !o.Center {
		matched = &o.Match
	}
	l = fusedLosses(z, &o.Contrast, matched)
	if l.Main != nil && !probe && match == (l.Aux != nil) {
		return l, nil, nil
	}
	z1, z2 = z.SliceRows(0, n), z.SliceRows(n, 2*n)
	if l.Main == nil {
		l.Main = o.Contrast.Loss(z1, z2)
	}
	if match && l.Aux == nil {
		g1, g2 := z1, z2
		if o.OnH {
			g1, g2 = h.SliceRows(0, n), h.SliceRows(n, 2*n)
		}
		if o.Center {
			g1, g2 = center(g1), center(g2)
		}
		l.Aux = o.Match.Loss(g1, g2)
	}
	return l, z1, z2
}

// center subtracts the column means.
func center(x *autodiff.Var) *autodiff.Var {
	return x.SubRow(x.ColSums().Scale(1 / float64(x.Rows())))
}
