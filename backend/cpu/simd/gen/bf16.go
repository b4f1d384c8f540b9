package main

import "fmt"

// evex writes an instruction of AVX512_BF16, which Go's assembler does not know, on whole
// Z registers: dst = op(a, b), a and b in Intel's order. prefix is its mandatory prefix,
// 2 for F3 and 3 for F2.
func (o *out) evex(name string, opcode, prefix, b, a, dst int) {
	not := func(x, bit, to int) int {
		return (^x >> bit & 1) << to
	}
	o.p("// %s Z%d, Z%d, Z%d", name, b, a, dst)
	o.p("LONG $0x%02x%02x%02x62", 0x40|not(a, 4, 3), ^a&15<<3|1<<2|prefix,
		not(dst, 3, 7)|not(b, 4, 6)|not(b, 3, 5)|not(dst, 4, 4)|2)
	o.p("WORD $0x%02x%02x", 0xc0|dst&7<<3|b&7, opcode)
}

// dotPairs adds to each float32 of acc the products of the two pairs in a and b.
func (o *out) dotPairs(b, a, acc int) {
	o.evex("VDPBF16PS", 0x52, 2, b, a, acc)
}

// toPairs rounds the floats of lo and hi to bfloat16, one after the other.
func (o *out) toPairs(lo, hi, dst int) {
	o.evex("VCVTNE2PS2BF16", 0x72, 3, lo, hi, dst)
}

// pairsFile writes what turns matrices into pairs of bfloat16, and returns the Go
// variable that lists it.
func pairsFile(o *out) string {
	along := pairsAlong(o)
	across := pairsAcross(o)
	// The order that brings the halves of 32 numbers into alternation.
	o.WriteByte('\n')
	for i := range 16 {
		fmt.Fprintf(o, "DATA pairOrder<>+%d(SB)/4, $%d\n", 4*i, (16+i)<<16|i)
	}
	o.WriteString("GLOBL pairOrder<>(SB), RODATA|NOPTR, $64\n")
	return fmt.Sprintf("\nvar pairs%s = &pairing{along: %s, across: %s}\n",
		o.isa.name, along, across)
}

func pairsAlong(o *out) string {
	a := words(
		"dst *float32", "ldd uintptr", "src *float32",
		"lds uintptr", "n int", "rows int",
	)
	name := "pairsAlong" + o.isa.name
	o.fn(name+": see pairing.along.", name, a.signature(), a.frame())
	o.get(
		a.at("dst"), "R8", a.at("ldd"), "R10", a.at("src"), "R9", a.at("lds"), "R11", a.at("n"),
		"BX", a.at("rows"), "DX",
	)
	row := o.l("row")
	loop := o.l("loop")
	tail := o.l("rest")
	next := o.l("next")
	o.mark(row)
	o.p("MOVQ R8, DI")
	o.p("MOVQ R9, SI")
	o.p("MOVQ BX, CX")
	o.take(32, "CX", "LT", tail)
	o.mark(loop)
	o.p("VMOVUPS (SI), Z0")
	o.p("VMOVUPS 64(SI), Z1")
	o.toPairs(0, 1, 2)
	o.p("VMOVUPS Z2, (DI)")
	o.add(128, "SI")
	o.add(64, "DI")
	o.take(32, "CX", "GE", loop)
	o.mark(tail)
	o.p("ADDQ $32, CX")
	o.p("JZ %s", next)
	o.p("MOVL $-1, R13")
	o.p("BZHIL CX, R13, R13")
	o.p("KMOVW R13, K1")
	o.p("SHRL $16, R13")
	o.p("KMOVW R13, K2")
	o.p("VMOVUPS.Z (SI), K1, Z0")
	o.p("VMOVUPS.Z 64(SI), K2, Z1")
	o.toPairs(0, 1, 2)
	o.p("VMOVUPS Z2, (DI)")
	o.mark(next)
	o.add("R10", "R8")
	o.add("R11", "R9")
	o.take(1, "DX", "NZ", row)
	o.end()
	return name
}

func pairsAcross(o *out) string {
	a := words(
		"dst *float32", "tile uintptr", "ldd uintptr",
		"src *float32", "lds uintptr", "n int", "rows int",
	)
	name := "pairsAcross" + o.isa.name
	o.fn(name+": see pairing.across.", name, a.signature(), a.frame())
	o.get(
		a.at("dst"), "R8", a.at("tile"), "R12", a.at("ldd"), "R10", a.at("src"), "R9", a.at("lds"),
		"R11", a.at("n"), "BX", a.at("rows"), "DX",
	)
	o.p("VMOVUPS pairOrder<>(SB), Z31")
	o.p("MOVL $0xffff, R14")
	row := o.l("row")
	pairRow := o.l("both")
	tile := o.l("tile")
	next := o.l("next")
	o.mark(row)
	o.p("MOVQ R8, DI")
	o.p("MOVQ R9, SI")
	o.p("MOVQ BX, CX")
	o.p("MOVL R14, AX") // no lanes of the second row, if there is none
	o.p("CMPQ DX, $2")
	o.p("JGE %s", pairRow)
	o.p("XORL AX, AX")
	o.mark(pairRow)
	o.p("KMOVW AX, K2")
	o.mark(tile)
	for v := range 2 {
		o.p("MOVQ $16, R13")
		o.p("CMPQ CX, R13")
		o.p("CMOVQLT CX, R13")
		o.p("BZHIL R13, R14, R13")
		o.p("KMOVW R13, K1")
		o.p("KANDW K1, K2, K3")
		o.p("VMOVUPS.Z %d(SI), K1, Z0", 64*v)
		o.p("VMOVUPS.Z %d(SI)(R11*1), K3, Z1", 64*v)
		o.toPairs(0, 1, 2)
		o.p("VPERMW Z2, Z31, Z2")
		o.p("VMOVUPS Z2, %d(DI)", 64*v)
		if v == 0 {
			o.take(16, "CX", "LE", next)
		}
	}
	o.add(128, "SI")
	o.add("R12", "DI")
	o.take(16, "CX", "GT", tile)
	o.mark(next)
	o.add("R10", "R8")
	o.p("LEAQ (R9)(R11*2), R9")
	o.take(2, "DX", "GT", row)
	o.end()
	return name
}
