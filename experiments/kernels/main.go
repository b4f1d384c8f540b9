// Command kernels computes the classical rows of the paper's Table 1, and the plain
// ones that belong above them: how far the size of a graph, a count of its labels, a
// graph kernel or an embedding of walks and subtrees takes a support vector machine.
//
//	go run ./experiments/kernels
//	go run ./experiments/kernels -dataset MUTAG,NCI1 -data DIR -method labels,wl,wloa
//
// All rows of a seed share the folds, and all settings of a method, such as the
// rounds h of a WL kernel, are chosen inside the training part of each fold together
// with C.
package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/setting"
)

func main() { cli.Main(execute) }

const synopsis = `Graph kernels, embeddings of walks and subtrees, and plain counts, under one nested
protocol: the classical rows of SpecMatch-CL's unsupervised regime.`

type experiment struct {
	data     cli.Data
	methods  []string
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
		methods:  methodNames(),
		recipe:   cli.Recipe{Seeds: 10},
		settings: defaultSettings(),
		protocol: cli.Protocol{Protocols: protocols[:1], Choices: protocols},
	}
	flags := cli.NewFlagSet("kernels", synopsis, "-seeds 3", "-dataset MUTAG,PROTEINS -data DIR",
		"-dataset COLLAB -data DIR -method labels,wl -protocol linear -seeds 3")
	cli.Var(flags, &x.methods, "method", setting.List(setting.OneOf(methodNames()...)),
		"`methods` to compare, one row of results each: "+strings.Join(methodNames(), ","))
	flags.Grows("method")
	flags.Add(&x.data, &x.settings, &x.protocol, &x.output)
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

// engine is what results.json calls the processor: none of the engines computes here.
const engine = "host"

// a trial is one row of results with one seed.
type trial struct {
	set    *dataset.Dataset
	method *method
	seed   int
	x      *experiment
	shared *shared // with the other seeds; nil if features depend on the seed
}

// runs lists the trials: every method on every data set with every seed. Those of one
// method and set stand together, so that what they share is soon let go.
func (x *experiment) runs(sets []*dataset.Dataset) []*trial {
	var runs []*trial
	for _, ds := range sets {
		for _, name := range x.methods {
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

// check returns the error with which a trial would end, before any begins.
func (r *trial) check() error {
	err := eval.Check(r.set.Labels(), r.x.protocol.Folds, eval.Options{})
	if err == nil {
		err = r.method.refuse(&r.x.settings, r.set)
	}
	if err != nil {
		return fmt.Errorf("%s, %s: %w", r.set.Name, r.method.Name, err)
	}
	return nil
}
