package apply_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/apply"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	appID = "shop"
	user  = "ann"
)

// now is the clock of the engine, received the time of the messages.
var (
	now      = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	received = now.Add(-time.Minute)
)

// harness is an Applier over an in-process Bigtable, with an app whose strategy
// gives a view of an object 1 point for each color. Its bus records.
type harness struct {
	t        testing.TB
	apps     *config.Store
	store    *store.Store
	profiles *profile.Engine
	bus      *recorder
	*apply.Applier
}

func newHarness(t testing.TB, dial ...grpc.DialOption) *harness {
	t.Helper()
	h := &harness{t: t, apps: config.NewMemory(), store: storetest.New(t, dial...), bus: &recorder{}}
	h.check(h.apps.CreateApp(t.Context(), config.App{ID: appID, RetentionDays: 90}))
	_, _, err := h.apps.SetStrategy(t.Context(), appID, strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 1}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 1}},
	})
	h.check(err)
	cached := config.NewCached(h.apps, 0)
	h.profiles = profile.New(h.store, h.apps, cached, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	h.Applier = &apply.Applier{Config: cached, Catalog: h.enricher(), Bus: h.bus, Store: h.store, Profiles: h.profiles, Identities: profile.IdentitiesOf(h.profiles), Uptime: old}
	return h
}

// old is the uptime of a process that applies every message.
func old() time.Duration { return time.Hour }

// enricher resolves objects, with an empty cache.
func (h *harness) enricher() *enrich.Enricher {
	h.t.Helper()
	return enrich.New(h.store.Catalog, config.NewCached(h.apps, 0))
}

func (h *harness) check(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// seen is a message of one event of user that names two objects. objects are
// the objects that the catalog knew.
func seen(objects bus.Objects) bus.Message {
	return bus.Message{
		App: appID, ReceivedAt: received.UnixMilli(), Request: 7, Resolved: true, Objects: objects,
		Body: []byte(`{"events":[{"eventType":"view","eventName":"Seen","index":"shoes","userToken":"` + user + `","objectIDs":["1","2"]}]}`),
	}
}

// green is a message of another event of user.
var green = bus.Message{
	App: appID, ReceivedAt: received.UnixMilli(), Request: 8, Resolved: true,
	Body: []byte(`{"events":[{"eventType":"view","eventName":"Seen","index":"shoes","userToken":"` + user + `","filters":["color:Green"]}]}`),
}

// objects are objects of the index shoes with one color each.
func objects(colors map[string]string) bus.Objects {
	o := bus.Objects{}
	for id, color := range colors {
		o.Put("shoes", id, []bus.Filter{{"color", color}})
	}
	return o
}

var (
	none = objects(nil)
	one  = objects(map[string]string{"1": "Red"})
	both = objects(map[string]string{"1": "Red", "2": "Blue"})
)

// again is the message of a re-enrichment of the event of seen.
func (h *harness) again(objects bus.Objects) bus.Message {
	h.t.Helper()
	first := seen(none)
	events, err := first.Events()
	h.check(err)
	e := events[0]
	m, err := bus.NewReenriched(appID, now, []bus.Logged{{User: user, Time: e.Time, ID: e.ID(), ReceivedAt: first.ReceivedAt, Event: e}}, bus.Resolution{Objects: objects})
	h.check(err)
	return m
}

// push is a message as Pub/Sub delivers it.
func (h *harness) push(m bus.Message, attempt int) bus.Push {
	h.t.Helper()
	data, err := m.Encode()
	h.check(err)
	p := bus.Push{DeliveryAttempt: attempt}
	p.Message.Data, p.Message.MessageID, p.Message.Attributes = data, "42", map[string]string{bus.AttrApp: appID}
	return p
}

// last is a message as Pub/Sub delivers it after all other attempts have failed.
func (h *harness) last(m bus.Message) bus.Push {
	h.t.Helper()
	for i := range apply.MaxAttempts {
		h.check(h.store.Users.EndDelivery(h.t.Context(), "42", fmt.Sprint(i), store.DeliveryFailed))
	}
	return h.push(m, apply.MaxAttempts)
}

// deliver delivers a message for the first time, and fails the test on an
// error.
func (h *harness) deliver(m bus.Message) apply.Result {
	h.t.Helper()
	result, err := h.Deliver(h.t.Context(), h.push(m, 1))
	h.check(err)
	return result
}

// wantColors checks the colors of the user's profile as it is served.
func (h *harness) wantColors(want ...string) {
	h.t.Helper()
	app, err := h.apps.App(h.t.Context(), appID)
	h.check(err)
	p, err := h.profiles.Read(h.t.Context(), app, user, 0)
	h.check(err)
	got := []string{}
	for _, a := range p.Affinities {
		got = append(got, a.Value)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		h.t.Errorf("the profile has the colors %q, want %q", got, want)
	}
}

// rows are the events of the user in the log.
func (h *harness) rows() []affinity.Event {
	h.t.Helper()
	app, err := h.apps.App(h.t.Context(), appID)
	h.check(err)
	var rows []affinity.Event
	err = h.store.Events.Log(appID, app.Log).ReadOriginals(h.t.Context(), []store.UserRange{{User: user, To: history.End}},
		func(_ string, row store.LogRow, _ []byte) error {
			e, err := row.Event()
			rows = append(rows, e)
			return err
		})
	h.check(err)
	return rows
}

// recorder is a bus that records its calls, or fails.
type recorder struct {
	published []bus.Message
	returned  []bus.Push
	reasons   []string
	err       error
}

func (r *recorder) Publish(_ context.Context, m bus.Message) error {
	r.published = append(r.published, m)
	return r.err
}

func (r *recorder) Return(_ context.Context, p bus.Push) error {
	r.returned = append(r.returned, p)
	return r.err
}

func (r *recorder) Bury(_ context.Context, _ bus.Push, reason string) error {
	r.reasons = append(r.reasons, reason)
	return r.err
}

var errAway = errors.New("away")

// away is a configuration, a catalog and an engine that fail.
type away struct {
	apply.Profiles
	applied   bool // Apply fails after it has written
	full      bool // Apply finds no memory
	abandoned []store.LogEvent
	err       error // of Abandon
}

func (*away) App(context.Context, string) (config.App, error) { return config.App{}, errAway }

func (*away) Deletion(context.Context, string) (config.Deletion, error) {
	return config.Deletion{}, errAway
}

func (*away) ResolveFirst(context.Context, string, []event.Event) (bus.Resolution, int, error) {
	return bus.Resolution{}, 0, errAway
}

func (a *away) Apply(ctx context.Context, app config.App, events []store.LogEvent) (profile.Outcome, error) {
	if a.full {
		return profile.Outcome{}, admission.ErrFull
	}
	if a.applied {
		_, err := a.Profiles.Apply(ctx, app, events)
		return profile.Outcome{}, errors.Join(err, errAway)
	}
	return profile.Outcome{}, errAway
}

// halted is an engine that ends after it has written the log.
type halted struct {
	apply.Profiles
	store *store.Store
}

func (e *halted) Apply(ctx context.Context, app config.App, events []store.LogEvent) (profile.Outcome, error) {
	return profile.Outcome{}, errors.Join(e.store.Events.Log(app.ID, app.Log).Append(ctx, events), errAway)
}

func (a *away) Abandon(_ context.Context, _ config.App, events []store.LogEvent) error {
	a.abandoned = events
	return a.err
}
