package rank

import (
	"hash/maphash"

	"github.com/affinityengine/affinity/shared/ranking"
)

// candidateSet finds candidates by their objectID. It is a hash table of their
// positions, a third of the size of a map of their IDs.
type candidateSet struct {
	slots []int32 // position + 1; 0: free. At most half are taken.
}

var seed = maphash.MakeSeed()

// add reports whether an objectID is new, and adds it at the position behind all.
func (s *candidateSet) add(id string, all []ranking.Candidate) bool {
	if 2*len(all) >= len(s.slots) {
		s.slots = make([]int32, max(256, 2*len(s.slots)))
		for i := range all {
			s.slots[s.find(all[i].ObjectID, all)] = int32(i + 1)
		}
	}
	slot := s.find(id, all)
	if s.slots[slot] != 0 {
		return false
	}
	s.slots[slot] = int32(len(all) + 1)
	return true
}

// find returns the slot of an objectID: its own, or the free one where it
// belongs.
func (s *candidateSet) find(id string, all []ranking.Candidate) uint64 {
	mask := uint64(len(s.slots) - 1)
	slot := maphash.String(seed, id) & mask
	for s.slots[slot] != 0 && all[s.slots[slot]-1].ObjectID != id {
		slot = (slot + 1) & mask
	}
	return slot
}
