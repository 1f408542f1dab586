package profile_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// linked is a fixture whose app links the tokens of one person, with a lookback of 10 days.
func newLinked(t testing.TB, open opener) *harness {
	t.Helper()
	s := newHarness(t.(*testing.T), open)
	s.setIdentity(config.IdentityCollect)
	s.setIdentity(config.IdentityLink)
	return s
}

func (b *fixture) setIdentity(mode config.IdentityMode) {
	b.t.Helper()
	_, err := b.apps.SetIdentity(ctx, appID, config.Identity{Mode: mode, Lookback: 10 * 24 * time.Hour}, 0)
	must.Succeed(b.t, err)
}

// of is an event of a token, so many hours after this time yesterday, that names a known user unless
// known is "".
func (s *harness) of(token string, hours int64, known string) store.LogEvent {
	e := bought(token, s.clock-day+hours*hour)
	e.Known, e.Strong, e.Receipt = known, true, s.clock
	return e
}

// counts checks that every way to the profile of a user counts so many events.
func (s *harness) counts(user string, events int) {
	s.t.Helper()
	want := 30 * float64(events)
	sets, err := s.eng.Compute(ctx, s.app(), []string{user}, affinity.Compile(plain))
	must.Succeed(s.t, err)
	if got := red(profile.Result{Profile: sets[user][0]}); got != want {
		s.t.Errorf("%s from blocks and log: %v, want %v", user, got, want)
	}
	r := s.read(user)
	if red(r) != want {
		s.t.Errorf("%s read (stored: %v): %v, want %v", user, r.Stored, red(r), want)
	}
}

func (s *harness) unlink(token, known string) {
	s.t.Helper()
	_, err := profile.IdentitiesOf(s.eng).Unlink(ctx, s.app(), token, known)
	must.Succeed(s.t, err)
}

func (s *harness) foldUser(user string) {
	s.t.Helper()
	if _, err := s.neverFolding().Fold(ctx, s.app(), user); err != nil {
		s.t.Fatal(err)
	}
}

func onEveryLinked(t *testing.T, test func(*testing.T, *harness)) {
	onEveryBigtable(t, func(t *testing.T, open opener) { test(t, newLinked(t, open)) })
}

// A login brings the evening before it, and an unlink takes it away again: both profiles are those of
// users who were never linked.
func TestLinkCountsAndUnlinks(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		s.apply(s.of("k", -5, ""))
		s.apply(s.of("a", 1, ""), s.of("a", 2, ""))
		s.counts("k", 1)
		s.apply(s.of("a", 3, "k"))
		s.counts("k", 4)
		s.counts("a", 3)
		s.apply(s.of("a", 4, ""))
		s.counts("k", 5)
		s.apply(s.of("k", 5, ""))
		s.counts("k", 6)
		s.importEvents(s.of("a", 6, ""))
		s.counts("k", 7)
		s.counts("a", 5)
		s.foldUser("a")
		s.foldUser("k")
		s.outdate()
		s.counts("k", 7)
		s.unlink("a", "k")
		s.counts("k", 2)
		s.counts("a", 5)
		s.apply(s.of("a", 7, ""), s.of("a", 3, "k")) // a second delivery of the login
		s.counts("k", 2)
		s.counts("a", 6)
	})
}

// A second known user on the token ends the interval of the first one.
func TestSecondKnownUser(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		s.apply(s.of("a", 1, ""))
		s.apply(s.of("a", 2, "k"))
		s.apply(s.of("a", 3, ""), s.of("a", 6, ""))
		s.counts("k", 4)
		s.apply(s.of("a", 5, "k2")) // arrives after the event of hour 6
		s.counts("k", 3)
		s.counts("k2", 2)
		s.apply(s.of("a", 4, "")) // late: the time of the first one
		s.counts("k", 4)
		s.counts("k2", 2)
		s.counts("a", 6)
		s.unlink("a", "k2")
		s.counts("k", 4)
		s.counts("k2", 0)
		s.counts("a", 6)
	})
}

// A message of both tokens ends, whichever request is the first to fail: the refresh of the anonymous token
// waits for that of the known user, which must not wait for it.
func TestFailedRefreshOfLinkedEnds(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		s.apply(s.of("a", 1, "k"), s.of("k", 1, ""))
		for fails := 0; ; fails++ {
			a := newActor("message")
			a.run(func(ctx context.Context) error {
				_, err := s.eng.Apply(ctx, s.app(), []store.LogEvent{s.of("a", 2, ""), s.of("k", 2, "")})
				return err
			})
			a.drive(dying(fails))
			if a.err == nil {
				break
			}
		}
		s.counts("k", 4)
	})
}

// The nightly round may take a token off a list before its link is there. Who links it lists it again.
func TestLinkMeetsNightlyRound(t *testing.T) {
	onEveryBigtable(t, func(t *testing.T, open opener) {
		for before, met := 0, true; met; before++ {
			s := newLinked(t, open)
			s.apply(s.of("a", 1, ""), s.of("k", 1, ""), s.of("old", 1, "k"))
			s.unlink("old", "k")
			a := newActor("link")
			a.run(func(ctx context.Context) error {
				return profile.IdentitiesOf(s.eng).Link(ctx, s.app(), "a", "k", "asked")
			})
			met = false
			a.drive(func(n int) verdict {
				if n == before {
					met = true
					_, err := s.eng.Recompute(ctx, s.app(), store.Range{}, profile.RecomputeOptions{OnlyStale: true, Maintain: true}, func(profile.Progress) error { return nil })
					must.Succeed(t, err)
				}
				return proceed
			})
			must.Succeed(t, a.err)
			s.outdate()
			s.counts("k", 2)
		}
	})
}

