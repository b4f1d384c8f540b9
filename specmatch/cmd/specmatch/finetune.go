package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/report"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor/files"
)

// kindAuto is the kind, or the division, that is found out.
const kindAuto = "auto"

// The losses of numbers.
const (
	lossSquared  = "squared"
	lossAbsolute = "absolute"
)

// tuning is the command finetune.
type tuning struct {
	input
	encoder
	finetune.Task
	Kind     string
	Model    string
	Dropout  float64
	Average  float64
	Readout  string
	Features []apply.Feature
	Loss     string
	Patience int
	Balanced bool
	Folds    int
	Valid    string
	Test     string
	recipe   cli.Recipe
	engine   cli.Engine
	output   run.Output
	flags    *cli.FlagSet

	examples *finetune.Examples
	arch     gnn.Architecture
	dir      *run.Dir
	notes    []string // about the divisions
}

func setupFinetune(f *cli.FlagSet) cli.Action {
	r := finetune.Molecules
	x := &tuning{
		Kind:     kindAuto,
		Task:     finetune.Task{Split: kindAuto},
		Loss:     lossSquared,
		Readout:  readoutAuto,
		Patience: r.Patience,
		Dropout:  r.Dropout,
		Average:  r.Average,
		encoder:  encoder{Hidden: 64, Layers: 3, Atoms: r.Atoms},
		recipe: cli.Recipe{
			Epochs: r.Epochs,
			Batch:  r.Batch,
			LR:     0.001,
			Seeds:  3,
		},
		flags: f,
	}
	f.Add(&x.input)
	f.Free("in", "valid", "test")
	cli.Var(f, &x.Targets, "target", setting.List(setting.Text),
		"`columns` or keys A,B to predict; of a set in TUDataset's format the default is class, and of a "+
			"table\n"+
			"of MoleculeNet, such as esol.csv or tox21.csv.gz, its targets")
	cli.Var(
		f,
		&x.Kind,
		"kind",
		setting.OneOf(kindAuto, string(model.Classes), string(model.Binary), string(model.Regression)),
		"`what` the targets are: classes (one target, any texts), binary (0, 1 or empty), regression "+
			"(numbers or empty);\n"+
			"auto goes by the values: 0 and 1 only are binary, numbers regression, others classes",
	)
	cli.Var(f, &x.Split, "split", setting.Text,
		"how to divide the records: random, stratified (every class in each part), scaffold (those of the\n"+
			"literature) or stratified-scaffold, into 80, 10 and 10 %, or the `column` that has train, "+
			"valid or test;\n"+
			"auto is random for numbers and stratified otherwise")
	cli.Var(f, &x.Folds, "folds", setting.Int(0),
		"`number` of folds for cross-validation, by -split: each is the test part once, and an eighth of "+
			"the\n"+
			"others validates; 0 is one division for each seed")
	cli.Var(f, &x.Valid, "valid", setting.Text,
		"`file` with the records to validate on, of the columns of -in; without -test, a ninth of -in is "+
			"tested on")
	cli.Var(f, &x.Test, "test", setting.Text,
		"`file` with the records to test on, of the columns of -in; without -valid, a ninth of -in validates")
	f.BoolVar(&x.Balanced, "balanced", false, "weigh the loss so that all classes count alike, however rare")
	f.BoolVar(&x.Bounds, "bounds", false,
		"take targets such as >10 and <=0.5 for bounds: a prediction beyond one has no loss, and metrics "+
			"leave\n"+
			"them out; otherwise they are refused")
	cli.Var(f, &x.Model, "model", setting.Text,
		"model `file` whose encoder to start from, or pretrained, the encoder of molecules that is part "+
			"of\n"+
			"this program; none starts from random weights")
	f.Add(&x.recipe)
	cli.Var(f, &x.Patience, "patience", setting.Int(1),
		"`epochs` without a better one on the validation part after which training ends;\n"+
			"the best epoch's weights are kept")
	cli.Var(f, &x.Average, "average", setting.Float(0, 0.9999),
		"`decay` of the average of the weights over steps, which is evaluated and kept; 0 keeps those of "+
			"single\n"+
			"steps")
	f.Add(&x.encoder)
	cli.Var(f, &x.Dropout, "dropout", setting.Float(0, 0.99), "`probability` of dropout, for molecules")
	cli.Var(f, &x.Features, "features", setting.List(apply.ParseFeature),
		"`features A,B` of molecules that the head sees beside the encoder's vector: "+apply.FeatureWords+
			";\nencoder is that alone, and none are "+strings.Join(r.Features, ","))
	cli.Var(f, &x.Loss, "loss", setting.OneOf(lossSquared, lossAbsolute),
		"`loss` of numbers: the squared or the absolute error")
	cli.Var(f, &x.Readout, "readout", readoutOf(readoutAuto, readoutMean, readoutSum),
		"`how` a vector comes of the nodes': of a molecule by the mean over its atoms, or by their sum, "+
			"which knows how many\n"+
			"there are, or as LAYERS:KINDS, such as all:sum,mean,max or last:max; auto is the sum for "+
			"numbers of molecules,\n"+
			"the mean for their classes, and for graphs the encoder's own way")
	f.Add(&x.engine, &x.output)
	f.Small("for molecules", x.input.molecules, map[string]string{
		"hidden": fmt.Sprint(r.Hidden),
		"layers": fmt.Sprint(r.Layers),
		"lr":     fmt.Sprint(r.Rate),
	})
	f.Small("with -folds", func() bool { return x.Folds > 0 }, map[string]string{"seeds": "1"})
	f.Check(func() error {
		if x.recipe.Epochs < 1 {
			return cli.Usagef("-epochs %d: want at least 1", x.recipe.Epochs)
		}
		if x.Folds == 1 {
			return cli.Usagef("-folds 1: want 2 at least, or 0 for divisions by -split")
		}
		if x.Folds > 0 && x.Valid+x.Test != "" {
			return cli.Usagef("-folds divides -in alone: leave -valid and -test out")
		}
		written := []string{"results.md"}
		for _, d := range x.divisions() {
			written = append(written, d.model(), d.test())
		}
		return apartRun(x.output.Dir, written, x.In, x.Model, x.Valid, x.Test)
	})
	return x.run
}

