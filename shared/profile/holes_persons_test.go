package profile_test

import (
	"context"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/store"
)

// The tests of this file and of holes_links_test.go follow the traces by which each rule of links was found: one process stands
// before each of its requests in turn, while others act. functions/docs/design/rules.md has the rules, and
// model_links_holes_test.go the naive forms.

// process is what an actor does, with an engine of its own and the app as it was when the actor began.
type process func(ctx context.Context, e *profile.Engine, app config.App) error

func (s *harness) begin(name string, do process) *actor {
	s.t.Helper()
	e, app := s.neverFolding(), s.app()
	return s.start(name, func(ctx context.Context) error { return do(ctx, e, app) })
}

func applying(events ...store.LogEvent) process {
	return func(ctx context.Context, e *profile.Engine, app config.App) error {
		_, err := e.Apply(ctx, app, events)
		return err
	}
}

func unlinking(token, known string) process {
	return func(ctx context.Context, e *profile.Engine, app config.App) error {
		_, err := profile.IdentitiesOf(e).Unlink(ctx, app, token, known)
		return err
	}
}

func deleting(user string) process {
	return func(ctx context.Context, e *profile.Engine, _ config.App) error {
		_, err := e.Delete(ctx, appID, user)
		return err
	}
}

func reading(user string) process {
	return func(ctx context.Context, e *profile.Engine, app config.App) error {
		_, err := e.Read(ctx, app, user, 0)
		return err
	}
}

// bring runs a process to its end.
func (s *harness) bring(do process) {
	s.t.Helper()
	must.Succeed(s.t, do(ctx, s.neverFolding(), s.app()))
}

// deleteLater deletes a user, by a clock that is later than what was received so far.
func (s *harness) deleteLater(user string) {
	s.t.Helper()
	s.clock++
	s.bring(deleting(user))
}

// eachStop plays a trace with an actor that stops after every number of requests. stop lets the actor go so far, and reports
// whether it has more requests.
func eachStop(t *testing.T, play func(s *harness, stop func(*actor) bool)) {
	t.Parallel()
	onEveryLinked(t, func(_ *testing.T, s *harness) {
		atEvery(func(requests int) (goesOn bool) {
			s.clear()
			play(s, func(a *actor) bool {
				goesOn = s.upTo(a, requests)
				return goesOn
			})
			return goesOn
		})
	})
}

// A message of A reads whose A is after it has written the log: another one links A in between, and computes K.
func TestLinksAreReadAfterTheLog(t *testing.T) {
	eachStop(t, func(s *harness, stop func(*actor) bool) {
		s.apply(s.of("a", 1, ""), s.of("k", 1, ""))
		m := s.begin("message", applying(s.of("a", 2, "")))
		stop(m)
		s.apply(s.of("a", 3, "k"))
		s.finish(m)
		s.counts("k", 4)
		s.counts("a", 3)
	})
}

// A computation reads K's row, then the rows of the tokens, then the logs: an unlink that comes between two of these marks K,
// or is seen.
func TestComputationMeetsUnlink(t *testing.T) {
	for name, first := range map[string]func(*harness) process{
		"a message of the token": func(s *harness) process { return applying(s.of("a", 3, "")) },
		"a message of the user":  func(s *harness) process { return applying(s.of("k", 3, "")) },
		"a read":                 func(*harness) process { return reading("k") },
	} {
		t.Run(name, func(t *testing.T) {
			eachStop(t, func(s *harness, stop func(*actor) bool) {
				s.apply(s.of("a", 1, "k"), s.of("a", 2, ""), s.of("k", 1, ""))
				s.outdate()
				a := s.begin(name, first(s))
				stop(a)
				s.unlink("a", "k")
				s.finish(a)
				s.counts("k", len(s.logOf("k")))
			})
		})
	}
}

// K's ticket is drawn after the last of A's: a reader of K meets a block of A that covers a late event, while the message uncovers
// it. What the reader stores must be of an older ticket than what the message stores.
func TestLateEventOfATokenMeetsReader(t *testing.T) {
	t.Parallel()
	onEveryLinked(t, func(_ *testing.T, s *harness) {
		atEveryPair(func(first, second int) (messageGoesOn, readerGoesOn bool) {
			s.clear()
			s.apply(s.of("a", 1, "k"), s.of("a", 5, ""), s.of("k", 1, ""))
			s.foldUser("a")
			s.outdate()
			m := s.begin("message", applying(s.of("a", 3, "")))
			messageGoesOn = s.upTo(m, first)
			r := s.begin("reader", reading("k"))
			readerGoesOn = s.upTo(r, second)
			s.finish(m)
			s.finish(r)
			s.counts("k", 4)
			return messageGoesOn, readerGoesOn
		})
	})
}

