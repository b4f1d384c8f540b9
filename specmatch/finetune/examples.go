package finetune

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/moleculenet"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor/files"
)

// Task says what is learned of the records of a file, and how they are divided.
type Task struct {
	// Targets are the columns or keys to predict. None are those that a set of the
	// literature has: class in TUDataset's format, and of a table of MoleculeNet its own.
	Targets []string
	// Kind is what the targets are; "" goes by the values: 0 and 1 only are Binary,
	// numbers Regression, others Classes, and so is a class in TUDataset's format. A
	// missing value is empty, or what pandas takes for one, such as NA, null or #N/A.
	Kind model.Kind
	// Split is [Random], [Stratified], [Scaffold], [StratifiedScaffold], or the column that
	// has train, valid or test; "" is Random for numbers and Stratified otherwise.
	Split string
	// Valid and Test are files that have those parts; the others are divided from the file
	// that is read. One without a name is none.
	Valid, Test File
	// Bounds takes targets such as >10 and ≤0.5 for what they say of a number. Otherwise they
	// are refused.
	Bounds bool
	// Beside are numbers of molecules, which records.Options.Vector makes, that the head of a
	// model sees beside the embedding; nil for none.
	Beside *model.Numbers
}

// File is one more file with the columns of the first.
type File struct {
	Path, Format string    // "" is the format by the name
	Input        io.Reader // as in [records.Options]
}

// Errors about a task rather than a file.
var (
	ErrNoTargets = errors.New("no target is named, and the file has none by its name")
	ErrSeveral   = errors.New("classes are of one target; several are yes-or-no tasks or numbers")
)

// Examples are the records of a file, with their targets as numbers.
type Examples struct {
	*records.Table
	Task                    // with the targets and the kind that were found
	Head     model.Head     // for the targets
	Y        []float64      // as in [Data]; NaN where a target is missing, also a class
	Bounds   []int8         // as in [Data]
	Features *graph.Columns // of the graphs; nil for molecules

	path  string
	first map[string]int // the place in Records of the first of each file, by the part that it has
}

// file returns the name of the file that has a record.
func (x *Examples) file(i int) string {
	return cmp.Or(map[string]string{valid: x.Valid.Path, test: x.Test.Path}[x.given(i)], x.path)
}

// Read reads a file with the targets of a task; o.Fields and o.Scaffolds are the task's. A
// value that is no target is an error that names its line.
func Read(ctx context.Context, path string, t Task, o records.Options) (*Examples, error) {
	format, _ := records.FormatOf(path) // "-" and other names have none
	tu := cmp.Or(o.Format, format) == records.TU
	switch {
	case len(t.Targets) > 0:
	case tu:
		t.Targets = []string{"class"}
	default:
		smiles, targets, err := moleculenet.Columns(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("finetune: %s: %w", path, ErrNoTargets)
		}
		o.SMILES = cmp.Or(o.SMILES, smiles)
		t.Targets = targets
	}
	o.Fields = slices.Clone(t.Targets)
	o.Scaffolds = t.byScaffold()
	o.Identities = true
	if !slices.Contains([]string{"", Random, Stratified, Scaffold, StratifiedScaffold}, t.Split) {
		if t.Valid.Path+t.Test.Path != "" {
			return nil, fmt.Errorf(
				"finetune: the column %s divides the records, and so do the files %s",
				t.Split,
				strings.Join(slices.DeleteFunc([]string{t.Valid.Path, t.Test.Path}, func(s string) bool {
					return s == ""
				}), " and "))
		}
		o.Fields = append(o.Fields, t.Split)
	}
	table, err := records.ReadAll(ctx, path, o)
	if err != nil {
		return nil, err
	}
	x := &Examples{
		Table:    table,
		Task:     t,
		Features: o.Columns,
		path:     path,
	}
	if x.Content == records.Graphs && x.Features == nil {
		columns, err := x.Set.Columns()
		if err != nil {
			return nil, err
		}
		x.Features = &columns
	}
	if err := x.readParts(ctx, o); err != nil {
		return nil, err
	}
	for k, name := range t.Targets {
		if !slices.ContainsFunc(
			x.Records, func(r *records.Record) bool { return strings.TrimSpace(r.Fields[k]) != "" },
		) {
			return nil, fmt.Errorf("%s: no record has a value of %s", path, name)
		}
	}
	switch {
	case t.Kind == "" && tu:
		x.Kind = model.Classes
	case t.Kind == "":
		x.Kind = x.kind()
	}
	fill := x.numbers
	split := Stratified
	switch x.Kind {
	case model.Classes:
		fill = x.classes
	case model.Regression:
		split = Random
	}
	x.Split = cmp.Or(x.Split, split)
	if x.Kind == model.Regression && (x.Split == Stratified || x.Split == StratifiedScaffold) {
		return nil, fmt.Errorf("finetune: the split %s is for classes and yes-or-no tasks", x.Split)
	}
	return x, fill()
}

