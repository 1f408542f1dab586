package linkpreview_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/linkpreview"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// log is a log of events whose originals name who had signed in.
type log struct {
	t     *testing.T
	store *store.Store
	app   config.App
	n     int
}

func newLog(t *testing.T) *log {
	return &log{t: t, store: storetest.New(t), app: config.App{ID: "demo", Log: schema.Of(schema.Narrow)}}
}

// App says that the schema is that of the app.
func (l *log) App(context.Context, string) (config.App, error) { return l.app, nil }

// add adds an event of a user, some time ago.
func (l *log) add(user, known string, ago time.Duration) {
	l.t.Helper()
	text := fmt.Sprintf(`{"eventType":"view","eventName":"Viewed","userToken":%q,"filters":["brand:Acme"]`, user)
	if known != "" {
		text += fmt.Sprintf(`,"authenticatedUserToken":%q`, known)
	}
	at := now.Add(-ago).UnixMilli()
	l.n++
	e := store.LogEvent{User: user, Time: at, ID: fmt.Sprintf("%011d", l.n), Type: event.View, Name: "Viewed", Receipt: at,
		Original: schema.Original{ReceivedAt: at, Index: "products", Event: []byte(text + "}")}.Append(nil)}
	must.Succeed(l.t, l.store.Events.Log(l.app.ID, l.app.Log).Append(l.t.Context(), []store.LogEvent{e}))
}

// preview runs a job over the last ten days.
func (l *log) preview(maxEvents int64) (result api.LinkPreview, p job.Progress, err error) {
	l.t.Helper()
	w := linkpreview.Work{Store: l.store, Config: l, Now: time.Now}
	params := linkpreview.Params{Days: 10, AsOf: now, Lookback: (3 * day).Milliseconds(), MaxEvents: maxEvents}
	p, err = w.Process(l.t.Context(), job.Job{Params: params}, l.app, job.Shard{}, time.Now().Add(time.Hour),
		func(job.Progress) error { return nil })
	if err == nil {
		must.Succeed(l.t, json.Unmarshal([]byte(p.Result), &result))
	}
	return result, p, err
}

