package finetune

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Kind is the kind of a head's predictions.
type Kind string

// The kinds of heads.
const (
	Classes    Kind = "classes"    // which of several classes: softmax, cross-entropy
	Binary     Kind = "binary"     // several yes-or-no tasks: sigmoid, binary cross-entropy
	Regression Kind = "regression" // several numbers: squared error of standardised targets
)

// Head describes the outputs of a [Predictor]. It can be stored as JSON.
type Head struct {
	Kind    Kind `json:"kind"`
	Outputs int  `json:"outputs"` // classes or tasks
	// Tasks are the names of the tasks, and ClassValues the labels of the classes in
	// the data set; either may be empty.
	Tasks       []string `json:"tasks,omitempty"`
	ClassValues []string `json:"class_values,omitempty"`
	// Mean and Std, one for each task of a regression, turn outputs into the unit of
	// the targets: y = Mean + Std·output. [New] sets them.
	Mean []float64 `json:"mean,omitempty"`
	Std  []float64 `json:"std,omitempty"`
}

// Check returns an error unless the fields are consistent.
func (h Head) Check() error {
	switch {
	case h.Kind != Classes && h.Kind != Binary && h.Kind != Regression:
		return fmt.Errorf("finetune: head of kind %q; want %s, %s or %s", h.Kind, Classes, Binary, Regression)
	case h.Outputs < 1 || h.Outputs > maxOutputs || h.Kind == Classes && h.Outputs < 2:
		return fmt.Errorf("finetune: a head of kind %s with %d outputs", h.Kind, h.Outputs)
	case len(h.Tasks) > 0 && (h.Kind == Classes || len(h.Tasks) != h.Outputs):
		return fmt.Errorf("finetune: %d names of tasks for %d outputs of kind %s", len(h.Tasks), h.Outputs, h.Kind)
	case len(h.ClassValues) > 0 && (h.Kind != Classes || len(h.ClassValues) != h.Outputs):
		return fmt.Errorf("finetune: labels of %d classes for %d outputs of kind %s", len(h.ClassValues), h.Outputs, h.Kind)
	case len(h.Mean) != len(h.Std) || len(h.Mean) > 0 && (h.Kind != Regression || len(h.Mean) != h.Outputs):
		return fmt.Errorf("finetune: %d means and %d standard deviations for %d outputs of kind %s", len(h.Mean), len(h.Std), h.Outputs, h.Kind)
	}
	for k, s := range h.Std {
		if m := h.Mean[k]; math.IsNaN(m) || math.IsInf(m, 0) || !(s > 0) || math.IsInf(s, 0) {
			return fmt.Errorf("finetune: the targets of task %d have the mean %v and the standard deviation %v", k, m, s)
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

// Predictor is an encoder followed by a linear layer [width×outputs].
type Predictor struct {
	Encoder gnn.Encoder
	Output  *nn.Linear
	Head    Head

	be backend.Backend
}

// NewPredictor returns a predictor whose linear layer is initialised as PyTorch does
// it by default. It panics unless the head passes [Head.Check].
func NewPredictor(be backend.Backend, e gnn.Encoder, h Head, rng *rand.Rand) *Predictor {
	if err := h.Check(); err != nil {
		panic(err)
	}
	p := &Predictor{Encoder: e, Head: h, be: be}
	p.Output = nn.NewLinear(be, "predictor", e.Width(), h.Outputs, nn.KaimingUniform, rng)
	p.Output.ResetBias(be, rng)
	return p
}

// Parameters returns the encoder's and the linear layer's.
func (p *Predictor) Parameters() []*autodiff.Param {
	return append(p.Encoder.Parameters(), p.Output.Parameters()...)
}

// Buffers returns the encoder's.
func (p *Predictor) Buffers() []*nn.Buffer { return p.Encoder.Buffers() }

// outputs returns the raw outputs [B×Outputs] for a batch.
func (p *Predictor) outputs(t *autodiff.Tape, b *graph.Batch, mode nn.Mode) *autodiff.Var {
	return p.Output.Forward(p.Encoder.Forward(gnn.NewBatch(t, b), mode))
}

// Predict returns the predictions for n graphs, row-major [n×Outputs]: the
// probability of each class, the probability of a yes in each task, or the numbers
// in the unit of the targets. The error is that of ctx or of a device that failed.
func (p *Predictor) Predict(ctx context.Context, graphs []*graph.Graph) (y []float64, err error) {
	defer backend.Recover(&err)
	h, err := gnn.Embed(ctx, p.be, p.Encoder, graphs, nil)
	if err != nil {
		return nil, err
	}
	return p.Head.Apply(p.Output, h), nil
}

// Apply returns the predictions of [Predictor.Predict] for embeddings [n×width],
// row-major, by a linear layer [width×Outputs].
func (h Head) Apply(l *nn.Linear, embeddings []float64) []float64 {
	be, width := l.W.Backend(), l.W.Value.Rows
	t := autodiff.NewInference(be)
	defer t.Reset()
	out := l.Forward(t.Matrix(len(embeddings)/width, width, embeddings))
	switch h.Kind {
	case Classes:
		return out.Softmax().Data()
	case Binary:
		return out.Sigmoid().Data()
	}
	return h.inUnits(out.Data())
}

// inUnits converts the outputs of a regression to the unit of the targets, in place.
func (h Head) inUnits(y []float64) []float64 {
	if len(h.Mean) > 0 {
		for i := range y {
			y[i] = h.Mean[i%h.Outputs] + h.Std[i%h.Outputs]*y[i]
		}
	}
	return y
}

// standardise sets Mean and Std from the targets of some samples; a task whose
// targets are all equal gets the deviation 1.
func (h *Head) standardise(y []float64, samples []int) {
	h.Mean, h.Std = make([]float64, h.Outputs), make([]float64, h.Outputs)
	for t := range h.Outputs {
		var sum, squares, n float64
		for _, i := range samples {
			if v := y[i*h.Outputs+t]; !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		mean := sum / max(n, 1)
		for _, i := range samples {
			if v := y[i*h.Outputs+t]; !math.IsNaN(v) {
				squares += (v - mean) * (v - mean)
			}
		}
		h.Mean[t], h.Std[t] = mean, math.Sqrt(squares/max(n, 1))
		if h.Std[t] == 0 {
			h.Std[t] = 1
		}
	}
}
