package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/check"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor/files"
)

// auto is the value of -kind and -split that leaves the choice to the program.
const auto = "auto"

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
	Features []string // names of apply.ParseFeature, or auto
	Trees    int
	// Losses and TargetWeights are of all targets, or NAME=VALUE of single ones.
	Losses        []string
	TargetWeights []string
	options       finetune.Options // for the targets
	Merging       string
	// Target is the scale of the targets.
	Target   targetScale
	Patience int
	Balanced bool
	// Anonymous keeps the training molecules out of the model files.
	Anonymous bool
	Network   bool
	Folds     int
	// Curve is the number of sizes of training sets in a learning curve; 0 for none.
	Curve  int
	Valid  string
	Test   string
	recipe cli.Recipe
	engine cli.Engine
	output run.Output
	flags  *cli.FlagSet

	source   *modelOnEngine // the model of -model; nil without one
	examples *finetune.Examples
	arch     gnn.Architecture
	dir      *run.Dir
	notes    []string // about the splits, for the report
}

func setupFinetune(f *cli.FlagSet) cli.Action {
	recipe := finetune.Molecules
	x := &tuning{
		Kind:     auto,
		Task:     finetune.Task{Split: auto},
		Merging:  string(check.Keep),
		Target:   targetScale{auto: true},
		Losses:   []string{string(finetune.Squared)},
		Readout:  readoutAuto,
		Patience: recipe.Patience,
		Dropout:  recipe.Dropout,
		Average:  recipe.Average,
		Trees:    recipe.Trees,
		encoder:  encoder{Hidden: 64, Layers: 3, Atoms: recipe.Atoms, NodeFeatures: dataset.FeaturesDegrees},
		recipe: cli.Recipe{
			Epochs: recipe.Epochs,
			Batch:  recipe.Batch,
			LR:     0.001,
			Seeds:  3,
		},
		flags: f,
	}
	f.Common("in", "target", "out", "model", "split", "folds", "test", "kind", "target-scale", "features",
		"epochs", "seeds", "id", "smiles-column")
	f.Arguments("in", "out")
	f.Section("Input", func() { f.Add(&x.input) })
	f.Section("Targets and splits", func() { x.registerTask(f) })
	f.Free("in")
	f.Files([]string{finetune.NoTest}, "valid", "test")
	f.Section("Model and fit", func() { x.registerModel(f) })
	f.Section("Engine and output", func() { f.Add(&x.engine, &x.output) })
	f.Earlier("node-features", string(dataset.FeaturesAuto))
	f.Earlier("forest", "0")
	f.Earlier("target-scale", plain)
	f.Earlier("network", "true")
	f.Small("with -network=false", func() bool { return !x.Network }, map[string]string{
		"epochs": "1",
		"hidden": "16",
		"layers": "2",
	})
	f.Small("for molecules", x.input.molecules, map[string]string{
		"hidden": fmt.Sprint(recipe.Hidden),
		"layers": fmt.Sprint(recipe.Layers),
		"lr":     fmt.Sprint(recipe.Rate),
	})
	f.Small("with -folds", func() bool { return x.Folds > 0 }, map[string]string{"seeds": "1"})
	f.Check(x.check)
	return x.run
}

// registerModel adds the flags that say where a fit starts, what the model is, and how it is fitted.
func (x *tuning) registerModel(f *cli.FlagSet) {
	cli.Var(f, &x.Model, "model", setting.Text,
		"model `file` whose encoder to start from, or pretrained, the encoder of molecules in this program;\n"+
			"by default the weights are random")
	f.Add(&x.recipe)
	x.registerFit(f)
}

