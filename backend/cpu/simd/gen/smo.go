package main

import (
	"fmt"
	"math"
)

// The loops of an SVM solver over the active variables, on vectors of float64.
// Each instruction is one rounding, so the results are those of the plain loops
// to the last bit. A lane keeps the largest value it has seen and the last place
// of it, as a float64 that counts from 1; smoReturn folds the lanes.

const (
	equalTo      = 0x00 // of VCMPPD, false for NaN
	greaterEqual = 0x1d
	greaterThan  = 0x1e
)

// smoAhead is the number of bytes by which kernels prefetch rows that are mostly not in
// the caches yet: the processor's own prefetching stops at each page.
const smoAhead = 512

// solver lists the kernels, which arm64 lacks.
var solver = []string{
	"smoUpdate", "smoGain", "smoAdd", "smoExp", "smoSquares", "prefetch",
}

func smoFile(o *out) string {
	o.p("")
	o.p("// The places of the first two vectors.")
	for i := range 16 {
		fmt.Fprintf(o, "DATA lanePlaces<>+%d(SB)/8, $%#x\n",
			8*i, math.Float64bits(float64(i+1)))
	}
	o.WriteString("GLOBL lanePlaces<>(SB), RODATA|NOPTR, $128\n")
	smoUpdate(o, o.isa)
	smoGain(o, o.isa)
	smoAdd(o, o.isa)
	smoExp(o, o.isa)
	smoSquares(o, o.isa)
	prefetch(o)
	return ""
}

// smoFill sets all lanes of register v to x.
func smoFill(o *out, s isa, v int, x float64) {
	o.p("MOVQ $%#x, AX // %v", math.Float64bits(x), x)
	o.p("VMOVQ AX, X%d", v)
	o.p("VBROADCASTSD X%d, %s", v, s.v(v))
}

// smoBegin begins a kernel: pointers into SI, BX, R8, R9 in order, CX the number of
// elements; registers 0 and 1 are the factors x and y, 2 the best value, 3 its place.
func smoBegin(o *out, stem, doc string, pointers ...string) (name string) {
	name = stem + o.isa.name
	o.fn(name+": "+doc, name, "(p *smoArgs)", 8)
	o.get("p+0(FP)", "DI")
	for i, p := range pointers {
		o.fields("smoArgs", p, []string{"SI", "BX", "R8", "R9"}[i])
	}
	o.fields("smoArgs", "n", "CX")
	for i, f := range []string{"x", "y", "best"} {
		o.p("VBROADCASTSD smoArgs_%s(DI), %s", f, o.isa.v(i))
	}
	o.p("VXORPD X3, X3, X3")
	return name
}

// smoLoop runs body for all vectors, two at a time and then the last of an odd number,
// with AX the place of the first.
func smoLoop(o *out, s isa, name string, body func(vectors int)) {
	lanes := s.bytes / 8
	o.p("XORQ AX, AX")
	o.take(lanes, "CX", "EQ", "one"+name)
	o.mark("two" + name)
	body(2)
	o.p("ADDQ $%d, AX", 2*lanes)
	o.p("CMPQ AX, CX")
	o.p("JLT two%s", name)
	o.p("JGT done%s", name)
	o.mark("one" + name)
	body(1)
	o.mark("done" + name)
}

// smoKeep replaces the value in register best and its place in the one after it in the
// lanes where register v is at least as large.
func smoKeep(o *out, s isa, v, places, best int) {
	if s.reg == "Z" {
		o.p("VCMPPD $%d, Z%d, Z%d, K1", greaterEqual, best, v)
		o.p("VMOVAPD Z%d, K1, Z%d", v, best)
		o.p("VMOVAPD Z%d, K1, Z%d", places, best+1)
	} else {
		o.p("VCMPPD $%d, Y%d, Y%d, Y15", greaterEqual, best, v)
		o.p("VBLENDVPD Y15, Y%d, Y%d, Y%d", v, best, best)
		o.p("VBLENDVPD Y15, Y%d, Y%d, Y%d", places, best+1, best+1)
	}
}

// smoMax sets all lanes of register v to the largest of them.
func smoMax(o *out, s isa, v, tmp int) {
	shuffles := []string{
		"VPERM2F128 $1, Y%[1]d, Y%[1]d, Y%[2]d", "VPERMILPD $5, Y%[1]d, Y%[2]d",
	}
	if s.reg == "Z" {
		shuffles = []string{
			"VSHUFF64X2 $0x4e, Z%[1]d, Z%[1]d, Z%[2]d",
			"VSHUFF64X2 $0xb1, Z%[1]d, Z%[1]d, Z%[2]d",
			"VPERMILPD $0x55, Z%[1]d, Z%[2]d",
		}
	}
	for _, f := range shuffles {
		o.p(f, v, tmp)
		o.vec("VMAXPD", tmp, v, v)
	}
}

