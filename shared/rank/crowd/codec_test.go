package crowd_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/wire"
)

var genID = rapid.OneOf(rapid.StringN(1, 8, 30), rapid.StringMatching(`sku-[0-9]{1,4}`))

// genPairs draws pairs with different objectIDs, by objectID.
func genPairs(t *rapid.T) []crowd.Pair {
	pairs := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) crowd.Pair {
		return crowd.Pair{ObjectID: genID.Draw(t, "id"), Count: rapid.Int64Min(0).Draw(t, "count")}
	}), 0, 8, func(p crowd.Pair) string { return p.ObjectID }).Draw(t, "pairs")
	slices.SortFunc(pairs, func(p, q crowd.Pair) int { return strings.Compare(p.ObjectID, q.ObjectID) })
	return pairs
}

func genParts(t *rapid.T) []crowd.Partial {
	parts := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) crowd.Partial {
		return crowd.Partial{
			ObjectID: genID.Draw(t, "first"), Events: rapid.Int64Min(0).Draw(t, "events"),
			Count: rapid.Float64Range(0, 1e12).Draw(t, "decayed"), Recent: rapid.Float64Range(0, 1e12).Draw(t, "recent"), Own: rapid.Int64Min(0).Draw(t, "own"),
			Links: [crowd.Kinds]crowd.Listed{{Pairs: genPairs(t), Dropped: rapid.Int64Min(0).Draw(t, "dropped")}, {Pairs: genPairs(t)}, {Pairs: genPairs(t)}, {Pairs: genPairs(t)}},
		}
	}), 0, 8, func(p crowd.Partial) string { return p.ObjectID }).Draw(t, "parts")
	slices.SortFunc(parts, func(p, q crowd.Partial) int { return strings.Compare(p.ObjectID, q.ObjectID) })
	return parts
}

func readParts(b []byte) ([]crowd.Partial, error) {
	r, err := crowd.NewPartReader(b)
	if err != nil {
		return nil, err
	}
	var parts []crowd.Partial
	for {
		p, ok, err := r.Next()
		if err != nil || !ok {
			return parts, err
		}
		parts = append(parts, p)
	}
}

func TestPartsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genParts(t)
		prefix := rapid.SliceOf(rapid.Byte()).Draw(t, "prefix")
		b := crowd.AppendParts(bytes.Clone(prefix), want)
		got, err := readParts(b[len(prefix):])
		must.Succeed(t, err)
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("parts (-written +read):\n%s", diff)
		}
	})
}

func TestObjectRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := crowd.Object{Events: rapid.Int64Min(0).Draw(t, "events"), Links: [crowd.Kinds][]crowd.Pair{genPairs(t), genPairs(t), genPairs(t)}, Bound: rapid.Int64Min(0).Draw(t, "bound")}
		got, err := crowd.ParseObject(want.AppendBinary(nil))
		must.Succeed(t, err)
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("statistics (-written +read):\n%s", diff)
		}
	})
}

func TestPackedRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := crowd.Index{
			Counts: rapid.MapOf(genID, rapid.Float64Range(0, 1e12)).Draw(t, "counts"),
			Frequencies: rapid.MapOf(rapid.Custom(func(t *rapid.T) event.Filter {
				return event.Filter{Facet: genID.Draw(t, "facet"), Value: genID.Draw(t, "value")}
			}), rapid.IntMin(0)).Draw(t, "frequencies"),
		}
		checkPacked(t, want)
	})
}

func checkPacked(t rapid.TB, want crowd.Index) (cells int) {
	t.Helper()
	var counts []crowd.Counted
	for id, n := range want.Counts {
		counts = append(counts, crowd.Counted{ObjectID: id, Count: n})
		want.Highest = max(want.Highest, n)
	}
	slices.SortFunc(counts, func(a, b crowd.Counted) int { return cmp.Compare(a.ObjectID, b.ObjectID) })
	var got crowd.Index
	for cell := range crowd.PackCounts(counts) {
		cells++
		must.Succeed(t, got.AddCounts(cell))
	}
	for cell := range crowd.PackFrequencies(want.Frequencies) {
		cells++
		must.Succeed(t, got.AddFrequencies(cell))
	}
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("statistics (-written +read):\n%s", diff)
	}
	return cells
}

// Large indexes take several cells, none much larger than PackedBytes.
func TestPackedCells(t *testing.T) {
	x := crowd.Index{Counts: map[string]float64{}, Frequencies: map[event.Filter]int{}}
	for i := range race.Or[uint32](60_000, 15_000) {
		x.Counts[name(i)] = float64(i)
		x.Frequencies[event.Filter{Facet: name(i % 7), Value: name(i)}] = int(i)
	}
	if cells := checkPacked(t, x); cells < race.Or(6, 2) {
		t.Errorf("%d cells, want several", cells)
	}
	for cell := range crowd.PackFrequencies(x.Frequencies) {
		if len(cell) > 2*crowd.PackedBytes {
			t.Errorf("a cell has %d bytes", len(cell))
		}
	}
}

