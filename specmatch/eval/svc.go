package eval

import (
	"context"
	"slices"
)

// solution is the decision function Σ coef·K(x_at, x) − rho between two classes a < b; a
// positive decision is a vote for a.
type solution struct {
	terms []term // those with coef = y_tα_t ≠ 0, y = +1 for a; in the order of the points
	rho   float64
	steps int // of the solver
}

// term is a non-zero coefficient and the training point it belongs to.
type term struct {
	at   int
	coef float64
}

// pairPoint returns the training point at place t of the two-class problem (a,b).
func pairPoint(start []int, a, b, t int) int {
	if na := start[a+1] - start[a]; t >= na {
		return start[b] + t - na
	}
	return start[a] + t
}

// fit solves the problem of every pair of classes (0,1), (0,2), …, (1,2), … for each C of
// cs, which ascend, over the kernel matrix m.k of points sorted by class as start says.
//
// Until an α reaches C, the solver takes the same steps at every larger C, which therefore
// begins there: the iterates are those of a solver that begins at 0. If none did, the
// solution stands for all larger C.
func (m *kernelMachine) fit(ctx context.Context, start []int, cs []float64) ([][]solution, error) {
	solutions := make([][]solution, len(cs)) // by C; pair
	classes := len(start) - 1
	for a := range classes {
		for b := a + 1; b < classes; b++ {
			na := start[a+1] - start[a]
			nb := start[b+1] - start[b]
			k := m.k[:start[classes]*start[classes]]
			diag := m.diag
			if classes > 2 {
				k = m.pairKernel(start, a, b)
				if diag != nil {
					diag = slices.Concat(diag[start[a]:start[a+1]], diag[start[b]:start[b+1]])
				}
			}
			m.s.diag = diag
			done := false
			var found solution
			for c, price := range cs {
				if !done {
					m.s.c = price
					if c == 0 {
						m.s.reset(k, na+nb, na)
					} else {
						m.s.resume()
					}
					if err := m.s.solve(ctx); err != nil {
						return nil, err
					}
					found = solution{rho: m.s.rho(), steps: m.s.iter}
					for t, coef := range m.s.coefficients() {
						if coef != 0 {
							found.terms = append(found.terms, term{pairPoint(start, a, b, t), coef})
						}
					}
					done = !m.s.touched
				}
				solutions[c] = append(solutions[c], found)
			}
		}
	}
	return solutions, nil
}

// pairKernel copies the kernel matrix of two classes together.
func (m *kernelMachine) pairKernel(start []int, a, b int) []float32 {
	n := start[len(start)-1]
	na := start[a+1] - start[a]
	nb := start[b+1] - start[b]
	size := na + nb
	m.pair = growMatrix(m.pair, size*size)
	for t := range size {
		src := m.k[pairPoint(start, a, b, t)*n:][:n]
		dst := m.pair[t*size : (t+1)*size]
		copy(dst, src[start[a]:start[a+1]])
		copy(dst[na:], src[start[b]:start[b+1]])
	}
	return m.pair
}

// vote returns the place of the class with the most votes for each of the test points.
func (m *kernelMachine) vote(solutions []solution, classes, tests int) []int {
	decisions := make([]float64, tests*len(solutions)) // by test point; pair
	for p, s := range solutions {
		sums := make([]float64, tests)
		for _, e := range s.terms {
			k := m.cross[e.at*tests:][:len(sums)]
			for t := range sums {
				sums[t] += float64(e.coef * k[t])
			}
		}
		for t, sum := range sums {
			decisions[t*len(solutions)+p] = sum - s.rho
		}
	}
	out := make([]int, tests)
	votes := make([]int, classes)
	for t := range out {
		out[t] = mostVotes(decisions[t*len(solutions):], votes)
	}
	return out
}

// mostVotes counts the decisions of the pairs (0,1), (0,2), … and returns the index
// of the first class with the most votes. votes is scratch, one per class.
func mostVotes(dec []float64, votes []int) int {
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
