package simd

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/blas"
)

// GemmBF16 is [BLAS.Sgemm] with the numbers of A and B rounded to bfloat16, which has
// the exponents of float32 and 8 bits of fraction. It is about twice as fast. It panics
// if [BF16Error] is not nil.
//
// Its results are defined bit by bit. Both inputs are rounded to the nearest, ties
// to even, and subnormal numbers to 0, with their sign. The sum over k runs in
// blocks of equal even length, at most 1408 or 640 if n ≤ 64, except the last, in
// pairs of terms. A pair adds its second term, then its first, each with one rounding
// to float32, subnormal sums becoming 0; a last term without a partner is the first
// of a pair with 0·0. The block's sum, times alpha, is added to C as in Sgemm.
func GemmBF16(
	tA, tB blas.Transpose,
	m, n, k int,
	alpha float32,
	a []float32,
	lda int,
	b []float32,
	ldb int,
	beta float32, c []float32, ldc int,
) {
	if !checkGemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) {
		return
	}
	if err := BF16Error(); err != nil {
		panic(err.Error())
	}
	ws := pool32.Get().(*workspace[float32])
	gemm(
		ws, tilesBF16, tA != blas.NoTrans, tB != blas.NoTrans,
		m, n, k, alpha, a, lda, b, ldb, beta, c, ldc,
	)
	pool32.Put(ws)
}

// BF16Error returns why [GemmBF16] cannot run, or nil if it can.
func BF16Error() error {
	switch {
	case tilesBF16 == nil:
		return errors.New(
			"simd: bfloat16 products need a processor with AVX512_BF16 " +
				"(AMD Zen 4, Intel Cooper Lake or newer), and a build for amd64 without -tags noasm",
		)
	case level != AVX512:
		const format = "simd: bfloat16 products need the instruction set avx512, not %v: unset %s"
		return fmt.Errorf(format, level, EnvVar)
	}
	return nil
}

// pairing writes pairs of bfloat16, each in the 32 bits of a float32, the first in
// the lower half. Steps between rows and tiles are in bytes. A missing partner is 0.
// Up to 15 more pairs are written after each row.
type pairing struct {
	// along pairs neighbours in a row: dst[i·ldd + j] = (src[i·lds + 2j], src[i·lds + 2j+1])
	// for i < rows, 2j < n.
	along func(
		dst *float32, ldd uintptr, src *float32, lds uintptr, n, rows int,
	)
	// across pairs neighbours in a column, and cuts rows into tiles of 32 pairs:
	// dst[t·tile + i·ldd + j] = (src[2i·lds + 32t+j], src[(2i+1)·lds + 32t+j]) for 2i < rows,
	// 32t+j < n, j < 32.
	across func(
		dst *float32, tile, ldd uintptr, src *float32, lds uintptr, n, rows int,
	)
}

// pairPad is the number of pairs that a pairing may write beyond the end.
const pairPad = 15

// packPairsA writes rows i0 to i1-1 of op(A), terms k0 to k0+terms-1, in pairs, to ws.a. It
// returns them, and the steps to the next row and pair.
func packPairsA[T Float](
	x *pairing, ws *workspace[T], tA bool, a []T, lda, i0, i1, k0, terms int,
) (block []T, rs, cs int) {
	rows := i1 - i0
	pairs := (terms + 1) / 2
	if tA {
		ws.a = grow(ws.a, rows*pairs+pairPad)
		x.across(
			at(ws.a, 0), 4*32, uintptr(4*rows),
			at(a, k0*lda+i0), uintptr(4*lda), rows, terms,
		)
		return ws.a, 1, rows
	}
	rs = pairs
	if rs%512 == 0 {
		rs += 16 // rows a power of two apart fall into the same sets of the cache
	}
	ws.a = grow(ws.a, rows*rs+pairPad)
	x.along(
		at(ws.a, 0), uintptr(4*rs), at(a, i0*lda+k0),
		uintptr(4*lda), terms, rows,
	)
	return ws.a, rs, 1
}

// packPairsB is packB for pairs: terms k0 to k0+terms-1 and columns j0 to j0+nb-1 of op(B), to ws.b.
func packPairsB[T Float](
	x *pairing,
	ws *workspace[T],
	tB bool,
	b []T,
	ldb, k0, j0, terms, nb, width, lanes int,
) {
	pairs := (terms + 1) / 2
	for j := 0; j < nb; j += width {
		w := min(width, nb-j)
		if !tB && w == width { // all whole panels, some rows at a time
			w = (nb - j) / width * width
			rows := max(2, 2*chunk/w&^1)
			tile := uintptr(4 * width * pairs)
			for k := 0; k < terms; k += rows {
				dst := at(ws.b, j*pairs+k/2*width)
				src := at(b, (k0+k)*ldb+j0+j)
				x.across(
					dst, tile, uintptr(4*width), src,
					uintptr(4*ldb), w, min(rows, terms-k),
				)
			}
			j += w - width
			continue
		}
		wp := (w + lanes - 1) / lanes * lanes
		panel := ws.b[j*pairs:][:wp*pairs]
		if !tB {
			x.across(
				at(panel, 0), 0, uintptr(4*wp),
				at(b, k0*ldb+j0+j), uintptr(4*ldb), w, terms,
			)
			continue
		}
		ws.a = grow(ws.a, w*pairs+pairPad)
		x.along(
			at(ws.a, 0), uintptr(4*pairs),
			at(b, (j0+j)*ldb+k0), uintptr(4*ldb), terms, w,
		)
		packTrans(panel, ws.a, pairs, pairs, w, wp)
	}
}
