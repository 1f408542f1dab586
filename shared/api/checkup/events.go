package checkup

import (
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
)

// suggest is the command that sets a first strategy.
const suggest = "affinity strategy suggest --set"

// strategy reports whether a strategy is set, and scores what arrives.
func (a Answers) strategy() Check {
	switch {
	case a.Versions == nil:
		return unknown(Strategy)
	case len(a.Versions.Versions) == 0:
		return fault(Strategy, "no strategy is set, so every profile is empty", suggest)
	}
	active := a.Versions.Versions[0]
	if a.Active != nil && a.Seen != nil {
		if text := a.unscored(*a.Active); text != "" {
			return fault(Strategy, text, "affinity events seen")
		}
	}
	return ok(Strategy, fmt.Sprintf("version %d, set %s", active.Version, ago(a.Now, active.SetAt.Time)))
}

// unscored says that a strategy scores nothing of what has arrived, "" if it scores some.
func (a Answers) unscored(s api.Strategy) string {
	if len(a.Seen.Events) == 0 {
		return ""
	}
	scored := slices.ContainsFunc(a.Seen.Events, func(e api.SeenEvent) bool {
		return s.EventScore(event.Type(e.EventType), e.EventName) > 0
	})
	if !scored {
		most := a.Seen.Events[0]
		return fmt.Sprintf("the strategy scores no event of the last %s: the most are of type %s, named %q",
			count(int64(a.Seen.Days), "day"), most.EventType, most.EventName)
	}
	carried := slices.ContainsFunc(a.Seen.Facets, func(f api.SeenFacet) bool {
		return slices.ContainsFunc(s.FacetsScoring, func(scored api.FacetScore) bool {
			return scored.FacetName == f.Facet && scored.Score > 0
		})
	})
	switch {
	case carried:
		return ""
	case len(a.Seen.Facets) == 0:
		return fmt.Sprintf("no event of the last %s has a filter: the catalog holds none of their objects, or no index "+
			"setting names a facet", count(int64(a.Seen.Days), "day"))
	}
	return fmt.Sprintf("the strategy scores no facet of the events of the last %s: the most have %s",
		count(int64(a.Seen.Days), "day"), a.Seen.Facets[0].Facet)
}

// events reports whether events arrive.
func (a Answers) events() Check {
	if a.Usage == nil {
		return unknown(Events)
	}
	days := a.Usage.Days
	if a.Usage.Total.Events == 0 || len(days) == 0 {
		return fault(Events, "no event has arrived in "+count(int64(len(days)), "day"), "affinity events send ann")
	}
	today := days[len(days)-1].Events
	if n := len(days); n > 7 && today == 0 {
		yesterday, before := days[n-2].Events, days[n-8].Events
		if before > 0 && (a.Now.UTC().Hour() >= quietHours || yesterday == 0) {
			return fault(Events, fmt.Sprintf("no events today, and %s on the same day a week ago", number(before)),
				"affinity events tail --follow")
		}
	}
	return ok(Events, fmt.Sprintf("%s today, %s in %s", number(today), number(a.Usage.Total.Events),
		count(int64(len(days)), "day")))
}

// refused reports whether more than some events are refused.
func (a Answers) refused() Check {
	if a.Usage == nil {
		return unknown(Refused)
	}
	var refused, taken int64
	for _, d := range a.Usage.Days[max(0, len(a.Usage.Days)-2):] {
		refused, taken = refused+d.RefusedEvents, taken+d.Events
	}
	text := fmt.Sprintf("%s yesterday and today, beside %s", count(refused, "refusal"), count(taken, "accepted event"))
	if refused*100 > (refused+taken)*refusedShare {
		return fault(Refused, text, "affinity events refused")
	}
	return ok(Refused, text)
}

// deadLetters reports whether accepted events could not be applied.
func (a Answers) deadLetters() Check {
	switch {
	case a.Usage == nil:
		return unknown(DeadLetters)
	case a.Usage.DeadLetters > 0:
		return fault(DeadLetters, count(int64(a.Usage.DeadLetters), "message")+" of accepted events could not be applied: "+
			"no profile counts the events until the operator puts them back", "affinity replay")
	}
	return ok(DeadLetters, "none")
}
