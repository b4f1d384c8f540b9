package play

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

// Numbers are row-major values; in JSON those that are not finite are strings.
type Numbers []float64

// MarshalJSON implements json.Marshaler.
func (n Numbers) MarshalJSON() ([]byte, error) {
	if n == nil {
		return []byte("null"), nil
	}
	texts := make([]string, len(n))
	for i, v := range n {
		texts[i] = strconv.FormatFloat(v, 'g', -1, 64)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			texts[i] = strconv.Quote(strings.Replace(texts[i], "Inf", "Infinity", 1))
		}
	}
	return []byte("[" + strings.Join(texts, ",") + "]"), nil
}

// Matrix is a value of an input.
type Matrix struct {
	Rows   int     `json:"rows"`
	Cols   int     `json:"cols"`
	Values Numbers `json:"values"`
}

// ParseMatrix reads rows, separated by line ends or semicolons, of numbers separated by
// blanks or commas.
func ParseMatrix(text string) (m Matrix, err error) {
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == ';' }) {
		cells := strings.FieldsFunc(line, func(r rune) bool {
			return r == ' ' || r == ',' || r == '\t' || r == '\r'
		})
		if len(cells) == 0 {
			continue
		}
		m.Rows++
		if m.Rows > 1 && len(cells) != m.Cols {
			return m, fmt.Errorf("row %d has %d numbers, the first %d", m.Rows, len(cells), m.Cols)
		}
		m.Cols = len(cells)
		for _, cell := range cells {
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return m, fmt.Errorf("row %d: %q is no number", m.Rows, cell)
			}
			m.Values = append(m.Values, v)
		}
	}
	if m.Rows == 0 || m.Rows > maxInput || m.Cols > maxInput {
		return m, fmt.Errorf("want a matrix of 1 to %d rows and columns", maxInput)
	}
	return m, nil
}

const maxInput = 12

// The ways to break a VJP.
const (
	Factor       = "factor"       // half of every gradient
	Transpose    = "transpose"    // a matrix product without its transpose
	Accumulation = "accumulation" // a gradient replaces what has arrived before
)

// Break falsifies the VJP of one variable, by its number in [Trace.Nodes].
type Break struct {
	Node int    `json:"node"`
	Kind string `json:"kind"`
}

// Trace is all that happens on a tape: forward, and Backward entry by entry.
type Trace struct {
	Nodes   []Node    `json:"nodes"`
	Steps   []Step    `json:"steps"`   // of Backward, in its order
	Message string    `json:"message"` // why there is no Backward, or where it ended
	Loss    float64   `json:"loss"`
	Right   Numbers   `json:"right"`  // the loss while descending along the gradient,
	Broken  Numbers   `json:"broken"` // and along the broken one
	Moved   string    `json:"moved"`  // the input that descends
	Caught  []string  `json:"caught"` // the inputs whose gradient differs from central differences
	Inputs  [3]Matrix `json:"inputs"`
}

// Node is a variable.
type Node struct {
	Op     string `json:"op"`
	Name   string `json:"name"` // of an input
	Args   []Arg  `json:"args"`
	Entry  bool   `json:"entry"` // it is on the tape, that is, it gets a gradient
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Matrix
	Grad    Numbers `json:"grad"`    // that has arrived at the end
	Numeric Numbers `json:"numeric"` // the same by central differences of the loss
	Off     float64 `json:"off"`     // the largest difference of the two
	OK      bool    `json:"ok"`
}

// Arg is a node or a number.
type Arg struct {
	Node   int      `json:"node"`
	Number *float64 `json:"number,omitempty"`
}

// Step is Backward at one entry.
type Step struct {
	Node  int     `json:"node"`
	DY    Numbers `json:"dy"`
	Given []Given `json:"given"`
	// OK says that the VJP alone agrees with central differences of the operator alone.
	OK bool `json:"ok"`
	// Breaks are the ways in which the VJP can be broken.
	Breaks []string `json:"breaks"`
}

