package store_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

var (
	own     = store.Owner{Epoch: 1, State: store.Own}
	leaving = store.Owner{Epoch: 2, State: store.Leaving, Region: "us"}
	moved   = store.Owner{Epoch: 3, State: store.Moved, Region: "us"}
)

func setOwner(t *testing.T, s fixture, user string, from, to store.Owner, want bool) {
	t.Helper()
	if done, err := s.Users.SetOwner(context.Background(), app, user, from, to); done != want || err != nil {
		t.Fatalf("from %v to %v: %v, %v; want %v", from, to, done, err, want)
	}
}

// The owner changes only from what it is, and both a ticket and a read show it.
func testOwners(t *testing.T, s fixture) {
	const user = "owned"
	setOwner(t, s, user, own, leaving, false)
	var wg sync.WaitGroup
	won := make(chan bool, 8)
	for range cap(won) {
		wg.Go(func() {
			done, err := s.Users.SetOwner(context.Background(), app, user, store.Owner{}, own)
			won <- done && err == nil
		})
	}
	wg.Wait()
	close(won)
	if n := len(slices.DeleteFunc(slices.Collect(values(won)), func(w bool) bool { return !w })); n != 1 {
		t.Errorf("%d of several gave the user an owner, want 1", n)
	}
	for _, wrong := range []store.Owner{{}, {Epoch: 2, State: store.Own}, leaving} {
		setOwner(t, s, user, wrong, moved, false)
	}
	setOwner(t, s, user, own, leaving, true)
	other := leaving
	other.Region = "usa"
	setOwner(t, s, user, other, moved, false)
	row, err := s.Users.TakeOwned(context.Background(), app, user)
	if err != nil || row.Owner != leaving || row.Ticket != 1 {
		t.Errorf("ticket %d, owner %v, %v", row.Ticket, row.Owner, err)
	}
	if plain := ticket(t, s, user); plain.Owner != (store.Owner{}) || read(t, s, user).Owner != leaving {
		t.Errorf("a ticket alone shows the owner %v, a read %v", plain.Owner, read(t, s, user).Owner)
	}
}

func values[T any](c <-chan T) func(func(T) bool) {
	return func(yield func(T) bool) {
		for v := range c {
			if !yield(v) {
				return
			}
		}
	}
}

// A user arrives once, with the state of the row that they had, whatever the new one held.
func testArrivals(t *testing.T, s fixture) {
	const user = "arrives"
	ctx := context.Background()
	for range 3 { // in vain: the row does not count
		ticket(t, s, user)
	}
	write(t, s, store.ProfileWrite{User: user, Row: store.User{Ticket: 9}, Value: []byte("other"), Summary: []byte("o"), Session: []byte("s"), Version: 7})
	if _, _, err := s.Users.SetOptOut(ctx, app, user, store.User{Ticket: 3}, event.AllTypes, affinity.Tombstone{DeletedUntil: 9000, ReceivedUntil: 9000}); err != nil {
		t.Fatal(err)
	}
	from := "left"
	must.Succeed(t, s.Users.AdvanceTombstone(ctx, app, from, affinity.Tombstone{DeletedUntil: 50, ReceivedUntil: 60}))
	if _, err := s.Users.TakeMark(ctx, app, from); err != nil {
		t.Fatal(err)
	}
	if _, done, err := s.Users.SetOptOut(ctx, app, from, store.User{Ticket: 1}, event.Views, affinity.Tombstone{DeletedUntil: 70, ReceivedUntil: 80}); !done || err != nil {
		t.Fatal(done, err)
	}
	row := read(t, s, from)
	row.Ticket, row.Version = 2, 4
	row.Profile, row.Summary, row.Session = []byte("profile"), []byte("summary"), []byte("session")
	arrive := func(epoch int64, want bool) {
		t.Helper()
		if done, err := s.Users.Arrive(ctx, app, user, store.Arrival{Epoch: epoch, Row: row, Manifest: []byte("m")}); done != want || err != nil {
			t.Fatalf("epoch %d: %v, %v; want %v", epoch, done, err, want)
		}
	}
	arrive(3, true)
	got := readSession(t, s, user)
	if got.Owner != (store.Owner{Epoch: 3, State: store.Own}) || got.Ticket != 2 || got.ProfileTicket != 2 || got.Deleted() != row.Deleted() ||
		got.OptedOut != event.Views || got.Marks != 1 || got.Version != 4 || string(got.Manifest) != "m" || string(got.Profile) != "profile" || string(got.Session) != "session" {
		t.Errorf("arrived as %+v, left as %+v", got, row)
	}
	ticket(t, s, user)
	arrive(3, false)
	arrive(2, false)
	if now := read(t, s, user); now.Ticket != 3 {
		t.Errorf("ticket %d after a second arrival, want 3", now.Ticket)
	}
	row.Profile, row.Summary, row.Session = nil, nil, nil
	arrive(5, true)
	if now := readSession(t, s, user); now.Ticket != 2 || !now.HasProfile || len(now.Profile)+len(now.Session) > 0 {
		t.Errorf("without a profile: %+v, want a marker", now)
	}
}

