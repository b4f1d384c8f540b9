package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/report"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/tensor/files"
)

func setupReport(f *cli.FlagSet) cli.Action {
	var in []string
	var o report.Options
	out := "report.html"
	cli.Var(f, &in, "in", setting.List(setting.Text), "run `directories` A,B, or folders that contain them")
	cli.Var(f, &out, "out", setting.Text,
		"output `file`: .html for the whole page, .md or .tex for its tables")
	cli.Var(f, &o.Against, "against", setting.Text,
		"`row` to take differences from, by its name in the table or its -method;\n"+
			"the default is infonce, or else the simplest method in the runs")
	f.BoolVar(&o.Oracle, "oracle", false,
		"add, for each method, the setting that is best on the test data: an optimistic bound, not an\n"+
			"estimate; the name of -out must contain oracle")
	f.Check(func() error {
		switch {
		case in == nil:
			return cli.Usagef("-in is needed: one or more run directories")
		case o.Oracle && !strings.Contains(filepath.Base(out), "oracle"):
			return cli.Usagef("-out %s: want a name that contains oracle, because -oracle selects on the test data",
				out)
		}
		return checkReportOutput(out, in)
	})
	return func(_ context.Context, stdout, _ io.Writer) error {
		page, _, err := saveReport(out, in, o)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%s: %s\n", out, files.Printable(page.Title))
		if err == nil && filepath.Ext(out) == ".html" {
			_, err = fmt.Fprintln(stdout, "next: open it in a browser; it needs no network")
		}
		return err
	}
}

// checkReportOutput returns a usage error if the file out is a folder, an input, or inside a run directory.
func checkReportOutput(out string, in []string) error {
	if out == "" {
		return nil
	}
	path, err := filepath.Abs(out)
	if err == nil {
		path, err = filepath.EvalSymlinks(filepath.Dir(path))
	}
	for ; err == nil; path = filepath.Dir(path) {
		if _, missing := os.Stat(filepath.Join(path, "config.json")); missing == nil {
			return cli.Usagef("-out: %s is inside the run directory %s; choose another folder", out, path)
		}
		if path == filepath.Dir(path) {
			break
		}
	}
	var read []string // inputs that are files; those inside run directories are covered above
	for _, name := range in {
		if info, err := os.Stat(name); err == nil && !info.IsDir() {
			read = append(read, name)
		}
	}
	return checkOutputs("out", []string{out}, read...)
}

// saveReport writes the report of runs to a file, and returns the page and the number of runs.
func saveReport(out string, in []string, o report.Options) (*report.Page, int, error) {
	runs, err := report.Read(in)
	if err != nil {
		return nil, 0, err
	}
	page, err := report.New(runs, o)
	if err != nil {
		return nil, 0, err
	}
	return page, len(runs), page.Save(out)
}

func setupCompare(f *cli.FlagSet) cli.Action {
	var in []string
	var out string
	cli.Var(f, &in, "in", setting.List(setting.Text), "two run `directories` A,B")
	cli.Var(f, &out, "out", setting.Text, "output `file`, .html, .md or .tex; by default the text is printed")
	f.Check(func() error {
		if len(in) != 2 {
			return cli.Usagef("-in is needed: two runs, as in -in runs/a,runs/b")
		}
		return checkReportOutput(out, in)
	})
	return func(_ context.Context, stdout, _ io.Writer) error {
		runs, err := report.Read(in)
		if err != nil {
			return err
		}
		if len(runs) != 2 {
			return cli.Usagef("-in holds %d runs: want two", len(runs))
		}
		page := report.Compare(runs[0], runs[1])
		if out != "" {
			return page.Save(out)
		}
		return page.WriteText(stdout)
	}
}
