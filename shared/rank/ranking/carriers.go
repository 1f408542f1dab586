package ranking

import "math/bits"

// words is how many words have a bit for each place that diversity fills.
const words = (MaxDiversified + 63) / 64

// carriers finds how many filters an object has in common with each chosen item, for
// 64 items at a time: each filter has a bit for each place, and counters of one bit
// for each place add these up. It compares filters by their hashes: of a million
// filters two have the same hash with a probability of 3e-8.
type carriers struct {
	places  int
	slots   []slot          // a power of 2; key is the index in carried + 1
	carried [][words]uint64 // by filter: the places whose items carry it
	sizes   []sizeGroup
}

// sizeGroup are the places whose items have the same number of filters.
type sizeGroup struct {
	size   int
	places [words]uint64
}

// maxKept is how many slots later rankings use again, in a quarter of a megabyte.
const maxKept = 1 << 14

func (c *carriers) reset() {
	if len(c.slots) > maxKept {
		*c = carriers{}
	}
	clear(c.slots)
	c.places, c.carried, c.sizes = 0, c.carried[:0], c.sizes[:0]
}

// add adds the item at the next place, which has the values from start to end of an
// object.
func (c *carriers) add(o *Object, start, end int32) {
	word, bit := c.places/64, uint64(1)<<(c.places%64)
	c.places++
	group(&c.sizes, int(end-start)).places[word] |= bit
	c.slots = grown(c.slots, len(c.carried)+int(end-start))
	for i := start; i < end; i++ {
		s := at(c.slots, o.values[i].hash)
		if s.key == 0 {
			c.carried = append(c.carried, [words]uint64{})
			s.hash, s.key = o.values[i].hash, int32(len(c.carried))
		}
		c.carried[s.key-1][word] |= bit
	}
}

// group returns the group of a size, and adds it where it is new.
func group(all *[]sizeGroup, size int) *sizeGroup {
	for i := range *all {
		if (*all)[i].size == size {
			return &(*all)[i]
		}
	}
	*all = append(*all, sizeGroup{size: size})
	return &(*all)[len(*all)-1]
}

// counters are the common filters by place: bit i of the count of a place is in
// counters[word][i].
type counters [words][24]uint64

// overlap returns the highest overlap of the values from start to end of an object
// with an item at a place from first on, and the first such place.
func (c *carriers) overlap(o *Object, start, end, first int32) (highest float64, place int) {
	var n counters
	depth := c.count(&n, o, start, end, int(first))
	from, last := int(first)/64, (c.places-1)/64
	for i := range c.sizes {
		g := &c.sizes[i]
		common, found := 0, 0
		for w := from; w <= last; w++ {
			in := g.places[w]
			if w == from {
				in &= ^uint64(0) << (first % 64)
			}
			if most, bit := n.most(w, depth, in); most > common {
				common, found = most, 64*w+bit
			}
		}
		if o := jaccard(common, int(end-start), g.size); o > highest || o == highest && found < place {
			highest, place = o, found
		}
	}
	return highest, place
}

// count adds up the places of the values, those before the word of first left out. It
// returns how many bits the highest count can have.
func (c *carriers) count(n *counters, o *Object, start, end int32, first int) (depth int) {
	from, last, found := first/64, (c.places-1)/64, uint(0)
	for i := start; i < end; i++ {
		s := at(c.slots, o.values[i].hash)
		if s.key == 0 {
			continue
		}
		found++
		carried := &c.carried[s.key-1]
		for w := from; w <= last; w++ {
			for carry, k := carried[w], 0; carry != 0; k++ {
				n[w][k], carry = n[w][k]^carry, n[w][k]&carry
			}
		}
	}
	return bits.Len(found)
}

// most returns the highest count of the places in a word, and the first of them.
func (n *counters) most(word, depth int, in uint64) (count, bit int) {
	if in == 0 {
		return 0, 0
	}
	for k := depth - 1; k >= 0; k-- {
		if with := in & n[word][k]; with != 0 {
			in = with
			count |= 1 << k
		}
	}
	return count, bits.TrailingZeros64(in)
}
