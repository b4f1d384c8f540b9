// Package cli implements the command lines of the experiments: exit statuses, Ctrl-C, and flags that
// check themselves.
//
// The mental model: a main is one line, [Main](run). Everything testable is in run, which reports
// failures as errors. Flags are the standard library's. A [FlagSet] adds a help text with every
// default, a [setting.Parser] says what a flag accepts, and a [Group] is a struct whose fields hold
// the defaults before parsing and the values afterwards:
//
//	func main() { cli.Main(run) }
//
//	func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
//		data := cli.Data{}
//		recipe := cli.Recipe{Epochs: 20, Batch: 128, LR: 0.01, Seeds: 5}
//		flags := cli.NewFlagSet("unsupervised", "Table 1.", "-dataset MUTAG -seeds 3")
//		flags.Add(&data, &recipe)
//		if err := flags.Parse(args, stdout); err != nil {
//			return err
//		}
//		…
//	}
//
// A flag takes its value from the command line, else from its environment variable, else from its
// default.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/specmatch/specmatch/tensor/files"
)

// The exit statuses of every experiment.
const (
	ExitOK          = 0   // success, or help
	ExitFailure     = 1   // any other error
	ExitUsage       = 2   // a [UsageError]
	ExitInterrupted = 130 // stopped by Ctrl-C (128 + SIGINT, as in shells) or SIGTERM
)

// UsageError is a mistake in the command line. It ends the command with [ExitUsage].
type UsageError struct{ Err error }

// Error returns the message of the wrapped error.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a [UsageError] with a message formatted by [fmt.Errorf].
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// Main runs an experiment and ends the process with its exit status. Nothing else in an experiment
// exits.
//
// The first Ctrl-C (or SIGTERM) cancels ctx: run stops at the next point from which it can resume, and
// returns an error that wraps [context.Canceled]. If that takes about a second, as in a step of a very
// large model, the process ends anyway; the run can be resumed like that of a killed process. A second
// Ctrl-C exits at once.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	name := filepath.Base(os.Args[0])
	if n := slurmCores(os.Getenv); n > 0 {
		runtime.GOMAXPROCS(n)
	}
	// In a container, the garbage collector keeps the heap below 90 % of the memory limit, unless GOMEMLIMIT
	// sets another bound. An error means that there is no limit.
	memlimit.Set()
	ctx, cancel := context.WithCancel(context.Background())
	// Both signals come through one channel rather than signal.NotifyContext, so that a second signal
	// right after the first is not lost between two registrations.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		fmt.Fprintln(os.Stderr, "\nstopping; press Ctrl-C once more to quit at once")
		cancel()
		select {
		case <-signals:
			os.Exit(ExitInterrupted)
		case <-time.After(grace):
			os.Exit(exit(ctx, ctx.Err(), name, os.Stderr))
		}
	}()
	stdout := &checkedWriter{file: os.Stdout}
	err := run(ctx, os.Args[1:], stdout, os.Stderr)
	if err == nil && stdout.err != nil {
		err = fmt.Errorf("standard output: %w", stdout.err)
	}
	os.Exit(exit(ctx, err, name, os.Stderr))
}

// checkedWriter keeps the first error of a file, so that output that is lost ends the process with
// [ExitFailure] whether or not the command looks at the error.
type checkedWriter struct {
	file *os.File
	err  error
}

func (c *checkedWriter) Write(p []byte) (n int, err error) {
	n, err = c.file.Write(p)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

// Fd lets tables see whether they are written to a terminal.
func (c *checkedWriter) Fd() uintptr { return c.file.Fd() }

// CheckStdout returns an error if the process was started without standard output. The Go runtime then
// opens the null device in its place, for reading and writing; a shell's >/dev/null is for writing only.
func CheckStdout() error {
	out, err := os.Stdout.Stat()
	if err != nil {
		return err
	}
	null, err := os.Stat(os.DevNull)
	if err != nil || !os.SameFile(out, null) {
		return nil
	}
	if _, err := os.Stdout.Read(make([]byte, 1)); err == io.EOF {
		return errors.New("standard output is closed")
	}
	return nil
}

// slurmCores returns the number of cores that Slurm gives the task, at most those of the machine: the
// node may not confine the task to them. It returns 0 if GOMAXPROCS is set or Slurm gives no number.
func slurmCores(env func(string) string) int {
	if env("GOMAXPROCS") != "" {
		return 0
	}
	n, _ := strconv.Atoi(env("SLURM_CPUS_PER_TASK"))
	return min(n, runtime.NumCPU())
}

// grace is the time that an interrupted run may take to stop.
const grace = 700 * time.Millisecond

// exit prints err to stderr and returns its exit status.
func exit(ctx context.Context, err error, name string, stderr io.Writer) int {
	var usage *UsageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return ExitOK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "%s: %s (-h explains the flags)\n", name, files.PrintableLines(err.Error()))
		return ExitUsage
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintf(stderr, "%s: interrupted\n", name)
		return ExitInterrupted
	default:
		fmt.Fprintf(stderr, "%s: %s\n", name, files.PrintableLines(err.Error()))
		return ExitFailure
	}
}
