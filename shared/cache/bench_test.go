package cache

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"
	"unique"

	"github.com/maypok86/otter/v2"
)

// BenchmarkLookups finds 1,000 objects of a catalog, as a ranking of as many candidates does,
// in a table, in a Map, and in a cache of the library that is compiled for these keys.
func BenchmarkLookups(b *testing.B) {
	const candidates = 1000
	type key struct {
		from unique.Handle[string]
		id   string
	}
	seed, from := maphash.MakeSeed(), unique.Make("shop,products")
	hash := func(k key) uint64 { return maphash.String(seed, k.id) }
	size := func(key, *int) int { return 60 }
	for _, catalog := range []int{1_000, 10_000, 100_000} {
		t := newTable(1<<30, hash, size)
		m := entries[key, *int]{NewSized(1<<30, func(key, *Entry[*int]) int { return 60 })}
		typed := otter.Must(&otter.Options[key, *Entry[*int]]{
			MaximumWeight: 1 << 30, Weigher: func(key, *Entry[*int]) uint32 { return 300 }, Clock: still{}, Logger: &otter.NoopLogger{},
		})
		keys := make([]key, catalog)
		for i, n := range rand.New(rand.NewPCG(1, 2)).Perm(catalog) {
			keys[i] = key{from, fmt.Sprintf("product-%07d", n)}
			t.put(keys[i], Entry[*int]{})
			m.put(keys[i], Entry[*int]{})
			typed.Set(keys[i], &Entry[*int]{})
		}
		asked := make([]key, catalog) // with texts of their own, as a request has them
		for i, n := range rand.New(rand.NewPCG(3, 4)).Perm(catalog) {
			asked[i] = key{from, fmt.Sprintf("product-%07d", n)}
		}
		into := make([]*Entry[*int], candidates)
		run := func(name string, all func(keys []key)) {
			b.Run(fmt.Sprintf("%s/catalog=%d", name, catalog), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					at := i * candidates % catalog
					all(asked[at : at+candidates])
				}
			})
		}
		run("table", func(keys []key) { t.all(keys, into) })
		run("map", func(keys []key) { m.all(keys, into) })
		run("otter", func(keys []key) {
			for i, k := range keys {
				into[i], _ = typed.GetIfPresent(k)
			}
		})
	}
}
