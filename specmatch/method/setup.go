package method

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset/tasks"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// Setup is the input of a method: the data, the encoder and the settings.
type Setup struct {
	Backend backend.Backend
	Regime  Regime // "" is Unsupervised
	Encoder gnn.Architecture
	Graphs  []*graph.Graph
	// Dataset is the name of the data set; the policy "auto" depends on it.
	Dataset string
	// SMILES are the molecules of the graphs, and Standard is their standardisation, for methods that
	// need Molecules.
	SMILES   []string
	Standard feature.Standardisation
	// Labels are tables of labels of the graphs, for the method assays.
	Labels []*tasks.Labels
	Batch  int     // graphs in a mini-batch; 0 is 128
	Rate   float64 // learning rate of Adam; 0 is 0.01
	Seed   uint64  // of weights, batches and views
	// Options sets settings to other values than their defaults, such as "kappa": 5.
	Options Options
}

// Options holds values of settings by name. Settings that a method does not read have no effect.
type Options = setting.Values

// selfLoops is a setting of all methods in the unsupervised regime.
var selfLoops = setting.Flag("self-loops",
	"add a self-loop to every node, in raw graphs and in views, as the codes of JOAO, SimGRACE, MSSGCL\n"+
		"and CuCo do")

// The purposes of a learner's random streams, besides those of its views.
const (
	purposeInit random.Purpose = 1<<32 + iota
	_
	purposeTask
)

// Complete returns the setup with defaults in place of zero or absent fields, and with values of all
// settings.
func (s Setup) Complete() (Setup, error) {
	s.Regime = cmp.Or(s.Regime, Unsupervised)
	s.Batch = cmp.Or(s.Batch, 128)
	s.Rate = cmp.Or(s.Rate, 0.01)
	declared := []setting.Setting{rawStatistics, selfLoops}
	for _, m := range methods {
		declared = append(declared, m.Settings...)
	}
	options, err := s.Options.Resolved(declared, string(s.Regime))
	if err != nil {
		return s, fmt.Errorf("method: %w", err)
	}
	if Policy.Of(options) == PolicyAuto {
		options[Policy.Name()], _ = augment.PolicyFor(s.Dataset)
	}
	s.Options = options
	return s, nil
}

// NewEncoder returns an encoder with the initial weights that all learners with the seed share, and the
// random stream that drew them. A method draws its additional weights from that stream.
func (s Setup) NewEncoder() (gnn.Encoder, *rand.Rand, error) {
	s, err := s.Complete()
	if err != nil {
		return nil, nil, err
	}
	architecture := s.Encoder
	if selfLoops.Of(s.Options) && s.Regime == Unsupervised {
		architecture.Eps = 1
	}
	rng := random.Stream(s.Seed, purposeInit, 0, 0)
	e, err := architecture.New(s.Backend, rng)
	return e, rng, err
}

// newModel calls NewEncoder and adds a projection head.
func (s Setup) newModel() (*specmatch.Model, *rand.Rand, error) {
	e, rng, err := s.NewEncoder()
	if err != nil {
		return nil, nil, err
	}
	return specmatch.NewModel(s.Backend, e, rng), rng, nil
}

// loader returns a loader of mini-batches with one view per augmentation.
func (s Setup) loader(views ...augment.Augmentation) *augment.Loader {
	return &augment.Loader{
		Graphs:   s.Graphs,
		Batch:    s.Batch,
		Collator: augment.Collator{Views: views, Seed: s.Seed},
	}
}
