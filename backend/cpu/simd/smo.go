package simd

import "math"

// smoArgs are the arguments of the solver's kernels, for n elements, a positive
// number of whole vectors. first is where the largest value starts from; best and
// place are what each lane found, place -1 if nothing.
type smoArgs struct {
	f, mask *float64
	a, b    *float32
	n       int
	x, y    float64
	first   float64
	best    [8]float64
	place   [8]int64
}

// fold returns the largest value of the first lanes and its last place.
func (p *smoArgs) fold(lanes int) (best float64, at int) {
	best, at = p.first, -1
	for l := range lanes {
		if p.place[l] >= 0 && (p.best[l] > best || p.best[l] == best && int(p.place[l]) > at) {
			best, at = p.best[l], int(p.place[l])
		}
	}
	return best, at
}

// SubtractArgmax computes f_t -= ka_t·a + kb_t·b and returns the largest
// f_t + mask_t and its last place, −1 if all are -Inf. It is the update of
// sequential minimal optimisation: mask is 0 where a variable may be chosen next
// and -Inf elsewhere. Every operation is rounded, the same on all machines. It
// panics if the lengths differ.
func SubtractArgmax(f, mask []float64, ka, kb []float32, a, b float64) (best float64, at int) {
	if len(mask) != len(f) || len(ka) != len(f) || len(kb) != len(f) {
		badLength("SubtractArgmax", "all equal", len(f), len(mask), len(ka), len(kb))
	}
	best, at = -math.MaxFloat64, -1
	whole := 0
	if lanes := smoLanes(); lanes > 0 && len(f) >= lanes {
		whole = len(f) / lanes * lanes
		p := smoArgs{n: whole, f: &f[0], mask: &mask[0], a: &ka[0], b: &kb[0], x: a, y: b, first: best}
		smoUpdate(&p)
		best, at = p.fold(lanes)
	}
	for t := whole; t < len(f); t++ {
		f[t] -= float64(float64(ka[t])*a) + float64(float64(kb[t])*b)
		if v := f[t] + mask[t]; v >= best {
			best, at = v, t
		}
	}
	return best, at
}

// ArgmaxGain returns the last place of the largest (top − f_t − mask_t)²/(2 − 2k_t)
// among those with top − f_t − mask_t > 0, −1 if there is none; a denominator that
// is not positive counts as tiny. It is the choice of the second variable of
// sequential minimal optimisation for a kernel with k(x, x) = 1: mask is 0 where a
// variable may be chosen and +Inf elsewhere. Every operation is rounded, the same
// on all machines. It panics if the lengths differ.
func ArgmaxGain(f, mask []float64, k []float32, top, tiny float64) int {
	if len(mask) != len(f) || len(k) != len(f) {
		badLength("ArgmaxGain", "all equal", len(f), len(mask), len(k))
	}
	best, at := 0.0, -1
	whole := 0
	if lanes := smoLanes(); lanes > 0 && len(f) >= lanes {
		whole = len(f) / lanes * lanes
		p := smoArgs{n: whole, f: &f[0], mask: &mask[0], a: &k[0], x: top, y: tiny}
		smoGain(&p)
		best, at = p.fold(lanes)
	}
	for t := whole; t < len(f); t++ {
		gap := top - (f[t] + mask[t])
		quad := 2 - 2*float64(k[t])
		if quad <= 0 {
			quad = tiny
		}
		if gap > 0 {
			if gain := gap * gap / quad; gain >= best {
				best, at = gain, t
			}
		}
	}
	return at
}
