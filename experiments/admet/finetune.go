package main

import (
	"context"
	"fmt"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/molecule"
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
	atoms    string // of an encoder with random weights
	encoder  bool   // starts from the one of the program
	features bool   // gives the head those of the recipe
	forest   bool   // takes part in the predictions
	scale    bool   // of numbers is chosen by validation
	members  int    // models whose predictions are averaged
}

const purposeFit random.Purpose = 1<<36 + 2

// tune returns the predictions of the molecules of a part, row-major by tasks.
func (l *loadedSet) tune(
	ctx context.Context, f fitting, s dataset.Split, seed int, parts ...[]int,
) (predicted [][]float64, err error) {
	be := cpu.New(tensor.Float32)
	defer be.Close()
	r := finetune.Molecules
	head := model.Head{Kind: l.kind(), Outputs: l.tasks}
	r.Atoms = f.atoms
	a := r.Architecture(head.Kind, nil)
	var source *model.Trained
	if f.encoder {
		source, err = pretrained.Open(be)
		if err != nil {
			return nil, err
		}
		architecture := source.Card.Encoder
		architecture.Dropout = a.Dropout
		architecture.Sum = a.Sum
		architecture.Readout = ""
		a = architecture
	}
	var beside *model.Numbers
	var vector func(*molecule.Molecule) []float32
	if f.features {
		beside, vector, err = numbers(r.Features...)
		if err != nil {
			return nil, err
		}
		beside.Hidden = r.Beside
		beside.Linear = r.Linear
		if f.forest {
			beside.Trees = r.Trees
		}
	}
	graphs, err := l.graphs(a.Atoms, vector)
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
		newModel := func(h model.Head) (*model.Trained, error) {
			small := a
			small.Hidden = 2
			small.Layers = 1
			rng := random.Stream(0, purposeFit, 0, 0)
			e, err := small.New(be, rng)
			if err != nil {
				return nil, err
			}
			return model.NewPredictorBeside(e, h, beside, 0, rng), nil
		}
		head.Scales, _, err = finetune.ChooseScales(ctx, head, newModel, data)
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
		learner, err := finetune.New(m, data, finetune.Options{
			Batch:    r.Batch,
			Rate:     r.Rate,
			Seed:     rng.Uint64(),
			Patience: r.Patience,
			Average:  r.Average,
		})
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
