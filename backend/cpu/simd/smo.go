package simd

import "math"

// smoArgs are the arguments of the solver's kernels, for n elements, a positive
// number of whole vectors. A kernel that looks for the largest value is told in best
// what it has to reach, and leaves there the largest and in place 1 more than its last
// place, or 0 if there is none.
type smoArgs struct {
	f, mask *float64
	a, b    *float32
	index   *int32
	n       int
	x, y    float64
	best    float64
	place   int
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
		p := smoArgs{n: whole, f: &f[0], mask: &mask[0], a: &ka[0], b: &kb[0], x: a, y: b, best: best}
		smoUpdate(&p)
		best, at = p.best, p.place-1
	}
	for t := whole; t < len(f); t++ {
		f[t] -= float64(float64(ka[t])*a) + float64(float64(kb[t])*b)
		if v := f[t] + mask[t]; v >= best {
			best, at = v, t
		}
	}
	return best, at
}

// ArgmaxGain returns the last place of the largest (top − f_t)²/(mask_t − 2k_t) among
// those with top − f_t > 0, −1 if there is none above 0; a denominator below tiny counts
// as tiny. It is the choice of the second variable of sequential minimal optimisation
// for a kernel with k(x, x) = 1: mask is 2 where a variable may be chosen and +Inf
// elsewhere. Every operation is rounded, the same on all machines. It panics if the
// lengths differ.
func ArgmaxGain(f, mask []float64, k []float32, top, tiny float64) int {
	if len(mask) != len(f) || len(k) != len(f) {
		badLength("ArgmaxGain", "all equal", len(f), len(mask), len(k))
	}
	best, at := math.SmallestNonzeroFloat64, -1
	whole := 0
	if lanes := smoLanes(); lanes > 0 && len(f) >= lanes {
		whole = len(f) / lanes * lanes
		p := smoArgs{n: whole, f: &f[0], mask: &mask[0], a: &k[0], x: top, y: tiny, best: best}
		smoGain(&p)
		best, at = p.best, p.place-1
	}
	for t := whole; t < len(f); t++ {
		if gap := top - f[t]; gap > 0 {
			// The factor 2 rounds nothing, fused or not.
			if gain := gap * gap / max(mask[t]-2*float64(k[t]), tiny); gain >= best {
				best, at = gain, t
			}
		}
	}
	return at
}

// AddRows computes dst_t += ka_t·a, then dst_t += kb_t·b. Every operation is rounded,
// the same on all machines. It panics if the lengths differ.
func AddRows(dst []float64, ka, kb []float32, a, b float64) {
	if len(ka) != len(dst) || len(kb) != len(dst) {
		badLength("AddRows", "all equal", len(dst), len(ka), len(kb))
	}
	whole := 0
	if lanes := smoLanes(); lanes > 0 && len(dst) >= lanes {
		whole = len(dst) / lanes * lanes
		smoAdd(&smoArgs{n: whole, f: &dst[0], a: &ka[0], b: &kb[0], x: a, y: b})
	}
	for t := whole; t < len(dst); t++ {
		v := dst[t] + float64(float64(ka[t])*a)
		dst[t] = v + float64(float64(kb[t])*b)
	}
}

// Gather sets dst_t = src[index_t]. It panics if the lengths of dst and index differ.
// Indices must be places of src: assembly does not check them.
func Gather(dst, src []float32, index []int32) {
	if len(index) != len(dst) {
		badLength("Gather", "equal", len(dst), len(index))
	}
	whole := 0
	if lanes := 2 * smoLanes(); lanes > 0 && len(dst) >= lanes {
		whole = len(dst) / lanes * lanes
		smoGather(&smoArgs{n: whole, index: &index[0], a: &src[0], b: &dst[0]})
	}
	for t := whole; t < len(dst); t++ {
		dst[t] = src[index[t]]
	}
}

// Prefetch has the processor bring v into its caches, if it can be told to, and waits for
// nothing. It is for rows of a large matrix that are about to be read in an order that
// nothing foresees.
func Prefetch(v []float32) {
	if len(v) > 0 && smoLanes() > 0 {
		prefetch(&smoArgs{a: &v[0], n: len(v)})
	}
}
