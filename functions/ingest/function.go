// Package ingest is the public function that accepts events.
//
// It authenticates and validates a request, looks up the filters of its
// objects, and publishes one message with the time of receipt. What calls of SDKs say of who has
// signed in is a message of its own, where the app links tokens. Requests of an app that
// arrive within PACK_WINDOW share a message (bus.Packer). Function process writes the events
// to the log. Refused requests are counted and kept in the
// table refused, because a browser's sendBeacon does not read the answer. They
// are written together, after their answers.
package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Timeout is how long a request may take, as Terraform has it.
const Timeout = time.Minute

type handler struct {
	Backends
	packer *bus.Packer
	recent recentSignIns
}

// New returns the function over its backends.
func New(b Backends) http.Handler {
	h := handler{b, bus.NewPacker(b.Bus.Publish, b.Now, b.PackWindow), newRecentSignIns()}
	rt := b.Router(Timeout)
	rt.NotFound = "Path not supported by Insights REST API. Please have a look at " +
		"[https://www.algolia.com/doc/rest-api/insights/](https://www.algolia.com/doc/rest-api/insights/) for the " +
		"list of valid commands."
	rt.Handle("POST /1/events", h.accept)
	rt.HandleOwn("POST /v1/batch", h.batch, "index", auth.WriteKey)
	rt.HandleOwn("POST /v1/b", h.batch, "index", auth.WriteKey)
	rt.HandleOwn("POST /beacon/v1/batch", h.batch, "index", auth.WriteKey)
	rt.HandleOwn("POST /v1/{call}", h.call, "index", auth.WriteKey)
	intake := []string{"POST /1/events", "POST /v1/batch", "POST /v1/b", "POST /beacon/v1/batch", "POST /v1/{call}"}
	rt.AllowCredentials(intake...)
	rt.Count(limit.Nothing, intake...) // store counts events
	rt.HandleOwn("GET /1/events/refused", auth.Serve(h.Auth.AppID, h.refused, auth.Recommendation))
	rt.HandleOwn("GET /1/events/seen", auth.Serve(h.Auth.AppID, h.seen, auth.Recommendation), "days")
	return rt
}

// errHashes says that a key hashes the ids of users, which events cannot have.
var errHashes error = fault.New(fault.Forbidden,
	"This API key hashes the ids of users, and is for POST /v1/batch and POST /v1/{call} alone: send events with "+
		"another key, and with the hash as their userToken")

func (h handler) accept(w http.ResponseWriter, r *http.Request) error {
	in, err := h.read(w, r)
	if err != nil {
		return err
	}
	if in.grant.HashTokens {
		return h.refuse(r.Context(), in.app(), in.received, errHashes)
	}
	events, err := event.DecodeBatch(in.body, in.rules())
	if err == nil {
		err = h.permitted(r.Context(), in.grant, events)
	}
	if err != nil {
		return h.refuse(r.Context(), in.app(), in.received, err)
	}
	if err := h.store(r.Context(), w.Header(), in, in.body, events); err != nil {
		return err
	}
	return httpapi.WriteMessage(w, http.StatusOK, "OK")
}

// request is a request of an app that may send events.
type request struct {
	grant    auth.Grant
	limits   limit.Numbers
	received time.Time
	body     []byte
	header   http.Header
	// mayReside says that users of the app may have regions of their own.
	mayReside bool
	unsure    bool // its events are calls of an SDK of which other deliveries may have another time
}

func (in request) app() string { return in.grant.App }

func (in request) rules() event.Rules {
	return event.Rules{Now: in.received, Ahead: event.MaxAhead, MaxAge: api.MaxEventAge}
}

// read authenticates a request and reads its body. It waits for a turn if the body is
// large.
func (h handler) read(w http.ResponseWriter, r *http.Request) (request, error) {
	in, err := h.admit(r)
	if err != nil {
		return request{}, err
	}
	if in.body, err = httpapi.ReadBody(w, r, api.MaxEventsBody); err != nil {
		return request{}, h.refuse(r.Context(), in.app(), in.received, err)
	}
	return in, awaitTurn(r.Context(), in.body)
}

// admit authenticates a request of an app that may send more events.
func (h handler) admit(r *http.Request) (request, error) {
	grant, err := h.Auth.UserGrant(r, auth.Search)
	if err != nil {
		return request{}, err
	}
	in := request{grant: grant, received: h.Now(), header: r.Header}
	if in.limits, in.mayReside, err = h.CachedConfig.Intake(r.Context(), in.app()); err != nil {
		return request{}, err
	}
	return in, h.Limits.MayEvents(in.app(), in.limits)
}

