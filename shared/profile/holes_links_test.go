package profile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// isDeleted reports whether the row of a user has a tombstone.
func (s *harness) isDeleted(user string) bool {
	s.t.Helper()
	row, err := s.store.Users.ReadPrimary(ctx, appID, user, store.UserState)
	must.Succeed(s.t, err)
	return row.DeletedUntil > 0
}

// A tombstone of K is enough, whatever else of the deletion is done: it covers what A did for K, the entry lives on for nobody, and
// does not pass for the link that a later login asks for.
func TestTombstoneOfAUserIsEnough(t *testing.T) {
	eachStop(t, func(s *harness, stop func(*actor) bool) {
		s.apply(s.of("a", 1, ""), s.of("a", 2, "k"), s.of("k", 3, ""))
		s.counts("k", 3)
		s.clock++
		d := s.begin("deletion", deleting("k"))
		stop(d)
		s.kill(d)
		gone := s.isDeleted("k")
		want := func(deleted, alive int) {
			s.t.Helper()
			if gone {
				alive = deleted
			}
			s.counts("k", alive)
		}
		want(0, 3)
		s.clock += hour
		s.apply(s.of("a", 24, ""))
		want(0, 4)
		s.clock += hour
		s.apply(s.of("a", 24, "k"))
		want(2, 5) // its lookback brings back what came since the deletion
		s.deleteLater("k")
		s.counts("k", 0)
	})
}

// A deletion of A marks K, and keeps the entries: an attempt that dies leaves to the next one whom to mark.
func TestDeletionOfATokenDies(t *testing.T) {
	eachStop(t, func(s *harness, stop func(*actor) bool) {
		s.apply(s.of("a", 1, "k"), s.of("a", 2, ""), s.of("k", 1, ""))
		s.counts("k", 3)
		s.clock++
		d := s.begin("deletion", deleting("a"))
		stop(d)
		s.kill(d)
		s.read("k")
		s.bring(deleting("a"))
		s.counts("k", 1)
		s.counts("a", 0)
	})
}

// A deletion of K marks A, and nobody but who does that notes it: an answer of the deletion is lost, and an import of A, which sees
// what the deletion has done, dies. An import takes one step after the other.
func TestDeletionOfAUserMeetsImport(t *testing.T) {
	t.Parallel()
	onEveryLinked(t, func(_ *testing.T, s *harness) {
		atEveryPair(func(first, second int) (deletionGoesOn, importGoesOn bool) {
			s.clear()
			s.apply(s.of("a", -11*24, ""), s.of("a", 1, "k"), s.of("k", 1, ""))
			late := s.of("a", 2, "") // received before the deletion, and delivered after
			s.counts("a", 2)         // and stores it
			s.clock++
			d := s.begin("deletion", deleting("k"))
			if deletionGoesOn = s.upTo(d, first); deletionGoesOn {
				s.answer(d, lose)
			}
			m := s.begin("import", func(ctx context.Context, e *profile.Engine, app config.App) error {
				_, err := e.Import(ctx, app, []store.LogEvent{late})
				return err
			})
			importGoesOn = s.upTo(m, second)
			s.kill(m)
			for s.upTo(d, 1) {
			}
			if d.err != nil {
				s.bring(deleting("k"))
			}
			s.counts("a", 1)
			s.counts("k", 0)
			return deletionGoesOn, importGoesOn
		})
	})
}

// What A did for K is gone with K, also after the purge, and if an event of it is delivered once more.
func TestDeadIntervalStays(t *testing.T) {
	t.Parallel()
	onEveryLinked(t, func(_ *testing.T, s *harness) {
		evening := s.of("a", 2, "")
		s.apply(s.of("a", -11*24, ""), s.of("a", 1, "k"), evening)
		s.counts("a", 3)
		s.deleteLater("k")
		s.counts("a", 1)
		until := s.clock + 2
		_, err := s.eng.Purge(ctx, appID, "k", time.UnixMilli(until))
		must.Succeed(s.t, err)
		s.clock += hour
		s.round(profile.RecomputeOptions{OnlyStale: true, Maintain: true})
		s.bring(applying(evening))
		s.counts("a", 1)
		if n := len(s.logOf("a")); n != 1 {
			s.t.Errorf("%d events of the token are in the log, want 1", n)
		}
	})
}

