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

// gemmArgs is the argument of a tile kernel. The kernel computes a run of tiles
// that lie below each other: tile t has mr rows, its C starts t·mr rows below
// c, its A starts at byte t·aStep of a. Strides are in bytes.
type gemmArgs struct {
	a           unsafe.Pointer // A[0,0] of the first tile
	rsA, csA    uintptr        // steps to the next row and column of A
	aStep       uintptr        // step to the next tile of A
	ahead       uintptr        // distance from a tile's A to where prefetching starts
	aheadStep   uintptr        // distance that it advances with every k
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
	pool32 = sync.Pool{New: func() any { return new(workspace[float32]) }}
	pool64 = sync.Pool{New: func() any { return new(workspace[float64]) }}
)

// grow returns a slice of n elements, buf if it is long enough.
func grow[T Float](buf []T, n int) []T {
	if cap(buf) < n {
		return make([]T, n)
	}
	return buf[:n]
}

// rowSplit deals rows evenly to as few tiles as possible: tall tiles of h+1
// rows, then the rest of h.
type rowSplit struct{ tiles, tall, h int }

func splitRows(m, mr int) rowSplit {
	tiles := (m + mr - 1) / mr
	return rowSplit{tiles: tiles, tall: m % tiles, h: m / tiles}
}

func (s rowSplit) first(t int) int { return t*s.h + min(t, s.tall) }

func (s rowSplit) maxRows() int { return s.h + min(1, s.tall) }

// run returns the height of tile t, and the end of the run of such tiles that
// starts there and stops before tile stop.
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
// for pairs, lengths of sums, kc and kb, count pairs, and so do packed blocks.
func gemm[T Float](
	ws *workspace[T], ts *tileSet, tA, tB bool, m, n, k int, alpha T, a []T, lda int, b []T,
	ldb int, beta T, c []T, ldc int,
) {
	size := int(unsafe.Sizeof(alpha))
	p := &ws.args
	width := ts.lanes * ts.nv
	longest := kcMax
	if n <= narrow {
		longest = kcNarrow
	}
	step := 1 // terms that a kernel takes at a time
	if ts.pairs != nil {
		step = 2
	}
	kSteps := (k + step - 1) / step
	kBlocks := (kSteps + longest - 1) / longest
	kc := (kSteps + kBlocks - 1) / kBlocks
	nc := max(width, ncBytes/size/kc/width*width)

	split := splitRows(m, ts.mr)

	rsA := lda
	csA := 1
	if tA {
		rsA = 1
		csA = lda
	}
	p.alpha = bits(alpha)
	p.ldc = uintptr(ldc * size)
	for j0 := 0; j0 < n; j0 += nc {
		nb := min(nc, n-j0)
		for k0 := 0; k0 < k; k0 += step * kc {
			terms := min(step*kc, k-k0)
			kb := (terms + step - 1) / step
			p.k = kb
			p.mode = gemmUpdate
			p.beta = bits(T(1))
			if k0 == 0 {
				p.beta = bits(beta)
				if beta == 0 {
					p.mode = gemmScale
					if alpha == 1 {
						p.mode = gemmStore
					}
				}
			}

			// B is used where it lies if its rows are panels already, or if A has
			// too few rows to repay the packing.
			inPlace := !ts.pack && ts.pairs == nil && !tB && (ldb*size <= 256 || m <= 2*ts.mr)
			tail := nb % width // a panel that is not a multiple of vectors is always packed
			if inPlace && tail%ts.lanes == 0 {
				tail = 0
			}
			packed := nb
			if inPlace {
				packed = tail
			}
			if packed > 0 {
				panels := (packed + width - 1) / width
				ws.b = grow(ws.b, panels*width*kb)
				if ts.pairs != nil {
					packPairsB(ts.pairs, ws, tB, b, ldb, k0, j0, terms, nb, width, ts.lanes)
				} else {
					packB(ws.b, tB, b, ldb, k0, j0+nb-packed, kb, packed, width, ts.lanes)
				}
			}

			mTiles := max(1, mcBytes/size/(kb*split.maxRows()))
			if nb <= width && ts.pairs == nil {
				mTiles = split.tiles
			}
			for t0 := 0; t0 < split.tiles; t0 += mTiles {
				t1 := min(split.tiles, t0+mTiles)
				// Tall tiles read rows of A that fall into the same sets of the
				// cache if they lie a power of two apart.
				packA := ts.pack || ts.mr > 8 && !tA && lda*size%2048 == 0 && nb > width
				// What is read of A, from which row, and the steps to the next row and column.
				block := a[k0*csA:]
				from := 0
				rs := rsA
				cs := csA
				switch {
				case ts.pairs != nil:
					from = split.first(t0)
					block, rs, cs = packPairsA(ts.pairs, ws, tA, a, lda, from, split.first(t1), k0, terms)
					packA = false
				case packA:
					ws.a = grow(ws.a, (t1-t0)*(split.maxRows()*kb+tilePad))
					packTiles(ws.a, a, rsA, csA, split, t0, t1, k0, kb)
				}
				for j := 0; j < nb; j += width {
					w := min(width, nb-j)
					nv := (w + ts.lanes - 1) / ts.lanes
					if j < nb-packed {
						p.b = unsafe.Pointer(&b[k0*ldb+j0+j])
						p.ldb = uintptr(ldb * size)
					} else {
						p.b = unsafe.Pointer(&ws.b[(j-(nb-packed))*kb])
						p.ldb = uintptr(nv * ts.lanes * size)
					}
					p.cols = w
					setMask(p, w-(nv-1)*ts.lanes, ts.lanes, size)
					perCall := max(1, callFlops/(2*split.maxRows()*width*kb))
					for t := t0; t < t1; {
						rows, end := split.run(t, t1)
						i := split.first(t)
						p.tiles = min(end-t, perCall)
						next := t + p.tiles
						if packA {
							p.a = unsafe.Pointer(&ws.a[(i-split.first(t0))*kb+(t-t0)*tilePad])
							p.rsA = uintptr(size)
							p.csA = uintptr(rows * size)
							p.aStep = uintptr((rows*kb + tilePad) * size)
						} else {
							p.a = unsafe.Pointer(&block[(i-from)*rs])
							p.rsA = uintptr(rs * size)
							p.csA = uintptr(cs * size)
							p.aStep = uintptr(rows * rs * size)
						}
						// Prefetch the rows of Aᵀ to come, or the next tile if the
						// tiles are contiguous.
						p.ahead = 0
						p.aheadStep = 0
						switch {
						case packA || !tA && rs == kb:
							p.ahead = p.aStep
							p.aheadStep = uintptr(rows * size)
						case tA:
							p.ahead = aheadRows * p.csA
							p.aheadStep = p.csA
						}
						p.c = unsafe.Pointer(&c[i*ldc+j0+j])
						if ts.whole && p.mask != 0 {
							runPartial(p, ts.kern[rows][nv-1], rows, nv*ts.lanes*size, w*size)
						} else {
							ts.kern[rows][nv-1](p)
						}
						t = next
					}
				}
			}
		}
	}
	// The pool must not keep the caller's matrices alive.
	p.a = nil
	p.b = nil
	p.c = nil
	runtime.KeepAlive(ws)
}

