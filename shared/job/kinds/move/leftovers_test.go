package move_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// reach runs tasks until the move is in a phase.
func (w *world) reach(p config.MovePhase) {
	w.t.Helper()
	for w.app().Move.Phase != p {
		if !w.step() {
			w.t.Fatalf("no task leads to phase %s: %+v", p, w.app().Move)
		}
	}
}

// Nobody knows a user, in no phase of a move, and a ranking for them is that of a user without events.
func TestRankingOfAnUnknownUser(t *testing.T) {
	w := newWorld(t, 0)
	w.populate(2)
	for w.start("us"); len(w.tasks) > 0; w.step() {
		got, err := w.engine.ComputeRanking(ctx, w.app(), "nobody", affinity.Compile(w.app().Strategy))
		w.must(err)
		if got.Known || len(got.Affinities) > 0 {
			t.Errorf("phase %s: %+v", w.app().Move.Phase, got)
		}
	}
}

// leaves makes a user's row in eu say that the user is about to move to us, as a mover does that
// dies behind its first request.
func (w *world) leaves(user string) {
	w.t.Helper()
	row, err := w.stores["eu"].Users.ReadPrimary(ctx, app, user, store.UserState)
	w.must(err)
	left, err := w.stores["eu"].Users.SetOwner(ctx, app, user, row.Owner, store.Owner{Epoch: row.Owner.Epoch + 1, State: store.Leaving, Region: "us"})
	if w.must(err); !left {
		w.t.Fatalf("%s does not leave: %v", user, row.Owner)
	}
}

// holds checks how many events of a user each region has in its log.
func (w *world) holds(when, user string, eu, us int) {
	w.t.Helper()
	for region, want := range map[string]int{"eu": eu, "us": us} {
		got, err := w.stores[region].Events.EventsOf(ctx, app, user, event.AllTypes)
		w.must(err)
		if len(got) != want {
			w.t.Errorf("%s: %s holds %d events of %s, want %d", when, region, len(got), user, want)
		}
	}
}

// blocks returns how many blocks of a user a region has, and whether it has a profile of them.
func (w *world) blocks(region, user string) (blocks int, profile bool) {
	w.t.Helper()
	ids, err := w.stores[region].Histories.ListBlocks(ctx, app, user)
	w.must(err)
	row, err := w.stores[region].Users.ReadPrimary(ctx, app, user, store.UserHistory)
	w.must(err)
	stored, err := w.stores[region].Users.ReadPrimary(ctx, app, user, store.UserSession)
	w.must(err)
	blocks = len(ids)
	if len(row.Inline) > 0 {
		blocks++
	}
	return blocks, len(stored.Profile) > 0
}

// deleted deletes a user and purges what the deletion covers.
func (w *world) deleted(user string) {
	w.t.Helper()
	until, err := w.engine.Delete(ctx, app, user)
	w.must(err)
	_, err = w.engine.Purge(ctx, app, user, until)
	w.must(err)
}

// A purge removes what a deletion covers from both regions, whether the user has moved or is
// about to.
func TestPurgeReachesBothRegions(t *testing.T) {
	w := newWorld(t, 0)
	for _, user := range []string{"ann", "bob"} {
		w.apply(seen(user, 0, "red"))
		_, err := w.engine.Fold(ctx, w.app(), user)
		w.must(err)
	}
	w.start("us")
	w.reach(config.MoveUsers)
	w.leaves("bob")
	w.apply(seen("bob", 1, "red"))
	w.holds("leaving", "bob", 2, 1)
	w.deleted("bob")
	w.holds("purged while leaving", "bob", 0, 0)
	w.reach(config.MoveSwitched)
	w.holds("moved", "ann", 1, 1)
	w.deleted("ann")
	w.holds("purged", "ann", 0, 0)
	if blocks, profile := w.blocks("eu", "ann"); blocks > 0 || profile {
		t.Errorf("eu holds %d blocks of ann, and a profile: %v", blocks, profile)
	}
	time.Sleep(2 * time.Millisecond) // the slack of deletions
	later := seen("ann", 0, "blue")
	later.Time, later.Receipt, later.ID = time.Now().UnixMilli(), time.Now().UnixMilli(), "later"
	w.apply(later)
	w.exact("moved", map[string]int{"ann": 1, "bob": 0})
	for w.step() {
	}
	w.exact("at rest", map[string]int{"ann": 1, "bob": 0})
	w.empty("eu")
}

