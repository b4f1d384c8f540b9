package descriptor

import (
	"math"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// extremes are the largest and the smallest eigenvalue of a matrix.
type extremes struct{ highest, lowest float64 }

// unbound is the entry of Burden's matrix for atoms that no bond joins.
const unbound = 0.001

// findEigenvalues computes the extreme eigenvalues of Burden's matrices. The diagonal is a property of
// the atoms, and the entry of a bond of order o is 1/√o.
//
//	F. R. Burden, J. Chem. Inf. Comput. Sci. 29 (1989) 225–227.
//
// Hydrogens that are atoms, such as deuterium, become counts at their neighbours, as in RDKit.
func (x *extended) findEigenvalues() {
	x.eigenvalues = [4]extremes{}
	var hydrogens []int
	for i := range x.m.Atoms {
		if x.m.Atoms[i].Z == 1 {
			hydrogens = append(hydrogens, i)
		}
	}
	if len(hydrogens) > 0 {
		if m, err := x.parser.Without(x.m, hydrogens...); err == nil { // else nothing is left
			var heavy extended
			heavy.m = m
			heavy.connect()
			heavy.findContributions()
			heavy.findCharges()
			heavy.findEigenvalues()
			x.eigenvalues = heavy.eigenvalues
		}
		return
	}
	n := len(x.m.Atoms)
	x.masses = zeros(x.masses, n)
	for i := range x.m.Atoms {
		x.masses[i] = x.m.Atoms[i].Mass()
	}
	for k, property := range [...][]float64{x.masses, x.charges, x.contributions[0], x.contributions[1]} {
		x.burden(property)
		x.eigenvalues[k] = x.extremeEigenvalues(n)
	}
}

// burden sets x.matrix to Burden's matrix of a property. Undefined values count as 0.
func (x *extended) burden(property []float64) {
	n := len(property)
	x.matrix = zeros(x.matrix, n*n)
	for i := range x.matrix {
		x.matrix[i] = unbound
	}
	for i, p := range property {
		if math.IsNaN(p) || math.IsInf(p, 0) {
			p = 0
		}
		x.matrix[i*n+i] = p
	}
	for k := range x.m.Bonds {
		b := &x.m.Bonds[k]
		entry := 1.0
		switch b.Type {
		case molecule.Double:
			entry = 1 / math.Sqrt2
		case molecule.Triple:
			entry = 1 / math.Sqrt(3)
		case molecule.Aromatic:
			entry = 1 / math.Sqrt(1.5)
		}
		x.matrix[int(b.Begin)*n+int(b.End)] = entry
		x.matrix[int(b.End)*n+int(b.Begin)] = entry
	}
}

// extremeEigenvalues returns the extreme eigenvalues of the symmetric matrix x.matrix, which it destroys.
func (x *extended) extremeEigenvalues(n int) extremes {
	if n == 0 {
		return extremes{}
	}
	x.scratch = zeros(x.scratch, 3*n)
	diagonal := x.scratch[:n]
	squares := x.scratch[n : 2*n] // of the entries beside the diagonal; the first is 0
	tridiagonalise(x.matrix, diagonal, squares, x.scratch[2*n:])
	// Gershgorin's circles hold all eigenvalues.
	low := math.Inf(1)
	high := math.Inf(-1)
	for i := range n {
		radius := math.Sqrt(squares[i])
		if i+1 < n {
			radius += math.Sqrt(squares[i+1])
		}
		low = min(low, diagonal[i]-radius)
		high = max(high, diagonal[i]+radius)
	}
	return extremes{
		highest: bisect(diagonal, squares, low, high, n),
		lowest:  bisect(diagonal, squares, low, high, 1),
	}
}

// tridiagonalise makes a symmetric matrix tridiagonal by Householder's reflections, from the last row
// upwards. It returns the diagonal and the squares of the entries before it in each row.
func tridiagonalise(matrix, diagonal, squares, product []float64) {
	n := len(diagonal)
	for end := n - 1; end > 0; end-- {
		row := matrix[end*n : end*n+end] // becomes the vector of the reflection
		diagonal[end] = matrix[end*n+end]
		norm := 0.0
		for _, v := range row {
			norm += v * v
		}
		squares[end] = norm
		pivot := row[end-1]
		if norm == pivot*pivot {
			continue // nothing to remove
		}
		alpha := math.Copysign(math.Sqrt(norm), pivot)
		row[end-1] = pivot + alpha
		half := norm + alpha*pivot // half of the squared length of the vector
		// product is the matrix times the vector, less what keeps it symmetric.
		overlap := 0.0
		for i := range end {
			sum := 0.0
			for k, v := range matrix[i*n : i*n+end] {
				sum += v * row[k]
			}
			product[i] = sum / half
			overlap += product[i] * row[i]
		}
		overlap /= 2 * half
		for i := range end {
			product[i] -= overlap * row[i]
		}
		for i := range end {
			target := matrix[i*n : i*n+end]
			v := row[i]
			p := product[i]
			for k := range target {
				target[k] -= v*product[k] + p*row[k]
			}
		}
	}
	diagonal[0] = matrix[0]
	squares[0] = 0
}

// bisect returns the rank-th smallest eigenvalue of a tridiagonal matrix between two bounds, by Sturm's
// sequence.
func bisect(diagonal, squares []float64, low, high float64, rank int) float64 {
	for range 60 {
		middle := (low + high) / 2
		if high-low <= 1e-13*max(math.Abs(low), math.Abs(high)) {
			break
		}
		smaller := 0
		q := 1.0
		for i, d := range diagonal {
			q = d - middle - squares[i]/q
			if q == 0 {
				q = 1e-300
			}
			if q < 0 {
				smaller++
			}
		}
		if smaller >= rank {
			high = middle
		} else {
			low = middle
		}
	}
	return (low + high) / 2
}