func awaitTurn(ctx context.Context, body []byte) error {
	if len(body) < admission.Heavy {
		return nil
	}
	return admission.AwaitTurn(ctx, admission.TurnWait)
}

// store publishes the events of a request, whose form of POST /1/events is body, and
// writes what is left of the app's limit to the headers of the answer.
func (h handler) store(ctx context.Context, header http.Header, in request, body []byte, events []event.Event) error {
	app := in.app()
	left, slow, err := h.Limits.Events(app, in.limits, len(events), in.received)
	if err != nil {
		return err
	}
	httpapi.WriteLimit(header, left)
	m := bus.Message{App: app, ReceivedAt: in.received.UnixMilli(), Ahead: event.MaxAhead.Milliseconds(),
		Request: rand.Uint64(), Calls: in.unsure, Evidence: evidenceOf(in.grant, events), Body: body}
	if m.Evidence != bus.NoEvidence {
		m.Key = in.grant.KeyID()
	}
	if slow {
		m.Lane = bus.SlowLane
	}
	m, events = h.dropSurplus(in.limits, m, events)
	if !anyStored(events) {
		h.count(app, events, nil)
		return nil
	}
	h.resolve(ctx, &m, events)
	objects := m.Objects
	if err := h.publishAll(ctx, in, m, events); err != nil {
		h.Log.LogAttrs(ctx, slog.LevelError, "events are not published", slog.String("app", app), slog.Any("error", err))
		return errNotStored
	}
	h.count(app, events, objects)
	return nil
}

// publish publishes a message with its decoded events. If an event does not fit with its filters, process reads these.
func (h handler) publish(ctx context.Context, m bus.Message, events []event.Event) error {
	err := h.packer.Publish(ctx, m, events)
	if errors.As(err, &bus.TooLarge{}) {
		m.Resolved, m.Objects = false, nil
		err = h.Bus.Publish(ctx, m)
	}
	return err
}

// errNotStored says that events may not be stored. What has failed may go on trying, so they may be all the same.
var errNotStored = httpapi.Errorf(http.StatusServiceUnavailable, "The events may not have been stored, send them "+
	"again: with a timestamp or a messageId they count once, others may count twice")

// evidenceOf is how far the key of a request may say who has signed in under the tokens of its events: of
// anybody, if it is a server's, and of its own user.
func evidenceOf(grant auth.Grant, events []event.Event) bus.Evidence {
	evidence := bus.NoEvidence
	for i := range events {
		switch signedIn := events[i].AuthenticatedUserToken; {
		case signedIn == "":
		case mayName(grant, signedIn):
			evidence = bus.StrongEvidence
		default:
			return bus.WeakEvidence
		}
	}
	return evidence
}

func mayName(grant auth.Grant, signedIn string) bool {
	return grant.Server() || grant.OwnUser() == signedIn
}

// permitted returns an error if the key is not for all events of a request. Where the app links tokens,
// a key of one user is also for the tokens under which this user has signed in.
func (h handler) permitted(ctx context.Context, grant auth.Grant, events []event.Event) error {
	for i := range events {
		if err := h.permittedUser(ctx, grant, events[i].UserToken, events[i].AuthenticatedUserToken); err != nil {
			return err
		}
		if events[i].Type == event.InstantSearch {
			continue // it may have no index, and is not kept
		}
		if err := grant.Index(events[i].Index); err != nil {
			return err
		}
	}
	return nil
}

func (h handler) permittedUser(ctx context.Context, grant auth.Grant, token, signedIn string) error {
	refused := grant.User(token)
	if refused == nil || signedIn != grant.OwnUser() {
		return refused
	}
	set, err := h.CachedConfig.Calls(ctx, grant.App)
	if err != nil || set.Links {
		return err
	}
	return refused
}

// count counts accepted events, by the filters of their objects too. A message that is
// delivered again counts once, because ingest sees its events once. Facets of objects
// that process resolves are not counted.
func (h handler) count(app string, events []event.Event, objects bus.Objects) {
	h.Usage.Events(app, len(events), func(i int) string { return events[i].UserToken })
	h.Usage.Named(app, len(events), func(i int) usage.Kind {
		if events[i].Type == event.InstantSearch {
			return usage.Kind{} // not kept
		}
		return usage.Kind{Type: string(events[i].Type), Name: events[i].Name}
	}, func(i int, add func(facet string)) { enrich.Facets(&events[i], objects, add) })
}

