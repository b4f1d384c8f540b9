package main

import (
	"cmp"
	"runtime"
	"slices"
	"sync"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/model"
)

// replicas are copies of some models, so that several batches can be computed at the same time: each
// copy on engines of its own or, if shared is set, all in turn on the engines of the first.
type replicas struct {
	replicas [][]*model.Trained // [copies][models]
	opened   []*modelOnEngine
	shared   bool
}

// openReplicas opens a copy of the models for each worker. The caller closes them.
func (o *output) openReplicas(e cli.Engine, paths ...string) (*replicas, error) {
	cores := runtime.GOMAXPROCS(0)
	workers := o.Workers
	if workers == 0 {
		workers = cores
	}
	r := new(replicas)
	copies := workers
	if e.Backend != "cpu" { // one engine has the whole device
		r.shared = true
		copies = 1
	}
	open := func() (backend.Backend, error) { return e.OpenOne(max(1, cores/workers)) }
	made := make([][]*modelOnEngine, copies)
	errs := make([]error, copies)
	var opening sync.WaitGroup
	for i := range copies {
		opening.Go(func() { made[i], errs[i] = openCopy(open, paths) })
	}
	opening.Wait()
	for _, models := range made {
		var copied []*model.Trained
		for _, m := range models {
			copied = append(copied, m.Trained)
		}
		r.opened = append(r.opened, models...)
		r.replicas = append(r.replicas, copied)
	}
	if err := cmp.Or(errs...); err != nil {
		r.Close()
		return nil, err
	}
	if r.shared {
		for _, m := range r.replicas[0] {
			m.Turn = new(sync.Mutex)
		}
		for range workers - 1 {
			r.replicas = append(r.replicas, slices.Clone(r.replicas[0]))
		}
	}
	return r, nil
}

// openCopy opens each of the models on an engine of its own, but endpoints, which are many, on one that they use in turn.
// With an error, it returns the models that are open.
func openCopy(place func() (backend.Backend, error), paths []string) (models []*modelOnEngine, err error) {
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

// separate returns the copies that have engines of their own.
func (r *replicas) separate() [][]*model.Trained {
	if r.shared {
		return r.replicas[:1]
	}
	return r.replicas
}

// Close frees the engines, and with them the models.
func (r *replicas) Close() {
	for _, m := range r.opened {
		m.Close()
	}
}
