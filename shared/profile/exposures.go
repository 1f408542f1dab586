package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// exposuresEvery is the time between two writes of exposures.
	exposuresEvery = time.Second
	// exposuresTime limits a write of all apps.
	exposuresTime = 10 * time.Second
	// maxExposures bounds those that wait: some 30 MB with long names.
	maxExposures = 50_000
	// knownExposures is how many a process remembers that are stored, of some 100 bytes each, and exposureKnown for how
	// long: then the row is read again. So who was deleted and comes back is noted again.
	knownExposures = 100_000
	exposureKnown  = time.Hour
)

// Exposures note which users have got an answer of which arm of an experiment, and of the holdout: the first time of
// each, in the row whose profile answered. No answer waits for the note. A process that dies loses those of its last
// second, and the next answer of the user makes them. An Exposures is safe for concurrent use.
type Exposures struct {
	engine *Engine
	writer *cache.Writer
	seed   maphash.Seed
	known  cache.Map[uint64, int64] // when an exposure, by its hash, was seen to be stored, ms

	mu      sync.Mutex
	waiting map[met]int64 // the first answer, ms
	left    int64         // exposures without a place, since the last write
}

// met is an exposure to note, without its time.
type met struct {
	app, user string
	surface   consent.Surface
	of        store.Exposure
}

func newExposures(e *Engine) *Exposures {
	x := &Exposures{engine: e, seed: maphash.MakeSeed(), known: cache.New[uint64, int64](knownExposures),
		waiting: map[met]int64{}}
	x.writer = cache.NewWriter(cache.WriterOptions{
		What: "exposures", Every: exposuresEvery, Longest: exposuresTime, Write: x.write, Waits: x.waits, Now: e.env.now,
		Failed: func(ctx context.Context, err error) {
			e.env.log.LogAttrs(ctx, slog.LevelWarn, "exposures wait for the next write", slog.Any("error", err))
		},
	})
	return x
}

// ExposuresOf returns the exposures of an engine: one for all of its regions.
func ExposuresOf(e *Engine) *Exposures { return e.env.exposures }

// Note notes that an answer to a request for the user of a token was made from r.
func (x *Exposures) Note(token string, r Result) {
	if !r.App.Holdout.On() && r.Assigned.Arm == "" {
		return
	}
	now, added := x.engine.env.now().UnixMilli(), false
	for _, of := range r.exposures() {
		added = x.add(met{r.App.ID, cmp.Or(r.Of, token), r.App.Surface, of}, now) || added
	}
	if added {
		x.writer.Add()
	}
}

// exposures returns what the user of a result has met, without times.
func (r Result) exposures() (all []store.Exposure) {
	if r.App.Holdout.On() {
		arm := experiment.Personalized
		if r.HeldOut {
			arm = experiment.HeldOut
		}
		all = append(all, store.Exposure{Experiment: experiment.OfHoldout, Since: r.App.HoldoutSince.UnixMilli(), Arm: arm})
	}
	if in := r.Assigned; in.Arm != "" {
		all = append(all, store.Exposure{Experiment: in.Experiment, Since: r.App.Experiment.StartAt.UnixMilli(), Arm: in.Arm})
	}
	return all
}

// add lets an exposure wait, unless it is known or waits, and reports whether it does.
func (x *Exposures) add(m met, now int64) bool {
	if at, ok := x.known.Get(x.hash(m)); ok && now < at+exposureKnown.Milliseconds() {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch first, waits := x.waiting[m]; {
	case waits:
		x.waiting[m] = min(first, now)
		return false
	case len(x.waiting) >= maxExposures:
		x.left++
		x.engine.env.counters.ExposuresLeft.Add(1)
		return false
	}
	x.waiting[m] = now
	return true
}

// hash is that of an exposure without its surface.
func (x *Exposures) hash(m met) uint64 {
	m.surface = ""
	return maphash.Comparable(x.seed, m)
}

func (x *Exposures) waits() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.waiting) > 0
}

// Flush writes what waits. What cannot be written waits further.
func (x *Exposures) Flush(ctx context.Context) error { return x.writer.Flush(ctx) }

