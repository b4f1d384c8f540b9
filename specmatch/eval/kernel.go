package eval

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/specmatch/specmatch/backend/cpu/simd"
)

// triangle is the strictly upper triangle of a symmetric n×n matrix with zero
// diagonal, packed by rows: n(n-1)/2 float64, 100 MB for 5000 points. It holds
// the squared distances of one data set, which every kernel matrix of every
// fold is made from.
type triangle struct {
	n int
	v []float64
}

// row returns the elements (i,i+1), (i,i+2), …, (i,n-1).
func (t *triangle) row(i int) []float64 {
	lo := i * (2*t.n - i - 1) / 2
	return t.v[lo : lo+t.n-1-i]
}

// maxPoints bounds the data sets of kernel machines: 20000 points take 1.6 GB of
// distances and as much again for the kernel matrix of each worker.
const maxPoints = 20000

// tile is the side of the blocks in which matrices are walked: two blocks of 64
// rows of a hundred float64 stay in a core's second-level cache.
const tile = 64

// squaredDistances fills t with ‖x_i − x_j‖² for the rows of x [n×d].
//
// The difference is squared and summed, not expanded to ‖x_i‖²+‖x_j‖²−2x_i·x_j:
// equal rows then have distance exactly 0, and nothing is lost to cancellation
// when the mean is large against the spread, as it is for sum-pooled graphs.
// Every entry is one sum in the order of the features, whichever worker and
// whichever block it falls to.
func squaredDistances(ctx context.Context, x []float64, d, workers int) (*triangle, error) {
	n := len(x) / d
	if n > maxPoints {
		return nil, fmt.Errorf("eval: %d points; a kernel machine keeps all their pairs in memory and takes up to %d", n, maxPoints)
	}
	t := &triangle{n: n, v: make([]float64, n*(n-1)/2)}
	blocks := (n + tile - 1) / tile
	err := parallel(ctx, blocks, workers, func(_, b int) error {
		lo, hi := b*tile, min((b+1)*tile, n)
		for jlo := lo; jlo < n; jlo += tile {
			distanceBlock(t, x, d, lo, hi, jlo, min(jlo+tile, n))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// distanceBlock fills the entries of t with row in [ilo,ihi), column in
// [jlo,jhi) that lie above the diagonal.
func distanceBlock(t *triangle, x []float64, d, ilo, ihi, jlo, jhi int) {
	i := ilo
	for ; i+1 < ihi; i += 2 {
		xi := x[i*d : (i+2)*d]
		r0, r1 := t.row(i), t.row(i+1) // column j is at j-i-1 and j-i-2
		j := max(jlo, i+1)
		if j == i+1 { // the pair (i,i+1) has no partner in row i+1
			r0[0] = distance(xi[:d], x[j*d:(j+1)*d])
			j++
		}
		for ; j+3 < jhi; j += 4 {
			distance2x4(r0[j-i-1:j-i+3], r1[j-i-2:j-i+2], xi, x[j*d:(j+4)*d], d)
		}
		for ; j < jhi; j++ {
			r0[j-i-1] = distance(xi[:d], x[j*d:(j+1)*d])
			r1[j-i-2] = distance(xi[d:], x[j*d:(j+1)*d])
		}
	}
	if i < ihi {
		r := t.row(i)
		for j := max(jlo, i+1); j < jhi; j++ {
			r[j-i-1] = distance(x[i*d:(i+1)*d], x[j*d:(j+1)*d])
		}
	}
}

// distance returns Σ_k (a_k − b_k)², summed in order. The explicit conversion
// forbids fusing the product into the sum, so every machine gives the same bits.
func distance(a, b []float64) float64 {
	var s float64
	b = b[:len(a)]
	for k, v := range a {
		e := v - b[k]
		s += float64(e * e)
	}
	return s
}

// distance2x4 writes the distances of two rows of a to four rows of b, all of
// length d, each sum in the order of [distance].
func distance2x4(out0, out1, a, b []float64, d int) {
	a0, a1 := a[:d], a[d:2*d]
	b0, b1, b2, b3 := b[:d], b[d:2*d], b[2*d:3*d], b[3*d:4*d]
	a1 = a1[:len(a0)]
	b0, b1, b2, b3 = b0[:len(a0)], b1[:len(a0)], b2[:len(a0)], b3[:len(a0)]
	var s00, s01, s02, s03, s10, s11, s12, s13 float64
	for k, u := range a0 {
		v := a1[k]
		w := b0[k]
		e, f := u-w, v-w
		s00 += float64(e * e)
		s10 += float64(f * f)
		w = b1[k]
		e, f = u-w, v-w
		s01 += float64(e * e)
		s11 += float64(f * f)
		w = b2[k]
		e, f = u-w, v-w
		s02 += float64(e * e)
		s12 += float64(f * f)
		w = b3[k]
		e, f = u-w, v-w
		s03 += float64(e * e)
		s13 += float64(f * f)
	}
	out0[3], out0[0], out0[1], out0[2] = s03, s00, s01, s02
	out1[3], out1[0], out1[1], out1[2] = s13, s10, s11, s12
}

// rbfTrain writes the kernel matrix K_ab = exp(−γ‖x_a − x_b‖²) of the points
// idx (ascending) into k, row-major with len(idx) columns.
//
// It is rounded to float32 because libsvm's is (its Qfloat): the solver then
// walks the same path, and the matrix takes half the memory.
func rbfTrain(k []float32, d2 *triangle, idx []int, gamma float64, tmp []float64) {
	n := len(idx)
	for a, i := range idx {
		row := k[a*n : (a+1)*n]
		row[a] = 1
		rest := idx[a+1:]
		buf := tmp[:len(rest)]
		gather(buf, d2.row(i), rest, i+1)
		expNeg(buf, -gamma)
		narrow(row[a+1:], buf)
	}
	mirror(k, n)
}

// mirror copies the upper triangle of the row-major n×n matrix k to the lower one.
func mirror(k []float32, n int) {
	for lo := 0; lo < n; lo += tile {
		hi := min(lo+tile, n)
		for a := lo; a < hi; a++ {
			for b := a + 1; b < hi; b++ {
				k[b*n+a] = k[a*n+b]
			}
		}
		if hi < n {
			simd.Transpose(k[hi*n+lo:], n, k[lo*n+hi:], n, hi-lo, n-hi)
		}
	}
}

// rbfCross writes the kernel K_ta = exp(−γ‖x_t − x_a‖²) of the points rows
// against the points cols (both ascending, disjoint) into k, row-major. It stays
// in float64: libsvm's decision values are sums of unrounded kernels.
func rbfCross(k []float64, d2 *triangle, rows, cols []int, gamma float64) {
	split := 0 // cols[:split] < row
	for t, i := range rows {
		row := k[t*len(cols) : (t+1)*len(cols)]
		for split < len(cols) && cols[split] < i {
			split++
		}
		for c, j := range cols[:split] {
			row[c] = d2.v[j*(2*d2.n-j-1)/2+i-j-1]
		}
		gather(row[split:], d2.row(i), cols[split:], i+1)
		expNeg(row, -gamma)
	}
}

// gather sets dst_c = src[idx_c − base].
func gather[T float32 | float64](dst, src []T, idx []int, base int) {
	dst = dst[:len(idx)]
	for c, j := range idx {
		dst[c] = src[j-base]
	}
}

// narrow rounds src to float32.
func narrow(dst []float32, src []float64) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = float32(v)
	}
}

// expNeg replaces every v_i ≥ 0 by exp(s·v_i), s ≤ 0, with an error of about
// one unit in the last place; below 1e-304, by 0.
//
// exp(x) = 2^(n/128)·exp(r) with n the integer nearest to 128x/ln 2: the fraction
// of n/128 indexes a table, its integer part is added to the exponent, and
// |r| < 0.0028 needs five terms. (math.Exp takes twice the time.)
func expNeg(v []float64, s float64) {
	const (
		magic = 3 << 51 // adding it rounds to an integer, found in the low bits
		per   = 128 / math.Ln2
		hi    = 6.93147180369123816490e-01 / 128 // n·hi is exact; hi and lo as in fdlibm's e_exp.c
		lo    = 1.90821492927058770002e-10 / 128
	)
	for i, u := range v {
		x := s * u
		if x < -700 {
			v[i] = 0
			continue
		}
		m := float64(x*per) + magic
		n := int64(math.Float64bits(m)) - int64(magicBits)
		k := m - magic
		r := x - float64(k*hi) - float64(k*lo)
		p := r + float64(r*r)*(0.5+float64(r*(1.0/6+float64(r*(1.0/24+float64(r*(1.0/120)))))))
		t := exp2Table[n&127]
		v[i] = math.Float64frombits(math.Float64bits(t+float64(t*p)) + uint64(n>>7)<<52)
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

// scaleGamma is scikit-learn's gamma="scale": 1/(d·Var), Var the variance of
// all the entries of the rows idx of x; 1 if they are all equal.
func scaleGamma(x []float64, d int, idx []int) (float64, error) {
	var mean float64
	for _, i := range idx {
		var s float64
		for _, v := range x[i*d : (i+1)*d] {
			s += v
		}
		mean += s
	}
	count := float64(len(idx) * d)
	mean /= count
	var ss float64
	for _, i := range idx {
		var s float64
		for _, v := range x[i*d : (i+1)*d] {
			e := v - mean
			s += float64(e * e)
		}
		ss += s
	}
	if ss == 0 {
		return 1, nil
	}
	gamma := 1 / (float64(d) * (ss / count))
	if math.IsInf(gamma, 0) || gamma == 0 {
		return 0, fmt.Errorf("eval: variance %g of the features has no usable inverse for gamma", ss/count)
	}
	return gamma, nil
}

// parallel calls f(worker, task) for every task in 0..tasks-1 on at most
// workers goroutines and returns the error of the lowest failing task. Tasks
// start in order; after an error, or when ctx is done, no further one starts.
func parallel(ctx context.Context, tasks, workers int, f func(worker, task int) error) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = max(1, min(workers, tasks))
	var (
		next   atomic.Int64
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed = tasks
		first  error
	)
	for w := range workers {
		wg.Go(func() {
			for {
				t := int(next.Add(1)) - 1
				if t >= tasks {
					return
				}
				err := ctx.Err()
				if err == nil {
					err = f(w, t)
				}
				if err != nil {
					next.Store(int64(tasks))
					mu.Lock()
					if t < failed {
						failed, first = t, err
					}
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	return first
}
