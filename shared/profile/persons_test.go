package profile_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// A token that is linked is no user of its own where profiles are packed, until the link ends.
func TestLinkedTokensAreNotPacked(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		packed := func(want ...string) {
			t.Helper()
			var stored, changed, bulk []string
			must.Succeed(t, s.eng.ReadStored(ctx, s.app(), []string{"a", "b", "k"}, func(user string, _ []byte) error { stored = append(stored, user); return nil }))
			tickets := map[string]int64{}
			for _, user := range []string{"a", "b", "k"} {
				row, err := s.store.Users.ReadPrimary(ctx, appID, user, store.UserState)
				must.Succeed(t, err)
				tickets[user] = row.Ticket
			}
			must.Succeed(t, s.eng.ReadChanged(ctx, s.app(), tickets, func(user string, _ []byte, _ int64) error { changed = append(changed, user); return nil }))
			_, err := s.eng.Recompute(ctx, s.app(), store.Range{}, profile.RecomputeOptions{OnlyStale: true, Each: func(user string, _ []byte) error { bulk = append(bulk, user); return nil }},
				func(profile.Progress) error { return nil })
			must.Succeed(t, err)
			for _, got := range [][]string{stored, changed, bulk} {
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +packed):\n%s", diff)
				}
			}
		}
		s.apply(s.of("a", 1, ""), s.of("b", 1, ""), s.of("k", 1, ""))
		packed("a", "b", "k")
		s.apply(s.of("a", 2, "k"))
		packed("b", "k")
		s.apply(s.of("a", 3, ""))
		packed("b", "k")
		s.unlink("a", "k")
		packed("a", "b", "k")
	})
}

// Whose profile is served to an anonymous token, in an app that serves persons.
func TestServedAsPerson(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		s.apply(s.of("k", -5, ""), s.of("a", 1, ""))
		app := s.app()
		app.Identity.ServePersons = true
		served := func(when, of string, events int) {
			t.Helper()
			var got [3]profile.Result
			var err [3]error
			i := profile.IdentitiesOf(s.eng)
			got[0], err[0] = i.Read(ctx, app, "a", 0)
			got[1], err[1] = i.ReadRanking(ctx, app, "a")
			got[2], err[2] = i.ComputeRanking(ctx, app, "a", affinity.Compile(plain))
			for n, r := range got {
				if err[n] != nil || r.Of != of || red(r) != 30*float64(events) {
					t.Errorf("%s, read %d: %v of %q, error %v; want %d events of %q", when, n, red(r), r.Of, err[n], events, of)
				}
			}
			seen, token := 0, of
			if of == "" {
				token = "a"
			}
			must.Succeed(t, s.eng.ObjectsOf(ctx, app, token, affinity.Compile(plain), func(affinity.Event) error { seen++; return nil }))
			if seen != events {
				t.Errorf("%s: %d events of objects, want %d", when, seen, events)
			}
		}
		served("before the login", "", 1)
		weak := s.of("a", 2, "k")
		weak.Strong = false
		app.Identity.TrustPages = true
		_, err := s.eng.Apply(ctx, app, []store.LogEvent{weak})
		must.Succeed(t, err)
		s.counts("k", 3)
		served("by weak evidence", "", 2)
		s.apply(s.of("a", 2, "k")) // strong, of the same time
		served("by strong evidence of the same link", "k", 3)
		s.unlink("a", "k")
		s.clock++
		s.apply(s.of("a", 3, "k2"))
		served("by strong evidence", "k2", 3)
		s.apply(s.of("k2", 4, ""), s.of("a", 4, ""))
		served("afterwards", "k2", 5)
		s.clock++
		_, err = s.eng.OptOut(ctx, appID, "k2")
		must.Succeed(t, err)
		served("after the opt-out of the user", "", 0)
	})
}

// A block may reach over the intervals of two known users, and over a time that nobody has signed in for.
func TestBlocksAcrossIntervals(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		s.apply(s.of("a", -11*24, ""), s.of("a", 1, ""), s.of("a", 2, "k"), s.of("a", 3, ""), s.of("a", 5, "k2"), s.of("a", 6, ""))
		session := func(user string) affinity.Session {
			t.Helper()
			r, err := s.eng.Refresh(ctx, s.app(), user)
			must.Succeed(t, err)
			return r.Session
		}
		k, k2 := session("k"), session("k2")
		s.foldUser("a")
		for range 2 {
			s.counts("k", 3)
			s.counts("k2", 2)
			s.counts("a", 6)
			if diff := cmp.Diff([]affinity.Session{k, k2}, []affinity.Session{session("k"), session("k2")}); diff != "" {
				t.Errorf("sessions (-log +block):\n%s", diff)
			}
			s.outdate()
		}
	})
}

