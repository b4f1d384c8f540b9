package backend

import "github.com/specmatch/specmatch/tensor"

// Capabilities lists what an engine may offer in addition to the primitives of
// [Backend]. Each is nil if the engine lacks it; no operator requires any of them.
type Capabilities struct {
	Fused
	Rows     RowKeeper
	Narrow   NarrowDownloader
	Blocks   BlockCopier
	Recorder Recorder
	Meter    Meter
}

// Fused lists the chains of primitives that an engine offers as one call. Such a
// call can keep a block of rows in cache from the first primitive to the last. The
// chain is the definition. The call agrees with it up to rounding, obeys the rules
// of the package, and gives equal bits for any number of threads.
type Fused struct {
	Bias       BiasFuser
	Unit       UnitFuser
	Norm       NormFuser
	Messages   MessageFuser
	Statistics StatisticsTracker
	GIN        GINFuser
	GCN        GCNFuser
	Contrast   ContrastFuser
	Adam       AdamFuser
}

// CapabilitiesOf returns what an engine offers. Only this function asserts these
// interfaces: a test fails for a type assertion on one of them anywhere else.
func CapabilitiesOf(be Backend) (c Capabilities) {
	c.Bias, _ = be.(BiasFuser)
	c.Unit, _ = be.(UnitFuser)
	c.Norm, _ = be.(NormFuser)
	c.Messages, _ = be.(MessageFuser)
	c.Statistics, _ = be.(StatisticsTracker)
	c.GIN, _ = be.(GINFuser)
	c.GCN, _ = be.(GCNFuser)
	c.Contrast, _ = be.(ContrastFuser)
	c.Adam, _ = be.(AdamFuser)
	c.Rows, _ = be.(RowKeeper)
	c.Narrow, _ = be.(NarrowDownloader)
	c.Blocks, _ = be.(BlockCopier)
	c.Recorder, _ = be.(Recorder)
	c.Meter, _ = be.(Meter)
	return c
}

// BiasFuser adds a bias and clips in one call.
type BiasFuser interface {
	// BiasReLU sets y = max(x + b, 0) for x [N×F] and the row b [1×F].
	BiasReLU(y, x, b *tensor.Tensor)
	// BiasReLUBackward sets dx to dy where y > 0 and 0 elsewhere, and db [1×F]
	// to the column sums of dx.
	BiasReLUBackward(dx, db, dy, y *tensor.Tensor)
}

// UnitFuser gives rows the length 1 in one call each way.
type UnitFuser interface {
	// Normalize sets y_i = x_i/r_i for the rows of x [N×F], and r [N×1] to their lengths, but at
	// least floor.
	Normalize(y, r, x *tensor.Tensor, floor float64)
	// NormalizeBackward sets dx_i to (dy_i - (dy_i·y_i)·y_i)/r_i where r_i > floor, else to dy_i/r_i.
	NormalizeBackward(dx, dy, y, r *tensor.Tensor, floor float64)
}

// NormFuser runs batch norm, followed by a ReLU if wanted, in one call each way.
type NormFuser interface {
	// NormOperands reports whether the engine supports [Norm].Bias and [Norm].Weights. It
	// need not support both at once.
	NormOperands() (bias, weights bool)
	// NormForward computes Y, Mean and Var, and BiasedMean if there is a bias.
	NormForward(n *Norm)
	// NormBackward computes the gradients of a norm that NormForward computed
	// and that has not been changed since.
	NormBackward(n *Norm, g *NormGradients)
}

// RowKeeper reads and writes rows of a large matrix in place.
type RowKeeper interface {
	// LayerRows computes rows of a layer.
	LayerRows(l *RowsLayer)
	// PoolRows pools, for each g, the rows of x that rows[ptr[g]:ptr[g+1]] lists. Row g of
	// sum [G×F] becomes their sum, added in this order, and row g of largest [G×F] the
	// maximum of each column. Both are zeros if the list is empty.
	PoolRows(sum, largest, x *tensor.Tensor, rows, ptr *Indices)
}

// NarrowDownloader reads values as they are. Only engines of float32 have its method called.
type NarrowDownloader interface {
	// Download32 copies src, which is of float32, to the host.
	Download32(dst []float32, src *tensor.Tensor)
}

// Block is a block of Rows×Cols elements, from row SI and column SJ of Src to row DI and column DJ
// of Dst.
type Block struct {
	Dst        *tensor.Tensor
	DI, DJ     int
	Src        *tensor.Tensor
	SI, SJ     int
	Rows, Cols int
}

