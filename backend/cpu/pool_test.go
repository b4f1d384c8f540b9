package cpu

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// span is a task that notes what it was given.
type span struct {
	seen  []atomic.Int32
	calls atomic.Int32
	rest  time.Duration
}

func (s *span) run(lo, hi int) {
	s.calls.Add(1)
	for i := lo; i < hi; i++ {
		s.seen[i].Add(1)
	}
	time.Sleep(s.rest)
}

// TestPool checks that every iteration runs once, in chunks of the grain, for
// tasks in quick succession, so that helpers wake up late and out of turn.
func TestPool(t *testing.T) {
	for _, workers := range []int{1, 2, 7} {
		p := newPool(workers)
		for round := range 200 {
			n, grain := 1+round*7%101, 1+round%13
			s := &span{seen: make([]atomic.Int32, n)}
			if round%20 == 0 {
				s.rest = time.Millisecond // lets all helpers take part
			}
			call := p.do
			if round%2 == 0 {
				call = p.share
			}
			call(s, n, grain)
			for i := range s.seen {
				if got := s.seen[i].Load(); got != 1 {
					t.Fatalf("%d workers, n = %d, grain = %d: iteration %d ran %d times", workers, n, grain, i, got)
				}
			}
			if got, want := int(s.calls.Load()), (n+grain-1)/grain; got != want {
				t.Fatalf("%d workers, n = %d, grain = %d: %d chunks, want %d", workers, n, grain, got, want)
			}
		}
		p.close()
	}
}

// spin is a task of so many steps an iteration, about half a nanosecond each.
type spin struct {
	steps int
	sum   atomic.Int64
}

func (s *spin) run(lo, hi int) {
	x := lo
	for range s.steps * (hi - lo) {
		x = x*3 ^ lo
	}
	s.sum.Store(int64(x))
}

// BenchmarkPool shows what sharing a task costs and brings, by its length. It
// needs a machine with idle cores.
func BenchmarkPool(b *testing.B) {
	for _, steps := range []int{0, 500, 2000, 8000} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("steps=%d/workers=%d", 16*steps, workers), func(b *testing.B) {
				p := newPool(workers)
				defer p.close()
				t := &spin{steps: steps}
				for b.Loop() {
					p.share(t, 16, 1)
				}
			})
		}
	}
}
