package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

var negInf = math.Inf(-1)

// reduction describes a kernel that reduces slices of float32 to one number.
// Element i goes to lane i mod lanes on every instruction set, and the lanes are folded
// in halves: 64, 32, … 1.
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
	{
		name:  "sum",
		lanes: 64,
		doc:   "Σ a_i",
		in:    []string{"a"},
		fold:  "VADDPS",
		each: func(k *kc, acc string) {
			k.add(acc, acc, "a")
		},
	},
	{
		name:  "sumSquares",
		lanes: 64,
		doc:   "Σ a_i²",
		in:    []string{"a"},
		fold:  "VADDPS",
		each: func(k *kc, acc string) {
			k.fma(acc, "a", "a")
		},
	},
	{
		name:  "dot",
		lanes: 64,
		doc:   "Σ a_i·b_i",
		in:    []string{"a", "b"},
		fold:  "VADDPS",
		each: func(k *kc, acc string) {
			k.fma(acc, "a", "b")
		},
	},
	{
		name:  "maxOf",
		lanes: 64,
		doc:   "max a_i; NaN if one is; -Inf if n is 0",
		in:    []string{"a"},
		fold:  "VMAXPS",
		nan:   true,
		init: func(k *kc, acc string) {
			k.mov(acc, k.f("minusInf", negInf))
		},
		pad: func(o *out) string {
			return o.f("minusInf", negInf)
		},
		each: func(k *kc, acc string) {
			k.max(acc, acc, "a")
		},
	},
	{
		name:  "expSum",
		lanes: 16,
		doc:   "dst_i = e^(alpha·a_i + c); Σ dst_i",
		scal:  []string{"alpha", "c"},
		in:    []string{"a"},
		store: true,
		fold:  "VADDPS",
		pad:   func(o *out) string { return "" },
		each: func(k *kc, acc string) {
			k.mov("u", "c")
			k.fma("u", "alpha", "a")
			k.exp("dst", "u")
			k.add(acc, acc, "dst")
		},
	},
	{
		name:  "expSumOnly",
		lanes: 16,
		doc:   "Σ e^(alpha·a_i + c)",
		scal:  []string{"alpha", "c"},
		in:    []string{"a"},
		fold:  "VADDPS",
		each: func(k *kc, acc string) {
			k.mov("u", "c")
			k.fma("u", "alpha", "a")
			k.exp("dst", "u")
			k.add(acc, acc, "dst")
		},
	},
}

