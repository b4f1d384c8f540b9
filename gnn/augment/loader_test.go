package augment

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/specmatch/specmatch/gnn/graph"
)

func newLoader(count, batch int) *Loader {
	return &Loader{
		Graphs:   molecules(count, 6),
		Batch:    batch,
		Collator: Collator{Views: []Augmentation{NodeDropping{0.2}, Subgraph{0.2}}, Seed: 11},
	}
}

// visit runs an epoch and returns the samples of its batches.
func visit(t *testing.T, l *Loader, epoch int) (batches [][]int) {
	t.Helper()
	direct := Collator{Views: l.Collator.Views, Seed: l.Collator.Seed}
	var want graph.Batch
	for samples, b := range l.Epoch(context.Background(), epoch) {
		direct.Collate(&want, l.Graphs, samples, epoch)
		sameBatch(t, b, &want)
		batches = append(batches, slices.Clone(samples))
	}
	if len(batches) != l.Batches() {
		t.Fatalf("%d batches, Batches() says %d", len(batches), l.Batches())
	}
	return batches
}

func sizes(batches [][]int) (n []int) {
	for _, b := range batches {
		n = append(n, len(b))
	}
	return n
}

func TestLoaderEpochs(t *testing.T) {
	for _, order := range []Order{Reshuffle, ShuffleOnce, Sequential} {
		l := newLoader(50, 16)
		l.Order = order
		first, second := visit(t, l, 0), visit(t, l, 1)
		for _, e := range [][][]int{first, second} {
			if got, want := sizes(e), []int{16, 16, 16, 2}; !slices.Equal(got, want) {
				t.Fatalf("order %d: batches of %v, want %v", order, got, want)
			}
			all := slices.Concat(e...)
			slices.Sort(all)
			if !slices.Equal(all, indices(50)) {
				t.Fatalf("order %d: an epoch visits %v", order, all)
			}
		}
		if same := reflect.DeepEqual(first, second); same != (order != Reshuffle) {
			t.Errorf("order %d: epochs 0 and 1 have the same batches: %v", order, same)
		}
		if inOrder := slices.Equal(slices.Concat(first...), indices(50)); inOrder != (order == Sequential) {
			t.Errorf("order %d: samples come as listed: %v", order, inOrder)
		}
		// A fresh loader repeats any epoch: training can resume there.
		resumed := newLoader(50, 16)
		resumed.Order = order
		if again := visit(t, resumed, 1); !reflect.DeepEqual(again, second) {
			t.Errorf("order %d: epoch 1 of a fresh loader is %v, was %v", order, again, second)
		}
		other := newLoader(50, 16)
		other.Order = order
		other.Collator.Seed++
		if same := reflect.DeepEqual(visit(t, other, 0), first); same != (order == Sequential) {
			t.Errorf("order %d: another seed gives the same batches: %v", order, same)
		}
	}
}

func TestLoaderSizes(t *testing.T) {
	for _, c := range []struct {
		samples, batch int
		dropLast       bool
		want           []int
	}{
		{50, 16, true, []int{16, 16, 16}},
		{48, 16, true, []int{16, 16, 16}},
		{48, 16, false, []int{16, 16, 16}},
		{10, 16, true, []int{10}}, // better than nothing
		{10, 16, false, []int{10}},
		{16, 16, true, []int{16}},
		{10, math.MaxInt, true, []int{10}},
		{10, math.MaxInt, false, []int{10}},
		{3, 1, false, []int{1, 1, 1}},
		{0, 16, false, nil},
		{0, 16, true, nil},
	} {
		l := newLoader(60, c.batch)
		l.DropLast = c.dropLast
		l.Samples = make([]int, 0, 60)
		for i := range c.samples {
			l.Samples = append(l.Samples, 59-i)
		}
		batches := visit(t, l, 0)
		if got := sizes(batches); !slices.Equal(got, c.want) {
			t.Errorf("%d samples in batches of %d, DropLast %v: %v, want %v", c.samples, c.batch, c.dropLast, got, c.want)
		}
		for _, s := range slices.Concat(batches...) {
			if s <= 59-c.samples {
				t.Errorf("sample %d was not listed", s)
			}
		}
	}
	wantPanic(t, "augment: Loader with batches of 0 samples", func() { newLoader(5, 0).Batches() })
}

// TestLoaderOrderIsUniform: the 24 orders of four samples are equally likely.
func TestLoaderOrderIsUniform(t *testing.T) {
	l := newLoader(4, 4)
	want := outcomes{}
	for _, p := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for at := range 4 {
			want[string(tokey(slices.Insert(slices.Clone(p), at, 3)))] = 1.0 / 24
		}
	}
	checkFrequencies(t, want, func(trial int) string {
		l.shuffle(trial)
		return string(tokey(l.order))
	})
}

func tokey(p []int) (k []byte) {
	for _, i := range p {
		k = append(k, byte('0'+i))
	}
	return k
}

