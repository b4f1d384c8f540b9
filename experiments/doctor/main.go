// Command doctor says what this binary can compute with on this machine, and what
// to do about what it cannot:
//
//	go run ./experiments/doctor
//	go run -tags cuda ./experiments/doctor -backend cuda
//
// Every engine that opens multiplies matrices and is compared with the reference
// engine. The exit status is 1 if the one asked for with -backend is not fit.
package main

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

func main() { cli.Main(execute) }

func execute(_ context.Context, args []string, stdout, _ io.Writer) error {
	engine := cli.Engine{}
	flags := cli.NewFlagSet("doctor", "Says what this binary can compute with here.", "-backend cuda")
	flags.Add(&engine)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	line := func(what, format string, args ...any) {
		fmt.Fprintf(stdout, "%-14s %s\n", what, fmt.Sprintf(format, args...))
	}
	line("binary", "%s, %s/%s, %d threads", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
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
