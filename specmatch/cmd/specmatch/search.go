package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule/library"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run/progress"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// searching is the command search.
type searching struct {
	collection
	Queries []string
	File    string
	Top     int
	Least   float64
}

func setupSearch(f *cli.FlagSet) cli.Action {
	x := &searching{Top: 10}
	f.Common("in", "query", "queries", "out", "top", "least", "by", "page", "keep", "id", "smiles-column")
	x.register(f, func() {
		cli.Var(f, &x.Queries, "query", setting.List(setting.Text), "SMILES `A,B` of the molecules to search for")
		cli.Var(f, &x.File, "queries", setting.Text,
			"`file` with the molecules to search for, read as -in is")
		cli.Var(f, &x.Top, "top", setting.Int(0),
			"`number` of molecules to find for each query; 0 is all with the similarity of -least")
		cli.Var(f, &x.Least, "least", setting.Float(0, 1), "smallest `similarity` of a molecule that is found")
	})
	f.Check(func() error {
		switch {
		case len(x.Queries) == 0 && x.File == "":
			return cli.Usagef("-query or -queries is needed: SMILES to search for, or a file of them")
		case x.Top == 0 && x.Least == 0:
			return cli.Usagef("-top 0 finds all molecules that are similar enough: give -least")
		}
		if f.Given("least") && !f.Given("top") {
			x.Top = 0
		}
		queries := input{In: x.File}
		if x.File == "" {
			return nil
		}
		return queries.checkFile()
	})
	return x.run
}

func (x *searching) run(ctx context.Context, stdout, stderr io.Writer) error {
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
		file := &input{In: x.File, ID: x.ID, Standard: x.Standard}
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
		for q, b := range best {
			set.Search(b, queries, q, 0, set.Len(), offset)
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
