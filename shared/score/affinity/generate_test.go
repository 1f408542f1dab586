package affinity_test

import (
	"cmp"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// The names and draws of package affinitytest, which this package's tests share.
var (
	types        = affinitytest.Types
	eventNames   = affinitytest.EventNames
	facets       = affinitytest.Facets
	drawStrategy = affinitytest.DrawStrategy
	drawWindow   = affinitytest.DrawWindow
	drawTime     = affinitytest.DrawTime
)

func drawEvents(t *rapid.T, w affinity.Window) []affinity.Event {
	one := rapid.Custom(func(t *rapid.T) affinity.Event {
		e := affinity.Event{
			Time: drawTime(t, w),
			Type: rapid.SampledFrom(types).Draw(t, "type"),
			Name: rapid.SampledFrom(eventNames).Draw(t, "name"),
		}
		e.Counts = affinitytest.DrawCounts(t, rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(-1, 0)))
		return e
	})
	return rapid.SliceOfN(one, 0, 20).Draw(t, "events")
}

// drawProfile draws what a profile may be, computed or not.
func drawProfile(t *rapid.T) affinity.Profile {
	p := affinity.Profile{
		StrategyVersion: rapid.Int64().Draw(t, "version"),
		RetentionDays:   rapid.Int().Draw(t, "retention"),
		Anchor:          rapid.Int64().Draw(t, "anchor"),
		LastEventAt:     rapid.Int64().Draw(t, "last"),
		Known:           rapid.Bool().Draw(t, "known"),
		Until:           rapid.Int64().Draw(t, "until"),
	}
	if rapid.Bool().Draw(t, "deleted") {
		p.DeletedUntil = rapid.Int64().Draw(t, "deleted until")
		p.ReceivedUntil = rapid.SampledFrom([]int64{p.DeletedUntil, p.DeletedUntil | 1}).Draw(t, "received until")
	}
	if rapid.Bool().Draw(t, "marked") {
		p.Marks = rapid.Int64Min(1).Draw(t, "marks")
	}
	p.HalfLives = affinitytest.DrawHalfLives(t, 5)
	p.Total = rapid.IntRange(0, 20).Draw(t, "total")
	for i := range p.Total {
		a := affinity.Affinity{
			Facet: rapid.OneOf(rapid.SampledFrom(facets), rapid.String()).Draw(t, "facet"),
			Value: rapid.String().Draw(t, "value") + fmt.Sprint(i),
		}
		for range max(1, len(p.HalfLives)) {
			a.Scores = append(a.Scores, rapid.Float64Min(0).Draw(t, "score"))
		}
		p.Affinities = append(p.Affinities, a)
	}
	return p
}

func sortEvents(events []affinity.Event) {
	slices.SortStableFunc(events, func(a, b affinity.Event) int { return cmp.Compare(a.Time, b.Time) })
}
