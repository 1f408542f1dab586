package profile_test

import (
	"context"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/profile"
)

// exact checks that a read, and a computation that ignores the stored profile,
// equal the sum over the log.
func (w *simulation) exact(when string) {
	app := w.app()
	row, err := w.store.ReadUser(ctx, w.appID, "u")
	if err != nil {
		w.t.Fatal(err)
	}
	events, err := readLog(w.store, app, "u")
	if err != nil {
		w.t.Fatal(err)
	}
	got := w.peek(app)
	sets, err := w.engine.Compute(ctx, app, []string{"u"}, affinity.Compile(app.Strategy).Within(w.bounds))
	if err != nil {
		w.t.Fatal(err)
	}
	window := affinity.Window{Now: got.Anchor, RetentionDays: app.RetentionDays, DeletedUntil: row.DeletedUntil}
	want := affinity.Bounds{}.Reference(events, app.Strategy, window)
	w.exactSession(when, app, events, row.DeletedUntil)
	for name, p := range map[string]affinity.Profile{"read": got.Profile, "computed": w.bounds.At(sets["u"][0], got.Anchor)} {
		l := w.bounds.Leeway(p, want, want)
		if p.Known != want.Known || p.Total != want.Total || l.Exceeds() || p.Truncated() != (len(p.Affinities) < len(want.Affinities)) {
			w.t.Fatalf("%s, %+v: %s %+v, the log says %+v", when, w.bounds, name, p, want)
		}
		for _, a := range p.Affinities {
			if !l.MayList(a.Facet, a.Value) {
				w.t.Fatalf("%s, %+v: %s %+v lists %s, the log says %+v", when, w.bounds, name, p, a.Value, want)
			}
		}
		for _, a := range want.Affinities {
			if s := scoreOf(p, a.Value); s == 0 && l.MayMiss(a.Facet, a.Value) {
				continue
			}
			if s := scoreOf(p, a.Value); math.Abs(s-a.Scores[0]) > 1e-9*a.Scores[0] {
				w.t.Fatalf("%s: %s has %s at %v, the log says %v", when, name, a.Value, s, a.Scores[0])
			}
		}
	}
}

// checkNoOrphans checks that the manifest names every block. The blocks of a
// fold that has announced itself stay for as long as its announcement does,
// even if its process died.
func (w *simulation) checkNoOrphans() {
	row, err := w.store.ReadUser(ctx, w.appID, "u")
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := history.ParseManifest(row.Manifest)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, id := range w.blocks() {
		if announced := m.Announced != nil && m.Announced.Ticket == id.Ticket; !announced && id.Ticket < row.Ticket && !slices.ContainsFunc(m.Blocks, func(b history.Block) bool { return b.ID == id }) {
			w.t.Fatalf("block %v is left, the manifest names %+v at ticket %d", id, m, row.Ticket)
		}
	}
}

// check reads the user as a client would, while processes are at work. It
// checks that every acknowledged event counts, and no event that was deleted or
// never sent. The read stores nothing, because it is not one of the processes
// that the test interleaves.
func (w *simulation) check(when string) {
	app := w.app()
	got := w.peek(app)
	known := func(n int) bool { return w.acked[n] && w.events[n].Time > w.maxDelete }
	possible := func(n int) bool {
		return w.events[n].Time > w.deletedBy && (w.acked[n] || w.isPending(n))
	}
	least, most := w.reference(app, got.Anchor, known, false), w.reference(app, got.Anchor, possible, true)
	l := w.bounds.Leeway(got.Profile, least, most)
	for _, a := range least.Affinities {
		if s := scoreOf(got.Profile, a.Value); s < a.Scores[0]*(1-1e-9) && !(s == 0 && l.MayMiss(a.Facet, a.Value)) {
			w.t.Fatalf("%s: %s is %v, must be at least %v: an acknowledged event is hidden", when, a.Value, s, a.Scores[0])
		}
	}
	for _, a := range got.Affinities {
		if s := scoreOf(most, a.Value); a.Scores[0] > s*(1+1e-9) {
			w.t.Fatalf("%s: %s is %v, can be at most %v", when, a.Value, a.Scores[0], s)
		}
	}
	if least.Known && !got.Known {
		w.t.Fatalf("%s: the user is unknown, but has an acknowledged event", when)
	}
	w.checkSession(when, app, known, possible)
}

// peek reads without storing: the gate refuses its writes.
func (w *simulation) peek(app config.App) profile.Result {
	got, err := w.engine.Read(context.WithValue(context.Background(), actorKey{}, onlooker{}), app, "u", 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

func (w *simulation) isPending(n int) bool {
	return slices.ContainsFunc(w.pending, func(m message) bool { return slices.Contains(m.events, n) })
}

// reference returns the sum over some events. With both, an event with two
// resolutions counts for each of them, else for neither.
func (w *simulation) reference(app config.App, now int64, counts func(int) bool, both bool) affinity.Profile {
	var events []affinity.Event
	for n, e := range w.events {
		if !counts(n) {
			continue
		}
		logged := affinity.Event{Time: e.Time, Type: e.Type, Name: e.Name}
		for v := range w.resolved[n] {
			if both || len(w.resolved[n]) == 1 {
				logged.Counts = append(logged.Counts, affinity.Count{Facet: "color", Value: v, N: 1 + n%2})
			}
		}
		events = append(events, logged)
	}
	return affinity.Bounds{}.Reference(events, app.Strategy, affinity.Window{Now: now, RetentionDays: app.RetentionDays})
}

func scoreOf(p affinity.Profile, value string) float64 {
	for _, a := range p.Affinities {
		if a.Value == value {
			return a.Scores[0]
		}
	}
	return 0
}
