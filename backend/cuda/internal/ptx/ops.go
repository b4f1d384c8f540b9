package ptx

import (
	"math"
	"math/bits"
	"slices"
	"strings"
)

// A register holds the bits of its value; those of 32 bits have zeros above.

func move(a, _, _ uint64) uint64 {
	return a
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// operandSize returns the width in bytes of source i of an instruction.
func operandSize(op []string, i int) int {
	switch {
	case (op[0] == "shl" || op[0] == "shr") && i == 1: // the distance
		return 4
	case slices.Contains(op, "wide") && i == 2: // the summand
		return 8
	}
	return sizes[op[len(op)-1]]
}

func f32(a uint64) float32 { return math.Float32frombits(uint32(a)) }
func f64(a uint64) float64 { return math.Float64frombits(a) }
func b32(v float32) uint64 { return uint64(math.Float32bits(v)) }
func b64(v float64) uint64 { return math.Float64bits(v) }

type integer interface {
	int32 | uint32 | int64 | uint64
}

// number returns the value of type T with the bits of a register.
func number[T integer](a uint64) T {
	return T(a)
}

// word returns the bits of a value.
func word[T integer](v T) uint64 {
	switch v := any(v).(type) {
	case int32:
		return uint64(uint32(v))
	case uint32:
		return uint64(v)
	case int64:
		return uint64(v)
	}
	return uint64(v)
}

// function computes the result of a lane from its operands.
type function = func(a, b, c uint64) uint64

// scalar returns the function of an arithmetic instruction, or nil if it is not known.
func scalar(op []string) function {
	typ := op[len(op)-1]
	switch op[0] {
	case "selp":
		return func(a, b, c uint64) uint64 {
			if c != 0 {
				return a
			}
			return b
		}
	case "cvta":
		return move
	case "cvt":
		return convert(op[len(op)-2], typ, op[1])
	case "setp":
		return comparison(op[1], typ)
	case "mul", "mad":
		if slices.Contains(op, "wide") {
			if typ == "s32" {
				return func(a, b, c uint64) uint64 {
					return uint64(int64(int32(a))*int64(int32(b))) + c
				}
			}
			return func(a, b, c uint64) uint64 {
				return uint64(uint32(a))*uint64(uint32(b)) + c
			}
		}
	}
	switch typ {
	case "f32":
		return float32Op(op)
	case "f64":
		return float64Op(op)
	case "s32":
		return integerOp[int32](op[0])
	case "u32", "b32":
		return integerOp[uint32](op[0])
	case "s64":
		return integerOp[int64](op[0])
	case "u64", "b64":
		return integerOp[uint64](op[0])
	case "pred":
		switch op[0] {
		case "and":
			return func(a, b, _ uint64) uint64 { return a & b }
		case "or":
			return func(a, b, _ uint64) uint64 { return a | b }
		case "xor":
			return func(a, b, _ uint64) uint64 { return a ^ b }
		case "not":
			return func(a, _, _ uint64) uint64 { return a ^ 1 }
		}
	}
	return nil
}

// integerOp returns the function of an instruction on integers of type T.
func integerOp[T integer](name string) function {
	switch name {
	case "add":
		return wordwise(func(x, y T) T { return x + y })
	case "sub":
		return wordwise(func(x, y T) T { return x - y })
	case "mul":
		return wordwise(func(x, y T) T { return x * y })
	case "mad":
		return func(a, b, c uint64) uint64 {
			return word(number[T](a)*number[T](b) + number[T](c))
		}
	case "div":
		return wordwise(func(x, y T) T {
			if y == 0 {
				return ^T(0) // as on devices
			}
			return x / y
		})
	case "rem":
		return wordwise(func(x, y T) T {
			if y == 0 {
				return x
			}
			return x % y
		})
	case "min":
		return wordwise(func(x, y T) T {
			return min(x, y)
		})
	case "max":
		return wordwise(func(x, y T) T {
			return max(x, y)
		})
	}
	return bitOp[T](name)
}

// wordwise makes an operation of a function of two integers.
func wordwise[T integer](f func(x, y T) T) function {
	return func(a, b, _ uint64) uint64 {
		return word(f(number[T](a), number[T](b)))
	}
}

// bitOp returns an operation on the bits of integers, nil for what is none.
func bitOp[T integer](name string) function {
	width := uint64(bits.OnesCount64(word(^T(0))))
	switch name {
	case "and":
		return wordwise(func(x, y T) T { return x & y })
	case "or":
		return wordwise(func(x, y T) T { return x | y })
	case "xor":
		return wordwise(func(x, y T) T { return x ^ y })
	case "not":
		return func(a, _, _ uint64) uint64 {
			return word(^number[T](a))
		}
	case "neg":
		return func(a, _, _ uint64) uint64 {
			return word(-number[T](a))
		}
	case "shl":
		return func(a, b, _ uint64) uint64 {
			return word(number[T](a) << min(uint64(uint32(b)), width))
		}
	case "shr":
		return func(a, b, _ uint64) uint64 {
			return word(number[T](a) >> min(uint64(uint32(b)), width))
		}
	case "popc":
		return func(a, _, _ uint64) uint64 {
			return uint64(bits.OnesCount64(a))
		}
	case "brev":
		return func(a, _, _ uint64) uint64 {
			return bits.Reverse64(a) >> (64 - width)
		}
	case "bfind": // .shiftamt: by how much to shift the highest one to the top
		return func(a, _, _ uint64) uint64 {
			if uint32(a) == 0 {
				return 0xffffffff
			}
			return uint64(bits.LeadingZeros32(uint32(a)))
		}
	}
	return nil
}

// towards rounds v to a float32 that is not above v or, with zero, not further from zero.
func towards(v float64, zero bool) float32 {
	f := float32(v)
	switch {
	case zero && math.Abs(float64(f)) > math.Abs(v):
		return math.Nextafter32(f, 0)
	case !zero && float64(f) > v:
		return math.Nextafter32(f, float32(math.Inf(-1)))
	}
	return f
}

// float32Op returns the function of an instruction on floats.
func float32Op(op []string) function {
	binary := func(f func(x, y float32) float32) function {
		return func(a, b, _ uint64) uint64 {
			return b32(f(f32(a), f32(b)))
		}
	}
	unary := func(f func(x float64) float64) function {
		return func(a, _, _ uint64) uint64 {
			return b32(float32(f(float64(f32(a)))))
		}
	}
	switch op[0] {
	case "add":
		if op[1] == "rz" {
			return binary(func(x, y float32) float32 {
				return towards(float64(x)+float64(y), true)
			})
		}
		return binary(func(x, y float32) float32 { return x + y })
	case "sub":
		return binary(func(x, y float32) float32 { return x - y })
	case "mul":
		return binary(func(x, y float32) float32 { return x * y })
	case "div":
		return binary(func(x, y float32) float32 { return x / y })
	case "fma":
		if op[1] == "rm" {
			return func(a, b, c uint64) uint64 {
				return b32(towards(
					float64(f32(a))*float64(f32(b))+float64(f32(c)), false,
				))
			}
		}
		return func(a, b, c uint64) uint64 {
			return b32(float32(
				float64(f32(a))*float64(f32(b)) + float64(f32(c)),
			))
		}
	case "max":
		return binary(func(x, y float32) float32 {
			return float32(larger(float64(x), float64(y)))
		})
	case "min":
		return binary(func(x, y float32) float32 {
			return float32(-larger(-float64(x), -float64(y)))
		})
	}
	if f := unaryOp(op[0]); f != nil {
		return unary(f)
	}
	return nil
}

// float64Op returns the function of an instruction on doubles.
func float64Op(op []string) function {
	binary := func(f func(x, y float64) float64) function {
		return func(a, b, _ uint64) uint64 {
			return b64(f(f64(a), f64(b)))
		}
	}
	switch op[0] {
	case "add":
		return binary(func(x, y float64) float64 { return x + y })
	case "sub":
		return binary(func(x, y float64) float64 { return x - y })
	case "mul":
		return binary(func(x, y float64) float64 { return x * y })
	case "div":
		return binary(func(x, y float64) float64 { return x / y })
	case "fma":
		return func(a, b, c uint64) uint64 {
			return b64(math.FMA(f64(a), f64(b), f64(c)))
		}
	case "max":
		return binary(larger)
	case "min":
		return binary(func(x, y float64) float64 {
			return -larger(-x, -y)
		})
	}
	if f := unaryOp(op[0]); f != nil {
		return func(a, _, _ uint64) uint64 {
			return b64(f(f64(a)))
		}
	}
	return nil
}

// larger returns the maximum, or the other number if one is NaN.
func larger(x, y float64) float64 {
	if x != x {
		return y
	}
	if y != y || x > y {
		return x
	}
	return y
}

// unaryOp returns the exact form of a function that a device approximates.
func unaryOp(name string) func(float64) float64 {
	switch name {
	case "neg":
		return func(x float64) float64 { return -x }
	case "abs":
		return math.Abs
	case "sqrt":
		return math.Sqrt
	case "rcp":
		return func(x float64) float64 { return 1 / x }
	case "rsqrt":
		return func(x float64) float64 {
			return 1 / math.Sqrt(x)
		}
	case "ex2":
		return math.Exp2
	}
	return nil
}

// comparison returns the function of setp.
func comparison(cc, typ string) function {
	switch typ {
	case "f32":
		f := floatComparison(cc)
		return func(a, b, _ uint64) uint64 {
			return truth(f(float64(f32(a)), float64(f32(b))))
		}
	case "f64":
		f := floatComparison(cc)
		return func(a, b, _ uint64) uint64 {
			return truth(f(f64(a), f64(b)))
		}
	case "s32":
		return integerComparison[int32](cc)
	case "u32", "b32":
		return integerComparison[uint32](cc)
	case "s64":
		return integerComparison[int64](cc)
	}
	return integerComparison[uint64](cc)
}

func integerComparison[T integer](cc string) function {
	holds := ordered[T](cc)
	return func(a, b, _ uint64) uint64 {
		return truth(holds(number[T](a), number[T](b)))
	}
}

// ordered returns a comparison of numbers.
func ordered[T integer | float64](cc string) func(x, y T) bool {
	switch cc {
	case "eq":
		return func(x, y T) bool {
			return x == y
		}
	case "ne":
		return func(x, y T) bool {
			return x != y
		}
	case "lt":
		return func(x, y T) bool { return x < y }
	case "le":
		return func(x, y T) bool {
			return x <= y
		}
	case "gt":
		return func(x, y T) bool { return x > y }
	case "ge":
		return func(x, y T) bool {
			return x >= y
		}
	}
	panic("ptx: comparison " + cc)
}

// floatComparison returns a comparison that is false if an operand is NaN or, if cc ends
// in u, true.
func floatComparison(cc string) func(x, y float64) bool {
	nan := func(x, y float64) bool {
		return x != x || y != y
	}
	switch {
	case cc == "nan":
		return nan
	case len(cc) == 3 && strings.HasSuffix(cc, "u"):
		f := ordered[float64](cc[:2])
		return func(x, y float64) bool {
			return nan(x, y) || f(x, y)
		}
	}
	f := ordered[float64](cc)
	return func(x, y float64) bool {
		return !nan(x, y) && f(x, y)
	}
}

// convert returns cvt from a source type to a target type.
func convert(target, source, mode string) function {
	round := rounding(mode)
	write := func(v float64) uint64 {
		switch v = round(v); {
		case target == "f32":
			return b32(float32(v))
		case target == "f64":
			return b64(v)
		case target == "s32":
			return uint64(uint32(int32(v)))
		case target == "s64":
			return uint64(int64(v))
		case v <= 0:
			return 0
		case target == "u32":
			return uint64(uint32(v))
		}
		return uint64(v)
	}
	floating := target[0] == 'f'
	narrow := func(v uint64) uint64 {
		if sizes[target] == 4 {
			v &= 0xffffffff
		}
		return v
	}
	switch source {
	case "f32":
		return func(a, _, _ uint64) uint64 {
			return write(float64(f32(a)))
		}
	case "f64":
		return func(a, _, _ uint64) uint64 {
			return write(f64(a))
		}
	case "s32", "s64":
		return func(a, _, _ uint64) uint64 {
			v := int64(a)
			if source == "s32" {
				v = int64(int32(a))
			}
			if floating {
				return write(float64(v))
			}
			return narrow(uint64(v))
		}
	}
	return func(a, _, _ uint64) uint64 {
		if floating {
			return write(float64(a))
		}
		return narrow(a)
	}
}

// rounding returns what a mode of cvt does to a number before it is converted.
func rounding(mode string) func(float64) float64 {
	switch mode {
	case "rzi":
		return math.Trunc
	case "rni":
		return math.RoundToEven
	case "rmi":
		return math.Floor
	case "rpi":
		return math.Ceil
	case "sat":
		return func(x float64) float64 {
			if x != x {
				return 0
			}
			return min(max(x, 0), 1)
		}
	}
	return func(x float64) float64 { return x }
}

// latency returns the cycles from an instruction to one that needs its result, on Hopper,
// rounded. Those of arithmetic and memory are published measurements; those of divisions
// are the length of the subroutine.
func latency(op []string) int64 {
	typ := op[len(op)-1]
	double := typ == "f64"
	switch op[0] {
	case "ld":
		switch {
		case slices.Contains(op, "global"):
			return 300 // the level-2 cache
		case slices.Contains(op, "param"):
			return 8
		}
		return 30
	case "atom":
		return 60
	case "div", "rem":
		switch typ {
		case "s64", "u64":
			return 120
		case "u32":
			return 60
		case "s32":
			return 70
		case "f32":
			return 50
		}
		return 160
	case "rcp", "sqrt":
		switch {
		case double:
			return 110
		case op[0] == "sqrt":
			return 60
		}
		return 30
	case "rsqrt":
		return 40
	case "ex2":
		return 20
	case "shfl":
		return 25
	case "vote", "bfind", "brev", "popc":
		return 12
	case "cvt":
		if typ[0] == 'f' || op[len(op)-2][0] == 'f' {
			return 20
		}
		return 6
	}
	if double && op[0] != "mov" && op[0] != "selp" {
		return 9
	}
	return 5
}
