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
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/specmatch/specmatch/backend"
	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/cuda"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/tensor"
)

func main() { cli.Main(run) }

func run(_ context.Context, args []string, stdout, _ io.Writer) error {
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

// check opens an engine and compares products of several shapes with the
// reference engine's, to 4 roundings of each term.
func check(name string, p tensor.Precision) (err error) {
	be, err := backend.Open(name, p)
	if err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			device, ok := r.(*backend.Error)
			if !ok {
				panic(r)
			}
			err = device
		}
	}()
	eps := 0x1p-23
	switch {
	case p == tensor.Float64:
		eps = 0x1p-52
	case name == "cuda-tf32":
		eps = 0x1p-10 // of inputs, truncated after ten bits
	}
	oracle := ref.New()
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(float32(rng.NormFloat64()))
		}
		return v
	}
	for _, s := range [][3]int{{1, 1, 1}, {65, 33, 129}, {512, 32, 37}, {100, 300, 301}} {
		m, n, k := s[0], s[1], s[2]
		for _, t := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			a, b := draw(m*k), draw(k*n)
			got, want := multiply(be, m, n, k, t, a, b), multiply(oracle, m, n, k, t, a, b)
			for i, w := range want {
				if allowed := 4 * eps * float64(k); !(math.Abs(got[i]-w) <= allowed) {
					return fmt.Errorf("a product [%d×%d]·[%d×%d] (transposed %v) is wrong: element %d is %v, want %v within %.2g", m, k, k, n, t, i, got[i], w, allowed)
				}
			}
		}
	}
	return be.Close()
}

// multiply returns op(a)·op(b) [m×n] with sums of k terms.
func multiply(be backend.Backend, m, n, k int, trans [2]bool, a, b []float64) []float64 {
	place := func(rows, cols int, trans bool, v []float64) *tensor.Tensor {
		if trans {
			rows, cols = cols, rows
		}
		t := be.Alloc(rows, cols)
		be.Upload(t, v)
		return t
	}
	x, y, dst := place(m, k, trans[0], a), place(k, n, trans[1], b), be.Alloc(m, n)
	defer be.Free(x)
	defer be.Free(y)
	defer be.Free(dst)
	be.Gemm(dst, trans[0], trans[1], 1, x, y, 0)
	out := make([]float64, m*n)
	be.Download(out, dst)
	return out
}