// A cell that names no owner is a fault, and not nobody.
func testDamagedOwner(t *testing.T, s fixture) {
	for i, value := range []string{"x", "\x00\x00\x00\x00\x00\x00\x00\x00\x01", "\x00\x00\x00\x00\x00\x00\x00\x01\x09us", "\x00\x00\x00\x00\x00\x00\x00\x01\x01us", "\x00\x00\x00\x00\x00\x00\x00\x01\x03"} {
		m := bigtable.NewMutation()
		m.Set("u", "w", bigtable.ServerTime, []byte(value))
		must.Succeed(t, s.client.Open(store.TableUsers).Apply(context.Background(), app+",damaged,", m))
		if row, err := s.Users.ReadUser(context.Background(), app, "damaged"); err == nil {
			t.Errorf("cell %d is read as %v", i, row.Owner)
		}
	}
}

// The copy of a log counts as the log does, and stands behind what is appended there.
func testCopyFromRegion(t *testing.T, s fixture) {
	ctx, there := context.Background(), storetest.New(t)
	events := []store.LogEvent{
		click("u", 1000, affinity.Count{Facet: "color", Value: "Red", N: 1}, affinity.Count{Facet: "size", Value: "L", N: 2}),
		click("u", 2000), click("u", 0, affinity.Count{Facet: "color", Value: "Red", N: 1}), click("v", 1000),
	}
	for i := range events {
		events[i].Original, events[i].ObjectIDs, events[i].Receipt = []byte("event"), []string{"a", "b"}, 5000
	}
	newer := click("u", 1000, affinity.Count{Facet: "color", Value: "Blue", N: 1})
	newer.Original, newer.ObjectIDs = []byte("newer"), []string{"a", "b"}
	must.Succeed(t, s.log().Copy(ctx, s.layout.Read, []store.LogEvent{newer})) // of an earlier move, below what follows
	must.Succeed(t, s.log().Append(ctx, events))
	copied := func(want ...string) {
		t.Helper()
		n, all, err := there.Events.CopyLogFrom(ctx, s.Store, app, s.layout, "u", store.LogCopy{}, 100, nil)
		must.Succeed(t, err)
		l := there.Events.Log(app, s.layout)
		if diff := cmp.Diff(want, entries(t, l, s.layout.Read)); n != 3*len(s.layout.Write) || !all || diff != "" {
			t.Errorf("%d rows copied (-want +got):\n%s", n, diff)
		}
	}
	all := slices.DeleteFunc(entries(t, s.log(), s.layout.Read), func(e string) bool { return e[0] == 'v' })
	copied(all...)
	copied(all...)
	missing, err := there.Events.MissingInLog(ctx, s.Store, app, s.layout, "u", history.Pos{})
	must.Succeed(t, err)
	if len(missing) > 0 {
		t.Errorf("missing after the copy: %v", missing)
	}
	must.Succeed(t, there.Events.Log(app, s.layout).Append(ctx, []store.LogEvent{newer}))
	all[1] = "u {1000 id000001000} [{color Blue 1}] [a b] newer"
	copied(all...)
	must.Succeed(t, there.Events.Log(app, s.layout).Delete(ctx, events[1:2]))
	if missing, err = there.Events.MissingInLog(ctx, s.Store, app, s.layout, "u", history.Pos{}); err != nil || len(missing) != 1 || missing[0].Time != 2000 {
		t.Errorf("missing: %v, %v; want the event of 2000", missing, err)
	}
	if missing, err = there.Events.MissingInLog(ctx, s.Store, app, s.layout, "u", history.Pos{Time: 2001}); err != nil || len(missing) != 0 {
		t.Errorf("missing from 2001 on: %v, %v", missing, err)
	}
	_, err = s.Users.SetOwner(ctx, app, "u", store.Owner{}, moved)
	must.Succeed(t, err)
	must.Succeed(t, s.Histories.WriteBlocks(ctx, app, "u", []store.BlockWrite{{ID: history.BlockID{Ticket: 1}, Value: []byte("block")}}))
	must.Succeed(t, s.Events.LeaveUser(ctx, app, "u"))
	if left := entries(t, s.log(), s.layout.Read); len(left) != 1 || left[0][0] != 'v' {
		t.Errorf("left behind: %v", left)
	}
	if ids, err := s.Histories.ListBlocks(ctx, app, "u"); err != nil || len(ids) > 0 {
		t.Errorf("blocks left behind: %v, %v", ids, err)
	}
	if row := read(t, s, "u"); row.Owner != moved || row.Ticket != 0 || row.HasProfile {
		t.Errorf("the row that says who owns the user: %+v", row)
	}
}

