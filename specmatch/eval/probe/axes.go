package probe

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// axes are the principal directions of vectors, for the first estimate of a Hessian. The columns of
// an encoder's vectors are so correlated that descent without them takes hundreds of steps.
type axes struct {
	n, dim int
	u      []float32 // [n×dim], orthonormal rows
	size   []float64 // mean squares along them
	others float64   // mean square along each other direction
}

const (
	mostAxes   = 256
	sampleRows = 2048
	powers     = 6
)

// axes finds the axes by orthogonal iteration on some of the rows.
func (d *Data) axes(rows []int) *axes {
	var sample []int
	for k := 0; k < len(rows); k += max(1, (len(rows)+sampleRows-1)/sampleRows) {
		sample = append(sample, rows[k])
	}
	x := newMatrix(d.X, d.Dim, sample)
	a := &axes{n: min(mostAxes, d.Dim, x.n), dim: d.Dim}
	n := float64(max(x.n, 1))
	_, columns := x.squares()
	for _, v := range columns {
		a.others += v / float64(d.Dim)
	}
	if a.n == 0 {
		return a
	}
	rng := rand.New(rand.NewPCG(1, 2)) // any start will do
	w := make([]float32, d.Dim*a.n)
	y := make([]float32, x.n*a.n)
	for k := range w {
		w[k] = float32(rng.NormFloat64())
	}
	a.u = make([]float32, a.n*d.Dim)
	a.size = make([]float64, a.n)
	row := func(k int) blas32.Vector {
		return blas32.Vector{N: d.Dim, Inc: 1, Data: a.u[k*d.Dim:]}
	}
	for p := range powers {
		for k := range a.n {
			for f := range d.Dim {
				a.u[k*d.Dim+f] = w[f*a.n+k]
			}
			for range 2 { // once is not enough in float32
				before := blas32.Nrm2(row(k))
				for j := range k {
					blas32.Axpy(-blas32.Dot(row(j), row(k)), row(j), row(k))
				}
				if size := blas32.Nrm2(row(k)); size > 1e-3*before {
					blas32.Scal(1/size, row(k))
				} else {
					blas32.Scal(0, row(k)) // there are no more directions
				}
			}
			for f := range d.Dim {
				w[f*a.n+k] = a.u[k*d.Dim+f]
			}
		}
		x.times(0, x.n, w, a.n, y)
		if p < powers-1 {
			clear(w)
			x.back(0, x.n, y, a.n, w)
		}
	}
	left := a.others * float64(d.Dim)
	for k, v := range y {
		a.size[k%a.n] += float64(v) * float64(v) / n
	}
	for _, v := range a.size {
		left -= v
	}
	a.others = max(left, 0) / math.Max(1, float64(d.Dim-a.n))
	return a
}

// divide multiplies q, of weights and an intercept, by the inverse of the Hessian curvature·(mean
// of xxᵀ) + strength, as far as the axes describe it.
func (a *axes) divide(q []float64, curvature, strength float64) {
	across := 1 / (curvature*a.others + strength)
	along := make([]float32, a.n)
	v := make([]float32, a.dim)
	for f := range v {
		v[f] = float32(q[f])
		q[f] *= across
	}
	if a.n > 0 {
		u := blas32.General{
			Rows:   a.n,
			Cols:   a.dim,
			Stride: a.dim,
			Data:   a.u,
		}
		vector := blas32.Vector{N: a.dim, Inc: 1, Data: v}
		mid := blas32.Vector{N: a.n, Inc: 1, Data: along}
		blas32.Gemv(blas.NoTrans, 1, u, vector, 0, mid)
		for k, size := range a.size {
			along[k] *= float32(1/(curvature*size+strength) - across)
		}
		blas32.Gemv(blas.Trans, 1, u, mid, 0, vector)
		for f, x := range v {
			q[f] += float64(x)
		}
	}
	q[a.dim] /= curvature
}
