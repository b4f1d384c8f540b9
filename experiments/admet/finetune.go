package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// fitting is how a method fits the weights of an encoder and its head, by the recipe of package finetune
// but for what it says.
type fitting struct {
	atoms    string   // of an encoder with random weights
	encoder  bool     // starts from the one of the program
	features []string // that the head sees
	choose   bool     // one of the recipe's sets of features by validation
	forest   bool     // takes part in the predictions
	scale    bool     // of numbers is chosen by validation
	light    bool     // has no network
	members  int      // models whose predictions are averaged
	absolute bool     // fits absolute errors, and all targets count alike
	alone    bool     // fits a model to each target
}

// options returns those of a learner, by the recipe of package finetune.
func (f fitting) options(seed uint64) finetune.Options {
	r := finetune.Molecules
	o := finetune.Options{
		Batch:    r.Batch,
		Rate:     r.Rate,
		Seed:     seed,
		Patience: r.Patience,
		Average:  r.Average,
		Alike:    f.absolute,

		WithoutNetwork: f.light,
	}
	if f.absolute {
		o.Losses = []finetune.Loss{finetune.Absolute}
	}
	return o
}

const purposeFit random.Purpose = 1<<36 + 2

// tuneOnce is tune with a cache: fits of several methods with the same features are one fit.
func (l *loadedSet) tuneOnce(
	ctx context.Context, f fitting, s dataset.Split, seed int, parts ...[]int,
) (predicted [][]float64, err error) {
	if f.choose {
		f.features, err = l.chooseFeatures(ctx, s)
		if err != nil {
			return nil, err
		}
		f.choose = false
	}
	key := fmt.Sprintf("%+v %d", f, seed)
	l.mu.Lock()
	predicted = l.fits[key]
	l.mu.Unlock()
	if predicted != nil {
		return predicted, nil
	}
	fit := l.tune
	if f.alone {
		fit = l.tuneAlone
	}
	predicted, err = fit(ctx, f, s, seed, parts...)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fits == nil {
		l.fits = map[string][][]float64{}
	}
	l.fits[key] = predicted
	return predicted, nil
}

// chooseFeatures returns the set of features that finetune -features auto picks.
func (l *loadedSet) chooseFeatures(ctx context.Context, s dataset.Split) ([]string, error) {
	var sets [][]string // without what is learned, which takes no part in the choice
	for _, set := range finetune.FeatureSets {
		sets = append(sets, slices.DeleteFunc(slices.Clone(set), func(name string) bool { return name == learned }))
	}
	beside, vectors, err := numbers(finetune.EveryFeature(sets)...)
	if err != nil {
		return nil, err
	}
	graphs, err := l.graphs(feature.Rich.Name, vectors)
	if err != nil {
		return nil, err
	}
	set, err := dataset.Of(l.name, graphs)
	if err != nil {
		return nil, err
	}
	x := &finetune.Examples{
		Table: &records.Table{Set: set},
		Task:  finetune.Task{Beside: beside},
		Head:  model.Head{Kind: l.kind(), Outputs: l.tasks},
		Y:     l.y,
	}
	if _, err := x.ChooseFeatures(ctx, sets, s); err != nil {
		return nil, err
	}
	return append(x.Beside.Features, learned), nil
}

// learned is the feature that is the vector of the built-in encoder.
const learned = "pretrained"

// pretrainedLike returns the built-in encoder, and its architecture with the dropout and the readout of another one.
func pretrainedLike(a gnn.Architecture, be backend.Backend) (*model.Trained, gnn.Architecture, error) {
	source, err := pretrained.Open(be)
	if err != nil {
		return nil, a, err
	}
	architecture := source.Card.Encoder
	architecture.Dropout = a.Dropout
	architecture.Sum = a.Sum
	architecture.Readout = ""
	return source, architecture, nil
}

