package main

// columnSumsNEON is columnSums for arm64: R1 and R2 walk down x and y, R8 counts
// rows.
func columnSumsNEON(k *stripCtx, row func(k *stripCtx, j int)) {
	k.x, k.y = "R1", "R2"
	zero, loop, done := k.l("zero"), k.l("loop"), k.l("done")
	k.loadMask()
	k.p("MOVD stripArgs_x(R0), R1")
	k.p("MOVD stripArgs_y(R0), R2")
	k.p("MOVD stripArgs_dst(R0), R3")
	k.p("MOVD stripArgs_ldx(R0), R4")
	k.p("MOVD stripArgs_ldy(R0), R5")
	k.p("MOVD stripArgs_rows(R0), R8")
	k.p("MOVD stripArgs_flag(R0), R6")
	k.p("CBZ R6, %s", zero)
	for j := range k.nv {
		k.load(j, "R3", k.acc(j))
	}
	k.p("JMP %s", loop)
	k.p("%s:", zero)
	for j := range k.nv {
		k.zero(k.acc(j))
	}
	k.p("%s:", loop)
	k.p("SUBS $1, R8")
	k.p("BLT %s", done)
	for j := range k.nv {
		row(k, j)
	}
	k.p("ADD R4, R1")
	k.p("ADD R5, R2")
	k.p("JMP %s", loop)
	k.p("%s:", done)
	for j := range k.nv {
		k.store(j, k.acc(j), "R3")
	}
}

// spmmNEON is spmm for arm64: R3 and R2 walk down dst and the rows of x that
// belong to it, R4 walks through ptr.
func spmmNEON(k *stripCtx, withVal bool) {
	row, alone, edges, edge, end, done := k.l("row"), k.l("alone"), k.l("edges"), k.l("edge"), k.l("end"), k.l("done")
	self, val := k.tmp(0), k.tmp(1)
	k.loadMask()
	k.p("MOVD stripArgs_x(R0), R1")
	k.p("MOVD stripArgs_y(R0), R2")
	k.p("MOVD stripArgs_dst(R0), R3")
	k.p("MOVD stripArgs_ptr(R0), R4")
	k.p("MOVD stripArgs_adj(R0), R5")
	if withVal {
		k.p("MOVD stripArgs_val(R0), R6")
	}
	k.p("MOVD stripArgs_ldx(R0), R7")
	k.p("MOVD stripArgs_ldd(R0), R12")
	k.p("MOVD stripArgs_rows(R0), R8")
	k.p("MOVD stripArgs_flag(R0), R9")
	k.p("FMOVS stripArgs_self(R0), F%d", number(self))
	k.p("VDUP %s.S[0], %s.S4", self, self)
	k.p("%s:", row)
	k.p("SUBS $1, R8")
	k.p("BLT %s", done)
	k.p("MOVW.P 4(R4), R13")
	k.p("MOVW (R4), R14")
	k.p("ADD R13<<2, R5, R19") // adj of this row, up to R14
	k.p("ADD R14<<2, R5, R14")
	if withVal {
		k.p("ADD R13<<2, R6, R20")
	}
	k.p("CBZ R9, %s", alone)
	for j := range k.nv {
		k.load(j, "R2", k.acc(j))
		k.ins("VMULPS", k.acc(j), self, k.acc(j))
	}
	k.p("JMP %s", edges)
	k.p("%s:", alone)
	for j := range k.nv {
		k.zero(k.acc(j))
	}
	k.p("%s:", edges)
	k.p("CMP R14, R19")
	k.p("BGE %s", end)
	k.p("%s:", edge)
	k.p("MOVW.P 4(R19), R13")
	k.p("MUL R7, R13")
	k.p("ADD R1, R13")
	if withVal {
		k.p("VLD1R.P 4(R20), [%s.S4]", val)
	}
	for j := range k.nv {
		if withVal {
			k.op("VFMADD231PS", j, "R13", val, k.acc(j))
		} else {
			k.op("VADDPS", j, "R13", k.acc(j), k.acc(j))
		}
	}
	k.p("CMP R14, R19")
	k.p("BLT %s", edge)
	k.p("%s:", end)
	for j := range k.nv {
		k.store(j, k.acc(j), "R3")
	}
	k.p("ADD R7, R2")
	k.p("ADD R12, R3")
	k.p("JMP %s", row)
	k.p("%s:", done)
}
