package stack_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/affinityengine/affinity/shared/local/stack"
)

// BenchmarkStoredRead compares the read of a stored profile through the public
// route with the point read of its row that it contains. They run in turn, so that both
// run under the same conditions.
func BenchmarkStoredRead(b *testing.B) {
	s := start(b, stack.Options{RetentionDays: 90})
	call(b, s, "POST", "/1/strategies/personalization", seenStrategy)
	var events []string
	for i := range 100 {
		events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["color:c%d"]}`, i))
	}
	call(b, s, "POST", "/1/events", `{"events":[`+strings.Join(events, ",")+`]}`)
	idle(b, s)
	request, err := http.NewRequest("GET", s.URL+"/1/profiles/u", nil)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("X-Algolia-Application-Id", "demo")
	request.Header.Set("X-Algolia-API-Key", "demokey")
	row, route := hdrhistogram.New(1, 1e9, 3), hdrhistogram.New(1, 1e9, 3)
	b.ResetTimer()
	for range b.N {
		began := time.Now()
		if _, err := s.Backends.Store.ReadUser(b.Context(), "demo", "u"); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := response.Body.Read(make([]byte, 64<<10)); response.StatusCode != http.StatusOK {
			b.Fatal(response.Status, err)
		}
		if err := response.Body.Close(); err != nil {
			b.Fatal(err)
		}
		_ = row.RecordValue(middle.Sub(began).Nanoseconds())
		_ = route.RecordValue(time.Since(middle).Nanoseconds())
	}
	for name, h := range map[string]*hdrhistogram.Histogram{"row": row, "route": route} {
		b.ReportMetric(float64(h.ValueAtQuantile(50))/1e6, name+"-p50-ms")
		b.ReportMetric(float64(h.ValueAtQuantile(99))/1e6, name+"-p99-ms")
	}
}
