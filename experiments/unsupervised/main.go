// Command unsupervised reproduces the unsupervised regime of the paper (its
// Table 1): train an encoder without labels, freeze it, and see how well a
// support vector machine tells the classes apart from its embeddings.
//
//	go run ./experiments/unsupervised
//	go run ./experiments/unsupervised -dataset MUTAG,NCI1 -data DIR -seeds 5
//
// One row per method: the untrained encoder; GraphCL as its code does it; the
// paper's L_C alone on two augmented views; and SpecMatch-CL, L_C + β·L_G. All
// rows of a seed share the initial weights, the order of the batches, the
// augmentations and the folds, so that differences between rows are paired.
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/specmatch/specmatch/backend"
	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/progress"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/eval"
)

func main() { cli.Main(run) }

const synopsis = `Trains graph encoders without labels and evaluates their embeddings with a
support vector machine: the unsupervised regime of SpecMatch-CL.`

// experiment is what the flags say.
type experiment struct {
	data     cli.Data
	loss     cli.Loss
	recipe   cli.Recipe
	protocol cli.Protocol
	engine   cli.Engine
	output   cli.Output
	settings settings

	dir   *rundir.Dir
	bar   *progress.Bar
	slots chan struct{} // one for each core
}

// settings are the switches that only this experiment has.
type settings struct {
	firstSeed  int
	adjacency  specmatch.Adjacency
	randomWalk bool
	thetaGrad  bool
	onH        bool
	center     bool
	warmup     int
	policy     string
	ratio      float64
	faithful   bool
	folds      int
}

// Register implements cli.Group.
func (s *settings) Register(f *cli.FlagSet) {
	cli.Var(f, &s.firstSeed, "first-seed", cli.Int(0), "the `first` of the seeds")
	cli.Var(f, &s.adjacency, "adjacency", specmatch.ParseAdjacency, "how a similarity becomes an edge of the batch's similarity `graph`: sigmoid, spread\n(sigmoid with κ in units of the spread of the similarities), hard, ste")
	f.BoolVar(&s.randomWalk, "random-walk", s.randomWalk, "compare random-walk Laplacians I - D⁻¹A instead of symmetric ones")
	f.BoolVar(&s.thetaGrad, "theta-gradient", s.thetaGrad, "let the gradient flow through the threshold θ")
	f.BoolVar(&s.onH, "on-h", s.onH, "apply L_G to the encoder's output h instead of the projection z")
	f.BoolVar(&s.center, "center", s.center, "subtract the batch's mean embedding before L_G")
	cli.Var(f, &s.warmup, "warmup", cli.Int(0), "`steps` over which β grows linearly from 0")
	cli.Var(f, &s.policy, "policy", cli.Text, "`augmentations`, one drawn per graph and view: auto (by data set), random2, random3, random4,\nor a list of dropN, permE, maskN, subgraph")
	cli.Var(f, &s.ratio, "ratio", cli.Float(0, 1), "`share` of nodes or edges that an augmentation changes")
	f.BoolVar(&s.faithful, "graphcl-code", s.faithful, "the graphcl row takes augmentations, self-loops and batch order from GraphCL's code;\nfalse: the intended augmentations and reshuffled batches of the other rows")
	cli.Var(f, &s.folds, "folds", cli.Int(2), "outer `folds` of the evaluation")
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	x := &experiment{
		loss:     cli.Loss{Beta: cli.Beta{Weight: 0.05}, P: 80, Tau: 0.2, Kappa: 10},
		recipe:   cli.Recipe{Epochs: 20, Batch: 128, LR: 0.01, Seeds: 5},
		protocol: cli.Protocol{Protocols: []string{"graphcl", "linear"}, Choices: []string{"graphcl", "linear"}},
		settings: settings{policy: "auto", ratio: 0.2, faithful: true, folds: 10},
	}
	flags := cli.NewFlagSet("unsupervised", synopsis, "", "-dataset MUTAG,PROTEINS -data DIR -seeds 3", "-dataset NCI1 -data DIR -method infonce,specmatch -beta auto:0.2")
	flags.Add(&x.data, &x.loss, &x.recipe, &x.protocol, &x.engine, &x.output, &x.settings)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	sets, err := x.open()
	if err != nil {
		return err
	}
	for _, ds := range sets {
		if _, err := x.loader(&unit{ds: ds}); err != nil {
			return err
		}
	}
	// Opened here so that a wrong engine is reported before anything runs.
	if _, err := backend.Open(x.engine.Backend, x.engine.Precision); err != nil {
		return err
	}
	x.dir, err = rundir.Open(rundir.Options{
		Experiment: "unsupervised", Datasets: x.data.Datasets, Flags: flags.FlagSet,
		FirstSeed: x.settings.firstSeed, Seeds: x.recipe.Seeds, Engine: x.engine.Backend, Out: x.output.Dir,
	})
	if err != nil {
		return err
	}
	defer x.dir.Close()

	units := x.units(sets)
	x.bar = progress.Start(stderr, progress.Options{Label: "unsupervised", Unit: "run", Total: len(units)})
	err = x.runAll(ctx, units)
	x.bar.Stop()
	if err != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(stderr, "finished runs are kept: continue with -out %s\n", x.dir.Path)
		}
		return err
	}
	return x.report(stdout, sets, units)
}

// open loads the data sets, by default the embedded one.
func (x *experiment) open() ([]*dataset.Dataset, error) {
	if len(x.data.Datasets) == 0 {
		ds, err := dataset.Motifs(dataset.MotifConfig{})
		return []*dataset.Dataset{ds}, err
	}
	if x.data.Dir == "" {
		return nil, cli.Usagef("-dataset needs -data: the folder with NAME.zip or NAME/ (see experiments/datasets for how to get them)")
	}
	var sets []*dataset.Dataset
	for _, name := range x.data.Datasets {
		ds, err := dataset.Open(x.data.Dir, name, dataset.Options{})
		if err != nil {
			return nil, err
		}
		sets = append(sets, ds)
	}
	return sets, nil
}

