package profile_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// Each test leads processes into the interleaving that breaks a simpler way to move a user
// from one region to another.

// A process that knows nothing of the move yet follows the row.
func TestStaleReaderFollowsRow(t *testing.T) {
	tr := newMoving(t)
	before := tr.app()
	tr.moveUser()
	tr.switched()
	tr.apply(tr.at(2))
	tr.expectUnder(before, 2)
	m := tr.messageUnder(before, tr.at(3))
	tr.finish(m)
	tr.expectUnder(before, 3)
	tr.expectUnder(tr.app(), 3)
}

// meetsMover lets an actor meet the mover of a user with one event at any of their requests.
// Then, after the move and in between, the user has so many events.
func meetsMover(t *testing.T, start func(*travels) *actor, events int) {
	atEveryPair(func(first, mover int) (bool, bool) {
		tr := newMoving(t)
		a, m := start(tr), tr.mover()
		goesOn, moverGoesOn := tr.upTo(a, first), tr.upTo(m, mover)
		tr.finish(a)
		tr.expect(events)
		tr.finish(m)
		tr.expect(events)
		tr.expectMoved(events)
		return goesOn, moverGoesOn
	})
}

// A message that meets the mover at any of its requests, and ends at any time, is counted.
func TestMessageMeetsMover(t *testing.T) {
	meetsMover(t, func(tr *travels) *actor { return tr.message(tr.at(2)) }, 2)
}

// A message whose user leaves logs its event in both regions, and draws another ticket
// after the second: a reader may have computed the profile before that.
func TestSecondLogDrawsAnotherTicket(t *testing.T) {
	tr := newMoving(t)
	m := tr.moverAt(store.Leaving)
	tr.stepTo(m, "CheckAndMutateRow") // it has copied the log
	a := tr.message(tr.at(2))
	tr.stepTo(a, "ReadModifyWriteRow")
	tr.step(a, 1) // it stands before the second write
	tr.finish(m)
	r, _ := tr.reader(tr.app())
	tr.stepTo(r, "MutateRow") // it has computed the profile
	tr.finish(a)
	tr.finish(r)
	tr.expect(2)
}

// An event that is logged before the user leaves is copied, since the copy begins later.
func TestCopyBeginsAfterLeaving(t *testing.T) {
	tr := newMoving(t)
	m := tr.mover()
	tr.stepTo(m, "CheckAndMutateRow") // it has read Own
	tr.apply(tr.at(2))
	tr.finish(m)
	tr.expectMoved(2)
}

// A deletion that meets the mover at any of its requests deletes the user.
func TestDeletionMeetsMover(t *testing.T) { meetsMover(t, (*travels).deletion, 0) }

// The deletion raises the tombstone in a row that does not count yet, after the arrival has
// read the row that was left. The arrival replaces it, and the deletion raises it again.
func TestDeletionBeforeArrival(t *testing.T) {
	tr := newMoving(t)
	m := tr.moverAt(store.Moved)
	tr.stepTo(m, "CheckAndMutateRow") // it has read the row that was left
	d := tr.deletion()
	for raised := false; !raised; {
		tr.step(d, 1)
		row := tr.row("us")
		raised = row.DeletedUntil > 0
	}
	tr.finish(m)
	tr.finish(d)
	tr.expect(0)
}

// Tickets rise along the way, so the profile that lies in the region left is not newer than
// what is written after the way back.
func TestTicketsRiseOnTheWay(t *testing.T) {
	tr := newTravels(t)
	tr.apply(tr.at(1))
	tr.apply(tr.at(2))
	tr.begin()
	tr.moveUser()
	there := tr.row("us")
	tr.apply(tr.at(3))
	tr.undo()
	tr.moveUser()
	tr.expect(3)
	back := tr.row("eu")
	if there.Ticket != 3 || back.Ticket != 5 { // 2 and a move; a message and a move
		t.Errorf("tickets %d and %d after two events, a move, an event and the way back; want 3 and 5", there.Ticket, back.Ticket)
	}
	tr.expectMoved(3)
}

// A refresh has its ticket and has not stored its profile when the user moves. The older
// profile is not the one with which they arrive.
func TestOlderProfileDoesNotTravel(t *testing.T) {
	tr := newMoving(t)
	a := tr.message(tr.at(2))
	tr.stepToWrite(a)
	tr.moveUser()
	tr.finish(a)
	tr.expect(2)
}

// The newest profile travels, so no read after the move computes.
func TestNewestProfileTravels(t *testing.T) {
	tr := newMoving(t)
	tr.moveUser()
	if r := tr.read("u"); !r.Stored || red(r) != 30 {
		t.Errorf("first read after the move: stored %v, %v; want the stored profile, 30", r.Stored, red(r))
	}
}

