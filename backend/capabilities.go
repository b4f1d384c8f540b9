package backend

import "github.com/specmatch/specmatch/tensor"

// Capabilities lists all that an engine may offer in addition to the primitives of
// [Backend]. What it does not offer is nil; no operator depends on any of it.
type Capabilities struct {
	Fused
	Rows     RowKeeper
	Recorder Recorder
	Meter    Meter
}

// Fused lists the chains of primitives that an engine offers as one call. Such a
// call can keep a block of rows in cache from the first primitive to the last. The
// chain is the definition; the call agrees with it up to rounding, obeys the rules
// of the package, and gives equal bits for any number of threads.
type Fused struct {
	Bias       BiasFuser
	Norm       NormFuser
	Messages   MessageFuser
	Statistics StatisticsTracker
	GIN        GINFuser
	GCN        GCNFuser
	Contrast   ContrastFuser
	Adam       AdamFuser
}

// CapabilitiesOf returns what an engine offers. This is the one place that finds
// out: a test fails for a type assertion on one of these interfaces anywhere else.
func CapabilitiesOf(be Backend) (c Capabilities) {
	c.Bias, _ = be.(BiasFuser)
	c.Norm, _ = be.(NormFuser)
	c.Messages, _ = be.(MessageFuser)
	c.Statistics, _ = be.(StatisticsTracker)
	c.GIN, _ = be.(GINFuser)
	c.GCN, _ = be.(GCNFuser)
	c.Contrast, _ = be.(ContrastFuser)
	c.Adam, _ = be.(AdamFuser)
	c.Rows, _ = be.(RowKeeper)
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

// NormFuser runs batch norm, followed by a ReLU if wanted, in one call each way.
type NormFuser interface {
	// NormOperands reports whether the engine takes [Norm].Bias and [Norm].Weights. Both
	// at once it need not take.
	NormOperands() (bias, weights bool)
	// NormForward computes Y, Mean and Var, and with Bias BiasedMean.
	NormForward(n *Norm)
	// NormBackward computes the gradients of a norm that NormForward computed
	// and that has not been changed since.
	NormBackward(n *Norm, g *NormGradients)
}

// RowKeeper reads and writes rows of a large matrix where they lie.
type RowKeeper interface {
	// LayerRows computes rows of a layer.
	LayerRows(l *RowsLayer)
	// PoolRows sets row g of sum and of largest [G×F] to the sum, in this order, and the
	// largest of each column of the rows k of x that rows[ptr[g]:ptr[g+1]] lists; zeros if there are
	// none.
	PoolRows(sum, largest, x *tensor.Tensor, rows, ptr *Indices)
}

// MessageFuser adds what nodes and edges send in one call.
type MessageFuser interface {
	// Messages sets y = A·x + self·x + c·w for A [R×C], x [C×F], c [R×K] and w [K×F],
	// which is the tables ws under one another.
	Messages(y *tensor.Tensor, a *CSR, x *tensor.Tensor, self float64, c *tensor.Tensor, ws []*tensor.Tensor)
	// MessagesBackward sets dx = Aᵀ·dy + self·dy, of the transpose at, and the tables dws
	// to the rows of cᵀ·dy; nil is not wanted.
	MessagesBackward(dx *tensor.Tensor, dws []*tensor.Tensor, dy *tensor.Tensor, at *CSR, self float64, c *tensor.Tensor)
}

// StatisticsTracker moves batch norm's running statistics in one call.
type StatisticsTracker interface {
	// TrackStatistics makes one update of the running mean and variance [1×F] for
	// each group of n > 0 rows, in order:
	//	running ← (1-momentum)·running + momentum·new,
	// where new is the group's row of mean, or its row of variance [G×F], times
	// n/(n-1) if n > 1.
	TrackStatistics(runningMean, runningVar, mean, variance *tensor.Tensor, groups *Indices, momentum float64)
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
	// ContrastTiles reports whether the engine takes a [Contrast] that keeps nothing of
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
	AdamAll(p, g, m, v []*tensor.Tensor, rate, step *tensor.Tensor, c AdamConfig)
}

// Recorder says whether [Backend.Capture] records, so that a replay hands the whole
// step to the device at once.
type Recorder interface{ Records() bool }

// Meter counts the work that an engine gives to its device. Divided by the device's
// rates of launches, copies and products it is a lower bound on the time.
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