func (x *Exposures) write(ctx context.Context) error {
	x.mu.Lock()
	all, left := x.waiting, x.left
	x.waiting, x.left = map[met]int64{}, 0
	x.mu.Unlock()
	if left > 0 {
		x.engine.env.log.LogAttrs(ctx, slog.LevelWarn, "exposures are left for the next answers of their users",
			slog.Int64("exposures", left))
	}
	apps := map[string]map[string][]met{}
	for m := range all {
		if apps[m.app] == nil {
			apps[m.app] = map[string][]met{}
		}
		apps[m.app][m.user] = append(apps[m.app][m.user], m)
	}
	var err error
	for app, users := range apps {
		if failed := x.writeApp(ctx, app, users, all); failed != nil {
			err = errors.Join(err, fmt.Errorf("of app %s: %w", app, failed))
		}
	}
	return err
}

// writeApp writes the exposures of users of an app. Those that fail wait again. times are those of all.
func (x *Exposures) writeApp(ctx context.Context, appID string, users map[string][]met, times map[met]int64) error {
	app, err := x.engine.logs.readCached(ctx, appID)
	if errors.Is(err, config.ErrNotFound) {
		return nil // it was deleted
	}
	var at *Engine
	var found map[string]place
	if err == nil {
		at, err = x.engine.at(app)
	}
	if err == nil {
		tokens := make([]string, 0, len(users))
		for token := range users {
			tokens = append(tokens, token)
		}
		found, err = at.env.placesOf(ctx, app, tokens, store.UserExposures)
	}
	if err != nil {
		for _, some := range users {
			x.again(some, times)
		}
		return err
	}
	return cache.WriteEach(users, func(token string, some []met) error {
		of, ok := found[token]
		if !ok && app.Owned() {
			return nil // nobody says where they live: the answers after their first event are noted
		}
		if !ok {
			of = place{at: at}
		}
		for i, m := range some {
			if err := x.expose(ctx, app, of, m, times[m]); err != nil {
				x.again(some[i:], times)
				return err
			}
		}
		return nil
	})
}

// again lets exposures wait again, whatever waits.
func (x *Exposures) again(some []met, times map[met]int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range some {
		if first, waits := x.waiting[m]; !waits || times[m] < first {
			x.waiting[m] = times[m]
		}
	}
}

// expose stores an exposure in the row where it was read. A row that changes in between is read again: so an exposure
// of before a deletion, and one of a user who is out, is never stored after it.
func (x *Exposures) expose(ctx context.Context, app config.App, of place, m met, at int64) error {
	users := of.at.env.store.Users
	m.of.At = at
	for range maxOptOuts {
		switch row := of.row; {
		case row.Owner.State == store.Moved || at <= row.ReceivedUntil:
			return nil // the next answer is noted where the user lives, or after the deletion
		case exposed(row, m.of):
			x.stored(m)
			return nil
		}
		out, err := withholds(of.at.env, app, m, of.row)
		if err != nil || out {
			return err
		}
		if done, err := users.Expose(ctx, app.ID, m.user, of.row, m.of); done || err != nil {
			if done {
				x.stored(m)
			}
			return err
		}
		if of.row, err = users.ReadPrimary(ctx, app.ID, m.user, store.UserExposures); err != nil {
			return err
		}
	}
	return fmt.Errorf("note the exposure of %s,%s: the row changed %d times", app.ID, m.user, maxOptOuts)
}

// exposed reports whether a row has an exposure, or an earlier one of the same arm.
func exposed(row store.User, e store.Exposure) bool {
	return slices.ContainsFunc(row.Exposures, func(of store.Exposure) bool {
		return of.Experiment == e.Experiment && of.Since == e.Since && of.Arm == e.Arm && of.At <= e.At
	})
}

// withholds reports whether nothing may be noted of the user of a row: they are out, or grant no purpose for which the
// surface uses what they do.
func withholds(v *env, app config.App, m met, row store.User) (bool, error) {
	if row.Gone() {
		return true, nil
	}
	asked := app.For(m.surface)
	asked.HeldOutToo = true
	use, err := v.useOf(asked, m.user, row)
	return use == consent.None, err
}

// stored remembers that an exposure is in its row.
func (x *Exposures) stored(m met) {
	m.of.At = 0
	x.known.Set(x.hash(m), x.engine.env.now().UnixMilli())
}
