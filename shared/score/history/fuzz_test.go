package history_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func FuzzBlock(f *testing.F) {
	for _, l := range testLayouts() {
		f.Add(sampleBlock(l.Builder))
		f.Add(l.AppendBlock(nil))
		for _, block := range pack(l.Builder, crowd(1, 20)[0]) {
			f.Add(block)
		}
	}
	s := sampleStrategy()
	f.Fuzz(func(t *testing.T, b []byte) {
		if history.Check(b) == nil {
			checkBlock(t, b, s)
		}
		if len(b) >= 5 {
			checkBlock(t, sealBlock(slices.Clone(b)), s)
		}
	})
}

// checkBlock holds whatever has a right checksum to this: what can be read
// event by event scores the same as they do.
func checkBlock(t *testing.T, block []byte, s strategy.Strategy) {
	events, unpacked := unpack(block)
	counts := 0
	for i, e := range events {
		counts += len(e.Counts) + len(e.ObjectIDs)
		if i > 0 && e.Time < events[i-1].Time {
			t.Errorf("event %d is out of order", i)
		}
	}
	if counts > 2*(len(block)+history.MaxBytes) {
		t.Errorf("%d events and %d counts from %d bytes", len(events), counts, len(block))
	}
	if counts > 1<<14 {
		return // few bytes hold many counts, and the checks below take long for each
	}
	checkObjects(t, block, events, unpacked, s)
	for _, halfLives := range [][]int{nil, {30, 7}} {
		s.HalfLives = strategy.InDays(halfLives...)
		c := affinity.Compile(s)
		sc := affinity.NewScorer(c, benchWindow)
		n, scored := history.NewReader(c, commonShelf).Score(block, sc)
		if unpacked != nil {
			continue // in a part that scoring may skip
		}
		if scored != nil || n != len(events) {
			t.Fatalf("%d events are read, but %d scored: %v", len(events), n, scored)
		}
		if fault := differ(sc.Profile(), affinity.Reference(events, s, benchWindow)); fault != "" {
			t.Error(fault)
		}
	}
	if unpacked == nil {
		checkRebuilt(t, events)
	}
}

// checkObjects holds the readings of objects to the events.
func checkObjects(t *testing.T, block []byte, events []affinity.Event, unpacked error, s strategy.Strategy) {
	var got []affinity.Event
	damaged := (&history.ObjectReader{Dictionaries: commonShelf}).Read(block, allTime, func(e affinity.Event) { got = append(got, e) })
	recent := 0
	unread := history.NewReader(affinity.Compile(s), commonShelf).Recent(block, benchWindow, 3, func(affinity.Event) { recent++ })
	if unpacked != nil {
		return // in a part that they may skip
	}
	if damaged != nil || unread != nil || recent > 3 {
		t.Fatalf("%d events are read, but objects: %v; recent %d, %v", len(events), damaged, recent, unread)
	}
	if !slices.EqualFunc(events, got, func(a, b affinity.Event) bool {
		a.Counts = nil
		return sameEvent(a, b)
	}) {
		t.Errorf("events %v, objects %v", events, got)
	}
}

// checkRebuilt packs events again.
func checkRebuilt(t *testing.T, events []affinity.Event) {
	var again []affinity.Event
	for _, block := range pack(history.NewBuilder(), events) {
		part, err := unpack(block)
		if err != nil {
			t.Fatal(err)
		}
		again = append(again, part...)
	}
	if diff := cmp.Diff(tidy(events), tidy(again), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("not read back (-want +got):\n%s", diff)
	}
}
