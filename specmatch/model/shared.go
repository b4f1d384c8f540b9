package model

import (
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// Shared keeps what several models compute of the same graphs, until it gets other ones. The heads of the models must
// see the same numbers of a graph. It is for one goroutine.
type Shared struct {
	graphs []*graph.Graph
	logs   []sparseLogs

	numbers []float64 // for buffer
}

// Sharing returns the model with what it shares with others; nil for nothing.
func (m *Trained) Sharing(s *Shared) *Trained {
	c := *m
	c.Shared = s
	return &c
}

// Trim frees the layer of numbers of a silent network, most of the memory of such a model. Afterwards, the model can
// predict, but not be saved or trained. On one engine, the next model that is opened takes the memory.
func (m *Trained) Trim() {
	if m.Head == nil || !m.ignoresEmbeddings() {
		return
	}
	w := m.Beside.Hidden.W
	for _, t := range []*tensor.Tensor{w.Value, w.Grad} {
		w.Backend().Free(t)
	}
	w.Value = nil
	w.Grad = nil
}

// sparseLogs has v of [Beside] for the numbers of a graph that are not 0.
type sparseLogs struct {
	columns []int32
	values  []float64
}

// logsOf returns v of some graphs. A nil Shared returns nil.
func (s *Shared) logsOf(graphs []*graph.Graph) []sparseLogs {
	if s == nil || len(graphs) == 0 {
		return nil
	}
	if slices.Equal(graphs, s.graphs) {
		return s.logs
	}
	for len(s.logs) < len(graphs) {
		s.logs = append(s.logs, sparseLogs{})
	}
	s.graphs = append(s.graphs[:0], graphs...)
	for i, g := range graphs {
		logs := &s.logs[i]
		logs.columns = logs.columns[:0]
		logs.values = logs.values[:0]
		for k, v := range g.Globals {
			if v != 0 {
				logs.columns = append(logs.columns, int32(k))
				logs.values = append(logs.values, signedLog(v))
			}
		}
	}
	return s.logs
}

// buffer returns memory for n numbers, which the next call returns again: a batch of some models needs megabytes. A nil
// Shared allocates.
func (s *Shared) buffer(n int) []float64 {
	if s == nil {
		return make([]float64, n)
	}
	s.numbers = slices.Grow(s.numbers[:0], n)[:n]
	return s.numbers
}
