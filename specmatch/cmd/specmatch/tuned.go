package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor/files"
)

// Files that a run leaves besides those of its units.
const (
	resultsFile  = "results.md"
	rejectedFile = "rejected.csv"
)

// The methods of rows that are not of a single model.
const (
	baseline  = "baseline"
	forested  = "forest"   // a random forest on the features
	ensembled = "together" // the mean of the models' predictions
)

// level is the probability of the prediction intervals and sets whose coverage is reported.
const level = 0.9

// report writes the metrics of the test sets, the confusion matrix, the cuts, the coverage and the learning curve: to
// results.json, results.md and stdout.
func (x *tuning) report(stdout io.Writer, results []outcome, points []point) error {
	scores, err := x.scores(results)
	if err != nil {
		return err
	}
	tables := []*table.Table{scores.table}
	if valid := x.validation(results); valid.Rows() > 0 {
		tables[0] = valid // without a test set, all scores are undefined
	}
	for _, t := range []*table.Table{x.confusion(results, scores.confusion), x.cuts(results), x.coverage(results)} {
		if t.Rows() > 0 {
			tables = append(tables, t)
		}
	}
	if x.Curve > 0 {
		curve, err := x.learningCurve(results, points)
		if err != nil {
			return err
		}
		tables = append(tables, curve)
	}
	write := func(w io.Writer, format func(*table.Table, io.Writer) error) (err error) {
		for i, t := range tables {
			if i > 0 {
				_, err = fmt.Fprintln(w)
			}
			err = errors.Join(err, format(t, w))
		}
		return err
	}
	err = errors.Join(
		x.dir.WriteResults(scores.rows),
		files.Write(x.dir.Join(resultsFile), func(w io.Writer) error {
			return write(w, (*table.Table).WriteMarkdown)
		}),
		x.writeRejected(),
		write(stdout, (*table.Table).WriteText),
	)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "models, test predictions and metrics: %s%c\n%s",
		x.dir.Path, os.PathSeparator, nextPredict(x.dir.Path))
	return err
}

// nextPredict returns the line with the command that predicts with models, by their path as an element of -model.
func nextPredict(path string) string {
	return fmt.Sprintf("next: specmatch predict -in FILE -model %s -out predictions.csv\n",
		cli.ShellQuote(setting.JoinList([]string{path})))
}

// writeRejected lists the records that could not be used, if there are any.
func (x *tuning) writeRejected() error {
	if len(x.examples.Rejected) == 0 {
		return nil
	}
	return files.Write(x.dir.Join(rejectedFile), func(file io.Writer) error {
		w := csv.NewWriter(file)
		w.Write([]string{"line", "value", "reason"}) // w.Error returns the first error
		for _, r := range x.examples.Rejected {
			w.Write([]string{strconv.Itoa(r.Line), r.Value, r.Reason})
		}
		w.Flush()
		return w.Error()
	})
}

// scores are the metrics of the test sets, as a table and as the rows of results.json.
type scores struct {
	x         *tuning
	results   []outcome
	metrics   []finetune.Metric
	ensemble  []train.Metrics // of the mean prediction; nil if there is none
	confusion [][][]float64   // of the mean prediction
	table     *table.Table
	rows      []run.Row
	undefined bool // a metric of a model is undefined
}

// scores evaluates each task and, for several binary tasks, first their mean over the tasks with
// both answers.
func (x *tuning) scores(results []outcome) (*scores, error) {
	examples := x.examples
	ensemble, confusion, err := x.ensemble()
	if err != nil {
		return nil, err
	}
	s := &scores{
		x:         x,
		results:   results,
		metrics:   finetune.Metrics(examples.Head),
		ensemble:  ensemble,
		confusion: confusion,
	}
	s.table = s.newTable()
	tasks := len(results[0].Test)
	if tasks > 1 && examples.Kind == model.Binary {
		s.add("mean of tasks", "", s.meanOfTasks)
	}
	for task := range tasks {
		suffix := finetune.TaskMetric(examples.Head, "", task)
		s.add(strings.TrimSpace(suffix), suffix, func(tasks []train.Metrics, metric string) float64 {
			return tasks[task].Get(metric)
		})
	}
	if s.undefined {
		units := "seeds"
		if x.Folds > 0 {
			units = "folds"
		}
		s.table.Footnotes = append(
			s.table.Footnotes,
			"n/a: undefined, because all targets of the test set are equal or missing; means skip such "+units,
		)
	}
	return s, nil
}