// A second mover, which has slept, does not let the user arrive again.
func TestUserArrivesOnce(t *testing.T) {
	tr := newMoving(t)
	first := tr.moverAt(store.Moved)
	second := tr.mover()
	tr.stepTo(second, "CheckAndMutateRow") // it has read the row that was left
	tr.finish(first)
	tr.apply(tr.at(2))
	tr.apply(tr.at(3))
	before := tr.row("us")
	for second.before != "" {
		tr.step(second, 1)
	}
	after := tr.row("us")
	if after.Ticket != before.Ticket {
		t.Errorf("ticket %d, and %d after the second mover: the user arrived twice", before.Ticket, after.Ticket)
	}
	tr.expect(3)
}

// A mover that slept while the move was given up and began again does not end it: its copy
// is old.
func TestSleepingMoverEndsNoOtherMove(t *testing.T) {
	tr := newMoving(t)
	m := tr.moverAt(store.Leaving)
	tr.step(m, 1) // it has read Leaving
	tr.stepTo(m, "CheckAndMutateRow")
	tr.change((*config.App).UndoMove)
	tr.must(tr.eng.StayUser(ctx, tr.undone(), "u"))
	tr.apply(tr.at(2))
	tr.change(func(a *config.App) error { a.Move, a.Region = config.Move{}, "eu"; return nil })
	tr.begin()
	o := tr.owner("eu")
	if done, err := tr.store.Users.SetOwner(ctx, appID, "u", o, store.Owner{Epoch: o.Epoch + 1, State: store.Leaving, Region: "us"}); !done || err != nil {
		t.Fatalf("leave again: %v, %v", done, err)
	}
	for m.before != "" {
		tr.step(m, 1)
		tr.expect(2)
	}
	tr.expectMoved(2)
}

// undone is the configuration in which users go back.
func (tr *travels) undone() config.App {
	app := tr.app()
	app.AdvanceMove()
	app.AdvanceMove()
	app.AdvanceMove()
	return app
}

// What is left over in the region to which the user returns is removed before: the copy
// stands behind what was appended there, and would not replace other filters.
func TestWayBackRemovesLeftovers(t *testing.T) {
	tr := newTravels(t)
	e := tr.at(1)
	tr.apply(e)
	tr.begin()
	tr.moveUser()
	e.Counts = []affinity.Count{{Facet: "color", Value: "blue", N: 1}} // the catalog knows better now
	tr.apply(e)
	tr.undo()
	tr.moveUser()
	tr.switched()
	tr.expectBlue()
}

// A mover dies before the user arrives, and the move turns back. What the user left is what
// readers take, until the arrival is completed.
func TestWayBackCompletesArrival(t *testing.T) {
	tr := newMoving(t)
	m := tr.moverAt(store.Moved)
	tr.kill(m)
	tr.change((*config.App).UndoMove)
	clearing := tr.app()
	clearing.AdvanceMove()
	if err := tr.eng.ClearUser(ctx, clearing, "u"); err == nil {
		t.Error("what the user left was removed before they arrived")
	}
	tr.expect(1)
	tr.must(tr.eng.ArriveUser(ctx, tr.app(), "u"))
	tr.nextPhase()
	tr.must(tr.eng.ClearUser(ctx, tr.app(), "u"))
	tr.expect(1)
}

// The leftovers of a user who has not left are their log.
func TestLeftoversOfNobodyElse(t *testing.T) {
	tr := newMoving(t)
	born := bought("new", tr.clock-day)
	a := tr.messageUnder(tr.app(), born) // logged in eu, and no row yet
	tr.step(a, 1)
	tr.turnBack()
	for _, user := range []string{"u", "new"} {
		tr.must(tr.eng.ClearUser(ctx, tr.app(), user))
	}
	tr.finish(a)
	tr.expect(1)
	if r := tr.read("new"); red(r) != 30 {
		t.Errorf("a user who was born in between has %v, want 30", red(r))
	}
}

// Who clears or drops looks at the phase before each user: they may come back.
func TestClearingEndsWithItsPhase(t *testing.T) {
	tr := newMoving(t)
	tr.moveUser()
	tr.turnBack()
	clearing := tr.app()
	tr.nextPhase()
	tr.nextPhase()
	tr.moveUser()
	if err := tr.eng.ClearUser(ctx, clearing, "u"); err != nil {
		t.Errorf("a user who is back: %v", err)
	}
	tr.expect(1)
	tr.switched()
	tr.moveUserAgain()
	if err := tr.eng.ClearUser(ctx, clearing, "u"); err == nil {
		t.Error("a process of an earlier phase removed what it calls left over")
	}
}

