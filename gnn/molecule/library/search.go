package library

import (
	"cmp"
	"iter"
	"slices"
)

// Hit is a molecule with its similarity to a query.
type Hit struct {
	Index      int
	Similarity float64
}

// compareHits sorts hits by descending similarity, and equal ones by index.
func compareHits(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.Index, b.Index))
}

// Best keeps the hits of a query: the nearest ones, or all that are similar enough.
type Best struct {
	top   int
	least float64 // a hit with less is not kept
	hits  []Hit   // a heap, with the worst one first, once there are top
}

// NewBest returns an empty Best for the top hits whose similarity is at least least; top 0 keeps all of them.
// With least 0, vectors whose cosine is negative are no hits.
func NewBest(top int, least float64) *Best { return &Best{top: top, least: least} }

// Add adds a hit, if it is among the best so far. Hits come by ascending index: an equal one that
// comes later is not better.
func (b *Best) Add(index int, similarity float64) {
	if !(similarity >= b.least) {
		return
	}
	hit := Hit{index, similarity}
	switch {
	case b.top == 0:
		b.hits = append(b.hits, hit)
	case len(b.hits) < b.top:
		b.hits = append(b.hits, hit)
		if len(b.hits) == b.top {
			slices.SortFunc(b.hits, func(x, y Hit) int {
				return compareHits(y, x)
			}) // a sorted list is a heap
			b.least = max(b.least, b.hits[0].Similarity)
		}
	case compareHits(hit, b.hits[0]) < 0:
		b.hits[0] = hit
		b.sink()
		b.least = max(b.least, b.hits[0].Similarity)
	}
}

// sink moves the first hit to its place in the heap.
func (b *Best) sink() {
	for parent := 0; ; {
		child := 2*parent + 1
		if child+1 < len(b.hits) && compareHits(b.hits[child+1], b.hits[child]) > 0 {
			child++
		}
		if child >= len(b.hits) || compareHits(b.hits[child], b.hits[parent]) <= 0 {
			return
		}
		b.hits[parent], b.hits[child] = b.hits[child], b.hits[parent]
		parent = child
	}
}

// Hits returns the hits by descending similarity; equal ones by index.
func (b *Best) Hits() []Hit {
	sorted := slices.Clone(b.hits)
	slices.SortFunc(sorted, compareHits)
	return sorted
}

// From returns the hits whose index is at least begin, in any order: those that a search of a part has added.
func (b *Best) From(begin int) iter.Seq[Hit] {
	return func(yield func(Hit) bool) {
		for _, hit := range slices.Backward(b.hits) {
			switch {
			case hit.Index >= begin:
				if !yield(hit) {
					return
				}
			case len(b.hits) != b.top: // by index, until there are enough
				return
			}
		}
	}
}

// Len returns the number of hits.
func (b *Best) Len() int { return len(b.hits) }
