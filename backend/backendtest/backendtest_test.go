package backendtest

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

// recorder is a test that stops at its first failure and remembers it.
type recorder struct{ failure string }

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	if r.failure == "" {
		r.failure = fmt.Sprintf(format, args...)
	}
	panic(stop{})
}

// record returns the first failure of b in the check of the given name.
func record(name string, b backend.Backend) string {
	r := new(recorder)
	i := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
	if v := panicOf(func() { checks[i].run(r, b, testing.Short(), false) }); v != nil && v != (any)(stop{}) {
		panic(v)
	}
	return r.failure
}

// TestMutants is the test of the suite: it must find every error.
func TestMutants(t *testing.T) {
	all := mutants
	if os.Getenv("SPECMATCH_LARGE") != "" {
		all = slices.Concat(mutants, largeMutants)
	}
	for _, m := range all {
		t.Run(m.check+" "+m.error, func(t *testing.T) {
			failure := record(m.check, m.open(ref.New()))
			if failure == "" {
				t.Fatalf("the suite passes an engine whose %s %s", m.check, m.error)
			}
			if strings.Contains(failure, "panic: ") {
				t.Errorf("found by a panic, not by a comparison: %s", failure)
			}
			t.Log(failure)
		})
	}
}

// TestCoverage fails if a method of Backend has no check, or no mutant that
// shows that the check is worth something.
func TestCoverage(t *testing.T) {
	within := map[string]string{ // methods that have no check of their own name
		"Name": "Run", "Precision": "Run", "Close": "Run",
		"Free": "Alloc", "InUse": "Alloc", "Upload32": "Upload", "Download": "Upload", "FreeIndices": "Indices", "UpdateIndices": "IndexBlock",
	}
	var methods, tried []string
	for m := range reflect.TypeFor[backend.Backend]().Methods() {
		if within[m.Name] == "" {
			methods = append(methods, m.Name)
		}
	}
	methods = append(methods, "Shapes")
	for _, c := range checks {
		tried = append(tried, c.name)
		if !slices.ContainsFunc(slices.Concat(mutants, largeMutants), func(m mutant) bool { return m.check == c.name }) {
			t.Errorf("no mutant for the check %s", c.name)
		}
	}
	slices.Sort(methods)
	slices.Sort(tried)
	if d := cmp.Diff(methods, tried); d != "" {
		t.Errorf("methods of Backend (-) and checks (+) differ:\n%s", d)
	}
}

// TestMessages holds what a failure says: the primitive, the shapes, the place,
// and the numbers.
func TestMessages(t *testing.T) {
	failure := record("Gemm", gemmNoBeta{ref.New()})
	for _, want := range []string{"Gemm NN [5×7] ← [5×6] [6×7], alpha=0 beta=1, whole numbers: ", "element (0, 0) is 0, want -4 (off by 4, allowed 0)", "of 35 elements are wrong"} {
		if !strings.Contains(failure, want) {
			t.Errorf("the failure does not say %q:\n%s", want, failure)
		}
	}
}

// TestPanicIsAFailure says that an engine which panics fails with what was
// being tried.
func TestPanicIsAFailure(t *testing.T) {
	failure := record("Transpose", panicking{ref.New()})
	if !strings.Contains(failure, "Transpose [5×3] ← [3×5]") || !strings.Contains(failure, "out of order") {
		t.Errorf("the failure says neither what was tried nor the panic:\n%s", failure)
	}
}

type panicking struct{ backend.Backend }

func (b panicking) Transpose(dst, src *tensor.Tensor) {
	if src.Is(3, 5) {
		panic(errors.New("out of order"))
	}
	b.Backend.Transpose(dst, src)
}

