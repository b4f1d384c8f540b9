package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/report"
	"github.com/specmatch/specmatch/specmatch/run/sweep"
	"github.com/specmatch/specmatch/specmatch/setting"
)

func setupSweep(f *cli.FlagSet) cli.Action {
	var in, out string
	var shares int
	var pilot, submit bool
	slurm := sweep.Slurm{CPUs: 1}
	workers := runtime.GOMAXPROCS(0)
	cli.Var(f, &in, "in", setting.Text,
		"`file` with the sweep:\n"+
			"unsupervised -method infonce,specmatch -seeds 3   the experiment with what all runs "+
			"share\n"+
			"grid -beta 0.05 1                                 values of a flag; all grids are "+
			"multiplied\n"+
			"run -beta 0.5                                     one more run")
	cli.Var(f, &out, "out", setting.Text, "`directory` of the sweep; one that is there goes on")
	cli.Var(f, &workers, "workers", setting.Int(1), "`tasks` that run at the same time on this machine")
	cli.Var(f, &shares, "shares", setting.Int(1),
		"`n` shares of every run, a task each; the default is as many as -workers, and with -slurm\n"+
			"or -pilot one for each part of a run that needs no other")
	f.BoolVar(&pilot, "pilot", false,
		"do the first share of every run on this machine, to measure what -slurm has to ask for, and end")
	f.BoolVar(&submit, "slurm", false,
		"submit the tasks as a job array, and a job after them that puts them together and reports")
	cli.Var(f, &slurm.Partition, "partition", setting.Text, "`partition` for -slurm")
	cli.Var(f, &slurm.Time, "time", setting.Text,
		"`time` of a task for -slurm, as sbatch has it; the default is three times what was measured, "+
			"and a minute")
	cli.Var(f, &slurm.Memory, "memory", setting.Text,
		"`memory` of a task for -slurm, as sbatch has it; the default is one and a half times what "+
			"was\n"+
			"measured, and 256M")
	cli.Var(f, &slurm.CPUs, "cpus", setting.Int(1), "`cores` of a task for -slurm")
	f.Check(func() error {
		switch {
		case in == "" || out == "":
			return cli.Usagef(
				"-in and -out are needed: the file with the sweep, and the directory for its runs",
			)
		case pilot && submit:
			return cli.Usagef("-pilot runs here, -slurm elsewhere: want one after the other")
		}
		return nil
	})
	return func(ctx context.Context, stdout, stderr io.Writer) error {
		s, err := sweep.Parse(in)
		if err != nil {
			return &cli.UsageError{Err: err}
		}
		if err := s.Prepare(out); err != nil {
			return err
		}
		defer s.Close()
		page := filepath.Join(out, "report.html")
		switch {
		case submit:
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return s.Submit(stdout, s.Tasks(shares), slurm, []string{
				self, "report", "-in", out, "-out", page,
			})
		case pilot:
			var first []sweep.Task
			for _, t := range s.Tasks(shares) {
				if t.Share == 0 {
					first = append(first, t)
				}
			}
			return s.Local(ctx, stderr, workers, first)
		}
		if shares == 0 {
			shares = workers
		}
		if err := s.Local(ctx, stderr, workers, s.Tasks(shares), s.Gather()); err != nil {
			return err
		}
		_, runs, err := saveReport(page, []string{out}, report.Options{})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%d runs: %s\n", runs, page)
		return err
	}
}

func setupStatus(f *cli.FlagSet) cli.Action {
	var out string
	cli.Var(f, &out, "out", setting.Text, "`directory` of the sweep")
	f.Check(func() error {
		if out == "" {
			return cli.Usagef("-out is needed: the directory of the sweep")
		}
		return nil
	})
	return func(_ context.Context, stdout, _ io.Writer) error {
		s, err := sweep.Open(out)
		if err != nil {
			return err
		}
		t, err := s.Status()
		if err != nil {
			return err
		}
		return t.WriteText(stdout)
	}
}
