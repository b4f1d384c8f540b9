// Package doctor is the tool's subcommand that checks the compute engines of this binary on this
// machine, and explains how to fix those that do not work:
//
//	specmatch doctor
//	go run -tags cuda ./experiments/doctor -backend cuda
//
// Every engine that opens multiplies matrices, and the products are compared with the reference
// engine's. The exit status is 1 if the engine of -backend fails.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/specmatch/specmatch/backend"
	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/cuda"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/tensor"
)

// Synopsis describes the command in one sentence.
const Synopsis = "Checks the compute engines of this binary on this machine."

// Run is the command as a program of its own.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := cli.NewFlagSet("doctor", Synopsis, "-backend cuda")
	act := Setup(flags)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	return act(ctx, stdout, stderr)
}

// Setup adds the command's flags and returns its action.
func Setup(f *cli.FlagSet) cli.Action {
	engine := new(cli.Engine)
	f.Add(engine)
	return func(_ context.Context, stdout, _ io.Writer) error {
		return diagnose(engine, stdout)
	}
}

// diagnose prints a line for every engine. It returns the error of the engine of -backend.
func diagnose(engine *cli.Engine, stdout io.Writer) error {
	line := func(topic, format string, args ...any) {
		fmt.Fprintf(stdout, "%-14s %s\n", topic, fmt.Sprintf(format, args...))
	}
	line("binary", "%s, %s/%s, %d threads",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	for _, f := range cuda.Diagnose() {
		if f.Err != nil {
			line("cuda "+f.What, "NO: %v", f.Err)
		} else {
			line("cuda "+f.What, "%s", f.Value)
		}
	}
	names := backend.Names()
	if !slices.Contains(names, engine.Name()) {
		names = append(names, engine.Name()) // its error says what to do
	}
	var requested error
	for _, name := range names {
		if name == "ref" {
			continue
		}
		err := check(name, engine.Precision)
		if err != nil {
			line(name, "NO: %v", err)
		} else {
			line(name, "products in %v agree with the reference", engine.Precision)
		}
		if name == engine.Name() {
			requested = err
		}
	}
	return requested
}

func check(name string, p tensor.Precision) error {
	be, err := backend.Open(name, p)
	if err != nil {
		return err
	}
	return errors.Join(ref.CheckProducts(be), be.Close())
}
