package cache

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/realdata"
)

// BenchmarkVisits takes and puts the values of the users of real shops, in the order of their
// events, in a Memory and in a cache of the library, which keeps what is used often. It reports
// how many takes find the value.
func BenchmarkVisits(b *testing.B) {
	const bytes = 1000
	for _, set := range realdata.With(b, realdata.EventsFile) {
		events := slices.Collect(realdata.Events(b, set))
		slices.SortStableFunc(events, func(x, y event.Event) int { return cmp.Compare(x.Time, y.Time) })
		for _, room := range []int{100, 500, 2000} {
			m := ValuesOf[int](NewMemory(int64(room * (bytes + EntryBytes + 20))))
			measure(b, fmt.Sprintf("memory/%s/room=%d", set, room), events, func(user string) bool {
				_, found := m.Take("shop", user)
				m.Put("shop", user, 1, bytes)
				return found
			})
			lib := NewSized(room*(bytes+EntryBytes+20), func(userKey, int) int { return bytes + 20 })
			measure(b, fmt.Sprintf("library/%s/room=%d", set, room), events, func(user string) bool {
				k := userKey{app: "shop", user: user}
				_, found := lib.Delete(k)
				lib.Set(k, 1)
				return found
			})
		}
	}
}

func measure(b *testing.B, name string, events []event.Event, visit func(user string) (found bool)) {
	b.Run(name, func(b *testing.B) {
		hits, n := 0, 0
		for b.Loop() {
			if visit(events[n%len(events)].UserToken) {
				hits++
			}
			n++
		}
		b.ReportMetric(float64(hits)/float64(n), "found/op")
	})
}