// runPartial runs a kernel that can only handle whole vectors where C has fewer
// columns: each tile is computed in a buffer. width and cols are in bytes.
func runPartial(p *gemmArgs, kern func(*gemmArgs), rows, width, cols int) {
	a := p.a
	c := p.c
	ldc := p.ldc
	row := func(r int) (buf, c0 []byte) {
		return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&p.buf), r*width)), cols),
			unsafe.Slice((*byte)(unsafe.Add(c, uintptr(r)*ldc)), cols)
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
// width columns, each kb rows below each other. The last panel is as wide as
// its columns need in whole vectors; what is left of it is zero.
func packB[T Float](dst []T, tB bool, b []T, ldb, k0, j0, kb, nb, width, lanes int) {
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
// columns w and beyond to zero.
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
// it may write up to 7 elements more after each row of dst; the later rows and
// the groups of 8 before then overwrite all of them but those after the end.
func transposeInto[T Float](dst []T, ldd int, src []T, lds, rows, n int, spill bool) {
	done := 0 // rows that the assembly has done, of columns k < n8
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
		from := 0
		if r < done {
			from = n8
		}
		s := src[r*lds:][:n]
		for k := from; k < n; k++ {
			dst[k*ldd+r] = s[k]
		}
	}
}

// tilePad is the number of elements between packed tiles, for what
// transposeInto spills.
const tilePad = 16

// packTiles copies tiles t0..t1 of op(A), columns k0..k0+kb, into dst: each tile
// is kb columns below each other, then tilePad elements.
func packTiles[T Float](dst, a []T, rsA, csA int, split rowSplit, t0, t1, k0, kb int) {
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
