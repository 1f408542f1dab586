package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
)

// TestRoundTrip decodes answers as the engine sends them and encodes them
// again: no field may be lost, and none may be added.
func TestRoundTrip(t *testing.T) {
	for _, test := range []struct {
		name   string
		wire   string
		answer any
	}{
		{"profile", `{"userToken":"ann","lastEventAt":"2026-11-21T19:33:10.000Z","asOf":"2026-11-21T19:33:10.394Z","strategyVersion":2,` +
			`"source":"stored","total":1,"affinities":[{"facet":"color","operator":":","value":"Red","score":12.5,"scores":{"30":40,"7":12.5}}]}`, &api.Profile{}},
		{"explanation without a score", `{"userToken":"ann","asOf":"2026-11-21T19:33:10.394Z","known":false,"strategyVersion":0,"retentionDays":90,` +
			`"events":{"accepted":0,"deleted":0,"outsideWindow":0,"ahead":0,"notInStrategy":0,"withoutFilters":0,"ignored":0,"counted":0,"withUnknownObjects":0},` +
			`"firstEventAt":null,"lastEventAt":null,"reasons":["none"]}`, &api.Explanation{}},
		{"score", `{"facet":"color","value":"Red","score":3,"contributions":[` +
			`{"events":2,"from":"2026-11-20T00:00:00.000Z","to":"2026-11-20T00:00:01.000Z","contribution":2},` +
			`{"time":"2026-11-21T00:00:00.000Z","type":"view","name":"Viewed","index":"","eventScore":1,"facetScore":1,"weight":1,"count":1,` +
			`"ageDays":0.5,"decay":1,"contribution":1}]}`, &api.ScoreExplanation{}},
		{"settings never set", `{}`, &api.Settings{}},
		{"settings emptied", `{"attributesForFaceting":[]}`, &api.Settings{}},
		{"private facets emptied", `{"privateFacets":[]}`, &api.Settings{}},
		{"deleted object", `{"deletedAt":"2026-11-21T19:33:10.123456789Z","taskID":7}`, &api.DeletedObject{}},
		{"audit", `{"sampled":1,"compared":1,"stored":1,"events":3,"byScorer":0,"differing":1,"differences":[{"userToken":"ann","which":"stored",` +
			`"what":"known","want":true,"got":false}]}`, &api.Audit{}},
		{"schema", `{"read":"wide","written":["wide"],"encoding":"compact","move":null,"settlesInMs":0,"next":["start"]}`, &api.Schema{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			must.Succeed(t, json.Unmarshal([]byte(test.wire), test.answer))
			again, err := json.Marshal(test.answer)
			must.Succeed(t, err)
			if string(again) != test.wire {
				t.Errorf("decoded and encoded:\n%s\nwant:\n%s", again, test.wire)
			}
		})
	}
}

func TestTime(t *testing.T) {
	at := time.Date(2026, 11, 21, 20, 33, 10, 394_999_999, time.FixedZone("", 3600))
	for _, got := range []api.Time{api.At(at), api.AtMillis(at.UnixMilli()), {Time: at}} {
		text, err := json.Marshal(got)
		if err != nil || string(text) != `"2026-11-21T19:33:10.394Z"` {
			t.Errorf("%v is written as %s, %v", got, text, err)
		}
	}
}

