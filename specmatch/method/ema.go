package method

import "github.com/specmatch/specmatch/autodiff"

// ema is InfoNCE with a teacher and without a graph: the control for [emaBatch] and
// [emaMemory], which it shares all with but the term. Of B graphs,
//
//	L_T = 1/B Σ_i ‖u¹_i − t_i‖² + ‖u²_i − t_i‖².
//
// The teacher is that of mean teachers (Tarvainen and Valpola, NeurIPS 2017) and the
// term that of BYOL (Grill et al., NeurIPS 2020), beside L_C; see taught for both.
var ema = &Method{
	Name:      EMA,
	Title:     "InfoNCE + teacher",
	Regimes:   []Regime{Unsupervised},
	OnRequest: true,
	Settings:  viewSettings,
	new:       func(s Setup) (*Learner, error) { return taughtBy(s, alignment) },
}

// alignment is the term of [ema].
func alignment(u1, u2, t *autodiff.Var, _ []int) *autodiff.Var {
	return u1.Sub(t).Square().Sum().Add(u2.Sub(t).Square().Sum()).Scale(1 / float64(t.Rows()))
}
