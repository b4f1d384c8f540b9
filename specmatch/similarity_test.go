package specmatch_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/tensor"
)

func gaussian(rng *rand.Rand, n, d int) []float64 {
	z := make([]float64, n*d)
	for i := range z {
		z[i] = rng.NormFloat64()
	}
	return z
}

// TestGraphIsTheLossesGraph: ‖L¹-L²‖² of the graphs on the host is the loss, for
// every form of it.
func TestGraphIsTheLossesGraph(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, adjacency := range []specmatch.Adjacency{specmatch.Sigmoid, specmatch.SpreadSigmoid, specmatch.Hard, specmatch.StraightThrough} {
		for _, c := range []specmatch.LaplacianMatch{
			{Percentile: 80},
			{Percentile: 30, RandomWalk: true},
			{Percentile: 100},
		} {
			c.Adjacency, c.Kappa = adjacency, 7
			t.Run(fmt.Sprintf("%v/%+v", adjacency, c), func(t *testing.T) {
				const n, d = 9, 4
				z1, z2 := gaussian(rng, n, d), gaussian(rng, n, d)
				tape := autodiff.NewTape(ref.New())
				want := c.Loss(tape.Matrix(n, d, z1), tape.Matrix(n, d, z2)).Float()
				g1, g2 := c.Graph(z1, n, d), c.Graph(z2, n, d)
				l1, l2 := g1.L, g2.L
				got := 0.0
				for i := range l1 {
					got += (l1[i] - l2[i]) * (l1[i] - l2[i])
				}
				near(t, "‖L¹-L²‖²", got, want, 1e-12)
				for i, degree := range g1.Degrees {
					if l1[i*n+i] != 1 || g1.A[i*n+i] != 0 {
						t.Errorf("node %d: L_ii = %v, A_ii = %v", i, l1[i*n+i], g1.A[i*n+i])
					}
					sum := 0.0
					for j := range n {
						sum += g1.A[i*n+j]
					}
					near(t, "degree", degree, sum, 1e-14)
				}
			})
		}
	}
}

func TestGraphOfOne(t *testing.T) {
	g := specmatch.DefaultLaplacianMatch().Graph([]float64{3, 4}, 1, 2)
	if l := g.L; len(l) != 1 || l[0] != 1 || g.Degrees[0] != 0 || !(math.Abs(g.S[0]-1) <= 1e-15) {
		t.Errorf("L = %v, degrees %v, S = %v", l, g.Degrees, g.S)
	}
	// A row of zeros is as far from everything.
	for i, s := range specmatch.DefaultLaplacianMatch().Graph([]float64{0, 0, 1, 2}, 2, 2).S[:3] {
		if s != 0 {
			t.Errorf("a zero row has the similarity S[%d] = %v", i, s)
		}
	}
	defer func() {
		var shape *tensor.ShapeError
		if err, ok := recover().(error); !ok || !errors.As(err, &shape) {
			t.Errorf("5 numbers as [2×3]: got %v, want a shape error", err)
		}
	}()
	specmatch.DefaultLaplacianMatch().Graph(make([]float64, 5), 2, 3)
}
