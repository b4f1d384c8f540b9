package finetune

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/autodiff/nn/files"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/moleculenet"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Task says what is learned of the records of a file, and how they are divided.
type Task struct {
	// Targets are the columns or keys to predict. None are those that a set of the
	// literature has: class in TUDataset's format, and of a table of MoleculeNet its own.
	Targets []string
	// Kind is what the targets are; "" goes by the values: 0 and 1 only are Binary,
	// numbers Regression, others Classes, and so is a class in TUDataset's format. A
	// missing value is empty, or what pandas takes for one, such as NA, null or #N/A.
	Kind specmatch.Kind
	// Split is [Random], [Stratified], [Scaffold], or the column that has train, valid or
	// test; "" is Random for numbers and Stratified otherwise.
	Split string
}

// The divisions, into 80, 10 and 10 %.
const (
	Random     = "random"     // in an order that the seed decides
	Stratified = "stratified" // random, with every class in each part, see [Examples.Divide]
	Scaffold   = "scaffold"   // of molecules: a scaffold is in one part only, see [dataset.ScaffoldSplit]
)

// Errors about a task rather than a file.
var (
	ErrNoTargets = errors.New("no target is named, and the file has none by its name")
	ErrSeveral   = errors.New("classes are of one target; several are yes-or-no tasks or numbers")
)

// Examples are the records of a file, with their targets as numbers.
type Examples struct {
	*records.Table
	Task                    // with the targets and the kind that were found
	Head     specmatch.Head // for the targets
	Y        []float64      // as in [Data]; NaN where a target is missing, also a class
	Features *graph.Columns // of the graphs; nil for molecules

	path string
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
		o.SMILES, t.Targets = cmp.Or(o.SMILES, smiles), targets
	}
	o.Fields, o.Scaffolds = slices.Clone(t.Targets), t.Split == Scaffold
	if !slices.Contains([]string{"", Random, Stratified, Scaffold}, t.Split) {
		o.Fields = append(o.Fields, t.Split)
	}
	table, err := records.ReadAll(ctx, path, o)
	if err != nil {
		return nil, err
	}
	x := &Examples{Table: table, Task: t, Features: o.Columns, path: path}
	if x.Content == records.Graphs && x.Features == nil {
		columns, err := x.Set.Columns()
		if err != nil {
			return nil, err
		}
		x.Features = &columns
	}
	for k, name := range t.Targets {
		if !slices.ContainsFunc(x.Records, func(r *records.Record) bool { return strings.TrimSpace(r.Fields[k]) != "" }) {
			return nil, fmt.Errorf("%s: no record has a value of %s", path, name)
		}
	}
	switch {
	case t.Kind == "" && tu:
		x.Kind = specmatch.Classes
	case t.Kind == "":
		x.Kind = x.kind()
	}
	fill, split := x.numbers, Stratified
	switch x.Kind {
	case specmatch.Classes:
		fill = x.classes
	case specmatch.Regression:
		split = Random
	}
	x.Split = cmp.Or(x.Split, split)
	if x.Kind == specmatch.Regression && x.Split == Stratified {
		return nil, fmt.Errorf("finetune: the split %s is for classes and yes-or-no tasks", Stratified)
	}
	return x, fill()
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

// The purposes of random streams: of divisions, and of a model's first weights.
const (
	purposeSplit random.Purpose = 1<<32 + 16 + iota
	purposeHead
)

// Divide divides the records that have a target; Test is in the order of the file. It is
// an error if a part is empty.
//
// Stratified, the records of each class are divided alike, and one with several yes-or-no
// tasks counts as the rarest of its answers. Where classes are at most a tenth as many as
// records, each with three members or more is in every part.
func (x *Examples) Divide(seed uint64) (s dataset.Split, err error) {
	var labelled []int
	for i, n := 0, len(x.Targets); i < len(x.Records); i++ {
		if slices.ContainsFunc(x.Y[i*n:(i+1)*n], func(y float64) bool { return !math.IsNaN(y) }) {
			labelled = append(labelled, i)
		}
	}
	switch x.Split {
	case Random:
		s = dataset.RandomSplit(len(labelled), random.Stream(seed, purposeSplit, 0, 0))
	case Stratified:
		s = x.stratified(labelled, random.Stream(seed, purposeSplit, 0, 0))
	case Scaffold:
		scaffolds := make([]string, len(labelled))
		for k, i := range labelled {
			scaffolds[k] = x.Records[i].Scaffold
		}
		if s, err = dataset.ScaffoldSplit(scaffolds, 0.8, 0.1); err != nil {
			return s, err
		}
	default:
		parts := map[string]*[]int{"train": &s.Train, "valid": &s.Valid, "test": &s.Test}
		for k, i := range labelled {
			r := x.Records[i]
			v := strings.TrimSpace(r.Fields[len(x.Targets)])
			part, ok := parts[v]
			if !ok {
				return s, fmt.Errorf("%s:%d: column %s: %q; want train, valid or test", x.path, r.Line, x.Split, v)
			}
			*part = append(*part, k)
		}
	}
	for _, part := range [][]int{s.Train, s.Valid, s.Test} {
		if len(part) == 0 {
			return s, fmt.Errorf("%s: the split %s divides its %d records with a target into %d to train on, "+
				"%d to validate and %d to test; want some in every part",
				x.path, x.Split, len(labelled), len(s.Train), len(s.Valid), len(s.Test))
		}
		for k, i := range part {
			part[k] = labelled[i]
		}
	}
	slices.Sort(s.Test)
	return s, nil
}

