package descriptor

import (
	"math"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// findStates computes the electrotopological states: the intrinsic state of an atom, and what atoms at a
// distance of d bonds differ from it, over (d+1)².
//
//	L. H. Hall, B. Mohney, L. B. Kier, J. Chem. Inf. Comput. Sci. 31 (1991) 76–82.
func (x *extended) findStates() {
	n := len(x.m.Atoms)
	intrinsic := zeros(x.scratch, n)
	x.scratch = intrinsic
	x.states = zeros(x.states, n)
	for i := range x.m.Atoms {
		a := &x.m.Atoms[i]
		if a.Degree == 0 {
			continue
		}
		electrons := float64(molecule.ElementOf(a.Z).Outer - int(a.Hydrogens))
		shell := float64(quantumNumber(a.Z))
		intrinsic[i] = (4/(shell*shell)*electrons + 1) / float64(a.Degree)
	}
	for i := range n {
		x.findHops(int32(i))
		for j := i + 1; j < n; j++ {
			if x.hops[j] < 0 {
				continue
			}
			p := float64(x.hops[j] + 1)
			difference := (intrinsic[i] - intrinsic[j]) / (p * p)
			x.states[i] += difference
			x.states[j] -= difference
		}
	}
	x.highestState = math.Inf(-1)
	x.lowestState = math.Inf(1)
	x.largestState = 0
	x.smallestState = math.Inf(1)
	for i := range x.states {
		x.states[i] += intrinsic[i]
		s := x.states[i]
		x.highestState = max(x.highestState, s)
		x.lowestState = min(x.lowestState, s)
		x.largestState = max(x.largestState, math.Abs(s))
		x.smallestState = min(x.smallestState, math.Abs(s))
	}
}

// quantumNumber returns the period of an element.
func quantumNumber(z int8) int {
	for period, last := range [...]int8{2, 10, 18, 36, 54, 86} {
		if z <= last {
			return period + 1
		}
	}
	return 7
}

// findHops sets x.hops to the numbers of bonds from an atom to the others, -1 where there is no path.
func (x *extended) findHops(root int32) {
	x.hops = zeros(x.hops, len(x.m.Atoms))
	for i := range x.hops {
		x.hops[i] = -1
	}
	x.hops[root] = 0
	x.queue = append(x.queue[:0], root)
	for head := 0; head < len(x.queue); head++ {
		i := x.queue[head]
		for _, l := range x.of(i) {
			if x.hops[l.atom] < 0 {
				x.hops[l.atom] = x.hops[i] + 1
				x.queue = append(x.queue, l.atom)
			}
		}
	}
}

// findInformation computes the information content of the coefficients of the characteristic polynomial
// of the adjacency matrix, by Le Verrier's method. In large molecules, the coefficients lose all digits
// to rounding. Sums are therefore in the order of RDKit's.
//
//	D. Bonchev, N. Trinajstić, J. Chem. Phys. 67 (1977) 4517–4533.
func (x *extended) findInformation() {
	n := len(x.m.Atoms)
	x.sortNeighbours()
	x.terms = zeros(x.terms, n+1)
	for k := range x.power {
		x.power[k] = zeros(x.power[k], n*n)
	}
	power := x.power[0] // the adjacency matrix times the matrix of the step before
	for i := range n {
		power[i*n+i] = 1
	}
	x.multiply(x.power[1], power)
	x.terms[0] = 1
	for k := 1; k <= n; k++ {
		power = x.power[k%2]
		coefficient := 1 / float64(k) * pairwiseSum(power, n, n+1)
		x.terms[k] = math.Abs(coefficient)
		for i := range n {
			power[i*n+i] -= coefficient
		}
		x.multiply(x.power[(k+1)%2], power)
	}
	sum := 0.0
	for _, t := range x.terms {
		sum += t
	}
	entropy := 0.0
	for _, t := range x.terms {
		entropy -= xlog2(t / sum)
	}
	x.informationByTerm = entropy
	x.information = sum * entropy
}

// sortNeighbours lists the neighbours of every atom in ascending order, in x.neighbours and by x.ptr.
func (x *extended) sortNeighbours() {
	n := len(x.m.Atoms)
	x.neighbours = zeros(x.neighbours, len(x.links))
	x.hops = zeros(x.hops, n) // the number of neighbours listed
	for i := range int32(n) {
		for _, l := range x.of(i) {
			x.neighbours[x.ptr[l.atom]+x.hops[l.atom]] = i
			x.hops[l.atom]++
		}
	}
}

// multiply sets dst to the adjacency matrix times a matrix.
func (x *extended) multiply(dst, matrix []float64) {
	n := len(x.m.Atoms)
	clear(dst)
	for i := range n {
		row := dst[i*n : (i+1)*n]
		for _, neighbour := range x.neighbours[x.ptr[i]:x.ptr[i+1]] {
			for k, v := range matrix[int(neighbour)*n : (int(neighbour)+1)*n] {
				row[k] += v
			}
		}
	}
}

// pairwiseSum returns the sum of n numbers at a distance of stride, in the order in which NumPy adds them.
func pairwiseSum(values []float64, n, stride int) float64 {
	const lanes = 8
	const block = 128
	sum := 0.0
	switch {
	case n < lanes:
		for i := range n {
			sum += values[i*stride]
		}
	case n <= block:
		var r [lanes]float64
		for i := range n - n%lanes {
			r[i%lanes] += values[i*stride]
		}
		sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
		for i := n - n%lanes; i < n; i++ {
			sum += values[i*stride]
		}
	default:
		half := n / 2
		half -= half % lanes
		return pairwiseSum(values, half, stride) + pairwiseSum(values[half*stride:], n-half, stride)
	}
	return sum
}

// spacialScore returns the mean over the atoms, but hydrogens, of products: by hybridisation, for
// stereogenic atoms and bonds, for rings that are not aromatic, and the square of the degree.
//
//	A. Krzyzanowski, A. Pahl, M. Grigalunas, H. Waldmann, J. Med. Chem. 66 (2023) 12739–12750.
func (x *extended) spacialScore() float64 {
	atoms, bonds := x.parser.Stereogenic(x.m)
	for k, stereo := range bonds {
		if stereo {
			atoms[x.m.Bonds[k].Begin] = true
			atoms[x.m.Bonds[k].End] = true
		}
	}
	total := 0
	for i := range x.m.Atoms {
		a := &x.m.Atoms[i]
		score := 4
		switch a.Hybridisation {
		case molecule.HybridSP:
			score = 1
		case molecule.HybridSP2:
			score = 2
		case molecule.HybridSP3:
			score = 3
		}
		if atoms[i] {
			score *= 2
		}
		if a.InRing && !a.Aromatic {
			score *= 2
		}
		total += score * int(a.Degree) * int(a.Degree)
	}
	return float64(total) / float64(x.heavy)
}
