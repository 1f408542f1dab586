package affinity_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// drawLog draws events with objects in the order of the log: by time, then by
// event ID, which is the place of the event in the log.
func drawLog(t *rapid.T, w affinity.Window) []affinity.Event {
	events := drawEvents(t, w)
	sortEvents(events)
	for i := range events {
		events[i].Index = rapid.SampledFrom([]string{"", "products", "articles"}).Draw(t, "index")
		events[i].ObjectIDs = rapid.SliceOfN(rapid.SampledFrom([]string{"o1", "o2", "o3"}), 0, 3).Draw(t, "objects")
	}
	return events
}

// collect computes a session with collectors of blocks and log, which see the
// events in any order.
func collect(t *rapid.T, log []affinity.Event, s strategy.Strategy, w affinity.Window, limit int) affinity.Session {
	c := affinity.Compile(s)
	ofLog, ofBlocks := affinity.NewCollector[affinity.Event](c, w, limit), affinity.NewCollector[affinity.Event](c, w, limit)
	folded := rapid.IntRange(0, len(log)).Draw(t, "folded")
	for _, i := range rapid.Permutation(ordinals(len(log))).Draw(t, "order") {
		e := log[i]
		if !ofLog.Wants(e.Time, string(e.Type), e.Name) {
			continue
		}
		if i >= folded {
			ofLog.Add(e.Time, fmt.Sprintf("%03d", i), 0, e)
		} else {
			ofBlocks.Add(e.Time, "", i, e)
		}
	}
	if rapid.Bool().Draw(t, "into log") {
		ofLog.Merge(ofBlocks)
		return affinity.NewSession(c, ofLog.Newest())
	}
	ofBlocks.Merge(ofLog)
	return affinity.NewSession(c, ofBlocks.Newest())
}

func ordinals(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func sameSession(got, want affinity.Session) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

func TestSessionEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		log := drawLog(t, w)
		limit := rapid.SampledFrom([]int{0, 1, 2, 3, affinity.MaxSessionEvents}).Draw(t, "limit")
		want := affinity.ReferenceSession(log, s, w).First(limit)
		if diff := sameSession(collect(t, log, s, w, limit), want); diff != "" {
			t.Fatalf("the newest %d (-want +got):\n%s", limit, diff)
		}
	})
}

func TestSessionIsBounded(t *testing.T) {
	s := benchStrategy()
	kind := s.EventsScoring[0]
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{10, 250, 300, 320, 4_000, 20_000}).Draw(t, "bytes of a value")
		var log []affinity.Event
		for i := range rapid.IntRange(45, 55).Draw(t, "events") {
			value := fmt.Sprint(i) + strings.Repeat("x", rapid.IntRange(size/2, size).Draw(t, "length"))
			log = append(log, affinity.Event{
				Time: now - dayMS + int64(i), Type: kind.EventType, Name: kind.EventName, Index: "products",
				ObjectIDs: []string{fmt.Sprint("object ", i)},
				Counts:    []affinity.Count{{Facet: "facet1", Value: value, N: 1}},
			})
		}
		w := affinity.Window{Now: now, RetentionDays: window}
		got := collect(t, log, s, w, affinity.MaxSessionEvents)
		if diff := sameSession(got, affinity.ReferenceSession(log, s, w)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if n := len(got.AppendBinary(nil, nil)); n > affinity.MaxSessionBytes {
			t.Fatalf("a session of %d events takes %d bytes, want at most %d", len(got.Events), n, affinity.MaxSessionBytes)
		}
	})
}

