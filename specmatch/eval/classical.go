package eval

import (
	"context"
	"slices"
	"sync"

	"github.com/specmatch/specmatch/gnn/classical"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/kernel"
)

// HoldOutKernels is the protocol of the kernel literature (TUDataset's evaluation): folds
// without regard to class, the kernel and C by accuracy on a tenth of the training part,
// which is not added back. It is for [Classical] kernels alone.
const HoldOutKernels Protocol = "holdout"

// Classical evaluates features of package classical, of graphs in a fixed order. Its methods
// may be called concurrently.
type Classical struct {
	Features classical.Features

	mu      sync.Mutex
	kernels []*kernel.Matrix
	sparse  []*kernel.Sparse
}

// Prepare computes what a protocol needs of the features of a kernel, unless it is there.
func (c *Classical) Prepare(p Protocol) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.Features.Rounds == nil:
	case p == Linear && c.sparse == nil:
		c.sparse = c.Features.Sparse()
	case p != Linear && c.kernels == nil:
		c.kernels = c.Features.Kernels()
	}
}

// Evaluate returns the accuracy in cross-validation, with y the classes 0..C-1. How many
// rounds a kernel has is chosen with C. Kernels are normalised, and given to a C-SVM, or
// their features to a linear one under [Linear]; vectors are evaluated as by
// [Protocol.Accuracy]. The result is nil for vectors under [HoldOutKernels].
func (c *Classical) Evaluate(
	ctx context.Context, p Protocol, y []int, folds int, seed uint32, opt Options,
) (*Result, error) {
	f := &c.Features
	if f.Rounds == nil {
		if p == HoldOutKernels {
			return nil, nil
		}
		return p.Accuracy(ctx, f.X, y, folds, seed, opt)
	}
	outer, err := dataset.StratifiedKFold(y, folds, true, seed)
	if err != nil {
		return nil, err
	}
	var held []dataset.Fold
	if p == HoldOutKernels {
		outer = dataset.KFold(len(y), folds, seed)
		held = HoldOut(outer, seed)
	}
	c.Prepare(p)
	if p == Linear {
		return EvaluateSparse(ctx, c.sparse, y, outer, held, opt)
	}
	return EvaluateKernels(ctx, c.kernels, y, outer, held, opt)
}

// Majority returns the mean accuracy over folds of answering with the most frequent class of
// each training part, the lowest of equals; y holds classes 0..C-1.
func Majority(y []int, outer []dataset.Fold) float64 {
	sum := 0.0
	for _, f := range outer {
		count := make([]int, slices.Max(y)+1)
		for _, i := range f.Train {
			count[y[i]]++
		}
		class := slices.Index(count, slices.Max(count))
		correct := 0
		for _, i := range f.Test {
			if y[i] == class {
				correct++
			}
		}
		sum += float64(correct) / float64(len(f.Test))
	}
	return sum / float64(len(outer))
}
