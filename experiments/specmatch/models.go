package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/pretrained"
)

// builtin is the name of the encoder of molecules that is part of the program.
const builtin = "pretrained"

// openModel opens a model file, or the builtin, on an engine.
func openModel(path string, e cli.Engine) (m *specmatch.Trained, be backend.Backend, err error) {
	if be, err = e.Open(); err != nil {
		return nil, nil, err
	}
	if path == builtin {
		m, err = pretrained.Open(be)
	} else {
		m, err = specmatch.Open(path, be)
	}
	if err != nil {
		be.Close()
		return nil, nil, err
	}
	return m, be, nil
}

// modelSum returns the SHA-256 sum of a model file or the builtin.
func modelSum(ctx context.Context, path string) (string, error) {
	if path == builtin {
		return fmt.Sprintf("%x", sha256.Sum256(pretrained.Model)), nil
	}
	return dataset.SumFile(ctx, path)
}

// content returns what a model reads, and the features that graphs are to have.
func content(c specmatch.Card) (records.Content, *graph.Columns, error) {
	switch {
	case c.Features != nil:
		return records.Graphs, c.Features, nil
	case c.Encoder.Kind == gnn.KindChemGIN:
		return records.Molecules, nil, nil
	}
	return "", nil, fmt.Errorf("encoder %s reads ego networks of proteins, which no file of records has", c.Encoder.Kind)
}

// key tells an engine and model files from others.
func key(ctx context.Context, e cli.Engine, paths ...string) (string, error) {
	s := fmt.Sprintf("%s %v", e.Name(), e.Precision)
	for _, path := range paths {
		sum, err := modelSum(ctx, path)
		if err != nil {
			return "", err
		}
		s += " " + sum
	}
	return s, nil
}

func setupEmbed(f *cli.FlagSet) action {
	j := &job{input: new(input), label: "embed"}
	model := builtin
	var engine cli.Engine
	f.Add(j.input, j)
	cli.Var(f, &model, "model", cli.Text, "model `file`, such as train leaves; of one that predicts, the encoder;\npretrained is the encoder of molecules that is part of this program")
	f.Add(&engine)
	return func(ctx context.Context, stdout, stderr io.Writer) error {
		m, be, err := openModel(model, engine)
		if err != nil {
			return err
		}
		defer be.Close()
		want, features, err := content(m.Card)
		if err != nil {
			return fmt.Errorf("%s: %w", model, err)
		}
		if j.key, err = key(ctx, engine, model); err != nil {
			return err
		}
		for i := range m.Width() {
			j.columns = append(j.columns, fmt.Sprintf("h%d", i))
		}
		if j.options, err = j.input.options(features, want); err != nil {
			return err
		}
		j.compute = m.Embed
		return j.work(ctx, stdout, stderr)
	}
}

func needModel(paths ...string) error {
	if len(paths) == 0 || paths[0] == "" {
		return cli.Usagef("-model is needed: a file such as finetune leaves")
	}
	return nil
}

func setupPredict(f *cli.FlagSet) action {
	j := &job{input: new(input), label: "predict"}
	var paths []string
	var engine cli.Engine
	f.Add(j.input, j)
	cli.Var(f, &paths, "model", cli.List(cli.Text), "model `files A,B` that finetune has left; of several the mean is given, and with _std behind\nthe name the standard deviation over them")
	f.Add(&engine)
	f.Check(func() error { return needModel(paths...) })
	return func(ctx context.Context, stdout, stderr io.Writer) (err error) {
		var models []*specmatch.Trained
		for _, path := range paths {
			m, be, err := openModel(path, engine)
			if err != nil {
				return err
			}
			defer be.Close()
			if m.Card.Head == nil {
				return fmt.Errorf("%s: is an encoder without a head: embed takes it, and finetune makes a model that predicts of it", path)
			}
			if models = append(models, m); !alike(models[0].Card, m.Card) {
				return cli.Usagef("-model: %s and %s predict different things, or from different features", paths[0], path)
			}
		}
		want, features, err := content(models[0].Card)
		if err != nil {
			return fmt.Errorf("%s: %w", paths[0], err)
		}
		if j.key, err = key(ctx, engine, paths...); err != nil {
			return err
		}
		if j.options, err = j.input.options(features, want); err != nil {
			return err
		}
		j.columns = outputs(*models[0].Card.Head)
		j.compute = models[0].Predict
		if len(models) > 1 {
			for _, name := range outputs(*models[0].Card.Head) {
				j.columns = append(j.columns, name+"_std")
			}
			j.compute = func(ctx context.Context, graphs []*graph.Graph) ([]float64, error) {
				return ensemble(ctx, models, graphs)
			}
		}
		return j.work(ctx, stdout, stderr)
	}
}

