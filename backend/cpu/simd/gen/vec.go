package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// kernel describes an elementwise kernel on float32: for every index, body
// computes the outputs from the inputs. The generator adds the loops: four
// vectors at a time (if unroll), one at a time, and one partial vector that
// only touches what exists.
//
// A kernel with row or col arguments walks a rows×cols matrix: a row argument is
// read at the same column in every row, a col argument gives one number to every
// row.
type kernel struct {
	name, doc string
	scal      []string // scalar arguments
	out, in   []string // slices written and read; one in both is updated
	row, col  []string
	unroll    bool
	regs      int // registers that body uses, inputs and outputs included
	body      func(k *kc)
}

// kc is what a body writes its instructions with: a window of registers for one
// vector.
type kc struct {
	*out
	base int
	reg  map[string]string
	free int
}

// r returns the register of a name, a new one of the window at its first use.
func (k *kc) r(name string) string {
	if _, ok := k.reg[name]; !ok {
		k.reg[name] = k.isa.v(k.base + k.free)
		k.free++
	}
	return k.reg[name]
}

// op writes dst = op(a, b): a and b are names, or operands in memory for b. The
// mnemonics are those of amd64; see neonOps for arm64.
func (k *kc) op(mn, dst, a, b string) {
	k.ins(mn, k.operand(b), k.r(a), k.r(dst))
}

// ins writes d = n op m on registers; m may lie in memory on amd64.
func (o *out) ins(mn, m, n, d string) {
	if o.arm64() {
		o.neon(mn, m, n, d)
		return
	}
	o.p("%s %s, %s, %s", mn, m, n, d)
}

// operand returns a register, or the operand of a constant in memory. Arm64 has
// no such operands: the constant goes through a register.
func (k *kc) operand(b string) string {
	if !strings.HasSuffix(b, ")") {
		return k.r(b)
	}
	if k.arm64() {
		k.loadQ(b, k.r("const"))
		return k.r("const")
	}
	return b
}

func (k *kc) add(dst, a, b string)  { k.op("VADDPS", dst, a, b) }
func (k *kc) sub(dst, a, b string)  { k.op("VSUBPS", dst, a, b) }
func (k *kc) mul(dst, a, b string)  { k.op("VMULPS", dst, a, b) }
func (k *kc) div(dst, a, b string)  { k.op("VDIVPS", dst, a, b) }
func (k *kc) and(dst, a, b string)  { k.op("VANDPS", dst, a, b) }
func (k *kc) or(dst, a, b string)   { k.op("VORPS", dst, a, b) }
func (k *kc) xor(dst, a, b string)  { k.op("VXORPS", dst, a, b) }
func (k *kc) isub(dst, a, b string) { k.op("VPSUBD", dst, a, b) }
func (k *kc) iadd(dst, a, b string) { k.op("VPADDD", dst, a, b) }

func (k *kc) sqrt(dst, a string) { k.ins2("VSQRTPS", k.operand(a), k.r(dst)) }

// toFloat writes dst = the signed integers a as float32.
func (k *kc) toFloat(dst, a string) { k.ins2("VCVTDQ2PS", k.operand(a), k.r(dst)) }

func (o *out) ins2(mn, n, d string) {
	if o.arm64() {
		o.neon(mn, "", n, d)
		return
	}
	o.p("%s %s, %s", mn, n, d)
}

// mov writes dst = a, which may lie in memory.
func (k *kc) mov(dst, a string) {
	switch {
	case !k.arm64():
		k.p("VMOVUPS %s, %s", k.operand(a), k.r(dst))
	case strings.HasSuffix(a, ")"):
		k.loadQ(a, k.r(dst))
	case k.r(a) != k.r(dst):
		k.p("VMOV %s.B16, %s.B16", k.r(a), k.r(dst))
	}
}

// min writes dst = a if a < b, else b: so b if either is NaN.
func (k *kc) min(dst, a, b string) {
	if k.arm64() {
		k.pick(dst, less, a, b)
		return
	}
	k.op("VMINPS", dst, a, b)
}

