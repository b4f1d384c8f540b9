package specmatch

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn"
)

// Kind is the kind of a head's predictions.
type Kind string

// The kinds of heads.
const (
	Classes    Kind = "classes"    // which of several classes: softmax, cross-entropy
	Binary     Kind = "binary"     // several yes-or-no tasks: sigmoid, binary cross-entropy
	Regression Kind = "regression" // several numbers: squared error of standardised targets
)

// Head describes what a model predicts. It can be stored as JSON.
type Head struct {
	Kind    Kind `json:"kind"`
	Outputs int  `json:"outputs"` // classes or tasks
	// Tasks are the names of the tasks, and ClassValues the labels of the classes in
	// the data set; either may be empty.
	Tasks       []string `json:"tasks,omitempty"`
	ClassValues []string `json:"class_values,omitempty"`
	// Mean and Std, one for each task of a regression, turn outputs into the unit of
	// the targets: y = Mean + Std·output. Package finetune sets them.
	Mean []float64 `json:"mean,omitempty"`
	Std  []float64 `json:"std,omitempty"`
}

// Check returns an error unless the fields are consistent.
func (h Head) Check() error {
	switch {
	case h.Kind != Classes && h.Kind != Binary && h.Kind != Regression:
		return fmt.Errorf("specmatch: head of kind %q; want %s, %s or %s", h.Kind, Classes, Binary, Regression)
	case h.Outputs < 1 || h.Outputs > maxOutputs || h.Kind == Classes && h.Outputs < 2:
		return fmt.Errorf("specmatch: a head of kind %s with %d outputs", h.Kind, h.Outputs)
	case len(h.Tasks) > 0 && (h.Kind == Classes || len(h.Tasks) != h.Outputs):
		return fmt.Errorf("specmatch: %d names of tasks for %d outputs of kind %s", len(h.Tasks), h.Outputs, h.Kind)
	case len(h.ClassValues) > 0 && (h.Kind != Classes || len(h.ClassValues) != h.Outputs):
		return fmt.Errorf("specmatch: labels of %d classes for %d outputs of kind %s", len(h.ClassValues), h.Outputs, h.Kind)
	case len(h.Mean) != len(h.Std) || len(h.Mean) > 0 && (h.Kind != Regression || len(h.Mean) != h.Outputs):
		return fmt.Errorf("specmatch: %d means and %d standard deviations for %d outputs of kind %s", len(h.Mean), len(h.Std), h.Outputs, h.Kind)
	}
	for k, s := range h.Std {
		if m := h.Mean[k]; math.IsNaN(m) || math.IsInf(m, 0) || !(s > 0) || math.IsInf(s, 0) {
			return fmt.Errorf("specmatch: the targets of task %d have the mean %v and the standard deviation %v", k, m, s)
		}
	}
	return nil
}

// Columns names the predictions: numbers and probabilities of a yes by the names of
// their tasks, probabilities of classes by class_ and the class.
func (h Head) Columns() []string {
	var all []string
	for k := range h.Outputs {
		switch {
		case h.Kind == Classes && k < len(h.ClassValues):
			all = append(all, "class_"+h.ClassValues[k])
		case h.Kind == Classes:
			all = append(all, fmt.Sprintf("class_%d", k))
		case k < len(h.Tasks):
			all = append(all, h.Tasks[k])
		default:
			all = append(all, fmt.Sprintf("task_%d", k))
		}
	}
	return all
}

// maxOutputs bounds the outputs of a head.
const maxOutputs = 1 << 20

// NewPredictor returns an encoder with an untrained head, for package finetune to fit. The
// linear layer [width×outputs] is initialised as PyTorch does it by default. It panics
// unless the head passes [Head.Check].
func NewPredictor(e gnn.Encoder, h Head, rng *rand.Rand) *Trained {
	if err := h.Check(); err != nil {
		panic(err)
	}
	be := e.Parameters()[0].Backend()
	l := nn.NewLinear(be, predictor, e.Width(), h.Outputs, nn.KaimingUniform, rng)
	l.ResetBias(be, rng)
	return &Trained{Encoder: e, Head: l, Card: Card{Head: &h}}
}

// Apply returns the predictions of [Trained.Predict] for embeddings [n×width], row-major,
// by a linear layer [width×Outputs].
func (h Head) Apply(l *nn.Linear, embeddings []float64) []float64 {
	switch h.Kind {
	case Classes:
		return h.outputs(l, embeddings, (*autodiff.Var).Softmax)
	case Binary:
		return h.outputs(l, embeddings, (*autodiff.Var).Sigmoid)
	}
	return h.Scores(l, embeddings)
}

// Scores returns the logarithms of the probabilities of classes, the log-odds of a yes, or
// numbers in the unit of the targets: what differences mean something of.
func (h Head) Scores(l *nn.Linear, embeddings []float64) []float64 {
	if h.Kind == Classes {
		return h.outputs(l, embeddings, (*autodiff.Var).LogSoftmax)
	}
	return h.InUnits(h.outputs(l, embeddings, func(x *autodiff.Var) *autodiff.Var { return x }))
}

// outputs returns a function of the layer's outputs [n×Outputs].
func (h Head) outputs(l *nn.Linear, embeddings []float64, of func(*autodiff.Var) *autodiff.Var) []float64 {
	be, width := l.W.Backend(), l.W.Value.Rows
	t := autodiff.NewInference(be)
	defer t.Reset()
	return of(l.Forward(t.Matrix(len(embeddings)/width, width, embeddings))).Data()
}

// InUnits converts the outputs of a regression to the unit of the targets, in place.
func (h Head) InUnits(y []float64) []float64 {
	if len(h.Mean) > 0 {
		for i := range y {
			y[i] = h.Mean[i%h.Outputs] + h.Std[i%h.Outputs]*y[i]
		}
	}
	return y
}
