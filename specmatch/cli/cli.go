// Package cli is what the experiments' command lines have in common: exit
// statuses, Ctrl-C, and flags that check themselves.
//
// The mental model: a main is one line, [Main](run), and everything testable
// lives in run, which reports how it ended by the error it returns. Flags are
// the standard library's; a [FlagSet] adds a help text that shows every default,
// a [Parser] says what a flag accepts, and a [Group] is a struct whose fields
// are the defaults before parsing and the values after it:
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
// A flag's value comes from the command line, else from its environment
// variable where it has one, else from its default.
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

	"github.com/specmatch/specmatch/tensor/files"
)

// The exit statuses of every experiment.
const (
	ExitOK          = 0   // the work was done, or help was asked for
	ExitFailure     = 1   // anything else went wrong
	ExitUsage       = 2   // a [UsageError]
	ExitInterrupted = 130 // stopped by Ctrl-C (128 + SIGINT, as shells have it) or SIGTERM
)

// UsageError is a mistake in how the command was called. It ends the command
// with [ExitUsage].
type UsageError struct{ Err error }

// Error returns the message of the wrapped error.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a [UsageError] with a message as by [fmt.Errorf].
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// Main runs an experiment and ends the process with its exit status. Nothing else in
// an experiment exits.
//
// The first Ctrl-C (or SIGTERM) cancels ctx: run stops at the next place where
// the work can be resumed, and returns an error that wraps [context.Canceled]. If
// that takes longer than a second, as within a step of a very large model, the
// process ends anyway: its run can be resumed as that of a killed process can. The
// second Ctrl-C exits at once.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	name := filepath.Base(os.Args[0])
	if n := slurmCores(os.Getenv); n > 0 {
		runtime.GOMAXPROCS(n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	// Both signals come through one channel, and not through
	// signal.NotifyContext, so that a second one right after the first is
	// not lost between two registrations.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		fmt.Fprintln(os.Stderr, "\nstopping; once more to quit at once")
		cancel()
		select {
		case <-signals:
			os.Exit(ExitInterrupted)
		case <-time.After(grace):
			os.Exit(exit(ctx, ctx.Err(), name, os.Stderr))
		}
	}()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	os.Exit(exit(ctx, err, name, os.Stderr))
}

// slurmCores returns how many cores Slurm gives to the task, which may share a node
// that does not confine it, at most those of the machine; 0 if it does not say, or
// GOMAXPROCS does.
func slurmCores(env func(string) string) int {
	if env("GOMAXPROCS") != "" {
		return 0
	}
	n, _ := strconv.Atoi(env("SLURM_CPUS_PER_TASK"))
	return min(n, runtime.NumCPU())
}

// grace is how long an interrupted run may take to stop.
const grace = 700 * time.Millisecond

// exit reports err on stderr and returns the status that it stands for.
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
