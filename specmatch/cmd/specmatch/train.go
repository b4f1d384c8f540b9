package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/parquet"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/dataset/tasks"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Values of -readout besides LAYERS:KINDS.
const (
	readoutAuto = "auto"
	readoutOwn  = "own"
	readoutMean = "mean"
	readoutSum  = "sum"
)

// readoutOf returns a parser that accepts a readout, or one of the names.
func readoutOf(names ...string) func(string) (string, error) {
	return func(s string) (string, error) {
		if slices.Contains(names, s) {
			return s, nil
		}
		r, err := gnn.ParseReadout(s)
		return string(r), err
	}
}

type encoder struct {
	Hidden, Layers int
	Atoms          string               // features of atoms and bonds
	NodeFeatures   dataset.NodeFeatures // of graphs; "" is auto
}

func (e *encoder) Register(f *cli.FlagSet) {
	cli.Var(f, &e.Hidden, "hidden", setting.Int(1), "hidden `width` of a new encoder")
	cli.Var(f, &e.Layers, "layers", setting.Int(1), "`number` of layers of a new encoder")
	cli.Var(f, &e.Atoms, "atoms", setting.OneOf(feature.Names()...),
		"atom and bond `features` of a new encoder for molecules: "+strings.Join(feature.Names(), " or "))
	e.NodeFeatures = cmp.Or(e.NodeFeatures, dataset.FeaturesAuto)
	cli.NodeFeatures(f, &e.NodeFeatures, []string{"auto", "degrees"},
		"node `features` of a new encoder for graphs: auto (the labels and attributes of the file) or\n"+
			"degrees (where the file has neither)")
}

// checkFeatures returns an error if -node-features is given and does not suit the records.
func (e *encoder) checkFeatures(f *cli.FlagSet, t *records.Table) error {
	degrees := e.NodeFeatures == dataset.FeaturesDegrees && f.Given("node-features")
	if degrees && t.Content == records.Molecules {
		return cli.Usagef("-node-features degrees is for graphs; -atoms is for molecules")
	}
	return nil
}

// recipe returns the recipe of a new encoder.
func (e *encoder) recipe() finetune.Recipe {
	return finetune.Recipe{Atoms: e.Atoms, Hidden: e.Hidden, Layers: e.Layers}
}

