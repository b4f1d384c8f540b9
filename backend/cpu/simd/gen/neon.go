package main

import (
	"fmt"
	"strings"
)

// neonKernel writes a GEMM tile kernel for arm64, in the form of gemmKernel: a vector of
// the tile is two registers of 16 bytes. There are no masks: a panel with fewer columns
// than its vectors goes through a buffer, see runPartial.
func neonKernel(o *out, el elem, mr, nv int) string {
	nq := 2 * nv // registers of a row
	name := fmt.Sprintf("%sgemm%dx%dNEON", el.prefix, mr, nq*16/el.size)
	doc := fmt.Sprintf("%s: tiles of %d rows and %d columns, see gemmArgs.",
		name, mr, nq*16/el.size)
	o.fn(doc, name, "(p *gemmArgs)", 8)
	arr := "S4"
	if el.size == 8 {
		arr = "D2"
	}
	v := func(i int) string {
		return fmt.Sprintf("V%d.%s", i, arr)
	}
	list := func(first int) string {
		var s []string
		for j := range nq {
			s = append(s, v(first+j))
		}
		return "[" + strings.Join(s, ", ") + "]"
	}
	// mul writes d *= n.
	mul := func(n, d int) {
		word := neonOps["VMULPS"].word | uint32(n)<<16 | uint32(d)<<5 |
			uint32(d)
		if el.size == 8 {
			word |= 1 << 22
		}
		o.p("WORD $0x%08x // FMUL %s, %s, %s", word, v(n), v(d), v(d))
	}
	const b, tmp = 24, 28
	tile := o.l("tile")
	loop := o.l("loop")
	scale := o.l("scale")
	update := o.l("update")
	next := o.l("next")
	o.get("p+0(FP)", "R0")
	o.fields("gemmArgs", "a", "R1", "rsA", "R2", "csA", "R3", "ldb", "R5", "c", "R6", "ldc", "R7")
	o.mark(tile)
	o.p("MOVD R1, R9")
	for r := 1; r < mr; r++ {
		o.p("ADD R2, R%d, R%d", 8+r, 9+r)
	}
	o.fields("gemmArgs", "b", "R4", "k", "R8")
	for i := range mr * nq {
		o.p("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	o.mark(loop)
	o.p("VLD1.P (R4)(R5), %s", list(b))
	for r := range mr {
		t := tmp + r%4
		o.p("VLD1R.P (R%d)(R3), [%s]", 9+r, v(t))
		for j := range nq {
			o.p("VFMLA %s, %s, %s", v(b+j), v(t), v(r*nq+j))
		}
	}
	o.p("SUB $1, R8")
	o.p("CBNZ R8, %s", loop)
	o.p("ADD $gemmArgs_alpha, R0, R15")
	o.p("VLD1R (R15), [%s]", v(b))
	o.p("ADD $gemmArgs_beta, R0, R15")
	o.p("VLD1R (R15), [%s]", v(b+1))
	o.fields("gemmArgs", "mode", "R8")
	o.p("CMP $const_gemmScale, R8")
	o.p("BEQ %s", scale)
	o.p("BGT %s", update)
	for r := range mr {
		o.p("VST1 %s, (R6)", list(r*nq))
		o.p("ADD R7, R6")
	}
	o.p("JMP %s", next)
	o.mark(scale)
	for r := range mr {
		for j := range nq {
			mul(b, r*nq+j)
		}
		o.p("VST1 %s, (R6)", list(r*nq))
		o.p("ADD R7, R6")
	}
	o.p("JMP %s", next)
	o.mark(update)
	for r := range mr {
		o.p("VLD1 (R6), %s", list(tmp))
		for j := range nq {
			mul(b+1, tmp+j)
			o.p("VFMLA %s, %s, %s", v(b), v(r*nq+j), v(tmp+j))
		}
		o.p("VST1 %s, (R6)", list(tmp))
		o.p("ADD R7, R6")
	}
	o.mark(next)
	o.p("MOVD gemmArgs_aStep(R0), R15")
	o.p("ADD R15, R1")
	o.p("MOVD gemmArgs_tiles(R0), R15")
	o.p("SUB $1, R15")
	o.p("MOVD R15, gemmArgs_tiles(R0)")
	o.p("CBNZ R15, %s", tile)
	o.p("RET")
	return name
}
