package laboratory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
)

const (
	folds       = 5
	mostFitted  = 5000 // records, whose features have to fit into memory
	leastFitted = 20   // records with a target
)

// fitted is a model of a column of the file, with its score.
type fitted struct {
	Target   string  `json:"target"`
	Kind     string  `json:"kind"`
	Metric   string  `json:"metric"`
	Score    float64 `json:"score"` // mean over the folds of a cross-validation
	Std      float64 `json:"std"`   // over the folds
	Baseline float64 `json:"baseline"`
	Records  int     `json:"records"`
	Split    string  `json:"split"`
	Model    []byte  `json:"model"` // the file
}

// fit fits a linear model to a column of the open file, as specmatch finetune -network=false does, but without a
// forest. A cross-validation scores it.
func (s *Session) fit(q struct {
	Target   string `json:"target"`
	Scaffold bool   `json:"scaffold"` // no scaffold is in two folds
}, _ []byte) (any, error) {
	if s.file == nil {
		return nil, errors.New("there is no file: drop one with a column of measured values")
	}
	examples, err := s.examples(q.Target, q.Scaffold)
	if err != nil {
		return nil, err
	}
	be := newEngine()
	defer be.Close()
	f := &fitter{Examples: examples, be: be}
	answer := fitted{
		Target:  q.Target,
		Kind:    string(examples.Kind),
		Metric:  metricOf(examples.Kind),
		Records: len(examples.Records),
		Split:   examples.Split,
	}
	if err := f.crossValidate(&answer, s.report); err != nil {
		return nil, readable(err)
	}

	// The model of all records but those that calibrate it.
	examples.Test.Path = finetune.NoTest
	split, err := examples.Divide(0)
	if err != nil {
		return nil, readable(err)
	}
	m, err := f.fit(split)
	if err == nil {
		err = examples.NoteDomain(m, split)
	}
	if err != nil {
		return nil, readable(err)
	}
	m.Card.Provenance.Method = "laboratory"
	var text bytes.Buffer
	err = m.Write(&text)
	answer.Model = text.Bytes()
	s.report(1, 1)
	return answer, err
}

// fitter fits models to the same records.
type fitter struct {
	*finetune.Examples
	be backend.Backend
}

// fit fits a linear model to a split.
func (f *fitter) fit(split dataset.Split) (*model.Trained, error) {
	ctx := context.Background()
	architecture := gnn.Architecture{
		Kind:   gnn.KindChemGIN,
		Atoms:  finetune.Molecules.Atoms,
		Hidden: 16,
		Layers: 2,
	}
	m, err := f.NewModel(f.be, architecture, nil, 0)
	if err != nil {
		return nil, err
	}
	learner, err := finetune.New(m, f.Data(split), finetune.Options{
		Batch:          128,
		Rate:           finetune.Molecules.Rate,
		Patience:       1,
		WithoutNetwork: true,
	})
	if err != nil {
		return nil, err
	}
	if _, err := learner.Fit(ctx, train.Options{Epochs: 1}, nil); err != nil {
		return nil, err
	}
	return m, f.Calibrate(ctx, m, split)
}

// crossValidate sets the score of a model and of its baseline. A fold in which the score is undefined does not count.
func (f *fitter) crossValidate(answer *fitted, report func(done, total int)) error {
	var scores, baselines []float64
	for k := range folds {
		split, err := f.Fold(0, k, folds)
		if err != nil {
			return err
		}
		m, err := f.fit(split)
		if err != nil {
			return err
		}
		predictions, err := f.Predict(context.Background(), m, split.Test)
		if err != nil {
			return err
		}
		metrics, baseline, _ := predictions.Score(slices.Concat(split.Train, split.Valid))
		if score, ok := metrics[0][answer.Metric]; ok {
			scores = append(scores, score)
			baselines = append(baselines, baseline[0][answer.Metric])
		}
		report(folds+k+1, 2*folds+1)
	}
	if len(scores) < 2 {
		return errors.New("the folds of the cross-validation have too few values of each kind to score a model")
	}
	answer.Score, answer.Std = stat.MeanStdDev(scores, nil)
	answer.Baseline = stat.Mean(baselines, nil)
	return nil
}

// examples reads the open file with a column as the target.
func (s *Session) examples(target string, byScaffold bool) (*finetune.Examples, error) {
	features, err := apply.ParseFeatures(finetune.Molecules.Features)
	if err != nil {
		return nil, err
	}
	t := finetune.Task{Targets: []string{target}}
	if byScaffold {
		t.Split = finetune.Scaffold
	}
	options := s.file.options(s.file.text)
	options.Atoms = finetune.Molecules.Atoms
	options.Molecules = false
	t.Beside, options.Vector, err = apply.Numbers(features)
	if err != nil {
		return nil, err
	}
	t.Beside.Hidden = 1 // the network is not used
	t.Beside.Linear = true
	total := 0
	for _, p := range s.file.parts {
		total += p.Count
	}
	if total > mostFitted {
		return nil, fmt.Errorf("the file has %d records; in a tab, a fit may have %d: use specmatch finetune",
			total, mostFitted)
	}
	examples, err := finetune.Read(context.Background(), s.file.name, t, options)
	if err != nil {
		return nil, readable(err)
	}
	labelled := 0
	for _, y := range examples.Y {
		if !math.IsNaN(y) {
			labelled++
		}
	}
	if labelled < leastFitted {
		return nil, fmt.Errorf("column %s has a value in %d records; a fit needs %d", target, labelled, leastFitted)
	}
	s.report(folds, 2*folds+1)
	return examples, nil
}

// metricOf returns the metric that the page shows.
func metricOf(kind model.Kind) string {
	switch kind {
	case model.Binary:
		return "roc_auc"
	case model.Classes:
		return "accuracy"
	}
	return "mae"
}

// readable returns an error without the name of the package that it comes from.
func readable(err error) error {
	text := err.Error()
	for _, prefix := range []string{"finetune: ", "dataset: ", "specmatch: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return errors.New(text)
}
