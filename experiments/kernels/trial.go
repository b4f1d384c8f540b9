package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/run"
)

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
	built *eval.Classical
	users atomic.Int64
}

// cores has room for one value for each core: a trial that builds puts one in, and so
// does every fold of an evaluation.
var cores = make(chan struct{}, runtime.GOMAXPROCS(0))

func (r *trial) do(ctx context.Context, _ backend.Backend, status run.Status) (out outcome, err error) {
	if r.shared != nil {
		r.shared.users.Add(1)
		defer r.shared.users.Add(-1)
	}
	start := time.Now()
	b, err := r.build(ctx)
	if err != nil {
		return out, err
	}
	out.Accuracy = map[string]float64{}
	out.Chosen = map[string]choice{}
	for _, p := range r.x.protocol.Protocols {
		b.Prepare(eval.Protocol(p))
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

func (r *trial) build(ctx context.Context) (*eval.Classical, error) {
	if r.shared == nil {
		return r.buildAnew(ctx)
	}
	r.shared.mu.Lock()
	defer r.shared.mu.Unlock()
	if r.shared.built == nil {
		for _, trial := range r.x.shared {
			if trial.users.Load() == 0 && trial.mu.TryLock() {
				trial.built = nil
				trial.mu.Unlock()
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

func (r *trial) buildAnew(ctx context.Context) (*eval.Classical, error) {
	if r.method.classify != nil {
		return new(eval.Classical), nil
	}
	cores <- struct{}{}
	defer func() { <-cores }()
	o := r.x.settings.Options
	o.Seed = uint64(r.seed)
	f, err := r.method.Features(ctx, r.set.Graphs, o)
	return &eval.Classical{Features: f}, err
}

func (r *trial) evaluate(ctx context.Context, protocol string, b *eval.Classical, out *outcome) error {
	y := r.set.Labels()
	folds := r.x.protocol.Folds
	if r.method.classify != nil {
		outer, err := dataset.StratifiedKFold(y, folds, true, uint32(r.seed))
		if protocol == string(eval.HoldOutKernels) {
			outer = dataset.KFold(len(y), folds, uint32(r.seed))
		}
		if err != nil {
			return err
		}
		cores <- struct{}{}
		defer func() { <-cores }()
		accuracy, err := r.method.classify(ctx, &r.x.settings, r.set, r.seed, outer)
		out.Accuracy[protocol] = 100 * accuracy
		return err
	}
	res, err := b.Evaluate(
		ctx, eval.Protocol(protocol), y, folds, uint32(r.seed), eval.Options{Slots: cores},
	)
	if err != nil || res == nil {
		return err
	}
	out.Accuracy[protocol] = 100 * res.Mean
	out.Chosen[protocol] = choice{Rounds: res.ChosenInput, C: res.ChosenC}
	return nil
}

func majority(
	_ context.Context, _ *settings, ds *dataset.Dataset, _ int, outer []dataset.Fold,
) (float64, error) {
	return eval.Majority(ds.Labels(), outer), nil
}
