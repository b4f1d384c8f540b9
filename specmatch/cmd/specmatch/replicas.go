package main

import (
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
	for range copies {
		var models []*model.Trained
		place := open
		for _, path := range paths {
			m, err := openModelOn(path, place)
			if err != nil {
				r.Close()
				return nil, err
			}
			if _, ok := shipped(paths[0]); ok {
				// Endpoints are many, and use the memory of one engine in turn.
				m.shared = len(models) > 0
				place = func() (backend.Backend, error) { return m.be, nil }
			}
			r.opened = append(r.opened, m)
			models = append(models, m.Trained)
		}
		r.replicas = append(r.replicas, models)
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
