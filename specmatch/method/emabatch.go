package method

import "github.com/specmatch/specmatch/autodiff"

// emaBatch is InfoNCE with a teacher whose graph of similarities over the batch both
// views are to have. With P(v, τ) the matrix of rows softmax_{j≠i}(v_i·v_j/τ), which
// is the random walk on the similarity graph,
//
//	L_T = 1/B Σ_i KL(P(t, 0.1)_i ‖ P(u¹, 0.2)_i) + KL(P(t, 0.1)_i ‖ P(u², 0.2)_i).
//
// Unlike SpecMatch-CL's L_G it cannot be lowered by flattening the similarities, and
// its target is not the other view. The term is that of CO2 (Wei et al., ICLR
// 2021) and SEED (Fang et al., ICLR 2021) over a batch; see taught for the teacher.
var emaBatch = &Method{
	Name:      EMABatch,
	Title:     "InfoNCE + teacher's graph of the batch",
	Regimes:   []Regime{Unsupervised},
	OnRequest: true,
	Settings:  viewSettings,
	new:       func(s Setup) (*Learner, error) { return taughtBy(s, batchGraph) },
}

// batchGraph is the term of [emaBatch].
func batchGraph(u1, u2, t *autodiff.Var, _ []int) *autodiff.Var {
	w := newWalk(t, candidates{own: t})
	view := func(u *autodiff.Var) *autodiff.Var {
		c := candidates{own: u}
		return w.divergence(u, c, w.step(c))
	}
	return view(u1).Add(view(u2))
}
