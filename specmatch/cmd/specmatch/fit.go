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
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/report"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor/files"
)

// outcome is the result of a fit. Its fields are the keys of the run's journal.
type outcome struct {
	finetune.Result
	Test      []train.Metrics     // of each task, with the selected weights
	Valid     []train.Metrics     `json:",omitempty"` // likewise of the validation set, if there is no test set
	Baseline  []train.Metrics     // of the mean or the class frequencies of the training set
	Forest    []train.Metrics     // of a random forest on the features; nil without features
	Confusion [][][]float64       // [task][true][predicted]; nil for regression
	Coverage  []finetune.Coverage // of each task at level; nil if there are too few validation records
	Cuts      []finetune.Cut      // of each binary task, chosen on the validation set
	Parts     [3]int              // sizes of the training, validation and test sets
	Shared    [2]int              // validation and test records that also occur in the training set
	Worst     []report.Case       // the worst predictions of the test set
}

// Check implements [run.Result].
func (o *outcome) Check() error {
	if o.Test == nil || o.Baseline == nil {
		return errors.New("no metrics of the test set and its baseline")
	}
	return o.Result.Check()
}

// kind returns the kind of the targets that the fit has learned, by its metrics; "" if they do not tell.
func (o *outcome) kind() model.Kind {
	has := func(metric string) bool {
		isTested := slices.ContainsFunc(o.Test, func(m train.Metrics) bool { return !math.IsNaN(m.Get(metric)) })
		isValidated := slices.ContainsFunc(o.Epochs, func(m train.Metrics) bool {
			return !math.IsNaN(m.Get("valid_" + metric))
		})
		return isTested || isValidated
	}
	switch {
	case has("rmse"):
		return model.Regression
	case o.Cuts != nil || has("average_precision"):
		return model.Binary
	case has("accuracy"):
		return model.Classes
	}
	return ""
}

// division is one split of the records, by a seed or, if fold is not 0, a fold of cross-validation.
type division struct{ seed, fold int }

// divisions returns the splits that the flags request.
func (x *tuning) divisions() (list []division) {
	for s := range x.recipe.Seeds {
		for f := range max(x.Folds, 1) {
			list = append(list, division{x.recipe.FirstSeed + s, min(x.Folds, f+1)})
		}
	}
	return list
}

// format formats the seed, and the fold if there is one.
func (d division) format(seed, fold string) string {
	if d.fold == 0 {
		return fmt.Sprintf(seed, d.seed)
	}
	return fmt.Sprintf(seed+fold, d.seed, d.fold)
}

// number returns a number for the fold that differs from all seeds and from the folds of other partitions. Runs are
// compared by it.
func (d division) number(folds int) int {
	return folds<<32 + d.seed*folds + d.fold - 1
}

// unit returns the name of the unit that fits a model to the division.
func (d division) unit() string { return d.format("seed=%d", "/fold=%d") }

// modelFile returns the name of the file with the fitted model.
func (d division) modelFile() string {
	return d.format("model-%d", "-%d") + ".safetensors"
}

// testFile returns the name of the table with the predictions of the test set.
func (d division) testFile() string { return d.format("test-%d", "-%d") + ".csv" }

// split returns the records of each part of a division.
func (x *tuning) split(d division) (dataset.Split, error) {
	if d.fold == 0 {
		return x.examples.Divide(uint64(d.seed))
	}
	return x.examples.Fold(uint64(d.seed), d.fold-1, x.Folds)
}

