package graph

import "math"

// Weighted is a sparse matrix in compressed sparse rows: row i has the columns
// Col[Ptr[i]:Ptr[i+1]] and the values of the same range of Val.
type Weighted struct {
	Ptr, Col []int32
	Val      []float64
}

// Normalized returns the matrix of a graph convolution (Kipf and Welling 2017)
// and its transpose,
//
//	Â = D^-½·(A+I)·D^-½,
//
// where A is the adjacency without its self-loops and D_jj = 1 + the number of
// edges that leave node j. For an edge j→i, Â_ij = (D_ii·D_jj)^-½. An edge that
// is listed twice counts twice. For a symmetric batch, both are the same. They
// use memory of the batch and are valid until it is Reset.
//
// PyTorch Geometric's gcn_norm counts the edges that arrive at node j, which is
// another matrix if the batch is not symmetric.
func (b *Batch) Normalized() (a, transpose Weighted) {
	n := b.Nodes()
	ptr, adj := b.Transpose()
	r := resize(&b.degree, n)
	for j := range n {
		degree := 1
		for _, i := range adj[ptr[j]:ptr[j+1]] {
			if int(i) != j {
				degree++
			}
		}
		r[j] = 1 / math.Sqrt(float64(degree))
	}
	b.normal[0].build(b.Ptr, b.Adj, r)
	if !b.Asymmetric {
		return b.normal[0], b.normal[0]
	}
	b.normal[1].build(ptr, adj, r)
	return b.normal[0], b.normal[1]
}

// build sets m to the pattern with a full diagonal and the values r_i·r_j. The diagonal comes
// first in its row, where the row's value is at hand.
func (m *Weighted) build(ptr, adj []int32, r []float64) {
	n := len(r)
	p := resize(&m.Ptr, n+1)
	col := resize(&m.Col, len(adj)+n)
	val := resize(&m.Val, len(adj)+n)
	k := int32(0)
	for i, ri := range r {
		p[i] = k
		col[k] = int32(i)
		val[k] = ri * ri
		k++
		for _, j := range adj[ptr[i]:ptr[i+1]] {
			if int(j) != i {
				col[k] = j
				val[k] = ri * r[j]
				k++
			}
		}
	}
	p[n] = k
	m.Col = col[:k]
	m.Val = val[:k]
}

// transpose sets t to the transpose of m, which has cols columns and may have no values. next is
// memory for cols numbers. Columns of a row come out ascending. Padding behind the rows of m stays behind them.
func (t *Weighted) transpose(m Weighted, cols int, next []int32) {
	ptr := resize(&t.Ptr, cols+1)
	col := resize(&t.Col, len(m.Col))
	val := resize(&t.Val, len(m.Val))
	entries := int32(0)
	if rows := len(m.Ptr) - 1; rows >= 0 { // a batch that has none yet is nil
		entries = m.Ptr[rows]
	}
	clear(col[entries:])
	clear(ptr)
	for _, c := range m.Col[:entries] {
		ptr[c+1]++
	}
	for c := range cols {
		ptr[c+1] += ptr[c]
	}
	copy(next, ptr)
	for r := range len(m.Ptr) - 1 {
		for e := m.Ptr[r]; e < m.Ptr[r+1]; e++ {
			k := next[m.Col[e]]
			next[m.Col[e]]++
			col[k] = int32(r)
			if m.Val != nil {
				val[k] = m.Val[e]
			}
		}
	}
}

// resize returns a slice of n elements of any value in the memory of *s.
func resize[T any](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = make([]T, n+n/2)
	}
	*s = (*s)[:n]
	return *s
}
