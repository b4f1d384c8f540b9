package eval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/gnn/kernel"
)

// kernels is what the kernel machines of all workers read. Points are numbered by class
// here, so that every training part in the order of its classes is an ascending
// selection of them.
type kernels struct {
	place []int // of a point
	// inputs are kernel matrices, or the one matrix of squared distances of data.
	inputs []*kernel.Matrix
	data   Data // for the RBF kernel; zero else
}

func (s *kernels) machine() machine { return &kernelMachine{kernels: s} }

// classOrder returns the points sorted by class, and the place of each.
func classOrder(y []int) (points, place []int) {
	points, place = newPart(y, upTo(len(y))).points, make([]int, len(y))
	for p, i := range points {
		place[i] = p
	}
	return points, place
}

// precomputed holds given kernels; see [EvaluateKernels].
func precomputed(inputs []*kernel.Matrix, y []int) *kernels {
	points, place := classOrder(y)
	s := &kernels{place: place, inputs: inputs}
	if slices.IsSorted(points) {
		return s
	}
	s.inputs = nil
	for _, k := range inputs {
		m := kernel.NewMatrix(len(y))
		for a, i := range points {
			row := m.Row(a)
			for b, j := range points[a:] {
				row[b] = k.At(i, j)
			}
		}
		s.inputs = append(s.inputs, m)
	}
	return s
}

// maxPoints bounds the data sets of kernel machines: 20000 points take 1.6 GB of
// distances and as much again for the kernel matrix of each worker.
const maxPoints = 20000

// rbf computes the squared distances of data.
func rbf(ctx context.Context, data Data, workers int) (*kernels, error) {
	if n := len(data.Y); n > maxPoints {
		return nil, fmt.Errorf("eval: %d points; a kernel machine keeps all their pairs in memory and takes up to %d", n, maxPoints)
	}
	points, place := classOrder(data.Y)
	d2, err := squaredDistances(ctx, data, points, workers)
	return &kernels{place, []*kernel.Matrix{d2}, data}, err
}

// squaredDistances returns ‖x_i − x_j‖² of all pairs of points, in their order.
//
// The difference is squared and summed, not expanded to ‖x_i‖²+‖x_j‖²−2x_i·x_j:
// equal rows then have distance exactly 0, and nothing is lost to cancellation
// when the mean is large against the spread, as it is for sum-pooled graphs.
// Every entry is one sum in the order of the features.
func squaredDistances(ctx context.Context, data Data, points []int, workers int) (*kernel.Matrix, error) {
	n := len(points)
	t := kernel.NewMatrix(n)
	columns := make([]float64, n*data.Dim) // the transpose of x
	for a, i := range points {
		for k, v := range data.row(i) {
			columns[k*n+a] = v
		}
	}
	err := parallel(ctx, n, workers, func(_, a int) error {
		row := t.Row(a)
		for k, v := range data.row(points[a]) {
			column := columns[k*n+a : (k+1)*n]
			for b := range row[:len(column)] {
				e := v - column[b]
				row[b] += float64(e * e) // not fused, for the same bits everywhere
			}
		}
		return nil
	})
	return t, err
}

// kernelMachine is a two-class machine for every pair of classes, and a vote.
type kernelMachine struct {
	*kernels
	k     []float32 // kernel matrix of a training part sorted by class
	diag  []float64 // its diagonal before rounding; nil for ones
	pair  []float32 // its part for two classes
	cross []float64 // kernel of training points against test points
	row   []float64 // scratch
	s     smo
}

func (m *kernelMachine) predict(ctx context.Context, input int, p part, test []int, cs []float64) ([][]int, error) {
	places := func(points []int) []int {
		out := make([]int, len(points))
		for t, i := range points {
			out[t] = m.place[i]
		}
		return out
	}
	gamma := 0.0
	if m.data.X != nil {
		var err error
		if gamma, err = scaleGamma(m.data, p.points); err != nil {
			return nil, err
		}
	}
	m.load(m.inputs[input], places(p.points), places(test), gamma)
	solutions, err := m.fit(ctx, p.start, cs)
	if err != nil {
		return nil, err
	}
	predicted := make([][]int, len(cs))
	for c, s := range solutions {
		predicted[c] = m.vote(s, len(p.class), len(test))
	}
	return predicted, nil
}

// load fills the kernel matrix of the training points, which ascend, and that of them
// against the test points: elements of k, or exp(−γ·k) if γ > 0.
//
// The first is rounded to float32 because libsvm's is (its Qfloat): the solver then
// walks the same path, and the matrix takes half the memory. The second is not:
// libsvm's decision values are sums of unrounded kernels.
func (m *kernelMachine) load(k *kernel.Matrix, train, test []int, gamma float64) {
	n, tests := len(train), len(test)
	m.k, m.row, m.cross = growMatrix(m.k, n*n), grow(m.row, n), grow(m.cross, n*tests)
	diag, ones := make([]float64, n), true
	for a, i := range train {
		row, cross := m.row[:n-a], m.cross[a*tests:(a+1)*tests]
		of := k.Row(i)
		for b, j := range train[a:] {
			row[b] = of[j-i]
		}
		for t, j := range test {
			if j > i {
				cross[t] = of[j-i]
			} else {
				cross[t] = k.At(j, i)
			}
		}
		if gamma > 0 {
			expNeg(row, -gamma)
			expNeg(cross, -gamma)
		}
		for b, v := range row {
			m.k[a*n+a+b] = float32(v)
		}
		diag[a] = row[0]
		ones = ones && row[0] == 1
	}
	if m.diag = diag; ones {
		m.diag = nil
	}
	mirror(m.k, n)
}

// mirror copies the upper triangle of the row-major n×n matrix k to the lower one.
func mirror(k []float32, n int) {
	const tile = 64
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
// all the entries of the rows idx; 1 if they are all equal.
func scaleGamma(data Data, idx []int) (float64, error) {
	var mean float64
	for _, i := range idx {
		var s float64
		for _, v := range data.row(i) {
			s += v
		}
		mean += s
	}
	count := float64(len(idx) * data.Dim)
	mean /= count
	var ss float64
	for _, i := range idx {
		var s float64
		for _, v := range data.row(i) {
			e := v - mean
			s += float64(e * e)
		}
		ss += s
	}
	if ss == 0 {
		return 1, nil
	}
	gamma := 1 / (float64(data.Dim) * (ss / count))
	if math.IsInf(gamma, 0) || gamma == 0 {
		return 0, fmt.Errorf("eval: variance %g of the features has no usable inverse for gamma", ss/count)
	}
	return gamma, nil
}
