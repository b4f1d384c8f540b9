// Package paper implements the common parts of the paper's programs: the flags and the run directory of
// an experiment, the scores of trained encoders, fine-tuning, and curves.
//
// The mental model: a program fills an [Experiment] with its defaults, registers the flags and calls
// [Experiment.Open]. A training without labels is a [training.Run]. [Experiment.Plan] opens the run
// directory, and [Experiment.Add] turns runs into units that train and units that score. [Finetuning]
// does the same for programs that fine-tune pre-trained encoders.
package paper

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// Experiment holds the flags and the run directory of a program that trains without labels.
type Experiment struct {
	Data     cli.Data
	Methods  Methods
	Recipe   cli.Recipe
	Protocol cli.Protocol
	Engine   cli.Engine
	Output   run.Output
	Settings training.Settings

	Dir *run.Dir // of the plan
}

// Unsupervised returns an experiment with the usual data and recipe of the unsupervised regime. The first
// protocol is the default.
func Unsupervised(seeds int, s training.Settings, protocols ...string) Experiment {
	return Experiment{
		Data:     cli.Data{NodeFeatures: dataset.FeaturesAuto},
		Recipe:   cli.Recipe{Epochs: 20, Batch: 128, LR: 0.01, Seeds: seeds},
		Protocol: cli.Protocol{Protocols: protocols[:min(1, len(protocols))], Choices: protocols},
		Settings: s,
	}
}

// Methods holds the flag -method: the rows of a table.
type Methods struct {
	Names   []string // nil becomes all choices
	Choices []string // the methods that the experiment offers; not a flag
}

// Register implements [cli.Group].
func (m *Methods) Register(f *cli.FlagSet) {
	if m.Names == nil {
		m.Names = m.Choices
	}
	cli.Var(f, &m.Names, "method", setting.List(setting.OneOf(m.Choices...)),
		"`methods` to compare, one row of results each: "+strings.Join(m.Choices, ","))
	f.Grows("method")
}

// Register defines the flags of all experiments and of the methods, except for settings that the program
// sets itself.
func (x *Experiment) Register(f *cli.FlagSet, r method.Regime, except ...setting.Setting) {
	f.Add(&x.Data, &x.Methods, &x.Recipe, &x.Engine, &x.Output)
	x.Settings.Register(f, r, x.Methods.Choices, func() []string { return x.Methods.Names }, except...)
	x.Settings.RegisterRecipes(f, r)
}

// RegisterProtocol defines the flags of the evaluation.
func (x *Experiment) RegisterProtocol(f *cli.FlagSet) {
	f.Add(&x.Protocol)
	f.Grows("protocol")
}

// Open parses the flags and opens the data sets.
func (x *Experiment) Open(
	ctx context.Context, f *cli.FlagSet, args []string, stdout, stderr io.Writer,
) ([]*dataset.Dataset, error) {
	if err := f.Parse(args, stdout); err != nil {
		return nil, err
	}
	return x.Data.Open(ctx, stderr)
}

// GIN returns the encoder of the unsupervised regime for a data set: 3 layers of 32.
func GIN(ds *dataset.Dataset) gnn.Architecture {
	return gnn.Architecture{
		Kind:   gnn.KindGIN,
		In:     ds.FeatureWidth,
		Hidden: 32,
		Layers: 3,
	}
}

// Seeds lists the runs of a method on a data set in the unsupervised regime, one for each seed of
// the recipe.
func (x *Experiment) Seeds(
	ds *dataset.Dataset, name string, options method.Options,
) (runs []*training.Run) {
	settings := x.Settings
	settings.Options = options
	for s := range x.Recipe.Seeds {
		runs = append(runs, &training.Run{
			Dataset:  ds,
			Regime:   method.Unsupervised,
			Encoder:  GIN(ds),
			Method:   name,
			Seed:     x.Recipe.FirstSeed + s,
			Recipe:   x.Recipe,
			Settings: settings,
		})
	}
	return runs
}

// Runs lists the runs of methods on data sets in the unsupervised regime, with every seed.
func (x *Experiment) Runs(sets []*dataset.Dataset, methods []string) (runs []*training.Run) {
	for _, ds := range sets {
		for _, name := range methods {
			runs = append(runs, x.Seeds(ds, name, x.Settings.Options)...)
		}
	}
	return runs
}

// Plan opens the run directory, which the caller closes, and returns a plan for it. It returns an error,
// and creates no directory, if the machine lacks the memory for a run, or if a run cannot be scored.
func (x *Experiment) Plan(f *cli.FlagSet, runs []*training.Run, scored bool) (*run.Plan, error) {
	if !f.Collecting() {
		err := training.Fits(runs, x.Engine)
		if scored {
			err = errors.Join(err, Check(runs, x.Protocol))
		}
		if err != nil {
			return nil, err
		}
	}
	var err error
	x.Dir, err = run.Start(f.Name(), f, x.Data.Datasets, x.Recipe, x.Engine, x.Output)
	if err != nil {
		return nil, err
	}
	return run.NewPlan(x.Dir), nil
}

// Add adds two stages to a plan: the training of each run, and the evaluation of each model under every
// protocol. Scores are in the order of runs, then of protocols.
func (x *Experiment) Add(plan *run.Plan, runs []*training.Run) (*[]training.Trained, *[]eval.Score) {
	var train []run.Unit[training.Trained]
	var score []run.Unit[eval.Score]
	for _, r := range runs {
		train = append(train, r.Unit(r.Name(), x.Engine, x.Dir))
		for _, protocol := range x.Protocol.Protocols {
			score = append(score, x.Score(r, r.Name()+"/"+protocol, protocol))
		}
	}
	return run.Add(plan, train), run.Add(plan, score)
}