// Given is a gradient that a VJP gives to one of its inputs.
type Given struct {
	Node    int     `json:"node"`
	Values  Numbers `json:"values"`
	Numeric Numbers `json:"numeric"`
	How     string  `json:"how"` // stored, lent or added
	After   Numbers `json:"after"`
	OK      bool    `json:"ok"`
}

// Tape is a request for a [Trace].
type Tape struct {
	Text    string  `json:"text"`
	X       string  `json:"x"`
	W       string  `json:"w"`
	B       string  `json:"b"`
	Break   *Break  `json:"break"`
	Rate    float64 `json:"rate"`
	Descent int     `json:"descent"` // its steps
}

// run is a program at a point, on a float64 engine.
type run struct {
	*Program
	be     backend.Backend
	at     [3]Matrix
	frozen map[int]Numbers // values behind a Detach, which a central difference must not move
}

// Trace runs the expression forward and backward. An error of the expression is an
// [Error], one of a matrix names it.
func (q Tape) Trace() (*Trace, error) {
	r := &run{be: cpu.New(tensor.Float64, cpu.Workers(1)), frozen: map[int]Numbers{}}
	defer r.be.Close()
	var err error
	r.Program, err = Parse(q.Text)
	if err != nil {
		return nil, err
	}
	used := r.used()
	for i, text := range []string{q.X, q.W, q.B} {
		if !used[i] {
			continue
		}
		r.at[i], err = ParseMatrix(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Inputs[i], err)
		}
	}
	tr := &Trace{Inputs: r.at}
	t := autodiff.NewTape(r.be, autodiff.Inspect())
	defer t.Reset()
	vars, err := r.forward(t)
	if err != nil {
		return nil, err
	}
	tr.Nodes = r.nodes(vars)
	result := vars[len(vars)-1]
	switch {
	case !result.Value().Is(1, 1):
		tr.Message = fmt.Sprintf(
			"Backward starts at a loss [1×1], and this is [%d×%d]: append .Sum(), for example",
			result.Rows(), result.Cols(),
		)
		return tr, nil
	case !result.NeedsGrad():
		tr.Message = "the loss depends on no input by way of a derivative"
		return tr, nil
	}
	tr.Loss = result.Float()
	if math.IsNaN(tr.Loss) || math.IsInf(tr.Loss, 0) {
		tr.Message = "the loss is not a finite number"
		tr.Loss = 0
		return tr, nil
	}
	grads, failed := r.backward(vars, q.Break, func(s Step) {
		s.OK = true
		for i := range s.Given {
			g := &s.Given[i]
			g.Numeric = r.local(vars, s.Node, g.Node, s.DY)
			g.OK = agree(g.Values, g.Numeric, 1)
			s.OK = s.OK && g.OK
		}
		tr.Steps = append(tr.Steps, s)
	})
	if failed != nil {
		tr.Message = failed.Error()
	}
	r.check(tr, grads, used, failed != nil)
	q.descend(r, tr, used)
	return tr, nil
}

