package crowdbuild

import (
	"strconv"
	"testing"
)

func TestObjectSet(t *testing.T) {
	const objects = 10_000
	set := newObjectSet()
	for i := range objects {
		set.add(strconv.Itoa(i))
	}
	set.seal()
	for i := range 2 * objects {
		if id := strconv.Itoa(i); set.has(id) != (i < objects) {
			t.Fatalf("the set of 0 to %d holds %s: %t", objects-1, id, !(i < objects))
		}
	}
}

// BenchmarkObjects reports the memory of a catalog of a million objects.
func BenchmarkObjects(b *testing.B) {
	for b.Loop() {
		set := newObjectSet()
		for i := range 1_000_000 {
			set.add(strconv.Itoa(i))
		}
		set.seal()
		b.ReportMetric(float64(8*cap(set.hashes))/1e6, "B/object")
	}
}
