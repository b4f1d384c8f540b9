package simd

import (
	"fmt"
	"math"
	"unsafe"
)

// chunk is the largest number of elements in one assembly call. No call then takes
// longer than tens of microseconds.
const chunk = 1 << 15

// fast reports whether kernels for T run in assembly.
func fast[T Float]() bool {
	return haveAsm && level != Generic && unsafe.Sizeof(T(0)) == 4
}

// at returns the address of s[i] for a T that is float32.
func at[T Float](s []T, i int) *float32 {
	return (*float32)(unsafe.Pointer(&s[i]))
}

// badLength panics with the lengths of an operation's slices, and what it wants of them.
func badLength(op string, want string, lens ...int) {
	panic(fmt.Sprintf("simd: %s: lengths %v, want %s", op, lens, want))
}

// inChunks runs asm over dst and a in chunks and returns true, or returns false if the
// caller must loop.
func inChunks[T Float](
	op string, dst, a []T, asm func(dst, a *float32, n int),
) bool {
	if len(a) != len(dst) {
		badLength(op, "both equal", len(dst), len(a))
	}
	if !fast[T]() {
		return false
	}
	for i := 0; i < len(dst); i += chunk {
		asm(at(dst, i), at(a, i), min(chunk, len(dst)-i))
	}
	return true
}

// unary sets dst_i = plain(a_i), by asm where it can.
func unary[T Float](
	op string, dst, a []T, asm func(dst, a *float32, n int), plain func(T) T,
) {
	if inChunks(op, dst, a, asm) {
		return
	}
	for i, x := range a {
		dst[i] = plain(x)
	}
}

// binary is inChunks for two inputs.
func binary[T Float](
	op string, dst, a, b []T, asm func(dst, a, b *float32, n int),
) bool {
	if len(a) != len(dst) || len(b) != len(dst) {
		badLength(op, "dst, a and b equal", len(dst), len(a), len(b))
	}
	if !fast[T]() {
		return false
	}
	for i := 0; i < len(dst); i += chunk {
		asm(at(dst, i), at(a, i), at(b, i), min(chunk, len(dst)-i))
	}
	return true
}

// Axpy computes y_i += alpha·x_i with one rounding. It panics if the lengths
// differ.
func Axpy[T Float](alpha T, x, y []T) {
	asm := func(y, x *float32, n int) {
		axpy(float32(alpha), y, x, n)
	}
	if inChunks("Axpy", y, x, asm) {
		return
	}
	for i, v := range x {
		y[i] += alpha * v
	}
}

// Axpby computes dst_i = alpha·a_i + beta·b_i; beta·b_i is rounded first. It
// panics if the lengths differ.
func Axpby[T Float](dst []T, alpha T, a []T, beta T, b []T) {
	asm := func(dst, a, b *float32, n int) {
		axpby(float32(alpha), float32(beta), dst, a, b, n)
	}
	if binary("Axpby", dst, a, b, asm) {
		return
	}
	for i := range dst {
		dst[i] = alpha*a[i] + T(beta*b[i])
	}
}

// Affine computes dst_i = alpha·a_i + c with one rounding. It panics if the
// lengths differ.
func Affine[T Float](dst []T, alpha T, a []T, c T) {
	if !inChunks("Affine", dst, a, func(dst, a *float32, n int) {
		affine(float32(alpha), float32(c), dst, a, n)
	}) {
		for i, x := range a {
			dst[i] = alpha*x + c
		}
	}
}

// Scale computes dst_i = alpha·a_i. It panics if the lengths differ.
func Scale[T Float](dst []T, alpha T, a []T) {
	if !inChunks("Scale", dst, a, func(dst, a *float32, n int) {
		scale(float32(alpha), dst, a, n)
	}) {
		for i, x := range a {
			dst[i] = alpha * x
		}
	}
}

