// Package suggest proposes a first strategy from what was seen: which kinds of events arrived how
// often, and which facets the objects of the catalog share. It says why of each event and facet,
// also of those that it leaves out. Which scores are best only a search on past events can tell,
// see package tune.
//
// The package does no I/O and keeps nothing. Equal input gives an equal suggestion.
package suggest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Scores of a suggestion. An order says more than a click, and a click more than a view; which
// facets matter, only a search can tell.
var eventScores = map[event.Type]int{event.View: 5, event.Click: 10, event.Conversion: 50}

const (
	facetScore = 50
	impact     = 50
	// maxFacets bounds the facets that a suggestion scores.
	maxFacets = 12
)

// Kind is a type and name of events, and how many of them were seen.
type Kind struct {
	Type  event.Type
	Name  string
	Count int64
}

// Reason says why an event or a facet is in the suggestion, or is left out: Score is 0 then.
type Reason struct {
	Type  event.Type // of an event; "" for a facet
	Name  string
	Score int
	Text  string
}

// Suggestion is a strategy with its reasons.
type Suggestion struct {
	Strategy strategy.Strategy
	Reasons  []Reason // of events and then of facets, the most frequent first
}

// Find suggests a strategy for events of these kinds and objects with these facets. seen are facets
// that events carried by themselves, with the number of events; they count if no object has the
// facet. The error is a *fault.Error that says what is missing.
func Find(kinds []Kind, objects *Objects, seen map[string]int64) (Suggestion, error) {
	s := Suggestion{Strategy: strategy.Strategy{PersonalizationImpact: impact, Ranking: strategy.SuggestedRanking()}}
	s.events(kinds)
	if len(s.Strategy.EventsScoring) == 0 {
		return s, fault.New(fault.Invalid, "no strategy can be suggested: no view, click or conversion has been seen that "+
			"names an object or a filter")
	}
	found := objects.facets()
	s.facets(found)
	s.carried(found, seen)
	if len(s.Strategy.FacetsScoring) == 0 {
		return s, fault.New(fault.Invalid, "no strategy can be suggested: no attribute of the objects has a value "+
			"that several of them share")
	}
	return s, nil
}

// events scores kinds of events by their type.
func (s *Suggestion) events(kinds []Kind) {
	kinds = slices.Clone(kinds)
	slices.SortStableFunc(kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(string(a.Type), string(b.Type)),
			strings.Compare(a.Name, b.Name))
	})
	for _, k := range kinds {
		seen := count(k.Count, "event")
		switch {
		case k.Count == 0 || eventScores[k.Type] == 0:
		case away(k.Name):
			s.add(Reason{k.Type, k.Name, 0, seen + ": by the name, users turn away from objects with it"})
		case len(s.Strategy.EventsScoring) == strategy.MaxEntries:
			s.add(Reason{k.Type, k.Name, 0, seen + ", and a strategy scores at most that many kinds"})
		default:
			score := eventScores[k.Type]
			s.Strategy.EventsScoring = append(s.Strategy.EventsScoring,
				strategy.EventScore{EventName: k.Name, EventType: k.Type, Score: score})
			s.add(Reason{k.Type, k.Name, score, seen + ": " + says[k.Type]})
		}
	}
}

// says is what an event of a type says of a user.
var says = map[event.Type]string{
	event.View: "a view says little, and there are many", event.Click: "a click says more than a view",
	event.Conversion: "a conversion says the most",
}

// facets scores those facets of objects that can be a taste.
func (s *Suggestion) facets(found []facet) {
	for _, f := range found {
		text, taken := f.judge()
		if taken && len(s.Strategy.FacetsScoring) == maxFacets {
			text, taken = fmt.Sprintf("%d others are shared by more objects", maxFacets), false
		}
		if !taken {
			s.add(Reason{Name: f.name, Text: text})
			continue
		}
		s.score(f.name, text)
	}
}

// carried scores the facets that only events have. How many values they have nothing says.
func (s *Suggestion) carried(found []facet, seen map[string]int64) {
	names := make([]string, 0, len(seen))
	for name := range seen {
		if !slices.ContainsFunc(found, func(f facet) bool { return f.name == name }) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(seen[b], seen[a]), strings.Compare(a, b)) })
	for _, name := range names {
		text := count(seen[name], "event") + " had it, and no object has"
		switch {
		case len(s.Strategy.FacetsScoring) == maxFacets:
		case namesOne(name) || len(name) > strategy.MaxName:
			s.add(Reason{Name: name, Text: text + ": by its name, it says which object it is"})
		default:
			s.score(name, text)
		}
	}
}

func (s *Suggestion) score(facet, text string) {
	s.Strategy.FacetsScoring = append(s.Strategy.FacetsScoring, strategy.FacetScore{FacetName: facet, Score: facetScore})
	s.add(Reason{Name: facet, Score: facetScore, Text: text})
}

func (s *Suggestion) add(r Reason) { s.Reasons = append(s.Reasons, r) }

// turnedAway are parts of event names by which users turn away from objects.
var turnedAway = []string{"cancel", "refund", "return", "remove", "delete", "dislike", "unlike", "hide",
	"complain", "unsubscribe"}

// away reports whether users turn away from objects with events of a name.
func away(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(turnedAway, func(part string) bool { return strings.Contains(name, part) })
}
