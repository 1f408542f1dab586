package event_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

// typicalBatch is 100 events of about 180 bytes as JavaScript clients send
// them.
func typicalBatch() []byte {
	var b strings.Builder
	b.WriteString(`{"events":[`)
	for i := range 100 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"eventType":"click","eventName":"Product Clicked","index":"products_production","userToken":"anonymous-3f1c2a90-7d1e-4b7b-9d53-%012d","timestamp":1796000000%03d,"objectIDs":["product-%08d"]}`, i, i, i)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

var benchRules = event.Rules{Now: time.UnixMilli(1_796_000_500_000), MaxAge: event.MaxEventAge}

func BenchmarkDecodeBatch(b *testing.B) {
	body := typicalBatch()
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		events, err := event.DecodeBatch(body, benchRules)
		if err != nil || len(events) != 100 {
			b.Fatal(len(events), err)
		}
	}
	b.ReportMetric(float64(100*b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkDecode(b *testing.B) {
	raw := []byte(`{"eventType":"click","eventName":"Product Clicked","userToken":"session-1","timestamp":1207008001000,"objectIDs":["A13"]}`)
	rules := event.Rules{Now: benchRules.Now, Index: "shop"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := event.Decode(raw, rules); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// An import reads events whose times are numbers, as most are, or texts.
func BenchmarkDecodeHistory(b *testing.B) {
	rules := event.Rules{Now: benchRules.Now, Index: "shop", History: true}
	for name, timestamp := range map[string]string{"number": "1207008001000", "text": `"2008-04-01T00:00:01Z"`} {
		b.Run(name, func(b *testing.B) {
			raw := []byte(`{"eventType":"click","eventName":"Product Clicked","userToken":"session-1","timestamp":` + timestamp + `,"objectIDs":["A13"]}`)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := event.Decode(raw, rules); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

func BenchmarkID(b *testing.B) {
	events, err := event.DecodeBatch(typicalBatch(), benchRules)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(events[0].ID()) != 11 {
			b.Fatal("an ID is not 11 characters long")
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
