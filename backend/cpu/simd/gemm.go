package simd

import (
	"runtime"
	"sync"
	"unsafe"
)

// Float is the element types of all kernels.
type Float interface{ float32 | float64 }

// Blocking of the matrix product. A block of B, kc×nc, is packed into panels as
// wide as a tile; a block of A, mc rows × kc, stays in the second-level cache
// while all panels pass over it; one panel stays in the first-level cache while
// the tiles of that block pass over it.
const (
	// kcMax bounds kc. It is part of the results' definition: sums restart at
	// every block of K. Longer blocks read and write C less often; a panel of 704
	// rows of 32 float32 is 88 KiB, which streams from the second-level cache as
	// fast as the tiles take it. Against 320 rows, one block in place of two for
	// widths around 600 is measured to gain 14 %, and squares of 2048 7 %.
	kcMax = 704
	// kcNarrow bounds it where C is no wider than narrow columns: then A and the
	// few panels fit the first-level cache together, and C is small.
	kcNarrow, narrow = 320, 64
	// ncBytes bounds a packed block of B, which streams from the third-level
	// cache: A is read, and where need be packed, once for every such block.
	ncBytes = 4 << 20
	// mcBytes bounds a block of A.
	mcBytes = 192 << 10
	// callFlops bounds the work of one assembly call, which the Go scheduler
	// cannot interrupt: about 40 µs at 100 GFLOP/s.
	callFlops = 4 << 20
	// aheadRows is how many rows of Aᵀ a kernel prefetches ahead.
	aheadRows = 16
)

// Values of gemmArgs.mode: what is done with the finished sums.
const (
	gemmStore  = iota // C = acc
	gemmScale         // C = alpha·acc
	gemmUpdate        // C = beta·C + alpha·acc
)

// gemmArgs is the argument of a tile kernel. The kernel computes a run of tiles,
// one below the other: tile t has mr rows, its C starts t·mr rows below c, and its A
// starts at byte t·aStep of a. Strides are in bytes.
type gemmArgs struct {
	a           unsafe.Pointer // A[0,0] of the first tile
	rsA, csA    uintptr        // steps to the next row and column of A
	aStep       uintptr        // step to the next tile of A
	ahead       uintptr        // distance from a tile's A to the first prefetch
	aheadStep   uintptr        // distance between the prefetches of two k
	b           unsafe.Pointer // the panel of B
	ldb         uintptr        // step to the next row of the panel
	c           unsafe.Pointer // C[0,0] of the first tile
	ldc         uintptr        // step to the next row of C
	k           int            // length of the sums, at least 1
	tiles       int            // number of tiles, at least 1; the kernel counts it down
	mode        int            // gemmStore, gemmScale or gemmUpdate
	cols        int            // columns of C in this panel, at least 1
	mask        uint64         // AVX-512: valid lanes of the last vector; others: 0 if all are
	maskVec     unsafe.Pointer // AVX2: valid lanes as a vector
	alpha, beta uint64         // bits of the factors in the element type
	buf         [48]float64    // for runPartial: 6 rows of 4 registers of 16 bytes
}

type tileSet struct {
	mr    int                    // rows of the largest tile
	lanes int                    // columns of a vector
	nv    int                    // vectors of a full panel
	pack  bool                   // whether A and B must always be packed
	whole bool                   // whether the kernels can only handle whole vectors
	kern  [][2]func(p *gemmArgs) // by rows, then by vectors-1
	pairs *pairing               // how inputs become pairs of bfloat16, if the kernels take those
}

// workspace is the memory of one call in progress.
type workspace[T Float] struct {
	args gemmArgs
	a, b []T // packed blocks
}

var (
	pool32 = sync.Pool{New: func() any {
		return new(workspace[float32])
	}}
	pool64 = sync.Pool{New: func() any {
		return new(workspace[float64])
	}}
)

// grow returns a slice of n elements, buf if it is long enough.
func grow[T Float](buf []T, n int) []T {
	if cap(buf) < n {
		return make([]T, n)
	}
	return buf[:n]
}

// rowSplit deals rows evenly to as few tiles as possible: first tall tiles of h+1
// rows, then tiles of h rows.
type rowSplit struct{ tiles, tall, h int }

func splitRows(m, mr int) rowSplit {
	tiles := (m + mr - 1) / mr
	return rowSplit{tiles: tiles, tall: m % tiles, h: m / tiles}
}

// first returns the first row of tile t.
func (s rowSplit) first(t int) int {
	return t*s.h + min(t, s.tall)
}

// maxRows returns the height of the tallest tile.
func (s rowSplit) maxRows() int {
	return s.h + min(1, s.tall)
}

