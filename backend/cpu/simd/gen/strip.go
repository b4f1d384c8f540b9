package main

import (
	"fmt"
	"strings"
)

// strip is a family of kernels that walk the rows of a strip of columns, 1 to
// maxStrip vectors wide, with one register for the sums of each vector: nothing
// is written before a sum is complete. Each width is a function, in one form for
// whole vectors and in one whose last vector is partial.
type strip struct {
	name, doc string
	write     func(k *stripCtx)
}

// maxStrip is the widest strip: the rest of the registers are for other uses.
func (s isa) maxStrip() int {
	switch s.reg {
	case "Z":
		return 20
	case "V":
		return 16
	}
	return 12
}

// stripCtx is what a strip is written with. DI holds the argument; on arm64 it
// is R0, and R10 the lanes of a partial vector, see loadPart.
type stripCtx struct {
	*out
	nv   int
	part bool
	x, y string // the registers that walk down x and y
}

func (k *stripCtx) acc(j int) string { return k.isa.v(j) }

// tmp names one of the three registers that hold no sums; AVX2's mask is Y15.
func (k *stripCtx) tmp(i int) string { return k.isa.v(k.isa.maxStrip() + i) }

func (k *stripCtx) masked(j int) bool { return k.part && j == k.nv-1 }

// load writes v = vector j at base; lanes that do not exist are 0.
func (k *stripCtx) load(j int, base, v string) {
	switch {
	case k.isa.reg == "V" && !k.masked(j):
		k.loadQ(fmt.Sprintf("%d(%s)", 16*j, base), v)
	case k.isa.reg == "V":
		k.p("ADD $%d, %s, R11", 16*j, base)
		k.loadPart("R11", v, "R10")
	case !k.masked(j):
		k.p("VMOVUPS %d(%s), %s", j*k.isa.bytes, base, v)
	case k.isa.reg == "Z":
		k.p("VMOVUPS.Z %d(%s), K1, %s", j*k.isa.bytes, base, v)
	default:
		k.p("VMASKMOVPS %d(%s), Y15, %s", j*k.isa.bytes, base, v)
	}
}

func (k *stripCtx) store(j int, v, base string) {
	switch {
	case k.isa.reg == "V" && !k.masked(j):
		k.storeQ(v, fmt.Sprintf("%d(%s)", 16*j, base))
	case k.isa.reg == "V":
		k.p("ADD $%d, %s, R11", 16*j, base)
		k.storePart(v, "R11", "R10")
	case !k.masked(j):
		k.p("VMOVUPS %s, %d(%s)", v, j*k.isa.bytes, base)
	case k.isa.reg == "Z":
		k.p("VMOVUPS %s, K1, %d(%s)", v, j*k.isa.bytes, base)
	default:
		k.p("VMASKMOVPS %s, Y15, %d(%s)", v, j*k.isa.bytes, base)
	}
}

// op writes v = v op (vector j at base), where mn may also be an FMA with a.
func (k *stripCtx) op(mn string, j int, base, a, v string) {
	if k.masked(j) || k.isa.reg == "V" {
		t := k.tmp(2)
		k.load(j, base, t)
		k.ins(mn, t, a, v)
		return
	}
	k.p("%s %d(%s), %s, %s", mn, j*k.isa.bytes, base, a, v)
}

func (k *stripCtx) zero(v string) { k.ins("VXORPS", v, v, v) }

func (k *stripCtx) loadMask() {
	if !k.part {
		return
	}
	switch k.isa.reg {
	case "Z":
		k.p("KMOVW stripArgs_mask(DI), K1")
		return
	case "V":
		k.p("MOVD stripArgs_mask(R0), R10")
		return
	}
	k.p("MOVQ stripArgs_maskVec(DI), AX")
	k.p("VMOVDQU (AX), Y15")
}

// columnSums writes the frame of the column reductions: sums start at dst or at
// 0, SI and BX walk down x and y, DX counts rows.
func columnSums(row func(k *stripCtx, j int)) func(k *stripCtx) {
	return func(k *stripCtx) {
		if k.isa.reg == "V" {
			columnSumsNEON(k, row)
			return
		}
		k.x, k.y = "SI", "BX"
		zero, loop, done := k.l("zero"), k.l("loop"), k.l("done")
		k.loadMask()
		k.p("MOVQ stripArgs_dst(DI), R8")
		k.p("MOVQ stripArgs_x(DI), SI")
		k.p("MOVQ stripArgs_y(DI), BX")
		k.p("MOVQ stripArgs_ldx(DI), R13")
		k.p("MOVQ stripArgs_ldy(DI), R12")
		k.p("MOVQ stripArgs_rows(DI), DX")
		k.p("CMPQ stripArgs_flag(DI), $0")
		k.p("JEQ %s", zero)
		for j := range k.nv {
			k.load(j, "R8", k.acc(j))
		}
		k.p("JMP %s", loop)
		k.p("%s:", zero)
		for j := range k.nv {
			k.zero(k.acc(j))
		}
		k.p("%s:", loop)
		k.p("DECQ DX")
		k.p("JLT %s", done)
		for j := range k.nv {
			row(k, j)
		}
		k.p("ADDQ R13, SI")
		k.p("ADDQ R12, BX")
		k.p("JMP %s", loop)
		k.p("%s:", done)
		for j := range k.nv {
			k.store(j, k.acc(j), "R8")
		}
	}
}

