package eval

import (
	"fmt"
	"math"
	"slices"

	"github.com/specmatch/specmatch/gnn/dataset"
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

// Validate reports the first flaw: sizes that do not fit, a number that is not
// finite, a negative label, a class without a point, fewer than two classes.
func (d Data) Validate() error {
	if d.Dim <= 0 {
		return fmt.Errorf("eval: number of features %d, want at least 1", d.Dim)
	}
	if len(d.X)%d.Dim != 0 {
		return fmt.Errorf("eval: %d numbers are not rows of %d features", len(d.X), d.Dim)
	}
	for i, v := range d.X {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("eval: feature is %v in row %d, column %d", v, i/d.Dim, i%d.Dim)
		}
		// Squares of differences must be finite, too.
		if math.Abs(v) > maxFeature {
			return fmt.Errorf("eval: feature is %g in row %d, column %d, beyond ±%g",
				v, i/d.Dim, i%d.Dim, float64(maxFeature))
		}
	}
	if n := len(d.X) / d.Dim; len(d.Y) != n {
		return fmt.Errorf("eval: %d rows of features but %d labels", n, len(d.Y))
	}
	return checkLabels(d.Y)
}

// maxFeature bounds features so that sums of squares over a data set cannot
// overflow: 1e140² · 1e6 rows · 1e6 columns < 1e308.
const maxFeature = 1e140

func (d Data) row(i int) []float64 { return d.X[i*d.Dim : (i+1)*d.Dim] }

// checkLabels returns an error unless the labels are 0..C-1, each at least once, C ≥ 2.
func checkLabels(y []int) error {
	if len(y) == 0 {
		return fmt.Errorf("eval: no points")
	}
	// The number of points bounds labels, so that a stray one claims no memory.
	count := make([]int, len(y))
	for i, c := range y {
		if c < 0 {
			return fmt.Errorf("eval: label %d of point %d is negative", c, i)
		}
		if c >= len(y) {
			return fmt.Errorf(
				"eval: label %d of point %d is out of range: %d points cannot fill classes 0..%d",
				c, i, len(y), c,
			)
		}
		count[c]++
	}
	classes := classesOf(y)
	if c := slices.Index(count[:classes], 0); c >= 0 {
		return fmt.Errorf("eval: no point has class %d, but labels go up to %d", c, classes-1)
	}
	if classes < 2 {
		return fmt.Errorf("eval: all %d points have class 0; a classifier needs two classes", len(y))
	}
	return nil
}

// classesOf returns the number of classes C, 1 + the largest label.
func classesOf(y []int) int { return 1 + slices.Max(y) }

// part is the training part of a fold.
type part struct {
	y      []int // labels of all points
	train  []int // the points of the part, in the order of the fold
	points []int // the same, sorted by class, then by index
	class  []int // labels that occur, ascending
	start  []int // points[start[c]:start[c+1]] have label class[c]
}

func newPart(y, train []int) part {
	p := part{y: y, train: train, points: slices.Clone(train)}
	slices.SortFunc(p.points, func(a, b int) int {
		if y[a] != y[b] {
			return y[a] - y[b]
		}
		return a - b
	})
	for k, i := range p.points {
		if k == 0 || y[i] != y[p.points[k-1]] {
			p.class, p.start = append(p.class, y[i]), append(p.start, k)
		}
	}
	p.start = append(p.start, len(train))
	return p
}

// upTo returns 0, 1, …, n-1.
func upTo(n int) []int {
	v := make([]int, n)
	for i := range v {
		v[i] = i
	}
	return v
}

func splitInner(y []int, outer []dataset.Fold, k int) ([][]dataset.Fold, error) {
	if len(outer) == 0 {
		return nil, fmt.Errorf("eval: no outer folds")
	}
	n := len(y)
	inner := make([][]dataset.Fold, len(outer))
	lastFold := make([]int, n) // 1 + the fold in which a point was last seen
	for o, f := range outer {
		if len(f.Train) == 0 || len(f.Test) == 0 {
			return nil, fmt.Errorf("eval: outer fold %d has %d training and %d test points",
				o, len(f.Train), len(f.Test))
		}
		for _, i := range slices.Concat(f.Train, f.Test) {
			if i < 0 || i >= n {
				return nil, fmt.Errorf("eval: outer fold %d: point %d is out of range 0..%d", o, i, n-1)
			}
			if lastFold[i] == o+1 {
				return nil, fmt.Errorf("eval: outer fold %d: point %d occurs twice", o, i)
			}
			lastFold[i] = o + 1
		}
		labels := make([]int, len(f.Train))
		for t, i := range f.Train {
			labels[t] = y[i]
		}
		if slices.Min(labels) == slices.Max(labels) {
			return nil, fmt.Errorf("eval: outer fold %d: its training points are all of class %d",
				o, labels[0])
		}
		folds, err := dataset.StratifiedKFold(labels, k, false, 0)
		if err != nil {
			return nil, fmt.Errorf("eval: outer fold %d: grid search: %w", o, err)
		}
		for i, g := range folds { // places in Train -> points
			for _, part := range [][]int{g.Train, g.Test} {
				for t, place := range part {
					part[t] = f.Train[place]
				}
			}
			if len(g.Test) == 0 {
				return nil, fmt.Errorf("eval: outer fold %d: inner fold %d is empty", o, i)
			}
		}
		inner[o] = folds
	}
	return inner, nil
}

// HoldOut divides the Train of every outer fold: a tenth of it, drawn at random from
// the seed, becomes Test, and the others are Train.
func HoldOut(outer []dataset.Fold, seed uint32) []dataset.Fold {
	rng := dataset.NewRandomState(seed)
	held := make([]dataset.Fold, len(outer))
	for o, f := range outer {
		test := make([]int, len(f.Train)) // 1 for the points that are held out
		for i := range (len(f.Train) + 9) / 10 {
			test[i] = 1
		}
		rng.Shuffle(test)
		for i, p := range f.Train {
			if test[i] == 1 {
				held[o].Test = append(held[o].Test, p)
			} else {
				held[o].Train = append(held[o].Train, p)
			}
		}
	}
	return held
}
