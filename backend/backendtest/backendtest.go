// Package backendtest is the conformance suite of the engines: it compares every
// primitive of a [backend.Backend] with its definition, package ref.
//
// An engine calls it in three lines:
//
//	func TestConformance(t *testing.T) {
//		backendtest.Run(t, func(p tensor.Precision) (backend.Backend, error) { return cpu.New(p), nil })
//	}
//
// # How a primitive is checked
//
// Every check is a table of trials: shapes at the edges of blocks and vectors
// (0, 1, 3, powers of two and their neighbours), a few large enough that
// parallel paths run, and all flags. Every trial runs on ref and on the engine
// from the same inputs, rounded to the engine's precision, and checks that
//
//   - the result is ref's, within the tolerance below, although the destination
//     held NaN before (unless the formula reads it);
//   - inputs, and tensors allocated before and after the destination, are
//     unchanged;
//   - the same call again gives the same bits: at other addresses and, for the
//     large trials, with GOMAXPROCS 1, 2 and 4;
//   - one call of each kind, captured and replayed, gives the same bits, too.
//
// Separate checks cover the rest: aliased destinations, special values, the
// accounting of memory, and a panic with *[tensor.ShapeError] for every shape that
// the contract rules out.
//
// # Tolerances
//
// With eps the distance from 1 to the next number (2⁻²³ or 2⁻⁵²):
//
//   - primitives that move, compare or select are exact, and so are Add, Sub and
//     Mul; those that only move keep the sign of zero;
//   - Div, Sqrt and Reciprocal may be off by 2·eps·|want|, transcendental
//     functions by 4·eps·|want| or a subnormal number;
//   - Affine and Axpby may be off by 2·eps·Σ|term|, other sums of K terms by
//     4·eps·√K·Σ|term|. Since that hides one lost term of many, sums are also run
//     on small integers, where rounding plays no part and any order of summation
//     gives the same, exact result;
//   - ln Σ e^a over n columns may be off by 4·eps·(|want| + √n);
//   - a percentile and its weights may be off by 2·eps of the entries and of 1, and
//     the kept elements of a dropout mask by one rounding, but zeros are where
//     ref has them;
//   - Adam may be off by 4·eps of numbers about as large as 1, which leaves no
//     room for 1-β₂ᵗ in float32: torch computes its constants in float64.
//
// Flushing subnormal numbers to zero fails. Zero times NaN or infinity is not
// tested: matrix products see finite data.
package backendtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

// An Option tells [Run] how an engine departs from the common case.
type Option func(*options)

type options struct {
	precisions []tensor.Precision
	serial     bool
	small      bool
}

// Only names the precisions that the engine supports; the default is all. The suite
// checks that opening the engine in another is an error.
func Only(ps ...tensor.Precision) Option {
	return func(o *options) {
		o.precisions = ps
	}
}

// Serial says that the engine computes on the calling goroutine alone, so its results
// cannot depend on GOMAXPROCS.
func Serial() Option {
	return func(o *options) {
		o.serial = true
	}
}

// Small skips the large shapes, for an engine without blocks or parallel paths.
func Small() Option {
	return func(o *options) {
		o.small = true
	}
}

