package finetune

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/eval/roc"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// newLearner returns a learner of a head on motifs, of which the first 40 are to
// train on, with targets y(i, task).
func newLearner(t *testing.T, h model.Head, y func(i, task int) float64) *Learner {
	t.Helper()
	ds, err := dataset.Motifs(dataset.MotifConfig{Graphs: 60})
	if err != nil {
		t.Fatal(err)
	}
	d := Data{Graphs: ds.Graphs}
	for i := range ds.Graphs {
		for task := range taskCount(h) {
			d.Y = append(d.Y, y(i, task))
		}
		if i < 40 {
			d.Train = append(d.Train, i)
		}
	}
	be, rng := cpu.New(tensor.Float64), rand.New(rand.NewPCG(1, 2))
	e, err := gnn.Architecture{Kind: gnn.KindGIN, In: ds.FeatureWidth, Hidden: 8, Layers: 2}.New(be, rng)
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(model.NewPredictor(e, h, rng), d, Options{Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// batch is the samples as they are.
func (l *Learner) batch(samples ...int) train.Batch {
	b := train.Batch{Samples: samples, Graphs: new(graph.Batch)}
	for _, i := range samples {
		b.Graphs.Append(l.data.Graphs[i])
	}
	b.Graphs.EndView()
	return b
}

// scores are the raw outputs for a batch while training.
func (l *Learner) scores(b train.Batch) []float64 {
	defer l.Tape.Reset()
	s, _ := l.outputs(l.Tape, b.Graphs, b.Samples, nn.Train)
	return s.Data()
}

// lossOf is the loss of a batch, nil if there is none.
func (l *Learner) lossOf(b train.Batch) *float64 {
	defer l.Tape.Reset()
	v := l.loss(b)
	if v == nil {
		return nil
	}
	loss := v.Float()
	return &loss
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-10*(1+math.Abs(want))) {
		t.Errorf("%s: %.15g, want %.15g", what, got, want)
	}
}

// gaps are labels of two tasks, of which about a third is missing.
func gaps(i, task int) float64 {
	switch (7*i + 3*task) % 6 {
	case 0, 1:
		return math.NaN()
	case 2, 3:
		return 1
	}
	return 0
}

// TestBinaryLoss compares the loss of yes-or-no tasks with its definition, with
// labels missing.
func TestBinaryLoss(t *testing.T) {
	l := newLearner(t, model.Head{Kind: model.Binary, Outputs: 2}, func(i, task int) float64 {
		if i >= 38 {
			return math.NaN()
		}
		return gaps(i, task)
	})
	b := l.batch(0, 1, 2, 3, 38)
	want, yes, no := 0.0, 0.0, 0.0
	for k, s := range l.scores(b) {
		switch l.data.Y[b.Samples[k/2]*2+k%2] {
		case 1:
			want += math.Log1p(math.Exp(-s))
			yes++
		case 0:
			want += math.Log1p(math.Exp(s))
			no++
		}
	}
	if yes == 0 || no == 0 || yes+no == 10 {
		t.Fatalf("%v labels are yes, %v no; the test wants both, and missing ones", yes, no)
	}
	near(t, "loss", *l.lossOf(b), want/(yes+no))

	// Without a label there is nothing to learn from, and no step.
	if none := l.batch(38, 39); l.lossOf(none) != nil {
		t.Error("a loss without labels")
	} else if m, err := l.Step(none); m != nil || err != nil {
		t.Errorf("a step without labels: %v, %v", m, err)
	}
}

// TestRegressionLoss: the squared error in units of each task's deviation over the
// training graphs, with targets missing.
func TestRegressionLoss(t *testing.T) {
	target := func(i, task int) float64 {
		switch {
		case (i+task)%4 == 0:
			return math.NaN()
		case i >= 40:
			return 1e6 // not of the training graphs, so that it must not count
		}
		return 100*float64(task) + float64(i%7)*math.Pow(10, float64(task))
	}
	l := newLearner(t, model.Head{Kind: model.Regression, Outputs: 2}, target)
	var mean, std [2]float64
	for task := range mean {
		var n, sum, squares float64
		for i := range 40 {
			if y := target(i, task); !math.IsNaN(y) {
				n, sum, squares = n+1, sum+y, squares+y*y
			}
		}
		mean[task] = sum / n
		std[task] = math.Sqrt(squares/n - mean[task]*mean[task])
		near(t, "mean", l.m.Card.Head.Mean[task], mean[task])
		near(t, "deviation", l.m.Card.Head.Std[task], std[task])
	}
	b := l.batch(0, 1, 2, 3, 4)
	want, absolute, n := 0.0, 0.0, 0.0
	var all []float64
	scores := l.scores(b)
	for k, s := range scores {
		y := target(b.Samples[k/2], k%2)
		if all = append(all, y); !math.IsNaN(y) {
			d := s - (y-mean[k%2])/std[k%2]
			want, absolute, n = want+d*d, absolute+math.Abs(d), n+1
		}
	}
	if n == 10 {
		t.Fatal("no target is missing")
	}
	near(t, "loss", *l.lossOf(b), want/n)
	l.losses = slices.Repeat([]Loss{Absolute}, len(l.losses))
	near(t, "absolute loss", *l.lossOf(b), absolute/n)
	near(t, "absolute loss in evaluation", l.meanLoss(span(len(scores)), scores, all, nil), absolute/n)
}

// TestTargetLosses: targets have losses and weights of their own, which are those of the mean.
func TestTargetLosses(t *testing.T) {
	target := func(i, task int) float64 {
		if task == 1 && i%3 > 0 {
			return math.NaN()
		}
		return float64(i%7) * float64(1+task)
	}
	h := model.Head{Kind: model.Regression, Outputs: 2}
	l := newLearner(t, h, target)
	l.losses = []Loss{Squared, Absolute}
	l.factors = l.data.factors(h, Options{TargetWeights: []float64{3, 1}})
	near(t, "ratio of weights", l.factors[0]/l.factors[1], 3)
	near(t, "mean of weights over 40 and 14 labels", (40*l.factors[0]+14*l.factors[1])/54, 1)
	b := l.batch(0, 1, 2, 3, 4, 5)
	scores := l.scores(b)
	sum := 0.0
	total := 0.0
	var y []float64
	for k, s := range scores {
		task := k % 2
		v := target(b.Samples[k/2], task)
		y = append(y, v)
		if math.IsNaN(v) {
			continue
		}
		d := s - (v-l.m.Card.Head.Mean[task])/l.m.Card.Head.Std[task]
		if task == 0 {
			sum += 3 * d * d
			total += 3
		} else {
			sum += math.Abs(d)
			total++
		}
	}
	near(t, "loss", *l.lossOf(b), sum/total)
	near(t, "loss in evaluation", l.meanLoss(span(len(scores)), scores, y, nil), sum/total)

	// All labels of a target together weigh as much as those of another.
	alike := l.data.factors(h, Options{Alike: true})
	near(t, "weights alike", 40*alike[0], 14*alike[1])
	doubled := l.data.factors(h, Options{Alike: true, TargetWeights: []float64{1, 2}})
	near(t, "weights alike and doubled", 2*40*doubled[0], 14*doubled[1])
	if same := l.data.factors(h, Options{}); same != nil {
		t.Errorf("weights %v without any", same)
	}
	for want, o := range map[string]Options{
		"3 losses for 2 targets":       {Losses: []Loss{Squared, Squared, Absolute}},
		`no loss "huber"`:              {Losses: []Loss{"huber"}},
		"1 weights for 2 targets":      {TargetWeights: []float64{1}},
		"target 1 has the weight -1":   {TargetWeights: []float64{1, -1}},
		"target 0 has the weight +Inf": {TargetWeights: []float64{math.Inf(1), 1}},
	} {
		_, err := New(l.m, l.data, o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	named := model.Head{Kind: model.Regression, Outputs: 2, Tasks: []string{"a", "b"}}
	o := Options{Losses: l.losses, TargetWeights: []float64{1, 2}, Alike: true}
	if text := o.describeLosses(named) + " " + o.describeWeights(named); text != "a=squared,b=absolute alike,b=2" {
		t.Errorf("the model notes %q", text)
	}
}

// TestUntaught: a target without a label to train on has no part in the loss, by which the fit is chosen, and equal
// targets have no spread.
func TestUntaught(t *testing.T) {
	for _, kind := range []model.Kind{model.Regression, model.Binary} {
		h := model.Head{Kind: kind, Outputs: 2}
		l := newLearner(t, h, func(i, task int) float64 { return float64(i % 2) })
		for _, i := range l.data.Train {
			l.data.Y[2*i+1] = math.NaN()
		}
		for _, alike := range []bool{false, true} {
			if got := l.data.factors(h, Options{Alike: alike}); len(got) != 2 || got[0] != 1 || got[1] != 0 {
				t.Errorf("%s, alike %v: the weights of the targets are %v", kind, alike, got)
			}
		}
		l.data.Valid = span(60)[40:] // where they have labels
		l.factors = l.data.factors(h, Options{})
		if got := l.taught(slices.Clone(l.data.Y[:4])); kind == model.Binary && !(math.IsNaN(got[1]) && got[2] == l.data.Y[2]) {
			t.Errorf("targets that count: %v", got)
		}
		for i := range l.data.Y {
			if i%2 == 0 && i >= 80 {
				l.data.Y[i] = math.NaN()
			}
		}
		if _, err := New(l.m, l.data, Options{Patience: 3}); err == nil || !strings.Contains(err.Error(), "take another split") {
			t.Errorf("%s: nothing to validate on: %v", kind, err)
		}
		if kind == model.Binary {
			if got := l.data.prior(h, false); got[1] != 0.5 {
				t.Errorf("the frequencies are %v", got)
			}
		}
	}
	unseen := Data{Y: []float64{0, 0, 1, 2}, Train: span(3)}
	if got := unseen.balance(model.Head{Kind: model.Classes, Outputs: 3})[0]; !slices.Equal(got, []float64{0.5, 1, 0}) {
		t.Errorf("the weights of classes are %v", got)
	}
	h := model.Head{Kind: model.Regression, Outputs: 1}
	d := Data{Y: []float64{0.1, 0.1, 0.1}}
	if mean, std := d.moments(h, span(3)); std[0] != 1 {
		t.Errorf("the deviation of equal targets is %g, of the mean %g", std[0], mean[0])
	}
}

// TestSecondFit: a model that is fitted once more keeps nothing of the former fit but its weights.
func TestSecondFit(t *testing.T) {
	l := newLearner(t, model.Head{Kind: model.Binary, Outputs: 1}, func(i, _ int) float64 { return float64(i % 2) })
	l.m.Card.Forest = &model.Forest{}
	l.m.Card.Shares = &model.TaskShares{}
	if _, err := New(l.m, l.data, Options{}); err != nil {
		t.Fatal(err)
	}
	if l.m.Card.Forest != nil || l.m.Card.Shares != nil {
		t.Errorf("forest %v, shares %v", l.m.Card.Forest, l.m.Card.Shares)
	}
}

// TestForestErrorUnit: the error by which features are chosen does not depend on the unit of a target.
func TestForestErrorUnit(t *testing.T) {
	errorOf := func(unit float64) float64 {
		var d Data
		for i := range 60 {
			y := math.Exp(float64(i%7)) + 0.01*float64(i)
			d.Graphs = append(d.Graphs, &graph.Graph{Globals: []float32{float32(i % 7), float32(i % 3)}})
			d.Y = append(d.Y, unit*y, float64(i%5))
		}
		d.Train = span(40)
		d.Valid = span(60)[40:]
		h := model.Head{Kind: model.Regression, Outputs: 2, Scales: []model.Scale{{Log: true}, {}}}
		e, err := forestError(t.Context(), d, h, [][2]int{{0, 2}})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	near(t, "error", errorOf(1000), errorOf(1))
}

// TestClassLoss compares loss and accuracy of classes with their definitions.
func TestClassLoss(t *testing.T) {
	l := newLearner(t, model.Head{Kind: model.Classes, Outputs: 3}, func(i, _ int) float64 { return float64(i % 3) })
	b := l.batch(0, 1, 2, 3, 4, 5, 6)
	scores := l.scores(b)
	want := 0.0
	for k, i := range b.Samples {
		sum := 0.0
		for _, s := range scores[3*k : 3*k+3] {
			sum += math.Exp(s)
		}
		want += math.Log(sum) - scores[3*k+i%3]
	}
	near(t, "loss", *l.lossOf(b), want/7)

	// Three graphs, of which the first is right, the second wrong, and the third
	// cannot tell the first two classes apart: the lowest counts.
	logp := []float64{-0.1, -3, -4, -0.5, -0.6, -5, -0.7, -0.7, -6}
	near(t, "mean loss", l.meanLoss(span(3), logp, []float64{0, 1, 0}, nil), (0.1+0.6+0.7)/3)
	near(t, "accuracy", accuracy(logp, []float64{0, 1, 0}, 3), 200/3.)
}

// TestROCAUC compares the mean over tasks with each task's own, on the samples asked
// for and over the labels that are there.
func TestROCAUC(t *testing.T) {
	l := newLearner(t, model.Head{Kind: model.Binary, Outputs: 3}, func(i, task int) float64 {
		if task == 2 {
			return 1 // one class only
		}
		return gaps(i, task)
	})
	samples := []int{59, 3, 41, 7, 8, 9, 10, 50, 51, 52, 53, 13, 14}
	got, err := l.evaluate(t.Context(), newParts(l.data.Graphs, samples))
	if err != nil {
		t.Fatal(err)
	}
	want, be := 0.0, l.be
	for task := range 2 {
		var scores, labels []float64
		for _, i := range samples {
			y := l.data.Y[3*i+task]
			if math.IsNaN(y) {
				continue
			}
			h, err := gnn.Embed(t.Context(), be, l.m.Encoder, l.data.Graphs[i:i+1], nil)
			if err != nil {
				t.Fatal(err)
			}
			tape := autodiff.NewInference(be)
			scores = append(scores, l.m.Head.Forward(tape.Matrix(1, l.m.Encoder.Width(), h)).Data()[task])
			tape.Reset()
			labels = append(labels, y)
		}
		if len(labels) == len(samples) {
			t.Fatalf("task %d lacks no label", task)
		}
		auc, err := roc.AUC(scores, labels)
		if err != nil {
			t.Fatal(err)
		}
		want += 100 * auc / 2
	}
	near(t, "ROC-AUC", got["roc_auc"], want)
	if got["one_class"] != 1 {
		t.Errorf("%v tasks have one class only, want 1", got["one_class"])
	}

	// Where no task has both classes there is no mean.
	l = newLearner(t, model.Head{Kind: model.Binary, Outputs: 2}, func(_, task int) float64 { return float64(task) })
	got, err = l.evaluate(t.Context(), newParts(l.data.Graphs, samples))
	if _, ok := got["roc_auc"]; ok || err != nil || got["one_class"] != 2 {
		t.Errorf("of one class each: %v, %v", got, err)
	}
}

// TestParts: what is said of some graphs does not depend on the parts that they are
// evaluated in.
func TestParts(t *testing.T) {
	for _, h := range []model.Head{{Kind: model.Classes, Outputs: 2}, {Kind: model.Binary, Outputs: 2}, {Kind: model.Regression, Outputs: 2}} {
		l := newLearner(t, h, func(i, task int) float64 { return float64((i + task) % 2) })
		samples := make([]int, 0, 900) // each graph many times, which is more than a part
		for k := range cap(samples) {
			samples = append(samples, k*k%60)
		}
		many := newParts(l.data.Graphs, samples)
		one := &part{batch: l.batch(samples...).Graphs, samples: samples}
		if len(many) < 2 {
			t.Fatalf("%d parts", len(many))
		}
		for _, p := range many {
			if !p.batch.Constant {
				t.Error("parts do not change, but compute everything in each epoch")
			}
			if n := p.batch.Nodes(); n > partNodes {
				t.Errorf("a part of %d nodes", n)
			}
		}
		inParts, err := l.evaluate(t.Context(), many)
		if err != nil {
			t.Fatal(err)
		}
		atOnce, err := l.evaluate(t.Context(), []*part{one})
		if err != nil || len(inParts) != len(atOnce) || len(inParts) == 0 {
			t.Fatalf("%s: %v, %v in parts, %v at once", h.Kind, err, inParts, atOnce)
		}
		for name, v := range inParts {
			near(t, string(h.Kind)+", "+name, v, atOnce[name])
		}
	}
}

// failing is an engine without memory from some moment on.
type failing struct {
	backend.Backend
	failed bool
}

var errMemory = errors.New("no memory")

func (f *failing) Alloc(rows, cols int) *tensor.Tensor {
	if f.failed {
		panic(&backend.Error{Backend: "failing", Op: "Alloc", Err: errMemory})
	}
	return f.Backend.Alloc(rows, cols)
}

// TestDeviceFails: a device that fails is an error, not a panic, whatever it was
// asked for.
func TestDeviceFails(t *testing.T) {
	l := newLearner(t, model.Head{Kind: model.Classes, Outputs: 2}, func(i, _ int) float64 { return float64(i % 2) })
	be := &failing{Backend: l.be}
	rng := rand.New(rand.NewPCG(1, 2))
	e, err := gnn.Architecture{Kind: gnn.KindGIN, In: l.data.Graphs[0].X.Width, Hidden: 8, Layers: 2}.New(be, rng)
	if err != nil {
		t.Fatal(err)
	}
	p, d := model.NewPredictor(e, *l.m.Card.Head, rng), l.data
	d.Test = []int{50, 51}
	if l, err = New(p, d, Options{}); err != nil {
		t.Fatal(err)
	}
	be.failed = true
	for name, f := range map[string]func() error{
		"a new one":   func() error { _, err := New(p, d, Options{}); return err },
		"a step":      func() error { _, err := l.Step(l.batch(0, 1)); return err },
		"evaluation":  func() error { _, err := l.End(t.Context(), 0); return err },
		"predictions": func() error { _, err := p.Predict(t.Context(), d.Graphs); return err },
	} {
		if err := f(); !errors.Is(err, errMemory) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWeightedLoss compares the losses of balanced classes and tasks with their definitions,
// in training and in evaluation.
func TestWeightedLoss(t *testing.T) {
	samples := []int{0, 1, 2, 3, 4, 5, 6}
	l := newLearner(t, model.Head{Kind: model.Classes, Outputs: 2}, func(i, _ int) float64 { return float64(min(1, i%4)) })
	l.weights = l.data.balance(*l.m.Card.Head) // of 40, 10 are of class 0
	sum, n := 0.0, 0.0
	scores := l.scores(l.batch(samples...))
	for k, i := range samples {
		w := []float64{40. / 2 / 10, 40. / 2 / 30}[min(1, i%4)]
		sum -= w * (scores[2*k+min(1, i%4)] - math.Log(math.Exp(scores[2*k])+math.Exp(scores[2*k+1])))
		n += w
	}
	near(t, "loss of classes", *l.lossOf(l.batch(samples...)), sum/n)

	l = newLearner(t, model.Head{Kind: model.Binary, Outputs: 2}, gaps)
	l.weights = l.data.balance(*l.m.Card.Head)
	count := map[[2]int]float64{}
	for i := range 40 {
		for task := range 2 {
			if y := gaps(i, task); !math.IsNaN(y) {
				count[[2]int{task, int(y)}]++
			}
		}
	}
	scores = l.scores(l.batch(samples...))
	sum, n = 0, 0
	var y []float64
	for k, s := range scores {
		y = append(y, gaps(samples[k/2], k%2))
		if math.IsNaN(y[k]) {
			continue
		}
		w := (count[[2]int{k % 2, 0}] + count[[2]int{k % 2, 1}]) / 2 / count[[2]int{k % 2, int(y[k])}]
		sum, n = sum+w*(math.Log1p(math.Exp(s))-y[k]*s), n+w
	}
	near(t, "loss of tasks", *l.lossOf(l.batch(samples...)), sum/n)
	near(t, "loss of tasks in evaluation", l.meanLoss(span(len(scores)), scores, y, nil), sum/n)
}

// TestBoundLoss compares the loss of bounds with its definition, in training and in evaluation.
func TestBoundLoss(t *testing.T) {
	l := newLearner(t, model.Head{Kind: model.Regression, Outputs: 1}, func(i, _ int) float64 { return float64(i % 7) })
	for i := range l.data.Y {
		l.data.Bounds = append(l.data.Bounds, int8(i%3-1))
	}
	b := l.batch(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	sum, absolute, sides := 0.0, 0.0, map[bool]int{}
	var y []float64
	scores := l.scores(b)
	for i, s := range scores {
		d := s - (float64(i%7)-l.m.Card.Head.Mean[0])/l.m.Card.Head.Std[0]
		y = append(y, float64(i%7))
		switch side := i%3 - 1; {
		case side > 0 && d > 0 || side < 0 && d < 0:
			sides[d > 0]++
		default:
			sum, absolute = sum+d*d, absolute+math.Abs(d)
		}
	}
	if len(sides) < 2 {
		t.Fatal("no prediction is beyond a bound to one side")
	}
	near(t, "loss", *l.lossOf(b), sum/10)
	near(t, "loss in evaluation", l.meanLoss(span(len(scores)), scores, y, l.data.Bounds[:10]), sum/10)
	l.losses = slices.Repeat([]Loss{Absolute}, len(l.losses))
	near(t, "absolute loss", *l.lossOf(b), absolute/10)
	near(t, "absolute loss in evaluation", l.meanLoss(span(len(scores)), scores, y, l.data.Bounds[:10]), absolute/10)
	if exact := l.data.exact(1, 1); exact[0] != 1 || !math.IsNaN(l.data.exact(2, 1)[0]) {
		t.Error("a bound counts as a target of metrics")
	}
}
