package rank

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/affinityengine/affinity/shared/rank/ranking"
)

// candidateList holds the candidates of a request, each once. It finds them by
// their objectID in a hash table of their positions, a third of the size of a map
// of their IDs.
type candidateList struct {
	all   []ranking.Candidate
	slots []int32 // position + 1; 0: free. At most half are taken.
}

// lists keeps the memory of lists for later requests.
var lists = sync.Pool{New: func() any { return &candidateList{} }}

var seed = maphash.MakeSeed()

// add adds a candidate unless the list has its objectID.
func (l *candidateList) add(c ranking.Candidate) {
	if 2*len(l.all) >= len(l.slots) {
		l.slots = make([]int32, max(256, 2*len(l.slots)))
		for i := range l.all {
			l.slots[l.find(l.all[i].ObjectID)] = int32(i + 1)
		}
	}
	if slot := l.find(c.ObjectID); l.slots[slot] == 0 {
		l.all = append(l.all, c)
		l.slots[slot] = int32(len(l.all))
	}
}

// find returns the slot of an objectID: its own, or the free one where it
// belongs.
func (l *candidateList) find(id string) uint64 {
	mask := uint64(len(l.slots) - 1)
	slot := maphash.String(seed, id) & mask
	for l.slots[slot] != 0 && l.all[l.slots[slot]-1].ObjectID != id {
		slot = (slot + 1) & mask
	}
	return slot
}

// reset makes the list empty. It keeps its memory, but no text of a body.
func (l *candidateList) reset() {
	clear(l.all)
	clear(l.slots)
	l.all = l.all[:0]
}

// leaveOut takes the excluded objects from the candidates.
func (r *request) leaveOut() {
	if len(r.exclude) == 0 {
		return
	}
	out := make(map[string]bool, len(r.exclude))
	for _, id := range r.exclude {
		out[id] = true
	}
	r.Candidates = slices.DeleteFunc(r.Candidates, func(c ranking.Candidate) bool { return out[c.ObjectID] })
}
