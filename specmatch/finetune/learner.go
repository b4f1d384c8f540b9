package finetune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/eval/roc"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// Data is what to learn from.
type Data struct {
	Graphs []*graph.Graph
	// Y are the targets, row-major: for classes [n×1], the index of the class; for
	// yes-or-no tasks [n×tasks], 1, 0, or NaN for a missing label; for numbers
	// [n×tasks], NaN for a missing one.
	Y []float64
	// Bounds, one for each target of a regression if there are any, says which are bounds: +1
	// where the number is above Y, -1 where it is below, 0 where it is Y. A prediction beyond
	// a bound has no loss, and metrics leave bounds out.
	Bounds []int8
	// Train, Valid and Test are indices into Graphs; Valid and Test may be empty.
	Train, Valid, Test []int
}

// Options say how to learn.
type Options struct {
	Batch int                  // graphs in a mini-batch; 0 is 128
	Rate  float64              // learning rate of Adam; 0 is 0.001
	Seed  uint64               // of the batches
	View  augment.Augmentation // of the graphs while training; nil leaves them as they are
	// Patience is how many epochs in a row may pass without a better one on the
	// validation part, before training ends; see [Learner.Best]. 0 trains all epochs.
	Patience int
	// Balanced weighs the loss, so that all classes of the training part, or the yes and the
	// no of a task, have equal weight together. Probabilities are those of balanced classes
	// then.
	Balanced bool
	// Absolute is of numbers: the loss is the absolute error, and not its square, so that outliers
	// count less.
	Absolute bool
	// Average is the decay d of an average a of the weights w and of the running
	// statistics, a ← d'·a + (1-d')·w after every step, where d' = min(d, n/(n+10)) at
	// step n so that the first weights are forgotten. The average is what is evaluated
	// and kept, which takes much of the noise out that single steps leave (Polyak and
	// Juditsky 1992). 0 is none. It needs Patience.
	Average float64
}

// Learner trains a model that predicts.
type Learner struct {
	train.Defaults
	*train.Minimizer
	m  *model.Trained
	be backend.Backend

	data     Data
	absolute bool
	weights  [][]float64        // of the loss, by task and class, as Balanced wants them; nil for 1
	parts    map[string][]*part // what End evaluates, by the prefix of the metrics

	patience int
	decay    float64
	average  []*nn.Buffer // of the model's values; nil without Average
	best     best
}

// best is the epoch that was best so far on the validation part.
type best struct {
	Epoch int     // from 1; 0 is none
	Score float64 // of the epoch; larger is better, see [Learner.score]
	Loss  float64 // on the validation part; decides between equal scores
	// weights are a copy of the model's parameters and buffers; nil without patience.
	weights []*nn.Buffer
	Steps   int // so far
}

// values returns where the model has its tensors that steps change.
func (l *Learner) values() (names []string, values []**tensor.Tensor) {
	for _, x := range l.m.Parameters() {
		names = append(names, x.Name)
		values = append(values, &x.Value)
	}
	for _, x := range l.m.Encoder.Buffers() {
		names = append(names, x.Name)
		values = append(values, &x.Value)
	}
	return names, values
}

// outputs returns the raw outputs [B×Outputs] of the network for a batch of some samples, and the z of
// [model.Beside], if there is one.
func (l *Learner) outputs(
	t *autodiff.Tape, b *graph.Batch, samples []int, mode nn.Mode,
) (s, z *autodiff.Var) {
	h := l.m.Encoder.Forward(gnn.NewBatch(t, b), mode)
	if l.m.Beside != nil {
		h, z = l.m.Beside.Forward(h, some(l.data.Graphs, samples), mode)
	}
	return l.m.Head.Forward(h), z
}

// copies returns buffers for the model's values, under their names with a prefix.
func (l *Learner) copies(prefix string) (all []*nn.Buffer) {
	names, values := l.values()
	for i, v := range values {
		all = append(all, nn.NewBuffer(l.be, prefix+names[i], (*v).Rows, (*v).Cols, 0))
	}
	return all
}