// checkSplits tries all splits, and notes what metrics do not show: bounds, copies across the sets, and
// records that contradict each other or lie far from all others.
func (x *tuning) checkSplits(stderr io.Writer) error {
	var valid, test, counts []string
	shared := 0
	copies := 0 // test records that are in the validation set, too
	bounds := 0
	unseen := map[string]int{}     // splits that do not train on a class
	unlabelled := map[string]int{} // splits that do not train on a target
	for _, d := range x.divisions() {
		s, err := x.split(d)
		if err != nil {
			return err
		}
		for _, class := range x.examples.Unseen(s) {
			unseen[class]++
		}
		for _, target := range x.examples.Unlabelled(s) {
			unlabelled[target]++
		}
		v, t := x.examples.Overlap(s)
		valid = append(valid, fmt.Sprint(v))
		test = append(test, fmt.Sprint(t))
		shared += v + t
		_, n := x.examples.Overlap(dataset.Split{Train: s.Valid, Test: s.Test})
		counts = append(counts, fmt.Sprint(n))
		copies += n
		bounds += x.examples.CountBounds(s.Test)
	}
	if shared > 0 {
		x.notes = append(x.notes, fmt.Sprintf(
			"test %s that also occur in the training set: %s; validation %[1]s: %[3]s",
			x.examples.Content, strings.Join(test, ", "), strings.Join(valid, ", ")))
	}
	if copies > 0 {
		x.notes = append(x.notes, fmt.Sprintf(
			"test %s that also occur in the validation set, on which epochs, shares and intervals are chosen: %s",
			x.examples.Content, strings.Join(counts, ", ")))
	}
	if bounds > 0 {
		x.notes = append(x.notes, fmt.Sprintf("%d targets of the test sets are bounds, which metrics skip", bounds))
	}
	x.noteUntrained("the class %q is to be predicted without a training record in %d of %d splits", unseen)
	x.noteUntrained("the target %q has no training record with a label in %d of %d splits, which learn nothing of it",
		unlabelled)
	x.notes = append(x.notes, x.examples.Replicates()...)
	x.notes = append(x.notes, x.examples.Losses()...)
	x.notes = append(x.notes, x.examples.Outliers()...)
	x.notes = append(x.notes, x.examples.RepeatedIDs()...)
	for _, note := range x.notes {
		fmt.Fprintf(stderr, "%s: %s\n", x.In, files.Printable(note))
	}
	if n := x.examples.CountSalts(); n > 0 {
		fmt.Fprintf(stderr, "%s: %d molecules have several fragments: -largest-fragment keeps one; "+
			"specmatch check lists what else is odd\n", x.In, n)
	}
	return nil
}

// noteUntrained adds a note for each class or target that some splits do not train on, with their number.
func (x *tuning) noteUntrained(format string, splits map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(splits)) {
		x.notes = append(x.notes, fmt.Sprintf(format, name, splits[name], len(x.divisions())))
	}
}

// estimate prints an upper bound on the time that the networks of the unfinished fits are trained, from a few steps of
// one of them.
func (x *tuning) estimate(ctx context.Context, plan *run.Plan, stderr io.Writer) error {
	first := x.divisions()[0] // other divisions have about as many records
	split, err := x.split(first)
	if err != nil {
		return err
	}
	fits, points := x.remaining(plan, split)
	count := len(fits) + len(points)
	if count == 0 || x.output.List || len(x.output.Collect) > 0 {
		return nil
	}
	be, err := x.engine.Open()
	if err != nil {
		return err
	}
	defer be.Close()
	_, learner, err := x.newLearner(be, first.seed, split)
	if err != nil {
		return err
	}
	defer learner.Close()
	fastest := math.Inf(1)
	steps := 0
	for samples, graphs := range learner.Epoch(ctx, 0) {
		start := time.Now()
		if _, err := learner.Step(train.Batch{Samples: samples, Graphs: graphs}); err != nil {
			return err
		}
		fastest = min(fastest, time.Since(start).Seconds())
		steps++
		if steps == 4 {
			break
		}
	}
	if steps == 0 {
		return ctx.Err()
	}
	// The points of a learning curve are fitted once all models are.
	cores := runtime.GOMAXPROCS(0)
	records := makespan(fits, cores) + makespan(points, cores)
	batch := float64(min(x.recipe.Batch, len(split.Train)))
	seconds := fastest * records / batch * float64(x.recipe.Epochs)
	remark := ""
	if x.examples.Beside != nil {
		remark = "; the linear models and the forests of the fits take more"
	}
	fmt.Fprintf(
		stderr,
		"at most about %v of training for %d fits of up to %d epochs; patience may stop them earlier%s\n",
		roundDuration(seconds), count, x.recipe.Epochs, remark,
	)
	return nil
}

// remaining returns the costs of the unfinished fits of this shard and of the points of its learning curve, as numbers
// of records to train on in an epoch.
func (x *tuning) remaining(plan *run.Plan, split dataset.Split) (fits, points []float64) {
	// A step costs three forward passes, since the backward pass costs two; evaluation costs one.
	evaluation := float64(len(split.Valid)+len(split.Test)) / 3
	for _, d := range x.divisions() {
		if plan.Remains(d.unit()) {
			fits = append(fits, float64(len(split.Train))+evaluation)
		}
		for halvings := 1; halvings < x.Curve; halvings++ {
			if plan.Remains(d.pointUnit(halvings)) {
				points = append(points, float64(len(split.Train)>>halvings)+evaluation)
			}
		}
	}
	return fits, points
}

// makespan returns how long jobs of some costs take if each free core takes the next one.
func makespan(costs []float64, cores int) float64 {
	busy := make([]float64, cores)
	for _, cost := range costs {
		free := 0
		for core := range busy {
			if busy[core] < busy[free] {
				free = core
			}
		}
		busy[free] += cost
	}
	return slices.Max(busy)
}

