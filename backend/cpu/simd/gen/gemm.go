package main

import (
	"fmt"
	"strings"
)

// gemmFile writes the GEMM tile kernels of one instruction set and returns the
// Go tables that list them.
//
// A kernel computes an mr×(nv vectors) tile of C, held in registers, over one
// block of K:
//
//	for every k: load the nv vectors of row k of the B panel; for every row r
//	broadcast A[r,k] and multiply-add.
//
// A is read in place through a row and a column stride, so the same kernel serves A, Aᵀ and a
// packed A. With pairs of bfloat16 a k is two terms of the sum. The rows' addresses are formed from
// two pointers (row 0 and row 7) and 1, 3 and 5 times the row stride, which the addressing mode
// multiplies by 1, 2, 4, 8.
func gemmFile(o *out) string {
	var table strings.Builder
	kernel := gemmKernel
	if o.arm64() {
		kernel = neonKernel
	}
	elems := []elem{single, double}
	if o.isa == avx512 {
		elems = append(elems, pair)
	}
	for _, el := range elems {
		fmt.Fprintf(&table, "\nvar %sgemm%s = [...][2]func(*gemmArgs){\n\t{},\n", el.prefix, o.isa.name)
		for mr := 1; mr <= o.isa.mr; mr++ {
			fmt.Fprintf(&table, "\t{%s, %s},\n", kernel(o, el, mr, 1), kernel(o, el, mr, 2))
		}
		table.WriteString("}\n")
	}
	if o.isa == avx512 {
		table.WriteString(pairsFile(o))
	}
	return table.String()
}

// rowAddr gives the operand of A[r,k]: SI points to row 0, R8 to row 7, and
// R9, R10, R11 hold 1, 3 and 5 row strides.
func rowAddr(r int) string {
	switch r {
	case 0:
		return "(SI)"
	case 1, 2, 4, 8:
		return fmt.Sprintf("(SI)(R9*%d)", r)
	case 3, 6, 12:
		return fmt.Sprintf("(SI)(R10*%d)", r/3)
	case 5, 10:
		return fmt.Sprintf("(SI)(R11*%d)", r/5)
	case 7:
		return "(R8)"
	case 9:
		return "(R8)(R9*2)"
	case 11:
		return "(R8)(R9*4)"
	case 13:
		return "(R8)(R10*2)"
	}
	panic("gen: a GEMM tile has at most 14 rows")
}