// readParts appends the records of the files that have a part.
func (x *Examples) readParts(ctx context.Context, o records.Options) error {
	x.first = map[string]int{}
	o.Want = x.Content
	o.Columns = x.Features
	o.Reading = nil
	for _, part := range []string{valid, test} {
		f := map[string]File{valid: x.Valid, test: x.Test}[part]
		if f.Path == "" {
			continue
		}
		o.Format = f.Format
		o.Input = f.Input
		t, err := records.ReadAll(ctx, f.Path, o)
		if err != nil {
			return err
		}
		x.first[part] = len(x.Records)
		x.Records = append(x.Records, t.Records...)
		x.Set.Graphs = append(x.Set.Graphs, t.Set.Graphs...)
		x.Rejected = append(x.Rejected, t.Rejected...)
	}
	return nil
}

// values calls f with every target.
func (x *Examples) values(f func(r *records.Record, target, text string) error) error {
	for _, r := range x.Records {
		for k, target := range x.Targets {
			if err := f(r, target, strings.TrimSpace(r.Fields[k])); err != nil {
				return err
			}
		}
	}
	return nil
}

// NewModel returns a model for [New] to fit, with random weights that the seed decides, or
// with the encoder's weights of another model, which may differ in dropout and readout. An encoder
// of molecules wants records that were read with a.Atoms as records.Options.Atoms.
func (x *Examples) NewModel(
	be backend.Backend, a gnn.Architecture, from *model.Trained, seed uint64,
) (*model.Trained, error) {
	rng := random.Stream(seed, purposeHead, 0, 0)
	e, err := a.New(be, rng)
	if err != nil {
		return nil, err
	}
	how := "trained with labels"
	if from != nil {
		how = "fine-tuned"
		if err := model.CopyEncoder(e, from.Encoder); err != nil {
			return nil, err
		}
	}
	m := model.NewPredictorBeside(e, x.Head, x.Beside, a.Dropout, rng)
	m.Card.Features = x.Features
	m.Card.Standard = x.Set.Standard
	m.Card.Provenance = model.Provenance{
		Method:  how,
		Seed:    int(seed),
		Data:    model.Sources(x.Set.Name, x.Set.Sums),
		Reads:   x.Set.Reads,
		Options: map[string]string{"split": x.Split, "dropout": fmt.Sprint(a.Dropout)},
	}
	return m, nil
}

// Data returns what [New] learns from, with the records divided.
func (x *Examples) Data(s dataset.Split) Data {
	return Data{
		Graphs: x.Set.Graphs,
		Y:      x.Y,
		Bounds: x.Bounds,
		Train:  s.Train,
		Valid:  s.Valid,
		Test:   s.Test,
	}
}

// Predictions are what a model predicts for some of the records.
type Predictions struct {
	x       *Examples
	head    model.Head
	samples []int
	values  []float64 // [n×Outputs]
	far     []float64 // from the records that were trained on; nil if the model does not know
}

// Predict returns a model's predictions for some of the records, as
// [model.Trained.Predict] makes them. Of numbers and probabilities, those are made equal
// that differ by the rounding of float32 only.
func (x *Examples) Predict(ctx context.Context, m *model.Trained, samples []int) (p Predictions, err error) {
	p = Predictions{x: x, head: *m.Card.Head, samples: samples}
	graphs := x.graphs(samples)
	h, err := m.Embed(ctx, graphs)
	if err == nil {
		p.values, err = m.Apply(h, graphs)
	}
	if err != nil {
		return p, err
	}
	Settle(p.head, p.values)
	if c := m.Card.Calibration; c != nil {
		p.far = c.Distances(h)
	}
	return p, nil
}

// Errors returns for each record the mean over its targets of how wrong they are predicted:
// |y − prediction| in standard deviations of the training part, or one less the probability
// of the answer. It is NaN without a target, or with bounds alone.
func (p Predictions) Errors() []float64 {
	tasks := columns(p.head)
	all := make([]float64, len(p.samples))
	d := Data{Y: p.x.Y, Bounds: p.x.Bounds}
	for k, i := range p.samples {
		var sum, n float64
		for t, y := range d.exact(i, tasks) {
			if !math.IsNaN(y) {
				sum += p.wrong(k, t, y)
				n++
			}
		}
		all[k] = sum / n
	}
	return all
}

