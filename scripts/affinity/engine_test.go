package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/operator"
)

// fakeEngine is an engine behind the HTTP API. It takes events and objects, scores
// them by the strategy as a plain sum, and answers with profiles.
type fakeEngine struct {
	*httptest.Server

	mu       sync.Mutex
	maxBody  int // of an import; 0: no limit
	local    *operator.Place
	failures []func(http.ResponseWriter, *http.Request) // each replaces the answer to one POST, in this order

	strategy json.RawMessage
	version  int64
	objects  map[string]map[string]json.RawMessage // index -> id -> record
	events   map[string]fakeEvent                  // by content: a repeated event counts once
	taken    int                                   // events of POST /1/events, equal ones too
	received int
	imports  []int // lines of each import request
	ended    []int // the number of import requests before each end of an import
	end      api.ImportEnd
	asked    url.Values // of the last profile
}

// fakeOperator is the token of a fakeEngine's operator.
const fakeOperator = "the-token-of-the-operator"

type fakeEvent struct {
	EventType string   `json:"eventType"`
	EventName string   `json:"eventName"`
	Index     string   `json:"index"`
	UserToken string   `json:"userToken"`
	Timestamp int64    `json:"timestamp"`
	ObjectIDs []string `json:"objectIDs"`
	Filters   []string `json:"filters"`
}

func newFakeEngine(t *testing.T) *fakeEngine {
	e := &fakeEngine{
		strategy: json.RawMessage(`{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":0}`),
		objects:  map[string]map[string]json.RawMessage{}, events: map[string]fakeEvent{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /1/events/import", e.importEvents)
	mux.HandleFunc("POST /1/imports/end", func(w http.ResponseWriter, _ *http.Request) {
		e.ended = append(e.ended, len(e.imports))
		answer(w, 200, e.end)
	})
	mux.HandleFunc("POST /1/events", e.takeEvents)
	mux.HandleFunc("POST /1/indexes/{index}/batch", e.batch)
	mux.HandleFunc("POST /1/strategies/personalization", e.setStrategy)
	mux.HandleFunc("GET /1/strategies/personalization", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, e.strategy) })
	mux.HandleFunc("GET /1/profiles/{user}", e.profile)
	mux.HandleFunc("POST /1/rank", e.rank)
	mux.HandleFunc("GET /local", func(w http.ResponseWriter, _ *http.Request) {
		if e.local == nil {
			refuse(w, 404, "Not found")
			return
		}
		answer(w, 200, e.local)
	})
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if strings.HasPrefix(r.URL.Path, "/local") {
			if r.Header.Get("Authorization") != "Bearer "+fakeOperator || r.Header.Get("X-Algolia-API-Key") != "" {
				refuse(w, 401, "Not the operator")
				return
			}
			mux.ServeHTTP(w, r)
			return
		}
		if r.Header.Get("X-Algolia-Application-Id") != "demo" || r.Header.Get("X-Algolia-API-Key") != "demokey" {
			refuse(w, 401, "Invalid credentials")
			return
		}
		if r.Method == http.MethodPost && len(e.failures) > 0 {
			fail := e.failures[0]
			e.failures = e.failures[1:]
			fail(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"status": status, "message": message})
}

// refusing answers one POST with a status.
func refusing(status int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { refuse(w, status, http.StatusText(status)) }
}

// cutting breaks the connection of one POST.
func cutting(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func (e *fakeEngine) importEvents(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	lines := bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n"))
	if len(lines) > 5000 || len(body) > 8<<20 || (e.maxBody > 0 && len(body) > e.maxBody) {
		refuse(w, 413, "Request Entity Too Large")
		return
	}
	e.imports = append(e.imports, len(lines))
	accepted, received := 0, 0
	refused := []map[string]any{}
	for i, line := range lines {
		event, fault := e.decode(line, r.URL.Query().Get("index"))
		if fault != "" {
			refused = append(refused, map[string]any{"line": i + 1, "message": fault})
			continue
		}
		accepted++
		if e.keep(event) {
			received++
		}
	}
	answer(w, 200, map[string]any{"accepted": accepted, "received": received, "refused": refused})
}

func (e *fakeEngine) decode(raw []byte, index string) (fakeEvent, string) {
	var event fakeEvent
	switch err := json.Unmarshal(raw, &event); {
	case err != nil:
		return event, "Invalid payload"
	case event.UserToken == "":
		return event, "The userToken field is required"
	case event.EventName == "":
		return event, "EventName is required"
	}
	if event.Index == "" {
		event.Index = index
	}
	return event, ""
}

// keep stores an event. It returns true if the event has no timestamp, so that it
// counts each time.
func (e *fakeEngine) keep(event fakeEvent) bool {
	if event.Timestamp > 0 {
		e.events[fmt.Sprint(event)] = event
		return false
	}
	e.received++
	event.Timestamp = time.Now().UnixMilli()
	e.events[fmt.Sprint(event, e.received)] = event
	return true
}

func (e *fakeEngine) takeEvents(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Events []json.RawMessage `json:"events"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Events) == 0 {
		refuse(w, 422, "No events to process")
		return
	}
	for _, raw := range body.Events {
		event, fault := e.decode(raw, "")
		if fault != "" || event.Index == "" {
			refuse(w, 422, "bad event")
			return
		}
		e.keep(event)
		e.taken++
	}
	answer(w, 200, map[string]any{"status": 200, "message": "OK"})
}

// batch refuses a whole batch if one object is marked as bad.
func (e *fakeEngine) batch(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Requests []struct {
			Action string          `json:"action"`
			Body   json.RawMessage `json:"body"`
		} `json:"requests"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, 400, "no JSON")
		return
	}
	ids := []string{}
	for _, request := range body.Requests {
		var object struct {
			ObjectID string `json:"objectID"`
			Bad      bool   `json:"bad"`
		}
		if err := json.Unmarshal(request.Body, &object); err != nil || object.ObjectID == "" || object.Bad || request.Action != "addObject" {
			refuse(w, 422, "the record is not good")
			return
		}
		ids = append(ids, object.ObjectID)
	}
	index := r.PathValue("index")
	if e.objects[index] == nil {
		e.objects[index] = map[string]json.RawMessage{}
	}
	for i, id := range ids {
		e.objects[index][id] = body.Requests[i].Body
	}
	answer(w, 200, map[string]any{"taskID": 1, "objectIDs": ids})
}

