package finetune

import (
	"context"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
)

// FitFile fits a model to columns of a file of molecules or graphs, as "specmatch finetune -seeds 1"
// does: with the recipe [Molecules] or [Graphs], a split into 80, 10 and 10 % and the weights of the epoch
// that is best on the validation set. It returns the model, calibrated for intervals, and the metrics of
// each epoch. An engine of float32 has the program's results.
func FitFile(ctx context.Context, path string, be backend.Backend, targets ...string) (*model.Trained, Result, error) {
	examples, recipe, err := readFile(ctx, path, targets)
	if err != nil {
		return nil, Result{}, err
	}
	split, err := examples.Divide(0)
	if err != nil {
		return nil, Result{}, err
	}
	architecture := recipe.Architecture(examples.Kind, examples.Features)
	if _, err := examples.ChooseScales(ctx, be, architecture, split); err != nil {
		return nil, Result{}, err
	}
	m, err := examples.NewModel(be, architecture, nil, 0)
	if err != nil {
		return nil, Result{}, err
	}
	learner, err := New(m, examples.Data(split), Options{
		Batch:    recipe.Batch,
		Rate:     recipe.Rate,
		Patience: recipe.Patience,
		Average:  recipe.Average,
	})
	if err != nil {
		return nil, Result{}, examples.Locate(err)
	}
	result, err := learner.Fit(ctx, train.Options{Epochs: recipe.Epochs}, nil)
	if err != nil {
		return nil, result, examples.Locate(err)
	}
	return m, result, examples.Calibrate(ctx, m, split)
}

// readFile reads a file by the recipe of what it contains.
func readFile(ctx context.Context, path string, targets []string) (*Examples, Recipe, error) {
	features, err := apply.ParseFeatures(Molecules.Features)
	if err != nil {
		return nil, Recipe{}, err
	}
	options := records.Options{Atoms: Molecules.Atoms, Degrees: true}
	task := Task{Targets: targets}
	if records.HoldsMolecules(ctx, path, records.Options{}) {
		task.Beside, options.Vector, err = apply.Numbers(features)
		if err != nil {
			return nil, Recipe{}, err
		}
		task.Beside.Hidden = Molecules.Beside
		task.Beside.Linear = Molecules.Linear
		task.Beside.Trees = Molecules.Trees
		examples, err := Read(ctx, path, task, options)
		return examples, Molecules, err
	}
	examples, err := Read(ctx, path, task, options)
	return examples, Graphs, err
}
