package reports_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/reports"
	"github.com/affinityengine/affinity/shared/local/cpu"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

var (
	benchUsers  = flag.Int("users", 5_000, "users of the benchmark")
	benchEvents = flag.Int("events", 40, "events of each of them")
)

// BenchmarkReport makes the report of users whose histories are packed, of whose events one in fifty is a purchase. It
// says how many events a second of the wall and one of the processor are enough for, the Bigtable in this process
// included, and how much memory the tasks take at a time.
//
//	go test ./shared/job/kinds/reports -run '^$' -bench Report -benchtime 1x -users 20000 -events 50
func BenchmarkReport(b *testing.B) {
	h := newHarness(b, 0)
	h.experiment = h.half(30)
	r, n := rand.New(rand.NewPCG(1, 1)), 0
	for from := 0; from < *benchUsers; from += 500 {
		var events []store.LogEvent
		for u := from; u < min(from+500, *benchUsers); u++ {
			for range *benchEvents {
				n++
				typ, more := event.Click, ""
				if n%50 == 0 {
					typ, more = event.Conversion, fmt.Sprintf(`,"objectData":[{"price":%d.5,"quantity":2}],"currency":"EUR"`, 1+r.IntN(200))
				}
				at := h.Now.UnixMilli() - int64(day.Milliseconds()) - r.Int64N((55 * day).Milliseconds())
				user, object := fmt.Sprintf("user-%07d", u), fmt.Sprint("sku-", r.IntN(5_000))
				text := fmt.Sprintf(`{"eventType":%q,"eventName":"Did","userToken":%q,"timestamp":%d,"objectIDs":[%q]%s}`, typ, user, at, object, more)
				events = append(events, store.LogEvent{User: user, Time: at, ID: fmt.Sprintf("%011d", n), Type: typ, Name: "Did", Index: "products",
					ObjectIDs: []string{object},
					Original:  schema.Original{ReceivedAt: at, Index: "products", Event: json.RawMessage(text)}.Append(nil)})
			}
		}
		_, err := h.engine.Import(b.Context(), h.app(), events)
		must.Succeed(b, err)
		for u := from; u < min(from+500, *benchUsers); u++ {
			_, err := h.engine.Fold(b.Context(), h.app(), fmt.Sprintf("user-%07d", u))
			must.Succeed(b, err)
		}
	}
	began, cpuBegan, i := time.Now(), cpu.Time(), 0
	for b.Loop() {
		i++
		h.reportAll(b, n)
	}
	wall, processor := time.Since(began), cpu.Time()-cpuBegan
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(n*i)/wall.Seconds(), "events/s")
	b.ReportMetric(float64(n*i)/processor.Seconds(), "events/cpu-s")
	b.ReportMetric(float64(heapOf(func() { h.reportAll(b, n) }))/(1<<20), "MB-more")
}

// reportAll makes a report of so many events.
func (h *harness) reportAll(b *testing.B, events int) {
	j, err := h.runner.Start(b.Context(), app, reports.Request{Experiment: "checkout"})
	must.Succeed(b, err)
	h.Drain()
	if c := job.CountsOf[reports.Counts](h.WantState(j.ID, job.Done, "").Totals.Counts); c.Events != int64(events) {
		b.Fatalf("%+v, want %d events", c, events)
	}
	h.Now = h.Now.Add(time.Second)
}

// heapOf returns by how many bytes the heap grows at most while do runs, with little garbage.
func heapOf(do func()) (most uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-tick.C:
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	do()
	close(stop)
	<-stopped
	return most
}