// TestFloat32 runs the suite on an engine that is right at float32, so that a
// float32 engine is never asked for more than the rounding of the true result. The
// engine of package cpu passes the large shapes in float32.
func TestFloat32(t *testing.T) {
	Run(t, func(p tensor.Precision) (backend.Backend, error) {
		if p != tensor.Float32 {
			return nil, errors.New("no")
		}
		return rounding{ref.New()}, nil
	}, Only(tensor.Float32), Serial(), Small())
}

// TestMutantsFloat32 are errors that only float32 has.
func TestMutantsFloat32(t *testing.T) {
	mutants := map[string]backend.Backend{
		"Gemm":        tf32{rounding{ref.New()}},
		"Upload":      truncates{rounding{ref.New()}},
		"DropoutMask": maskRows{rounding{ref.New()}},
		"Adam":        biasFloat32{rounding{ref.New()}},
		"Unary":       unaryWrong{rounding{ref.New()}, backend.Softplus, func(x float64) float64 { return math.Log(float64(float32(1 + math.Exp(x)))) }},
	}
	if !testing.Short() {
		mutants["Dot"] = losesTerm{rounding{ref.New()}}
	}
	for name, b := range mutants {
		if failure := record(name, b); failure == "" || strings.Contains(failure, "panic: ") {
			t.Errorf("%s: the suite passes %T, or it panics: %q", name, b, failure)
		} else {
			t.Log(failure)
		}
	}
}

// tf32 rounds the inputs of products to 11 bits, as tensor cores do.
type tf32 struct{ backend.Backend }

func (b tf32) Gemm(dst *tensor.Tensor, tA, tB bool, alpha float64, x, y *tensor.Tensor, beta float64) {
	part := b.Alloc(x.Rows, x.Cols)
	b.Upload(part, download(b, x).mapped(func(v float64) float64 {
		return float64(math.Float32frombits((math.Float32bits(float32(v)) + 1<<12) &^ (1<<13 - 1)))
	}).v)
	b.Backend.Gemm(dst, tA, tB, alpha, part, y, beta)
	b.Free(part)
}

// losesTerm leaves the last of a hundred thousand terms out of a sum, less than
// the rounding of the others may amount to.
type losesTerm struct{ backend.Backend }

func (b losesTerm) Dot(dst, x, y *tensor.Tensor) {
	if x.Len() > 100_000 {
		v := download(b, x)
		v.v[x.Len()-1] = 0
		short := b.Alloc(x.Rows, x.Cols)
		b.Upload(short, v.v)
		defer b.Free(short)
		x = short
	}
	b.Backend.Dot(dst, x, y)
}

// truncates rounds towards zero.
type truncates struct{ backend.Backend }

func (b truncates) Upload(dst *tensor.Tensor, src []float64) {
	x := slices.Clone(src)
	for i, v := range x {
		if r := float64(float32(v)); math.Abs(r) > math.Abs(v) {
			x[i] = float64(math.Nextafter32(float32(v), 0))
		}
	}
	b.Backend.Upload(dst, x)
}

// biasFloat32 computes with constants of float32: 1-0.999 is off by 5e-5.
type biasFloat32 struct{ backend.Backend }

func (b biasFloat32) Adam(p, g, m, v, rate, step *tensor.Tensor, c backend.AdamConfig) {
	c.Beta1, c.Beta2 = float64(float32(c.Beta1)), float64(float32(c.Beta2))
	b.Backend.Adam(p, g, m, v, rate, step, c)
}

// rounding makes a float32 engine of ref: it rounds every result.
type rounding struct{ backend.Backend }

func (rounding) Precision() tensor.Precision { return tensor.Float32 }

func (b rounding) round(ts ...*tensor.Tensor) {
	for _, t := range ts {
		if t != nil {
			edit(b.Backend, t, func(x []float64) {
				for i, v := range x {
					x[i] = float64(float32(v))
				}
			})
		}
	}
}

func (b rounding) Upload(dst *tensor.Tensor, src []float64) {
	b.Backend.Upload(dst, src)
	b.round(dst)
}

