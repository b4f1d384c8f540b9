package apply

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor/files"
)

// Model turns graphs into rows of numbers.
type Model struct {
	Columns []string // of a row
	// Rows returns the rows of n graphs, row-major [n×len(Columns)]. For [Features], they are the part of
	// the encoder; Rows is nil without one.
	Rows  func(ctx context.Context, graphs []*graph.Graph) ([]float64, error)
	Reads Input
	// rows32, if set, is Rows in float32, into dst.
	rows32 func(ctx context.Context, dst []float32, graphs []*graph.Graph) error

	// Trained says which columns or keys the model was trained on, as Dataset.Reads does.
	Trained string
	// Key identifies what the model computes, such as its features, but for the weights and engines of the models
	// that it is made of: keys do. For a model that is made of none, it identifies the weights, too. An interrupted
	// job resumes only with the same, and so are shards joined.
	Key string
	// keys return what identifies the weights, in a precision, and the engine.
	keys []func() (weights, engine string, err error)

	// For [Features]: width is how many numbers of a molecule are computed when it is read, and before is
	// how many of them come before those of Rows.
	width, before int
}

// Input says what a model reads.
type Input struct {
	Content  records.Content // molecules or graphs; "" is either
	Features *graph.Columns  // of graphs; nil for molecules
	// Atoms and Standard are as in [records.Options].
	Atoms    string
	Standard feature.Standardisation
	// Vector is as in [records.Options].
	Vector func() records.Vectors
}

// Options returns options for reading a file with all that the model needs. Molecules are
// standardised as o or the model asks for.
func (input Input) Options(o records.Options) records.Options {
	o.Want = input.Content
	o.Columns = input.Features
	o.Atoms = input.Atoms
	o.Vector = input.Vector
	o.Standard.LargestFragment = o.Standard.LargestFragment || input.Standard.LargestFragment
	o.Standard.Neutralise = o.Standard.Neutralise || input.Standard.Neutralise
	return o
}

// Reads returns what the model of a card reads.
func Reads(c model.Card) (Input, error) {
	switch {
	case c.Features != nil:
		return Input{Content: records.Graphs, Features: c.Features}, nil
	case c.Encoder.Kind == gnn.KindChemGIN:
		input := Input{Content: records.Molecules, Atoms: c.Encoder.Atoms, Standard: c.Standard}
		if c.Beside == nil {
			return input, nil
		}
		features, err := ParseFeatures(c.Beside.Features)
		if err == nil {
			var n *model.Numbers
			n, input.Vector, err = Numbers(features)
			if err == nil && n.Size != c.Beside.Size {
				err = fmt.Errorf("the features %q are %d numbers, and the model has seen %d",
					c.Beside.Features, n.Size, c.Beside.Size)
			}
		}
		return input, err
	}
	return Input{}, fmt.Errorf("encoder %s reads ego networks of proteins, which no file of records has",
		c.Encoder.Kind)
}

// identities returns what identifies the model with its weights, all of which it reads, and what identifies its
// engines.
func (m *Model) identities() (weights, engines string, err error) {
	weights = m.Key
	for _, key := range m.keys {
		part, engine, err := key()
		if err != nil {
			return "", "", err
		}
		weights += part
		engines += engine
	}
	return weights, engines, nil
}

// newModel completes m with what it reads, and with what identifies the models that it is made of.
func newModel(m Model, models ...*model.Trained) (_ Model, err error) {
	m.Trained = models[0].Card.Provenance.Reads
	for _, part := range models {
		if err := part.Complete(); err != nil {
			return m, fmt.Errorf("specmatch: %w", err)
		}
		m.keys = append(m.keys, func() (weights, engine string, err error) {
			sum, err := part.Sum()
			be := part.Encoder.Parameters()[0].Backend()
			return fmt.Sprintf("%v %s ", be.Precision(), sum), be.Name() + " ", err
		})
	}
	m.Columns = files.Distinct("id", m.Columns...)[1:]
	vector := m.Reads.Vector
	m.Reads, err = Reads(models[0].Card)
	if vector != nil {
		m.Reads.Vector = vector
	}
	return m, err
}

// Memory is the most in bytes, about, that the caches of atom environments of a job's models have, unless
// they have caches of their own ([model.Trained.Remembering]).
const Memory = 320 << 20

