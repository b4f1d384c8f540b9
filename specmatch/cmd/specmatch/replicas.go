package main

import (
	"runtime"
	"slices"
	"sync"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/model"
)

// replicas are some models and what computes several batches with them at the same time: an engine for
// each worker or, if shared is set, those of the models for all workers in turn.
type replicas struct {
	models  []*model.Trained
	opened  []*modelOnEngine
	workers int
	engines []backend.Backend // of all workers but the first
	shared  bool
}

// openReplicas opens the models for all workers. The caller closes them.
func (o *output) openReplicas(e cli.Engine, paths ...string) (_ *replicas, err error) {
	cores := runtime.GOMAXPROCS(0)
	if o.Join { // nothing is computed, and this machine need not have the engine of the shards
		e = cli.Engine{Backend: "cpu", Precision: e.Precision}
		o.Workers = 1
	}
	r := &replicas{
		workers: o.Workers,
		shared:  e.Backend != "cpu", // one engine has the whole device
	}
	if r.workers == 0 {
		r.workers = cores
	}
	open := func() (backend.Backend, error) { return e.OpenOne(max(1, cores/r.workers)) }
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	r.opened, err = openModels(open, paths)
	if err != nil {
		return nil, err
	}
	for _, m := range r.opened {
		if r.shared {
			m.Turn = new(sync.Mutex)
		}
		r.models = append(r.models, m.Trained)
	}
	for !r.shared && len(r.engines) < r.workers-1 {
		be, err := open()
		if err != nil {
			return nil, err
		}
		r.engines = append(r.engines, be)
	}
	return r, nil
}

// copies returns some of the models, or what was made of them, for each worker.
func (r *replicas) copies(models ...*model.Trained) [][]*model.Trained {
	copies := [][]*model.Trained{models}
	for i := range r.workers - 1 {
		copied := slices.Clone(models)
		for k, m := range models {
			if !r.shared {
				copied[k] = m.On(r.engines[i])
			}
		}
		copies = append(copies, copied)
	}
	return copies
}

// openModels opens each of the models on an engine of its own, but endpoints, which are many, on one that they use in
// turn. With an error, it returns the models that are open.
func openModels(place func() (backend.Backend, error), paths []string) (models []*modelOnEngine, err error) {
	for _, path := range paths {
		m, err := openModelOn(path, place)
		if err != nil {
			return models, err
		}
		models = append(models, m)
		if _, ok := shipped(paths[0]); ok {
			m.shared = len(models) > 1
			place = func() (backend.Backend, error) { return m.be, nil }
		}
	}
	return models, nil
}

// Close frees the engines, and with them the models.
func (r *replicas) Close() {
	for _, be := range r.engines {
		be.Close()
	}
	for _, m := range r.opened {
		m.Close()
	}
}
