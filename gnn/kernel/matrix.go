package kernel

import (
	"fmt"
	"math"
)

// Sparse is a matrix of features [N×Width], one row per graph.
type Sparse struct {
	Width int
	// Ptr has N+1 elements. Row i has Value[k] in column Index[k] for k in
	// Ptr[i]…Ptr[i+1]-1; the columns of a row ascend.
	Ptr   []int
	Index []int32
	Value []float64
	// Own, if not nil, is what a row's squared norm has beyond its values: the
	// squares of features that no other row has and [Sparse.Compact] left out.
	Own []float64
}

// Rows returns the number of rows N.
func (m *Sparse) Rows() int { return len(m.Ptr) - 1 }

// Row returns the columns and values of row i. The slices are the matrix's own.
func (m *Sparse) Row(i int) ([]int32, []float64) {
	return m.Index[m.Ptr[i]:m.Ptr[i+1]], m.Value[m.Ptr[i]:m.Ptr[i+1]]
}

// Join returns the matrices side by side. It panics if they differ in their number
// of rows.
func Join(parts ...*Sparse) *Sparse {
	m := &Sparse{Ptr: make([]int, parts[0].Rows()+1)}
	for _, p := range parts {
		if p.Rows() != m.Rows() {
			panic(fmt.Sprintf("kernel: Join: %d rows beside %d", p.Rows(), m.Rows()))
		}
	}
	for i := range m.Rows() {
		base := 0
		for _, p := range parts {
			index, value := p.Row(i)
			for _, c := range index {
				m.Index = append(m.Index, int32(base)+c)
			}
			m.Value = append(m.Value, value...)
			base += p.Width
		}
		m.Width = base
		m.Ptr[i+1] = len(m.Index)
	}
	return m
}

// Unary returns the matrix of zeros and ones in which n columns stand for a count of n.
// The product of two rows is then Σ min of their counts: the optimal assignment kernel
// as features. Values must be whole numbers.
func (m *Sparse) Unary() *Sparse {
	// Every column becomes as many as its largest count.
	largest := make([]int, m.Width)
	for k, c := range m.Index {
		largest[c] = max(largest[c], int(m.Value[k]))
	}
	start := make([]int32, m.Width)
	u := &Sparse{Ptr: make([]int, len(m.Ptr))}
	for c, n := range largest {
		start[c] = int32(u.Width)
		u.Width += n
	}
	for i := range m.Rows() {
		index, value := m.Row(i)
		for k, c := range index {
			for j := range int32(value[k]) {
				u.Index = append(u.Index, start[c]+j)
				u.Value = append(u.Value, 1)
			}
		}
		u.Ptr[i+1] = len(u.Index)
	}
	return u
}

// Compact returns the matrix without the columns that only one row has; Own takes
// their squares. Products of two rows and norms do not change.
func (m *Sparse) Compact() *Sparse {
	rows := make([]int32, m.Width)
	for _, c := range m.Index {
		rows[c]++
	}
	s := &Sparse{Ptr: make([]int, len(m.Ptr)), Own: make([]float64, m.Rows())}
	copy(s.Own, m.Own)
	column := make([]int32, m.Width)
	for c, n := range rows {
		column[c] = int32(s.Width)
		if n > 1 {
			s.Width++
		}
	}
	for i := range m.Rows() {
		index, value := m.Row(i)
		for k, c := range index {
			if rows[c] > 1 {
				s.Index = append(s.Index, column[c])
				s.Value = append(s.Value, value[k])
			} else {
				s.Own[i] += float64(value[k] * value[k])
			}
		}
		s.Ptr[i+1] = len(s.Index)
	}
	return s
}

// SquaredNorm returns ‖x_i‖² of row i, with what is in Own.
func (m *Sparse) SquaredNorm(i int) float64 {
	_, value := m.Row(i)
	var sum float64
	for _, v := range value {
		sum += float64(v * v)
	}
	if m.Own != nil {
		sum += m.Own[i]
	}
	return sum
}

