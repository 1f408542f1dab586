package profile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

func (s *harness) startOptOut(types ...event.Type) *actor {
	return s.start("opt out", func(ctx context.Context) error {
		_, err := s.neverFolding().OptOut(ctx, appID, "u", types...)
		return err
	})
}

func (s *harness) startOptIn() *actor {
	return s.start("opt in", func(ctx context.Context) error {
		_, err := s.neverFolding().OptIn(ctx, appID, "u")
		return err
	})
}

// optOut returns once receipts count again.
func (s *harness) optOut(types ...event.Type) {
	s.t.Helper()
	until, err := s.eng.OptOut(ctx, appID, "u", types...)
	s.after(until, err)
}

func (s *harness) optIn() {
	s.t.Helper()
	until, err := s.eng.OptIn(ctx, appID, "u")
	s.after(until, err)
}

func (s *harness) after(until time.Time, err error) {
	s.t.Helper()
	must.Succeed(s.t, err)
	s.clock = max(s.clock, until.UnixMilli()+1)
}

// view is an event received now that counts a tenth of a purchase.
func (s *harness) view(by int64) store.LogEvent {
	e := s.ahead(by)
	e.Type, e.Name, e.ID = event.View, "Viewed", "v"+e.ID[1:]
	return e
}

// rowCount returns how many events the log holds.
func (s *harness) rowCount() int {
	s.t.Helper()
	n := 0
	all := []store.UserRange{{User: "u", To: history.End}}
	err := s.store.Events.ReadLog(ctx, appID, s.app().Log, all, func(string, store.LogRow) error { n++; return nil })
	must.Succeed(s.t, err)
	return n
}

// expectGone checks that every way to the user finds nobody, and that nothing is stored.
func (s *harness) expectGone() {
	s.t.Helper()
	s.expect(0)
	if r := s.read("u"); r.Known {
		s.t.Errorf("%+v is known", r.Profile)
	}
	ranking, err := s.eng.ReadRanking(ctx, s.app(), "u")
	if err != nil || ranking.Known || len(ranking.Session.Events) > 0 {
		s.t.Errorf("a ranking knows %+v, %v", ranking, err)
	}
	many, err := s.eng.ReadMany(ctx, s.app(), []string{"u"}, 0)
	if err != nil || many["u"].Known {
		s.t.Errorf("a batch knows %+v, %v", many["u"].Profile, err)
	}
	row, err := s.store.Users.ReadUser(ctx, appID, "u")
	if err != nil || len(row.Profile)+len(row.Session)+len(s.manifest().Blocks) > 0 {
		s.t.Errorf("the row holds %+v, %v; want nothing of the user", row, err)
	}
	if n := s.rowCount(); n != 0 {
		s.t.Errorf("%d events are in the log, want none", n)
	}
}

// A message meets an opt-out at each of its requests. Ticket and opt-out are of one
// instant: the message finds the user out and drops its rows, or had written them before,
// and the purge finds them.
func TestMessageMeetsOptOut(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		for _, types := range [][]event.Type{nil, {event.Conversion}} {
			atEvery(func(requests int) bool {
				s.clear()
				s.apply(s.ahead(0))
				events := []store.LogEvent{s.ahead(second)}
				if requests < 2 { // a clock that is far ahead received it, and the ticket comes last
					events = append(events, received(bought("u", s.clock+60*second), s.clock+60*second))
				}
				m := s.startApply(s.neverFolding(), events...)
				goesOn := s.upTo(m, requests)
				o := s.startOptOut(types...)
				for o.before != "" { // in turns or, for every other number, at once
					s.step(o, 1)
					if requests%2 == 0 && requests > 0 {
						s.upTo(m, 1)
					}
				}
				s.finish(o)
				s.expect(0)
				s.finish(m)
				s.expect(0)
				s.round(profile.RecomputeOptions{Maintain: true})
				s.clock += 2 // the slack is over
				s.purge(s.clock)
				if s.expect(0); types == nil {
					s.expectGone()
				} else if n := s.rowCount(); n != 0 {
					t.Errorf("%d events are in the log, want none", n)
				}
				return goesOn
			})
		}
	})
}

