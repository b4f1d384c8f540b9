package main

import "math"

// binary returns the kernel dst = f(a, b) in its elementwise form.
func binary(name, doc string, f func(k *kc)) kernel {
	return kernel{
		name:   name,
		doc:    "dst_i = " + doc,
		out:    []string{"dst"},
		in:     []string{"a", "b"},
		unroll: true,
		regs:   3,
		body:   f,
	}
}

// unary returns the kernel dst = f(a), which uses that many registers.
func unary(name, doc string, regs int, f func(k *kc)) kernel {
	return kernel{
		name:   name,
		doc:    "dst_i = " + doc,
		out:    []string{"dst"},
		in:     []string{"a"},
		unroll: regs <= 3,
		regs:   regs,
		body:   f,
	}
}

// ofRow returns the kernel dst = f(a, b) in the form where b is a row.
func ofRow(name, doc string, f func(k *kc)) kernel {
	return kernel{
		name:   name,
		doc:    "dst_ij = " + doc,
		out:    []string{"dst"},
		in:     []string{"a"},
		row:    []string{"b"},
		unroll: true,
		regs:   3,
		body:   f,
	}
}

// ofCol returns the kernel dst = f(a, b) in the form where b is a column.
func ofCol(name, doc string, f func(k *kc)) kernel {
	return kernel{
		name:   name,
		doc:    "dst_ij = " + doc,
		out:    []string{"dst"},
		in:     []string{"a"},
		col:    []string{"b"},
		unroll: true,
		regs:   3,
		body:   f,
	}
}

func addBody(k *kc) { k.add("dst", "a", "b") }
func subBody(k *kc) { k.sub("dst", "a", "b") }
func mulBody(k *kc) { k.mul("dst", "a", "b") }
func divBody(k *kc) { k.div("dst", "a", "b") }

