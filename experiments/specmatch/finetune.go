package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/autodiff/nn/files"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/train"
)

// kindAuto is the kind, or the division, that is found out.
const kindAuto = "auto"

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
	Patience int
	recipe   cli.Recipe
	engine   cli.Engine
	output   cli.Output
	flags    *cli.FlagSet

	examples *finetune.Examples
	arch     gnn.Architecture
	dir      *rundir.Dir
}

func setupFinetune(f *cli.FlagSet) cli.Action {
	x := &tuning{
		Kind: kindAuto, Task: finetune.Task{Split: kindAuto}, Readout: readoutAuto, Patience: 20, Dropout: 0.1, Average: 0.99,
		encoder: encoder{Hidden: 64, Layers: 3, Atoms: graph.Hu.Name},
		recipe:  cli.Recipe{Epochs: 100, Batch: 32, LR: 0.001, Seeds: 3},
		flags:   f,
	}
	f.Add(&x.input)
	f.Free("in")
	cli.Var(f, &x.Targets, "target", cli.List(cli.Text), "`columns` or keys A,B to predict; of a set in TUDataset's format the default is class, and of a table\nof MoleculeNet, such as esol.csv or tox21.csv.gz, its targets")
	cli.Var(f, &x.Kind, "kind", cli.OneOf(kindAuto, string(specmatch.Classes), string(specmatch.Binary), string(specmatch.Regression)),
		"`what` the targets are: classes (one target, any texts), binary (0, 1 or empty), regression (numbers or empty);\nauto goes by the values: 0 and 1 only are binary, numbers regression, others classes")
	cli.Var(f, &x.Split, "split", cli.Text, "how to divide the records: random, stratified (every class in each part) or scaffold, into 80, 10 and\n10 %, or the `column` that has train, valid or test; auto is random for numbers and stratified otherwise")
	cli.Var(f, &x.Model, "model", cli.Text, "model `file` whose encoder to start from, or pretrained, the encoder of molecules that is part of\nthis program; none starts from random weights")
	f.Add(&x.recipe)
	cli.Var(f, &x.Patience, "patience", cli.Int(1), "`epochs` without a better one on the validation part after which training ends;\nthe best epoch's weights are kept")
	cli.Var(f, &x.Average, "average", cli.Float(0, 0.9999), "`decay` of the average of the weights over steps, which is evaluated and kept; 0 keeps those of single\nsteps")
	f.Add(&x.encoder)
	cli.Var(f, &x.Dropout, "dropout", cli.Float(0, 0.99), "`probability` of dropout, for molecules")
	cli.Var(f, &x.Readout, "readout", readoutOf(readoutAuto, readoutMean, readoutSum),
		"`how` a vector comes of the nodes': of a molecule by the mean over its atoms, or by their sum, which knows how many\nthere are, or as LAYERS:KINDS, such as all:sum,mean,max or last:max; auto is the sum for numbers of molecules,\nthe mean for their classes, and for graphs the encoder's own way")
	f.Add(&x.engine, &x.output)
	f.Small("for molecules", x.input.molecules, map[string]string{"hidden": "128", "layers": "4"})
	f.Check(func() error {
		if x.recipe.Epochs < 1 {
			return cli.Usagef("-epochs %d: want at least 1", x.recipe.Epochs)
		}
		written := []string{"results.md"}
		for s := range x.recipe.Seeds {
			written = append(written, tunedFile(x.recipe.FirstSeed+s), testFile(x.recipe.FirstSeed+s))
		}
		return apartRun(x.output.Dir, written, x.In, x.Model)
	})
	return x.run
}

