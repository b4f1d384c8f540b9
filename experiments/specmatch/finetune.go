package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/finetuning"
	"github.com/specmatch/specmatch/experiments/internal/memory"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/moleculenet"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/internal/files"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/train"
)

// The divisions of -split beside columns, and the kind that is found out.
const (
	splitRandom   = "random"
	splitScaffold = "scaffold"
	kindAuto      = "auto"
)

// The readouts of encoders of molecules.
const (
	readoutAuto = "auto"
	readoutMean = "mean"
	readoutSum  = "sum"
)

// tuning is the command finetune.
type tuning struct {
	input
	encoder
	Targets  []string
	Kind     string
	Split    string
	Model    string
	Dropout  float64
	Average  float64
	Readout  string
	Patience int
	recipe   cli.Recipe
	engine   cli.Engine
	output   cli.Output
	flags    *cli.FlagSet

	table    *records.Table
	arch     gnn.Architecture
	features *graph.Columns // nil for molecules
	targets  []string
	head     finetune.Head
	y        []float64
	dir      *rundir.Dir
}

func setupFinetune(f *cli.FlagSet) action {
	x := &tuning{
		Kind: kindAuto, Split: splitRandom, Readout: readoutAuto, Patience: 20, Dropout: 0.1, Average: 0.99,
		encoder: encoder{Hidden: 64, Layers: 3},
		recipe:  cli.Recipe{Epochs: 100, Batch: 32, LR: 0.001, Seeds: 3},
		flags:   f,
	}
	f.Add(&x.input)
	f.Free("in")
	cli.Var(f, &x.Targets, "target", cli.List(cli.Text), "`columns` or keys A,B to predict; of a set in TUDataset's format the default is class, and of a table\nof MoleculeNet, such as esol.csv or tox21.csv.gz, its targets")
	cli.Var(f, &x.Kind, "kind", cli.OneOf(kindAuto, string(finetune.Classes), string(finetune.Binary), string(finetune.Regression)),
		"`what` the targets are: classes (one target, any texts), binary (0, 1 or empty), regression (numbers or empty);\nauto goes by the values: 0 and 1 only are binary, numbers regression, others classes")
	cli.Var(f, &x.Split, "split", cli.Text, "how to divide the records: random or scaffold, into 80, 10 and 10 %, or the `column` that has\ntrain, valid or test")
	cli.Var(f, &x.Model, "model", cli.Text, "model `file` whose encoder to start from, or pretrained, the encoder of molecules that is part of\nthis program; none starts from random weights")
	f.Add(&x.recipe)
	cli.Var(f, &x.Patience, "patience", cli.Int(1), "`epochs` without a better one on the validation part after which training ends;\nthe best epoch's weights are kept")
	cli.Var(f, &x.Average, "average", cli.Float(0, 0.9999), "`decay` of the average of the weights over steps, which is evaluated and kept; 0 keeps those of single\nsteps")
	f.Add(&x.encoder)
	cli.Var(f, &x.Dropout, "dropout", cli.Float(0, 0.99), "`probability` of dropout, for molecules")
	cli.Var(f, &x.Readout, "readout", cli.OneOf(readoutAuto, readoutMean, readoutSum),
		"`how` a molecule's vector comes of its atoms': their mean, or their sum, which knows how many there are;\nauto is the sum for numbers, and the mean otherwise")
	f.Add(&x.engine, &x.output)
	f.Small("for molecules", x.input.molecules, map[string]string{"hidden": "128", "layers": "4"})
	f.Check(func() error {
		if x.recipe.Epochs < 1 {
			return cli.Usagef("-epochs %d: want at least 1", x.recipe.Epochs)
		}
		return nil
	})
	return x.run
}