// decoders decode each stored form.
var decoders = map[string]func([]byte) error{
	"object":      func(b []byte) error { _, err := crowd.ParseObject(b); return err },
	"parts":       func(b []byte) error { _, err := readParts(b); return err },
	"counts":      func(b []byte) error { return new(crowd.Index).AddCounts(b) },
	"frequencies": func(b []byte) error { return new(crowd.Index).AddFrequencies(b) },
	"liked":       func(b []byte) error { _, err := crowd.ParseLiked(b); return err },
}

// stored are examples of each stored form.
func stored() map[string][]byte {
	values := map[string][]byte{
		"object": crowd.Object{Events: 3, Links: [crowd.Kinds][]crowd.Pair{{{ObjectID: "b", Count: 2}}, {{ObjectID: "c", Count: 2520}}}, Bound: 1}.AppendBinary(nil),
		"liked":  crowd.AppendLiked(nil, []crowd.Scored{{ObjectID: "a", Score: 2}, {ObjectID: "b", Score: 1}}),
		"parts": crowd.AppendParts(nil, []crowd.Partial{
			{ObjectID: "a", Events: 3, Count: 1.5, Links: [crowd.Kinds]crowd.Listed{{Pairs: []crowd.Pair{{ObjectID: "a1", Count: 2}, {ObjectID: "b", Count: 1}}}}},
			{ObjectID: "b", Events: 1, Count: 1, Own: 5, Links: [crowd.Kinds]crowd.Listed{{Dropped: 4}}},
		}),
	}
	for cell := range crowd.PackCounts([]crowd.Counted{{"a", 1, 0}, {"ab", 2, 1}}) {
		values["counts"] = cell
	}
	for cell := range crowd.PackFrequencies(map[event.Filter]int{{Facet: "brand", Value: "Acme"}: 2, {Facet: "brand", Value: "Bolt"}: 1}) {
		values["frequencies"] = cell
	}
	return values
}

// A changed byte is an error. So is a value that was cut.
func TestDamageIsAnError(t *testing.T) {
	for form, value := range stored() {
		decode := decoders[form]
		if err := decode(value); err != nil {
			t.Errorf("%s: %v", form, err)
		}
		for i := range value {
			damaged := bytes.Clone(value)
			damaged[i] ^= 0x10
			if decode(damaged) == nil {
				t.Errorf("%s: byte %d may change", form, i)
			}
			if decode(value[:i]) == nil {
				t.Errorf("%s: %d of %d bytes decode", form, i, len(value))
			}
		}
	}
}

func TestNewerFormat(t *testing.T) {
	for form, value := range stored() {
		newer := crowd.Reseal(append([]byte{9}, value[1:len(value)-4]...))
		if err := decoders[form](newer); !errors.Is(err, wire.ErrNewer) {
			t.Errorf("%s in format 9: %v, want wire.ErrNewer", form, err)
		}
	}
}

// Bytes with a right checksum never crash a decoder.
func FuzzDecode(f *testing.F) {
	for _, value := range stored() {
		f.Add(value[:len(value)-4])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, decode := range decoders {
			_ = decode(crowd.Reseal(bytes.Clone(content)))
			_ = decode(content)
		}
	})
}

// Size is what an index that was read takes, or somewhat more.
func TestSizeOfIndex(t *testing.T) {
	for name, n := range map[string]struct{ objects, filters uint32 }{
		"counts": {200_000, 0}, "frequencies": {0, 200_000}, "just grown": {115_000, 0}, "both": {100_000, 50_000},
	} {
		t.Run(name, func(t *testing.T) {
			var cells [2][][]byte
			counts, frequencies := []crowd.Counted(nil), map[event.Filter]int{}
			for i := range n.objects {
				counts = append(counts, crowd.Counted{ObjectID: fmt.Sprintf("product-%09d", i), Count: 1})
			}
			for i := range n.filters {
				frequencies[event.Filter{Facet: "categories.lvl2", Value: fmt.Sprintf("Shoes > Running > %07d", i)}] = 1
			}
			cells[0] = slices.Collect(crowd.PackCounts(counts))
			cells[1] = slices.Collect(crowd.PackFrequencies(frequencies))
			var x crowd.Index
			before := heap()
			for _, cell := range cells[0] {
				must.Succeed(t, x.AddCounts(cell))
			}
			for _, cell := range cells[1] {
				must.Succeed(t, x.AddFrequencies(cell))
			}
			taken := heap() - before
			if size := x.Size(); size < taken*9/10 || size > taken*2 {
				t.Errorf("Size is %d, the heap has grown by %d", size, taken)
			} else {
				t.Logf("Size is %d, the heap has grown by %d", size, taken)
			}
			runtime.KeepAlive(cells)
			runtime.KeepAlive(counts)
			runtime.KeepAlive(frequencies)
		})
	}
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