func (x *tuning) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := x.read(ctx, stderr); err != nil {
		return err
	}
	if err := x.divide(stderr); err != nil { // before what takes minutes
		return err
	}
	set := x.examples.Set
	fmt.Fprintf(stderr, "%d %s, %s\n", len(set.Graphs), x.examples.Content, x.examples.Summary())
	flags := fmt.Sprintf("-hidden %d -layers %d -batch %d", x.arch.Hidden, x.arch.Layers, x.recipe.Batch)
	if err := train.Fits(
		x.engine.Backend, x.engine.Precision, x.arch, set.Graphs, x.recipe.Batch,
	); err != nil {
		return cli.Usagef("%s: %w", flags, err)
	}
	var err error
	x.dir, err = run.Start(x.flags.Name(), x.flags, []string{set.Name}, x.recipe, x.engine, x.output)
	if err != nil {
		return err
	}
	defer x.dir.Close()
	var list []run.Unit[outcome]
	for _, d := range x.divisions() {
		list = append(list, run.Unit[outcome]{
			Name: d.unit(), Files: []string{d.model(), d.test()},
			Run: run.OnEngine(x.engine, func(
				ctx context.Context, be backend.Backend, status run.Status,
			) (outcome, error) {
				return x.tune(ctx, be, d, status)
			}),
		})
	}
	if err := x.estimate(ctx, stderr); err != nil {
		return err
	}
	plan := run.NewPlan(x.dir)
	results := run.Add(plan, list)
	return plan.Run(ctx, stdout, stderr, func() error { return x.report(stdout, *results) })
}

// outcome is what a fit has given.
type outcome struct {
	finetune.Result
	Test      []train.Metrics     // of each task, with the weights that are kept
	Baseline  []train.Metrics     // of the mean or the frequencies of the training part
	Confusion [][][]float64       // [task][true][predicted]; of numbers nothing
	Coverage  []finetune.Coverage // of each task at level; nil where too few records validate for that
	Parts     [3]int              // how many records train, validate and test
	Shared    [2]int              // molecules of the validation and the test part that train, too
	Worst     []report.Case       // the predictions of the test part that are most wrong
}

