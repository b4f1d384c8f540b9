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
// Several tasks have a share each, by [Learner.chooseShares].
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
	var shares model.TaskShares
	others := 1.0 // members of the mixture but the forest
	if x.Linear != nil {
		share := 1.0
		if !l.withoutNetwork {
			share, shares.Linear = l.chooseShares(mixed, linear, y, bounds, 1./2)
			others = 2
		}
		l.be.Fill(x.Linear.Share.Value, share)
		mixed = h.Mix(eachOr(shares.Linear, share), mixed, linear)
	}
	f, err := l.fitForest(ctx)
	if err != nil {
		return err
	}
	if f != nil {
		outputs := f.Outputs(h, pick(l.data.Graphs, l.data.Valid))
		f.Share, shares.Forest = l.chooseShares(mixed, outputs, y, bounds, 1/(others+1))
		l.m.Card.Forest = f
	}
	if shares.Linear != nil || shares.Forest != nil {
		l.m.Card.Shares = &shares
	}
	return nil
}

// eachOr returns the shares of tasks or, without any, the common one.
func eachOr(each []float64, common float64) []float64 {
	if each == nil {
		return []float64{common}
	}
	return each
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

// knownLabels is how many labels of a task say as much about its share as what is known without them. A share that
// is chosen by n labels has a standard error of about σ/(d·√n): σ is the deviation of the errors, and d that of the
// difference between two members, which is some half of σ. Before, each share from 0 to 1 is as likely, with the
// variance 1/12. That is (2/√n)² for 48 labels.
const knownLabels = 48

// candidate is the share with the least loss so far.
type candidate struct{ share, loss float64 }

// offer takes the share if its loss is less.
func (c *candidate) offer(share, loss float64) {
	if loss < c.loss {
		c.share = share
		c.loss = loss
	}
}

// chooseShares returns the share of a member with these outputs in the mixture with others: halfway from the one
// with the least loss on the validation set to what it is without a reason.
//
// each has a share for each of several tasks, chosen in the same way by the n labels of the task alone, and then
// moved to the common one by the factor n/(n+48), see [knownLabels]: a task with few labels has nearly the common
// share. It is nil for one task.
func (l *Learner) chooseShares(
	mixture, member, y []float64, bounds []int8, equal float64,
) (common float64, each []float64) {
	h := *l.m.Card.Head
	best := candidate{equal, math.Inf(1)}
	tasks := slices.Repeat([]candidate{best}, taskCount(h))
	var labels []float64 // of the tasks
	for k := range 11 {
		share := float64(k) / 10
		mixed := h.Mix([]float64{share}, mixture, member)
		best.offer(share, l.meanLoss(l.data.Valid, mixed, y, bounds))
		if len(tasks) == 1 {
			continue
		}
		var losses []float64
		losses, labels = l.taskLosses(l.data.Valid, mixed, y, bounds)
		for task, loss := range losses {
			tasks[task].offer(share, loss)
		}
	}
	common = (best.share + equal) / 2
	if len(tasks) == 1 {
		return common, nil
	}
	for task, c := range tasks {
		share := (c.share + equal) / 2
		each = append(each, common+(share-common)*labels[task]/(labels[task]+knownLabels))
	}
	return common, each
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
		return -l.meanLoss(l.data.Valid, h.Mix([]float64{1}, p, p), validY, validBounds)
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
