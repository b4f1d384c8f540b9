package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

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
	Classes    Kind = "classes"    // one of several classes: softmax, cross-entropy
	Binary     Kind = "binary"     // binary tasks: sigmoid, binary cross-entropy
	Regression Kind = "regression" // numbers: squared error of standardised targets
)

// Head describes what a model predicts. It can be stored as JSON.
type Head struct {
	Kind    Kind `json:"kind"`
	Outputs int  `json:"outputs"` // classes or tasks
	// Tasks are the names of the tasks, and ClassValues the labels of the classes in the data set, or
	// of 0 and 1 in all binary tasks; either may be empty.
	Tasks       []string `json:"tasks,omitempty"`
	ClassValues []string `json:"class_values,omitempty"`
	// Mean and Std of each task of a regression convert outputs to places on the task's scale:
	// Mean + Std·output. Package finetune sets them.
	Mean []float64 `json:"mean,omitempty"`
	Std  []float64 `json:"std,omitempty"`
	// Prior are the frequencies of 1 in each binary task, or of the classes, in the training set; those of
	// balanced ones if the loss is balanced. Package finetune sets them; earlier versions did not.
	Prior []float64 `json:"prior,omitempty"`
	// Scales are the scales of the tasks of a regression; none stands for the unit of the targets.
	Scales []Scale `json:"scales,omitempty"`
}

// Check returns an error unless the fields are consistent.
func (h Head) Check() error {
	switch {
	case h.Kind != Classes && h.Kind != Binary && h.Kind != Regression:
		return fmt.Errorf("specmatch: head of kind %q; want %s, %s or %s",
			h.Kind, Classes, Binary, Regression)
	case h.Outputs < 1 || h.Outputs > maxOutputs || h.Kind == Classes && h.Outputs < 2:
		return fmt.Errorf("specmatch: a head of kind %s with %d outputs", h.Kind, h.Outputs)
	case len(h.Tasks) > 0 && (h.Kind == Classes || len(h.Tasks) != h.Outputs):
		return fmt.Errorf("specmatch: %d names of tasks for %d outputs of kind %s",
			len(h.Tasks), h.Outputs, h.Kind)
	case len(h.ClassValues) > 0 && len(h.ClassValues) != h.classes():
		return fmt.Errorf("specmatch: labels of %d classes for %d outputs of kind %s",
			len(h.ClassValues), h.Outputs, h.Kind)
	case len(h.Mean) != len(h.Std) ||
		len(h.Mean) > 0 && (h.Kind != Regression || len(h.Mean) != h.Outputs):
		return fmt.Errorf("specmatch: %d means and %d standard deviations for %d outputs of kind %s",
			len(h.Mean), len(h.Std), h.Outputs, h.Kind)
	case len(h.Scales) > 0 && (h.Kind != Regression || len(h.Scales) != h.Outputs):
		return fmt.Errorf("specmatch: %d scales for %d outputs of kind %s",
			len(h.Scales), h.Outputs, h.Kind)
	}
	outside := func(p float64) bool { return !(p >= 0 && p <= 1) }
	if len(h.Prior) > 0 && (h.Kind == Regression || len(h.Prior) != h.Outputs) ||
		slices.ContainsFunc(h.Prior, outside) {
		return fmt.Errorf("specmatch: prior frequencies %v for %d outputs of kind %s", h.Prior, h.Outputs, h.Kind)
	}
	for _, s := range h.Scales {
		if err := s.Check(); err != nil {
			return err
		}
	}
	for k, s := range h.Std {
		if m := h.Mean[k]; math.IsNaN(m) || math.IsInf(m, 0) || !(s > 0) || math.IsInf(s, 0) {
			return fmt.Errorf("specmatch: the targets of task %d have mean %v and standard deviation %v",
				k, m, s)
		}
	}
	return nil
}

// classes returns the number of classes of a task; 0 for regression.
func (h Head) classes() int {
	switch h.Kind {
	case Classes:
		return h.Outputs
	case Binary:
		return 2
	}
	return 0
}

// Columns returns the names of the predictions: the names of the tasks or, for probabilities of
// classes, class_ and the class.
func (h Head) Columns() (names []string) {
	for k := range h.Outputs {
		switch {
		case h.Kind == Classes && k < len(h.ClassValues):
			names = append(names, "class_"+h.ClassValues[k])
		case h.Kind == Classes:
			names = append(names, fmt.Sprintf("class_%d", k))
		case k < len(h.Tasks):
			names = append(names, h.Tasks[k])
		default:
			names = append(names, fmt.Sprintf("task_%d", k))
		}
	}
	return names
}

// maxOutputs bounds the outputs of a head.
const maxOutputs = 1 << 20

// NewPredictor returns an encoder with an untrained head, for package finetune to fit. The linear layer
// [width×outputs] is initialised by PyTorch's default. It panics unless the head passes [Head.Check].
func NewPredictor(e gnn.Encoder, h Head, rng *rand.Rand) *Trained {
	return NewPredictorBeside(e, h, nil, 0, rng)
}

