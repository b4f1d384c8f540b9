package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/gnn/molecule/library"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/report/gallery"
	"github.com/specmatch/specmatch/specmatch/run/progress"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/tensor/files"
)

// comparison says how two molecules are compared.
type comparison struct {
	kind         string
	radius, size int // of a fingerprint
}

// The kinds of comparisons.
const (
	byBits     = "bits"
	byCounts   = "counts"
	byVectors  = "vectors"
	byScaffold = "scaffold"
)

const (
	mostRadius = 10
	mostBits   = 1 << 16
)

// String returns the text that [parseComparison] reads.
func (c comparison) String() string {
	switch c.kind {
	case byBits:
		return fmt.Sprintf("%s:%d:%d", c.kind, c.radius, c.size)
	case byCounts:
		return fmt.Sprintf("%s:%d", c.kind, c.radius)
	}
	return c.kind
}

// parseComparison reads bits[:RADIUS[:SIZE]], counts[:RADIUS] or vectors.
func parseComparison(text string) (c comparison, err error) {
	kind, rest, _ := strings.Cut(text, ":")
	c = comparison{kind: kind, radius: 2, size: 2048}
	if _, err := setting.OneOf(byBits, byCounts, byVectors)(kind); err != nil {
		return c, err
	}
	if rest == "" {
		return c, nil
	}
	radius, size, sized := strings.Cut(rest, ":")
	c.radius, err = setting.IntIn(0, mostRadius)(radius)
	if err != nil || kind == byVectors {
		return c, fmt.Errorf("radius %q: want bits:RADIUS:SIZE or counts:RADIUS, with a radius from 0 to %d",
			radius, mostRadius)
	}
	if !sized {
		return c, nil
	}
	c.size, err = setting.IntIn(1, mostBits)(size)
	if err != nil || kind != byBits {
		return c, fmt.Errorf("size %q: want bits:RADIUS:SIZE, with a size from 1 to %d", size, mostBits)
	}
	return c, nil
}

// collection holds the flags of the commands that look at a library of molecules.
type collection struct {
	input
	engine cli.Engine
	By     comparison
	Model  string
	Keep   []string
	Strict bool
	Out    string
	Page   string

	model    *modelOnEngine  // the encoder of vectors; nil for fingerprints
	rejected *records.Record // the first one
	count    int             // of rejected records
}

// register adds the flags that all these commands have.
func (x *collection) register(f *cli.FlagSet, registerMore func()) {
	x.By = comparison{kind: byBits, radius: 2, size: 2048}
	x.Model = builtin
	f.Arguments("in", "out")
	f.Section("Input", func() {
		f.Add(&x.input)
		f.BoolVar(&x.Strict, "strict", false, "stop with an error at the first unusable record")
	})
	f.Section("Comparison", func() {
		cli.Var(f, &x.By, "by", parseComparison,
			"`comparison` of two molecules: Tanimoto's similarity of Morgan bits[:RADIUS[:SIZE]] or counts[:RADIUS],\n"+
				"or the cosine of the vectors of -model")
		cli.Var(f, &x.Model, "model", setting.Text,
			"model `file` with the encoder of -by vectors, from train or finetune; pretrained is the built-in one")
		registerMore()
	})
	f.Section("Output", func() {
		cli.Var(f, &x.Out, "out", setting.Text, "output `file`: .csv; - is standard output")
		cli.Var(f, &x.Keep, "keep", setting.List(setting.Text),
			"input `columns` or keys A,B to copy behind the id and the SMILES")
		cli.Var(f, &x.Page, "page", setting.Text,
			"HTML `file` to write: a grid of drawings that sorts and colours by any column, without a network")
	})
	f.Section("Engine", func() { f.Add(&x.engine) })
	f.Check(func() error { return x.check(f) })
}

// check returns an error if flags contradict each other.
func (x *collection) check(f *cli.FlagSet) error {
	switch {
	case x.Out == "":
		return cli.Usagef("-out is needed: a .csv file, or -")
	case x.Out != stdio && !strings.HasSuffix(strings.ToLower(x.Out), ".csv"):
		return cli.Usagef("-out %s: want a name that ends in .csv, or -", x.Out)
	case x.Page != "" && !strings.HasSuffix(strings.ToLower(x.Page), ".html"):
		return cli.Usagef("-page %s: want a name that ends in .html", x.Page)
	case f.Given("model") && x.By.kind != byVectors:
		return cli.Usagef("-model is for -by vectors")
	}
	return x.checkPlaces()
}

