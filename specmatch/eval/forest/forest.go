// Package forest fits random forests (Breiman, Machine Learning 45 (2001) 5): the mean of decision trees, each
// grown on a bootstrap sample, with the best of a random choice of columns at each split.
//
// Outputs are numbers; those of classes are 1 and 0, so that the decrease of the variance is that of Gini's
// impurity, and a prediction is a probability. Values of a column are first put into at most 64 bins, which
// makes a split a pass over counts. The same seed gives the same forest on any number of cores. A forest can be
// stored as JSON.
package forest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/specmatch/specmatch/gnn/random"
)

// Options say how a forest is grown.
type Options struct {
	Trees int // 0 is 100
	// Share is the share of the columns that vary that is tried at each split; 0 is a third.
	Share float64
	Leaf  int // the fewest samples of a leaf; 0 is 1
	Seed  uint64
}

// Forest is a fitted forest.
type Forest struct {
	dim, outputs int
	trees        []tree
}

// tree is a list of nodes, from the root.
type tree struct {
	nodes  []node
	values []float64 // of the leaves, [leaves×outputs]
}

// node is a split, whose children are the nodes left and left+1, or a leaf.
type node struct {
	column    int32   // -1 for a leaf
	threshold float32 // a larger value goes to the right
	left      int32   // of a leaf: its number
}

const (
	maxBins     = 64
	purposeTree = random.Purpose(1<<32 + 77)
)

// Fit grows a forest for samples x [n×dim] with targets y [n×outputs]. All numbers must be finite.
func Fit(ctx context.Context, x []float32, dim int, y []float64, outputs int, o Options) (*Forest, error) {
	n := len(y) / max(outputs, 1)
	if dim < 1 || outputs < 1 || n < 1 || len(x) != n*dim || len(y) != n*outputs {
		return nil, fmt.Errorf("forest: %d numbers and %d targets for %d columns and %d outputs",
			len(x), len(y), dim, outputs)
	}
	invalid := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	if slices.ContainsFunc(y, invalid) || slices.ContainsFunc(x, func(v float32) bool { return invalid(float64(v)) }) {
		return nil, errors.New("forest: a number is not finite")
	}
	o.Trees = cmp.Or(o.Trees, 100)
	o.Leaf = cmp.Or(o.Leaf, 1)
	if o.Share == 0 {
		o.Share = 1.0 / 3
	}
	d := newData(x, dim, y, outputs)
	f := &Forest{dim: dim, outputs: outputs, trees: make([]tree, o.Trees)}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), o.Trees) {
		wg.Go(func() {
			g := newGrower(d, o)
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= o.Trees {
					return
				}
				f.trees[i] = g.grow(random.Stream(o.Seed, purposeTree, 0, i))
			}
		})
	}
	wg.Wait()
	return f, ctx.Err()
}

// Predict returns the predictions [n×outputs] for samples x [n×dim].
func (f *Forest) Predict(x []float32) []float64 {
	n := len(x) / f.dim
	y := make([]float64, n*f.outputs)
	for i := range n {
		f.Add(y[i*f.outputs:], x[i*f.dim:(i+1)*f.dim])
	}
	return y
}

// Add adds the predictions for a sample [dim] to y [outputs].
func (f *Forest) Add(y []float64, sample []float32) {
	for t := range f.trees {
		for k, v := range f.trees[t].leaf(sample, f.outputs) {
			y[k] += v / float64(len(f.trees))
		}
	}
}

// Trees returns the number of trees.
func (f *Forest) Trees() int { return len(f.trees) }

// Size returns the numbers of columns and outputs.
func (f *Forest) Size() (dim, outputs int) { return f.dim, f.outputs }

// leaf returns the values of the leaf where a sample ends.
func (t *tree) leaf(row []float32, outputs int) []float64 {
	i := int32(0)
	for t.nodes[i].column >= 0 {
		split := &t.nodes[i]
		i = split.left
		if row[split.column] > split.threshold {
			i++
		}
	}
	start := int(t.nodes[i].left) * outputs
	return t.values[start : start+outputs]
}

// data are samples in bins.
type data struct {
	columns    []int32     // those that vary
	bins       [][]uint8   // of each of them, for each sample
	thresholds [][]float32 // between the bins
	y          []float64
	outputs    int
	samples    int
}

func newData(x []float32, dim int, y []float64, outputs int) *data {
	n := len(x) / dim
	d := &data{y: y, outputs: outputs, samples: n}
	values := make([]float32, n)
	for c := range dim {
		for i := range values {
			values[i] = x[i*dim+c]
		}
		thresholds := separate(values)
		if len(thresholds) == 0 {
			continue
		}
		bins := make([]uint8, n)
		for i, v := range values {
			bin, _ := slices.BinarySearch(thresholds, v) // of the first threshold that is not below v
			bins[i] = uint8(bin)
		}
		d.columns = append(d.columns, int32(c))
		d.bins = append(d.bins, bins)
		d.thresholds = append(d.thresholds, thresholds)
	}
	return d
}

// separate returns at most maxBins-1 ascending thresholds, which lie between different values, so that about
// as many values lie between two of them as between any others. There are none for equal values.
func separate(values []float32) (thresholds []float32) {
	sorted := slices.Sorted(slices.Values(values))
	distinct := slices.Compact(slices.Clone(sorted))
	if len(distinct) > maxBins {
		var chosen []float32
		for b := 1; b < maxBins; b++ {
			chosen = append(chosen, sorted[b*len(sorted)/maxBins])
		}
		distinct = slices.Compact(append(chosen, sorted[len(sorted)-1]))
	}
	for k := range len(distinct) - 1 {
		thresholds = append(thresholds, distinct[k])
	}
	return thresholds
}

