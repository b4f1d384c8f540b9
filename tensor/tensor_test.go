package tensor_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/specmatch/specmatch/tensor"
)

func TestPrecision(t *testing.T) {
	for _, c := range []struct {
		p     tensor.Precision
		name  string
		bytes int
	}{
		{tensor.Float32, "float32", 4},
		{tensor.Float64, "float64", 8},
	} {
		if c.p.String() != c.name || c.p.Bytes() != c.bytes {
			t.Errorf("%v has %d bytes, want %s with %d", c.p, c.p.Bytes(), c.name, c.bytes)
		}
		if p, err := tensor.ParsePrecision(c.name); p != c.p || err != nil {
			t.Errorf("ParsePrecision(%q) = %v, %v", c.name, p, err)
		}
	}
	for _, s := range []string{"", "float", "Float32", "float16", "double", " float32"} {
		if _, err := tensor.ParsePrecision(s); err == nil {
			t.Errorf("ParsePrecision(%q) gave no error", s)
		} else if want := fmt.Sprintf("tensor: precision %q: want float32 or float64", s); err.Error() != want {
			t.Errorf("ParsePrecision(%q) gave %q, want %q", s, err, want)
		}
	}
	var zero tensor.Precision
	if zero != tensor.Float32 {
		t.Errorf("the zero Precision is %v, want float32", zero)
	}
}

func TestShapes(t *testing.T) {
	a, b, c := &tensor.Tensor{Rows: 2, Cols: 3}, &tensor.Tensor{Rows: 2, Cols: 3, Buf: 1}, &tensor.Tensor{Rows: 3, Cols: 2}
	if a.Len() != 6 || (&tensor.Tensor{Rows: 0, Cols: 7}).Len() != 0 {
		t.Error("Len is not Rows·Cols")
	}
	if !a.Is(2, 3) || a.Is(3, 2) || a.Is(2, 4) || a.Is(1, 3) || a.Is(6, 1) {
		t.Error("Is compares something else than both dimensions")
	}
	if !a.Like(b) || !b.Like(a) || a.Like(c) {
		t.Error("Like compares something else than both dimensions")
	}
	if s := a.String(); s != "[2×3]" {
		t.Errorf("String is %q", s)
	}
	if s := (*tensor.Tensor)(nil).String(); s != "[none]" {
		t.Errorf("String of nil is %q", s)
	}
}

func TestMismatch(t *testing.T) {
	a := &tensor.Tensor{Rows: 2, Cols: 3}
	for _, c := range []struct {
		ts   []*tensor.Tensor
		want tensor.ShapeError
		text string
	}{
		{nil, tensor.ShapeError{Op: "op", Have: "", Want: "want"}, "op: : want"},
		{[]*tensor.Tensor{a}, tensor.ShapeError{Op: "op", Have: "[2×3]", Want: "want"}, "op: [2×3]: want"},
		{[]*tensor.Tensor{a, nil, a}, tensor.ShapeError{Op: "op", Have: "[2×3], [none], [2×3]", Want: "want"}, "op: [2×3], [none], [2×3]: want"},
	} {
		func() {
			defer func() {
				err, _ := recover().(error)
				var shape *tensor.ShapeError
				if !errors.As(err, &shape) {
					t.Fatalf("Mismatch panicked with %v, want a *tensor.ShapeError", err)
				}
				if d := cmp.Diff(c.want, *shape); d != "" {
					t.Errorf("the ShapeError differs (-want +got):\n%s", d)
				}
				if err.Error() != c.text {
					t.Errorf("the message is %q, want %q", err, c.text)
				}
			}()
			tensor.Mismatch("op", "want", c.ts...)
			t.Error("Mismatch did not panic")
		}()
	}
}

func ExampleParsePrecision() {
	p, err := tensor.ParsePrecision("float64")
	fmt.Println(p, p.Bytes(), err)
	_, err = tensor.ParsePrecision("half")
	fmt.Println(err)
	// Output:
	// float64 8 <nil>
	// tensor: precision "half": want float32 or float64
}

func ExampleMismatch() {
	defer func() { fmt.Println(recover()) }()
	a, b := &tensor.Tensor{Rows: 32, Cols: 64}, &tensor.Tensor{Rows: 32, Cols: 10}
	tensor.Mismatch("autodiff: MatMul", "inner dimensions 64 and 32 differ", a, b)
	// Output:
	// autodiff: MatMul: [32×64], [32×10]: inner dimensions 64 and 32 differ
}