// Each event of A ends the validity of K's stored profile, by the entry that holds the event's time: also a late one of a
// closed entry.
func TestEventsOfATokenDrawTicketsOfItsUsers(t *testing.T) {
	t.Parallel()
	onEveryLinked(t, func(_ *testing.T, s *harness) {
		s.apply(s.of("a", 1, "k"), s.of("a", 5, "k2"))
		for i := range 3 {
			s.counts("k", 1+i) // and stores it
			s.counts("k2", 1+i)
			s.bring(applying(s.of("a", 2+int64(i), "")))
			s.counts("k", 2+i)
			s.bring(applying(s.of("a", 6+int64(i), "")))
			s.counts("k2", 2+i)
		}
	})
}

// A change of links marks K after it, and before the answer: a reader computes K in between, and a plain ticket would leave the
// stored profile valid.
func TestChangeOfLinksMarks(t *testing.T) {
	t.Run("unlink", func(t *testing.T) {
		eachStop(t, func(s *harness, stop func(*actor) bool) {
			s.apply(s.of("a", 1, "k"), s.of("a", 2, ""), s.of("k", 1, ""))
			u := s.begin("unlink", unlinking("a", "k"))
			stop(u)
			s.read("k")
			s.finish(u)
			s.counts("k", 1)
			s.counts("a", 2)
		})
	})
	t.Run("second user", func(t *testing.T) {
		eachStop(t, func(s *harness, stop func(*actor) bool) {
			s.apply(s.of("a", 1, "k"), s.of("a", 6, ""), s.of("k", 1, ""))
			m := s.begin("login", applying(s.of("a", 5, "k2")))
			stop(m)
			s.read("k")
			s.read("k2")
			s.finish(m)
			s.counts("k", 2)
			s.counts("k2", 2)
		})
	})
}

// A process that dies after it has changed the entries has marked nobody, and the next one that sees them marks: a redelivery of
// the login, or any other event.
func TestUnmarkedChangeIsMarked(t *testing.T) {
	for name, next := range map[string]func(s *harness, login store.LogEvent) process{
		"redelivery":    func(_ *harness, login store.LogEvent) process { return applying(login) },
		"another event": func(s *harness, login store.LogEvent) process { return applying(login, s.of("a", 7, "")) },
	} {
		t.Run(name, func(t *testing.T) {
			eachStop(t, func(s *harness, stop func(*actor) bool) {
				s.apply(s.of("a", 1, "k"), s.of("a", 6, ""), s.of("k", 1, ""))
				s.counts("k", 3)
				login := s.of("a", 5, "k2")
				m := s.begin("login", applying(login))
				stop(m)
				s.kill(m)
				s.read("k")
				s.bring(next(s, login))
				s.counts("k", 2)
				s.counts("k2", len(s.logOf("a"))-1)
			})
		})
	}
}

// A tombstone of A is a change for which K is marked.
func TestDeletionOfATokenMarks(t *testing.T) {
	t.Parallel()
	onEveryLinked(t, func(_ *testing.T, s *harness) {
		s.apply(s.of("a", 1, "k"), s.of("a", 2, ""), s.of("k", 1, ""))
		s.counts("k", 3)
		s.deleteLater("a")
		s.counts("k", 1)
		s.counts("a", 0)
	})
}

// K lists A before A has the entry: a process dies between, and K would never read A.
func TestLinkDies(t *testing.T) {
	eachStop(t, func(s *harness, stop func(*actor) bool) {
		s.apply(s.of("a", 1, ""), s.of("k", 1, ""))
		s.counts("k", 1)
		login := s.of("a", 2, "k")
		m := s.begin("login", applying(login))
		stop(m)
		s.kill(m)
		s.bring(applying(login))
		s.counts("k", 3)
		s.outdate()
		s.counts("k", 3)
	})
}