// write writes the reduction: accumulators first, then one window of registers, scalars
// at the top, and with nan the lanes where one was seen: in K3, Y13 or V31. A partial
// vector is masked, on arm64 by the bits of R10 (see loadPart).
func (x *reduction) write(o *out) {
	s := o.isa
	a := x.args()
	name := x.name + s.name
	lanes := s.bytes / 4
	count := o.pick("CX", "R8")
	o.fn(name+": "+x.doc, name, a.signature()+" float32", a.frame()+4)
	n := x.lanes / lanes // accumulators
	fixed, top := o.scalars(a, x.scal, nil)
	reg := map[string]string{}
	if x.store {
		reg["dst"] = o.pick("DI", "R3")
		o.get(a.at("dst"), reg["dst"])
	}
	for i, p := range x.in {
		reg[p] = o.pick([]string{"SI", "BX"}[i], fmt.Sprintf("R%d", 1+i))
		o.get(a.at(p), reg[p])
	}
	o.get(a.at("n"), count)
	if o.arm64() {
		o.p("MOVD $consts<>(SB), R26")
	} else {
		o.maskRest(lanes)
		o.p("XORQ AX, AX")
	}
	acc := func(j int) string {
		return fmt.Sprintf("acc%d", j)
	}
	window := func() *kc {
		k := &kc{out: o, base: n, reg: maps.Clone(fixed)}
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
		top = o.clearNaN(top)
	}

	// Whole blocks of x.lanes elements.
	o.take(x.lanes, count, "LT", "rest"+name)
	o.mark("block" + name)
	for j := range n {
		x.vector(window(), reg, j, acc(j), false, top)
	}
	if o.arm64() {
		for _, p := range slices.Sorted(maps.Values(reg)) {
			o.add(4*x.lanes, p)
		}
	} else {
		o.add(4*x.lanes, "AX")
	}
	o.take(x.lanes, count, "GE", "block"+name)

	// Whole vectors of the last block, then a partial one.
	o.mark("rest" + name)
	o.add(x.lanes, count)
	if o.arm64() {
		o.p("AND $3, R8, R11")
		o.partBits("R11", "R10")
	}
	for j := range n {
		o.p("%s", o.pick(fmt.Sprintf("CMPQ CX, $%d", lanes), "CMP $4, R8"))
		o.p("%sLT part%d%s", o.pick("J", "B"), j, name)
		x.vector(window(), reg, j, acc(j), false, top)
		o.p("%s $%d, %s", o.pick("SUBQ", "SUB"), lanes, count)
	}
	o.p("JMP fold%s", name) // not reached with numbers left
	for j := range n {
		o.p("part%d%s:", j, name)
		if o.arm64() {
			o.p("CBZ R8, fold%s", name)
		} else {
			o.p("TESTQ CX, CX")
			o.p("JZ fold%s", name)
		}
		x.vector(window(), reg, j, acc(j), true, top)
		o.p("JMP fold%s", name)
	}

	o.mark("fold" + name)
	x.foldLanes(window(), n, acc)
	if x.nan {
		o.restoreNaN(name)
	}
	if o.arm64() {
		o.p("FMOVS F0, ret+%d(FP)", a.frame())
	} else {
		o.p("VZEROUPPER")
		o.p("MOVSS X0, ret+%d(FP)", a.frame())
	}
	o.p("RET")
}

// clearNaN clears the lanes where a NaN was seen. It returns the number of the highest
// register that is left, of top.
func (o *out) clearNaN(top int) int {
	switch o.isa.reg {
	case "Z":
		o.p("KXORW K3, K3, K3")
	case "Y":
		o.p("VXORPS Y13, Y13, Y13")
		return 12
	case "V":
		o.ins("VXORPS", "V31", "V31", "V31")
		return top - 1
	}
	return top
}

// noteNaN marks the lanes where the vector v is NaN.
func (k *kc) noteNaN(v string) {
	switch k.isa.reg {
	case "Z":
		k.p("VCMPPS $%d, %s, %s, K2", isNaN, v, v)
		k.p("KORW K2, K3, K3")
	case "Y":
		k.p("VCMPPS $%d, %s, %s, %s", isNaN, v, v, k.r("mask"))
		k.p("VORPS %s, Y13, Y13", k.r("mask"))
	case "V":
		k.ins("FCMEQ", v, v, k.r("mask"))
		k.ins("ORN", k.r("mask"), "V31", "V31")
	}
}

// restoreNaN makes the result NaN if one was seen.
func (o *out) restoreNaN(name string) {
	switch o.isa.reg {
	case "Z":
		o.p("KORTESTW K3, K3")
		o.p("JZ number%s", name)
	case "Y":
		o.p("VPTEST Y13, Y13")
		o.p("JZ number%s", name)
	case "V":
		o.p("WORD $0x%08x // UMAXV V31.S4, V31", 0x6eb0a800|31<<5|31)
		o.p("FMOVS F31, R10")
		o.p("CBZW R10, number%s", name)
	}
	nan := o.konst("nan", 0x7fc00000)
	if o.arm64() {
		o.loadQ(nan, "V0")
	} else {
		o.p("VMOVSS %s, X0", nan)
	}
	o.mark("number" + name)
}

