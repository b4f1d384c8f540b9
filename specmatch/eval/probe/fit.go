package probe

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// problem is the fit of all tasks to some rows.
type problem struct {
	kind      Kind
	x         *matrix
	axes      *axes
	y         []float64 // [n×tasks]; standardised for Squares
	weights   []float64 // [n], of the rows
	tasks     int
	targets   []float64 // sum of the weights of each task's targets
	mean, std []float64 // of the targets of each task
}

// problem returns the fit of all tasks to some rows.
func (d *Data) problem(rows []int) *problem {
	p := &problem{
		kind:  d.Kind,
		x:     newMatrix(d.X, d.Dim, rows),
		y:     d.targets(rows),
		tasks: d.Tasks,
	}
	p.axes = d.axes(rows)
	p.targets = make([]float64, d.Tasks)
	p.mean = make([]float64, d.Tasks)
	p.std = make([]float64, d.Tasks)
	for _, i := range rows {
		p.weights = append(p.weights, d.weight(i))
	}
	eachTarget := func(f func(t int, w float64, y *float64)) {
		for k := range p.y {
			if !math.IsNaN(p.y[k]) {
				f(k%d.Tasks, p.weights[k/d.Tasks], &p.y[k])
			}
		}
	}
	eachTarget(func(t int, w float64, _ *float64) { p.targets[t] += w })
	eachTarget(func(t int, w float64, y *float64) { p.mean[t] += w * *y / p.targets[t] })
	eachTarget(func(t int, w float64, y *float64) {
		p.std[t] += w * (*y - p.mean[t]) * (*y - p.mean[t]) / p.targets[t]
	})
	for t, v := range p.std {
		p.std[t] = math.Sqrt(v)
		if v == 0 {
			p.std[t] = 1
		}
	}
	if d.Kind == Squares {
		eachTarget(func(t int, _ float64, y *float64) { *y = (*y - p.mean[t]) / p.std[t] })
	}
	return p
}

const (
	// a fit ends when the next step would lower the loss by less than this share of it
	tolerance      = 1e-7
	maxEvaluations = 300 // of a fit, which then ends where it is
	memory         = 10  // pairs of L-BFGS
	blockRows      = 256 // vectors at a time, which fit into the processor's cache
)

// descent minimises the loss of one task by L-BFGS. Weights end with the intercept.
type descent struct {
	task           int
	w, g           []float64 // the present weights, and the gradient there
	loss           float64
	axes           *axes
	curvature      float64 // mean curvature of the loss
	strength       float64
	direction      []float64
	slope, step    float64
	steps, changes [][]float64 // the latest, of w and g
	tried          []float64   // the weights to evaluate next
}

// fit fits all tasks together, so that they share each product with the vectors, from the weights
// of another model or from 0. A task without a target predicts 0, and one with a single answer
// predicts that answer.
func (p *problem) fit(ctx context.Context, strength float64, start *Model) (*Model, error) {
	dim := p.x.dim
	tasks := p.tasks
	m := &Model{
		Kind:      p.kind,
		Strength:  strength,
		W:         make([]float32, dim*tasks),
		Intercept: make([]float64, tasks),
		Mean:      p.mean,
		Std:       p.std,
	}
	active := p.descents(strength, start)
	descents := slices.Clone(active)
	for range maxEvaluations {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(active) == 0 {
			break
		}
		losses, gradients := p.evaluate(active, strength)
		continuing := active[:0]
		for k, d := range active {
			if d.advance(losses[k], gradients[k]) {
				continuing = append(continuing, d)
			}
		}
		active = continuing
	}
	for _, d := range descents {
		p.polish(d)
		for k := range dim {
			m.W[k*tasks+d.task] = float32(d.w[k])
		}
		m.Intercept[d.task] = d.w[dim]
	}
	return m, nil
}

// descents returns a descent for each task with a target, from the weights of another model or from 0.
func (p *problem) descents(strength float64, start *Model) (active []*descent) {
	dim := p.x.dim
	for t := range p.tasks {
		if p.targets[t] == 0 {
			continue
		}
		d := &descent{
			task:      t,
			w:         make([]float64, dim+1),
			tried:     make([]float64, dim+1),
			axes:      p.axes,
			curvature: 1,
			strength:  strength,
		}
		if v := p.mean[t]; p.kind == Logistic && v > 0 && v < 1 {
			d.w[dim] = math.Log(v / (1 - v))
			d.curvature = v * (1 - v)
		}
		if start != nil {
			for k := range dim {
				d.w[k] = float64(start.W[k*p.tasks+t])
			}
			d.w[dim] = start.Intercept[t]
		}
		copy(d.tried, d.w)
		active = append(active, d)
	}
	return active
}