// nodes returns the values on the tape, for the page.
func (r *run) nodes(vars []*variable) []Node {
	var nodes []Node
	for k, v := range vars {
		c := &r.calls[k]
		n := Node{
			Op:     c.op,
			Name:   c.symbol,
			Line:   c.at.Line,
			Column: c.at.Column,
			OK:     true,
		}
		if v == nil {
			n.Op = ""
		} else {
			n.Matrix = Matrix{v.Rows(), v.Cols(), v.Data()}
			n.Entry = v.NeedsGrad()
		}
		for _, a := range c.args {
			number := a.number
			if a.number == nil && a.ref == mean {
				f := 1 / float64(vars[r.calls[c.args[0].ref].args[0].ref].Value().Len())
				number = &f
			}
			n.Args = append(n.Args, Arg{a.ref, number})
		}
		if c.op == "Detach" {
			r.frozen[k] = n.Values
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// check compares the gradients of all inputs of the tape with central differences, and notes the
// inputs that differ; where the walk back has failed, those that are used.
func (r *run) check(tr *Trace, grads map[int]Numbers, used []bool, failed bool) {
	for k := range tr.Nodes {
		n := &tr.Nodes[k]
		if failed && k < len(Inputs) && used[k] {
			tr.Caught = append(tr.Caught, n.Name)
		}
		n.Grad = grads[k]
		if !n.Entry || n.Grad == nil || failed {
			continue
		}
		n.Numeric = central(n.Values, func(v Numbers) float64 { return r.loss(k, v) })
		n.OK = agree(n.Grad, n.Numeric, tr.Loss)
		for i, g := range n.Grad {
			n.Off = max(n.Off, math.Abs(g-n.Numeric[i]))
		}
		if k < len(Inputs) && !n.OK {
			tr.Caught = append(tr.Caught, n.Name)
		}
	}
}

func (r *run) leaf(t *autodiff.Tape) func(i int) *variable {
	return func(i int) *variable {
		return t.Leaf(r.at[i].Rows, r.at[i].Cols, r.at[i].Values)
	}
}

func (r *run) forward(t *autodiff.Tape) ([]*variable, error) {
	return r.Run(r.leaf(t), nil)
}

// loss returns the loss with other values of variable k; NaN if there is none.
func (r *run) loss(k int, values Numbers) float64 {
	t := autodiff.NewInference(r.be)
	defer t.Reset()
	vars, err := r.Run(r.leaf(t), func(j int, v *variable) *variable {
		switch fixed, ok := r.frozen[j]; {
		case j == k:
			return t.Matrix(v.Rows(), v.Cols(), values)
		case ok:
			return t.Matrix(v.Rows(), v.Cols(), fixed)
		}
		return v
	})
	if err != nil {
		return math.NaN()
	}
	return vars[len(vars)-1].Float()
}

// local returns the gradient of Σ dy∘y, with y the operator of call k alone, with respect
// to the argument in, by central differences.
func (r *run) local(vars []*variable, k, in int, dy Numbers) Numbers {
	return central(vars[in].Data(), func(v Numbers) float64 {
		t := autodiff.NewInference(r.be)
		defer t.Reset()
		alone := make([]*variable, len(vars))
		for j, old := range vars {
			switch {
			case old == nil:
			case j == in:
				alone[j] = t.Matrix(old.Rows(), old.Cols(), v)
			default:
				alone[j] = t.Const(old.Value())
			}
		}
		y, err := r.apply(k, alone)
		if err != nil {
			return math.NaN()
		}
		sum := 0.0
		for i, v := range y.Data() {
			sum += v * dy[i]
		}
		return sum
	})
}

// central returns the gradient of f at x by central differences.
func central(x []float64, f func(Numbers) float64) Numbers {
	d := make(Numbers, len(x))
	for i := range x {
		point := slices.Clone(x)
		h := step * max(1, math.Abs(x[i]))
		point[i] = x[i] + h
		above := f(point)
		point[i] = x[i] - h
		d[i] = (above - f(point)) / (2 * h)
	}
	return d
}

const step = 1e-6 // of central differences

// agree compares gradients as package gradcheck does; value is that of the function.
func agree(a, n Numbers, value float64) bool {
	s := 0.0
	for _, v := range n {
		s = max(s, math.Abs(v))
	}
	noise := 0x1p-49 * max(1, math.Abs(value)) / step
	for i := range a {
		if !(math.Abs(a[i]-n[i]) <= 1e-5*max(math.Abs(a[i]), math.Abs(n[i]))+1e-6*s+noise) {
			return false
		}
	}
	return true
}

// backward walks the tape as Backward does, from its end, and returns the gradients of
// the calls; visit, unless nil, sees every step. The error is that of a broken VJP which
// cannot be computed.
func (r *run) backward(vars []*variable, b *Break, visit func(Step)) (map[int]Numbers, error) {
	grads := map[int]Numbers{len(vars) - 1: {1}}
	numbers := map[*variable]int{}
	for k, v := range vars {
		numbers[v] = k
	}
	for k := len(vars) - 1; k >= len(Inputs); k-- {
		v := vars[k]
		dy := grads[k]
		if !v.NeedsGrad() || dy == nil || len(v.Inputs()) == 0 {
			continue
		}
		given, lent := v.VJP(dy)
		s := Step{Node: k, DY: dy, Breaks: []string{Factor}}
		if slices.Contains([]string{"MatMul", "MatMulT", "TMatMul", "T"}, r.calls[k].op) {
			s.Breaks = append(s.Breaks, Transpose)
		}
		kind := ""
		if b != nil && b.Node == k {
			kind = b.Kind
		}
		if kind == Transpose {
			if err := r.untransposed(k, vars, dy, given); err != nil {
				return grads, err
			}
		}
		for i, in := range v.Inputs() {
			g := Given{Node: numbers[in], Values: given[i], How: "stored"}
			if given[i] == nil {
				continue
			}
			if lent[i] {
				g.How = "lent"
			}
			if kind == Factor {
				g.Values = slices.Clone(g.Values)
				g.How = "stored"
				for j := range g.Values {
					g.Values[j] /= 2
				}
			}
			g.After = g.Values
			if before := grads[g.Node]; before != nil {
				s.Breaks = append(s.Breaks, Accumulation)
				g.How = "replaced"
				if kind != Accumulation {
					g.How = "added"
					g.After = slices.Clone(g.Values)
					for j, v := range before {
						g.After[j] += v
					}
				}
			}
			grads[g.Node] = g.After
			s.Given = append(s.Given, g)
		}
		s.Breaks = slices.Compact(s.Breaks)
		if visit != nil {
			visit(s)
		}
	}
	return grads, nil
}

// untransposed replaces the gradients given by the VJP of a product, or of T, by what
// the formula without its transpose gives. The error is that shapes do not fit.
func (r *run) untransposed(k int, vars []*variable, dy Numbers, given [][]float64) (err error) {
	t := autodiff.NewInference(r.be)
	defer t.Reset()
	defer func() {
		if e, ok := recover().(*tensor.ShapeError); ok {
			err = fmt.Errorf("the shapes catch it: %w", e)
		}
	}()
	y := vars[k]
	input := vars[k].Inputs()
	i := 0
	x := t.Const(input[0].Value())
	w := t.Const(input[len(input)-1].Value())
	g := t.Matrix(y.Rows(), y.Cols(), dy)
	v := g // of T
	switch r.calls[k].op {
	case "MatMul": // dx = dy·wᵀ
		v = g.MatMul(w)
	case "TMatMul": // dx = w·dyᵀ
		v = w.MatMul(g)
	case "MatMulT": // dw = dyᵀ·x
		i = 1
		v = g.MatMul(x)
		if input[0] == input[1] { // the sum of both stands at the first place
			i = 0
			v = t.Matrix(x.Rows(), x.Cols(), given[0]).Sub(g.TMatMul(x)).Add(v)
		}
	}
	if !v.Value().Like(input[i].Value()) {
		tensor.Mismatch(
			"gradient of "+input[i].Op(),
			"value and gradient must agree in shape",
			input[i].Value(),
			v.Value(),
		)
	}
	if given[i] != nil {
		given[i] = v.Data()
	}
	return nil
}

// descend follows the gradient, right and broken, from the inputs of the trace: that of
// w or, where it is not used, of x.
func (q Tape) descend(r *run, tr *Trace, used []bool) {
	i := 0
	if used[1] {
		i = 1
	}
	tr.Moved = Inputs[i]
	start := r.at
	follow := func(b *Break) (losses Numbers) {
		r.at = start
		for range min(q.Descent, 200) + 1 {
			t := autodiff.NewTape(r.be, autodiff.Inspect())
			vars, err := r.forward(t)
			if err != nil {
				return losses
			}
			loss := vars[len(vars)-1].Float()
			grads, err := r.backward(vars, b, nil)
			t.Reset()
			losses = append(losses, loss)
			if err != nil || math.IsNaN(loss) || math.IsInf(loss, 0) {
				return losses
			}
			r.at[i].Values = slices.Clone(r.at[i].Values)
			for j, g := range grads[i] {
				r.at[i].Values[j] -= q.Rate * g
			}
		}
		return losses
	}
	tr.Right = follow(nil)
	if q.Break != nil {
		tr.Broken = follow(q.Break)
	}
	r.at = start
}