// NewPredictorBeside is [NewPredictor] with a head that also sees numbers of the graph, unless n is
// nil; see [Beside]. dropout is the probability of dropout after their layer.
func NewPredictorBeside(e gnn.Encoder, h Head, n *Numbers, dropout float64, rng *rand.Rand) *Trained {
	if err := h.Check(); err != nil {
		panic(err)
	}
	m := &Trained{Encoder: e, Card: Card{Head: &h, Beside: n}}
	m.addHead(m.backend(), dropout, rng)
	return m
}

// addHead adds the head that the card describes.
func (m *Trained) addHead(be backend.Backend, dropout float64, rng *rand.Rand) {
	m.Head = nn.NewLinear(be, predictor, m.Card.headWidth(m.Width()), m.Card.Head.Outputs, nn.KaimingUniform, rng)
	m.Head.ResetBias(be, rng)
	if n := m.Card.Beside; n != nil {
		m.Beside = newBeside(be, *n, m.Card.Head.Outputs, dropout, rng)
	}
}

// Apply returns the predictions of [Trained.Predict] for n graphs from their embeddings [n×Width], row-major.
func (m *Trained) Apply(embeddings []float64, graphs []*graph.Graph) ([]float64, error) {
	switch m.Card.Head.Kind {
	case Classes:
		return m.outputs(embeddings, graphs, (*autodiff.Var).Softmax)
	case Binary:
		return m.outputs(embeddings, graphs, (*autodiff.Var).Sigmoid)
	}
	return m.scores(embeddings, graphs)
}

// scores returns predictions whose differences have a meaning: the logarithms of the probabilities
// of classes, the log-odds of binary tasks, or numbers in the unit of the targets.
func (m *Trained) scores(embeddings []float64, graphs []*graph.Graph) ([]float64, error) {
	if m.Card.Head.Kind == Classes {
		return m.outputs(embeddings, graphs, (*autodiff.Var).LogSoftmax)
	}
	y, err := m.outputs(embeddings, graphs, func(x *autodiff.Var) *autodiff.Var { return x })
	return m.Card.Head.InUnits(y), err
}

// isSilent reports whether the network's outputs are 0 for every graph, as in a fit without a network. Computing
// them takes most of the time of such a model.
func (m *Trained) isSilent() bool {
	for _, p := range []*autodiff.Param{m.Head.W, m.Head.B} {
		values := make([]float64, p.Value.Len())
		p.Backend().Download(values, p.Value)
		for _, v := range values {
			if v != 0 {
				return false
			}
		}
	}
	return true
}

// ignoresEmbeddings reports whether predictions are those of the linear model and the forest alone.
func (m *Trained) ignoresEmbeddings() bool { return areAll(m.linearShares(), 1) && m.isSilent() }

// ignoresEmbeddingsInTurn is ignoresEmbeddings, which reads weights from the engine, for who does not hold Turn.
func (m *Trained) ignoresEmbeddingsInTurn() bool {
	if m.Turn != nil {
		m.Turn.Lock()
		defer m.Turn.Unlock()
	}
	return m.ignoresEmbeddings()
}

// outputs returns the head's outputs [n×Outputs] after an activation.
func (m *Trained) outputs(
	embeddings []float64, graphs []*graph.Graph, activation func(*autodiff.Var) *autodiff.Var,
) ([]float64, error) {
	if err := m.Card.Beside.accepts(graphs); err != nil {
		return nil, err
	}
	var forest []float64 // computed beside the engine
	forestShares := m.forestShares()
	if !areAll(forestShares, 0) {
		forest = m.Card.Forest.Outputs(*m.Card.Head, graphs)
	}
	if m.Turn != nil {
		m.Turn.Lock()
		defer m.Turn.Unlock()
	}
	shares := m.linearShares()
	silent := m.ignoresEmbeddings()
	var logs []sparseLogs
	if m.Beside != nil {
		logs = m.Shared.logsOf(graphs)
	}
	width := m.Width()
	outputs := m.Card.Head.Outputs
	t := autodiff.NewInference(m.backend())
	defer t.Reset()
	y := make([]float64, 0, len(graphs)*outputs)
	for lo := 0; lo < len(graphs); lo += headGraphs {
		hi := min(lo+headGraphs, len(graphs))
		part := graphs[lo:hi]
		var s, z *autodiff.Var
		if m.Beside != nil {
			size := m.Card.Beside.Size
			numbers := m.Shared.buffer(len(part) * size)
			m.Beside.standardise(numbers, part, logs[min(lo, len(logs)):])
			z = t.Matrix(len(part), size, numbers)
		}
		if silent {
			s = t.Matrix(len(part), outputs, make([]float64, len(part)*outputs))
		} else {
			h := t.Matrix(len(part), width, embeddings[lo*width:hi*width])
			s = m.Head.Forward(m.Beside.input(h, z, nn.Eval))
		}
		if !areAll(shares, 0) {
			mixed := m.Card.Head.Mix(shares, s.Data(), m.Beside.Linear.Forward(z).Data())
			s = t.Matrix(len(part), outputs, mixed)
		}
		if forest != nil {
			mixed := m.Card.Head.Mix(forestShares, s.Data(), forest[lo*outputs:hi*outputs])
			s = t.Matrix(len(part), outputs, mixed)
		}
		y = append(y, activation(s).Data()...)
		t.Reset()
	}
	return y, nil
}

// headGraphs is how many graphs a head sees at a time, whose numbers take 32 kB each for some thousands of features.
const headGraphs = 128
