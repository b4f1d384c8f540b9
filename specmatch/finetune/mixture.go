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

const (
	maxRows  = 1 << 14 // that a linear model is fitted to
	maxLogit = 16      // largest log-odds when its regularisation strength is chosen
)

// mix fits the other members of the mixture to the training set, if the model has [model.Beside] and there is
// a validation set: a linear model, and a forest. The linear model is ridge regression of the standardised
// numbers, or logistic regression of 1 or of each class against the others. Both ignore bounds: they learn from
// numbers alone.
//
// The regularisation strength is the one with the least loss on the validation set. So is the share w of the
// linear model in the predictions, of 0, 0.1 … 1; but then it is moved halfway to a half, (w+½)/2, since the
// set is small, and the network's epoch was chosen on it, too. The share of the forest in a mixture with both
// is chosen in the same way, and moved halfway to a third.
//
// Without a network, the linear model has its whole share, and that of the forest is moved halfway to a half.
func (l *Learner) mix(ctx context.Context) (err error) {
	defer backend.Recover(&err)
	x := l.m.Beside
	if x == nil || len(l.data.Valid) == 0 {
		return nil
	}
	h := *l.m.Card.Head
	y, _, bounds := l.data.targets(h, l.data.Valid)
	if x.Linear != nil {
		if err := l.fitLinear(ctx, y, bounds); err != nil {
			return err
		}
	}

	var mixed, linear []float64
	t := autodiff.NewInference(l.be)
	defer t.Reset()
	for _, p := range l.parts["valid_"] {
		s, z := l.outputs(t, p.batch, p.samples, nn.Eval)
		mixed = append(mixed, s.Data()...)
		if x.Linear != nil {
			linear = append(linear, x.Linear.Forward(z).Data()...)
		}
		t.Reset()
	}
	share := 1.0
	others := 1.0 // members of the mixture but the forest
	if x.Linear != nil {
		if !l.withoutNetwork {
			share = l.chooseShare(mixed, linear, y, bounds, 1./2)
			others = 2
		}
		l.be.Fill(x.Linear.Share.Value, share)
		mixed = h.Mix(share, mixed, linear)
	}
	f, err := l.fitForest(ctx)
	if f == nil || err != nil {
		return err
	}
	f.Share = l.chooseShare(mixed, f.Outputs(h, pick(l.data.Graphs, l.data.Valid)), y, bounds, 1/(others+1))
	l.m.Card.Forest = f
	return nil
}

// removeNetwork sets the weights between the inputs and the outputs of the network to 0, which a file packs well.
// Those of the encoder stay: its vectors say how far a record is from others.
func (l *Learner) removeNetwork() (err error) {
	defer backend.Recover(&err)
	x := l.m.Beside
	for _, layer := range []*nn.Linear{x.Hidden, l.m.Head} {
		for _, p := range layer.Parameters() {
			l.be.Fill(p.Value, 0)
		}
	}
	return nil
}

// chooseShare returns the share of a member with these outputs in the mixture with others: halfway from the
// one with the least loss on the validation set to what it is without a reason.
func (l *Learner) chooseShare(mixture, member, y []float64, bounds []int8, equal float64) float64 {
	h := *l.m.Card.Head
	best := equal
	least := math.Inf(1)
	for k := range 11 {
		share := float64(k) / 10
		if loss := l.meanLoss(l.data.Valid, h.Mix(share, mixture, member), y, bounds); loss < least {
			best = share
			least = loss
		}
	}
	return (best + equal) / 2
}

// fitLinear fits the linear model to the training set, and chooses its strength by the validation targets.
func (l *Learner) fitLinear(ctx context.Context, validY []float64, validBounds []int8) error {
	x := l.m.Beside
	h := *l.m.Card.Head
	d := probe.Data{Dim: x.Mean.Value.Cols, Tasks: h.Outputs, Kind: probe.Logistic}
	if h.Kind == model.Regression {
		d.Kind = probe.Squares
	}
	trained := thin(l.data.Train, maxRows)
	samples := slices.Concat(trained, l.data.Valid)
	d.X = make([]float32, 0, len(samples)*d.Dim)
	var rows []int // of d
	for part := range slices.Chunk(samples, 128) {
		for _, v := range x.Standardise(pick(l.data.Graphs, part)) {
			d.X = append(d.X, float32(v))
		}
		for _, i := range part {
			d.Y = append(d.Y, l.data.numbers(h, i)...)
			d.Weights = append(d.Weights, l.data.weight(i))
			rows = append(rows, len(rows))
		}
	}
	shift := l.shift(d.Y[:len(trained)*h.Outputs], d.Weights)
	score := func(p, _ []float64) float64 {
		if d.Kind == probe.Logistic {
			for i, v := range p {
				logit := math.Log(v) - math.Log1p(-v)
				p[i] = max(-maxLogit, min(maxLogit, logit)) + shift[i%h.Outputs]
			}
		}
		return -l.meanLoss(l.data.Valid, h.Mix(1, p, p), validY, validBounds)
	}
	fit, err := probe.Choose(ctx, d, rows[:len(trained)], rows[len(trained):], score)
	if err != nil {
		return err
	}

	weights := make([]float64, len(fit.W))
	bias := fit.Intercept
	for i, v := range fit.W {
		weights[i] = float64(v)
		if d.Kind == probe.Squares {
			weights[i] *= fit.Std[i%h.Outputs]
		}
	}
	if d.Kind == probe.Squares {
		floats.Mul(bias, fit.Std)
		floats.Add(bias, fit.Mean)
	}
	floats.Add(bias, shift)
	l.be.Upload(x.Linear.W.Value, weights)
	l.be.Upload(x.Linear.B.Value, bias)
	return nil
}

// shift returns what to add to the log-odds of each output to make its classes equally frequent, if
// the loss is balanced: the odds of the prior are a factor of the odds. y [n×Outputs] are the
// targets of the fit, with the weights of its rows; nil for equal ones.
func (l *Learner) shift(y, weights []float64) []float64 {
	outputs := l.m.Card.Head.Outputs
	shift := make([]float64, outputs)
	rows := Data{Weights: weights}
	if l.weights == nil {
		return shift
	}
	otherClasses := 1.0 // classes against one of them
	if l.m.Card.Head.Kind == model.Classes {
		otherClasses = float64(outputs - 1)
	}
	for k := range shift {
		ones := 0.0
		zeros := 0.0
		for i := k; i < len(y); i += outputs {
			switch y[i] {
			case 1:
				ones += rows.weight(i / outputs)
			case 0:
				zeros += rows.weight(i / outputs)
			}
		}
		if ones > 0 && zeros > 0 {
			shift[k] = math.Log(zeros / ones / otherClasses)
		}
	}
	return shift
}
