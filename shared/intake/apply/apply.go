// Package apply writes the events of a delivered message to the log and
// refreshes the profiles of their users.
//
// A message holds accepted events, or logged events with the filters of objects
// that were unknown when the events were logged, or sign-ins, which link tokens. Pub/Sub delivers a message
// until it is acknowledged. It may deliver it more than once, in any order, to
// several instances at a time. Applying it again changes nothing. A message
// that can never be applied, or that has failed MaxAttempts times, is buried:
// it goes to the dead-letter topic with the reason. One that has ended MaxUnanswered
// processes is published again MaxReturns times, and then buried. Deliver says why a slow
// delivery is not taken for one that ended its process.
//
// The package keeps no data and uses no HTTP. Package store holds the tables of
// rows and profiles.
package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/store"
)

// Configuration reads an app or its deletion. The result may be some seconds old.
type Configuration interface {
	App(ctx context.Context, appID string) (config.App, error)
	Deletion(ctx context.Context, appID string) (config.Deletion, error)
}

// Catalog looks up the filters of the objects of events: of all of them, or of as
// many of the first as may be in memory at a time. It returns their number.
type Catalog interface {
	ResolveFirst(ctx context.Context, appID string, events []event.Event) (bus.Resolution, int, error)
}

// Bus publishes messages again, and buries them.
type Bus interface {
	Publish(ctx context.Context, m bus.Message) error
	Return(ctx context.Context, p bus.Push) error
	Bury(ctx context.Context, p bus.Push, reason string) error
}

// Profiles writes the log and keeps profiles consistent with it.
type Profiles interface {
	enrich.Holder
	Apply(ctx context.Context, app config.App, events []store.LogEvent) (profile.Outcome, error)
	Abandon(ctx context.Context, app config.App, events []store.LogEvent) error
	Remember(ctx context.Context, app config.App, events []event.Event) error
}

// Identities links the tokens of persons.
type Identities interface {
	SignedIn(ctx context.Context, app config.App, signIns []profile.SignIn) error
}

// Applier applies messages. All of its exported fields but Sample, Warehouse and Uptime must be set. It is safe
// for concurrent use.
type Applier struct {
	Config   Configuration
	Catalog  Catalog
	Bus      Bus
	Store    *store.Store
	Profiles Profiles
	// Identities is given the sign-ins of calls.
	Identities Identities
	// Sample is given the rows of accepted events after they have been applied. excluded
	// says that some are of users who are deleted or have opted out. It must not keep the
	// rows, and must not wait.
	Sample func(app string, purposes consent.Setting, events []store.LogEvent, excluded bool)

	// Warehouse is given the rows that Sample is given, and those that were written again. Its error fails the
	// delivery, although profiles count the events: the next delivery changes nothing else. Nil: nobody asks for rows.
	Warehouse func(ctx context.Context, app config.App, events []store.LogEvent, excluded bool) error

	// Uptime returns how long the process has run. Nil: since it started.
	Uptime func() time.Duration

	turns turns
	marks marks
}

// Fate is the outcome of a delivery.
type Fate string

// The outcomes of a delivery. All but Retried acknowledge the message.
const (
	Applied Fate = "applied" // the events count in every read that begins now
	Back    Fate = "back"    // published again, because it may have ended processes
	Split   Fate = "split"   // published again in parts, each of which may be in memory
	Retried Fate = "retried" // it must be delivered again
	Dropped Fate = "dropped" // its app has been deleted
	Dead    Fate = "dead"    // buried; Reason says why
)

// Result is the outcome of a delivery for the message and its events.
type Result struct {
	Fate Fate
	// Reason says why a message is dead or went back.
	Reason error

	// The rest is set for applied messages.

	App        string
	Kind       bus.Kind
	ReceivedAt int64 // ms: when the message's request was received
	Lane       bus.Lane
	// Events counts the events that are in the log and count. Deleted counts
	// events whose user was deleted after they happened. Refused counts events of types
	// that their users have opted out of. Superseded counts
	// events that were not written because their row in the log knows more of
	// their objects, or is gone.
	Events, Deleted, Refused, Superseded int
	// Withheld counts events that serve no purpose which their users grant.
	Withheld int
	// Ahead counts those of them that a wrong clock keeps from counting.
	Ahead int
	// WithUnknownObjects counts accepted events with objects that the catalog
	// did not know.
	WithUnknownObjects int
}

// permanent marks an error that every retry would give again.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// halfway marks an error after which events may be in the log and in no
// profile.
type halfway struct {
	error
	app    config.App
	events []store.LogEvent
}

func (h halfway) Unwrap() error { return h.error }

// apply applies a message by its kind.
func (a *Applier) apply(ctx context.Context, p bus.Push) (Result, error) {
	m, err := p.Decode()
	if err != nil {
		return Result{}, permanent{err}
	}
	switch m.Kind {
	case bus.Reenriched:
		return a.reenriched(ctx, m)
	case bus.SignedIn:
		return a.signedIn(ctx, m)
	}
	return a.accepted(ctx, m)
}

// deleted is the error of a message whose app has been deleted.
type deleted struct{ app string }

func (d deleted) Error() string { return fmt.Sprintf("app %q has been deleted", d.app) }

// app returns the app of a message. For a deleted one the error is deleted.
func (a *Applier) app(ctx context.Context, appID string) (config.App, error) {
	app, err := a.Config.App(ctx, appID)
	if err == nil {
		return app, nil
	}
	if errors.Is(err, config.ErrNotFound) {
		if _, err = a.Config.Deletion(ctx, appID); err == nil {
			return app, deleted{appID}
		}
	}
	if errors.Is(err, config.ErrNotFound) {
		return app, permanent{fmt.Errorf("app %q does not exist", appID)}
	}
	return app, fmt.Errorf("read configuration of %s: %w", appID, err)
}