// chooseScales returns the scales that finetune -target-scale auto chooses.
func chooseScales(
	ctx context.Context, head model.Head, a gnn.Architecture, be backend.Backend, beside *model.Numbers,
	data finetune.Data,
) ([]model.Scale, error) {
	a.Hidden = 2
	a.Layers = 1
	newModel := func(h model.Head) (*model.Trained, error) {
		rng := random.Stream(0, purposeFit, 0, 0)
		e, err := a.New(be, rng)
		if err != nil {
			return nil, err
		}
		return model.NewPredictorBeside(e, h, beside, 0, rng), nil
	}
	scales, _, err := finetune.ChooseScales(ctx, head, newModel, data)
	return scales, err
}

// tune returns the predictions of the molecules of a part, row-major by tasks.
func (l *loadedSet) tune(
	ctx context.Context, f fitting, s dataset.Split, seed int, parts ...[]int,
) (predicted [][]float64, err error) {
	be := cpu.New(tensor.Float32)
	defer be.Close()
	r := finetune.Molecules
	head := model.Head{Kind: l.kind(), Outputs: l.tasks}
	r.Atoms = f.atoms
	if f.light { // the network takes no part
		r.Hidden = 16
		r.Layers = 2
		r.Epochs = 1
	}
	a := r.Architecture(head.Kind, nil)
	var source *model.Trained
	if f.encoder {
		source, a, err = pretrainedLike(a, be)
		if err != nil {
			return nil, err
		}
	}
	var beside *model.Numbers
	var vectors records.Vectors
	if f.features != nil {
		beside, vectors, err = numbers(f.features...)
		if err != nil {
			return nil, err
		}
		beside.Hidden = r.Beside
		beside.Linear = r.Linear
		if f.forest {
			beside.Trees = r.Trees
		}
	}
	graphs, err := l.graphs(a.Atoms, vectors)
	if err != nil {
		return nil, err
	}
	data := finetune.Data{
		Graphs: graphs,
		Y:      l.y,
		Train:  s.Train,
		Valid:  s.Valid,
	}
	if f.scale {
		head.Scales, err = chooseScales(ctx, head, a, be, beside, data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
	}
	predicted = make([][]float64, len(parts))
	for k := range f.members {
		rng := random.Stream(uint64(seed), purposeFit, k, 0)
		e, err := a.New(be, rng)
		if err == nil && source != nil {
			err = model.CopyEncoder(e, source.Encoder)
		}
		if err != nil {
			return nil, err
		}
		m := model.NewPredictorBeside(e, head, beside, a.Dropout, rng)
		learner, err := finetune.New(m, data, f.options(rng.Uint64()))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		if _, err := learner.Fit(ctx, train.Options{Epochs: r.Epochs}, nil); err != nil {
			return nil, err
		}
		for p, rows := range parts {
			y, err := m.Predict(ctx, some(graphs, 1, rows))
			if err != nil {
				return nil, err
			}
			if predicted[p] == nil {
				predicted[p] = make([]float64, len(y))
			}
			for k, v := range y {
				predicted[p][k] += v / float64(f.members)
			}
		}
	}
	return predicted, nil
}

// tuneAlone is tune by a model of each task, from the molecules with its label.
func (l *loadedSet) tuneAlone(
	ctx context.Context, f fitting, s dataset.Split, seed int, parts ...[]int,
) ([][]float64, error) {
	predicted := make([][]float64, len(parts))
	for p, rows := range parts {
		predicted[p] = make([]float64, len(rows)*l.tasks)
	}
	for task := range l.tasks {
		single := &loadedSet{
			set:       l.set,
			molecules: l.molecules,
			tasks:     1,
			encoder:   l.encoder,
		}
		for i := range l.molecules {
			single.y = append(single.y, l.y[i*l.tasks+task])
		}
		isGap := func(i int) bool { return math.IsNaN(single.y[i]) }
		labelled := dataset.Split{
			Train: slices.DeleteFunc(slices.Clone(s.Train), isGap),
			Valid: slices.DeleteFunc(slices.Clone(s.Valid), isGap),
		}
		columns, err := single.tune(ctx, f, labelled, seed, parts...)
		if err != nil {
			return nil, err
		}
		for p, column := range columns {
			for k, v := range column {
				predicted[p][k*l.tasks+task] = v
			}
		}
	}
	return predicted, nil
}
