package explain_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/explain"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

var (
	types  = rapid.SampledFrom([]event.Type{event.View, event.Click, event.Conversion})
	names  = rapid.SampledFrom([]string{"a", "b"})
	facets = rapid.SampledFrom([]string{"color", "brand", "size"})
	values = rapid.SampledFrom([]string{"1", "2", "3", "4", "None"})
)

func drawStrategy(t *rapid.T) strategy.Strategy {
	s := strategy.Strategy{Aliases: map[string]map[string]string{}}
	for _, typ := range rapid.SliceOfNDistinct(types, 0, 3, rapid.ID).Draw(t, "types") {
		score := rapid.IntRange(0, 3).Draw(t, "points")
		s.EventsScoring = append(s.EventsScoring, strategy.EventScore{EventType: typ, EventName: names.Draw(t, "name"), Score: score})
	}
	for _, f := range rapid.SliceOfNDistinct(facets, 0, 3, rapid.ID).Draw(t, "facets") {
		s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: f, Score: rapid.IntRange(0, 3).Draw(t, "weight")})
		if rapid.Bool().Draw(t, "alias") {
			s.Aliases[f] = map[string]string{"1": "2", "3": "2"}
		}
	}
	s.HalfLives = affinitytest.DrawHalfLives(t, 3)
	s.IgnoredValues = rapid.SampledFrom([][]string{nil, {}, {"2", "NONE"}}).Draw(t, "ignored")
	if rapid.Bool().Draw(t, "allows") {
		s.AllowedValues = map[string]strategy.ValueSet{facets.Draw(t, "listed"): strategy.SetOf("1", "2", "None")}
	}
	return s
}

func drawEvents(t *rapid.T) []affinity.Event {
	events := make([]affinity.Event, rapid.IntRange(0, 20).Draw(t, "events"))
	for i := range events {
		e := &events[i]
		e.Time = now - rapid.Int64Range(-2, 20).Draw(t, "days")*24*3_600_000 - rapid.Int64Range(-1, 1).Draw(t, "ms")
		e.Type, e.Name = types.Draw(t, "type"), names.Draw(t, "name")
		type filter struct{ facet, value string }
		seen := map[filter]bool{}
		for range rapid.IntRange(0, 3).Draw(t, "counts") {
			f := filter{facets.Draw(t, "facet"), values.Draw(t, "value")}
			if !seen[f] {
				seen[f] = true
				e.Counts = append(e.Counts, affinity.Count{Facet: f.facet, Value: f.value, N: rapid.IntRange(1, 3).Draw(t, "n")})
			}
		}
	}
	slices.SortFunc(events, func(a, b affinity.Event) int { return cmp.Compare(a.Time, b.Time) })
	return events
}

// asLogged adds an event in the form in which the log has it.
func asLogged(x *explain.Explanation, e affinity.Event, unknown int) {
	original := fmt.Sprintf(`{"receivedAt":%d,"index":"i","unknownObjects":%d,"event":{"eventType":%q,"eventName":%q,"index":"i","userToken":"u","timestamp":%d,"objectIDs":["1"]}}`,
		now, unknown, e.Type, e.Name, e.Time)
	if len(e.Counts) == 0 {
		e.Type, e.Name = "", ""
	}
	x.Add(explain.Logged{Event: e, Receipt: e.Time, Original: []byte(original)})
}

// For any events the counts add up, the contributions add up to the score, bit
// for bit, and the score is the score in the profile.
func TestScoreIsThatOfTheProfile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, events := drawStrategy(t), drawEvents(t)
		w := affinity.Window{Now: now, RetentionDays: rapid.SampledFrom([]int{0, 3, 90}).Draw(t, "retention")}
		if rapid.Bool().Draw(t, "deleted") {
			w.DeletedUntil = now - rapid.Int64Range(0, 20).Draw(t, "deleted days ago")*24*3_600_000
		}
		q := explain.Question{
			Window: w, Strategy: s, StrategyVersion: 1, Facet: facets.Draw(t, "facet"), Value: values.Draw(t, "value"),
			Limit: rapid.IntRange(1, 8).Draw(t, "limit"),
		}
		x := explain.New(q)
		for i, e := range events {
			asLogged(x, e, i%2)
		}
		a, want := x.Answer(nil), affinity.Reference(events, s, w)
		checkSum(t, a.Events)
		if a.Events.Accepted != len(events) || a.Known != want.Known || len(a.Reasons) == 0 {
			t.Fatalf("%+v of %d events, known %v, want %v", a, len(events), a.Known, want.Known)
		}
		checkScore(t, *a.Score, want, q)
	})
}

func checkScore(t *rapid.T, got explain.Score, want affinity.Profile, q explain.Question) {
	wanted := make([]float64, max(1, len(q.Strategy.HalfLives)))
	for _, a := range want.Affinities {
		if a.Facet == q.Facet && a.Value == q.Value {
			wanted = a.Scores
		}
	}
	sums := make([]float64, len(wanted))
	one := 0
	for i, c := range got.Contributions {
		for j, score := range c.Scores {
			sums[j] += score
		}
		switch {
		case i > 0 && c.Time < got.Contributions[i-1].Time:
			t.Fatalf("contribution %d is older than the one before", i)
		case c.Events > 0 && i > 0:
			t.Fatalf("the sum of earlier events is contribution %d", i)
		case c.Events == 0:
			one++
			if again := float64(c.Weight()) * float64(c.Count) * c.Decay; math.Abs(again-c.Scores[0]) > 1e-15*again || c.Index != "i" {
				t.Fatalf("contribution %+v", c)
			}
		}
	}
	if one > q.Limit {
		t.Fatalf("%d contributions one by one, want at most %d", one, q.Limit)
	}
	for i, sum := range sums {
		if sum != got.Scores[i] || math.Abs(sum-wanted[i]) > 1e-9*wanted[i] {
			t.Fatalf("half-life %d: contributions add up to %v, the score is %v, in the profile %v", i, sum, got.Scores[i], wanted[i])
		}
	}
}
