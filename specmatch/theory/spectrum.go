package theory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// zero is what counts as an eigenvalue of 0: a hundred times the rounding of
// the decomposition of a normalised Laplacian, whose eigenvalues are in [0, 2].
const zero = 1e-10

// Spectrum is the eigendecomposition of a symmetric matrix L [n×n].
type Spectrum struct {
	Values  []float64 // ascending
	vectors *mat.Dense
}

// Eigen decomposes l [n×n], row-major, of which it reads the upper triangle. The
// error says that the decomposition did not converge, which happens when l
// holds NaN.
func Eigen(l []float64, n int) (*Spectrum, error) {
	var e mat.EigenSym
	if !e.Factorize(mat.NewSymDense(n, l), true) {
		return nil, fmt.Errorf("theory: the eigendecomposition of a Laplacian [%d×%d] did not converge", n, n)
	}
	s := &Spectrum{Values: e.Values(nil), vectors: new(mat.Dense)}
	e.VectorsTo(s.vectors)
	return s, nil
}

// Lambda2 returns the second smallest eigenvalue: for the Laplacian of a graph,
// 0 if the graph is not connected. NaN for n = 1.
func (s *Spectrum) Lambda2() float64 {
	if len(s.Values) < 2 {
		return math.NaN()
	}
	return s.Values[1]
}

// SmallestNonZero returns the smallest eigenvalue above 1e-10, NaN if there is
// none.
func (s *Spectrum) SmallestNonZero() float64 {
	for _, v := range s.Values {
		if v > zero {
			return v
		}
	}
	return math.NaN()
}

// Heat returns the heat kernel e^(-t·L) [n×n], row-major.
func (s *Spectrum) Heat(t float64) []float64 {
	n := len(s.Values)
	scaled := mat.DenseCopyOf(s.vectors)
	for i := range n {
		for j, v := range s.Values {
			scaled.Set(i, j, scaled.At(i, j)*math.Exp(-t*v))
		}
	}
	p := mat.NewDense(n, n, nil)
	p.Mul(scaled, s.vectors.T())
	return p.RawMatrix().Data
}
