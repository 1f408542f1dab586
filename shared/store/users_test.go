package store_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

func ticket(t *testing.T, s fixture, user string) store.User {
	t.Helper()
	row, err := s.Users.TakeTicket(context.Background(), app, user)
	must.Succeed(t, err)
	return row
}

func read(t *testing.T, s fixture, user string) store.User {
	t.Helper()
	row, err := s.Users.ReadUser(context.Background(), app, user)
	must.Succeed(t, err)
	return row
}

func write(t *testing.T, s fixture, w ...store.ProfileWrite) {
	t.Helper()
	must.Succeed(t, s.Users.WriteProfiles(context.Background(), app, w))
}

func testTickets(t *testing.T, s fixture) {
	seen := make(chan int64, 50)
	var wg sync.WaitGroup
	for range cap(seen) {
		wg.Go(func() {
			row, err := s.Users.TakeTicket(context.Background(), app, "u")
			if err != nil {
				t.Error(err)
			}
			seen <- row.Ticket
		})
	}
	wg.Wait()
	close(seen)
	all := map[int64]bool{}
	for n := range seen {
		all[n] = true
	}
	if len(all) != cap(seen) || !all[1] || !all[int64(cap(seen))] {
		t.Errorf("tickets %v, want each of 1 to %d once", all, cap(seen))
	}
	if row := read(t, s, "u"); row.Ticket != int64(cap(seen)) {
		t.Errorf("the row's counter is %d, want %d", row.Ticket, cap(seen))
	}
	if row := read(t, s, "nobody"); row.Exists || row.Ticket != 0 {
		t.Errorf("row of an unknown user: %+v", row)
	}
}

func testHighestTicket(t *testing.T, s fixture) {
	write(t, s, store.ProfileWrite{User: "u", Row: store.User{Ticket: 7}, Value: []byte("seven"), Version: 2})
	write(t, s, store.ProfileWrite{User: "u", Row: store.User{Ticket: 3, Version: 2}, Value: []byte("three"), Version: 2})
	if row := read(t, s, "u"); string(row.Profile) != "seven" || row.Version != 2 {
		t.Errorf("read %q of version %d, want the profile of ticket 7 and version 2", row.Profile, row.Version)
	}
	write(t, s, store.ProfileWrite{User: "u", Row: store.User{Ticket: 8}}, store.ProfileWrite{User: "v", Row: store.User{Ticket: 1}, Value: []byte("one")})
	if row := read(t, s, "u"); !row.HasProfile || len(row.Profile) != 0 {
		t.Errorf("read %q, want the cell that says: compute", row.Profile)
	}
	rows, err := s.Users.ReadUsers(context.Background(), app, []string{"u", "nobody", "v"})
	if err != nil || len(rows) != 2 || string(rows["v"].Profile) != "one" {
		t.Errorf("rows %v, %v; want u and v", rows, err)
	}
}

func testTombstones(t *testing.T, s fixture) {
	ctx := context.Background()
	raise := func(until int64) {
		t.Helper()
		must.Succeed(t, s.Users.AdvanceTombstone(ctx, app, "u", affinity.Tombstone{DeletedUntil: until}))
	}
	raise(1000)
	if d := ticket(t, s, "u").DeletedUntil; d != 1000 {
		t.Fatalf("deleted until %d, want 1000", d)
	}
	// A ticket rewrites the tombstone's cell at the server's time: neither a later
	// nor an earlier deletion may be confused by it.
	raise(2000)
	ticket(t, s, "u")
	raise(1500)
	if row := ticket(t, s, "u"); row.DeletedUntil != 2000 || row.Ticket != 3 {
		t.Errorf("%+v, want deleted until 2000 at ticket 3", row)
	}
	if row := read(t, s, "u"); row.DeletedUntil != 2000 {
		t.Errorf("read: deleted until %d, want 2000", row.DeletedUntil)
	}
}

func testForgetting(t *testing.T, s fixture) {
	ctx := context.Background()
	write(t, s, store.ProfileWrite{User: "u", Row: store.User{Ticket: 1}, Value: []byte("one")})
	must.Succeed(t, s.Users.ForgetUser(ctx, app, "u", 2, nil))
	write(t, s, store.ProfileWrite{User: "u", Row: store.User{Ticket: 1}, Value: []byte("late")})
	if row := read(t, s, "u"); !row.HasProfile || len(row.Profile) != 0 {
		t.Errorf("read %q, want the marker: a refresh that began before the deletion stays hidden", row.Profile)
	}
	write(t, s, store.ProfileWrite{User: "u", Row: store.User{Ticket: 3}, Value: []byte("new")})
	must.Succeed(t, s.Users.ForgetUser(ctx, app, "u", 2, nil))
	if row := read(t, s, "u"); string(row.Profile) != "new" {
		t.Errorf("read %q, want the profile of the newer ticket", row.Profile)
	}
}

