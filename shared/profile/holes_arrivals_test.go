package profile_test

import (
	"context"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// Two processes, of which one knows that births have moved, give a new user one owner.
func TestNewUserHasOneOwner(t *testing.T) {
	atEvery(func(requests int) bool {
		tr := newTravels(t)
		tr.change(func(a *config.App) error { return a.StartMove("move-1", "us", tr.now()) })
		before := tr.app()
		tr.nextPhase()
		old, young := tr.messageUnder(before, tr.at(1)), tr.message(tr.at(2))
		goesOn := tr.upTo(old, requests)
		tr.finish(young)
		tr.finish(old)
		if eu, us := tr.owner("eu"), tr.owner("us"); eu.Here() == us.Here() {
			t.Errorf("after %d requests: the owner is %v in eu and %v in us", requests, eu, us)
		}
		tr.expect(2)
		tr.expectUnder(before, 2)
		tr.moveUser()
		tr.expect(2)
		return goesOn
	})
}

// Between the two rows' changes a user is known, with all that was acknowledged.
func TestReadBeforeArrival(t *testing.T) {
	tr := newMoving(t)
	m := tr.moverAt(store.Moved)
	tr.expect(1)
	if tr.owner("us").Here() {
		t.Error("a read let the user arrive")
	}
	tr.setStrategy(decaying) // no stored profile is valid
	if r := tr.read("u"); !r.Known {
		t.Error("unknown before the arrival")
	}
	tr.finish(m)
}

// A message before the arrival completes it, without the mover.
func TestMessageCompletesMove(t *testing.T) {
	tr := newMoving(t)
	m := tr.moverAt(store.Moved)
	tr.kill(m)
	tr.apply(tr.at(2))
	if !tr.owner("us").Here() {
		t.Error("the user has not arrived")
	}
	tr.expect(2)
}

// A copy stands behind what was appended in the meantime.
func TestCopyHidesNothing(t *testing.T) {
	tr := newTravels(t)
	e := tr.at(1)
	tr.apply(e)
	tr.begin()
	m := tr.moverAt(store.Leaving)
	tr.step(m, 1)
	tr.step(m, 1) // it has read the log, and stands before the write of the copy
	e.Counts = []affinity.Count{{Facet: "color", Value: "blue", N: 1}}
	tr.apply(e)
	tr.finish(m)
	tr.expectBlue()
}

// Blocks do not travel, and no manifest names them.
func TestBlocksStay(t *testing.T) {
	tr := newTravels(t)
	tr.apply(tr.at(1), tr.at(5))
	if done, err := tr.eng.Fold(ctx, tr.app(), "u"); !done || err != nil {
		t.Fatalf("fold: %v, %v", done, err)
	}
	tr.begin()
	tr.moveUser()
	tr.setStrategy(decaying)
	if got := tr.read("u"); !got.Known || got.Stored {
		t.Errorf("after the move: known %v, stored %v", got.Known, got.Stored)
	}
	tr.setStrategy(plain)
	tr.expect(2)
}

// A process that has not heard of the switch finds users who were born after it.
func TestStaleReaderFindsNewUser(t *testing.T) {
	tr := newTravels(t)
	tr.begin()
	before := tr.app()
	tr.switched()
	tr.apply(tr.at(1))
	if tr.owner("eu") != (store.Owner{}) {
		t.Fatalf("eu knows the user: %v", tr.owner("eu"))
	}
	tr.expectUnder(before, 1)
}

// Work over all users waits while their app moves, and says so.
func TestJobsWaitForMove(t *testing.T) {
	tr := newMoving(t)
	_, err := tr.eng.Recompute(ctx, tr.app(), store.Range{}, profile.RecomputeOptions{}, func(profile.Progress) error { return nil })
	if err == nil {
		t.Error("a recompute runs while the app moves")
	}
	tr.moveUser()
	tr.switched()
	tr.end()
	if _, err := tr.eng.Recompute(ctx, tr.app(), store.Range{}, profile.RecomputeOptions{}, func(profile.Progress) error { return nil }); err != nil {
		t.Error(err)
	}
	tr.expect(1)
}

// An opt-out that meets the mover at any of its requests holds.
func TestOptOutMeetsMover(t *testing.T) {
	atEveryPair(func(optOut, mover int) (bool, bool) {
		tr := newMoving(t)
		e := tr.process(stuck{tr.apps, tr.app()})
		o := tr.start("opt-out", func(ctx context.Context) error {
			_, err := e.OptOut(ctx, appID, "u")
			return err
		})
		m := tr.mover()
		optOutGoesOn, moverGoesOn := tr.upTo(o, optOut), tr.upTo(m, mover)
		tr.finish(o)
		tr.finish(m)
		tr.clock += hour
		tr.apply(bought("u", tr.clock))
		tr.expect(0)
		if types, _, err := tr.eng.OptedOut(ctx, appID, "u"); types != event.AllTypes || err != nil {
			t.Errorf("%d, %d: the user is out of %v, %v", optOut, mover, types.List(), err)
		}
		return optOutGoesOn, moverGoesOn
	})
}

// Where only one region holds the app, the other gets no list of users: nothing would remove it.
func TestChangesAreListedWhereTheAppIs(t *testing.T) {
	for name, c := range map[string]struct {
		move func(*travels)
		left func(*travels) *store.Store
	}{
		"turned back at once": {func(tr *travels) {
			tr.change(func(a *config.App) error { return a.StartMove("m", "us", tr.now()) })
			tr.delete("someone")
			tr.turnBack()
		}, func(tr *travels) *store.Store { return tr.us }},
		"moved": {func(tr *travels) {
			tr.begin()
			tr.moveUser()
			tr.switched()
			tr.nextPhase() // drop
			tr.nextPhase() // erase
			tr.must(tr.store.Rows.DeleteRows(ctx, store.AppRows{App: appID, Table: store.TableChanges}, func(int, string) error { return nil }))
			tr.delete("someone")
			tr.nextPhase() // finish
			tr.clock += hour
			tr.delete("another")
			tr.nextPhase()
		}, func(tr *travels) *store.Store { return tr.store }},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTravels(t)
			tr.must(tr.apps.SetSegments(ctx, appID, true))
			c.move(tr)
			keys, err := c.left(tr).Rows.FindRows(ctx, store.AppRows{App: appID, Table: store.TableChanges}, 10)
			if err != nil || len(keys) > 0 || tr.app().Moving() {
				t.Errorf("the region without the app lists %q, %v; moving: %v", keys, err, tr.app().Moving())
			}
		})
	}
}

// A process that packs profiles asks in the region of the app for users who have changed, and may
// know an older region.
func TestChangesAreListedInBothRegions(t *testing.T) {
	tr := newTravels(t)
	tr.must(tr.apps.SetSegments(ctx, appID, true))
	tr.apply(tr.at(1))
	tr.begin()
	tr.moveUser()
	tr.clock += hour
	cut := store.SlotOf(tr.now())
	for what, change := range map[string]func(){
		"an event":   func() { tr.apply(tr.at(2)) },
		"a deletion": func() { tr.delete("u") },
	} {
		change()
		for region, s := range map[string]*store.Store{"eu": tr.store, "us": tr.us} {
			if listed, _, err := s.Changes.List(ctx, appID, cut, 0); err != nil || len(listed) != 1 {
				t.Errorf("%s: %s lists %v, %v", what, region, listed, err)
			}
		}
		tr.clock += hour
		cut = store.SlotOf(tr.now())
	}
}
