package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/gnn/molecule/library"
	"github.com/specmatch/specmatch/gnn/molecule/smarts"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run/progress"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// searching is the command search.
type searching struct {
	collection
	Queries []string
	File    string
	SMARTS  string
	Top     int
	Least   float64

	pattern *smarts.Pattern // nil without -smarts
	matcher smarts.Matcher
}

func setupSearch(f *cli.FlagSet) cli.Action {
	x := &searching{Top: 10}
	f.Common("in", "query", "queries", "smarts", "out", "top", "least", "by", "page", "keep", "id", "smiles-column")
	x.register(f, func() {
		cli.Var(f, &x.Queries, "query", setting.List(setting.Text), "SMILES `A,B` of the molecules to search for")
		cli.Var(f, &x.File, "queries", setting.Text,
			"`file` with the molecules to search for, read as -in is")
		cli.Var(f, &x.SMARTS, "smarts", setting.Text,
			"`pattern` (SMARTS) of a substructure: only molecules with it are found; without queries, all of them")
		cli.Var(f, &x.Top, "top", setting.Int(0),
			"`number` of molecules to find for each query; 0 is all with the similarity of -least")
		cli.Var(f, &x.Least, "least", setting.Float(0, 1), "smallest `similarity` of a molecule that is found")
	})
	f.Check(func() error { return x.checkQueries(f) })
	return x.run
}

// checkQueries returns an error if there is nothing to search for, or if flags contradict each other.
func (x *searching) checkQueries(f *cli.FlagSet) (err error) {
	alone := len(x.Queries) == 0 && x.File == ""
	switch {
	case alone && x.SMARTS == "":
		return cli.Usagef("-query, -queries or -smarts is needed: SMILES to search for, a file of them, " +
			"or a substructure")
	case alone && f.Given("least", "by", "model"):
		return cli.Usagef("-least, -by and -model compare molecules with queries: give -query or -queries")
	case x.In == stdio && x.File == stdio:
		return cli.Usagef("standard input can be one of -in and -queries: name a file for the other")
	case !alone && x.Top == 0 && x.Least == 0:
		return cli.Usagef("-top 0 finds all molecules that are similar enough: give -least")
	}
	if x.SMARTS != "" {
		x.pattern, err = smarts.Compile(x.SMARTS)
		if err != nil {
			return cli.Usagef("-smarts %s: %w", x.SMARTS, err)
		}
	}
	if !f.Given("top") && (alone || x.Least > 0) { // -least 0 is the default
		x.Top = 0
	}
	if x.File == "" {
		return nil
	}
	if err := x.checkApart(x.File); err != nil {
		return err
	}
	return x.queryFile().checkFile()
}

// has reports whether a molecule has the substructure of -smarts, if there is one.
func (x *searching) has(r *records.Record) bool {
	if x.pattern == nil {
		return true
	}
	x.matcher.Reset(r.Molecule)
	return x.matcher.Has(x.pattern)
}

func (x *searching) run(ctx context.Context, stdout, stderr io.Writer) error {
	if len(x.Queries) == 0 && x.File == "" {
		return x.match(ctx, stdout, stderr)
	}
	closeModel, err := x.open()
	if err != nil {
		return err
	}
	defer closeModel()
	queries, set, err := x.readQueries(ctx, stderr)
	if err != nil {
		return err
	}
	best := make([]*library.Best, len(queries))
	for q := range best {
		best[q] = library.NewBest(x.Top, x.Least)
	}
	found, err := x.search(ctx, set, best, stderr)
	if err != nil {
		return err
	}
	r := &result{
		columns: x.header([]string{"query"}, "similarity"),
		smiles:  2,
		title:   "Molecules similar to " + strings.Join(shortened(queries), ", "),
		colour:  "similarity",
	}
	for q, query := range queries {
		for _, hit := range best[q].Hits() {
			molecule := found[hit.Index]
			row := append([]string{query.id, molecule.id, molecule.smiles}, molecule.fields...)
			r.rows = append(r.rows, append(row, number(hit.Similarity)))
		}
	}
	if err := x.write(ctx, r, stdout, stderr); err != nil || x.Out == stdio {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %d molecules for %d queries, of %d\n",
		x.Out, len(r.rows), len(queries), x.input.reading.Records-x.count)
	return err
}