func (x *tuning) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := x.read(ctx, stderr); err != nil {
		return err
	}
	for s := range x.recipe.Seeds { // before what takes minutes
		if _, err := x.examples.Divide(uint64(x.recipe.FirstSeed + s)); err != nil {
			return err
		}
	}
	set := x.examples.Set
	fmt.Fprintf(stderr, "%d %s, %s\n", len(set.Graphs), x.examples.Content, x.examples.Summary())
	flags := fmt.Sprintf("-hidden %d -layers %d -batch %d", x.arch.Hidden, x.arch.Layers, x.recipe.Batch)
	if err := train.Fits(x.engine.Backend, x.engine.Precision, x.arch, set.Graphs, x.recipe.Batch); err != nil {
		return cli.Usagef("%s: %w", flags, err)
	}
	var err error
	x.dir, err = rundir.Start(x.flags.Name(), x.flags, []string{set.Name}, x.recipe, x.engine, x.output)
	if err != nil {
		return err
	}
	defer x.dir.Close()
	var list []units.Unit[outcome]
	for s := range x.recipe.Seeds {
		seed := x.recipe.FirstSeed + s
		list = append(list, units.Unit[outcome]{
			Name: fmt.Sprintf("seed=%d", seed), Files: []string{tunedFile(seed), testFile(seed)},
			Run: units.OnEngine(x.engine, func(ctx context.Context, be backend.Backend, status units.Status) (outcome, error) {
				return x.tune(ctx, be, seed, status)
			}),
		})
	}
	plan := units.NewPlan(x.dir)
	results := units.Add(plan, list)
	return plan.Run(ctx, stdout, stderr, func() error { return x.report(stdout, *results) })
}

// outcome is what a seed has given.
type outcome struct {
	finetune.Result
	Test []train.Metrics // of each task, with the weights that are kept
}

// Check implements rundir's.
func (o *outcome) Check() error {
	if o.Test == nil {
		return errors.New("no metrics of the test part")
	}
	return o.Result.Check()
}

// tunedFile and testFile are what a seed leaves in the run directory.
func tunedFile(seed int) string { return fmt.Sprintf("model-%d.safetensors", seed) }
func testFile(seed int) string  { return fmt.Sprintf("test-%d.csv", seed) }

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
		x.Task.Kind = specmatch.Kind(x.Kind)
	}
	task := x.Task
	if task.Split == kindAuto {
		task.Split = ""
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
	if x.Split == finetune.Scaffold && !molecules {
		return cli.Usagef("-split scaffold is for molecules, and %s has %s", x.In, x.examples.Content)
	}
	if x.Model == "" {
		x.arch = x.architecture(x.examples.Features)
	}
	if x.arch.Dropout = 0; molecules {
		x.arch.Dropout = x.Dropout
	}
	x.arch.Readout, x.arch.Sum = "", false // a model's own is for frozen vectors
	switch x.Readout {
	case readoutAuto, readoutMean, readoutSum:
		x.arch.Sum = molecules && (x.Readout == readoutSum || x.Readout == readoutAuto && x.examples.Kind == specmatch.Regression)
	default:
		x.arch.Readout = gnn.Readout(x.Readout)
		if err := x.arch.Check(); err != nil {
			return cli.Usagef("-readout: %w", err)
		}
	}
	return nil
}

// tune fits a model with a seed, and writes it and its predictions.
func (x *tuning) tune(ctx context.Context, be backend.Backend, seed int, status units.Status) (out outcome, err error) {
	s, err := x.examples.Divide(uint64(seed))
	if err != nil {
		return out, err
	}
	var from *specmatch.Trained
	if x.Model != "" {
		m, own, err := openModel(x.Model, x.engine)
		if err != nil {
			return out, err
		}
		defer own.Close()
		from = m
	}
	m, err := x.examples.NewModel(be, x.arch, from, uint64(seed))
	if err != nil {
		return out, err
	}
	l, err := finetune.New(m, x.examples.Data(s),
		finetune.Options{Batch: x.recipe.Batch, Rate: x.recipe.LR, Seed: uint64(seed), Patience: x.Patience, Average: x.Average})
	if err != nil {
		return out, err
	}
	if out.Result, err = x.fit(ctx, l, fmt.Sprintf("seed=%d", seed), status); err != nil {
		return out, err
	}
	if err := m.Save(x.dir.Join(tunedFile(seed))); err != nil {
		return out, err
	}
	p, err := x.examples.Predict(ctx, m, s.Test)
	if err != nil {
		return out, err
	}
	out.Test = p.Score()
	return out, files.Write(x.dir.Join(testFile(seed)), p.Write)
}