// alike reports whether two models read the same records and predict the same things.
func alike(a, b specmatch.Card) bool {
	x, y := *a.Head, *b.Head
	x.Mean, x.Std, y.Mean, y.Std = nil, nil, nil, nil // of the records that each was fitted to
	return cmp.Equal(x, y) && cmp.Equal(a.Features, b.Features) && a.Encoder.Kind == b.Encoder.Kind
}

// outputs names what a head predicts: numbers and probabilities of a yes by the names
// of their tasks, probabilities of classes by class_ and the class.
func outputs(h finetune.Head) []string {
	var all []string
	for k := range h.Outputs {
		switch {
		case h.Kind == finetune.Classes && k < len(h.ClassValues):
			all = append(all, "class_"+h.ClassValues[k])
		case h.Kind == finetune.Classes:
			all = append(all, fmt.Sprintf("class_%d", k))
		case k < len(h.Tasks):
			all = append(all, h.Tasks[k])
		default:
			all = append(all, fmt.Sprintf("task_%d", k))
		}
	}
	return all
}

// ensemble returns the mean of the models' predictions and then their standard
// deviation, [n×2·outputs].
func ensemble(ctx context.Context, models []*specmatch.Trained, graphs []*graph.Graph) ([]float64, error) {
	k := models[0].Card.Head.Outputs
	all := make([]float64, 2*k*len(graphs))
	count := float64(len(models))
	var of [][]float64
	for _, m := range models {
		y, err := m.Predict(ctx, graphs)
		if err != nil {
			return nil, err
		}
		of = append(of, y)
	}
	for i := range k * len(graphs) {
		mean, squares := 0.0, 0.0
		for _, y := range of {
			mean += y[i] / count
		}
		for _, y := range of {
			squares += (y[i] - mean) * (y[i] - mean) / count
		}
		at := i/k*2*k + i%k
		all[at], all[at+k] = mean, math.Sqrt(squares)
	}
	return all, nil
}

func setupInspect(f *cli.FlagSet) action {
	path := builtin
	cli.Var(f, &path, "model", cli.Text, "model `file` to look at; pretrained is the encoder of molecules that is part of this program")
	return func(ctx context.Context, stdout, _ io.Writer) error {
		m, be, err := openModel(path, cli.Engine{Backend: "cpu"})
		if err != nil {
			return err
		}
		defer be.Close()
		sum, err := modelSum(ctx, path)
		if err != nil {
			return err
		}
		_, err = io.WriteString(stdout, describe(path, sum, m.Card))
		return err
	}
}

// describe says in lines what a model is.
func describe(path, sum string, c specmatch.Card) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	_, values := c.Encoder.Size()
	line("file", "%s", path)
	line("sha256", "%s", sum)
	line("encoder", "%s, %d layers of width %d, %d values; vectors of width %d", c.Encoder.Kind, c.Encoder.Layers, c.Encoder.Hidden, values, c.Encoder.Width())
	switch want, features, err := content(c); {
	case err != nil:
		line("reads", "%v", err)
	case features == nil:
		line("reads", "%s: .csv with a column of SMILES, .smi", want)
	default:
		line("reads", "%s: .jsonl, .csv of edges, TUDataset's .zip or folder", want)
		line("features", "%s", describeColumns(*features))
	}
	if c.Encoder.Sum {
		line("", "the sum over the atoms, not their mean")
	}
	if c.SelfLoops {
		line("", "graphs are seen with self-loops")
	}
	if h := c.Head; h != nil {
		line("predicts", "%s: %s", h.Kind, strings.Join(outputs(*h), ", "))
	} else {
		line("predicts", "nothing: it embeds")
	}
	p := c.Provenance
	for _, d := range p.Data {
		line("trained on", "%s %s", d.Name, d.SHA256)
	}
	if p.Method != "" {
		line("by", "%s, seed %d, %d epochs", p.Method, p.Seed, p.Epochs)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Options)) {
		line("", "%s %s", name, p.Options[name])
	}
	line("software", "%s", p.Software)
	return b.String()
}

func describeColumns(c graph.Columns) string {
	var parts []string
	if c.Attributes > 0 {
		parts = append(parts, fmt.Sprintf("%d attributes of nodes", c.Attributes))
	}
	for _, l := range c.Labels {
		parts = append(parts, fmt.Sprintf("labels %v", l))
	}
	if c.DegreeColumns > 0 {
		parts = append(parts, fmt.Sprintf("%d columns of the degree", c.DegreeColumns))
	}
	if parts == nil {
		return "none: every node is alike"
	}
	return strings.Join(parts, ", ")
}
