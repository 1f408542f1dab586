package query_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkPage reads a page of 100 of 3,000 users, of whom some have changed since the
// build. It reports the 99th percentile in ms:
//
//	go test ./shared/segment/query -run - -bench Page -benchtime 200x
func BenchmarkPage(b *testing.B) {
	for _, changed := range []int{0, 100, 1_000} {
		b.Run(fmt.Sprintf("changed=%d", changed), func(b *testing.B) {
			w := newBench(b, 30)
			w.perPart = 60_000
			for i := range 3_000 {
				w.see(fmt.Sprintf("user-%05d", i), w.clock-int64(i%40)*day, "brand:v0", fmt.Sprintf("color:v%d", i%20))
			}
			w.clock += hour
			w.build()
			for i := range changed {
				w.see(fmt.Sprintf("user-%05d", i*3), w.clock, "brand:v0")
			}
			c, app := w.condition(`{"filter":"brand:v0","above":20}`), w.app()
			took := make([]time.Duration, 0, b.N)
			if _, err := w.reader.Page(b.Context(), app, c, 100, ""); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				start := time.Now()
				if _, err := w.reader.Page(b.Context(), app, c, 100, ""); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1e3, "ms-p99")
		})
	}
}