// max writes dst = a if a > b, else b: so b if either is NaN.
func (k *kc) max(dst, a, b string) {
	if k.arm64() {
		k.pick(dst, greater, a, b)
		return
	}
	k.op("VMAXPS", dst, a, b)
}

// fma writes dst = dst + a·b; b may lie in memory.
func (k *kc) fma(dst, a, b string) { k.op("VFMADD231PS", dst, a, b) }

func (k *kc) fnma(dst, a, b string) { k.op("VFNMADD231PS", dst, a, b) }

// fmaTo writes dst = dst·a + b; b may lie in memory.
func (k *kc) fmaTo(dst, a, b string) {
	if k.arm64() { // only adds to a register: that of dst becomes another
		k.mov("sum", b)
		k.fma("sum", dst, a)
		k.reg["sum"], k.reg[dst] = k.reg[dst], k.reg["sum"]
		return
	}
	k.op("VFMADD213PS", dst, a, b)
}

func (k *kc) ishl(dst, a string, n int) { k.shift("VPSLLD", dst, a, n) }
func (k *kc) ishr(dst, a string, n int) { k.shift("VPSRAD", dst, a, n) }

func (k *kc) shift(mn, dst, a string, n int) {
	if k.arm64() {
		k.neonShift(mn, n, k.r(a), k.r(dst))
		return
	}
	k.p("%s $%d, %s, %s", mn, n, k.r(a), k.r(dst))
}

// Predicates of VCMPPS; comparisons with NaN are false except isNaN and notGE.
const (
	equal   = 0x00
	isNaN   = 0x03
	less    = 0x11
	notGE   = 0x19
	greater = 0x1e
)

// sel writes dst = yes where a pred b, else no. b and yes may lie in memory.
// dst must differ from no and yes. The name "mask" is used.
func (k *kc) sel(dst string, pred int, a, b, yes, no string) {
	switch k.isa.reg {
	case "Z":
		k.p("VCMPPS $%d, %s, %s, K2", pred, k.operand(b), k.r(a))
		k.p("VBLENDMPS %s, %s, K2, %s", k.operand(yes), k.r(no), k.r(dst))
	case "Y":
		k.p("VCMPPS $%d, %s, %s, %s", pred, k.operand(b), k.r(a), k.r("mask"))
		k.p("VBLENDVPS %s, %s, %s, %s", k.r("mask"), k.operand(yes), k.r(no), k.r(dst))
	case "V":
		if k.compare("mask", pred, a, b) {
			k.ins("VBLEND", k.r(no), k.operand(yes), k.r("mask"))
		} else {
			k.ins("VBLEND", k.operand(yes), k.r(no), k.r("mask"))
		}
		k.mov(dst, "mask")
	}
}

// keep writes dst = yes where a pred b, else +0.
func (k *kc) keep(dst string, pred int, a, b, yes string) {
	switch k.isa.reg {
	case "Z":
		k.p("VCMPPS $%d, %s, %s, K2", pred, k.operand(b), k.r(a))
		k.p("VMOVUPS.Z %s, K2, %s", k.operand(yes), k.r(dst))
		return
	case "Y":
		k.p("VCMPPS $%d, %s, %s, %s", pred, k.operand(b), k.r(a), k.r(dst))
	case "V":
		if !k.compare(dst, pred, a, b) {
			panic("gen: keep with an inverted predicate on arm64")
		}
	}
	k.op("VANDPS", dst, dst, yes)
}

// constants used by the file being written: 64 bytes each, so that any
// instruction can have one as its operand in memory. On arm64 they are a table
// of 16 bytes each, which R26 points to.
func (o *out) konst(name string, bits uint32) string {
	if o.consts == nil {
		o.consts = map[string]uint32{}
	}
	old, ok := o.consts[name]
	if ok && old != bits {
		panic("gen: two constants named " + name)
	}
	if !ok {
		o.constNames = append(o.constNames, name)
	}
	o.consts[name] = bits
	if o.arm64() {
		return fmt.Sprintf("%d(R26)", 16*slices.Index(o.constNames, name))
	}
	return name + "<>(SB)"
}