// run returns the height of tile t, and the end of the run of tiles of that height
// that starts at t; the run stops before tile stop.
func (s rowSplit) run(t, stop int) (rows, end int) {
	if t < s.tall {
		return s.h + 1, min(stop, s.tall)
	}
	return s.h, stop
}

// gemm sets C = beta·C + alpha·op(A)·op(B) for checked arguments with m, n, k >
// 0 and alpha ≠ 0. Element (i, j) is a function of row i of op(A), column j of
// op(B), its old value and the factors alone: a plain sum in the order of k,
// restarted at every block of K, whose length depends on n and k only. With kernels
// for pairs, lengths of sums (kc, kb) and packed blocks count pairs.
func gemm[T Float](
	ws *workspace[T],
	ts *tileSet,
	tA, tB bool,
	m, n, k int,
	alpha T,
	a []T,
	lda int,
	b []T,
	ldb int,
	beta T,
	c []T,
	ldc int,
) {
	x := product[T]{
		ws:    ws,
		ts:    ts,
		tA:    tA,
		tB:    tB,
		m:     m,
		a:     a,
		lda:   lda,
		b:     b,
		ldb:   ldb,
		c:     c,
		ldc:   ldc,
		rsA:   lda,
		csA:   1,
		size:  int(unsafe.Sizeof(alpha)),
		width: ts.lanes * ts.nv,
		split: splitRows(m, ts.mr),
	}
	if tA {
		x.rsA = 1
		x.csA = lda
	}
	step := 1 // terms that a kernel takes at a time
	if ts.pairs != nil {
		step = 2
	}
	kc := blockSteps((k+step-1)/step, n)
	nc := max(x.width, ncBytes/x.size/kc/x.width*x.width)

	p := &ws.args
	p.alpha = bits(alpha)
	p.ldc = uintptr(ldc * x.size)
	for j0 := 0; j0 < n; j0 += nc {
		x.j0 = j0
		x.nb = min(nc, n-j0)
		for k0 := 0; k0 < k; k0 += step * kc {
			x.k0 = k0
			x.terms = min(step*kc, k-k0)
			x.kb = (x.terms + step - 1) / step
			p.k = x.kb
			p.mode = gemmUpdate
			p.beta = bits(T(1))
			if k0 == 0 {
				p.mode = firstMode(alpha, beta)
				p.beta = bits(beta)
			}
			x.block()
		}
	}
	// The pool must not keep the caller's matrices alive.
	p.a = nil
	p.b = nil
	p.c = nil
	runtime.KeepAlive(ws)
}

// blockSteps returns the number of steps of a block, when a product of n columns takes kSteps
// in blocks that are as even as can be.
func blockSteps(kSteps, n int) int {
	longest := kcMax
	if n <= narrow {
		longest = kcNarrow
	}
	blocks := (kSteps + longest - 1) / longest
	return (kSteps + blocks - 1) / blocks
}

// firstMode returns the mode of the kernel for the first block of terms.
func firstMode[T Float](alpha, beta T) int {
	switch {
	case beta != 0:
		return gemmUpdate
	case alpha != 1:
		return gemmScale
	}
	return gemmStore
}

// product is a product in progress, at one block of B.
type product[T Float] struct {
	ws            *workspace[T]
	ts            *tileSet
	tA, tB        bool
	m             int
	a, b, c       []T
	lda, ldb, ldc int
	rsA, csA      int // steps to the next row and column of op(A)
	size          int // bytes of an element
	width         int // columns of a panel
	split         rowSplit

	// The block of op(B): columns j0 to j0+nb-1 of terms k0 to k0+terms-1.
	j0, nb, k0, terms int
	kb                int // steps of a kernel: terms, or pairs of terms
	packed            int // how many of the columns, the last ones, lie packed in ws.b
}

// block adds the terms of one block of B to all rows of C.
func (x *product[T]) block() {
	x.packB()
	mTiles := max(1, mcBytes/x.size/(x.kb*x.split.maxRows()))
	if x.nb <= x.width && x.ts.pairs == nil {
		mTiles = x.split.tiles
	}
	for t0 := 0; t0 < x.split.tiles; t0 += mTiles {
		t1 := min(x.split.tiles, t0+mTiles)
		a := x.blockA(t0, t1)
		for j := 0; j < x.nb; j += x.width {
			x.panel(&a, t0, t1, j)
		}
	}
}

