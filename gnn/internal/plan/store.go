package plan

import (
	"math"
	"slices"
	"sync"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// store has what the views of a cache of environments share. A view computes one batch at a time.
// It reads rows of batches that had ended when its own began, and rows of its own batch.
type store struct {
	shapes []shape // of the levels

	mu      sync.Mutex
	shift   int           // levels have their size divided by 2^shift
	nodes   int           // of all batches since the shift was the first one
	largest int           // nodes of a batch so far
	batch   uint32        // the number of the last batch that began
	working []uint32      // for each view, the number of its batch in work, or 0
	made    []generations // by each view
	present *generation
}

// shape is that of a level once it has grown.
type shape struct {
	sets  int
	width int // of a row
}

// generation is the rows of all radii between two changes of size.
type generation struct {
	levels  []*level
	room    int // nodes of a batch
	batches int // that have room at the same time
	users   int // batches in work
	nodes   int // of all batches, so that as many numbers may have been given
}

// generations are those whose memory is not freed.
type generations []*generation

// level has the environments of one radius. A view locks it to find those of its batch.
type level struct {
	sync.Mutex
	cache
	next uint32 // the number of the next new environment
	// rows has the row of each slot, and after them chunks of rows that batches in work have no
	// slot for. spare has the positions of the free chunks; the last ones are taken first, so that
	// few of them are ever touched.
	rows  *tensor.Tensor
	spare []int32
}

// chunk is the number of rows that a batch takes at a time.
const chunk = 256

// smallestCache is the least number of sets of the cache of a radius.
const smallestCache = 256

// firstShift and nextShift are the steps in which a cache grows: it begins with a 64th of its size.
const (
	firstShift = 6
	nextShift  = 3
)

// leastRoom is for so many nodes that a job whose first batches are small does not begin anew with each of them.
const leastRoom = 1152

// add adds a view and returns its number.
func (s *store) add() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working = append(s.working, 0)
	s.made = append(s.made, nil)
	return len(s.working) - 1
}

// begin begins a batch of a view. A small job needs a small cache, which is quickly cleared; the
// cache grows when there have been as many nodes as it has entries, or can be in work.
func (s *store) begin(view int, be backend.Backend, nodes int) (*generation, span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.present
	if g != nil && g.room < nodes { // begins small, since others may still use the large one
		s.present = nil
		s.shift = firstShift
		s.nodes = 0
	}
	s.nodes += nodes
	s.largest = max(s.largest, nodes)
	outermost := s.shapes[len(s.shapes)-1]
	for s.shift > 0 && max(s.nodes, nodes*len(s.working)) > ways*outermost.setsAt(s.shift) {
		s.shift -= nextShift
		s.present = nil
	}
	s.batch++
	s.working[view] = s.batch
	b := span{s.batch, s.batch}
	batches := 0
	for _, batch := range s.working {
		if batch != 0 {
			b.first = min(b.first, batch)
			batches++
		}
	}
	if g != nil && (g.batches < batches || g.nodes+nodes > math.MaxUint32) {
		s.present = nil
	}
	s.free(view, be)
	if s.present == nil {
		s.present = s.newGeneration(be, max(2*batches-1, len(s.working)))
		s.made[view] = append(s.made[view], s.present)
	}
	s.present.nodes += nodes
	s.present.users++
	return s.present, b
}

// end ends the batch of a view. What an incomplete one has placed is forgotten.
func (s *store) end(view int, g *generation, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !complete && s.present == g {
		s.present = nil
	}
	s.working[view] = 0
	g.users--
}

// newGeneration returns empty levels with room for so many batches like the largest so far, and for half as many nodes
// more. It may begin with the rest of a file, which is smaller than the next batches.
func (s *store) newGeneration(be backend.Backend, batches int) *generation {
	g := &generation{
		room:    max(s.largest+s.largest/2+1, leastRoom), // more than there are, for one node too
		batches: batches,
	}
	for _, h := range s.shapes {
		v := &level{cache: newCache(h.setsAt(s.shift)), next: 1}
		rows := len(v.entries)
		for range g.batches * ((g.room + chunk - 1) / chunk) {
			v.spare = append(v.spare, int32(rows))
			rows += chunk
		}
		slices.Reverse(v.spare)
		v.rows = be.Alloc(rows, h.width)
		g.levels = append(g.levels, v)
	}
	return g
}

// setsAt returns the number of sets of a level that has yet to grow by this many factors of two.
func (h shape) setsAt(shift int) int {
	return min(h.sets, max(h.sets>>shift, smallestCache))
}

// free frees what a view made and no batch will read.
func (s *store) free(view int, be backend.Backend) {
	var kept generations
	for _, g := range s.made[view] {
		if g == s.present || g.users > 0 {
			kept = append(kept, g)
			continue
		}
		for _, v := range g.levels {
			be.Free(v.rows)
		}
	}
	s.made[view] = kept
}

// close frees what a view made.
func (s *store) close(view int, be backend.Backend) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present = nil
	s.free(view, be)
}