func gemmKernel(o *out, el elem, mr, nv int) string {
	s := o.isa
	lanes := s.bytes / el.size
	name := fmt.Sprintf("%sgemm%dx%d%s", el.prefix, mr, nv*lanes, s.name)
	o.fn(fmt.Sprintf("%s: tiles of %d rows and %d columns, see gemmArgs.", name, mr, nv*lanes),
		name, "(p *gemmArgs)", 8)

	acc := func(r, j int) string { return s.v(r*nv + j) }
	b := func(j int) string { return s.v(2*s.mr + j) }
	tmp := func(i int) string { return s.v(2*s.mr + 2 + i%2) }
	tile := o.l("tile")
	loop := o.l("loop")

	o.p("MOVQ p+0(FP), DI")
	o.fields("gemmArgs", "a", "R14", "rsA", "R9", "csA", "R12", "ldb", "R13", "c", "DX")
	o.p("LEAQ (R9)(R9*2), R10")
	o.p("LEAQ (R9)(R9*4), R11")
	o.p("%s:", tile)
	o.p("MOVQ R14, SI")
	if mr > 7 {
		o.p("LEAQ (SI)(R9*8), R8")
		o.p("SUBQ R9, R8")
	}
	o.fields("gemmArgs", "b", "BX", "k", "CX", "ldc", "AX")
	o.p("MOVQ DX, R15")
	for range mr {
		for j := 0; j < nv*s.bytes; j += 64 {
			o.p("PREFETCHT0 %d(R15)", j)
		}
		o.p("ADDQ AX, R15")
	}
	o.fields("gemmArgs", "ahead", "AX")
	o.p("ADDQ R14, AX")
	for i := range mr * nv {
		if i < 16 {
			o.p("VXORPS X%d, X%d, X%d", i, i, i)
		} else {
			o.p("VPXORD Z%d, Z%d, Z%d", i, i, i)
		}
	}
	o.p("%s:", loop)
	for j := range nv {
		o.p("VMOVU%s %d(BX), %s", el.ps, j*s.bytes, b(j))
	}
	o.p("ADDQ R13, BX")
	for r := range mr {
		o.p("VBROADCAST%s %s, %s", el.ss, rowAddr(r), tmp(r))
		for j := range nv {
			if el == pair {
				o.dotPairs(2*s.mr+j, 2*s.mr+2+r%2, r*nv+j)
			} else {
				o.p("VFMADD231%s %s, %s, %s", el.ps, b(j), tmp(r), acc(r, j))
			}
		}
	}
	o.p("PREFETCHT0 (AX)")
	o.p("ADDQ gemmArgs_aheadStep(DI), AX")
	o.p("ADDQ R12, SI")
	if mr > 7 {
		o.p("ADDQ R12, R8")
	}
	o.take(1, "CX", "NZ", loop)

	// The tile is complete. C = acc, C = alpha·acc or C = beta·C + alpha·acc.
	alpha := b(0)
	beta := b(1)
	t := tmp(0)
	scale := o.l("scale")
	update := o.l("update")
	next := o.l("next")
	o.fields("gemmArgs", "mode", "CX", "ldc", "AX")
	o.p("VBROADCAST%s gemmArgs_alpha(DI), %s", el.ss, alpha)
	o.p("VBROADCAST%s gemmArgs_beta(DI), %s", el.ss, beta)
	if s.reg == "Z" {
		o.p("KMOVW gemmArgs_mask(DI), K1")
	} else {
		o.fields("gemmArgs", "maskVec", "BX")
		o.p("VMOVDQU (BX), Y15")
	}
	at := func(j int) string { return fmt.Sprintf("%d(DX)", j*s.bytes) }
	writeBack := func(masked bool) {
		sc := scale
		up := update
		if !masked && s.reg == "Y" {
			sc = o.l("scale")
			up = o.l("update")
		}
		for mode := range 3 {
			switch mode {
			case 0:
				o.p("CMPQ CX, $const_gemmScale")
				o.p("JEQ %s", sc)
				o.p("JGT %s", up)
			case 1:
				o.p("%s:", sc)
			case 2:
				o.p("%s:", up)
			}
			for r := range mr {
				for j := range nv {
					last := masked && j == nv-1
					switch mode {
					case 0:
						o.store(el.ps, acc(r, j), at(j), last)
					case 1:
						o.p("VMUL%s %s, %s, %s", el.ps, alpha, acc(r, j), acc(r, j))
						o.store(el.ps, acc(r, j), at(j), last)
					case 2:
						o.load(el.ps, at(j), t, last)
						o.p("VMUL%s %s, %s, %s", el.ps, beta, t, t)
						o.p("VFMADD231%s %s, %s, %s", el.ps, alpha, acc(r, j), t)
						o.store(el.ps, t, at(j), last)
					}
				}
				o.p("ADDQ AX, DX")
			}
			if mode < 2 || !masked {
				o.p("JMP %s", next)
			}
		}
	}
	if s.reg == "Y" {
		// VMASKMOV stores are slow: full vectors go without.
		part := o.l("part")
		o.p("CMPQ gemmArgs_mask(DI), $0")
		o.p("JNE %s", part)
		writeBack(false)
		o.p("%s:", part)
	}
	writeBack(true)
	o.p("%s:", next)
	o.p("ADDQ gemmArgs_aStep(DI), R14")
	o.p("DECQ gemmArgs_tiles(DI)")
	o.p("JNZ %s", tile)
	o.p("VZEROUPPER")
	o.p("RET")
	return name
}
