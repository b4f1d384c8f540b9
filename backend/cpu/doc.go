// Package cpu is the engine that computes with the processor: float32 to train
// in, float64 to check gradients in, from one generic source.
//
// The mental model: a primitive is a flat loop over the rows of its destination.
// The engine cuts the rows into chunks and lets the caller and a few workers
// take one chunk after the other; within a chunk a vector kernel does the
// arithmetic. Everything else here is choosing the cut and the kernel.
//
// # Memory
//
// A tensor's buffer is a Go slice that starts on a cache line. A [backend.Arena]
// recycles buffers and handles, and scratch memory is kept, so a primitive allocates
// nothing for shapes that it has met before. SPECMATCH_DEBUG=1 finds uses of freed and
// of undefined memory.
//
// # Threads
//
// An engine has GOMAXPROCS workers, including the calling goroutine, or the number
// set by [Workers]. They start with the first primitive that is large enough to be
// worth waking them, and end when the engine is collected. Use an engine from one
// goroutine at a time; different engines are independent.
//
// # Determinism
//
// Chunks depend on shapes and on the pattern of a sparse matrix, not on the
// number of workers. Every element of a destination is computed within one
// chunk or, for reductions and for products with a long sum, from partial sums
// that are merged in order. Equal inputs therefore give equal bits for any
// number of workers. (A matrix product is cut into as many blocks of rows as the
// workers need, but its kernels compute each row by itself: see [kernels].)
//
// The last bits of results depend on the instruction set. It is the best one of the
// machine unless SPECMATCH_CPU names another: see package simd. [backend.Open] returns
// an error if the machine lacks the named one. It also returns an error for the engine
// cpu-bf16 ([BF16]) on a processor without AVX512_BF16; there is no silent, slow emulation.
//
// # How a step flows through memory
//
// Take the unsupervised GIN: 3 layers of 32 features, 512 graphs in two views,
// 24,000 nodes, so that an activation [N×32] is 3 MB. Written as primitives, a
// step makes some hundred passes over such matrices, which fit the third-level
// cache at best. The fused forms below do the same arithmetic in few passes.
//
// The batch. A goroutine of augment.Loader writes both views of the next
// mini-batch as one sparse matrix, graph after graph, first view 1, while this
// one trains. The engine uses the index slices where they are.
//
// The arena. The tape takes each value's buffer from the arena and frees all of them
// at the end of the step. Free lists are stacks of size classes. So the next step gets
// the same buffers, and an intermediate gradient gets one that was just freed and is
// still in cache. From the second or third step on nothing is allocated.
//
// GIN layers (fused_gin.go). Graphs are closed under message passing, so a block of
// whole graphs of one view can pass through a layer alone. A block has up to 384 rows
// of 32 features, or 48 KB a matrix. It goes through neighbour sums, product, bias and
// ReLU, product, bias and ReLU, sums for the readout and for batch norm: each matrix is
// written once, and read again from the second-level cache. Batch norm needs the
// statistics of a whole view, which is the only barrier; after it one more pass writes
// the output and the pooled rows. Backward runs over the same blocks in the same way:
// one pass for the sums of batch norm's gradient, a barrier, one for everything else.
// The first layer does not multiply a one-hot matrix: it sums rows of the weights.
//
// ResGCN layers (fused_gcn.go). They work in the same way, with blocks of 512 rows of
// 128 features. Batch norm comes first there, so a pass for its statistics and the
// barrier precede the pass that does the rest. Batch norm's output is not kept but
// computed again in backward. Layers of other shapes have batch norm and bias with ReLU
// in blocks (fused_norm.go).
//
// The losses (fused_contrast.go). NT-Xent and the Laplacian loss are functions of
// the same similarities S = U·Uᵀ [1024×1024]. Panels of 128 rows are multiplied,
// turned into exponentials and summed while they are in cache; the blocks of the
// two views are copied out for the Laplacian loss. Backward, a panel of the
// gradient with respect to S is computed from both losses, multiplied by U, and dropped.
// For more than 1024 graphs nothing of the size of S is kept. S is computed again in
// every pass (fused_contrast_tiles.go), but only half of it, as it is symmetric, so this
// takes no longer.
//
// Only the blocks of one operator run in parallel: in a layer those of both views, in
// the losses panels of rows and the two thresholds. The next free worker takes the next
// block, so cores of different speeds share the work. Results do not depend on which
// worker does what. Blocks depend on the graphs alone, and one worker computes a block
// from beginning to end. A block's contribution to a sum (a weight's gradient, a mean,
// a loss) is stored under the block's number; the sum is then added in that order.
//
// # Indices
//
// Index vectors are checked where they are used, not where they are made. An index
// out of range panics, possibly in a worker, where nobody can recover. Package graph
// validates what it loads.
package cpu
