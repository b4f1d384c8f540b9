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

func (k *stripCtx) acc(j int) string {
	return k.isa.v(j)
}

// tmp names one of the three registers that hold no sums; AVX2's mask is Y15.
func (k *stripCtx) tmp(i int) string {
	return k.isa.v(k.isa.maxStrip() + i)
}

func (k *stripCtx) masked(j int) bool {
	return k.part && j == k.nv-1
}

// load writes v = vector j at base; lanes that do not exist are 0.
func (k *stripCtx) load(j int, base, v string) {
	mem := fmt.Sprintf("%d(%s)", j*k.isa.bytes, base)
	switch {
	case !k.arm64():
		k.out.load("PS", mem, v, k.masked(j))
	case k.masked(j):
		k.p("ADD $%d, %s, R11", 16*j, base)
		k.loadPart("R11", v, "R10")
	default:
		k.loadQ(mem, v)
	}
}

func (k *stripCtx) store(j int, v, base string) {
	mem := fmt.Sprintf("%d(%s)", j*k.isa.bytes, base)
	switch {
	case !k.arm64():
		k.out.store("PS", v, mem, k.masked(j))
	case k.masked(j):
		k.p("ADD $%d, %s, R11", 16*j, base)
		k.storePart(v, "R11", "R10")
	default:
		k.storeQ(v, mem)
	}
}

// op writes v = v op (vector j at base), where mn may also be an FMA with a.
func (k *stripCtx) op(mn string, j int, base, a, v string) {
	if k.masked(j) || k.arm64() {
		t := k.tmp(2)
		k.load(j, base, t)
		k.ins(mn, t, a, v)
		return
	}
	k.p("%s %d(%s), %s, %s", mn, j*k.isa.bytes, base, a, v)
}

func (k *stripCtx) zero(v string) {
	k.ins("VXORPS", v, v, v)
}

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

// each calls f for every vector of the strip.
func (k *stripCtx) each(f func(j int)) {
	for j := range k.nv {
		f(j)
	}
}

// columnSums writes the frame of the column reductions: sums start at dst or at
// 0, x and y walk down the columns, while rows are counted.
func columnSums(row func(k *stripCtx, j int)) func(k *stripCtx) {
	return func(k *stripCtx) {
		zero := k.l("zero")
		loop := k.l("loop")
		done := k.l("done")
		dst := "R8"
		ldx := "R13"
		ldy := "R12"
		rows := "DX"
		k.x = "SI"
		k.y = "BX"
		k.loadMask()
		if k.arm64() {
			dst = "R3"
			ldx = "R4"
			ldy = "R5"
			rows = "R8"
			k.x = "R1"
			k.y = "R2"
			k.fields(
				"stripArgs", "x", k.x, "y", k.y, "dst", dst, "ldx", ldx, "ldy", ldy, "rows", rows,
				"flag", "R6",
			)
			k.p("CBZ R6, %s", zero)
		} else {
			k.fields(
				"stripArgs", "dst", dst, "x", k.x, "y", k.y, "ldx", ldx, "ldy", ldy, "rows", rows,
			)
			k.p("CMPQ stripArgs_flag(DI), $0")
			k.p("JEQ %s", zero)
		}
		k.each(func(j int) {
			k.load(j, dst, k.acc(j))
		})
		k.p("JMP %s", loop)
		k.mark(zero)
		k.each(func(j int) {
			k.zero(k.acc(j))
		})
		k.mark(loop)
		k.take(1, rows, "LT", done)
		k.each(func(j int) { row(k, j) })
		k.add(ldx, k.x)
		k.add(ldy, k.y)
		k.p("JMP %s", loop)
		k.mark(done)
		k.each(func(j int) {
			k.store(j, k.acc(j), dst)
		})
	}
}

// spmmRegisters are the registers of an SpMM kernel. dst and self walk down dst and the
// rows of x for the term self·x_i, R10 or R4 through ptr, adj and weight from entry to
// entry, up to end.
type spmmRegisters struct {
	dst, self, x, ldx, rows, adj, end, weight string
	address                                   string // of the row of x for an entry
}

var (
	spmmAMD64 = spmmRegisters{
		dst:     "R8",
		self:    "SI",
		x:       "R9",
		ldx:     "R13",
		rows:    "DX",
		adj:     "AX",
		end:     "CX",
		weight:  "R15",
		address: "BX",
	}
	spmmARM64 = spmmRegisters{
		dst:     "R3",
		self:    "R2",
		x:       "R1",
		ldx:     "R7",
		rows:    "R8",
		adj:     "R19",
		end:     "R14",
		weight:  "R20",
		address: "R13",
	}
)