func (x *tuning) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := x.read(ctx, stderr); err != nil {
		return err
	}
	if err := x.readTargets(); err != nil {
		return err
	}
	x.chooseReadout()
	for s := range x.recipe.Seeds { // before what takes minutes
		if _, err := x.divide(x.recipe.FirstSeed + s); err != nil {
			return err
		}
	}
	fmt.Fprintf(stderr, "%d %s, targets %s: %s\n", len(x.table.Records), x.table.Content, strings.Join(x.targets, ", "), x.head.Kind)
	flags := fmt.Sprintf("-hidden %d -layers %d -batch %d", x.arch.Hidden, x.arch.Layers, x.recipe.Batch)
	if err := memory.TrainingFits(flags, x.engine, x.arch, x.table.Set.Graphs, x.recipe.Batch); err != nil {
		return err
	}
	var err error
	x.dir, err = rundir.Start(x.flags.Name(), x.flags, []string{x.table.Set.Name}, x.recipe, x.engine, x.output)
	if err != nil {
		return err
	}
	defer x.dir.Close()
	var list []units.Unit[finetuning.Tuned]
	for s := range x.recipe.Seeds {
		seed := x.recipe.FirstSeed + s
		list = append(list, units.Unit[finetuning.Tuned]{
			Name: fmt.Sprintf("seed=%d", seed), Files: []string{tunedFile(seed), testFile(seed)},
			Run: units.OnEngine(x.engine, func(ctx context.Context, be backend.Backend, status units.Status) (finetuning.Tuned, error) {
				return x.tune(ctx, be, seed, status)
			}),
		})
	}
	plan := units.NewPlan(x.dir)
	results := units.Add(plan, list)
	return plan.Run(ctx, stdout, stderr, func() error { return x.report(stdout, *results) })
}

// tunedFile and testFile are what a seed leaves in the run directory.
func tunedFile(seed int) string { return fmt.Sprintf("model-%d.safetensors", seed) }
func testFile(seed int) string  { return fmt.Sprintf("test-%d.csv", seed) }

// read reads the records, with the features that the model wants if there is one.
func (x *tuning) read(ctx context.Context, stderr io.Writer) error {
	if err := x.defaultTargets(ctx); err != nil {
		return err
	}
	var want records.Content
	if x.Model != "" {
		m, be, err := openModel(x.Model, x.engine)
		if err != nil {
			return err
		}
		defer be.Close()
		if want, x.features, err = apply.Reads(m.Card); err != nil {
			return fmt.Errorf("%s: %w", x.Model, err)
		}
		x.arch = m.Card.Encoder
		sum, err := modelSum(ctx, x.Model)
		if err != nil {
			return err
		}
		x.flags.Input("model", sum)
	}
	o, err := x.input.options()
	if err != nil {
		return err
	}
	o.Columns, o.Want = x.features, want
	o.Fields = slices.Clone(x.targets)
	o.Scaffolds = x.Split == splitScaffold
	if x.Split != splitRandom && x.Split != splitScaffold {
		o.Fields = append(o.Fields, x.Split)
	}
	if x.table, err = x.input.table(ctx, x.flags, o, stderr); err != nil {
		return err
	}
	molecules := x.table.Content == records.Molecules
	if x.Split == splitScaffold && !molecules {
		return cli.Usagef("-split scaffold is for molecules, and %s has %s", x.In, x.table.Content)
	}
	if x.Model == "" {
		var columns graph.Columns
		if !molecules {
			if columns, err = x.table.Set.Columns(); err != nil {
				return err
			}
			x.features = &columns
		}
		x.arch = x.architecture(x.table.Content, columns)
	}
	if x.arch.Dropout = 0; molecules {
		x.arch.Dropout = x.Dropout
	}
	return nil
}

// defaultTargets fills the targets, and the column of SMILES, that a data set of the
// literature has.
func (x *tuning) defaultTargets(ctx context.Context) error {
	if x.targets = x.Targets; len(x.targets) > 0 {
		return nil
	}
	format, _ := records.FormatOf(x.In) // "-" and other names have none
	if cmp.Or(x.Format, format) == records.TU {
		x.targets = []string{"class"}
		return nil
	}
	smiles, targets, err := moleculenet.Columns(ctx, x.In)
	if err != nil {
		return cli.Usagef("-target is needed: the column of %s to predict", x.In)
	}
	x.SMILES, x.targets = cmp.Or(x.SMILES, smiles), targets
	return nil
}

