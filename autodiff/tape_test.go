package autodiff_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

// recovered returns what f panics with, or nil.
func recovered(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// TestGradientOwnership: gradients that meet in one variable are summed, and
// none is changed or freed under the hands of another, whatever the order in
// which they arrive and whether they were lent or given.
func TestGradientOwnership(t *testing.T) {
	x0 := []float64{0.5, -1.25, 2, 3}
	type vars = *autodiff.Var
	for _, c := range []struct {
		name string
		f    func(x vars) vars
		want func(x float64) float64
	}{
		{"once", func(x vars) vars { return x.Sum() }, func(float64) float64 { return 1 }},
		{"Add(x,x)", func(x vars) vars { return x.Add(x).Sum() }, func(float64) float64 { return 2 }},
		{"Sub(x,x)", func(x vars) vars { return x.Sub(x).Sum() }, func(float64) float64 { return 0 }},
		{"Mul(x,x)", func(x vars) vars { return x.Mul(x).Sum() }, func(x float64) float64 { return 2 * x }},
		{"Div(x,x)", func(x vars) vars { return x.Div(x).Sum() }, func(float64) float64 { return 0 }},
		{"Dot(x,x)", func(x vars) vars { return x.Dot(x) }, func(x float64) float64 { return 2 * x }},
		{"thrice by loans", func(x vars) vars { return x.Add(x).Add(x).Sum() }, func(float64) float64 { return 3 }},
		{"four times by loans", func(x vars) vars { return x.Add(x).Add(x.Add(x)).Sum() }, func(float64) float64 { return 4 }},
		{"loan, then gift", func(x vars) vars { return x.Scale(3).Add(x).Sum() }, func(float64) float64 { return 4 }},
		{"gift, then loan", func(x vars) vars { return x.Add(x.Scale(3)).Sum() }, func(float64) float64 { return 4 }},
		{"loan, gift, loan", func(x vars) vars { return x.Add(x.Scale(3)).Add(x).Sum() }, func(float64) float64 { return 5 }},
		{"diamond", func(x vars) vars {
			h := x.Square()
			return h.Scale(2).Add(h.Exp()).Sum()
		}, func(x float64) float64 { return 2*x*2 + 2*x*math.Exp(x*x) }},
		{"diamond of loans", func(x vars) vars {
			h := x.Scale(2)
			return h.Add(x).Add(h).Sum()
		}, func(float64) float64 { return 5 }},
		{"a loan passed on, then added to", func(x vars) vars {
			a := x.Scale(1)
			b := a.Add(x) // lends dy to a and x
			return b.Add(a).Add(b.Square()).Sum()
		}, func(x float64) float64 { return 2 + 1 + 8*x }},
		{"a lent gradient read after another was added", func(x vars) vars {
			a, b := x.Scale(2), x.Scale(5)
			y := a.Add(b)                        // both hold the same dy
			return y.Sum().Add(a.Square().Sum()) // a adds to its own; b must not see it
		}, func(x float64) float64 { return 2 + 5 + 8*x }},
		{"concatenated with itself", func(x vars) vars {
			return autodiff.ConcatRows(x, x).Square().Add(autodiff.ConcatRows(x, x)).Sum()
		}, func(x float64) float64 { return 4*x + 2 }},
		{"through a detached copy", func(x vars) vars { return x.Mul(x.Detach()).Sum() }, func(x float64) float64 { return x }},
	} {
		for name, be := range engines() {
			kinds := map[string]func(tape *autodiff.Tape) (x vars, grad func() []float64){
				"leaf": func(tape *autodiff.Tape) (vars, func() []float64) {
					x := tape.Leaf(2, 2, x0)
					return x, x.Grad
				},
				"intermediate": func(tape *autodiff.Tape) (vars, func() []float64) {
					x := tape.Leaf(2, 2, x0)
					return x.Shift(0), x.Grad
				},
				"parameter": func(tape *autodiff.Tape) (vars, func() []float64) {
					p := autodiff.NewParam(be, "p", 2, 2, x0)
					return tape.Param(p), func() []float64 {
						d := make([]float64, 4)
						be.Download(d, p.Grad)
						p.ZeroGrad()
						return d
					}
				},
			}
			for kind, variable := range kinds {
				t.Run(fmt.Sprintf("%s/%s/%s", c.name, name, kind), func(t *testing.T) {
					tape := autodiff.NewTape(be)
					before := be.InUse()
					x, grad := variable(tape)
					if kind == "parameter" {
						before = be.InUse()
					}
					loss := c.f(x)
					for pass := range 2 {
						tape.Backward(loss)
						for i, g := range grad() {
							if want := c.want(x0[i]); !(math.Abs(g-want) <= 1e-14*max(1, math.Abs(want))) {
								t.Errorf("pass %d, entry %d: gradient %v, want %v", pass, i, g, want)
							}
						}
					}
					tape.Reset()
					if n := be.InUse() - before; n != 0 {
						t.Errorf("%d bytes in use after Reset", n)
					}
				})
			}
		}
	}
}

// network is a loss that goes through most kinds of operators.
func network(x, w, b *autodiff.Var) *autodiff.Var {
	h := x.MatMul(w).AddRow(b)
	y, _, _ := h.ReLU().Add(h.Tanh()).BatchNorm(b, b, autodiff.Norm{Groups: x.Tape().Indices([]int32{0, 2, int32(x.Rows())}), Eps: 1e-5})
	u := y.L2Normalize()
	s := u.MatMulT(u).FillDiagonal(math.Inf(-1))
	return s.LogSumExp().Sum().Sub(u.Dot(u)).Add(y.SliceRows(0, 2).Mean())
}

func networkInputs(be backend.Backend, rows int) []*autodiff.Param {
	rng := rand.New(rand.NewPCG(5, 5))
	var ps []*autodiff.Param
	for k, s := range [][2]int{{rows, 3}, {3, 4}, {1, 4}} {
		in := gradcheck.Random(rng, s[0], s[1])
		ps = append(ps, autodiff.NewParam(be, fmt.Sprint("p", k), s[0], s[1], in.Values))
	}
	return ps
}

func gradients(ps []*autodiff.Param) []float64 {
	var all []float64
	for _, p := range ps {
		g := make([]float64, p.Value.Len())
		if p.HasGrad() {
			p.Backend().Download(g, p.Grad)
		}
		all = append(all, g...)
		p.ZeroGrad()
	}
	return all
}

func sameBits(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}

func TestBackwardTwice(t *testing.T) {
	for name, be := range engines() {
		ps := networkInputs(be, 6)
		tape := autodiff.NewTape(be)
		loss := network(tape.Param(ps[0]), tape.Param(ps[1]), tape.Param(ps[2]))
		tape.Backward(loss)
		first := gradients(ps)
		tape.Backward(loss)
		if second := gradients(ps); !sameBits(first, second) {
			t.Errorf("%s: a second Backward gives other gradients:\n%v\n%v", name, first, second)
		}

		// Without ZeroGrad between them, parameters add up, to rounding: the
		// contributions arrive one by one.
		tape.Backward(loss)
		tape.Backward(loss)
		for i, g := range gradients(ps) {
			if !(math.Abs(g-2*first[i]) <= 1e-13) {
				t.Fatalf("%s: entry %d: two passes gave %v, want twice %v", name, i, g, first[i])
			}
		}
		tape.Reset()
	}
}

// TestBackwardFromTheMiddle: Backward starts at its argument; what was recorded
// later does not count, and another loss on the same tape can follow.
func TestBackwardFromTheMiddle(t *testing.T) {
	for name, be := range engines() {
		tape := autodiff.NewTape(be)
		x := tape.Leaf(1, 2, []float64{2, -3})
		first := x.Square().Sum()
		second := x.Scale(5).Sum().Add(first)
		for _, c := range []struct {
			loss *autodiff.Var
			want []float64
		}{{first, []float64{4, -6}}, {second, []float64{9, -1}}, {first, []float64{4, -6}}} {
			tape.Backward(c.loss)
			if g := x.Grad(); !slices.Equal(g, c.want) {
				t.Errorf("%s: gradient %v, want %v", name, g, c.want)
			}
		}
		tape.Reset()
	}
}

// TestBackwardOfAParameter: a loss need not be the result of an operator.
func TestBackwardOfAParameter(t *testing.T) {
	be := ref.New()
	tape := autodiff.NewTape(be)
	p := autodiff.NewParam(be, "p", 1, 1, []float64{7})
	tape.Backward(tape.Param(p))
	if g := gradients([]*autodiff.Param{p}); g[0] != 1 {
		t.Errorf("∂p/∂p = %v", g[0])
	}
	x := tape.Leaf(1, 1, []float64{7})
	tape.Backward(x)
	if g := x.Grad(); g[0] != 1 {
		t.Errorf("∂x/∂x = %v", g[0])
	}
}

func TestGradientFlowsOnlyWhereItIsNeeded(t *testing.T) {
	be := ref.New()
	tape := autodiff.NewTape(be)
	frozen := autodiff.NewParam(be, "frozen", 1, 2, []float64{1, 2})
	frozen.Frozen = true
	p := autodiff.NewParam(be, "p", 1, 2, []float64{3, 4})
	n := tape.Len()
	for what, v := range map[string]*autodiff.Var{
		"constants":             tape.Scalar(1).Exp(),
		"a frozen parameter":    tape.Param(frozen).Square(),
		"a detached variable":   tape.Param(p).Detach().Square(),
		"the result of Greater": tape.Param(p).Greater(tape.Scalar(1)).Scale(2),
	} {
		if v.NeedsGrad() || tape.Len() != n {
			t.Errorf("a function of %s was recorded", what)
		}
	}
	tape.Backward(tape.Param(p).Mul(tape.Param(frozen)).Sum())
	if frozen.HasGrad() {
		t.Error("a frozen parameter got a gradient")
	}
	if g := gradients([]*autodiff.Param{p}); !slices.Equal(g, []float64{1, 2}) {
		t.Errorf("gradient %v", g)
	}

	inference := autodiff.NewInference(be)
	y := inference.Param(p).Mul(inference.Leaf(1, 2, []float64{1, 1})).Sum()
	if y.NeedsGrad() || inference.Len() != 0 || y.Float() != 7 {
		t.Errorf("an inference tape recorded %d operators; the value is %v", inference.Len(), y.Float())
	}
}

// TestMisuse: what a program must not do panics, and the message says what.
func TestMisuse(t *testing.T) {
	for name, be := range engines() {
		tape, other := autodiff.NewTape(be), autodiff.NewTape(be)
		x, y := tape.Leaf(2, 2, []float64{1, 2, 3, 4}), other.Leaf(2, 2, []float64{1, 2, 3, 4})
		record := func(value *tensor.Tensor, inputs ...*autodiff.Var) {
			tape.Record("mine", value, func(*tensor.Tensor) {}, inputs...)
		}
		for _, c := range []struct {
			name  string
			f     func()
			shape bool // panics with *tensor.ShapeError
			want  string
		}{
			{"a loss that is a matrix", func() { tape.Backward(x.Square()) }, true, "[2×2]: the loss must be [1×1]"},
			{"a loss of constants", func() { tape.Backward(tape.Scalar(1).Exp()) }, false, "depends on no parameter or leaf"},
			{"a loss of another tape", func() { other.Backward(x.Sum()) }, false, "the loss is on another tape"},
			{"an operator across tapes", func() { x.Add(y) }, false, "Add: an input (Leaf) is on another tape"},
			{"a record across tapes", func() { record(x.Value(), y) }, false, "mine: an input (Leaf) is on another tape"},
			{"Float of a matrix", func() { x.Float() }, true, "want [1×1]"},
			{"a gradient of the wrong shape", func() { x.AddGrad(be.Alloc(1, 2)) }, true, "gradient of Leaf: [2×2], [1×2]"},
			{"a lent gradient of the wrong shape", func() { x.LendGrad(be.Alloc(1, 2)) }, true, "gradient of Leaf: [2×2], [1×2]"},
			{"inner dimensions", func() { x.MatMul(tape.Matrix(3, 1, []float64{1, 2, 3})) }, true, "MatMul: [2×2]·[3×1]: inner dimensions 2 and 3 differ"},
			{"inner dimensions, second transposed", func() { x.MatMulT(tape.Matrix(1, 3, []float64{1, 2, 3})) }, true, "MatMulT: [2×2]·[1×3]ᵀ: inner dimensions 2 and 3 differ"},
			{"inner dimensions, first transposed", func() { x.TMatMul(tape.Matrix(3, 1, []float64{1, 2, 3})) }, true, "TMatMul: [2×2]ᵀ·[3×1]: inner dimensions 2 and 3 differ"},
			{"a row that is a column", func() { x.AddRow(tape.Matrix(2, 1, []float64{1, 2})) }, true, "[2×1]"},
			{"a slice outside", func() { x.SliceRows(1, 3) }, true, "SliceRows: [2×2]: the block [2×2] at (1,0) is outside"},
			{"a slice before the first", func() { x.SliceCols(-1, 1) }, true, "SliceCols: [2×2]: the block [2×2] at (0,-1) is outside"},
			{"a slice backwards", func() { x.SliceRows(2, 1) }, true, "SliceRows: [2×2]: the block [-1×2] at (2,0) is outside"},
			{"columns that do not match", func() { autodiff.ConcatRows(x, x.SliceCols(0, 1)) }, true, "columns must agree"},
			{"rows that do not match", func() { autodiff.ConcatCols(x, x.SliceRows(0, 1)) }, true, "rows must agree"},
			{"an index outside", func() { x.GatherRows([]int32{0, 2}) }, false, "GatherRows: index 2 at position 1 is outside 0..1"},
			{"a negative index", func() { x.ScatterAddRows([]int32{0, -1}, 3) }, false, "ScatterAddRows: index -1 at position 1 is outside 0..2"},
			{"too few indices", func() { x.ScatterAddRows([]int32{0}, 3) }, true, "1 indices for the rows"},
			{"the diagonal of a rectangle", func() { x.SliceRows(0, 1).FillDiagonal(0) }, true, "want a square matrix"},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				v := recovered(c.f)
				if v == nil {
					t.Fatal("no panic")
				}
				if _, is := v.(*tensor.ShapeError); is != c.shape {
					t.Errorf("panic of type %T", v)
				}
				if !strings.Contains(fmt.Sprint(v), c.want) {
					t.Errorf("panic %q, want %q in it", v, c.want)
				}
			})
		}
	}
}