// TestSessionAgesWithoutLog holds what readers of a stored session rely on:
// leaving out the events that have left the window, or are deleted, gives the
// session that the log gives then.
func TestSessionAgesWithoutLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		log := slices.DeleteFunc(drawLog(t, w), func(e affinity.Event) bool { return e.Time > w.Now })
		limit := rapid.SampledFrom([]int{1, 2, affinity.MaxSessionEvents}).Draw(t, "limit")
		later := w
		later.Now += rapid.Int64Range(0, 100*dayMS).Draw(t, "later")
		if rapid.Bool().Draw(t, "deleted again") {
			later.DeletedUntil = max(w.DeletedUntil, drawTime(t, w))
		}
		got := affinity.ReferenceSession(log, s, w).First(limit).Within(later)
		if diff := sameSession(got, affinity.ReferenceSession(log, s, later).First(limit)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestSessionScores(t *testing.T) {
	s := strategy.Strategy{
		EventsScoring: []strategy.EventScore{
			{EventName: "a", EventType: event.Click, Score: 10}, {EventName: "b", EventType: event.View, Score: 1},
		},
		FacetsScoring: []strategy.FacetScore{{FacetName: "f0", Score: 3}, {FacetName: "f1", Score: 1}},
		Aliases:       map[string]map[string]string{"f0": {"v1": "v0"}},
	}
	click := affinity.Event{Time: now - 4*dayMS, Type: event.Click, Name: "a", Counts: []affinity.Count{{Facet: "f0", Value: "v1", N: 2}}}
	view := affinity.Event{Time: now - 2*dayMS, Type: event.View, Name: "b", Counts: []affinity.Count{
		{Facet: "f0", Value: "v0", N: 1}, {Facet: "f1", Value: "v1", N: 5}, {Facet: "f2", Value: "v9", N: 1},
	}}
	unnamed := affinity.Event{Time: now - dayMS, Type: event.View, Name: "b"} // it has a rank, and no filters
	session := affinity.ReferenceSession([]affinity.Event{click, view, unnamed}, s, affinity.Window{Now: now, RetentionDays: window})
	tests := map[string]struct {
		halfLife strategy.HalfLife
		v0, v1   float64
	}{
		"two events":    {strategy.Events(2), 3*math.Exp2(-0.5) + 60*math.Exp2(-1), 5 * math.Exp2(-0.5)},
		"half an event": {strategy.Events(0.5), 3*math.Exp2(-2) + 60*math.Exp2(-4), 5 * math.Exp2(-2)},
		"absent":        {strategy.HalfLife{}, 3 + 60, 5},
		"two days":      {strategy.Days(2), 3*0.5 + 60*0.25, 5 * 0.5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := affinity.Profile{Affinities: []affinity.Affinity{
				{Facet: "f0", Value: "v0", Scores: []float64{test.v0}}, {Facet: "f1", Value: "v1", Scores: []float64{test.v1}},
			}}
			got := session.Scores(affinity.Compile(s), test.halfLife, now)
			if diff := cmp.Diff(want.Affinities, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSessionScoresEqualProfile holds the session's scores to the formula of
// profiles: while the session holds every scored event, they are equal under a
// half-life of time.
func TestSessionScoresEqualProfile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		s.HalfLives = strategy.InDays(rapid.IntRange(1, 100).Draw(t, "days"))
		log := drawLog(t, w)
		want := affinity.Reference(log, s, w)
		got := want
		got.Affinities = affinity.ReferenceSession(log, s, w).Scores(affinity.Compile(s), s.HalfLives[0], w.Now)
		if fault := differ(got, want, 1e-9); fault != "" {
			t.Fatal(fault)
		}
	})
}

func BenchmarkCollect(b *testing.B) {
	log := benchEvents()
	sortEvents(log)
	c, w := affinity.Compile(benchStrategy(30)), affinity.Window{Now: now, RetentionDays: window}
	b.ReportAllocs()
	for b.Loop() {
		newest := affinity.NewCollector[int](c, w, affinity.MaxSessionEvents)
		for i := range log {
			if newest.Wants(log[i].Time, string(log[i].Type), log[i].Name) {
				newest.Add(log[i].Time, "", i, i)
			}
		}
		_ = newest.Newest()
	}
}

func BenchmarkSession(b *testing.B) {
	log := benchEvents()
	sortEvents(log)
	s, w := benchStrategy(30), affinity.Window{Now: affinitytest.Now, RetentionDays: window}
	session, c := affinity.ReferenceSession(log, s, w), affinity.Compile(benchStrategy(30))
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		var stored []byte
		for b.Loop() {
			stored = affinity.NewSession(c, session.Events).AppendBinary(stored[:0], nil)
		}
		b.ReportMetric(float64(len(stored)), "B")
	})
	b.Run("parse", func(b *testing.B) {
		profile := benchProfile(30).AppendBinary(nil)
		stored := session.AppendBinary(nil, profile)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := affinity.ParseSession(stored, profile); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("score", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			session.Scores(c, strategy.Events(2), now)
		}
	})
}
