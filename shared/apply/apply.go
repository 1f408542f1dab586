// Package apply turns a delivered message into rows of the log and true profiles.
//
// A message holds accepted events, or events of the log whose objects the catalog
// has learned of since. Pub/Sub delivers it until it is acknowledged: more than
// once, in any order, to several instances at a time. Applying it again changes
// nothing. A message that can never be applied, or that has failed MaxAttempts
// times, goes to the dead-letter topic with the reason.
//
// The package keeps no data and knows no HTTP. Rows and profiles lie in the tables
// of package store.
package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// MaxAttempts is how many deliveries a message gets before it is buried with the
// reason of its last failure. With waits of up to a minute between them, messages
// survive a backend that fails for a quarter of an hour. The subscription has a
// dead-letter policy of its own, which knows no reasons: it must allow more.
const MaxAttempts = 20

// Configuration reads an app. It may be some seconds old.
type Configuration interface {
	App(ctx context.Context, appID string) (config.App, error)
}

// Catalog says which filters the objects of events have.
type Catalog interface {
	Resolve(ctx context.Context, appID string, events []event.Event) (bus.Objects, error)
}

// Bus takes messages: to be delivered again, or to be buried.
type Bus interface {
	Publish(ctx context.Context, m bus.Message) error
	Bury(ctx context.Context, p bus.Push, reason string) error
}

// Profiles writes the log and keeps profiles true to it.
type Profiles interface {
	Apply(ctx context.Context, app config.App, events []store.LogEvent) (profile.Outcome, error)
	Abandon(ctx context.Context, app config.App, events []store.LogEvent) error
}

// Applier applies messages. All of its fields must be set. It is safe for
// concurrent use.
type Applier struct {
	Config   Configuration
	Catalog  Catalog
	Bus      Bus
	Store    *store.Store
	Profiles Profiles
}

// Fate is what became of a delivered message.
type Fate string

// The fates of a message. All but Retried acknowledge it.
const (
	Applied  Fate = "applied"  // its events count in every read that begins now
	Resolved Fate = "resolved" // published again with the filters of its objects
	Retried  Fate = "retried"  // it must be delivered again
	Dead     Fate = "dead"     // buried: Reason says why
)

// Result is what became of a delivered message and its events.
type Result struct {
	Fate Fate
	// Reason is why a dead message could not be applied.
	Reason error

	// The rest is set for applied messages.

	App        string
	Kind       bus.Kind
	ReceivedAt int64 // ms: when the message's request was received
	// Events counts events that are in the log and count, Deleted those whose user
	// was deleted after they happened, and Superseded those that were left out
	// because the log knows more of them, or knows them no more.
	Events, Deleted, Superseded int
	// WithUnknownObjects counts accepted events that were written while the catalog
	// did not know all of their objects.
	WithUnknownObjects int
}

// permanent marks a fault that no retry can cure.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// halfway marks a fault after which events may be in the log and in no profile.
type halfway struct {
	error
	app    config.App
	events []store.LogEvent
}

func (h halfway) Unwrap() error { return h.error }

// Deliver applies a message as Pub/Sub delivers it. An error means that it must be
// delivered again.
func (a *Applier) Deliver(ctx context.Context, p bus.Push) (Result, error) {
	result, err := a.apply(ctx, p.Message.Data)
	if err == nil {
		return result, nil
	}
	var never permanent
	if !errors.As(err, &never) && p.DeliveryAttempt < MaxAttempts {
		return Result{Fate: Retried}, fmt.Errorf("message %s, attempt %d: %w", p.Message.MessageID, p.DeliveryAttempt, err)
	}
	if err := a.bury(ctx, p, err); err != nil {
		return Result{}, err
	}
	return Result{Fate: Dead, Reason: err}, nil
}

// bury gives a message up. If its events may be in the log, it first marks the
// profiles of their users to be computed, so that reads agree with the log.
func (a *Applier) bury(ctx context.Context, p bus.Push, cause error) error {
	var half halfway
	if errors.As(cause, &half) {
		if err := a.Profiles.Abandon(ctx, half.app, half.events); err != nil {
			return fmt.Errorf("give up message %s: %w", p.Message.MessageID, errors.Join(cause, err))
		}
	}
	return a.Bus.Bury(ctx, p, cause.Error())
}

// apply applies a message by its kind.
func (a *Applier) apply(ctx context.Context, data []byte) (Result, error) {
	m, err := bus.DecodeMessage(data)
	if err != nil {
		return Result{}, permanent{err}
	}
	if m.Kind == bus.Reenriched {
		logged, err := m.Logged()
		if err != nil {
			return Result{}, permanent{err}
		}
		app, err := a.app(ctx, m.App)
		if err != nil {
			return Result{}, err
		}
		return a.reenriched(ctx, app, m, logged)
	}
	events, err := m.Events()
	if err != nil {
		return Result{}, permanent{err}
	}
	app, err := a.app(ctx, m.App)
	if err != nil {
		return Result{}, err
	}
	if !m.Resolved {
		return a.resolve(ctx, m, events)
	}
	return a.accepted(ctx, app, m, events)
}

func (a *Applier) app(ctx context.Context, appID string) (config.App, error) {
	app, err := a.Config.App(ctx, appID)
	if errors.Is(err, config.ErrNotFound) {
		return app, permanent{fmt.Errorf("app %q does not exist", appID)}
	}
	if err != nil {
		return app, fmt.Errorf("read configuration of %s: %w", appID, err)
	}
	return app, nil
}

// resolve publishes a message again with its objects resolved, so that every later
// delivery of it carries the same filters.
func (a *Applier) resolve(ctx context.Context, m bus.Message, events []event.Event) (Result, error) {
	var err error
	if m.Objects, err = a.Catalog.Resolve(ctx, m.App, events); err != nil {
		return Result{}, err
	}
	m.Resolved = true
	if err := a.Bus.Publish(ctx, m); err != nil {
		return Result{}, err
	}
	return Result{Fate: Resolved}, nil
}
