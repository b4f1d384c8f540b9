package main

import (
	"context"
	"fmt"
	"io"

	"github.com/specmatch/specmatch/specmatch/check"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/tensor/files"
)

// checking is the command check.
type checking struct {
	input
	Targets []string
	Split   string
	Merge   string
	Out     string
}

func setupCheck(f *cli.FlagSet) cli.Action {
	x := &checking{Merge: string(check.Keep)}
	f.Arguments("in", "out")
	f.Add(&x.input)
	cli.Var(f, &x.Targets, "target", setting.List(setting.Text), "`columns` A,B with labels to look at")
	cli.Var(f, &x.Split, "split", setting.Text,
		"`column` with the part of each record, such as train and test, to find molecules that two parts have")
	cli.Var(f, &x.Merge, "merge", setting.OneOf(check.Merges...),
		"`rule` for molecules with several labels in the table of -out: their mean or median (of classes, the most\n"+
			"frequent one), or drop those whose labels differ; none keeps all records")
	cli.Var(f, &x.Out, "out", setting.Text,
		"`file` (CSV) for the cleaned table: ids, canonical SMILES and labels, in the form that -largest-fragment\n"+
			"and -neutralise give; by default none is written")
	f.Check(func() error {
		if x.Out == "" {
			if x.Merge != string(check.Keep) {
				return cli.Usagef("-merge is for the table of -out, which is not given")
			}
			return x.input.checkFile()
		}
		if err := checkOutputs("out", []string{x.Out}, x.In); err != nil {
			return err
		}
		if err := checkFolder("out", x.Out); err != nil {
			return err
		}
		return x.input.checkFile()
	})
	return x.run
}

func (x *checking) run(ctx context.Context, stdout, stderr io.Writer) error {
	options, err := x.input.options()
	if err != nil {
		return err
	}
	table, err := check.Read(ctx, x.In, check.Options{Records: options, Targets: x.Targets, Split: x.Split})
	if err != nil {
		return err
	}
	x.input.describe("", stderr)
	findings := table.Findings()
	for _, f := range findings {
		fmt.Fprintf(stdout, "%-14s %s\n", f.Name, files.Printable(f.Text))
	}
	if len(findings) == 0 {
		fmt.Fprintf(stdout, "nothing odd in %d molecules\n", len(table.Rows))
	}
	if x.Out == "" {
		return nil
	}
	rows := 0
	err = files.Write(x.Out, func(w io.Writer) (err error) {
		rows, err = table.Write(w, check.Merge(x.Merge))
		return err
	})
	for _, f := range table.Losses(check.Merge(x.Merge)) {
		fmt.Fprintf(stdout, "%-14s %s\n", f.Name, files.Printable(f.Text))
	}
	if err == nil {
		_, err = fmt.Fprintf(stdout, "%s: %d of %d molecules\n", x.Out, rows, len(table.Rows))
	}
	return err
}