// CacheSize returns the size in bytes of the caches of a job: Memory, or a quarter of what the process can
// have where that is less, by the system or by Go's limit (GOMEMLIMIT).
func CacheSize() int {
	limit := float64(debug.SetMemoryLimit(-1)) // -1 only asks
	return int(min(Memory, train.Memory()/4, limit/4))
}

// withCache returns the model with its own cache, or with its share of [CacheSize].
func withCache(m *model.Trained, models int) *model.Trained {
	if m.Memory == nil {
		m = m.Remembering(CacheSize() / models)
	}
	return m
}

// Embedder returns a model of embeddings, in the columns of [gnn.Architecture.Columns].
func Embedder(m *model.Trained) (Model, error) {
	cached := withCache(m, 1)
	x, err := newModel(Model{
		Columns: m.Card.Encoder.Columns(),
		Rows:    cached.Embed,
		rows32:  cached.Embed32,
	}, m)
	x.Reads.Vector = nil // only the head sees them
	return x, err
}

// Predictor returns a model of predictions, with the columns of [model.Head.Columns]. For several
// models, it returns the mean of their predictions and, in columns NAME_std, their standard
// deviation, with n-1 in the denominator. All must have a head, and be alike ([Alike]).
func Predictor(models ...*model.Trained) (Model, error) {
	if len(models) == 0 {
		return Model{}, errors.New("apply: there is no model to predict with")
	}
	for i, m := range models {
		switch {
		case m.Card.Head == nil:
			return Model{}, fmt.Errorf("apply: model %d is an encoder without a head", i)
		case !Alike(models[0].Card, m.Card):
			return Model{}, fmt.Errorf(
				"apply: models 0 and %d predict different things, or from different features",
				i,
			)
		}
	}
	columns := models[0].Card.Head.Columns()
	rows := withCache(models[0], 1).Predict
	if len(models) > 1 {
		for _, name := range slices.Clone(columns) {
			columns = append(columns, name+"_std")
		}
		var e ensemble
		shared := new(model.Shared)
		for _, m := range models {
			e = append(e, withCache(m, len(models)).Sharing(shared))
		}
		rows = e.predict
	}
	return newModel(Model{Columns: columns, Rows: rows}, models...)
}

// Alike reports whether two models with a head read the same records and predict the same things.
func Alike(a, b model.Card) bool {
	x, y := *a.Head, *b.Head
	for _, h := range []*model.Head{&x, &y} { // what depends on the records that each was fitted to
		h.Mean = nil
		h.Std = nil
		h.Prior = nil
	}
	return cmp.Equal(x, y) && cmp.Equal(a.Features, b.Features) && cmp.Equal(a.Beside, b.Beside) &&
		a.Standard == b.Standard && a.Encoder.Kind == b.Encoder.Kind &&
		a.Encoder.Atoms == b.Encoder.Atoms
}

// ensemble is several models that are alike.
type ensemble []*model.Trained

// predict returns the mean of the models' predictions, then their standard deviation, [n×2·outputs].
func (e ensemble) predict(ctx context.Context, graphs []*graph.Graph) ([]float64, error) {
	var predictions [][]float64 // of each model
	for _, m := range e {
		y, err := m.Predict(ctx, graphs)
		if err != nil {
			return nil, err
		}
		predictions = append(predictions, y)
	}
	return e.summarise(predictions), nil
}

// summarise returns the mean of the predictions of each model and, for several, then their standard
// deviation.
func (e ensemble) summarise(predictions [][]float64) []float64 {
	if len(e) == 1 {
		return predictions[0]
	}
	outputs := e[0].Card.Head.Outputs
	rows := make([]float64, 2*len(predictions[0]))
	count := float64(len(e))
	for i := range predictions[0] {
		mean := 0.0
		for _, y := range predictions {
			mean += y[i] / count
		}
		squares := 0.0
		for _, y := range predictions {
			squares += (y[i] - mean) * (y[i] - mean) / (count - 1)
		}
		row := rows[i/outputs*2*outputs:]
		row[i%outputs] = mean
		row[outputs+i%outputs] = math.Sqrt(squares)
	}
	return rows
}
