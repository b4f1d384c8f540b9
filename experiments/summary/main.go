// Command summary prints the tables that gather what the repository has measured, as
// Markdown. Of the unsupervised methods: accuracy on the paper's eight sets beside the
// published figures, the seeds of each figure, mean ranks, accuracy with linear machines,
// what L_G adds, and the preregistered analysis of what a graph of similarities adds. Of
// the semi-supervised and the transfer regime: the tables of the paper, beside it, and
// what pre-training adds.
//
//	go run ./experiments/summary
//	go run ./experiments/summary -in RUN,OTHER
//
// It reads nothing but results.json files.
package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/table"
)

func main() { cli.Main(run) }

const synopsis = `The paper's tables as far as they are measured, as Markdown, from the results of
experiments/unsupervised, kernels, semisupervised and transfer.`

func run(_ context.Context, args []string, stdout, stderr io.Writer) error {
	var in []string
	for _, name := range []string{"kernels", "unsupervised", "semisupervised", "transfer"} {
		in = append(in, filepath.Join("experiments", name, "results"))
	}
	flags := cli.NewFlagSet("summary", synopsis, "-in RUN,OTHER")
	cli.Var(flags, &in, "in", cli.List(cli.Text), "`folders` with results.json files, at any depth and by any name that ends in .json;\nthose of -smaller.json are marked as a smaller form of their method; a file that is not in a\nrun directory says by its name what is not usual: NCI1-0.01.json is semi-supervised with\nthat share of the labels, tox21-100.json transfer with that many epochs")
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	r, err := read(in)
	if err != nil {
		return err
	}
	for _, line := range r.unshown() {
		fmt.Fprintln(stderr, line)
	}
	tables := []*table.Table{
		r.accuracy(table1, protocol), r.seeds(table1, protocol), r.ranks(), r.accuracy(table1, linear), r.differences(table1, protocol), r.differences(table1, linear), r.graph(),
		r.accuracy(table2, "test-max"), r.accuracy(table2, "val"), r.seeds(table2, "val"), r.gains(table2, "test-max", "val"), r.differences(table2, "test-max", "val"),
		r.accuracy(table3, "last"), r.accuracy(table3, "best-val"), r.gains(table3, "last", "best-val"),
	}
	for _, t := range slices.DeleteFunc(tables, func(t *table.Table) bool { return t == nil || t.Rows() == 0 }) {
		if err := t.WriteMarkdown(stdout); err != nil {
			return err
		}
		fmt.Fprintln(stdout)
	}
	return nil
}
