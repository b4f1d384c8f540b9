// Package pretext holds the pretext tasks with which contrastive pre-training is
// compared in transfer learning: something is hidden from an encoder, or made up,
// and the encoder learns to tell.
//
// The mental model: a [Task] owns the encoder and whatever it needs besides, and
// makes a loss of a batch of unchanged graphs. [specmatch.Minimize] does the rest.
//
//	task := pretext.NewEdgePrediction(encoder)
//	adam := optim.NewAdam(be, task.Parameters(), 1e-3)
//	for _, batch := range loader.Epoch(ctx, epoch) {
//		loss, ok, err := specmatch.Minimize(tape, task, adam, func() *autodiff.Var {
//			return task.Loss(batch, tape, rng)
//		})
//	}
//
// The tasks are those of Hu et al. (2020) as their code runs them:
//
//   - [EdgePrediction]: is there an edge between two nodes? (after GraphSAGE)
//   - [NodeMasking] and [EdgeMasking]: which category did a masked one have?
//   - [Infomax]: does a node belong to this graph? (Deep Graph Infomax)
//   - [ContextPrediction]: do a neighbourhood and its surroundings belong together?
//
// W. Hu, B. Liu, J. Gomes, M. Zitnik, P. Liang, V. Pande, J. Leskovec, Strategies
// for pre-training graph neural networks, ICLR 2020.
package pretext

import (
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Task is a pretext task.
type Task interface {
	// Parameters and Buffers are those of the encoder and of what the task adds.
	nn.Module
	// Loss returns the loss [1×1] of a batch of graphs in one view, or nil if
	// there is nothing in it to learn from. Random choices are drawn from rng.
	// The batch may be changed, and must not be afterwards until the tape's Reset.
	Loss(b *graph.Batch, t *autodiff.Tape, rng *rand.Rand) *autodiff.Var
}

// isTrue and isFalse are the means of -ln σ(s) and of -ln(1-σ(s)) over logits.
func isTrue(s *autodiff.Var) *autodiff.Var  { return s.Scale(-1).Softplus().Mean() }
func isFalse(s *autodiff.Var) *autodiff.Var { return s.Softplus().Mean() }

// rowDots returns the products [N×1] of corresponding rows.
func rowDots(a, b *autodiff.Var) *autodiff.Var { return a.Mul(b).RowSums() }

// shifted returns 1, 2, …, n-1, 0: each graph's partner as a negative.
func shifted(n int) []int32 {
	idx := make([]int32, n)
	for i := range idx {
		idx[i] = int32((i + 1) % n)
	}
	return idx
}

// sample returns k different numbers below n, in random order.
func sample(rng *rand.Rand, n, k int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := range k {
		j := i + rng.IntN(n-i)
		p[i], p[j] = p[j], p[i]
	}
	return p[:k]
}

// maskedShare is the share of nodes or edges that the masking tasks hide.
const maskedShare = 0.15

// masked returns how many of n are hidden: one more than the share, rounded down.
func masked(n int) int { return min(n, int(maskedShare*float64(n))+1) }
