package profile_test

import (
	"context"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// exact checks that a read, and a computation that ignores the stored profile,
// equal the sum over the log.
func (w *simulation) exact(when string) {
	app := w.app()
	home := w.home()
	row, err := home.Users.ReadUser(ctx, w.appID, "u")
	must.Succeed(w.t, err)
	events, err := readLive(home, app, "u", row)
	must.Succeed(w.t, err)
	got := w.peek(app)
	sets, err := w.engine.Compute(ctx, app, []string{"u"}, affinity.Compile(app.Strategy).Within(w.bounds))
	must.Succeed(w.t, err)
	for _, e := range events {
		if e.Time > got.Anchor {
			w.t.Fatalf("%s: as of %d, before an event of %d", when, got.Anchor, e.Time)
		}
	}
	window := affinity.Window{Now: got.Anchor, RetentionDays: app.RetentionDays, DeletedUntil: row.Tombstone().DeletedUntil}
	_, of := w.arm(app)
	want := affinity.Bounds{}.Reference(events, of, window)
	w.placed(when, app, got)
	w.exactSession(when, app, events, row.Tombstone().DeletedUntil)
	for name, p := range map[string]affinity.Profile{"read": got.Profile, "computed": w.bounds.At(sets["u"][0], got.Anchor)} {
		w.equal(when, name, p, want)
	}
	w.exactAsOf(when, app, events)
	w.exactSurfaces(when, app, row)
}

// equal checks that a profile is that of the log, which the bounds do not cut.
func (w *simulation) equal(when, name string, p, want affinity.Profile) {
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

// checkNoOrphans checks that the manifest names every block. The blocks of a
// fold that has announced itself stay for as long as its announcement does,
// even if its process died.
func (w *simulation) checkNoOrphans() {
	row, err := w.store.Users.ReadUser(ctx, w.appID, "u")
	must.Succeed(w.t, err)
	m, err := history.ParseManifest(row.Manifest)
	must.Succeed(w.t, err)
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
	row := w.checkOptOut(when)
	least, most := raised(w.maxDelete, row.Deleted()), w.deletedBy
	known := func(n int) bool { return w.counts(n, app, row, least, true) }
	possible := func(n int) bool { return w.counts(n, app, row, most, false) }
	got := w.peek(app)
	w.placed(when, app, got)
	w.lawful(when, app, got.Profile, known, possible)
	w.checkAsOf(when, app, known, possible)
	if w.us != nil { // and as the oldest configuration has it that anybody may know
		got := w.peek(w.configs[w.floor])
		w.lawful(when, got.App, got.Profile, known, possible)
	}
	w.checkSession(when, app, known, possible)
	w.checkPacked(when, app, known)
}

// lawful checks that a profile counts all events that are known, and none that is not
// possible.
func (w *simulation) lawful(when string, app config.App, got affinity.Profile, known, possible func(int) bool) {
	for n := range w.events {
		if known(n) && w.events[n].Time > got.Anchor {
			w.t.Fatalf("%s: as of %d, before the acknowledged event %d", when, got.Anchor, n)
		}
	}
	low, high := w.reference(app, got.Anchor, known, false), w.reference(app, got.Anchor, possible, true)
	l := w.bounds.Leeway(got, low, high)
	for _, a := range low.Affinities {
		if s := scoreOf(got, a.Value); s < a.Scores[0]*(1-1e-9) && !(s == 0 && l.MayMiss(a.Facet, a.Value)) {
			w.t.Fatalf("%s: %s is %v, must be at least %v: an acknowledged event is hidden", when, a.Value, s, a.Scores[0])
		}
	}
	for _, a := range got.Affinities {
		if s := scoreOf(high, a.Value); a.Scores[0] > s*(1+1e-9) {
			w.t.Fatalf("%s: %s is %v, can be at most %v", when, a.Value, a.Scores[0], s)
		}
	}
	if low.Known && !got.Known {
		w.t.Fatalf("%s: the user is unknown, but has an acknowledged event", when)
	}
}

// peek reads without storing: the gate refuses its writes.
func (w *simulation) peek(app config.App) profile.Result {
	got, err := w.engine.Read(context.WithValue(context.Background(), actorKey{}, onlooker{}), app, "u", 0)
	must.Succeed(w.t, err)
	return got
}

// counts reports whether a delivery of an event, acknowledged or not, counts by a tombstone and what else a row says.
func (w *simulation) counts(n int, app config.App, row store.User, t affinity.Tombstone, acked bool) bool {
	e := &w.events[n]
	return !row.OptedOut.Has(e.Type) && slices.ContainsFunc(w.receipts[n], func(r receipt) bool {
		return (r.acked || !acked) && !t.Covers(e.Time, r.at) && law(app, row, consent.Kept, e.Type, e.Time, r.at)
	})
}

// alive reports whether a delivery of an event, acknowledged or not, has a receipt that
// a tombstone does not cover.
func (w *simulation) alive(n int, t affinity.Tombstone, acked bool) bool {
	return slices.ContainsFunc(w.receipts[n], func(r receipt) bool {
		return (r.acked || !acked) && !t.Covers(w.events[n].Time, r.at)
	})
}

// checkCovered checks that a deletion which begins now covers all earlier receipts.
func (w *simulation) checkCovered(t affinity.Tombstone, n int) {
	for _, r := range w.receipts[n] {
		if !t.Covers(w.events[n].Time, r.at) {
			w.t.Fatalf("%+v does not cover event %d, received at %d before the deletion began", t, n, r.at)
		}
	}
}

func raised(t, by affinity.Tombstone) affinity.Tombstone {
	return affinity.Tombstone{
		DeletedUntil: max(t.DeletedUntil, by.DeletedUntil), ReceivedUntil: max(t.ReceivedUntil, by.ReceivedUntil),
	}
}

// readLive reads the events of a log that the row of the user does not exclude, and that count on the surface of an app.
func readLive(s *store.Store, app config.App, user string, of store.User) ([]affinity.Event, error) {
	var events []affinity.Event
	ranges := []store.UserRange{{User: user, To: history.End}}
	err := s.Events.Log(app.ID, app.Log).ReadOriginals(ctx, ranges, func(_ string, r store.LogRow, original []byte) error {
		e, err := r.Event()
		if of.Tombstone().Covers(r.Time, r.Receipt()) || of.OptedOut.Has(e.Type) || !law(app, of, app.Surface, e.Type, r.Time, r.Receipt()) {
			return nil
		}
		e.Counts = slices.Clone(e.Counts)
		events = append(events, e)
		return err
	})
	return events, err
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
