package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/molecule/library"
	"github.com/specmatch/specmatch/specmatch/check"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run/progress"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// The methods of -method.
const (
	methodPCA  = "pca"
	methodTSNE = "tsne"
)

// mapping is the command map.
type mapping struct {
	collection
	Method     string
	Perplexity float64
	Iterations int
	Colour     string
	Error      []string // a predicted and an observed column
}

func setupMap(f *cli.FlagSet) cli.Action {
	x := &mapping{Method: methodTSNE, Perplexity: 30, Iterations: 1000}
	f.Common("in", "out", "method", "by", "page", "colour", "keep", "id", "smiles-column")
	x.register(f, func() {
		cli.Var(f, &x.Method, "method", setting.OneOf(methodPCA, methodTSNE),
			"`method` that gives two coordinates: pca, principal components; tsne, which keeps similar molecules\n"+
				"close to each other")
		cli.Var(f, &x.Perplexity, "perplexity", setting.Float(1, 1000),
			"about how many `neighbours` of a molecule tsne keeps close to it")
		cli.Var(f, &x.Iterations, "iterations", setting.Int(1), "`steps` of tsne")
		cli.Var(f, &x.Colour, "colour", setting.Text,
			"input `column` that colours the page at first, such as a measured value, or a prediction that predict\n"+
				"wrote with -keep")
		cli.Var(f, &x.Error, "error", setting.List(setting.Text),
			"two input `columns A,B`, a predicted and an observed number: add the column error, A minus B, which\n"+
				"colours the page unless -colour does")
	})
	f.Check(func() error {
		switch {
		case x.Method == methodPCA && f.Given("perplexity", "iterations"):
			return cli.Usagef("-perplexity and -iterations are for -method %s", methodTSNE)
		case len(x.Error) != 0 && len(x.Error) != 2:
			return cli.Usagef("-error %s: want two columns, the predicted and the observed one",
				strings.Join(x.Error, ","))
		case x.Colour != "" && x.Page == "":
			return cli.Usagef("-colour is for -page, which is not given")
		}
		return nil
	})
	return x.run
}

func (x *mapping) run(ctx context.Context, stdout, stderr io.Writer) error {
	closeModel, err := x.open()
	if err != nil {
		return err
	}
	defer closeModel()
	for _, column := range append([]string{x.Colour}, x.Error...) {
		if column != "" && !slices.Contains(x.Keep, column) {
			x.Keep = append(x.Keep, column)
		}
	}
	items, set, err := x.readAll(ctx, "read", x.Keep, stderr, nil)
	if err != nil {
		return err
	}
	if err := x.checkErrors(items); err != nil {
		return err
	}
	projection, err := x.project(ctx, set, stderr)
	if err != nil {
		return err
	}
	computed := []string{"x", "y"}
	if x.Error != nil {
		computed = append(computed, "error")
	}
	r := &result{
		columns: x.header(nil, computed...),
		smiles:  1,
		title:   "Map of " + x.In,
		points:  projection.XY,
		colour:  x.Colour,
	}
	if x.Error != nil && x.Colour == "" {
		r.colour = r.columns[len(r.columns)-1]
	}
	for i, molecule := range items {
		row := append([]string{molecule.id, molecule.smiles}, molecule.fields...)
		for _, v := range projection.XY[i] {
			row = append(row, strconv.FormatFloat(v, 'f', 4, 64))
		}
		if x.Error != nil {
			row = append(row, x.errorOf(molecule))
		}
		r.rows = append(r.rows, row)
	}
	if err := x.write(ctx, r, stdout, stderr); err != nil || x.Out == stdio {
		return err
	}
	text := ""
	if x.Method == methodPCA {
		text = fmt.Sprintf("; the axes have %.1f and %.1f %% of the variance",
			100*projection.Ratios[0], 100*projection.Ratios[1])
	}
	_, err = fmt.Fprintf(stdout, "%s: coordinates of %d molecules%s\n", x.Out, len(items), text)
	return err
}

// checkErrors returns an error if a column of -error has no number.
func (x *mapping) checkErrors(items []item) error {
	for _, column := range x.Error {
		position := slices.Index(x.Keep, column)
		text := "" // the first value
		isNumeric := false
		for _, molecule := range items {
			value := molecule.fields[position]
			_, ok := check.Number(value)
			isNumeric = isNumeric || ok
			if text == "" && !check.IsNumberGap(strings.TrimSpace(value)) {
				text = value
			}
		}
		switch {
		case isNumeric:
		case text == "":
			return fmt.Errorf("%s: column %s has no value: -error takes two columns of numbers", x.In, column)
		default:
			return fmt.Errorf("%s: column %s: no value is a number, such as %q: -error takes two columns of numbers",
				x.In, column, text)
		}
	}
	return nil
}

// errorOf returns the difference of the columns of -error; "" if one of them is no number.
func (x *mapping) errorOf(molecule item) string {
	var values [2]float64
	for k, column := range x.Error {
		v, ok := check.Number(molecule.fields[slices.Index(x.Keep, column)])
		if !ok {
			return ""
		}
		values[k] = v
	}
	return number(values[0] - values[1])
}

// project computes the coordinates.
func (x *mapping) project(ctx context.Context, set library.Set, stderr io.Writer) (library.Projection, error) {
	if x.Method == methodPCA {
		return library.PCA(ctx, set)
	}
	bar := progress.Start(stderr, progress.Options{Label: "map", Unit: "step", Total: x.Iterations})
	defer bar.Stop()
	return library.TSNE(ctx, set, library.TSNEOptions{
		Perplexity: x.Perplexity,
		Iterations: x.Iterations,
		Done:       bar.Add,
	})
}