// Normalize scales every row to norm 1; a row of zeros stays one.
func (m *Sparse) Normalize() {
	for i := range m.Rows() {
		square := m.SquaredNorm(i)
		if square == 0 {
			continue
		}
		_, value := m.Row(i)
		norm := math.Sqrt(square)
		for k := range value {
			value[k] /= norm
		}
		if m.Own != nil {
			m.Own[i] /= square
		}
	}
}

// Gram returns the matrix of the products of all pairs of rows.
func (m *Sparse) Gram() *Matrix {
	return m.pairs(false)
}

// Intersection returns the matrix of Σ_c min(x_ic, x_jc) for all pairs of rows,
// whose values must not be negative.
func (m *Sparse) Intersection() *Matrix {
	return m.pairs(true)
}

// pairs returns Σ_c x_ic·x_jc or, if smaller, Σ_c min(x_ic, x_jc), over the columns that both rows
// have.
func (m *Sparse) pairs(smaller bool) *Matrix {
	// The transpose: the rows that have a column, ascending.
	ptr := make([]int, m.Width+1)
	for _, c := range m.Index {
		ptr[c+1]++
	}
	for c := range m.Width {
		ptr[c+1] += ptr[c]
	}
	row := make([]int32, len(m.Index))
	value := make([]float64, len(m.Index))
	next := make([]int, m.Width)
	copy(next, ptr)
	for i := range m.Rows() {
		for k := m.Ptr[i]; k < m.Ptr[i+1]; k++ {
			place := next[m.Index[k]]
			row[place] = int32(i)
			value[place] = m.Value[k]
			next[m.Index[k]]++
		}
	}
	// Row i meets the rows j ≥ i of each of its columns. next[c] is where they begin.
	copy(next, ptr)
	out := NewMatrix(m.Rows())
	for i := range m.Rows() {
		sums := out.Row(i)
		index, values := m.Row(i)
		for k, c := range index {
			lo, hi := next[c], ptr[c+1]
			next[c]++
			v := values[k]
			column := value[lo:hi]
			if smaller {
				for q, j := range row[lo:hi] {
					sums[int(j)-i] += min(v, column[q])
				}
			} else {
				for q, j := range row[lo:hi] {
					sums[int(j)-i] += float64(v * column[q])
				}
			}
		}
		if m.Own != nil {
			sums[0] += m.Own[i]
		}
	}
	return out
}

// Matrix is a symmetric matrix [N×N], of which the upper triangle is stored.
type Matrix struct {
	n int
	v []float64
}

// NewMatrix returns the n×n matrix of zeros.
func NewMatrix(n int) *Matrix { return &Matrix{n, make([]float64, n*(n+1)/2)} }

// Size returns N.
func (m *Matrix) Size() int { return m.n }

// Row returns the elements (i,i), (i,i+1), …, (i,N-1). The slice is the matrix's own.
func (m *Matrix) Row(i int) []float64 {
	lo := i * (2*m.n - i + 1) / 2
	return m.v[lo : lo+m.n-i]
}

// At returns the element (i,j).
func (m *Matrix) At(i, j int) float64 {
	return m.Row(min(i, j))[max(i, j)-min(i, j)]
}

// Normalize divides every element (i,j) by √((i,i)·(j,j)), so that it becomes the
// cosine of the two graphs in the space of the kernel. Elements of a graph whose
// diagonal is not positive become 0. A graph's divisor depends on no other graph, so
// nothing leaks between training and test.
func (m *Matrix) Normalize() {
	scale := make([]float64, m.n)
	for i := range scale {
		if d := m.Row(i)[0]; d > 0 {
			scale[i] = 1 / math.Sqrt(d)
		}
	}
	for i, s := range scale {
		row := m.Row(i)
		for k := range row {
			row[k] *= s * scale[i+k]
		}
		if s > 0 {
			row[0] = 1
		}
	}
}