// TestUseAfterReset: a variable of an earlier life of its tape is refused. The
// strict engine may notice the freed memory first.
func TestUseAfterReset(t *testing.T) {
	for name, be := range engines() {
		p := autodiff.NewParam(be, "p", 2, 2, []float64{1, 2, 3, 4})
		for origin, variable := range map[string]func(tape *autodiff.Tape) *autodiff.Var{
			"leaf":      func(tape *autodiff.Tape) *autodiff.Var { return tape.Leaf(2, 2, []float64{1, 2, 3, 4}) },
			"constant":  func(tape *autodiff.Tape) *autodiff.Var { return tape.Matrix(2, 2, []float64{1, 2, 3, 4}) },
			"parameter": func(tape *autodiff.Tape) *autodiff.Var { return tape.Param(p) },
			"operator":  func(tape *autodiff.Tape) *autodiff.Var { return tape.Param(p).Square() },
			"detached":  func(tape *autodiff.Tape) *autodiff.Var { return tape.Param(p).Square().Detach() },
			"step":      func(tape *autodiff.Tape) *autodiff.Var { return tape.Param(p).Greater(tape.Scalar(1)) },
		} {
			for use, f := range map[string]func(tape *autodiff.Tape, x *autodiff.Var){
				"Data":       func(_ *autodiff.Tape, x *autodiff.Var) { x.Data() },
				"Grad":       func(_ *autodiff.Tape, x *autodiff.Var) { x.Grad() },
				"Value":      func(_ *autodiff.Tape, x *autodiff.Var) { x.Value() },
				"Rows":       func(_ *autodiff.Tape, x *autodiff.Var) { x.Rows() },
				"Cols":       func(_ *autodiff.Tape, x *autodiff.Var) { x.Cols() },
				"Float":      func(_ *autodiff.Tape, x *autodiff.Var) { x.Float() },
				"Detach":     func(_ *autodiff.Tape, x *autodiff.Var) { x.Detach() },
				"Square":     func(_ *autodiff.Tape, x *autodiff.Var) { x.Square() },
				"Sum":        func(_ *autodiff.Tape, x *autodiff.Var) { x.Sum() },
				"Greater":    func(tape *autodiff.Tape, x *autodiff.Var) { x.Greater(tape.Scalar(0)) },
				"MatMul":     func(_ *autodiff.Tape, x *autodiff.Var) { x.MatMul(x) },
				"second arg": func(tape *autodiff.Tape, x *autodiff.Var) { tape.Param(p).Add(x) },
				"Backward":   func(tape *autodiff.Tape, x *autodiff.Var) { tape.Backward(x) },
			} {
				tape := autodiff.NewTape(be)
				x := variable(tape)
				tape.Reset()
				// The tape lives on, with other variables.
				tape.Param(p).Square()
				v := recovered(func() { f(tape, x) })
				if v == nil || !strings.Contains(fmt.Sprint(v), "Reset") && !strings.Contains(fmt.Sprint(v), "freed") {
					t.Errorf("%s: %s of a %s after Reset: panic %v, want one that says so", name, use, origin, v)
				}
			}
		}
	}
}

