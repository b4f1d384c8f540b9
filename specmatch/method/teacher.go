package method

import (
	"math"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/train"
)

// What the methods with a teacher have in common. None of it was tuned.
const (
	teacherDecay = 0.9
	teacherRatio = 0.3 // of the norms of the gradients of β·L_T and L_C
	// The temperatures of similarities as distributions; the teacher's are sharper.
	studentTemperature = 0.2
	teacherTemperature = 0.1
)

// taught learns from two augmented views with InfoNCE and from a teacher. The
// teacher is the same model with an exponential moving average of its weights,
//
//	θ_T ← 0.9·θ_T + 0.1·θ   after every step,
//
// and sees the raw graphs of the batch, with the batch norm statistics of its own
// pass. Of the unit projections u¹, u² of the views and t of the raw graphs, which
// pass no gradient to the teacher, the loss is L_C + β·L_T, where L_T is the method's
// own term. At the first batch of every epoch β is set so that over all parameters
// ‖β·∇L_T‖ = 0.3·‖∇L_C‖.
//
// Views, batches and initial weights are those of InfoNCE.
type taught struct {
	train.Defaults
	*train.Minimizer
	model, teacher *specmatch.Model
	contrast       specmatch.InfoNCE
	term           func(u1, u2, t *autodiff.Var, samples []int) *autodiff.Var
	be             backend.Backend
	graphs         []*graph.Graph

	raw rawBatch
}

// newTaught returns a learner of a setup whose term is still to be set.
func newTaught(s Setup) (*taught, error) {
	loader, err := s.twoViews()
	if err != nil {
		return nil, err
	}
	var pair [2]*specmatch.Model
	for i := range pair { // of the same weights
		pair[i], _, err = s.newModel()
		if err != nil {
			return nil, err
		}
	}
	return newStudent(s, pair[0], pair[1], loader), nil
}

// taughtBy returns the learner of a setup with a term.
func taughtBy(s Setup, term func(u1, u2, t *autodiff.Var, samples []int) *autodiff.Var) (*Learner, error) {
	l, err := newTaught(s)
	if err != nil {
		return nil, err
	}
	l.term = term
	return &Learner{Learner: l, Model: l.model}, nil
}

// newStudent returns a learner of two models with equal weights.
func newStudent(s Setup, m, teacher *specmatch.Model, loader *augment.Loader) *taught {
	for _, p := range teacher.Parameters() {
		p.Frozen = true
	}
	l := &taught{
		Defaults:  train.Defaults{Loader: loader},
		Minimizer: train.NewMinimizer(s.Backend, m, s.Rate),
		model:     m,
		teacher:   teacher,
		contrast:  Objective(s.Options).Contrast,
		be:        s.Backend,
		graphs:    s.Graphs,
	}
	l.Beta.Ratio = teacherRatio
	return l
}

// Step implements [train.Learner]. A batch of one graph has no negatives.
func (l *taught) Step(b train.Batch) (m train.Metrics, err error) {
	defer backend.Recover(&err)
	if len(b.Samples) < 2 {
		return nil, nil
	}
	s, err := l.Minimizer.Step(b.Index == 0, func(bool) train.Losses {
		return l.losses(b.Graphs, l.raw.of(l.graphs, b.Samples, augment.Identity{}), b.Samples)
	})
	if err != nil {
		return nil, err
	}
	l.follow()
	return train.Metrics{
		"loss":   s.Loss,
		"loss_c": s.Main,
		"loss_t": s.Aux,
		"beta":   s.Beta,
	}, nil
}

// losses returns L_C and L_T of a batch of two views with its raw graphs.
func (l *taught) losses(views, raw *graph.Batch, samples []int) train.Losses {
	_, z := l.model.Forward(gnn.NewBatch(l.Tape, views), nn.Train)
	n := int(views.ViewPtr[1])
	z1 := z.SliceRows(0, n)
	z2 := z.SliceRows(n, 2*n)
	return train.Losses{
		Main: l.contrast.Loss(z1, z2),
		Aux:  l.term(z1.L2Normalize(), z2.L2Normalize(), l.teach(l.Tape, raw), samples),
	}
}

