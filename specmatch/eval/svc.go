package eval

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// SVCConfig holds the settings of [FitSVC]. The zero value of every field but C
// means scikit-learn's default.
type SVCConfig struct {
	// C > 0 is the price of a margin violation. There is no default.
	C float64
	// Gamma is the γ of the kernel exp(−γ‖a−b‖²). 0 means "scale":
	// 1/(d·Var), Var the variance of all the entries of the training matrix.
	Gamma float64
	// Tol bounds the violation of the optimality conditions; 0 means 1e-3.
	Tol float64
	// MaxIter stops a two-class problem with an error; 0 means 100 million.
	// scikit-learn has no limit.
	MaxIter int
	// NoShrinking keeps all variables active. The optimum is the same within
	// Tol; scikit-learn shrinks.
	NoShrinking bool
}

func (c SVCConfig) withDefaults() (SVCConfig, error) {
	if !(c.C > 0) || math.IsInf(c.C, 0) {
		return c, fmt.Errorf("eval: SVC: C is %g, want a positive number", c.C)
	}
	if !(c.Gamma >= 0) || math.IsInf(c.Gamma, 0) {
		return c, fmt.Errorf("eval: SVC: gamma is %g, want a positive number, or 0 for \"scale\"", c.Gamma)
	}
	if !(c.Tol >= 0) || math.IsInf(c.Tol, 0) {
		return c, fmt.Errorf("eval: SVC: tolerance is %g, want a positive number", c.Tol)
	}
	if c.MaxIter < 0 {
		return c, fmt.Errorf("eval: SVC: MaxIter is %d", c.MaxIter)
	}
	if c.Tol == 0 {
		c.Tol = 1e-3
	}
	if c.MaxIter == 0 {
		c.MaxIter = 100_000_000
	}
	return c, nil
}

// SVC is a trained support vector classifier with RBF kernel: one two-class
// machine for every pair of classes, and a vote.
type SVC struct {
	// Gamma is the γ of the kernel.
	Gamma float64
	// Classes are the labels that occurred in training, ascending.
	Classes []int
	// Machines are in the order (0,1), (0,2), …, (1,2), … of Classes.
	Machines []Machine

	dim     int
	support []float64 // rows of the union of all support vectors
	index   []int     // their points in the training set
}

// Machine is the decision function Σ Coef_s·K(x_s, x) − Rho between two classes.
type Machine struct {
	// First < Second are labels; a positive decision is a vote for First.
	First, Second int
	// Support are the rows of the training matrix with Coef ≠ 0, sorted by
	// class, then by row.
	Support []int
	// Coef are y_sα_s, y = +1 for First.
	Coef []float64
	// Rho is the threshold.
	Rho float64
	// Iterations is the number of steps of the solver.
	Iterations int
	// Dual is the objective ½ αᵀQα − Σα that was minimised.
	Dual float64
}

// FitSVC trains on the rows of the row-major [n×dim] matrix x with labels y ≥ 0,
// not all equal. Not every label up to the largest need occur.
func FitSVC(ctx context.Context, x []float64, dim int, y []int, cfg SVCConfig) (*SVC, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	g, err := trainingGroup(x, dim, y)
	if err != nil {
		return nil, err
	}
	n := len(y)
	d2, err := squaredDistances(ctx, rows(x, dim, g.points), dim, 0)
	if err != nil {
		return nil, err
	}
	if cfg.Gamma == 0 {
		if cfg.Gamma, err = scaleGamma(x, dim, upTo(n)); err != nil {
			return nil, err
		}
	}
	var w svcWorker
	w.k = growMatrix(nil, n*n)
	w.tmp = make([]float64, n)
	rbfTrain(w.k, d2, upTo(n), cfg.Gamma, w.tmp)
	m := &SVC{Gamma: cfg.Gamma, Classes: g.class, dim: dim}
	used := make([]bool, n)
	err = w.fitPairs(ctx, g.start, []float64{cfg.C}, cfg, func(a, b, _ int, sol pairSolution) {
		mc := Machine{First: g.class[a], Second: g.class[b], Rho: sol.rho, Iterations: sol.iter, Dual: sol.dual}
		for t, c := range sol.beta {
			if c != 0 {
				p := pairPoint(g.start, a, b, t)
				used[p] = true
				mc.Support = append(mc.Support, g.points[p])
				mc.Coef = append(mc.Coef, c)
			}
		}
		m.Machines = append(m.Machines, mc)
	})
	if err != nil {
		return nil, err
	}
	for p, u := range used {
		if u {
			m.index = append(m.index, g.points[p])
		}
	}
	m.support = rows(x, dim, m.index)
	return m, nil
}