// TestEventLimits sends events at each limit and one beyond it.
func TestEventLimits(t *testing.T) {
	list := func(n int, of string) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("%s%d", of, i)
		}
		return all
	}
	for name, at := range map[string]func(e *api.Event, beyond int){
		"event name": func(e *api.Event, beyond int) { e.EventName = strings.Repeat("n", api.MaxEventName+beyond) },
		"user token": func(e *api.Event, beyond int) { e.UserToken = strings.Repeat("u", api.MaxUserToken+beyond) },
		"index":      func(e *api.Event, beyond int) { e.Index = strings.Repeat("i", api.MaxEventObjectID+beyond) },
		"objectIDs":  func(e *api.Event, beyond int) { e.ObjectIDs = list(api.MaxEventTargets+beyond, "o") },
		"length of an ID": func(e *api.Event, beyond int) {
			e.ObjectIDs = []string{strings.Repeat("o", api.MaxEventObjectID+beyond)}
		},
		"filters": func(e *api.Event, beyond int) { e.ObjectIDs, e.Filters = nil, list(api.MaxEventTargets+beyond, "f:") },
		"length of filter": func(e *api.Event, beyond int) {
			e.ObjectIDs, e.Filters = nil, []string{"f:" + strings.Repeat("v", api.MaxEventFilter-2+beyond)}
		},
		"eventId": func(e *api.Event, beyond int) { e.EventID = strings.Repeat("x", api.MaxEventID+beyond) },
		"value":   func(e *api.Event, beyond int) { e.Value = strings.Repeat("9", api.MaxEventValue+beyond) },
	} {
		t.Run(name, func(t *testing.T) {
			for beyond, fits := range []bool{true, false} {
				e := api.Event{EventType: api.EventConversion, EventName: "Bought", Index: "shoes", UserToken: "ann", ObjectIDs: []string{"1"}}
				at(&e, beyond)
				raw, err := json.Marshal(e)
				must.Succeed(t, err)
				if _, err := event.Decode(raw, event.Rules{Now: time.Now()}); (err == nil) != fits {
					t.Errorf("%d beyond the limit: %v", beyond, err)
				}
			}
		})
	}
}

func TestErrorTemporary(t *testing.T) {
	for status, want := range map[int]bool{400: false, 401: false, 404: false, 408: true, 409: false, 422: false, 429: true, 500: true, 503: true} {
		if err := (&api.Error{Status: status}); err.Temporary() != want {
			t.Errorf("status %d is temporary: %v, want %v", status, err.Temporary(), want)
		}
	}
}

// The unknown objects of several answers are those of one: each object once, up to the most
// that an answer names.
func TestUnknownObjectsAddUp(t *testing.T) {
	var total api.ImportAnswer
	ids := func(from, to int) (list []string) {
		for i := range to - from {
			list = append(list, fmt.Sprint(from+i))
		}
		return list
	}
	place := &api.ObjectPlace{ObjectID: "1", Index: "c"}
	first := []api.UnknownObjects{{Index: "a", Events: 2, ObjectIDs: ids(0, 60)}}
	for _, unknown := range [][]api.UnknownObjects{first, {{Index: "b", Events: 1, ObjectIDs: ids(0, 1), More: true}, {Index: "a", Events: 3, ObjectIDs: ids(50, 100), Elsewhere: place}},
		{{Index: "a", Events: 1, ObjectIDs: ids(0, 100)}}} {
		total.AddCounts(api.ImportAnswer{UnknownObjects: unknown})
	}
	want := []api.UnknownObjects{{Index: "a", Events: 6, ObjectIDs: ids(0, 100), Elsewhere: place}, {Index: "b", Events: 1, ObjectIDs: ids(0, 1), More: true}}
	if diff := cmp.Diff(want, total.UnknownObjects); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range api.MaxUnknownIndexes + 5 {
		total.AddCounts(api.ImportAnswer{UnknownObjects: []api.UnknownObjects{{Index: fmt.Sprint(i), Events: 1, ObjectIDs: ids(0, 1)}}})
	}
	total.AddCounts(api.ImportAnswer{UnknownObjects: []api.UnknownObjects{{Index: "a", Events: 1, ObjectIDs: []string{"x"}}}})
	if a := total.UnknownObjects[0]; len(total.UnknownObjects) != api.MaxUnknownIndexes || !a.More || len(a.ObjectIDs) != api.MaxUnknownObjects || len(first[0].ObjectIDs) != 60 {
		t.Errorf("%d indexes, the first is %+v", len(total.UnknownObjects), a)
	}
}