// match finds all molecules with the substructure, or the first ones.
func (x *searching) match(ctx context.Context, stdout, stderr io.Writer) error {
	bar := progress.Start(stderr, progress.Options{Label: "search", Unit: "record"})
	defer bar.Stop()
	r := &result{
		columns: x.header(nil, "matches"),
		smiles:  1,
		title:   "Molecules with " + x.SMARTS,
	}
	options, err := x.input.options()
	if err != nil {
		return err
	}
	options.Want = records.Molecules
	options.Fields = x.Keep
	options.Molecules = true
	options.Atoms = feature.Rich.Name
	err = records.Read(ctx, x.In, options, func(rec *records.Record) error {
		bar.Add(1)
		switch {
		case rec.Err != nil:
			return x.reject(rec)
		case !x.has(rec):
			return nil
		}
		molecule := newItem(rec)
		row := append([]string{molecule.id, molecule.smiles}, molecule.fields...)
		r.rows = append(r.rows, append(row, strconv.Itoa(x.matcher.Count(x.pattern))))
		if len(r.rows) == x.Top {
			return errFull
		}
		return nil
	})
	bar.Stop()
	if err != nil && !errors.Is(err, errFull) {
		return err
	}
	x.describe(stderr)
	if err := x.write(ctx, r, stdout, stderr); err != nil || x.Out == stdio {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %d of %d molecules have the substructure\n",
		x.Out, len(r.rows), x.input.reading.Records-x.count)
	return err
}

// shortened returns the names of the first queries.
func shortened(queries []item) (names []string) {
	const most = 3
	for _, q := range queries[:min(most, len(queries))] {
		names = append(names, q.id)
	}
	if len(queries) > most {
		names = append(names, fmt.Sprintf("%d more", len(queries)-most))
	}
	return names
}

// readQueries returns the queries, those of -query first.
func (x *searching) readQueries(ctx context.Context, stderr io.Writer) (queries []item, set library.Set, err error) {
	bar := progress.Start(io.Discard, progress.Options{})
	defer bar.Stop()
	set = x.newSet()
	add := func(file *input, byID bool) error {
		return x.read(ctx, file, nil, bar, func(part []*records.Record, read library.Set) error {
			for i, r := range part {
				query := newItem(r)
				if !byID {
					query.id = query.smiles
				}
				library.Append(set, read, i)
				queries = append(queries, query)
			}
			return nil
		})
	}
	if len(x.Queries) > 0 {
		given := &input{
			In:       stdio,
			Format:   records.SMI,
			Standard: x.Standard,
			stdin:    strings.NewReader(strings.Join(x.Queries, "\n") + "\n"),
		}
		strict := x.Strict
		x.Strict = true
		if err := add(given, false); err != nil {
			return nil, nil, fmt.Errorf("-query: %w", err)
		}
		x.Strict = strict
	}
	if x.File != "" {
		file := x.queryFile()
		first := func(*records.Record) bool { return true }
		if !file.isStream() && file.peek(ctx, records.Options{}, first).SMILES == "" {
			file.SMILES = "" // the queries lack the column of -in
		}
		if err := add(file, x.ID != ""); err != nil {
			return nil, nil, fmt.Errorf("-queries: %w", err)
		}
	}
	if len(queries) == 0 {
		return nil, nil, fmt.Errorf("-queries %s: there is no molecule", x.File)
	}
	if x.count > 0 {
		fmt.Fprintf(stderr, "%s: %d of the queries cannot be used, such as %v\n", x.File, x.count, x.rejected.Err)
	}
	x.count = 0
	return queries, set, nil
}

// queryFile returns the input of -queries, which is read as that of -in is.
func (x *searching) queryFile() *input {
	file := x.input.other("queries", x.File)
	if shown := formatByName(x.File); shown != "" && shown != formatByName(x.In) {
		file.Format = "" // -format is of -in
	}
	return file
}

// search reads the library part by part, and returns the molecules that are or were among the best, by their index.
func (x *searching) search(
	ctx context.Context, queries library.Set, best []*library.Best, stderr io.Writer,
) (map[int]item, error) {
	bar := progress.Start(stderr, progress.Options{Label: "search", Unit: "record"})
	defer bar.Stop()
	found := map[int]item{}
	remaining := 0 // size of found when molecules were last dropped
	offset := 0
	err := x.read(ctx, &x.input, x.Keep, bar, func(part []*records.Record, set library.Set) error {
		matched := make([]bool, len(part))
		for i, r := range part {
			matched[i] = x.pattern != nil && x.has(r)
		}
		for q, b := range best {
			if x.pattern == nil {
				set.Search(b, queries, q, 0, set.Len(), offset)
			}
			for i := range part {
				if matched[i] {
					set.Search(b, queries, q, i, i+1, offset)
				}
			}
			for hit := range b.From(offset) {
				found[hit.Index] = newItem(part[hit.Index-offset])
			}
		}
		offset += len(part)
		if len(found) > 2*remaining+partSize {
			found = kept(found, best)
			remaining = len(found)
		}
		return ctx.Err()
	})
	bar.Stop()
	if err == nil {
		x.describe(stderr)
	}
	return found, err
}

// kept returns the molecules that are among the best.
func kept(found map[int]item, best []*library.Best) map[int]item {
	remaining := map[int]item{}
	for _, b := range best {
		for _, hit := range b.Hits() {
			remaining[hit.Index] = found[hit.Index]
		}
	}
	return remaining
}
