package probe

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

const (
	mostPolished = 1024 // rows: polishing factors a matrix of that size
	newtonSteps  = 50
)

// polish replaces the weights of a task by the minimum in float64, if there are no more rows than
// columns and the descent stopped away from it. The products of the descent are in float32, whose
// rounding hides the slope where the loss is nearly 0: with columns to spare and a small strength.
func (p *problem) polish(d *descent) {
	if p.x.n > p.x.dim || p.x.n > mostPolished {
		return
	}
	e := p.newExact(d.task, d.strength)
	loss, g := e.lossOf(d.w)
	// The loss is strongly convex: it is at most ‖g‖²/2λ above its minimum.
	if floats.Dot(g, g)/(2*d.strength) <= tolerance*loss {
		return
	}
	if w := e.minimise(); w != nil {
		if least, _ := e.lossOf(w); least < loss {
			copy(d.w, w)
		}
	}
}

// exact is the loss of one task over the rows that have a target, in float64.
type exact struct {
	kind     Kind
	strength float64
	x        *mat.Dense    // [n×dim]
	kernel   *mat.SymDense // x·xᵀ
	y        []float64
	weights  []float64 // of the rows
	total    float64   // sum of the weights
}

func (p *problem) newExact(task int, strength float64) *exact {
	e := &exact{kind: p.kind, strength: strength}
	var values []float64
	for i := range p.x.n {
		y := p.y[i*p.tasks+task]
		if math.IsNaN(y) {
			continue
		}
		e.y = append(e.y, y)
		e.weights = append(e.weights, p.weights[i])
		e.total += p.weights[i]
		row := make([]float64, p.x.dim)
		p.x.each(i, func(column int, v float32) { row[column] = float64(v) })
		values = append(values, row...)
	}
	e.x = mat.NewDense(len(e.y), p.x.dim, values)
	return e
}

// lossOf returns the mean loss + ½·strength·‖w‖² of weights that end with the intercept, and its gradient.
func (e *exact) lossOf(w []float64) (loss float64, g []float64) {
	n, dim := e.x.Dims()
	weights := mat.NewVecDense(dim, w[:dim])
	outputs := mat.NewVecDense(n, nil)
	outputs.MulVec(e.x, weights)
	g = make([]float64, dim+1)
	slopes := mat.NewVecDense(n, nil)
	for i, y := range e.y {
		l, slope := e.kind.loss(outputs.AtVec(i)+w[dim], y)
		weight := e.weights[i]
		loss += weight * l / e.total
		slopes.SetVec(i, weight*slope/e.total)
		g[dim] += weight * slope / e.total
	}
	gradient := mat.NewVecDense(dim, g[:dim])
	gradient.MulVec(e.x.T(), slopes)
	gradient.AddScaledVec(gradient, e.strength, weights)
	return loss + 0.5*e.strength*mat.Dot(weights, weights), g
}

// minimise returns the weights of the minimum by Newton's method, nil if a system is singular. The
// weights are xᵀ·a with one a for each row, so that a system has the size of the rows: with slopes
// s and curvatures c of the losses at the outputs o, it is
//
//	(K + λn·diag(1/c))·a + b = o - s/c,  Σ a = 0
//
// With weights v of the rows, n is their sum, and λn/c is λn/(v·c).
func (e *exact) minimise() []float64 {
	n, dim := e.x.Dims()
	e.kernel = mat.NewSymDense(n, nil)
	e.kernel.SymOuterK(1, e.x)
	a := mat.NewVecDense(n, nil)
	b := 0.0
	loss, outputs := e.lossOfRows(a, b)
	for range newtonSteps {
		newA, newB, ok := e.newton(outputs)
		if !ok {
			return nil
		}
		// Halve the step until the loss falls.
		step := 1.0
		tried := mat.NewVecDense(n, nil)
		for {
			tried.SubVec(newA, a)
			tried.AddScaledVec(a, step, tried)
			triedB := b + step*(newB-b)
			l, o := e.lossOfRows(tried, triedB)
			if l <= loss || step < 1e-6 {
				fell := loss - l
				a.CopyVec(tried)
				b = triedB
				loss = l
				outputs = o
				if fell <= 1e-12*loss {
					w := make([]float64, dim+1)
					mat.NewVecDense(dim, w[:dim]).MulVec(e.x.T(), a)
					w[dim] = b
					return w
				}
				break
			}
			step /= 2
		}
	}
	return nil
}

// lossOfRows is [exact.lossOf] of the weights xᵀ·a and the intercept b, with the outputs.
func (e *exact) lossOfRows(a *mat.VecDense, b float64) (loss float64, outputs []float64) {
	n := len(e.y)
	o := mat.NewVecDense(n, nil)
	o.MulVec(e.kernel, a)
	loss = 0.5 * e.strength * mat.Dot(a, o)
	outputs = make([]float64, n)
	for i, y := range e.y {
		outputs[i] = o.AtVec(i) + b
		l, _ := e.kind.loss(outputs[i], y)
		loss += e.weights[i] * l / e.total
	}
	return loss, outputs
}

// newton solves the system of [exact.minimise].
func (e *exact) newton(outputs []float64) (a *mat.VecDense, b float64, ok bool) {
	const flat = 1e-12 // least curvature
	n := len(e.y)
	system := mat.NewSymDense(n, nil)
	system.CopySym(e.kernel)
	z := mat.NewVecDense(n, nil)
	ones := mat.NewVecDense(n, nil)
	for i, y := range e.y {
		_, slope := e.kind.loss(outputs[i], y)
		curvature := 1.0
		if e.kind == Logistic {
			curvature = max(flat, (slope+y)*(1-slope-y)) // σ·(1-σ)
		}
		ridge := e.strength * e.total / (e.weights[i] * curvature)
		system.SetSym(i, i, system.At(i, i)+ridge)
		z.SetVec(i, outputs[i]-slope/curvature)
		ones.SetVec(i, 1)
	}
	var factor mat.Cholesky
	if !factor.Factorize(system) {
		return nil, 0, false
	}
	a = mat.NewVecDense(n, nil)
	v := mat.NewVecDense(n, nil)
	if factor.SolveVecTo(a, z) != nil || factor.SolveVecTo(v, ones) != nil {
		return nil, 0, false
	}
	b = mat.Sum(a) / mat.Sum(v)
	a.AddScaledVec(a, -b, v)
	return a, b, true
}