// newTable returns an empty table of the metrics.
func (s *scores) newTable() *table.Table {
	x := s.x
	columns := []string{"epochs", "best"}
	if len(s.results[0].Test) > 1 {
		columns = append([]string{"target"}, columns...)
	}
	for _, m := range s.metrics {
		columns = append(columns, m.Title)
	}
	corner := "seed"
	if x.Folds > 0 {
		corner = "seed, fold"
	}
	forestNote := ""
	if s.results[0].Forest != nil {
		forestNote = "; the forest is a random forest on the descriptors and fingerprints"
	}
	constant := "class frequencies"
	if x.examples.Kind == model.Regression {
		constant = "mean"
	}
	t := table.New(corner, table.Names(columns...)...)
	t.Caption = fmt.Sprintf("%s: predictions of %s on the test set (%s), with the weights of the epoch that is best "+
		"on the validation set; the baseline predicts the %s of the training set%s.",
		x.examples.Set.Name, strings.Join(x.examples.Targets, ", "), x.splitFlags(), constant, forestNote)
	t.Footnotes = x.footnotes(s.metrics)
	return t
}

// footnotes returns those of a table of metrics.
func (x *tuning) footnotes(metrics []finetune.Metric) (notes []string) {
	if metrics[0].Percent {
		notes = []string{"ROC-AUC, AP, accuracy and F1 in %"}
	}
	return append(notes, x.notes...)
}

// validation returns a table of the metrics on the validation sets. It is empty unless there is no test set.
func (x *tuning) validation(results []outcome) *table.Table {
	metrics := finetune.Metrics(x.examples.Head)
	var titles []string
	for _, m := range metrics {
		titles = append(titles, m.Title)
	}
	t := table.New("target", table.Names(titles...)...)
	t.Caption = "Predictions of the validation set, because nothing is held out to test on (-test none). " +
		"The fit has chosen by it: expect larger errors for new records"
	t.Footnotes = x.footnotes(metrics)
	earlier := func(r outcome) bool { return r.Valid == nil } // a unit of an earlier version, or a test set
	if slices.ContainsFunc(results, earlier) {
		return t
	}
	for task := range results[0].Valid {
		var cells []table.Cell
		for _, m := range metrics {
			var values []float64
			for _, r := range results {
				values = append(values, r.Valid[task].Get(m.Name))
			}
			cells = append(cells, meanCell(values))
		}
		t.Add(x.taskTitle(task), cells...)
	}
	return t
}

// taskTitle returns the name of a task in tables.
func (x *tuning) taskTitle(task int) string {
	name := strings.TrimSpace(finetune.TaskMetric(x.examples.Head, "", task))
	return cmp.Or(name, strings.Join(x.examples.Targets, ", "))
}

// splitFlags returns the flags that split the records.
func (x *tuning) splitFlags() string {
	switch {
	case x.Folds > 0:
		return fmt.Sprintf("-folds %d -split %s", x.Folds, x.examples.Split)
	case x.Test != "":
		return "-test " + x.Test
	}
	return "-split " + x.examples.Split
}

// protocol says how the records are split, so that only results on the same split are compared: with the names of
// files, whose folders differ between machines.
func (x *tuning) protocol() string {
	var parts []string
	if x.Valid != "" {
		parts = append(parts, "-valid "+filepath.Base(x.Valid))
	}
	switch {
	case x.Test != "":
		parts = append(parts, "-test "+filepath.Base(x.Test))
	case x.Valid != "":
		parts = append(parts, "-split "+x.examples.Split)
	}
	return cmp.Or(strings.Join(parts, " "), x.examples.Split)
}

// meanOfTasks returns the mean of a metric over the tasks whose first metric is defined.
func (s *scores) meanOfTasks(tasks []train.Metrics, metric string) float64 {
	var values []float64
	for _, m := range tasks {
		if v := m.Get(metric); !math.IsNaN(v) && !math.IsNaN(m.Get(s.metrics[0].Name)) {
			values = append(values, v)
		}
	}
	return stat.Mean(values, nil)
}

