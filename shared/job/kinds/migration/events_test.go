package migration_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// users have tokens of every odd form; some are prefixes of others.
var users = []string{"a", "a+", "a+b", "a-", "a/b", "a=", "a_", "ab", "anonymous-0123456789-0123456789-0123456789-0123456789", "Z", "zz"}

// names are event names, which are printable ASCII.
var names = []string{"Seen", "Added, to cart", `"quoted"`, `a"",b`, `back\slash`, "a,b,c", "{}", " ", "<&>", ",", `"`, "~"}

// odd are facets and values that are hard to encode in columns, CSV and JSON.
var odd = []string{
	"Seen", "Added, to cart", `"quoted"`, `a"",b`, "line\nbreak", "tab\tstop", "\r\n", "é漢字🙂", `back\slash`, "a,b,c", "{}", "[\"x\"]", "null", " ", "\u2028", "<&>",
}

var types = []event.Type{event.View, event.Click, event.Conversion}

// scoring scores most generated events.
var scoring = func() strategy.Strategy {
	s := strategy.Strategy{HalfLives: strategy.InDays(1, 30)}
	for i, name := range names {
		s.EventsScoring = append(s.EventsScoring, strategy.EventScore{EventName: name, EventType: types[i%3], Score: 1 + i})
	}
	for i, facet := range odd[2:] {
		s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: facet, Score: 10 + i})
	}
	return s
}()

// catalog has objects with their filters: every other id of those in events.
var catalog = func() bus.Objects {
	objects := map[string][]bus.Filter{}
	for i, value := range odd {
		var filters []bus.Filter
		for j := range i % 5 {
			filters = append(filters, bus.Filter{odd[(i+j)%len(odd)], value})
		}
		objects[fmt.Sprint("known", i)] = filters
	}
	return bus.Objects{"products": objects}
}()

// someEvent returns a random event of a user as process logs it, before noon.
func someEvent(t *testing.T, r *rand.Rand, user string, most time.Duration) store.LogEvent {
	t.Helper()
	at := jobtest.Noon.Add(-time.Duration(r.Int64N(int64(most))))
	sent := map[string]any{
		"eventType": types[r.IntN(len(types))], "eventName": names[r.IntN(len(names))], "userToken": user, "timestamp": at.UnixMilli(),
	}
	switch r.IntN(5) {
	case 0: // filters and no objects
		sent["filters"] = []string{"color:red", "a%2Cb:c", "x:" + odd[r.IntN(len(odd))]}
	case 1: // an object without filters, or unknown objects
		sent["objectIDs"] = []string{[]string{"known0", "nobody knows it"}[r.IntN(2)]}
	default:
		var ids []string
		for _, i := range r.Perm(2 * len(odd))[:1+r.IntN(19)] {
			ids = append(ids, []string{fmt.Sprint("known", i/2), fmt.Sprint("unknown", i)}[i%2])
		}
		sent["objectIDs"] = ids
	}
	return logged(t, sent, at)
}

func logged(t *testing.T, sent map[string]any, at time.Time) store.LogEvent {
	t.Helper()
	raw, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	e, err := event.Decode(raw, event.Rules{Now: at.Add(time.Second), Index: "products"})
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return enrich.LogEvents([]event.Event{e}, bus.Resolution{Objects: catalog}, at.Add(time.Second).UnixMilli())[0]
}

// plain returns an event with one filter, some hours before noon.
func plain(t *testing.T, user string, hours int, color string) store.LogEvent {
	t.Helper()
	at := jobtest.Noon.Add(-time.Duration(hours) * time.Hour)
	return logged(t, map[string]any{
		"eventType": "view", "eventName": "Seen", "userToken": user, "timestamp": at.UnixMilli(), "filters": []string{"color:" + color},
	}, at)
}

// visits returns plain events of users, one an hour.
func visits(t *testing.T, users []string, each int) (events []store.LogEvent) {
	t.Helper()
	for _, user := range users {
		for i := range each {
			events = append(events, plain(t, user, i+1, fmt.Sprint("c", i)))
		}
	}
	return events
}
