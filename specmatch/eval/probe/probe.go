// Package probe fits linear models to frozen vectors, to find out what the vectors know: ridge
// regression for numbers, and logistic regression for binary tasks. [Neighbours] predicts from the
// nearest vectors instead. Encoders and fingerprints of molecules are compared with it.
//
//	s := probe.Standardize(x, dim, train)   // by the training part
//	m, err := probe.Choose(ctx, d, train, valid, score)
//	y := m.Predict(x)
//
// Each task is fitted to the records with a target. The intercept is not regularised.
package probe

import (
	"context"
	"fmt"
	"math"
)

// Kind is the loss of a model.
type Kind int

const (
	Squares  Kind = iota // ½(ŷ-y)², of targets standardised by those of the fit
	Logistic             // -ln σ(±ŷ), of targets 0 and 1
)

// Data are vectors and targets.
type Data struct {
	X     []float32 // [N×Dim], row-major
	Dim   int
	Y     []float64 // [N×Tasks], row-major; NaN is no target
	Tasks int
	Kind  Kind
	// Weights [N] of the rows in the mean loss, positive; nil for equal ones.
	Weights []float64
}

// weight returns the weight of a row.
func (d *Data) weight(row int) float64 {
	if d.Weights == nil {
		return 1
	}
	return d.Weights[row]
}

func (d *Data) check() error {
	switch {
	case d.Dim < 1 || d.Tasks < 1 || len(d.X)%d.Dim != 0 || len(d.Y)%d.Tasks != 0 ||
		len(d.X)/d.Dim != len(d.Y)/d.Tasks:
		return fmt.Errorf("probe: %d numbers in vectors of %d, and %d targets of %d tasks",
			len(d.X), d.Dim, len(d.Y), d.Tasks)
	case d.Weights != nil && len(d.Weights) != len(d.X)/d.Dim:
		return fmt.Errorf("probe: %d weights of %d rows", len(d.Weights), len(d.X)/d.Dim)
	case d.Kind == Logistic:
		for i, y := range d.Y {
			if y != 0 && y != 1 && !math.IsNaN(y) {
				return fmt.Errorf("probe: row %d: target %v; logistic regression wants 0 or 1",
					i/d.Tasks, y)
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
	W         []float32 // [Dim×Tasks]
	Intercept []float64
	// Mean and Std are those of the targets, for [Squares].
	Mean, Std []float64
}

// Predict returns the predictions [N×Tasks] for vectors x [N×Dim]: numbers in the unit of the
// targets, or probabilities.
func (m *Model) Predict(x []float32) []float64 {
	dim := len(m.W) / len(m.Intercept)
	return m.predict(&matrix{n: len(x) / dim, dim: dim, dense: x})
}

func (m *Model) predict(x *matrix) []float64 {
	tasks := len(m.Intercept)
	y := make([]float64, x.n*tasks)
	out := make([]float32, x.n*tasks)
	x.times(0, x.n, m.W, tasks, out)
	for k, v := range out {
		t := k % tasks
		s := float64(v) + m.Intercept[t]
		if m.Kind == Logistic {
			s = 1 / (1 + math.Exp(-s))
		} else {
			s = m.Mean[t] + m.Std[t]*s
		}
		y[k] = s
	}
	return y
}

// Strengths are the regularisation strengths λ of [Choose], in mean loss + ½λ‖w‖².
var Strengths = []float64{10, 1, 0.1, 0.01, 1e-3, 1e-4}

// Choose fits a model with each of Strengths to the training rows, and returns the one whose
// predictions for the validation rows have the highest score, the strongest of equals. A score that
// is NaN is below all others. Choose stops after two successive strengths that are no better than a
// stronger one.
func Choose(
	ctx context.Context, d Data, train, valid []int, score func(predicted, y []float64) float64,
) (*Model, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	part := d.problem(train)
	x := newMatrix(d.X, d.Dim, valid)
	y := d.targets(valid)
	var best, previous *Model
	highest := math.Inf(-1)
	worse := 0
	for _, strength := range Strengths {
		m, err := part.fit(ctx, strength, previous)
		if err != nil {
			return nil, err
		}
		worse++
		if s := score(m.predict(x), y); best == nil || s > highest {
			best = m
			worse = 0
			if !math.IsNaN(s) {
				highest = s
			}
		}
		previous = m
		if worse == 2 {
			break
		}
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
	return d.problem(rows).fit(ctx, strength, nil)
}

func (d *Data) targets(rows []int) []float64 {
	y := make([]float64, 0, len(rows)*d.Tasks)
	for _, i := range rows {
		y = append(y, d.Y[i*d.Tasks:(i+1)*d.Tasks]...)
	}
	return y
}

// Scale is a standardisation of vectors.
type Scale struct{ mean, inverse []float32 }

// Standardize returns the standardisation that gives some rows of x [N×dim] mean 0 and variance 1.
// A column that is constant in them becomes 0.
func Standardize(x []float32, dim int, rows []int) *Scale {
	sum := make([]float64, dim)
	squares := make([]float64, dim)
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

// limit is where values are clipped, in standard deviations: values that are rare in training say
// little more than that they are large.
const limit = 10

// Apply returns the vectors standardised and clipped at ±10.
func (s *Scale) Apply(x []float32) []float32 {
	z := make([]float32, len(x))
	dim := len(s.mean)
	for i, v := range x {
		z[i] = max(-limit, min(limit, (v-s.mean[i%dim])*s.inverse[i%dim]))
	}
	return z
}
