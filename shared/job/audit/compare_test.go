package audit_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job/audit"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// drawEvents returns events of which some are outside the window, ahead of it,
// or score nothing.
func drawEvents(t *rapid.T, now int64, label string) []affinity.Event {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) affinity.Event {
		e := affinity.Event{
			Time: now - rapid.Int64Range(-1, 8).Draw(t, "days")*day, Type: event.Conversion,
			Name: rapid.SampledFrom([]string{"Bought", "Other"}).Draw(t, "name"),
		}
		for _, value := range rapid.SliceOfNDistinct(rapid.IntRange(0, 4), 0, 3, rapid.ID).Draw(t, "values") {
			e.Counts = append(e.Counts, affinity.Count{Facet: "color", Value: fmt.Sprint(value), N: rapid.IntRange(1, 3).Draw(t, "n")})
		}
		return e
	}), 0, 8).Draw(t, label)
}

// A profile of all early events and any of the late ones is right. A profile
// without an early event that scores, or with an event that is not in the log,
// is wrong.
func TestCompareAllowsNewerEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const now = 1_700_000_000_000
		w := affinity.Window{Now: now, RetentionDays: rapid.SampledFrom([]int{0, 5}).Draw(t, "retention")}
		of := func(lists ...[]affinity.Event) affinity.Profile {
			return affinity.Reference(slices.Concat(lists...), decaying, w)
		}
		early, late := drawEvents(t, now, "early"), drawEvents(t, now, "late")
		some := late[:rapid.IntRange(0, len(late)).Draw(t, "of the late")]
		low, high := of(early), of(early, late)
		if d := audit.Compare(of(early, some), low, high); len(d) > 0 {
			t.Fatalf("a score between the bounds is reported: %v", d)
		}
		odd := affinity.Event{Time: now, Type: event.Conversion, Name: "Bought", Counts: []affinity.Count{{Facet: "color", Value: "0", N: 1}}}
		if d := audit.Compare(of(early, late, []affinity.Event{odd}), low, high); len(d) == 0 {
			t.Fatal("an event that is missing from the log is not reported")
		}
		if d := audit.Compare(of(early), of(early, []affinity.Event{odd}), of(early, late, []affinity.Event{odd})); len(d) == 0 {
			t.Fatal("an early event that does not count is not reported")
		}
	})
}
