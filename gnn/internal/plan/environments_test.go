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
	m := &Environments{radii: []*radius{{size: 1, width: 2}, {size: 1, width: 2}}}
	defer m.Close(be)
	m.makeRoom(be, 10)
	fill(&m.radii[0].cache, 7, m.batch)
	m.next = math.MaxUint32 - 20 // enough for the 20 environments of one batch
	m.makeRoom(be, 10)
	if _, found := fill(&m.radii[0].cache, 7, m.batch); !found || m.next != math.MaxUint32-20 {
		t.Errorf("found %v, next number %d: the cache started again too early", found, m.next)
	}
	m.next++
	m.makeRoom(be, 10)
	if _, found := fill(&m.radii[0].cache, 7, m.batch); found || m.next != 1 {
		t.Errorf("found %v, next number %d: the cache did not start again", found, m.next)
	}
}

// TestGrows: the caches of a small job are small; they grow with the nodes, up to their size.
func TestGrows(t *testing.T) {
	be := cpu.New(tensor.Float32)
	defer be.Close()
	m := &Environments{
		radii: []*radius{{size: 300, width: 2}, {size: 1 << 14, width: 2}},
		shift: firstShift,
	}
	defer m.Close(be)
	sets := func() [2]int {
		return [2]int{len(m.radii[0].cache.sets), len(m.radii[1].cache.sets)}
	}
	for _, step := range []struct {
		nodes int
		want  [2]int
	}{
		{100, [2]int{256, 256}},
		{ways*256 - 100, [2]int{256, 256}},
		{1, [2]int{256, 1 << 11}},
		{ways << 11, [2]int{300, 1 << 14}},
		{ways << 15, [2]int{300, 1 << 14}},
	} {
		m.makeRoom(be, step.nodes)
		if got := sets(); got != step.want {
			t.Errorf("%v sets after %d nodes, want %v", got, m.nodes, step.want)
		}
	}
}
