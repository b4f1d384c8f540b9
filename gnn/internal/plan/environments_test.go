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