// An event that names a known user is theirs, too: while they are out it is dropped, whether it would link its token or not.
func TestEventsThatNameExcludedUsers(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		s.apply(s.of("a", 1, ""), s.of("a", 2, "k"), s.of("a", 5, "k2"), s.of("c", 5, "k2"))
		s.counts("k", 2)
		s.counts("k2", 2)
		s.counts("a", 3)
		s.clock++
		until, err := s.eng.OptOut(ctx, appID, "k")
		must.Succeed(t, err)
		_, err = s.eng.Purge(ctx, appID, "k", until)
		must.Succeed(t, err)
		s.counts("k", 0)
		s.counts("a", 1) // what the interval of k held is gone
		s.clock++
		dropped := func(e store.LogEvent) {
			t.Helper()
			for name, bring := range map[string]func(context.Context, config.App, []store.LogEvent) (profile.Outcome, error){
				"apply": s.eng.Apply, "import": s.eng.Import,
			} {
				o, err := bring(ctx, s.app(), []store.LogEvent{e})
				if err != nil || o.Refused != 1 || o.Applied != 0 {
					t.Errorf("%s: %+v, %v", name, o, err)
				}
			}
			if n := len(s.logOf("a")) + len(s.logOf("c")); n != 2 {
				t.Errorf("%d events are in the log", n)
			}
		}
		dropped(s.of("a", 6, "k")) // it would link
		dropped(s.of("c", 4, "k")) // late: k2 has signed in since, and counts what came before
		dropped(s.of("k2", 6, "k"))
		s.counts("a", 1)
		s.counts("c", 1)
		s.counts("k2", 2)
		s.clock++
		_, err = s.eng.OptIn(ctx, appID, "k")
		must.Succeed(t, err)
		s.clock += hour
		s.apply(s.of("a", 24, "k"))
		s.counts("k", 1)
		s.counts("a", 2)
		s.counts("k2", 2)
	})
}

// The opt-out of a known user takes along the tokens that nobody else has used, and their opt-in brings these back.
func TestOptOutTakesTokensAlong(t *testing.T) {
	onEveryLinked(t, func(t *testing.T, s *harness) {
		out := func(token string) bool {
			t.Helper()
			types, _, err := s.eng.OptedOut(ctx, appID, token)
			must.Succeed(t, err)
			return types == event.AllTypes
		}
		change := func(token string, opt func() (time.Time, error)) {
			t.Helper()
			s.clock++
			until, err := opt()
			must.Succeed(t, err)
			_, err = s.eng.Purge(ctx, appID, token, until)
			must.Succeed(t, err)
			s.clock += hour
		}
		optOut := func(token string) {
			t.Helper()
			change(token, func() (time.Time, error) { return s.eng.OptOut(ctx, appID, token) })
		}
		optIn := func(token string) {
			t.Helper()
			change(token, func() (time.Time, error) { return s.eng.OptIn(ctx, appID, token) })
		}
		s.apply(s.of("phone", 1, "k"), s.of("tablet", 1, "k"), s.of("tablet", 2, "k2"), s.of("own", 1, "k"), s.of("plain", 1, ""))
		s.counts("k", 3)
		optOut("own")
		s.counts("k", 2)
		optOut("k")
		if !out("phone") || out("tablet") || !out("own") || out("plain") || out("k2") {
			t.Errorf("out: phone %t, tablet %t, own %t, plain %t, k2 %t", out("phone"), out("tablet"), out("own"), out("plain"), out("k2"))
		}
		s.counts("k", 0)
		s.counts("phone", 0)
		s.counts("tablet", 1)
		s.counts("k2", 1)
		if n := len(s.logOf("phone")); n != 0 {
			t.Errorf("%d events of the phone are in the log", n)
		}
		o, err := s.eng.Apply(ctx, s.app(), []store.LogEvent{s.of("phone", 24, "")})
		if err != nil || o.Refused != 1 {
			t.Errorf("an event of the phone: %+v, %v", o, err)
		}
		optIn("k")
		if out("phone") || !out("own") || out("k") {
			t.Errorf("in again: phone out %t, own out %t, k out %t", out("phone"), out("own"), out("k"))
		}
		s.apply(s.of("phone", 24, ""))
		s.clock += hour
		s.apply(s.of("phone", 24, "k"))
		s.counts("k", 2)
		optOut("k")
		optIn("phone") // by itself
		optIn("k")
		optOut("phone")
		optIn("k")
		if !out("phone") {
			t.Error("the phone has opted out by itself, and is in by the opt-in of another")
		}
	})
}