func TestDeletionsOfLinked(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		s.apply(s.of("a", 1, ""), s.of("a", 2, "k"), s.of("k", 3, ""))
		s.counts("k", 3)
		s.clock++
		_, err := s.eng.Delete(ctx, appID, "a")
		must.Succeed(t, err)
		s.counts("k", 1)
		s.counts("a", 0)
		s.clock += hour
		s.apply(s.of("a", 24, "k"))
		s.counts("k", 2)
		s.counts("a", 1)
	})
	onEveryLinked(t, func(t *testing.T, s *harness) {
		s.apply(s.of("a", -10*24-5, ""), s.of("a", 1, ""), s.of("a", 2, "k"), s.of("k", 3, ""))
		s.counts("k", 3)
		s.foldUser("a")
		s.clock++
		until, err := s.eng.Delete(ctx, appID, "k")
		must.Succeed(t, err)
		s.counts("k", 0)
		s.counts("a", 1) // what was before the lookback
		s.clock += hour
		_, err = s.eng.Purge(ctx, s.app().ID, "k", until)
		must.Succeed(t, err)
		s.counts("a", 1)
		if n := len(s.logOf("a")); n != 1 {
			t.Errorf("%d rows of the token are in the log after the purge", n)
		}
		s.apply(s.of("a", 1, "")) // received after the deletion
		s.apply(s.of("a", 24, ""))
		s.counts("a", 2)
		s.apply(s.of("a", 24, "k"))
		s.counts("k", 1)
	})
}

func (s *harness) logOf(token string) []affinity.Event {
	s.t.Helper()
	events, err := readLive(s.store, s.app(), token, store.User{})
	must.Succeed(s.t, err)
	return events
}

func TestRefusedLinks(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		var reasons []links.Reason
		profile.IdentitiesOf(s.eng).SetRefused(func(_ string, r store.RefusedLink) { reasons = append(reasons, links.Reason(r.Reason)) })
		refused := func(want links.Reason, e store.LogEvent) {
			t.Helper()
			reasons = nil
			s.apply(e)
			if !slices.Contains(reasons, want) {
				t.Errorf("%s with %s is refused as %v, want %s", e.User, e.Known, reasons, want)
			}
		}
		s.apply(s.of("a", 5, "k"))
		refused(links.TokenIsKnown, s.of("k", 6, "x"))
		refused(links.UserIsAnonymous, s.of("b", 6, "a"))
		refused(links.TooLate, s.of("a", 4, "k2"))
		s.unlink("a", "k")
		refused(links.Unlinked, s.of("a", 8, "k"))
		for n, known := range []string{"k1", "k2", "k3", "k4", "k5"} {
			s.apply(s.of("tablet", int64(n), known))
		}
		refused(links.Shared, s.of("tablet", 6, "k6"))
		s.counts("k5", 1)
		s.apply(s.of("tablet", 7, ""))
		s.counts("k5", 1)
		s.clock++
		_, err := s.eng.Delete(ctx, appID, "gone")
		must.Succeed(t, err)
		s.clock++
		refused(links.Deleted, s.of("c", 6, "gone"))
		_, err = s.eng.OptOut(ctx, appID, "out")
		must.Succeed(t, err)
		refused(links.OptedOut, s.of("c", 23, "out"))
		for n := range int64(6) {
			s.apply(s.of("d"+string(rune('0'+n)), n, "many"))
		}
		s.counts("many", 6)
		s.apply(s.of("d0", 7, "")) // the oldest was closed when the sixth came
		s.counts("many", 6)
		s.apply(s.of("d1", 7, ""))
		s.counts("many", 7)
	})
}

// Links that do not parse, as those of a newer release, concern their user alone: what is imported for others counts, and a
// message that is given up is buried.
func TestDamagedLinksAreOfOneUser(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		_, err := s.store.Users.SwapLinks(ctx, appID, "damaged", store.User{}, []byte("damaged"))
		must.Succeed(t, err)
		events := []store.LogEvent{s.of("damaged", 1, ""), s.of("good", 1, ""), s.of("a", 1, "damaged")}
		_, imported := s.eng.Import(ctx, s.app(), events)
		for name, err := range map[string]error{"import": imported, "abandon": s.eng.Abandon(ctx, s.app(), events)} {
			var faulty profile.Faulty
			if !errors.As(err, &faulty) || faulty["damaged"] == nil || faulty["good"] != nil {
				t.Errorf("%s: %T %v", name, err, err)
			}
		}
		s.counts("good", 1)
		// The list of a user who is linked names a token that is damaged: the round of the user ends, and the app's goes on.
		_, err = s.store.Users.SwapLinks(ctx, appID, "k", store.User{}, (&links.Cell{Role: links.Known, List: []links.Listed{{Token: "damaged", At: 1}}}).Append(nil))
		must.Succeed(t, err)
		s.apply(s.of("z", 1, ""))
		p, err := s.eng.Recompute(ctx, s.app(), store.Range{}, profile.RecomputeOptions{OnlyStale: true, Fold: true, Maintain: true}, func(profile.Progress) error { return nil })
		if err != nil || !p.Done {
			t.Errorf("nightly: %+v, %v", p, err)
		}
	})
}
