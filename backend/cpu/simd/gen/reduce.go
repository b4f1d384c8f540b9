package main

import (
	"fmt"
	"math"
)

var negInf = math.Inf(-1)

// reduction describes a kernel that reduces slices of float32 to one number.
// Element i goes to lane i mod lanes, whatever the instruction set, and the lanes
// are folded in halves: 64, 32, … 1.
type reduction struct {
	name, doc string
	scal      []string
	in        []string
	store     bool // whether each element's value goes to dst
	init      func(k *kc, acc string)
	// each adds the vector of in to acc; lanes that do not exist are 0 unless
	// pad names another value for them.
	each  func(k *kc, acc string)
	pad   func(o *out) string
	fold  string // the instruction that joins lanes
	lanes int
	nan   bool // whether a NaN anywhere gives NaN; fold does not see to it
}

func (x *reduction) args() *args {
	a := &args{}
	for _, s := range x.scal {
		a.add(s, "float32", 4)
	}
	if x.store {
		a.add("dst", "*float32", 8)
	}
	for _, p := range x.in {
		a.add(p, "*float32", 8)
	}
	a.add("n", "int", 8)
	return a
}

var reductions = []reduction{
	{name: "sum", lanes: 64, doc: "Σ a_i", in: []string{"a"}, fold: "VADDPS", each: func(k *kc, acc string) { k.add(acc, acc, "a") }},
	{name: "sumSquares", lanes: 64, doc: "Σ a_i²", in: []string{"a"}, fold: "VADDPS", each: func(k *kc, acc string) { k.fma(acc, "a", "a") }},
	{name: "dot", lanes: 64, doc: "Σ a_i·b_i", in: []string{"a", "b"}, fold: "VADDPS", each: func(k *kc, acc string) { k.fma(acc, "a", "b") }},
	{
		name: "maxOf", lanes: 64, doc: "max a_i; NaN if one is; -Inf if n is 0", in: []string{"a"}, fold: "VMAXPS", nan: true,
		init: func(k *kc, acc string) { k.mov(acc, k.f("minusInf", negInf)) },
		pad:  func(o *out) string { return o.f("minusInf", negInf) },
		each: func(k *kc, acc string) { k.max(acc, acc, "a") },
	},
	{
		name: "expSum", lanes: 16, doc: "dst_i = e^(alpha·a_i + c); Σ dst_i", scal: []string{"alpha", "c"}, in: []string{"a"}, store: true, fold: "VADDPS",
		pad: func(o *out) string { return "" },
		each: func(k *kc, acc string) {
			k.mov("u", "c")
			k.fma("u", "alpha", "a")
			k.exp("dst", "u")
			k.add(acc, acc, "dst")
		},
	},
	{
		name: "expSumOnly", lanes: 16, doc: "Σ e^(alpha·a_i + c)", scal: []string{"alpha", "c"}, in: []string{"a"}, fold: "VADDPS",
		each: func(k *kc, acc string) {
			k.mov("u", "c")
			k.fma("u", "alpha", "a")
			k.exp("dst", "u")
			k.add(acc, acc, "dst")
		},
	},
}

