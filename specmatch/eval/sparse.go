package eval

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/kernel"
)

// EvaluateSparse cross-validates linear support vector machines on sparse features:
// [EvaluateKernels] with the linear kernel of one of the matrices, [n×Width] each, for
// data sets whose kernel matrix would be large. The machine is that of [Linear], one
// class against the rest with the squared hinge loss,
//
//	f(w,b) = ½‖w‖² + ½b² + C Σ_i max(0, 1 − t_i(w·x_i + b))²
//
// and not the plain hinge loss of the kernel machines: its dual is strictly convex, so
// that the solution does not depend on the order of the coordinates, and the figures
// compare with LinearSVC's, which the kernel literature uses on large sets.
//
// It is solved by dual coordinate descent, until the projected gradient varies by less
// than 1e-3 or for a thousand passes. A problem that needs more than those, as with
// large C and rows that are far from norm 1, is scored as it then stands.
func EvaluateSparse(ctx context.Context, inputs []*kernel.Sparse, y []int, outer, held []dataset.Fold, opt Options) (*Result, error) {
	if len(inputs) == 0 {
		return nil, fmt.Errorf("eval: no features to choose from")
	}
	data := Data{Y: y}
	if err := data.validateLabels(); err != nil {
		return nil, err
	}
	for q, m := range inputs {
		if m.Rows() != len(y) {
			return nil, fmt.Errorf("eval: matrix %d has %d rows, but there are %d labels", q, m.Rows(), len(y))
		}
		for i := range m.Rows() {
			columns, values := m.Row(i)
			for k, v := range values {
				if math.IsNaN(v) || math.Abs(v) > maxFeature {
					return nil, fmt.Errorf("eval: matrix %d: feature is %g in row %d, column %d", q, v, i, columns[k])
				}
			}
		}
	}
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	return chooseInput(ctx, data, outer, held, opt, len(inputs), held != nil, func() scorer {
		return &sparseScorer{inputs: inputs, y: y, cs: opt.Cs, descending: held != nil, w: dcd{tol: dcdTolerance, passes: dcdPasses}}
	})
}

const (
	dcdTolerance = 1e-3
	dcdPasses    = 1000
)

type sparseScorer struct {
	inputs     []*kernel.Sparse
	y          []int
	cs         []float64
	descending bool
	w          dcd
}

func (s *sparseScorer) score(ctx context.Context, train, test []int, lo, hi int) ([]int, error) {
	classes := groupByClass(train, s.y).class
	if len(classes) < 2 {
		return nil, fmt.Errorf("the training part has only class %d", classes[0])
	}
	machines := len(classes)
	if machines == 2 {
		machines = 1
	}
	right := make([]int, 0, hi-lo)
	for q := lo; q < hi; {
		input, c := settingOf(q, len(s.cs), s.descending)
		cs := s.cs[c : c+1] // of a final fit
		if hi-lo > 1 {
			cs = s.cs
		}
		q += len(cs)
		m := s.inputs[input]
		dec := make([]float64, len(cs)*len(test)*machines) // by C, test point, machine
		for k := range machines {
			positive := classes[k]
			if machines == 1 {
				positive = classes[1]
			}
			s.w.reset(m, train, func(i int) bool { return s.y[i] == positive })
			for c, penalty := range cs {
				if err := s.w.solve(ctx, penalty); err != nil {
					return nil, err
				}
				for t, i := range test {
					dec[(c*len(test)+t)*machines+k] = s.w.decide(i)
				}
			}
		}
		counts := make([]int, len(cs))
		for c := range cs {
			for t, i := range test {
				at := (c*len(test) + t) * machines
				if classes[strongest(dec[at:at+machines])] == s.y[i] {
					counts[c]++
				}
			}
		}
		for c := range counts {
			_, c := settingOf(c, len(counts), s.descending)
			right = append(right, counts[c])
		}
	}
	return right, nil
}

// dcd solves the dual of the two-class problem with the squared hinge loss,
//
//	min ½ αᵀQα + Σ_i α_i²/(4C_i) − Σα_i   subject to α_i ≥ 0,   Q_ij = t_i t_j (x_i·x_j + 1)
//
// by coordinate descent with shrinking (Hsieh et al. 2008, as in liblinear), keeping
// w = Σ t_iα_ix_i. A feature of size s that no other row has would be one more weight
// s·t_iα_i: it only adds s² to the diagonal of Q, that is, lowers the penalty of the row
// to C_i = C/(1+2Cs²), and is not stored.
//
// Each C starts from the solution of the last one; α is feasible for all.
type dcd struct {
	tol    float64
	passes int

	m      *kernel.Sparse
	rows   []int     // of m, the training points
	t      []float64 // ±1
	square []float64 // ‖x_i‖² + 1, with what other rows do not have
	alpha  []float64
	w      []float64 // the last is the intercept
	order  []int
}

// reset begins with α = 0 on the rows of m.
func (s *dcd) reset(m *kernel.Sparse, rows []int, positive func(row int) bool) {
	s.m, s.rows = m, rows
	n := len(rows)
	s.t, s.square, s.alpha, s.order = grow(s.t, n), grow(s.square, n), grow(s.alpha, n), grow(s.order, n)
	s.w = grow(s.w, m.Width+1)
	clear(s.alpha)
	clear(s.w)
	for a, i := range rows {
		s.t[a] = -1
		if positive(i) {
			s.t[a] = 1
		}
		s.square[a] = m.SquaredNorm(i) + 1
	}
}

// decide returns w·x_i + b of row i of the matrix, which may be in training or not.
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
		hi, lo := math.Inf(-1), math.Inf(1)
		for p := 0; p < active; p++ {
			q := p + rng.IntN(active-p)
			s.order[p], s.order[q] = s.order[q], s.order[p]
		}
		for p := 0; p < active; p++ {
			a := s.order[p]
			i := s.rows[a]
			extra := 1 / (2 * penalty) // on the diagonal, for the squared hinge
			own := 0.0
			if s.m.Own != nil {
				own = s.m.Own[i]
			}
			g := s.t[a]*s.decide(i) - 1 + float64(s.alpha[a]*(extra+own))
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
			hi, lo = max(hi, projected), min(lo, projected)
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
			active, highest = n, math.Inf(1) // look at all once more
			continue
		}
		if highest = hi; highest <= 0 {
			highest = math.Inf(1)
		}
	}
	return nil
}
