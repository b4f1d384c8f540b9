package library

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// TSNEOptions are the settings of [TSNE]. Zeros stand for the defaults.
type TSNEOptions struct {
	Perplexity float64         // about how many neighbours of a molecule stay close to it; 30
	Iterations int             // of gradient descent; 1,000
	Done       func(steps int) // called after each iteration
}

// Settings of the descent, those of the paper and of scikit-learn.
const (
	exaggeration      = 12.0
	exaggerated       = 250 // iterations
	momentumEarly     = 0.5
	momentumLate      = 0.8
	theta             = 0.5  // a cell whose size is below theta times its distance counts as a point
	initialSpread     = 1e-4 // standard deviation of the first coordinate at the start
	smallestGain      = 0.01
	nearestPerplexity = 3 // neighbours in units of the perplexity
)

// TSNE returns coordinates in which molecules that are similar in the set are close to each other.
// Distances in the set are 1 minus the similarity. The descent starts from the principal
// components, so that the same set gives the same map. Work grows with the square of the number of
// molecules, for the exact neighbours.
//
//	L. van der Maaten, Accelerating t-SNE using tree-based algorithms, J. Mach. Learn. Res. 15 (2014) 3221–3245.
func TSNE(ctx context.Context, s Set, o TSNEOptions) (p Projection, err error) {
	n := s.Len()
	o.Perplexity = min(cmp.Or(o.Perplexity, 30), float64(max(1, n-1))/nearestPerplexity)
	o.Iterations = cmp.Or(o.Iterations, 1000)
	start, err := PCA(ctx, s)
	if err != nil || n < 3 {
		return start, err
	}
	d := newDescent(n)
	d.edges, err = affinities(ctx, s, o.Perplexity)
	if err != nil {
		return p, err
	}
	d.place(start.XY)
	for step := range o.Iterations {
		early := step < exaggerated
		momentum := momentumLate
		d.exaggeration = 1
		if early {
			momentum = momentumEarly
			d.exaggeration = exaggeration
		}
		if err := d.step(ctx, momentum); err != nil {
			return p, err
		}
		if o.Done != nil {
			o.Done(1)
		}
	}
	p.XY = d.xy
	return p, nil
}

// edge is a neighbour with the probability of the pair, in percent of all pairs.
type edge struct {
	neighbour int32
	weight    float64
}

// affinities returns the symmetric probabilities of pairs of neighbours, by molecule. Those of a
// molecule's neighbours are normal in their distance, with the deviation that gives the perplexity.
func affinities(ctx context.Context, s Set, perplexity float64) ([][]edge, error) {
	n := s.Len()
	count := min(n-1, int(nearestPerplexity*perplexity))
	conditional := make([][]edge, n)
	err := parallel(ctx, n, nil, func(i int) {
		best := NewBest(count+1, math.Inf(-1))
		s.Search(best, s, i, 0, n, 0)
		var squares []float64
		for _, hit := range best.Hits() {
			if hit.Index == i || len(squares) == count {
				continue
			}
			distance := 1 - hit.Similarity
			squares = append(squares, distance*distance)
			conditional[i] = append(conditional[i], edge{neighbour: int32(hit.Index)})
		}
		for k, weight := range calibrate(squares, perplexity) {
			conditional[i][k].weight = weight / float64(2*n)
		}
	})
	if err != nil {
		return nil, err
	}
	joint := make([][]edge, n)
	for i, list := range conditional {
		joint[i] = append(joint[i], list...)
		for _, e := range list {
			joint[e.neighbour] = append(joint[e.neighbour], edge{int32(i), e.weight})
		}
	}
	for i, list := range joint { // a pair that is near in both directions is there twice
		slices.SortStableFunc(list, func(a, b edge) int {
			return cmp.Compare(a.neighbour, b.neighbour)
		})
		merged := list[:0]
		for _, e := range list {
			if k := len(merged) - 1; k >= 0 && merged[k].neighbour == e.neighbour {
				merged[k].weight += e.weight
				continue
			}
			merged = append(merged, e)
		}
		joint[i] = merged
	}
	return joint, nil
}

