package specmatch

import (
	"fmt"
	"math"
	"time"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// Objective is the training loss L_C + β·L_G.
type Objective struct {
	Contrast InfoNCE
	Match    LaplacianMatch
	// OnH gives L_G the encoder's output h; by default it sees z.
	OnH bool
	// Center subtracts the mean over the batch from each view before L_G.
	Center bool
	Beta   BetaSchedule
}

// BetaSchedule sets the weight β of L_G. With Ratio 0, β is Beta. With Ratio > 0, β
// is steered so that ‖β·∇L_G‖ = Ratio·‖∇L_C‖ over all parameters: it is computed at
// every probed step (see [Trainer.Step]) and held in between. In both cases β rises
// linearly from 0 over the first WarmupSteps steps.
type BetaSchedule struct {
	Beta        float64
	WarmupSteps int
	Ratio       float64
}

// Stats are the figures of one training step.
type Stats struct {
	Loss, LossC, LossG float64 // LossG is NaN where L_G was not computed
	Beta               float64
	Probe              *Probe // a closer look at the gradients; nil unless it was asked for
	// Forward (with the losses), Backward and Update are the wall times of the
	// step's parts. On an asynchronous engine, such as a GPU, they are the times until
	// the work was handed over or waited for.
	Forward, Backward, Update time.Duration
}

// NonFiniteError says that a loss or a gradient was not a finite number, which
// ends training. The parameters are as they were before the step.
type NonFiniteError struct {
	Step  int    // counted from 0
	What  string // "the loss" or "the gradient's norm"
	Value float64
	Op    string // the first operator with a non-finite value, if any
}

func (e *NonFiniteError) Error() string {
	msg := fmt.Sprintf("specmatch: step %d: %s is %v", e.Step, e.What, e.Value)
	if e.Op != "" {
		msg += "; the first operator with such a value is " + e.Op
	}
	return msg
}

// Trainer runs training steps.
type Trainer struct {
	Model     *Model
	Objective Objective
	Optimizer *optim.Adam

	be    backend.Backend
	tape  *autodiff.Tape
	state TrainerState
	kept  []*tensor.Tensor // copies of the model's buffers, made before the step
}

// NewTrainer returns a trainer with a fresh Adam of the given learning rate.
func NewTrainer(be backend.Backend, m *Model, o Objective, rate float64, opts ...autodiff.Option) *Trainer {
	tr := &Trainer{
		Model: m, Objective: o, Optimizer: optim.NewAdam(be, m.Parameters(), rate),
		be: be, tape: autodiff.NewTape(be, opts...),
	}
	for _, b := range m.Buffers() {
		tr.kept = append(tr.kept, be.Alloc(b.Value.Rows, b.Value.Cols))
	}
	tr.Optimizer.Fused = tr.tape.Fused().Adam
	return tr
}

// TrainerState is what training changes besides the model and the optimizer.
type TrainerState struct {
	Steps int     // taken so far
	Beta  float64 // the steered β
}

// State returns all that training changes: the tensors of the model and of the
// optimizer, and a pointer to the trainer's own numbers. Saved and loaded, they let
// training go on to the same bits as without the interruption.
func (tr *Trainer) State() (nn.Module, *TrainerState) {
	return optim.Checkpoint{Module: tr.Model, Optimizer: tr.Optimizer}, &tr.state
}

// Step trains on a batch of two views with the same number of graphs each. With
// probe it also fills Stats.Probe, at the cost of two more backward passes; probing
// does not change the training, unless β is steered.
//
// A failure of the device and a loss or gradient that is not finite
// ([NonFiniteError]) are returned as errors. The parameters are then unchanged, and
// after a [NonFiniteError] so are the running statistics.
func (tr *Trainer) Step(b *graph.Batch, probe bool) (s Stats, err error) {
	if err := checkViews(b); err != nil {
		return s, err
	}
	defer tr.tape.Reset()
	defer backend.Recover(&err) // the panic of a device that failed becomes err

	start := time.Now()
	steered := tr.Objective.Beta.Ratio > 0
	probe = probe || (steered && tr.state.Steps == 0)
	nn.ZeroGrad(tr.Model)
	for i, x := range tr.Model.Buffers() {
		tr.be.CopyBlock(tr.kept[i], 0, 0, x.Value, 0, 0, x.Value.Rows, x.Value.Cols)
	}
	lossC, lossG, z1, z2 := tr.losses(gnn.NewBatch(tr.tape, b), probe || tr.currentBeta() > 0, probe)
	s.LossC, s.LossG = lossC.Float(), math.NaN()
	if lossG != nil {
		s.LossG = lossG.Float()
	}
	if probe {
		s.Probe = tr.probe(lossC, lossG, z1, z2)
		if steered && s.Probe.GradG > 0 {
			tr.state.Beta = tr.Objective.Beta.Ratio * s.Probe.GradC / s.Probe.GradG
		}
	}
	s.Beta = tr.currentBeta()
	loss := lossC
	if s.Beta > 0 {
		loss = lossC.Add(lossG.Scale(s.Beta))
	}
	s.Loss = loss.Float()
	if probe && s.Probe.GradC > 0 {
		s.Probe.Ratio = s.Beta * s.Probe.GradG / s.Probe.GradC
	}
	if !finite(s.Loss) {
		tr.restoreBuffers()
		return s, &NonFiniteError{Step: tr.state.Steps, What: "the loss", Value: s.Loss, Op: tr.tape.FirstNonFinite()}
	}
	s.Forward = time.Since(start)
	start = time.Now()
	tr.tape.Backward(loss)
	s.Backward = time.Since(start)
	start = time.Now()
	if norm := tr.gradNorm(); !finite(norm) {
		nn.ZeroGrad(tr.Model)
		tr.restoreBuffers()
		return s, &NonFiniteError{Step: tr.state.Steps, What: "the gradient's norm", Value: norm}
	}
	tr.Optimizer.Step()
	s.Update = time.Since(start)
	tr.state.Steps++
	return s, nil
}

// restoreBuffers undoes what the forward pass did to the running statistics.
func (tr *Trainer) restoreBuffers() {
	for i, x := range tr.Model.Buffers() {
		tr.be.CopyBlock(x.Value, 0, 0, tr.kept[i], 0, 0, x.Value.Rows, x.Value.Cols)
	}
}

// losses runs the model and returns L_C and, with match, L_G; with probe also the
// projections z1 and z2 of the views, which otherwise may be nil. If the engine
// offers the losses in one call (infonce_fused.go), it is used; what that call does
// not give comes from the definitions.
func (tr *Trainer) losses(b *gnn.Batch, match, probe bool) (lossC, lossG, z1, z2 *autodiff.Var) {
	n := int(b.Host.ViewPtr[1])
	h, z := tr.Model.Forward(b, nn.Train)
	if o := &tr.Objective; o.Contrast.canFuse(z.Tape()) {
		var fusedMatch *LaplacianMatch
		if match && o.canFuseMatch(z) {
			fusedMatch = &o.Match
		}
		lossC, lossG = o.Contrast.fused(z.L2Normalize(), fusedMatch)
		if !probe && match == (lossG != nil) {
			return lossC, lossG, nil, nil
		}
	}
	z1, z2 = z.SliceRows(0, n), z.SliceRows(n, 2*n)
	if lossC == nil {
		lossC = tr.Objective.Contrast.Loss(z1, z2)
	}
	if match && lossG == nil {
		g1, g2 := z1, z2
		if tr.Objective.OnH {
			g1, g2 = h.SliceRows(0, n), h.SliceRows(n, 2*n)
		}
		if tr.Objective.Center {
			g1, g2 = center(g1), center(g2)
		}
		lossG = tr.Objective.Match.Loss(g1, g2)
	}
	return lossC, lossG, z1, z2
}

// center subtracts the column means.
func center(x *autodiff.Var) *autodiff.Var {
	return x.SubRow(x.ColSums().Scale(1 / float64(x.Rows())))
}

// currentBeta returns β at the present step, by Objective.Beta.
func (tr *Trainer) currentBeta() float64 {
	b := tr.Objective.Beta
	beta := b.Beta
	if b.Ratio > 0 {
		beta = tr.state.Beta
	}
	if tr.state.Steps < b.WarmupSteps {
		beta = beta * float64(tr.state.Steps) / float64(b.WarmupSteps)
	}
	return beta
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