func (o *out) f(name string, v float64) string {
	return o.konst(name, math.Float32bits(float32(v)))
}

func (o *out) writeConsts() {
	// data writes a constant over some bytes of a symbol.
	data := func(symbol string, at, bytes int, name, comment string) {
		x := uint64(o.consts[name])
		for i := at; i < at+bytes; i += 8 {
			fmt.Fprintf(o, "DATA %s<>+%d(SB)/8, $0x%016x%s\n", symbol, i, x<<32|x, comment)
		}
	}
	if o.arm64() {
		o.p("")
		for i, name := range o.constNames {
			data("consts", 16*i, 16, name, " // "+name)
		}
		fmt.Fprintf(o, "GLOBL consts<>(SB), RODATA|NOPTR, $%d\n", 16*len(o.constNames))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(o.consts)) {
		o.p("")
		data(name, 0, 64, name, "")
		fmt.Fprintf(o, "GLOBL %s<>(SB), RODATA|NOPTR, $64\n", name)
	}
}

// args lays out the arguments of a function as Go's stack-based convention does.
type args struct {
	sig   []string
	off   map[string]int
	types map[string]string
	size  int
}

func (a *args) add(name, typ string, size int) {
	a.size = (a.size + size - 1) / size * size
	if a.off == nil {
		a.off = map[string]int{}
		a.types = map[string]string{}
	}
	a.off[name] = a.size
	a.types[name] = typ
	a.size += size
	a.sig = append(a.sig, name+" "+typ)
}

// words returns arguments of 8 bytes, each given as "name type".
func words(list ...string) *args {
	a := &args{}
	for _, s := range list {
		name, typ, _ := strings.Cut(s, " ")
		a.add(name, typ, 8)
	}
	return a
}

// at returns the operand of an argument.
func (a *args) at(name string) string { return fmt.Sprintf("%s+%d(FP)", name, a.off[name]) }

func (a *args) frame() int { return (a.size + 7) / 8 * 8 }

func (a *args) signature() string { return "(" + strings.Join(a.sig, ", ") + ")" }

func (a *args) names() string {
	var s []string
	for _, x := range a.sig {
		s = append(s, strings.Fields(x)[0])
	}
	return strings.Join(s, ", ")
}

var pointerRegs = []string{"DI", "SI", "BX", "R8", "R10", "R11", "R12"}

// args returns the kernel's arguments and its distinct slices in order.
func (x *kernel) args() (*args, []string) {
	a := &args{}
	for _, s := range x.scal {
		a.add(s, "float32", 4)
	}
	var ptrs []string
	for _, p := range slices.Concat(x.out, x.in, x.row, x.col) {
		if !slices.Contains(ptrs, p) {
			ptrs = append(ptrs, p)
			a.add(p, "*float32", 8)
		}
	}
	if x.matrix() {
		a.add("rows", "int", 8)
		a.add("cols", "int", 8)
	} else {
		a.add("n", "int", 8)
	}
	return a, ptrs
}

func (x *kernel) matrix() bool { return len(x.row)+len(x.col) > 0 }

// scalars loads the scalar arguments into all lanes of the highest registers, below
// AVX2's mask, and returns them by name, those of cols behind them, and the number of
// the highest register left.
func (o *out) scalars(a *args, names, cols []string) (fixed map[string]string, top int) {
	fixed = map[string]string{}
	top = 31
	if o.isa.reg == "Y" {
		top = 14
	}
	for _, name := range slices.Concat(names, cols) {
		v := o.isa.v(top)
		fixed[name] = v
		switch {
		case !slices.Contains(names, name):
		case o.arm64():
			o.p("FMOVS %s, F%d", a.at(name), top)
			o.p("VDUP %s.S[0], %s.S4", v, v)
		default:
			o.p("VBROADCASTSS %s, %s", a.at(name), v)
		}
		top--
	}
	return fixed, top
}

