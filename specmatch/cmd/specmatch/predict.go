package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/tensor/files"
)

// The values of -explain-by.
const (
	byAtoms     = "atoms"
	byFragments = "fragments"
)

// prediction is the command predict.
type prediction struct {
	input
	output
	engine   cli.Engine
	Models   []string
	Level    float64
	Distance bool
	Answers  bool
	Explain  string
	By       string // what is explained: byAtoms or byFragments
	Domain   string
	Targets  []string
}

func setupPredict(f *cli.FlagSet) cli.Action {
	x := &prediction{By: byAtoms}
	x.output.input = &x.input
	x.output.models = func() []string { return x.Models }
	f.Common("in", "model", "out", "level", "distance", "domain", "explain", "target", "keep", "id", "smiles-column",
		"workers", "shard", "collect")
	f.Arguments("in", "out")
	f.Section("Input", func() { f.Add(&x.input) })
	f.Section("Output", func() { f.Add(&x.output) })
	f.Section("Model", func() { x.registerModel(f) })
	f.Section("Engine", func() { f.Add(&x.engine) })
	f.Check(x.check)
	return x.run
}

// registerModel adds the flags that say what predicts, and what is written next to predictions.
func (x *prediction) registerModel(f *cli.FlagSet) {
	cli.Var(f, &x.Models, "model", setting.List(setting.Text),
		"model `files A,B` from finetune, the directory of its run, or an ensemble of convert; with several,\n"+
			"the output has the mean of their predictions and the standard deviation (NAME_std); admet is the\n"+
			"built-in predictors of absorption, metabolism and toxicity, and admet:herg one of them")
	cli.Var(f, &x.Level, "level", setting.Float(0, 0.999),
		"`probability`, such as 0.9, of the prediction intervals (NAME_low, NAME_high) or, for classes,\n"+
			"prediction sets (NAME_in) to add; 0 adds none")
	cli.Var(f, &x.Explain, "explain", setting.Text,
		"JSON Lines `file` for the contribution of each node or atom to each prediction: what it adds\n"+
			"as the molecule grows by it (they add up); a name that ends in .html makes a page of drawings")
	cli.Var(f, &x.By, "explain-by", setting.OneOf(byAtoms, byFragments),
		"`parts` that -explain tells apart: atoms (and nodes of graphs), or the fragments of a molecule: its ring\n"+
			"systems, and the groups and chains between and beside them")
	cli.Var(f, &x.Domain, "domain", setting.Text,
		"table `file` (CSV) for how far each molecule is from the training molecules: whether it is outside of the\n"+
			"model's domain and why, and its three nearest training molecules with their targets")
	cli.Var(f, &x.Targets, "target", setting.List(setting.Text),
		"`columns` or keys A,B with observed values, to print metrics; by default the model's own\n"+
			"targets, if the file has them and they are not classes")
	f.BoolVar(&x.Answers, "answers", false,
		"add the answer to each binary task (NAME_answer): 1 from the probability on that has the best balanced\n"+
			"accuracy on the validation set, else 0")
	f.BoolVar(&x.Distance, "distance", false,
		"add the distance to the training records: 1 is typical, larger is less similar")
}

// check returns an error if flags contradict each other, or name the same file.
func (x *prediction) check() error {
	switch {
	case x.Explain+x.Domain != "" && (x.Shard.N > 0 || x.Join):
		return cli.Usagef("-explain and -domain cannot be combined with -shard or -collect")
	case len(x.Models) == 0:
		return cli.Usagef("-model is needed: a model file from finetune, or admet for the built-in predictors")
	case x.joins() && (x.Explain+x.Domain != "" || x.Targets != nil):
		return cli.Usagef("-explain, -domain and -target are for one endpoint: name it, as in -model %s", x.Models[0])
	case x.Explain+x.Domain == "":
		return nil
	case x.isStream():
		return cli.Usagef("-explain and -domain read the input again, and -in %s can be read only once: "+
			"write it to a file first", x.In)
	}
	inputs := append(filesOfModels(x.Models...), x.In)
	var written []string
	if outputs, err := apply.Outputs(x.Out, x.Shard); err == nil {
		written = outputs
	}
	for _, output := range []struct{ flag, path string }{{"explain", x.Explain}, {"domain", x.Domain}} {
		if output.path == "" {
			continue
		}
		if err := checkFolder(output.flag, output.path); err != nil {
			return err
		}
		written = append(written, output.path)
		if err := checkOutputs(output.flag, written, inputs...); err != nil {
			return err
		}
	}
	return nil
}

func (x *prediction) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	x.Models, err = modelFiles(x.Models...)
	if err != nil {
		return err
	}
	if err := x.check(); err != nil { // with the models of a directory
		return err
	}
	opened, err := x.openReplicas(x.engine, x.Models...)
	if err != nil {
		return err
	}
	defer opened.Close()
	models := opened.models
	if err := x.checkModels(models); err != nil {
		return err
	}
	for k, m := range models {
		models[k] = m.Remembering(apply.CacheSize() / len(models)) // which their copies share
	}
	copies := opened.copies(models...)
	var replicas []apply.Model
	for _, copied := range copies {
		rows, err := x.rows(copied)
		if err != nil {
			return fmt.Errorf("%s: %w", x.Models[0], err)
		}
		replicas = append(replicas, rows)
	}

	var scorer *scorer
	if !x.joins() {
		scorer, err = x.newScorer(ctx, *models[0].Card.Head)
		if err != nil {
			return err
		}
	}
	if err := x.output.write(ctx, "predict", replicas, stdout, stderr); err != nil {
		return err
	}
	var invalid error // an observed value, which is no reason to write less
	if scorer != nil {
		report := stdout
		if x.Out == stdio {
			report = stderr
		}
		invalid = scorer.write(report, x.resumed)
	}
	if opened.shared {
		copies = copies[:1]
	}
	if err := x.writeMore(ctx, models, copies, replicas[0]); err != nil {
		return errors.Join(invalid, err)
	}
	return errors.Join(invalid, x.writeNext(stdout))
}

