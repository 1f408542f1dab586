package track_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/api/track"
)

// BenchmarkCalls reads calls as SDKs send them.
func BenchmarkCalls(b *testing.B) {
	for name, call := range map[string]string{
		"product": `{"type":"track","event":"Product Viewed","userId":"ann","anonymousId":"a1","messageId":"m-1","timestamp":"2026-11-21T12:00:00.123Z",
			"context":{"ip":"192.0.2.1","library":{"name":"analytics-node","version":"2.3.0"}},"properties":{"product_id":"1","sku":"s1","price":9.5,"search_index":"products"}}`,
		"order": `{"type":"track","event":"Order Completed","userId":"ann","messageId":"m-2","timestamp":"2026-11-21T12:00:00.123Z",
			"properties":{"order_id":"o1","products":[{"product_id":"1","sku":"a","price":9},{"product_id":"2","sku":"b"},{"product_id":"3","sku":"c"}]}}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c, err := track.Parse([]byte(call))
				if err == nil {
					_, err = c.Events()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