// trainingGroup checks a training set and sorts it by class.
func trainingGroup(x []float64, dim int, y []int) (group, error) {
	if err := checkMatrix(x, dim); err != nil {
		return group{}, err
	}
	if n := len(x) / dim; len(y) != n {
		return group{}, fmt.Errorf("eval: %d rows of features but %d labels", n, len(y))
	}
	if err := checkLabels(y); err != nil {
		return group{}, err
	}
	g := groupByClass(upTo(len(y)), y)
	if len(g.class) < 2 {
		return group{}, fmt.Errorf("eval: all %d training points have class %d; a classifier needs two classes", len(y), y[0])
	}
	return g, nil
}

// Decision returns the row-major matrix of decision values of the rows of x,
// one column per machine. scikit-learn's decision_function with
// decision_function_shape="ovo" is the same, but with the opposite sign if there
// are only two classes.
func (m *SVC) Decision(x []float64) ([]float64, error) {
	if err := checkMatrix(x, m.dim); err != nil {
		return nil, err
	}
	n := len(x) / m.dim
	at := make(map[int]int, len(m.index)) // training row -> column of the kernel
	for c, i := range m.index {
		at[i] = c
	}
	cols := make([][]int, len(m.Machines))
	for q, mc := range m.Machines {
		for _, i := range mc.Support {
			cols[q] = append(cols[q], at[i])
		}
	}
	out := make([]float64, 0, n*len(m.Machines))
	k := make([]float64, len(m.index))
	for i := range n {
		row := x[i*m.dim : (i+1)*m.dim]
		for c := range k {
			k[c] = distance(m.support[c*m.dim:(c+1)*m.dim], row)
		}
		expNeg(k, -m.Gamma)
		for q, mc := range m.Machines {
			var sum float64
			for s, c := range mc.Coef {
				sum += float64(c * k[cols[q][s]])
			}
			out = append(out, sum-mc.Rho)
		}
	}
	return out, nil
}

// Predict returns the class with the most votes for every row of x; of classes
// with equally many, the lowest.
func (m *SVC) Predict(x []float64) ([]int, error) {
	dec, err := m.Decision(x)
	if err != nil {
		return nil, err
	}
	p := len(m.Machines)
	votes := make([]int, len(m.Classes))
	out := make([]int, len(dec)/p)
	for i := range out {
		out[i] = m.Classes[vote(dec[i*p:(i+1)*p], votes)]
	}
	return out, nil
}

// vote counts the decisions of the pairs (0,1), (0,2), … and returns the index
// of the first class with the most votes. votes is scratch, one per class.
func vote(dec []float64, votes []int) int {
	clear(votes)
	p := 0
	for a := range votes {
		for b := a + 1; b < len(votes); b++ {
			if dec[p] > 0 {
				votes[a]++
			} else {
				votes[b]++
			}
			p++
		}
	}
	best := 0
	for c, v := range votes {
		if v > votes[best] {
			best = c
		}
	}
	return best
}

// svcWorker holds the buffers of one goroutine.
type svcWorker struct {
	k     []float32 // kernel matrix of a training set sorted by class
	diag  []float64 // its diagonal before rounding; nil for ones
	pair  []float32 // its part for two classes
	cross []float64 // kernel of test points against training points
	tmp   []float64
	s     smo
}

// pairSolution is the solution of a two-class problem. beta holds y_tα_t for the
// points of the first class, then of the second.
type pairSolution struct {
	beta []float64
	rho  float64
	dual float64
	iter int
}

// pairPoint returns the training point at place t of the two-class problem (a,b).
func pairPoint(start []int, a, b, t int) int {
	if na := start[a+1] - start[a]; t >= na {
		return start[b] + t - na
	}
	return start[a] + t
}

