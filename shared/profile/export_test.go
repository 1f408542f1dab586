package profile

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/profile/location"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// SetInlineEvents sets the largest number of events of a block in the user's row.
func (e *Engine) SetInlineEvents(n int) { e.env.limits.inlineEvents = n }

// SetLimits makes an engine fold a few events at a time, into blocks of few, in rows of
// their own.
func (e *Engine) SetLimits(foldEvents, maxFold, blockEvents, keepRows int, foldAge time.Duration) {
	e.env.limits = limits{
		bounds: affinity.StandardBounds(), hold: defaultLimits.hold, writeBytes: defaultLimits.writeBytes, groupBytes: defaultLimits.groupBytes,
		patience: defaultLimits.patience, bulkPatience: defaultLimits.bulkPatience,
		foldEvents: foldEvents, maintainEvents: 1, foldAge: foldAge, maxYoung: 2, maxFold: maxFold, blockEvents: blockEvents, keepRows: keepRows,
		sessionEvents: affinity.MaxSessionEvents, maxAdditions: e.env.limits.maxAdditions,
	}
}

// ReadMany is ReadEach, with the results by user token.
func (e *Engine) ReadMany(ctx context.Context, app config.App, users []string, limit int) (map[string]Result, error) {
	results := map[string]Result{}
	err := e.ReadEach(ctx, app, users, limit, func(user string, r Result) error { results[user] = r; return nil })
	return results, err
}

// SetGroupBytes sets the bytes of rows that a read of many users holds at a time.
func (e *Engine) SetGroupBytes(bytes int) { e.env.limits.groupBytes = bytes }

// SetMaxYoung sets how many young events stay unfolded.
func (e *Engine) SetMaxYoung(events int) { e.env.limits.maxYoung = events }

// SetBounds sets the bounds of profiles.
func (e *Engine) SetBounds(b affinity.Bounds) { e.env.limits.bounds = b }

// SetMemory makes computations hold so few values that they go in passes.
func (e *Engine) SetMemory(values int) {
	e.env.memory = affinity.NewMemory(affinity.Hold{}, affinity.Hold{Values: values, Bytes: 1 << 20})
	e.env.limits.hold.Values = values
}

// SetPatience sets how long a user with very many values waits for others.
func (e *Engine) SetPatience(d time.Duration) {
	e.env.limits.patience, e.env.limits.bulkPatience = d, d
}

// ComputeAlone occupies the place of the user who is computed alone, until the caller
// calls the returned function.
func (e *Engine) ComputeAlone() (leave func()) {
	e.env.serial <- struct{}{}
	return func() { <-e.env.serial }
}

// SetSessionEvents sets how many events a session holds.
func (e *Engine) SetSessionEvents(events int) { e.env.limits.sessionEvents = events }

// SetMaxAdditions sets after how many additions a refresh computes; 0: it always does.
func (e *Engine) SetMaxAdditions(additions int) { e.env.limits.maxAdditions = additions }

// NeverFold keeps an engine from folding.
func (e *Engine) NeverFold() {
	e.env.limits.foldEvents, e.env.limits.maintainEvents, e.env.limits.inlineEvents = 1<<30, 1<<30, 0
}

// SetMaxRefreshed sets of how many users refreshes run or wait at a time.
func (e *Engine) SetMaxRefreshed(users int) {
	e.writer.refreshed, e.writer.most = semaphore.NewWeighted(int64(users)), users
}

// AwaitFlight returns once a user has a running flight.
func (e *Engine) AwaitFlight(key string) {
	fs := e.writer.flights
	for running := false; !running; runtime.Gosched() {
		fs.mu.Lock()
		running = fs.byUser[key] != nil
		fs.mu.Unlock()
	}
}

// AwaitWaiting returns once so many events wait for a user's next flight.
func (e *Engine) AwaitWaiting(key string, events int) {
	fs := e.writer.flights
	for {
		fs.mu.Lock()
		q := fs.byUser[key]
		ready := q != nil && q.next != nil && len(q.next.at) == events
		fs.mu.Unlock()
		if ready {
			return
		}
		runtime.Gosched()
	}
}

// AloneRows is the number of rows from which a message writes the log alone.
const AloneRows = aloneRows

// MaxApart is the number of messages of a failed group that write at a time.
const MaxApart = maxApart

// AwaitAppends returns once so many messages of an app wait to write the log.
func (e *Engine) AwaitAppends(app string, messages int) {
	a := e.logs.appends
	for waiting := -1; waiting != messages; runtime.Gosched() {
		waiting = 0
		a.mu.Lock()
		for key, q := range a.queues {
			for _, g := range q.waiting {
				if key.app == app {
					waiting += len(g.messages)
				}
			}
		}
		a.mu.Unlock()
	}
}

// SetSplitUsers sets from how many users on a strong read asks two clusters.
func (e *Engine) SetSplitUsers(users int) { e.env.limits.splitUsers = users }

// Current is what SetCurrent replaces.
var Current = current

// SetCurrent sets what decides whether a strong read serves the profile of a replica.
func (e *Engine) SetCurrent(current func(primary, replica store.User) (store.User, bool)) {
	e.reader.current = current
}

// WithoutTails makes refreshes keep nothing that they have read.
func (e *Engine) WithoutTails() { e.writer.tails = cache.ValuesOf[*tail](cache.NewMemory(0)) }

// WithoutFlights returns an engine whose messages share no refresh with those of e, and all
// else.
func (e *Engine) WithoutFlights() *Engine {
	other, w := *e, *e.writer
	w.flights, other.writer = newFlights(), &w
	return &other
}

// WithoutGroups returns an engine whose messages share no write of the log with those of e, and
// all else.
func (e *Engine) WithoutGroups() *Engine {
	other, w, l := *e, *e.writer, *e.logs
	l.appends = newAppends(&l)
	w.logs, other.writer = &l, &w
	return &other
}

// DefaultInlineEvents is the largest number of events of a block in the user's row.
const DefaultInlineEvents = inlineEvents

// InRegion makes the process of an engine one of a region.
func (e *Engine) InRegion(region string) {
	r := e.env.regions
	r.finder = location.New(func(name string) *store.Store { return r.engines[name].env.store }, region, e.env.now)
}

// Located reports whether a user has a location.
func (r Residents) Located(ctx context.Context, app config.App, token string) (bool, error) {
	found, err := r.engine.env.regions.finder.Look(ctx, app, token)
	return found.Region != "", err
}

// RememberAs lets an engine know the locations of users that another one remembers.
func (e *Engine) RememberAs(other *Engine) { e.env.regions.finder = other.env.regions.finder }

// ByHand lets nothing write exposures but Flush.
func (x *Exposures) ByHand() *Exposures {
	x.writer.After = func(time.Duration, func()) {}
	return x
}