// checkPlaces returns an error if there is no folder for an output, if one is also an input, or if there is no input.
func (x *collection) checkPlaces() error {
	for _, path := range x.written() {
		if err := checkFolder(x.flagOf(path), path); err != nil {
			return err
		}
	}
	if err := x.checkApart(append(filesOfModels(x.Model), x.In)...); err != nil {
		return err
	}
	return x.input.checkFile()
}

// checkApart returns an error if an output is one of the files to read.
func (x *collection) checkApart(read ...string) error {
	written := x.written()
	for i, path := range written {
		if err := checkOutputs(x.flagOf(path), written[:i+1], read...); err != nil {
			return err
		}
	}
	return nil
}

// flagOf returns the flag of an output.
func (x *collection) flagOf(path string) string {
	if path == x.Page {
		return "page"
	}
	return "out"
}

// written returns the files that the command writes.
func (x *collection) written() []string {
	return slices.DeleteFunc([]string{x.Out, x.Page}, func(path string) bool { return path == stdio || path == "" })
}

// open opens the encoder, if vectors are compared. The caller calls the function that it returns.
func (x *collection) open() (closeModel func(), err error) {
	if x.By.kind != byVectors {
		return func() {}, nil
	}
	path, err := oneModelFile(x.Model)
	if err != nil {
		return nil, err
	}
	x.model, err = openModel(path, x.engine)
	if err != nil {
		return nil, err
	}
	return x.model.Close, nil
}

// newSet returns an empty set.
func (x *collection) newSet() library.Set {
	switch x.By.kind {
	case byBits:
		return library.NewBits(x.By.radius, x.By.size)
	case byCounts:
		return library.NewCounts(x.By.radius)
	}
	return library.NewVectors(x.model.Card.Encoder.Width())
}

// item is a molecule of a file.
type item struct {
	id, smiles string
	fields     []string // of -keep, then others that were asked for
}

// partSize is the number of molecules that are read before they are compared.
const partSize = 1024

