// Package simd holds the inner loops of the CPU engine: matrix products behind
// gonum's BLAS interface ([BLAS]), and functions on slices for everything else
// that touches every element. All are single-threaded; the engine above decides
// what runs in parallel.
//
// The mental model: one Go function for each operation, generic over float32 and
// float64, says what is computed, checks lengths, and cuts the work into pieces.
// Under it lie up to three implementations of one piece: a plain loop in the
// same file, and assembly for the instruction sets of the machine. Matrices are
// row-major and contiguous.
//
//	var b simd.BLAS
//	b.Sgemm(blas.NoTrans, blas.NoTrans, m, n, k, 1, x, k, w, n, 0, y, n)
//	simd.AddRowReLU(y, y, bias)
//
// # Which implementation runs
//
// The best that the processor has, chosen once at start-up. The environment
// variable SPECMATCH_CPU (avx512, avx2, neon, generic) asks for another; if that
// is not available the best one runs anyway and [LevelError] says so, for
// an engine to report. [Level] tells which it is.
//
//	build                        matrix products              the rest
//	amd64                        AVX-512, AVX2+FMA, plain Go  float32 alike; float64 plain Go
//	arm64                        NEON, plain Go               float32 alike; float64 plain Go
//	others, or with -tags noasm  plain Go                     plain Go
//
// # Promises on the results
//
//   - Equal arguments give equal bits on one machine, wherever the slices lie:
//     no kernel looks at alignment.
//   - Elementwise: an element's result depends on that element alone. Cutting a
//     slice or a matrix of rows anywhere changes nothing. This holds for the
//     matrix product too, see [BLAS.Sgemm], and for [SpMM].
//   - Reductions have an order that depends on the length alone: see [Sum] and
//     [ColSums].
//   - AVX-512, AVX2 and NEON give equal bits in float32. Plain Go rounds
//     products differently, has other exponentials, and agrees within a few units
//     in the last place.
//   - NaN and Inf follow the rules of IEEE 754, denormal numbers are not flushed to
//     zero, except by [GemmBF16], and nothing outside the slices is read or written.
//
// A destination may be the same slice as an input of an elementwise function;
// they must not overlap otherwise. No function allocates, once the buffers of
// products have grown to the sizes in use.
//
// # How the matrix product works
//
// It is Goto's scheme (Goto and van de Geijn 2008) with one difference: A is
// read where it lies, through two strides, so that Aᵀ·B, the weights' gradient
// with its 15000-long sums, costs no packing. A tile of C, 14×32 float32 on
// AVX-512 and 6×16 on AVX2 and NEON, stays in registers for up to 704 steps of k;
// B is packed into panels as wide as a tile, unless its rows are no longer than
// that. The rows of C are dealt evenly to tiles of similar height, for which there is a
// kernel each, so there are no slow edges.
//
// Products of bfloat16 ([GemmBF16]) run through the same blocks: a number of the tiles is
// then a pair of terms, which are rounded when A and B are packed.
//
// Assembly cannot be interrupted by the scheduler. The pieces are therefore cut
// so that the longest takes less than 100 µs, whatever the sizes.
//
// # Adding a kernel
//
// The assembly is written by the program in gen, from one description for all
// instruction sets; go generate runs it, and a test fails if its output is not
// what is committed. For an elementwise kernel:
//
//  1. add it to the list in gen/kernels.go, with its formula;
//  2. run go generate, which also declares it for every build;
//  3. add the function with its plain loop to vec.go or rows.go;
//  4. add a line to the table of TestElementwise or TestRowsAndCols, which
//     compares it with float64 at all lengths, offsets and special values, on
//     every instruction set, with guard words around the output;
//  5. add the hash of its results, which TestVectorBits prints, to the table there:
//     every instruction set must give it.
package simd

//go:generate go run ./gen
