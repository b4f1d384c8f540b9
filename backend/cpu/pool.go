package cpu

import (
	"sync"
	"sync/atomic"
)

// A task is a loop that can be cut anywhere on the grain.
type task interface {
	// run does the iterations lo..hi-1.
	run(lo, hi int)
}

// A pool runs the chunks of one task at a time on its owner's goroutine and on
// helpers. The owner always takes part, so a helper that wakes up late costs only its
// share of the work.
//
// Counting unclaimed down claims a chunk. The task is written before the counter is
// set, and it does not change until every claimed chunk is finished. So every goroutine
// that gets a chunk sees the task to which the chunk belongs, even a helper woken for an
// earlier task.
type pool struct {
	helpers int           // goroutines besides the owner
	started bool          // whether they are running
	wake    chan struct{} // a token makes one helper look for chunks
	done    chan struct{} // a token says that a helper finished the last chunk

	task      task
	n, grain  int
	chunks    int
	unclaimed atomic.Int64 // chunks to take; negative if there are none
	pending   atomic.Int64 // chunks not finished
	closing   sync.Once
}

// inlineChunks is the number of chunks below which waking a helper, about 5 µs,
// does not pay for a loop whose chunks take 2 or 3 µs each.
const inlineChunks = 4

func newPool(workers int) *pool {
	return &pool{
		helpers: workers - 1,
		wake:    make(chan struct{}, workers),
		done:    make(chan struct{}, 1),
	}
}

// do runs t for 0..n-1 in small chunks of grain and returns when all are done.
func (p *pool) do(t task, n, grain int) {
	if n > (inlineChunks-1)*grain {
		p.share(t, n, grain)
		return
	}
	for lo := 0; lo < n; lo += grain {
		t.run(lo, min(lo+grain, n))
	}
}

// share is do for chunks each of which is worth waking a helper.
func (p *pool) share(t task, n, grain int) {
	chunks := (n + grain - 1) / grain
	if chunks < 2 || p.helpers == 0 {
		for lo := 0; lo < n; lo += grain {
			t.run(lo, min(lo+grain, n))
		}
		return
	}
	if !p.started {
		p.started = true
		for range p.helpers {
			go p.help()
		}
	}
	p.task = t
	p.n = n
	p.grain = grain
	p.chunks = chunks
	p.pending.Store(int64(chunks))
	p.unclaimed.Store(int64(chunks))
	for range min(p.helpers, chunks-1) {
		select {
		case p.wake <- struct{}{}:
		default: // there is a token for every helper already
		}
	}
	if !p.work() {
		<-p.done
	}
	p.task = nil // drops the reference to the engine
}

// work runs chunks until all are claimed. It reports whether it finished the
// last one.
func (p *pool) work() (finished bool) {
	for {
		left := p.unclaimed.Add(-1)
		if left < 0 {
			return finished
		}
		lo := (p.chunks - 1 - int(left)) * p.grain
		p.task.run(lo, min(lo+p.grain, p.n))
		finished = p.pending.Add(-1) == 0
	}
}

// help is the loop of a helper.
func (p *pool) help() {
	for range p.wake {
		if p.work() {
			p.done <- struct{}{}
		}
	}
}

// close ends the helpers. The pool must not be used again.
func (p *pool) close() {
	p.closing.Do(func() {
		close(p.wake)
	})
}

// A freeList keeps the memory of workers for the next task.
type freeList[S any] struct {
	mu   sync.Mutex
	free []*S
}

func (l *freeList[S]) take() *S {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.free)
	if n == 0 {
		return new(S)
	}
	s := l.free[n-1]
	l.free = l.free[:n-1]
	return s
}

func (l *freeList[S]) give(s *S) {
	l.mu.Lock()
	l.free = append(l.free, s)
	l.mu.Unlock()
}
