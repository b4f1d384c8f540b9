package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// neon is arm64's instruction set. It has no masks and no operands in memory
// (its constants are loaded relative to R26), and its minimum and maximum treat
// NaN and zeros otherwise than amd64's, so these are made of comparisons: the
// results are equal to amd64's bit for bit.
var neon = isa{name: "NEON", file: "neon", reg: "V", bytes: 16}

// neonOps gives the instructions on vectors of four, by the mnemonics of amd64
// that the bodies of kernels are written in: d = n op m. The assembler has no
// names for those with a word.
var neonOps = map[string]struct {
	name string
	word uint32
}{
	"VADDPS":       {"FADD", 0x4e20d400},
	"VSUBPS":       {"FSUB", 0x4ea0d400},
	"VMULPS":       {"FMUL", 0x6e20dc00},
	"VDIVPS":       {"FDIV", 0x6e20fc00},
	"VSQRTPS":      {"FSQRT", 0x6ea1f800},
	"VCVTDQ2PS":    {"SCVTF", 0x4e21d800},
	"VFMADD231PS":  {"VFMLA", 0},
	"VFNMADD231PS": {"VFMLS", 0},
	"VPADDD":       {"VADD", 0},
	"VPSUBD":       {"VSUB", 0},
	"VPMAXUD":      {"VUMAX", 0},
	"VANDPS":       {"VAND", 0},
	"VORPS":        {"VORR", 0},
	"VXORPS":       {"VEOR", 0},
	"VBLEND":       {"VBSL", 0}, // d = d ? n : m
	"FCMEQ":        {"FCMEQ", 0x4e20e400},
	"FCMGE":        {"FCMGE", 0x6e20e400},
	"FCMGT":        {"FCMGT", 0x6ea0e400},
	"ORN":          {"ORN", 0x4ee01c00}, // d = n | ^m
}

// number returns i of the register named Vi.
func number(reg string) uint32 {
	i, err := strconv.Atoi(strings.TrimPrefix(reg, "V"))
	if err != nil {
		panic("gen: " + reg + " is not a vector register")
	}
	return uint32(i)
}

// neon writes d = n op m, or d = op(n) if m is empty.
func (o *out) neon(mn, m, n, d string) {
	op, ok := neonOps[mn]
	if !ok {
		panic("gen: no " + mn + " on arm64")
	}
	shape := ".S4"
	switch op.name {
	case "VAND", "VORR", "VEOR", "VBSL", "ORN":
		shape = ".B16"
	}
	text := op.name + " "
	for _, r := range []string{m, n, d} {
		if r != "" {
			text += r + shape + ", "
		}
	}
	text = strings.TrimSuffix(text, ", ")
	if op.word == 0 {
		o.p("%s", text)
		return
	}
	word := op.word | number(n)<<5 | number(d)
	if m != "" {
		word |= number(m) << 16
	}
	o.p("WORD $0x%08x // %s", word, text)
}

// neonShift writes d = n shifted by count.
func (o *out) neonShift(mn string, count int, n, d string) {
	if mn == "VPSLLD" {
		o.p("VSHL $%d, %s.S4, %s.S4", count, n, d)
		return
	}
	o.p("WORD $0x%08x // SSHR $%d, %s.S4, %s.S4", 0x4f000400|uint32(64-count)<<16|number(n)<<5|number(d), count, n, d)
}

// loadQ loads a whole register.
func (o *out) loadQ(mem, reg string)  { o.p("FMOVQ %s, F%d", mem, number(reg)) }
func (o *out) storeQ(reg, mem string) { o.p("FMOVQ F%d, %s", number(reg), mem) }

// loadPart loads the lowest lanes of a register, 1 to 3, from the address in
// pointer. Bits 1 and 2 of the register bits are set if there are more than 1
// and 2. The other lanes become 0. R15 is used.
func (o *out) loadPart(pointer, reg, bits string) {
	one, done := o.l("one"), o.l("loaded")
	o.p("TBZ $1, %s, %s", bits, one)
	o.p("FMOVD (%s), F%d", pointer, number(reg))
	o.p("TBZ $2, %s, %s", bits, done)
	o.p("ADD $8, %s, R15", pointer)
	o.p("VLD1 (R15), %s.S[2]", reg)
	o.p("JMP %s", done)
	o.p("%s:", one)
	o.p("FMOVS (%s), F%d", pointer, number(reg))
	o.p("%s:", done)
}

