package plan

import (
	"math"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

// TestNumbersRunOut: before the numbers of environments run out, the cache starts again.
func TestNumbersRunOut(t *testing.T) {
	be := cpu.New(tensor.Float32)
	defer be.Close()
	s := &store{shapes: []shape{{1, 2}, {1, 2}}}
	view := s.add()
	defer s.close(view, be)
	batch := func() (first *level, b span) {
		g, b := s.begin(view, be, 10)
		s.end(view, g, true)
		return g.levels[0], b
	}
	first, b := batch()
	fillIn(&first.cache, 7, b)
	s.present.nodes = math.MaxUint32 - 10 // enough for the 10 environments of one batch
	first, b = batch()
	if _, found := fillIn(&first.cache, 7, b); !found {
		t.Error("the cache started again too early")
	}
	first, b = batch()
	if _, found := fillIn(&first.cache, 7, b); found || first.next != 1 {
		t.Errorf("found %v, next number %d: the cache did not start again", found, first.next)
	}
}

// TestGrows: the caches of a small job are small; they grow with the nodes, up to their size.
func TestGrows(t *testing.T) {
	be := cpu.New(tensor.Float32)
	defer be.Close()
	s := &store{
		shapes: []shape{{300, 2}, {1 << 14, 2}},
		shift:  firstShift,
	}
	view := s.add()
	defer s.close(view, be)
	for _, step := range []struct {
		batches, nodes int
		want           [2]int
	}{
		{8, 256, [2]int{256, 256}}, // 8 slots for each set
		{1, 1, [2]int{256, 1 << 11}},
		{55, 256, [2]int{256, 1 << 11}},
		{1, 256, [2]int{300, 1 << 14}},
		{600, 256, [2]int{300, 1 << 14}},
		{1, leastRoom + 1, [2]int{256, 256}}, // more than there is room for: small again
		{1, leastRoom + 1, [2]int{256, 1 << 11}},
	} {
		var sizes [2]int
		for range step.batches {
			g, _ := s.begin(view, be, step.nodes)
			s.end(view, g, true)
			sizes = [2]int{len(g.levels[0].sets), len(g.levels[1].sets)}
		}
		if sizes != step.want {
			t.Errorf("%v sets after %d nodes, want %v", sizes, s.nodes, step.want)
		}
	}
}

// TestGenerations: a generation is freed by the view that made it, once no batch uses it.
func TestGenerations(t *testing.T) {
	be := cpu.New(tensor.Float32)
	defer be.Close()
	s := &store{shapes: []shape{{1 << 14, 2}}, shift: firstShift}
	maker := s.add()
	user := s.add()
	old, _ := s.begin(maker, be, 10)
	s.end(maker, old, true)
	used, b := s.begin(user, be, 10)
	if used != old || b.batch != 2 || b.first != 2 {
		t.Errorf("another view has the same generation: %v, batch %+v", used == old, b)
	}
	large := old.room + 1
	fresh, b := s.begin(maker, be, large)
	if fresh == old || b.first != 2 || old.levels[0].rows.Buf == nil {
		t.Errorf("a new generation: %v, batch %+v, the old one is used by a batch", fresh != old, b)
	}
	s.end(user, used, true)
	s.end(maker, fresh, true)
	again, b := s.begin(maker, be, 10)
	s.end(maker, again, true)
	if again != fresh || b.first != b.batch || old.levels[0].rows.Buf != nil {
		t.Errorf("the same generation: %v, batch %+v, the old one is freed: %v", again == fresh, b, old.levels[0].rows.Buf == nil)
	}
	broken, _ := s.begin(user, be, 10)
	s.end(user, broken, false)
	if mended, _ := s.begin(user, be, 10); mended == broken {
		t.Error("a generation with a batch that is not complete is still used")
	} else {
		s.end(user, mended, true)
	}
	s.close(user, be)
	s.close(maker, be)
	if fresh.levels[0].rows.Buf != nil {
		t.Error("closing frees nothing")
	}
}

// TestRoom: a cache that grows during a small batch, such as the rest of a file's part, keeps room for the usual ones.
func TestRoom(t *testing.T) {
	be := cpu.New(tensor.Float32)
	defer be.Close()
	s := &store{shapes: []shape{{1 << 14, 2}}, shift: firstShift}
	view := s.add()
	const usual = 3 * leastRoom
	var grown *generation
	for s.shift > 0 {
		first, _ := s.begin(view, be, usual)
		s.end(view, first, true)
		s.nodes = ways << 14 // the next batch makes it grow
		grown, _ = s.begin(view, be, 1)
		s.end(view, grown, true)
	}
	next, _ := s.begin(view, be, usual)
	s.end(view, next, true)
	if next != grown {
		t.Errorf("a batch of %d nodes has begun a cache anew, which had room for %d", usual, grown.room)
	}
	s.close(view, be)
}
