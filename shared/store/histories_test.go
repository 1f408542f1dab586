package store_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

func blockOf(ticket int64, n int) history.BlockID { return history.BlockID{Ticket: ticket, N: n} }

func putBlocks(t *testing.T, s fixture, user string, ids ...history.BlockID) {
	t.Helper()
	var writes []store.BlockWrite
	for _, id := range ids {
		writes = append(writes, store.BlockWrite{ID: id, Newest: 5, Value: fmt.Appendf(nil, "%s %d %d", user, id.Ticket, id.N)})
	}
	must.Succeed(t, s.Histories.WriteBlocks(context.Background(), app, user, writes))
}

func testBlocks(t *testing.T, s fixture) {
	ctx := context.Background()
	putBlocks(t, s, "u", blockOf(300, 0), blockOf(7, 1), blockOf(7, 0))
	putBlocks(t, s, "u+", blockOf(1, 0)) // '+' sorts before ','
	putBlocks(t, s, "v", blockOf(2, 0))
	var got []string
	collect := func(name store.BlockName, value []byte) error {
		if want := fmt.Sprintf("%s %d %d", name.User, name.ID.Ticket, name.ID.N); string(value) != want {
			t.Errorf("%+v holds %q", name, value)
		}
		got = append(got, fmt.Sprint(name.User, " ", name.ID.Ticket, ".", name.ID.N))
		return nil
	}
	expect := func(what string, err error, want ...string) {
		t.Helper()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", what, got, err, want)
		}
		got = nil
	}
	expect("all", s.Histories.ScanBlocks(ctx, app, "", "", collect), "u+ 1.0", "u 7.0", "u 7.1", "u 300.0", "v 2.0")
	expect("from u+ to v", s.Histories.ScanBlocks(ctx, app, "u+", "v", collect), "u+ 1.0", "u 7.0", "u 7.1", "u 300.0")
	expect("from u", s.Histories.ScanBlocks(ctx, app, "u", "", collect), "u 7.0", "u 7.1", "u 300.0", "v 2.0")
	expect("another app", s.Histories.ScanBlocks(ctx, app+"2", "", "", collect))
	names := []store.BlockName{{User: "v", ID: blockOf(2, 0)}, {User: "u", ID: blockOf(8, 0)}, {User: "u", ID: blockOf(7, 1)}}
	expect("by name, one of them absent", s.Histories.ReadBlocks(ctx, app, names, collect), "u 7.1", "v 2.0")
	if ids, err := s.Histories.ListBlocks(ctx, app, "u"); err != nil || !slices.Equal(ids, []history.BlockID{blockOf(7, 0), blockOf(7, 1), blockOf(300, 0)}) {
		t.Errorf("listed %v, %v", ids, err)
	}
	must.Succeed(t, s.Histories.DeleteBlocks(ctx, app, "u", []history.BlockID{blockOf(7, 0), blockOf(9, 9)}))
	err := s.Histories.ScanBlockKeys(ctx, app, "", "", func(name store.BlockName) error {
		return collect(name, fmt.Appendf(nil, "%s %d %d", name.User, name.ID.Ticket, name.ID.N))
	})
	expect("after a deletion", err, "u+ 1.0", "u 7.1", "u 300.0", "v 2.0")
	stop := fmt.Errorf("enough")
	if err := s.Histories.ScanBlocks(ctx, app, "", "", func(store.BlockName, []byte) error { return stop }); err == nil {
		t.Error("an error of the reader is swallowed")
	}
}

func testManyAndLargeBlocks(t *testing.T, s fixture) {
	ctx := context.Background()
	var writes []store.BlockWrite
	for n := range 6 {
		writes = append(writes, store.BlockWrite{ID: blockOf(1, n), Value: bytes.Repeat([]byte{byte(n)}, 1<<20)})
	}
	must.Succeed(t, s.Histories.WriteBlocks(ctx, app, "large", writes))
	var names []store.BlockName
	for i := range 5_000 { // keys of more than one request
		names = append(names, store.BlockName{User: fmt.Sprintf("user-with-a-token-of-some-length-%d", i), ID: blockOf(1, 0)})
	}
	for n := range 6 {
		names = append(names, store.BlockName{User: "large", ID: blockOf(1, n)})
	}
	found := 0
	err := s.Histories.ReadBlocks(ctx, app, names, func(name store.BlockName, value []byte) error {
		if len(value) != 1<<20 || value[0] != byte(name.ID.N) {
			t.Errorf("%v: %d bytes beginning with %d", name, len(value), value[0])
		}
		found++
		return nil
	})
	if err != nil || found != 6 {
		t.Errorf("found %d, %v; want 6", found, err)
	}
}

func manifest(version int64) []byte { return history.Manifest{Version: version}.AppendBinary(nil) }

func testSwaps(t *testing.T, s fixture) {
	ctx := context.Background()
	swap := func(was, now int64, want bool) {
		t.Helper()
		if done, err := s.Users.SwapManifest(ctx, app, "u", history.OfVersion(was), manifest(now)); done != want || err != nil {
			t.Errorf("swap of %d for %d: %v, %v; want %v", was, now, done, err, want)
		}
	}
	swap(3, 4, false) // there is none
	swap(0, 5, true)  // absent
	swap(0, 6, false)
	swap(4, 6, false)
	swap(5, 6, true)
	for range 3 { // a ticket rewrites the cell
		if row := ticket(t, s, "u"); !bytes.Equal(row.Manifest, manifest(6)) {
			t.Errorf("a ticket reads %x, want version 6", row.Manifest)
		}
	}
	swap(5, 7, false) // a superseded cell does not count
	swap(6, 256, true)
	swap(6, 8, false)
	swap(256, 9, true)
	if row := read(t, s, "u"); !bytes.Equal(row.Manifest, manifest(9)) {
		t.Errorf("%x, want version 9", row.Manifest)
	}
	ticket(t, s, "v") // leaves an empty cell
	if done, err := s.Users.SwapManifest(ctx, app, "v", history.OfVersion(0), manifest(1)); !done || err != nil {
		t.Errorf("an empty manifest is none: %v, %v", done, err)
	}
	// After a deletion it is not none any more.
	must.Succeed(t, s.Users.ForgetUser(ctx, app, "w", ticket(t, s, "w").Ticket, manifest(12)))
	if done, err := s.Users.SwapManifest(ctx, app, "w", history.OfVersion(0), manifest(13)); done || err != nil {
		t.Errorf("a swap across a deletion: %v, %v", done, err)
	}
}

func testCommits(t *testing.T, s fixture) {
	ctx := context.Background()
	commit := func(ticket, version int64, want bool) {
		t.Helper()
		if done, err := s.Users.CommitFold(ctx, app, "u", ticket, manifest(version)); done != want || err != nil {
			t.Errorf("commit at ticket %d: %v, %v; want %v", ticket, done, err, want)
		}
	}
	commit(1, 1, false) // no ticket was ever drawn
	for range 3 {
		ticket(t, s, "u")
	}
	commit(2, 2, false) // a superseded cell does not count
	commit(4, 2, false)
	commit(3, 3, true)
	if row := ticket(t, s, "u"); !bytes.Equal(row.Manifest, manifest(3)) || row.Ticket != 4 {
		t.Errorf("%+v, want the committed manifest at ticket 4", row)
	}
	commit(3, 4, false)
}
