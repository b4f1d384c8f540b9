package specmatch

import (
	"math"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/tensor"
)

// Alignment returns mean_i ‖z¹_i - z²_i‖^α [1×1] (Wang and Isola 2020) of z¹, z²
// [N×D]. It does not normalise the rows. If α is not 2, the norm has a kink where
// two rows are equal, so that must not occur on a tape that records.
func Alignment(z1, z2 *autodiff.Var, alpha float64) *autodiff.Var {
	d := z1.Sub(z2)
	sq := d.Square().RowSums()
	if alpha != 2 {
		sq = sq.Log().Scale(alpha / 2).Exp()
	}
	return sq.Mean()
}

// Uniformity returns ln mean_{i≠j} e^(-t·‖z_i-z_j‖²) [1×1] (Wang and Isola
// 2020) of the rows of z [N×D]. It panics unless N ≥ 2.
func Uniformity(z *autodiff.Var, t float64) *autodiff.Var {
	n := z.Rows()
	if n < 2 {
		tensor.Mismatch("specmatch: Uniformity", "want at least 2 rows", z.Value())
	}
	sq := z.Square().RowSums()
	// -t·‖z_i-z_j‖² = t·(2·z_i·z_j - ‖z_i‖² - ‖z_j‖²)
	e := z.MatMulT(z).Scale(2).SubCol(sq).SubRow(sq.T()).Scale(t).FillDiagonal(negInf)
	return e.LogSumExp().T().LogSumExp().Shift(-math.Log(float64(n) * float64(n-1)))
}

// Diagnosis describes the embeddings z of a batch as the Laplacian loss sees
// them. Quantities per view are averaged over the two views. A [Trainer] diagnoses
// z even if Objective.OnH or Objective.Center gives the loss something else.
type Diagnosis struct {
	LossHard   float64 // L_G with the hard threshold, whatever is trained
	Spread     float64 // standard deviation of the off-diagonal cosines
	Density    float64 // share of the pairs that the hard threshold keeps
	Isolated   float64 // share of the graphs without a neighbour at the hard threshold
	Alignment  float64 // mean ‖z¹-z²‖² of unit rows
	Uniformity float64 // [Uniformity] with t = 2 of unit rows
}

// Diagnose computes a [Diagnosis] of two views z¹, z² [n×d], row-major, on the
// host in float64, with the percentile of c.
func Diagnose(z1, z2 []float64, n, d int, c LaplacianMatch) Diagnosis {
	u1, u2 := unitRows(z1, n, d), unitRows(z2, n, d)
	var g Diagnosis
	for i, v := range u1 {
		g.Alignment += (v - u2[i]) * (v - u2[i]) / float64(n)
	}
	if n < 2 {
		return g
	}
	c.Adjacency = Hard
	var l [2][]float64
	for k, u := range [][]float64{u1, u2} {
		cos := cosines(u, n, d)
		upper := upperTriangle(cos, n)
		_, std := meanStd(upper)
		sum := 0.0
		for _, v := range upper {
			sum += math.Exp(-2 * (2 - 2*v)) // ‖u_i-u_j‖² = 2-2·u_i·u_j
		}
		g.Spread += std / 2
		g.Uniformity += math.Log(sum/float64(len(upper))) / 2
		graph := c.graph(cos, n)
		for _, degree := range graph.Degrees {
			g.Density += degree / float64(n*(n-1)) / 2
			if degree == 0 {
				g.Isolated += 1 / float64(n) / 2
			}
		}
		l[k] = graph.Laplacian(false)
	}
	for i := range l[0] {
		g.LossHard += (l[0][i] - l[1][i]) * (l[0][i] - l[1][i])
	}
	return g
}
