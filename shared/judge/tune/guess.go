package tune

import (
	"cmp"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Scores of a guessed strategy. An order says more than a click, and a click more
// than a view; which facets matter, only a search can tell.
var guessedScores = map[event.Type]int{event.View: 5, event.Click: 10, event.Conversion: 50}

const (
	guessedFacetScore = 50
	guessedImpact     = 50
)

// turnedAway are parts of event names by which users turn away from objects.
var turnedAway = []string{"cancel", "refund", "return", "remove", "delete", "dislike", "unlike", "hide",
	"complain", "unsubscribe"}

// Guess returns a strategy to begin with, for a log without one: it scores the
// events that name objects, by their type, and the facets that several objects
// share, all alike. It leaves out events whose name says that users turn away from
// objects, such as Order Cancelled. The error is a *fault.Error.
func Guess(l *backtest.Log) (strategy.Strategy, error) {
	s := strategy.Strategy{PersonalizationImpact: guessedImpact}
	kinds := slices.DeleteFunc(l.Kinds(), func(k backtest.Kind) bool {
		return k.Named == 0 ||
			guessedScores[k.Type] == 0 || away(k.Name)
	})
	if len(kinds) == 0 {
		return s, fault.New(fault.Invalid, "no strategy can be guessed: no event names an object of the catalog; "+
			"are the objectIDs and the index of both files the same?")
	}
	slices.SortStableFunc(kinds, func(a, b backtest.Kind) int { return cmp.Compare(b.Named, a.Named) })
	for _, k := range kinds[:min(len(kinds), strategy.MaxEntries)] {
		s.EventsScoring = append(s.EventsScoring,
			strategy.EventScore{EventName: k.Name, EventType: k.Type, Score: guessedScores[k.Type]})
	}
	for _, name := range facetsOf(l, s) {
		s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: name, Score: guessedFacetScore})
	}
	if len(s.FacetsScoring) == 0 {
		return s, fault.New(fault.Invalid, "no strategy can be guessed: no attribute of the objects has a value "+
			"that several of them share")
	}
	return s, nil
}

// TurnedAway returns the kinds of events that name objects and that Guess leaves out because
// of their names, those of the most events first.
func TurnedAway(l *backtest.Log) []backtest.Kind {
	kinds := slices.DeleteFunc(l.Kinds(), func(k backtest.Kind) bool { return k.Named == 0 || !away(k.Name) })
	slices.SortStableFunc(kinds, func(a, b backtest.Kind) int { return cmp.Compare(b.Named, a.Named) })
	return kinds
}

func away(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(turnedAway, func(part string) bool { return strings.Contains(name, part) })
}
