package store_test

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// cell puts a cell into a user's state, at a time of the test's choice.
func (s fixture) cell(t *testing.T, user, column string, at time.Time, value []byte) {
	t.Helper()
	m := bigtable.NewMutation()
	m.Set("u", column, bigtable.Time(at.Truncate(time.Millisecond)), value)
	must.Succeed(t, s.client.Open(store.TableUsers).Apply(context.Background(), app+","+user+",", m))
}

func counter(n byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, n} }

// What a condition is about is the newest cell: Bigtable keeps older ones until
// it collects them.
func testOlderVersions(t *testing.T, s fixture) {
	ctx, first, second := context.Background(), time.UnixMilli(1000), time.UnixMilli(2000)
	swap := func(user string, was int64, want bool) {
		t.Helper()
		if done, err := s.Users.SwapManifest(ctx, app, user, history.OfVersion(was), manifest(9)); done != want || err != nil {
			t.Errorf("%s: swap of %d: %v, %v; want %v", user, was, done, err, want)
		}
	}
	s.cell(t, "u", "m", second, manifest(6))
	s.cell(t, "u", "m", first, manifest(5))
	swap("u", 5, false)
	swap("u", 6, true)

	s.cell(t, "emptied", "m", second, nil)
	s.cell(t, "emptied", "m", first, manifest(5))
	swap("emptied", 5, false)
	swap("emptied", 0, true)

	s.cell(t, "folds", "c", second, counter(4))
	s.cell(t, "folds", "c", first, counter(3))
	for ticket, want := range map[int64]bool{3: false, 4: true} {
		if done, err := s.Users.CommitFold(ctx, app, "folds", ticket, manifest(9)); done != want || err != nil {
			t.Errorf("commit at %d: %v, %v; want %v", ticket, done, err, want)
		}
	}

	s.cell(t, "deleted", "d", second, counter(50))
	s.cell(t, "deleted", "d", first, counter(200))
	must.Succeed(t, s.Users.AdvanceTombstone(ctx, app, "deleted", affinity.Tombstone{DeletedUntil: 100}))
	if row := read(t, s, "deleted"); row.DeletedUntil != 100 {
		t.Errorf("deleted until %d, want 100: 50 was in force", row.DeletedUntil)
	}
}

// A machine whose clock is ahead has written the cell: what replaces it must not
// stay below. The in-process Bigtable is one machine.
func testLaterClock(t *testing.T, s fixture) {
	if s.collects {
		return
	}
	ctx, ahead := context.Background(), time.Now().Add(time.Hour)
	s.cell(t, "u", "m", ahead, manifest(5))
	s.cell(t, "u", "d", ahead, counter(50))
	inline := bigtable.NewMutation()
	inline.Set("h", "h", bigtable.Time(ahead.Truncate(time.Millisecond)), []byte("older"))
	must.Succeed(t, s.client.Open(store.TableUsers).Apply(ctx, app+",u,", inline))
	if done, err := s.Users.SwapManifest(ctx, app, "u", history.OfVersion(5), manifest(6), store.SetInline([]byte("newer"))); !done || err != nil {
		t.Fatalf("%v, %v", done, err)
	}
	if row, err := s.Users.ReadPrimary(ctx, app, "u", store.UserHistory); string(row.Inline) != "newer" || err != nil {
		t.Errorf("the inline block is %q, %v", row.Inline, err)
	}
	must.Succeed(t, s.Users.AdvanceTombstone(ctx, app, "u", affinity.Tombstone{DeletedUntil: 100}))
	if row := read(t, s, "u"); !bytes.Equal(row.Manifest, manifest(6)) || row.DeletedUntil != 100 {
		t.Errorf("%+v, want the manifest of version 6, deleted until 100", row)
	}
	s.cell(t, "u", "m", ahead, manifest(6))
	must.Succeed(t, s.Users.ForgetUser(ctx, app, "u", 1, manifest(7)))
	if row := read(t, s, "u"); !bytes.Equal(row.Manifest, manifest(7)) {
		t.Errorf("%x after the deletion, want the manifest of version 7", row.Manifest)
	}
}

