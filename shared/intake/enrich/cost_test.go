package enrich_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// filters are n filters of so many bytes each, of which all begin with a name.
func filters(name string, n, bytes int) []bus.Filter {
	list := make([]bus.Filter, n)
	for i := range list {
		value := fmt.Sprintf("%s%d", name, i)
		list[i] = bus.Filter{"f", value + strings.Repeat("-", max(0, bytes-1-len(value)))}
	}
	return list
}

// TestBoundOfAnEvent says which objects of an event count, in words.
func TestBoundOfAnEvent(t *testing.T) {
	const half = event.MaxCounted / 2
	objects := bus.Objects{"i": {
		"half":  filters("h", half, 20),
		"other": filters("o", half, 20),
		"one":   filters("1", 1, 10),
		"wide":  filters("w", 100, 400),
		"bare":  {},
	}}
	for _, test := range []struct {
		name, ids string
		counts    string // the objects that count
		unknown   int
	}{
		{"within the bound", "half one bare", "half one bare", 0},
		{"exactly the filters", "half other", "half other", 0},
		{"an object that does not fit, and one that does", "one half other bare", "one half bare", 0},
		{"in the order of the event", "other one half bare", "other one bare", 0},
		{"bytes", "wide half one", "wide half one", 0},
		{"too many bytes", "wide half other one", "wide half one", 0},
		{"unknown objects are not left out", "half other nowhere", "half other", 1},
		{"an object without filters is not left out", "half other bare", "half other bare", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := event.Event{Type: event.View, Name: "n", Index: "i", UserToken: "u", ObjectIDs: strings.Fields(test.ids)}
			counting := event.Event{Index: "i", ObjectIDs: strings.Fields(test.counts)}
			rows := enrich.LogEvents([]event.Event{e}, bus.Resolution{Objects: objects}, 7)
			if diff := cmp.Diff(enrich.Counts(&counting, objects), rows[0].Counts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			o, err := schema.ParseOriginal(append(rows[0].Original[:len(rows[0].Original)-1], "{}}"...))
			want := len(e.ObjectIDs) - len(counting.ObjectIDs) - test.unknown
			if err != nil || o.LeftOutObjects != want || o.UnknownObjects != test.unknown {
				t.Errorf("%s: %v; want %d objects left out, %d unknown", rows[0].Original, err, want, test.unknown)
			}
		})
	}
}

// What random events count equals the rule as it is written, whatever the request
// that they come in.
func TestCountsEqualTheRule(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 5))
	objects := bus.Objects{"i": {}}
	for i := range 40 {
		n := []int{0, 3, 40, 300, 900, 1000}[rnd.IntN(6)]
		objects.Put("i", fmt.Sprint(i), filters(fmt.Sprint(i%7, "-"), n, 5+rnd.IntN(60)))
	}
	var events []event.Event
	for range 50 {
		e := event.Event{Type: event.View, Name: "n", Index: "i", UserToken: "u"}
		for _, id := range rnd.Perm(44)[:1+rnd.IntN(20)] {
			e.ObjectIDs = append(e.ObjectIDs, fmt.Sprint(id))
		}
		events = append(events, e)
	}
	rows := enrich.LogEvents(events, bus.Resolution{Objects: objects}, 7)
	bounded := 0
	for i := range events {
		n, bytes, want := 0, 0, map[[2]string]int{}
		for k, id := range events[i].ObjectIDs {
			text := 0
			for _, f := range objects["i"][id] {
				text += len(f[0] + f[1])
			}
			if many := len(objects["i"][id]); k > 0 && many > 0 && (n+many > event.MaxCounted || bytes+text > event.MaxCountedBytes) {
				bounded++
				continue
			}
			n, bytes = n+len(objects["i"][id]), bytes+text
			for _, f := range objects["i"][id] {
				want[f]++
			}
		}
		if got := sums(rows[i].Counts); !maps.Equal(got, want) {
			t.Fatalf("objects %v: %d filters count, want %d", events[i].ObjectIDs, len(got), len(want))
		}
		alone := enrich.LogEvents(events[i:i+1], bus.Resolution{Objects: objects}, 7)
		if !reflect.DeepEqual(rows[i], alone[0]) {
			t.Fatalf("objects %v: the event counts other filters alone in its request", events[i].ObjectIDs)
		}
		if cost := enrich.Cost(&events[i], objects); cost > 48*event.MaxCounted+event.MaxCountedBytes {
			t.Fatalf("the event costs %d", cost)
		}
	}
	if bounded == 0 {
		t.Error("no event is bounded")
	}
}

func sums(counts []affinity.Count) map[[2]string]int {
	sums := map[[2]string]int{}
	for _, c := range counts {
		sums[[2]string{c.Facet, c.Value}] += c.N
	}
	return sums
}
