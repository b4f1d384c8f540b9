package simd

import "math"

// smoArgs are the arguments of the solver's kernels, for n elements, a positive
// number of whole vectors. A kernel that looks for the largest value takes the value to
// reach from best. It stores the largest value there, and in place its last index plus
// 1, or 0 if no value reaches best.
type smoArgs struct {
	f, mask, g *float64
	a, b       *float32
	n          int
	x, y       float64
	best       float64
	place      int
}

// SubtractArgmax computes f_t -= ka_t·a + kb_t·b and returns the largest
// f_t + mask_t and its last index, −1 if all are -Inf. It is the update of
// sequential minimal optimisation: mask is 0 where a variable may be chosen next
// and -Inf elsewhere. Every operation is rounded in the same way on all machines. It
// panics if the lengths differ.
func SubtractArgmax(
	f, mask []float64, ka, kb []float32, a, b float64,
) (best float64, index int) {
	if len(mask) != len(f) || len(ka) != len(f) || len(kb) != len(f) {
		badLength(
			"SubtractArgmax", "all equal", len(f), len(mask), len(ka), len(kb),
		)
	}
	best = -math.MaxFloat64
	index = -1
	whole := 0
	if lanes := smoLanes(); lanes > 0 && len(f) >= lanes {
		whole = len(f) / lanes * lanes
		p := smoArgs{
			n:    whole,
			f:    &f[0],
			mask: &mask[0],
			a:    &ka[0],
			b:    &kb[0],
			x:    a,
			y:    b,
			best: best,
		}
		smoUpdate(&p)
		best = p.best
		index = p.place - 1
	}
	for t := whole; t < len(f); t++ {
		f[t] -= float64(float64(ka[t])*a) + float64(float64(kb[t])*b)
		if v := f[t] + mask[t]; v >= best {
			best = v
			index = t
		}
	}
	return best, index
}

// ArgmaxGain returns the last index of the largest (top − f_t)²/(mask_t − 2k_t) among
// those with top − f_t > 0, −1 if there is none above 0. A denominator below tiny counts
// as tiny. This chooses the second variable in sequential minimal optimisation for a
// kernel with k(x, x) = 1: mask is 2 where a variable may be chosen and +Inf elsewhere.
// Every operation is rounded in the same way on all machines. It panics if the lengths
// differ.
func ArgmaxGain(f, mask []float64, k []float32, top, tiny float64) int {
	if len(mask) != len(f) || len(k) != len(f) {
		badLength("ArgmaxGain", "all equal", len(f), len(mask), len(k))
	}
	best := math.SmallestNonzeroFloat64
	index := -1
	whole := 0
	if lanes := smoLanes(); lanes > 0 && len(f) >= lanes {
		whole = len(f) / lanes * lanes
		p := smoArgs{
			n:    whole,
			f:    &f[0],
			mask: &mask[0],
			a:    &k[0],
			x:    top,
			y:    tiny,
			best: best,
		}
		smoGain(&p)
		best = p.best
		index = p.place - 1
	}
	for t := whole; t < len(f); t++ {
		if gap := top - f[t]; gap > 0 {
			// The factor 2 rounds nothing, fused or not.
			gain := gap * gap / max(mask[t]-2*float64(k[t]), tiny)
			if gain >= best {
				best = gain
				index = t
			}
		}
	}
	return index
}

// AddRows computes dst_t += ka_t·a, then dst_t += kb_t·b. Every operation is rounded in
// the same way on all machines. It panics if the lengths differ.
func AddRows(dst []float64, ka, kb []float32, a, b float64) {
	if len(ka) != len(dst) || len(kb) != len(dst) {
		badLength("AddRows", "all equal", len(dst), len(ka), len(kb))
	}
	whole := 0
	if lanes := smoLanes(); lanes > 0 && len(dst) >= lanes {
		whole = len(dst) / lanes * lanes
		smoAdd(&smoArgs{
			n: whole,
			f: &dst[0],
			a: &ka[0],
			b: &kb[0],
			x: a,
			y: b,
		})
	}
	for t := whole; t < len(dst); t++ {
		v := dst[t] + float64(float64(ka[t])*a)
		dst[t] = v + float64(float64(kb[t])*b)
	}
}

// ExpScaled replaces every v_i ≥ 0 by exp(s·v_i), s ≤ 0, with an error of about one unit
// in the last place; results below 1e-304 become 0. single_i is set to the result as
// float32. Every operation is rounded in the same way on all machines. It panics if the
// lengths differ.
//
// exp(x) = 2^(n/128)·exp(r) with n the integer nearest to 128x/ln 2: the fraction of n/128
// indexes a table, its integer part is added to the exponent, and |r| < 0.0028 needs five
// terms.
func ExpScaled(v []float64, single []float32, s float64) {
	if len(single) != len(v) {
		badLength("ExpScaled", "equal", len(v), len(single))
	}
	const (
		magic = 3 << 51 // adding it rounds to an integer, found in the low bits
		per   = 128 / math.Ln2
		hi    = 6.93147180369123816490e-01 / 128 // n·hi is exact; hi and lo as in fdlibm's e_exp.c
		lo    = 1.90821492927058770002e-10 / 128
	)
	whole := 0
	if lanes := smoLanes(); lanes > 0 && len(v) >= lanes {
		whole = len(v) / lanes * lanes
		smoExp(&smoArgs{
			n:    whole,
			f:    &v[0],
			mask: &exp2Table[0],
			b:    &single[0],
			x:    s,
		})
	}
	for i, u := range v[whole:] {
		x := float64(s * u) // the conversion keeps arm64 from fusing it below
		e := 0.0
		if x >= -700 {
			m := float64(x*per) + magic
			n := int64(math.Float64bits(m)) - int64(magicBits)
			k := m - magic
			r := x - float64(k*hi) - float64(k*lo)
			terms := 0.5 +
				float64(r*(1.0/6+float64(r*(1.0/24+float64(r*(1.0/120))))))
			p := r + float64(float64(r*r)*terms)
			t := exp2Table[n&127]
			e = math.Float64frombits(
				math.Float64bits(t+float64(t*p)) + uint64(n>>7)<<52,
			)
		}
		v[whole+i] = e
		single[whole+i] = float32(e)
	}
}

var (
	magicBits = math.Float64bits(3 << 51)
	exp2Table = func() (t [128]float64) { // 2^(j/128)
		for j := range t {
			t[j] = math.Exp2(float64(j) / 128)
		}
		return t
	}()
)

// SquaredDistances sets dst_b = Σ_k (x_k − columns_kb)² for the columns of a row-major
// matrix [len(x)×16]. Every operation is rounded in the same way on all machines, and
// every sum is in the order of k. It panics if the matrix has another size.
func SquaredDistances(dst *[16]float64, columns, x []float64) {
	if len(columns) != 16*len(x) {
		badLength(
			"SquaredDistances", "16 times the second", len(columns), len(x),
		)
	}
	if smoLanes() > 0 && len(x) > 0 {
		smoSquares(&smoArgs{
			n:    len(x),
			f:    &dst[0],
			mask: &columns[0],
			g:    &x[0],
		})
		return
	}
	clear(dst[:])
	for k, v := range x {
		for b := range dst {
			e := v - columns[16*k+b]
			dst[b] += float64(e * e)
		}
	}
}

// Prefetch asks the processor to load v into its caches, where there is an instruction
// for this, and does not wait. It is for rows of a large matrix that are about to be read
// in an unpredictable order.
func Prefetch(v []float32) {
	if len(v) > 0 && smoLanes() > 0 {
		prefetch(&smoArgs{a: &v[0], n: len(v)})
	}
}
