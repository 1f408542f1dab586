package strategy

import (
	"fmt"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
)

// Warnings says which names and values of a valid strategy can match nothing, or only what
// is sent or stored with the same slip. At most maxFaults: nobody reads more.
func (s Strategy) Warnings() []string {
	var list []string
	warn := func(format string, args ...any) {
		if len(list) < maxFaults {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	for i, e := range s.EventsScoring {
		path := fmt.Sprintf("eventsScoring[%d].eventName", i)
		switch {
		case !event.ValidName(e.EventName):
			warn("%s %s matches no event: names of events have 1 to 64 visible ASCII characters", path, quote(e.EventName))
		case padded(e.EventName):
			warn("%s %s begins or ends with a space: only events whose name has it match", path, quote(e.EventName))
		}
	}
	for i, f := range s.FacetsScoring {
		path := fmt.Sprintf("facetsScoring[%d].facetName", i)
		switch {
		case strings.Contains(f.FacetName, event.Operator):
			warn("%s %s has a colon and matches no filter of an event, as these end the facet at their first colon: only an "+
				"attribute of the catalog of this very name matches", path, quote(f.FacetName))
		case padded(f.FacetName):
			warn("%s %s begins or ends with a space: only filters and attributes whose name has it match", path,
				quote(f.FacetName))
		}
	}
	for _, facet := range sortedKeys(s.AllowedValues) {
		path := keyPath("allowedValues", facet)
		if s.FacetScore(facet) == 0 {
			warn("%s has no effect: facetsScoring does not score the facet", path)
		}
		for _, v := range sortedKeys(s.AllowedValues[facet]) {
			if to := s.Alias(facet, v); to != v {
				warn("%s has %s, which no value counts as: by an alias it counts as %s", path, quote(v), quote(to))
			} else if s.Ignores(v) {
				warn("%s has %s, which scores nothing: it is one of the ignored values", path, quote(v))
			}
		}
	}
	return list
}

func padded(name string) bool { return strings.TrimSpace(name) != name }