var kernels = []kernel{
	{
		name:   "axpy",
		doc:    "y_i += alpha·x_i",
		scal:   []string{"alpha"},
		out:    []string{"y"},
		in:     []string{"y", "x"},
		unroll: true,
		regs:   2,
		body: func(k *kc) {
			k.fma("y", "alpha", "x")
		},
	},
	{
		name:   "axpby",
		doc:    "dst_i = alpha·a_i + (beta·b_i)",
		scal:   []string{"alpha", "beta"},
		out:    []string{"dst"},
		in:     []string{"a", "b"},
		unroll: true,
		regs:   3,
		body: func(k *kc) {
			k.mul("dst", "b", "beta")
			k.fma("dst", "alpha", "a")
		},
	},
	{
		name:   "affine",
		doc:    "dst_i = alpha·a_i + c",
		scal:   []string{"alpha", "c"},
		out:    []string{"dst"},
		in:     []string{"a"},
		unroll: true,
		regs:   2,
		body: func(k *kc) {
			k.mov("dst", "c")
			k.fma("dst", "alpha", "a")
		},
	},
	binary("add", "a_i + b_i", addBody),
	binary("sub", "a_i - b_i", subBody),
	binary("mul", "a_i·b_i", mulBody),
	binary("div", "a_i/b_i", divBody),
	{
		name: "maximum",
		doc:  "dst_i = max(a_i, b_i), NaN if either is",
		out:  []string{"dst"},
		in:   []string{"a", "b"},
		regs: 5,
		body: func(k *kc) {
			k.max("t", "a", "b")
			k.sel("dst", isNaN, "a", "a", "a", "t")
		},
	},
	{
		name:   "greater",
		doc:    "dst_i = 1 if a_i > b_i, else 0",
		out:    []string{"dst"},
		in:     []string{"a", "b"},
		unroll: true,
		regs:   3,
		body: func(k *kc) {
			k.keep("dst", greater, "a", "b", k.f("one", 1))
		},
	},
	{
		name:   "gate",
		doc:    "dst_i = a_i if b_i > 0, else 0",
		out:    []string{"dst"},
		in:     []string{"a", "b"},
		unroll: true,
		regs:   3,
		body: func(k *kc) {
			k.keep("dst", greater, "b", k.f("zero", 0), "a")
		},
	},
	{
		name:   "scale",
		doc:    "dst_i = alpha·a_i",
		scal:   []string{"alpha"},
		out:    []string{"dst"},
		in:     []string{"a"},
		unroll: true,
		regs:   2,
		body: func(k *kc) {
			k.mul("dst", "a", "alpha")
		},
	},
	unary("relu", "a_i if not a_i < 0, else 0", 3, func(k *kc) {
		k.xor("dst", "dst", "dst")
		k.max("dst", "dst", "a")
	}),
	unary("absolute", "|a_i|", 2, func(k *kc) {
		k.and("dst", "a", k.konst("notSign", 0x7fffffff))
	}),
	unary("sign", "the sign of a_i; a_i itself if 0 or NaN", 5, func(k *kc) {
		k.sel("t", greater, "a", k.f("zero", 0), k.f("one", 1), "a")
		k.sel("dst", less, "a", k.f("zero", 0), k.f("minusOne", -1), "t")
	}),
	unary("squareRoot", "√a_i", 2, func(k *kc) {
		k.sqrt("dst", "a")
	}),
	unary("reciprocal", "1/a_i", 2, func(k *kc) {
		k.mov("dst", k.f("one", 1))
		k.div("dst", "dst", "a")
	}),
	unary("exp", "e^a_i, see expBody in the generator", 6, func(k *kc) {
		k.exp("dst", "a")
	}),
	unary("log", "ln a_i, see logBody in the generator", 9, func(k *kc) {
		k.log("dst", "a")
	}),
	unary("sigmoid", "1/(1+e^-a_i)", 9, func(k *kc) {
		k.or("u", "a", k.konst("signBit", 1<<31)) // -|a|
		k.exp("e", "u")
		k.sel("u", less, "a", k.f("zero", 0), "e", k.in("num", k.f("one", 1)))
		k.add("e", "e", k.f("one", 1))
		k.div("dst", "u", "e")
	}),
	unary("softplus", "max(a_i, 0) + ln(1+e^-|a_i|)", 12, func(k *kc) {
		k.or("u", "a", k.konst("signBit", 1<<31))
		k.exp("e", "u")
		// ln(1+e) = ln u + (e-(u-1))/u with u = 1+e rounded (fdlibm's log1p).
		k.add("u", "e", k.f("one", 1))
		k.sub("x", "u", k.f("one", 1))
		k.sub("e", "e", "x")
		k.div("e", "e", "u")
		k.log("x", "u")
		k.add("e", "e", "x")
		k.xor("x", "x", "x")
		k.max("x", "x", "a")
		k.add("dst", "e", "x")
	}),
	unary("tanh", "tanh a_i", 9, tanhBody),
	ofRow("addRow", "a_ij + b_j", addBody),
	ofRow("subRow", "a_ij - b_j", subBody),
	ofRow("mulRow", "a_ij·b_j", mulBody),
	ofRow("divRow", "a_ij/b_j", divBody),
	ofRow("addRowReLU", "a_ij + b_j, or 0 if that is less", func(k *kc) {
		k.add("a", "a", "b")
		k.xor("dst", "dst", "dst")
		k.max("dst", "dst", "a")
	}),
	ofCol("addCol", "a_ij + b_i", addBody),
	ofCol("subCol", "a_ij - b_i", subBody),
	ofCol("mulCol", "a_ij·b_i", mulBody),
	ofCol("divCol", "a_ij/b_i", divBody),
	{
		name:   "affineRow",
		doc:    "dst_ij = a_ij·scale_j + shift_j",
		out:    []string{"dst"},
		in:     []string{"a"},
		row:    []string{"scale", "shift"},
		unroll: true,
		regs:   3,
		body: func(k *kc) {
			k.fmaTo("a", "scale", "shift")
			k.reg["dst"] = k.reg["a"]
		},
	},
	{
		name: "combineRow",
		doc:  "dst_ij = a_ij·p_j + (b_ij·q_j + r_j)",
		out:  []string{"dst"},
		in:   []string{"a", "b"},
		row:  []string{"p", "q", "r"},
		regs: 5,
		body: func(k *kc) {
			k.fmaTo("b", "q", "r")
			k.fma("b", "a", "p")
			k.reg["dst"] = k.reg["b"]
		},
	},
	{
		// torch.optim.Adam: mul_, add_ with a factor, mul_, addcmul_, sqrt, div by
		// a number, add, addcdiv_, each rounded as PyTorch's vector code does.
		name: "adam",
		doc:  "one update of Adam, see Adam",
		scal: []string{
			"decay", "beta1", "gain1", "beta2", "gain2", "root2", "eps", "step",
		},
		out:  []string{"p", "m", "v"},
		in:   []string{"p", "grad", "m", "v"},
		regs: 6,
		body: func(k *kc) {
			k.fma("grad", "decay", "p")
			k.mul("m", "m", "beta1")
			k.fma("m", "gain1", "grad")
			k.mul("t", "grad", "gain2")
			k.mul("v", "v", "beta2")
			k.mul("t", "t", "grad")
			k.add("v", "v", "t")
			k.sqrt("t", "v")
			k.div("t", "t", "root2")
			k.add("t", "t", "eps")
			k.mul("u", "m", "step")
			k.div("u", "u", "t")
			k.sub("p", "p", "u")
		},
	},
}