// A role is written once, under a condition: each of two messages names the other's token, and one links.
func TestTokensThatNameEachOther(t *testing.T) {
	t.Parallel()
	onEveryLinked(t, func(_ *testing.T, s *harness) {
		atEveryPair(func(first, second int) (firstGoesOn, secondGoesOn bool) {
			s.clear()
			x := s.begin("x", applying(s.of("x", 1, "y")))
			firstGoesOn = s.upTo(x, first)
			y := s.begin("y", applying(s.of("y", 2, "x")))
			secondGoesOn = s.upTo(y, second)
			s.finish(x)
			s.finish(y)
			of := map[string]links.Cell{"x": s.cellOf("x"), "y": s.cellOf("y")}
			linked := len(of["x"].Entries) + len(of["y"].Entries)
			for token, cell := range of {
				if cell.Role != links.Anonymous && len(cell.Entries) > 0 || cell.Role != links.Known && len(cell.List) > 0 || linked > 1 {
					s.t.Errorf("after %d and %d requests %s is %+v", first, second, token, of)
				}
			}
			if linked == 0 { // each has refused the other: no token is both
				s.counts("x", 1)
				s.counts("y", 1)
			}
			return firstGoesOn, secondGoesOn
		})
	})
}

// Who is closed by the limit is decided in K's list, and K's ticket looks: the login of the oldest evidence links after another
// one's has closed it.
func TestLoginsAtTheLimitMeet(t *testing.T) {
	eachStop(t, func(s *harness, stop func(*actor) bool) {
		for i := range links.MaxOpen - 1 {
			s.apply(s.of(fmt.Sprint("t", i), 10+int64(i), "k"))
		}
		oldest := s.of("old", 1, "k")
		m := s.begin("oldest login", applying(oldest))
		stop(m)
		s.bring(applying(s.of("new", 20, "k")))
		s.finish(m)
		s.bring(applying(oldest)) // once more
		open := 0
		for _, token := range []string{"old", "new", "t0", "t1", "t2", "t3"} {
			for _, e := range s.cellOf(token).Entries {
				if e.To == links.Open {
					open++
				}
			}
		}
		if open > links.MaxOpen {
			s.t.Errorf("%d tokens are open, want at most %d", open, links.MaxOpen)
		}
		s.apply(s.of("old", 21, ""))
		s.counts("k", links.MaxOpen+len(s.cellOf("old").Entries)) // not what the oldest did after it was closed
	})
}

// Links are switched on by phases. A process that only collects brings the events of A to K, so that no event is lost that it
// acknowledges while others link already.
func TestSwitchMeetsMessage(t *testing.T) {
	t.Parallel()
	onEveryBigtable(t, func(t *testing.T, open opener) {
		atEvery(func(requests int) bool {
			s := newHarness(t, open)
			if _, err := s.apps.SetIdentity(ctx, appID, config.Identity{Mode: config.IdentityLink, Lookback: 24 * time.Hour}, 0); err == nil {
				t.Fatal("links were switched on at once")
			}
			s.apply(s.of("a", 1, "k"), s.of("k", 1, "")) // links nobody
			s.setIdentity(config.IdentityCollect)
			s.apply(s.of("a", 2, "k"))
			s.counts("k", 1)
			m := s.begin("message", applying(s.of("a", 3, "")))
			goesOn := s.upTo(m, requests)
			s.setIdentity(config.IdentityLink)
			s.read("k")
			s.finish(m)
			s.counts("k", 4)
			return goesOn
		})
	})
}

// Who has opted out of everything has no links, and A follows K if K alone has used it: at each request of the change, the profiles
// of both hold nothing that the change was to take.
func TestOptOutOfAUserMeetsMessage(t *testing.T) {
	eachStop(t, func(s *harness, stop func(*actor) bool) {
		s.apply(s.of("a", 1, "k"), s.of("k", 1, ""))
		s.counts("k", 2)
		s.clock++
		o := s.begin("opt-out", func(ctx context.Context, e *profile.Engine, _ config.App) error {
			_, err := e.OptOut(ctx, appID, "k")
			return err
		})
		stop(o)
		s.bring(applying(s.of("a", 2, "k")))
		s.finish(o)
		s.counts("k", 0)
		s.counts("a", 0)
		for _, user := range []string{"a", "k"} {
			if types, _, err := s.eng.OptedOut(ctx, appID, user); err != nil || types != event.AllTypes {
				s.t.Errorf("%s is out of %v, %v", user, types.List(), err)
			}
		}
		if sets, err := s.eng.Compute(ctx, s.app(), []string{"k"}, affinity.Compile(plain)); err != nil || sets["k"][0].Known {
			s.t.Errorf("the user is known: %v", err)
		}
	})
}
