package history_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/wire"
)

// allTime contains every time.
var allTime = affinity.Window{Now: math.MaxInt64}

// recentOf is Recent as it reads: the newest n events that count, with their
// counts of scored facets.
func recentOf(events []affinity.Event, s strategy.Strategy, w affinity.Window, n int) []affinity.Event {
	var recent []affinity.Event
	for _, e := range tidy(events) {
		scores := slices.ContainsFunc(s.EventsScoring, func(k strategy.EventScore) bool {
			return k.EventType == e.Type && k.EventName == e.Name && k.Score > 0
		})
		if !scores || !w.Contains(e.Time) {
			continue
		}
		e.Counts = slices.DeleteFunc(slices.Clone(e.Counts), func(c affinity.Count) bool {
			return !slices.ContainsFunc(s.FacetsScoring, func(f strategy.FacetScore) bool { return f.FacetName == c.Facet && f.Score > 0 })
		})
		recent = append(recent, e)
	}
	return recent[max(0, len(recent)-n):]
}

// TestObjectsOfBlocks: what reads objects gives those of the events, of blocks with
// few kinds and with many, one after the other with one reader.
func TestObjectsOfBlocks(t *testing.T) {
	all, objects := testLayouts(), history.ObjectReader{Dictionaries: commonShelf}
	rapid.Check(t, func(t *rapid.T) {
		w, s := drawWindow(t), drawStrategy(t)
		events := drawLog(t, w)
		if rapid.Bool().Draw(t, "wide") {
			events = drawWide(t, 200)
		}
		r := history.NewReader(affinity.Compile(s), commonShelf)
		n := rapid.IntRange(0, 60).Draw(t, "n")
		for _, block := range pack(rapid.SampledFrom(all).Draw(t, "layout").Builder, events) {
			want, err := unpack(block)
			must.Succeed(t, err)
			var got, recent []affinity.Event
			must.Succeed(t, objects.Read(block, allTime, func(e affinity.Event) { got = append(got, e) }))
			must.Succeed(t, r.Recent(block, w, n, func(e affinity.Event) { recent = append(recent, e) }))
			var some []affinity.Event
			must.Succeed(t, (&history.ObjectReader{Strategy: affinity.Compile(s), Dictionaries: commonShelf}).Read(block, w, func(e affinity.Event) { some = append(some, e) }))
			var counted []affinity.Event
			withCounts := history.ObjectReader{Strategy: affinity.Compile(s), Counts: true, Dictionaries: commonShelf}
			must.Succeed(t, withCounts.Read(block, w, func(e affinity.Event) { counted = append(counted, e) }))
			clear(block) // the events must not depend on it any more
			if diff := cmp.Diff(tidy(recentOf(want, s, w, n)), tidy(recent), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the newest %d (-want +got):\n%s", n, diff)
			}
			byFilters := recentOf(want, s, w, len(want))
			for i := range byFilters {
				if len(byFilters[i].ObjectIDs) > 0 {
					byFilters[i].Counts = nil
				}
			}
			if diff := cmp.Diff(tidy(byFilters), tidy(counted), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("with the counts of events without objects (-want +got):\n%s", diff)
			}
			for i := range want {
				want[i].Counts = nil
			}
			scored := recentOf(want, s, w, len(want))
			if diff := cmp.Diff(scored, some, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("of the strategy and the window (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	})
}

// TestDamagedObjects: a section that says what cannot be is an error, not a panic,
// and scoring does not notice.
func TestDamagedObjects(t *testing.T) {
	// Two events at one time of one kind, without filters, and the section.
	body := func(section ...byte) []byte {
		head := []byte{0, 0, 0, 0, 0, 0, 0, 2, 3, 0, 0, 0, 1, 0, byte(len(section))}
		return sealBlock(append(head, section...))
	}
	names := []byte{2, 1, 'i'} // one index
	read := func(block []byte) (n int, err error) {
		err = new(history.ObjectReader).Read(block, allTime, func(e affinity.Event) { n += len(e.ObjectIDs) })
		return n, err
	}
	right := slices.Concat(names, []byte{2, 0, 'a', 4, 0, 1, 2, 0, 'b', 3, 1, 2})
	if n, err := read(body(right...)); n != 3 || err != nil {
		t.Fatalf("what the tests begin with: %d objects, %v", n, err)
	}
	for name, section := range map[string][]byte{
		"a position twice":      slices.Concat(names, []byte{2, 0, 'a', 4, 0, 0}),
		"a position beyond":     slices.Concat(names, []byte{2, 0, 'a', 3, 1, 2}),
		"a position far beyond": slices.Concat(names, []byte{2, 0, 'a', 3, 1, 255, 255, 255, 255, 15}),
		"position 0":            slices.Concat(names, []byte{2, 0, 'a', 3, 1, 0}),
		"an event beyond":       slices.Concat(names, []byte{2, 0, 'a', 2, 2}),
		"no such index":         slices.Concat(names, []byte{2, 1, 'a', 2, 0}),
		"an object of no bytes": slices.Concat(names, []byte{0, 2, 0}),
		"countless postings":    slices.Concat(names, []byte{2, 0, 'a', 255, 255, 255, 255, 15}),
		"cut short":             right[:len(right)-1],
		"a name of an index":    {2, 9, 'i'},
		"names cut short":       {9, 0, 1},
		"no names":              {},
	} {
		t.Run(name, func(t *testing.T) {
			block := body(section...)
			if _, err := read(block); err == nil {
				t.Error("objects: no error")
			}
			if err := history.NewReader(affinity.Compile(sampleStrategy()), commonShelf).Recent(block, benchWindow, 9, func(affinity.Event) {}); err == nil {
				t.Error("recent: no error")
			}
			if _, err := unpack(block); err == nil || errors.Is(err, wire.ErrNewer) {
				t.Errorf("events: %v", err)
			}
			c := affinity.Compile(sampleStrategy())
			if n, err := history.NewReader(c, commonShelf).Score(block, affinity.NewScorer(c, benchWindow)); n != 2 || err != nil {
				t.Errorf("scoring: %d events, %v", n, err)
			}
		})
	}
}