// registerTask adds the flags that say what is predicted.
func (x *tuning) registerTask(f *cli.FlagSet) {
	cli.Var(f, &x.Targets, "target", setting.List(setting.Text),
		"`columns` or keys A,B to predict; by default class for a set in TUDataset's format, and its own\n"+
			"targets for a table of MoleculeNet, such as esol.csv or tox21.csv.gz")
	kinds := []string{auto, string(model.Classes), string(model.Binary), string(model.Regression)}
	cli.Var(f, &x.Kind, "kind", setting.OneOf(kinds...),
		"`kind` of the targets: classes (one target, any texts), binary (0, 1 or empty), regression\n"+
			"(numbers or empty); auto takes 0 and 1 as binary, numbers as regression, other values as classes")
	cli.Var(f, &x.Positive, "positive", setting.Text,
		"`text` that is the positive answer of targets with two texts, such as active: they are fitted as binary\n"+
			"tasks, and a prediction is the probability of this text")
	cli.Var(f, &x.Weight, "weight", setting.Text,
		"`column` with the weights of the records in the loss and in the linear model; a record of weight 0 is\n"+
			"not used. Metrics and the forest have no weights")
	f.BoolVar(&x.Balanced, "balanced", false,
		"weigh the loss so that all classes count alike, however rare")
	cli.Var(f, &x.Target, "target-scale", parseTargetScale,
		"`scale` on which targets are fitted: auto, plain, log (-log) or LOW,HIGH (-range LOW,HIGH), their\n"+
			"log-odds between two ends, such as 0,100 for per cent; auto takes logarithms of positive targets\n"+
			"over decades, if they fit the validation sets better. Predictions are in the unit of the targets")
	f.Short("log", "target-scale", "log")
	f.Short("range", "target-scale", "")
	cli.Var(f, &x.Merging, "merge", setting.OneOf(check.Merges...),
		"`rule` for the records of one molecule or graph within a part: their mean or median label (of\n"+
			"classes, the most frequent one), or drop those whose labels differ; none keeps all records")
	f.BoolVar(&x.Bounds, "bounds", false,
		"accept targets such as >10 and <=0.5 as bounds: a prediction beyond one has no loss, and metrics\n"+
			"skip them; otherwise they are refused")
	x.registerSplits(f)
}

// registerSplits adds the flags that say how the records are split.
func (x *tuning) registerSplits(f *cli.FlagSet) {
	cli.Var(f, &x.Split, "split", setting.Text,
		"`split` of the records: random, stratified (every class in each part), scaffold (as in the\n"+
			"literature), stratified-scaffold or cluster (whole clusters of similar molecules in a part), into\n"+
			"80, 10 and 10 %, or a column with train, valid or test (if it has no valid or no test, a ninth of\n"+
			"train is that part); auto is random for regression and stratified otherwise")
	cli.Var(f, &x.Folds, "folds", setting.Int(0),
		"`number` of folds for cross-validation, divided by -split: each is the test set once, and an\n"+
			"eighth of the other records validates; 0 is one split for each seed")
	cli.Var(f, &x.Curve, "curve", setting.IntIn(0, 20),
		"`number` of sizes of training sets for a learning curve: each split is fitted to all of its training\n"+
			"set, to a half, a quarter and so on, and results.md and curve.svg show what more labels bring; 0 for none")
	cli.Var(f, &x.Valid, "valid", setting.Text,
		"`file` with the validation set, with the columns of -in; without -test, a ninth of -in is the test\n"+
			"set")
	cli.Var(f, &x.Test, "test", setting.Text,
		"`file` with the test set, with the columns of -in; without -valid, a ninth of -in validates; none\n"+
			"fits on all other records, without a test")
}

// plain is the value of -target-scale that fits targets as they are.
const plain = "plain"

// targetScale is the value of -target-scale.
type targetScale struct {
	auto bool
	model.Scale
}

// String formats the scale as -target-scale reads it.
func (s targetScale) String() string {
	switch {
	case s.auto:
		return auto
	case s.Log:
		return "log"
	case s.Low != s.High:
		return fmt.Sprintf("%g,%g", s.Low, s.High)
	}
	return plain
}

// parseTargetScale reads the value of -target-scale.
func parseTargetScale(text string) (s targetScale, err error) {
	switch text {
	case auto:
		s.auto = true
		return s, nil
	case plain:
		return s, nil
	case "log":
		s.Log = true
		return s, nil
	}
	low, high, _ := strings.Cut(text, ",")
	s.Low, err = strconv.ParseFloat(strings.TrimSpace(low), 64)
	if err == nil {
		s.High, err = strconv.ParseFloat(strings.TrimSpace(high), 64)
	}
	if err != nil || s.Low == s.High || s.Check() != nil {
		return s, errors.New("want auto, plain, log, or LOW,HIGH with LOW < HIGH, such as 0,100")
	}
	return s, nil
}