// in copies an operand in memory to a register and returns its name.
func (k *kc) in(name, mem string) string {
	k.mov(name, mem)
	return name
}

// exp writes dst = e^x for |x| of any size: e^x = 2^n·e^r with n = round(x/ln 2)
// and |r| ≤ ln(2)/2. The polynomial is that of Cephes' expf (Moshier 1989). x is
// clamped to where e^x is 0 and +Inf after rounding. It uses three more
// registers.
func (k *kc) exp(dst, x string) {
	const magic = 0x1.8p23 // adding it rounds to an integer
	k.mov("lx", k.f("expHi", 89))
	k.min("lx", "lx", x) // x last: NaN stays
	k.mov("ln", k.f("expLo", -104))
	k.max("lx", "ln", "lx")
	k.mov("ln", k.f("expMagic", magic))
	k.fma("ln", "lx", k.f("expLog2e", math.Log2E))
	if k.isa.reg != "Z" {
		k.isub("lt", "ln", k.f("expMagic", magic)) // n as an integer
	}
	k.sub("ln", "ln", k.f("expMagic", magic))
	k.fnma("lx", "ln", k.f("expLn2Hi", 0.693359375)) // 9 bits: n times it is exact
	k.fnma("lx", "ln", k.f("expLn2Lo", -2.12194440e-4))
	k.mov(dst, k.f("exp7", 1.9875691500e-4))
	k.fmaTo(dst, "lx", k.f("exp6", 1.3981999507e-3))
	k.fmaTo(dst, "lx", k.f("exp5", 8.3334519073e-3))
	k.fmaTo(dst, "lx", k.f("exp4", 4.1665795894e-2))
	k.fmaTo(dst, "lx", k.f("exp3", 1.6666665459e-1))
	k.fmaTo(dst, "lx", k.f("exp2", 5.0000001201e-1))
	if k.isa.reg == "Z" {
		k.mul("lt", "lx", "lx")
		k.fmaTo(dst, "lt", "lx")
		k.add(dst, dst, k.f("one", 1))
		k.op("VSCALEFPS", dst, dst, "ln")
		return
	}
	k.mul("ln", "lx", "lx")
	k.fmaTo(dst, "ln", "lx")
	k.add(dst, dst, k.f("one", 1))
	// Times 2^n in two steps, for 2^n alone may overflow or underflow.
	k.ishr("lx", "lt", 1)
	k.isub("lt", "lt", "lx")
	k.iadd("lx", "lx", k.konst("int127", 127))
	k.iadd("lt", "lt", k.konst("int127", 127))
	k.ishl("lx", "lx", 23)
	k.ishl("lt", "lt", 23)
	k.mul(dst, dst, "lx")
	k.mul(dst, dst, "lt")
}