// Run checks the engine that open opens against the contract of package
// backend, at each precision.
func Run(
	t *testing.T,
	open func(p tensor.Precision) (backend.Backend, error),
	opts ...Option,
) {
	t.Helper()
	precisions := []tensor.Precision{tensor.Float32, tensor.Float64}
	o := options{precisions: precisions}
	for _, opt := range opts {
		opt(&o)
	}
	for _, p := range precisions {
		t.Run(p.String(), func(t *testing.T) {
			b, err := open(p)
			if !slices.Contains(o.precisions, p) {
				if err == nil {
					t.Errorf(
						"open(%v) gave no error, but the engine is said not to compute in %[1]v",
						p,
					)
				}
				return
			}
			if err != nil {
				t.Fatalf("open(%v): %v", p, err)
			}
			if b.Precision() != p {
				t.Fatalf("open(%v) gave an engine of %v", p, b.Precision())
			}
			if b.Name() == "" {
				t.Error("the engine has no name")
			}
			if n := b.InUse(); n != 0 {
				t.Errorf("InUse of a fresh engine is %d bytes, want 0", n)
			}
			for _, c := range checks {
				t.Run(c.name, func(t *testing.T) {
					c.run(t, b, testing.Short() || o.small, o.serial)
				})
			}
			if err := b.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// A check is one named part of the suite. Those of a primitive have its name.
type check struct {
	name string
	do   func(*suite)
}

var checks = []check{
	{"Alloc", checkAlloc},
	{"Upload", checkUpload},
	{"Indices", checkIndices},
	{"IndexBlock", checkIndexBlock},
	{"Fetch", checkFetch},
	{"Fill", checkFill},
	{"CopyBlock", checkCopyBlock},
	{"Transpose", checkTranspose},
	{"GatherRows", checkGatherRows},
	{"FillDiagonal", checkFillDiagonal},
	{"Unary", checkUnary},
	{"Binary", checkBinary},
	{"BinaryRow", checkBinaryRow},
	{"BinaryCol", checkBinaryCol},
	{"BinaryScalar", checkBinaryScalar},
	{"Affine", checkAffine},
	{"Axpby", checkAxpby},
	{"ReduceRows", checkReduceRows},
	{"ColSums", checkColSums},
	{"Dot", checkDot},
	{"SegmentSum", checkSegmentSum},
	{"SegmentExpand", checkSegmentExpand},
	{"Gemm", checkGemm},
	{"SpMM", checkSpMM},
	{"UpperPercentile", checkUpperPercentile},
	{"DropoutMask", checkDropoutMask},
	{"Adam", checkAdam},
	{"Capture", checkCapture},
	{"Shapes", checkShapes},
}

// tb is the part of *testing.T that the suite uses. The tests of the suite itself pass
// a recorder.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
}

// maxFailures is the number of failures after which a check stops: a broken kernel
// fails hundreds of trials in the same way.
const maxFailures = 5

// stop is the value of the panic that ends a check early.
type stop struct{}

// suite is the state of one check of one engine.
type suite struct {
	tb
	b, ref   backend.Backend
	eps      float64 // distance from 1 to the next number
	normal   float64 // the smallest positive number with full precision
	smallest float64 // the smallest positive number
	largest  float64 // the largest finite number
	short    bool    // leave out the large trials
	serial   bool    // the engine is, see Serial
	rng      *rand.Rand
	trying   string // the trial in progress, for the message of a panic
	failures int
	replayed map[string]bool // the trials tried with Capture, by op
	tensors  map[*tensor.Tensor]bool
	indices  map[*backend.Indices]bool
}

// run performs the check on b. A panic is a failure, not the end of the tests.
func (c check) run(t tb, b backend.Backend, short, serial bool) {
	t.Helper()
	s := &suite{
		tb:       t,
		b:        b,
		ref:      ref.New(),
		short:    short,
		serial:   serial,
		eps:      0x1p-23,
		normal:   0x1p-126,
		smallest: math.SmallestNonzeroFloat32,
		largest:  math.MaxFloat32,
		rng:      rand.New(rand.NewPCG(20, 26)),
		replayed: map[string]bool{},
		tensors:  map[*tensor.Tensor]bool{},
		indices:  map[*backend.Indices]bool{},
	}
	if b.Precision() == tensor.Float64 {
		s.eps = 0x1p-52
		s.normal = 0x1p-1022
		s.smallest = math.SmallestNonzeroFloat64
		s.largest = math.MaxFloat64
	}
	before := b.InUse()
	defer func() {
		t.Helper()
		if r := recover(); r != nil && r != (any)(stop{}) {
			t.Errorf("%s: panic: %v\n%s", s.trying, r, debug.Stack())
			return
		}
		for x := range s.tensors {
			b.Free(x)
		}
		for x := range s.indices {
			b.FreeIndices(x)
		}
		if n := b.InUse(); n != before {
			t.Errorf(
				"InUse is %d bytes after everything was freed, want %d as before",
				n,
				before,
			)
		}
	}()
	c.do(s)
}

// errorf reports a failure and, after a few, ends the check.
func (s *suite) errorf(format string, args ...any) {
	s.Helper()
	s.Errorf(format, args...)
	s.failures++
	if s.failures >= maxFailures {
		s.Errorf("more failures are not shown")
		panic(stop{})
	}
}

// alloc allocates on the engine under test; the tensor is freed after the check
// if it is not before.
func (s *suite) alloc(rows, cols int) *tensor.Tensor {
	t := s.b.Alloc(rows, cols)
	s.tensors[t] = true
	return t
}

func (s *suite) free(t *tensor.Tensor) {
	delete(s.tensors, t)
	s.b.Free(t)
}

// upload allocates a tensor with the contents of m.
func (s *suite) upload(m matrix) *tensor.Tensor {
	t := s.alloc(m.rows, m.cols)
	s.b.Upload(t, m.v)
	return t
}

// index makes an index vector on the engine under test.
func (s *suite) index(host []int32) *backend.Indices {
	x := s.b.Indices(host)
	s.indices[x] = true
	return x
}

func (s *suite) freeIndex(x *backend.Indices) {
	delete(s.indices, x)
	s.b.FreeIndices(x)
}

// download returns the contents of t, which belongs to b.
func download(b backend.Backend, t *tensor.Tensor) matrix {
	m := constant(t.Rows, t.Cols, 12345.5) // must be overwritten
	b.Download(m.v, t)
	return m
}

// round returns v as the engine under test holds it.
func (s *suite) round(v float64) float64 {
	if s.b.Precision() == tensor.Float32 {
		return float64(float32(v))
	}
	return v
}

// rounded returns m as the engine under test holds it.
func (s *suite) rounded(m matrix) matrix {
	if s.b.Precision() == tensor.Float64 {
		return m
	}
	return m.mapped(s.round)
}

// same reports whether a and b are one number: equal with equal signs of zero,
// or both NaN.
func same(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) ||
		math.IsNaN(a) && math.IsNaN(b)
}

// wantSame fails unless got and want are the same in every element.
func (s *suite) wantSame(what string, got, want matrix) {
	s.Helper()
	for i := range want.v {
		if !same(got.v[i], want.v[i]) {
			s.errorf("%s: element %s is %v, want %v",
				what, want.at(i), got.v[i], want.v[i])
			return
		}
	}
}

// matrix is a matrix in host memory, row by row.
type matrix struct {
	rows, cols int
	v          []float64
}

func (m matrix) String() string {
	return fmt.Sprintf("[%d×%d]", m.rows, m.cols)
}

// at returns the row and column of element i, as in "(2, 17)".
func (m matrix) at(i int) string {
	return fmt.Sprintf("(%d, %d)", i/m.cols, i%m.cols)
}

// mapped returns the matrix of f(v).
func (m matrix) mapped(f func(v float64) float64) matrix {
	out := matrix{m.rows, m.cols, make([]float64, len(m.v))}
	for i, v := range m.v {
		out.v[i] = f(v)
	}
	return out
}

// constant returns a matrix whose elements are all v.
func constant(rows, cols int, v float64) matrix {
	m := matrix{rows, cols, make([]float64, rows*cols)}
	if len(m.v) > 0 {
		m.v[0] = v
	}
	for n := 1; n < len(m.v); n *= 2 {
		copy(m.v[n:], m.v[:n])
	}
	return m
}

// poison returns a matrix of NaN, the contents of a destination that must not be read.
func poison(rows, cols int) matrix {
	return constant(rows, cols, math.NaN())
}

func row(v ...float64) matrix {
	return matrix{1, len(v), v}
}

// random returns a matrix of standard normal numbers.
func (s *suite) random(rows, cols int) matrix {
	return constant(rows, cols, 0).mapped(func(float64) float64 {
		return s.rng.NormFloat64()
	})
}

// integers returns a matrix of integers from -4 to 4. Sums of their products are exact
// in both precisions.
func (s *suite) integers(rows, cols int) matrix {
	return constant(rows, cols, 0).mapped(func(float64) float64 {
		return float64(s.rng.IntN(9) - 4)
	})
}