// advance takes the loss and the gradient at the tried weights, and chooses those to try next. It
// reports whether the descent continues.
func (d *descent) advance(loss float64, g []float64) bool {
	const sufficient = 1e-4 // share of the decrease that the slope predicts
	switch {
	case d.g == nil:
	case !(loss <= d.loss+sufficient*d.step*d.slope):
		d.step /= 4
		floats.AddScaledTo(d.tried, d.w, d.step, d.direction)
		return d.step > 1e-6 // otherwise at the precision of float32
	default:
		s := make([]float64, len(g))
		y := make([]float64, len(g))
		floats.SubTo(s, d.tried, d.w)
		floats.SubTo(y, g, d.g)
		if floats.Dot(s, y) > 0 {
			if len(d.steps) == memory {
				d.steps = d.steps[1:]
				d.changes = d.changes[1:]
			}
			d.steps = append(d.steps, s)
			d.changes = append(d.changes, y)
		}
	}
	copy(d.w, d.tried)
	d.loss = loss
	d.g = g
	d.step = 1
	// The direction is -H·g, by the two loops of Nocedal (1980).
	q := slices.Clone(g)
	alpha := make([]float64, len(d.steps))
	for k := len(d.steps) - 1; k >= 0; k-- {
		alpha[k] = floats.Dot(d.steps[k], q) / floats.Dot(d.steps[k], d.changes[k])
		floats.AddScaled(q, -alpha[k], d.changes[k])
	}
	gamma := 1.0
	if n := len(d.steps); n > 0 {
		y := slices.Clone(d.changes[n-1])
		d.axes.divide(y, d.curvature, d.strength)
		gamma = floats.Dot(d.steps[n-1], d.changes[n-1]) / floats.Dot(y, d.changes[n-1])
	}
	d.axes.divide(q, d.curvature, d.strength)
	floats.Scale(gamma, q)
	for k := range d.steps {
		beta := floats.Dot(d.changes[k], q) / floats.Dot(d.steps[k], d.changes[k])
		floats.AddScaled(q, alpha[k]-beta, d.steps[k])
	}
	floats.Scale(-1, q)
	d.direction = q
	d.slope = floats.Dot(q, g)
	floats.AddTo(d.tried, d.w, q)
	return -d.slope > tolerance*loss
}

// evaluate returns the mean loss + ½·strength·‖w‖² and its gradient at the weights that each
// descent tries. Sums are in float64, products with the vectors in float32.
func (p *problem) evaluate(active []*descent, strength float64) (losses []float64, gradients [][]float64) {
	dim := p.x.dim
	a := len(active)
	w := make([]float32, dim*a)
	back := make([]float32, dim*a)
	losses = make([]float64, a)
	for k, d := range active {
		g := make([]float64, dim+1)
		for f, v := range d.tried[:dim] {
			w[f*a+k] = float32(v)
			losses[k] += 0.5 * strength * v * v
			g[f] = strength * v
		}
		gradients = append(gradients, g)
	}
	out := make([]float32, blockRows*a)
	for lo := 0; lo < p.x.n; lo += blockRows {
		hi := min(lo+blockRows, p.x.n)
		block := out[:(hi-lo)*a]
		p.x.times(lo, hi, w, a, block)
		for k, d := range active {
			for i := range hi - lo {
				y := p.y[(lo+i)*p.tasks+d.task]
				if math.IsNaN(y) {
					block[i*a+k] = 0
					continue
				}
				loss, slope := p.kind.loss(float64(block[i*a+k])+d.tried[dim], y)
				loss *= p.weights[lo+i]
				slope *= p.weights[lo+i]
				losses[k] += loss / p.targets[d.task]
				gradients[k][dim] += slope / p.targets[d.task]
				block[i*a+k] = float32(slope / p.targets[d.task])
			}
		}
		p.x.back(lo, hi, block, a, back)
	}
	for k, g := range gradients {
		for f := range dim {
			g[f] += float64(back[f*a+k])
		}
	}
	return losses, gradients
}

// loss returns the loss of an output s for a target y, and its derivative.
func (k Kind) loss(s, y float64) (loss, slope float64) {
	if k == Squares {
		return 0.5 * (s - y) * (s - y), s - y
	}
	e := math.Exp(-math.Abs(s))
	loss = math.Max(s, 0) - s*y + math.Log1p(e)
	if s < 0 {
		return loss, e/(1+e) - y
	}
	return loss, 1/(1+e) - y
}