// stratified divides the places 0..len(labelled)-1 of some records.
func (x *Examples) stratified(labelled []int, rng *rand.Rand) (s dataset.Split) {
	type answer struct {
		task int
		y    float64
	}
	count, groups := map[answer]int{}, map[answer][]int{}
	answers := func(i int) (all []answer) {
		for t, n := 0, len(x.Targets); t < n; t++ {
			if y := x.Y[i*n+t]; !math.IsNaN(y) {
				all = append(all, answer{t, y})
			}
		}
		return all
	}
	for _, i := range labelled {
		for _, a := range answers(i) {
			count[a]++
		}
	}
	rarer := func(a, b answer) int {
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(a.task, b.task), cmp.Compare(a.y, b.y))
	}
	for _, k := range dataset.Permutation(nil, len(labelled), rng) {
		a := slices.MinFunc(answers(labelled[k]), rarer)
		groups[a] = append(groups[a], k)
	}
	everywhere := 10*len(groups) <= len(labelled)
	seen := 0
	for _, a := range slices.SortedFunc(maps.Keys(groups), rarer) {
		members := groups[a]
		seen += len(members)
		for _, part := range []*[]int{&s.Test, &s.Valid} { // the larger groups make up for what the rarer ones took
			n := max((seen+5)/10-len(*part), 0)
			if everywhere && count[a] > 2 {
				n = max(n, 1)
			}
			n = min(n, max(len(members)-1, 0))
			*part = append(*part, members[:n]...)
			members = members[n:]
		}
		s.Train = append(s.Train, members...)
	}
	return s
}

// NewModel returns a model for [New] to fit, with random weights that the seed decides, or
// with the encoder's weights of another model, which may differ in dropout and readout.
func (x *Examples) NewModel(
	be backend.Backend, a gnn.Architecture, from *specmatch.Trained, seed uint64,
) (*specmatch.Trained, error) {
	rng := random.Stream(seed, purposeHead, 0, 0)
	e, err := a.New(be, rng)
	if err != nil {
		return nil, err
	}
	how := "trained with labels"
	if from != nil {
		how = "fine-tuned"
		if err := specmatch.CopyEncoder(e, from.Encoder); err != nil {
			return nil, err
		}
	}
	m := specmatch.NewPredictor(e, x.Head, rng)
	m.Card.Features, m.Card.Standard = x.Features, x.Set.Standard
	m.Card.Provenance = specmatch.Provenance{
		Method: how, Seed: int(seed), Data: specmatch.Sources(x.Set.Name, x.Set.Sums),
		Options: map[string]string{"split": x.Split, "dropout": fmt.Sprint(a.Dropout)},
	}
	return m, nil
}

// Data returns what [New] learns from, with the records divided.
func (x *Examples) Data(s dataset.Split) Data {
	return Data{Graphs: x.Set.Graphs, Y: x.Y, Train: s.Train, Valid: s.Valid, Test: s.Test}
}

// Predictions are what a model predicts for some of the records.
type Predictions struct {
	x       *Examples
	head    specmatch.Head
	samples []int
	values  []float64 // [n×Outputs]
}

// Predict returns a model's predictions for some of the records, as
// [specmatch.Trained.Predict] makes them. Of numbers and probabilities, those are made equal
// that differ by the rounding of float32 only.
func (x *Examples) Predict(ctx context.Context, m *specmatch.Trained, samples []int) (p Predictions, err error) {
	p = Predictions{x: x, head: *m.Card.Head, samples: samples}
	var graphs []*graph.Graph
	for _, i := range samples {
		graphs = append(graphs, x.Set.Graphs[i])
	}
	if p.values, err = m.Predict(ctx, graphs); err == nil {
		settlePredictions(p.head, p.values)
	}
	return p, err
}

// Score returns the metrics of each task; see the function [Score].
func (p Predictions) Score() []train.Metrics {
	var y []float64
	for _, i := range p.samples {
		y = append(y, p.x.Y[i*len(p.x.Targets):(i+1)*len(p.x.Targets)]...)
	}
	return Score(p.head, p.values, y)
}

// Write writes a table of the records' ids, the predictions as package apply writes them,
// and, as TARGET_observed, the targets as they stand in the file. It has the bits that
// [Predictions.Score] is of.
func (p Predictions) Write(to io.Writer) error {
	w := csv.NewWriter(to)
	header := p.head.Columns()
	for _, target := range p.x.Targets {
		header = append(header, target+"_observed")
	}
	w.Write(files.Distinct("id", header...)) // Error has the errors of all
	for k, i := range p.samples {
		r := p.x.Records[i]
		line := []string{r.ID}
		for _, v := range p.values[k*p.head.Outputs : (k+1)*p.head.Outputs] {
			line = append(line, strconv.FormatFloat(v, 'g', -1, 32))
		}
		line = append(line, r.Fields[:len(p.x.Targets)]...)
		for i, field := range line {
			line[i] = files.Printable(field)
		}
		w.Write(line)
	}
	w.Flush()
	return w.Error()
}
