// Command kernels computes the classical rows of the paper's Table 1 and simpler baselines: support vector
// machines on the size of a graph, on counts of its labels, on a graph kernel, or on embeddings of walks
// and subtrees.
//
//	go run ./experiments/kernels
//	go run ./experiments/kernels -dataset MUTAG,NCI1 -data DIR -method labels,wl,wloa
//
// All rows of a seed share the folds. The settings of a method, such as the rounds h of a WL kernel, are
// selected together with C inside the training set of each fold.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/run"
)

func main() { cli.Main(execute) }

const synopsis = `Evaluates graph kernels, embeddings of walks and subtrees, and simple counts with one
nested protocol: the classical rows of SpecMatch-CL's unsupervised regime.`

type experiment struct {
	data     cli.Data
	methods  paper.Methods
	recipe   cli.Recipe // its seeds alone
	settings settings
	protocol cli.Protocol
	output   run.Output

	dir    *run.Dir
	shared []*shared
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	x := &experiment{
		data:     cli.Data{NodeFeatures: dataset.FeaturesLabels},
		methods:  paper.Methods{Choices: methodNames()},
		recipe:   cli.Recipe{Seeds: 10},
		settings: defaultSettings(),
		protocol: cli.Protocol{Protocols: protocols[:1], Choices: protocols},
	}
	flags := cli.NewFlagSet("kernels", synopsis, "-seeds 3", "-dataset MUTAG,PROTEINS -data DIR",
		"-dataset COLLAB -data DIR -method labels,wl -protocol linear -seeds 3")
	flags.Add(&x.methods, &x.data, &x.settings, &x.protocol, &x.output)
	x.recipe.RegisterSeeds(flags)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	sets, err := x.data.Open(ctx, stderr)
	if err != nil {
		return err
	}
	runs := x.runs(sets)
	for _, r := range runs {
		if err := r.check(); err != nil && !flags.Collecting() {
			return err
		}
	}
	x.dir, err = run.StartHost("kernels", flags, x.data.Datasets, x.recipe, engine, x.output)
	if err != nil {
		return err
	}
	defer x.dir.Close()

	var list []run.Unit[outcome]
	for _, r := range runs {
		list = append(list, run.Unit[outcome]{Name: r.name(), Run: r.do})
	}
	plan := run.NewPlan(x.dir)
	outcomes := run.Add(plan, list)
	return plan.Run(ctx, stdout, stderr, func() error {
		return x.report(stdout, sets, runs, *outcomes)
	})
}

// protocols: the first two nest as GraphCL's script does, see package eval.
var protocols = []string{string(eval.GraphCL), string(eval.Linear), string(eval.HoldOutKernels)}

// engine is the name of the processor in results.json: this program uses none of the engines.
const engine = "host"

// trial is one row of results with one seed.
type trial struct {
	set    *dataset.Dataset
	method *method
	seed   int
	x      *experiment
	shared *shared // with the other seeds; nil if features depend on the seed
}

// runs lists the trials: every method on every data set with every seed. Trials of the same method and set
// are adjacent, so that their shared data can be freed early.
func (x *experiment) runs(sets []*dataset.Dataset) []*trial {
	var runs []*trial
	for _, ds := range sets {
		for _, name := range x.methods.Names {
			m := methodOf(name)
			var s *shared
			if !m.Seeded {
				s = new(shared)
				x.shared = append(x.shared, s)
			}
			for k := range x.recipe.Seeds {
				runs = append(runs, &trial{ds, m, x.recipe.FirstSeed + k, x, s})
			}
		}
	}
	return runs
}

func (r *trial) name() string {
	return fmt.Sprintf("%s/%s/seed=%d", r.set.Name, r.method.Name, r.seed)
}

// check returns the error with which the trial would end, before any trial runs.
func (r *trial) check() error {
	err := r.method.refuse(&r.x.settings, r.set)
	for _, p := range r.x.protocol.Protocols {
		err = cmp.Or(eval.Protocol(p).Check(r.set.Labels(), r.x.protocol.Folds, eval.Options{}), err)
	}
	if err != nil {
		return fmt.Errorf("%s, %s: %w", r.set.Name, r.method.Name, err)
	}
	return nil
}
