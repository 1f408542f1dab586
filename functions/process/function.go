// Package process is the private function that Pub/Sub pushes accepted events
// to. Package apply applies each message. The function logs and counts the
// outcomes.
//
// A message is acknowledged once every read counts its events, or once it is in
// the dead-letter topic with the reason, or if its app has been deleted. Any other outcome is an error, and
// Pub/Sub delivers the message again. The function keeps no data.
//
// A delivery takes the memory of its decoded message from the gate of the process
// before it reads it. It waits there for a while: a 429 would make Pub/Sub deliver the
// message again, to be read again, and a large message would find no room among small
// ones.
package process

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/apply"
	"github.com/affinityengine/affinity/shared/intake/refused"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/telemetry"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Timeout is how long a request may take, as Terraform has it.
const Timeout = 9 * time.Minute

type handler struct {
	Backends
	messages *apply.Applier
}

// New returns the function over its backends.
func New(b Backends) http.Handler { return newHandler(b).router() }

func newHandler(b Backends) handler {
	return handler{b, &apply.Applier{
		Config: b.CachedConfig, Catalog: b.Enricher, Bus: b.Bus, Store: b.Store, Profiles: b.Profiles,
		Identities: profile.IdentitiesOf(b.Profiles),
		Sample:     b.Sampled.Record, Warehouse: b.Warehouse.Events, Uptime: b.Uptime,
	}}
}

func (h handler) router() http.Handler {
	rt := h.Router(Timeout)
	rt.Wait = maxWait
	rt.Handle("POST /", h.push)
	return rt
}

// maxWait is how long a delivery waits for memory. Pub/Sub waits ten times as long
// for the answer.
const maxWait = 45 * time.Second

// readPush reads the body of a delivery. Pub/Sub is trusted to send as much as it
// announces, so the delivery takes all of its memory at once. If it took memory as
// the body arrives, deliveries that are half read could wait for each other.
func readPush(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > 0 {
		if r.ContentLength >= admission.Heavy {
			if err := admission.AwaitTurn(r.Context(), maxWait); err != nil {
				return nil, err
			}
		}
		if err := admission.Take(r.Context(), httpapi.BodyWeight*min(r.ContentLength, bus.MaxPush)); err != nil {
			return nil, err
		}
		r = r.WithContext(admission.Exempt(r.Context()))
	}
	return httpapi.ReadBodyWithin(w, r, bus.MaxPush, maxWait+httpapi.BodyTime)
}

// push handles a delivery of Pub/Sub. 204 acknowledges the message.
func (h handler) push(w http.ResponseWriter, r *http.Request) error {
	body, err := readPush(w, r)
	if err != nil {
		return err
	}
	delivery, err := bus.DecodePush(body)
	if err != nil {
		return httpapi.Errorf(http.StatusBadRequest, "Bad Request: %v", err)
	}
	ctx, span := telemetry.StartDelivery(r.Context(), delivery.Subscription, delivery.DeliveryAttempt,
		delivery.Message.Attributes)
	defer span.End()
	result, err := h.messages.Deliver(ctx, delivery)
	span.SetAttributes(attribute.String("affinity.fate", string(result.Fate)))
	h.report(ctx, delivery, result)
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// report logs and counts the outcome of a message.
func (h handler) report(ctx context.Context, delivery bus.Push, result apply.Result) {
	if result.Fate != "" {
		h.Metrics.CountMessage(ctx, string(result.Fate))
	}
	if result.Refused > 0 {
		h.Refused.Count(result.App, refused.OptedOut, int64(result.Refused))
	}
	if result.Withheld > 0 {
		h.Refused.Count(result.App, refused.Withheld, int64(result.Withheld))
	}
	if result.Ahead > 0 {
		h.Refused.Count(result.App, refused.Ahead, int64(result.Ahead))
	}
	switch {
	case result.Fate == apply.Dead:
		h.Log.LogAttrs(ctx, slog.LevelError, "message went to the dead-letter topic",
			slog.String("app", delivery.Message.Attributes[bus.AttrApp]),
			slog.String("messageId", delivery.Message.MessageID), slog.Int("attempt", delivery.DeliveryAttempt),
			slog.Any("error", result.Reason))
	case result.Fate == apply.Back:
		h.Log.LogAttrs(ctx, slog.LevelWarn, "message went back to its topic",
			slog.String("app", delivery.Message.Attributes[bus.AttrApp]),
			slog.String("messageId", delivery.Message.MessageID), slog.Int("attempt", delivery.DeliveryAttempt),
			slog.Any("error", result.Reason))
	case result.Fate == apply.Dropped:
		h.Log.LogAttrs(ctx, slog.LevelInfo, "message of a deleted app dropped", slog.String("app", result.App))
	case result.Fate == apply.Applied:
		h.reportApplied(ctx, result)
	}
}

// reportApplied logs and counts a message that was applied.
func (h handler) reportApplied(ctx context.Context, result apply.Result) {
	if result.Lane == bus.SlowLane {
		h.Limits.Applied(result.App, time.UnixMilli(result.ReceivedAt))
	}
	lag := h.Now().Sub(time.UnixMilli(result.ReceivedAt))
	switch result.Kind {
	case bus.SignedIn:
		h.Log.LogAttrs(ctx, slog.LevelInfo, "sign-ins applied", slog.String("app", result.App),
			slog.Int64("lagMs", lag.Milliseconds()), rare("lane", string(result.Lane)))
	case bus.Reenriched:
		h.count(ctx, "reenriched", result)
		h.Log.LogAttrs(ctx, slog.LevelInfo, "events reenriched", slog.String("app", result.App),
			slog.Int("events", result.Events),
			slog.Int("deleted", result.Deleted), slog.Int("refused", result.Refused), slog.Int("superseded", result.Superseded))
	default:
		h.count(ctx, "applied", result)
		h.Metrics.CountUnknownObjects(ctx, result.WithUnknownObjects)
		h.Metrics.RecordLag(ctx, lag, result.Events+result.Deleted+result.Refused+result.Withheld)
		// The one line of a message. Fields of rare outcomes are left out where they are 0:
		// Logging bills every byte.
		h.Log.LogAttrs(ctx, slog.LevelInfo, "events applied", slog.String("app", result.App),
			slog.Int("events", result.Events), slog.Int64("lagMs", lag.Milliseconds()),
			rare("deleted", result.Deleted), rare("refused", result.Refused), rare("ahead", result.Ahead),
			rare("withheld", result.Withheld),
			rare("withUnknownObjects", result.WithUnknownObjects), rare("lane", string(result.Lane)))
	}
}

// rare returns an attribute, or for a zero value one that a logger leaves out.
func rare[T comparable](key string, value T) slog.Attr {
	if value == *new(T) {
		return slog.Attr{}
	}
	return slog.Any(key, value)
}

// count counts the events of a message.
func (h handler) count(ctx context.Context, outcome string, result apply.Result) {
	h.Metrics.CountEvents(ctx, outcome, result.Events)
	h.Metrics.CountEvents(ctx, "deleted", result.Deleted)
	h.Metrics.CountEvents(ctx, "refused", result.Refused)
	h.Metrics.CountEvents(ctx, "withheld", result.Withheld)
	h.Metrics.CountEvents(ctx, "superseded", result.Superseded)
}