// Check implements rundir's.
func (o *outcome) Check() error {
	if o.Test == nil || o.Baseline == nil {
		return errors.New("no metrics of the test part and its baseline")
	}
	return o.Result.Check()
}

// division is one of the records into parts, by a seed or, from 1, as a fold of them.
type division struct{ seed, fold int }

// divisions returns those that are asked for.
func (x *tuning) divisions() (all []division) {
	for s := range x.recipe.Seeds {
		for f := range max(x.Folds, 1) {
			all = append(all, division{x.recipe.FirstSeed + s, min(x.Folds, f+1)})
		}
	}
	return all
}

// name puts the division into words of the form.
func (d division) name(seed, fold string) string {
	if d.fold == 0 {
		return fmt.Sprintf(seed, d.seed)
	}
	return fmt.Sprintf(seed+fold, d.seed, d.fold)
}

// unit is the name of its unit, and model and test are the files that it leaves.
func (d division) unit() string  { return d.name("seed=%d", "/fold=%d") }
func (d division) model() string { return d.name("model-%d", "-%d") + ".safetensors" }
func (d division) test() string  { return d.name("test-%d", "-%d") + ".csv" }

// split returns the records of its parts.
func (x *tuning) split(d division) (dataset.Split, error) {
	if d.fold == 0 {
		return x.examples.Divide(uint64(d.seed))
	}
	return x.examples.Fold(uint64(d.seed), d.fold-1, x.Folds)
}

// divide tries all divisions, and notes what is to be said of them beside the metrics.
func (x *tuning) divide(stderr io.Writer) error {
	var valid, test []string
	var shared, bounds int
	for _, d := range x.divisions() {
		s, err := x.split(d)
		if err != nil {
			return err
		}
		v, t := x.examples.Overlap(s)
		valid = append(valid, fmt.Sprint(v))
		test = append(test, fmt.Sprint(t))
		shared = shared + v + t
		for _, i := range s.Test {
			n := len(x.examples.Targets)
			for k := range n {
				if x.examples.Bounds != nil && x.examples.Bounds[i*n+k] != 0 {
					bounds++
				}
			}
		}
	}
	if shared > 0 {
		x.notes = append(x.notes, fmt.Sprintf("molecules of the test part that the training part has, too, "+
			"however written: %s; of the validation part: %s",
			strings.Join(test, ", "), strings.Join(valid, ", ")))
	}
	if bounds > 0 {
		x.notes = append(x.notes, fmt.Sprintf(
			"%d targets of the test parts are bounds, which no metric counts",
			bounds,
		))
	}
	for _, note := range x.notes {
		fmt.Fprintf(stderr, "%s: %s\n", x.In, note)
	}
	return nil
}

// estimate says how long the fits that are left may take, by a few steps of one.
func (x *tuning) estimate(ctx context.Context, stderr io.Writer) error {
	left := slices.DeleteFunc(x.divisions(), func(d division) bool {
		return x.dir.Done(d.unit()) || !x.output.Shard.Has(0)
	})
	if len(left) == 0 || x.output.List || len(x.output.Collect) > 0 {
		return nil
	}
	be, err := x.engine.Open()
	if err != nil {
		return err
	}
	defer be.Close()
	_, s, l, err := x.learner(be, left[0])
	if err != nil {
		return err
	}
	defer l.Close()
	var took []float64
	for samples, graphs := range l.Epoch(ctx, 0) {
		start := time.Now()
		if _, err := l.Step(train.Batch{Samples: samples, Graphs: graphs}); err != nil {
			return err
		}
		took = append(took, time.Since(start).Seconds())
		if len(took) == 4 {
			break
		}
	}
	if len(took) == 0 {
		return ctx.Err()
	}
	// A step is a pass forwards and two backwards; evaluation is one forwards.
	graphs := float64(len(s.Train)) + float64(len(s.Valid)+len(s.Test))/3
	seconds := slices.Min(took) * graphs / float64(min(
		x.recipe.Batch, len(s.Train),
	)) * float64(x.recipe.Epochs)
	seconds *= math.Ceil(float64(len(left)) / float64(runtime.GOMAXPROCS(0)))
	fmt.Fprintf(stderr, "at most about %v for %d fits of up to %d epochs; patience may end them earlier\n",
		roundly(seconds), len(left), x.recipe.Epochs)
	return nil
}