// write writes the kernel. Slices are in pointerRegs. On amd64 AX is the byte offset in
// the row, CX counts columns, R9 counts rows; R13 and R15 are scratch; what is left of a
// vector is masked. On arm64 the pointers walk with the elements, but for rows' copies in
// R19 to R24, which start again at every row; R8 counts columns; what is left of a vector
// goes through the body one element at a time.
func (x *kernel) write(o *out) {
	s := o.isa
	a, ptrs := x.args()
	name := x.name + s.name
	lanes := s.bytes / 4
	count := o.pick("CX", "R8")
	o.fn(name+": "+x.doc, name, a.signature(), a.frame())
	reg := map[string]string{}
	for i, p := range ptrs {
		reg[p] = o.pick(pointerRegs[i], fmt.Sprintf("R%d", 1+i))
		o.get(a.at(p), reg[p])
	}
	fixed, top := o.scalars(a, x.scal, x.col)
	walk := maps.Clone(reg)
	begin := func() { // of a row
		if x.matrix() {
			o.p("row%s:", name)
		}
		for _, c := range x.col {
			if o.arm64() {
				o.p("VLD1R.P 4(%s), [%s.S4]", reg[c], fixed[c])
			} else {
				o.p("VBROADCASTSS (%s), %s", reg[c], fixed[c])
				o.p("ADDQ $4, %s", reg[c])
			}
		}
		if x.matrix() {
			o.get(a.at("cols"), count)
		}
	}
	if o.arm64() {
		o.p("MOVD $consts<>(SB), R26")
		if x.matrix() {
			o.get(a.at("rows"), "R9")
			o.p("CBZ R9, done%s", name)
		} else {
			o.get(a.at("n"), count)
		}
		begin()
		for i, r := range x.row {
			walk[r] = fmt.Sprintf("R%d", 19+i)
			o.p("MOVD %s, %s", reg[r], walk[r])
		}
	} else {
		if x.matrix() {
			o.get(a.at("rows"), "R9", a.at("cols"), count)
		} else {
			o.get(a.at("n"), count)
		}
		o.maskRest(lanes)
		if x.matrix() {
			o.p("TESTQ R9, R9")
			o.p("JZ done%s", name)
		}
		begin()
		o.p("XORQ AX, AX")
	}

	// step runs the body on n vectors, or on what is left of one if n is 0.
	step := func(n int) {
		part := n == 0
		n = max(n, 1)
		per := x.regs
		if o.arm64() {
			per += 3 // a constant, a sum, a mask
		}
		move := func(store bool, u int, p, v string) {
			mem := fmt.Sprintf("%d(%s)%s", u*s.bytes, walk[p], o.pick("(AX*1)", ""))
			switch {
			case o.arm64() && part && store:
				o.p("FMOVS F%d, %s", number(v), mem)
			case o.arm64() && part:
				o.p("FMOVS %s, F%d", mem, number(v))
			case o.arm64() && store:
				o.storeQ(v, mem)
			case o.arm64():
				o.loadQ(mem, v)
			case store:
				o.store("PS", v, mem, part)
			default:
				o.load("PS", mem, v, part)
			}
		}
		var windows []*kc
		for u := range n {
			w := &kc{out: o, base: u * per, reg: maps.Clone(fixed)}
			windows = append(windows, w)
			for _, in := range slices.Concat(x.in, x.row) {
				move(false, u, in, w.r(in))
			}
		}
		for u, w := range windows {
			x.body(w)
			if w.free > per || (n-1)*per+w.free > top+1 {
				panic(fmt.Sprintf("gen: %s uses %d registers of %d", name, w.free, per))
			}
			for _, out := range x.out {
				move(true, u, out, w.r(out))
			}
		}
		switch {
		case !o.arm64() && !part:
			o.add(n*s.bytes, "AX")
		case o.arm64():
			bytes := n * s.bytes
			if part {
				bytes = 4
			}
			for _, p := range ptrs {
				if !slices.Contains(x.col, p) {
					o.add(bytes, walk[p])
				}
			}
		}
	}
	loop := func(n int, stem, rest string) {
		o.take(n*lanes, count, "LT", rest+name)
		o.p("%s%s:", stem, name)
		step(n)
		o.take(n*lanes, count, "GE", stem+name)
		o.p("%s%s:", rest, name)
	}
	if x.unroll {
		loop(4, "four", "few")
		o.add(4*lanes, count)
	}
	loop(1, "one", "part")
	o.p("%s $%d, %s", o.pick("ADDQ", "ADDS"), lanes, count)
	o.p("%s end%s", o.pick("JZ", "BEQ"), name)
	if o.arm64() {
		o.p("element%s:", name)
		step(0)
		o.take(1, count, "NE", "element"+name)
	} else {
		step(0)
	}
	o.p("end%s:", name)
	if x.matrix() {
		if !o.arm64() {
			o.get(a.at("cols"), count)
			for _, p := range ptrs {
				if slices.Contains(x.out, p) || slices.Contains(x.in, p) {
					o.p("LEAQ (%s)(CX*4), %s", reg[p], reg[p])
				}
			}
		}
		o.take(1, "R9", o.pick("NZ", "NE"), "row"+name)
		o.p("done%s:", name)
	}
	o.end()
}