// packB packs the columns of the block that cannot be used where they lie.
func (x *product[T]) packB() {
	ts := x.ts
	// B is used where it lies if its rows are panels already, or if A has
	// too few rows to repay the packing.
	cheap := x.ldb*x.size <= 256 || x.m <= 2*ts.mr
	inPlace := cheap && !ts.pack && ts.pairs == nil && !x.tB
	x.packed = x.nb
	if inPlace {
		x.packed = x.nb % x.width
		if x.packed%ts.lanes == 0 { // whole vectors need no packing
			x.packed = 0
		}
	}
	if x.packed == 0 {
		return
	}
	panels := (x.packed + x.width - 1) / x.width
	x.ws.b = grow(x.ws.b, panels*x.width*x.kb)
	if ts.pairs != nil {
		packPairsB(
			ts.pairs, x.ws, x.tB, x.b, x.ldb, x.k0,
			x.j0, x.terms, x.nb, x.width, ts.lanes,
		)
		return
	}
	first := x.j0 + x.nb - x.packed
	packB(
		x.ws.b, x.tB, x.b, x.ldb, x.k0, first,
		x.kb, x.packed, x.width, ts.lanes,
	)
}

// blockA is what the kernels read of op(A), through the steps rs and cs from row to row
// and from column to column.
type blockA[T Float] struct {
	data   []T
	row    int // the first row in data
	rs, cs int
	tiles  bool // packed tile by tile; rs and cs do not count
}

// blockA returns the rows of tiles t0..t1-1 and the terms of the block, packed if need be.
func (x *product[T]) blockA(t0, t1 int) blockA[T] {
	if x.ts.pairs != nil {
		first := x.split.first(t0)
		pairs, rs, cs := packPairsA(
			x.ts.pairs, x.ws, x.tA, x.a, x.lda,
			first, x.split.first(t1), x.k0, x.terms,
		)
		return blockA[T]{
			data: pairs,
			row:  first,
			rs:   rs,
			cs:   cs,
		}
	}
	// Tall tiles read rows of A that fall into the same sets of the cache if they lie a
	// power of two apart.
	aliased := x.ts.mr > 8 && !x.tA && x.lda*x.size%2048 == 0
	if x.ts.pack || aliased && x.nb > x.width {
		x.ws.a = grow(x.ws.a, (t1-t0)*(x.split.maxRows()*x.kb+tilePad))
		packTiles(x.ws.a, x.a, x.rsA, x.csA, x.split, t0, t1, x.k0, x.kb)
		return blockA[T]{data: x.ws.a, row: x.split.first(t0), tiles: true}
	}
	return blockA[T]{data: x.a[x.k0*x.csA:], rs: x.rsA, cs: x.csA}
}

// panel runs the kernels for tiles t0..t1-1 on the panel of B that starts at column j of
// the block.
func (x *product[T]) panel(a *blockA[T], t0, t1, j int) {
	p := &x.ws.args
	ts := x.ts
	cols := min(x.width, x.nb-j)
	vectors := (cols + ts.lanes - 1) / ts.lanes
	if unpacked := x.nb - x.packed; j < unpacked {
		p.b = unsafe.Pointer(&x.b[x.k0*x.ldb+x.j0+j])
		p.ldb = uintptr(x.ldb * x.size)
	} else {
		p.b = unsafe.Pointer(&x.ws.b[(j-unpacked)*x.kb])
		p.ldb = uintptr(vectors * ts.lanes * x.size)
	}
	p.cols = cols
	setMask(p, cols-(vectors-1)*ts.lanes, ts.lanes, x.size)
	perCall := max(1, callFlops/(2*x.split.maxRows()*x.width*x.kb))
	for t := t0; t < t1; {
		rows, end := x.split.run(t, t1)
		i := x.split.first(t)
		p.tiles = min(end-t, perCall)
		if a.tiles {
			p.a = unsafe.Pointer(&a.data[(i-a.row)*x.kb+(t-t0)*tilePad])
			p.rsA = uintptr(x.size)
			p.csA = uintptr(rows * x.size)
			p.aStep = uintptr((rows*x.kb + tilePad) * x.size)
		} else {
			p.a = unsafe.Pointer(&a.data[(i-a.row)*a.rs])
			p.rsA = uintptr(a.rs * x.size)
			p.csA = uintptr(a.cs * x.size)
			p.aStep = uintptr(rows * a.rs * x.size)
		}
		// Prefetch the rows of Aᵀ to come, or the next tile if the tiles are contiguous.
		switch {
		case a.tiles || !x.tA && a.rs == x.kb:
			p.ahead = p.aStep
			p.aheadStep = uintptr(rows * x.size)
		case x.tA:
			p.ahead = aheadRows * p.csA
			p.aheadStep = p.csA
		default:
			p.ahead = 0
			p.aheadStep = 0
		}
		p.c = unsafe.Pointer(&x.c[i*x.ldc+x.j0+j])
		t += p.tiles
		kernel := ts.kern[rows][vectors-1]
		if ts.whole && p.mask != 0 {
			runPartial(p, kernel, rows, vectors*ts.lanes*x.size, cols*x.size)
		} else {
			kernel(p)
		}
	}
}

