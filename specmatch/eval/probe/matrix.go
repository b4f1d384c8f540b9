package probe

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/specmatch/specmatch/backend/cpu/simd"
)

// matrix is vectors [n×dim]: all numbers, or those that are not 0.
type matrix struct {
	n, dim int
	dense  []float32
	// The numbers of row i are val[ptr[i]:ptr[i+1]], in the columns col.
	ptr  []int
	col  []int32
	val  []float32
	blas simd.BLAS
}

// newMatrix returns some rows of x [N×dim]. They are kept without zeros where that is an eighth of
// the numbers or less, as it is of fingerprints.
func newMatrix(x []float32, dim int, rows []int) *matrix {
	m := &matrix{n: len(rows), dim: dim}
	filled := 0
	for _, i := range rows {
		for _, v := range x[i*dim : (i+1)*dim] {
			if v != 0 {
				filled++
			}
		}
	}
	if filled > m.n*dim/8 {
		m.dense = make([]float32, 0, m.n*dim)
		for _, i := range rows {
			m.dense = append(m.dense, x[i*dim:(i+1)*dim]...)
		}
		return m
	}
	m.ptr = append(make([]int, 0, m.n+1), 0)
	m.col = make([]int32, 0, filled)
	m.val = make([]float32, 0, filled)
	for _, i := range rows {
		for k, v := range x[i*dim : (i+1)*dim] {
			if v != 0 {
				m.col = append(m.col, int32(k))
				m.val = append(m.val, v)
			}
		}
		m.ptr = append(m.ptr, len(m.val))
	}
	return m
}

// times sets y [(hi-lo)×tasks] to the product of rows lo to hi with w [dim×tasks].
func (m *matrix) times(lo, hi int, w []float32, tasks int, y []float32) {
	switch {
	case hi == lo:
	case m.dense == nil:
		clear(y)
		for i := lo; i < hi; i++ {
			out := y[(i-lo)*tasks : (i-lo+1)*tasks]
			for e := m.ptr[i]; e < m.ptr[i+1]; e++ {
				axpy(m.val[e], w[int(m.col[e])*tasks:][:tasks], out)
			}
		}
	case tasks == 1: // which the kernel of products would pad to 32
		x := blas32.General{
			Rows:   hi - lo,
			Cols:   m.dim,
			Stride: m.dim,
			Data:   m.dense[lo*m.dim:],
		}
		blas32.Gemv(
			blas.NoTrans,
			1,
			x,
			blas32.Vector{N: m.dim, Inc: 1, Data: w},
			0,
			blas32.Vector{N: hi - lo, Inc: 1, Data: y},
		)
	default:
		m.blas.Sgemm(
			blas.NoTrans, blas.NoTrans, hi-lo, tasks, m.dim, 1, m.dense[lo*m.dim:], m.dim, w, tasks,
			0, y, tasks,
		)
	}
}

// back adds to g [dim×tasks] the product of the transpose of rows lo to hi with s [(hi-lo)×tasks].
func (m *matrix) back(lo, hi int, s []float32, tasks int, g []float32) {
	switch {
	case hi == lo:
	case m.dense == nil:
		for i := lo; i < hi; i++ {
			slopes := s[(i-lo)*tasks : (i-lo+1)*tasks]
			for e := m.ptr[i]; e < m.ptr[i+1]; e++ {
				axpy(m.val[e], slopes, g[int(m.col[e])*tasks:][:tasks])
			}
		}
	case tasks == 1:
		x := blas32.General{
			Rows:   hi - lo,
			Cols:   m.dim,
			Stride: m.dim,
			Data:   m.dense[lo*m.dim:],
		}
		blas32.Gemv(
			blas.Trans,
			1,
			x,
			blas32.Vector{N: hi - lo, Inc: 1, Data: s},
			1,
			blas32.Vector{N: m.dim, Inc: 1, Data: g},
		)
	default:
		m.blas.Sgemm(blas.Trans, blas.NoTrans, m.dim, tasks, hi-lo, 1, m.dense[lo*m.dim:], m.dim, s, tasks, 1, g, tasks)
	}
}

func axpy(a float32, x, y []float32) {
	if len(x) == 1 {
		y[0] += a * x[0]
		return
	}
	blas32.Axpy(a, blas32.Vector{N: len(x), Inc: 1, Data: x}, blas32.Vector{N: len(y), Inc: 1, Data: y})
}

// squares returns the sum of the squares of each row, and the mean of those of each column.
func (m *matrix) squares() (rows []float32, columns []float64) {
	rows = make([]float32, m.n)
	columns = make([]float64, m.dim)
	for i := range m.n {
		m.each(i, func(k int, v float32) {
			rows[i] += v * v
			columns[k] += float64(v) * float64(v) / float64(m.n)
		})
	}
	return rows, columns
}

func (m *matrix) each(i int, f func(column int, v float32)) {
	if m.dense != nil {
		for k, v := range m.dense[i*m.dim : (i+1)*m.dim] {
			f(k, v)
		}
		return
	}
	for e := m.ptr[i]; e < m.ptr[i+1]; e++ {
		f(int(m.col[e]), m.val[e])
	}
}
