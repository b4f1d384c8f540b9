package finetune

import (
	"cmp"
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
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// Options say how to learn.
type Options struct {
	Batch int                  // graphs in a mini-batch; 0 is 128
	Rate  float64              // learning rate of Adam; 0 is 0.001
	Seed  uint64               // of the batches
	View  augment.Augmentation // of the graphs in training; nil leaves them as they are
	// Patience is how many epochs in a row may pass without an improvement on the validation set before
	// training stops; see [Learner.Best]. 0 trains all epochs.
	Patience int
	// Balanced weighs the loss so that all classes of the training set, or the two answers of a binary
	// task, have equal weight in sum. Probabilities are then those of balanced classes.
	Balanced bool
	// Losses are those of the targets of a regression: one for all, or one for each; nil is Squared.
	Losses []Loss
	// TargetWeights are positive factors of the losses of several targets; nil for equal ones. Only their
	// ratios count.
	TargetWeights []float64
	// Alike divides the weight of a target by the number of its labels in the training set, so that rare
	// targets count as much as others.
	Alike bool
	// WithoutNetwork makes the linear model and the forest predict alone. The weights of the head and of the
	// features' layer are set to 0 after training, of which an epoch is enough.
	WithoutNetwork bool
	// Average is the decay d of a moving average a of the weights w and of the running statistics:
	// a ← d'·a + (1-d')·w after step n, where d' = min(d, n/(n+10)), so that the first weights are
	// forgotten. The average is evaluated and kept, which removes much of the noise of single steps
	// (Polyak and Juditsky 1992). 0 is no average. It needs Patience.
	Average float64
}

// completed returns the options with their defaults.
func (o Options) completed() Options {
	o.Batch = cmp.Or(o.Batch, 128)
	o.Rate = cmp.Or(o.Rate, 0.001)
	if o.View == nil {
		o.View = augment.Identity{}
	}
	return o
}

// Learner trains a model that predicts.
type Learner struct {
	train.Defaults
	*train.Minimizer
	m  *model.Trained
	be backend.Backend

	data   Data
	losses []Loss // of the tasks of a regression
	weighting

	training []*part            // the training set of a GIN, for recalibrate
	parts    map[string][]*part // what End evaluates, by the prefix of the metrics

	seed     uint64
	patience int
	decay    float64
	average  []*nn.Buffer // of the model's tensors; nil without Average

	withoutNetwork bool
	best           best
}

// best is the best epoch so far on the validation set. Its exported fields are part of a checkpoint.
type best struct {
	Epoch int     // from 1; 0 is none
	Score float64 // of the epoch; larger is better, see [Learner.score]
	Loss  float64 // on the validation set; decides between equal scores
	// weights are a copy of the model's parameters and buffers; nil without patience.
	weights []*nn.Buffer
	Steps   int // taken so far
}

// New returns a learner of all parameters of m, a model with a head such as [model.NewPredictor]
// makes. It is an error if the targets do not suit the head, or if no training graph has a label.
// New notes the options in the card of m and, for regression, the Mean and Std in its head. Of a former fit only
// the weights stay.
func New(m *model.Trained, d Data, o Options) (l *Learner, err error) {
	defer backend.Recover(&err)
	if err := checkFit(m, d, o); err != nil {
		return nil, err
	}
	d.Weights = d.normalised()
	o = o.completed()
	h := m.Card.Head
	w := newWeighting(*h, d, o)
	if o.Patience > 0 && !w.judges(d, taskCount(*h)) {
		return nil, errors.New("finetune: no record to validate on has a target that is trained on; take another " +
			"split, or leave such targets out")
	}
	d.describe(h, o.Balanced)
	m.ForgetFit()
	be := m.Head.W.Backend()
	if m.Beside != nil {
		m.Beside.Fit(d.Graphs, d.Train, d.Weights)
		if m.Beside.Linear != nil {
			be.Fill(m.Beside.Linear.Share.Value, 0) // until it is fitted, too
		}
	}
	note(m, o)

	loader := &augment.Loader{
		Graphs:   d.Graphs,
		Samples:  d.Train,
		Batch:    o.Batch,
		Collator: augment.Collator{Views: []augment.Augmentation{o.View}, Seed: o.Seed},
	}
	l = &Learner{
		Defaults:  train.Defaults{Loader: loader},
		Minimizer: train.NewMinimizer(be, m, o.Rate),
		m:         m,
		be:        be,
		data:      d,
		losses:    o.losses(*h),
		weighting: w,
		parts: map[string][]*part{
			"valid_": newParts(d.Graphs, d.Valid),
			"test_":  newParts(d.Graphs, d.Test),
		},
		seed:     o.Seed,
		patience: o.Patience,
		decay:    o.Average,

		withoutNetwork: o.WithoutNetwork,
	}
	if _, ok := m.Encoder.(*gnn.GIN); ok {
		l.training = trainingParts(d, o.Seed)
	}
	if o.Patience > 0 {
		l.best.weights = l.copyTensors("best.")
	}
	if o.Average > 0 {
		l.average = l.copyTensors("average.")
	}
	return l, nil
}

// weighting has the weights of targets in the loss.
type weighting struct {
	factors []float64   // of tasks; nil for 1
	weights [][]float64 // by task and class, for Balanced; nil for 1
}

func newWeighting(h model.Head, d Data, o Options) weighting {
	w := weighting{factors: d.factors(h, o)}
	if o.Balanced && h.Kind != model.Regression {
		w.weights = d.balance(h)
	}
	return w
}

// weight returns the weight of a target in the loss: 0 if it is missing.
func (w *weighting) weight(task int, y float64) float64 {
	if math.IsNaN(y) {
		return 0
	}
	weight := 1.0
	if w.factors != nil {
		weight = w.factors[task]
	}
	if w.weights != nil {
		weight *= w.weights[task][int(y)]
	}
	return weight
}

// judges reports whether a target of the validation set has a weight in the loss.
func (w *weighting) judges(d Data, tasks int) bool {
	return slices.ContainsFunc(d.Valid, func(i int) bool {
		for task, y := range d.Y[i*tasks : (i+1)*tasks] {
			if w.weight(task, y) > 0 {
				return true
			}
		}
		return false
	})
}

// maxAttribute bounds the attributes of nodes, whose squares must be finite as float32.
const maxAttribute = 1e19

// checkFit returns an error unless the model can be fitted to the data with the options.
func checkFit(m *model.Trained, d Data, o Options) error {
	if m == nil {
		return errors.New("finetune: the model is nil; want one with a head, such as Examples.NewModel makes")
	}
	h := m.Card.Head
	if h == nil || m.Head == nil {
		return errors.New("finetune: the model is an encoder without a head")
	}
	if m.Card.SelfLoops {
		return fmt.Errorf("finetune: %w", ErrSelfLoops)
	}
	if err := d.check(*h); err != nil {
		return err
	}
	if err := o.checkTargets(*h); err != nil {
		return err
	}
	if o.WithoutNetwork && (m.Beside == nil || m.Beside.Linear == nil || len(d.Valid) == 0) {
		return errors.New("finetune: without a network, a fit needs a linear model of features and a validation set")
	}
	if err := checkGraphs(m, d); err != nil {
		return err
	}
	switch {
	case !(o.Average >= 0 && o.Average < 1) || o.Average > 0 && o.Patience == 0:
		return fmt.Errorf("finetune: average %v with patience %d; want 0 to below 1, and patience if "+
			"it is not 0",
			o.Average, o.Patience)
	case o.Patience == 0:
		return nil
	case len(d.Valid) == 0:
		return errors.New("finetune: patience needs a validation set")
	case !d.hasLabel(d.Valid, taskCount(*h)):
		return errors.New("finetune: no graph to validate on has a label")
	}
	return nil
}

// checkGraphs returns an error unless the model's encoder reads every graph.
func checkGraphs(m *model.Trained, d Data) error {
	a, err := gnn.ArchitectureOf(m.Encoder)
	if err != nil {
		return err
	}
	for i, g := range d.Graphs {
		if err := a.Accepts(g); err != nil {
			return fmt.Errorf("finetune: graph %d: %w", i, err)
		}
		for k, v := range g.X.Dense {
			if v < -maxAttribute || v > maxAttribute {
				return &GraphError{
					i,
					fmt.Sprintf("attribute %d of node %d is %g, whose square is beyond float32; "+
						"take another unit or the logarithm", k%g.X.Width, k/g.X.Width, v)}
			}
		}
	}
	return nil
}

// note writes the options into the provenance of the model.
func note(m *model.Trained, o Options) {
	options := map[string]any{
		"batch":    o.Batch,
		"lr":       o.Rate,
		"patience": o.Patience,
		"average":  o.Average,
	}
	if o.Balanced {
		options["balanced"] = true
	}
	if losses := o.describeLosses(*m.Card.Head); losses != string(Squared) {
		options["loss"] = losses
	}
	if weights := o.describeWeights(*m.Card.Head); weights != "" {
		options["target-weights"] = weights
	}
	if o.WithoutNetwork {
		options["network"] = false
	}
	p := &m.Card.Provenance
	if p.Options == nil {
		p.Options = map[string]string{}
	}
	for name, v := range options {
		p.Options[name] = fmt.Sprint(v)
	}
}

// tensors returns the places of the model's tensors that steps change.
func (l *Learner) tensors() (names []string, places []**tensor.Tensor) {
	for _, p := range l.m.Parameters() {
		names = append(names, p.Name)
		places = append(places, &p.Value)
	}
	for _, b := range l.m.Encoder.Buffers() {
		names = append(names, b.Name)
		places = append(places, &b.Value)
	}
	return names, places
}

// copyTensors returns buffers of the shapes of the model's tensors, with a prefix before their names.
func (l *Learner) copyTensors(prefix string) (buffers []*nn.Buffer) {
	names, places := l.tensors()
	for i, v := range places {
		buffers = append(buffers, nn.NewBuffer(l.be, prefix+names[i], (*v).Rows, (*v).Cols, 0))
	}
	return buffers
}

// outputs returns the raw outputs [B×Outputs] of the network for a batch of samples, and the z of
// [model.Beside], nil without it.
func (l *Learner) outputs(
	t *autodiff.Tape, b *graph.Batch, samples []int, mode nn.Mode,
) (s, z *autodiff.Var) {
	h := l.m.Encoder.Forward(gnn.NewBatch(t, b), mode)
	if l.m.Beside != nil {
		h, z = l.m.Beside.Forward(h, pick(l.data.Graphs, samples), mode)
	}
	return l.m.Head.Forward(h), z
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
	_, places := l.tensors()
	for i, a := range l.average {
		l.be.Axpby(a.Value, d, a.Value, 1-d, *places[i])
	}
	return m, nil
}

// loss returns the mean loss [1×1] over the labels of a batch, weighted with Balanced, and nil if
// there are none. A weight of a graph is a factor of its loss, and not of the number of labels:
//
//	classes     -ln softmax(s) at the class
//	binary      ln(1+e^s) - y·s
//	regression  (s - y')² or |s - y'|, for y' of [model.Head.Standardise]; 0 beyond a bound
//
// Weights of targets are weights of this mean.
func (l *Learner) loss(b train.Batch) *autodiff.Var {
	if l.m.Card.Head.Kind == model.Classes {
		return l.classLoss(b)
	}
	return l.taskLoss(b)
}

// classLoss is [Learner.loss] of classes.
func (l *Learner) classLoss(b train.Batch) *autodiff.Var {
	outputs := l.m.Card.Head.Outputs
	classes := make([]int, len(b.Samples))
	weights := make([]float64, len(b.Samples)*outputs)
	sum := 0.0
	for k, i := range b.Samples {
		c := int(l.data.Y[i])
		w := l.weight(0, l.data.Y[i])
		classes[k] = c
		weights[k*outputs+c] = w * l.data.weight(i)
		sum += w
	}
	s, _ := l.outputs(l.Tape, b.Graphs, b.Samples, nn.Train)
	if l.weights == nil && l.data.Weights == nil {
		return nn.CrossEntropy(s, classes)
	}
	return s.LogSoftmax().Dot(l.Tape.Matrix(len(b.Samples), outputs, weights)).Scale(-1 / sum)
}

// taskLoss is [Learner.loss] of binary tasks and of regression.
func (l *Learner) taskLoss(b train.Batch) *autodiff.Var {
	h := l.m.Card.Head
	n := len(b.Samples) * h.Outputs
	targets := make([]float64, 0, n) // weighted, for binary tasks
	above := make([]float64, 0, n)   // weights of outputs above the target
	below := make([]float64, 0, n)   // weights of outputs below it
	count := 0.0
	for _, i := range b.Samples {
		for task, y := range l.data.Y[i*h.Outputs : (i+1)*h.Outputs] {
			w := l.weight(task, y)
			count += w
			w *= l.data.weight(i)
			switch {
			case w == 0:
				y = 0
			case h.Kind == model.Binary:
				y *= w
			default:
				y = h.Standardise(task, y)
			}
			upWeight := w
			downWeight := w
			if l.data.Bounds != nil {
				switch bound := l.data.Bounds[i*h.Outputs+task]; {
				case bound > 0:
					upWeight = 0
				case bound < 0:
					downWeight = 0
				}
			}
			targets = append(targets, y)
			above = append(above, upWeight)
			below = append(below, downWeight)
		}
	}
	if count == 0 {
		return nil
	}

	s, _ := l.outputs(l.Tape, b.Graphs, b.Samples, nn.Train)
	matrix := func(values []float64) *autodiff.Var {
		return l.Tape.Matrix(len(b.Samples), h.Outputs, values)
	}
	y := matrix(targets)
	if h.Kind == model.Binary {
		return s.Softplus().Dot(matrix(above)).Sub(s.Dot(y)).Scale(1 / count)
	}
	return l.errors(s, y, above, below).Scale(1 / count)
}

// errors returns the sum of the losses of outputs s for targets y [n×tasks], with weights of the outputs that are
// above their target, and of those below.
func (l *Learner) errors(s, y *autodiff.Var, above, below []float64) *autodiff.Var {
	sum := func(loss Loss) *autodiff.Var {
		matrix := func(weights []float64) *autodiff.Var {
			return l.Tape.Matrix(s.Rows(), s.Cols(), l.only(loss, weights))
		}
		if l.data.Bounds == nil {
			return loss.of(s.Sub(y)).Dot(matrix(above))
		}
		excess := loss.of(s.Sub(y).ReLU()).Dot(matrix(above))
		deficit := loss.of(y.Sub(s).ReLU()).Dot(matrix(below))
		return excess.Add(deficit)
	}
	total := sum(l.losses[0])
	for _, loss := range []Loss{Squared, Absolute} {
		if loss != l.losses[0] && slices.Contains(l.losses, loss) {
			total = total.Add(sum(loss))
		}
	}
	return total
}

// End evaluates the model on the validation and test sets. With patience, it keeps the weights of
// the best epoch, or stops training.
func (l *Learner) End(ctx context.Context, epoch int) (train.Metrics, error) {
	l.swapAverage()
	defer l.swapAverage()
	if err := l.recalibrate(ctx); err != nil {
		return nil, err
	}
	metrics := train.Metrics{}
	for prefix, parts := range l.parts {
		if len(parts) == 0 {
			continue
		}
		m, err := l.evaluate(ctx, parts)
		if err != nil {
			return nil, err
		}
		for name, v := range m {
			metrics[prefix+name] = v
		}
	}
	if l.patience == 0 {
		return metrics, nil
	}
	score := l.score(metrics)
	loss := metrics["valid_loss"]
	b := &l.best
	switch {
	case b.Epoch == 0 || score > b.Score || score == b.Score && loss < b.Loss:
		b.Epoch = epoch + 1
		b.Score = score
		b.Loss = loss
		_, places := l.tensors()
		for i, v := range places {
			copyTensor(l.be, b.weights[i].Value, *v)
		}
	case epoch+1 >= b.Epoch+l.patience:
		return metrics, train.ErrStop
	}
	return metrics, nil
}

// recalibrate gives the batch norms of a GIN the statistics of the training set under the present weights:
// the means of those of its parts, by their nodes. Moving averages over the last ten batches forget the few
// graphs in which a column is active at all. Such a graph is then divided by a deviation of nearly zero, and a
// sum over its nodes and three layers multiplies that.
func (l *Learner) recalibrate(ctx context.Context) (err error) {
	encoder, ok := l.m.Encoder.(*gnn.GIN)
	if !ok {
		return nil
	}
	defer backend.Recover(&err)
	t := autodiff.NewInference(l.be)
	defer t.Reset()
	nodes := 0
	for _, p := range l.training {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p.batch.Nodes() == 0 {
			continue
		}
		nodes += p.batch.Nodes()
		var momentum []float64
		for _, norm := range encoder.Norms {
			momentum = append(momentum, norm.Momentum)
			norm.Momentum = float64(p.batch.Nodes()) / float64(nodes)
		}
		encoder.Nodes(gnn.NewBatch(t, p.batch), nn.Train)
		for i, norm := range encoder.Norms {
			norm.Momentum = momentum[i]
		}
		t.Reset()
	}
	return nil
}

// swapAverage exchanges the model's tensors for their average, or back.
func (l *Learner) swapAverage() {
	_, places := l.tensors()
	for i, a := range l.average {
		*places[i], a.Value = a.Value, *places[i]
	}
}

// score returns how good an epoch is on the validation set: the ROC-AUC if a binary task has both
// answers, otherwise the negative loss. The loss of regression is of standardised errors, so that a
// task's unit is not its weight.
func (l *Learner) score(m train.Metrics) float64 {
	if auc, ok := m["valid_roc_auc"]; ok {
		return auc
	}
	return -m["valid_loss"]
}

// Best gives the model the weights of the best epoch on the validation set, after training with patience, and
// returns the epoch's number, from 1. Without patience, or before an epoch has ended, it changes nothing and
// returns 0.
func (l *Learner) Best() (epoch int, err error) {
	defer backend.Recover(&err)
	if l.best.Epoch == 0 {
		return 0, nil
	}
	_, places := l.tensors()
	for i, v := range places {
		copyTensor(l.be, *v, l.best.weights[i].Value)
	}
	for i, a := range l.average {
		copyTensor(l.be, a.Value, l.best.weights[i].Value)
	}
	return l.best.Epoch, nil
}

func copyTensor(be backend.Backend, dst, src *tensor.Tensor) {
	be.CopyBlock(dst, 0, 0, src, 0, 0, src.Rows, src.Cols)
}

// State implements [train.Learner].
func (l *Learner) State() (nn.Module, any) {
	return optim.Checkpoint{Module: trained{l}, Optimizer: l.Adam}, &l.best
}

// trained is a model whose buffers include all else that training changes: the number of masks that
// dropout drew, the best weights, and the average.
type trained struct{ l *Learner }

func (t trained) Parameters() []*autodiff.Param { return t.l.m.Parameters() }

func (t trained) Buffers() []*nn.Buffer {
	buffers := slices.Concat(t.l.m.Buffers(), t.l.best.weights, t.l.average)
	if d, ok := t.l.m.Encoder.(interface{ DropoutState() []*nn.Buffer }); ok {
		buffers = append(buffers, d.DropoutState()...)
	}
	if b := t.l.m.Beside; b != nil {
		buffers = append(buffers, b.Dropout.State("beside.dropout"))
	}
	return buffers
}

// Close frees the best weights and the average.
func (l *Learner) Close() error {
	for _, b := range slices.Concat(l.best.weights, l.average) {
		l.be.Free(b.Value)
	}
	l.best = best{}
	l.average = nil
	return nil
}
