package plan

import "testing"

// at returns a key and its hash that are found in set 0 of a cache with one set.
func at(i uint32) (k key, hash uint64) {
	k = key{node: i, neighbours: [maxBonds]uint32{1}}
	return k, mix(uint64(i))
}

// fill places key i for the only batch in work, and returns its slot, and whether it was there.
func fill(c *cache, i, batch uint32) (slot int, found bool) {
	return fillIn(c, i, span{batch, batch})
}

func fillIn(c *cache, i uint32, b span) (slot int, found bool) {
	k, hash := at(i)
	if slot, found = c.place(hash, &k, b); slot >= 0 && !found {
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

// TestBatchesInWork: no batch takes a slot that another one in work uses, whichever began first. When
// both have ended, a later one may.
func TestBatchesInWork(t *testing.T) {
	c := newCache(1)
	for i := range uint32(ways) {
		fill(&c, i, 1)
	}
	early := span{2, 2}
	late := span{3, 2}
	for i := range uint32(ways) {
		b := late
		if i < ways/2 {
			b = early
		}
		if _, found := fillIn(&c, i, b); !found {
			t.Fatalf("environment %d is gone", i)
		}
	}
	fillIn(&c, 0, late)
	fillIn(&c, 0, early) // which must not hide that the late one uses it
	for _, b := range []span{early, late, {4, 2}} {
		if slot, _ := fillIn(&c, 100, b); slot != -1 {
			t.Errorf("batch %d takes slot %d, which another one uses", b.batch, slot)
		}
	}
	for i := range uint32(ways/2 - 1) { // environment 0 is also of the late one, as are 4 to 7
		if slot, found := fillIn(&c, 200+i, span{5, 3}); slot < 0 || found {
			t.Errorf("slot %d (found: %v) once the early one has ended", slot, found)
		}
	}
	if slot, _ := fillIn(&c, 300, span{5, 3}); slot != -1 {
		t.Errorf("batch 5 takes slot %d, which the late one uses", slot)
	}
	if slot, _ := fillIn(&c, 300, span{6, 6}); slot < 0 {
		t.Error("there is no slot once all have ended")
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
		if slot, found := c.place(42, &k, span{1, 1}); found || c.entries[slot].key.node != 0 {
			t.Fatalf("environment %d: slot %d is taken, or found: %v", i, slot, found)
		} else {
			c.entries[slot].key = key{node: i, labels: [maxBonds]uint16{1}}
		}
	}
	for i := range uint32(ways) {
		k := key{node: i, labels: [maxBonds]uint16{1}}
		if slot, found := c.place(42, &k, span{2, 2}); !found || c.entries[slot].key != k {
			t.Fatalf("environment %d is not found (slot %d)", i, slot)
		}
	}
}
