package runtest

import (
	"bytes"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Experiment holds the flags of a whole experiment with the paper's recipe.
type Experiment struct {
	Data     cli.Data
	Loss     Loss
	Recipe   cli.Recipe
	Protocol cli.Protocol
	Engine   cli.Engine
	Output   run.Output
}

// NewExperiment returns an experiment with its defaults, and its flags.
func NewExperiment() (*Experiment, *cli.FlagSet) {
	e := &Experiment{
		Loss: Loss{
			Methods:    []string{"untrained", "graphcl", "infonce", "specmatch"},
			Beta:       train.Beta{Weight: 1},
			Percentile: 80,
			Tau:        0.2,
			Kappa:      10,
		},
		Recipe: cli.Recipe{
			Epochs: 20,
			Batch:  128,
			LR:     0.01,
			Seeds:  5,
		},
		Protocol: cli.Protocol{
			Protocols: []string{"rbf"},
			Choices:   []string{"rbf", "linear"},
		},
	}
	f := cli.NewFlagSet("unsupervised", "Table 1.", "-dataset MUTAG", "-beta auto:0.2")
	f.Add(&e.Data, &e.Loss, &e.Recipe, &e.Protocol, &e.Engine, &e.Output)
	return e, f
}

// ParseExperiment returns the experiment that the arguments describe, and what the flags
// print on standard output.
func ParseExperiment(args ...string) (*Experiment, *bytes.Buffer, error) {
	e, f := NewExperiment()
	var stdout bytes.Buffer
	err := f.Parse(args, &stdout)
	return e, &stdout, err
}

// Loss is a group of flags of different types, as experiments have them.
type Loss struct {
	Methods    []string
	Beta       train.Beta
	Percentile float64
	Tau        float64
	Kappa      float64
}

// Register implements [cli.Group].
func (l *Loss) Register(f *cli.FlagSet) {
	cli.Var(f, &l.Methods, "method", setting.List(setting.OneOf(l.Methods...)), "`methods` to compare")
	f.Grows("method")
	cli.Var(f, &l.Beta, "beta", train.ParseBeta, "weight `β`")
	cli.Var(f, &l.Percentile, "p", setting.Float(0, 100), "`percentile`")
	cli.Var(f, &l.Tau, "tau", setting.Positive, "temperature `τ`")
	cli.Var(f, &l.Kappa, "kappa", setting.Positive, "sharpness `κ`")
}
