// Command admet evaluates vectors of molecules on properties that matter in drug discovery: the data sets
// of the TDC ADMET benchmark group that have an official split, and Biogen's sets of microsomal clearance.
//
//	go run ./experiments/admet -data DIR
//	go run ./experiments/admet -data DIR -dataset caco2_wang,herg -method counts,vectors
//
// A set is DIR/NAME.csv or DIR/NAME.csv.gz with the columns smiles, y and split, which is train or test.
// As TDC requires, each of five seeds splits off an eighth of the training set to select the
// regularisation strength, and the metric is measured on the official test set.
//
// The sets of MoleculeNet, NAME.csv or NAME.csv.gz from experiments/datasets, are split by scaffold
// instead, into 80, 10 and 10 %:
//
//	go run ./experiments/admet -data DIR -dataset moleculenet -method bits,counts,vectors -seeds 3
//
// The nine endpoints of ExpansionRx, expansionrx_NAME.csv or expansionrx_NAME.csv.gz, are joined and divided by
// time: the latest fifth of the molecules is the test part. RUN/expansionrx.csv is the joined table.
//
//	go run ./experiments/admet -data DIR -dataset expansionrx -method mean,both,tuned-absolute -seeds 3
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/specmatch/specmatch/backend"
	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/setting"
)

func main() { cli.Main(execute) }

const synopsis = `Predicts properties of molecules with linear models on fingerprints and on vectors of the
tool's encoder, with the protocol of the TDC ADMET benchmark group or, for MoleculeNet
(-dataset moleculenet), with scaffold splits.`

// experiment holds the flags.
type experiment struct {
	data    cli.Data
	methods paper.Methods
	encoder string
	recipe  cli.Recipe // its seeds alone
	output  run.Output

	dir *run.Dir
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	x := &experiment{
		methods: paper.Methods{Names: methodNames(false), Choices: methodNames(true)},
		recipe:  cli.Recipe{Seeds: 5},
	}
	flags := cli.NewFlagSet("admet", synopsis, "-data DIR",
		"-data DIR -dataset caco2_wang,herg -method counts,vectors")
	flags.Add(&x.methods, &x.data, &x.output)
	x.recipe.RegisterSeeds(flags)
	cli.Var(flags, &x.encoder, "model", setting.Text,
		"model `file` with the encoder of the vectors; by default the built-in one")
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	if x.data.Dir == "" {
		return cli.Usagef("-data is needed: the folder with the data sets, such as caco2_wang.csv.gz")
	}
	switch {
	case len(x.data.Datasets) == 0:
		x.data.Datasets = named(false)
	case slices.Equal(x.data.Datasets, []string{"moleculenet"}):
		x.data.Datasets = named(true)
	}
	if x.encoder != "" && !flags.Collecting() {
		sum, err := dataset.SumFile(ctx, x.encoder)
		if err != nil {
			return err
		}
		flags.Input("model", sum)
	}
	loaded, err := x.load(ctx, flags, stderr)
	if err != nil {
		return err
	}
	x.dir, err = run.StartHost("admet", flags, x.data.Datasets, x.recipe, engine, x.output)
	if err != nil {
		return err
	}
	defer x.dir.Close()
	var list []run.Unit[outcome]
	for _, l := range loaded {
		for _, name := range x.methods.Names {
			for k := range x.recipe.Seeds {
				seed := x.recipe.FirstSeed + k
				list = append(list, run.Unit[outcome]{
					Name: fmt.Sprintf("%s/%s/seed=%d", l.name, name, seed),
					Run: func(ctx context.Context, _ backend.Backend, _ run.Status) (outcome, error) {
						return l.evaluate(ctx, name, seed)
					},
				})
			}
		}
	}
	plan := run.NewPlan(x.dir)
	outcomes := run.Add(plan, list)
	return plan.Run(ctx, stdout, stderr, func() error {
		return errors.Join(x.writeTables(loaded), x.report(stdout, *outcomes))
	})
}

// writeTables writes the joined sets into the run directory.
func (x *experiment) writeTables(loaded []*loadedSet) error {
	for _, l := range loaded {
		if l.smiles == nil {
			continue
		}
		if err := l.writeTable(x.dir.Join(l.name + ".csv")); err != nil {
			return err
		}
	}
	return nil
}

// load reads the data sets. With -collect it returns them without data.
func (x *experiment) load(ctx context.Context, flags *cli.FlagSet, stderr io.Writer) ([]*loadedSet, error) {
	var loaded []*loadedSet
	for _, name := range x.data.Datasets {
		s, err := find(name)
		if err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		l := &loadedSet{set: s}
		if !flags.Collecting() {
			l, err = s.load(ctx, x.data.Dir)
			if err != nil {
				return nil, err
			}
			l.encoder = x.encoder
			flags.Input(name, l.sum)
			if l.dropped > 0 {
				fmt.Fprintf(stderr, "%s: %d molecules cannot be used\n", l.name, l.dropped)
			}
		}
		loaded = append(loaded, l)
	}
	return loaded, nil
}

// engine is the name of the processor in results.json: linear models use none of the engines.
const engine = "host"
