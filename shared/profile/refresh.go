package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// scanUsers is the number of users that one read of the log covers.
	scanUsers = 100
	// maxScans is the number of reads that one message makes at a time.
	maxScans = 4
	// maxFlight is the time limit of a refresh.
	maxFlight = 10 * time.Minute
	// maxRefreshed is the number of users, over all messages of a process, whose
	// refreshes run or wait for one that runs. A refresh outlives its request, so the
	// number of requests does not bound it.
	maxRefreshed = 4_000
)

// writer writes events to the log and refreshes the profiles of their users.
type writer struct {
	*env
	logs     *logs
	tickets  *tickets
	computer *computer
	folder   *folder
	adder    *adder
	changes  *changeList
	flights  *flights
	tails    cache.Values[*tail]
	later    Later
	linker   *linker
	// refreshedPersons counts the refreshes of known users that those of anonymous tokens wait for, apart
	// from the others, which never wait for one.
	refreshedPersons *semaphore.Weighted
	// refreshed counts the users of refreshes. A message takes its users before it
	// joins a flight, so every flight that it waits for runs, and ends.
	refreshed *semaphore.Weighted
	most      int // capacity of refreshed
}

func (w *writer) apply(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error) {
	events = w.linker.judge(app, events)
	app, refused, err := w.logs.append(ctx, app, events)
	if err != nil {
		return Outcome{}, err
	}
	var of drawn
	if w.later != nil && app.Limits.WriteWindow() > 0 {
		of, err = w.markLater(ctx, app, events)
	} else {
		of, err = w.refreshShared(ctx, app, owns(events, refused), w.refreshed)
	}
	if err != nil {
		return Outcome{}, err
	}
	return w.outcome(ctx, app, events, of, refused)
}

// drawn is what a message knows of the users of its events once their tickets are drawn.
type drawn struct {
	rows  map[string]store.User // at the tickets
	named naming
}

// outcome completes a message whose events are in the log, but for those of refused
// users, of which it returns the errors.
func (w *writer) outcome(ctx context.Context, app config.App, events []store.LogEvent, of drawn,
	refused Faulty) (Outcome, error) {
	done, err := w.dropExcluded(ctx, app, events, of)
	if err != nil {
		return Outcome{}, err
	}
	for token, err := range refused {
		w.logFault(ctx, app.ID, token, err)
	}
	if len(refused) > 0 {
		return Outcome{}, refused
	}
	return done, nil
}

func (w *writer) importEvents(ctx context.Context, app config.App, events []store.LogEvent) (Outcome, error) {
	events = w.linker.judge(app, events)
	app, refused, err := w.logs.append(ctx, app, events)
	if err != nil {
		return Outcome{}, err
	}
	of, err := w.mark(ctx, app, events)
	if err != nil {
		return Outcome{}, err
	}
	return w.outcome(ctx, app, events, of, refused)
}

// mark leaves markers for the events' users at new tickets.
func (w *writer) mark(ctx context.Context, app config.App, events []store.LogEvent) (of drawn, err error) {
	users, err := w.tickets.drawAll(ctx, app, positions(events))
	if err != nil {
		return drawn{}, err
	}
	if of.named, err = w.followAll(ctx, app, users, owns(events, nil), w.linker.deliverMark,
		w.linker.drawHere(app)); err != nil {
		return drawn{}, err
	}
	of.rows, err = w.markDrawn(ctx, app, users)
	return of, err
}

// markDrawn leaves markers for users at their tickets, and returns their rows.
func (w *writer) markDrawn(ctx context.Context, app config.App, users []*user) (map[string]store.User, error) {
	listed := w.changes.begin(ctx, app, users)
	faulty := Faulty{}
	marks, rows := make([]store.ProfileWrite, 0, len(users)), make(map[string]store.User, len(users))
	for _, u := range users {
		if !u.row.Gone() {
			marks = append(marks, store.ProfileWrite{User: u.token, Row: u.row, Version: u.row.Version})
		}
		rows[u.token] = u.row
		faulty.note(u) // a block of the newer version may cover the event
	}
	if err := listed.wait(); err != nil {
		return nil, err
	}
	if err := w.store.Users.WriteProfiles(ctx, app.ID, marks); err != nil {
		return nil, err
	}
	if err := listed.written(ctx, slices.Collect(maps.Keys(rows))...); err != nil {
		return nil, err
	}
	return rows, faulty.orNil()
}

// refreshShared refreshes users whose events are in the log. Each refresh is a
// flight that other messages may share. While too many users are being refreshed, it waits for places.
func (w *writer) refreshShared(ctx context.Context, app config.App,
	events map[string]own, of *semaphore.Weighted) (drawn, error) {
	places, err := w.takePlaces(ctx, of, len(events))
	if err != nil {
		return drawn{}, fmt.Errorf("wait for the refreshes of other messages of %s: %w", app.ID, err)
	}
	var runs sync.WaitGroup
	defer func() {
		go func() { runs.Wait(); places.leave(int64(w.most)) }()
	}()
	owned, all := map[string]*flight{}, map[string]*flight{}
	// A flight continues after the end of its message's request, because other
	// messages wait for it.
	detached := context.WithoutCancel(ctx)
	for token, own := range events {
		key := app.ID + "," + token
		f, role, previous := w.flights.join(key, own)
		all[token] = f
		switch role {
		case owner:
			owned[token] = f
		case leader:
			runs.Go(func() {
				<-previous // every flight ends
				w.flights.begin(key)
				w.run(detached, app, map[string]*flight{token: f}, places)
			})
		}
	}
	runs.Go(func() { w.run(detached, app, owned, places) })
	found := drawn{rows: make(map[string]store.User, len(all))}
	var failed error
	for token, f := range all {
		select {
		case <-f.done:
		case <-ctx.Done():
			return drawn{}, fmt.Errorf("wait for the refresh of %s,%s: %w", app.ID, token, ctx.Err())
		}
		if f.err != nil {
			failed = f.err
		}
		found.rows[token] = f.row
		found.named = found.named.with(f.named)
	}
	return found, failed
}

