package finetune

import (
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Recipe is how a model of molecules is made and fitted.
type Recipe struct {
	Atoms          string // the categories that a new encoder sees
	Hidden, Layers int    // of a new encoder
	Dropout        float64
	// Features are those beside the encoder's vector, in the words of package apply, and Beside is
	// the width of their layer. With Linear a linear model of them takes part in the predictions.
	Features []string
	Beside   int
	Linear   bool

	Batch, Epochs, Patience int
	Rate, Average           float64
}

// Molecules is the recipe unless one is told otherwise. What was tried is on the page of
// specmatch/cmd/specmatch.
var Molecules = Recipe{
	Atoms:    "rich",
	Hidden:   128,
	Layers:   4,
	Dropout:  0.1,
	Features: []string{"descriptors", "morgan", "pretrained"},
	Beside:   128,
	Linear:   true,
	Batch:    32,
	Epochs:   100,
	Patience: 20,
	Rate:     0.0003,
	Average:  0.99,
}

// Architecture returns the encoder of the recipe: numbers may grow with the size of a molecule, and are
// read from the sum over its atoms.
func (r Recipe) Architecture(kind model.Kind) gnn.Architecture {
	a := gnn.Architecture{
		Kind:    gnn.KindChemGIN,
		Hidden:  r.Hidden,
		Layers:  r.Layers,
		Dropout: r.Dropout,
		Sum:     kind == model.Regression,
	}
	if r.Atoms != feature.Hu.Name { // which files do not name
		a.Atoms = r.Atoms
	}
	return a
}
