package kernel

import (
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
)

// Refinement holds the colors that nodes have after each round of the
// Weisfeiler-Lehman refinement.
type Refinement struct {
	// Ptr delimits the graphs: those of graph g are the nodes Ptr[g]…Ptr[g+1]-1.
	Ptr []int
	// Colors[t] has the color of every node after round t, in 0..Sizes[t]-1.
	Colors [][]int32
	// Sizes[t] is the number of colors of round t.
	Sizes []int
}

// Refine runs h ≥ 0 rounds over all graphs together. Nodes start with their category
// or, if the features are constant or no categories, with their degree, the number of
// edges that end in them. All graphs must have the same kind of features, as those of
// one data set do. Neighbours of a node are the sources of its edges.
func Refine(graphs []*graph.Graph, h int) *Refinement {
	r := &Refinement{Ptr: make([]int, len(graphs)+1)}
	for k, g := range graphs {
		r.Ptr[k+1] = r.Ptr[k] + g.Nodes()
	}
	n := r.Ptr[len(graphs)]
	// Round 0: categories or degrees.
	colors := make([]int32, n)
	number := make(map[int32]int32)
	for k, g := range graphs {
		for i := range g.Nodes() {
			colors[r.Ptr[k]+i] = colorOf(number, startLabel(g, i))
		}
	}
	r.add(colors, len(number))
	var c graph.Colors
	for range h {
		previous := colors
		colors = make([]int32, n)
		c.Begin(r.Sizes[len(r.Sizes)-1])
		for k, g := range graphs {
			lo, hi := r.Ptr[k], r.Ptr[k+1]
			c.Refine(colors[lo:hi], previous[lo:hi], r.Sizes[len(r.Sizes)-1], g.Ptr, g.Adj, nil)
		}
		r.add(colors, c.Len())
	}
	return r
}

func (r *Refinement) add(colors []int32, size int) {
	r.Colors = append(r.Colors, colors)
	r.Sizes = append(r.Sizes, size)
}

// HasLabels reports whether the nodes of a graph start with categories rather than
// degrees.
func HasLabels(g *graph.Graph) bool { return g.X.OneHot() && g.X.Width > 1 }

func startLabel(g *graph.Graph, i int) int32 {
	if HasLabels(g) {
		return g.X.Category[i]
	}
	return g.Ptr[i+1] - g.Ptr[i]
}

// colorOf returns the number of a key, the next one if it is new.
func colorOf[K comparable](number map[K]int32, key K) int32 {
	c, ok := number[key]
	if !ok {
		c = int32(len(number))
		number[key] = c
	}
	return c
}

// Counts returns, for every round, the matrix of how often each color occurs in each
// graph.
func (r *Refinement) Counts() []*Sparse {
	rounds := make([]*Sparse, len(r.Colors))
	var sorted []int32
	for t, colors := range r.Colors {
		m := &Sparse{Width: r.Sizes[t], Ptr: make([]int, len(r.Ptr))}
		for g := range len(r.Ptr) - 1 {
			sorted = append(sorted[:0], colors[r.Ptr[g]:r.Ptr[g+1]]...)
			slices.Sort(sorted)
			for i := 0; i < len(sorted); {
				j := i + 1
				for j < len(sorted) && sorted[j] == sorted[i] {
					j++
				}
				m.Index = append(m.Index, sorted[i])
				m.Value = append(m.Value, float64(j-i))
				i = j
			}
			m.Ptr[g+1] = len(m.Index)
		}
		rounds[t] = m
	}
	return rounds
}

// Subtree returns the WL subtree kernel for h = 0, 1, …, len(rounds)-1, given the
// counts of the rounds.
func Subtree(rounds []*Sparse) []*Matrix { return cumulate(rounds, (*Sparse).Gram) }

// Assignment returns the WL optimal assignment kernel for h = 0, 1, …,
// len(rounds)-1, given the counts of the rounds.
func Assignment(rounds []*Sparse) []*Matrix {
	return cumulate(rounds, (*Sparse).Intersection)
}

// cumulate returns the running sums of the rounds' kernels.
func cumulate(rounds []*Sparse, kernel func(*Sparse) *Matrix) []*Matrix {
	sums := make([]*Matrix, len(rounds))
	for t, m := range rounds {
		sums[t] = kernel(m)
		if t > 0 {
			for i, v := range sums[t-1].v {
				sums[t].v[i] += v
			}
		}
	}
	return sums
}
