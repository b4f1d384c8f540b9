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
// touches only existing elements.
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

func (k *kc) sqrt(dst, a string) {
	k.ins2("VSQRTPS", k.operand(a), k.r(dst))
}

// toFloat writes dst = the signed integers a as float32.
func (k *kc) toFloat(dst, a string) {
	k.ins2("VCVTDQ2PS", k.operand(a), k.r(dst))
}

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
func (k *kc) fma(dst, a, b string) {
	k.op("VFMADD231PS", dst, a, b)
}

func (k *kc) fnma(dst, a, b string) {
	k.op("VFNMADD231PS", dst, a, b)
}

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
		k.p("VBLENDVPS %s, %s, %s, %s",
			k.r("mask"), k.operand(yes), k.r(no), k.r(dst))
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
			fmt.Fprintf(o, "DATA %s<>+%d(SB)/8, $0x%016x%s\n",
				symbol, i, x<<32|x, comment)
		}
	}
	if o.arm64() {
		o.p("")
		for i, name := range o.constNames {
			data("consts", 16*i, 16, name, " // "+name)
		}
		fmt.Fprintf(o, "GLOBL consts<>(SB), RODATA|NOPTR, $%d\n",
			16*len(o.constNames))
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
func (a *args) at(name string) string {
	return fmt.Sprintf("%s+%d(FP)", name, a.off[name])
}

func (a *args) frame() int {
	return (a.size + 7) / 8 * 8
}

func (a *args) signature() string {
	return "(" + strings.Join(a.sig, ", ") + ")"
}

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

func (x *kernel) matrix() bool {
	return len(x.row)+len(x.col) > 0
}

// scalars loads the scalar arguments into all lanes of the highest registers, below
// AVX2's mask, and reserves the next registers for cols. It returns the registers by
// name, and the number of the highest register left.
func (o *out) scalars(
	a *args, names, cols []string,
) (fixed map[string]string, top int) {
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

// kernelWriter writes a kernel. Slices are in pointerRegs. On amd64 AX is the byte
// offset in the row, CX counts columns, and R9 counts rows; R13 and R15 are scratch; a
// partial vector is masked. On arm64 the pointers walk with the elements, except for
// copies of rows in R19 to R24, which start again at every row; R8 counts columns; the
// elements of a partial vector go through the body one at a time.
type kernelWriter struct {
	*out
	*kernel
	id    string // the kernel's name with the instruction set, for labels
	a     *args
	ptrs  []string
	reg   map[string]string // of the slices
	walk  map[string]string // the registers that walk through the slices
	fixed map[string]string // of scalars and columns
	top   int               // the highest register that is left
	count string            // the register that counts columns
}

// write writes the kernel.
func (x *kernel) write(o *out) {
	a, ptrs := x.args()
	w := &kernelWriter{
		out:    o,
		kernel: x,
		id:     x.name + o.isa.name,
		a:      a,
		ptrs:   ptrs,
		reg:    map[string]string{},
		count:  o.pick("CX", "R8"),
	}
	o.fn(w.id+": "+x.doc, w.id, a.signature(), a.frame())
	for i, p := range ptrs {
		w.reg[p] = o.pick(pointerRegs[i], fmt.Sprintf("R%d", 1+i))
		o.get(a.at(p), w.reg[p])
	}
	w.fixed, w.top = o.scalars(a, x.scal, x.col)
	w.walk = maps.Clone(w.reg)
	w.prologue()

	lanes := o.isa.bytes / 4
	if x.unroll {
		w.loop(4, "four", "few")
		o.add(4*lanes, w.count)
	}
	w.loop(1, "one", "part")
	o.p("%s $%d, %s", o.pick("ADDQ", "ADDS"), lanes, w.count)
	o.p("%s end%s", o.pick("JZ", "BEQ"), w.id)
	if o.arm64() {
		o.mark("element" + w.id)
		w.step(0)
		o.take(1, w.count, "NE", "element"+w.id)
	} else {
		w.step(0)
	}
	o.mark("end" + w.id)
	w.endRow()
	o.end()
}

// prologue loads the sizes and begins the first row.
func (w *kernelWriter) prologue() {
	if w.arm64() {
		w.p("MOVD $consts<>(SB), R26")
		if w.matrix() {
			w.get(w.a.at("rows"), "R9")
			w.p("CBZ R9, done%s", w.id)
		} else {
			w.get(w.a.at("n"), w.count)
		}
		w.beginRow()
		for i, r := range w.row {
			w.walk[r] = fmt.Sprintf("R%d", 19+i)
			w.p("MOVD %s, %s", w.reg[r], w.walk[r])
		}
		return
	}
	if w.matrix() {
		w.get(w.a.at("rows"), "R9", w.a.at("cols"), w.count)
	} else {
		w.get(w.a.at("n"), w.count)
	}
	w.maskRest(w.isa.bytes / 4)
	if w.matrix() {
		w.p("TESTQ R9, R9")
		w.p("JZ done%s", w.id)
	}
	w.beginRow()
	w.p("XORQ AX, AX")
}

// beginRow loads what a row has of the column arguments.
func (w *kernelWriter) beginRow() {
	if w.matrix() {
		w.mark("row" + w.id)
	}
	for _, c := range w.col {
		if w.arm64() {
			w.p("VLD1R.P 4(%s), [%s.S4]", w.reg[c], w.fixed[c])
		} else {
			w.p("VBROADCASTSS (%s), %s", w.reg[c], w.fixed[c])
			w.p("ADDQ $4, %s", w.reg[c])
		}
	}
	if w.matrix() {
		w.get(w.a.at("cols"), w.count)
	}
}

// endRow goes on to the next row of a matrix.
func (w *kernelWriter) endRow() {
	if !w.matrix() {
		return
	}
	if !w.arm64() {
		w.get(w.a.at("cols"), w.count)
		for _, p := range w.ptrs {
			if slices.Contains(w.kernel.out, p) || slices.Contains(w.in, p) {
				w.p("LEAQ (%s)(CX*4), %s", w.reg[p], w.reg[p])
			}
		}
	}
	w.take(1, "R9", w.pick("NZ", "NE"), "row"+w.id)
	w.mark("done" + w.id)
}

// loop writes a loop over n vectors at a time, between two labels.
func (w *kernelWriter) loop(n int, begin, end string) {
	elements := n * w.isa.bytes / 4
	w.take(elements, w.count, "LT", end+w.id)
	w.p("%s%s:", begin, w.id)
	w.step(n)
	w.take(elements, w.count, "GE", begin+w.id)
	w.p("%s%s:", end, w.id)
}

// step runs the body on n vectors, or on a part of one if n is 0.
func (w *kernelWriter) step(n int) {
	part := n == 0
	n = max(n, 1)
	window := w.regs // registers for one vector
	if w.arm64() {
		window += 3 // a constant, a sum, a mask
	}
	var vectors []*kc
	for u := range n {
		k := &kc{out: w.out, base: u * window, reg: maps.Clone(w.fixed)}
		vectors = append(vectors, k)
		for _, name := range slices.Concat(w.in, w.row) {
			w.move(false, part, u, name, k.r(name))
		}
	}
	for u, k := range vectors {
		w.body(k)
		if k.free > window || (n-1)*window+k.free > w.top+1 {
			panic(fmt.Sprintf("gen: %s uses %d registers of %d",
				w.id, k.free, window))
		}
		for _, name := range w.kernel.out {
			w.move(true, part, u, name, k.r(name))
		}
	}

	// The next elements.
	if !w.arm64() {
		if !part {
			w.add(n*w.isa.bytes, "AX")
		}
		return
	}
	bytes := n * w.isa.bytes
	if part {
		bytes = 4
	}
	for _, p := range w.ptrs {
		if !slices.Contains(w.col, p) {
			w.add(bytes, w.walk[p])
		}
	}
}

// move loads vector u of a slice into the register v, or stores it there. With part it
// is the masked vector, on arm64 one element.
func (w *kernelWriter) move(store, part bool, u int, slice, v string) {
	mem := fmt.Sprintf("%d(%s)%s",
		u*w.isa.bytes, w.walk[slice], w.pick("(AX*1)", ""))
	switch {
	case w.arm64() && part && store:
		w.p("FMOVS F%d, %s", number(v), mem)
	case w.arm64() && part:
		w.p("FMOVS %s, F%d", mem, number(v))
	case w.arm64() && store:
		w.storeQ(v, mem)
	case w.arm64():
		w.loadQ(mem, v)
	case store:
		w.store("PS", v, mem, part)
	default:
		w.load("PS", mem, v, part)
	}
}

// end writes the return from a kernel.
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
		fmt.Fprintf(
			&x,
			"\nfunc %s%s%s {\n\tif level == AVX512 {\n\t\t%s%sAVX512(%s)\n",
			name, a.signature(), res, ret, name, a.names(),
		)
		if ret == "" {
			fmt.Fprintf(&x, "\t\treturn\n")
		}
		fmt.Fprintf(&x, "\t}\n\t%s%sAVX2(%s)\n}\n", ret, name, a.names())
		none := fmt.Sprintf("\nfunc %s%s%s { panic(noAsm) }\n",
			name, a.signature(), res)
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