// BlockCopier copies many blocks in one call.
type BlockCopier interface {
	// CopyBlocks copies blocks in any order. No target overlaps with another block.
	CopyBlocks(blocks []Block)
}

// CopyBlocks copies blocks, in one call where the engine can. No target overlaps with another block.
func CopyBlocks(be Backend, blocks []Block) {
	if copier := CapabilitiesOf(be).Blocks; copier != nil && len(blocks) > 1 {
		copier.CopyBlocks(blocks)
		return
	}
	for _, b := range blocks {
		be.CopyBlock(
			b.Dst, b.DI, b.DJ,
			b.Src, b.SI, b.SJ,
			b.Rows, b.Cols,
		)
	}
}

// MessageFuser sums the messages of nodes and edges in one call.
type MessageFuser interface {
	// Messages sets y = A·x + self·x + c·w for A [R×C], x [C×F], c [R×K] and w [K×F],
	// the tables ws stacked row-wise.
	Messages(
		y *tensor.Tensor,
		a *CSR,
		x *tensor.Tensor,
		self float64,
		c *tensor.Tensor,
		ws []*tensor.Tensor,
	)
	// MessagesBackward sets dx = Aᵀ·dy + self·dy, where at is Aᵀ, and the tables dws
	// to the rows of cᵀ·dy. A gradient that is nil is not computed.
	MessagesBackward(
		dx *tensor.Tensor,
		dws []*tensor.Tensor,
		dy *tensor.Tensor,
		at *CSR,
		self float64,
		c *tensor.Tensor,
	)
}

// StatisticsTracker moves batch norm's running statistics in one call.
type StatisticsTracker interface {
	// TrackStatistics makes one update of the running mean and variance [1×F] for
	// each group of n > 0 rows, in order:
	//	running ← (1-momentum)·running + momentum·new,
	// where new is the group's row of mean, or its row of variance [G×F], times
	// n/(n-1) if n > 1.
	TrackStatistics(
		runningMean, runningVar, mean, variance *tensor.Tensor,
		groups *Indices,
		momentum float64,
	)
}

// GINFuser runs a layer of GIN in one call each way.
type GINFuser interface {
	// GINForward computes the layer.
	GINForward(l *GINLayer)
	// GINBackward computes the gradients of a layer that GINForward computed
	// and that has not been changed since.
	GINBackward(l *GINLayer, g *GINGradients)
}

// GCNFuser runs batch norm, a graph convolution and ReLU in one call each way.
type GCNFuser interface {
	// GCNForward computes the layer.
	GCNForward(l *GCNLayer)
	// GCNBackward computes the gradients of a layer that GCNForward computed
	// and that has not been changed since.
	GCNBackward(l *GCNLayer, g *GCNGradients)
}

// ContrastFuser runs the losses of contrastive training in one call each way.
type ContrastFuser interface {
	// ContrastTiles reports whether the engine supports a [Contrast] that keeps nothing of
	// the size of S.
	ContrastTiles() bool
	// ContrastForward computes the losses.
	ContrastForward(c *Contrast)
	// ContrastBackward sets du to the gradient with respect to U of
	// dc·LossC + dg·LossG; nil stands for 0.
	ContrastBackward(c *Contrast, dc, dg, du *tensor.Tensor)
}

// AdamFuser updates many parameters in one call.
type AdamFuser interface {
	// SquaredNorm sets sum [1×1] to the sum of the squares of all elements of all
	// tensors.
	SquaredNorm(sum *tensor.Tensor, ts []*tensor.Tensor)
	// AdamAll is [Backend.Adam] on p[k], g[k], m[k] and v[k] for every k.
	AdamAll(
		p, g, m, v []*tensor.Tensor, rate, step *tensor.Tensor, c AdamConfig,
	)
}

// Recorder reports whether [Backend.Capture] records: a replay then hands the whole
// step to the device at once.
type Recorder interface{ Records() bool }

// Meter counts the work that an engine gives to its device. Divided by the device's
// rates of launches, copies and products, it bounds the time from below.
type Meter interface{ Work() Work }

// Work is an amount of work, without transfers between host and device.
type Work struct {
	Launches int   // of kernels and of products
	Bytes    int64 // of the operands of every launch, each read or written once
	Flops    int64 // of products of matrices, those within kernels included
}

// Add adds n times other.
func (w *Work) Add(n int, other Work) {
	w.Launches += n * other.Launches
	w.Bytes += int64(n) * other.Bytes
	w.Flops += int64(n) * other.Flops
}