// fitPairs solves the problem of every pair of classes at every C of cs, which
// ascend, over the kernel matrix w.k of points sorted by class as start says, and
// hands each solution to keep(a, b, index of C, solution).
//
// If no α reached C on the way, the solver would take the same steps at every
// larger C, and the solution is handed over again without solving.
func (w *svcWorker) fitPairs(ctx context.Context, start []int, cs []float64, cfg SVCConfig, keep func(a, b, c int, sol pairSolution)) error {
	classes := len(start) - 1
	n := start[classes]
	for a := range classes {
		for b := a + 1; b < classes; b++ {
			na, nb := start[a+1]-start[a], start[b+1]-start[b]
			k, diag := w.k[:n*n], w.diag
			if classes > 2 {
				k = w.pairKernel(start, a, b)
				if diag != nil {
					diag = slices.Concat(diag[start[a]:start[a+1]], diag[start[b]:start[b+1]])
				}
			}
			w.s.diag = diag
			done := false
			var sol pairSolution
			for c, price := range cs {
				if !done {
					w.s.c, w.s.tol, w.s.maxIter, w.s.shrink = price, cfg.Tol, cfg.MaxIter, !cfg.NoShrinking
					w.s.reset(k, na+nb, na)
					if err := w.s.solve(ctx); err != nil {
						return err
					}
					sol = pairSolution{make([]float64, na+nb), w.s.rho(), w.s.objective(), w.s.iter}
					w.s.coefficients(sol.beta)
					done = !w.s.touched
				}
				keep(a, b, c, sol)
			}
		}
	}
	return nil
}

// pairKernel copies the kernel matrix of two classes together.
func (w *svcWorker) pairKernel(start []int, a, b int) []float32 {
	n := start[len(start)-1]
	na, nb := start[a+1]-start[a], start[b+1]-start[b]
	m := na + nb
	w.pair = growMatrix(w.pair, m*m)
	for t := range m {
		src := w.k[pairPoint(start, a, b, t)*n:][:n]
		dst := w.pair[t*m : (t+1)*m]
		copy(dst, src[start[a]:start[a+1]])
		copy(dst[na:], src[start[b]:start[b+1]])
	}
	return w.pair
}

// predictPairs votes on every row of the kernel w.cross of rows test points
// against the training points, given one solution per pair, and writes the
// indices of the winning classes.
func (w *svcWorker) predictPairs(out []int, start []int, sols []pairSolution) {
	classes := len(start) - 1
	n := start[classes]
	votes := make([]int, classes)
	terms := make([][]term, 0, len(sols))
	for a := range classes {
		for b := a + 1; b < classes; b++ {
			var ts []term
			for t, c := range sols[len(terms)].beta {
				if c != 0 {
					ts = append(ts, term{pairPoint(start, a, b, t), c})
				}
			}
			terms = append(terms, ts)
		}
	}
	dec := make([]float64, 4*len(sols))
	for i := 0; i < len(out); i += 4 { // four test points at a time, the last repeated
		var k [4][]float64
		for q := range k {
			r := min(i+q, len(out)-1)
			k[q] = w.cross[r*n : (r+1)*n]
		}
		for p := range sols {
			sum := decide4(terms[p], &k)
			for q, v := range sum {
				dec[q*len(sols)+p] = v - sols[p].rho
			}
		}
		for q := range min(4, len(out)-i) {
			out[i+q] = vote(dec[q*len(sols):(q+1)*len(sols)], votes)
		}
	}
}

// term is a non-zero coefficient and the column of the kernel it belongs to.
type term struct {
	at   int
	coef float64
}

// decide4 returns Σ coef·k[at] for four rows of the kernel, each summed in order.
func decide4(terms []term, k *[4][]float64) (sum [4]float64) {
	k0 := k[0]
	k1, k2, k3 := k[1][:len(k0)], k[2][:len(k0)], k[3][:len(k0)]
	var s0, s1, s2, s3 float64
	for _, t := range terms {
		s0 += float64(t.coef * k0[t.at])
		s1 += float64(t.coef * k1[t.at])
		s2 += float64(t.coef * k2[t.at])
		s3 += float64(t.coef * k3[t.at])
	}
	return [4]float64{s0, s1, s2, s3}
}