// log writes dst = ln x by fdlibm's logf (Sun 1993; error below 1 ulp): x =
// 2^n·(1+f) with √½ ≤ 1+f < √2, s = f/(2+f), and a polynomial in s². It uses six
// more registers.
func (k *kc) log(dst, x string) {
	// A denormal number gets 25 more binary places.
	k.mul("lt", x, k.f("two25", 0x1p25))
	k.sel("lx", less, x, k.f("minNormal", 0x1p-126), "lt", x)
	k.keep("lk", less, x, k.f("minNormal", 0x1p-126), k.f("minus25", -25))

	k.iadd("lx", "lx", k.konst("logShift", 0x3f800000-0x3f3504f3))
	k.ishr("ln", "lx", 23)
	k.isub("ln", "ln", k.konst("int127", 127))
	k.toFloat("ln", "ln")
	k.add("lk", "lk", "ln")
	k.and("lx", "lx", k.konst("fraction", 0x007fffff))
	k.iadd("lx", "lx", k.konst("sqrtHalf", 0x3f3504f3))
	k.sub("lx", "lx", k.f("one", 1)) // f

	k.add("ln", "lx", k.f("two", 2))
	k.div("ln", "lx", "ln") // s
	k.mul("lt", "ln", "ln") // s²
	k.mul("lz", "lt", "lt") // s⁴
	k.mov(dst, k.f("logG4", 0.24279078841))
	k.fmaTo(dst, "lz", k.f("logG2", 0.40000972152))
	k.mul(dst, dst, "lz") // s⁴·(G2 + s⁴·G4)
	k.mov("lu", k.f("logG3", 0.28498786688))
	k.fmaTo("lu", "lz", k.f("logG1", 0.66666662693))
	k.fma(dst, "lu", "lt") // R
	k.mul("lt", "lx", "lx")
	k.mul("lt", "lt", k.f("half", 0.5)) // f²/2
	k.add(dst, dst, "lt")
	k.mul(dst, dst, "ln")
	k.fma(dst, "lk", k.f("logLn2Lo", 9.0580006145e-6))
	k.sub(dst, dst, "lt")
	k.add(dst, dst, "lx")
	k.fma(dst, "lk", k.f("logLn2Hi", 0.69313812256))

	inf := k.f("inf", math.Inf(1))
	k.sel("lt", equal, x, inf, inf, dst)
	k.sel("lx", equal, x, k.f("zero", 0), k.f("minusInf", math.Inf(-1)), "lt")
	k.sel(dst, notGE, x, k.f("zero", 0), k.konst("nan", 0x7fc00000), "lx")
}

// tanhBody is Cephes' tanhf: a polynomial below 0.625, else 1-2/(e^2|x|+1).
func tanhBody(k *kc) {
	k.and("x", "a", k.konst("notSign", 0x7fffffff))
	k.add("u", "x", "x")
	k.exp("e", "u")
	k.add("e", "e", k.f("one", 1))
	k.mov("u", k.f("two", 2))
	k.div("e", "u", "e")
	k.mov("u", k.f("one", 1))
	k.sub("u", "u", "e")
	k.mov("lx", k.konst("signBit", 1<<31))
	k.and("lx", "a", "lx")
	k.or("u", "u", "lx")
	k.mul("ln", "a", "a")
	k.mov("e", k.f("tanh5", -5.70498872745e-3))
	k.fmaTo("e", "ln", k.f("tanh4", 2.06390887954e-2))
	k.fmaTo("e", "ln", k.f("tanh3", -5.37397155531e-2))
	k.fmaTo("e", "ln", k.f("tanh2", 1.33314422036e-1))
	k.fmaTo("e", "ln", k.f("tanh1", -3.33332819422e-1))
	k.mul("ln", "ln", "a")
	k.fmaTo("e", "ln", "a")
	k.sel("dst", less, "x", k.f("tanhSmall", 0.625), "e", "u")
}