// unit is one independent run: a method on a data set with a seed.
type unit struct {
	ds     *dataset.Dataset
	method string
	seed   int
	result outcome
}

func (u *unit) name() string { return fmt.Sprintf("%s/%s/seed=%d", u.ds.Name, u.method, u.seed) }

// outcome is what a unit leaves in the journal.
type outcome struct {
	Accuracy        map[string]float64 // by protocol, in per cent
	TrainSeconds    float64
	EvalSeconds     float64
	GraphsPerSecond rundir.Float // while training; null for the untrained encoder
	Epochs          []epochStats
}

func (x *experiment) units(sets []*dataset.Dataset) []*unit {
	var units []*unit
	for _, ds := range sets {
		for _, method := range x.loss.Methods {
			for s := range x.recipe.Seeds {
				units = append(units, &unit{ds: ds, method: method, seed: x.settings.firstSeed + s})
			}
		}
	}
	return units
}

// runAll runs the units, as many at once as there are cores. One unit per core
// is the fastest way through many of them: they share nothing. The slots see to
// it that no core idles while the last of them are evaluated. Results do not
// depend on either.
func (x *experiment) runAll(ctx context.Context, units []*unit) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	at := make(chan *unit)
	x.slots = make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(units)) {
		wg.Go(func() {
			for u := range at {
				if err := x.do(ctx, u); err != nil {
					cancel(fmt.Errorf("%s: %w", u.name(), err))
				}
			}
		})
	}
	for _, u := range units {
		if ctx.Err() != nil {
			break
		}
		at <- u
	}
	close(at)
	wg.Wait()
	return context.Cause(ctx)
}

// do runs one unit, unless the journal has it.
func (x *experiment) do(ctx context.Context, u *unit) (err error) {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if x.dir.Done(u.name()) {
		x.bar.Skip(1)
	} else {
		defer x.bar.Add(1)
	}
	u.result, err = rundir.Do(x.dir, u.name(), func() (outcome, error) {
		x.bar.Message("%s", u.name())
		return x.trainAndEvaluate(ctx, u)
	})
	return err
}

func (x *experiment) trainAndEvaluate(ctx context.Context, u *unit) (out outcome, err error) {
	be, err := backend.Open(x.engine.Backend, x.engine.Precision)
	if err != nil {
		return out, err
	}
	x.slots <- struct{}{}
	start := time.Now()
	model, history, err := x.train(ctx, be, u)
	<-x.slots
	if err != nil {
		return out, err
	}
	out.Epochs = history
	out.TrainSeconds = time.Since(start).Seconds()
	out.GraphsPerSecond = rundir.Float(float64(len(u.ds.Graphs)*len(history)) / out.TrainSeconds)
	if len(history) == 0 {
		out.GraphsPerSecond = rundir.Float(math.NaN())
	}

	start = time.Now()
	labels := make([]int, len(u.ds.Graphs))
	for i, g := range u.ds.Graphs {
		labels[i] = g.Class
	}
	folds, err := dataset.StratifiedKFold(labels, x.settings.folds, true, uint32(u.seed))
	if err != nil {
		return out, err
	}
	data := eval.Data{X: model.Embed(be, u.ds.Graphs, x.evalCollate(u)), Dim: model.Encoder.Width(), Y: labels}
	out.Accuracy = map[string]float64{}
	for _, name := range x.protocol.Protocols {
		p, err := eval.ParseProtocol(name)
		if err != nil {
			return out, err
		}
		x.bar.Message("%s: %s", u.name(), name)
		r, err := eval.Evaluate(ctx, p, data, folds, eval.Options{Slots: x.slots})
		if err != nil {
			return out, err
		}
		out.Accuracy[name] = 100 * r.Mean
	}
	out.EvalSeconds = time.Since(start).Seconds()
	return out, x.save(model, u)
}

// evalCollate feeds the graphs as GraphCL's code does where the row asks for
// it: with the self-loops that its raw view has.
func (x *experiment) evalCollate(u *unit) func(b *graph.Batch, lo, hi int) {
	if !x.asGraphCLCode(u) {
		return nil
	}
	raw, ws := augment.Identity{SelfLoops: true}, new(augment.Workspace)
	return func(b *graph.Batch, lo, hi int) {
		for _, g := range u.ds.Graphs[lo:hi] {
			raw.Append(b, g, nil, ws)
		}
	}
}

// asGraphCLCode says whether a unit follows GraphCL's code bug for bug.
func (x *experiment) asGraphCLCode(u *unit) bool {
	return u.method == cli.GraphCL && x.settings.faithful
}

// objective returns the loss of a method.
func (x *experiment) objective(method string) specmatch.Objective {
	o := specmatch.Objective{
		Contrast: specmatch.InfoNCE{Temperature: x.loss.Tau},
		Match: specmatch.LaplacianMatch{
			Adjacency: x.settings.adjacency, Kappa: x.loss.Kappa, Percentile: x.loss.P,
			RandomWalk: x.settings.randomWalk, ThresholdGradient: x.settings.thetaGrad,
		},
		OnH: x.settings.onH, Center: x.settings.center,
	}
	switch method {
	case cli.GraphCL:
		o.Contrast.Variant = specmatch.CrossView
	case cli.SpecMatch:
		b := x.loss.Beta
		o.Beta = specmatch.BetaSchedule{Beta: b.Weight, Ratio: b.Ratio, WarmupSteps: x.settings.warmup}
	}
	return o
}