// registerFit adds the flags that say what the model is, and how it is fitted.
func (x *tuning) registerFit(f *cli.FlagSet) {
	cli.Var(f, &x.Patience, "patience", setting.Int(1),
		"`epochs` without an improvement on the validation set after which training stops; the weights of\n"+
			"the best epoch are kept")
	cli.Var(f, &x.Average, "average", setting.Float(0, 0.9999),
		"`decay` of the moving average of the weights, which is evaluated and kept; 0 keeps the weights of\n"+
			"single steps")
	f.Add(&x.encoder)
	cli.Var(f, &x.Dropout, "dropout", setting.Float(0, 0.99), "`probability` of dropout, for molecules")
	cli.Var(f, &x.Features, "features", parseFeatures,
		"`features A,B` of molecules that the head sees next to the encoder's vector: "+
			apply.FeatureWords+
			";\nby default "+strings.Join(finetune.Molecules.Features, ",")+
			"; encoder alone uses none of them, and auto picks a set\nby the errors of forests on the validation sets")
	cli.Var(f, &x.Trees, "forest", setting.IntIn(0, 10000),
		"`trees` of the random forest on descriptors and fingerprints that takes part in predictions for\n"+
			"molecules; 0 leaves it out")
	f.BoolVar(&x.Network, "network", true,
		"let a network take part in predictions for molecules; false fits a linear model and a forest alone,\n"+
			"in seconds and into a file that packs to a tenth")
	f.BoolVar(&x.Anonymous, "anonymous", false,
		"keep the training molecules and their targets out of the model files, which predict -domain needs")
	cli.Var(f, &x.Losses, "loss", setting.List(parseLoss),
		"`loss` of regression: the squared or the absolute error, and NAME=LOSS for single targets, such as\n"+
			"absolute,logd=squared")
	cli.Var(f, &x.TargetWeights, "target-weights", setting.List(parseWeight),
		"`weights` NAME=W,... of single targets in the loss, 1 for others, such as alike,logd=2; with alike,\n"+
			"rare targets count as much as others, and without it every label does")
	cli.Var(f, &x.Readout, "readout", readoutOf(readoutAuto, readoutMean, readoutSum),
		"`readout` of a graph's vector from its nodes: mean or sum over the atoms of a molecule (the sum\n"+
			"knows how many there are), or LAYERS:KINDS, such as all:sum,mean,max or last:max; auto is sum for\n"+
			"regression on molecules, mean for their classes, and for graphs the readout of the encoder")
}

// check returns an error if the flags contradict each other, or if an output is also an input.
func (x *tuning) check() error {
	switch {
	case x.recipe.Epochs < 1:
		return cli.Usagef("-epochs %d: want at least 1", x.recipe.Epochs)
	case x.Positive != "" && x.Kind != auto && x.Kind != string(model.Binary):
		return cli.Usagef("-positive makes targets binary: leave out -kind %s", x.Kind)
	case x.Folds == 1:
		return cli.Usagef("-folds 1: want at least 2, or 0 for splits by -split")
	case x.Curve == 1:
		return cli.Usagef("-curve 1: want at least 2 sizes, or 0 for no learning curve")
	case x.Curve > 0 && x.Test == finetune.NoTest:
		return cli.Usagef("-curve needs a test set: leave out -test none")
	case x.repeatsStdin():
		return cli.Usagef("standard input can be one of -in, -valid and -test: name files for the others")
	case x.Folds > 0 && x.Valid+x.Test != "":
		return cli.Usagef("-folds divides -in alone: leave out -valid and -test")
	}
	written := []string{resultsFile, rejectedFile, curveFile + ".svg"}
	for _, d := range x.divisions() {
		written = append(written, d.modelFile(), d.testFile())
	}
	return checkRunOutputs(x.output.Dir, written, x.In, x.Model, x.Valid, x.Test)
}

// repeatsStdin reports whether several inputs are standard input, which can be read only once.
func (x *tuning) repeatsStdin() bool {
	count := 0
	for _, path := range []string{x.In, x.Valid, x.Test} {
		if path == stdio {
			count++
		}
	}
	return count > 1
}