func TestResetReturnsEverything(t *testing.T) {
	for name, be := range engines() {
		for _, opts := range [][]autodiff.Option{nil, {autodiff.Composed()}} {
			ps := networkInputs(be, 6)
			tape := autodiff.NewTape(be, opts...)
			start := be.InUse()
			for passes := range 3 {
				loss := network(tape.Param(ps[0]), tape.Param(ps[1]), tape.Leaf(1, 4, []float64{1, 2, -1, 1}))
				grown := be.InUse()
				for range passes {
					tape.Backward(loss)
				}
				if be.InUse() < grown || grown <= start {
					t.Errorf("%s: values must stay until Reset: %d, %d, %d bytes", name, start, grown, be.InUse())
				}
				tape.Reset()
				if n := be.InUse() - start; n != 0 {
					t.Errorf("%s: %d bytes in use after Reset and %d backward passes", name, n, passes)
				}
				if tape.Len() != 0 {
					t.Errorf("%s: %d operators after Reset", name, tape.Len())
				}
			}
		}
	}
}

var raceDetector bool

// TestAllocationsPerStep: a step's count of Go allocations is the same in the
// hundredth step as in the third, and does not depend on the size of the data.
func TestAllocationsPerStep(t *testing.T) {
	if raceDetector {
		t.Skip("under the race detector")
	}
	for name, be := range engines() {
		count := func(rows, warmup int) float64 {
			ps := networkInputs(be, rows)
			tape := autodiff.NewTape(be)
			step := func() {
				tape.Backward(network(tape.Param(ps[0]), tape.Param(ps[1]), tape.Param(ps[2])))
				tape.Reset()
			}
			for range warmup {
				step()
			}
			return testing.AllocsPerRun(5, step)
		}
		early, late, large := count(6, 2), count(6, 100), count(60, 2)
		if early != late || early != large {
			t.Errorf("%s: %v allocations in step 3, %v in step 101, %v with ten times the rows", name, early, late, large)
		}
	}
}

