package apply

import (
	"sync"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/tensor"
)

// openFrozen returns the encoder of package pretrained with this sum, on an engine of its own.
func openFrozen(sum string) *model.Trained {
	e, err := pretrained.Find(sum)
	if err != nil {
		panic(err) // ParseFeature has found it
	}
	m, err := e.Open(newFrozenEngine())
	if err != nil {
		panic(err) // the file is part of the program
	}
	return m
}

// newFrozenEngine returns an engine for one of several goroutines.
func newFrozenEngine() backend.Backend { return cpu.New(tensor.Float32, cpu.Workers(1)) }

// lender lends an encoder of package pretrained to goroutines. All of them share its weights and one
// cache, with which the bits of a vector do not depend on other molecules.
type lender struct {
	sum string

	mu    sync.Mutex
	first *model.Trained
	idle  []*model.Trained
}

// take returns the encoder on an engine that nobody else uses until it is given back.
func (l *lender) take() *model.Trained {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.idle); n > 0 {
		m := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return m
	}
	if l.first == nil {
		l.first = openFrozen(l.sum).Remembering(CacheSize() / 8)
		return l.first
	}
	return l.first.On(newFrozenEngine())
}

func (l *lender) give(m *model.Trained) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, m)
}
