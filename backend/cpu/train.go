package cpu

import (
	"math"
	"math/bits"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
)

// elementStep is the distance between the generator's states for two elements.
const elementStep = 0xd1342543de82ef95

// DropoutMask computes what [backend.DropoutKeep] defines. Everything that does not
// depend on the element is outside the loop.
func (e *engine[T]) DropoutMask(
	dst *tensor.Tensor, keep float64, seed uint64, step *tensor.Tensor,
) {
	backend.CheckDropout(dst, keep, step)
	t := &e.task
	t.dst = e.data(dst)
	t.alpha = T(1 / keep)
	t.seed = seed ^ mix(uint64(e.data(step)[0])+0x9e3779b97f4a7c15)
	t.limit = uint64(math.Ceil(keep * (1 << 53)))
	e.pool.do((*dropoutTask[T])(t), len(t.dst), costly)
}

type dropoutTask[T float] args[T]

func (t *dropoutTask[T]) run(lo, hi int) {
	values := [2]T{0, t.alpha}
	seed := t.seed
	limit := t.limit
	x := uint64(lo)*elementStep + 1
	dst := t.dst[lo:hi]
	for i := range dst {
		_, keep := bits.Sub64(mix(seed^mix(x))>>11, limit, 0) // 1 if below
		dst[i] = values[keep&1]
		x += elementStep
	}
}

// mix is the hash function of [backend.DropoutKeep].
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (e *engine[T]) Adam(
	p, g, m, v, rate, step *tensor.Tensor, c backend.AdamConfig,
) {
	backend.CheckAdam(p, g, m, v, rate, step)
	if math.IsNaN(float64(e.data(step)[0])) {
		return
	}
	t := &e.task
	t.dst = e.data(p)
	t.a = e.data(g)
	t.c = e.data(m)
	t.d = e.data(v)
	t.adam = simd.AdamStep{
		Beta1:       c.Beta1,
		Beta2:       c.Beta2,
		Eps:         c.Eps,
		WeightDecay: c.WeightDecay,
		Rate:        float64(e.data(rate)[0]),
		Step:        int(e.data(step)[0]),
	}
	e.pool.do((*adamTask[T])(t), len(t.dst), costly)
}

type adamTask[T float] args[T]

func (t *adamTask[T]) run(lo, hi int) {
	simd.Adam(t.dst[lo:hi], t.a[lo:hi], t.c[lo:hi], t.d[lo:hi], t.adam)
}
