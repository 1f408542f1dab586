package bus

import (
	"fmt"
	"strings"
	"testing"
)

// ordinary is a request of n events, each with an object of its own that has ten
// filters.
func ordinary(n int) Message {
	events, objects := make([]string, n), Objects{}
	for i := range n {
		id := fmt.Sprintf("product-%08d", i)
		events[i] = fmt.Sprintf(`{"eventType":"click","eventName":"Product Clicked","index":"products","userToken":"user-%08d",`+
			`"timestamp":1796000000%03d,"objectIDs":[%q]}`, i, i, id)
		filters := make([]Filter, 10)
		for f := range filters {
			filters[f] = Filter{fmt.Sprint("facet", f), fmt.Sprint("value ", f*i)}
		}
		objects.Put("products", id, filters)
	}
	return Message{App: "demo", ReceivedAt: 1_796_000_500_000, Resolved: true, Objects: objects,
		Body: []byte(`{"events":[` + strings.Join(events, ",") + `]}`)}
}

func BenchmarkEncode(b *testing.B) {
	for _, n := range []int{1, 100} {
		m := ordinary(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Encode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{1, 100} {
		data := encoded(b, ordinary(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if events, err := parsed(b, data).Events(); len(events) != n || err != nil {
					b.Fatal(len(events), err)
				}
			}
		})
	}
}