// failing is an engine that runs out of memory at the Alloc number after.
type failing struct {
	backend.Backend
	after int
}

var errMemory = errors.New("no memory")

func (e *failing) Alloc(rows, cols int) *tensor.Tensor {
	if e.after--; e.after == 0 {
		panic(&backend.Error{Backend: "failing", Op: "Alloc", Err: errMemory})
	}
	return e.Backend.Alloc(rows, cols)
}

// TestTapeSurvivesADeviceError: after a panic anywhere in a step, Reset works,
// frees nothing twice (the reference engine would notice), and the next step's
// gradients are right.
func TestTapeSurvivesADeviceError(t *testing.T) {
	be := &failing{Backend: ref.New()}
	ps := networkInputs(be, 6)
	tape := autodiff.NewTape(be)
	step := func() {
		loss := network(tape.Param(ps[0]), tape.Param(ps[1]), tape.Param(ps[2]))
		tape.Backward(loss)
	}
	step()
	want := gradients(ps)
	tape.Reset()
	failures := 0
	for n := 1; ; n++ {
		be.after = n
		v := recovered(step)
		if v == nil {
			break
		}
		if e, ok := v.(*backend.Error); !ok || !errors.Is(e, errMemory) {
			t.Fatalf("Alloc %d: panic %v", n, v)
		}
		failures++
		be.after = 0
		gradients(ps)
		if n%2 == 0 { // a tape may also be used again without Reset
			tape.Reset()
		}
		if v := recovered(step); v != nil {
			t.Fatalf("Alloc %d failed, and then the next step with %v", n, v)
		}
		if !sameBits(gradients(ps), want) {
			t.Fatalf("Alloc %d failed, and then the next step's gradients are wrong", n)
		}
		tape.Reset()
	}
	if failures < 50 {
		t.Errorf("only %d allocations in a step", failures)
	}
}

