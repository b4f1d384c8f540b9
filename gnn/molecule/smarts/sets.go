package smarts

import "slices"

// sets collects matches with different sets of atoms.
type sets struct {
	size   int // atoms of a match
	count  int
	images []int32 // in the order of the pattern, if they are wanted
	sorted []int32
	hashes []uint64
	byHash map[uint64]int32 // the first set of a hash, where there are many sets
}

// few is the number of sets up to which they are compared one by one.
const few = 16

func (s *sets) reset(size int) {
	s.size = size
	s.count = 0
	s.images = s.images[:0]
	s.sorted = s.sorted[:0]
	s.hashes = s.hashes[:0]
	clear(s.byHash)
}

func (s *sets) of(k int) []int32 { return s.sorted[k*s.size : (k+1)*s.size] }

// add adds a match unless one with the same atoms is there.
func (s *sets) add(image []int32, keep bool) {
	start := len(s.sorted)
	s.sorted = append(s.sorted, image...)
	set := s.sorted[start:]
	slices.Sort(set)
	hash := uint64(0)
	for _, i := range set {
		hash = (hash ^ uint64(i)) * 0x9e3779b97f4a7c15
		hash ^= hash >> 29
	}
	if s.has(set, hash) {
		s.sorted = s.sorted[:start]
		return
	}
	s.hashes = append(s.hashes, hash)
	if keep {
		s.images = append(s.images, image...)
	}
	s.count++
	if s.count > few {
		s.index()
	}
}

// has reports whether a set has been added.
func (s *sets) has(set []int32, hash uint64) bool {
	if s.count > few {
		k, ok := s.byHash[hash]
		if !ok || slices.Equal(s.of(int(k)), set) {
			return ok
		}
	}
	for k, h := range s.hashes {
		if h == hash && slices.Equal(s.of(k), set) {
			return true
		}
	}
	return false
}

// index enters the last set into byHash, and at first all sets.
func (s *sets) index() {
	if s.byHash == nil {
		s.byHash = map[uint64]int32{}
	}
	start := s.count - 1
	if s.count == few+1 {
		start = 0
	}
	for k := start; k < s.count; k++ {
		if _, ok := s.byHash[s.hashes[k]]; !ok {
			s.byHash[s.hashes[k]] = int32(k)
		}
	}
}