// readSession reads a user row with the session of its profile.
func readSession(t *testing.T, s fixture, user string) store.User {
	t.Helper()
	row, err := s.Users.ReadServing(context.Background(), app, user, store.UserSession)
	must.Succeed(t, err)
	return row
}

// A session counts beside the profile of its ticket alone.
func testSessions(t *testing.T, s fixture) {
	expect := func(profile, session string) {
		t.Helper()
		if row := readSession(t, s, "u"); string(row.Profile) != profile || string(row.Session) != session {
			t.Errorf("read profile %q and session %q, want %q and %q", row.Profile, row.Session, profile, session)
		}
		if row := read(t, s, "u"); string(row.Profile) != profile || len(row.Session) != 0 {
			t.Errorf("read profile %q and session %q without asking for it", row.Profile, row.Session)
		}
	}
	write(t, s, store.ProfileWrite{User: "u", Row: store.User{Ticket: 7}, Value: []byte("seven"), Session: []byte("of seven")})
	expect("seven", "of seven")
	write(t, s, store.ProfileWrite{User: "u", Row: store.User{Ticket: 3}, Value: []byte("three"), Session: []byte("of three")})
	expect("seven", "of seven")
	// A profile without a session is served without one.
	alone := bigtable.NewMutation()
	alone.Set("p", "p", 8000, []byte("eight"))
	must.Succeed(t, s.client.Open(store.TableUsers).Apply(context.Background(), app+",u,", alone))
	expect("eight", "")
	write(t, s, store.ProfileWrite{User: "u", Row: store.User{Ticket: 9}, Value: []byte("nine")})
	expect("nine", "")
	write(t, s, store.ProfileWrite{User: "u", Row: store.User{Ticket: 10}, Value: []byte("ten"), Session: []byte("of ten"), Counted: []byte("list")})
	must.Succeed(t, s.Users.ForgetUser(context.Background(), app, "u", 11, nil))
	expect("", "")
	row, err := s.client.Open(store.TableUsers).ReadRow(context.Background(), app+",u,", bigtable.RowFilter(bigtable.LatestNFilter(1)))
	must.Succeed(t, err)
	for _, item := range row["p"] {
		if len(item.Value) > 0 {
			t.Errorf("the deletion left %s: %q", item.Column, item.Value)
		}
	}
}

// What a profile counts is read with its profile and session, and with those of its
// ticket alone.
func testBases(t *testing.T, s fixture) {
	expect := func(want ...string) {
		t.Helper()
		rows, err := s.Users.ReadBases(context.Background(), app, []string{"u", "nobody"}, 1)
		must.Succeed(t, err)
		row := rows["u"]
		if got := []string{fmt.Sprint(row.ProfileTicket), string(row.Profile), string(row.Session), string(row.Counted)}; !slices.Equal(got, want) || len(rows) != 1 {
			t.Errorf("read %q of %d users, want %q", got, len(rows), want)
		}
		if row := readSession(t, s, "u"); len(row.Counted) > 0 {
			t.Errorf("read the list %q without asking for it", row.Counted)
		}
	}
	write(t, s, store.ProfileWrite{User: "u", Row: store.User{Ticket: 7}, Value: []byte("seven"), Session: []byte("session"), Counted: []byte("list")})
	expect("7", "seven", "session", "list")
	write(t, s, store.ProfileWrite{User: "u", Row: store.User{Ticket: 6}, Value: []byte("six"), Session: []byte("of six"), Counted: []byte("list of six")})
	expect("7", "seven", "session", "list")
	write(t, s, store.ProfileWrite{User: "u", Row: store.User{Ticket: 9}, Value: []byte("nine"), Session: []byte("of nine")})
	expect("9", "nine", "of nine", "")
}

// A user who is refreshed often must not grow: nothing but the newest cells is
// kept, and none of those is lost.
func TestSupersededCellsAreDropped(t *testing.T) {
	plain, client := storetest.NewWithClient(t)
	s, ctx := fixture{Store: plain, client: client, collects: true}, context.Background()
	must.Succeed(t, s.Users.AdvanceTombstone(ctx, app, "u", affinity.Tombstone{DeletedUntil: 77}))
	var row store.User
	for range 50 {
		row = ticket(t, s, "u")
		write(t, s, store.ProfileWrite{User: "u", Row: row, Value: []byte("profile"), Version: 3})
	}
	if row.Ticket != 50 || row.DeletedUntil != 77 || row.Version != 3 {
		t.Errorf("%+v, want ticket 50, deleted until 77, version 3", row)
	}
	all, err := client.Open(store.TableUsers).ReadRow(ctx, app+",u,")
	must.Succeed(t, err)
	cells := 0
	for _, family := range all {
		cells += len(family)
	}
	if cells > 10 {
		t.Errorf("%d cells are kept of 50 refreshes, want only the newest of seven columns", cells)
	}
}