func TestFirstNonFinite(t *testing.T) {
	for name, be := range engines() {
		tape := autodiff.NewTape(be)
		x := tape.Leaf(1, 3, []float64{1, 0, -1})
		x.MatMulT(x).Exp()
		if op := tape.FirstNonFinite(); op != "" {
			t.Errorf("%s: all values are finite, and %q is named", name, op)
		}
		// A diagonal of -Inf is meant; the logarithm of 0 is not.
		x.T().MatMul(x).FillDiagonal(math.Inf(-1)).LogSumExp()
		if op := tape.FirstNonFinite(); op != "" {
			t.Errorf("%s: only a diagonal is infinite, and %q is named", name, op)
		}
		x.T().Square().Log().Exp()
		x.Log()
		if op := tape.FirstNonFinite(); !strings.HasPrefix(op, "Log [3×1] (number ") {
			t.Errorf("%s: %q is named, want the Log of the square", name, op)
		}
		tape.Reset()
	}
}

// TestRecord: an operator of one's own keeps the rules of
// Record, with gradients given and lent.
func TestRecord(t *testing.T) {
	be := ref.New()
	tape := autodiff.NewTape(be)
	x, c := tape.Leaf(1, 2, []float64{3, 4}), tape.Matrix(1, 2, []float64{1, 1})
	calls := 0
	// y = x + c, and a gradient for c that nobody needs.
	add := func(x, c *autodiff.Var) (y *autodiff.Var) {
		out := tape.Alloc(1, 2)
		be.Binary(out, backend.Add, x.Value(), c.Value())
		y = tape.Record("add", out, func(dy *tensor.Tensor) {
			calls++
			x.LendGrad(dy)
			c.LendGrad(dy)
			extra := be.Alloc(1, 2)
			be.Fill(extra, 100)
			c.AddGrad(extra)
		}, x, c)
		return y
	}
	if y := add(c, c); y.NeedsGrad() {
		t.Error("a function of constants needs a gradient")
	}
	y := add(x, c)
	if y.Op() != "add" || !slices.Equal(y.Data(), []float64{4, 5}) {
		t.Errorf("%s: %v", y.Op(), y.Data())
	}
	loss := y.Dot(y)
	for range 2 {
		tape.Backward(loss)
		if g := x.Grad(); !slices.Equal(g, []float64{8, 10}) {
			t.Errorf("gradient %v", g)
		}
	}
	if calls != 2 {
		t.Errorf("the VJP ran %d times", calls)
	}
	if g := c.Grad(); !slices.Equal(g, []float64{0, 0}) {
		t.Errorf("a constant has gradient %v", g)
	}
	tape.Reset()
	if n := be.InUse(); n != 0 {
		t.Errorf("%d bytes in use after Reset", n)
	}
}