// storePart stores what loadPart loads.
func (o *out) storePart(reg, pointer, bits string) {
	one, done := o.l("one"), o.l("stored")
	o.p("TBZ $1, %s, %s", bits, one)
	o.p("FMOVD F%d, (%s)", number(reg), pointer)
	o.p("TBZ $2, %s, %s", bits, done)
	o.p("ADD $8, %s, R15", pointer)
	o.p("VST1 %s.S[2], (R15)", reg)
	o.p("JMP %s", done)
	o.p("%s:", one)
	o.p("FMOVS F%d, (%s)", number(reg), pointer)
	o.p("%s:", done)
}

// partBits sets the register bits for loadPart from the number of lanes in n.
func (o *out) partBits(n, bits string) {
	o.p("MOVD $1, %s", bits)
	o.p("LSL %s, %s, %s", n, bits, bits)
	o.p("SUB $1, %s", bits)
}

// compare writes a mask to dst, and reports whether it has ones where a pred b,
// not where that is false.
func (k *kc) compare(dst string, pred int, a, b string) bool {
	x, y, d := k.r(a), k.operand(b), k.r(dst)
	switch pred {
	case greater:
		k.ins("FCMGT", y, x, d)
	case less:
		k.ins("FCMGT", x, y, d)
	case equal:
		k.ins("FCMEQ", y, x, d)
	case isNaN:
		if a != b {
			panic("gen: isNaN compares a number with itself on arm64")
		}
		k.ins("FCMEQ", x, x, d)
		return false
	case notGE:
		k.ins("FCMGE", y, x, d)
		return false
	default:
		panic(fmt.Sprintf("gen: no predicate %#x on arm64", pred))
	}
	return true
}

// pick writes dst = a where a pred b, else b.
func (k *kc) pick(dst string, pred int, a, b string) {
	x, y := k.r(a), k.operand(b)
	if pred == greater {
		k.ins("FCMGT", y, x, k.r("mask"))
	} else {
		k.ins("FCMGT", x, y, k.r("mask"))
	}
	k.ins("VBLEND", y, x, k.r("mask"))
	k.mov(dst, "mask")
}

// scalars loads the scalar arguments into all lanes of the highest registers
// and returns their names.
func (o *out) scalars(a *args, names []string) map[string]string {
	fixed := map[string]string{}
	for i, s := range names {
		v := fmt.Sprintf("V%d", 31-i)
		fixed[s] = v
		o.p("FMOVS %s, F%d", a.at(s), 31-i)
		o.p("VDUP %s.S[0], %s.S4", v, v)
	}
	return fixed
}

// writeNEON writes the kernel for arm64. Pointers are in R1 to R7 and walk with
// the elements; row arguments start again at every row, their walking copies are
// in R19 to R24. R8 counts columns, R9 rows. What is left of a vector goes
// through the body one element at a time.
func (x *kernel) writeNEON(o *out) {
	a, ptrs := x.args()
	name := x.name + "NEON"
	o.fn(name+": "+x.doc, name, a.signature(), a.frame())
	reg := map[string]string{}
	for i, p := range ptrs {
		reg[p] = fmt.Sprintf("R%d", 1+i)
		o.p("MOVD %s, %s", a.at(p), reg[p])
	}
	fixed := o.scalars(a, x.scal)
	top := 31 - len(x.scal)
	for _, c := range x.col {
		fixed[c] = fmt.Sprintf("V%d", top)
		top--
	}
	o.p("MOVD $consts<>(SB), R26")
	if x.matrix() {
		o.p("MOVD rows+%d(FP), R9", a.off["rows"])
		o.p("CBZ R9, done%s", name)
		o.p("row%s:", name)
		for _, c := range x.col {
			o.p("VLD1R.P 4(%s), [%s.S4]", reg[c], fixed[c])
		}
		o.p("MOVD cols+%d(FP), R8", a.off["cols"])
	} else {
		o.p("MOVD n+%d(FP), R8", a.off["n"])
	}
	walk := maps.Clone(reg)
	for i, r := range x.row {
		walk[r] = fmt.Sprintf("R%d", 19+i)
		o.p("MOVD %s, %s", reg[r], walk[r])
	}

	// step runs the body on n vectors, or on one element if n is 0.
	step := func(n int) {
		move, bytes := "FMOVQ", 16*n
		if n == 0 {
			move, bytes, n = "FMOVS", 4, 1
		}
		per := x.regs + 3 // and a constant, a sum, a mask
		var windows []*kc
		for u := range n {
			w := &kc{out: o, base: u * per, reg: maps.Clone(fixed)}
			windows = append(windows, w)
			for _, in := range slices.Concat(x.in, x.row) {
				o.p("%s %d(%s), F%d", move, 16*u, walk[in], number(w.r(in)))
			}
		}
		for u, w := range windows {
			x.body(w)
			if w.free > per || (n-1)*per+w.free > top+1 {
				panic(fmt.Sprintf("gen: %s uses %d registers of %d", name, w.free, per))
			}
			for _, out := range x.out {
				o.p("%s F%d, %d(%s)", move, number(w.r(out)), 16*u, walk[out])
			}
		}
		for _, p := range ptrs {
			if !slices.Contains(x.col, p) {
				o.p("ADD $%d, %s", bytes, walk[p])
			}
		}
	}
	if x.unroll {
		o.p("SUBS $16, R8")
		o.p("BLT few%s", name)
		o.p("four%s:", name)
		step(4)
		o.p("SUBS $16, R8")
		o.p("BGE four%s", name)
		o.p("few%s:", name)
		o.p("ADD $16, R8")
	}
	o.p("SUBS $4, R8")
	o.p("BLT part%s", name)
	o.p("one%s:", name)
	step(1)
	o.p("SUBS $4, R8")
	o.p("BGE one%s", name)
	o.p("part%s:", name)
	o.p("ADDS $4, R8")
	o.p("BEQ end%s", name)
	o.p("element%s:", name)
	step(0)
	o.p("SUBS $1, R8")
	o.p("BNE element%s", name)
	o.p("end%s:", name)
	if x.matrix() {
		o.p("SUBS $1, R9")
		o.p("BNE row%s", name)
		o.p("done%s:", name)
	}
	o.p("RET")
}

