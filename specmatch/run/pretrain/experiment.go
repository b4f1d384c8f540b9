package pretrain

import (
	"context"
	"errors"
	"io"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run"
)

// Experiment is what the experiments that train without labels have in common: the values of
// their flags, and the run directory.
type Experiment struct {
	Data     cli.Data
	Loss     cli.Loss
	Recipe   cli.Recipe
	Protocol cli.Protocol
	Engine   cli.Engine
	Output   run.Output
	Settings Settings

	Dir *run.Dir // of the plan
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

// Runs lists those of methods on data sets in the unsupervised regime, with every seed.
func (x *Experiment) Runs(sets []*dataset.Dataset, methods []string) (runs []*Run) {
	for _, ds := range sets {
		for _, name := range methods {
			runs = append(runs, Seeds(ds, name, x.Loss, x.Recipe, x.Settings)...)
		}
	}
	return runs
}

// Plan opens the run directory, which the caller closes, and returns a plan for it. If the
// machine has not the memory for a run, or one that is to be scored cannot be, there is an
// error and no directory.
func (x *Experiment) Plan(f *cli.FlagSet, runs []*Run, scored bool) (*run.Plan, error) {
	if !f.Collecting() {
		err := Fits(runs, x.Engine)
		if scored {
			err = errors.Join(err, Check(runs, x.Protocol))
		}
		if err != nil {
			return nil, err
		}
	}
	var err error
	if x.Dir, err = run.Start(f.Name(), f, x.Data.Datasets, x.Recipe, x.Engine, x.Output); err != nil {
		return nil, err
	}
	return run.NewPlan(x.Dir), nil
}

// Add adds the two halves of runs to a plan: each trains and leaves its model, and every
// model is evaluated under every protocol. Scores are in the order of the runs, and of the
// protocols within.
func (x *Experiment) Add(plan *run.Plan, runs []*Run) (*[]Trained, *[]Score) {
	var train []run.Unit[Trained]
	var score []run.Unit[Score]
	for _, r := range runs {
		train = append(train, r.Unit(r.Name(), x.Engine, x.Dir))
		for _, protocol := range x.Protocol.Protocols {
			score = append(score, r.ScoreUnit(r.Name()+"/"+protocol, x.Engine, x.Dir, protocol, x.Protocol.Folds))
		}
	}
	return run.Add(plan, train), run.Add(plan, score)
}
