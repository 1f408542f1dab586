package history_test

import (
	gocmp "cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// unpack returns all events of a block.
func unpack(block []byte) ([]affinity.Event, error) {
	var events []affinity.Event
	for e, err := range history.Events(block, commonShelf) {
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}

// tidy returns events as blocks hold them: without counts of nothing, and those
// of an event in one order.
func tidy(events []affinity.Event) []affinity.Event {
	tidied := slices.Clone(events)
	for i := range tidied {
		counts := slices.DeleteFunc(slices.Clone(tidied[i].Counts), func(c affinity.Count) bool { return c.N <= 0 })
		slices.SortFunc(counts, func(a, b affinity.Count) int {
			return gocmp.Or(gocmp.Compare(a.Facet, b.Facet), gocmp.Compare(a.Value, b.Value), gocmp.Compare(a.N, b.N))
		})
		tidied[i].Counts = counts
		if len(tidied[i].ObjectIDs) == 0 {
			tidied[i].Index = ""
		}
	}
	return tidied
}

func sameEvent(a, b affinity.Event) bool {
	return a.Time == b.Time && a.Type == b.Type && a.Name == b.Name && slices.Equal(a.Counts, b.Counts) &&
		a.Index == b.Index && slices.Equal(a.ObjectIDs, b.ObjectIDs)
}

func TestBlockRoundTrip(t *testing.T) {
	for name, draw := range map[string]func(t *rapid.T) []affinity.Event{
		"small": func(t *rapid.T) []affinity.Event { return drawLog(t, drawWindow(t)) },
		"wide":  func(t *rapid.T) []affinity.Event { return drawWide(t, 250) },
	} {
		t.Run(name, func(t *testing.T) {
			all := testLayouts()
			rapid.Check(t, func(t *rapid.T) {
				events, b := draw(t), rapid.SampledFrom(all).Draw(t, "layout").Builder
				var got []affinity.Event
				for _, block := range pack(b, events) {
					must.Succeed(t, history.Check(block))
					part, err := unpack(block)
					must.Succeed(t, err)
					clear(block) // the events must not depend on it any more
					got = append(got, part...)
				}
				var again []affinity.Event
				for _, block := range pack(rapid.SampledFrom(all).Draw(t, "layout of a merge").Builder, got) {
					part, err := unpack(block)
					must.Succeed(t, err)
					again = append(again, part...)
				}
				if merged := tidy(again); !slices.EqualFunc(merged, tidy(got), sameEvent) {
					t.Fatalf("merged (-want +got):\n%s", cmp.Diff(tidy(got), merged, cmpopts.EquateEmpty()))
				}
				if want, got := tidy(events), tidy(got); !slices.EqualFunc(want, got, sameEvent) {
					t.Fatalf("(-want +got):\n%s", cmp.Diff(want, got, cmpopts.EquateEmpty()))
				}
			})
		})
	}
}

func TestEventsStopsEarly(t *testing.T) {
	b := history.NewBuilder()
	for i := range 3 {
		b.Add(affinity.Event{Time: int64(i)})
	}
	read := 0
	for range history.Events(b.AppendBlock(nil), commonShelf) {
		if read++; read == 2 {
			break
		}
	}
	if read != 2 {
		t.Errorf("read %d events", read)
	}
}

func TestBlockSizeAndSpanBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := history.NewBuilder()
		text := strings.Repeat("x", rapid.IntRange(1, 60_000).Draw(t, "text"))
		every := rapid.IntRange(1, 20).Draw(t, "every")
		step := rapid.Int64Range(0, 2*dayMS).Draw(t, "step")
		block := []byte("kept")
		for i := range 60 {
			e := affinity.Event{Time: now + int64(i)*step, Type: event.View, Name: "a"}
			e.Counts = []affinity.Count{{Facet: "f", Value: fmt.Sprint(i/every, text), N: i}, {Facet: fmt.Sprint(i, text), Value: "v", N: 1}}
			if b.Add(e) {
				continue
			}
			n, newest := b.Len(), b.Newest()
			if block = b.AppendBlock(block[:4]); len(block)-4 > history.MaxBytes && n > 1 {
				t.Fatalf("%d events in %d bytes", n, len(block)-4)
			}
			events, err := unpack(block[4:])
			if err != nil || len(events) != n || events[n-1].Time != newest || newest-events[0].Time > history.MaxSpan && len(block)-4 > history.SmallBytes {
				t.Fatalf("%d events until %d are read back as %d: %v", n, newest, len(events), err)
			}
			if full := len(block)-4 > history.MaxBytes-2*len(text)-4_000; !full && e.Time-events[0].Time <= history.MaxSpan {
				t.Fatalf("no room for an event of %d bytes after %d of %d", 2*len(text), len(block)-4, history.MaxBytes)
			}
			if b.Len() != 0 || b.Newest() != 0 || !b.Add(e) {
				t.Fatal("the builder is not empty after its block")
			}
		}
	})
}

