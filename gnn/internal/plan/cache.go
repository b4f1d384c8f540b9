package plan

import "math/bits"

// cache finds the environments of one radius that occurred before. Each has a slot, in which
// its row is kept. A slot belongs to a set of [ways] slots, and the hash of an environment
// chooses its set.
//
// Which slot of a set is replaced follows Jaleel, Theobald, Steely and Emer (2010), with priority by
// frequency: a new environment counts as old, and becomes younger each time that it occurs again. So
// environments that occur once do not replace those that occur often. A slot that a batch in work
// uses is never replaced.
type cache struct {
	sets    []set
	entries []entry // [ways·sets]
}

// set is what finds environments in a set of slots. It is small, so that all sets stay in
// the processor's cache.
type set struct {
	tags uint64       // for each slot, a byte of the hash
	ages uint64       // for each slot, a byte: 0 to oldest
	used [ways]uint32 // the last batch that used each slot
}

// entry is what a slot holds besides the row.
type entry struct {
	key    key
	number uint32 // see [Environments]
	filled uint32 // the batch that computes the row
}

// span is a batch in work. Batches are numbered from 1 in the order in which they begin.
type span struct {
	batch uint32
	first uint32 // the first batch that was in work when this one began
}

// ended reports whether another batch had ended when this one began.
func (s span) ended(batch uint32) bool { return batch < s.first }

// key tells environments of a radius apart: the number of the node's environment of the radius
// before, and for each bond its label and the number of the neighbour's. For radius 0, node
// is the category, and the first neighbour 1, which makes it differ from a free slot.
type key struct {
	node       uint32
	neighbours [maxBonds]uint32
	labels     [maxBonds]uint16
}

const (
	ways      = 8
	oldest    = 60                 // of an age
	younger   = 8                  // by how much an age falls when the environment occurs
	highBit   = 1 << 7             // of a byte
	everyByte = 0x0101010101010101 // times a byte: this byte for every slot
	maxBonds  = 4                  // of an environment that is kept; carbon has no more
)

func newCache(sets int) cache {
	return cache{sets: make([]set, sets), entries: make([]entry, ways*sets)}
}

// setOf returns the number of the set of a hash.
func (c *cache) setOf(hash uint64) int {
	number, _ := bits.Mul64(hash, uint64(len(c.sets)))
	return int(number)
}

// touch reads what place will compare with a key, so that the processor fetches it early.
func (c *cache) touch(hash uint64) uint32 {
	number := c.setOf(hash)
	candidates := c.sets[number].candidates(hash)
	if candidates == 0 {
		return 0
	}
	return c.entries[ways*number+bits.TrailingZeros64(candidates)/8].number
}

// candidates returns the highest bit of the byte of each slot that may hold a hash. These
// are all slots with its tag, and perhaps one above such a slot.
func (s *set) candidates(hash uint64) uint64 {
	differ := s.tags ^ uint64(byte(hash))*everyByte
	return (differ - everyByte) &^ differ & (highBit * everyByte)
}

// place returns the slot that holds an environment. If none does, it returns the slot that
// the caller is to fill with it, or -1 if batches in work use all slots of the set.
func (c *cache) place(hash uint64, k *key, b span) (slot int, found bool) {
	number := c.setOf(hash)
	s := &c.sets[number]
	for candidates := s.candidates(hash); candidates != 0; candidates &= candidates - 1 {
		position := bits.TrailingZeros64(candidates) / 8
		if slot := ways*number + position; c.entries[slot].key == *k {
			age := int(byte(s.ages >> (8 * position)))
			s.ages = withByte(s.ages, position, byte(max(0, age-younger)))
			s.used[position] = max(s.used[position], b.batch)
			return slot, true
		}
	}
	victim := 0
	age := -1
	unused := uint64(0) // 1 for each slot that may be replaced
	for position, used := range s.used {
		if !b.ended(used) {
			continue
		}
		unused |= 1 << (8 * position)
		if a := int(byte(s.ages >> (8 * position))); a > age {
			victim = position
			age = a
		}
	}
	if age < 0 {
		return -1, false
	}
	s.ages += uint64(oldest-age) * unused
	s.tags = withByte(s.tags, victim, byte(hash))
	s.ages = withByte(s.ages, victim, oldest-1)
	s.used[victim] = b.batch
	return ways*number + victim, false
}

// withByte returns word with its byte i replaced.
func withByte(word uint64, i int, b byte) uint64 {
	return word&^(0xff<<(8*i)) | uint64(b)<<(8*i)
}

// mix is a step of SplitMix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
