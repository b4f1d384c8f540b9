package main

import (
	"fmt"
	"math"
)

// The loops of an SVM solver over the active variables, on vectors of float64.
// Each instruction is one rounding, so the results are those of the plain loops
// to the last bit. A lane keeps the largest value it has seen and the last place
// of it; the caller folds the lanes.

const (
	greaterEqual = 0x1d // of VCMPPD, false for NaN
	greaterThan  = 0x1e
	lessEqual    = 0x12
)

func smoFile(o *out) string {
	o.p("")
	o.p("// The places of the first vector.")
	for i := range 8 {
		fmt.Fprintf(o, "DATA lanePlaces<>+%d(SB)/8, $%d\n", 8*i, i)
	}
	o.WriteString("GLOBL lanePlaces<>(SB), RODATA|NOPTR, $64\n")
	smoUpdate(o, o.isa)
	smoGain(o, o.isa)
	return ""
}

// smoLoad begins a kernel: pointers into SI, BX, R8, R9 in order, CX the number
// of elements, AX the place; register 2 the best value, 3 its place, 4 the places
// of this vector, 5 the step to the next.
func smoLoad(o *out, s isa, pointers ...string) {
	o.p("MOVQ p+0(FP), DI")
	for i, name := range pointers {
		o.p("MOVQ smoArgs_%s(DI), %s", name, []string{"SI", "BX", "R8", "R9"}[i])
	}
	o.p("MOVQ smoArgs_n(DI), CX")
	o.p("%s lanePlaces<>(SB), %s", map[string]string{"Z": "VMOVDQU64", "Y": "VMOVDQU"}[s.reg], s.v(4))
	o.p("MOVQ $%d, AX", s.bytes/8)
	o.p("VMOVQ AX, X5")
	o.p("VPBROADCASTQ X5, %s", s.v(5))
	o.p("VBROADCASTSD smoArgs_first(DI), %s", s.v(2))
	o.p("MOVQ $-1, AX")
	o.p("VMOVQ AX, X3")
	o.p("VPBROADCASTQ X3, %s", s.v(3))
	o.p("XORQ AX, AX")
}

// smoKeep replaces the best value and its place in the lanes where
// register v is at least as large, of those in the mask (K1, Y11) if there is one.
func smoKeep(o *out, s isa, v int, mask bool) {
	if s.reg == "Z" {
		with := ""
		if mask {
			with = "K1, "
		}
		o.p("VCMPPD $%d, Z2, Z%d, %sK2", greaterEqual, v, with)
		o.p("VMOVAPD Z%d, K2, Z2", v)
		o.p("VMOVDQA64 Z4, K2, Z3")
	} else {
		o.p("VCMPPD $%d, Y2, Y%d, Y10", greaterEqual, v)
		if mask {
			o.p("VANDPD Y11, Y10, Y10")
		}
		o.p("VBLENDVPD Y10, Y%d, Y2, Y2", v)
		o.p("VBLENDVPD Y10, Y4, Y3, Y3")
	}
}

func smoReturn(o *out, s isa) {
	o.p("VMOVUPD %s, smoArgs_best(DI)", s.v(2))
	o.p("VMOVUPD %s, smoArgs_place(DI)", s.v(3))
	o.p("VZEROUPPER")
	o.p("RET")
}

func smoUpdate(o *out, s isa) {
	name := "smoUpdate" + s.name
	o.fn(name+": f_t -= a_t·x + b_t·y, and the last largest f_t + mask_t of every lane, over whole vectors.", name, "(p *smoArgs)", 8)
	smoLoad(o, s, "f", "mask", "a", "b")
	o.p("VBROADCASTSD smoArgs_x(DI), %s", s.v(0))
	o.p("VBROADCASTSD smoArgs_y(DI), %s", s.v(1))
	o.p("loop%s:", name)
	o.p("VCVTPS2PD (R8)(AX*4), %s", s.v(6))
	o.p("VCVTPS2PD (R9)(AX*4), %s", s.v(7))
	o.p("VMULPD %s, %s, %s", s.v(0), s.v(6), s.v(6))
	o.p("VMULPD %s, %s, %s", s.v(1), s.v(7), s.v(7))
	o.p("VADDPD %s, %s, %s", s.v(7), s.v(6), s.v(6))
	o.p("VMOVUPD (SI)(AX*8), %s", s.v(8))
	o.p("VSUBPD %s, %s, %s", s.v(6), s.v(8), s.v(8))
	o.p("VMOVUPD %s, (SI)(AX*8)", s.v(8))
	o.p("VADDPD (BX)(AX*8), %s, %s", s.v(8), s.v(8))
	smoKeep(o, s, 8, false)
	o.p("VPADDQ %s, %s, %s", s.v(5), s.v(4), s.v(4))
	o.p("ADDQ $%d, AX", s.bytes/8)
	o.p("CMPQ AX, CX")
	o.p("JLT loop%s", name)
	smoReturn(o, s)
}

