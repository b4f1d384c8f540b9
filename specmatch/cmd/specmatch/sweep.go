package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/report"
	"github.com/specmatch/specmatch/specmatch/run/sweep"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// sweepReport is the page that a sweep leaves in its directory.
const sweepReport = "report.html"

func setupSweep(f *cli.FlagSet) cli.Action {
	x := &sweepCommand{slurm: sweep.Slurm{CPUs: 1}, workers: runtime.GOMAXPROCS(0)}
	cli.Var(f, &x.in, "in", setting.Text,
		"`file` with the sweep, such as\n"+
			"unsupervised -method infonce,specmatch -seeds 3   # the experiment and the flags of all runs\n"+
			"grid -beta 0.05 1                                 # values of a flag; grids are multiplied\n"+
			"run -beta 0.5                                     # one more run")
	cli.Var(f, &x.out, "out", setting.Text, "`directory` of the sweep; an existing sweep is resumed")
	cli.Var(f, &x.workers, "workers", setting.Int(1), "number of parallel `tasks` on this machine")
	cli.Var(f, &x.shares, "shares", setting.Int(1),
		"number `n` of shards per run, one task each; the default is -workers, and with -slurm or -pilot\n"+
			"the number of independent units of the run")
	f.BoolVar(&x.pilot, "pilot", false,
		"run only the first shard of every run, on this machine, to measure time and memory for -slurm")
	f.BoolVar(&x.submit, "slurm", false,
		"submit the tasks as a job array, and a final job that joins their results and reports")
	cli.Var(f, &x.slurm.Partition, "partition", setting.Text, "Slurm `partition`")
	cli.Var(f, &x.slurm.Time, "time", setting.Text,
		"`time` limit of a Slurm task, as for sbatch; the default is three times the measured time of as\n"+
			"many units plus a minute")
	cli.Var(f, &x.slurm.Memory, "memory", setting.Text,
		"`memory` limit of a Slurm task, as for sbatch; the default is 1.5 times the measured memory\n"+
			"plus 256M")
	cli.Var(f, &x.slurm.CPUs, "cpus", setting.Int(1), "`cores` of a Slurm task")
	f.Check(func() error {
		switch {
		case x.in == "" || x.out == "":
			return cli.Usagef("-in and -out are needed: the file with the sweep, and the directory for its runs")
		case x.pilot && x.submit:
			return cli.Usagef("-pilot and -slurm exclude each other: run the pilot first, then submit")
		}
		var written []string
		for _, name := range append([]string{sweepReport}, sweep.Files...) {
			written = append(written, filepath.Join(x.out, name))
		}
		return checkOutputs("out", written, x.in)
	})
	return x.run
}

// sweepCommand is the command sweep.
type sweepCommand struct {
	in, out         string
	workers, shares int
	pilot, submit   bool
	slurm           sweep.Slurm
}

func (x *sweepCommand) run(ctx context.Context, stdout, stderr io.Writer) error {
	s, err := sweep.Parse(x.in)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	if err := s.Prepare(x.out); err != nil {
		return err
	}
	defer s.Close()
	page := filepath.Join(x.out, sweepReport)
	switch {
	case x.submit:
		self, err := os.Executable()
		if err != nil {
			return err
		}
		return s.Submit(stdout, s.Tasks(x.shares), x.slurm, []string{
			self, "report", "-in", x.out, "-out", page,
		})
	case x.pilot:
		tasks := slices.DeleteFunc(s.Tasks(x.shares), func(t sweep.Task) bool { return t.Share > 0 })
		return s.Local(ctx, stderr, x.workers, tasks)
	}
	tasks := s.Tasks(cmp.Or(x.shares, x.workers))
	if err := s.Local(ctx, stderr, x.workers, tasks, s.Gather()); err != nil {
		return err
	}
	_, runs, err := saveReport(page, []string{x.out}, report.Options{})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: report of %d runs\n", page, runs)
	return err
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
