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
)

func setupReport(f *cli.FlagSet) cli.Action {
	var in []string
	var o report.Options
	out := "report.html"
	cli.Var(f, &in, "in", setting.List(setting.Text),
		"run `directories` A,B, or folders with some in them")
	cli.Var(f, &out, "out", setting.Text,
		"`file` to write: .html is the whole page, .md and .tex are its tables")
	cli.Var(f, &o.Against, "against", setting.Text,
		"`row` from which differences are taken, by its name in the table or its -method;\n"+
			"the default is infonce, or else the plainest that there is")
	f.BoolVar(&o.Oracle, "oracle", false,
		"add, for each method, the setting that is best on the test data, which is no estimate of "+
			"what\n"+
			"a user would get; the name of -out has to say oracle, too")
	f.Check(func() error {
		switch {
		case in == nil:
			return cli.Usagef("-in is needed: one or several run directories")
		case o.Oracle && !strings.Contains(filepath.Base(out), "oracle"):
			return cli.Usagef(
				"-out %s: want a name that says oracle, because -oracle chooses on the test data",
				out,
			)
		}
		return apartRuns(out, in)
	})
	return func(_ context.Context, stdout, _ io.Writer) error {
		page, _, err := saveReport(out, in, o)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%s: %s\n", out, page.Title)
		return err
	}
}

// apartRuns returns an error of the command line if a file is a folder, one of the inputs, or
// within a run directory, whose files are the run's.
func apartRuns(out string, in []string) error {
	if out == "" {
		return nil
	}
	path, err := filepath.Abs(out)
	if err == nil {
		path, err = filepath.EvalSymlinks(filepath.Dir(path))
	}
	for ; err == nil; path = filepath.Dir(path) {
		if _, missing := os.Stat(filepath.Join(path, "config.json")); missing == nil {
			return cli.Usagef("-out: %s is within the run directory %s, whose files are the run's",
				out, path)
		}
		if path == filepath.Dir(path) {
			break
		}
	}
	var read []string // of a folder with runs, their files are within them
	for _, name := range in {
		if info, err := os.Stat(name); err == nil && !info.IsDir() {
			read = append(read, name)
		}
	}
	return checkOutputs([]string{out}, read...)
}

// saveReport writes the report of runs to a file, and returns it and their number.
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
	cli.Var(f, &out, "out", setting.Text, "`file` to write instead of printing: .html, .md or .tex")
	f.Check(func() error {
		if len(in) != 2 {
			return cli.Usagef("-in is needed: the two runs, as in -in runs/a,runs/b")
		}
		return apartRuns(out, in)
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
