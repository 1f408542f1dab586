package move_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// until runs tasks up to a phase.
func (w *world) until(p config.MovePhase) {
	w.t.Helper()
	for w.app().Move.Phase != p {
		if !w.step() {
			w.t.Fatalf("the move stands still before phase %s: %+v", p, w.app().Move)
		}
	}
}

// rest runs all tasks, and checks that the app rests in a region and that the other one is empty.
func (w *world) rest(region string) {
	w.t.Helper()
	for w.step() {
	}
	if a := w.app(); a.Region != region || a.Moving() {
		w.t.Fatalf("the app is in %q, and not in %q: %+v", a.Region, region, a.Move)
	}
	w.empty(map[string]string{"us": "eu", "eu": "us"}[region])
}

func (w *world) owner(region, user string) store.Owner {
	w.t.Helper()
	row, err := w.stores[region].Users.ReadPrimary(ctx, app, user, store.UserState)
	w.must(err)
	return row.Owner
}

// owns changes the owner of a user, as a process does that dies behind the request.
func (w *world) owns(region, user string, to store.Owner) {
	w.t.Helper()
	took, err := w.stores[region].Users.SetOwner(ctx, app, user, w.owner(region, user), to)
	if w.must(err); !took {
		w.t.Fatalf("the owner of %s in %s is %s", user, region, w.owner(region, user))
	}
}

func (w *world) apply(events ...store.LogEvent) {
	w.t.Helper()
	_, err := w.engine.Apply(ctx, w.app(), events)
	w.must(err)
}

// A mover dies before any user arrives, and the move turns back. The region to which the app
// returns gives the user's leaving up, though the other one has no row. The next move copies
// the whole log.
func TestUndoGivesUpLeavingOfTheFirstUser(t *testing.T) {
	w := newWorld(t, 0)
	w.apply(seen("ann", 0, "red"))
	w.start("us")
	w.until(config.MoveUsers)
	w.owns("eu", "ann", store.Owner{Epoch: 2, State: store.Leaving, Region: "us"})
	_, err := w.moves.Undo(ctx, app)
	w.must(err)
	w.until(config.MoveFinishing)
	if o := w.owner("eu", "ann"); o.State != store.Own {
		t.Errorf("behind the users eu says %s", o)
	}
	w.apply(seen("ann", 1, "red"))
	w.rest("eu")
	w.start("us")
	w.rest("us")
	w.exact("moved after all", map[string]int{"ann": 2})
}

// The move turns back when a part of a long log is copied. What the next move believes of the copy is not
// what the region has lost since.
func TestUndoForgetsHowFarALogIsCopied(t *testing.T) {
	if testing.Short() {
		t.Skip("-short moves no long log")
	}
	w := newWorld(t, 0)
	const many = 21_000
	w.importMany("ann", many)
	w.slow = true
	w.start("us")
	for copied := false; !copied; {
		if !w.step() {
			t.Fatal("the log was copied at once")
		}
		row, err := w.stores["eu"].Users.ReadPrimary(ctx, app, "ann", store.UserState)
		w.must(err)
		copied = row.Copied.Last != ""
	}
	w.slow = false
	_, err := w.moves.Undo(ctx, app)
	w.must(err)
	w.rest("eu")
	w.start("us")
	w.until(config.MoveSwitched)
	_, err = w.engine.Refresh(ctx, w.app(), "ann")
	w.must(err)
	w.exact("moved after all", map[string]int{"ann": many})
	w.rest("us")
}

// A request sends a new user on to the region of births and ends there. The drop completes
// their arrival, so that their deletion lasts and the move ends.
func TestDropCompletesBirths(t *testing.T) {
	w := newWorld(t, 0)
	counts := w.populate(3)
	w.start("us")
	w.until(config.MoveSwitched)
	now := time.Now().UnixMilli()
	w.must(w.stores["eu"].Users.AdvanceTombstone(ctx, app, "new", affinity.Tombstone{DeletedUntil: now, ReceivedUntil: now}))
	w.owns("eu", "new", store.Owner{Epoch: 1, State: store.Moved, Region: "us"})
	w.rest("us")
	w.exact("moved", counts)
	row, err := w.stores["us"].Users.ReadUser(ctx, app, "new")
	w.must(err)
	if row.Owner.State != store.Own || row.DeletedUntil != now {
		t.Errorf("us says %s, and deleted until %d; want %d", row.Owner, row.DeletedUntil, now)
	}
}

// The same on the way back, in each of its phases, after which the message is delivered again.
func TestWayBackTakesBirthsAlong(t *testing.T) {
	back := []config.MovePhase{config.MoveArriving, config.MoveClearing, config.MoveCleared, config.MoveUsers, config.MoveSwitched, config.MoveDropping, config.MoveErasing, config.MoveFinishing}
	for i, died := range back[:5] {
		for _, again := range back[i:race.Or(len(back), i+1)] { // one after the other: the race detector needs no more
			w := newWorld(t, 0)
			counts := w.populate(3)
			w.start("us")
			w.until(config.MoveUsers)
			_, err := w.moves.Undo(ctx, app)
			w.must(err)
			w.until(died)
			w.owns("eu", "new", store.Owner{Epoch: 1, State: store.Moved, Region: "us"})
			w.until(again)
			w.apply(seen("new", 0, "red"))
			counts["new"] = 1
			w.rest("eu")
			w.exact(fmt.Sprintf("born in phase %s, delivered again in %s", died, again), counts)
			if o := w.owner("eu", "new"); o.State != store.Own {
				t.Errorf("born in phase %s, delivered again in %s: eu says %s", died, again, o)
			}
			w.start("us")
			w.rest("us")
			w.exact("moved after all", counts)
		}
	}
}