// K's ticket looks at the list: the nightly round takes A off it while a message finds it listed, and links. The round takes off
// only while nobody has drawn a ticket of K, so it meets the message the other way round, too.
func TestLoginMeetsNightlyRound(t *testing.T) {
	before := func(s *harness) (login store.LogEvent) {
		s.apply(s.of("a", 1, "k"), s.of("k", 1, ""))
		s.unlink("a", "k")
		s.clock += minute
		return s.of("a", 20, "k")
	}
	after := func(s *harness) {
		s.counts("k", 3)
		s.outdate()
		s.counts("k", 3)
	}
	t.Run("login first", func(t *testing.T) {
		eachStop(t, func(s *harness, stop func(*actor) bool) {
			m := s.begin("login", applying(before(s)))
			stop(m)
			s.round(profile.RecomputeOptions{OnlyStale: true, Maintain: true})
			s.finish(m)
			after(s)
		})
	})
	t.Run("round first", func(t *testing.T) {
		eachStop(t, func(s *harness, stop func(*actor) bool) {
			login := before(s)
			r := s.startRound()
			stop(r)
			s.bring(applying(login))
			s.finish(r)
			after(s)
		})
	})
}

// The nightly round takes no token off the list that a deletion has not marked yet: the next attempt at it would not find it.
func TestRoundMeetsDeadDeletion(t *testing.T) {
	eachStop(t, func(s *harness, stop func(*actor) bool) {
		s.apply(s.of("a", -11*24, ""), s.of("a", 1, "k"), s.of("a", 2, ""), s.of("k", 1, ""))
		s.counts("a", 3)
		s.clock++
		d := s.begin("deletion", deleting("k"))
		stop(d)
		s.kill(d)
		s.round(profile.RecomputeOptions{OnlyStale: true, Maintain: true})
		s.deleteLater("k")
		s.counts("k", 0)
		s.counts("a", 1) // from before the lookback
		s.outdate()
		s.counts("a", 1)
	})
}

// The entries of A are in A's row alone, and change under a condition: a slow message of one login writes over what that of
// another has made, and an event would count for both.
func TestLoginsOfTwoMeet(t *testing.T) {
	eachStop(t, func(s *harness, stop func(*actor) bool) {
		s.apply(s.of("a", 1, ""), s.of("a", 3, ""), s.of("a", 5, ""))
		m := s.begin("first login", applying(s.of("a", 2, "k")))
		stop(m)
		s.bring(applying(s.of("a", 4, "k2")))
		s.finish(m)
		// If the first one comes too late it links nobody.
		if first := red(s.read("k")); first > 0 {
			s.counts("k", 3)
			s.counts("k2", 2)
		} else {
			s.counts("k", 0)
			s.counts("k2", 5)
		}
		intervals := s.cellOf("a").Entries
		for i := 1; i < len(intervals); i++ {
			if intervals[i].Since < intervals[i-1].To {
				s.t.Errorf("entries %+v overlap", intervals)
			}
		}
	})
}

// The lookback of a login ends where another one's entry ends, also after that was undone.
func TestLookbackEndsAtAnEnd(t *testing.T) {
	t.Parallel()
	onEveryLinked(t, func(_ *testing.T, s *harness) {
		s.apply(s.of("a", 1, ""), s.of("a", 2, "k"), s.of("a", 3, ""), s.of("a", 5, "k2"), s.of("a", 6, ""))
		s.counts("k", 3)
		s.counts("k2", 2)
		s.unlink("a", "k")
		s.counts("k", 0)
		s.counts("k2", 2)
		s.apply(s.of("a", 8, "k3"))
		s.counts("k3", 1)
	})
}

// An unlinked entry stays, and its clock is read under A's ticket: evidence that was acknowledged before links no more, however
// often it is delivered.
func TestUnlinkMeetsEvidence(t *testing.T) {
	eachStop(t, func(s *harness, stop func(*actor) bool) {
		first := s.of("a", 1, "k")
		s.apply(first, s.of("k", 1, ""))
		u := s.begin("unlink", unlinking("a", "k"))
		stop(u)
		undone := s.cellOf("a").Entries[0].State == links.Void
		s.clock += minute
		login := s.of("a", 23, "k")
		s.bring(applying(login))
		s.finish(u)
		s.bring(applying(login))
		s.bring(applying(first))
		if undone { // the login came later than the unlink, and is another link
			s.counts("k", 3)
		} else {
			s.counts("k", 1)
		}
		s.counts("a", 2)
	})
}
