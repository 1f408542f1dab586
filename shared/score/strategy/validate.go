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
// events and 15 facets" of Algolia's dashboard. MaxName and maxSize keep a
// stored strategy well below 1 MiB, the limit of a Firestore document.
const (
	MaxEntries      = 100     // entries in eventsScoring, and in facetsScoring
	MaxScore        = 100     // score of an event, and of a facet
	MaxImpact       = 100     // personalizationImpact
	MaxHalfLives    = 5       // half-lives, which must differ
	MaxHalfLifeDays = 3650    // ten years
	MaxAliases      = 5_000   // pairs over all facets
	maxIgnored      = 100     // ignoredValues
	MaxAllowed      = 5_000   // allowedValues over all facets
	MaxName         = 500     // bytes of a name or a value
	maxSize         = 500_000 // bytes of the whole strategy as JSON
)

// eventTypes are the types that score. Algolia's instantsearch events do not.
var eventTypes = []event.Type{event.Click, event.Conversion, event.View}

func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, format, args...)
}

// Validate checks s against the limits. It returns a *fault.Error with the first fault and
// the messages of the others, or nil.
func (s Strategy) Validate() error {
	var f faults
	if err := s.validate(&f); err != nil {
		return err
	}
	return f.err()
}

// validate adds what is wrong with s. The error is no fault of the strategy.
func (s Strategy) validate(f *faults) error {
	s.checkEvents(f)
	s.checkFacets(f)
	f.add("personalizationImpact", checkRange("personalizationImpact", s.PersonalizationImpact, 0, MaxImpact))
	s.checkHalfLives(f)
	s.checkAliases(f)
	s.checkValues(f)
	s.Ranking.check(f, "ranking")
	s.checkPlacements(f)
	err := s.checkSize()
	if f.add("", err) {
		return nil
	}
	return err
}

func (s Strategy) checkEvents(f *faults) {
	if n := len(s.EventsScoring); n > MaxEntries {
		f.add("eventsScoring", invalid("eventsScoring must have at most %d entries, got %d", MaxEntries, n))
		return
	}
	type key struct {
		typ  event.Type
		name string
	}
	first := make(map[key]int, len(s.EventsScoring))
	for i, e := range s.EventsScoring {
		path := fmt.Sprintf("eventsScoring[%d]", i)
		f.add(path+".eventName", checkName(path+".eventName", e.EventName))
		if !slices.Contains(eventTypes, e.EventType) {
			f.add(path+".eventType", invalid(`%s.eventType must be one of "click", "conversion" or "view", got %s`, path,
				quote(string(e.EventType))))
		}
		f.add(path+".score", checkRange(path+".score", e.Score, 0, MaxScore))
		k := key{e.EventType, e.EventName}
		if j, ok := first[k]; ok {
			f.add(path, invalid("%s repeats the event type and name of eventsScoring[%d]", path, j))
		} else {
			first[k] = i
		}
	}
}

func (s Strategy) checkFacets(f *faults) {
	if n := len(s.FacetsScoring); n > MaxEntries {
		f.add("facetsScoring", invalid("facetsScoring must have at most %d entries, got %d", MaxEntries, n))
		return
	}
	first := make(map[string]int, len(s.FacetsScoring))
	for i, facet := range s.FacetsScoring {
		path := fmt.Sprintf("facetsScoring[%d]", i)
		f.add(path+".facetName", checkName(path+".facetName", facet.FacetName))
		f.add(path+".score", checkRange(path+".score", facet.Score, 0, MaxScore))
		if j, ok := first[facet.FacetName]; ok {
			f.add(path, invalid("%s repeats the facet of facetsScoring[%d]", path, j))
		} else {
			first[facet.FacetName] = i
		}
	}
}

func (s Strategy) checkHalfLives(f *faults) {
	if n := len(s.HalfLives); n > MaxHalfLives {
		f.add("halfLives", invalid("halfLives must have at most %d entries, got %d", MaxHalfLives, n))
		return
	}
	for i, h := range s.HalfLives {
		path := fmt.Sprintf("halfLives[%d]", i)
		if f.add(path, checkHalfLife(path, h, false)) {
			continue
		}
		if j := slices.IndexFunc(s.HalfLives, h.SameAs); j < i {
			f.add(path, invalid("%s repeats halfLives[%d]", path, j))
		}
	}
}

func (s Strategy) checkAliases(f *faults) {
	total := 0
	for _, pairs := range s.Aliases {
		total += len(pairs)
	}
	if total > MaxAliases {
		f.add("aliases", invalid("aliases must have at most %d pairs in all, got %d", MaxAliases, total))
		return
	}
	// In key order, so that the same faults are reported every time.
	for _, facet := range sortedKeys(s.Aliases) {
		if !f.add(keyPath("aliases", facet), checkName("a facet in aliases", facet)) {
			checkFacetAliases(f, facet, s.Aliases[facet])
		}
	}
}

// checkFacetAliases refuses chains, and so also cycles: the target of an alias
// must not have an alias.
func checkFacetAliases(f *faults, facet string, pairs map[string]string) {
	of := keyPath("aliases", facet)
	for _, from := range sortedKeys(pairs) {
		path, to := keyPath("aliases", facet, from), pairs[from]
		if f.add(path, checkName("a value in "+of, from)) {
			continue
		}
		if f.add(path, checkName(path, to)) {
			continue
		}
		if from == to {
			f.add(path, invalid("%s is an alias of itself", path))
		} else if _, ok := pairs[to]; ok {
			f.add(path, invalid("%s leads to %s, which has an alias itself: aliases are one step, no chains and no cycles", path, quote(to)))
		}
	}
}

func (s Strategy) checkValues(f *faults) {
	if n := len(s.IgnoredValues); n > maxIgnored {
		f.add("ignoredValues", invalid("ignoredValues must have at most %d values, got %d", maxIgnored, n))
	} else {
		for i, v := range s.IgnoredValues {
			path := fmt.Sprintf("ignoredValues[%d]", i)
			f.add(path, checkName(path, v))
		}
	}
	total := 0
	for _, values := range s.AllowedValues {
		total += len(values)
	}
	if total > MaxAllowed {
		f.add("allowedValues", invalid("allowedValues must have at most %d values in all, got %d", MaxAllowed, total))
		return
	}
	for _, facet := range sortedKeys(s.AllowedValues) {
		path := keyPath("allowedValues", facet)
		if f.add(path, checkName("a facet in allowedValues", facet)) {
			continue
		}
		for _, v := range sortedKeys(s.AllowedValues[facet]) {
			f.add(path, checkName("a value in "+path, v))
		}
	}
}

func (s Strategy) checkSize() error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("measure strategy: %w", err)
	}
	if len(b) > maxSize {
		return invalid("the strategy must have at most %d bytes as JSON, got %d", maxSize, len(b))
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
