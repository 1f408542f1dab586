package history_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
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
			if err != nil {
				t.Fatal(err)
			}
			var got, recent []affinity.Event
			known, err := objects.Read(block, allTime, func(e affinity.Event) { got = append(got, e) })
			if !known || err != nil {
				t.Fatal(known, err)
			}
			known, err = r.Recent(block, w, n, func(e affinity.Event) { recent = append(recent, e) })
			if !known || err != nil {
				t.Fatal(known, err)
			}
			var some []affinity.Event
			if _, err := (&history.ObjectReader{Strategy: affinity.Compile(s), Dictionaries: commonShelf}).Read(block, w, func(e affinity.Event) { some = append(some, e) }); err != nil {
				t.Fatal(err)
			}
			var counted []affinity.Event
			withCounts := history.ObjectReader{Strategy: affinity.Compile(s), Counts: true, Dictionaries: commonShelf}
			if _, err := withCounts.Read(block, w, func(e affinity.Event) { counted = append(counted, e) }); err != nil {
				t.Fatal(err)
			}
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

// TestBlocksWithoutObjects: of a block that an older version built, every reading of
// objects says that it has none, and none takes it for damaged.
func TestBlocksWithoutObjects(t *testing.T) {
	b := history.NewBuilderWithoutObjects()
	b.Add(affinity.Event{Time: now, Type: types[0], Name: "a", Index: "products", ObjectIDs: []string{"a"}})
	blocks := map[string][]byte{"built without": b.AppendBlock(nil)}
	for _, name := range []string{"merged", "trimmed"} {
		block, err := os.ReadFile("testdata/" + name + ".block")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(block, []byte("\xffo")) {
			t.Fatalf("%s: the older version has not kept the section, so the test shows nothing", name)
		}
		blocks[name] = block
	}
	s := sampleStrategy()
	for name, block := range blocks {
		t.Run(name, func(t *testing.T) {
			yields := func(affinity.Event) { t.Error("an event is read") }
			known, err := history.HasObjects(block)
			if known || err != nil {
				t.Errorf("has objects: %v, %v", known, err)
			}
			if known, err := new(history.ObjectReader).Read(block, allTime, yields); known || err != nil {
				t.Errorf("objects: %v, %v", known, err)
			}
			if known, err := history.NewReader(affinity.Compile(s), commonShelf).Recent(block, benchWindow, 9, yields); known || err != nil {
				t.Errorf("recent: %v, %v", known, err)
			}
			events, err := unpack(block)
			if err != nil || len(events) == 0 {
				t.Fatalf("%d events, %v", len(events), err)
			}
			for _, e := range events {
				if len(e.ObjectIDs) > 0 || slices.ContainsFunc(e.Counts, func(c affinity.Count) bool { return c.Facet == "\xffo" }) {
					t.Errorf("event %+v", e)
				}
			}
		})
	}
}

// TestObjectsFacetIsNoFacet: no event can add to the section of objects.
func TestObjectsFacetIsNoFacet(t *testing.T) {
	b := history.NewBuilder()
	b.Add(affinity.Event{Time: now, Counts: []affinity.Count{{Facet: "\xffo", Value: "\x01x", N: 1}}, Index: "i", ObjectIDs: []string{"y"}})
	events, err := unpack(b.AppendBlock(nil))
	if diff := cmp.Diff([]affinity.Event{{Time: now, Index: "i", ObjectIDs: []string{"y"}}}, events); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestDamagedObjects: a section that says what cannot be is an error, not a panic,
// and scoring does not notice.
func TestDamagedObjects(t *testing.T) {
	// Two events at one time of one kind, without filters, and the section.
	body := func(section ...byte) []byte {
		head := []byte{0, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 1, 2, 0xff, 'o', byte(len(section)), 1, 0, 0, 0}
		return sealBlock(append(head, section...))
	}
	head := []byte{4, 0, 1, 1, 'i', 3, 1, 2} // one index, two events
	read := func(block []byte) (known bool, n int, err error) {
		known, err = new(history.ObjectReader).Read(block, allTime, func(e affinity.Event) { n += len(e.ObjectIDs) })
		return known, n, err
	}
	right := slices.Concat(head, []byte{2, 1, 'a', 4, 0, 1, 2, 1, 'b', 3, 1, 2})
	if known, n, err := read(body(right...)); !known || n != 3 || err != nil {
		t.Fatalf("what the tests begin with: %v, %d objects, %v", known, n, err)
	}
	for name, section := range map[string][]byte{
		"a position twice":        slices.Concat(head, []byte{2, 1, 'a', 4, 0, 0}),
		"a position beyond":       slices.Concat(head, []byte{2, 1, 'a', 3, 1, 2}),
		"a position far beyond":   slices.Concat(head, []byte{2, 1, 'a', 3, 1, 255, 255, 255, 255, 15}),
		"position 0":              slices.Concat(head, []byte{2, 1, 'a', 3, 1, 0}),
		"an event beyond":         slices.Concat(head, []byte{2, 1, 'a', 2, 2}),
		"no such index":           slices.Concat(head, []byte{2, 2, 'a', 2, 0}),
		"index 0":                 slices.Concat(head, []byte{2, 0, 'a', 2, 0}),
		"an object of no bytes":   slices.Concat(head, []byte{0, 2, 0}),
		"countless postings":      slices.Concat(head, []byte{2, 1, 'a', 255, 255, 255, 255, 15}),
		"cut short":               right[:len(right)-1],
		"a name of an index":      {4, 0, 1, 9, 'i', 3, 1, 2},
		"a first value cut short": {9, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			block := body(section...)
			if known, _, err := read(block); known || err == nil {
				t.Errorf("known %v, %v", known, err)
			}
			if _, err := history.NewReader(affinity.Compile(sampleStrategy()), commonShelf).Recent(block, benchWindow, 9, func(affinity.Event) {}); err == nil {
				t.Error("recent: no error")
			}
			if _, err := unpack(block); err == nil || errors.Is(err, history.ErrNewer) {
				t.Errorf("events: %v", err)
			}
			c := affinity.Compile(sampleStrategy())
			if n, err := history.NewReader(c, commonShelf).Score(block, affinity.NewScorer(c, benchWindow)); n != 2 || err != nil {
				t.Errorf("scoring: %d events, %v", n, err)
			}
		})
	}
	for name, section := range map[string][]byte{
		"no first value":      {},
		"a newer form":        {2, 0, 2, 3, 1, 2},
		"of fewer events":     {2, 0, 1, 2, 0},
		"of a later event":    {2, 0, 1, 3, 3, 2},
		"of several postings": {2, 0, 1, 4, 0, 1},
	} {
		if known, _, err := read(body(section...)); known || err != nil {
			t.Errorf("%s: known %v, %v; want a block without objects", name, known, err)
		}
	}
}
