// Package backend defines the closed set of primitives that an engine must provide:
// what the operators of package autodiff are made of, on every device.
//
// The mental model: a [Backend] is a calculator with its own memory and one
// precision. A primitive takes its destination first, computes all of it, and
// never allocates; the caller owns allocation ([Backend.Alloc], [Backend.Free]).
// The package's sub-packages are the engines: ref (naive float64 loops, the
// definition of every primitive), cpu, and cuda. All pass the one conformance
// suite in backendtest.
//
// # Rules that every primitive obeys
//
//   - Shapes are checked; a wrong one panics with *[tensor.ShapeError].
//   - The destination may be the same tensor as an input of an elementwise
//     primitive ([Backend.Unary], [Backend.Binary], the Row, Col and Scalar
//     forms, [Backend.Affine], [Backend.Axpby]). Everywhere else it must not be.
//   - Old contents of the destination, NaN included, never reach the result
//     (except where a formula names dst on its right side).
//   - Reductions run in an order that depends on shapes only. Equal inputs give
//     equal bits, for any number of threads.
//   - Denormal numbers are numbers: no engine flushes them to zero.
//   - Nothing leaves the device: scalars are 1×1 tensors. Only the methods that
//     have host memory as an argument or a result move data, and only Download
//     and [Pending] wait. That is what lets a whole training step be recorded
//     ([Backend.Capture]) and replayed.
//   - Rows at the end of a matrix that are in no segment are padding: sums over
//     segments leave them out.
package backend

import "github.com/specmatch/specmatch/tensor"

// UnaryOp names an elementwise function of one argument.
type UnaryOp uint8

// The unary functions, with the value that every engine returns at a kink or a pole.
const (
	Exp        UnaryOp = iota // e^x
	Log                       // ln x; -Inf at 0, NaN below
	Sqrt                      // √x; NaN below 0
	Sigmoid                   // 1/(1+e^-x)
	Softplus                  // ln(1+e^x), without overflow
	Tanh                      // tanh x
	ReLU                      // max(x, 0); NaN stays NaN
	Abs                       // |x|
	Sign                      // -1, 0, 1; NaN stays NaN
	Reciprocal                // 1/x
	InvSqrt                   // x^-1/2 where x ≥ [LeastDegree], else 0, also for NaN
	numUnary
)

// BinaryOp names an elementwise function of two arguments.
type BinaryOp uint8

// The binary functions.
const (
	Add     BinaryOp = iota // a + b
	Sub                     // a - b
	Mul                     // a·b
	Div                     // a/b
	Max                     // the larger; NaN if either is
	Greater                 // 1 if a > b, else 0; 0 if either is NaN
	Gate                    // a where b > 0, else 0: the VJP of ReLU
	numBinary
)

// RowOp names a reduction of each row to one number.
type RowOp uint8

// The row reductions of [Backend.ReduceRows].
const (
	RowSum RowOp = iota // Σ_j a_ij; 0 for no columns
	RowMax              // max_j a_ij; -Inf for no columns; NaN if any is
	// RowLogSumExp is ln Σ_j e^a_ij, with the maximum subtracted: -Inf for no columns or
	// all -Inf, +Inf if any is.
	RowLogSumExp
	numRow
)

// Indices is a read-only vector of int32 held by an engine. Host is the slice that
// it was made from; it must not change while the Indices are in use.
//
// A vector of segment pointers, often named ptr, delimits rows: segment g has the rows
// ptr[g] ≤ i < ptr[g+1]. G segments take G+1 pointers, and the first pointer is 0.
type Indices struct {
	Host []int32
	Buf  tensor.Buffer
}

// Len returns the number of indices.
func (x *Indices) Len() int { return len(x.Host) }

// CSR is a sparse matrix [Rows×Cols] in compressed sparse rows, held by an
// engine: row i has the columns Col[Ptr[i]:Ptr[i+1]] and the values of the same
// range of Val, or ones if Val is nil. Val is a tensor [nnz×1]. Entries of Col and
// Val from the last pointer on are ignored.
type CSR struct {
	Rows, Cols int
	Ptr, Col   *Indices
	Val        *tensor.Tensor
}