// add appends a line for each fit, for their mean, for the ensemble and for the baseline. value returns a
// metric of a fit.
func (s *scores) add(target, suffix string, value func(tasks []train.Metrics, metric string) float64) {
	var start []table.Cell // of a line
	if len(s.results[0].Test) > 1 {
		start = append(start, table.Text(target))
	}
	lines := make([][]table.Cell, len(s.results))
	for i, r := range s.results {
		lines[i] = append(slices.Clone(start),
			table.Number(float64(len(r.Epochs)), 0), table.Number(float64(r.Best), 0))
	}
	noEpochs := make([]table.Cell, 2)
	means := append(slices.Clone(start), noEpochs...)
	baselines := slices.Clone(means)
	forests := slices.Clone(means)
	hasForest := !slices.ContainsFunc(s.results, func(r outcome) bool { return r.Forest == nil })
	ensembles := slices.Clone(means)
	for _, metric := range s.metrics {
		var values, constants, trees []float64
		for i, r := range s.results {
			v := value(r.Test, metric.Name)
			values = append(values, v)
			constants = append(constants, value(r.Baseline, metric.Name))
			if hasForest {
				trees = append(trees, value(r.Forest, metric.Name))
			}
			lines[i] = append(lines[i], table.Scaled(v, math.NaN(), 3))
			s.undefined = s.undefined || math.IsNaN(v)
		}
		name := metric.Name + suffix
		means = append(means, s.addRow(string(s.x.examples.Kind), name, values))
		baselines = append(baselines, s.addRow(baseline, name, constants))
		if hasForest {
			forests = append(forests, s.addRow(forested, name, trees))
		}
		if s.ensemble != nil {
			ensembles = append(ensembles, s.addRow(ensembled, name, []float64{value(s.ensemble, metric.Name)}))
		}
	}
	for i, d := range s.x.divisions() {
		s.table.Add(d.format("%d", ", %d"), lines[i]...)
	}
	if len(s.results) > 1 {
		s.table.Add("mean", means...)
	}
	if s.ensemble != nil {
		s.table.Add(ensembled, ensembles...)
	}
	if hasForest {
		s.table.Add(forested, forests...)
	}
	s.table.Add(baseline, baselines...)
}

// addRow appends a row of results.json, and returns its mean and deviation as a cell. A baseline without any
// defined value has no row.
func (s *scores) addRow(method, metric string, values []float64) table.Cell {
	mean, std := meanStdDev(values)
	if method == baseline && math.IsNaN(mean) {
		return table.Scaled(mean, std, 3)
	}
	x := s.x
	row := run.Row{
		Experiment:      x.flags.Name(),
		Dataset:         x.examples.Set.Name,
		Method:          method,
		Protocol:        x.protocol(),
		Metric:          metric,
		Mean:            mean,
		Std:             std,
		PerSeed:         values,
		Epochs:          x.recipe.Epochs,
		Backend:         x.engine.Name(),
		Precision:       x.engine.Precision.String(),
		GraphsPerSecond: math.NaN(),
	}
	for _, r := range s.results {
		row.Seconds += r.Seconds
	}
	if x.Folds > 0 {
		for _, d := range x.divisions() {
			row.Seeds = append(row.Seeds, d.number(x.Folds)) // folds in place of seeds
		}
	}
	s.rows = append(s.rows, row)
	return table.Scaled(mean, std, 3)
}

