package event

// Bounds of what an event that names objects counts, together: an event may name 20
// objects, and an object may have 1,000 filters of 64 KiB. Without bounds a request
// of some kilobytes would write a gigabyte to the log.
//
// The objects count in the order in which the event names them. An object whose
// filters would exceed a bound, with those of the objects that count before it, counts
// as an object without filters, and the next one may count again. The first object
// always counts. A filter of several objects is counted for each of them.
//
// So what an event counts follows from the event and its objects alone, not from the
// request that it came in. And an object counts with all of its filters or with none,
// because some of them would describe it wrongly. Twenty objects of 100 filters with 32
// bytes each are within the bounds.
const (
	MaxCounted      = 2_000    // filters
	MaxCountedBytes = 64 << 10 // of facets and values
)

// Bound says which objects of an event count. The zero value is ready for the first.
type Bound struct{ objects, filters, bytes int }

// Counts reports whether the next object counts. It has so many filters, and their
// facets and values so many bytes.
func (b *Bound) Counts(filters, bytes int) bool {
	if b.objects++; b.objects > 1 && filters > 0 && (b.filters+filters > MaxCounted || b.bytes+bytes > MaxCountedBytes) {
		return false
	}
	b.filters, b.bytes = b.filters+filters, b.bytes+bytes
	return true
}
