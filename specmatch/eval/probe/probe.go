// Package probe fits linear models to frozen vectors, to say what the vectors know: ridge regression
// for numbers, logistic regression for yes-or-no tasks. It is how encoders and fingerprints of
// molecules are compared.
//
//	s := probe.Standardize(x, dim, train)   // by the training part
//	m, err := probe.Choose(ctx, d, train, valid, score)
//	y := m.Predict(x)
//
// Tasks are fitted one by one to the records that have a target. The intercept is not
// penalised.
package probe

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/optimize"
)

// Kind is the loss of a model.
type Kind int

const (
	Squares  Kind = iota // ½(ŷ-y)², of targets that are standardised by those of the fit
	Logistic             // -ln σ(±ŷ), of targets 0 and 1
)

// Data are vectors and targets.
type Data struct {
	X     []float32 // [N×Dim], row-major
	Dim   int
	Y     []float64 // [N×Tasks], row-major; NaN is no target
	Tasks int
	Kind  Kind
}

func (d *Data) check() error {
	switch {
	case d.Dim < 1 || d.Tasks < 1 || len(d.X)%d.Dim != 0 || len(d.Y)%d.Tasks != 0 || len(d.X)/d.Dim != len(d.Y)/d.Tasks:
		return fmt.Errorf("probe: %d numbers in vectors of %d, and %d targets of %d tasks", len(d.X), d.Dim, len(d.Y), d.Tasks)
	case d.Kind == Logistic:
		for i, y := range d.Y {
			if y != 0 && y != 1 && !math.IsNaN(y) {
				return fmt.Errorf("probe: row %d: target %v; logistic regression wants 0 or 1", i/d.Tasks, y)
			}
		}
	}
	for i, x := range d.X {
		if x-x != 0 {
			return fmt.Errorf("probe: row %d: column %d is %v", i/d.Dim, i%d.Dim, x)
		}
	}
	return nil
}

// Model is a linear model for each task.
type Model struct {
	Kind      Kind
	Strength  float64
	W         [][]float32 // [Tasks][Dim]
	Intercept []float64
	// Mean and Std are of the targets of [Squares].
	Mean, Std []float64
}

// Predict returns the predictions [N×Tasks] for vectors x [N×Dim]: numbers in the unit of the
// targets, or probabilities.
func (m *Model) Predict(x []float32) []float64 {
	tasks, dim := len(m.W), len(m.W[0])
	n := len(x) / dim
	y, out := make([]float64, n*tasks), make([]float32, n)
	for t, w := range m.W {
		product(x, dim, w, out)
		for i, v := range out {
			s := float64(v) + m.Intercept[t]
			if m.Kind == Logistic {
				s = 1 / (1 + math.Exp(-s))
			} else {
				s = m.Mean[t] + m.Std[t]*s
			}
			y[i*tasks+t] = s
		}
	}
	return y
}

// product sets y [N] to x·w.
func product(x []float32, dim int, w, y []float32) {
	if len(y) > 0 {
		blas32.Gemv(blas.NoTrans, 1, blas32.General{Rows: len(y), Cols: dim, Stride: dim, Data: x}, blas32.Vector{N: dim, Inc: 1, Data: w}, 0, blas32.Vector{N: len(y), Inc: 1, Data: y})
	}
}

// Strengths are the factors of ½‖w‖², beside a mean of the loss, from which [Choose] chooses.
var Strengths = []float64{10, 1, 0.1, 0.01, 1e-3, 1e-4}

// Choose fits a model of every one of Strengths to the rows of the training part, and returns the
// one with the highest score of its predictions for the rows of the validation part, the strongest
// of equals. A score that is NaN is below all others.
func Choose(ctx context.Context, d Data, train, valid []int, score func(predicted, y []float64) float64) (*Model, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	v := d.rows(valid)
	part := d.rows(train)
	var best *Model
	most, start := math.Inf(-1), (*Model)(nil)
	for _, strength := range Strengths {
		m, err := part.fit(ctx, strength, start)
		if err != nil {
			return nil, err
		}
		if s := score(m.Predict(v.X), v.Y); best == nil || s > most {
			best = m
			if !math.IsNaN(s) {
				most = s
			}
		}
		start = m
	}
	return best, nil
}

// Fit fits a model to rows.
func Fit(ctx context.Context, d Data, rows []int, strength float64) (*Model, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if !(strength > 0) || math.IsInf(strength, 0) {
		return nil, fmt.Errorf("probe: a strength of %v; want a number above 0", strength)
	}
	part := d.rows(rows)
	return part.fit(ctx, strength, nil)
}

// rows returns the data of some rows.
func (d *Data) rows(rows []int) Data {
	p := *d
	p.X, p.Y = make([]float32, 0, len(rows)*d.Dim), make([]float64, 0, len(rows)*d.Tasks)
	for _, i := range rows {
		p.X, p.Y = append(p.X, d.X[i*d.Dim:(i+1)*d.Dim]...), append(p.Y, d.Y[i*d.Tasks:(i+1)*d.Tasks]...)
	}
	return p
}