// teach returns the teacher's unit projections of raw graphs, as constants.
func (l *taught) teach(t *autodiff.Tape, raw *graph.Batch) *autodiff.Var {
	_, z := l.teacher.Forward(gnn.NewBatch(t, raw), nn.Train)
	return z.L2Normalize().Detach()
}

func (l *taught) follow() {
	weights := l.model.Parameters()
	for i, p := range l.teacher.Parameters() {
		l.be.Axpby(p.Value, teacherDecay, p.Value, 1-teacherDecay, weights[i].Value)
	}
}

func (l *taught) Parameters() []*autodiff.Param { return l.model.Parameters() }

// Buffers returns the model's and the teacher's weights. The teacher's running
// statistics are not among them, because nothing reads them.
func (l *taught) Buffers() []*nn.Buffer {
	list := l.model.Buffers()
	for _, p := range l.teacher.Parameters() {
		list = append(list, nn.BufferOf(l.be, "teacher."+p.Name, p.Value))
	}
	return list
}

func (l *taught) State() (nn.Module, any) {
	return optim.Checkpoint{Module: l, Optimizer: l.Adam}, &l.Values
}

// candidates are the unit rows that n graphs are compared with: their own [n×D], of
// which graph i leaves out row i, and further ones [k×D] or nil.
type candidates struct{ own, further *autodiff.Var }

// logits returns u·cᵀ/τ for both kinds of candidates, with -∞ where a graph meets
// itself, and the column [n×1] of the logarithms of the row sums of exponentials.
func (c candidates) logits(u *autodiff.Var, tau float64) (inBatch, further, norm *autodiff.Var) {
	u = u.Scale(1 / tau)
	inBatch = u.MatMulT(c.own).FillDiagonal(math.Inf(-1))
	if c.further == nil {
		return inBatch, nil, inBatch.LogSumExp()
	}
	further = u.MatMulT(c.further)
	return inBatch, further, autodiff.ConcatCols(inBatch.LogSumExp(), further.LogSumExp()).LogSumExp()
}

// walk is the teacher's random walk: row i is softmax(t_i·c_j/0.1) over the candidates.
type walk struct {
	own, further *autodiff.Var
	mean         *autodiff.Var // of the teacher's candidates under each row [n×D]
	entropy      *autodiff.Var // the sum of those of the rows
}

// newWalk returns that of t [n×D] to c. All of it is constant.
func newWalk(t *autodiff.Var, c candidates) walk {
	inBatch, further, norm := c.logits(t, teacherTemperature)
	w := walk{own: inBatch.SubCol(norm).Exp()}
	if further != nil {
		w.further = further.SubCol(norm).Exp()
	}
	w.mean = w.step(c)
	w.entropy = norm.Sum().Sub(t.Dot(w.mean).Scale(1 / teacherTemperature))
	return w
}

// step returns the mean of candidates under each row of the walk.
func (w walk) step(c candidates) *autodiff.Var {
	mean := w.own.MatMul(c.own)
	if c.further != nil {
		mean = mean.Add(w.further.MatMul(c.further))
	}
	return mean
}

// divergence returns 1/n Σ_i KL(w_i ‖ softmax(u_i·c_j/0.2)) [1×1], where mean is
// w.step(c).
func (w walk) divergence(u *autodiff.Var, c candidates, mean *autodiff.Var) *autodiff.Var {
	_, _, norm := c.logits(u, studentTemperature)
	cross := norm.Sum().Sub(u.Dot(mean).Scale(1 / studentTemperature))
	return cross.Sub(w.entropy).Scale(1 / float64(u.Rows()))
}