// read reads a file of molecules, and calls emit with the usable records of each part and their set, which it uses
// again. An error of emit ends the reading.
func (x *collection) read(
	ctx context.Context, file *input, fields []string, bar *progress.Bar,
	emit func(part []*records.Record, set library.Set) error,
) error {
	options, err := file.options()
	if err != nil {
		return err
	}
	options.Want = records.Molecules
	options.Fields = fields
	options.Molecules = true
	options.Atoms = feature.Rich.Name // it has a category for everything; readVectors takes that of the encoder
	if x.model != nil {
		return x.readVectors(ctx, file, options, bar, emit)
	}
	set := x.newSet()
	var part []*records.Record
	flush := func() error {
		bar.Add(len(part))
		addMolecules(set, part)
		err := emit(part, set)
		part = part[:0]
		return err
	}
	err = records.Read(ctx, file.In, options, func(r *records.Record) error {
		if r.Err != nil {
			return x.reject(r)
		}
		part = append(part, r)
		if len(part) < partSize {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// addMolecules makes a set of fingerprints that of some molecules.
func addMolecules(set library.Set, part []*records.Record) {
	switch s := set.(type) {
	case *library.Bits:
		s.Reset()
		for _, r := range part {
			s.Add(r.Molecule)
		}
	case *library.Counts:
		s.Reset()
		for _, r := range part {
			s.Add(r.Molecule)
		}
	}
}

// readVectors is read for vectors of the model.
func (x *collection) readVectors(
	ctx context.Context, file *input, options records.Options, bar *progress.Bar,
	emit func([]*records.Record, library.Set) error,
) error {
	rows, err := apply.Embedder(x.model.Trained)
	if err != nil {
		return fmt.Errorf("%s: %w", x.Model, err)
	}
	job := apply.Job{Path: file.In, Records: options, Model: rows}
	set := library.NewVectors(len(rows.Columns))
	return job.Stream(ctx, func(b apply.Batch) error {
		set.Reset()
		var part []*records.Record
		for r, row := range b.Rows() {
			set.Add(row)
			part = append(part, r)
		}
		for _, r := range b.Records {
			if r.Err == nil {
				continue
			}
			if err := x.reject(r); err != nil {
				return err
			}
		}
		bar.Add(len(b.Records))
		return emit(part, set)
	})
}

// reject counts a record that cannot be used; with -strict, it returns its error.
func (x *collection) reject(r *records.Record) error {
	x.count++
	if x.count == 1 {
		x.rejected = r
	}
	if x.Strict {
		return r.Err
	}
	return nil
}

// readAll reads a whole file into memory.
func (x *collection) readAll(
	ctx context.Context, label string, fields []string, stderr io.Writer,
	see func(r *records.Record),
) (items []item, set library.Set, err error) {
	bar := progress.Start(stderr, progress.Options{Label: label, Unit: "record"})
	defer bar.Stop()
	set = x.newSet()
	err = x.read(ctx, &x.input, fields, bar, func(part []*records.Record, read library.Set) error {
		for i, r := range part {
			library.Append(set, read, i)
			items = append(items, newItem(r))
			if see != nil {
				see(r)
			}
		}
		return nil
	})
	bar.Stop()
	if err != nil {
		return nil, nil, err
	}
	x.describe(stderr)
	if len(items) == 0 {
		return nil, nil, fmt.Errorf("%s: no record can be used", x.In)
	}
	return items, set, nil
}

func newItem(r *records.Record) item { return item{id: r.ID, smiles: smilesOf(r), fields: r.Fields} }

// smilesOf returns the SMILES of a record as it is written, or as it is read from an SD file.
func smilesOf(r *records.Record) string {
	if r.SMILES != "" {
		return r.SMILES
	}
	return r.Molecule.SMILES()
}

// describe prints which columns were used, and how many records were rejected.
func (x *collection) describe(stderr io.Writer) {
	x.input.describe("", stderr)
	x.input.warnAbsent(x.Keep, stderr)
	if x.count > 0 {
		fmt.Fprintf(stderr, "%s: %d of %d records cannot be used, such as %v\n",
			x.In, x.count, x.input.reading.Records, x.rejected.Err)
	}
}

// result is a table for -out and -page.
type result struct {
	columns []string
	rows    [][]string
	smiles  int          // column of the SMILES
	title   string       // of the page
	points  [][2]float64 // of the rows, on a map; nil without one
	colour  string       // column that colours the page at first
}

// write writes the table and the page, and says so.
func (x *collection) write(ctx context.Context, r *result, stdout, stderr io.Writer) error {
	table := func(w io.Writer) error {
		rows := csv.NewWriter(w)
		rows.Write(r.columns) // rows.Error returns the first error
		for _, row := range r.rows {
			rows.Write(files.Cells(nil, row))
		}
		rows.Flush()
		return rows.Error()
	}
	if x.Page != "" {
		page := gallery.Page{
			Title:    r.title,
			Columns:  r.columns,
			Rows:     r.rows,
			SMILES:   r.smiles,
			Points:   r.points,
			Colour:   r.colour,
			Standard: x.Standard,
		}
		err := files.Write(x.Page, func(w io.Writer) error { return page.Write(ctx, w) })
		if err != nil {
			return err
		}
		if x.Out != stdio {
			fmt.Fprintf(stdout, "%s: %d drawings\n", x.Page, page.Drawings())
		}
	}
	if x.Out == stdio {
		if err := cli.CheckStdout(); err != nil {
			return err
		}
		return table(stdout)
	}
	_, absent := os.Stat(x.Out)
	if err := files.Write(x.Out, table); err != nil {
		return err
	}
	if absent == nil {
		fmt.Fprintf(stderr, "%s: replaces an earlier file\n", x.Out)
	}
	return nil
}

// header returns the columns of a table: some, the id and the SMILES, those of -keep, and others, all different.
func (x *collection) header(first []string, others ...string) (columns []string) {
	columns = append(columns, first...)
	columns = append(columns, "id", "smiles")
	columns = append(columns, x.Keep...)
	columns = append(columns, others...)
	return files.Distinct(columns[0], columns[1:]...)
}

// number formats a similarity or a coordinate.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