// resolve gives a message the filters of its objects. If it cannot, process reads
// them: no event is lost because the catalog is away, or because objects have more
// filters than a message may carry.
func (h handler) resolve(ctx context.Context, m *bus.Message, events []event.Event) {
	resolving, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	known, err := h.Enricher.Resolve(resolving, m.App, events)
	switch {
	case err == nil:
		m.Resolved, m.Objects, m.Bands = true, known.Objects, known.Bands
	case errors.Is(err, enrich.ErrTooMuch), errors.Is(err, admission.ErrFull):
		h.Log.LogAttrs(ctx, slog.LevelInfo, "process resolves the message", slog.String("app", m.App), slog.Any("error", err))
	default:
		h.Log.LogAttrs(ctx, slog.LevelWarn, "the catalog cannot be read: process resolves the message",
			slog.String("app", m.App), slog.Any("error", err))
	}
}

// resolveTimeout limits how long a client waits for the catalog. Some clients
// give up after two seconds, and process can look up the filters instead.
const resolveTimeout = time.Second

// anyStored reports whether any event is to be kept. Events of type
// instantsearch are accepted and not kept: they say nothing about what a user
// likes.
func anyStored(events []event.Event) bool {
	for i := range events {
		if events[i].Type != event.InstantSearch {
			return true
		}
	}
	return false
}

// maxRecorded is how many bytes of a refused event are kept.
const maxRecorded = 4 << 10

// refuse records a refused request for its app and returns the cause.
func (h handler) refuse(ctx context.Context, app string, at time.Time, cause error) error {
	status, reason := httpapi.Status(cause)
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || ctx.Err() != nil {
		// A fault of the engine, a request that may be sent again, or the client has gone.
		return cause
	}
	h.Usage.Refused(app, 1)
	refused := store.Refused{At: at, Reason: reason, Field: field(cause)}
	var refusal *event.Refusal
	if errors.As(cause, &refusal) {
		refused.Reason, refused.Event = refusal.Reason(), recorded(refusal.Event)
	}
	h.Refused.Record(app, refused)
	return cause
}

// field is the field whose value has the wrong type, by a refusal; else empty.
func field(cause error) string {
	if refusal, ok := errors.AsType[*fault.Error](cause); ok {
		return refusal.Field
	}
	return ""
}

// recorded is what is kept of a refused event: the JSON, or its start as a
// string.
func recorded(raw []byte) json.RawMessage {
	if len(raw) == 0 || (len(raw) <= maxRecorded && json.Valid(raw)) {
		return raw
	}
	text, _ := json.Marshal(string(raw[:min(len(raw), maxRecorded)]))
	return text
}

func (h handler) refused(w http.ResponseWriter, r *http.Request, app string) error {
	// A developer who sends a bad event and asks at once finds it, if it was refused
	// in this process. What cannot be written waits: it may be another app's.
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	_ = h.Refused.Flush(ctx)
	list, counts, err := h.Store.Refused.ReadRefused(r.Context(), app, h.Now())
	if err != nil {
		return err
	}
	set, err := h.CachedConfig.Calls(r.Context(), app)
	if err != nil {
		return err
	}
	events := make([]api.RefusedEvent, len(list))
	for i, l := range list {
		events[i] = api.RefusedEvent{At: l.At, Reason: l.Reason, Field: l.Field, Event: l.Event, Sequence: l.Sequence,
			Hint: hint(l, set.Names)}
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.RefusedEvents{Refused: events, Counts: counts})
}

// tooMany is the reason for which events of a user are not applied.
const tooMany = "UserToken has sent as many events today as the app's limit permits"

// dropSurplus removes the events of users who have had as many today as they may,
// and counts them as refused. The client learns nothing of it: its other events are
// accepted, and it can do nothing about these today.
func (h handler) dropSurplus(limits limit.Numbers, m bus.Message, events []event.Event) (bus.Message, []event.Event) {
	surplus := h.Limits.Surplus(m.App, limits, len(events), func(i int) string { return events[i].UserToken })
	if len(surplus) == 0 {
		return m, events
	}
	at := time.UnixMilli(m.ReceivedAt).UTC()
	for _, position := range surplus {
		h.Refused.Record(m.App, store.Refused{At: at, Reason: tooMany, Event: recorded(events[position].Raw)})
	}
	var kept []event.Event
	for i := range events {
		if _, dropped := slices.BinarySearch(surplus, i); !dropped {
			kept = append(kept, events[i])
		}
	}
	return m.Part(kept, 0), kept
}
