package profile_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// BenchmarkYoungEvents measures what unfolded events cost a computation, and what a fold
// of them costs once: together they say how many events a fold must save. The fold is one
// with an announcement, the dearer of the two ways.
func BenchmarkYoungEvents(b *testing.B) {
	for _, n := range []int{0, 125, 250, 500, 1000, 2000} {
		b.Run(fmt.Sprintf("compute/%d", n), func(b *testing.B) {
			f := newFixture(b, 90, plain)
			f.young(b, "u", n)
			compiled := affinity.Compile(f.app().Strategy)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.eng.Compute(ctx, f.app(), []string{"u"}, compiled); err != nil {
					b.Fatal(err)
				}
			}
		})
		if n == 0 {
			continue
		}
		b.Run(fmt.Sprintf("fold/%d", n), func(b *testing.B) {
			f := newFixture(b, 90, plain)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				user := "u" + strconv.Itoa(i)
				f.young(b, user, n)
				b.StartTimer()
				if done, err := f.eng.Fold(ctx, f.app(), user); !done || err != nil {
					b.Fatal(done, err)
				}
			}
		})
	}
}

// young gives a user n unfolded events. For a computation their age is of no concern.
func (b *fixture) young(tb testing.TB, user string, n int) {
	tb.Helper()
	var events []store.LogEvent
	for i := range int64(n) {
		events = append(events, bought(user, b.clock-hour-i*100))
	}
	if _, err := b.eng.Import(ctx, b.app(), events); err != nil {
		tb.Fatal(err)
	}
}
