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
	points = newPart(y, upTo(len(y))).points
	place = make([]int, len(y))
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

func rbf(ctx context.Context, data Data, workers int) (*kernels, error) {
	if n := len(data.Y); n > maxPoints {
		return nil, fmt.Errorf(
			"eval: %d points; a kernel machine keeps all their pairs in memory and takes up to %d",
			n, maxPoints,
		)
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
	const block = 16
	n := len(points)
	t := kernel.NewMatrix(n)
	err := parallel(ctx, (n+block-1)/block, workers, func(_, task int) error {
		first := task * block
		end := min(first+block, n)
		columns := make([]float64, data.Dim*block)
		for b, i := range points[first:end] {
			for k, v := range data.row(i) {
				columns[k*block+b] = v
			}
		}
		var sums [block]float64
		for a, i := range points[:end] {
			simd.SquaredDistances(&sums, columns, data.row(i))
			b := max(first, a)
			copy(t.Row(a)[b-a:], sums[b-first:end-first])
		}
		return nil
	})
	return t, err
}

// kernelMachine is a two-class machine for every pair of classes, and a vote.
type kernelMachine struct {
	*kernels
	k      []float32 // kernel matrix of a training part sorted by class
	diag   []float64 // its diagonal before rounding; nil for ones
	pair   []float32 // its part for two classes
	cross  []float64 // kernel of training points against test points
	row    []float64 // scratch
	single []float32 // scratch
	s      smo
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
		gamma, err = scaleGamma(m.data, p.points)
		if err != nil {
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
	n := len(train)
	tests := len(test)
	m.k = growMatrix(m.k, n*n)
	m.row = grow(m.row, n)
	m.cross = grow(m.cross, n*tests)
	diag := make([]float64, n)
	ones := true
	for a, i := range train {
		row := m.row[:n-a]
		cross := m.cross[a*tests : (a+1)*tests]
		kernelRow := k.Row(i)
		for b, j := range train[a:] {
			row[b] = kernelRow[j-i]
		}
		for t, j := range test {
			if j > i {
				cross[t] = kernelRow[j-i]
			} else {
				cross[t] = k.At(j, i)
			}
		}
		single := m.k[a*n+a:][:n-a]
		if gamma > 0 {
			simd.ExpScaled(row, single, -gamma)
			m.single = grow(m.single, tests)
			simd.ExpScaled(cross, m.single, -gamma)
		} else {
			for b, v := range row {
				single[b] = float32(v)
			}
		}
		diag[a] = row[0]
		ones = ones && row[0] == 1
	}
	m.diag = diag
	if ones {
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
		return 0, fmt.Errorf("eval: variance %g of the features has no usable inverse for gamma",
			ss/count)
	}
	return gamma, nil
}