// spmm writes dst_i = self·x_i + Σ_k val_k·x_adj[k]. R8 and SI walk down dst and
// the rows of x that belong to it, R10 walks through ptr.
func spmm(withVal bool) func(k *stripCtx) {
	return func(k *stripCtx) {
		if k.isa.reg == "V" {
			spmmNEON(k, withVal)
			return
		}
		row, alone, edges, edge, end, done := k.l("row"), k.l("alone"), k.l("edges"), k.l("edge"), k.l("end"), k.l("done")
		self, val := k.tmp(0), k.tmp(1)
		k.loadMask()
		k.p("MOVQ stripArgs_dst(DI), R8")
		k.p("MOVQ stripArgs_y(DI), SI")
		k.p("MOVQ stripArgs_x(DI), R9")
		k.p("MOVQ stripArgs_ptr(DI), R10")
		k.p("MOVQ stripArgs_adj(DI), R11")
		if withVal {
			k.p("MOVQ stripArgs_val(DI), R12")
		}
		k.p("MOVQ stripArgs_ldx(DI), R13")
		k.p("MOVQ stripArgs_rows(DI), DX")
		k.p("VBROADCASTSS stripArgs_self(DI), %s", self)
		k.p("%s:", row)
		k.p("DECQ DX")
		k.p("JLT %s", done)
		k.p("MOVLQSX (R10), BX")
		k.p("MOVLQSX 4(R10), CX")
		k.p("ADDQ $4, R10")
		k.p("LEAQ (R11)(BX*4), AX") // adj of this row, up to CX
		k.p("LEAQ (R11)(CX*4), CX")
		if withVal {
			k.p("LEAQ (R12)(BX*4), R15")
		}
		k.p("CMPQ stripArgs_flag(DI), $0")
		k.p("JEQ %s", alone)
		for j := range k.nv {
			if k.masked(j) {
				k.load(j, "SI", k.acc(j))
				k.p("VMULPS %s, %s, %s", k.acc(j), self, k.acc(j))
			} else {
				k.p("VMULPS %d(SI), %s, %s", j*k.isa.bytes, self, k.acc(j))
			}
		}
		k.p("JMP %s", edges)
		k.p("%s:", alone)
		for j := range k.nv {
			k.zero(k.acc(j))
		}
		k.p("%s:", edges)
		k.p("CMPQ AX, CX")
		k.p("JGE %s", end)
		k.p("%s:", edge)
		k.p("MOVLQSX (AX), BX")
		k.p("ADDQ $4, AX")
		k.p("IMULQ R13, BX")
		k.p("ADDQ R9, BX")
		if withVal {
			k.p("VBROADCASTSS (R15), %s", val)
			k.p("ADDQ $4, R15")
		}
		for j := range k.nv {
			if withVal {
				k.op("VFMADD231PS", j, "BX", val, k.acc(j))
			} else {
				k.op("VADDPS", j, "BX", k.acc(j), k.acc(j))
			}
		}
		k.p("CMPQ AX, CX")
		k.p("JLT %s", edge)
		k.p("%s:", end)
		for j := range k.nv {
			k.store(j, k.acc(j), "R8")
		}
		k.p("ADDQ R13, SI")
		k.p("ADDQ stripArgs_ldd(DI), R8")
		k.p("JMP %s", row)
		k.p("%s:", done)
	}
}

var strips = []strip{
	{"colSums", "dst_j += Σ_i x_ij", columnSums(func(k *stripCtx, j int) { k.op("VADDPS", j, k.x, k.acc(j), k.acc(j)) })},
	{"colDots", "dst_j += Σ_i x_ij·y_ij", columnSums(func(k *stripCtx, j int) {
		k.load(j, k.x, k.tmp(0))
		k.op("VFMADD231PS", j, k.y, k.tmp(0), k.acc(j))
	})},
	{"colDevs", "dst_j += Σ_i (x_ij-y_j)²", columnSums(func(k *stripCtx, j int) {
		k.load(j, k.x, k.tmp(0))
		k.op("VSUBPS", j, k.y, k.tmp(0), k.tmp(0))
		k.ins("VFMADD231PS", k.tmp(0), k.tmp(0), k.acc(j))
	})},
	{"spmm", "dst_i = self·y_i + Σ_k x_adj[k]", spmm(false)},
	{"spmmVal", "dst_i = self·y_i + Σ_k val_k·x_adj[k]", spmm(true)},
}

// stripFile writes the strip kernels and returns the tables that list them by
// form and by vectors-1.
func stripFile(o *out) string {
	s := o.isa
	var table strings.Builder
	for _, x := range strips {
		fmt.Fprintf(&table, "\nvar %s%s = [2][%d]func(*stripArgs){\n", x.name, s.name, s.maxStrip())
		for _, part := range []bool{false, true} {
			table.WriteString("\t{\n")
			for nv := 1; nv <= s.maxStrip(); nv++ {
				name := fmt.Sprintf("%s%d%s", x.name, nv, s.name)
				if part {
					name = fmt.Sprintf("%s%dPart%s", x.name, nv, s.name)
				}
				o.fn(fmt.Sprintf("%s: %s", name, x.doc), name, "(p *stripArgs)", 8)
				if s.reg == "V" {
					o.p("MOVD p+0(FP), R0")
				} else {
					o.p("MOVQ p+0(FP), DI")
				}
				x.write(&stripCtx{out: o, nv: nv, part: part})
				if s.reg != "V" {
					o.p("VZEROUPPER")
				}
				o.p("RET")
				fmt.Fprintf(&table, "\t\t%s,\n", name)
			}
			table.WriteString("\t},\n")
		}
		table.WriteString("}\n")
	}
	return table.String()
}