// chooseReadout chooses that of molecules, once the kind of the targets is known.
func (x *tuning) chooseReadout() {
	if x.arch.Kind == gnn.KindChemGIN {
		x.arch.Sum = x.Readout == readoutSum || x.Readout == readoutAuto && x.head.Kind == finetune.Regression
	}
}

// readTargets finds the kind of head and fills y.
func (x *tuning) readTargets() error {
	kind := finetune.Kind(x.Kind)
	type value struct {
		r    *records.Record
		k    int // target
		text string
	}
	var values []value
	for _, r := range x.table.Records {
		for k := range x.targets {
			values = append(values, value{r, k, strings.TrimSpace(r.Fields[k])})
		}
	}
	for k, name := range x.targets {
		if !slices.ContainsFunc(values, func(v value) bool { return v.k == k && v.text != "" }) {
			return fmt.Errorf("%s: no record has a value of %s", x.In, name)
		}
	}
	if x.Kind == kindAuto {
		kind = finetune.Binary
		numbers, texts := 0, 0
		for _, v := range values {
			number, err := strconv.ParseFloat(v.text, 64)
			switch {
			case v.text == "" || math.IsNaN(number):
			case err != nil:
				texts++
			default:
				if numbers++; number != 0 && number != 1 {
					kind = finetune.Regression
				}
			}
		}
		if texts > numbers { // a text among numbers is a mistake, which is reported below
			kind = finetune.Classes
		}
		if format, _ := records.FormatOf(x.In); format == records.TU || x.Format == records.TU {
			kind = finetune.Classes
		}
	}
	if kind == finetune.Classes {
		return x.readClasses()
	}
	x.head = finetune.Head{Kind: kind, Outputs: len(x.targets), Tasks: x.targets}
	for _, v := range values {
		y, err := strconv.ParseFloat(v.text, 64)
		switch {
		case v.text == "":
			y = math.NaN()
		case err != nil || math.IsInf(y, 0):
			return fmt.Errorf("%s:%d: column %s: %q is not a number; leave a missing target empty", x.In, v.r.Line, x.targets[v.k], v.text)
		case kind == finetune.Binary && y != 0 && y != 1 && !math.IsNaN(y):
			return fmt.Errorf("%s:%d: column %s: %q; want 0, 1 or nothing (-kind regression takes numbers, -kind classes texts)", x.In, v.r.Line, x.targets[v.k], v.text)
		}
		x.y = append(x.y, y)
	}
	return nil
}

// readClasses fills y with the numbers of classes.
func (x *tuning) readClasses() error {
	if len(x.targets) > 1 {
		return cli.Usagef("-target %s: classes are of one target; several are yes-or-no tasks or numbers", strings.Join(x.targets, ","))
	}
	var texts []string
	for _, r := range x.table.Records {
		texts = append(texts, r.Fields[0])
	}
	classes := records.Classes(texts)
	if n := len(x.table.Records); len(classes) < 2 || len(classes) > n/2 {
		shown := classes[:min(3, len(classes))]
		return fmt.Errorf("%s: column %s has %d different values in %d records, such as %q, which cannot be classes; is the column a name or an id?", x.In, x.targets[0], len(classes), n, shown)
	}
	x.head = finetune.Head{Kind: finetune.Classes, Outputs: len(classes), ClassValues: classes}
	for _, r := range x.table.Records {
		x.y = append(x.y, float64(slices.Index(classes, strings.TrimSpace(r.Fields[0])))) // -1 is in no part
	}
	return nil
}

// purposeSplit is of the random divisions, and purposeHead of the head's weights.
const (
	purposeSplit random.Purpose = 1<<32 + 16 + iota
	purposeHead
)

