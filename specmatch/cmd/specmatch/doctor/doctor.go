// Package doctor is the tool's subcommand that says what this binary can compute with on this
// machine, and what to do about what it cannot:
//
//	specmatch doctor
//	go run -tags cuda ./experiments/doctor -backend cuda
//
// Every engine that opens multiplies matrices and is compared with the reference
// engine. The exit status is 1 if the one asked for with -backend is not fit.
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

// Synopsis says what the command does.
const Synopsis = "Says what this binary can compute with here."

// Run is the command as a program of its own.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := cli.NewFlagSet("doctor", Synopsis, "-backend cuda")
	act := Setup(flags)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	return act(ctx, stdout, stderr)
}

// Setup adds the command's flags and returns what it does.
func Setup(f *cli.FlagSet) cli.Action {
	engine := new(cli.Engine)
	f.Add(engine)
	return func(_ context.Context, stdout, _ io.Writer) error {
		return diagnose(engine, stdout)
	}
}

// diagnose says what the binary can compute with. The error is that of the engine asked for.
func diagnose(engine *cli.Engine, stdout io.Writer) error {
	line := func(what, format string, args ...any) {
		fmt.Fprintf(stdout, "%-14s %s\n", what, fmt.Sprintf(format, args...))
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
		names = append(names, engine.Name()) // whose error says what to do
	}
	var asked error
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
			asked = err
		}
	}
	return asked
}

func check(name string, p tensor.Precision) error {
	be, err := backend.Open(name, p)
	if err != nil {
		return err
	}
	return errors.Join(ref.CheckProducts(be), be.Close())
}