// writeNEON writes the reduction for arm64, in the form of write: accumulators
// first, then one window of registers, scalars at the top.
func (x *reduction) writeNEON(o *out) {
	a := x.args()
	name := x.name + "NEON"
	o.fn(name+": "+x.doc, name, a.signature()+" float32", a.frame()+4)
	n := x.lanes / 4 // accumulators
	fixed := o.scalars(a, x.scal)
	top := 31 - len(x.scal)
	nan := "V31" // ones where a NaN was seen; such a reduction has no scalars
	if x.nan {
		top--
	}
	reg := map[string]string{}
	if x.store {
		reg["dst"] = "R3"
		o.p("MOVD %s, R3", a.at("dst"))
	}
	for i, p := range x.in {
		reg[p] = fmt.Sprintf("R%d", 1+i)
		o.p("MOVD %s, %s", a.at(p), reg[p])
	}
	o.p("MOVD n+%d(FP), R8", a.off["n"])
	o.p("MOVD $consts<>(SB), R26")
	acc := func(j int) string { return fmt.Sprintf("acc%d", j) }
	window := func() *kc {
		k := &kc{out: o, base: n, reg: maps.Clone(fixed)}
		for j := range n {
			k.reg[acc(j)] = fmt.Sprintf("V%d", j)
		}
		return k
	}
	k := window()
	for j := range n {
		if x.init != nil {
			x.init(k, acc(j))
		} else {
			k.xor(acc(j), acc(j), acc(j))
		}
	}
	if x.nan {
		o.p("VEOR %s.B16, %s.B16, %s.B16", nan, nan, nan)
	}

	// vector adds vector j of the block, or the part of it that R10 describes.
	vector := func(j int, part bool) {
		k := window()
		at := func(p string) string { // the address of a part
			o.p("ADD $%d, %s, R11", 16*j, reg[p])
			return "R11"
		}
		for _, in := range x.in {
			if !part {
				o.loadQ(fmt.Sprintf("%d(%s)", 16*j, reg[in]), k.r(in))
				continue
			}
			o.loadPart(at(in), k.r(in), "R10")
			if x.pad != nil && x.pad(o) != "" {
				k.exists("mask")
				k.ins("VBLEND", k.operand(x.pad(o)), k.r(in), k.r("mask"))
				k.mov(in, "mask")
			}
		}
		if x.nan {
			in := k.r(x.in[0])
			k.ins("FCMEQ", in, in, k.r("mask"))
			k.ins("ORN", k.r("mask"), nan, nan)
		}
		if part && x.fold == "VADDPS" && len(x.scal) > 0 {
			// e^c of the lanes that do not exist must not count.
			k.xor("sink", "sink", "sink")
			x.each(k, "sink")
			k.exists("mask")
			k.and("sink", "sink", "mask")
			k.add(acc(j), acc(j), "sink")
		} else {
			x.each(k, acc(j))
		}
		switch {
		case x.store && part:
			o.storePart(k.r("dst"), at("dst"), "R10")
		case x.store:
			o.storeQ(k.r("dst"), fmt.Sprintf("%d(R3)", 16*j))
		}
		if n+k.free > top+1 {
			panic("gen: " + name + " needs too many registers")
		}
	}
	o.p("SUBS $%d, R8", x.lanes)
	o.p("BLT rest%s", name)
	o.p("block%s:", name)
	for j := range n {
		vector(j, false)
	}
	for _, p := range slices.Sorted(maps.Values(reg)) {
		o.p("ADD $%d, %s", 4*x.lanes, p)
	}
	o.p("SUBS $%d, R8", x.lanes)
	o.p("BGE block%s", name)
	o.p("rest%s:", name)
	o.p("ADD $%d, R8", x.lanes)
	o.p("AND $3, R8, R11")
	o.partBits("R11", "R10")
	for j := range n {
		o.p("CMP $4, R8")
		o.p("BLT part%d%s", j, name)
		vector(j, false)
		o.p("SUB $4, R8")
	}
	o.p("JMP fold%s", name) // not reached with numbers left
	for j := range n {
		o.p("part%d%s:", j, name)
		o.p("CBZ R8, fold%s", name)
		vector(j, true)
		o.p("JMP fold%s", name)
	}
	o.p("fold%s:", name)
	k = window()
	join := func(a, b string) {
		if x.fold == "VMAXPS" {
			k.max(a, a, b)
		} else {
			k.add(a, a, b)
		}
	}
	for w := n / 2; w >= 1; w /= 2 {
		for j := range w {
			join(acc(j), acc(j+w))
		}
	}
	o.p("VDUP V0.D[1], %s.D2", k.r("half"))
	join(acc(0), "half")
	o.p("VDUP V0.S[1], %s.S4", k.r("half"))
	join(acc(0), "half")
	if x.nan {
		o.p("WORD $0x%08x // UMAXV V31.S4, V31", 0x6eb0a800|31<<5|31)
		o.p("FMOVS F31, R10")
		o.p("CBZW R10, number%s", name)
		o.loadQ(o.konst("nan", 0x7fc00000), "V0")
		o.p("number%s:", name)
	}
	o.p("FMOVS F0, ret+%d(FP)", a.frame())
	o.p("RET")
}