// Ingest does not know who is out, or accepted an event before. It is refused where it is
// applied, in each of the ways to the log.
func TestEventsOfOptedOutUserAreRefused(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		before := s.ahead(0)
		s.optOut()
		late := received(bought("u", s.clock-hour), s.clock) // much earlier than its receipt
		for name, apply := range map[string]func([]store.LogEvent) (profile.Outcome, error){
			"a message": func(e []store.LogEvent) (profile.Outcome, error) { return s.eng.Apply(ctx, s.app(), e) },
			"an import": func(e []store.LogEvent) (profile.Outcome, error) { return s.eng.Import(ctx, s.app(), e) },
			"a message that is given up": func(e []store.LogEvent) (profile.Outcome, error) {
				m := s.startApply(s.neverFolding(), e...)
				s.step(m, 1) // it is in the log
				s.kill(m)
				return profile.Outcome{Refused: len(e)}, s.eng.Abandon(ctx, s.app(), e)
			},
		} {
			events := []store.LogEvent{before, late, s.ahead(5 * second)}
			o, err := apply(events)
			if err != nil || o != (profile.Outcome{Refused: len(events)}) {
				t.Errorf("%s: %+v, %v; want all refused", name, o, err)
			}
			s.expectGone()
		}
		s.round(profile.RecomputeOptions{Maintain: true})
		s.round(profile.RecomputeOptions{OnlyStale: true})
		s.expectGone()
		if n, _, err := s.eng.Verify(ctx, s.app(), store.Range{}, time.Time{}); n != 0 || err != nil {
			t.Errorf("%d stale profiles, %v", n, err)
		}
		if types, _, err := s.eng.OptedOut(ctx, appID, "u"); types != event.AllTypes || err != nil {
			t.Errorf("out of %v, %v; want all", types.List(), err)
		}
	})
}

// What was received while the user was out stays out, also if it is still on its way when
// they opt in again. What they do then counts, also if it is the same event.
func TestOptInBringsNothingBack(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		atEvery(func(requests int) bool {
			s.clear()
			s.apply(s.ahead(0))
			s.optOut()
			again := s.ahead(10 * second)
			m := s.startApply(s.neverFolding(), again)
			goesOn := s.upTo(m, requests)
			s.optIn()
			s.expect(0)
			s.apply(received(again, s.clock)) // the same event, received later
			s.expect(1)
			s.finish(m)
			s.expect(1)
			s.purge(s.clock)
			s.apply(s.ahead(0))
			s.expect(2)
			return goesOn
		})
	})
}

// A user opts in with a clock that was read long ago, while a message of theirs is refused
// and delivered again. The second delivery must not count: the first drops its row.
func TestOptInCoversWhatWasRefused(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		for requests := range 5 { // of the change that is overtaken
			s.clear()
			s.optOut()
			in := s.startOptIn()
			s.step(in, requests)
			s.clock += 10 * second
			e := s.ahead(0)
			m := s.startApply(s.neverFolding(), e)
			s.step(m, 1)
			if m.before != "ReadModifyWriteRow" {
				t.Fatalf("the message stands before %s, want its ticket", m.before)
			}
			s.step(m, 1)
			refused := m.before == "CheckAndMutateRow"
			s.clock += second
			s.finish(in)
			o := s.apply(e)
			s.finish(m)
			s.expect(o.Applied)
			if !refused && o.Applied == 0 {
				t.Errorf("after %d requests the event was not refused, and is not counted", requests)
			}
			s.clock += second
			s.apply(s.ahead(0))
			s.expect(o.Applied + 1)
		}
	})
}