// write writes the reduction for one instruction set: accumulators first, then
// one window of registers, scalars and AVX2's mask at the top.
func (x *reduction) write(o *out, s isa) {
	a := x.args()
	name := x.name + s.name
	o.fn(name+": "+x.doc, name, a.signature()+" float32", a.frame()+4)
	lanes := s.bytes / 4
	n := x.lanes / lanes // accumulators
	reg := map[string]string{}
	fixed := map[string]string{}
	top := 31
	if s.reg == "Y" {
		top = 14
	}
	for i, sc := range x.scal {
		fixed[sc] = s.v(top - i)
		o.p("VBROADCASTSS %s, %s", a.at(sc), s.v(top-i))
	}
	if x.store {
		reg["dst"] = "DI"
		o.p("MOVQ %s, DI", a.at("dst"))
	}
	for i, p := range x.in {
		reg[p] = []string{"SI", "BX"}[i]
		o.p("MOVQ %s, %s", a.at(p), reg[p])
	}
	o.p("MOVQ n+%d(FP), CX", a.off["n"])
	o.p("MOVQ CX, R13")
	o.p("ANDQ $%d, R13", lanes-1)
	loadMask(o, s, "R13", map[string]string{"Z": "K1", "Y": "Y15"}[s.reg])
	o.p("XORQ AX, AX")

	acc := func(j int) string { return fmt.Sprintf("acc%d", j) }
	window := func() *kc {
		k := &kc{out: o, base: n, reg: map[string]string{}}
		for name, r := range fixed {
			k.reg[name] = r
		}
		for j := range n {
			k.reg[acc(j)] = s.v(j)
		}
		return k
	}
	k := window()
	for j := range n {
		if x.init != nil {
			x.init(k, acc(j))
		} else {
			k.xor(acc(j), acc(j), acc(j))
		}
	}
	if x.nan {
		if s.reg == "Z" {
			o.p("KXORW K3, K3, K3")
		} else {
			o.p("VXORPS Y13, Y13, Y13")
		}
	}

	// vector adds vector j of the block at AX.
	vector := func(j int, masked bool) {
		k := window()
		for _, in := range x.in {
			mem := fmt.Sprintf("%d(%s)(AX*1)", j*s.bytes, reg[in])
			pad := ""
			if x.pad != nil {
				pad = x.pad(o)
			}
			switch {
			case !masked:
				o.p("VMOVUPS %s, %s", mem, k.r(in))
			case s.reg == "Z" && pad != "":
				o.p("VMOVUPS %s, %s", pad, k.r(in))
				o.p("VMOVUPS %s, K1, %s", mem, k.r(in))
			case s.reg == "Z":
				o.p("VMOVUPS.Z %s, K1, %s", mem, k.r(in))
			default:
				o.p("VMASKMOVPS %s, Y15, %s", mem, k.r(in))
				if pad != "" {
					o.p("VMOVUPS %s, %s", pad, k.r("pad"))
					o.p("VBLENDVPS Y15, %s, %s, %s", k.r(in), k.r("pad"), k.r(in))
				}
			}
		}
		if x.nan {
			in := k.r(x.in[0])
			if s.reg == "Z" {
				o.p("VCMPPS $%d, %s, %s, K2", isNaN, in, in)
				o.p("KORW K2, K3, K3")
			} else {
				o.p("VCMPPS $%d, %s, %s, %s", isNaN, in, in, k.r("mask"))
				o.p("VORPS %s, Y13, Y13", k.r("mask"))
			}
		}
		if masked && x.fold == "VADDPS" && len(x.scal) > 0 {
			// e^c of the lanes that do not exist must not count.
			k.xor("sink", "sink", "sink")
			x.each(k, "sink")
			if s.reg == "Z" {
				o.p("VMOVUPS.Z %s, K1, %s", k.r("sink"), k.r("sink"))
			} else {
				o.p("VANDPS Y15, %s, %s", k.r("sink"), k.r("sink"))
			}
			k.add(acc(j), acc(j), "sink")
		} else {
			x.each(k, acc(j))
		}
		if x.store {
			mem := fmt.Sprintf("%d(DI)(AX*1)", j*s.bytes)
			switch {
			case masked && s.reg == "Z":
				o.p("VMOVUPS %s, K1, %s", k.r("dst"), mem)
			case masked:
				o.p("VMASKMOVPS %s, Y15, %s", k.r("dst"), mem)
			default:
				o.p("VMOVUPS %s, %s", k.r("dst"), mem)
			}
		}
		limit := top - len(x.scal) + 1
		if x.nan && s.reg == "Y" {
			limit = 13
		}
		if n+k.free > limit {
			panic("gen: " + name + " needs too many registers")
		}
	}
	o.p("SUBQ $%d, CX", x.lanes)
	o.p("JLT rest%s", name)
	o.p("block%s:", name)
	for j := range n {
		vector(j, false)
	}
	o.p("ADDQ $%d, AX", 4*x.lanes)
	o.p("SUBQ $%d, CX", x.lanes)
	o.p("JGE block%s", name)
	o.p("rest%s:", name)
	o.p("ADDQ $%d, CX", x.lanes)
	for j := range n {
		o.p("CMPQ CX, $%d", lanes)
		o.p("JLT part%d%s", j, name)
		vector(j, false)
		o.p("SUBQ $%d, CX", lanes)
	}
	o.p("JMP fold%s", name) // not reached with numbers left
	for j := range n {
		o.p("part%d%s:", j, name)
		o.p("TESTQ CX, CX")
		o.p("JZ fold%s", name)
		vector(j, true)
		o.p("JMP fold%s", name)
	}
	o.p("fold%s:", name)
	for w := n / 2; w >= 1; w /= 2 {
		for j := range w {
			o.p("%s %s, %s, %s", x.fold, s.v(j+w), s.v(j), s.v(j))
		}
	}
	if s.reg == "Z" {
		o.p("VEXTRACTF64X4 $1, Z0, Y1")
		o.p("%s Y1, Y0, Y0", x.fold)
	}
	o.p("VEXTRACTF128 $1, Y0, X1")
	o.p("%s X1, X0, X0", x.fold)
	o.p("VMOVHLPS X0, X0, X1")
	o.p("%s X1, X0, X0", x.fold)
	o.p("VMOVSHDUP X0, X1")
	o.p("%s X1, X0, X0", x.fold)
	if x.nan {
		if s.reg == "Z" {
			o.p("KORTESTW K3, K3")
		} else {
			o.p("VPTEST Y13, Y13")
		}
		o.p("JZ number%s", name)
		o.p("VMOVSS %s, X0", o.konst("nan", 0x7fc00000))
		o.p("number%s:", name)
	}
	o.p("VZEROUPPER")
	o.p("MOVSS X0, ret+%d(FP)", a.frame())
	o.p("RET")
}