// input loads the vector at mem, or with part what there is of it, into the register
// of in. Missing lanes become pad, or 0 if that is empty.
func (k *kc) input(in, mem, pad string, part bool) {
	v := k.r(in)
	switch {
	case k.arm64() && !part:
		k.loadQ(mem, v)
	case k.arm64():
		k.loadPart(mem, v, "R10")
		if pad != "" {
			k.exists("mask")
			k.ins("VBLEND", k.operand(pad), v, k.r("mask"))
			k.mov(in, "mask")
		}
	case part && pad != "" && k.isa.reg == "Z":
		k.p("VMOVUPS %s, %s", pad, v)
		k.p("VMOVUPS %s, K1, %s", mem, v)
	default:
		k.load("PS", mem, v, part)
		if part && pad != "" {
			k.p("VMOVUPS %s, %s", pad, k.r("pad"))
			k.p("VBLENDVPS Y15, %s, %s, %s", v, k.r("pad"), v)
		}
	}
}

// vector adds vector j of the block to acc, or with part what there is of it. The block
// is at the registers reg.
func (x *reduction) vector(
	k *kc, reg map[string]string, j int, acc string, part bool, top int,
) {
	o := k.out
	s := k.isa
	place := func(p string) string {
		if o.arm64() && part {
			o.p("ADD $%d, %s, R11", 16*j, reg[p])
			return "R11"
		}
		return fmt.Sprintf("%d(%s)%s", j*s.bytes, reg[p], o.pick("(AX*1)", ""))
	}
	for _, name := range x.in {
		pad := ""
		if x.pad != nil && (part || !o.arm64()) {
			pad = x.pad(o)
		}
		k.input(name, place(name), pad, part)
	}
	if x.nan {
		k.noteNaN(k.r(x.in[0]))
	}
	if part && x.fold == "VADDPS" && len(x.scal) > 0 {
		// e^c of the lanes that do not exist must not count.
		k.xor("sink", "sink", "sink")
		x.each(k, "sink")
		switch s.reg {
		case "Z":
			o.p("VMOVUPS.Z %s, K1, %s", k.r("sink"), k.r("sink"))
		case "Y":
			o.p("VANDPS Y15, %s, %s", k.r("sink"), k.r("sink"))
		case "V":
			k.exists("mask")
			k.and("sink", "sink", "mask")
		}
		k.add(acc, acc, "sink")
	} else {
		x.each(k, acc)
	}
	if x.store {
		mem := place("dst")
		switch {
		case o.arm64() && part:
			o.storePart(k.r("dst"), mem, "R10")
		case o.arm64():
			o.storeQ(k.r("dst"), mem)
		default:
			o.store("PS", k.r("dst"), mem, part)
		}
	}
	if k.base+k.free > top+1 {
		panic("gen: " + x.name + s.name + " needs too many registers")
	}
}

// foldLanes folds n accumulators in halves into the first one, then its lanes in halves
// into the first lane.
func (x *reduction) foldLanes(k *kc, n int, acc func(j int) string) {
	o := k.out
	s := k.isa
	join := func(a, b string) {
		switch {
		case !o.arm64() || x.fold != "VMAXPS":
			k.op(x.fold, a, a, b)
		default:
			k.max(a, a, b)
		}
	}
	for w := n / 2; w >= 1; w /= 2 {
		for j := range w {
			join(acc(j), acc(j+w))
		}
	}
	if o.arm64() {
		for _, half := range []string{"V0.D[1], %s.D2", "V0.S[1], %s.S4"} {
			o.p("VDUP "+half, k.r("half"))
			join(acc(0), "half")
		}
		return
	}
	if s.reg == "Z" {
		o.p("VEXTRACTF64X4 $1, Z0, Y1")
		o.p("%s Y1, Y0, Y0", x.fold)
	}
	for _, half := range []string{
		"VEXTRACTF128 $1, Y0, X1", "VMOVHLPS X0, X0, X1", "VMOVSHDUP X0, X1",
	} {
		o.p("%s", half)
		o.p("%s X1, X0, X0", x.fold)
	}
}
