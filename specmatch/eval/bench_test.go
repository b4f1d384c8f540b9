package eval

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/kernel"
)

// readProblem reads a problem written by testdata/bench.py.
func readProblem(b *testing.B, name string) Data {
	b.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(raw[8*i:]) }
	n, dim := int(word(0)), int(word(1))
	if len(raw) != 8*(2+n*dim+n) {
		b.Fatalf("%s: %d bytes do not hold %d×%d", name, len(raw), n, dim)
	}
	d := Data{X: make([]float64, n*dim), Dim: dim, Y: make([]int, n)}
	for i := range d.X {
		d.X[i] = math.Float64frombits(word(2 + i))
	}
	for i := range d.Y {
		d.Y[i] = int(word(2 + n*dim + i))
	}
	return d
}

// BenchmarkBadlyScaled has six classes and columns of sizes from 1e-6 to 1e6, which
// take the linear solver up to hundreds of steps.
func BenchmarkBadlyScaled(b *testing.B) {
	d := scaledBlobs(5, 200, 200, 6, 0.5, false)
	for i := range d.Y {
		d.Y[i] = i % 6
	}
	outer := stratified(b, d.Y, 3)
	for b.Loop() {
		if _, err := Evaluate(context.Background(), Linear, d, outer, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEvaluate runs both protocols once per round: on 600 points, or on the
// files named by SPECMATCH_EVAL_BENCH, which testdata/bench.py sets.
func BenchmarkEvaluate(b *testing.B) {
	problems := map[string]Data{"600x32": blobs(1, 600, 32, 2, 0.15)}
	if names := os.Getenv("SPECMATCH_EVAL_BENCH"); names != "" {
		clear(problems)
		for _, name := range strings.Split(names, ",") {
			problems[name[strings.LastIndexByte(name, '/')+1:]] = readProblem(b, name)
		}
	}
	for name, d := range problems {
		outer := stratified(b, d.Y, 10)
		for _, p := range Protocols() {
			b.Run(string(p)+"/"+name, func(b *testing.B) {
				var res *Result
				for b.Loop() {
					var err error
					if res, err = Evaluate(context.Background(), p, d, outer, Options{}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(res.Mean*1e10, "accuracy·1e10") // to compare all digits
			})
		}
	}
}

// BenchmarkEvaluateKernels is a seed of the WL subtree kernel, h = 0…5, on real sets,
// which lie beside the project's root: features, kernels and 2110 machines.
func BenchmarkEvaluateKernels(b *testing.B) {
	for _, name := range []string{"MUTAG", "PROTEINS", "NCI1"} {
		b.Run(name, func(b *testing.B) {
			ds, err := dataset.Open(b.Context(), filepath.FromSlash("../../../shared/data/tu"), name, dataset.Options{})
			if errors.Is(err, fs.ErrNotExist) {
				b.Skipf("no real data here: %v", err)
			}
			if err != nil {
				b.Fatal(err)
			}
			outer := stratified(b, ds.Labels(), 10)
			for b.Loop() {
				kernels := kernel.Subtree(kernel.Refine(ds.Graphs, 5).Counts())
				for _, k := range kernels {
					k.Normalize()
				}
				res, err := EvaluateKernels(b.Context(), kernels, ds.Labels(), outer, nil, Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(res.Mean*1e10, "accuracy·1e10") // to compare all digits
			}
		})
	}
}

// The inner loops, at the size of a training part of 4110 points.
func BenchmarkSMOStep(b *testing.B) {
	const n = 2959
	f, up, low := make([]float64, n), make([]float64, n), make([]float64, n)
	ki, kj := make([]float32, n), make([]float32, n)
	for i := range n {
		f[i] = uniform(1, uint64(i))
		low[i] = 2
		ki[i], kj[i] = float32(0.5+uniform(2, uint64(i))/2), float32(0.5+uniform(3, uint64(i))/2)
		switch i % 3 {
		case 0:
			up[i] = math.Inf(-1)
		case 1:
			low[i] = math.Inf(1)
		}
	}
	b.Run("SubtractArgmax", func(b *testing.B) {
		for b.Loop() {
			simd.SubtractArgmax(f, up, ki, kj, 1e-9, -1e-9)
		}
	})
	b.Run("ArgmaxGain", func(b *testing.B) {
		for b.Loop() {
			simd.ArgmaxGain(f, low, ki, 0.5, tau)
		}
	})
}

func BenchmarkKernel(b *testing.B) {
	d := blobs(1, 1000, 96, 2, 0.1)
	b.Run("distances", func(b *testing.B) {
		for b.Loop() {
			if _, err := squaredDistances(context.Background(), d, upTo(1000), 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	d2, err := squaredDistances(context.Background(), d, upTo(1000), 1)
	if err != nil {
		b.Fatal(err)
	}
	var m kernelMachine
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			m.load(d2, upTo(1000), nil, 0.01)
		}
	})
}