// smoReturn stores the largest of the values in the given registers and its last place.
func smoReturn(o *out, s isa, best ...int) {
	largest := 0
	place := 1
	tmp := 8
	o.vec("VMOVAPD", best[0], largest)
	for _, b := range best[1:] {
		o.vec("VMAXPD", b, largest, largest)
	}
	smoMax(o, s, largest, tmp)
	o.p("VXORPD X%[1]d, X%[1]d, X%[1]d", place)
	for _, b := range best {
		if s.reg == "Z" {
			o.p("VCMPPD $%d, Z%d, Z%d, K1", equalTo, largest, b)
			o.p("VMAXPD Z%d, Z%d, K1, Z%d", b+1, place, place)
		} else {
			o.p("VCMPPD $%d, Y%d, Y%d, Y%d", equalTo, largest, b, tmp)
			o.p("VANDPD Y%d, Y%d, Y%d", b+1, tmp, tmp)
			o.p("VMAXPD Y%d, Y%d, Y%d", tmp, place, place)
		}
	}
	smoMax(o, s, place, tmp)
	o.p("VMOVSD X%d, smoArgs_best(DI)", largest)
	o.p("VCVTTSD2SIQ X%d, AX", place)
	o.p("MOVQ AX, smoArgs_place(DI)")
	o.end()
}

// smoNote jumps to the label that it returns from the body of a loop that looks for the
// largest value, unless the masks of smoCompare say that a lane may have it. Then values
// computes register 8 + 3i, registers 2 and 3 take the largest of each lane and its place,
// and register 6 the largest of all lanes.
func smoNote(
	o *out, s isa, name string, vectors int, values func(i int),
) (next string) {
	if s.reg == "Z" {
		o.p("KORTESTW K1, K%d", vectors)
	} else {
		if vectors == 2 {
			o.p("VORPD Y10, Y13, Y10")
		}
		o.p("VTESTPD Y10, Y10")
	}
	next = o.l("next" + name)
	o.p("JEQ %s", next)
	for i := range vectors {
		t := 10 + 3*i
		values(i)
		o.p("VCVTSI2SDQ AX, X%d, X%d", t, t)
		o.p("VBROADCASTSD X%d, %s", t, s.v(t))
		o.p("VADDPD lanePlaces<>+%d(SB), %s, %s", i*s.bytes, s.v(t), s.v(t))
		smoKeep(o, s, 8+3*i, t, 2)
	}
	o.vec("VMOVAPD", 2, 6)
	smoMax(o, s, 6, 10)
	return next
}

// smoCompare compares register 8 + 3i with another, for smoNote.
func smoCompare(o *out, s isa, i, how, with int) {
	if s.reg == "Z" {
		o.p("VCMPPD $%d, Z%d, Z%d, K%d", how, with, 8+3*i, 1+i)
	} else {
		o.p("VCMPPD $%d, Y%d, Y%d, Y%d", how, with, 8+3*i, 10+3*i)
	}
}

// smoUpdate writes the kernel of that name, see its doc.
func smoUpdate(o *out, s isa) {
	const doc = "f_t -= a_t·x + b_t·y, and the last largest f_t + mask_t, over whole vectors."
	name := smoBegin(o, "smoUpdate", doc, "f", "mask", "a", "b")
	o.vec("VMOVAPD", 2, 6)
	smoLoop(o, s, name, func(vectors int) {
		o.p("PREFETCHT0 %d(R9)(AX*4)", smoAhead)
		for i := range vectors {
			offset := i * s.bytes
			f := 8 + 3*i
			b := 9 + 3*i
			a := 10 + 3*i
			o.p("VCVTPS2PD %d(R8)(AX*4), %s", offset/2, s.v(a))
			o.p("VCVTPS2PD %d(R9)(AX*4), %s", offset/2, s.v(b))
			o.vec("VMULPD", 0, a, a)
			o.vec("VMULPD", 1, b, b)
			o.vec("VADDPD", b, a, a)
			o.p("VMOVUPD %d(SI)(AX*8), %s", offset, s.v(f))
			o.vec("VSUBPD", a, f, f)
			o.p("VMOVUPD %s, %d(SI)(AX*8)", s.v(f), offset)
			o.p("VADDPD %d(BX)(AX*8), %s, %s", offset, s.v(f), s.v(f))
			smoCompare(o, s, i, greaterEqual, 6)
		}
		o.p("%s:", smoNote(o, s, name, vectors, func(int) {}))
	})
	smoReturn(o, s, 2)
}

