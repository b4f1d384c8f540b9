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
	// every block of K. Longer blocks write C less often; 256 rows of a panel
	// of 32 float32 are 32 KiB.
	kcMax = 256
	// ncBytes bounds a packed block of B.
	ncBytes = 512 << 10
	// mcBytes bounds a block of A.
	mcBytes = 192 << 10
	// callFlops bounds the work of one assembly call, which the Go scheduler
	// cannot interrupt: about 40 µs at 100 GFLOP/s.
	callFlops = 4 << 20
)

// Values of gemmArgs.mode: what becomes of the finished sums.
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
	b           unsafe.Pointer // the panel of B
	ldb         uintptr        // step to the next row of the panel
	c           unsafe.Pointer // C[0,0] of the first tile
	ldc         uintptr        // step to the next row of C
	k           int            // length of the sums, at least 1
	tiles       int            // number of tiles, at least 1; the kernel counts it down
	mode        int            // gemmStore, gemmScale or gemmUpdate
	cols        int            // columns of C in this panel, at least 1
	mask        uint64         // AVX-512: valid lanes of the last vector; AVX2: 0 if all are
	maskVec     unsafe.Pointer // AVX2: valid lanes as a vector
	alpha, beta uint64         // bits of the factors in the element type
}

// tileSet is the tile kernels of one instruction set and element type.
type tileSet struct {
	mr    int                    // rows of the largest tile
	lanes int                    // columns of a vector
	nv    int                    // vectors of a full panel
	pack  bool                   // whether A and B must always be packed
	kern  [][2]func(p *gemmArgs) // by rows, then by vectors-1
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

// gemm sets C = beta·C + alpha·op(A)·op(B) for checked arguments with m, n, k >
// 0 and alpha ≠ 0. Element (i, j) is a function of row i of op(A), column j of
// op(B), its old value and the factors alone: a plain sum in the order of k,
// restarted at every block of K, whose length depends on k only.
func gemm[T Float](ws *workspace[T], ts *tileSet, tA, tB bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	size := int(unsafe.Sizeof(alpha))
	p := &ws.args
	width := ts.lanes * ts.nv
	kBlocks := (k + kcMax - 1) / kcMax
	kc := (k + kBlocks - 1) / kBlocks
	nc := max(width, ncBytes/size/kc/width*width)

	// Rows are dealt evenly to as few tiles as possible: tall tiles of h+1 rows,
	// then the rest of h.
	tiles := (m + ts.mr - 1) / ts.mr
	h, tall := m/tiles, m%tiles
	firstRow := func(t int) int { return t*h + min(t, tall) }
	maxH := h
	if tall > 0 {
		maxH++
	}

	rsA, csA := lda, 1
	if tA {
		rsA, csA = 1, lda
	}
	p.alpha = bits(alpha)
	p.ldc = uintptr(ldc * size)
	for j0 := 0; j0 < n; j0 += nc {
		nb := min(nc, n-j0)
		for k0 := 0; k0 < k; k0 += kc {
			kb := min(kc, k-k0)
			p.k = kb
			p.mode, p.beta = gemmUpdate, bits(T(1))
			if k0 == 0 {
				p.beta = bits(beta)
				if beta == 0 {
					p.mode = gemmScale
					if alpha == 1 {
						p.mode = gemmStore
					}
				}
			}

			// B is used where it lies if its rows are panels already, or if too
			// few rows of A would repay the packing.
			inPlace := !ts.pack && !tB && (nb == width && ldb <= 2*width || m <= 2*ts.mr)
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
				packB(ws.b, tB, b, ldb, k0, j0+nb-packed, kb, packed, width, ts.lanes)
			}

			mTiles := max(1, mcBytes/size/(kb*maxH))
			if nb <= width {
				mTiles = tiles
			}
			for t0 := 0; t0 < tiles; t0 += mTiles {
				t1 := min(tiles, t0+mTiles)
				packA := ts.pack
				if packA {
					ws.a = grow(ws.a, (t1-t0)*maxH*kb)
					packTiles(ws.a, a, rsA, csA, firstRow, t0, t1, k0, kb)
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
					perCall := max(1, callFlops/(2*maxH*width*kb))
					for t := t0; t < t1; {
						rows, end := h+1, min(t1, tall)
						if t >= tall {
							rows, end = h, t1
						}
						i := firstRow(t)
						p.tiles = min(end-t, perCall)
						next := t + p.tiles
						if packA {
							p.a = unsafe.Pointer(&ws.a[(i-firstRow(t0))*kb])
							p.rsA, p.csA = uintptr(size), uintptr(rows*size)
							p.aStep = uintptr(rows * kb * size)
						} else {
							p.a = unsafe.Pointer(&a[i*rsA+k0*csA])
							p.rsA, p.csA = uintptr(rsA*size), uintptr(csA*size)
							p.aStep = uintptr(rows * rsA * size)
						}
						p.c = unsafe.Pointer(&c[i*ldc+j0+j])
						ts.kern[rows][nv-1](p)
						t = next
					}
				}
			}
		}
	}
	// The pool must not keep the caller's matrices alive.
	p.a, p.b, p.c = nil, nil, nil
	runtime.KeepAlive(ws)
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
	// Eight columns at a time: each panel row is then written in whole pieces.
	j := 0
	for ; j+8 <= w; j += 8 {
		b0, b1, b2, b3 := b[j*ldb:][:kb], b[(j+1)*ldb:][:kb], b[(j+2)*ldb:][:kb], b[(j+3)*ldb:][:kb]
		b4, b5, b6, b7 := b[(j+4)*ldb:][:kb], b[(j+5)*ldb:][:kb], b[(j+6)*ldb:][:kb], b[(j+7)*ldb:][:kb]
		for k := range b0 {
			d := panel[k*wp+j:][:8]
			d[0], d[1], d[2], d[3] = b0[k], b1[k], b2[k], b3[k]
			d[4], d[5], d[6], d[7] = b4[k], b5[k], b6[k], b7[k]
		}
	}
	for ; j < w; j++ {
		for k, v := range b[j*ldb:][:kb] {
			panel[k*wp+j] = v
		}
	}
}

// packTiles copies tiles t0..t1 of op(A), columns k0..k0+kb, into dst: each
// tile is kb columns below each other.
func packTiles[T Float](dst, a []T, rsA, csA int, firstRow func(int) int, t0, t1, k0, kb int) {
	for t := t0; t < t1; t++ {
		i, rows := firstRow(t), firstRow(t+1)-firstRow(t)
		tile := dst[:rows*kb]
		dst = dst[rows*kb:]
		for r := range rows {
			src := a[(i+r)*rsA+k0*csA:]
			for k := range kb {
				tile[k*rows+r] = src[k*csA]
			}
		}
	}
}
