// Command summary prints tables of all results in the repository as Markdown, or writes them into the
// repository's pages:
//
//	go run ./experiments/summary
//	go run ./experiments/summary -write
//	go run ./experiments/summary -in RUN,OTHER
//	go run ./experiments/summary -check -data DIR
//
// With -check it recomputes one seed of every row and compares the bits, so that no result outlives its
// code.
//
// A page marks a table with a line <!-- summary: NAME --> above and a line <!-- end --> below it. The
// tables depend only on results.json files.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/tensor/files"
)

func main() { cli.Main(execute) }

const synopsis = `The paper's tables as far as they are measured, as Markdown, from the results of
experiments/unsupervised, kernels, semisupervised and transfer.`

// pages are those that show the tables, from the root of the repository.
var pages = []string{
	"README.md", "experiments/summary/README.md", "experiments/unsupervised/results/README.md",
	"experiments/unsupervised/results/graph.md", "experiments/semisupervised/results/README.md",
	"experiments/transfer/results/README.md",
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var paths []string
	for _, name := range []string{"kernels", "unsupervised", "semisupervised", "transfer"} {
		paths = append(paths, filepath.Join("experiments", name, "results"))
	}
	write := false
	check := check{}
	flags := cli.NewFlagSet("summary", synopsis, "-write", "-in RUN,OTHER",
		"-check -data DIR -sets MUTAG,PROTEINS -cells 3")
	cli.Var(flags, &paths, "in", setting.List(setting.Text),
		"`folders` with results.json files, at any depth, under any name that ends in .json. A name that\n"+
			"ends in -smaller.json marks a smaller variant of the method. Outside of run directories, names\n"+
			"hold unusual settings: NCI1-0.01.json is semi-supervised with that fraction of the labels,\n"+
			"tox21-100.json is transfer with that number of epochs")
	flags.BoolVar(&write, "write", write,
		"write the tables into the repository's pages instead of printing them; run it in the root")
	flags.Add(&check)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	r, err := read(paths)
	if err != nil {
		return err
	}
	if check.on {
		return check.run(ctx, r, stdout, stderr)
	}
	texts, err := r.texts()
	if err != nil {
		return err
	}
	for _, line := range r.unshown() {
		fmt.Fprintln(stderr, line)
	}
	if write {
		return errors.Join(writePages(stdout, texts), r.draw(diagram))
	}
	for _, t := range texts {
		fmt.Fprintln(stdout, t.markdown)
	}
	return nil
}

type text struct{ name, markdown string }

func (outcomes results) texts() (list []text, err error) {
	for _, t := range []struct {
		name  string
		table *table.Table
	}{
		{"finding", outcomes.accuracy(finding, protocol)},
		{"table1", outcomes.accuracy(table1, protocol)},
		{"table1-seeds", outcomes.seeds(table1, protocol)},
		{"ranks", outcomes.ranks()},
		{"since", outcomes.accuracy(since, protocol)},
		{"since-linear", outcomes.accuracy(since, linear)},
		{"table1-linear", outcomes.accuracy(table1, linear)},
		{"table1-pairs", outcomes.pairs()},
		{"since-distance", outcomes.distance(since, protocol)},
		{"table1-clock", outcomes.clock(table1, protocol)},
		{"table2-clock", outcomes.clock(table2, "val", "test-max")},
		{"table3-clock", outcomes.clock(table3, "last")},
		{"differences", outcomes.differences(table1, protocol)},
		{"differences-linear", outcomes.differences(table1, linear)},
		{"graph", outcomes.graph()},
		{"table2-test-max", outcomes.accuracy(table2, "test-max")},
		{"table2-val", outcomes.accuracy(table2, "val")},
		{"table2-seeds", outcomes.seeds(table2, "val")},
		{"table2-distance", outcomes.distance(table2, "test-max")},
		{"table2-gains", outcomes.gains(table2, "test-max", "val")},
		{"table2-differences", outcomes.differences(table2, "test-max", "val")},
		{"table3-last", outcomes.accuracy(table3, "last")},
		{"table3-best-val", outcomes.accuracy(table3, "best-val")},
		{"table3-gains", outcomes.gains(table3, "last", "best-val")},
	} {
		if t.table == nil || t.table.Rows() == 0 {
			continue
		}
		var b bytes.Buffer
		if err := t.table.WriteMarkdown(&b); err != nil {
			return nil, err
		}
		list = append(list, text{t.name, b.String()})
	}
	return list, nil
}

// writePages updates the tables of all pages, and prints the pages that changed.
func writePages(stdout io.Writer, texts []text) error {
	for _, path := range pages {
		old, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("-write: want the root of the repository as the working directory: %w", err)
		}
		page, err := fill(string(old), texts)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if page == string(old) {
			continue
		}
		if err := files.Write(path, func(w io.Writer) error {
			_, err := io.WriteString(w, page)
			return err
		}); err != nil {
			return err
		}
		fmt.Fprintln(stdout, path)
	}
	return nil
}

// diagram is the figure of the page of this program.
const diagram = "experiments/summary/ranks"

// The marks around a table in a page, the first with its name in between.
const (
	markBegin, markName = "<!-- summary: ", " -->\n"
	markEnd             = "<!-- end -->"
)

// fill returns a page with the texts of its marked tables.
func fill(page string, texts []text) (string, error) {
	var b strings.Builder
	for {
		before, tail, found := strings.Cut(page, markBegin)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, tail, _ := strings.Cut(tail, markName)
		old, tail, ended := strings.Cut(tail, markEnd)
		if !ended || strings.Contains(old, markBegin) {
			return "", fmt.Errorf("no %s ends the table %q", markEnd, name)
		}
		i := slices.IndexFunc(texts, func(t text) bool { return t.name == name })
		if i < 0 {
			return "", fmt.Errorf("there is no table %q", name)
		}
		b.WriteString(markBegin + name + markName + "\n" + texts[i].markdown + "\n" + markEnd)
		page = tail
	}
}