// wrong is the error of one target.
func (p Predictions) wrong(k, t int, y float64) float64 {
	row := p.values[k*p.head.Outputs : (k+1)*p.head.Outputs]
	switch p.head.Kind {
	case model.Classes:
		return 1 - row[int(y)]
	case model.Binary:
		return math.Abs(y - row[t])
	}
	return math.Abs(y-row[t]) / p.head.Std[t]
}

// Row returns the record of a prediction, by its place in Records, the numbers that are
// predicted for it, and the output that its largest error is of, of classes the likeliest.
func (p Predictions) Row(k int) (record int, values []float64, output int) {
	values = p.values[k*p.head.Outputs : (k+1)*p.head.Outputs]
	if p.head.Kind == model.Classes {
		return p.samples[k], values, largest(values)
	}
	most := -1.0
	for t, y := range (Data{Y: p.x.Y, Bounds: p.x.Bounds}).exact(p.samples[k], p.head.Outputs) {
		if e := p.wrong(k, t, y); e > most {
			most = e
			output = t
		}
	}
	return p.samples[k], values, output
}

// Score returns the metrics of each task, those of the baseline of the records that were
// trained on, and the confusion matrices; see [Score], [Data.Baseline] and [Confusion]. A
// target that is a bound counts as missing.
func (p Predictions) Score(trained []int) (of, baseline []train.Metrics, confusion [][][]float64) {
	var base, y []float64
	d := Data{Y: p.x.Y, Bounds: p.x.Bounds}
	n := len(p.x.Targets)
	row := d.Baseline(p.head, trained)
	for _, i := range p.samples {
		y, base = append(y, d.exact(i, n)...), append(base, row...)
	}
	return Score(p.head, p.values, y), Score(p.head, base, y), Confusion(p.head, p.values, y)
}

// ReadMean returns the mean of predictions for the same records, as [Predictions.Write] has written them.
func (x *Examples) ReadMean(samples []int, tables ...io.Reader) (p Predictions, err error) {
	p = Predictions{
		x:       x,
		head:    x.Head,
		samples: samples,
		values:  make([]float64, len(samples)*x.Head.Outputs),
	}
	for _, t := range tables {
		rows, err := csv.NewReader(t).ReadAll()
		if err != nil || len(rows) != 1+len(samples) || len(rows[0]) <= x.Head.Outputs {
			return p, fmt.Errorf("finetune: %d rows of predictions for %d records: %w",
				len(rows), len(samples), err)
		}
		for k := range p.values {
			text := rows[1+k/x.Head.Outputs][1+k%x.Head.Outputs]
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return p, fmt.Errorf("finetune: prediction %q: %w", text, err)
			}
			p.values[k] += v / float64(len(tables))
		}
	}
	if x.Kind == model.Regression { // the unit that rounding is measured in
		p.head.Mean, p.head.Std = moments(x.Y, samples, x.Head.Outputs)
	}
	Settle(p.head, p.values)
	return p, nil
}

// Write writes a table of the records' ids, the predictions as package apply writes them,
// as TARGET_observed the targets as they stand in the file, and the distance to the records
// that were trained on, if the model is calibrated. It has the bits that [Predictions.Score]
// is of.
func (p Predictions) Write(to io.Writer) error {
	w := csv.NewWriter(to)
	header := p.head.Columns()
	for _, target := range p.x.Targets {
		header = append(header, target+"_observed")
	}
	if p.far != nil {
		header = append(header, "distance")
	}
	w.Write(files.Distinct("id", header...)) // Error has the errors of all
	for k, i := range p.samples {
		r := p.x.Records[i]
		line := []string{r.ID}
		for _, v := range p.values[k*p.head.Outputs : (k+1)*p.head.Outputs] {
			line = append(line, strconv.FormatFloat(v, 'g', -1, 32))
		}
		line = append(line, r.Fields[:len(p.x.Targets)]...)
		if p.far != nil {
			line = append(line, strconv.FormatFloat(p.far[k], 'g', 4, 64))
		}
		for i, field := range line {
			line[i] = files.Printable(field)
		}
		w.Write(line)
	}
	w.Flush()
	return w.Error()
}