// TestRecordPair: an operator with two results gets both gradients, nil for the
// one that nothing depends on, also where a loss is one of the results.
func TestRecordPair(t *testing.T) {
	for name, be := range engines() {
		ps := networkInputs(be, 6)
		tape := autodiff.NewTape(be)
		before := be.InUse()
		w := tape.Param(ps[2]) // [1×4]
		// y = Σ w², z = 3·Σ w, as one operator.
		pair := func(w *autodiff.Var) (y, z *autodiff.Var, calls *int) {
			calls = new(int)
			a, b := tape.Alloc(1, 1), tape.Alloc(1, 1)
			be.Dot(a, w.Value(), w.Value())
			be.Dot(b, w.Value(), nil)
			be.Affine(b, 3, b, 0)
			y, z = tape.RecordPair("pair", a, b, func(dy, dz *tensor.Tensor) {
				*calls++
				dw := be.Alloc(1, w.Cols())
				be.Fill(dw, 0)
				if dz != nil {
					be.Affine(dw, 0, dw, 3)
					be.BinaryScalar(dw, backend.Mul, dw, dz)
				}
				if dy != nil {
					twice := be.Alloc(1, w.Cols())
					be.BinaryScalar(twice, backend.Mul, w.Value(), dy)
					be.Axpby(dw, 1, dw, 2, twice)
					be.Free(twice)
				}
				w.AddGrad(dw)
			}, w)
			return y, z, calls
		}
		y, z, calls := pair(w)
		if y.Op() != "pair" || z.Op() != "pair" {
			t.Errorf("%s: operators %q and %q", name, y.Op(), z.Op())
		}
		both := y.Scale(5).Add(z).Add(z)
		x := w.Data()
		runs := 0
		for _, c := range []struct {
			what string
			loss *autodiff.Var
			want func(x float64) float64
		}{
			{"the first", y, func(x float64) float64 { return 2 * x }},
			{"the second", z, func(float64) float64 { return 3 }},
			{"both", both, func(x float64) float64 { return 10*x + 6 }},
			{"the second, later", z.Square(), func(float64) float64 { return 6 * z.Float() }},
			{"both, again", both, func(x float64) float64 { return 10*x + 6 }},
		} {
			used := be.InUse()
			tape.Backward(c.loss)
			if n := be.InUse() - used; n != 0 {
				t.Errorf("%s: a loss of %s: Backward keeps %d bytes", name, c.what, n)
			}
			runs++
			for i, g := range gradients(ps)[6*3+3*4:] {
				if want := c.want(x[i]); !(math.Abs(g-want) <= 1e-13*max(1, math.Abs(want))) {
					t.Errorf("%s: a loss of %s: gradient %d is %v, want %v", name, c.what, i, g, want)
				}
			}
		}
		if *calls != runs {
			t.Errorf("%s: the VJP ran %d times in %d passes", name, *calls, runs)
		}
		if y, z, _ := pair(w.Detach()); y.NeedsGrad() || z.NeedsGrad() {
			t.Errorf("%s: results of a constant need gradients", name)
		}
		tape.Reset()
		if n := be.InUse() - before; n != 0 {
			t.Errorf("%s: %d bytes in use after Reset", name, n)
		}
	}
}