func (o *out) end() {
	if !o.arm64() {
		o.p("VZEROUPPER")
	}
	o.p("RET")
}

// maskRest sets the mask to the lanes of the last, partial vector of CX elements, on
// amd64. R13 and R15 are used.
func (o *out) maskRest(lanes int) {
	o.p("MOVQ CX, R13")
	o.p("ANDQ $%d, R13", lanes-1)
	if o.isa.reg == "Z" {
		o.p("MOVQ CX, R15") // shift counts live in CX
		o.p("MOVQ R13, CX")
		o.p("MOVQ $1, R13")
		o.p("SHLQ CX, R13")
		o.p("DECQ R13")
		o.p("MOVQ R15, CX")
		o.p("KMOVW R13, K1")
		return
	}
	o.p("LEAQ ·maskTable+32(SB), R15")
	o.p("SHLQ $2, R13")
	o.p("SUBQ R13, R15")
	o.p("VMOVDQU (R15), Y15")
}

// vecFile writes the elementwise kernels, the reductions and those that copy.
func vecFile(o *out) string {
	for _, k := range kernels {
		k.write(o)
	}
	for _, r := range reductions {
		r.write(o)
	}
	if o.arm64() {
		transpose8NEON(o)
	} else {
		transpose8(o)
	}
	o.writeConsts()
	return ""
}

// dispatch returns the Go functions that call the kernels of the level in use,
// for amd64, arm64, and the builds without assembly.
func dispatch() (amd64, arm64, noasm string) {
	var x, y, z strings.Builder
	emit := func(name string, a *args, result string) {
		var ret, res string
		if result != "" {
			ret = "return "
			res = " " + result
		}
		fmt.Fprintf(&x, "\nfunc %s%s%s {\n\tif level == AVX512 {\n\t\t%s%sAVX512(%s)\n",
			name, a.signature(), res, ret, name, a.names())
		if ret == "" {
			fmt.Fprintf(&x, "\t\treturn\n")
		}
		fmt.Fprintf(&x, "\t}\n\t%s%sAVX2(%s)\n}\n", ret, name, a.names())
		none := fmt.Sprintf("\nfunc %s%s%s { panic(noAsm) }\n", name, a.signature(), res)
		z.WriteString(none)
		if slices.Contains(solver, name) {
			y.WriteString(none)
		} else {
			fmt.Fprintf(&y, "\nfunc %s%s%s { %s%sNEON(%s) }\n",
				name, a.signature(), res, ret, name, a.names())
		}
	}
	for _, k := range kernels {
		a, _ := k.args()
		emit(k.name, a, "")
	}
	for _, r := range reductions {
		a := r.args()
		emit(r.name, a, "float32")
	}
	emit("transpose8", transposeArgs(), "")
	for _, name := range solver {
		a := &args{}
		a.add("p", "*smoArgs", 8)
		emit(name, a, "")
	}
	return x.String(), y.String(), z.String()
}