// moveUserAgain makes the row of the region of the app say that the user has moved.
func (tr *travels) moveUserAgain() {
	o := tr.owner("eu")
	_, err := tr.store.Users.SetOwner(ctx, appID, "u", o, store.Owner{Epoch: o.Epoch + 1, State: store.Moved, Region: "us"})
	tr.must(err)
}

// A message that finds out that the user has moved leaves the row of the log that it has
// written: an earlier delivery may have written the same one, at a ticket that counted.
func TestMessageRemovesNothingBehindIt(t *testing.T) {
	tr := newTravels(t)
	tr.begin()
	before := tr.app()
	a := tr.messageUnder(before, tr.at(1))
	tr.stepToOwner(a, "eu", store.Moved) // born in us
	r, _ := tr.reader(before)
	tr.finish(a)
	tr.finish(r)
	rows := 0
	tr.must(tr.store.Events.ReadLog(ctx, appID, before.Log, []store.UserRange{{User: "u", To: history.End}}, func(string, store.LogRow) error { rows++; return nil }))
	if rows != 1 {
		t.Errorf("%d rows in the log where the message was first, want 1", rows)
	}
	tr.expect(1)
}

// What an earlier move has left in the row is no part of a move, though its epoch is the same:
// neither a copy of which a part was made, nor the region that gets the user.
func TestMoverTakesNothingFromEarlierMoves(t *testing.T) {
	copied := func(tr *travels, move string, epoch int64) {
		_, _, err := tr.us.Events.CopyLogFrom(ctx, tr.store, appID, tr.app().Log, "u", store.LogCopy{Move: move, Epoch: epoch}, 1, func() bool { return false })
		tr.must(err)
		tr.must(tr.us.Rows.DeleteRows(ctx, store.AppRows{App: appID, Table: store.TableEvents}, func(int, string) error { return nil }))
		tr.must(tr.us.Rows.DeleteRows(ctx, store.AppRows{App: appID, Table: store.TableEventsNarrow}, func(int, string) error { return nil }))
	}
	leave := func(tr *travels, epoch int64, region string) {
		_, err := tr.store.Users.SetOwner(ctx, appID, "u", tr.owner("eu"), store.Owner{Epoch: epoch, State: store.Leaving, Region: region})
		tr.must(err)
	}
	for name, left := range map[string]func(tr *travels){
		"leaving at rest":         func(tr *travels) { leave(tr, 2, "us"); copied(tr, "move-us", 2); tr.begin() },
		"leaving to a third one":  func(tr *travels) { tr.begin(); leave(tr, 2, "asia"); copied(tr, "move-us", 2) },
		"a copy of another move":  func(tr *travels) { tr.begin(); leave(tr, 2, "us"); copied(tr, "move-0", 2) },
		"a copy of no known move": func(tr *travels) { tr.begin(); leave(tr, 2, "us"); copied(tr, "", 2) },
		"a copy of a lower epoch": func(tr *travels) { tr.begin(); leave(tr, 2, "us"); copied(tr, "move-us", 1) },
		"moved away, and at rest": func(tr *travels) { tr.moveUserAgain(); tr.begin() },
	} {
		tr := newTravels(t)
		tr.apply(tr.at(1))
		tr.apply(tr.at(2))
		left(tr)
		tr.moveUser()
		tr.switched()
		_, err := tr.eng.Refresh(ctx, tr.app(), "u")
		tr.must(err)
		if tr.expect(2); t.Failed() {
			t.Fatal(name)
		}
		tr.end()
		tr.expect(2)
	}
}

// A request sends a new user on and ends there. Who removes what is left behind completes the
// arrival.
func TestClearingCompletesBirths(t *testing.T) {
	tr := newTravels(t)
	tr.begin()
	a := tr.message(tr.at(1))
	tr.stepToOwner(a, "eu", store.Moved)
	tr.kill(a)
	tr.turnBack()
	tr.must(tr.eng.ClearUser(ctx, tr.app(), "u"))
	if o := tr.owner("us"); o.State != store.Own {
		t.Errorf("us says %s", o)
	}
	tr.nextPhase()
	tr.nextPhase()
	tr.must(tr.eng.StayUser(ctx, tr.app(), "u"))
	tr.moveUser()
	tr.apply(tr.at(1))
	tr.expect(1)
	tr.expectMoved(1)
}