// runPartial runs a kernel that can only handle whole vectors where C has fewer
// columns: it computes each tile in a buffer. width and cols are in bytes.
func runPartial(p *gemmArgs, kern func(*gemmArgs), rows, width, cols int) {
	a := p.a
	c := p.c
	ldc := p.ldc
	row := func(r int) (buf, c0 []byte) {
		tile := unsafe.Add(unsafe.Pointer(&p.buf), r*width)
		dst := unsafe.Add(c, uintptr(r)*ldc)
		return unsafe.Slice((*byte)(tile), cols),
			unsafe.Slice((*byte)(dst), cols)
	}
	for n := p.tiles; n > 0; n-- {
		if p.mode == gemmUpdate {
			for r := range rows {
				buf, c0 := row(r)
				copy(buf, c0)
			}
		}
		p.tiles = 1
		p.c = unsafe.Pointer(&p.buf)
		p.ldc = uintptr(width)
		kern(p)
		for r := range rows {
			buf, c0 := row(r)
			copy(c0, buf)
		}
		if n > 1 {
			p.a = unsafe.Add(p.a, p.aStep)
			c = unsafe.Add(c, uintptr(rows)*ldc)
		}
	}
	p.a = a
	p.c = c
	p.ldc = ldc
}

// packB copies rows k0..k0+kb and columns j0..j0+nb of op(B) into panels of
// width columns, one panel after the other, each with kb rows. The last panel is
// rounded up to whole vectors and filled with zeros.
func packB[T Float](
	dst []T, tB bool, b []T, ldb, k0, j0, kb, nb, width, lanes int,
) {
	for j := 0; j < nb; j += width {
		w := min(width, nb-j)
		wp := (w + lanes - 1) / lanes * lanes
		panel := dst[j*kb : j*kb+wp*kb]
		if tB {
			packTrans(panel, b[(j0+j)*ldb+k0:], ldb, kb, w, wp)
			continue
		}
		for k := range kb {
			row := panel[k*wp : k*wp+wp]
			copy(row, b[(k0+k)*ldb+j0+j:][:w])
			clear(row[w:])
		}
	}
}

// packTrans sets the kb×wp panel to the transpose of the w×kb matrix b, and
// columns from w on to zero.
func packTrans[T Float](panel, b []T, ldb, kb, w, wp int) {
	if w < wp {
		for k := range kb {
			clear(panel[k*wp+w : k*wp+wp])
		}
	}
	transposeInto(panel, wp, b, ldb, w, kb, false)
}

// Transpose sets dst[k·ldd+r] = src[r·lds+k] for r < rows, k < n: the transpose of a
// part of a matrix with rows of lds elements, into one with rows of ldd.
func Transpose[T Float](dst []T, ldd int, src []T, lds, rows, n int) {
	transposeInto(dst, ldd, src, lds, rows, n, false)
}

// transposeInto sets dst[k·ldd+r] = src[r·lds+k] for r < rows, k < n. With spill
// it may write up to 7 elements more after each row of dst. Later rows and earlier
// groups of 8 then overwrite all of them but those after the end.
func transposeInto[T Float](
	dst []T, ldd int, src []T, lds, rows, n int, spill bool,
) {
	done := 0 // rows whose columns k < n8 the assembly has transposed
	n8 := n &^ 7
	if fast[T]() && n8 > 0 {
		done = rows &^ 7
		if spill && rows > 8 {
			done = rows
		}
		var p [8]*float32
		for r := (done - 1) &^ 7; r >= 0; r -= 8 {
			for i := range p {
				p[i] = at(src, min(r+i, rows-1)*lds)
			}
			transpose8(at(dst, r), uintptr(4*ldd), &p, n8)
		}
	}
	for r := range rows {
		first := 0
		if r < done {
			first = n8
		}
		s := src[r*lds:][:n]
		for k := first; k < n; k++ {
			dst[k*ldd+r] = s[k]
		}
	}
}

// tilePad is the number of elements between packed tiles, for what
// transposeInto spills.
const tilePad = 16

// packTiles copies tiles t0..t1 of op(A), columns k0..k0+kb, into dst: the kb columns
// of a tile one after the other, then tilePad elements.
func packTiles[T Float](
	dst, a []T, rsA, csA int, split rowSplit, t0, t1, k0, kb int,
) {
	for t := t0; t < t1; t++ {
		rows, _ := split.run(t, t1)
		src := a[split.first(t)*rsA+k0*csA:]
		if csA == 1 {
			transposeInto(dst, rows, src, rsA, rows, kb, true)
		} else { // rsA is 1
			for k := range kb {
				copy(dst[k*rows:][:rows], src[k*csA:])
			}
		}
		dst = dst[rows*kb+tilePad:]
	}
}