// fit fits l, or goes on from the unit's checkpoint, with a row of metrics.csv an epoch.
func (x *tuning) fit(ctx context.Context, l *finetune.Learner, unit string, status units.Status) (finetune.Result, error) {
	options, err := x.dir.Training(unit, x.recipe.Epochs)
	if err != nil {
		return finetune.Result{}, err
	}
	return l.Fit(ctx, options, func(p train.Progress) error {
		status("fine-tuning, epoch %d of %d, loss %.3f", p.Epoch, p.Epochs, p.Metrics["loss"])
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

// writeRejected lists the records that could not be used, if there are any, in
// rejected.csv.
func (x *tuning) writeRejected() error {
	if len(x.examples.Rejected) == 0 {
		return nil
	}
	return files.Write(x.dir.Join("rejected.csv"), func(to io.Writer) error {
		w := csv.NewWriter(to)
		w.Write([]string{"line", "value", "reason"}) // Error has the errors of all
		for _, r := range x.examples.Rejected {
			w.Write([]string{strconv.Itoa(r.Line), r.Value, r.Reason})
		}
		w.Flush()
		return w.Error()
	})
}

// report writes the metrics of the test part, with the weights that are kept: of each task,
// and before them of several yes-or-no tasks the mean over those where both answers occur.
func (x *tuning) report(stdout io.Writer, results []outcome) error {
	e := x.examples
	metrics := finetune.Metrics(e.Kind)
	tasks := len(results[0].Test)
	columns := []string{"epochs", "best"}
	if tasks > 1 {
		columns = append([]string{"target"}, columns...)
	}
	for _, m := range metrics {
		columns = append(columns, m.Title)
	}
	t := table.New("seed", table.Names(columns...)...)
	t.Caption = fmt.Sprintf("%s: predictions of %s on the test part (-split %s), by the weights of the epoch that is best on the validation part.", e.Set.Name, strings.Join(e.Targets, ", "), e.Split)
	if metrics[0].Percent {
		t.Footnotes = []string{"ROC-AUC, AP, accuracy and F1 in %"}
	}
	seconds := 0.0
	for _, r := range results {
		seconds += r.Seconds
	}
	var rows []rundir.Row
	undefined := false
	block := func(target, suffix string, value func(r outcome, metric string) float64) {
		var means []table.Cell
		var lines [][]table.Cell
		for _, r := range results {
			line := []table.Cell{table.Number(float64(len(r.Epochs)), 0), table.Number(float64(r.Best), 0)}
			if tasks > 1 {
				line = append([]table.Cell{table.Text(target)}, line...)
			}
			lines = append(lines, line)
		}
		means = append(means, lines[0][:len(lines[0])-2]...)
		means = append(means, table.Text(""), table.Text(""))
		for _, metric := range metrics {
			var values, defined []float64
			for s, r := range results {
				v := value(r, metric.Name)
				if values = append(values, v); !math.IsNaN(v) {
					defined = append(defined, v)
				}
				lines[s] = append(lines[s], table.Scaled(v, math.NaN(), 3))
			}
			undefined = undefined || len(defined) < len(values)
			mean, std := stat.MeanStdDev(defined, nil)
			means = append(means, table.Scaled(mean, std, 3))
			rows = append(rows, rundir.Row{
				Experiment: x.flags.Name(), Dataset: e.Set.Name, Method: string(e.Kind), Protocol: e.Split, Metric: metric.Name + suffix,
				Mean: mean, Std: std, PerSeed: values, Epochs: x.recipe.Epochs, Backend: x.engine.Name(), Precision: x.engine.Precision.String(),
				Seconds: seconds, GraphsPerSecond: math.NaN(),
			})
		}
		for s, line := range lines {
			t.Add(fmt.Sprint(x.recipe.FirstSeed+s), line...)
		}
		if len(results) > 1 {
			t.Add("mean", means...)
		}
	}
	if tasks > 1 && e.Kind == specmatch.Binary {
		block("mean of tasks", "", func(r outcome, metric string) float64 {
			var values []float64
			for _, m := range r.Test {
				if v := m.Get(metric); !math.IsNaN(v) && !math.IsNaN(m.Get(metrics[0].Name)) {
					values = append(values, v)
				}
			}
			return stat.Mean(values, nil)
		})
	}
	for task := range tasks {
		suffix := finetune.TaskMetric(e.Head, "", task)
		block(strings.TrimSpace(suffix), suffix, func(r outcome, metric string) float64 { return r.Test[task].Get(metric) })
	}
	if undefined {
		t.Footnotes = append(t.Footnotes, "n/a: undefined, since the targets of that test part are all equal or missing; means are over the other seeds")
	}
	if err := errors.Join(x.dir.WriteResults(rows), files.Write(x.dir.Join("results.md"), t.WriteMarkdown), x.writeRejected(), t.WriteText(stdout)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "models, predictions of the test part and metrics: %s%c\n", x.dir.Path, os.PathSeparator)
	return err
}