// roundly is a time with two digits or so.
func roundly(seconds float64) time.Duration {
	d := time.Duration(seconds * float64(time.Second))
	for _, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		if d > 10*unit {
			return d.Round(unit)
		}
	}
	return d.Round(time.Second / 10)
}

// read reads the records, with the features that the model wants if there is one, and
// chooses the encoder.
func (x *tuning) read(ctx context.Context, stderr io.Writer) error {
	o, err := x.input.options()
	if err != nil {
		return err
	}
	o.Atoms = x.Atoms
	if x.Model != "" {
		m, be, err := openModel(x.Model, x.engine)
		if err != nil {
			return err
		}
		defer be.Close()
		reads, err := apply.Reads(m.Card)
		if err != nil {
			return fmt.Errorf("%s: %w", x.Model, err)
		}
		o = reads.Options(o)
		x.arch = m.Card.Encoder
		sum, err := modelSum(ctx, x.Model)
		if err != nil {
			return err
		}
		x.flags.Input("model", sum)
	}
	sum, err := x.input.sum(ctx, x.flags)
	if err != nil {
		return err
	}
	if x.Kind != kindAuto {
		x.Task.Kind = model.Kind(x.Kind)
	}
	task := x.Task
	if task.Split == kindAuto {
		task.Split = ""
	}
	for name, to := range map[string]*finetune.File{"valid": &task.Valid, "test": &task.Test} {
		part := x.input
		part.In = map[string]string{"valid": x.Valid, "test": x.Test}[name]
		if part.In == "" {
			continue
		}
		of, err := part.options()
		if err != nil {
			return err
		}
		*to = finetune.File{Path: part.In, Format: of.Format, Input: of.Input}
		sum, err := part.sum(ctx, nil)
		if err != nil {
			return err
		}
		x.flags.Input(name, sum)
	}
	task.Beside, o.Vector, err = x.beside()
	if err != nil {
		return err
	}
	x.examples, err = finetune.Read(ctx, x.In, task, o)
	switch {
	case errors.Is(err, finetune.ErrNoTargets):
		return cli.Usagef("-target is needed: the column of %s to predict", x.In)
	case errors.Is(err, finetune.ErrSeveral):
		return cli.Usagef("-target %s: %w", strings.Join(x.Targets, ","), finetune.ErrSeveral)
	case err != nil:
		return err
	}
	x.input.note(x.examples.Table, sum, stderr)
	molecules := x.examples.Content == records.Molecules
	if (x.Split == finetune.Scaffold || x.Split == finetune.StratifiedScaffold) && !molecules {
		return cli.Usagef("-split %s is for molecules, and %s has %s", x.Split, x.In, x.examples.Content)
	}
	if x.Model == "" {
		x.arch = x.architecture(x.examples.Features)
	}
	x.arch.Dropout = 0
	if molecules {
		x.arch.Dropout = x.Dropout
	}
	// a model's own is for frozen vectors
	x.arch.Readout = ""
	x.arch.Sum = false
	switch x.Readout {
	case readoutAuto, readoutMean, readoutSum:
		x.arch.Sum = molecules &&
			(x.Readout == readoutSum || x.Readout == readoutAuto && x.examples.Kind == model.Regression)
	default:
		x.arch.Readout = gnn.Readout(x.Readout)
		if err := x.arch.Check(); err != nil {
			return cli.Usagef("-readout: %w", err)
		}
	}
	return nil
}

