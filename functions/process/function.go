// Package process is the private function that Pub/Sub pushes accepted events
// to: it writes the log and refreshes the profiles of the events' users.
//
// A message is acknowledged only when every read counts its events, and any
// fault has it delivered again, whole. What can never be applied goes to the
// dead-letter topic with the reason. It keeps nothing of its own.
package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/enrich"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// maxAttempts is how often a message is tried before it is buried with the
// reason of its last failure. With a backoff of up to a minute this outlasts a
// fault of a backend of a quarter of an hour; the subscription's own policy,
// which knows no reasons, must allow more.
const maxAttempts = 20

type process struct{ Backends }

// New is the function over its backends.
func New(b Backends) http.Handler {
	p := process{b}
	rt := b.PrivateRouter()
	rt.Handle("POST /", p.push)
	return rt
}

// permanent marks a fault that no retry mends.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// halfway is a fault after which events may be in the log and in no profile.
type halfway struct {
	error
	app     config.App
	entries []store.LogEvent
}

func (h halfway) Unwrap() error { return h.error }

func (p process) push(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, bus.MaxPush)
	if err != nil {
		return err
	}
	envelope, err := bus.DecodePush(body)
	if err != nil {
		return httpapi.Errorf(http.StatusBadRequest, "Bad Request: %v", err)
	}
	err = p.deliver(r.Context(), envelope)
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	var never permanent
	if !errors.As(err, &never) && envelope.DeliveryAttempt < maxAttempts {
		p.Metrics.Messages.WithLabelValues("retried").Inc()
		return fmt.Errorf("message %s, attempt %d: %w", envelope.Message.MessageID, envelope.DeliveryAttempt, err)
	}
	if err := p.bury(r.Context(), envelope, err); err != nil {
		return err
	}
	p.Metrics.Messages.WithLabelValues("dead").Inc()
	p.Log.LogAttrs(r.Context(), slog.LevelError, "message went to the dead-letter topic",
		slog.String("messageId", envelope.Message.MessageID), slog.Int("attempt", envelope.DeliveryAttempt), slog.Any("error", err))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// bury gives a message up. Where its events may be in the log, their users'
// profiles are marked first: a read must not differ from the log meanwhile.
func (p process) bury(ctx context.Context, envelope bus.Push, cause error) error {
	var half halfway
	if errors.As(cause, &half) {
		if err := p.Profiles.Abandon(ctx, half.app, half.entries); err != nil {
			return fmt.Errorf("give up message %s: %w", envelope.Message.MessageID, errors.Join(cause, err))
		}
	}
	return p.Bus.Bury(ctx, envelope, cause.Error())
}

func (p process) deliver(ctx context.Context, envelope bus.Push) error {
	m, err := bus.DecodeMessage(envelope.Message.Data)
	if err != nil {
		return permanent{err}
	}
	var events []event.Event
	var logged []bus.Logged
	if m.Kind == bus.Reenriched {
		logged, err = m.Logged()
	} else {
		events, err = m.Events()
	}
	if err != nil {
		return permanent{err}
	}
	app, err := p.CachedConfig.App(ctx, m.App)
	if errors.Is(err, config.ErrNotFound) {
		return permanent{fmt.Errorf("app %q does not exist", m.App)}
	}
	if err != nil {
		return fmt.Errorf("read configuration of %s: %w", m.App, err)
	}
	switch {
	case m.Kind == bus.Reenriched:
		return p.reenrich(ctx, app, m, logged)
	case !m.Resolved:
		return p.resolve(ctx, m, events)
	}
	return p.apply(ctx, app, m, events)
}

// resolve publishes a message anew with its objects resolved, so that all
// deliveries of it carry the same filters.
func (p process) resolve(ctx context.Context, m bus.Message, events []event.Event) error {
	var err error
	if m.Objects, err = p.Enricher.Resolve(ctx, m.App, events); err != nil {
		return err
	}
	m.Resolved = true
	if err := p.Bus.Publish(ctx, m); err != nil {
		return err
	}
	p.Metrics.Messages.WithLabelValues("resolved").Inc()
	return nil
}

func (p process) apply(ctx context.Context, app config.App, m bus.Message, events []event.Event) error {
	entries := enrich.LogEvents(events, m.Objects, m.ReceivedAt)
	incomplete := enrich.Incomplete(events, m.Objects)
	known, err := p.known(ctx, app, incomplete)
	if err != nil {
		return halfway{err, app, entries} // an earlier attempt may have come further
	}
	all := len(entries)
	entries = slices.DeleteFunc(entries, func(e store.LogEvent) bool {
		unknown, there := known[enrich.PlaceOf(&e)]
		return there && unknown < incomplete[enrich.PlaceOf(&e)]
	})
	maps.DeleteFunc(incomplete, func(at enrich.Place, n int) bool {
		unknown, there := known[at]
		return there && unknown < n
	})
	outcome, err := p.Profiles.Apply(ctx, app, entries)
	if err != nil {
		return halfway{err, app, entries}
	}
	lag := p.Now().Sub(time.UnixMilli(m.ReceivedAt))
	for range entries {
		p.Metrics.Lag.Observe(lag.Seconds())
	}
	p.count("applied", outcome, all-len(entries))
	p.Metrics.UnknownObjects.Add(float64(len(incomplete)))
	p.Log.LogAttrs(ctx, slog.LevelInfo, "events applied", slog.String("app", app.ID), slog.Int("events", outcome.Applied),
		slog.Int("deleted", outcome.Deleted), slog.Int("withUnknownObjects", len(incomplete)), slog.Int64("lagMs", lag.Milliseconds()))
	return nil
}

// count counts a message that was applied, and what became of its events.
func (p process) count(applied string, outcome profile.Outcome, superseded int) {
	p.Metrics.Messages.WithLabelValues("applied").Inc()
	p.Metrics.Events.WithLabelValues(applied).Add(float64(outcome.Applied))
	p.Metrics.Events.WithLabelValues("deleted").Add(float64(outcome.Deleted))
	p.Metrics.Events.WithLabelValues("superseded").Add(float64(superseded))
}
