package main

import "fmt"

// packFile writes the copying kernels that the float32 product packs with.
func packFile(o *out, s isa) {
	transpose8(o, s)
	packRows(o, s, 1)
	packRows(o, s, 2)
}

func transposeArgs() *args {
	a := &args{}
	a.add("dst", "*float32", 8)
	a.add("ldd", "uintptr", 8)
	a.add("src", "*[8]*float32", 8)
	a.add("n", "int", 8)
	return a
}

// transpose8 writes 8 slices of n floats, n a multiple of 8, as the columns of a
// matrix: 8×8 blocks by the usual three rounds of exchanges.
func transpose8(o *out, s isa) {
	name := "transpose8" + s.name
	a := transposeArgs()
	o.fn(name+": dst[k·ldd + r] = src[r][k] for r < 8, k < n; n is a multiple of 8, ldd in bytes.", name, a.signature(), a.frame())
	rows := []string{"R8", "R9", "R10", "R11", "R12", "R13", "BX", "DX"}
	o.p("MOVQ %s, DI", a.at("dst"))
	o.p("MOVQ %s, AX", a.at("ldd"))
	o.p("MOVQ %s, SI", a.at("src"))
	o.p("MOVQ %s, CX", a.at("n"))
	for i, r := range rows {
		o.p("MOVQ %d(SI), %s", 8*i, r)
	}
	o.p("XORQ SI, SI")
	o.p("SUBQ $8, CX")
	o.p("JLT done%s", name)
	o.p("loop%s:", name)
	// Halves of rows i and i+4 in one register: the first exchange for free.
	for i := range 4 {
		o.p("VMOVUPS (%s)(SI*1), X%d", rows[i], i)
		o.p("VINSERTF128 $1, (%s)(SI*1), Y%d, Y%d", rows[i+4], i, i)
		o.p("VMOVUPS 16(%s)(SI*1), X%d", rows[i], i+4)
		o.p("VINSERTF128 $1, 16(%s)(SI*1), Y%d, Y%d", rows[i+4], i+4, i+4)
	}
	for h := 0; h < 8; h += 4 {
		o.p("VUNPCKLPS Y%d, Y%d, Y8", h+1, h)
		o.p("VUNPCKHPS Y%d, Y%d, Y9", h+1, h)
		o.p("VUNPCKLPS Y%d, Y%d, Y10", h+3, h+2)
		o.p("VUNPCKHPS Y%d, Y%d, Y11", h+3, h+2)
		o.p("VUNPCKLPD Y10, Y8, Y12")
		o.p("VUNPCKHPD Y10, Y8, Y13")
		o.p("VUNPCKLPD Y11, Y9, Y14")
		o.p("VUNPCKHPD Y11, Y9, Y15")
		for i := range 4 {
			o.p("VMOVUPS Y%d, (DI)", 12+i)
			o.p("ADDQ AX, DI")
		}
	}
	o.p("ADDQ $32, SI")
	o.p("SUBQ $8, CX")
	o.p("JGE loop%s", name)
	o.p("done%s:", name)
	o.p("VZEROUPPER")
	o.p("RET")
}

func packRowsArgs() *args {
	a := &args{}
	a.add("dst", "*float32", 8)
	a.add("tile", "uintptr", 8)
	a.add("row", "uintptr", 8)
	a.add("src", "*float32", 8)
	a.add("srcTile", "uintptr", 8)
	a.add("ld", "uintptr", 8)
	a.add("last", "int", 8)
	a.add("tiles", "int", 8)
	a.add("n", "int", 8)
	return a
}

// packRows cuts n rows of src into tiles of nv vectors, of which the last has
// only some valid lanes. Whole vectors are written, zeros beyond.
func packRows(o *out, s isa, nv int) {
	name := fmt.Sprintf("packRows%d%s", nv, s.name)
	a := packRowsArgs()
	o.fn(fmt.Sprintf("%s: dst[t·tile + k·row + i] = src[t·srcTile + k·ld + i] for i < %d vectors, the last with\nlast lanes, then zeros; steps in bytes.", name, nv),
		name, a.signature(), a.frame())
	o.p("MOVQ %s, R10", a.at("last"))
	if s.reg == "Z" {
		o.p("MOVQ R10, CX")
		o.p("MOVQ $1, R13")
		o.p("SHLQ CX, R13")
		o.p("DECQ R13")
		o.p("KMOVW R13, K1")
	} else {
		o.p("SHLQ $2, R10")
		o.p("LEAQ ·maskTable+32(SB), R13")
		o.p("SUBQ R10, R13")
		o.p("VMOVDQU (R13), Y15")
	}
	o.p("MOVQ %s, R8", a.at("dst"))
	o.p("MOVQ %s, R11", a.at("tile"))
	o.p("MOVQ %s, R13", a.at("row"))
	o.p("MOVQ %s, R9", a.at("src"))
	o.p("MOVQ %s, R10", a.at("srcTile"))
	o.p("MOVQ %s, R12", a.at("ld"))
	o.p("MOVQ %s, DX", a.at("n"))
	o.p("MOVQ %s, BX", a.at("tiles"))
	o.p("row%s:", name)
	o.p("MOVQ R8, DI")
	o.p("MOVQ R9, SI")
	o.p("MOVQ BX, CX")
	o.p("tile%s:", name)
	for j := range nv {
		mem := fmt.Sprintf("%d(SI)", j*s.bytes)
		switch {
		case j < nv-1:
			o.p("VMOVUPS %s, %s", mem, s.v(j))
		case s.reg == "Z":
			o.p("VMOVUPS.Z %s, K1, %s", mem, s.v(j))
		default:
			o.p("VMASKMOVPS %s, Y15, %s", mem, s.v(j))
		}
	}
	for j := range nv {
		o.p("VMOVUPS %s, %d(DI)", s.v(j), j*s.bytes)
	}
	o.p("ADDQ R10, SI")
	o.p("ADDQ R11, DI")
	o.p("DECQ CX")
	o.p("JNZ tile%s", name)
	o.p("ADDQ R13, R8")
	o.p("ADDQ R12, R9")
	o.p("DECQ DX")
	o.p("JNZ row%s", name)
	o.p("VZEROUPPER")
	o.p("RET")
}