// methodNames returns the names of the methods for graphs or molecules.
func methodNames() []string {
	names := method.Names(method.Unsupervised)
	for _, name := range method.Names(method.Transfer) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func setupTrain(f *cli.FlagSet) cli.Action {
	x := &trainCommand{
		run: training.Run{
			Method: method.SpecMatch,
			Recipe: cli.Recipe{Epochs: 20, Batch: 128, LR: 0.01},
			Settings: training.Settings{
				// The experiments compare with GraphCL's code; users want vectors that no numbering of nodes changes.
				Options:    method.Options{method.GraphCLCode.Name(): false},
				OwnRecipes: true,
			},
		},
		encoder: encoder{Hidden: 32, Layers: 3, Atoms: feature.Hu.Name},
		Readout: readoutAuto,
		flags:   f,
	}
	r := &x.run
	f.Common("in", "out", "method", "epochs", "hidden", "layers", "atoms", "smiles-column",
		"readout", "batch", "lr", "seed")
	f.Arguments("in", "out")
	f.Section("Input", func() { f.Add(&x.input) })
	f.Section("Labels", func() { x.registerLabels(f) })
	f.Free("in", "targets")
	f.Section("Encoder and training", func() { x.registerTraining(f) })
	f.Section("Settings of methods", func() {
		r.Settings.Register(f, method.Unsupervised, methodNames(), func() []string {
			return []string{r.Method}
		})
		r.Settings.RegisterRecipes(f, method.Unsupervised)
	})
	f.Section("Engine and output", func() { f.Add(&x.engine, &x.output) })
	molecules := map[string]string{
		"hidden": "300",
		"layers": "5",
		"batch":  "256",
		"lr":     "0.001",
		"policy": augment.Random2,
	}
	for name, value := range method.Differences(method.Unsupervised, method.Transfer) {
		molecules[name] = value
	}
	f.Small("for molecules", x.input.molecules, molecules)
	f.Check(func() error {
		return checkRunOutputs(x.output.Dir, []string{modelFile}, x.In)
	})
	return x.train
}

// registerTraining adds the flags of the encoder and of its training.
func (x *trainCommand) registerTraining(f *cli.FlagSet) {
	r := &x.run
	cli.Var(f, &r.Method, "method", setting.OneOf(methodNames()...), "training `method`")
	r.Recipe.RegisterTraining(f)
	cli.Var(f, &r.Seed, "seed", setting.Int(0), "random `seed` of weights, batches and views")
	f.Add(&x.encoder)
	cli.Var(f, &x.Readout, "readout", readoutOf(readoutAuto),
		"`readout` LAYERS:KINDS for training and embedding, such as all:sum,mean,max or last:sum;\n"+
			"auto uses the method's readout, or else the encoder's")
}

// registerLabels adds the flags of the tables of labels.
func (x *trainCommand) registerLabels(f *cli.FlagSet) {
	cli.Var(f, &x.Targets, "targets", setting.List(setting.Text),
		"tables A,B of labels for -method assays, with gaps: a column of the molecules and one a task, or long\n"+
			"form with the columns task and value; molecules are known by -id, or else by the text of their SMILES")
	cli.Var(f, &x.Tasks, "tasks", setting.List(setting.Text),
		"`names` of the tasks of -targets; by default all columns, or all tasks of the long form")
	f.Check(func() error {
		m, err := method.Get(x.run.Method)
		switch {
		case err != nil:
			return err
		case m.Labels && x.Targets == nil:
			return cli.Usagef("-method %s needs -targets, a table of labels", m.Name)
		case !m.Labels && x.Targets != nil:
			return cli.Usagef("-targets has no effect on %s; -method assays learns labels", m.Name)
		case x.Tasks != nil && len(x.Targets) != 1:
			return cli.Usagef("-tasks names tasks of one table of -targets")
		}
		return nil
	})
}

// setEncoder sets the data set of the run, the regime and the encoder.
func (x *trainCommand) setEncoder(t *records.Table) error {
	r := &x.run
	r.Dataset = t.Set
	r.Regime = method.Transfer
	r.File = modelFile
	var features *graph.Columns
	if t.Content == records.Graphs {
		columns, err := t.Set.Columns()
		if err != nil {
			return err
		}
		r.Regime = method.Unsupervised
		features = &columns
	}
	if names := method.Names(r.Regime); !slices.Contains(names, r.Method) {
		return cli.Usagef("-method %s is not for %s: want one of %v", r.Method, t.Content, names)
	}
	if n := len(t.Records); n < 2 {
		return cli.Usagef("-in %s: %d usable records; training needs at least 2", x.In, n)
	}
	if t.Content == records.Molecules && x.flags.Lookup("self-loops").Value.String() == "true" {
		return cli.Usagef("-self-loops is for graphs; encoders of molecules have their own")
	}
	r.Encoder = x.encoder.recipe().Architecture("", features) // without a kind of targets
	if x.Readout == readoutAuto {
		return nil
	}
	r.Encoder.Readout = gnn.Readout(x.Readout)
	if err := r.Encoder.Check(); err != nil {
		return cli.Usagef("-readout: %w", err)
	}
	return nil
}

// readLabels reads the tables of -targets.
func (x *trainCommand) readLabels(ctx context.Context, t *records.Table, stderr io.Writer) error {
	keys := make([]string, len(t.Records))
	for i, rec := range t.Records {
		keys[i] = rec.SMILES
		if x.ID != "" {
			keys[i] = rec.ID
		}
	}
	tables := sha256.New()
	for _, path := range x.Targets {
		o := tasks.Options{Key: x.ID, Keys: keys, Tasks: x.Tasks}
		if strings.HasSuffix(strings.ToLower(path), "."+formatParquet) {
			text, err := parquet.Open(path)
			if err != nil {
				return err
			}
			defer text.Close()
			o.Input = text
		}
		labels, err := tasks.Read(ctx, path, o)
		if err != nil {
			return err
		}
		sum, err := dataset.SumFile(ctx, path)
		if err != nil {
			return err
		}
		x.flags.Input(filepath.Base(path), sum)
		fmt.Fprintln(tables, sum)
		fmt.Fprintf(stderr, "%s: %d labels of %d tasks for %d of %d molecules; rows of other molecules: %d\n",
			path, labels.Count(), len(labels.Names), labels.Labelled(), len(keys), labels.Unknown)
		x.run.Labels = append(x.run.Labels, labels)
	}
	if x.Targets != nil {
		// One sum for all, since which tables there are, and their order, matter as much as what they hold.
		x.flags.Input("targets", fmt.Sprintf("%x", tables.Sum(nil)))
	}
	return nil
}

type trainCommand struct {
	input
	encoder
	Readout string
	Targets []string // tables of labels
	Tasks   []string // of the only table
	run     training.Run
	engine  cli.Engine
	output  run.Output
	flags   *cli.FlagSet
}

const modelFile = "model.safetensors"

func (x *trainCommand) train(ctx context.Context, stdout, stderr io.Writer) error {
	if err := x.input.checkFile(); err != nil {
		return err
	}
	o, err := x.input.options()
	if err != nil {
		return err
	}
	o.Atoms = x.Atoms
	o.Degrees = x.NodeFeatures == dataset.FeaturesDegrees
	if err := x.input.hashStream(&o); err != nil {
		return err
	}
	t, err := records.ReadAll(ctx, x.In, o)
	if err != nil {
		return err
	}
	sum, err := x.input.sum(ctx, x.flags, "in")
	if err != nil {
		return err
	}
	x.input.describeTable(t, sum, stderr)
	if err := x.checkFeatures(x.flags, t); err != nil {
		return err
	}
	r := &x.run
	if err := x.setEncoder(t); err != nil {
		return err
	}
	if err := x.readLabels(ctx, t, stderr); err != nil {
		return err
	}
	flags := fmt.Sprintf("-hidden %d -layers %d -batch %d", x.Hidden, x.Layers, r.Recipe.Batch)
	if err := train.Fits(
		x.engine.Backend, x.engine.Precision, r.Architecture(), t.Set.Graphs, r.Recipe.Batch,
	); err != nil {
		return cli.Usagef("%s: %w", flags, err)
	}
	dir, err := run.Start(
		x.flags.Name(),
		x.flags,
		[]string{t.Set.Name},
		cli.Recipe{FirstSeed: r.Seed, Seeds: 1},
		x.engine,
		x.output,
	)
	if err != nil {
		return err
	}
	defer dir.Close()
	plan := run.NewPlan(dir)
	run.Add(plan, []run.Unit[training.Trained]{r.Unit(r.Method, x.engine, dir)})
	return plan.Run(ctx, stdout, stderr, func() error {
		model := dir.Join(modelFile)
		_, err := fmt.Fprintf(stdout, "%s: %s trained on %d %s by %s\n"+
			"next: specmatch embed -in FILE -model %[6]s -out vectors.npy, or finetune -model %[6]s\n",
			model, r.Encoder.Kind, len(t.Records), t.Content, r.Method, cli.ShellQuote(model))
		return err
	})
}