var errCutShort = errors.New("the refresh ended early")

// run refreshes each user and wakes every message that waits for that refresh. If a
// refresh fails, all its messages fail, and Pub/Sub redelivers them. A faulty user
// fails alone, and nobody waits for a user with very many values but that user's
// messages.
func (w *writer) run(ctx context.Context, app config.App, fs map[string]*flight, places *places) {
	if len(fs) == 0 {
		return
	}
	ctx, cancel := deadline.Begin(ctx, maxFlight)
	defer cancel()
	events, at := make(map[string]own, len(fs)), make(map[string][]history.Pos, len(fs))
	for token, f := range fs {
		events[token], at[token] = f.own, f.at
	}
	var mu sync.Mutex // of fs
	end := func(u *user, err error) {
		mu.Lock()
		f := fs[u.token]
		delete(fs, u.token)
		mu.Unlock()
		if f == nil {
			return // ended before
		}
		if err == nil && u.fault != nil {
			w.logFault(ctx, app.ID, u.token, u.fault)
			err = u.fault
		}
		f.named = u.named
		w.flights.end(app.ID+","+u.token, f, u.row, err)
		places.leave(1)
	}
	err := errCutShort
	defer func() { // also after a panic: no message may wait forever
		for token := range events {
			end(&user{token: token}, cmp.Or(err, errCutShort))
		}
	}()
	users, err := w.tickets.drawEach(ctx, app.ID, at, w.takerOf(app, events))
	if err != nil {
		return
	}
	users = slices.DeleteFunc(users, func(u *user) bool {
		if u.row.Gone() {
			end(u, nil)
		}
		return u.row.Gone()
	})
	draw := func(ctx context.Context, u *user) error { return w.tickets.draw(ctx, app, u, events[u.token].at) }
	if app.Identity.On() {
		err = w.refreshLinked(ctx, app, users, events, draw, end)
	} else {
		err = w.refresh(ctx, app, users, events, draw, end)
	}
}

// refresh writes the profiles of users at their tickets: their bases with the events, or
// else computed from blocks and log. Then it folds logs with many unfolded events, and
// calls end for each user who is done. draw draws another ticket.
func (w *writer) refresh(ctx context.Context, app config.App, users []*user, events map[string]own, draw rowReader,
	end func(*user, error)) error {
	app, err := w.logs.newest(ctx, app, users)
	if err != nil {
		return err
	}
	compiled := w.compile(app)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxScans)
	for chunk := range slices.Chunk(users, scanUsers) {
		g.Go(func() error {
			listed := w.changes.begin(ctx, app, chunk)
			added, chunk, err := w.adder.add(ctx, app, compiled, chunk, events)
			if err == nil && len(added) > 0 {
				err = w.saveAdded(ctx, app, added, listed, end)
			}
			if err != nil {
				return err
			}
			computations := w.computations(app, chunk, events)
			share := w.memory.Share()
			defer share.Close()
			of := work{app, compiled, forRefresh, share, draw, w.limits.patience}
			err = w.computer.compute(ctx, of, computations, func(some []*computation) error {
				err := w.save(ctx, app, some, listed)
				for _, c := range some {
					if err == nil {
						end(c.user, nil)
					}
				}
				return err
			})
			for _, u := range chunk {
				if err == nil {
					end(u, w.giveUp(ctx, app, u, listed)) // if not ended before
				}
			}
			return err
		})
	}
	return g.Wait()
}

// computations prepares the computation of users, each with the tail of the refresh
// before.
func (w *writer) computations(app config.App, users []*user, events map[string]own) []*computation {
	all := make([]*computation, len(users))
	for i, u := range users {
		of := events[u.token]
		all[i] = &computation{user: u, own: max(newestTime(of.at), newestOf(of.linked))}
		if len(of.at) > 0 {
			all[i].first = slices.MinFunc(of.at, history.Pos.Compare)
		}
		all[i].tail, _ = w.tails.Take(app.ID, u.token)
	}
	return all
}

// giveUp leaves a marker for a user who has waited too long to be computed alone, as
// Import does for all users. Other faults are those of the message.
func (w *writer) giveUp(ctx context.Context, app config.App, u *user, listed *listing) error {
	if !errors.Is(u.fault, errBusy) {
		return nil
	}
	u.fault = nil
	if err := listed.wait(); err != nil {
		return err
	}
	if err := w.hide(ctx, app.ID, app.ScoringVersion, u); err != nil {
		return err
	}
	return listed.written(ctx, u.token)
}

// save writes computed profiles and folds.
func (w *writer) save(ctx context.Context, app config.App, computed []*computation, listed *listing) error {
	save, users := w.newSaver(app, listed), make([]*user, len(computed))
	for i, c := range computed {
		users[i] = c.user
		if err := save.add(ctx, c.write(app, c.scorer.AppendProfile(nil, app.ScoringVersion))); err != nil {
			return err
		}
	}
	if err := save.flush(ctx); err != nil {
		return err
	}
	w.tickets.repair(ctx, app.ID, users)
	w.folder.foldUnfolded(ctx, app, computed)
	for _, c := range computed {
		w.keepTail(app, c)
	}
	return nil
}

func newestTime(events []history.Pos) int64 {
	var newest int64
	for _, p := range events {
		newest = max(newest, p.Time)
	}
	return newest
}