// beside returns what the head sees of molecules beside the encoder's vector, and how it is computed.
func (x *tuning) beside() (*model.Numbers, func() func(*molecule.Molecule) []float32, error) {
	features := slices.DeleteFunc(slices.Clone(x.Features), func(f apply.Feature) bool {
		return f == apply.Encoder
	})
	switch molecules := x.input.molecules(); {
	case !molecules && len(features) > 0:
		return nil, nil, cli.Usagef("-features are of molecules, and %s has graphs", x.In)
	case !molecules || len(x.Features) > 0 && len(features) == 0:
		return nil, nil, nil
	case len(features) == 0:
		features, _ = apply.ParseFeatures(finetune.Molecules.Features)
	}
	n, vector, err := apply.Numbers(features)
	if err != nil {
		return nil, nil, cli.Usagef("-features: %w", err)
	}
	n.Hidden = finetune.Molecules.Beside
	n.Linear = finetune.Molecules.Linear
	return n, vector, nil
}

// learner returns a model that is to learn, and what from, on an engine.
func (x *tuning) learner(
	be backend.Backend, d division,
) (m *model.Trained, s dataset.Split, l *finetune.Learner, err error) {
	s, err = x.split(d)
	if err != nil {
		return nil, s, nil, err
	}
	var from *model.Trained
	if x.Model != "" {
		m, own, err := openModel(x.Model, x.engine)
		if err != nil {
			return nil, s, nil, err
		}
		defer own.Close()
		from = m
	}
	m, err = x.examples.NewModel(be, x.arch, from, uint64(d.seed))
	if err != nil {
		return nil, s, nil, err
	}
	l, err = finetune.New(m, x.examples.Data(s), finetune.Options{
		Batch:    x.recipe.Batch,
		Rate:     x.recipe.LR,
		Seed:     uint64(d.seed),
		Patience: x.Patience,
		Average:  x.Average,
		Balanced: x.Balanced,
		Absolute: x.Loss == lossAbsolute,
	})
	return m, s, l, err
}

// tune fits a model, and writes it and its predictions.
func (x *tuning) tune(
	ctx context.Context, be backend.Backend, d division, status run.Status,
) (out outcome, err error) {
	m, s, l, err := x.learner(be, d)
	if err != nil {
		return out, err
	}
	out.Result, err = x.fit(ctx, l, d.unit(), status)
	if err != nil {
		return out, err
	}
	if err := x.examples.Calibrate(ctx, m, s); err != nil {
		return out, err
	}
	if err := m.Save(x.dir.Join(d.model())); err != nil {
		return out, err
	}
	p, err := x.examples.Predict(ctx, m, s.Test)
	if err != nil {
		return out, err
	}
	out.Test, out.Baseline, out.Confusion = p.Score(s.Train)
	out.Coverage, _ = p.Coverage(m.Card.Calibration, level) // of few records there is none
	out.Parts = [3]int{len(s.Train), len(s.Valid), len(s.Test)}
	out.Shared[0], out.Shared[1] = x.examples.Overlap(s)
	out.Worst, err = x.worst(ctx, m, p)
	if err != nil {
		return out, err
	}
	return out, files.Write(x.dir.Join(d.test()), p.Write)
}

// fit fits l, or goes on from the unit's checkpoint, with a row of metrics.csv an epoch.
func (x *tuning) fit(
	ctx context.Context, l *finetune.Learner, unit string, status run.Status,
) (finetune.Result, error) {
	options, err := x.dir.Training(unit, x.recipe.Epochs)
	if err != nil {
		return finetune.Result{}, err
	}
	return l.Fit(ctx, options, func(p train.Progress) error {
		done := float64(p.Epoch)
		if !p.Ended {
			done += float64(p.Batch)/float64(p.Batches) - 1
		}
		status(
			"fine-tuning, epoch %d of %d, loss %.3f, at most %v left",
			p.Epoch,
			p.Epochs,
			p.Metrics["loss"],
			roundly(p.Seconds*(float64(p.Epochs)/done-1)),
		)
		if !p.Ended {
			return nil
		}
		var columns []slog.Attr
		for _, name := range slices.Sorted(maps.Keys(p.Metrics)) {
			columns = append(columns, slog.Float64(name, p.Metrics[name]))
		}
		return x.dir.Metrics(unit, p.Epoch, columns...)
	})
}
