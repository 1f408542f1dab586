package audit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// newLinkedBench is a bench whose app links tokens, with a lookback of 10 days.
func newLinkedBench(t *testing.T) *harness {
	t.Helper()
	b := newBench(t)
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := b.apps.SetIdentity(ctx, appID, config.Identity{Mode: mode, Lookback: 10 * 24 * time.Hour}, 0)
		b.must(err)
	}
	return b
}

// signIn is an event of a token so many hours ago, under which known has signed in unless it is "".
func (b *harness) signIn(token string, ago int64, known string) store.LogEvent {
	e := bought(token, b.clock-ago*hour, "Red", "Acme")
	e.ID = token // no two tokens share an ID
	e.Known, e.Strong, e.Receipt = known, true, b.clock
	return e
}

// Profiles of known users agree with the log of all their tokens: with links that are open, closed, undone and
// deleted, with blocks, and after an opt-out.
func TestAuditOfPersons(t *testing.T) {
	b := newLinkedBench(t)
	b.apply(b.signIn("a", 300, ""), b.signIn("a", 100, ""), b.signIn("ann", 90, ""))
	b.apply(b.signIn("a", 80, "ann"), b.signIn("b", 70, "ann"), b.signIn("b", 60, ""))
	b.apply(b.signIn("a", 50, "bob"), b.signIn("a", 40, ""), b.signIn("c", 30, "gone"), b.signIn("c", 20, ""))
	b.fold("a")
	b.apply(b.signIn("a", 10, ""), b.signIn("d", 9, "ann"), b.signIn("e", 8, "ann"))
	all := []string{"a", "b", "c", "d", "e", "ann", "bob", "gone", "out"}
	check := func(events int) {
		t.Helper()
		if r := b.run(all...); len(r.Differences) > 0 || r.Events != events || r.Compared != len(all) {
			t.Errorf("%d events of %d users, want %d; %v", r.Events, r.Compared, events, r.Differences)
		}
	}
	check(6 + 2 + 2 + 1 + 1 + 8 + 3 + 2) // of a, b, c, d, e, ann, bob, gone
	_, err := profile.IdentitiesOf(b.eng).Unlink(ctx, b.app(), "b", "ann")
	b.must(err)
	check(6 + 2 + 2 + 1 + 1 + 6 + 3 + 2)
	b.clock += hour
	_, err = b.eng.Delete(ctx, appID, "gone")
	b.must(err)
	check(6 + 2 + 0 + 1 + 1 + 6 + 3)
	_, err = b.eng.Delete(ctx, appID, "d") // the audit reads its own events until the purge
	b.must(err)
	check(6 + 2 + 0 + 1 + 1 + 5 + 3)
	_, err = b.eng.OptOut(ctx, appID, "e", event.View)
	b.must(err)
	check(6 + 2 + 0 + 1 + 1 + 4 + 3)
	b.apply(b.signIn("f", 0, "out"))
	_, err = b.eng.OptOut(ctx, appID, "out")
	b.must(err)
	check(6 + 2 + 0 + 1 + 1 + 4 + 3)
}

// Blocks of a token hold events of types that the known user has opted out of.
func TestAuditOfPersonWhoOptedOutOfTypes(t *testing.T) {
	b := newLinkedBench(t)
	b.apply(b.signIn("ann", 3, ""))
	b.clock += hour
	_, err := b.eng.OptOut(ctx, appID, "ann", event.Conversion)
	b.must(err)
	b.clock += 24 * hour
	seen := b.signIn("a", 5, "ann")
	seen.Type, seen.Name = event.View, "Seen"
	b.apply(seen)
	for n := range 2 { // blocks that are too large to be merged
		b.clock += 30 * 24 * hour
		e := b.signIn("a", 4, "")
		for i := range 2000 {
			e.Counts = append(e.Counts, affinity.Count{Facet: "size", Value: fmt.Sprint(strings.Repeat("x", 40), n, i), N: 1})
		}
		b.apply(e)
		b.fold("a")
	}
	if m, err := history.ParseManifest(b.row("a").Manifest); err != nil || len(m.Blocks) < 2 {
		t.Fatalf("%d blocks, %v, want several", len(m.Blocks), err)
	}
	b.wants("a ann")
}

// Random logins, events, unlinks and deletions leave nothing that an audit finds.
func TestAuditOfRandomPersons(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		b := newLinkedBench(t)
		tokens, users := []string{"a", "b", "c"}, []string{"k", "l", "m"}
		for range 40 {
			b.clock += hour
			token, known := tokens[rnd.IntN(3)], users[rnd.IntN(3)]
			switch rnd.IntN(8) {
			case 0, 1:
				b.apply(b.signIn(token, rnd.Int64N(30), known))
			case 2:
				b.apply(b.signIn(known, rnd.Int64N(30), ""))
			case 3:
				_, _ = profile.IdentitiesOf(b.eng).Unlink(ctx, b.app(), token, known)
			case 4:
				if rnd.IntN(3) == 0 {
					_, err := b.eng.Delete(ctx, appID, []string{token, known}[rnd.IntN(2)])
					b.must(err)
				}
			case 5:
				_, err := b.eng.Fold(ctx, b.app(), token)
				b.must(err)
			default:
				b.apply(b.signIn(token, rnd.Int64N(30), ""))
			}
		}
		if r := b.run("a", "b", "c", "k", "l", "m"); len(r.Differences) > 0 || b.waits > 0 {
			t.Errorf("seed %d: %v", seed, r.Differences)
		}
	}
}

// A profile that lacks an event of another token is reported.
func TestProfileWithoutLinkedEventIsReported(t *testing.T) {
	b := newLinkedBench(t)
	b.apply(b.signIn("ann", 3, ""), b.signIn("a", 2, "ann"))
	b.wants("a ann")
	b.must(b.store.Events.Log(appID, b.app().Log).Append(ctx, []store.LogEvent{b.signIn("a", 1, "")}))
	if r := b.run("ann"); r.Differing != 1 || r.Differences[0].Which != "stored" {
		t.Errorf("%v, want a stored profile without an event of the other token", r.Differences)
	}
}

// Links that no protocol leaves are reported.
func TestDamagedLinksAreReported(t *testing.T) {
	b := newLinkedBench(t)
	b.apply(b.signIn("a", 50, "ann"), b.signIn("a", 40, "bob"))
	change := func(token string, change func(*links.Cell)) {
		t.Helper()
		row := b.row(token)
		cell, err := links.Parse(row.Links)
		b.must(err)
		change(&cell)
		if done, err := b.store.Users.SwapLinks(ctx, appID, token, row, cell.Append(nil)); err != nil || !done {
			t.Fatal(done, err)
		}
	}
	b.wants("a ann bob")
	change("bob", func(c *links.Cell) { c.List = nil })
	b.outdate("bob")
	b.wants("a ann bob", "a: links unlisted bob: want <nil>, got <nil>")
	change("a", func(c *links.Cell) { c.Entries[0].To = links.Open })
	if r := b.run("a"); fmt.Sprint(r.Differences) != "[a: links overlap ann and bob: want <nil>, got <nil> a: links unlisted bob: want <nil>, got <nil>]" {
		t.Errorf("%v, want overlapping entries, and an unlisted token", r.Differences)
	}
}

// outdate makes the stored profile of a user invalid.
func (b *harness) outdate(user string) {
	b.t.Helper()
	_, err := b.store.Users.TakeLinkedMark(ctx, appID, user)
	b.must(err)
}