// exists writes ones to the lanes that the part in R10 has.
func (k *kc) exists(dst string) {
	mem := k.konst("ones", 1<<32-1)
	k.p("MOVD $consts<>+%s(SB), R11", strings.TrimSuffix(mem, "(R26)"))
	k.loadPart("R11", k.r(dst), "R10")
}

// maxIndexNEON is maxIndex for arm64.
func maxIndexNEON(o *out) {
	a := maxIndexArgs()
	o.fn("maxIndexNEON: max of uint32(p_i - base), 0 if n is 0.", "maxIndexNEON", a.signature()+" uint32", a.frame()+4)
	o.p("MOVD %s, R1", a.at("p"))
	o.p("MOVD %s, R8", a.at("n"))
	o.p("MOVWU %s, R2", a.at("base"))
	o.p("VDUP R2, V4.S4")
	o.ins("VXORPS", "V0", "V0", "V0")
	o.ins("VXORPS", "V1", "V1", "V1")
	o.p("SUBS $8, R8")
	o.p("BLT few")
	o.p("two:")
	o.p("VLD1.P 32(R1), [V2.S4, V3.S4]")
	for i := range 2 {
		v := fmt.Sprintf("V%d", 2+i)
		o.ins("VPSUBD", "V4", v, v)
		o.ins("VPMAXUD", v, fmt.Sprintf("V%d", i), fmt.Sprintf("V%d", i))
	}
	o.p("SUBS $8, R8")
	o.p("BGE two")
	o.p("few:")
	o.p("ADD $8, R8")
	o.ins("VPMAXUD", "V1", "V0", "V0")
	o.p("WORD $0x%08x // UMAXV V0.S4, V0", 0x6eb0a800)
	o.p("FMOVS F0, R3")
	o.p("CBZ R8, done")
	o.p("one:")
	o.p("MOVWU.P 4(R1), R4")
	o.p("SUBW R2, R4")
	o.p("CMPW R3, R4")
	o.p("CSEL HI, R4, R3, R3")
	o.p("SUBS $1, R8")
	o.p("BNE one")
	o.p("done:")
	o.p("MOVW R3, ret+%d(FP)", a.frame())
	o.p("RET")
}

