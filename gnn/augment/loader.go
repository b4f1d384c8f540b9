package augment

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
)

// purposeOrder is the purpose of the order of samples in a [Loader].
const purposeOrder random.Purpose = 1<<32 - 1

// Order is the order in which a [Loader] visits the samples.
type Order int

const (
	// Reshuffle draws a new order for every epoch.
	Reshuffle Order = iota
	// ShuffleOnce draws one order and keeps it for all epochs, so that the same
	// samples meet in a batch every time: GraphCL's unsupervised code.
	ShuffleOnce
	// Sequential visits the samples as they are listed.
	Sequential
)

// Loader divides a data set into mini-batches of augmented views and prepares
// each while the one before is in use. The fields must not change while an
// epoch runs.
type Loader struct {
	// Graphs is the data set.
	Graphs []*graph.Graph
	// Samples are the indices into Graphs to visit; nil means all.
	Samples []int
	// Batch is the number of samples in a mini-batch, at least 1. All samples are one
	// mini-batch if there are no more of them.
	Batch int
	// DropLast drops a last mini-batch that is smaller than the others, unless it
	// is the only one.
	DropLast bool
	// Order is the order of the samples. It is drawn from the stream of the
	// Collator's seed.
	Order Order
	// Collator makes the views.
	Collator Collator

	order []int
	ring  [2]graph.Batch
	busy  atomic.Bool
}

// Batches returns the number of mini-batches of an epoch.
func (l *Loader) Batches() int {
	n := l.samples()
	if l.DropLast && n > l.Batch {
		return n / l.Batch
	}
	batches := n / l.Batch // without n+l.Batch, which may overflow
	if n%l.Batch > 0 {
		batches++
	}
	return batches
}

func (l *Loader) samples() int {
	if l.Batch < 1 {
		panic(fmt.Sprintf("augment: Loader with batches of %d samples", l.Batch))
	}
	if l.Samples != nil {
		return len(l.Samples)
	}
	return len(l.Graphs)
}

// Epoch returns the mini-batches of one epoch: for each the samples (indices
// into Graphs) and the batch of their views, see [Collator.Collate]. Both are
// valid until the loop asks for the next. What an epoch yields depends on the
// fields and on its number only, so that training can resume at any epoch.
//
// A goroutine works ahead by one mini-batch. However the loop ends, the goroutine
// has ended by then. If ctx is cancelled the loop ends early: check ctx.Err. The
// loop panics if another loop over the same Loader runs, and if an augmentation
// panics.
func (l *Loader) Epoch(ctx context.Context, epoch int) iter.Seq2[[]int, *graph.Batch] {
	return func(yield func([]int, *graph.Batch) bool) {
		batches := l.Batches()
		if ctx.Err() != nil {
			return
		}
		if !l.busy.CompareAndSwap(false, true) {
			panic("augment: Loader: two epochs at the same time")
		}
		defer l.busy.Store(false)
		l.shuffle(epoch)

		type item struct {
			samples []int
			batch   *graph.Batch
			failure any
		}
		// The channels have room for the whole ring and a failure, so that sending
		// never waits.
		free := make(chan *graph.Batch, len(l.ring))
		ready := make(chan item, len(l.ring)+1)
		for k := range l.ring {
			free <- &l.ring[k]
		}
		go func() {
			defer close(ready)
			defer func() {
				if r := recover(); r != nil {
					ready <- item{failure: r}
				}
			}()
			for k := range batches {
				b, open := <-free
				if !open {
					return
				}
				samples := l.order[k*l.Batch:]
				samples = samples[:min(l.Batch, len(samples))]
				l.Collator.Collate(b, l.Graphs, samples, epoch)
				ready <- item{samples: samples, batch: b}
			}
		}()
		defer func() {
			close(free)
			for range ready { // waits until the goroutine is gone
			}
		}()
		for next := range ready {
			if next.failure != nil {
				panic(next.failure)
			}
			if ctx.Err() != nil || !yield(next.samples, next.batch) {
				return
			}
			free <- next.batch
		}
	}
}

func (l *Loader) shuffle(epoch int) {
	l.order = l.order[:0]
	if l.Samples != nil {
		l.order = append(l.order, l.Samples...)
	} else {
		for i := range l.Graphs {
			l.order = append(l.order, i)
		}
	}
	switch l.Order {
	case Sequential:
		return
	case ShuffleOnce:
		epoch = 0
	}
	rng := random.Stream(l.Collator.Seed, purposeOrder, epoch, 0)
	rng.Shuffle(len(l.order), func(i, j int) {
		l.order[i], l.order[j] = l.order[j], l.order[i]
	})
}
