// Package specmatch implements contrastive learning of graph embeddings with spectral graph alignment: the
// losses, the model and its training step.
//
// An encoder maps each of N graphs to a vector. Two augmented views of every graph give z¹, z² [N×D].
// [InfoNCE] pulls the two views of a graph together and pushes other graphs away. [LaplacianMatch] compares
// the *similarity graphs* that the views induce over the batch: L = L_C + β·‖L¹-L²‖²_F.
//
// A [Trained] encoder is saved to a file that contains everything to embed new graphs; [Open] needs nothing
// else.
//
// # Why the literal formula does not train, and how the soft one fails
//
// The paper thresholds similarities to 0 or 1. This has zero gradient almost everywhere, so β changes
// nothing: trained literally, SpecMatch-CL is the contrastive baseline, bit for bit. If L_C were summed over
// the batch, as in the paper, L_G would also be three orders of magnitude smaller. Here L_C is a mean and
// L_G is unscaled, which makes their gradients comparable at β ≈ 0.05-1.
//
// A sigmoid in place of the step has a gradient, but the model can cheat it: squeezing all cosines towards θ
// makes A constant in both views and L_G zero, while nothing is matched. The symptoms are a falling spread
// of S, opposing gradients of L_C and L_G, and an L_G with hard threshold that rises while the trained one
// falls. [Diagnose] and [Trainer] report all three every epoch. [SpreadSigmoid] measures κ in units of the
// spread, so that squeezing gains nothing. A straight-through estimator collapses the embeddings.
//
// Package theory explains what the paper's two theorems say about L_G, and where they hold.
package specmatch

import "math"

var negInf = math.Inf(-1)