// writeMore writes the files of -domain and -explain, if they are asked for.
func (x *prediction) writeMore(
	ctx context.Context, models []*model.Trained, copies [][]*model.Trained, rows apply.Model,
) error {
	if x.Domain != "" {
		if err := x.writeDomain(ctx, models, rows); err != nil {
			return err
		}
	}
	if x.Explain == "" {
		return nil
	}
	return x.explain(ctx, copies, rows)
}

// rows returns what is written for each record.
func (x *prediction) rows(models []*model.Trained) (apply.Model, error) {
	if x.joins() {
		return x.joinedRows(models)
	}
	rows, err := apply.Sure(x.Level, x.Distance, models...)
	if err != nil || !x.Answers {
		return rows, err
	}
	return apply.Answers(rows, models...)
}

// joins reports whether the models are several endpoints, whose columns stand next to each other.
func (x *prediction) joins() bool {
	isShipped := func(path string) bool {
		_, ok := shipped(path)
		return ok
	}
	return len(x.Models) > 1 && slices.ContainsFunc(x.Models, isShipped)
}

// joinedRows returns what the job applies of several endpoints.
func (x *prediction) joinedRows(models []*model.Trained) (apply.Model, error) {
	var parts []apply.Model
	var cards []model.Card
	shared := new(model.Shared)
	for _, m := range models {
		part, err := apply.Sure(x.Level, x.Distance, m.Sharing(shared))
		if err == nil && x.Answers && m.Card.Head.Kind == model.Binary {
			part, err = apply.Answers(part, m)
		}
		if err != nil {
			return part, err
		}
		for k, column := range part.Columns {
			if column == "distance" {
				part.Columns[k] = part.Columns[0] + "_distance"
			}
		}
		parts = append(parts, part)
		cards = append(cards, m.Card)
	}
	return apply.Joined(parts, cards)
}

// writeNext prints the flags that say how sure a prediction is, unless they are given.
func (x *prediction) writeNext(w io.Writer) (err error) {
	switch {
	case x.Out == stdio || x.Shard.N > 0:
	case x.Level == 0 && !x.Distance:
		_, err = fmt.Fprintln(w, "next: -level 0.9 adds prediction intervals, -distance how unusual a record is")
	case x.Explain != "":
		_, err = fmt.Fprintf(w, "%s: the contribution of each node or atom\n", x.Explain)
	}
	return err
}

// writeDomain reads the input again, and writes the table of -domain.
func (x *prediction) writeDomain(ctx context.Context, models []*model.Trained, rows apply.Model) error {
	index, err := apply.OpenDomain(models...)
	if err != nil {
		return fmt.Errorf("-domain: %w", err)
	}
	options, err := x.input.options()
	if err != nil {
		return err
	}
	job := apply.Job{Path: x.In, Records: options, Model: rows}
	return files.Write(x.Domain, func(w io.Writer) error {
		return job.Domain(ctx, w, index)
	})
}

// checkModels returns an error unless the models predict, and the same things from the same features.
func (x *prediction) checkModels(models []*model.Trained) error {
	for i, m := range models {
		if m.Card.Head == nil {
			return fmt.Errorf("%s: an encoder without a head cannot predict: embed with it, "+
				"or finetune it first", x.Models[i])
		}
		if x.By == byFragments && m.Card.Features != nil {
			return cli.Usagef("-explain-by fragments is for molecules, and %s reads graphs", x.Models[i])
		}
		if !x.joins() && !apply.Alike(models[0].Card, m.Card) {
			return cli.Usagef("-model: %s and %s predict different things, or from different features",
				x.Models[0], x.Models[i])
		}
		x.Ignore = append(x.Ignore, m.Card.Head.Tasks...)
	}
	return nil
}

// explain reads the input again, and writes the contribution of each node to the file of -explain.
func (x *prediction) explain(ctx context.Context, copies [][]*model.Trained, rows apply.Model) error {
	var explainers []*apply.Explainer
	for _, models := range copies {
		e, err := apply.NewExplainer(models...)
		if err != nil {
			return err
		}
		e.ByFragments = x.By == byFragments
		explainers = append(explainers, e)
	}
	options, err := x.input.options()
	if err != nil {
		return err
	}
	job := apply.Job{Path: x.In, Records: options, Model: rows}
	return files.Write(x.Explain, func(w io.Writer) error {
		if strings.ToLower(filepath.Ext(x.Explain)) == ".html" {
			return writeExplained(ctx, w, &job, copies[0][0].Card.Head, explainers, intervals(x.Level, copies[0]))
		}
		return job.Explain(ctx, w, explainers...)
	})
}