// What a slow mover copies behind a purge is removed when the app drops what it has left behind.
func TestDropRemovesDeletedCopies(t *testing.T) {
	w := newWorld(t, 0)
	for _, user := range []string{"ann", "out"} {
		w.apply(seen(user, 0, "red"))
	}
	w.start("us")
	w.reach(config.MoveSwitched)
	w.deleted("ann")
	_, err := w.engine.OptOut(ctx, app, "out")
	w.must(err)
	late := seen("out", 0, "red")
	late.Time, late.Receipt, late.ID = time.Now().Add(time.Minute).UnixMilli(), time.Now().Add(time.Second).UnixMilli(), "late"
	w.must(w.stores["us"].Events.Log(app, w.app().Log).Copy(ctx, w.app().Log.Read, []store.LogEvent{seen("ann", 0, "red"), late}))
	for w.step() {
	}
	w.holds("at rest", "ann", 0, 0)
	w.holds("at rest", "out", 0, 0)
}

// Events that a user has opted out of are not written to the log of the region to which the user is about to move.
func TestOptedOutEventsStayOut(t *testing.T) {
	w := newWorld(t, 0)
	until, err := w.engine.OptOut(ctx, app, "out", event.View)
	w.must(err)
	w.start("us")
	w.reach(config.MoveUsers)
	w.leaves("out")
	at := until.Add(time.Minute).UnixMilli()
	view, click := seen("out", 0, "red"), seen("out", 1, "red")
	view.Time, view.Receipt, click.Time, click.Receipt, click.Type = at, at, at, at, event.Click
	done, err := w.engine.Apply(ctx, w.app(), []store.LogEvent{view, click})
	w.must(err)
	if done.Refused != 1 || done.Applied != 1 {
		t.Errorf("%+v", done)
	}
	w.holds("leaving", "out", 1, 1)
	w.reach(config.MoveSwitched)
	w.holds("moved", "out", 1, 1)
}

// A message that only marks users, because the log says more of their events, does not leave
// these in the region that the users leave.
func TestAbandonedEventsMoveAlong(t *testing.T) {
	w := newWorld(t, 0)
	w.populate(1)
	w.apply(seen("ann", 0, "red"), seen("bob", 0, "red"))
	w.start("us")
	w.reach(config.MoveUsers)
	w.leaves("ann")
	w.leaves("bob")
	// The mover has copied the log. A delivery writes the events and dies.
	late := []store.LogEvent{seen("ann", 1, "red"), seen("bob", 1, "red")}
	w.must(w.stores["eu"].Events.Log(app, w.app().Log).Append(ctx, late))
	w.must(w.engine.Abandon(ctx, w.app(), late[:1]))
	w.holds("abandoned while leaving", "ann", 2, 1)
	row, err := w.stores["eu"].Users.ReadPrimary(ctx, app, "bob", store.UserState)
	w.must(err)
	_, err = w.stores["eu"].Users.SetOwner(ctx, app, "bob", row.Owner, store.Owner{Epoch: row.Owner.Epoch + 1, State: store.Moved, Region: "us"})
	w.must(err)
	w.must(w.engine.Abandon(ctx, w.app(), late[1:]))
	w.holds("abandoned behind the copy", "bob", 2, 1)
}

// Refused events of a user who is purged in any phase do not come back, and those of others stay.
func TestPurgedSamplesStayAway(t *testing.T) {
	for _, phase := range []config.MovePhase{config.MoveUsers, config.MoveSwitched, config.MoveDropping, config.MoveErasing, config.MoveFinishing} {
		w := newWorld(t, 0)
		w.populate(3)
		refuse := func(user string) {
			w.must(w.rows.Refused.RecordRefused(ctx, app, time.Now(), store.Refusals{Counts: map[string]int64{user: 1},
				Events: []store.Refused{{At: time.Now(), Reason: user, Event: json.RawMessage(`{"userToken":"` + user + `"}`)}}}))
		}
		refuse("ann")
		refuse("bob")
		w.start("us")
		w.reach(phase)
		refuse("zoe")
		_, err := w.rows.Refused.ForgetRefused(ctx, app, "ann")
		w.must(err)
		for w.step() {
		}
		left, counts, err := w.rows.Refused.ReadRefused(ctx, app, time.Now())
		w.must(err)
		users := map[string]bool{}
		for _, r := range left {
			users[r.Reason] = true
		}
		if users["ann"] || !users["bob"] || !users["zoe"] || counts["ann"] != 1 || counts["zoe"] != 1 {
			t.Errorf("purged in phase %s: events of %v, counts %v", phase, users, counts)
		}
	}
}