// A process dies while a user opts out or in. Whatever it has done holds, and the next
// attempt completes it.
func TestChangeOfOptOutDies(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		atEvery(func(requests int) bool {
			s.clear()
			s.apply(s.at(1), s.at(2))
			s.fold()
			s.apply(s.ahead(0))
			if s.read("u"); !s.read("u").Stored {
				t.Fatal("no profile is stored")
			}
			o := s.startOptOut()
			outGoesOn := s.upTo(o, requests)
			s.kill(o)
			types, _, err := s.eng.OptedOut(ctx, appID, "u")
			must.Succeed(t, err)
			s.expect(map[event.Types]int{0: 3, event.AllTypes: 0}[types])
			s.clock += 2
			s.optOut()
			s.purge(s.clock)
			s.expectGone()
			s.apply(s.ahead(0))
			i := s.startOptIn()
			inGoesOn := s.upTo(i, requests)
			s.kill(i)
			s.expect(0)
			s.optIn()
			s.expect(0)
			s.apply(s.ahead(0))
			s.expect(1)
			return outGoesOn || inGoesOn
		})
	})
}

// A recompute that reads a user's row again, because a block is lost, finds that the user
// has opted out in between. It stores nothing of them.
func TestRecomputeMeetsOptOut(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.applyFolded()
		ids, err := s.store.Histories.ListBlocks(ctx, appID, "u")
		if err != nil || len(ids) != 1 {
			t.Fatalf("blocks %v, %v", ids, err)
		}
		lost := bigtable.NewMutation()
		lost.DeleteRow()
		must.Succeed(t, s.client.Open(store.TableHistories).Apply(ctx, fmt.Sprintf("%s,u,%016x,%04x", appID, ids[0].Ticket, ids[0].N), lost))
		r := s.startRecompute()
		s.step(r, 1) // the row
		if _, err := s.eng.OptOut(ctx, appID, "u"); err != nil {
			t.Fatal(err)
		}
		s.finish(r)
		if row, err := s.store.Users.ReadUser(ctx, appID, "u"); err != nil || len(row.Profile) > 0 {
			t.Errorf("a profile of %d bytes is stored, %v", len(row.Profile), err)
		}
	})
}

// A restored deletion adds to what is excluded, and takes nothing away: neither an opt-out
// nor a tombstone that is newer.
func TestRestoredDeletionOnlyAdds(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		restore := func(until int64, types event.Types) {
			t.Helper()
			must.Succeed(t, s.eng.RestoreDeletion(ctx, appID, "u", affinity.Tombstone{DeletedUntil: until, ReceivedUntil: until}, types))
		}
		row := func() store.User {
			t.Helper()
			u, err := s.store.Users.ReadUser(ctx, appID, "u")
			must.Succeed(t, err)
			return u
		}
		s.apply(s.ahead(0))
		restore(s.clock-hour, 0) // of before the event
		s.expect(1)
		s.optOut(event.View)
		newer := row().Deleted()
		restore(s.clock-hour, event.Clicks)
		if u := row(); u.OptedOut != event.Views|event.Clicks || u.ReceivedUntil < newer.ReceivedUntil || u.DeletedUntil < newer.DeletedUntil {
			t.Errorf("the user is out of %v, deleted until %+v; want views and clicks, and at least %+v", u.OptedOut.List(), u.Deleted(), newer)
		}
		restore(s.clock-hour, 0)
		if u := row(); u.OptedOut != event.Views|event.Clicks {
			t.Errorf("the user is out of %v, want views and clicks", u.OptedOut.List())
		}
		s.clock += minute
		s.apply(s.ahead(0), s.view(0))
		s.expect(1) // the purchase
		restore(s.clock-minute, event.AllTypes)
		s.expect(0)
		s.purge(s.clock - minute) // the events are newer, and of types that the user is out of
		s.expectGone()
	})
}

// A message meets a restored opt-out at each of its requests, and is dropped or excluded.
func TestMessageMeetsRestoredOptOut(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		atEvery(func(requests int) bool {
			s.clear()
			s.apply(s.ahead(0))
			m := s.startApply(s.neverFolding(), s.ahead(second))
			goesOn := s.upTo(m, requests)
			until := s.clock - hour
			o := s.start("restore", func(ctx context.Context) error {
				return s.neverFolding().RestoreDeletion(ctx, appID, "u", affinity.Tombstone{DeletedUntil: until, ReceivedUntil: until}, event.Conversions)
			})
			for o.before != "" {
				s.step(o, 1)
				if requests%2 == 0 {
					s.upTo(m, 1)
				}
			}
			s.finish(o)
			s.finish(m)
			s.expect(0)
			return goesOn
		})
	})
}
