package finetune

import (
	"math"
	"testing"

	"github.com/specmatch/specmatch/specmatch/model"
)

// TestGraphWeights: weights are factors of the losses of graphs, with mean 1 over the training set, and weights of
// the mean loss in evaluation.
func TestGraphWeights(t *testing.T) {
	for _, kind := range []model.Kind{model.Regression, model.Binary, model.Classes} {
		target := func(i, _ int) float64 { return float64(i % 2) }
		head := model.Head{Kind: kind, Outputs: 1}
		if kind == model.Classes {
			head.Outputs = 2
		}
		l := newLearner(t, head, target)
		b := l.batch(0, 1, 2)
		scores := l.scores(b)
		single := func(k int) float64 {
			width := l.m.Card.Head.Outputs
			outputs := scores[k*width : (k+1)*width]
			y := l.data.Y[b.Samples[k] : b.Samples[k]+1]
			if kind == model.Classes {
				total := math.Log(math.Exp(outputs[0]) + math.Exp(outputs[1]))
				outputs = []float64{outputs[0] - total, outputs[1] - total}
			}
			return l.meanLoss(span(1), outputs, y, nil)
		}
		l.data.Weights = make([]float64, len(l.data.Graphs))
		for i := range l.data.Weights {
			l.data.Weights[i] = float64(1 + i)
		}
		l.data.Weights = l.data.normalised()
		sum := 0.0
		for _, i := range l.data.Train {
			sum += l.data.Weights[i]
		}
		near(t, "sum of the weights", sum, float64(len(l.data.Train)))
		want := 0.0
		for k, i := range b.Samples {
			want += l.data.Weights[i] * single(k) / 3
		}
		near(t, string(kind)+": loss", *l.lossOf(b), want)
	}
}

// TestBadWeights: a weight that is no positive number is an error.
func TestBadWeights(t *testing.T) {
	l := newLearner(t, model.Head{Kind: model.Binary, Outputs: 1}, func(i, _ int) float64 { return float64(i % 2) })
	for _, w := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		d := l.data
		d.Weights = make([]float64, len(d.Graphs))
		for i := range d.Weights {
			d.Weights[i] = 1
		}
		d.Weights[3] = w
		if d.check(*l.m.Card.Head) == nil {
			t.Errorf("a weight of %v is accepted", w)
		}
	}
}