func testOneSwapOfMany(t *testing.T, s fixture) {
	for was := range int64(5) {
		var wg sync.WaitGroup
		var swaps atomic.Int64
		for range 8 {
			wg.Go(func() {
				done, err := s.Users.SwapManifest(context.Background(), app, "u", history.OfVersion(was), manifest(was+1))
				if err != nil {
					t.Error(err)
				}
				if done {
					swaps.Add(1)
				}
			})
		}
		wg.Wait()
		if n := swaps.Load(); n != 1 {
			t.Errorf("%d of 8 swapped version %d, want one", n, was)
		}
	}
}

// The same rule holds for the summary as for the profile.
func testForgettingSummaries(t *testing.T, s fixture) {
	ctx := context.Background()
	put := func(ticket int64, text string) {
		t.Helper()
		write(t, s, store.ProfileWrite{User: "u", Row: store.User{Ticket: ticket}, Value: []byte("profile"), Summary: []byte(text)})
	}
	expect := func(want string) {
		t.Helper()
		err := s.Users.ScanUsers(ctx, app, "", "", 0, store.UserSummary, func(_ string, row store.User) error {
			if string(row.Summary) != want || !row.HasProfile || row.Profile != nil {
				t.Errorf("summary %q, want %q: %+v", row.Summary, want, row)
			}
			return nil
		})
		must.Succeed(t, err)
	}
	put(2, "two")
	put(1, "one, late")
	expect("two")
	must.Succeed(t, s.Users.ForgetUser(ctx, app, "u", 3, manifest(1)))
	put(2, "two, late")
	expect("")
	put(4, "four")
	expect("four")
	if row := read(t, s, "u"); row.Summary != nil || string(row.Profile) != "profile" {
		t.Errorf("%+v, want the profile alone", row)
	}
}

// inlineOf is a manifest that names an inline block.
func inlineOf(version int64) []byte {
	b := history.Block{Range: history.Range{To: history.End}, ID: history.BlockID{Ticket: version}, Inline: true}
	return history.Manifest{Version: version, Blocks: []history.Block{b}}.AppendBinary(nil)
}

// The inline block changes with the manifest, or not at all.
func testInlineChangesWithManifest(t *testing.T, s fixture) {
	ctx := context.Background()
	holds := func(step, want string) {
		t.Helper()
		row, err := s.Users.ReadPrimary(ctx, app, "u", store.UserHistory)
		got := ""
		if read := s.Users.ReadInline(ctx, app, []string{"u", "none"}, func(_ string, cell []byte) error { got += string(cell); return nil }); err != nil || read != nil {
			t.Fatal(err, read)
		}
		if string(row.Inline) != want || got != want || !row.HasInline {
			t.Fatalf("%s: the row holds %q and %q, want %q", step, row.Inline, got, want)
		}
		if other, err := s.Users.ReadUser(ctx, app, "u"); err != nil || other.Inline != nil || other.HasInline {
			t.Fatalf("%s: a read of the profile has %q, %v", step, other.Inline, err)
		}
	}
	swap := func(from int64, to []byte, want bool, changes ...store.RowChange) {
		t.Helper()
		if done, err := s.Users.SwapManifest(ctx, app, "u", history.OfVersion(from), to, changes...); done != want || err != nil {
			t.Fatalf("swap of version %d: %v, %v", from, done, err)
		}
	}
	ticket(t, s, "u")
	swap(7, inlineOf(8), false, store.SetInline([]byte("x")))
	holds("another version", "")
	swap(0, inlineOf(8), true, store.SetInline([]byte("a")))
	holds("set", "a")
	ticket(t, s, "u")
	holds("a ticket", "a")
	swap(9, manifest(10), false, store.DropInline())
	swap(7, manifest(10), false, store.DropInline())
	holds("other versions", "a")
	swap(8, inlineOf(12), true, store.SetInline([]byte("b")))
	swap(12, inlineOf(13), true)
	holds("replaced, and left alone", "b")
	if done, err := s.Users.CommitFold(ctx, app, "u", 1, inlineOf(16), store.SetInline([]byte("c"))); done || err != nil {
		t.Fatal(done, err)
	}
	holds("an older ticket", "b")
	if done, err := s.Users.CommitFold(ctx, app, "u", 2, manifest(16), store.DropInline()); !done || err != nil {
		t.Fatal(done, err)
	}
	holds("dropped", "")
	swap(16, inlineOf(24), true, store.SetInline([]byte("e")))
	must.Succeed(t, s.Users.ForgetUser(ctx, app, "u", 2, manifest(25)))
	holds("forgotten", "")
}
