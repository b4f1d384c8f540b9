package probe

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// TestMinimise: the slope vanishes at the minimum of logistic losses of rows of very different size, where whole
// steps of Newton's method overshoot.
func TestMinimise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for k := range 20 {
		const n, dim = 12, 15
		e := &exact{kind: Logistic, strength: 1e-3, x: mat.NewDense(n, dim, nil)}
		for i := range n {
			weight := float64(1 + i*k%3)
			e.y = append(e.y, float64(rng.IntN(2)))
			e.weights = append(e.weights, weight)
			e.total += weight
			size := math.Exp(3 * rng.NormFloat64())
			for j := range dim {
				e.x.Set(i, j, size*(rng.NormFloat64()+1))
			}
		}
		w := e.minimise()
		if w == nil {
			t.Errorf("problem %d: no minimum", k)
			continue
		}
		if loss, g := e.lossOf(w); floats.Norm(g, 2) > 1e-5 {
			t.Errorf("problem %d: loss %v, slope %v", k, loss, floats.Norm(g, 2))
		}
	}
}
