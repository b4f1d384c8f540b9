package main

import (
	"fmt"
	"strconv"
	"strings"
)

// neon is arm64's instruction set. It has no masks and no operands in memory
// (its constants are loaded relative to R26), and its minimum and maximum treat
// NaN and zeros otherwise than amd64's, so these are made of comparisons: the
// results are equal to amd64's bit for bit.
var neon = isa{
	name:  "NEON",
	file:  "neon",
	reg:   "V",
	bytes: 16,
	mr:    6,
}

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
	word := 0x4f000400 | uint32(64-count)<<16 | number(n)<<5 | number(d)
	o.p("WORD $0x%08x // SSHR $%d, %s.S4, %s.S4", word, count, n, d)
}

func (o *out) loadQ(mem, reg string)  { o.p("FMOVQ %s, F%d", mem, number(reg)) }
func (o *out) storeQ(reg, mem string) { o.p("FMOVQ F%d, %s", number(reg), mem) }

// loadPart loads the lowest lanes of a register, 1 to 3, from the address in
// pointer. Bits 1 and 2 of the register bits are set if there are more than 1
// and 2. The other lanes become 0. R15 is used.
func (o *out) loadPart(pointer, reg, bits string) {
	one := o.l("one")
	done := o.l("loaded")
	o.p("TBZ $1, %s, %s", bits, one)
	o.p("FMOVD (%s), F%d", pointer, number(reg))
	o.p("TBZ $2, %s, %s", bits, done)
	o.p("ADD $8, %s, R15", pointer)
	o.p("VLD1 (R15), %s.S[2]", reg)
	o.p("JMP %s", done)
	o.mark(one)
	o.p("FMOVS (%s), F%d", pointer, number(reg))
	o.mark(done)
}

// storePart stores what loadPart loads.
func (o *out) storePart(reg, pointer, bits string) {
	one := o.l("one")
	done := o.l("stored")
	o.p("TBZ $1, %s, %s", bits, one)
	o.p("FMOVD F%d, (%s)", number(reg), pointer)
	o.p("TBZ $2, %s, %s", bits, done)
	o.p("ADD $8, %s, R15", pointer)
	o.p("VST1 %s.S[2], (R15)", reg)
	o.p("JMP %s", done)
	o.mark(one)
	o.p("FMOVS F%d, (%s)", number(reg), pointer)
	o.mark(done)
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
	x := k.r(a)
	y := k.operand(b)
	d := k.r(dst)
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

// exists writes ones to the lanes that the part in R10 has.
func (k *kc) exists(dst string) {
	mem := k.konst("ones", 1<<32-1)
	k.p("MOVD $consts<>+%s(SB), R11", strings.TrimSuffix(mem, "(R26)"))
	k.loadPart("R11", k.r(dst), "R10")
}

// transpose8NEON is transpose8 for arm64: two 4×4 blocks at a time.
func transpose8NEON(o *out) {
	a, name := beginTranspose(o)
	o.get(a.at("dst"), "R3", a.at("ldd"), "R4", a.at("src"), "R1", a.at("n"), "R8")
	for i := range 8 {
		o.p("MOVD %d(R1), R%d", 8*i, 10+i)
	}
	o.p("CBZ R8, done%s", name)
	o.mark("loop" + name)
	for i := range 8 {
		o.p("FMOVQ.P 16(R%d), F%d", 10+i, i)
	}
	for h := range 2 {
		r := 4 * h
		t := 8 + 4*h
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
	o.take(4, "R8", "NE", "loop"+name)
	o.mark("done" + name)
	o.p("RET")
}
