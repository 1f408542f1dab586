package strategy

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
)

// Limits of a strategy. Algolia publishes only the limit of the impact. The
// limits on counts bound what one event can cost and are well above the "15
// events and 15 facets" of Algolia's dashboard. MaxName and MaxSize keep a
// stored strategy well below 1 MiB, the limit of a Firestore document.
const (
	MaxEntries      = 100     // entries in eventsScoring, and in facetsScoring
	MaxScore        = 100     // score of an event, and of a facet
	MaxImpact       = 100     // personalizationImpact
	MaxHalfLives    = 5       // half-lives, which must differ
	MaxHalfLifeDays = 3650    // ten years
	MaxAliases      = 5_000   // pairs over all facets
	MaxName         = 500     // bytes of a name or a value
	MaxSize         = 500_000 // bytes of the whole strategy as JSON
)

// eventTypes are the types that score. Algolia's instantsearch events do not.
var eventTypes = []event.Type{event.Click, event.Conversion, event.View}

func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, format, args...)
}

// Validate checks s against the limits. It returns the first fault as a
// *fault.Error, or nil.
func (s Strategy) Validate() error {
	checks := []func() error{s.checkEvents, s.checkFacets, s.checkImpact, s.checkHalfLives, s.checkAliases, s.checkRanking, s.checkSize}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s Strategy) checkEvents() error {
	if n := len(s.EventsScoring); n > MaxEntries {
		return invalid("eventsScoring must have at most %d entries, got %d", MaxEntries, n)
	}
	type key struct {
		typ  event.Type
		name string
	}
	first := make(map[key]int, len(s.EventsScoring))
	for i, e := range s.EventsScoring {
		path := fmt.Sprintf("eventsScoring[%d]", i)
		if err := checkName(path+".eventName", e.EventName); err != nil {
			return err
		}
		if !slices.Contains(eventTypes, e.EventType) {
			return invalid(`%s.eventType must be one of "click", "conversion" or "view", got %s`, path, quote(string(e.EventType)))
		}
		if err := checkRange(path+".score", e.Score, 0, MaxScore); err != nil {
			return err
		}
		k := key{e.EventType, e.EventName}
		if j, ok := first[k]; ok {
			return invalid("%s repeats the event type and name of eventsScoring[%d]", path, j)
		}
		first[k] = i
	}
	return nil
}

func (s Strategy) checkFacets() error {
	if n := len(s.FacetsScoring); n > MaxEntries {
		return invalid("facetsScoring must have at most %d entries, got %d", MaxEntries, n)
	}
	first := make(map[string]int, len(s.FacetsScoring))
	for i, f := range s.FacetsScoring {
		path := fmt.Sprintf("facetsScoring[%d]", i)
		if err := checkName(path+".facetName", f.FacetName); err != nil {
			return err
		}
		if err := checkRange(path+".score", f.Score, 0, MaxScore); err != nil {
			return err
		}
		if j, ok := first[f.FacetName]; ok {
			return invalid("%s repeats the facet of facetsScoring[%d]", path, j)
		}
		first[f.FacetName] = i
	}
	return nil
}

func (s Strategy) checkImpact() error {
	return checkRange("personalizationImpact", s.PersonalizationImpact, 0, MaxImpact)
}

func (s Strategy) checkHalfLives() error {
	if n := len(s.HalfLives); n > MaxHalfLives {
		return invalid("halfLives must have at most %d entries, got %d", MaxHalfLives, n)
	}
	for i, h := range s.HalfLives {
		path := fmt.Sprintf("halfLives[%d]", i)
		if err := checkHalfLife(path, h, false); err != nil {
			return err
		}
		if j := slices.IndexFunc(s.HalfLives, h.SameAs); j < i {
			return invalid("%s repeats halfLives[%d]", path, j)
		}
	}
	return nil
}

func (s Strategy) checkAliases() error {
	total := 0
	for _, pairs := range s.Aliases {
		total += len(pairs)
	}
	if total > MaxAliases {
		return invalid("aliases must have at most %d pairs in all, got %d", MaxAliases, total)
	}
	// In key order, so that the same fault is reported every time.
	for _, facet := range sortedKeys(s.Aliases) {
		if err := checkName("a facet in aliases", facet); err != nil {
			return err
		}
		if err := checkFacetAliases(facet, s.Aliases[facet]); err != nil {
			return err
		}
	}
	return nil
}

// checkFacetAliases refuses chains, and so also cycles: the target of an alias
// must not have an alias.
func checkFacetAliases(facet string, pairs map[string]string) error {
	of := aliasPath(facet)
	for _, from := range sortedKeys(pairs) {
		if err := checkName("a value in "+of, from); err != nil {
			return err
		}
		path, to := aliasPath(facet, from), pairs[from]
		if err := checkName(path, to); err != nil {
			return err
		}
		if from == to {
			return invalid("%s is an alias of itself", path)
		}
		if _, ok := pairs[to]; ok {
			return invalid("%s leads to %s, which has an alias itself: aliases are one step, no chains and no cycles", path, quote(to))
		}
	}
	return nil
}

func (s Strategy) checkSize() error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("measure strategy: %w", err)
	}
	if len(b) > MaxSize {
		return invalid("the strategy must have at most %d bytes as JSON, got %d", MaxSize, len(b))
	}
	return nil
}

func checkName(path, name string) error {
	switch {
	case name == "":
		return invalid("%s must not be empty", path)
	case len(name) > MaxName:
		return invalid("%s must have at most %d bytes, got %d", path, MaxName, len(name))
	case !utf8.ValidString(name):
		return invalid("%s must be valid UTF-8", path)
	}
	return nil
}

func checkRange(path string, n, low, high int) error {
	if n < low || n > high {
		return invalid("%s must be an integer from %d to %d, got %d", path, low, high, n)
	}
	return nil
}
