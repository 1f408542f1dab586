package profile_test

import (
	"cmp"
	"context"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// peekRanking reads profile and session without storing them.
func (w *simulation) peekRanking(app config.App) profile.Result {
	got, err := w.engine.ReadRanking(context.WithValue(context.Background(), actorKey{}, onlooker{}), app, "u")
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// exactSession checks that the session is that of the log.
func (w *simulation) exactSession(when string, app config.App, events []affinity.Event, deletedUntil int64) {
	got := w.peekRanking(app)
	window := affinity.Window{Now: got.Anchor, RetentionDays: app.RetentionDays, DeletedUntil: deletedUntil}
	want := affinity.ReferenceSession(events, app.Strategy, window).First(w.session)
	if diff := gocmp.Diff(want, got.Session, cmpopts.EquateEmpty()); diff != "" {
		w.t.Fatalf("%s: session (stored: %v) (-want +got):\n%s", when, got.Stored, diff)
	}
}

// checkSession checks a session that a client would read while processes are at
// work. It must be the newest of some events that include every acknowledged one,
// and none that was deleted or never sent.
func (w *simulation) checkSession(when string, app config.App, known, possible func(int) bool) {
	got := w.peekRanking(app)
	events := got.Session.Events
	if len(events) > w.session {
		w.t.Fatalf("%s: a session of %d events, want at most %d", when, len(events), w.session)
	}
	window := affinity.Window{Now: got.Anchor, RetentionDays: app.RetentionDays}
	scores := func(n int) bool {
		e := w.events[n]
		return app.Strategy.EventScore(e.Type, e.Name) > 0 && window.Contains(e.Time)
	}
	var listed []int
	for _, e := range events {
		n := slices.IndexFunc(w.events, func(o store.LogEvent) bool { return slices.Equal(o.ObjectIDs, e.ObjectIDs) })
		if n < 0 || !possible(n) || !scores(n) {
			w.t.Fatalf("%s: the session lists %+v, which does not count", when, e)
		}
		if len(e.Counts) != 1 || !w.resolved[n][e.Counts[0].Value] || e.Counts[0].N != 1+n%2 {
			w.t.Fatalf("%s: event %d of the session has the counts %+v, want one of %v", when, n, e.Counts, w.resolved[n])
		}
		listed = append(listed, n)
	}
	if !slices.IsSortedFunc(listed, w.newestFirst) || len(slices.Compact(slices.Clone(listed))) < len(listed) {
		w.t.Fatalf("%s: the session lists the events %v, want each once, the newest first", when, listed)
	}
	for n := range w.events {
		full := len(listed) == w.session && w.newestFirst(n, listed[len(listed)-1]) > 0
		if known(n) && scores(n) && !full && !slices.Contains(listed, n) {
			w.t.Fatalf("%s: the session (stored: %v) lists the events %v: the acknowledged event %d is hidden", when, got.Stored, listed, n)
		}
	}
}

// newestFirst orders events as sessions do.
func (w *simulation) newestFirst(a, b int) int {
	return cmp.Or(cmp.Compare(w.events[b].Time, w.events[a].Time), cmp.Compare(w.events[b].ID, w.events[a].ID))
}
