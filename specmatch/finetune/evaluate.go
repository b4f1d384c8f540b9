package finetune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/eval/roc"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
)

// GraphError says why a model cannot be fitted to a graph, or evaluated on it.
type GraphError struct {
	Graph  int // index into [Data.Graphs]
	Reason string
}

func (e *GraphError) Error() string {
	return fmt.Sprintf("finetune: graph %d: %s", e.Graph, e.Reason)
}

// part is a batch of graphs to evaluate, collated once for all epochs.
type part struct {
	batch   *graph.Batch
	samples []int
}

// partNodes bounds the nodes of a part, so that its activations stay in cache.
const partNodes = 4096

// newParts collates some samples into parts.
func newParts(graphs []*graph.Graph, samples []int) (parts []*part) {
	var p *part
	for _, i := range samples {
		if p == nil || p.batch.Nodes() > 0 && p.batch.Nodes()+graphs[i].Nodes() > partNodes {
			p = &part{batch: new(graph.Batch)}
			parts = append(parts, p)
		}
		p.batch.Append(graphs[i])
		p.samples = append(p.samples, i)
	}
	for _, p := range parts {
		p.batch.EndView()
		p.batch.Constant = true
	}
	return parts
}

// trainingParts collates the training set. Several parts are random ones: statistics of each stand for the whole,
// also where a file is sorted.
func trainingParts(d Data, seed uint64) []*part {
	nodes := 0
	for _, i := range d.Train {
		nodes += d.Graphs[i].Nodes()
	}
	if nodes <= partNodes {
		return newParts(d.Graphs, d.Train)
	}
	shuffled := slices.Clone(d.Train)
	random.Stream(seed, purposeParts, 0, 0).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	return newParts(d.Graphs, shuffled)
}

// evaluate returns the metrics of the graphs of some parts, and a [GraphError] if an output is not finite.
func (l *Learner) evaluate(ctx context.Context, parts []*part) (m train.Metrics, err error) {
	defer backend.Recover(&err)
	h := *l.m.Card.Head
	t := autodiff.NewInference(l.be)
	defer t.Reset()
	var outputs []float64
	var samples []int
	for _, p := range parts {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s, _ := l.outputs(t, p.batch, p.samples, nn.Eval)
		if h.Kind == model.Classes {
			s = s.LogSoftmax()
		}
		outputs = append(outputs, s.Data()...)
		samples = append(samples, p.samples...)
		t.Reset()
	}
	for k, v := range outputs {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, &GraphError{samples[k/h.Outputs], fmt.Sprintf("the model's output is %v", v)}
		}
	}

	y, exact, bounds := l.data.targets(h, samples)
	m = train.Metrics{"loss": l.meanLoss(samples, outputs, y, bounds)}
	switch h.Kind {
	case model.Classes:
		m["accuracy"] = accuracy(outputs, y, h.Outputs)
	case model.Binary:
		settle(outputs, h.Outputs, func(s float64) float64 {
			return tie * max(1, math.Abs(s))
		})
		auc, oneClass, err := roc.MeanAUC(outputs, l.taught(y), h.Outputs)
		m["one_class"] = float64(oneClass)
		if errors.Is(err, roc.ErrOneClass) {
			return m, nil
		}
		m["roc_auc"] = 100 * auc
		return m, err
	default:
		for task, scores := range Score(h, h.InUnits(outputs), exact) {
			for name, v := range scores {
				m[TaskMetric(h, name, task)] = v
			}
		}
	}
	return m, nil
}

// taught returns targets [n×tasks] without those of tasks that nothing is learned of.
func (l *Learner) taught(y []float64) []float64 {
	if l.factors == nil {
		return y
	}
	y = slices.Clone(y)
	for i := range y {
		if l.factors[i%len(l.factors)] == 0 {
			y[i] = math.NaN()
		}
	}
	return y
}

// meanLoss returns the mean loss over the targets of some samples, as [Learner.loss] defines it, of raw outputs
// or, for classes, of the logarithms of their probabilities. Weights of graphs are weights of this mean. It is
// NaN without a target.
func (l *Learner) meanLoss(samples []int, outputs, y []float64, bounds []int8) float64 {
	h := *l.m.Card.Head
	sum := 0.0
	n := 0.0
	if h.Kind == model.Classes {
		for i, c := range y {
			w := l.weight(0, c) * l.data.weight(samples[i])
			if w == 0 {
				continue
			}
			sum -= w * outputs[i*h.Outputs+int(c)]
			n += w
		}
		return sum / n
	}
	for i := range outputs {
		loss, w := l.targetLoss(i, samples, outputs, y, bounds)
		if w == 0 {
			continue
		}
		sum += w * loss
		n += w
	}
	return sum / n
}

// taskLosses returns the sums of the weighted losses of each task, and the numbers of its labels.
func (l *Learner) taskLosses(samples []int, outputs, y []float64, bounds []int8) (losses, labels []float64) {
	tasks := l.m.Card.Head.Outputs
	losses = make([]float64, tasks)
	labels = make([]float64, tasks)
	for i := range outputs {
		loss, w := l.targetLoss(i, samples, outputs, y, bounds)
		if w != 0 {
			losses[i%tasks] += w * loss
			labels[i%tasks]++
		}
	}
	return losses, labels
}

// targetLoss returns the loss of output i, of tasks, and the weight of the target; 0 if that is missing.
func (l *Learner) targetLoss(i int, samples []int, outputs, y []float64, bounds []int8) (loss, weight float64) {
	h := l.m.Card.Head
	task := i % h.Outputs
	weight = l.weight(task, y[i]) * l.data.weight(samples[i/h.Outputs])
	s := outputs[i]
	switch {
	case weight == 0:
		return 0, 0
	case h.Kind == model.Binary:
		return max(s, 0) + math.Log1p(math.Exp(-math.Abs(s))) - y[i]*s, weight
	}
	d := s - h.Standardise(task, y[i])
	if bounds != nil && d*float64(bounds[i]) > 0 { // beyond a bound
		d = 0
	}
	return l.losses[task].value(d), weight
}

// accuracy returns in per cent how often the class of the target has the largest output [n×classes].
func accuracy(outputs, y []float64, classes int) float64 {
	correct := 0
	for i, label := range y {
		if argmax(outputs[i*classes:(i+1)*classes]) == int(label) {
			correct++
		}
	}
	return 100 * float64(correct) / float64(len(y))
}
