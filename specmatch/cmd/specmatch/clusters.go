package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/library"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run/progress"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// clustering is the command cluster.
type clustering struct {
	collection
	Least    float64
	Scaffold bool
}

func setupClusters(f *cli.FlagSet) cli.Action {
	x := &clustering{Least: 0.6}
	f.Common("in", "out", "least", "by", "scaffold", "page", "keep", "id", "smiles-column")
	x.register(f, func() {
		cli.Var(f, &x.Least, "least", setting.Float(0, 1),
			"smallest `similarity` of a molecule to the centre of its cluster")
		f.BoolVar(&x.Scaffold, "scaffold", false,
			"make a cluster of the molecules with the same Bemis-Murcko scaffold, whatever their similarity")
	})
	f.Check(func() error {
		if x.Scaffold && f.Given("least", "by", "model") {
			return cli.Usagef("-scaffold compares scaffolds: leave out -least, -by and -model")
		}
		return nil
	})
	return x.run
}

func (x *clustering) run(ctx context.Context, stdout, stderr io.Writer) error {
	if x.Scaffold {
		return x.groupScaffolds(ctx, stdout, stderr)
	}
	closeModel, err := x.open()
	if err != nil {
		return err
	}
	defer closeModel()
	items, set, err := x.readAll(ctx, "read", x.Keep, stderr, nil)
	if err != nil {
		return err
	}
	bar := progress.Start(stderr, progress.Options{Label: "cluster", Unit: "molecule", Total: len(items)})
	defer bar.Stop()
	clusters, err := library.Butina(ctx, set, x.Least, bar.Add)
	bar.Stop()
	if err != nil {
		return err
	}
	r := x.tabulate("Clusters", "similarity", items, clusters, func(i, centre int) string {
		return similarityText(set, i, centre)
	})
	return x.finish(ctx, r, len(clusters), stdout, stderr)
}

// similarityText formats the similarity of a molecule to the centre of its cluster, 1 for the centre.
func similarityText(set library.Set, i, centre int) string {
	if i == centre {
		return "1"
	}
	return number(set.Similarity(i, centre))
}

// tabulate returns a row for each molecule, cluster by cluster. text is that of the last column, for a molecule and
// the first one of its cluster.
func (x *clustering) tabulate(
	title, last string, items []item, clusters [][]int, text func(i, first int) string,
) *result {
	r := &result{
		columns: x.header([]string{"cluster", "size"}, last),
		smiles:  3,
		title:   title + " of " + x.In,
		colour:  "cluster",
	}
	for k, cluster := range clusters {
		for _, i := range cluster {
			molecule := items[i]
			row := []string{
				strconv.Itoa(k + 1),
				strconv.Itoa(len(cluster)),
				molecule.id,
				molecule.smiles,
			}
			row = append(row, molecule.fields...)
			row = append(row, text(i, cluster[0]))
			r.rows = append(r.rows, row)
		}
	}
	return r
}

// finish writes the table and the page.
func (x *clustering) finish(ctx context.Context, r *result, clusters int, stdout, stderr io.Writer) error {
	if err := x.write(ctx, r, stdout, stderr); err != nil || x.Out == stdio {
		return err
	}
	_, err := fmt.Fprintf(stdout, "%s: %d clusters of %d molecules\n", x.Out, clusters, len(r.rows))
	return err
}

// groupScaffolds makes a cluster of each scaffold.
func (x *clustering) groupScaffolds(ctx context.Context, stdout, stderr io.Writer) error {
	var parser molecule.Parser
	var scaffolds []string
	items, _, err := x.readAll(ctx, "read", x.Keep, stderr, func(r *records.Record) {
		scaffolds = append(scaffolds, parser.ScaffoldSMILES(parser.Unmapped(r.Molecule)))
	})
	if err != nil {
		return err
	}
	groups := library.Group(scaffolds)
	r := x.tabulate("Scaffolds", "scaffold", items, groups, func(i, _ int) string { return scaffolds[i] })
	return x.finish(ctx, r, len(groups), stdout, stderr)
}