// New returns a learner of all parameters of m, a model with a head such as
// [model.NewPredictor] makes. It is an error if the targets do not suit the head, or
// if no graph to train on has a label. It notes the options in the card of m, and of
// numbers the Mean and Std in its head.
func New(m *model.Trained, d Data, o Options) (l *Learner, err error) {
	defer backend.Recover(&err)
	h := m.Card.Head
	if h == nil || m.Head == nil {
		return nil, errors.New("finetune: the model is an encoder without a head")
	}
	if m.Card.SelfLoops {
		return nil, errors.New(
			"finetune: the model wants graphs with self-loops, and learns from them as they are",
		)
	}
	if err := d.check(*h); err != nil {
		return nil, err
	}
	a, err := gnn.ArchitectureOf(m.Encoder)
	if err != nil {
		return nil, err
	}
	for i, g := range d.Graphs {
		if err := a.Accepts(g); err != nil {
			return nil, fmt.Errorf("finetune: graph %d: %w", i, err)
		}
	}
	if !(o.Average >= 0 && o.Average < 1) || o.Average > 0 && o.Patience == 0 {
		return nil, fmt.Errorf("finetune: average %v with patience %d; want 0 to below 1, and patience "+
			"where it is not 0",
			o.Average, o.Patience)
	}
	if o.Batch == 0 {
		o.Batch = 128
	}
	if o.Rate == 0 {
		o.Rate = 0.001
	}
	if o.View == nil {
		o.View = augment.Identity{}
	}
	if h.Kind == model.Regression {
		h.Mean, h.Std = moments(d.Y, d.Train, h.Outputs)
	}
	if m.Beside != nil {
		m.Beside.Fit(d.Graphs, d.Train)
	}
	if p := &m.Card.Provenance; p.Options == nil {
		p.Options = map[string]string{}
	}
	options := map[string]any{
		"batch":    o.Batch,
		"lr":       o.Rate,
		"patience": o.Patience,
		"average":  o.Average,
	}
	if o.Balanced {
		options["balanced"] = true
	}
	if o.Absolute {
		options["loss"] = "absolute"
	}
	for name, v := range options {
		m.Card.Provenance.Options[name] = fmt.Sprint(v)
	}
	loader := &augment.Loader{
		Graphs:   d.Graphs,
		Samples:  d.Train,
		Batch:    o.Batch,
		Collator: augment.Collator{Views: []augment.Augmentation{o.View}, Seed: o.Seed},
	}
	be := m.Head.W.Backend()
	l = &Learner{
		patience:  o.Patience,
		decay:     o.Average,
		absolute:  o.Absolute,
		Defaults:  train.Defaults{Loader: loader},
		Minimizer: train.NewMinimizer(be, m, o.Rate),
		m:         m,
		be:        be,
		data:      d,
		parts:     map[string][]*part{"valid_": parts(d.Graphs, d.Valid), "test_": parts(d.Graphs, d.Test)},
	}
	if o.Balanced && h.Kind != model.Regression {
		l.weights = d.balance(*h)
	}
	if o.Patience > 0 {
		if len(d.Valid) == 0 {
			return nil, errors.New("finetune: patience needs a validation part")
		}
		if w := columns(*h); !slices.ContainsFunc(d.Valid, func(i int) bool {
			return slices.ContainsFunc(d.Y[i*w:(i+1)*w], func(y float64) bool { return !math.IsNaN(y) })
		}) {
			return nil, errors.New("finetune: no graph to validate on has a label")
		}
		l.best.weights = l.copies("best.")
	}
	if o.Average > 0 {
		l.average = l.copies("average.")
	}
	return l, nil
}

// moments returns the mean and the standard deviation of each task's targets over some
// samples; 1 is the deviation of targets that are all equal.
func moments(y []float64, samples []int, tasks int) (mean, std []float64) {
	mean, std = make([]float64, tasks), make([]float64, tasks)
	for t := range tasks {
		var sum, squares, n float64
		for _, i := range samples {
			if v := y[i*tasks+t]; !math.IsNaN(v) {
				sum += v
				n++
			}
		}
		mean[t] = sum / max(n, 1)
		for _, i := range samples {
			if v := y[i*tasks+t]; !math.IsNaN(v) {
				squares += (v - mean[t]) * (v - mean[t])
			}
		}
		std[t] = math.Sqrt(squares / max(n, 1))
		if std[t] == 0 {
			std[t] = 1
		}
	}
	return mean, std
}

// balance returns n/(C·n_c) for each of the C classes of a task, of which the training part
// has n targets and n_c of the class.
func (d Data) balance(h model.Head) (all [][]float64) {
	tasks := columns(h)
	classes := 2
	if h.Kind == model.Classes {
		classes = h.Outputs
	}
	for t := range tasks {
		weights := make([]float64, classes)
		n := 0.0
		for _, i := range d.Train {
			if y := d.Y[i*tasks+t]; !math.IsNaN(y) {
				weights[int(y)]++
				n++
			}
		}
		for c, count := range weights {
			weights[c] = n / float64(classes) / max(count, 1)
		}
		all = append(all, weights)
	}
	return all
}

