package apply_test

import (
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/apply"
	"github.com/affinityengine/affinity/shared/store"
)

// band sets the numeric bands of the index shoes, and returns their version.
func (h *harness) band(limits ...float64) int64 {
	h.t.Helper()
	set, err := h.apps.SetIndexSettings(h.t.Context(), appID, "shoes", catalog.Change{
		AttributesForFaceting: []string{"color"}, NumericBands: catalog.Bands{"color": limits},
	})
	h.check(err)
	return set.BandsVersion
}

// put stores objects with a number for a color, as if under other settings.
func (h *harness) put(numbers map[string]int) {
	h.t.Helper()
	for id, n := range numbers {
		h.check(h.store.Catalog.PutObjects(h.t.Context(), appID, "shoes", []store.Object{{ID: id, Record: fmt.Appendf(nil, `{"objectID":%q,"color":%d}`, id, n)}}))
	}
}

// of is a message whose filters were read under bands of a version.
func of(m bus.Message, version int64) bus.Message {
	if m.Bands = nil; version > 0 {
		m.Bands = bus.Bands{"shoes": version}
	}
	return m
}

func TestMessageOfEarlierBands(t *testing.T) {
	old := objects(map[string]string{"1": "50-100", "2": "<0"})
	tests := []struct {
		name     string
		catalog  map[string]int
		messages func(h *harness, first, second int64) []bus.Message
		want     []string
	}{
		{"current", map[string]int{"1": 55, "2": 70},
			func(_ *harness, _, second int64) []bus.Message { return []bus.Message{of(seen(old), second)} }, []string{"50-100", "<0"}},
		{"earlier", map[string]int{"1": 55, "2": 70},
			func(_ *harness, first, _ int64) []bus.Message { return []bus.Message{of(seen(old), first)} }, []string{"60+", "<60"}},
		{"of a version without bands", map[string]int{"1": 55, "2": 70},
			func(*harness, int64, int64) []bus.Message { return []bus.Message{of(seen(old), 0)} }, []string{"60+", "<60"}},
		{"earlier, an object is gone", map[string]int{"1": 55},
			func(_ *harness, first, _ int64) []bus.Message { return []bus.Message{of(seen(old), first)} }, []string{"<0", "<60"}},
		{"earlier, delivered again after the re-enrichment", map[string]int{"1": 55, "2": 70},
			func(h *harness, first, second int64) []bus.Message {
				known := objects(map[string]string{"1": "<60", "2": "60+"})
				return []bus.Message{of(h.again(known), second), of(seen(old), first), of(h.again(known), second), of(seen(old), first)}
			}, []string{"60+", "<60"}},
		{"an earlier re-enrichment", map[string]int{"1": 55, "2": 70},
			func(h *harness, first, second int64) []bus.Message {
				return []bus.Message{of(seen(old), second), of(h.again(old), first)}
			}, []string{"60+", "<60"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t)
			first := h.band(0, 50, 100)
			second := h.band(60)
			h.put(tt.catalog)
			for _, m := range tt.messages(h, first, second) {
				if result := h.deliver(m); result.Fate != apply.Applied {
					t.Fatalf("%+v", result)
				}
			}
			h.wantColors(tt.want...)
		})
	}
}