// smoGain writes the kernel of that name, see its doc.
func smoGain(o *out, s isa) {
	const doc = "the last largest g²/q > 0, g = x - f_t > 0, q = mask_t - 2a_t or y if that is " +
		"less, over whole vectors."
	name := smoBegin(o, "smoGain", doc, "f", "mask", "a")
	smoFill(o, s, 4, 2)
	o.p("VXORPD X5, X5, X5")
	o.p("VXORPD X6, X6, X6")
	smoFill(o, s, 7, 1-0x1p-50)
	// Dividing would take most of the time, so that only vectors are divided that have
	// a lane with g² > q·b·(1-2⁻⁵⁰), b the best of all lanes so far (register 6 is the
	// factor of q): elsewhere g²/q rounds to less than b. Raising q to y can wait for
	// the division, too.
	smoLoop(o, s, name, func(vectors int) {
		o.p("PREFETCHT0 %d(R8)(AX*4)", smoAhead)
		for i := range vectors {
			offset := i * s.bytes
			g := 8 + 3*i
			q := 9 + 3*i
			t := 10 + 3*i
			o.p("VSUBPD %d(SI)(AX*8), %s, %s", offset, s.v(0), s.v(g))
			o.vec("VMAXPD", 5, g, g)
			o.vec("VMULPD", g, g, g)
			o.p("VCVTPS2PD %d(R8)(AX*4), %s", offset/2, s.v(t))
			o.p("VMOVUPD %d(BX)(AX*8), %s", offset, s.v(q))
			o.vec("VFNMADD231PD", 4, t, q)
			o.vec("VMULPD", 6, q, t)
			smoCompare(o, s, i, greaterThan, t)
		}
		next := smoNote(o, s, name, vectors, func(i int) {
			g := 8 + 3*i
			q := 9 + 3*i
			o.vec("VMAXPD", 1, q, q)
			o.vec("VDIVPD", q, g, g)
		})
		o.vec("VMULPD", 7, 6, 6)
		o.mark(next)
	})
	smoReturn(o, s, 2)
}

// smoAdd writes the kernel of that name, see its doc.
func smoAdd(o *out, s isa) {
	name := smoBegin(
		o, "smoAdd", "f_t += a_t·x, then f_t += b_t·y, over whole vectors.",
		"f", "a", "b",
	)
	smoLoop(o, s, name, func(vectors int) {
		o.p("PREFETCHT0 %d(BX)(AX*4)", smoAhead)
		o.p("PREFETCHT0 %d(R8)(AX*4)", smoAhead)
		for i := range vectors {
			offset := i * s.bytes
			a := 4 + 2*i
			b := 5 + 2*i
			o.p("VCVTPS2PD %d(BX)(AX*4), %s", offset/2, s.v(a))
			o.p("VCVTPS2PD %d(R8)(AX*4), %s", offset/2, s.v(b))
			o.vec("VMULPD", 0, a, a)
			o.vec("VMULPD", 1, b, b)
			o.p("VADDPD %d(SI)(AX*8), %s, %s", offset, s.v(a), s.v(a))
			o.vec("VADDPD", b, a, a)
			o.p("VMOVUPD %s, %d(SI)(AX*8)", s.v(a), offset)
		}
	})
	o.end()
}