// transpose8NEON is transpose8 for arm64: two 4×4 blocks at a time.
func transpose8NEON(o *out) {
	name := "transpose8NEON"
	a := transposeArgs()
	o.fn(name+": dst[k·ldd + r] = src[r][k] for r < 8, k < n; n is a multiple of 8, ldd in bytes.", name, a.signature(), a.frame())
	o.p("MOVD %s, R3", a.at("dst"))
	o.p("MOVD %s, R4", a.at("ldd"))
	o.p("MOVD %s, R1", a.at("src"))
	o.p("MOVD %s, R8", a.at("n"))
	for i := range 8 {
		o.p("MOVD %d(R1), R%d", 8*i, 10+i)
	}
	o.p("CBZ R8, done%s", name)
	o.p("loop%s:", name)
	for i := range 8 {
		o.p("FMOVQ.P 16(R%d), F%d", 10+i, i)
	}
	for h := range 2 {
		r, t := 4*h, 8+4*h
		o.p("VTRN1 V%d.S4, V%d.S4, V%d.S4", r+1, r, t)
		o.p("VTRN2 V%d.S4, V%d.S4, V%d.S4", r+1, r, t+1)
		o.p("VTRN1 V%d.S4, V%d.S4, V%d.S4", r+3, r+2, t+2)
		o.p("VTRN2 V%d.S4, V%d.S4, V%d.S4", r+3, r+2, t+3)
		for i := range 2 { // V16, V18, V20, V22 for rows 0 to 3, the next of each for 4 to 7
			o.p("VTRN1 V%d.D2, V%d.D2, V%d.D2", t+i+2, t+i, 16+2*i+h)
			o.p("VTRN2 V%d.D2, V%d.D2, V%d.D2", t+i+2, t+i, 20+2*i+h)
		}
	}
	for i := range 4 {
		o.p("VST1 [V%d.S4, V%d.S4], (R3)", 16+2*i, 17+2*i)
		o.p("ADD R4, R3")
	}
	o.p("SUBS $4, R8")
	o.p("BNE loop%s", name)
	o.p("done%s:", name)
	o.p("RET")
}

// packRowsNEON is packRows for arm64, where a vector of a panel is two registers.
func packRowsNEON(o *out, nv int) {
	name := fmt.Sprintf("packRows%dNEON", nv)
	a := packRowsArgs()
	o.fn(fmt.Sprintf("%s: dst[t·tile + k·row + i] = src[t·srcTile + k·ld + i] for i < %d vectors of 8, the last with\nlast lanes, then zeros; steps in bytes.", name, nv),
		name, a.signature(), a.frame())
	for i, arg := range []string{"src", "n", "dst", "tile", "row", "srcTile", "ld", "last", "tiles"} {
		o.p("MOVD %s, R%d", a.at(arg), 1+i)
	}
	o.p("AND $3, R8, R11")
	o.partBits("R11", "R10")
	o.p("row%s:", name)
	o.p("MOVD R3, R19")
	o.p("MOVD R1, R20")
	o.p("MOVD R9, R21")
	o.p("tile%s:", name)
	o.p("MOVD R19, R22")
	o.p("MOVD R20, R23")
	for range nv - 1 {
		o.p("VLD1.P 32(R23), [V0.S4, V1.S4]")
		o.p("VST1.P [V0.S4, V1.S4], 32(R22)")
	}
	o.ins("VXORPS", "V0", "V0", "V0")
	o.ins("VXORPS", "V1", "V1", "V1")
	o.p("CMP $4, R8")
	o.p("BLT few%s", name)
	o.p("FMOVQ.P 16(R23), F0")
	o.p("BEQ store%s", name)
	o.p("CMP $8, R8")
	o.p("BLT more%s", name)
	o.p("FMOVQ (R23), F1")
	o.p("JMP store%s", name)
	o.p("more%s:", name)
	o.loadPart("R23", "V1", "R10")
	o.p("JMP store%s", name)
	o.p("few%s:", name)
	o.loadPart("R23", "V0", "R10")
	o.p("store%s:", name)
	o.p("VST1 [V0.S4, V1.S4], (R22)")
	o.p("ADD R6, R20")
	o.p("ADD R4, R19")
	o.p("SUBS $1, R21")
	o.p("BNE tile%s", name)
	o.p("ADD R5, R3")
	o.p("ADD R7, R1")
	o.p("SUBS $1, R2")
	o.p("BNE row%s", name)
	o.p("RET")
}

// vecFileNEON writes the elementwise kernels and the reductions for arm64.
func vecFileNEON(o *out) string {
	for _, k := range kernels {
		k.writeNEON(o)
	}
	for _, r := range reductions {
		r.writeNEON(o)
	}
	maxIndexNEON(o)
	transpose8NEON(o)
	packRowsNEON(o, 1)
	packRowsNEON(o, 2)
	o.writeConsts()
	return ""
}
