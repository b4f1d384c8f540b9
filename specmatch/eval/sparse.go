package eval

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/specmatch/specmatch/gnn/kernel"
)

// dcd solves the dual of the two-class problem with the squared hinge loss,
//
//	min ½ αᵀQα + Σ_i α_i²/(4C_i) − Σα_i   subject to α_i ≥ 0,   Q_ij = t_i t_j (x_i·x_j + 1)
//
// by coordinate descent with shrinking (Hsieh et al. 2008, as in liblinear), keeping
// w = Σ t_iα_ix_i. A feature of size s that no other row has would be one more weight
// s·t_iα_i: it only adds s² to the diagonal of Q, that is, lowers the penalty of the row
// to C_i = C/(1+2Cs²), and is not stored.
//
// α is feasible for every C.
type dcd struct {
	inputs []*kernel.Sparse
	tol    float64 // of the projected gradient
	passes int

	m      *kernel.Sparse
	rows   []int     // of m, the training points
	t      []float64 // ±1
	square []float64 // ‖x_i‖² + 1, with what other rows do not have
	alpha  []float64
	w      []float64 // the last is the intercept
	order  []int
}

func (s *dcd) load(input int, train []int) {
	s.m = s.inputs[input]
	s.rows = train
	n := len(train)
	s.square = grow(s.square, n)
	s.alpha = grow(s.alpha, n)
	s.order = grow(s.order, n)
	s.w = grow(s.w, s.m.Width+1)
	for a, i := range train {
		s.square[a] = s.m.SquaredNorm(i) + 1
	}
}

func (s *dcd) begin(t []float64) {
	s.t = t
	clear(s.alpha)
	clear(s.w)
}

func (s *dcd) decide(i int) float64 {
	columns, values := s.m.Row(i)
	sum := s.w[s.m.Width]
	for k, c := range columns {
		sum += float64(s.w[c] * values[k])
	}
	return sum
}

func (s *dcd) solve(ctx context.Context, penalty float64) error {
	rng := rand.New(rand.NewPCG(1, 1)) // for the order alone: the solution is unique
	n := len(s.rows)
	for a := range s.order {
		s.order[a] = a
	}
	active := n
	highest := math.Inf(1) // projected gradient of the last pass
	for range s.passes {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi := math.Inf(-1)
		lo := math.Inf(1)
		for p := 0; p < active; p++ {
			q := p + rng.IntN(active-p)
			s.order[p], s.order[q] = s.order[q], s.order[p]
		}
		for p := 0; p < active; p++ {
			a := s.order[p]
			i := s.rows[a]
			extra := 1 / (2 * penalty) // on the diagonal, for the squared hinge
			diagonal := 0.0
			if s.m.Own != nil {
				diagonal = s.m.Own[i]
			}
			g := s.t[a]*s.decide(i) - 1 + float64(s.alpha[a]*(extra+diagonal))
			projected := g
			if s.alpha[a] == 0 {
				if g > highest {
					active--
					s.order[p], s.order[active] = s.order[active], s.order[p]
					p--
					continue
				}
				projected = min(g, 0)
			}
			hi = max(hi, projected)
			lo = min(lo, projected)
			if math.Abs(projected) < 1e-12 {
				continue
			}
			old := s.alpha[a]
			s.alpha[a] = max(old-g/(s.square[a]+extra), 0)
			step := (s.alpha[a] - old) * s.t[a]
			columns, values := s.m.Row(i)
			for k, c := range columns {
				s.w[c] += float64(step * values[k])
			}
			s.w[s.m.Width] += step
		}
		if hi-lo <= s.tol {
			if active == n {
				return nil
			}
			// look at all once more
			active = n
			highest = math.Inf(1)
			continue
		}
		highest = hi
		if highest <= 0 {
			highest = math.Inf(1)
		}
	}
	return nil
}
