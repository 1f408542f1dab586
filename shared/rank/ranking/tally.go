package ranking

// tally counts by hash. Two texts of a million have the same hash with a probability
// of 3e-8.
type tally struct {
	slots []slot // a power of 2; key is the count
	n     int
}

func (t *tally) reset() {
	if len(t.slots) > maxKept {
		t.slots = nil
	}
	clear(t.slots)
	t.n = 0
	t.slots = grown(t.slots, 1)
}

func (t *tally) of(hash uint64) int32 { return at(t.slots, hash).key }

func (t *tally) add(hash uint64) {
	t.slots = grown(t.slots, t.n+1)
	s := at(t.slots, hash)
	if s.key == 0 {
		t.n++
	}
	s.hash, s.key = hash, s.key+1
}
