package profile_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// call is a call of an SDK, so many hours after this time yesterday, that says that known has signed in under a token.
func (s *harness) call(token string, hours int64, known string) profile.SignIn {
	return profile.SignIn{User: token, Known: known, Time: s.clock - day + hours*hour, Receipt: s.clock, MessageID: "m", Strong: true}
}

func (s *harness) signIn(calls ...profile.SignIn) {
	s.t.Helper()
	must.Succeed(s.t, profile.IdentitiesOf(s.eng).SignedIn(ctx, s.app(), calls))
}

func (s *harness) refusals() *[]links.Reason {
	reasons := &[]links.Reason{}
	profile.IdentitiesOf(s.eng).SetRefused(func(_ string, r store.RefusedLink) { *reasons = append(*reasons, links.Reason(r.Reason)) })
	return reasons
}

func (s *harness) cellOf(token string) links.Cell {
	s.t.Helper()
	row, err := s.store.Users.ReadPrimary(ctx, appID, token, store.UserState)
	must.Succeed(s.t, err)
	cell, err := links.Parse(row.Links)
	must.Succeed(s.t, err)
	return cell
}

// A sign-in without an event links as one with an event does, at any order of the messages, and an unlink undoes it for
// good.
func TestSignInsLink(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		login := s.call("a", 3, "k")
		s.apply(s.of("a", 1, ""), s.of("k", -5, ""))
		s.counts("k", 1)
		s.signIn(login)
		s.counts("k", 2)
		s.apply(s.of("a", 4, ""))
		s.counts("k", 3)
		s.apply(s.of("a", 2, "")) // later than the sign-in that it comes before
		s.counts("k", 4)
		before := s.cellOf("a")
		s.signIn(login)
		s.signIn(s.call("a", 5, "k"))
		if after := s.cellOf("a"); after.Number != before.Number || len(after.Entries) != 1 || after.Entries[0].By != "m" || after.Entries[0].Source != links.FromCall {
			t.Errorf("after a second delivery: %+v, before: %+v", after, before)
		}
		s.unlink("a", "k")
		s.counts("k", 1)
		s.counts("a", 3)
		s.signIn(login)
		s.counts("k", 1)
		s.clock += hour
		s.signIn(s.call("a", 23, "k")) // a new one
		s.counts("k", 4)
	})
}

// A second user ends the interval of the first one, also if the messages come in another order.
func TestSignInsOfTwo(t *testing.T) {
	for _, first := range []string{"k", "k2"} {
		onEveryLinked(t, func(t *testing.T, s *harness) {
			s.apply(s.of("a", 1, ""), s.of("a", 4, ""), s.of("a", 5, ""))
			login := map[string]profile.SignIn{"k": s.call("a", 2, "k"), "k2": s.call("a", 3, "k2")}
			if s.signIn(login[first]); first == "k" {
				s.signIn(login["k2"])
				s.counts("k", 1)
				s.counts("k2", 2)
				return
			}
			reasons := s.refusals()
			s.signIn(login["k"])
			if !slices.Equal(*reasons, []links.Reason{links.TooLate}) {
				t.Errorf("refused as %v", *reasons)
			}
			s.counts("k", 0)
			s.counts("k2", 3)
		})
	}
}

// What a batch says in order is taken in order: the alias of a known user is refused, whatever the order of the list.
func TestSignInsOfABatch(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		reasons := s.refusals()
		s.signIn(s.call("k", 2, "other"), s.call("a", 1, "k"), s.call("x", 1, "x"))
		if !slices.Equal(*reasons, []links.Reason{links.TokenIsKnown}) {
			t.Errorf("refused as %v", *reasons)
		}
		if x := s.cellOf("x"); x.Role != links.None {
			t.Errorf("a call with equal tokens: %+v", x)
		}
	})
}

// Weak sign-ins, and those of nobody, read and write no row of a victim.
func TestRefusedSignIns(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		reasons := s.refusals()
		weak := s.call("a", 3, "victim")
		weak.Strong = false
		s.signIn(weak, s.call("undefined", 4, "victim"))
		if !slices.Equal(*reasons, []links.Reason{links.WeakKey, links.BadValue}) {
			t.Errorf("refused as %v", *reasons)
		}
		for _, token := range []string{"a", "victim", "undefined"} {
			if cell := s.cellOf(token); cell.Role != links.None || len(cell.List)+len(cell.Entries) > 0 {
				t.Errorf("%s: %+v", token, cell)
			}
		}
		_, err := s.apps.SetIdentity(ctx, appID, config.Identity{Mode: config.IdentityLink, Lookback: 10 * 24 * time.Hour, TrustPages: true}, 0)
		must.Succeed(t, err)
		s.signIn(weak)
		if cell := s.cellOf("a"); len(cell.Entries) != 1 || !cell.Entries[0].Weak {
			t.Errorf("an app that trusts pages: %+v", cell)
		}
	})
}

// A deletion of the known user has raised the tombstone, and died before it came to the anonymous token. The entry of
// before is no link, so a later sign-in makes one.
func TestSignInAfterAnUnfinishedDeletion(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		s.apply(s.of("a", 1, ""))
		s.signIn(s.call("a", 2, "k"))
		s.counts("k", 1)
		s.clock++
		must.Succeed(t, s.store.Users.AdvanceTombstone(ctx, appID, "k", affinity.Tombstone{DeletedUntil: s.clock, ReceivedUntil: s.clock}))
		s.clock += 2 * hour
		s.signIn(s.call("a", 23, "k"))
		s.apply(s.of("a", 24, ""))
		s.counts("k", 1)
	})
}

// A token whose row cannot be read fails alone.
func TestSignInsBesideADamagedRow(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		_, err := s.store.Users.SwapLinks(ctx, appID, "damaged", store.User{}, []byte("damaged"))
		must.Succeed(t, err)
		err = profile.IdentitiesOf(s.eng).SignedIn(ctx, s.app(), []profile.SignIn{s.call("damaged", 1, "x"), s.call("a", 2, "k")})
		if cell := s.cellOf("a"); err == nil || len(cell.Entries) != 1 {
			t.Errorf("%v, %+v", err, cell)
		}
	})
}

// Of an app that does not link tokens a sign-in writes nothing.
func TestSignInsWithoutIdentity(t *testing.T) {
	onEveryBigtable(t, func(t *testing.T, open opener) {
		s := newHarness(t, open)
		s.signIn(s.call("a", 1, "k"))
		row, err := s.store.Users.ReadPrimary(ctx, appID, "a", store.UserState)
		if err != nil || row.Ticket != 0 {
			t.Errorf("%+v, %v", row, err)
		}
	})
}

// Deliveries and unlinks at once: whatever the order, a sign-in that was received before an unlink links no more
// after it.
func TestSignInsBesideAnUnlink(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		s.apply(s.of("a", 1, ""), s.of("k", 1, ""))
		login := s.call("a", 2, "k")
		s.signIn(login)
		identities, app := profile.IdentitiesOf(s.eng), s.app()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := identities.SignedIn(ctx, app, []profile.SignIn{login}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Go(func() {
			if _, err := identities.Unlink(ctx, app, "a", "k"); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		s.counts("k", 1)
		s.counts("a", 1)
	})
}
