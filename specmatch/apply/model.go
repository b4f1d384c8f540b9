package apply

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor/files"
)

// Model turns graphs into rows of numbers.
type Model struct {
	Columns []string // the names of a row's numbers
	// Rows returns the rows of n graphs, row-major [n×len(Columns)]. Of [Features] it is what
	// the encoder adds, or nil.
	Rows  func(ctx context.Context, graphs []*graph.Graph) ([]float64, error)
	Reads Input
	// Trained is what of a file the model was trained on, as Dataset.Reads has it.
	Trained string
	// Key tells the model with its weights and its engine from others: a job that was
	// interrupted goes on only with the same.
	Key string

	// Of Features: how many numbers reading computes of a molecule, and how many come before those of Rows.
	width, before int
}

// Input is what a model reads.
type Input struct {
	Content  records.Content // what the records have to be; "" is either
	Features *graph.Columns  // those that graphs get; nil for molecules
	// Atoms and Standard are as in [records.Options].
	Atoms    string
	Standard feature.Standardisation
	// Vector is as in [records.Options].
	Vector func() func(*molecule.Molecule) []float32
}

// Options returns how a file is read, with what the model reads of it. A standard form of
// molecules is added to the model's.
func (in Input) Options(o records.Options) records.Options {
	o.Want = in.Content
	o.Columns = in.Features
	o.Atoms = in.Atoms
	o.Vector = in.Vector
	o.Standard.LargestFragment = o.Standard.LargestFragment || in.Standard.LargestFragment
	o.Standard.Neutralise = o.Standard.Neutralise || in.Standard.Neutralise
	return o
}

// Reads returns what a model of a card reads.
func Reads(c model.Card) (Input, error) {
	switch {
	case c.Features != nil:
		return Input{Content: records.Graphs, Features: c.Features}, nil
	case c.Encoder.Kind == gnn.KindChemGIN:
		in := Input{Content: records.Molecules, Atoms: c.Encoder.Atoms, Standard: c.Standard}
		if c.Beside == nil {
			return in, nil
		}
		features, err := ParseFeatures(c.Beside.Features)
		if err == nil {
			var n *model.Numbers
			n, in.Vector, err = Numbers(features)
			if err == nil && n.Size != c.Beside.Size {
				err = fmt.Errorf("the features %q are %d numbers, and the model has seen %d",
					c.Beside.Features, n.Size, c.Beside.Size)
			}
		}
		return in, err
	}
	return Input{}, fmt.Errorf("encoder %s reads ego networks of proteins, which no file of records has",
		c.Encoder.Kind)
}

// newModel fills in what m reads, and the key of the models that it is made of.
func newModel(m Model, models ...*model.Trained) (_ Model, err error) {
	m.Trained = models[0].Card.Provenance.Reads
	for _, each := range models {
		sum, err := each.Sum() // which completes the card
		if err != nil {
			return m, err
		}
		be := each.Encoder.Parameters()[0].Backend()
		m.Key += fmt.Sprintf("%s %v %s ", be.Name(), be.Precision(), sum)
	}
	m.Columns = files.Distinct("id", m.Columns...)[1:]
	vector := m.Reads.Vector
	m.Reads, err = Reads(models[0].Card)
	if vector != nil {
		m.Reads.Vector = vector
	}
	return m, err
}

// Memory is how many bytes the models of a job remember of molecules, about, unless they have a
// memory of their own ([model.Trained.Remembering]).
const Memory = 320 << 20

// remembering returns the model with a part of Memory unless it has its own.
func remembering(m *model.Trained, parts int) *model.Trained {
	if m.Memory == nil {
		m = m.Remembering(Memory / parts)
	}
	return m
}

// Embedder returns a model of embeddings, in the columns of [gnn.Architecture.Columns].
func Embedder(m *model.Trained) (Model, error) {
	x, err := newModel(Model{Columns: m.Card.Encoder.Columns(), Rows: remembering(m, 1).Embed}, m)
	x.Reads.Vector = nil // which a head alone sees
	return x, err
}

// Predictor returns a model of predictions, in the columns of [model.Head.Columns]. Of
// several models it has the mean of their predictions, and then, in columns NAME_std,
// their standard deviation, with n-1 in the denominator. All
// must predict, and be alike ([Alike]).
func Predictor(models ...*model.Trained) (Model, error) {
	if len(models) == 0 {
		return Model{}, errors.New("apply: there is no model to predict by")
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
	rows := remembering(models[0], 1).Predict
	if len(models) > 1 {
		for _, name := range slices.Clone(columns) {
			columns = append(columns, name+"_std")
		}
		var all ensemble
		for _, m := range models {
			all = append(all, remembering(m, len(models)))
		}
		rows = all.predict
	}
	return newModel(Model{Columns: columns, Rows: rows}, models...)
}

// Alike reports whether two models that predict read the same records and predict the
// same things.
func Alike(a, b model.Card) bool {
	x, y := *a.Head, *b.Head
	x.Mean, x.Std, y.Mean, y.Std = nil, nil, nil, nil // of the records that each was fitted to
	return cmp.Equal(x, y) && cmp.Equal(a.Features, b.Features) && cmp.Equal(a.Beside, b.Beside) &&
		a.Standard == b.Standard && a.Encoder.Kind == b.Encoder.Kind && a.Encoder.Atoms == b.Encoder.Atoms
}

// ensemble is several models that are alike.
type ensemble []*model.Trained

// predict returns the mean of the models' predictions and then their standard deviation,
// [n×2·outputs].
func (e ensemble) predict(ctx context.Context, graphs []*graph.Graph) ([]float64, error) {
	k := e[0].Card.Head.Outputs
	all := make([]float64, 2*k*len(graphs))
	count := float64(len(e))
	var of [][]float64
	for _, m := range e {
		y, err := m.Predict(ctx, graphs)
		if err != nil {
			return nil, err
		}
		of = append(of, y)
	}
	for i := range k * len(graphs) {
		var mean, squares float64
		for _, y := range of {
			mean += y[i] / count
		}
		for _, y := range of {
			squares += (y[i] - mean) * (y[i] - mean) / (count - 1)
		}
		at := i/k*2*k + i%k
		all[at], all[at+k] = mean, math.Sqrt(squares)
	}
	return all, nil
}