// The copy of a long log goes on behind its last page, also in another process, and begins again
// under another owner.
func testCopyInPages(t *testing.T, s fixture) {
	if len(s.layout.Write) > 1 {
		return // an app whose log migrates does not move
	}
	ctx, there := context.Background(), storetest.New(t)
	var events []store.LogEvent
	for i := range 7 {
		events = append(events, click("u", int64(1000*i)))
	}
	must.Succeed(t, s.log().Append(ctx, events))
	own := func(from, to store.Owner) {
		t.Helper()
		took, err := s.Users.SetOwner(ctx, app, "u", from, to)
		if must.Succeed(t, err); !took {
			t.Fatalf("the owner is not %s", from)
		}
	}
	first := store.Owner{Epoch: 1, State: store.Leaving, Region: "us"}
	own(store.Owner{}, first)
	copied := func(page, rows int, whole, more bool) {
		t.Helper()
		done := read(t, s, "u").Copied
		done.Move, done.Epoch = "move-1", 1
		n, all, err := there.Events.CopyLogFrom(ctx, s.Store, app, s.layout, "u", done, page, func() bool { return more })
		if must.Succeed(t, err); n != rows || all != whole {
			t.Errorf("%d rows copied, all: %v; want %d, %v", n, all, rows, whole)
		}
	}
	copied(3, 3, false, false)
	copied(2, 2, false, false)
	copied(2, 2, false, false) // a full page may be the last one
	copied(2, 0, true, false)
	copied(2, 0, true, true)
	if diff := cmp.Diff(entries(t, s.log(), s.layout.Read), entries(t, there.Events.Log(app, s.layout), s.layout.Read)); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
	own(first, store.Owner{Epoch: 2, State: store.Own})
	if got := read(t, s, "u").Copied; got != (store.LogCopy{}) {
		t.Errorf("under another owner the row says that %+v is copied", got)
	}
	copied(2, 7, true, true)
	lacking := []history.Pos{{Time: 1000, ID: events[1].ID}, {Time: 6000, ID: events[6].ID}}
	must.Succeed(t, there.Events.Log(app, s.layout).Delete(ctx, []store.LogEvent{events[1], events[6]}))
	missing, err := there.Events.MissingInLog(ctx, s.Store, app, s.layout, "u", history.Pos{})
	if must.Succeed(t, err); !slices.Equal(missing, lacking) {
		t.Errorf("missing %v, want %v", missing, lacking)
	}
	// A crash elsewhere, which nobody asks to repair.
	must.Succeed(t, there.Events.Log(app, s.layout).Delete(ctx, events[3:4]))
	must.Succeed(t, there.Events.CopyEventsFrom(ctx, s.Store, app, s.layout, "u", missing))
	if missing, err = there.Events.MissingInLog(ctx, s.Store, app, s.layout, "u", history.Pos{}); err != nil || len(missing) != 1 || missing[0].Time != 3000 {
		t.Errorf("missing %v, %v; want the event of 3000", missing, err)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if missing, err = there.Events.MissingInLog(stopped, s.Store, app, s.layout, "u", history.Pos{}); err == nil {
		t.Errorf("a log that cannot be read lacks %v", missing)
	}
}
