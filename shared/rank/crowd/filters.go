package crowd

import (
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/event"
)

// FilterBytes is how much memory the document frequencies of an index may take while
// they are counted, and as much its Likes, by the estimate of Index.Size. Statistics of much more are too large
// for the functions that read them.
const FilterBytes = 64 << 20

// FilterCounter counts document frequencies: how many objects carry each filter. While
// they fit its memory they are exact. When they do not, it forgets the filters that it
// has counted least often, until half of its memory is free, and goes on: lossy counting
// (Manku and Motwani, Approximate Frequency Counts over Data Streams, VLDB 2002). A
// frequency is then at most Bound too low, and a filter without one is carried by at
// most Bound objects. It never is too high.
type FilterCounter struct {
	counts map[event.Filter]int
	bytes  int
	most   int
	bound  int
}

// NewFilterCounter returns a counter whose counts take so many bytes at most.
func NewFilterCounter(bytes int) *FilterCounter {
	return &FilterCounter{counts: map[event.Filter]int{}, most: bytes}
}

// Add counts the filters of one object. A filter that occurs twice counts once.
func (c *FilterCounter) Add(filters []event.Filter) {
	for i, f := range filters {
		if contains(filters[:i], f) {
			continue
		}
		n := c.counts[f]
		if n == 0 {
			c.bytes += filterSize(f)
		}
		c.counts[f] = n + 1
	}
	if c.bytes > c.most {
		c.forget()
	}
}

// forget forgets the filters with the lowest counts, and all of equal counts.
func (c *FilterCounter) forget() {
	sizes := map[int]int{} // by count
	for f, n := range c.counts {
		sizes[n] += filterSize(f)
	}
	highest := rarest(sizes, &c.bytes, c.most)
	maps.DeleteFunc(c.counts, func(_ event.Filter, n int) bool { return n <= highest })
	c.bound += highest
}

// rarest returns the highest count of what to forget, so that at most half of the bytes
// that may be taken are, and takes its bytes off. sizes has the bytes by count.
func rarest(sizes map[int]int, bytes *int, most int) (highest int) {
	for _, n := range slices.Sorted(maps.Keys(sizes)) {
		if *bytes <= most/2 {
			break
		}
		*bytes -= sizes[n]
		highest = n
	}
	return highest
}

// Frequencies returns the document frequencies.
func (c *FilterCounter) Frequencies() map[event.Filter]int { return c.counts }

// Bound is 0 if the frequencies are exact. Otherwise they are too low by at most as many
// objects.
func (c *FilterCounter) Bound() int { return c.bound }
