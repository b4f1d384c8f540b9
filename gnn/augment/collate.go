package augment

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
)

// Collator makes the views of mini-batches. Its memory grows to what the
// largest mini-batch needs; after that it allocates nothing. One Collator must
// not be used by two goroutines at the same time.
type Collator struct {
	// Views has one augmentation per view.
	Views []Augmentation
	// Choose, if it is not nil, chooses the augmentation of a view of a sample in
	// place of Views, which then only says how many views there are. It must choose
	// the same at every call while an epoch runs, from any goroutine.
	Choose func(view, sample int) Augmentation
	// Seed is the seed of the run.
	Seed uint64
	// Workers is how many goroutines share the work; 0 means GOMAXPROCS, but no more
	// than 8. It has no influence on the result.
	Workers int

	workers []*worker
	job     job
	done    sync.WaitGroup
}

// job is what all workers see of one call of Collate.
type job struct {
	dst     *graph.Batch
	graphs  []*graph.Graph
	samples []int
	epoch   int
}

// worker augments a run of graphs into a batch of its own, so that workers do
// not wait for one another, and then copies that batch to its place.
type worker struct {
	c                  *Collator
	augment, copy      func() // the methods, bound once: a go statement then allocates nothing
	ws                 Workspace
	part               graph.Batch
	lo, hi             int // the views to make: view v of sample s is v·samples+s
	node, entry, graph int // where part starts in dst
	failure            any
}

// minChunk is the smallest number of graphs worth a goroutine: 64 views of
// molecules take some 30 µs.
const minChunk = 64

// Collate replaces the content of dst by the views of graphs[s] for every s of
// samples: first those of view 0, in the order of samples, then those of view
// 1, and so on. The random stream of a view is that of (Seed, view, epoch, s),
// so a sample that is listed twice gets the same views twice.
func (c *Collator) Collate(dst *graph.Batch, graphs []*graph.Graph, samples []int, epoch int) {
	if len(c.Views) == 0 {
		panic("augment: Collator without views")
	}
	width := 1
	if len(samples) > 0 {
		width = graphs[samples[0]].X.Width
	}
	dst.Reset(width)
	c.job = job{dst, graphs, samples, epoch}
	defer func() { c.job = job{} }() // keeps nothing of the caller's alive

	// Small batches are not worth more than one goroutine.
	total := len(c.Views) * len(samples)
	n := c.Workers
	if n == 0 {
		n = min(runtime.GOMAXPROCS(0), 8)
	}
	n = max(min(n, total/minChunk), 1)
	for len(c.workers) < n {
		w := &worker{c: c}
		w.augment = w.doAugment
		w.copy = w.doCopy
		c.workers = append(c.workers, w)
	}
	if n == 1 {
		c.workers[0].views(dst, 0, total)
	} else {
		for k, w := range c.workers[:n] {
			w.lo = k * total / n
			w.hi = (k + 1) * total / n
			w.part.Reset(width)
		}
		c.parallel(n, func(w *worker) func() { return w.augment })
		c.place(n)
		c.parallel(n, func(w *worker) func() { return w.copy })
	}
	for range c.Views {
		dst.ViewPtr = append(dst.ViewPtr, dst.ViewPtr[len(dst.ViewPtr)-1]+int32(len(samples)))
	}
}

// parallel runs a task of the first n workers, one of them on the caller's
// goroutine. A panic in any of them becomes the caller's.
func (c *Collator) parallel(n int, task func(*worker) func()) {
	c.done.Add(n)
	for _, w := range c.workers[1:n] {
		go task(w)()
	}
	task(c.workers[0])()
	c.done.Wait()
	for _, w := range c.workers[:n] {
		if r := w.failure; r != nil {
			w.failure = nil
			panic(r)
		}
	}
}

// finish ends a task: it notes a panic and reports to parallel.
func (w *worker) finish() {
	w.failure = recover()
	w.c.done.Done()
}

func (w *worker) views(dst *graph.Batch, lo, hi int) {
	c := w.c
	j := &w.c.job
	for k := lo; k < hi; k++ {
		v := k / len(j.samples)
		s := j.samples[k%len(j.samples)]
		rng := w.ws.Stream(c.Seed, random.Purpose(v), j.epoch, s)
		view := c.Views[v]
		if c.Choose != nil {
			view = c.Choose(v, s)
		}
		view.Append(dst, j.graphs[s], rng, &w.ws)
	}
}

func (w *worker) doAugment() {
	defer w.finish()
	w.views(&w.part, w.lo, w.hi)
}

// place gives dst its size and every worker its place in it.
func (c *Collator) place(n int) {
	dst := c.job.dst
	var nodes, entries, graphs int
	onehot := true
	labels := 0
	for _, w := range c.workers[:n] {
		w.node = nodes
		w.entry = entries
		w.graph = graphs
		nodes += w.part.Nodes()
		entries += len(w.part.Adj)
		graphs += w.part.Graphs()
		labels += len(w.part.EdgeLabel)
		onehot = onehot && w.part.X.OneHot()
		dst.Asymmetric = dst.Asymmetric || w.part.Asymmetric
		dst.Multigraph = dst.Multigraph || w.part.Multigraph
	}
	dst.Ptr = extend(dst.Ptr, nodes)
	dst.Adj = extend(dst.Adj, entries)
	dst.EdgeLabel = extend(dst.EdgeLabel, labels)
	if labels != 0 && labels != entries {
		panic(fmt.Sprintf(
			"augment: Collator: %d edge labels for %d entries: only some of the graphs have them",
			labels, entries,
		))
	}
	dst.GraphPtr = extend(dst.GraphPtr, graphs)
	if onehot {
		dst.X.Category = extend(dst.X.Category, nodes)
	} else {
		dst.Densify(0)
		dst.X.Dense = extend(dst.X.Dense, nodes*dst.X.Width)
	}
}

// extend returns s with n more elements of any value.
func extend[T any](s []T, n int) []T { return slices.Grow(s, n)[:len(s)+n] }

func (w *worker) doCopy() {
	defer w.finish()
	dst := w.c.job.dst
	part := &w.part
	shifted(dst.Ptr[w.node+1:], part.Ptr[1:], int32(w.entry))
	shifted(dst.Adj[w.entry:], part.Adj, int32(w.node))
	if len(part.EdgeLabel) > 0 {
		copy(dst.EdgeLabel[w.entry:], part.EdgeLabel)
	}
	shifted(dst.GraphPtr[w.graph+1:], part.GraphPtr[1:], int32(w.node))
	width := dst.X.Width
	switch n := part.Nodes(); {
	case dst.X.OneHot():
		copy(dst.X.Category[w.node:], part.X.Category)
	case !part.X.OneHot():
		copy(dst.X.Dense[w.node*width:], part.X.Dense)
	default:
		for i := range n {
			part.X.Row(dst.X.Dense[(w.node+i)*width:(w.node+i+1)*width], i)
		}
	}
}

// shifted copies src to dst, adding shift.
func shifted(dst, src []int32, shift int32) {
	dst = dst[:len(src)]
	for k, v := range src {
		dst[k] = v + shift
	}
}
