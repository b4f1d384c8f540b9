package descriptor

import (
	"cmp"
	"math"
	"slices"

	"github.com/specmatch/specmatch/gnn/molecule"
)

// Distances are multiples of 1/12: a bond of order o has the length 1/o.
const (
	unit        = 12
	unreachable = math.MaxInt32
	farApart    = 1e8 // RDKit's distance of unconnected atoms
)

var lengths = [...]int32{
	molecule.Single:    12,
	molecule.Double:    6,
	molecule.Triple:    4,
	molecule.Aromatic:  8,
	molecule.Quadruple: 3,
	molecule.Dative:    12,
	molecule.AnyOrder:  12,
}

// findDistances fills w.distance. The search from each atom keeps the waiting atoms in buckets by
// distance.
func (w *work) findDistances() {
	n := len(w.m.Atoms)
	w.distance = slices.Grow(w.distance[:0], n*n)[:n*n]
	for i := range w.distance {
		w.distance[i] = unreachable
	}
	for root := range int32(n) {
		row := w.distance[int(root)*n : (int(root)+1)*n]
		row[root] = 0
		w.buckets[0] = append(w.buckets[0][:0], root)
		waiting := 1
		for d := int32(0); waiting > 0; d++ {
			bucket := &w.buckets[d%int32(len(w.buckets))]
			for k := 0; k < len(*bucket); k++ {
				i := (*bucket)[k]
				waiting--
				if row[i] != d {
					continue // a shorter path has reached the atom
				}
				for _, l := range w.of(i) {
					if distance := d + lengths[l.bond.Type]; distance < row[l.atom] {
						row[l.atom] = distance
						next := &w.buckets[distance%int32(len(w.buckets))]
						*next = append(*next, l.atom)
						waiting++
					}
				}
			}
			*bucket = (*bucket)[:0]
		}
	}
}

// balabanJ returns the averaged connectivity of the sums of distances.
func (w *work) balabanJ() float64 {
	n := len(w.m.Atoms)
	q := len(w.m.Bonds)
	if q-n+2 == 0 {
		return 0
	}
	sums := zeros(w.scratch, n)
	w.scratch = sums
	for i := range sums {
		var total, apart int
		for _, d := range w.distance[i*n : (i+1)*n] {
			if d == unreachable {
				apart++
			} else {
				total += int(d)
			}
		}
		sums[i] = float64(total)/unit + farApart*float64(apart)
	}
	j := 0.0
	for i := range w.m.Bonds {
		j += 1 / math.Sqrt(sums[w.m.Bonds[i].Begin]*sums[w.m.Bonds[i].End])
	}
	return float64(q) / float64(q-n+2) * j
}

// weighted is a pair of bonds or a multiple bond, with the classes of its atoms as its key.
type weighted struct{ key, weight int64 }

// mostDistances is the number of smallest distances that distinguish atoms.
const mostDistances = 100

// bertzCT returns the complexity of the bonds plus that of the elements. The complexity of the bonds
// depends on the number of pairs of neighbouring bonds and of their kinds. Atoms with the same
// distances are of the same kind.
func (w *work) bertzCT() float64 {
	n := len(w.m.Atoms)
	if n < 2 {
		return 0
	}
	w.classify()
	w.edges = w.edges[:0]
	class := func(i int32) int64 { return int64(w.classes[i]) }
	for i := range int32(n) {
		links := w.of(i)
		for k, x := range links {
			order := int64(unit / lengths[x.bond.Type]) // 1 for an aromatic bond
			twice := 2 * order
			if x.bond.Type == molecule.Aromatic {
				twice = 3
			}
			if twice > 2 && x.atom > i { // o(o-1)/2 in eighths
				a := min(class(i), class(x.atom))
				b := max(class(i), class(x.atom))
				w.edges = append(w.edges, weighted{a<<26 | b, twice * (twice - 2)})
			}
			for _, y := range links[:k] {
				twiceOther := 2 * int64(unit/lengths[y.bond.Type])
				if y.bond.Type == molecule.Aromatic {
					twiceOther = 3
				}
				a := min(class(x.atom), class(y.atom))
				b := max(class(x.atom), class(y.atom))
				w.edges = append(w.edges, weighted{a<<26 | class(i)<<13 | b, 2 * twice * twiceOther})
			}
		}
	}
	slices.SortFunc(w.edges, func(a, b weighted) int { return cmp.Compare(a.key, b.key) })
	var total, sum float64
	for k := 0; k < len(w.edges); {
		weight := int64(0)
		key := w.edges[k].key
		for ; k < len(w.edges) && w.edges[k].key == key; k++ {
			weight += w.edges[k].weight
		}
		total += float64(weight) / 8
		sum += xlog2(float64(weight) / 8)
	}
	bonds := 2*xlog2(total) - sum
	w.types = zeros(w.types, 119)
	elements := xlog2(float64(n))
	for i := range w.m.Atoms {
		w.types[w.m.Atoms[i].Z]++
	}
	for _, c := range w.types {
		elements -= xlog2(float64(c))
	}
	return bonds + elements
}

func xlog2(x float64) float64 {
	if x == 0 {
		return 0
	}
	return x * math.Log2(x)
}

// classify gives atoms with the same distances to other atoms the same class, from 1.
func (w *work) classify() {
	n := len(w.m.Atoms)
	w.classes = zeros(w.classes, n)
	first := w.first[:0] // the first atom of each class
	for i := range n {
		row := w.distance[i*n : (i+1)*n]
		slices.Sort(row)
		row = row[:min(n, mostDistances)]
		k := slices.IndexFunc(first, func(j int32) bool {
			return slices.Equal(w.distance[int(j)*n:int(j)*n+len(row)], row)
		})
		if k < 0 {
			k = len(first)
			first = append(first, int32(i))
		}
		w.classes[i] = int32(k) + 1
	}
	w.first = first
}
