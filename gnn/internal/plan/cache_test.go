package plan

import "testing"

// at returns a key and its hash that are found in set 0 of a cache with one set.
func at(i uint32) (k key, hash uint64) {
	k = key{node: i, neighbours: [maxBonds]uint32{1}}
	return k, mix(uint64(i))
}

// fill places key i for a batch and returns its slot, and whether it was there.
func fill(c *cache, i, batch uint32) (slot int, found bool) {
	k, hash := at(i)
	if slot, found = c.place(hash, &k, batch); slot >= 0 && !found {
		c.entries[slot] = entry{key: k, number: i}
	}
	return slot, found
}

// TestSlotsInUse: no environment of a batch takes the slot of another of the same batch; the
// next batch may replace them all.
func TestSlotsInUse(t *testing.T) {
	c := newCache(1)
	for batch := uint32(1); batch < 6; batch++ {
		holders := map[int]uint32{}
		for i := range uint32(ways) {
			slot, found := fill(&c, 100*batch+i, batch)
			if other, taken := holders[slot]; taken || slot < 0 || found {
				t.Fatalf("batch %d: environment %d: slot %d (found: %v) is taken by %d", batch, i, slot, found, other)
			}
			holders[slot] = i
		}
		for i := uint32(50); i < 60; i++ {
			if slot, _ := fill(&c, 100*batch+i, batch); slot != -1 {
				t.Fatalf("batch %d: environment %d takes slot %d, which the batch uses", batch, i, slot)
			}
		}
		for i := range uint32(ways) { // all are still there
			if slot, found := fill(&c, 100*batch+i, batch); !found || holders[slot] != i {
				t.Fatalf("batch %d: environment %d is not found in its slot", batch, i)
			}
		}
	}
}

// TestReplacement: environments that occur again outlive those that occur once.
func TestReplacement(t *testing.T) {
	c := newCache(1)
	for batch := uint32(1); batch < 100; batch++ {
		for i := range uint32(4) {
			if _, found := fill(&c, i, batch); found != (batch > 1) {
				t.Fatalf("batch %d: environment %d: found is %v", batch, i, found)
			}
		}
		for i := range uint32(2) { // never seen again
			if slot, found := fill(&c, 1000+2*batch+i, batch); slot < 0 || found {
				t.Fatalf("batch %d: a new environment gets slot %d, found: %v", batch, slot, found)
			}
		}
	}
}

// TestTags: two environments with one tag are told apart by their keys.
func TestTags(t *testing.T) {
	c := newCache(1)
	for i := range uint32(ways) {
		k := key{node: i}
		if slot, found := c.place(42, &k, 1); found || c.entries[slot].key.node != 0 {
			t.Fatalf("environment %d: slot %d is taken, or found: %v", i, slot, found)
		} else {
			c.entries[slot].key = key{node: i, labels: [maxBonds]uint16{1}}
		}
	}
	for i := range uint32(ways) {
		k := key{node: i, labels: [maxBonds]uint16{1}}
		if slot, found := c.place(42, &k, 2); !found || c.entries[slot].key != k {
			t.Fatalf("environment %d is not found (slot %d)", i, slot)
		}
	}
}