// calibrate returns probabilities of neighbours at some squared distances, whose entropy is that of
// as many equally likely ones as the perplexity says.
func calibrate(squares []float64, perplexity float64) []float64 {
	weights := make([]float64, len(squares))
	if len(squares) == 0 {
		return weights
	}
	nearest := slices.Min(squares)
	precision := 1.0
	low := 0.0
	high := math.Inf(1)
	for range 100 {
		sum := 0.0
		mean := 0.0
		for k, square := range squares {
			weights[k] = math.Exp(-precision * (square - nearest))
			sum += weights[k]
			mean += weights[k] * (square - nearest)
		}
		entropy := math.Log(sum) + precision*mean/sum
		for k := range weights {
			weights[k] /= sum
		}
		difference := entropy - math.Log(perplexity)
		if math.Abs(difference) < 1e-5 {
			break
		}
		if difference > 0 {
			low = precision
			precision = min(2*precision, (precision+high)/2)
		} else {
			high = precision
			precision = (precision + low) / 2
		}
	}
	return weights
}

// descent is the state of a gradient descent.
type descent struct {
	xy           [][2]float64
	edges        [][]edge
	exaggeration float64

	velocity [][2]float64
	gain     [][2]float64
	attract  [][2]float64
	repel    [][2]float64
	norm     []float64 // of each molecule, its part of the normaliser
	rate     float64
	tree     quadtree
}

func newDescent(n int) *descent {
	d := &descent{
		xy:       make([][2]float64, n),
		velocity: make([][2]float64, n),
		gain:     make([][2]float64, n),
		attract:  make([][2]float64, n),
		repel:    make([][2]float64, n),
		norm:     make([]float64, n),
		rate:     max(float64(n)/exaggeration/4, 50),
	}
	for i := range d.gain {
		d.gain[i] = [2]float64{1, 1}
	}
	return d
}

// place sets the start to some coordinates, much smaller. Molecules with equal coordinates are
// moved apart a little.
func (d *descent) place(start [][2]float64) {
	squares := 0.0
	for _, p := range start {
		squares += p[0] * p[0]
	}
	scale := initialSpread
	if squares > 0 {
		scale /= math.Sqrt(squares / float64(len(start)))
	}
	for i, p := range start {
		angle := float64(i) * math.Pi * (3 - math.Sqrt(5)) // the golden angle spreads them
		d.xy[i][0] = scale*p[0] + 1e-3*initialSpread*math.Cos(angle)
		d.xy[i][1] = scale*p[1] + 1e-3*initialSpread*math.Sin(angle)
	}
}

// step moves all molecules once.
func (d *descent) step(ctx context.Context, momentum float64) error {
	d.tree.build(d.xy)
	err := parallel(ctx, len(d.xy), nil, d.force)
	if err != nil {
		return err
	}
	normaliser := 0.0
	for _, part := range d.norm {
		normaliser += part
	}
	var mean [2]float64
	for i := range d.xy {
		for k := range 2 {
			gradient := 4 * (d.exaggeration*d.attract[i][k] - d.repel[i][k]/normaliser)
			if gradient*d.velocity[i][k] > 0 {
				d.gain[i][k] = max(smallestGain, 0.8*d.gain[i][k])
			} else {
				d.gain[i][k] += 0.2
			}
			d.velocity[i][k] = momentum*d.velocity[i][k] - d.rate*d.gain[i][k]*gradient
			d.xy[i][k] += d.velocity[i][k]
			mean[k] += d.xy[i][k] / float64(len(d.xy))
		}
	}
	for i := range d.xy {
		d.xy[i][0] -= mean[0]
		d.xy[i][1] -= mean[1]
	}
	return nil
}

