package theory

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/specmatch/specmatch/specmatch"
)

// negligible is the largest eigenvalue that counts as 0: far above the rounding of the
// decomposition of a normalised Laplacian, whose eigenvalues are in [0, 2].
const negligible = 1e-10

// View is what the theorems see of one augmented view of a batch of n graphs.
type View struct {
	N, D     int
	Z        []float64 // [n×d] embeddings, rows of length 1
	Graph    *specmatch.SimilarityGraph
	Spectrum *Spectrum // of Graph.L, the symmetric normalised Laplacian
}

// NewView returns the view with embeddings z [n×d], n ≥ 2, whose rows it normalises, and the
// similarity graph of c. The theorems are about symmetric Laplacians: c.RandomWalk does not matter.
// The error says that the eigendecomposition did not converge, which happens when z holds NaN.
func NewView(z []float64, n, d int, c specmatch.LaplacianMatch) (*View, error) {
	if n < 2 {
		panic(fmt.Sprintf("theory: NewView: a batch of %d graphs; want at least 2", n))
	}
	c.RandomWalk = false
	v := &View{
		N:     n,
		D:     d,
		Z:     normalize(z, n, d),
		Graph: c.Graph(z, n, d),
	}
	var err error
	v.Spectrum, err = Eigen(v.Graph.L, n)
	return v, err
}

// Connected reports whether every node of the similarity graph reaches every
// other over edges of weight above 0, however small. λ₂ cannot tell: for weights
// of 1e-12 it is lost in rounding.
func (v *View) Connected() bool {
	reached := make([]bool, v.N)
	reached[0] = true
	queue := []int{0}
	for k := 0; k < len(queue); k++ {
		i := queue[k]
		for j, weight := range v.Graph.A[i*v.N : (i+1)*v.N] {
			if weight > 0 && !reached[j] {
				reached[j] = true
				queue = append(queue, j)
			}
		}
	}
	return len(queue) == v.N
}

// Spectrum is the eigendecomposition of a symmetric matrix L [n×n], n ≥ 2.
type Spectrum struct {
	Values  []float64 // ascending
	vectors *mat.Dense
}

// Eigen decomposes l [n×n], row-major, of which it reads the upper triangle.
func Eigen(l []float64, n int) (*Spectrum, error) {
	var e mat.EigenSym
	if !e.Factorize(mat.NewSymDense(n, l), true) {
		return nil, fmt.Errorf("theory: the eigendecomposition of a Laplacian [%d×%d] did not converge",
			n, n)
	}
	s := &Spectrum{Values: e.Values(nil), vectors: new(mat.Dense)}
	e.VectorsTo(s.vectors)
	return s, nil
}

// Lambda2 returns the second smallest eigenvalue: for the Laplacian of a graph
// without isolated nodes, 0 if it is not connected.
func (s *Spectrum) Lambda2() float64 { return s.Values[1] }

// SmallestNonZero returns the smallest eigenvalue above 1e-10, NaN if there is
// none.
func (s *Spectrum) SmallestNonZero() float64 {
	for _, v := range s.Values {
		if v > negligible {
			return v
		}
	}
	return math.NaN()
}

// Heat returns the heat kernel e^(-t·L) [n×n], row-major.
func (s *Spectrum) Heat(t float64) []float64 {
	n := len(s.Values)
	scaled := mat.DenseCopyOf(s.vectors)
	raw := scaled.RawMatrix().Data
	for j, v := range s.Values {
		e := math.Exp(-t * v)
		for i := range n {
			raw[i*n+j] *= e
		}
	}
	p := mat.NewDense(n, n, nil)
	p.Mul(scaled, s.vectors.T())
	return p.RawMatrix().Data
}

// normalize returns the rows of z [n×d] divided by their norms; a zero row stays
// zero.
func normalize(z []float64, n, d int) []float64 {
	u := make([]float64, n*d)
	for i := range n {
		row := z[i*d : (i+1)*d]
		norm := math.Sqrt(floats.Dot(row, row))
		for j, v := range row {
			if norm > 0 {
				u[i*d+j] = v / norm
			}
		}
	}
	return u
}

func distance2(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += (v - b[i]) * (v - b[i])
	}
	return sum
}