// signal is an augmentation that reports when it starts on a graph.
type signal struct {
	count *atomic.Int64
	wake  chan int64 // receives the count, if it has room
}

func (signal) Name() string { return "signal" }

func (s signal) Append(dst *graph.Batch, g *graph.Graph, _ *rand.Rand, _ *Workspace) {
	dst.Append(g)
	s.wake <- s.count.Add(1)
}

// TestLoaderWorksAhead: while a batch is in use the next is made, only the
// next, and in other memory.
func TestLoaderWorksAhead(t *testing.T) {
	const batches = 5
	l := newLoader(batches, 1)
	s := signal{new(atomic.Int64), make(chan int64, 2*batches)}
	l.Collator.Views = []Augmentation{s}
	held := int64(0)
	for samples, b := range l.Epoch(context.Background(), 0) {
		held++
		want := graph.Collate(l.Graphs[samples[0]])
		for s.count.Load() < min(held+1, batches) {
			select {
			case <-s.wake:
			case <-time.After(10 * time.Second):
				t.Fatalf("batch %d was not begun while %d was in use", held+1, held)
			}
		}
		runtime.Gosched()
		if n := s.count.Load(); n > held+1 {
			t.Fatalf("%d batches were begun while %d was in use", n, held)
		}
		sameBatch(t, b, want)
	}
	if held != batches {
		t.Errorf("%d batches, want %d", held, batches)
	}
}

// TestLoaderEnds: however the loop ends, its goroutine is gone and the loader
// can run the next epoch.
func TestLoaderEnds(t *testing.T) {
	l := newLoader(64, 4)
	before := runtime.NumGoroutine()
	gone := func(how string) {
		t.Helper()
		// The goroutine's last act lets the loop end; it may take a moment to exit.
		for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d goroutines, were %d", how, runtime.NumGoroutine(), before)
			}
			runtime.Gosched()
		}
	}
	for stop := range 4 {
		for range l.Epoch(context.Background(), 0) {
			if stop--; stop < 0 {
				break
			}
		}
		gone("break")
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	for range l.Epoch(ctx, 0) {
		if n++; n == 3 {
			cancel()
		}
	}
	if n != 3 || ctx.Err() == nil {
		t.Errorf("cancelled in batch 3, ended after %d", n)
	}
	gone("cancel")
	for range l.Epoch(ctx, 0) {
		t.Error("a batch after the context was cancelled")
	}
	if l.busy.Load() {
		t.Error("still busy")
	}
	gone("cancelled before")

	wantPanic(t, "consumer", func() {
		for range l.Epoch(context.Background(), 0) {
			panic("consumer")
		}
	})
	gone("panic in the loop")

	views := l.Collator.Views
	l.Collator.Views = []Augmentation{Choice{}}
	wantPanic(t, "augment: Choice of nothing", func() {
		for range l.Epoch(context.Background(), 0) {
		}
	})
	gone("panic in an augmentation")
	l.Collator.Views = views

	wantPanic(t, "augment: Loader: two epochs at the same time", func() {
		for range l.Epoch(context.Background(), 0) {
			for range l.Epoch(context.Background(), 1) {
			}
		}
	})
	gone("nested loops")

	visit(t, l, 0)
	gone("end")
}

// slow is an augmentation that says how many of it were begun and how many run.
type slow struct{ begun, running *atomic.Int64 }

func (slow) Name() string { return "slow" }

func (s slow) Append(dst *graph.Batch, g *graph.Graph, _ *rand.Rand, _ *Workspace) {
	s.begun.Add(1)
	s.running.Add(1)
	defer s.running.Add(-1)
	time.Sleep(5 * time.Millisecond)
	dst.Append(g)
}

// TestLoaderWaitsForItsGoroutine: nothing writes to the ring after the loop.
func TestLoaderWaitsForItsGoroutine(t *testing.T) {
	l := newLoader(8, 1)
	s := slow{new(atomic.Int64), new(atomic.Int64)}
	l.Collator.Views = []Augmentation{s}
	for range 3 {
		s.begun.Store(0)
		for range l.Epoch(context.Background(), 0) {
			for s.begun.Load() < 2 { // until the next batch is being made
				runtime.Gosched()
			}
			break
		}
		if n := s.running.Load(); n != 0 {
			t.Fatalf("the loop ended while %d augmentations ran", n)
		}
	}
}

// TestLoaderReusesMemory: an epoch allocates its channels and its goroutine, and
// nothing that grows with the number of batches.
func TestLoaderReusesMemory(t *testing.T) {
	allocs := func(batches int) float64 {
		l := newLoader(batches*4, 4)
		epoch := func() {
			for range l.Epoch(context.Background(), 0) {
			}
		}
		epoch()
		return testing.AllocsPerRun(10, epoch)
	}
	if few, many := allocs(4), allocs(100); many > few+5 || many > 40 {
		t.Errorf("%v allocations in an epoch of 4 batches, %v in one of 100", few, many)
	}
}