// roundDuration returns a duration of about two digits.
func roundDuration(seconds float64) time.Duration {
	d := time.Duration(seconds * float64(time.Second))
	for _, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		if d > 10*unit {
			return d.Round(unit)
		}
	}
	return d.Round(time.Second / 10)
}

// newLearner returns an untrained model on an engine, and its learner for a split of a seed.
func (x *tuning) newLearner(
	be backend.Backend, seed int, split dataset.Split,
) (*model.Trained, *finetune.Learner, error) {
	var source *model.Trained
	if x.source != nil {
		source = x.source.Trained
	}
	m, err := x.examples.NewModel(be, x.arch, source, uint64(seed))
	if err != nil {
		return nil, nil, err
	}
	options := x.options
	options.Batch = x.recipe.Batch
	options.Rate = x.recipe.LR
	options.Seed = uint64(seed)
	options.Patience = x.Patience
	options.Average = x.Average
	options.Balanced = x.Balanced
	options.WithoutNetwork = !x.Network
	learner, err := finetune.New(m, x.examples.Data(split), options)
	return m, learner, x.examples.Locate(err)
}

// units returns the fits of all divisions.
func (x *tuning) units() (units []run.Unit[outcome]) {
	for _, d := range x.divisions() {
		fit := func(ctx context.Context, be backend.Backend, status run.Status) (outcome, error) {
			return x.fit(ctx, be, d, status)
		}
		units = append(units, run.Unit[outcome]{
			Name:   d.unit(),
			Files:  []string{d.modelFile(), d.testFile()},
			Engine: &x.engine,
			Run:    fit,
		})
	}
	return units
}

// fit fits a model to a division, and writes the model and its predictions of the test set.
func (x *tuning) fit(
	ctx context.Context, be backend.Backend, d division, status run.Status,
) (result outcome, err error) {
	split, err := x.split(d)
	if err != nil {
		return result, err
	}
	m, learner, err := x.newLearner(be, d.seed, split)
	if err != nil {
		return result, err
	}
	result.Result, err = x.train(ctx, learner, d.unit(), status)
	if err != nil {
		return result, x.examples.Locate(err)
	}
	if err := x.examples.Calibrate(ctx, m, split); err != nil {
		return result, err
	}
	if !x.Anonymous {
		if err := x.examples.NoteDomain(m, split); err != nil {
			return result, err
		}
	}
	if err := m.Save(x.dir.Join(d.modelFile())); err != nil {
		return result, err
	}

	predictions, err := x.examples.Predict(ctx, m, split.Test)
	if err != nil {
		return result, err
	}
	result.Test, result.Baseline, result.Confusion = predictions.Score(split.Train)
	if x.Test == finetune.NoTest {
		validated, err := x.examples.Predict(ctx, m, split.Valid)
		if err != nil {
			return result, err
		}
		result.Valid, _, _ = validated.Score(split.Train)
	}
	trees, ok, err := x.examples.Forest(ctx, m, split, uint64(d.seed))
	if err != nil {
		return result, err
	}
	if ok {
		result.Forest, _, _ = trees.Score(split.Train)
	}
	result.Coverage, _ = predictions.Coverage(m.Card.Calibration, level) // nil for few records
	result.Cuts = predictions.Cuts(m.Card.Calibration)
	result.Parts = [3]int{len(split.Train), len(split.Valid), len(split.Test)}
	result.Shared[0], result.Shared[1] = x.examples.Overlap(split)
	result.Worst, err = x.worst(ctx, m, predictions)
	if err != nil {
		return result, err
	}
	return result, files.Write(x.dir.Join(d.testFile()), predictions.Write)
}

// train trains the learner, or resumes the unit's checkpoint, and writes a row of metrics.csv per epoch.
func (x *tuning) train(
	ctx context.Context, learner *finetune.Learner, unit string, status run.Status,
) (finetune.Result, error) {
	options, err := x.dir.Training(unit, x.recipe.Epochs)
	if err != nil {
		return finetune.Result{}, err
	}
	return learner.Fit(ctx, options, func(p train.Progress) error {
		epochs := float64(p.Epoch)
		if !p.Ended {
			epochs += float64(p.Batch)/float64(p.Batches) - 1
		}
		left := roundDuration(p.Seconds * (float64(p.Epochs)/epochs - 1))
		status("fine-tuning, epoch %d of %d, loss %.3f, at most %v left",
			p.Epoch, p.Epochs, p.Metrics["loss"], left)
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