func (b rounding) Fill(dst *tensor.Tensor, v float64) {
	b.Backend.Fill(dst, v)
	b.round(dst)
}

func (b rounding) FillDiagonal(dst *tensor.Tensor, v float64) {
	b.Backend.FillDiagonal(dst, v)
	b.round(dst)
}

func (b rounding) Unary(dst *tensor.Tensor, op backend.UnaryOp, a *tensor.Tensor) {
	isolated := download(b, a).mapped(func(v float64) float64 {
		if op == backend.InvSqrt && v < backend.LeastDegree(tensor.Float32) {
			return 1
		}
		return 0
	})
	b.Backend.Unary(dst, op, a)
	b.round(dst)
	edit(b.Backend, dst, func(x []float64) {
		for i, v := range isolated.v {
			if v == 1 {
				x[i] = 0
			}
		}
	})
}

func (b rounding) Binary(dst *tensor.Tensor, op backend.BinaryOp, x, y *tensor.Tensor) {
	b.Backend.Binary(dst, op, x, y)
	b.round(dst)
}

func (b rounding) BinaryRow(dst *tensor.Tensor, op backend.BinaryOp, a, row *tensor.Tensor) {
	b.Backend.BinaryRow(dst, op, a, row)
	b.round(dst)
}

func (b rounding) BinaryCol(dst *tensor.Tensor, op backend.BinaryOp, a, col *tensor.Tensor) {
	b.Backend.BinaryCol(dst, op, a, col)
	b.round(dst)
}

func (b rounding) BinaryScalar(dst *tensor.Tensor, op backend.BinaryOp, a, s *tensor.Tensor) {
	b.Backend.BinaryScalar(dst, op, a, s)
	b.round(dst)
}

func (b rounding) Affine(dst *tensor.Tensor, alpha float64, a *tensor.Tensor, c float64) {
	b.Backend.Affine(dst, alpha, a, c)
	b.round(dst)
}

func (b rounding) Axpby(dst *tensor.Tensor, alpha float64, x *tensor.Tensor, beta float64, y *tensor.Tensor) {
	b.Backend.Axpby(dst, alpha, x, beta, y)
	b.round(dst)
}

func (b rounding) ReduceRows(dst *tensor.Tensor, op backend.RowOp, a *tensor.Tensor) {
	b.Backend.ReduceRows(dst, op, a)
	b.round(dst)
}

func (b rounding) ColSums(dst, a *tensor.Tensor) {
	b.Backend.ColSums(dst, a)
	b.round(dst)
}

func (b rounding) Dot(dst, x, y *tensor.Tensor) {
	b.Backend.Dot(dst, x, y)
	b.round(dst)
}

func (b rounding) SegmentSum(dst *tensor.Tensor, ptr *backend.Indices, x *tensor.Tensor) {
	b.Backend.SegmentSum(dst, ptr, x)
	b.round(dst)
}

func (b rounding) Gemm(dst *tensor.Tensor, tA, tB bool, alpha float64, x, y *tensor.Tensor, beta float64) {
	b.Backend.Gemm(dst, tA, tB, alpha, x, y, beta)
	b.round(dst)
}

func (b rounding) SpMM(dst *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, self float64) {
	b.Backend.SpMM(dst, a, x, self)
	b.round(dst)
}

func (b rounding) UpperPercentile(theta, weights, s *tensor.Tensor, p float64) {
	b.Backend.UpperPercentile(theta, weights, s, p)
	b.round(theta, weights)
}

func (b rounding) DropoutMask(dst *tensor.Tensor, keep float64, seed uint64, step *tensor.Tensor) {
	b.Backend.DropoutMask(dst, keep, seed, step)
	b.round(dst)
}

func (b rounding) Adam(p, g, m, v, rate, step *tensor.Tensor, c backend.AdamConfig) {
	b.Backend.Adam(p, g, m, v, rate, step, c)
	b.round(p, m, v)
}