// A preview links by the order of times, whatever the order of the tokens, and counts the events that the users would gain.
func TestPreview(t *testing.T) {
	l := newLog(t)
	l.add("a", "", 9*day) // before the lookback
	l.add("a", "", 4*day)
	l.add("a", "ann", 2*day)
	l.add("a", "", day)
	l.add("a", "ann", 20*day) // before the days
	l.add("b", "ann", 3*day)
	l.add("b", "", 2*day)
	l.add("b", "bob", day) // another user: ann has two events of b, bob one
	l.add("z", "carol", 5*day)
	l.add("carol", "", 5*day)
	l.add("carol", "ann", 4*day) // known already
	l.add("n", "undefined", day)
	l.add("future", "ann", -day)
	got, p, err := l.preview(100)
	must.Succeed(t, err)
	want := api.LinkPreview{GainedEvents: 3 + 2 + 1 + 1, LinkCounts: api.LinkCounts{
		Evidence: 6, Tokens: 3, Users: 3, Closed: 1,
		PerUser: []api.TokensPerUser{{Tokens: 1, Users: 2}, {Tokens: 2, Users: 1}},
		Largest: []api.LargestUser{{AuthenticatedUserToken: "ann", UserTokens: []string{"a", "b"}}, {AuthenticatedUserToken: "bob", UserTokens: []string{"b"}},
			{AuthenticatedUserToken: "carol", UserTokens: []string{"z"}}},
		Refused: []api.RefusedEvidence{{Reason: "userTokenIsKnown", Count: 1, UserToken: "carol", AuthenticatedUserToken: "ann"},
			{Reason: "value", Count: 1, UserToken: "n", AuthenticatedUserToken: "undefined"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := job.CountsOf[linkpreview.Counts](p.Counts); c != (linkpreview.Counts{Users: 6, Events: 12}) || !p.Done {
		t.Errorf("counts %+v, done %t", c, p.Done)
	}
}

// A job that would read too much, or whose log migrates, fails or is tried again, and a damaged row is counted.
func TestPreviewFails(t *testing.T) {
	l := newLog(t)
	l.add("a", "ann", day)
	l.add("b", "ann", day)
	if _, _, err := l.preview(1); !errors.Is(err, job.ErrFailed) || !strings.Contains(err.Error(), "the last 10 days have more than 1 events: ask for fewer days") {
		t.Errorf("too many events: %v", err)
	}
	e := store.LogEvent{User: "c", Time: now.UnixMilli(), ID: "00000000099", Type: event.View, Name: "Viewed", Receipt: now.UnixMilli(), Original: []byte(`{"authenticatedUserToken"`)}
	must.Succeed(t, l.store.Events.Log(l.app.ID, l.app.Log).Append(t.Context(), []store.LogEvent{e}))
	got, p, err := l.preview(100)
	must.Succeed(t, err)
	if c := job.CountsOf[linkpreview.Counts](p.Counts); c.Faulty != 1 || len(p.Faults) != 1 || got.Tokens != 2 {
		t.Errorf("%d faulty, %q; %d tokens linked, want 2", c.Faulty, p.Faults, got.Tokens)
	}
	w := linkpreview.Work{Store: l.store, Config: l, Now: time.Now}
	read := l.app
	l.app.Log.Generation++
	_, err = w.Process(t.Context(), job.Job{Params: linkpreview.Params{Days: 10, AsOf: now, MaxEvents: 100}}, read, job.Shard{}, time.Now().Add(time.Hour),
		func(job.Progress) error { return nil })
	if !errors.Is(err, profile.ErrSchemaChanged) || errors.Is(err, job.ErrFailed) {
		t.Errorf("a migrated log: %v", err)
	}
}

// viewed adds an event of a user with a brand, some time ago.
func (l *log) viewed(user, brand string, ago time.Duration) {
	l.t.Helper()
	at := now.Add(-ago).UnixMilli()
	l.n++
	e := store.LogEvent{User: user, Time: at, ID: fmt.Sprintf("%011d", l.n), Type: event.View, Name: "Viewed", Receipt: at,
		Counts:   []affinity.Count{{Facet: "brand", Value: brand, N: 1}},
		Original: schema.Original{ReceivedAt: at, Index: "products", Event: fmt.Appendf(nil, `{"eventType":"view","eventName":"Viewed","userToken":%q}`, user)}.Append(nil)}
	must.Succeed(l.t, l.store.Events.Log(l.app.ID, l.app.Log).Append(l.t.Context(), []store.LogEvent{e}))
}

// A preview compares the orders of those who would be linked: by their own events, and by those of their tokens in the
// time of the links.
func TestPreviewOrders(t *testing.T) {
	l := newLog(t)
	l.add("a", "ann", 2*day)
	got, _, err := l.preview(100)
	must.Succeed(t, err)
	if got.Orders != nil {
		t.Errorf("orders without a strategy: %+v", got.Orders)
	}
	l.app.StrategyVersion = 1
	l.app.Strategy, err = strategy.Decode([]byte(`{"eventsScoring":[{"eventName":"Viewed","eventType":"view","score":10}],
		"facetsScoring":[{"facetName":"brand","score":100}],"personalizationImpact":100}`))
	must.Succeed(t, err)
	if got, _, err = l.preview(100); err != nil || got.Orders != nil {
		t.Errorf("orders without objects: %+v, %v", got.Orders, err)
	}
	for i := range 12 {
		o := store.Object{ID: fmt.Sprintf("o%02d", i), Filters: store.ObjectFilters{Filters: []event.Filter{{Facet: "brand", Value: fmt.Sprint("Brand", i)}}}}
		must.Succeed(t, l.store.Catalog.PutObjects(t.Context(), l.app.ID, "products", []store.Object{o}))
	}
	l.viewed("a", "Brand3", 3*day) // ann's first object becomes another one
	l.viewed("ann", "Brand5", 40*day)
	l.viewed("ann", "Brand5", 41*day)
	l.viewed("a", "Brand3", 4*day)
	l.viewed("a", "Brand3", 4*day)
	l.viewed("a", "Brand7", 9*day) // before the lookback: it would be among the first
	l.add("b", "bob", 2*day)       // nothing of bob's scores, with the link or without
	l.add("bob", "", 2*day)
	l.add("c", "carol", 2*day) // carol has the same with the link
	l.viewed("carol", "Brand1", day)
	l.viewed("c", "Brand1", day)
	l.add("d", "dora", 2*day) // the eleventh place changes
	for i := range 10 {
		l.viewed("dora", fmt.Sprint("Brand", i), day)
	}
	l.viewed("dora", "Brand0", day)
	l.viewed("d", "Brand11", 2*day)
	got, _, err = l.preview(100)
	must.Succeed(t, err)
	want := &api.LinkPreviewOrders{Users: 4, Index: "products", Objects: 12, TopChanged: 1, TopTenChanged: 1, Changed: 2}
	if diff := cmp.Diff(want, got.Orders); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
