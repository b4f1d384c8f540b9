package main

import "fmt"

func transposeArgs() *args {
	return words("dst *float32", "ldd uintptr", "src *[8]*float32", "n int")
}

func beginTranspose(o *out) (a *args, name string) {
	a = transposeArgs()
	name = "transpose8" + o.isa.name
	doc := name +
		": dst[k·ldd + r] = src[r][k] for r < 8, k < n; n is a multiple " +
		"of 8, ldd in bytes."
	o.fn(doc, name, a.signature(), a.frame())
	return a, name
}

// transpose8 writes 8 slices of n floats, n a multiple of 8, as the columns of a
// matrix: 8×8 blocks by the usual three rounds of exchanges.
func transpose8(o *out) {
	a, name := beginTranspose(o)
	rows := []string{"R8", "R9", "R10", "R11", "R12", "R13", "BX", "DX"}
	o.get(a.at("dst"), "DI", a.at("ldd"), "AX", a.at("src"), "SI", a.at("n"), "CX")
	for i, r := range rows {
		o.get(fmt.Sprintf("%d(SI)", 8*i), r)
	}
	o.p("XORQ SI, SI")
	o.take(8, "CX", "LT", "done"+name)
	o.mark("loop" + name)
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
	o.take(8, "CX", "GE", "loop"+name)
	o.mark("done" + name)
	o.end()
}