// TestBoundHoldsForGrowingParts fills blocks with what takes most room beside
// what it says.
func TestBoundHoldsForGrowingParts(t *testing.T) {
	one := func(c affinity.Count) []affinity.Count { return []affinity.Count{c} }
	tests := map[string]func(i int) affinity.Event{
		"counts": func(i int) affinity.Event {
			return affinity.Event{Time: now, Counts: one(affinity.Count{Facet: "f", Value: "v", N: math.MaxInt})}
		},
		"distances": func(i int) affinity.Event {
			return affinity.Event{Time: now, Counts: one(affinity.Count{Facet: "f", Value: fmt.Sprint(i % 20_000), N: 1 + i%2})}
		},
		"times": func(i int) affinity.Event { return affinity.Event{Time: now + int64(i)*4_000} },
		"values": func(i int) affinity.Event {
			return affinity.Event{Time: now, Counts: one(affinity.Count{Facet: "f", Value: fmt.Sprint(i), N: 1})}
		},
		"facets": func(i int) affinity.Event {
			return affinity.Event{Time: now, Counts: one(affinity.Count{Facet: fmt.Sprint(i), N: 1})}
		},
		"objects": func(i int) affinity.Event {
			return affinity.Event{Time: now, Index: "i", ObjectIDs: []string{"a", fmt.Sprint(i), "b"}}
		},
		"indexes": func(i int) affinity.Event {
			return affinity.Event{Time: now, Index: fmt.Sprint(i), ObjectIDs: []string{""}}
		},
		"kinds": func(i int) affinity.Event { return affinity.Event{Time: now, Name: fmt.Sprint(i)} },
		// The last of many kinds takes two bytes an event, whenever the others
		// came.
		"kinds that come late": func(i int) affinity.Event {
			if i < 510_000 {
				return affinity.Event{Time: now, Name: "~"}
			}
			return affinity.Event{Time: now, Name: fmt.Sprint(i)}
		},
	}
	for name, event := range tests {
		t.Run(name, func(t *testing.T) {
			b := history.NewBuilder()
			n := 0
			for b.Add(event(n)) {
				n++
			}
			block := b.AppendBlock(nil)
			if len(block) > history.MaxBytes || len(block) < history.MaxBytes/8 && n < 200_000 {
				t.Errorf("%d events in %d bytes", n, len(block))
			}
			read := 0
			for _, err := range history.Events(block, commonShelf) {
				must.Succeed(t, err)
				read++
			}
			if read != n {
				t.Errorf("%d of %d events", read, n)
			}
		})
	}
}

func TestAddRefusesWhatDoesNotFit(t *testing.T) {
	b := history.NewBuilder()
	large := []affinity.Count{{Facet: "f", Value: strings.Repeat("x", history.SmallBytes), N: 1}}
	for _, e := range []affinity.Event{{Time: now}, {Time: now, Counts: large}, {Time: now + history.MaxSpan}} {
		if !b.Add(e) {
			t.Fatalf("%d does not fit after %d of the same span", e.Time, now)
		}
	}
	for _, e := range []affinity.Event{{Time: now + history.MaxSpan - 1}, {Time: now + history.MaxSpan + 1}, {Time: math.MaxInt64}, {Time: math.MinInt64}} {
		if b.Add(e) {
			t.Errorf("%d fits between %d and %d", e.Time, now, now+history.MaxSpan)
		}
	}
	if b.Len() != 3 || b.Newest() != now+history.MaxSpan {
		t.Errorf("%d events until %d", b.Len(), b.Newest())
	}
	b.AppendBlock(nil)
	huge := affinity.Event{Time: math.MinInt64, Counts: []affinity.Count{{Facet: "f", Value: strings.Repeat("x", 3*history.MaxBytes), N: 1}}}
	if !b.Add(huge) || b.Add(affinity.Event{Time: math.MinInt64}) {
		t.Error("a huge event does not fit, or not alone")
	}
	block := b.AppendBlock(nil)
	got, err := unpack(block)
	if diff := cmp.Diff([]affinity.Event{huge}, got); err != nil || diff != "" {
		t.Errorf("%v", err)
	}
	if got, err := unpack(b.AppendBlock(nil)); err != nil || len(got) != 0 {
		t.Errorf("an empty block has %d events: %v", len(got), err)
	}
}

func TestBuilderCopiesEvents(t *testing.T) {
	b := history.NewBuilder()
	buffer := []byte("view name facet value")
	e := affinity.Event{Type: event.Type(buffer[:4]), Name: string(buffer[5:9])}
	e.Counts = []affinity.Count{{Facet: string(buffer[10:15]), Value: string(buffer[16:]), N: 1}}
	e.Index, e.ObjectIDs = "products", []string{"a"}
	want := tidy([]affinity.Event{e, e})
	want[0].ObjectIDs, want[1].ObjectIDs = []string{"a"}, []string{"a"}
	b.Add(e)
	e.Counts[0], e.ObjectIDs[0] = affinity.Count{}, ""
	b.Add(want[0])
	got, err := unpack(b.AppendBlock(nil))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// sampleBlock is a block of all that blocks can hold.
func sampleBlock(b *history.Builder) []byte {
	for i := range int64(5) {
		b.Add(affinity.Event{Time: now - dayMS + i*i*i*100_000, Type: types[i%3], Name: "a", Counts: []affinity.Count{
			{Facet: "f0", Value: "v0", N: 1}, {Facet: "f0", Value: fmt.Sprint("v", i%2), N: 1}, {Facet: "f1", Value: "v2", N: 1 + int(i)*100},
			{Facet: "f2", Value: "v3", N: 1},
		}})
		b.Add(affinity.Event{Time: now - dayMS + i*i*i*100_000, Index: fmt.Sprint("i", i%2), ObjectIDs: []string{"a", fmt.Sprint(i)}})
	}
	return b.AppendBlock(nil)
}

// sampleStrategy scores what sampleBlock holds.
func sampleStrategy() strategy.Strategy {
	s := strategy.Strategy{HalfLives: strategy.InDays(30)}
	for _, typ := range types {
		s.EventsScoring = append(s.EventsScoring, strategy.EventScore{EventName: "a", EventType: typ, Score: 3})
	}
	for _, facet := range facets {
		s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: facet, Score: 7})
	}
	return s
}