func (e *fakeEngine) setStrategy(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(body, &keys); err != nil || keys["personalizationImpact"] == nil {
		refuse(w, 422, "personalizationImpact is required")
		return
	}
	e.strategy = body
	e.version++
	answer(w, 200, map[string]any{"status": 200, "message": "Strategy was successfully updated."})
}

// rank orders candidates by the sum of their filters' scores.
func (e *fakeEngine) rank(w http.ResponseWriter, r *http.Request) {
	var request api.RankRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		refuse(w, 400, "no JSON")
		return
	}
	sums, _ := e.sums(request.UserToken)
	a := api.RankAnswer{StrategyVersion: e.version}
	for _, id := range request.ObjectIDs {
		item := api.RankedItem{ObjectID: id, Features: []api.RankFeature{}}
		for filter, sum := range sums {
			facet, value, _ := strings.Cut(filter, ":")
			if slices.Contains(valuesAt(e.objects[request.Index][id], facet), value) {
				item.Score += sum
			}
		}
		a.Items = append(a.Items, item)
	}
	sort.SliceStable(a.Items, func(i, j int) bool { return a.Items[i].Score > a.Items[j].Score })
	answer(w, 200, a)
}

// sums returns the scores of a user's filters, and the time of their last event.
func (e *fakeEngine) sums(user string) (sums map[string]float64, last int64) {
	var strategy api.Strategy
	_ = json.Unmarshal(e.strategy, &strategy)
	sums = map[string]float64{}
	for _, event := range e.events {
		if event.UserToken != user {
			continue
		}
		last = max(last, event.Timestamp)
		for _, scoring := range strategy.EventsScoring {
			if scoring.EventName == event.EventName && string(scoring.EventType) == event.EventType {
				e.score(sums, event, strategy, float64(scoring.Score))
			}
		}
	}
	return sums, last
}

func (e *fakeEngine) profile(w http.ResponseWriter, r *http.Request) {
	user := r.PathValue("user")
	e.asked = r.URL.Query()
	sums, last := e.sums(user)
	if last == 0 {
		refuse(w, 404, "No profile")
		return
	}
	names := make([]string, 0, len(sums))
	for name := range sums {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return sums[names[i]] > sums[names[j]] })
	affinities := []map[string]any{}
	for _, name := range names {
		facet, value, _ := strings.Cut(name, ":")
		affinities = append(affinities, map[string]any{"facet": facet, "operator": ":", "value": value, "score": sums[name]})
	}
	var limit int
	_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
	total := len(affinities)
	if limit > 0 && limit < total {
		affinities = affinities[:limit]
	}
	answer(w, 200, map[string]any{"userToken": user, "lastEventAt": time.UnixMilli(last).UTC().Format("2006-01-02T15:04:05.000Z"),
		"asOf": time.Now().UTC(), "strategyVersion": e.version, "source": "computed", "total": total, "affinities": affinities})
}

func (e *fakeEngine) score(sums map[string]float64, event fakeEvent, strategy api.Strategy, weight float64) {
	for _, facet := range strategy.FacetsScoring {
		for _, filter := range event.Filters {
			if strings.HasPrefix(filter, facet.FacetName+":") {
				sums[filter] += weight * float64(facet.Score)
			}
		}
		for _, id := range event.ObjectIDs {
			for _, value := range valuesAt(e.objects[event.Index][id], facet.FacetName) {
				sums[facet.FacetName+":"+value] += weight * float64(facet.Score)
			}
		}
	}
}

// valuesAt returns the values of a facet in a record; the facet may be nested.
func valuesAt(record json.RawMessage, facet string) []string {
	var at any
	_ = json.Unmarshal(record, &at)
	for _, step := range strings.Split(facet, ".") {
		object, _ := at.(map[string]any)
		at = object[step]
	}
	switch v := at.(type) {
	case string:
		return []string{v}
	case []any:
		var values []string
		for _, one := range v {
			values = append(values, fmt.Sprint(one))
		}
		return values
	}
	return nil
}