// force computes what attracts and what repels a molecule.
func (d *descent) force(i int) {
	p := d.xy[i]
	var attract [2]float64
	for _, e := range d.edges[i] {
		q := d.xy[e.neighbour]
		dx := p[0] - q[0]
		dy := p[1] - q[1]
		weight := e.weight / (1 + dx*dx + dy*dy)
		attract[0] += weight * dx
		attract[1] += weight * dy
	}
	d.attract[i] = attract
	d.repel[i], d.norm[i] = d.tree.repel(p)
}

// quadtree divides the plane into quarters, those again, and so on, until each has one point, or
// many equal ones.
type quadtree struct{ cells []cell }

type cell struct {
	centre [2]float64 // of the square
	half   float64    // half the length of its side
	sum    [2]float64 // of the points
	count  int32
	child  int32 // the first of four; 0 for none
}

// mostDepth bounds the depth of a tree, for points that are almost equal.
const mostDepth = 40

// build makes the tree of some points.
func (t *quadtree) build(points [][2]float64) {
	low := points[0]
	high := points[0]
	for _, p := range points {
		for k := range 2 {
			low[k] = min(low[k], p[k])
			high[k] = max(high[k], p[k])
		}
	}
	root := cell{
		centre: [2]float64{(low[0] + high[0]) / 2, (low[1] + high[1]) / 2},
		half:   max(high[0]-low[0], high[1]-low[1])/2 + math.SmallestNonzeroFloat64,
	}
	t.cells = append(t.cells[:0], root)
	for _, p := range points {
		t.insert(p)
	}
}

// insert adds a point to all cells that it lies in.
func (t *quadtree) insert(p [2]float64) {
	place := int32(0)
	for depth := 0; ; depth++ {
		c := &t.cells[place]
		isEmpty := c.count == 0
		if !isEmpty && c.child == 0 && depth < mostDepth {
			t.split(place)
			c = &t.cells[place]
		}
		c.sum[0] += p[0]
		c.sum[1] += p[1]
		c.count++
		if isEmpty || c.child == 0 {
			return
		}
		place = c.child + c.quarter(p)
	}
}

// split gives a cell four children, and its points to one of them.
func (t *quadtree) split(place int32) {
	parent := t.cells[place]
	first := int32(len(t.cells))
	for k := range 4 {
		half := parent.half / 2
		child := cell{half: half, centre: parent.centre}
		child.centre[0] += half * float64(2*(k&1)-1)
		child.centre[1] += half * float64(k&2-1)
		t.cells = append(t.cells, child)
	}
	t.cells[place].child = first
	count := float64(parent.count)
	moved := &t.cells[first+parent.quarter([2]float64{parent.sum[0] / count, parent.sum[1] / count})]
	moved.sum = parent.sum
	moved.count = parent.count
}

// quarter returns which child of a cell a point lies in.
func (c *cell) quarter(p [2]float64) (k int32) {
	if p[0] > c.centre[0] {
		k = 1
	}
	if p[1] > c.centre[1] {
		k += 2
	}
	return k
}

// repel returns the sum of (p - q)/(1 + d²)² over all points q at the distance d from p, and that
// of 1/(1 + d²). Far cells count as points.
func (t *quadtree) repel(p [2]float64) (force [2]float64, norm float64) {
	var memory [4 * mostDepth]int32
	stack := append(memory[:0], 0)
	for len(stack) > 0 {
		c := &t.cells[stack[len(stack)-1]]
		stack = stack[:len(stack)-1]
		if c.count == 0 {
			continue
		}
		count := float64(c.count)
		dx := p[0] - c.sum[0]/count
		dy := p[1] - c.sum[1]/count
		square := dx*dx + dy*dy
		if c.child != 0 && 4*c.half*c.half >= theta*theta*square {
			stack = append(stack, c.child, c.child+1, c.child+2, c.child+3)
			continue
		}
		q := 1 / (1 + square)
		norm += count * q
		force[0] += count * q * q * dx
		force[1] += count * q * q * dy
		if square == 0 { // the point itself
			norm--
		}
	}
	return force, norm
}