// Add computes dst_i = a_i + b_i. It panics if the lengths differ.
func Add[T Float](dst, a, b []T) {
	if binary("Add", dst, a, b, add) {
		return
	}
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

// Sub computes dst_i = a_i - b_i. It panics if the lengths differ.
func Sub[T Float](dst, a, b []T) {
	if binary("Sub", dst, a, b, sub) {
		return
	}
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

// Mul computes dst_i = a_i·b_i. It panics if the lengths differ.
func Mul[T Float](dst, a, b []T) {
	if binary("Mul", dst, a, b, mul) {
		return
	}
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

// Div computes dst_i = a_i/b_i. It panics if the lengths differ.
func Div[T Float](dst, a, b []T) {
	if binary("Div", dst, a, b, div) {
		return
	}
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

// Maximum computes dst_i = max(a_i, b_i), NaN if either is. It panics if the
// lengths differ.
func Maximum[T Float](dst, a, b []T) {
	if binary("Maximum", dst, a, b, maximum) {
		return
	}
	for i := range dst {
		dst[i] = max(a[i], b[i])
	}
}

// Greater computes dst_i = 1 if a_i > b_i, else 0. A NaN is not greater, and
// nothing is greater than it. It panics if the lengths differ.
func Greater[T Float](dst, a, b []T) {
	if binary("Greater", dst, a, b, greater) {
		return
	}
	for i := range dst {
		var y T
		if a[i] > b[i] {
			y = 1
		}
		dst[i] = y
	}
}

// Gate computes dst_i = a_i if b_i > 0, else 0: the gradient of [ReLU] where a
// is the output's gradient and b the input or the output. It panics if the
// lengths differ.
func Gate[T Float](dst, a, b []T) {
	if binary("Gate", dst, a, b, gate) {
		return
	}
	for i := range dst {
		y := a[i]
		if !(b[i] > 0) {
			y = 0
		}
		dst[i] = y
	}
}

// ReLU computes dst_i = max(a_i, 0); NaN stays NaN. It panics if the lengths
// differ.
func ReLU[T Float](dst, a []T) {
	unary("ReLU", dst, a, relu, plainReLU)
}

func plainReLU[T Float](x T) T {
	if x < 0 {
		return 0
	}
	return x
}

// Abs computes dst_i = |a_i|. It panics if the lengths differ.
func Abs[T Float](dst, a []T) {
	unary("Abs", dst, a, absolute, func(x T) T {
		return T(math.Abs(float64(x)))
	})
}

// Sign computes dst_i = 1 if a_i > 0, -1 if a_i < 0, and a_i if it is ±0 or NaN.
// It panics if the lengths differ.
func Sign[T Float](dst, a []T) {
	unary("Sign", dst, a, sign, func(x T) T {
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return x
	})
}

// Sqrt computes dst_i = √a_i, correctly rounded; NaN below 0. It panics if the
// lengths differ.
func Sqrt[T Float](dst, a []T) {
	unary("Sqrt", dst, a, squareRoot, func(x T) T {
		return T(math.Sqrt(float64(x)))
	})
}

// Reciprocal computes dst_i = 1/a_i, correctly rounded. It panics if the
// lengths differ.
func Reciprocal[T Float](dst, a []T) {
	unary("Reciprocal", dst, a, reciprocal, func(x T) T { return 1 / x })
}

// Exp computes dst_i = e^a_i, 0 at -Inf and +Inf at +Inf. The relative error of
// float32 is below 1.2e-7 (1 ulp); denormal results are correct to one unit. It
// panics if the lengths differ.
func Exp[T Float](dst, a []T) {
	unary("Exp", dst, a, exp, func(x T) T {
		return T(math.Exp(float64(x)))
	})
}

// Log computes dst_i = ln a_i: -Inf at 0, NaN below, +Inf at +Inf. The relative
// error of float32 is below 1.2e-7. It panics if the lengths differ.
func Log[T Float](dst, a []T) {
	unary("Log", dst, a, log, func(x T) T {
		if 0 < x && float64(x) < 0x1p-1022 { // math.Log's assembly takes them for larger ones
			return T(math.Log(float64(x)*0x1p54) - 54*math.Ln2)
		}
		return T(math.Log(float64(x)))
	})
}

// Sigmoid computes dst_i = 1/(1+e^-a_i), without overflow on either side. The
// relative error of float32 is below 2e-7. It panics if the lengths differ.
func Sigmoid[T Float](dst, a []T) {
	unary("Sigmoid", dst, a, sigmoid, func(x T) T {
		e := math.Exp(-math.Abs(float64(x)))
		if x < 0 {
			return T(e / (1 + e))
		}
		return T(1 / (1 + e))
	})
}

// Softplus computes dst_i = ln(1+e^a_i), without overflow. The relative error
// of float32 is below 3e-7. It panics if the lengths differ.
func Softplus[T Float](dst, a []T) {
	unary("Softplus", dst, a, softplus, func(x T) T {
		return T(math.Max(float64(x), 0) +
			math.Log1p(math.Exp(-math.Abs(float64(x)))))
	})
}

// Tanh computes dst_i = tanh a_i. The relative error of float32 is below 3e-7.
// It panics if the lengths differ.
func Tanh[T Float](dst, a []T) {
	unary("Tanh", dst, a, tanh, func(x T) T {
		return T(math.Tanh(float64(x)))
	})
}

// AdamStep holds the numbers of one update by [Adam].
type AdamStep struct {
	Beta1, Beta2 float64 // decay of the moments
	Eps          float64
	WeightDecay  float64 // L2 factor added to the gradient
	Rate         float64 // learning rate
	Step         int     // t, counted from 1
}

// Adam updates the parameters p and the moments m and v in place with gradient
// g, in the order of operations of torch.optim.Adam: with t = Step,
//
//	g' = g + WeightDecay·p
//	m ← β₁m + (1-β₁)g',  v ← β₂v + (1-β₂)g'²
//	p ← p - (Rate/(1-β₁ᵗ))·m / (√v/√(1-β₂ᵗ) + ε)
//
// g is not written. The factors are computed in float64 and rounded once. It
// panics if the lengths differ.
func Adam[T Float](p, g, m, v []T, c AdamStep) {
	n := len(p)
	if len(g) != n || len(m) != n || len(v) != n {
		badLength("Adam", "p, g, m and v equal", n, len(g), len(m), len(v))
	}
	t := float64(c.Step)
	decay := T(c.WeightDecay)
	beta1 := T(c.Beta1)
	gain1 := T(1 - c.Beta1)
	beta2 := T(c.Beta2)
	gain2 := T(1 - c.Beta2)
	root2 := T(math.Sqrt(1 - math.Pow(c.Beta2, t)))
	eps := T(c.Eps)
	step := T(c.Rate / (1 - math.Pow(c.Beta1, t)))
	if fast[T]() {
		for i := 0; i < n; i += chunk {
			adam(
				float32(decay), float32(beta1), float32(gain1), float32(beta2),
				float32(gain2), float32(root2), float32(eps), float32(step),
				at(p, i), at(m, i), at(v, i), at(g, i), min(chunk, n-i),
			)
		}
		return
	}
	for i, x := range g {
		x += decay * p[i]
		m[i] = gain1*x + T(m[i]*beta1)
		v[i] = T(v[i]*beta2) + T(T(gain2*x)*x)
		d := T(T(math.Sqrt(float64(v[i])))/root2) + eps
		p[i] -= T(T(step*m[i]) / d)
	}
}
