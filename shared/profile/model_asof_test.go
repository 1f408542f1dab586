package profile_test

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// asOf computes the user as of a random instant of the past, under a strategy that need not
// be the active one, and returns which times count there. It stores nothing: the gate refuses
// writes.
func (w *simulation) asOf(app config.App, of strategy.Strategy) (profile.Result, func(time int64) bool) {
	now := w.clock.Load()
	at := now - rapid.Int64Range(0, 32*hour).Draw(w.t, "instant before now")
	if len(w.events) > 0 && rapid.Bool().Draw(w.t, "at an event") { // the time itself, or a millisecond beside it
		n := rapid.IntRange(0, len(w.events)-1).Draw(w.t, "event")
		at = min(now, w.events[n].Time+rapid.Int64Range(-1, 1).Draw(w.t, "beside"))
	}
	app.Strategy = of
	got, err := w.engine.ComputeAt(context.WithValue(context.Background(), actorKey{}, onlooker{}), app, "u",
		time.UnixMilli(at), time.UnixMilli(now))
	must.Succeed(w.t, err)
	if got.Known && got.Anchor != at {
		w.t.Fatalf("as of %d, asked for %d", got.Anchor, at)
	}
	held := int64(0)
	if app.RetentionDays > 0 {
		held = now - int64(app.RetentionDays)*24*hour + 1
	}
	if got.Known && got.Since != held {
		w.t.Fatalf("events count from %d on, want %d", got.Since, held)
	}
	return got, func(time int64) bool { return held <= time && time <= at }
}

// checkAsOf is check of a random instant of the past.
func (w *simulation) checkAsOf(when string, app config.App, known, possible func(int) bool) {
	if rapid.IntRange(0, 3).Draw(w.t, "another instant") > 0 {
		return
	}
	got, counts := w.asOf(app, app.Strategy)
	at := func(which func(int) bool) func(int) bool {
		return func(n int) bool { return counts(w.events[n].Time) && which(n) }
	}
	w.lawful(when+", as of an instant", app, got.Profile, at(known), at(possible))
}

// exactAsOf is exact of random instants of the past. events are those of the log that nothing excludes.
func (w *simulation) exactAsOf(when string, app config.App, events []affinity.Event) {
	for range 3 {
		of := rapid.SampledFrom([]strategy.Strategy{app.Strategy, plain, decaying}).Draw(w.t, "strategy of the instant")
		got, counts := w.asOf(app, of)
		var some []affinity.Event
		for _, e := range events {
			if counts(e.Time) {
				some = append(some, e)
			}
		}
		w.equal(when, "as of an instant", got.Profile, affinity.Bounds{}.Reference(some, of, affinity.Window{Now: got.Anchor}))
	}
}