// maxIndex writes the check of index slices: max of uint32(p_i - base), 0 if n
// is 0. A negative difference becomes a large number.
func maxIndex(o *out, s isa) {
	name := "maxIndex" + s.name
	a := maxIndexArgs()
	o.fn(name+": max of uint32(p_i - base), 0 if n is 0.", name, a.signature()+" uint32", a.frame()+4)
	lanes := s.bytes / 4
	mask := map[string]string{"Z": "K1", "Y": "Y15"}[s.reg]
	xor, add, top := "VPXOR", "VPSUBD", "VPMAXUD"
	if s.reg == "Z" {
		xor = "VPXORD"
	}
	o.p("MOVQ %s, SI", a.at("p"))
	o.p("MOVQ %s, CX", a.at("n"))
	o.p("MOVL %s, AX", a.at("base"))
	o.p("VMOVD AX, X4")
	o.p("VPBROADCASTD X4, %s", s.v(4))
	o.p("MOVQ CX, R13")
	o.p("ANDQ $%d, R13", lanes-1)
	loadMask(o, s, "R13", mask)
	for i := range 2 {
		o.p("%s %s, %s, %s", xor, s.v(i), s.v(i), s.v(i))
	}
	o.p("SUBQ $%d, CX", 2*lanes)
	o.p("JLT few%s", name)
	o.p("two%s:", name)
	load := "VMOVDQU"
	if s.reg == "Z" {
		load = "VMOVDQU32"
	}
	for i := range 2 {
		o.p("%s %d(SI), %s", load, i*s.bytes, s.v(2+i))
		o.p("%s %s, %s, %s", add, s.v(4), s.v(2+i), s.v(2+i))
		o.p("%s %s, %s, %s", top, s.v(2+i), s.v(i), s.v(i))
	}
	o.p("ADDQ $%d, SI", 2*s.bytes)
	o.p("SUBQ $%d, CX", 2*lanes)
	o.p("JGE two%s", name)
	o.p("few%s:", name)
	o.p("ADDQ $%d, CX", 2*lanes)
	o.p("CMPQ CX, $%d", lanes)
	o.p("JLT part%s", name)
	o.p("%s (SI), %s", load, s.v(2))
	o.p("%s %s, %s, %s", add, s.v(4), s.v(2), s.v(2))
	o.p("%s %s, %s, %s", top, s.v(2), s.v(0), s.v(0))
	o.p("ADDQ $%d, SI", s.bytes)
	o.p("part%s:", name)
	if s.reg == "Z" {
		o.p("VMOVDQU32.Z (SI), K1, Z2")
		o.p("VPSUBD.Z Z4, Z2, K1, Z2")
	} else {
		o.p("VPMASKMOVD (SI), Y15, Y2")
		o.p("VPSUBD Y4, Y2, Y2")
		o.p("VPAND Y15, Y2, Y2")
	}
	o.p("%s %s, %s, %s", top, s.v(2), s.v(0), s.v(0))
	o.p("%s %s, %s, %s", top, s.v(1), s.v(0), s.v(0))
	if s.reg == "Z" {
		o.p("VEXTRACTI64X4 $1, Z0, Y1")
		o.p("VPMAXUD Y1, Y0, Y0")
	}
	o.p("VEXTRACTI128 $1, Y0, X1")
	o.p("VPMAXUD X1, X0, X0")
	o.p("VPSHUFD $0x4e, X0, X1")
	o.p("VPMAXUD X1, X0, X0")
	o.p("VPSHUFD $0xb1, X0, X1")
	o.p("VPMAXUD X1, X0, X0")
	o.p("VMOVD X0, AX")
	o.p("VZEROUPPER")
	o.p("MOVL AX, ret+%d(FP)", a.frame())
	o.p("RET")
}

func maxIndexArgs() *args {
	a := &args{}
	a.add("p", "*int32", 8)
	a.add("n", "int", 8)
	a.add("base", "int32", 4)
	return a
}
