// Package tensor names what the engine computes with: dense row-major matrices
// of one precision.
//
// A [Tensor] is only a handle: two numbers for the shape and a buffer that
// belongs to the engine (package backend) that made it. The buffer may be Go memory
// or device memory; nothing above the engine looks inside. There is no rank above
// two, no stride and no view, because graph contrastive learning needs none:
// node features are N×F, embeddings B×D, similarities B×B, biases 1×F, losses
// 1×1. A transpose is a flag of the matrix product and broadcasting is spelled
// out in the operator's name.
package tensor

import "fmt"

// Precision is the floating-point format of an engine and of all its tensors.
type Precision uint8

// The precisions. Float32 is for training, Float64 for checking gradients and golden
// values.
const (
	Float32 Precision = iota
	Float64
)

// Bytes returns the size of one element.
func (p Precision) Bytes() int {
	if p == Float64 {
		return 8
	}
	return 4
}

// String returns the name that flags use: "float32" or "float64".
func (p Precision) String() string {
	if p == Float64 {
		return "float64"
	}
	return "float32"
}

// ParsePrecision is the inverse of [Precision.String].
func ParsePrecision(s string) (Precision, error) {
	switch s {
	case "float32":
		return Float32, nil
	case "float64":
		return Float64, nil
	}
	return 0, fmt.Errorf("tensor: precision %q: want float32 or float64", s)
}

// Buffer is the memory behind a tensor, private to the engine that made it.
type Buffer any

// Tensor is a dense row-major matrix [Rows×Cols] held by one engine.
// The fields are read-only for everyone but the engine.
type Tensor struct {
	Rows, Cols int
	Buf        Buffer
}

// Len returns Rows·Cols.
func (t *Tensor) Len() int { return t.Rows * t.Cols }

// Is reports whether the shape is rows×cols.
func (t *Tensor) Is(rows, cols int) bool { return t.Rows == rows && t.Cols == cols }

// Like reports whether both shapes are equal.
func (t *Tensor) Like(u *Tensor) bool { return t.Rows == u.Rows && t.Cols == u.Cols }

// String returns the shape, as in "[512×32]".
func (t *Tensor) String() string {
	if t == nil {
		return "[none]"
	}
	return fmt.Sprintf("[%d×%d]", t.Rows, t.Cols)
}

// ShapeError is the value of the panic for a programmer's shape error.
type ShapeError struct {
	Op   string // the operator, as in "autodiff: MatMul"
	Have string // the shapes given
	Want string // what was wanted
}

// Error returns a message such as
// "autodiff: MatMul: [32×64]·[32×10]: inner dimensions 64 and 32 differ".
func (e *ShapeError) Error() string { return e.Op + ": " + e.Have + ": " + e.Want }

// Mismatch panics with a [ShapeError] for op that lists the shapes of ts.
func Mismatch(op, want string, ts ...*Tensor) {
	shapes := ""
	for i, t := range ts {
		if i > 0 {
			shapes += ", "
		}
		shapes += t.String()
	}
	panic(&ShapeError{Op: op, Have: shapes, Want: want})
}