// weight returns the weight of a target in the loss: 0 if it is missing.
func (l *Learner) weight(task int, y float64) float64 {
	switch {
	case math.IsNaN(y):
		return 0
	case l.weights == nil:
		return 1
	}
	return l.weights[task][int(y)]
}

// exact returns the n targets of sample i with NaN for those that are bounds.
func (d Data) exact(i, n int) []float64 {
	y := slices.Clone(d.Y[i*n : (i+1)*n])
	for t := range y {
		if d.Bounds != nil && d.Bounds[i*n+t] != 0 {
			y[t] = math.NaN()
		}
	}
	return y
}

// columns returns the number of targets of a graph.
func columns(h model.Head) int {
	if h.Kind == model.Classes {
		return 1
	}
	return h.Outputs
}

// check returns an error unless the targets suit the head.
func (d Data) check(h model.Head) error {
	n := len(d.Graphs)
	w := columns(h)
	if len(d.Y) != n*w {
		return fmt.Errorf("finetune: %d targets for %d graphs, want %d for each", len(d.Y), n, w)
	}
	if d.Bounds != nil && (len(d.Bounds) != n*w || h.Kind != model.Regression) {
		return fmt.Errorf("finetune: %d bounds for %d targets of kind %s; want one for each number",
			len(d.Bounds), n*w, h.Kind)
	}
	labels := 0
	for part, samples := range [][]int{d.Train, d.Valid, d.Test} {
		for _, i := range samples {
			if i < 0 || i >= n {
				return fmt.Errorf("finetune: sample %d is not one of %d graphs", i, n)
			}
			for t, y := range d.Y[i*w : (i+1)*w] {
				ok := true
				switch h.Kind {
				case model.Classes:
					ok = y >= 0 && int(y) < h.Outputs && y == math.Trunc(y)
				case model.Binary:
					ok = y == 0 || y == 1 || math.IsNaN(y)
				default:
					ok = !math.IsInf(y, 0)
				}
				if !ok {
					return fmt.Errorf(
						"finetune: graph %d, task %d: %v cannot be a target of kind %s with %d outputs",
						i, t, y, h.Kind, h.Outputs,
					)
				}
				if part == 0 && !math.IsNaN(y) {
					labels++
				}
			}
		}
	}
	if labels == 0 {
		return errors.New("finetune: no graph to train on has a label")
	}
	return nil
}

// Step implements [train.Learner].
func (l *Learner) Step(b train.Batch) (train.Metrics, error) {
	m, err := l.Minimize(func() *autodiff.Var { return l.loss(b) })
	if m == nil {
		return nil, err
	}
	n := float64(l.best.Steps)
	l.best.Steps++
	d := min(l.decay, n/(n+10))
	_, values := l.values()
	for i, a := range l.average {
		l.be.Axpby(a.Value, d, a.Value, 1-d, *values[i])
	}
	return m, nil
}

// swap exchanges the model's values for their average, or back.
func (l *Learner) swap() {
	_, values := l.values()
	for i, a := range l.average {
		*values[i], a.Value = a.Value, *values[i]
	}
}

