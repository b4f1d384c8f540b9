package library

import (
	"context"
	"math"
	"math/rand/v2"
)

const (
	principal      = 2   // coordinates
	directions     = 8   // that are searched together, so that the first two converge fast
	mostIterations = 300 // of the search
	converged      = 1e-9
)

// Projection is a map of a set.
type Projection struct {
	XY [][2]float64 // of each molecule
	// Ratios are the shares of the variance along the axes; for PCA.
	Ratios [2]float64
}

// PCA returns the first two principal components of a set: of its bits, of its counts folded to
// 2,048 columns, or of its vectors. An axis points to where the loading of the largest size is
// positive. It needs memory for the matrix alone, which may be sparse: the components are found by
// orthogonal iteration from random directions, always the same ones.
func PCA(ctx context.Context, s Set) (p Projection, err error) {
	m := newCentred(s)
	rng := rand.New(rand.NewPCG(1, 2))
	basis := make([][]float64, min(directions, m.width))
	for k := range basis {
		basis[k] = make([]float64, m.width)
		for j := range basis[k] {
			basis[k][j] = rng.NormFloat64()
		}
	}
	orthonormalise(basis)
	var scores [][]float64
	earlier := make([]float64, len(basis))
	for range mostIterations {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		scores = m.multiply(basis)
		variances := make([]float64, len(basis))
		change := 0.0
		for k, column := range scores {
			for _, x := range column {
				variances[k] += x * x
			}
			if k < principal {
				change = max(
					change, math.Abs(variances[k]-earlier[k])/max(variances[k], math.SmallestNonzeroFloat64),
				)
			}
		}
		if change < converged {
			break
		}
		earlier = variances
		basis = m.multiplyTransposed(scores)
		orthonormalise(basis)
	}
	total := m.variance()
	p.XY = make([][2]float64, s.Len())
	for k := range min(principal, len(basis)) {
		sign := signOf(basis[k])
		for i, x := range scores[k] {
			p.XY[i][k] = sign * x
			p.Ratios[k] += x * x / max(total, math.SmallestNonzeroFloat64)
		}
	}
	return p, nil
}

// signOf returns the sign of the number of the largest size.
func signOf(vector []float64) float64 {
	largest := 0.0
	for _, x := range vector {
		if math.Abs(x) > math.Abs(largest) {
			largest = x
		}
	}
	if largest < 0 {
		return -1
	}
	return 1
}

// orthonormalise makes the vectors orthogonal and of unit length, in their order. A vector that
// depends on those before becomes zero.
func orthonormalise(vectors [][]float64) {
	for k, v := range vectors {
		for range 2 { // once more against rounding
			for _, u := range vectors[:k] {
				product := 0.0
				for j := range v {
					product += u[j] * v[j]
				}
				for j := range v {
					v[j] -= product * u[j]
				}
			}
		}
		squares := 0.0
		for _, x := range v {
			squares += x * x
		}
		scale := 0.0
		if squares > 1e-20 {
			scale = 1 / math.Sqrt(squares)
		}
		for j := range v {
			v[j] *= scale
		}
	}
}

// centred is the matrix of a set minus the mean of its columns.
type centred struct {
	set   Set
	width int
	mean  []float64
}

func newCentred(s Set) *centred {
	m := &centred{
		set:   s,
		width: s.columns(),
		mean:  make([]float64, s.columns()),
	}
	for i := range s.Len() {
		s.visit(i, func(column int, value float64) { m.mean[column] += value / float64(s.Len()) })
	}
	return m
}

// variance returns the sum of the squares of the matrix.
func (m *centred) variance() (sum float64) {
	for i := range m.set.Len() {
		m.set.visit(i, func(column int, value float64) {
			sum += value * (value - 2*m.mean[column])
		})
	}
	for _, mean := range m.mean {
		sum += float64(m.set.Len()) * mean * mean
	}
	return sum
}

// multiply returns the products with some vectors.
func (m *centred) multiply(vectors [][]float64) [][]float64 {
	products := make([][]float64, len(vectors))
	for k, v := range vectors {
		products[k] = make([]float64, m.set.Len())
		offset := 0.0
		for j, mean := range m.mean {
			offset += mean * v[j]
		}
		for i := range products[k] {
			products[k][i] = -offset
		}
	}
	for i := range m.set.Len() {
		m.set.visit(i, func(column int, value float64) {
			for k := range vectors {
				products[k][i] += value * vectors[k][column]
			}
		})
	}
	return products
}

// multiplyTransposed returns the products of the transposed matrix with some vectors.
func (m *centred) multiplyTransposed(vectors [][]float64) [][]float64 {
	products := make([][]float64, len(vectors))
	for k, v := range vectors {
		products[k] = make([]float64, m.width)
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		for j, mean := range m.mean {
			products[k][j] = -mean * sum
		}
	}
	for i := range m.set.Len() {
		m.set.visit(i, func(column int, value float64) {
			for k := range vectors {
				products[k][column] += value * vectors[k][i]
			}
		})
	}
	return products
}
