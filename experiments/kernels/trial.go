package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/gnn/classical"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/kernel"
	"github.com/specmatch/specmatch/specmatch/eval"
)

// The protocols. The first two nest as GraphCL's script does; see package eval.
const (
	nested  = "graphcl" // a given kernel, or the RBF kernel of vectors
	linear  = "linear"  // a linear machine on features of norm 1, or on vectors
	heldOut = "holdout" // that of the kernel literature; for kernels alone
)

func protocolNames() []string { return []string{nested, linear, heldOut} }

// outcome is what a trial leaves in the journal.
type outcome struct {
	Accuracy     map[string]float64 // by protocol, in per cent; absent where it does not apply
	Chosen       map[string]choice  `json:",omitempty"`
	BuildSeconds float64            // features and kernels; of one seed alone where seeds share them
	EvalSeconds  float64
}

// choice is what won the search, by outer fold.
type choice struct {
	Rounds []int `json:",omitempty"`
	C      []float64
}

// shared holds what all seeds of a method on a set have in common, until that of
// another method or set is built while no seed uses it.
type shared struct {
	mu    sync.Mutex
	built *built
	users atomic.Int64
}

// built are features with what the protocols make of them, when they ask.
type built struct {
	classical.Features
	mu      sync.Mutex
	kernels []*kernel.Matrix
	sparse  []*kernel.Sparse
}

// cores has room for one value for each core: a trial that builds puts one in, and so
// does every fold of an evaluation.
var cores = make(chan struct{}, runtime.GOMAXPROCS(0))

func (r *trial) do(ctx context.Context, status units.Status) (out outcome, err error) {
	if r.shared != nil {
		r.shared.users.Add(1)
		defer r.shared.users.Add(-1)
	}
	start := time.Now()
	b, err := r.build(ctx)
	if err != nil {
		return out, err
	}
	out.Accuracy, out.Chosen = map[string]float64{}, map[string]choice{}
	for _, p := range r.x.protocol.Protocols {
		b.prepare(p)
	}
	out.BuildSeconds = time.Since(start).Seconds()
	start = time.Now()
	for _, p := range r.x.protocol.Protocols {
		status("protocol %s", p)
		if err := r.evaluate(ctx, p, b, &out); err != nil {
			return out, fmt.Errorf("protocol %s: %w", p, err)
		}
	}
	out.EvalSeconds = time.Since(start).Seconds()
	return out, nil
}

func (r *trial) build(ctx context.Context) (*built, error) {
	if r.shared == nil {
		return r.buildAnew(ctx)
	}
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	if r.shared.built == nil {
		for _, other := range r.x.shared {
			if other.users.Load() == 0 && other.mu.TryLock() {
				other.built = nil
				other.mu.Unlock()
			}
		}
		b, err := r.buildAnew(ctx)
		if err != nil {
			return nil, err
		}
		r.shared.built = b
	}
	return r.shared.built, nil
}

func (r *trial) buildAnew(ctx context.Context) (*built, error) {
	if r.method.classify != nil {
		return &built{}, nil
	}
	cores <- struct{}{}
	defer func() { <-cores }()
	o := r.x.settings.Options
	o.Seed = uint64(r.seed)
	f, err := r.method.Features(ctx, r.set.Graphs, o)
	return &built{Features: f}, err
}

// prepare computes what a protocol needs of the features of a kernel.
func (b *built) prepare(protocol string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.Rounds == nil:
	case protocol == linear && b.sparse == nil:
		b.sparse = b.Sparse()
	case protocol != linear && b.kernels == nil:
		b.kernels = b.Kernels()
	}
}

// evaluate adds the accuracy under a protocol to the outcome.
func (r *trial) evaluate(ctx context.Context, protocol string, b *built, out *outcome) error {
	y := r.set.Labels()
	outer, err := dataset.StratifiedKFold(y, r.x.protocol.Folds, true, uint32(r.seed))
	if err != nil {
		return err
	}
	var held []dataset.Fold
	if protocol == heldOut {
		outer = dataset.KFold(len(y), r.x.protocol.Folds, uint32(r.seed))
		held = eval.HoldOut(outer, uint32(r.seed))
	}
	opt := eval.Options{Slots: cores}
	var res *eval.Result
	switch {
	case r.method.classify != nil:
		cores <- struct{}{}
		defer func() { <-cores }()
		accuracy, err := r.method.classify(ctx, &r.x.settings, r.set, r.seed, outer)
		out.Accuracy[protocol] = 100 * accuracy
		return err
	case b.Rounds == nil && protocol == heldOut:
		return nil
	case b.Rounds == nil:
		res, err = eval.Evaluate(ctx, eval.Protocol(protocol), eval.Data{X: b.X, Dim: b.Dim, Y: y}, outer, opt)
	case protocol == linear:
		res, err = eval.EvaluateSparse(ctx, b.sparse, y, outer, held, opt)
	default:
		res, err = eval.EvaluateKernels(ctx, b.kernels, y, outer, held, opt)
	}
	if err != nil {
		return err
	}
	out.Accuracy[protocol] = 100 * res.Mean
	out.Chosen[protocol] = choice{Rounds: res.ChosenInput, C: res.ChosenC}
	return nil
}

// majority answers with the most frequent class of each training part, the lowest of
// equals.
func majority(_ context.Context, _ *settings, ds *dataset.Dataset, _ int, outer []dataset.Fold) (float64, error) {
	y, sum := ds.Labels(), 0.0
	for _, f := range outer {
		count := make([]int, slices.Max(y)+1)
		for _, i := range f.Train {
			count[y[i]]++
		}
		class, right := slices.Index(count, slices.Max(count)), 0
		for _, i := range f.Test {
			if y[i] == class {
				right++
			}
		}
		sum += float64(right) / float64(len(f.Test))
	}
	return sum / float64(len(outer)), nil
}
