package autodiff

import (
	"fmt"
	"slices"
	"strings"
)

// Inspect makes a tape remember the inputs of its operators, for programs that show a
// tape or step through it.
func Inspect() Option {
	return func(t *Tape) {
		t.inspect = true
	}
}

// Entries returns the list that [Tape.Backward] walks from its end: the operators and
// leaves in the order in which they were recorded. Constants and parameters are not on it.
func (t *Tape) Entries() []*Var {
	return slices.Clone(t.nodes)
}

// Inputs returns the operands of the operator that made v, if the tape is for
// inspection ([Inspect]) and the operator was recorded; otherwise nil.
func (v *Var) Inputs() []*Var {
	return v.inputs
}

// VJP runs the VJP of v alone on dy, row-major and of v's shape. It returns the gradient
// for each of [Var.Inputs], nil where none arrives, and whether it is dy itself, lent
// ([Var.LendGrad]); the sum for an input that is listed twice comes at its first place.
// Nothing is accumulated: gradients on the tape and of parameters stay as they are.
func (v *Var) VJP(dy []float64) (grads [][]float64, lent []bool) {
	v.live()
	if v.vjp == nil { // a leaf, or nothing that needs a gradient
		return nil, nil
	}
	be := v.tape.be
	n := len(v.inputs)
	g := be.Alloc(v.value.Rows, v.value.Cols)
	before := make([]Var, n)
	defer be.Free(g)
	be.Upload(g, dy)
	for i, x := range v.inputs {
		before[i] = *x
		x.grad = nil
		x.shared = false
		x.param = nil
	}
	v.vjp(g)
	grads = make([][]float64, n)
	lent = make([]bool, n)
	for i, x := range v.inputs {
		if x.grad != nil {
			grads[i] = x.Grad()
			lent[i] = x.shared
			x.dropGrad()
		}
	}
	for i := n - 1; i >= 0; i-- {
		x := v.inputs[i]
		x.grad = before[i].grad
		x.shared = before[i].shared
		x.param = before[i].param
	}
	return grads, lent
}

// mostPrinted is the largest number of values that [Var.String] prints.
const mostPrinted = 32

// String returns the operator and the shape, and the values if they are few, row by row:
// "MatMul [2×1] = [-1; -1]". After the tape's Reset it says so instead of the values.
func (v *Var) String() string {
	text := fmt.Sprintf("%s %v", v.op, v.value)
	if v.life != v.tape.resets {
		return text + ", freed by Reset"
	}
	if v.value.Len() == 0 || v.value.Len() > mostPrinted {
		return text
	}
	var rows []string
	for row := range slices.Chunk(v.Data(), v.value.Cols) {
		rows = append(rows, strings.Trim(fmt.Sprint(row), "[]"))
	}
	return text + " = [" + strings.Join(rows, "; ") + "]"
}