// divide returns the parts of a seed, of records that have a target.
func (x *tuning) divide(seed int) (s dataset.Split, err error) {
	var labelled []int
	for i := range x.table.Records {
		n := len(x.targets)
		if slices.ContainsFunc(x.y[i*n:(i+1)*n], func(y float64) bool { return y >= 0 || x.head.Kind == finetune.Regression && !math.IsNaN(y) }) {
			labelled = append(labelled, i)
		}
	}
	switch x.Split {
	case splitRandom:
		s = dataset.RandomSplit(len(labelled), random.Stream(uint64(seed), purposeSplit, 0, 0))
	case splitScaffold:
		scaffolds := make([]string, len(labelled))
		for k, i := range labelled {
			scaffolds[k] = x.table.Records[i].Scaffold
		}
		if s, err = dataset.ScaffoldSplit(scaffolds, 0.8, 0.1); err != nil {
			return s, err
		}
	default:
		for k, i := range labelled {
			r := x.table.Records[i]
			switch v := strings.TrimSpace(r.Fields[len(x.targets)]); v {
			case "train":
				s.Train = append(s.Train, k)
			case "valid":
				s.Valid = append(s.Valid, k)
			case "test":
				s.Test = append(s.Test, k)
			default:
				return s, fmt.Errorf("%s:%d: column %s: %q; want train, valid or test", x.In, r.Line, x.Split, v)
			}
		}
	}
	for _, part := range []*[]int{&s.Train, &s.Valid, &s.Test} {
		if len(*part) == 0 {
			return s, fmt.Errorf("%s: -split %s divides its %d records with a target into %d to train on, %d to validate and %d to test; want some in every part",
				x.In, x.Split, len(labelled), len(s.Train), len(s.Valid), len(s.Test))
		}
	}
	for _, part := range []*[]int{&s.Train, &s.Valid, &s.Test} {
		for k, i := range *part {
			(*part)[k] = labelled[i]
		}
	}
	slices.Sort(s.Test) // the order of predictions
	return s, nil
}

// tune fits a model with a seed, and writes it and its predictions.
func (x *tuning) tune(ctx context.Context, be backend.Backend, seed int, status units.Status) (out finetuning.Tuned, err error) {
	s, err := x.divide(seed)
	if err != nil {
		return out, err
	}
	p, err := x.predictor(be, seed)
	if err != nil {
		return out, err
	}
	l, err := finetune.New(p, finetune.Data{Graphs: x.table.Set.Graphs, Y: x.y, Train: s.Train, Valid: s.Valid, Test: s.Test},
		finetune.Options{Batch: x.recipe.Batch, Rate: x.recipe.LR, Seed: uint64(seed), Patience: x.Patience, Average: x.Average})
	if err != nil {
		return out, err
	}
	if out, err = finetuning.Do(ctx, x.dir, fmt.Sprintf("seed=%d", seed), l, x.recipe.Epochs, status); err != nil {
		return out, err
	}
	how := "fine-tuned"
	if x.Model == "" {
		how = "trained with labels"
	}
	m := &specmatch.Trained{Encoder: p.Encoder, Head: p.Output, Card: specmatch.Card{
		Features: x.features, Head: &p.Head,
		Provenance: specmatch.Provenance{
			Method: how, Seed: seed, Epochs: out.Best, Data: specmatch.Sources(x.table.Set.Name, x.table.Set.Sums),
			Options: map[string]string{
				"split": x.Split, "batch": fmt.Sprint(x.recipe.Batch), "lr": fmt.Sprint(x.recipe.LR),
				"dropout": fmt.Sprint(x.arch.Dropout), "patience": fmt.Sprint(x.Patience), "average": fmt.Sprint(x.Average),
			},
		},
	}}
	if err := m.Save(x.dir.Join(tunedFile(seed))); err != nil {
		return out, err
	}
	return out, x.writeTest(ctx, m, s.Test, x.dir.Join(testFile(seed)))
}

// predictor returns what is fitted, with the weights that it starts from.
func (x *tuning) predictor(be backend.Backend, seed int) (*finetune.Predictor, error) {
	rng := random.Stream(uint64(seed), purposeHead, 0, 0)
	e, err := x.arch.New(be, rng)
	if err != nil {
		return nil, err
	}
	if x.Model != "" {
		m, from, err := openModel(x.Model, x.engine)
		if err != nil {
			return nil, err
		}
		defer from.Close()
		if err := specmatch.CopyEncoder(e, m.Encoder); err != nil {
			return nil, fmt.Errorf("%s: %w", x.Model, err)
		}
	}
	return finetune.NewPredictor(be, e, x.head, rng), nil
}