// smoExp writes the kernel of that name, see its doc.
func smoExp(o *out, s isa) {
	const doc = "f_t = exp(f_t·x), b_t is that as float32, over whole vectors; see ExpScaled."
	name := smoBegin(o, "smoExp", doc, "f", "mask", "b")
	const per, magic, hi, lo, first, least = 1, 2, 3, 4, 5, 9 // registers of constants
	for i, c := range []float64{
		128 / math.Ln2, 3 << 51, ln2Hi / 128, ln2Lo / 128, 1.0 / 120, 1.0 / 24,
		1.0 / 6, 0.5, -700,
	} {
		smoFill(o, s, per+i, c)
	}
	shift := func(mn string, bits, a, dst int) {
		o.p("%s $%d, %s, %s", mn, bits, s.v(a), s.v(dst))
	}
	const x, n, k, p, r, notTiny = 10, 11, 12, 13, 14, 15
	o.p("XORQ AX, AX")
	o.mark("loop" + name)
	o.p("VMULPD (SI)(AX*8), %s, %s", s.v(0), s.v(x))
	if s.reg == "Z" {
		o.p("VCMPPD $%d, Z%d, Z%d, K2", greaterEqual, least, x)
	} else {
		o.p("VCMPPD $%d, Y%d, Y%d, Y%d", greaterEqual, least, x, notTiny)
	}
	o.vec("VMULPD", per, x, n)
	o.vec("VADDPD", magic, n, n)
	o.vec("VSUBPD", magic, n, k)
	o.vec("VPSUBQ", magic, n, n)
	o.vec("VMULPD", hi, k, r)
	o.vec("VSUBPD", r, x, r)
	o.vec("VMULPD", lo, k, k)
	o.vec("VSUBPD", k, r, r)
	o.vec("VMULPD", first, r, p)
	for c := first + 1; c < least; c++ {
		o.vec("VADDPD", c, p, p)
		if c == least-1 {
			o.vec("VMULPD", r, r, x)
			o.vec("VMULPD", x, p, p)
		} else {
			o.vec("VMULPD", r, p, p)
		}
	}
	o.vec("VADDPD", r, p, p)
	shift("VPSLLQ", 57, n, x)
	shift("VPSRLQ", 57, x, x)
	if s.reg == "Z" {
		o.p("KXNORW K1, K1, K1")
		o.p("VGATHERQPD (BX)(Z%d*8), K1, Z%d", x, r)
	} else {
		o.p("VPCMPEQD Y%[1]d, Y%[1]d, Y%[1]d", k)
		o.p("VGATHERQPD Y%d, (BX)(Y%d*8), Y%d", k, x, r)
	}
	o.vec("VMULPD", r, p, p)
	o.vec("VADDPD", r, p, p)
	shift("VPSRLQ", 7, n, n)
	shift("VPSLLQ", 52, n, n)
	o.vec("VPADDQ", n, p, p)
	if s.reg == "Z" {
		o.p("VMOVAPD.Z Z%d, K2, Z%d", p, p)
		o.p("VMOVUPD Z%d, (SI)(AX*8)", p)
		o.p("VCVTPD2PS Z%d, Y%d", p, p)
		o.p("VMOVUPS Y%d, (R8)(AX*4)", p)
	} else {
		o.vec("VANDPD", notTiny, p, p)
		o.p("VMOVUPD Y%d, (SI)(AX*8)", p)
		o.p("VCVTPD2PSY Y%d, X%d", p, p)
		o.p("VMOVUPS X%d, (R8)(AX*4)", p)
	}
	o.p("ADDQ $%d, AX", s.bytes/8)
	o.p("CMPQ AX, CX")
	o.p("JLT loop%s", name)
	o.end()
}

// ln 2 in two parts, as in fdlibm's e_exp.c: whole multiples of the first are exact.
const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
)

// smoSquares writes the kernel of that name, see its doc.
func smoSquares(o *out, s isa) {
	const doc = "f_b = Σ (g_k - mask_kb)² over n rows of mask, for 16 columns b."
	name := smoBegin(o, "smoSquares", doc, "mask", "g", "f")
	vectors := 128 / s.bytes
	for i := range vectors {
		o.p("VXORPD %[1]s, %[1]s, %[1]s", s.v(4+i))
	}
	o.p("XORQ AX, AX")
	o.mark("loop" + name)
	o.p("VBROADCASTSD (BX)(AX*8), %s", s.v(2))
	for i := range vectors {
		e := s.v(4 + vectors + i)
		o.p("VSUBPD %d(SI), %s, %s", i*s.bytes, s.v(2), e)
		o.p("VMULPD %[1]s, %[1]s, %[1]s", e)
		o.p("VADDPD %s, %[2]s, %[2]s", e, s.v(4+i))
	}
	o.p("ADDQ $128, SI")
	o.p("INCQ AX")
	o.p("CMPQ AX, CX")
	o.p("JLT loop%s", name)
	for i := range vectors {
		o.p("VMOVUPD %s, %d(R8)", s.v(4+i), i*s.bytes)
	}
	o.end()
}

func prefetch(o *out) {
	name := "prefetch" + o.isa.name
	doc := name +
		" asks for the n elements of a, 64 bytes at a time, and waits for nothing."
	o.fn(doc, name, "(p *smoArgs)", 8)
	o.get("p+0(FP)", "DI")
	o.fields("smoArgs", "a", "SI", "n", "CX")
	o.p("XORQ AX, AX")
	o.mark("loop" + name)
	o.p("PREFETCHT0 (SI)(AX*4)")
	o.p("ADDQ $16, AX")
	o.p("CMPQ AX, CX")
	o.p("JLT loop%s", name)
	o.p("RET")
}
