package specmatch

import (
	"math"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/tensor"
)

// Alignment returns mean_i ‖z¹_i - z²_i‖^α [1×1] (Wang and Isola 2020) of rows
// as they are; callers normalise. At α ≠ 2 identical rows have no gradient
// (the norm has a kink there) and must not occur on a recording tape.
func Alignment(z1, z2 *autodiff.Var, alpha float64) *autodiff.Var {
	d := z1.Sub(z2)
	sq := d.Square().RowSums()
	if alpha != 2 {
		sq = sq.Log().Scale(alpha / 2).Exp()
	}
	return sq.Mean()
}

// Uniformity returns ln mean_{i≠j} e^(-t·‖z_i-z_j‖²) [1×1] (Wang and Isola
// 2020) of the rows of z [N×D], N ≥ 2.
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
// them. Quantities per view are averaged over the two views.
type Diagnosis struct {
	LossHard   float64 // L_G with the hard threshold, whatever is trained
	Spread     float64 // standard deviation of the off-diagonal cosines
	Density    float64 // share of the pairs that the hard threshold keeps
	Isolated   float64 // share of the nodes without an edge at the hard threshold
	Alignment  float64 // mean ‖z¹-z²‖² of unit rows
	Uniformity float64 // t = 2, unit rows
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
	var m [2][]float64
	for k, u := range [][]float64{u1, u2} {
		s := make([]float64, n*n)
		for i := range n {
			for j := range i {
				dot := 0.0
				for x := range d {
					dot += u[i*d+x] * u[j*d+x]
				}
				s[i*n+j], s[j*n+i] = dot, dot
			}
		}
		m[k] = g.addView(s, n, c)
	}
	for i := range m[0] {
		g.LossHard += (m[0][i] - m[1][i]) * (m[0][i] - m[1][i])
	}
	return g
}

// addView adds one view's share to g and returns its hard D^-½AD^-½.
func (g *Diagnosis) addView(s []float64, n int, c LaplacianMatch) []float64 {
	upper := make([]float64, 0, n*(n-1)/2)
	sum, expSum := 0.0, 0.0
	for i := range n {
		for _, v := range s[i*n+i+1 : (i+1)*n] {
			upper = append(upper, v)
			sum += v
			expSum += math.Exp(-2 * (2 - 2*v))
		}
	}
	pairs := float64(len(upper))
	mean, sq := sum/pairs, 0.0
	for _, v := range upper {
		sq += (v - mean) * (v - mean)
	}
	g.Spread += math.Sqrt(sq/pairs) / 2
	g.Uniformity += math.Log(expSum/pairs) / 2

	theta := c.Threshold
	if !c.FixedThreshold {
		slices.Sort(upper)
		theta = quantile(upper, c.Percentile/100)
	}
	m, r := make([]float64, n*n), make([]float64, n)
	for i := range n {
		for j := range n {
			if i != j && s[i*n+j] > theta {
				m[i*n+j] = 1
				r[i]++
			}
		}
		g.Density += r[i] / (2 * pairs) / 2
		if r[i] == 0 {
			g.Isolated += 1 / float64(n) / 2
		} else {
			r[i] = 1 / math.Sqrt(r[i])
		}
	}
	for i := range n {
		for j := range n {
			m[i*n+j] *= r[i] * r[j]
		}
	}
	return m
}

// quantile interpolates linearly between the order statistics of sorted values.
func quantile(sorted []float64, q float64) float64 {
	pos := q * float64(len(sorted)-1)
	k := int(pos)
	if k+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[k] + (pos-float64(k))*(sorted[k+1]-sorted[k])
}

func unitRows(z []float64, n, d int) []float64 {
	u := make([]float64, n*d)
	for i := range n {
		norm := 0.0
		for _, v := range z[i*d : (i+1)*d] {
			norm += v * v
		}
		norm = max(math.Sqrt(norm), 1e-12)
		for j := range d {
			u[i*d+j] = z[i*d+j] / norm
		}
	}
	return u
}
