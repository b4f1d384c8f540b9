package method

import (
	"context"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/tensor"
)

// emaMemory is [emaBatch] with the graph of similarities to all N graphs of the set,
// as ReSSL has it (Zheng et al., NeurIPS 2021): row n of the memory m is the teacher's
// unit projection of graph n when it was last in a batch. With P(v, τ) the matrix
// [B×N] of rows softmax_{n≠i}(v_i·m_n/τ),
//
//	L_T = 1/B Σ_i KL(P(t, 0.1)_i ‖ P(u¹, 0.2)_i) + KL(P(t, 0.1)_i ‖ P(u², 0.2)_i).
//
// The memory is a constant. Before the first epoch the teacher fills it; a batch
// enters it before it is compared with it. ReSSL has a queue in place of it and no L_C.
var emaMemory = &Method{
	Name:      EMAMemory,
	Title:     "InfoNCE + teacher's graph of the set",
	Regimes:   []Regime{Unsupervised},
	OnRequest: true,
	Settings:  viewSettings,
	new: func(s Setup) (*Learner, error) {
		l, err := newTaught(s)
		if err != nil {
			return nil, err
		}
		m := newRemembering(s.Backend, l)
		return &Learner{Learner: m, Model: l.model}, nil
	},
}

// remembering is a student of a teacher with a memory.
type remembering struct {
	*taught
	memory *tensor.Tensor // [N×width], unit rows
}

func newRemembering(be backend.Backend, l *taught) *remembering {
	r := &remembering{taught: l, memory: be.Alloc(len(l.graphs), l.model.Encoder.Width())}
	be.Fill(r.memory, 0)
	l.term = r.setGraph
	return r
}

// Begin implements [train.Learner]: before the first epoch it fills the memory, in
// batches of the set's order.
func (r *remembering) Begin(ctx context.Context, epoch int) (err error) {
	if epoch > 0 {
		return nil
	}
	defer backend.Recover(&err)
	t := autodiff.NewInference(r.be)
	defer t.Reset()
	for lo := 0; lo < len(r.graphs) && ctx.Err() == nil; lo += r.Loader.Batch {
		samples := make([]int, min(r.Loader.Batch, len(r.graphs)-lo))
		for i := range samples {
			samples[i] = lo + i
		}
		r.remember(r.teach(t, r.raw.of(r.graphs, samples, augment.Identity{})), samples)
		t.Reset()
	}
	return ctx.Err()
}

// remember writes the rows of t to those of the memory that samples name.
func (r *remembering) remember(t *autodiff.Var, samples []int) {
	for i, n := range samples {
		r.be.CopyBlock(r.memory, n, 0, t.Value(), i, 0, 1, t.Cols())
	}
}

// setGraph is the term of [emaMemory].
func (r *remembering) setGraph(u1, u2, t *autodiff.Var, samples []int) *autodiff.Var {
	r.remember(t, samples)
	var outside []int32
	inBatch := make([]bool, r.memory.Rows)
	for _, n := range samples {
		inBatch[n] = true
	}
	for n := range inBatch {
		if !inBatch[n] {
			outside = append(outside, int32(n))
		}
	}
	c := candidates{own: t}
	if len(outside) > 0 {
		c.further = t.Tape().Const(r.memory).GatherRows(outside)
	}
	w := newWalk(t, c)
	return w.divergence(u1, c, w.mean).Add(w.divergence(u2, c, w.mean))
}

func (r *remembering) Buffers() []*nn.Buffer {
	return append(r.taught.Buffers(), nn.BufferOf(r.be, "teacher.memory", r.memory))
}

func (r *remembering) State() (nn.Module, any) {
	return optim.Checkpoint{Module: r, Optimizer: r.Adam}, &r.Values
}

func (r *remembering) Close() error {
	r.be.Free(r.memory)
	return nil
}