// AdamConfig holds the constants of one Adam update (Kingma and Ba 2015).
type AdamConfig struct {
	Beta1, Beta2, Eps float64
	WeightDecay       float64 // L2 added to the gradient, as torch.optim.Adam's
}

// Backend is an engine: memory of one precision on one device, and the
// primitives on it. An engine is used from one goroutine; it may use many
// inside.
type Backend interface {
	// Name returns the engine's name: "cpu", "ref", "cuda".
	Name() string
	// Precision returns the format of all tensors of this engine.
	Precision() tensor.Precision

	// Alloc returns a tensor whose contents are undefined. Rows and cols may be
	// zero. It panics with *Error when memory runs out.
	Alloc(rows, cols int) *tensor.Tensor
	// Free releases the tensor. Using it afterwards is an error that the engine may
	// detect.
	Free(t *tensor.Tensor)
	// InUse returns the number of bytes that are allocated and not freed.
	InUse() int64
	// Upload sets dst from row-major host values, rounding to the precision.
	// Its length must be dst.Len().
	Upload(dst *tensor.Tensor, src []float64)
	// Upload32 is Upload from float32.
	Upload32(dst *tensor.Tensor, src []float32)
	// Download waits for all work on src and writes its values to dst, whose
	// length must be src.Len().
	Download(dst []float64, src *tensor.Tensor)
	// Fetch is Download without the wait, for a tensor of at most 32 elements. The
	// values are those at this point in the sequence of primitives; the caller reads
	// them later.
	Fetch(src *tensor.Tensor) Pending
	// Indices makes an index vector of the host slice.
	Indices(host []int32) *Indices
	// IndexBlock makes index vectors that are refilled together. They are adjacent in
	// memory, so an engine can move them with one transfer.
	IndexBlock(hosts [][]int32) []*Indices
	// UpdateIndices makes hosts[k], of the same length as xs[k], the contents and the
	// Host of xs[k]. The vector keeps its address, so a recorded step sees the new
	// contents.
	UpdateIndices(xs []*Indices, hosts [][]int32)
	// FreeIndices releases an index vector.
	FreeIndices(x *Indices)

	// Fill sets all of dst to v.
	Fill(dst *tensor.Tensor, v float64)
	// CopyBlock copies the block [rows×cols] of src that starts at (si, sj) to
	// the block of dst that starts at (di, dj).
	CopyBlock(dst *tensor.Tensor, di, dj int, src *tensor.Tensor, si, sj, rows, cols int)
	// Transpose sets dst [C×R] to the transpose of src [R×C].
	Transpose(dst, src *tensor.Tensor)
	// GatherRows sets row k of dst [K×F] to row idx[k] of src [N×F].
	GatherRows(dst, src *tensor.Tensor, idx *Indices)
	// FillDiagonal sets dst_ii = v on a square matrix and leaves the rest.
	FillDiagonal(dst *tensor.Tensor, v float64)

	// Unary sets dst = op(a), elementwise.
	Unary(dst *tensor.Tensor, op UnaryOp, a *tensor.Tensor)
	// Binary sets dst = op(a, b), elementwise on equal shapes.
	Binary(dst *tensor.Tensor, op BinaryOp, a, b *tensor.Tensor)
	// BinaryRow sets dst_ij = op(a_ij, row_j) for a row [1×F].
	BinaryRow(dst *tensor.Tensor, op BinaryOp, a, row *tensor.Tensor)
	// BinaryCol sets dst_ij = op(a_ij, col_i) for a column [N×1].
	BinaryCol(dst *tensor.Tensor, op BinaryOp, a, col *tensor.Tensor)
	// BinaryScalar sets dst_ij = op(a_ij, s) for a tensor s [1×1].
	BinaryScalar(dst *tensor.Tensor, op BinaryOp, a, s *tensor.Tensor)
	// Affine sets dst = alpha·a + c.
	Affine(dst *tensor.Tensor, alpha float64, a *tensor.Tensor, c float64)
	// Axpby sets dst = alpha·a + beta·b.
	Axpby(dst *tensor.Tensor, alpha float64, a *tensor.Tensor, beta float64, b *tensor.Tensor)

	// ReduceRows sets dst [N×1] to the reduction of every row of a [N×F].
	ReduceRows(dst *tensor.Tensor, op RowOp, a *tensor.Tensor)
	// ColSums sets dst [1×F] to the column sums of a [N×F].
	ColSums(dst, a *tensor.Tensor)
	// Dot sets dst [1×1] to Σ_ij a_ij·b_ij, or to Σ_ij a_ij if b is nil.
	Dot(dst, a, b *tensor.Tensor)
	// SegmentSum sets row g of dst [G×F] to Σ_{i=ptr[g]}^{ptr[g+1]-1} x_i for
	// x [N×F]; an empty segment gives zeros.
	SegmentSum(dst *tensor.Tensor, ptr *Indices, x *tensor.Tensor)
	// SegmentExpand sets row i of dst [N×F] to row g of x [G×F], where
	// ptr[g] ≤ i < ptr[g+1], and to zeros if it is after the last segment.
	SegmentExpand(dst *tensor.Tensor, ptr *Indices, x *tensor.Tensor)

	// Gemm sets dst = alpha·op(a)·op(b) + beta·dst, where op transposes if its
	// flag is set. With beta 0, dst is not read.
	Gemm(dst *tensor.Tensor, transA, transB bool, alpha float64, a, b *tensor.Tensor, beta float64)
	// SpMM sets dst = A·x + self·x for A [R×C] and x [C×F]; self must be 0
	// unless A is square.
	SpMM(dst *tensor.Tensor, a *CSR, x *tensor.Tensor, self float64)

	// UpperPercentile sets theta [1×1] to the p-th percentile ([PercentilePosition])
	// of the strict upper triangle of s [N×N]. If weights [N×N] is not nil it becomes
	// ∂theta/∂s: zero except at the one or two entries that theta interpolates.
	// With no entry (N < 2) theta is 0 and weights are zero. Among equal values
	// the entry first in row-major order comes first; -0 equals 0. Entries on
	// and below the diagonal do not matter; a NaN above it makes theta undefined.
	UpperPercentile(theta, weights, s *tensor.Tensor, p float64)
	// DropoutMask fills dst with 1/keep with probability keep, else 0. The
	// numbers depend on seed, the value of step [1×1] and the element only.
	DropoutMask(dst *tensor.Tensor, keep float64, seed uint64, step *tensor.Tensor)
	// Adam updates the parameters p and the moments m, v in place with gradient
	// g, exactly as torch.optim.Adam: with t = step [1×1] counting from 1 and
	// rate [1×1],
	//	m ← β₁m + (1-β₁)g,  v ← β₂v + (1-β₂)g²,
	//	p ← p - rate/(1-β₁ᵗ) · m / (√v/√(1-β₂ᵗ) + ε).
	//
	// If step is NaN, nothing changes. A caller that adds 0·loss to the step stops
	// training at the first loss that is not finite, without waiting for it.
	Adam(p, g, m, v, rate, step *tensor.Tensor, c AdamConfig)

	// Capture runs f and records the primitives that it calls, so that they can
	// be replayed on the same tensors. To record, an engine may call f once more
	// without effect on the device; an engine that does not record calls f at every
	// replay. So f must call the same primitives each time. It must not move data
	// (Upload, Download, Fetch, Indices, UpdateIndices): engines that record return
	// an error. Tensors that f allocates live no longer than the step.
	Capture(f func()) (Step, error)

	// Close releases the engine's memory. The engine, its tensors and its steps must
	// not be used afterwards.
	Close() error
}

// Pending is the result of a [Backend.Fetch], on its way from the device.
type Pending interface {
	// Values waits for the values and writes them to dst, of the tensor's length. It
	// must be called exactly once.
	Values(dst []float64)
}

// Step is a recorded sequence of primitives.
type Step interface {
	// Replay runs the sequence again.
	Replay() error
	// Close releases the recording's resources.
	Close() error
}
