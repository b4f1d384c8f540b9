package nn_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

// A layer is a struct with parameters; Forward writes its operators on the tape
// of its input.
func ExampleLinear() {
	be := cpu.New(tensor.Float64)
	layer := nn.NewLinear(be, "head", 2, 1, nn.XavierUniform, rand.New(rand.NewPCG(1, 1)))
	be.Upload(layer.W.Value, []float64{0.5, -1}) // in place of the drawn weights

	tape := autodiff.NewTape(be)
	defer tape.Reset()
	x := tape.Matrix(3, 2, []float64{
		1, 0,
		0, 1,
		2, 2})
	y := layer.Forward(x)
	fmt.Println("y =", y.Data())

	tape.Backward(y.Sum())
	grad := make([]float64, 2)
	be.Download(grad, layer.W.Grad)
	fmt.Println("gradient of", layer.W.Name, "=", grad)
	// Output:
	// y = [0.5 -1 -1]
	// gradient of head.weight = [3 3]
}

// Weights travel between models of the same shape, whatever their precision.
func ExampleSave() {
	rng := rand.New(rand.NewPCG(1, 1))
	trained := nn.NewMLP(cpu.New(tensor.Float32), "mlp", []int{4, 8, 2}, nn.XavierUniform, rng)
	var file bytes.Buffer
	fmt.Println(nn.Save(&file, trained, map[string]string{"dataset": "MUTAG"}))

	f, err := nn.Read(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	same := nn.NewMLP(cpu.New(tensor.Float64), "mlp", []int{4, 8, 2}, nn.XavierUniform, rng)
	fmt.Println(f.Load(same))

	wider := nn.NewMLP(cpu.New(tensor.Float32), "mlp", []int{4, 9, 2}, nn.XavierUniform, rng)
	fmt.Println(f.Load(wider))
	// Output:
	// <nil>
	// <nil>
	// the file does not fit the model: different: mlp.0.bias is [8], want [9], mlp.0.weight is [8×4], want [9×4], mlp.2.weight is [2×8], want [2×9]
}
