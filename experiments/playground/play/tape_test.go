package play

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

func (e Example) tape() Tape {
	return Tape{Text: e.Text, X: e.X, W: e.W, B: e.B, Rate: e.Rate, Descent: 30}
}

func trace(t *testing.T, q Tape) *Trace {
	t.Helper()
	tr, err := q.Trace()
	if err != nil {
		t.Fatalf("%s: %v", q.Text, err)
	}
	return tr
}

// TestOperators: an expression may call every operator of a matrix that takes matrices
// and numbers.
func TestOperators(t *testing.T) {
	v, f, i := reflect.TypeFor[*autodiff.Var](), reflect.TypeFor[float64](), reflect.TypeFor[int]()
	for k := range v.NumMethod() {
		m := v.Method(k)
		suits := m.Type.NumOut() == 1 && m.Type.Out(0) == v
		for j := range m.Type.NumIn() {
			in := m.Type.In(j)
			suits = suits && (in == v || in == f || in == i)
		}
		if _, have := operators[m.Name]; have != suits {
			t.Errorf("%s: is in the table operators of expr.go: %v; want %v", m.Name, have, suits)
		}
	}
}

// TestExamples: every expression's gradients are those of Backward, and agree with
// central differences at every variable; descending lowers the loss.
func TestExamples(t *testing.T) {
	if len(Examples) != 10 {
		t.Errorf("%d examples", len(Examples))
	}
	for _, e := range Examples {
		tr := trace(t, e.tape())
		if tr.Message != "" || len(tr.Caught) > 0 || len(tr.Steps) == 0 {
			t.Errorf("%s: %d steps, %q, %v", e.Title, len(tr.Steps), tr.Message, tr.Caught)
			continue
		}
		for _, s := range tr.Steps {
			if !s.OK {
				t.Errorf("%s: the VJP of %s: %v", e.Title, tr.Nodes[s.Node].Op, s.Given)
			}
		}
		for k, n := range tr.Nodes {
			if !n.OK {
				t.Errorf("%s: node %d, %s: %v, by differences %v", e.Title, k, n.Op, n.Grad, n.Numeric)
			}
		}
		if last := tr.Right[len(tr.Right)-1]; len(tr.Right) != 31 || !(last < tr.Right[0]) {
			t.Errorf("%s: the loss goes from %v to %v in %d steps", e.Title, tr.Right[0], last, len(tr.Right)-1)
		}

		p, err := Parse(e.Text)
		if err != nil {
			t.Fatal(err)
		}
		tape := autodiff.NewTape(cpu.New(tensor.Float64))
		vars, err := p.Run(func(i int) *variable {
			return tape.Leaf(tr.Inputs[i].Rows, tr.Inputs[i].Cols, tr.Inputs[i].Values)
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		tape.Backward(vars[len(vars)-1])
		for i, v := range vars[:len(Inputs)] {
			if v != nil && !slices.EqualFunc(v.Grad(), []float64(tr.Nodes[i].Grad), func(a, b float64) bool { return math.Abs(a-b) <= 1e-14*max(1, math.Abs(a)) }) {
				t.Errorf("%s: gradient of %s %v, by Backward %v", e.Title, Inputs[i], tr.Nodes[i].Grad, v.Grad())
			}
		}
	}
}

// TestBreaks: every break that is offered is caught, by the check of the gradients that
// arrive at the inputs or by the shapes.
func TestBreaks(t *testing.T) {
	kinds := map[string]int{}
	for _, e := range Examples {
		for _, s := range trace(t, e.tape()).Steps {
			for _, kind := range s.Breaks {
				q := e.tape()
				q.Break = &Break{s.Node, kind}
				tr := trace(t, q)
				kinds[kind]++
				name := e.Title + ": " + kind + " of " + tr.Nodes[s.Node].Op
				if len(tr.Caught) == 0 {
					t.Errorf("%s is not caught", name)
				}
				if len(tr.Broken) == 0 || slices.Equal(tr.Right, tr.Broken) && !strings.Contains(tr.Message, "shapes") && tr.Caught[0] == tr.Moved {
					t.Errorf("%s: the loss does not show it", name)
				}
				for _, step := range tr.Steps {
					if wrong := step.Node == s.Node && kind != Accumulation; step.OK == wrong {
						t.Errorf("%s: the check of %s alone says %v", name, tr.Nodes[step.Node].Op, step.OK)
					}
				}
			}
		}
	}
	for _, kind := range []string{Factor, Transpose, Accumulation} {
		if kinds[kind] < 3 {
			t.Errorf("%d breaks of kind %s", kinds[kind], kind)
		}
	}
}

// TestChains: operators without an entry of their own have the entries of their chain.
func TestChains(t *testing.T) {
	be := cpu.New(tensor.Float64)
	for op, f := range map[string]func(x *variable) *variable{
		"Mean": (*variable).Mean, "Softmax": (*variable).Softmax, "LogSoftmax": (*variable).LogSoftmax,
	} {
		m, err := ParseMatrix(points)
		if err != nil {
			t.Fatal(err)
		}
		tape := autodiff.NewTape(be)
		y := f(tape.Leaf(m.Rows, m.Cols, m.Values))
		tr := trace(t, Tape{Text: "x." + op + "()", X: points})
		var ops, want []string
		for _, n := range tr.Nodes {
			if n.Entry {
				ops = append(ops, n.Op)
			}
		}
		for _, v := range tape.Entries() {
			want = append(want, v.Op())
		}
		if !slices.Equal(ops, want) || !slices.Equal([]float64(tr.Nodes[len(tr.Nodes)-1].Values), y.Data()) {
			t.Errorf("%s: %v, want %v", op, ops, want)
		}
	}
}

// TestErrors: a mistake is found at its place.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		text         string
		line, column int
		message      string
	}{
		{"", 1, 1, "expression"},
		{"x", 1, 1, "must call an operator"},
		{"b", 1, 1, "must call an operator"}, // the last input is the last of no calls, too
		{"(b)", 1, 1, "must call an operator"},
		{"x.MatMul(w", 1, 11, "missing"},
		{"x.MatMull(w).Sum()", 1, 3, "no operator"},
		{"x.MatMul(y).Sum()", 1, 10, "y is unknown"},
		{"x.MatMul(w).Sum", 1, 13, "not called"},
		{"x.Scale(w)", 1, 9, "want a number"},
		{"x.SliceRows(0, 1.5)", 1, 16, "whole number"},
		{"x.SliceRows(3, 2)", 1, 3, "outside"},
		{"x.MatMul(x).Sum()", 1, 3, "inner dimensions"},
		{"x.Add(w, b)", 1, 3, "1 arguments, not 2"},
		{"x * w", 1, 3, "no *"},
		{"u := x.Exp()\nu.Foo()", 2, 3, "no operator"},
		{"u := x.Exp()\nu := x.Log()\nu.Sum()", 2, 1, "taken"},
		{"u := x.Exp()", 1, 1, "last line"},
		{"for {}", 1, 1, "want an expression"},
		{"println(x)", 1, 1, "not a function"},
		{"x.Value()", 1, 3, "no operator"},
		{"func() {}()", 1, 1, "want a matrix"},
		{"x.Sum()\n}; func g() {", 1, 1, "want an expression"},
		{strings.Repeat("x.Exp().", 1) + strings.Repeat("Exp().", 70) + "Sum()", 1, 9, ""},
		{"ConcatRows()", 1, 12, "nothing"},
		{strings.Repeat("x", maxText+1), 1, 1, "bytes"},
		{"u := ConcatRows(x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x)\nu.Sum()", 1, 6, "up to 64"},
	} {
		_, err := Tape{Text: c.text, X: points, W: weights, B: "1 2 3"}.Trace()
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if c.message != "" && (e.Line != c.line || e.Column != c.column) || !strings.Contains(e.Message, c.message) {
			t.Errorf("%q: %v; want %d:%d and %q", c.text, e, c.line, c.column, c.message)
		}
	}
	for _, text := range []string{"", "1 2\n3", "1 a", "NaN", strings.Repeat("1 ", 13)} {
		if _, err := ParseMatrix(text); err == nil {
			t.Errorf("%q is a matrix", text)
		}
	}
}

func TestNoLoss(t *testing.T) {
	for text, want := range map[string]string{
		"x.Exp()":                  "append .Sum()",
		"x.Detach().Sum()":         "no input",
		"x.Scale(1e6).Exp().Sum()": "not a finite",
	} {
		if tr := trace(t, Tape{Text: text, X: points}); !strings.Contains(tr.Message, want) || len(tr.Steps) > 0 {
			t.Errorf("%s: %q", text, tr.Message)
		}
	}
}

// FuzzTrace: no expression crashes the page.
func FuzzTrace(f *testing.F) {
	for _, e := range Examples {
		f.Add(e.Text, e.X)
	}
	f.Add("x.MatMul(", "1 2\n3")
	f.Fuzz(func(t *testing.T, text, x string) {
		q := Tape{Text: text, X: x, W: weights, B: "1 2 3", Rate: 0.1, Descent: 1}
		q.Trace()
	})
}
