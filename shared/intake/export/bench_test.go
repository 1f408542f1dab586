package export_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/intake/export"
)

// BenchmarkParse reads the line of an event.
func BenchmarkParse(b *testing.B) {
	text := []byte(`{"exportedEvent":{"time":1795001149172,"id":"ukVPTTLEx-8","receivedAt":"2026-11-29T06:09:01.438Z","index":"products",` +
		`"filters":[["brand","On",1],["category","k11",1],["color","c5",1],["size","s7",1]],"event":{"eventType":"click",` +
		`"eventName":"Product Clicked","index":"products","userToken":"user-2077","timestamp":1795001149172,` +
		`"filters":["brand:On","color:c5","size:s7","category:k11"]}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := export.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