func (x *tuning) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	if x.Model != "" {
		// All fits start from this copy, which needs no engine but one to be read from.
		x.Model, err = oneModelFile(x.Model)
		if err != nil {
			return err
		}
		x.source, err = openModel(x.Model, cli.Engine{Backend: "cpu", Precision: x.engine.Precision})
		if err != nil {
			return err
		}
		defer x.source.Close()
	}
	if err := x.read(ctx, stderr); err != nil {
		return err
	}
	if err := x.chooseEncoder(); err != nil {
		return err
	}
	if err := x.checkSplits(stderr); err != nil { // before what takes minutes
		return err
	}
	if err := x.checkCurve(); err != nil {
		return err
	}
	if err := x.chooseFeatures(ctx, stderr); err != nil {
		return err
	}
	if err := x.chooseScales(ctx, stderr); err != nil {
		return err
	}
	set := x.examples.Set
	fmt.Fprintf(stderr, "%d %s, %s\n", len(set.Graphs), x.examples.Content, files.Printable(x.examples.Summary()))
	err = train.Fits(x.engine.Backend, x.engine.Precision, x.arch, set.Graphs, x.recipe.Batch)
	if err != nil {
		return cli.Usagef("-hidden %d -layers %d -batch %d: %w",
			x.arch.Hidden, x.arch.Layers, x.recipe.Batch, err)
	}
	x.dir, err = run.Start(x.flags.Name(), x.flags, []string{set.Name}, x.recipe, x.engine, x.output)
	if err != nil {
		return err
	}
	defer x.dir.Close()
	plan := run.NewPlan(x.dir)
	results := run.Add(plan, x.units())
	points := run.Add(plan, x.points())
	if err := x.estimate(ctx, plan, stderr); err != nil {
		return err
	}
	return plan.Run(ctx, stdout, stderr, func() error {
		return x.report(stdout, *results, *points)
	})
}

// read reads the records, in the way that the model of -model reads them, if there is one.
func (x *tuning) read(ctx context.Context, stderr io.Writer) error {
	if err := x.input.checkFile(); err != nil {
		return err
	}
	options, err := x.input.options()
	if err != nil {
		return err
	}
	if err := x.input.hashStream(&options); err != nil {
		return err
	}
	options.Atoms = x.Atoms
	options.Degrees = x.NodeFeatures == dataset.FeaturesDegrees
	if x.source != nil && options.Degrees && x.flags.Given("node-features") {
		return cli.Usagef("-node-features degrees is for a new encoder; that of -model has features of its own")
	}
	if x.source != nil {
		reads, err := apply.Reads(x.source.Card)
		if err != nil {
			return fmt.Errorf("%s: %w", x.Model, err)
		}
		options = reads.Options(options)
		x.flags.Input("model", x.source.sum)
	}
	if err := x.readExamples(ctx, options, stderr); err != nil {
		return err
	}
	sum, err := x.input.sum(ctx, x.flags, "in")
	if err != nil {
		return err
	}
	x.input.describeTable(x.examples.Table, sum, stderr)
	if err := x.setTargets(); err != nil {
		return err
	}
	if err := x.checkFeatures(x.flags, x.examples.Table); err != nil {
		return err
	}
	byStructure := []string{finetune.Scaffold, finetune.StratifiedScaffold, finetune.Cluster}
	if slices.Contains(byStructure, x.Split) && x.examples.Content != records.Molecules {
		return cli.Usagef("-split %s is for molecules, and %s has %s", x.Split, x.In, x.examples.Content)
	}
	return nil
}

// readExamples reads the records with their targets and the numbers of -features.
func (x *tuning) readExamples(ctx context.Context, options records.Options, stderr io.Writer) error {
	task, parts, err := x.task()
	if err != nil {
		return err
	}
	task.Beside, options.Vector, err = x.beside()
	if err != nil {
		return err
	}
	x.examples, err = finetune.Read(ctx, x.In, task, options)
	if errors.Is(err, finetune.ErrNoTargets) {
		task.Targets, err = x.onlyTarget(ctx, stderr)
		if err == nil {
			x.examples, err = finetune.Read(ctx, x.In, task, options)
		}
	}
	switch {
	case errors.Is(err, finetune.ErrScale):
		return cli.Usagef("-target-scale %v: %w", x.Target, finetune.ErrScale)
	case errors.Is(err, finetune.ErrSeveral):
		return cli.Usagef("-target %s: %w", strings.Join(x.Targets, ","), finetune.ErrSeveral)
	case err != nil:
		return err
	case x.examples.Content == records.Graphs && x.besideGraphs():
		return cli.Usagef("-features are of molecules, and %s has graphs", x.In)
	}
	for flag, part := range parts { // once streams are read to their ends
		if _, err := part.sum(ctx, x.flags, flag); err != nil {
			return err
		}
	}
	return nil
}