// loss returns the mean loss [1×1] over the labels of a batch, weighted where Balanced wants
// it, and nil if it has none:
//
//	classes     -ln softmax(s) at the class
//	binary      ln(1+e^s) - y·s
//	regression  (s - (y-Mean)/Std)², or its root if that is wanted; of a bound, 0 beyond it
func (l *Learner) loss(b train.Batch) *autodiff.Var {
	h := *l.m.Card.Head
	t := l.Tape
	if h.Kind == model.Classes {
		classes := make([]int, len(b.Samples))
		weights := make([]float64, len(b.Samples)*h.Outputs)
		sum := 0.0
		for k, i := range b.Samples {
			c := int(l.data.Y[i])
			classes[k] = c
			weights[k*h.Outputs+c] = l.weight(0, l.data.Y[i])
			sum += weights[k*h.Outputs+c]
		}
		s, _ := l.outputs(t, b.Graphs, b.Samples, nn.Train)
		if l.weights == nil {
			return nn.CrossEntropy(s, classes)
		}
		return s.LogSoftmax().Dot(t.Matrix(len(b.Samples), h.Outputs, weights)).Scale(-1 / sum)
	}
	n := len(b.Samples) * h.Outputs
	target := make([]float64, 0, n)
	// weights of errors to either side
	above := make([]float64, 0, n)
	below := make([]float64, 0, n)
	count := 0.0
	for _, i := range b.Samples {
		for task, y := range l.data.Y[i*h.Outputs : (i+1)*h.Outputs] {
			w := l.weight(task, y)
			up := w
			down := w
			switch {
			case w == 0:
				y = 0
			case h.Kind == model.Binary:
				y *= w
			default:
				y = (y - h.Mean[task]) / h.Std[task]
			}
			if l.data.Bounds != nil {
				up, down = oneSided(w, l.data.Bounds[i*h.Outputs+task])
			}
			above = append(above, up)
			below = append(below, down)
			target = append(target, y)
			count += w
		}
	}
	if count == 0 {
		return nil
	}
	s, _ := l.outputs(t, b.Graphs, b.Samples, nn.Train)
	size := (*autodiff.Var).Square
	if l.absolute {
		size = (*autodiff.Var).Abs
	}
	known := t.Matrix(len(b.Samples), h.Outputs, above)
	y := t.Matrix(len(b.Samples), h.Outputs, target)
	switch {
	case h.Kind == model.Binary:
		return s.Softplus().Dot(known).Sub(s.Dot(y)).Scale(1 / count)
	case l.data.Bounds == nil:
		return size(s.Sub(y)).Dot(known).Scale(1 / count)
	}
	high := size(s.Sub(y).ReLU()).Dot(known)
	low := size(y.Sub(s).ReLU()).Dot(t.Matrix(len(b.Samples), h.Outputs, below))
	return high.Add(low).Scale(1 / count)
}

// oneSided returns the weights of errors above and below a target of weight w.
func oneSided(w float64, bound int8) (above, below float64) {
	switch bound {
	case 1:
		return 0, w
	case -1:
		return w, 0
	}
	return w, w
}

// End evaluates the model on the validation and test parts. With patience it keeps
// the weights of the best epoch, or ends training.
func (l *Learner) End(ctx context.Context, epoch int) (train.Metrics, error) {
	l.swap()
	defer l.swap()
	all := train.Metrics{}
	for prefix, parts := range l.parts {
		if len(parts) == 0 {
			continue
		}
		m, err := l.evaluate(ctx, parts)
		if err != nil {
			return nil, err
		}
		for name, v := range m {
			all[prefix+name] = v
		}
	}
	if l.patience == 0 {
		return all, nil
	}
	switch score, loss := l.score(all), all["valid_loss"]; {
	case l.best.Epoch == 0 || score > l.best.Score || score == l.best.Score && loss < l.best.Loss:
		l.best.Epoch = epoch + 1
		l.best.Score = score
		l.best.Loss = loss
		_, values := l.values()
		for i, v := range values {
			copyTo(l.be, l.best.weights[i].Value, *v)
		}
	case epoch+1 >= l.best.Epoch+l.patience:
		return all, train.ErrStop
	}
	return all, nil
}

// score returns how good an epoch is on the validation part: the ROC-AUC of yes-or-no
// tasks where one of them has both answers, otherwise the loss, negated. The loss of
// numbers is of standardised errors, so that the unit of a task is not its weight.
func (l *Learner) score(m train.Metrics) float64 {
	if auc, ok := m["valid_roc_auc"]; ok {
		return auc
	}
	return -m["valid_loss"]
}

// Best gives the model the weights of the epoch that was best on the validation
// part, after training with patience, and returns the epoch's number, from 1. Without
// patience, or before an epoch has ended, it changes nothing and returns 0.
func (l *Learner) Best() (epoch int, err error) {
	defer backend.Recover(&err)
	if l.best.Epoch == 0 {
		return 0, nil
	}
	_, values := l.values()
	for i, v := range values {
		copyTo(l.be, *v, l.best.weights[i].Value)
	}
	for i, a := range l.average {
		copyTo(l.be, a.Value, l.best.weights[i].Value)
	}
	return l.best.Epoch, nil
}

func copyTo(be backend.Backend, dst, src *tensor.Tensor) {
	be.CopyBlock(dst, 0, 0, src, 0, 0, src.Rows, src.Cols)
}

// State implements [train.Learner].
func (l *Learner) State() (nn.Module, any) {
	return optim.Checkpoint{Module: trained{l}, Optimizer: l.Adam}, &l.best
}

// trained is a model whose buffers include what else training changes: how many
// masks dropout has drawn, the best weights, and the average ones.
type trained struct{ l *Learner }

func (t trained) Parameters() []*autodiff.Param { return t.l.m.Parameters() }

