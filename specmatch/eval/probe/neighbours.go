package probe

import (
	"context"
	"math"

	"github.com/chewxy/math32"
)

// Similarity is a measure of how near two vectors are.
type Similarity int

const (
	Tanimoto Similarity = iota // x·z / (‖x‖² + ‖z‖² - x·z)
	Cosine                     // x·z / (‖x‖·‖z‖)
)

// Near returns, for each of rows, the k rows of among that are most similar to it, the most similar
// first, and the first of equals. A row is not its own neighbour.
func Near(ctx context.Context, x []float32, dim int, among, rows []int, k int, measure Similarity) ([][]int, error) {
	m := newMatrix(x, dim, among)
	size, _ := m.squares()
	const block = 64 // rows at a time
	z := make([]float32, dim*block)
	dot := make([]float32, m.n*block)
	var near [][]int
	for lo := 0; lo < len(rows); lo += block {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		part := rows[lo:min(lo+block, len(rows))]
		for j, i := range part {
			for f, v := range x[i*dim : (i+1)*dim] {
				z[f*len(part)+j] = v
			}
		}
		m.times(0, m.n, z[:dim*len(part)], len(part), dot[:m.n*len(part)])
		for j, i := range part {
			square := float32(0)
			for _, v := range x[i*dim : (i+1)*dim] {
				square += v * v
			}
			best := make([]int, 0, k+1)
			similarities := make([]float32, 0, k+1)
			for r, candidate := range among {
				s := dot[r*len(part)+j]
				norm := square + size[r] - s
				if measure == Cosine { // the length of the row does not change the order
					norm = math32.Sqrt(size[r])
				}
				s /= max(norm, math.SmallestNonzeroFloat32)
				if candidate == i || len(best) == k && s <= similarities[k-1] {
					continue
				}
				position := len(best)
				for position > 0 && similarities[position-1] < s {
					position--
				}
				best = append(best, 0)
				similarities = append(similarities, 0)
				copy(best[position+1:], best[position:])
				copy(similarities[position+1:], similarities[position:])
				best[position] = candidate
				similarities[position] = s
				best = best[:min(k, len(best))]
				similarities = similarities[:min(k, len(similarities))]
			}
			near = append(near, best)
		}
	}
	return near, nil
}

// Neighbours returns predictions [rows×Tasks]: the mean of the known targets of the k nearest
// training rows, 0 if none is known.
func Neighbours(ctx context.Context, d Data, train, rows []int, k int, measure Similarity) ([]float64, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	near, err := Near(ctx, d.X, d.Dim, train, rows, k, measure)
	y := make([]float64, len(rows)*d.Tasks)
	for r, nearest := range near {
		for t := range d.Tasks {
			var sum, n float64
			for _, i := range nearest {
				if v := d.Y[i*d.Tasks+t]; !math.IsNaN(v) {
					sum += v
					n++
				}
			}
			y[r*d.Tasks+t] = sum / max(n, 1)
		}
	}
	return y, err
}