// fit fits all tasks to all rows, from the weights of another model or from 0. A task that has no
// target, or one answer alone, gets the answer.
func (d *Data) fit(ctx context.Context, strength float64, start *Model) (*Model, error) {
	m := &Model{Kind: d.Kind, Strength: strength}
	for t := range d.Tasks {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p := problem{d: d, ctx: ctx, strength: strength, x: d.X}
		for i := range len(d.Y) / d.Tasks {
			if y := d.Y[i*d.Tasks+t]; !math.IsNaN(y) {
				p.y = append(p.y, y)
				p.used = append(p.used, i)
			}
		}
		if len(p.y) < len(d.Y)/d.Tasks {
			part := Data{X: d.X, Dim: d.Dim, Y: d.Y, Tasks: d.Tasks}
			p.x = (&part).rows(p.used).X
		}
		w := make([]float64, d.Dim+1)
		if start != nil {
			for f, v := range start.W[t] {
				w[f] = float64(v)
			}
			w[d.Dim] = start.Intercept[t]
		}
		mean, std := p.standardize()
		if err := p.solve(w); err != nil {
			return nil, fmt.Errorf("probe: task %d: %w", t, err)
		}
		row := make([]float32, d.Dim)
		for f := range row {
			row[f] = float32(w[f])
		}
		m.W, m.Intercept = append(m.W, row), append(m.Intercept, w[d.Dim])
		m.Mean, m.Std = append(m.Mean, mean), append(m.Std, std)
	}
	return m, nil
}

// problem is the fit of one task.
type problem struct {
	d        *Data
	ctx      context.Context
	strength float64
	x        []float32
	y        []float64
	used     []int
}

// standardize standardises targets of numbers.
func (p *problem) standardize() (mean, std float64) {
	if p.d.Kind == Logistic || len(p.y) == 0 {
		return 0, 1
	}
	n := float64(len(p.y))
	for _, y := range p.y {
		mean += y / n
	}
	for _, y := range p.y {
		std += (y - mean) * (y - mean) / n
	}
	if std = math.Sqrt(std); std == 0 {
		std = 1
	}
	for i := range p.y {
		p.y[i] = (p.y[i] - mean) / std
	}
	return mean, std
}

// solve minimises mean loss + ½·strength·‖w‖² over the weights and, last, the intercept, by L-BFGS.
// Sums are in float64 but for the products with the vectors.
func (p *problem) solve(w []float64) error {
	n, dim := len(p.y), p.d.Dim
	if n == 0 {
		clear(w)
		return nil
	}
	w32, out, slope, back := make([]float32, dim), make([]float32, n), make([]float32, n), make([]float32, dim)
	// evaluate returns the loss at w, and its gradient if there is room for one.
	evaluate := func(w, g []float64) (loss float64) {
		for f := range w32 {
			w32[f] = float32(w[f])
			loss += 0.5 * p.strength * w[f] * w[f]
		}
		product(p.x, dim, w32, out)
		sum := 0.0
		for i, v := range out {
			s, y := float64(v)+w[dim], p.y[i]
			var l, d float64
			if p.d.Kind == Logistic {
				e := math.Exp(-math.Abs(s))
				l = math.Max(s, 0) - s*y + math.Log1p(e)
				if d = 1/(1+e) - y; s < 0 {
					d = e/(1+e) - y
				}
			} else {
				l, d = 0.5*(s-y)*(s-y), s-y
			}
			loss += l / float64(n)
			slope[i] = float32(d / float64(n))
			sum += d / float64(n)
		}
		if g == nil {
			return loss
		}
		blas32.Gemv(blas.Trans, 1, blas32.General{Rows: n, Cols: dim, Stride: dim, Data: p.x}, blas32.Vector{N: n, Inc: 1, Data: slope}, 0, blas32.Vector{N: dim, Inc: 1, Data: back})
		for f, v := range back {
			g[f] = float64(v) + p.strength*w[f]
		}
		g[dim] = sum
		return loss
	}
	problem := optimize.Problem{
		Func: func(w []float64) float64 { return evaluate(w, nil) },
		Grad: func(g, w []float64) { evaluate(w, g) },
		Status: func() (optimize.Status, error) {
			if err := p.ctx.Err(); err != nil {
				return optimize.Failure, err
			}
			return optimize.NotTerminated, nil
		},
	}
	settings := &optimize.Settings{GradientThreshold: 1e-5, MajorIterations: 300, Converger: &optimize.FunctionConverge{Relative: 1e-7, Iterations: 10}}
	r, err := optimize.Minimize(problem, w, settings, &optimize.LBFGS{Store: 10})
	if p.ctx.Err() != nil {
		return p.ctx.Err()
	}
	if r == nil {
		return err
	}
	copy(w, r.X) // a line search that finds no lower value at the precision of float32 has arrived
	return nil
}

// Scale is a standardisation of vectors.
type Scale struct{ mean, inverse []float32 }

// Standardize returns the standardisation by some rows of x [N×dim], which have mean 0 and variance 1
// after it. A column that is constant in them becomes 0.
func Standardize(x []float32, dim int, rows []int) *Scale {
	sum, squares := make([]float64, dim), make([]float64, dim)
	for _, i := range rows {
		for f, v := range x[i*dim : (i+1)*dim] {
			sum[f] += float64(v)
		}
	}
	n := math.Max(1, float64(len(rows)))
	for _, i := range rows {
		for f, v := range x[i*dim : (i+1)*dim] {
			d := float64(v) - sum[f]/n
			squares[f] += d * d
		}
	}
	s := &Scale{make([]float32, dim), make([]float32, dim)}
	for f := range sum {
		s.mean[f] = float32(sum[f] / n)
		if std := math.Sqrt(squares[f] / n); std > 1e-8*math.Abs(sum[f]/n) {
			s.inverse[f] = float32(1 / std)
		}
	}
	return s
}

// limit is where values are clipped, in standard deviations: what training has hardly seen tells
// little more than that it is large.
const limit = 10

// Apply returns the vectors standardised and clipped at ±10.
func (s *Scale) Apply(x []float32) []float32 {
	z, dim := make([]float32, len(x)), len(s.mean)
	for i, v := range x {
		z[i] = max(-limit, min(limit, (v-s.mean[i%dim])*s.inverse[i%dim]))
	}
	return z
}
