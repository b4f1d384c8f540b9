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
		fmt.Fprintf(
			&table,
			"\nvar %sgemm%s = [...][2]func(*gemmArgs){\n\t{},\n",
			el.prefix, o.isa.name,
		)
		for mr := 1; mr <= o.isa.mr; mr++ {
			fmt.Fprintf(&table, "\t{%s, %s},\n",
				kernel(o, el, mr, 1), kernel(o, el, mr, 2))
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

// gemmTile is what a tile kernel for amd64 is written with: the size of the tile, in
// rows and vectors, and its registers.
type gemmTile struct {
	*out
	el     elem
	mr, nv int
}

// acc returns the register of vector j of row r.
func (t *gemmTile) acc(r, j int) string {
	return t.isa.v(r*t.nv + j)
}

// b returns one of the two registers for B, alpha and beta.
func (t *gemmTile) b(j int) string {
	return t.isa.v(2*t.isa.mr + j)
}

// tmp returns one of the two temporary registers.
func (t *gemmTile) tmp(i int) string {
	return t.isa.v(2*t.isa.mr + 2 + i%2)
}

// c returns the operand of vector j of C's row.
func (t *gemmTile) c(j int) string {
	return fmt.Sprintf("%d(DX)", j*t.isa.bytes)
}

// gemmKernel writes a tile kernel for amd64 and returns its name.
func gemmKernel(o *out, el elem, mr, nv int) string {
	s := o.isa
	t := &gemmTile{
		out: o,
		el:  el,
		mr:  mr,
		nv:  nv,
	}
	cols := nv * s.bytes / el.size
	name := fmt.Sprintf("%sgemm%dx%d%s", el.prefix, mr, cols, s.name)
	doc := fmt.Sprintf("%s: tiles of %d rows and %d columns, see gemmArgs.",
		name, mr, cols)
	o.fn(doc, name, "(p *gemmArgs)", 8)
	tile := o.l("tile")
	loop := o.l("loop")

	o.p("MOVQ p+0(FP), DI")
	o.fields("gemmArgs", "a", "R14", "rsA", "R9", "csA", "R12", "ldb", "R13", "c", "DX")
	o.p("LEAQ (R9)(R9*2), R10")
	o.p("LEAQ (R9)(R9*4), R11")
	o.mark(tile)
	t.begin()
	o.mark(loop)
	t.step()
	o.take(1, "CX", "NZ", loop)
	t.finish()
	o.p("ADDQ gemmArgs_aStep(DI), R14")
	o.p("DECQ gemmArgs_tiles(DI)")
	o.p("JNZ %s", tile)
	o.p("VZEROUPPER")
	o.p("RET")
	return name
}

// begin sets the pointers of a tile, prefetches its C, and clears the sums.
func (t *gemmTile) begin() {
	t.p("MOVQ R14, SI")
	if t.mr > 7 {
		t.p("LEAQ (SI)(R9*8), R8")
		t.p("SUBQ R9, R8")
	}
	t.fields("gemmArgs", "b", "BX", "k", "CX", "ldc", "AX")
	t.p("MOVQ DX, R15")
	for range t.mr {
		for j := 0; j < t.nv*t.isa.bytes; j += 64 {
			t.p("PREFETCHT0 %d(R15)", j)
		}
		t.p("ADDQ AX, R15")
	}
	t.fields("gemmArgs", "ahead", "AX")
	t.p("ADDQ R14, AX")
	for i := range t.mr * t.nv {
		if i < 16 {
			t.p("VXORPS X%d, X%d, X%d", i, i, i)
		} else {
			t.p("VPXORD Z%d, Z%d, Z%d", i, i, i)
		}
	}
}

// step adds the products of one k.
func (t *gemmTile) step() {
	for j := range t.nv {
		t.p("VMOVU%s %d(BX), %s", t.el.ps, j*t.isa.bytes, t.b(j))
	}
	t.p("ADDQ R13, BX")
	first := 2 * t.isa.mr // the number of register b(0)
	for r := range t.mr {
		t.p("VBROADCAST%s %s, %s", t.el.ss, rowAddr(r), t.tmp(r))
		for j := range t.nv {
			if t.el == pair {
				t.dotPairs(first+j, first+2+r%2, r*t.nv+j)
			} else {
				t.p("VFMADD231%s %s, %s, %s",
					t.el.ps, t.b(j), t.tmp(r), t.acc(r, j))
			}
		}
	}
	t.p("PREFETCHT0 (AX)")
	t.p("ADDQ gemmArgs_aheadStep(DI), AX")
	t.p("ADDQ R12, SI")
	if t.mr > 7 {
		t.p("ADDQ R12, R8")
	}
}

// finish writes the complete tile to C.
func (t *gemmTile) finish() {
	scale := t.l("scale")
	update := t.l("update")
	next := t.l("next")
	t.fields("gemmArgs", "mode", "CX", "ldc", "AX")
	t.p("VBROADCAST%s gemmArgs_alpha(DI), %s", t.el.ss, t.b(0))
	t.p("VBROADCAST%s gemmArgs_beta(DI), %s", t.el.ss, t.b(1))
	if t.isa.reg == "Z" {
		t.p("KMOVW gemmArgs_mask(DI), K1")
		t.writeBack(scale, update, next, true)
	} else {
		t.fields("gemmArgs", "maskVec", "BX")
		t.p("VMOVDQU (BX), Y15")
		// VMASKMOV stores are slow: full vectors go without.
		part := t.l("part")
		t.p("CMPQ gemmArgs_mask(DI), $0")
		t.p("JNE %s", part)
		t.writeBack(t.l("scale"), t.l("update"), next, false)
		t.mark(part)
		t.writeBack(scale, update, next, true)
	}
	t.mark(next)
}

// writeBack writes the three modes, with labels for the last two: C = acc, C = alpha·acc
// and C = beta·C + alpha·acc. Each then jumps to next, except the last one of a kernel.
func (t *gemmTile) writeBack(scale, update, next string, masked bool) {
	ps := t.el.ps
	t.p("CMPQ CX, $const_gemmScale")
	t.p("JEQ %s", scale)
	t.p("JGT %s", update)
	t.eachVector(masked, func(r, j int, partial bool) {
		t.store(ps, t.acc(r, j), t.c(j), partial)
	})
	t.p("JMP %s", next)

	t.mark(scale)
	t.eachVector(masked, func(r, j int, partial bool) {
		acc := t.acc(r, j)
		t.p("VMUL%s %s, %s, %s", ps, t.b(0), acc, acc)
		t.store(ps, acc, t.c(j), partial)
	})
	t.p("JMP %s", next)

	t.mark(update)
	sum := t.tmp(0)
	t.eachVector(masked, func(r, j int, partial bool) {
		t.load(ps, t.c(j), sum, partial)
		t.p("VMUL%s %s, %s, %s", ps, t.b(1), sum, sum)
		t.p("VFMADD231%s %s, %s, %s", ps, t.b(0), t.acc(r, j), sum)
		t.store(ps, sum, t.c(j), partial)
	})
	if !masked {
		t.p("JMP %s", next)
	}
}

// eachVector calls f for the vectors of the tile, row by row of C. partial is set for
// the last vector of a row if masked is.
func (t *gemmTile) eachVector(masked bool, f func(r, j int, partial bool)) {
	for r := range t.mr {
		for j := range t.nv {
			f(r, j, masked && j == t.nv-1)
		}
		t.p("ADDQ AX, DX")
	}
}
