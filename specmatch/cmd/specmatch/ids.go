package main

import (
	"fmt"
	"hash/maphash"

	"github.com/specmatch/specmatch/specmatch/apply"
)

// maxIDs bounds the ids that [ids] remembers, some 40 MB of them.
const maxIDs = 1 << 20

// ids counts the records whose id an earlier record has.
type ids struct {
	seed     maphash.Seed
	seen     map[uint64]bool // by hash
	repeated int
	example  string
}

func newIDs() *ids {
	return &ids{seed: maphash.MakeSeed(), seen: map[uint64]bool{}}
}

// add counts the records of a batch.
func (s *ids) add(b apply.Batch) {
	for _, r := range b.Records {
		hash := maphash.String(s.seed, r.ID)
		switch {
		case s.seen[hash]:
			s.repeated++
			if s.example == "" {
				s.example = r.ID
			}
		case len(s.seen) < maxIDs:
			s.seen[hash] = true
		}
	}
}

// String describes the repeated ids of a column; it is empty if there are none.
func (s *ids) String() string {
	switch {
	case s.repeated == 0:
		return ""
	case len(s.seen) == maxIDs:
		return fmt.Sprintf("%d records have the id of one of the first %d, such as %q", s.repeated, maxIDs, s.example)
	}
	return fmt.Sprintf("%d records have the id of an earlier one, such as %q", s.repeated, s.example)
}
