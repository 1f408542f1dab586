package store_test

import (
	"context"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// A location changes only from what it is. Its row has no token.
func testLocations(t *testing.T, s fixture) {
	ctx := context.Background()
	find := func(want store.Location) {
		t.Helper()
		if got, err := s.Locations.Find(ctx, app, "ann"); err != nil || got != want {
			t.Errorf("found %+v, %v; want %+v", got, err, want)
		}
	}
	change := func(from, to store.Location, want bool) {
		t.Helper()
		if took, err := s.Locations.Change(ctx, app, "ann", from, to); err != nil || took != want {
			t.Errorf("from %+v to %+v: %v, %v; want %v", from, to, took, err, want)
		}
	}
	none, eu, us := store.Location{}, store.Location{Region: "eu", Since: 1_700_000_000_000_001}, store.Location{Region: "us", Since: 1_700_000_000_000_002}
	find(none)
	change(eu, us, false)
	change(none, eu, true)
	change(none, us, false)
	find(eu)
	later := eu
	later.Since++
	change(later, us, false)
	change(eu, us, true)
	find(us)
	must.Succeed(t, s.Rows.DeleteRows(ctx, store.AppRows{App: app, Table: store.TableLocations}, func(_ int, last string) error {
		if key := strings.TrimPrefix(last, app+","); len(key) != 64 {
			t.Errorf("the key of a location is %q", last)
		}
		return nil
	}))
	find(none)
	change(none, us, true)
	change(us, none, true)
	find(none)
}

// EraseMoved deletes the row of a user who has moved away as the caller knows, and no other.
func testEraseMoved(t *testing.T, s fixture) {
	ctx := context.Background()
	exists := func(want bool) {
		t.Helper()
		row, err := s.Users.ReadPrimary(ctx, app, "erased", store.UserState)
		if err != nil || row.Exists != want {
			t.Errorf("the row exists: %v, %v; want %v", row.Exists, err, want)
		}
	}
	setOwner(t, s, "erased", store.Owner{}, own, true)
	setOwner(t, s, "erased", own, leaving, true)
	must.Succeed(t, s.Users.EraseMoved(ctx, app, "erased", moved))
	exists(true)
	setOwner(t, s, "erased", leaving, moved, true)
	later := moved
	later.Epoch++
	must.Succeed(t, s.Users.EraseMoved(ctx, app, "erased", later))
	exists(true)
	must.Succeed(t, s.Users.EraseMoved(ctx, app, "erased", moved))
	exists(false)
}

// Strip leaves the ticket of a row that is as the caller has read it, and then nothing.
func testStrip(t *testing.T, s fixture) {
	ctx := context.Background()
	strip := func(row store.User, want bool) {
		t.Helper()
		if took, err := s.Users.Strip(ctx, app, "stripped", row); err != nil || took != want {
			t.Errorf("stripped: %v, %v; want %v", took, err, want)
		}
	}
	read := func() store.User {
		t.Helper()
		row, err := s.Users.ReadPrimary(ctx, app, "stripped", store.UserState)
		must.Succeed(t, err)
		return row
	}
	setOwner(t, s, "stripped", store.Owner{}, own, true)
	ticket(t, s, "stripped")
	must.Succeed(t, s.Users.AdvanceTombstone(ctx, app, "stripped", affinity.Tombstone{DeletedUntil: 50, ReceivedUntil: 60}))
	row := read()
	other := row
	other.Owner.Epoch++
	strip(other, false)
	must.Succeed(t, s.Users.AdvanceTombstone(ctx, app, "stripped", affinity.Tombstone{DeletedUntil: 50, ReceivedUntil: 70}))
	strip(row, false)
	row = read()
	ticket(t, s, "stripped")
	strip(row, false)
	row = read()
	if row.Bare() {
		t.Errorf("the row is bare: %+v", row)
	}
	strip(row, true)
	if bare := read(); !bare.Exists || !bare.Bare() || bare.Ticket != 2 {
		t.Errorf("stripped row: %+v", bare)
	}
	bare := read()
	ticket(t, s, "stripped")
	strip(bare, false)
	strip(read(), true)
	if left := read(); left.Exists {
		t.Errorf("the row is still there: %+v", left)
	}
}