func (t trained) Buffers() []*nn.Buffer {
	all := slices.Concat(t.l.m.Buffers(), t.l.best.weights, t.l.average)
	if d, ok := t.l.m.Encoder.(interface{ DropoutState() []*nn.Buffer }); ok {
		all = append(all, d.DropoutState()...)
	}
	if b := t.l.m.Beside; b != nil {
		all = append(all, b.Dropout.State("beside.dropout"))
	}
	return all
}

// Close gives the best and the average weights back.
func (l *Learner) Close() error {
	for _, b := range slices.Concat(l.best.weights, l.average) {
		l.be.Free(b.Value)
	}
	l.best = best{}
	l.average = nil
	return nil
}

// part is a batch of graphs to evaluate, collated once for all epochs.
type part struct {
	batch   *graph.Batch
	samples []int
}

// partNodes bounds the nodes of a part, so that its activations stay in cache.
const partNodes = 4096

func parts(graphs []*graph.Graph, samples []int) []*part {
	var all []*part
	var p *part
	for _, i := range samples {
		if p == nil || p.batch.Nodes() > 0 && p.batch.Nodes()+graphs[i].Nodes() > partNodes {
			p = &part{batch: new(graph.Batch)}
			all = append(all, p)
		}
		p.batch.Append(graphs[i])
		p.samples = append(p.samples, i)
	}
	for _, p := range all {
		p.batch.EndView()
		p.batch.Constant = true
	}
	return all
}

// evaluate returns the metrics of the graphs of some parts.
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
		out, _ := l.outputs(t, p.batch, p.samples, nn.Eval)
		if h.Kind == model.Classes {
			out = out.LogSoftmax()
		}
		outputs = append(outputs, out.Data()...)
		samples = append(samples, p.samples...)
		t.Reset()
	}
	y, exact, bounds := l.data.targets(h, samples)
	m = train.Metrics{"loss": l.meanLoss(outputs, y, bounds)}
	switch h.Kind {
	case model.Classes:
		m["accuracy"] = accuracy(outputs, y, h.Outputs)
		return m, nil
	case model.Binary:
		settle(h, outputs, func(s float64) float64 { return tie * max(1, math.Abs(s)) })
		auc, oneClass, err := roc.MeanAUC(outputs, y, h.Outputs)
		m["one_class"] = float64(oneClass)
		if errors.Is(err, roc.ErrOneClass) {
			return m, nil
		}
		m["roc_auc"] = 100 * auc
		return m, err
	}
	for t, each := range Score(h, h.InUnits(outputs), exact) {
		for name, v := range each {
			m[TaskMetric(h, name, t)] = v
		}
	}
	return m, nil
}

// targets returns those of some samples, with bounds and with NaN in their place, and which are bounds.
func (d Data) targets(h model.Head, samples []int) (y, exact []float64, bounds []int8) {
	w := columns(h)
	for _, i := range samples {
		y, exact = append(y, d.Y[i*w:(i+1)*w]...), append(exact, d.exact(i, w)...)
		if d.Bounds != nil {
			bounds = append(bounds, d.Bounds[i*w:(i+1)*w]...)
		}
	}
	return y, exact, bounds
}

// meanLoss returns the mean loss over the targets, as [Learner.loss] defines it, of raw
// outputs, of classes the logarithms of their probabilities; NaN if there is no target.
func (l *Learner) meanLoss(outputs, y []float64, bounds []int8) float64 {
	h := *l.m.Card.Head
	sum := 0.0
	n := 0.0
	if h.Kind == model.Classes {
		for i, c := range y {
			w := l.weight(0, c)
			sum -= w * outputs[i*h.Outputs+int(c)]
			n += w
		}
		return sum / n
	}
	for i, s := range outputs {
		t := i % h.Outputs
		w := l.weight(t, y[i])
		switch {
		case w == 0:
			continue
		case h.Kind == model.Binary:
			sum += w * (max(s, 0) + math.Log1p(math.Exp(-math.Abs(s))) - y[i]*s)
		default:
			d := s - (y[i]-h.Mean[t])/h.Std[t]
			if bounds == nil || d*float64(bounds[i]) <= 0 {
				d *= d
				if l.absolute {
					d = math.Sqrt(d)
				}
				sum += d
			}
		}
		n += w
	}
	return sum / n
}

// accuracy returns in per cent how often the class of the target has the largest output
// [n×classes]; a tie goes to the lowest class.
func accuracy(outputs, y []float64, classes int) float64 {
	right := 0
	for i, want := range y {
		if largest(outputs[i*classes:(i+1)*classes]) == int(want) {
			right++
		}
	}
	return 100 * float64(right) / float64(len(y))
}
