package main

import (
	"context"
	"fmt"
	"io"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/report"
)

func setupReport(f *cli.FlagSet) action {
	var in []string
	var against string
	out := "report.html"
	cli.Var(f, &in, "in", cli.List(cli.Text), "run `directories` A,B, or folders with some in them")
	cli.Var(f, &out, "out", cli.Text, "`file` to write: .html is the whole page, .md and .tex are its tables")
	cli.Var(f, &against, "against", cli.Text, "`row` from which differences are taken, by its name in the table or its -method;\nthe default is infonce, else the untrained encoder, else the first")
	f.Check(func() error {
		if in == nil {
			return cli.Usagef("-in is needed: one or several run directories")
		}
		return nil
	})
	return func(_ context.Context, stdout, _ io.Writer) error {
		runs, err := report.Read(in)
		if err != nil {
			return err
		}
		page, err := report.New(runs, against)
		if err != nil {
			return err
		}
		if err := page.Save(out); err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%s: %s\n", out, page.Title)
		return err
	}
}

func setupCompare(f *cli.FlagSet) action {
	var in []string
	var out string
	cli.Var(f, &in, "in", cli.List(cli.Text), "two run `directories` A,B")
	cli.Var(f, &out, "out", cli.Text, "`file` to write instead of printing: .html, .md or .tex")
	f.Check(func() error {
		if len(in) != 2 {
			return cli.Usagef("-in is needed: the two runs, as in -in runs/a,runs/b")
		}
		return nil
	})
	return func(_ context.Context, stdout, _ io.Writer) error {
		runs, err := report.Read(in)
		if err != nil {
			return err
		}
		if len(runs) != 2 {
			return cli.Usagef("-in names %d runs: want two", len(runs))
		}
		page := report.Compare(runs[0], runs[1])
		if out != "" {
			return page.Save(out)
		}
		return page.WriteText(stdout)
	}
}