func smoGain(o *out, s isa) {
	name := "smoGain" + s.name
	o.fn(name+": the last largest g²/q, g = x - f_t - mask_t > 0, q = 2 - 2a_t or y if that is not positive, of every lane, over whole vectors.", name, "(p *smoArgs)", 8)
	smoLoad(o, s, "f", "mask", "a")
	o.p("VBROADCASTSD smoArgs_x(DI), %s", s.v(0))
	o.p("VBROADCASTSD smoArgs_y(DI), %s", s.v(1))
	o.p("MOVQ $0x4000000000000000, R10") // 2
	o.p("VMOVQ R10, X12")
	o.p("VBROADCASTSD X12, %s", s.v(12))
	xor := map[string]string{"Z": "VPXORQ", "Y": "VPXOR"}[s.reg]
	o.p("%s %s, %s, %s", xor, s.v(13), s.v(13), s.v(13))
	o.p("MOVQ $%#x, R10", math.Float64bits(1-0x1p-50))
	o.p("VMOVQ R10, X15")
	o.p("VBROADCASTSD X15, %s", s.v(15))
	o.p("VMULPD %s, %s, %s", s.v(15), s.v(2), s.v(14))
	o.p("loop%s:", name)
	o.p("VMOVUPD (SI)(AX*8), %s", s.v(6))
	o.p("VADDPD (BX)(AX*8), %s, %s", s.v(6), s.v(6))
	o.p("VSUBPD %s, %s, %s", s.v(6), s.v(0), s.v(6)) // g
	o.p("VCVTPS2PD (R8)(AX*4), %s", s.v(7))
	o.p("VADDPD %s, %s, %s", s.v(7), s.v(7), s.v(7))
	o.p("VSUBPD %s, %s, %s", s.v(7), s.v(12), s.v(7)) // q
	if s.reg == "Z" {
		o.p("VCMPPD $%d, Z13, Z7, K2", lessEqual)
		o.p("VMOVAPD Z1, K2, Z7")
		o.p("VCMPPD $%d, Z13, Z6, K1", greaterThan)
	} else {
		o.p("VCMPPD $%d, Y13, Y7, Y10", lessEqual)
		o.p("VBLENDVPD Y10, Y1, Y7, Y7")
		o.p("VCMPPD $%d, Y13, Y6, Y11", greaterThan)
	}
	// Dividing takes most of the time, so that only a vector is divided that has a
	// lane with g² ≥ q·b·(1-2⁻⁵⁰), b the best of all lanes so far: elsewhere g²/q
	// rounds to less than b.
	o.p("VMULPD %s, %s, %s", s.v(6), s.v(6), s.v(8))
	o.p("VMULPD %s, %s, %s", s.v(14), s.v(7), s.v(9))
	if s.reg == "Z" {
		o.p("VCMPPD $%d, Z9, Z8, K1, K2", greaterEqual)
		o.p("KORTESTW K2, K2")
	} else {
		o.p("VCMPPD $%d, Y9, Y8, Y10", greaterEqual)
		o.p("VTESTPD Y11, Y10")
	}
	o.p("JEQ next%s", name)
	o.p("VDIVPD %s, %s, %s", s.v(7), s.v(8), s.v(8))
	smoKeep(o, s, 8, true)
	if s.reg == "Z" {
		o.p("VSHUFF64X2 $0x4e, Z2, Z2, Z9")
		o.p("VMAXPD Z9, Z2, Z9")
		o.p("VSHUFF64X2 $0xb1, Z9, Z9, Z14")
		o.p("VMAXPD Z14, Z9, Z9")
		o.p("VPERMILPD $0x55, Z9, Z14")
		o.p("VMAXPD Z14, Z9, Z9")
	} else {
		o.p("VPERM2F128 $1, Y2, Y2, Y9")
		o.p("VMAXPD Y9, Y2, Y9")
		o.p("VPERMILPD $5, Y9, Y14")
		o.p("VMAXPD Y14, Y9, Y9")
	}
	o.p("VMULPD %s, %s, %s", s.v(15), s.v(9), s.v(14))
	o.p("next%s:", name)
	o.p("VPADDQ %s, %s, %s", s.v(5), s.v(4), s.v(4))
	o.p("ADDQ $%d, AX", s.bytes/8)
	o.p("CMPQ AX, CX")
	o.p("JLT loop%s", name)
	smoReturn(o, s)
}