// grower grows trees on one goroutine.
type grower struct {
	*data
	leaf, tried int
	order       []int32 // columns, by their place in data; shuffled as splits draw them
	members     []int32 // samples, with repetition; a node has a part of them
	spare       []int32
	counts      [maxBins]int32
	sums        []float64 // [maxBins×outputs]
	left        []float64 // [outputs]
	whole       []float64 // [outputs]
	tree        tree
}

func newGrower(d *data, o Options) *grower {
	g := &grower{
		data:    d,
		leaf:    o.Leaf,
		tried:   max(1, int(o.Share*float64(len(d.columns)))),
		order:   make([]int32, len(d.columns)),
		members: make([]int32, d.samples),
		sums:    make([]float64, maxBins*d.outputs),
		left:    make([]float64, d.outputs),
		whole:   make([]float64, d.outputs),
	}
	return g
}

// grow returns a tree on a bootstrap sample.
func (g *grower) grow(rng *rand.Rand) tree {
	for i := range g.order {
		g.order[i] = int32(i)
	}
	for i := range g.members {
		g.members[i] = int32(rng.IntN(g.samples))
	}
	slices.Sort(g.members) // for the cache; the order does not matter to a split
	g.tree = tree{nodes: make([]node, 1)}
	type open struct {
		node       int32
		begin, end int
	}
	stack := []open{{0, 0, len(g.members)}}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		members := g.members[top.begin:top.end]
		s, ok := g.best(members, rng)
		if !ok {
			g.tree.nodes[top.node] = node{column: -1, left: int32(len(g.tree.values) / g.outputs)}
			for _, sum := range g.whole {
				mean := float32(sum / float64(len(members))) // as files hold it
				g.tree.values = append(g.tree.values, float64(mean))
			}
			continue
		}
		middle := top.begin + g.partition(members, s)
		left := int32(len(g.tree.nodes))
		g.tree.nodes[top.node] = node{
			column:    g.columns[s.column],
			threshold: g.thresholds[s.column][s.bin],
			left:      left,
		}
		g.tree.nodes = append(g.tree.nodes, node{}, node{})
		stack = append(stack, open{left + 1, middle, top.end}, open{left, top.begin, middle})
	}
	return g.tree
}

// split sends the samples up to a bin of a column to the left.
type split struct {
	column int32 // place in data
	bin    uint8
}

// best returns the split that decreases the variance most, among the columns that are drawn, and sets whole
// to the sum of the targets. It draws on while no column can split. ok is false if none can.
func (g *grower) best(members []int32, rng *rand.Rand) (s split, ok bool) {
	clear(g.whole)
	squares := 0.0
	for _, i := range members {
		for k, y := range g.y[int(i)*g.outputs : (int(i)+1)*g.outputs] {
			g.whole[k] += y
			squares += y * y
		}
	}
	n := float64(len(members))
	base := 0.0
	for _, sum := range g.whole {
		base += sum * sum / n
	}
	if len(members) < 2*g.leaf || squares-base <= 1e-12*squares { // all targets are equal
		return s, false
	}
	largest := base * (1 + 1e-12)
	for drawn := range g.order {
		if drawn >= g.tried && ok {
			break
		}
		k := drawn + rng.IntN(len(g.order)-drawn)
		g.order[drawn], g.order[k] = g.order[k], g.order[drawn]
		column := g.order[drawn]
		if bin, score := g.bestBin(members, column); score > largest {
			largest = score
			s = split{column, bin}
			ok = true
		}
	}
	return s, ok
}

// bestBin returns the best split by a column with its score, Σ sum²/n over both sides and all outputs; the
// score is 0 without one.
func (g *grower) bestBin(members []int32, column int32) (best uint8, largest float64) {
	bins := g.bins[column]
	lowest := bins[members[0]]
	highest := lowest
	for _, i := range members {
		lowest = min(lowest, bins[i])
		highest = max(highest, bins[i])
	}
	if lowest == highest { // most columns of a fingerprint, in most nodes
		return 0, 0
	}
	outputs := g.outputs
	first := int(lowest)
	end := int(highest) + 1
	clear(g.counts[first:end])
	clear(g.sums[first*outputs : end*outputs])
	for _, i := range members {
		bin := int(bins[i])
		g.counts[bin]++
		for k, y := range g.y[int(i)*outputs : (int(i)+1)*outputs] {
			g.sums[bin*outputs+k] += y
		}
	}
	clear(g.left)
	count := int32(0)
	for bin := first; bin < end-1; bin++ {
		if g.counts[bin] == 0 {
			continue
		}
		count += g.counts[bin]
		score := 0.0
		remaining := int32(len(members)) - count
		for k, sum := range g.sums[bin*outputs : (bin+1)*outputs] {
			g.left[k] += sum
			remainder := g.whole[k] - g.left[k]
			score += g.left[k]*g.left[k]/float64(count) + remainder*remainder/math.Max(1, float64(remaining))
		}
		if int(min(count, remaining)) >= g.leaf && score > largest {
			best = uint8(bin)
			largest = score
		}
	}
	return best, largest
}

// partition moves the samples that go to the left before the others, in their order, and returns how many
// they are.
func (g *grower) partition(members []int32, s split) (n int) {
	g.spare = g.spare[:0]
	for _, i := range members {
		if g.bins[s.column][i] <= s.bin {
			members[n] = i
			n++
		} else {
			g.spare = append(g.spare, i)
		}
	}
	copy(members[n:], g.spare)
	return n
}
