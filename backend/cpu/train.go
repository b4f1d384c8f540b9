package cpu

import (
	"math"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// DropoutMask computes what [backend.DropoutKeep] defines, with all that does
// not depend on the element taken out of the loop.
func (e *engine[T]) DropoutMask(dst *tensor.Tensor, keep float64, seed uint64, step *tensor.Tensor) {
	backend.CheckDropout(dst, keep, step)
	t := &e.task
	t.dst, t.alpha = e.data(dst), T(1/keep)
	t.seed = seed
	t.limit = uint64(e.data(step)[0])
	t.beta = T(keep)
	t.keep = keep
	e.pool.do((*dropoutTask[T])(t), len(t.dst), costly)
}

type dropoutTask[T float] args[T]

func (t *dropoutTask[T]) run(lo, hi int) {
	for i := lo; i < hi; i++ {
		var v T
		if backend.DropoutKeep(t.keep, t.seed, t.limit, uint64(i)) {
			v = t.alpha
		}
		t.dst[i] = v
	}
}

// adamArgs are the constants of one Adam update.
type adamArgs[T float] struct {
	decay        T
	beta1, gain1 T // β₁, 1-β₁
	beta2, gain2 T // β₂, 1-β₂
	root2        T // 1/√(1-β₂ᵗ)
	eps          T
	rate         T // rate/(1-β₁ᵗ)
}

func (e *engine[T]) Adam(p, g, m, v, rate, step *tensor.Tensor, c backend.AdamConfig) {
	backend.CheckAdam(p, g, m, v, rate, step)
	n := float64(e.data(step)[0])
	t := &e.task
	t.dst, t.a, t.c, t.d = e.data(p), e.data(g), e.data(m), e.data(v)
	t.adam = adamArgs[T]{
		decay: T(c.WeightDecay),
		beta1: T(c.Beta1), gain1: T(1 - c.Beta1),
		beta2: T(c.Beta2), gain2: T(1 - c.Beta2),
		root2: T(1 / math.Sqrt(1-math.Pow(c.Beta2, n))),
		eps:   T(c.Eps),
		rate:  T(float64(e.data(rate)[0]) / (1 - math.Pow(c.Beta1, n))),
	}
	e.pool.do((*adamTask[T])(t), len(t.dst), costly)
}

type adamTask[T float] args[T]

func (t *adamTask[T]) run(lo, hi int) {
	t.k.adam(t.dst[lo:hi], t.a[lo:hi], t.c[lo:hi], t.d[lo:hi], &t.adam)
}
