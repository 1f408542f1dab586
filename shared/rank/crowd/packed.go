package crowd

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"unsafe"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/wire"
)

// PackedBytes is the size that a cell of packed counts or frequencies should not
// exceed by much, in bytes.
const PackedBytes = 256 << 10

// Counted are the decayed counts of an object.
type Counted struct {
	ObjectID string
	Count    float64
	Recent   float64
}

// PackCounts returns the stored form of counts, in cells of some PackedBytes.
// counts must be by ObjectID.
func PackCounts(counts []Counted) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(counts) > 0 {
			n, size := 0, 0
			for n < len(counts) && size < PackedBytes {
				size += len(counts[n].ObjectID) + 18
				n++
			}
			b := binary.AppendUvarint([]byte{format}, uint64(n))
			previous := ""
			for _, o := range counts[:n] {
				b = wire.AppendFloat(wire.AppendFloat(wire.AppendNext(b, previous, o.ObjectID), o.Count), o.Recent)
				previous = o.ObjectID
			}
			if !yield(wire.Seal(b, 0)) {
				return
			}
			counts = counts[n:]
		}
	}
}

// AddCounts adds the counts of a cell to the statistics of an index. The error is
// wire.ErrNewer if a newer version of the engine wrote the cell.
func (x *Index) AddCounts(cell []byte) error {
	c, err := wire.Unseal(cell, format)
	if err != nil {
		return fmt.Errorf("read counts: %w", err)
	}
	if x.Counts == nil {
		x.Counts = map[string]float64{}
	}
	previous := ""
	for range c.Size(18) {
		id := nextText(&c, previous)
		n, recent := c.Float(), c.Float()
		if c.Damaged {
			break
		}
		x.Counts[id], previous = n, id
		x.rise(id, Trend(n, x.HalfLife, recent))
		x.Highest = max(x.Highest, n)
	}
	if err := c.End(); err != nil {
		return fmt.Errorf("read counts: %w", err)
	}
	return nil
}

// PackFrequencies returns the stored form of document frequencies, in cells of
// some PackedBytes.
func PackFrequencies(frequencies map[event.Filter]int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		filters := slices.SortedFunc(maps.Keys(frequencies), func(f, g event.Filter) int {
			return cmp.Or(strings.Compare(f.Facet, g.Facet), strings.Compare(f.Value, g.Value))
		})
		for len(filters) > 0 {
			n, size := 0, 0
			for n < len(filters) && size < PackedBytes {
				size += len(filters[n].Facet) + len(filters[n].Value) + 5
				n++
			}
			b := binary.AppendUvarint([]byte{format}, uint64(n))
			var previous event.Filter
			for _, f := range filters[:n] {
				b = wire.AppendNext(b, previous.Facet, f.Facet)
				b = wire.AppendNext(b, previous.Value, f.Value)
				b = binary.AppendUvarint(b, uint64(frequencies[f]))
				previous = f
			}
			if !yield(wire.Seal(b, 0)) {
				return
			}
			filters = filters[n:]
		}
	}
}

// AddFrequencies adds the frequencies of a cell to the statistics of an index.
// The error is wire.ErrNewer if a newer version of the engine wrote the cell.
func (x *Index) AddFrequencies(cell []byte) error {
	c, err := wire.Unseal(cell, format)
	if err != nil {
		return fmt.Errorf("read document frequencies: %w", err)
	}
	if x.Frequencies == nil {
		x.Frequencies = map[event.Filter]int{}
	}
	var f event.Filter
	for range c.Size(5) {
		f = event.Filter{Facet: nextText(&c, f.Facet), Value: nextText(&c, f.Value)}
		n := c.Number()
		if c.Damaged {
			break
		}
		x.Frequencies[f] = int(n)
	}
	if err := c.End(); err != nil {
		return fmt.Errorf("read document frequencies: %w", err)
	}
	return nil
}

// Size estimates the memory that the statistics take, in bytes, for caches.
func (x *Index) Size() int {
	size := 256
	for id := range x.Counts {
		size += len(id) + entryBytes
	}
	for f := range x.Frequencies {
		size += filterSize(f)
	}
	return size + cap(x.Risen)*int(unsafe.Sizeof(Scored{}))
}

// entryBytes is about what an entry of a map that has just grown takes, with the header of a
// string and what the allocator adds to its text.
const entryBytes = 56

func filterSize(f event.Filter) int { return len(f.Facet) + len(f.Value) + entryBytes + 16 }