// spmm writes dst_i = self·x_i + Σ_k val_k·x_adj[k].
func spmm(withVal bool) func(k *stripCtx) {
	return func(k *stripCtx) {
		r := spmmAMD64
		if k.arm64() {
			r = spmmARM64
		}
		row := k.l("row")
		alone := k.l("alone")
		edges := k.l("edges")
		edge := k.l("edge")
		next := k.l("end")
		done := k.l("done")
		self := k.tmp(0)
		val := k.tmp(1)
		jumpIf := func(cond, label string) { // adj compares with end in this way
			k.p("%s", k.pick("CMPQ AX, CX", "CMP R14, R19"))
			k.p("%s%s %s", k.pick("J", "B"), cond, label)
		}
		k.loadMask()
		k.spmmArguments(&r, self, withVal)

		// A row begins with self·x_i, or alone with 0.
		k.mark(row)
		k.take(1, r.rows, "LT", done)
		k.spmmRow(&r, alone, withVal)
		k.each(func(j int) {
			if k.masked(j) || k.arm64() {
				k.load(j, r.self, k.acc(j))
				k.ins("VMULPS", k.acc(j), self, k.acc(j))
			} else {
				k.p("VMULPS %d(%s), %s, %s",
					j*k.isa.bytes, r.self, self, k.acc(j))
			}
		})
		k.p("JMP %s", edges)
		k.mark(alone)
		k.each(func(j int) {
			k.zero(k.acc(j))
		})

		// Each entry adds a row of x.
		k.mark(edges)
		jumpIf("GE", next)
		k.mark(edge)
		if k.arm64() {
			k.p("MOVW.P 4(%s), %s", r.adj, r.address)
		} else {
			k.p("MOVLQSX (%s), %s", r.adj, r.address)
			k.p("ADDQ $4, %s", r.adj)
		}
		k.p("%s %s, %s", k.pick("IMULQ", "MUL"), r.ldx, r.address)
		k.add(r.x, r.address)
		switch {
		case withVal && k.arm64():
			k.p("VLD1R.P 4(%s), [%s.S4]", r.weight, val)
		case withVal:
			k.p("VBROADCASTSS (%s), %s", r.weight, val)
			k.p("ADDQ $4, %s", r.weight)
		}
		k.each(func(j int) {
			if withVal {
				k.op("VFMADD231PS", j, r.address, val, k.acc(j))
			} else {
				k.op("VADDPS", j, r.address, k.acc(j), k.acc(j))
			}
		})
		jumpIf("LT", edge)

		k.mark(next)
		k.each(func(j int) {
			k.store(j, k.acc(j), r.dst)
		})
		k.add(r.ldx, r.self)
		k.add(k.pick("stripArgs_ldd(DI)", "R12"), r.dst)
		k.p("JMP %s", row)
		k.mark(done)
	}
}

// spmmArguments loads the arguments of an SpMM kernel, and self into all lanes of a
// register.
func (k *stripCtx) spmmArguments(r *spmmRegisters, self string, withVal bool) {
	if k.arm64() {
		k.fields("stripArgs", "x", r.x, "y", r.self, "dst", r.dst, "ptr", "R4", "adj", "R5")
		if withVal {
			k.fields("stripArgs", "val", "R6")
		}
		k.fields("stripArgs", "ldx", r.ldx, "ldd", "R12", "rows", r.rows, "flag", "R9")
		k.p("FMOVS stripArgs_self(R0), F%d", number(self))
		k.p("VDUP %s.S[0], %s.S4", self, self)
		return
	}
	k.fields("stripArgs", "dst", r.dst, "y", r.self, "x", r.x, "ptr", "R10", "adj", "R11")
	if withVal {
		k.fields("stripArgs", "val", "R12")
	}
	k.fields("stripArgs", "ldx", r.ldx, "rows", r.rows)
	k.p("VBROADCASTSS stripArgs_self(DI), %s", self)
}

// spmmRow sets the pointers to the entries of the next row, and jumps to alone if the
// row has no term self·x_i.
func (k *stripCtx) spmmRow(r *spmmRegisters, alone string, withVal bool) {
	if k.arm64() {
		k.p("MOVW.P 4(R4), R13")
		k.p("MOVW (R4), R14")
		k.p("ADD R13<<2, R5, %s", r.adj)
		k.p("ADD R14<<2, R5, %s", r.end)
		if withVal {
			k.p("ADD R13<<2, R6, %s", r.weight)
		}
		k.p("CBZ R9, %s", alone)
		return
	}
	k.p("MOVLQSX (R10), BX")
	k.p("MOVLQSX 4(R10), CX")
	k.p("ADDQ $4, R10")
	k.p("LEAQ (R11)(BX*4), %s", r.adj)
	k.p("LEAQ (R11)(CX*4), %s", r.end)
	if withVal {
		k.p("LEAQ (R12)(BX*4), %s", r.weight)
	}
	k.p("CMPQ stripArgs_flag(DI), $0")
	k.p("JEQ %s", alone)
}

var strips = []strip{
	{"colSums", "dst_j += Σ_i x_ij", columnSums(func(k *stripCtx, j int) {
		k.op("VADDPS", j, k.x, k.acc(j), k.acc(j))
	})},
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

// stripFile writes the strip kernels and returns the table that lists them, by family,
// form and vectors-1.
func stripFile(o *out) string {
	s := o.isa
	var table strings.Builder
	fmt.Fprintf(
		&table,
		"\nvar strips%s = &stripSet{lanes: %d, kern: [numStrips][2][]func(*stripArgs){\n",
		s.name, s.bytes/4,
	)
	for _, x := range strips {
		table.WriteString("{\n")
		for _, part := range []bool{false, true} {
			table.WriteString("{\n")
			for nv := 1; nv <= s.maxStrip(); nv++ {
				name := fmt.Sprintf("%s%d%s", x.name, nv, s.name)
				if part {
					name = fmt.Sprintf("%s%dPart%s", x.name, nv, s.name)
				}
				o.fn(
					fmt.Sprintf("%s: %s", name, x.doc),
					name, "(p *stripArgs)", 8,
				)
				o.get("p+0(FP)", o.pick("DI", "R0"))
				x.write(&stripCtx{out: o, nv: nv, part: part})
				o.end()
				fmt.Fprintf(&table, "%s,\n", name)
			}
			table.WriteString("},\n")
		}
		table.WriteString("},\n")
	}
	table.WriteString("}}\n")
	return table.String()
}
