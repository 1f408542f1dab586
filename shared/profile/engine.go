package profile

import (
	"context"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/store"
)

// Engine applies events, serves profiles and deletes users. It is safe for
// concurrent use.
type Engine struct {
	env      *env
	logs     *logs
	writer   *writer
	reader   *reader
	folder   *folder
	bulk     *bulk
	deletion *deletion
}

// env is what every part needs.
type env struct {
	store    *store.Store
	now      func() time.Time
	log      *slog.Logger
	limits   limits
	counters Counters
}

// New makes an Engine. apps reads the current configuration; the engine asks it
// only when it finds that a cached one is out of date. cached is the cache that
// the requests' configuration comes from.
func New(s *store.Store, apps config.Store, cached *config.Cached, now func() time.Time, log *slog.Logger) *Engine {
	v := &env{store: s, now: now, log: log, limits: defaultLimits}
	l := &logs{env: v, fresh: apps.App, cached: cached.App}
	t := &tickets{env: v}
	c := &computer{env: v, logs: l}
	f := &folder{env: v, logs: l, tickets: t}
	o := &orphans{env: v}
	return &Engine{
		env: v, logs: l, folder: f,
		writer:   &writer{env: v, logs: l, tickets: t, computer: c, folder: f, flights: newFlights()},
		reader:   &reader{env: v, logs: l, tickets: t, computer: c},
		bulk:     &bulk{env: v, logs: l, tickets: t, computer: c, folder: f, orphans: o},
		deletion: &deletion{env: v, orphans: o},
	}
}

// Outcome counts what became of the events of a message.
type Outcome struct {
	Applied int // in the log, and counted by every read from now on
	Deleted int // dropped: their user was deleted after they were received
}

// Apply writes events to the log and refreshes the profile of each of their
// users. After an error the caller must apply the events again.
func (e *Engine) Apply(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error) {
	return e.writer.apply(ctx, app, events)
}

// Import writes events to the log and marks their users' profiles to be computed
// by the next read. History arrives in pieces, and a refresh for each piece would
// read a user's log many times.
func (e *Engine) Import(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error) {
	return e.writer.importEvents(ctx, app, events)
}

// Abandon marks the profiles of the events' users to be computed by the next
// read. It is for a message that is given up after Apply failed, and of which any
// part may be in the log.
func (e *Engine) Abandon(ctx context.Context, app config.App, events []store.LogEvent) error {
	_, err := e.writer.mark(ctx, app.ID, events)
	return err
}

// Read returns a user's profile as of now: the stored one if it is still valid,
// else one computed from blocks and log, which is then stored. Known is false for
// a user without an event in the window. limit bounds the number of affinities
// that are decoded; 0 means all. Total counts all of them.
func (e *Engine) Read(ctx context.Context, app config.App, user string, limit int) (Result, error) {
	return e.reader.read(ctx, app, user, limit)
}

// ReadMany is Read for many users. It returns the results by user token.
func (e *Engine) ReadMany(ctx context.Context, app config.App, users []string, limit int) (map[string]Result, error) {
	return e.reader.readMany(ctx, app, users, limit)
}

// Compute computes profiles from blocks and log and stores nothing. It returns,
// for each user, one profile for each of sets.
func (e *Engine) Compute(ctx context.Context, app config.App, users []string, sets ...*affinity.Compiled) (map[string][]affinity.Profile, error) {
	return e.reader.compute(ctx, app, users, sets)
}

// CheckSchema returns ErrSchemaChanged if the schemas of the app's log have
// changed since app was read. What was read of the log under app may then be
// incomplete, even if the schemas have changed back. Call it after reading the
// log and before using what was read.
func (e *Engine) CheckSchema(ctx context.Context, app config.App) error {
	return e.logs.check(ctx, app)
}

// Fold packs the unfolded events of a user into blocks, however many there are
// and however often new ones arrive. It reports whether it committed a fold. False
// without an error means that there was nothing to fold, or that another change of
// the manifest came first.
func (e *Engine) Fold(ctx context.Context, app config.App, user string) (bool, error) {
	return e.folder.fold(ctx, app, user)
}

// Recompute computes the profiles of a range of an app's users and stores each at
// the ticket of the row that it was computed from, so that none hides a refresh
// that began later. Memory is bounded by some hundred users' profiles. It calls
// progress after each group of users, in order; an error from progress ends the
// recompute. It completes at least one group, even if o.Until has passed.
func (e *Engine) Recompute(ctx context.Context, app config.App, r store.Range, o RecomputeOptions, progress func(Progress) error) (Progress, error) {
	return e.bulk.recompute(ctx, app, r, o, progress)
}

// Verify counts the users in a range whose stored profile has another strategy
// version or retention than the app. A user without a stored profile, or with one
// that the next read computes, does not count.
func (e *Engine) Verify(ctx context.Context, app config.App, r store.Range) (int64, error) {
	return e.bulk.verify(ctx, app, r)
}

// Delete deletes a user: before it returns, every event received until now stops
// counting. Events received later start a new profile. It returns the time up to
// which events are deleted; Purge removes them.
func (e *Engine) Delete(ctx context.Context, appID, user string) (time.Time, error) {
	return e.deletion.delete(ctx, appID, user)
}

// Purge removes from the log the events of a user up to a time, as far as the
// user's tombstone covers them, and the blocks that held them. It returns the
// number of events.
func (e *Engine) Purge(ctx context.Context, appID, user string, until time.Time) (int, error) {
	return e.deletion.purge(ctx, appID, user, until)
}

// Counters returns the engine's counters.
func (e *Engine) Counters() *Counters { return &e.env.counters }
