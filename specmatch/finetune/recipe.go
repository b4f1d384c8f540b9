package finetune

import (
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Recipe is how a model of molecules is made and fitted.
type Recipe struct {
	Atoms          string // the one-hot features that a new encoder sees
	Hidden, Layers int    // of a new encoder
	Dropout        float64
	// Features are those that the head sees next to the encoder's vector, by their names in package
	// apply. Beside is the width of their layer. With Linear, a linear model of them takes part in the
	// predictions, and so does a random forest of Trees trees on those that are not learned.
	Features []string
	Beside   int
	Linear   bool
	Trees    int

	Batch, Epochs, Patience int
	Rate, Average           float64
}

// Molecules is the default recipe. The page of specmatch/cmd/specmatch says what was tried.
var Molecules = Recipe{
	Atoms:    "rich",
	Hidden:   128,
	Layers:   4,
	Dropout:  0.1,
	Features: []string{"descriptors", "morgan", "pretrained"},
	Beside:   128,
	Linear:   true,
	Trees:    100,
	Batch:    32,
	Epochs:   100,
	Patience: 20,
	Rate:     0.0003,
	Average:  0.99,
}

// Graphs is the default recipe for graphs that are not molecules.
var Graphs = Recipe{
	Hidden:   64,
	Layers:   3,
	Batch:    32,
	Epochs:   100,
	Patience: 20,
	Rate:     0.001,
	Average:  0.99,
}

// Architecture returns the encoder of the recipe for graphs with these features, nil for molecules. For
// regression of molecules it sums over the atoms, since a number may grow with the size of a molecule.
func (r Recipe) Architecture(kind model.Kind, features *graph.Columns) gnn.Architecture {
	a := gnn.Architecture{
		Kind:   gnn.KindChemGIN,
		Hidden: r.Hidden,
		Layers: r.Layers,
	}
	if features != nil {
		a.Kind = gnn.KindGIN
		a.In = features.Width()
		a.EdgeLabels = features.EdgeLabels()
		a.Weights = features.EdgeWeights()
		return a
	}
	a.Dropout = r.Dropout
	a.Sum = kind == model.Regression
	if r.Atoms != feature.Hu.Name { // which files do not name
		a.Atoms = r.Atoms
	}
	return a
}