// writeTest writes the predictions of a model for records, as predict does, and beside
// them the targets as they stand in the file.
func (x *tuning) writeTest(ctx context.Context, m *specmatch.Trained, test []int, path string) error {
	var graphs []*graph.Graph
	var batch []*records.Record
	for _, i := range test {
		batch = append(batch, x.table.Records[i])
		graphs = append(graphs, x.table.Set.Graphs[i])
	}
	y, err := m.Predict(ctx, graphs)
	if err != nil {
		return err
	}
	header := append([]string{"id"}, m.Card.Head.Columns()...)
	for _, target := range x.targets {
		header = append(header, target+"_observed")
	}
	return files.Write(path, func(f io.Writer) error {
		w := csv.NewWriter(f)
		w.Write(header)
		for k, r := range batch {
			line := []string{r.ID}
			for _, v := range y[k*m.Card.Head.Outputs : (k+1)*m.Card.Head.Outputs] {
				line = append(line, strconv.FormatFloat(v, 'g', -1, 32))
			}
			w.Write(append(line, r.Fields[:len(x.targets)]...))
		}
		w.Flush()
		return w.Error()
	})
}

// report writes the metrics of the test part, with the weights that are kept.
func (x *tuning) report(stdout io.Writer, results []finetuning.Tuned) error {
	names := map[finetune.Kind][]string{
		finetune.Classes: {"accuracy", "loss"}, finetune.Binary: {"roc_auc"}, finetune.Regression: {"rmse", "mae", "r2"},
	}[x.head.Kind]
	columns := []string{"epochs", "best"}
	for _, name := range names {
		title := map[string]string{"roc_auc": "ROC-AUC", "rmse": "RMSE", "mae": "MAE", "r2": "R²"}[name]
		columns = append(columns, cmp.Or(title, name))
	}
	t := table.New("seed", table.Names(columns...)...)
	t.Caption = fmt.Sprintf("%s: predictions of %s on the test part (-split %s), by the weights of the epoch that is best on the validation part.", x.table.Set.Name, strings.Join(x.targets, ", "), x.Split)
	if x.head.Kind != finetune.Regression {
		t.Footnotes = []string{"accuracy and ROC-AUC in %"}
	}
	values := make([][]float64, len(names))
	for s, r := range results {
		cells := []table.Cell{table.Number(float64(len(r.Epochs)), 0), table.Number(float64(r.Best), 0)}
		for k, name := range names {
			v := kept(r).Get("test_" + name)
			values[k] = append(values[k], v)
			cells = append(cells, table.Number(v, 3))
		}
		t.Add(fmt.Sprint(x.recipe.FirstSeed+s), cells...)
	}
	var rows []rundir.Row
	mean := []table.Cell{table.Text(""), table.Text("")}
	for k, name := range names {
		m, s := stat.MeanStdDev(values[k], nil)
		mean = append(mean, table.MeanStd(m, s, 3))
		rows = append(rows, rundir.Row{
			Experiment: x.flags.Name(), Dataset: x.table.Set.Name, Method: string(x.head.Kind), Protocol: x.Split, Metric: name,
			Mean: m, Std: s, PerSeed: values[k], Epochs: x.recipe.Epochs, Backend: x.engine.Name(), Precision: x.engine.Precision.String(),
			Seconds: seconds(results), GraphsPerSecond: math.NaN(),
		})
	}
	if len(results) > 1 {
		t.Add("mean", mean...)
	}
	if err := errors.Join(x.dir.WriteResults(rows), files.Write(x.dir.Join("results.md"), t.WriteMarkdown), t.WriteText(stdout)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "models, predictions of the test part and metrics: %s%c\n", x.dir.Path, os.PathSeparator)
	return err
}

// kept returns the metrics of the epoch whose weights are kept.
func kept(r finetuning.Tuned) train.Metrics { return r.Epochs[r.Best-1] }

func seconds(results []finetuning.Tuned) (s float64) {
	for _, r := range results {
		s += r.Seconds
	}
	return s
}
