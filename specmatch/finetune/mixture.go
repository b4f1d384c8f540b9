package finetune

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch/eval/probe"
	"github.com/specmatch/specmatch/specmatch/model"
)

// mostRows bounds the vectors that a linear model is fitted to, and mostLogit the log-odds by which its
// strength is chosen.
const (
	mostRows  = 1 << 14
	mostLogit = 16
)

// mix fits the linear model of [model.Beside], if there is one, to the training part: ridge
// regression of the standardised numbers, logistic regression of a yes, and of each class against
// the others. The strength of the penalty is the one with the least loss on the validation part. So
// is the share w of 0, 0.1 … 1 in the predictions, but halfway back to a half, (w+½)/2: the part is
// small, and the network's epoch was chosen on it too. Without a validation part the share stays 0.
// A linear model knows no bounds, and learns from numbers alone.
func (l *Learner) mix(ctx context.Context) (err error) {
	defer backend.Recover(&err)
	x := l.m.Beside
	if x == nil || x.Linear == nil || len(l.data.Valid) == 0 {
		return nil
	}
	h := *l.m.Card.Head
	train := few(l.data.Train, mostRows)
	d := probe.Data{Dim: x.Mean.Value.Cols, Tasks: h.Outputs, Kind: probe.Logistic}
	if h.Kind == model.Regression {
		d.Kind = probe.Squares
	}
	samples := slices.Concat(train, l.data.Valid)
	d.X = make([]float32, 0, len(samples)*d.Dim)
	var rows []int // of d
	for part := range slices.Chunk(samples, 128) {
		for _, v := range x.Standardise(some(l.data.Graphs, part)) {
			d.X = append(d.X, float32(v))
		}
		for _, i := range part {
			d.Y = append(d.Y, l.answers(i)...)
			rows = append(rows, len(rows))
		}
	}
	y, _, bounds := l.data.targets(h, l.data.Valid)
	shift := l.shift(d.Y[:len(train)*h.Outputs])
	fit, err := probe.Choose(ctx, d, rows[:len(train)], rows[len(train):], func(p, _ []float64) float64 {
		if d.Kind == probe.Logistic {
			for i, v := range p {
				p[i] = max(-mostLogit, min(mostLogit, math.Log(v)-math.Log1p(-v))) + shift[i%h.Outputs]
			}
		}
		return -l.meanLoss(h.Mix(1, p, p), y, bounds)
	})
	if err != nil {
		return err
	}
	w := make([]float64, len(fit.W))
	b := fit.Intercept
	for i, v := range fit.W {
		w[i] = float64(v)
		if d.Kind == probe.Squares {
			w[i] *= fit.Std[i%h.Outputs]
		}
	}
	if d.Kind == probe.Squares {
		floats.Mul(b, fit.Std)
		floats.Add(b, fit.Mean)
	}
	floats.Add(b, shift)
	l.be.Upload(x.Linear.W.Value, w)
	l.be.Upload(x.Linear.B.Value, b)

	var network, linear []float64
	t := autodiff.NewInference(l.be)
	defer t.Reset()
	for _, p := range l.parts["valid_"] {
		s, z := l.outputs(t, p.batch, p.samples, nn.Eval)
		network, linear = append(network, s.Data()...), append(linear, x.Linear.Of(z).Data()...)
		t.Reset()
	}
	best := 0.5
	least := math.Inf(1)
	for k := range 11 {
		share := float64(k) / 10
		if loss := l.meanLoss(h.Mix(share, network, linear), y, bounds); loss < least {
			best = share
			least = loss
		}
	}
	l.be.Fill(x.Linear.Share.Value, (best+0.5)/2)
	return nil
}

// answers returns what the outputs of the linear model are fitted to, of sample i: NaN where
// nothing is known.
func (l *Learner) answers(i int) []float64 {
	h := *l.m.Card.Head
	y := l.data.exact(i, columns(h))
	switch h.Kind {
	case model.Classes:
		class := int(y[0])
		y = make([]float64, h.Outputs)
		y[class] = 1
	case model.Regression:
		for t := range y {
			y[t] = (y[t] - h.Mean[t]) / h.Std[t]
		}
	}
	return y
}

// shift returns what makes log-odds, of models that are fitted to answers y [n×Outputs], those of
// classes that are equally frequent, if the loss is weighed so: the odds of a prior are a factor of
// them.
func (l *Learner) shift(y []float64) []float64 {
	n := l.m.Card.Head.Outputs
	shift := make([]float64, n)
	if l.weights == nil {
		return shift
	}
	others := 1.0 // classes beside one of them
	if l.m.Card.Head.Kind == model.Classes {
		others = float64(n - 1)
	}
	for t := range shift {
		var yes, no float64
		for i := t; i < len(y); i += n {
			switch y[i] {
			case 1:
				yes++
			case 0:
				no++
			}
		}
		if yes > 0 && no > 0 {
			shift[t] = math.Log(no / yes / others)
		}
	}
	return shift
}
