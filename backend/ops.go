package backend

import "github.com/specmatch/specmatch/tensor"

var (
	unaryNames = [...]string{
		"Exp", "Log", "Sqrt", "Sigmoid", "Softplus", "Tanh", "ReLU", "Abs",
		"Sign", "Reciprocal", "InvSqrt",
	}
	binaryNames = [...]string{
		"Add", "Sub", "Mul", "Div", "Max", "Greater", "Gate",
	}
	rowNames = [...]string{"RowSum", "RowMax", "RowLogSumExp"}
)

// UnaryOps, BinaryOps and RowOps list all operations, for tests.
func UnaryOps() []UnaryOp   { return listOps[UnaryOp](int(numUnary)) }
func BinaryOps() []BinaryOp { return listOps[BinaryOp](int(numBinary)) }
func RowOps() []RowOp       { return listOps[RowOp](int(numRow)) }

func listOps[O ~uint8](n int) []O {
	ops := make([]O, n)
	for i := range ops {
		ops[i] = O(i)
	}
	return ops
}

func (op UnaryOp) String() string  { return unaryNames[op] }
func (op BinaryOp) String() string { return binaryNames[op] }
func (op RowOp) String() string    { return rowNames[op] }

// LeastDegree returns the degree below which a node counts as isolated: 2^-100, or
// 2^-1000 in float64. Smaller degrees are sums of weights close to the underflow
// threshold and have few correct digits. Their d^-½ would amplify the error, and
// powers of 1/d in gradients would overflow.
func LeastDegree(p tensor.Precision) float64 {
	if p == tensor.Float64 {
		return 0x1p-1000
	}
	return 0x1p-100
}
