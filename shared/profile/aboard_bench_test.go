package profile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/cpu"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// BenchmarkAboard imports the history of an app, and runs the recompute that follows it:
// by the order of times, or user by user. It reports the processor time of an event in each,
// with the Bigtable of the process.
func BenchmarkAboard(b *testing.B) {
	const events, request = 200_000, 2_000
	for _, users := range []int{1, 200, 8_000} {
		for _, byUser := range []bool{false, true} {
			b.Run(fmt.Sprintf("users=%d,sorted=%t", users, byUser), func(b *testing.B) {
				var imports, folds time.Duration
				for b.Loop() {
					f := newFixtureOn(b, storetest.NewWithClient, 90, plain)
					begun := cpu.Time()
					piece := make([]store.LogEvent, 0, request)
					for i := range events {
						u := i % users
						if byUser {
							u = i / (events / users)
						}
						e := benchEvent(f.clock-80*day+int64(i)*30_000, i)
						e.User = fmt.Sprintf("user-%d", u*7919%users)
						if piece = append(piece, withReceipt(e)); len(piece) == request {
							if _, err := f.eng.Import(ctx, f.app(), piece); err != nil {
								b.Fatal(err)
							}
							piece = piece[:0]
						}
					}
					imported := cpu.Time()
					p, err := f.eng.Recompute(ctx, f.app(), store.Range{}, profile.RecomputeOptions{OnlyStale: true, Fold: true}, func(profile.Progress) error { return nil })
					if err != nil || p.Folded != int64(users) {
						b.Fatalf("%+v, %v", p, err)
					}
					imports, folds = imports+imported-begun, folds+cpu.Time()-imported
				}
				each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(b.N) / events }
				b.ReportMetric(each(imports), "importus/event")
				b.ReportMetric(each(folds), "foldus/event")
			})
		}
	}
}
