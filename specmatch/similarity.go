package specmatch

import (
	"fmt"
	"math"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

// SimilarityGraph is the graph that the embeddings of one view induce over a batch of n graphs. It holds
// the quantities that [LaplacianMatch] compares, in float64 on the host, for inspection.
type SimilarityGraph struct {
	N         int
	S         []float64 // [n×n] similarities
	Threshold float64   // θ
	A         []float64 // [n×n] edge weights, zero on the diagonal
	Degrees   []float64 // [n]
	L         []float64 // [n×n] Laplacian
}

// Graph returns the similarity graph of the embeddings z [n×d], row-major. With
// n = 1 it has no edge. [StraightThrough] has the edges of [Hard]. Graph panics
// unless n ≥ 1 and z has n·d numbers.
func (c LaplacianMatch) Graph(z []float64, n, d int) *SimilarityGraph {
	if n < 1 || len(z) != n*d {
		panic(&tensor.ShapeError{
			Op:   "specmatch: LaplacianMatch.Graph",
			Have: fmt.Sprintf("%d numbers", len(z)),
			Want: fmt.Sprintf("want embeddings [%d×%d] of at least one graph", n, d),
		})
	}
	t := autodiff.NewInference(cpu.New(tensor.Float64))
	defer t.Reset()
	s := cosines(t.Matrix(n, d, z))
	theta := t.Scalar(0)
	a := t.Scalar(0)
	if n > 1 {
		theta = c.threshold(s)
		a = c.Weights(s, theta)
	}
	g := &SimilarityGraph{
		N:         n,
		S:         s.Data(),
		Threshold: theta.Float(),
		A:         a.Data(),
		Degrees:   a.RowSums().Data(),
		L:         c.normalized(a).Scale(-1).Data(),
	}
	for i := range n {
		g.L[i*n+i]++
	}
	return g
}

// Alignment returns mean_i ‖z¹_i - z²_i‖² [1×1] (Wang and Isola 2020) of z¹, z² [N×D].
// It does not normalise the rows.
func Alignment(z1, z2 *autodiff.Var) *autodiff.Var {
	return z1.Sub(z2).Square().RowSums().Mean()
}

// Uniformity returns ln mean_{i≠j} e^(-2·‖z_i-z_j‖²) [1×1] (Wang and Isola
// 2020) of the rows of z [N×D]. It panics unless N ≥ 2.
func Uniformity(z *autodiff.Var) *autodiff.Var {
	n := z.Rows()
	if n < 2 {
		tensor.Mismatch("specmatch: Uniformity", "want at least 2 rows", z.Value())
	}
	sq := z.Square().RowSums()
	// -2·‖z_i-z_j‖² = 2·(2·z_i·z_j - ‖z_i‖² - ‖z_j‖²)
	e := z.MatMulT(z).Scale(2).SubCol(sq).SubRow(sq.T()).Scale(2).FillDiagonal(negInf)
	return e.LogSumExp().T().LogSumExp().Shift(-math.Log(float64(n) * float64(n-1)))
}

// Diagnosis describes the embeddings z of a batch from the view of the Laplacian loss. Quantities per view
// are averaged over the two views. A [Trainer] diagnoses z, even if the loss has another input because of
// Objective.OnH or Objective.Center.
type Diagnosis struct {
	LossHard   float64 // L_G with the hard threshold, whatever is trained
	Spread     float64 // standard deviation of the off-diagonal cosines
	Density    float64 // share of the pairs that the hard threshold keeps
	Isolated   float64 // share of the graphs without a neighbour at the hard threshold
	Alignment  float64 // [Alignment] of unit rows
	Uniformity float64 // [Uniformity] of unit rows
}

// diagnose returns the diagnosis of at most [keptGraphs] graphs of two views.
func diagnose(z1, z2 *autodiff.Var, c LaplacianMatch) *Diagnosis {
	n, d := min(z1.Rows(), keptGraphs), z1.Cols()
	return Diagnose(z1.Data()[:n*d], z2.Data()[:n*d], n, d, c)
}

// Diagnose computes a [Diagnosis] of two views z¹, z² [n×d], row-major, in float64 on
// the host, with the percentile of c.
func Diagnose(z1, z2 []float64, n, d int, c LaplacianMatch) *Diagnosis {
	t := autodiff.NewInference(cpu.New(tensor.Float64))
	defer t.Reset()
	u := [2]*autodiff.Var{t.Matrix(n, d, z1).L2Normalize(), t.Matrix(n, d, z2).L2Normalize()}
	g := &Diagnosis{Alignment: Alignment(u[0], u[1]).Float()}
	if n < 2 {
		return g
	}
	c.Adjacency = Hard
	c.RandomWalk = false
	var a [2]*autodiff.Var
	for v, u := range u {
		s := u.MatMulT(u)
		a[v] = c.graph(s)
		g.Spread += spread(s).Float() / 2
		g.Uniformity += Uniformity(u).Float() / 2
		degrees := a[v].RowSums()
		g.Density += degrees.Sum().Float() / float64(n*(n-1)) / 2
		for _, degree := range degrees.Data() {
			if degree == 0 {
				g.Isolated += 1 / float64(n) / 2
			}
		}
	}
	g.LossHard = c.distance(a[0], a[1]).Float()
	return g
}