// onlyTarget sets -target to the only column of the file that can be one, and says so.
func (x *tuning) onlyTarget(ctx context.Context, stderr io.Writer) ([]string, error) {
	if x.isStream() {
		return nil, cli.Usagef("-target is needed: the column to predict")
	}
	columns := x.input.peek(ctx, records.Options{}, func(*records.Record) bool { return true }).Unused
	columns = slices.DeleteFunc(records.Askable(columns), func(name string) bool {
		lower := strings.ToLower(name)
		return name == x.ID || name == x.Weight || lower == "id" || lower == "name" || strings.HasSuffix(lower, "_id")
	})
	switch len(columns) {
	case 0:
		return nil, cli.Usagef("-target is needed: the column of %s to predict", x.In)
	case 1:
	default:
		return nil, cli.Usagef("-target is needed: the column of %s to predict, of %s",
			x.In, strings.Join(columns, ", "))
	}
	text := setting.JoinList(columns)
	fmt.Fprintf(stderr, "%s: -target %s, the only column that it can be\n", x.In, files.Printable(text))
	return columns, x.flags.Set("target", text)
}

// task returns what is learned, and the inputs of the files of -valid and -test by the names of their flags.
func (x *tuning) task() (finetune.Task, map[string]*input, error) {
	if x.Kind != auto {
		x.Task.Kind = model.Kind(x.Kind)
	} else if x.Positive == "" {
		var err error
		x.Task.Kind, err = x.learnedKind()
		if err != nil {
			return x.Task, nil, err
		}
	}
	task := x.Task
	task.Scale = x.Target.Scale
	task.Merge = check.Merge(x.Merging)
	if task.Split == auto {
		task.Split = ""
	}
	inputs := map[string]*input{}
	for _, part := range []struct {
		name, path string
		file       *finetune.File
	}{
		{"valid", x.Valid, &task.Valid},
		{"test", x.Test, &task.Test},
	} {
		switch {
		case part.path == "":
			continue
		case part.path == finetune.NoTest && part.name == "test":
			task.Test.Path = finetune.NoTest
			continue
		}
		input := x.input.other(part.name, part.path)
		if err := input.checkFile(); err != nil {
			return task, nil, err
		}
		options, err := input.options()
		if err != nil {
			return task, nil, err
		}
		if err := input.hashStream(&options); err != nil {
			return task, nil, err
		}
		*part.file = finetune.File{Path: part.path, Format: options.Format, Input: options.Input}
		inputs[part.name] = input
	}
	return task, inputs, nil
}

// learnedKind returns the kind that the finished fits of a run that is taken up have learned, "" if there are none.
// Other versions may have taken the values for another kind, and fits of two kinds have no table in common.
func (x *tuning) learnedKind() (kind model.Kind, err error) {
	for _, dir := range x.output.Runs() {
		units, err := run.Units(dir)
		if err != nil {
			return "", err
		}
		for _, unit := range units {
			var fit outcome
			if err := json.Unmarshal(unit.Result, &fit); err != nil {
				return "", fmt.Errorf("%s: unit %s: %w", filepath.Join(dir, "done.jsonl"), unit.Name, err)
			}
			learned := fit.kind()
			if kind != "" && learned != "" && learned != kind {
				return "", cli.Usagef("the fits of the run in %s learned %s and %s, which have no table in common; "+
					"give a new -out and a -kind", dir, kind, learned)
			}
			kind = cmp.Or(kind, learned)
		}
	}
	return kind, nil
}

// parseFeatures reads the value of -features.
func parseFeatures(s string) ([]string, error) {
	if s == auto {
		return []string{auto}, nil
	}
	list, err := setting.List(apply.ParseFeature)(s)
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = f.String()
	}
	return names, err
}

// picksFeatures reports whether the features are picked by validation.
func (x *tuning) picksFeatures() bool { return slices.Equal(x.Features, []string{auto}) }

