package eval

import (
	"fmt"
	"math"
	"slices"
)

// Data is a set of labelled points: here, the embeddings of the graphs of one
// data set under a frozen encoder.
type Data struct {
	// X is the row-major [n×Dim] matrix of features.
	X []float64
	// Dim is the number of features d of a point.
	Dim int
	// Y holds the n class labels 0..C-1; every one of them occurs.
	Y []int
}

// Len returns the number of points.
func (d Data) Len() int { return len(d.Y) }

// Classes returns the number of classes C, 1 + the largest label.
func (d Data) Classes() int {
	c := 0
	for _, y := range d.Y {
		c = max(c, y+1)
	}
	return c
}

// Validate reports the first flaw: sizes that do not fit, a number that is not
// finite, a negative label, a class without a point, fewer than two classes.
func (d Data) Validate() error {
	if err := checkMatrix(d.X, d.Dim); err != nil {
		return err
	}
	if n := len(d.X) / d.Dim; len(d.Y) != n {
		return fmt.Errorf("eval: %d rows of features but %d labels", n, len(d.Y))
	}
	return d.validateLabels()
}

// validateLabels is Validate without the features.
func (d Data) validateLabels() error {
	if err := checkLabels(d.Y); err != nil {
		return err
	}
	n := d.Len()
	// A label above n cannot leave every class occupied; the check keeps a
	// stray label from claiming any amount of memory.
	for i, y := range d.Y {
		if y >= n {
			return fmt.Errorf("eval: label %d of point %d is out of range: %d points cannot fill classes 0..%d", y, i, n, y)
		}
	}
	count := make([]int, d.Classes())
	for _, y := range d.Y {
		count[y]++
	}
	for c, k := range count {
		if k == 0 {
			return fmt.Errorf("eval: no point has class %d, but labels go up to %d", c, len(count)-1)
		}
	}
	if len(count) < 2 {
		return fmt.Errorf("eval: all %d points have class 0; a classifier needs two classes", n)
	}
	return nil
}

func checkMatrix(x []float64, dim int) error {
	if dim <= 0 {
		return fmt.Errorf("eval: number of features %d, want at least 1", dim)
	}
	if len(x) == 0 {
		return fmt.Errorf("eval: no points")
	}
	if len(x)%dim != 0 {
		return fmt.Errorf("eval: %d numbers are not rows of %d features", len(x), dim)
	}
	for i, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("eval: feature is %v in row %d, column %d", v, i/dim, i%dim)
		}
		// Squares of differences must be finite, too.
		if math.Abs(v) > maxFeature {
			return fmt.Errorf("eval: feature is %g in row %d, column %d, beyond ±%g", v, i/dim, i%dim, float64(maxFeature))
		}
	}
	return nil
}

// maxFeature bounds features so that sums of squares over a data set cannot
// overflow: 1e140² · 1e6 rows · 1e6 columns < 1e308.
const maxFeature = 1e140

func checkLabels(y []int) error {
	for i, c := range y {
		if c < 0 {
			return fmt.Errorf("eval: label %d of point %d is negative", c, i)
		}
	}
	return nil
}

// group is a set of points sorted by class, and by index within a class.
type group struct {
	points []int // indices of points
	class  []int // labels that occur, ascending
	start  []int // points[start[c]:start[c+1]] have label class[c]
}

// groupByClass sorts points by label, then by index.
func groupByClass(points, y []int) group {
	g := group{points: slices.Clone(points)}
	slices.SortFunc(g.points, func(a, b int) int {
		if y[a] != y[b] {
			return y[a] - y[b]
		}
		return a - b
	})
	for p, i := range g.points {
		if p == 0 || y[i] != y[g.points[p-1]] {
			g.class = append(g.class, y[i])
			g.start = append(g.start, p)
		}
	}
	g.start = append(g.start, len(points))
	return g
}

// rows returns the rows idx of the matrix x with d columns.
func rows(x []float64, d int, idx []int) []float64 {
	out := make([]float64, 0, len(idx)*d)
	for _, i := range idx {
		out = append(out, x[i*d:(i+1)*d]...)
	}
	return out
}

// upTo returns 0, 1, …, n-1.
func upTo(n int) []int {
	v := make([]int, n)
	for i := range v {
		v[i] = i
	}
	return v
}
