package autodiff_test

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

// A tape, operators, a gradient. The loss is Σ (x·w)², so ∂loss/∂w = 2·xᵀ·x·w.
func Example() {
	be := cpu.New(tensor.Float64)
	tape := autodiff.NewTape(be)
	defer tape.Reset() // gives back all that the tape owns

	x := tape.Matrix(2, 2, []float64{1, 2, 3, 4})
	w := tape.Leaf(2, 1, []float64{1, -1}) // a variable that wants a gradient
	y := x.MatMul(w)                       // computed at once, and recorded
	fmt.Println(y)                         // MatMul [2×1] = [-1; -1]
	loss := y.Square().Sum()
	tape.Backward(loss) // back from the loss to its variables
	fmt.Println("gradient of w =", w.Grad())
	// Output:
	// MatMul [2×1] = [-1; -1]
	// gradient of w = [-8 -12]
}

// A variable prints its operator, its shape and, if there are few, its values.
func ExampleVar_String() {
	tape := autodiff.NewTape(cpu.New(tensor.Float64))
	x := tape.Matrix(2, 3, []float64{1, 2, 3, 4, 5, 6.5})
	large := tape.Matrix(100, 3, make([]float64, 300))
	fmt.Println(x)
	fmt.Println(large.ReLU())
	tape.Reset()
	fmt.Println(x) // no panic
	// Output:
	// Const [2×3] = [1 2 3; 4 5 6.5]
	// ReLU [100×3]
	// Const [2×3], freed by Reset
}

// Parameters live outside the tape and outlast its Reset; gradients are added
// to them until they are forgotten.
func ExampleParam() {
	be := cpu.New(tensor.Float64)
	p := autodiff.NewParam(be, "p", 1, 2, []float64{3, 5})
	tape := autodiff.NewTape(be)
	grad := make([]float64, 2)
	for range 2 {
		v := tape.Param(p)
		tape.Backward(v.Dot(v)) // ∂(p·p)/∂p = 2p
		tape.Reset()
		be.Download(grad, p.Grad)
		fmt.Println(grad)
	}
	p.ZeroGrad()
	fmt.Println("gradient after ZeroGrad:", p.HasGrad())
	// Output:
	// [6 10]
	// [12 20]
	// gradient after ZeroGrad: false
}

// An operator of one's own, y = x³, is its value and its vector-Jacobian
// product dx = 3·dy∘x². Package gradcheck tells whether it is right.
func ExampleTape_Record() {
	be := cpu.New(tensor.Float64)
	cube := func(x *autodiff.Var) *autodiff.Var {
		tape := x.Tape()
		y := tape.Alloc(x.Rows(), x.Cols())
		be.Binary(y, backend.Mul, x.Value(), x.Value())
		be.Binary(y, backend.Mul, y, x.Value())
		return tape.Record("Cube", y, func(dy *tensor.Tensor) {
			dx := be.Alloc(x.Rows(), x.Cols()) // AddGrad takes it over
			be.Binary(dx, backend.Mul, x.Value(), x.Value())
			be.Affine(dx, 3, dx, 0)
			be.Binary(dx, backend.Mul, dx, dy)
			x.AddGrad(dx)
		}, x)
	}
	tape := autodiff.NewTape(be)
	defer tape.Reset()
	x := tape.Leaf(1, 3, []float64{1, 2, -3})
	y := cube(x)
	tape.Backward(y.Sum())
	fmt.Println(y.Data(), x.Grad())
	// Output: [1 8 -27] [3 12 27]
}