// besideGraphs reports whether -features asks for numbers next to the encoder's vector, which graphs do not have.
func (x *tuning) besideGraphs() bool {
	return slices.ContainsFunc(x.Features, func(name string) bool { return name != apply.Encoder.String() })
}

// beside returns the numbers that the head sees next to a molecule's vector, and the function that computes
// them.
func (x *tuning) beside() (*model.Numbers, func() records.Vectors, error) {
	names := x.Features
	if x.picksFeatures() {
		names = finetune.EveryFeature(finetune.FeatureSets)
	}
	features, err := apply.ParseFeatures(names)
	if err != nil {
		return nil, nil, cli.Usagef("-features: %w", err)
	}
	features = slices.DeleteFunc(features, func(f apply.Feature) bool { return f == apply.Encoder })
	switch {
	case !x.input.molecules() || len(x.Features) > 0 && len(features) == 0: // a file of neither is refused later
		return nil, nil, nil
	case len(features) == 0:
		features, _ = apply.ParseFeatures(finetune.Molecules.Features)
	}
	numbers, vector, err := apply.Numbers(features)
	if err != nil {
		return nil, nil, cli.Usagef("-features: %w", err)
	}
	numbers.Hidden = finetune.Molecules.Beside
	numbers.Linear = finetune.Molecules.Linear
	numbers.Trees = x.Trees
	return numbers, vector, nil
}

// chooseFeatures picks a set of features, once for all splits, and says so.
func (x *tuning) chooseFeatures(ctx context.Context, stderr io.Writer) error {
	if !x.picksFeatures() {
		return nil
	}
	splits, err := x.splits()
	if err != nil {
		return err
	}
	line, err := x.examples.ChooseFeatures(ctx, finetune.FeatureSets, splits...)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%s: %s\n", x.In, files.Printable(line))
	x.notes = append(x.notes, line)
	return nil
}

// splits returns the splits on which scales and features are compared.
func (x *tuning) splits() (splits []dataset.Split, err error) {
	divisions := x.divisions()
	for _, d := range divisions[:min(len(divisions), mostTried)] {
		s, err := x.split(d)
		if err != nil {
			return nil, err
		}
		splits = append(splits, s)
	}
	return splits, nil
}

// chooseScales decides on the scales of the targets, once for all splits, and says so.
func (x *tuning) chooseScales(ctx context.Context, stderr io.Writer) error {
	if !x.Target.auto {
		return nil
	}
	be, err := x.engine.Open()
	if err != nil {
		return err
	}
	defer be.Close()
	splits, err := x.splits()
	if err != nil {
		return err
	}
	lines, err := x.examples.ChooseScales(ctx, be, x.arch, splits...)
	for _, line := range lines {
		fmt.Fprintf(stderr, "%s: %s\n", x.In, files.Printable(line))
		x.notes = append(x.notes, line)
	}
	return err
}

// mostTried bounds the splits on which scales are compared.
const mostTried = 5

// chooseEncoder sets the architecture of the encoder: that of -model, or a new one.
func (x *tuning) chooseEncoder() error {
	molecules := x.examples.Content == records.Molecules
	if x.source != nil {
		if x.source.Card.SelfLoops && len(x.output.Runs()) == 0 {
			return cli.Usagef("-model %s: %w; give one from train with -graphcl-code=false, or with another -method",
				x.Model, finetune.ErrSelfLoops)
		}
		x.source.Card.SelfLoops = false // as in the fits of earlier versions, whose runs are taken up
		x.arch = x.source.Card.Encoder
	} else {
		x.arch = x.encoder.recipe().Architecture(x.examples.Kind, x.examples.Features)
	}
	x.arch.Dropout = 0
	if molecules {
		x.arch.Dropout = x.Dropout
	}
	// The readout of -model is for frozen vectors.
	x.arch.Readout = ""
	x.arch.Sum = false
	switch x.Readout {
	case readoutAuto:
		x.arch.Sum = molecules && x.examples.Kind == model.Regression
	case readoutMean:
	case readoutSum:
		x.arch.Sum = molecules
	default:
		x.arch.Readout = gnn.Readout(x.Readout)
		if err := x.arch.Check(); err != nil {
			return cli.Usagef("-readout: %w", err)
		}
	}
	return nil
}