// ensemble returns the metrics and the confusion matrices of the mean of all models' predictions, or nil unless
// they share a test set.
func (x *tuning) ensemble() (metrics []train.Metrics, confusion [][][]float64, err error) {
	var split dataset.Split
	var tables []io.Reader
	for i, d := range x.divisions() {
		s, err := x.split(d)
		if err != nil {
			return nil, nil, err
		}
		if i > 0 && !slices.Equal(s.Test, split.Test) {
			return nil, nil, nil
		}
		split = s
		text, err := os.ReadFile(x.dir.Join(d.testFile()))
		if errors.Is(err, fs.ErrNotExist) { // in a run that is collected from shards
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		tables = append(tables, bytes.NewReader(text))
	}
	if len(tables) < 2 {
		return nil, nil, nil
	}
	predictions, err := x.examples.ReadMean(split.Test, tables...)
	if err != nil {
		return nil, nil, err
	}
	metrics, _, confusion = predictions.Score(split.Train)
	return metrics, confusion, nil
}

// coverage returns a table of how often prediction intervals and sets hold the observed value.
func (x *tuning) coverage(results []outcome) *table.Table {
	size := "width"
	if x.examples.Kind != model.Regression {
		size = "answers"
	}
	t := table.New("target", table.Names("coverage", size)...)
	t.Caption = fmt.Sprintf("Coverage of the %g %% prediction intervals or sets (predict -level) in "+
		"%%, and their size; both come from the errors on the validation set", 100*level)
	for task := range results[0].Test {
		var percents, sizes []float64
		for _, r := range results {
			if r.Coverage != nil && x.hasScore(r.Test[task]) {
				percents = append(percents, r.Coverage[task].Percent)
				sizes = append(sizes, r.Coverage[task].Size)
			}
		}
		if percents == nil {
			continue
		}
		t.Add(x.taskTitle(task), meanCell(percents), meanCell(sizes))
	}
	return t
}

// hasScore reports whether any metric of a task is defined. None is if no test record has the target.
func (x *tuning) hasScore(task train.Metrics) bool {
	return slices.ContainsFunc(finetune.Metrics(x.examples.Head), func(m finetune.Metric) bool {
		return !math.IsNaN(task.Get(m.Name))
	})
}

// cuts returns a table of the cuts of the probabilities of binary tasks, and of their rates on the test set.
func (x *tuning) cuts(results []outcome) *table.Table {
	t := table.New("target", table.Names("cut", "sensitivity", "specificity", "balanced accuracy")...)
	t.Caption = "Answers from a probability on (predict -answers), which has the best balanced accuracy on the " +
		"validation set: the rates on the test set in %"
	earlier := func(r outcome) bool { return r.Cuts == nil } // a unit of an earlier version, or no binary tasks
	if slices.ContainsFunc(results, earlier) {
		return t
	}
	for task := range results[0].Cuts {
		var probabilities, sensitivities, specificities, balanced []float64
		for _, r := range results {
			cut := r.Cuts[task]
			counts := r.Confusion[task] // by the observed and the predicted answer; nil without test records
			isTested := func(answer int) bool {
				return counts != nil && floats.Sum(counts[answer]) > 0
			}
			if !isTested(0) {
				cut.Specificity = math.NaN()
			}
			if !isTested(1) {
				cut.Sensitivity = math.NaN()
			}
			probabilities = append(probabilities, cut.Probability)
			sensitivities = append(sensitivities, cut.Sensitivity)
			specificities = append(specificities, cut.Specificity)
			balanced = append(balanced, (cut.Sensitivity+cut.Specificity)/2)
		}
		t.Add(x.examples.Targets[task],
			meanCell(probabilities), meanCell(sensitivities), meanCell(specificities), meanCell(balanced))
	}
	return t
}

// meanStdDev returns the mean and the standard deviation of the values that are defined, those that are not NaN.
func meanStdDev(values []float64) (mean, std float64) {
	return stat.MeanStdDev(slices.DeleteFunc(slices.Clone(values), math.IsNaN), nil)
}

// meanCell returns the mean and the standard deviation of the defined values as a cell.
func meanCell(values []float64) table.Cell {
	mean, std := meanStdDev(values)
	return table.Scaled(mean, std, 3)
}

// confusion returns a table of the confusion matrices: those of the mean predictions, or sums over all test
// sets if there is no mean.
func (x *tuning) confusion(results []outcome, ensemble [][][]float64) *table.Table {
	classes := finetune.ClassNames(x.examples.Head)
	var columns []string
	for _, name := range classes {
		columns = append(columns, name+" predicted")
	}
	t := table.New("observed", table.Names(columns...)...)
	t.Caption = "Test records by their class and the most probable class"
	matrices := ensemble
	if matrices == nil {
		var sets [][][][]float64
		for _, r := range results {
			sets = append(sets, r.Confusion)
		}
		matrices = finetune.SumConfusion(sets)
	} else {
		t.Caption += " by the models' mean prediction"
	}
	for task, counts := range matrices {
		for i, row := range counts {
			var cells []table.Cell
			for _, n := range row {
				cells = append(cells, table.Number(n, 0))
			}
			name := finetune.TaskMetric(x.examples.Head, "", task) + " " + classes[i]
			t.Add(strings.TrimSpace(name), cells...)
		}
	}
	return t
}
