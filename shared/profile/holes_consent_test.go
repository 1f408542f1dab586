package profile_test

import (
	"context"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/store"
)

// purchases serve a purpose that is granted unless it is withdrawn, views one that must be granted first. Both serve a
// third one, for which only the color counts.
var purposes = []consent.Purpose{
	{Name: "personal", Default: true, Types: []event.Type{event.Conversion}, Surfaces: []consent.Surface{consent.Rank, consent.Feeds}},
	{Name: "views", Types: []event.Type{event.View}, Surfaces: []consent.Surface{consent.Rank, consent.Segments}},
	{Name: "ads", Facets: []string{"color"}, Surfaces: []consent.Surface{consent.Export}},
}

func (s *harness) setPurposes(all []consent.Purpose) {
	s.t.Helper()
	_, err := s.apps.SetPurposes(ctx, appID, all)
	must.Succeed(s.t, err)
}

// onEveryConsent runs a test with the purposes on every Bigtable.
func onEveryConsent(t *testing.T, test func(*testing.T, *harness)) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.setPurposes(purposes)
		test(t, s)
	})
}

func (s *harness) startConsent(name string, granted bool) *actor {
	app := s.app()
	return s.start("consent", func(ctx context.Context) error {
		_, err := profile.ConsentsOf(s.neverFolding()).Set(ctx, app, "u", map[string]bool{name: granted})
		return err
	})
}

// consent returns once receipts count again.
func (s *harness) consent(name string, granted bool) profile.Consented {
	s.t.Helper()
	c, err := profile.ConsentsOf(s.eng).Set(ctx, s.app(), "u", map[string]bool{name: granted})
	must.Succeed(s.t, err)
	s.clock += 2 // the slack is over
	return c
}

func (s *harness) purgeWithdrawn() {
	s.t.Helper()
	_, err := profile.ConsentsOf(s.eng).Purge(ctx, s.app(), "u")
	must.Succeed(s.t, err)
}

// expectRows checks how many events the log holds.
func (s *harness) expectRows(want int) {
	s.t.Helper()
	if n := s.rowCount(); n != want {
		s.t.Errorf("%d events are in the log, want %d", n, want)
	}
}

// A message meets a withdrawal at each of its requests. It finds the purpose withdrawn and drops its row, or has written it
// before, and the purge finds it.
func TestMessageMeetsWithdrawal(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		atEvery(func(requests int) bool {
			s.clear()
			s.apply(s.ahead(0))
			m := s.startApply(s.neverFolding(), s.ahead(second))
			goesOn := s.upTo(m, requests)
			c := s.startConsent("personal", false)
			for c.before != "" { // in turns or, for every other number, at once
				s.step(c, 1)
				if requests%2 == 0 && requests > 0 {
					s.upTo(m, 1)
				}
			}
			s.finish(c)
			s.expect(0)
			s.finish(m)
			s.expect(0)
			s.round(profile.RecomputeOptions{Maintain: true})
			s.clock += 2
			s.purgeWithdrawn()
			s.expect(0)
			s.expectRows(0)
			return goesOn
		})
	})
}

// A fold and a reader meet a withdrawal at each of their requests.
func TestFoldAndReaderMeetWithdrawal(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		for _, start := range []func() *actor{s.startFold, s.startRead, s.startRecompute, s.startRound} {
			atEvery(func(requests int) bool {
				s.clear()
				s.apply(s.at(1), s.at(5))
				s.outdate()
				a := start()
				goesOn := s.upTo(a, requests)
				s.consent("personal", false)
				s.expect(0)
				s.finish(a)
				s.expect(0)
				s.apply(s.ahead(0))
				s.expect(0)
				s.consent("personal", true)
				s.expect(0)
				s.apply(s.ahead(0))
				s.expect(1)
				s.purgeWithdrawn()
				s.expect(1)
				s.expectRows(1)
				return goesOn
			})
		}
	})
}

// Blocks of before a change are no longer named, and the purge removes them.
func TestWithdrawalRemovesBlocks(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		s.consent("views", true)
		s.clock += day
		view := s.at(3)
		view.Type, view.Name = event.View, "Viewed"
		view.Receipt = s.clock
		s.apply(received(s.at(1), s.clock), received(s.at(2), s.clock), view)
		s.fold()
		if r := s.read("u"); red(r) != 63 {
			t.Fatalf("%+v, want two purchases and a view", r.Profile)
		}
		s.consent("personal", false)
		if r := s.read("u"); red(r) != 3 {
			t.Errorf("%+v, want the view", r.Profile)
		}
		s.purgeWithdrawn()
		s.expectRows(1)
		ids, err := s.store.Histories.ListBlocks(ctx, appID, "u")
		if err != nil || len(ids) != 0 || len(s.manifest().Blocks) != 0 {
			t.Errorf("blocks %v are left, %v", ids, err)
		}
		s.fold()
		if r := s.read("u"); red(r) != 3 {
			t.Errorf("after a fold: %+v, want the view", r.Profile)
		}
	})
}

// What was received while a purpose was withdrawn stays out, also if it is still on its way when it is granted again.
// What the user does then counts, also if it is the same event.
func TestGrantBringsNothingBack(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		atEvery(func(requests int) bool {
			s.clear()
			s.apply(s.ahead(0))
			s.consent("personal", false)
			again := s.ahead(10 * second)
			m := s.startApply(s.neverFolding(), again)
			goesOn := s.upTo(m, requests)
			s.consent("personal", true)
			s.expect(0)
			s.apply(received(again, s.clock)) // the same event, received later
			s.expect(1)
			s.finish(m)
			s.expect(1)
			s.purgeWithdrawn()
			s.expect(1)
			s.apply(s.ahead(0))
			s.expect(2)
			return goesOn
		})
	})
}

// A user grants a purpose with a clock that was read long ago, while a message of theirs is dropped and delivered again.
// The second delivery must not count: the first drops its row.
func TestGrantCoversWhatWasDropped(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		for requests := range 5 { // of the change that is overtaken
			s.clear()
			s.consent("personal", false)
			in := s.startConsent("personal", true)
			s.step(in, requests)
			s.clock += 10 * second
			e := s.ahead(0)
			m := s.startApply(s.neverFolding(), e)
			s.step(m, 2) // its ticket is drawn
			dropped := m.before == "CheckAndMutateRow"
			s.clock += second
			s.finish(in)
			o := s.apply(e)
			s.finish(m)
			s.expect(o.Applied)
			if !dropped && o.Applied == 0 && m.err == nil && requests > 2 {
				t.Errorf("after %d requests the event was not dropped, and is not counted", requests)
			}
			s.clock += second
			s.apply(s.ahead(0))
			s.expect(o.Applied + 1)
		}
	})
}

// A process dies while a user withdraws or grants. Whatever it has done holds, and the next attempt completes it. A copy
// that was made at the ticket of the change does not pass for a current one.
func TestChangeOfConsentDies(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		atEvery(func(requests int) bool {
			s.clear()
			s.apply(s.at(1), s.at(2))
			s.fold()
			s.apply(s.ahead(0))
			s.expect(3)
			c := s.startConsent("personal", false)
			before := min(requests, 2)
			s.upTo(c, before) // it has drawn its ticket, and stands before its mutation
			tickets := s.packedTickets()
			goesOn := s.upTo(c, requests-before)
			if goesOn {
				s.kill(c)
			}
			said, err := profile.ConsentsOf(s.eng).Read(ctx, s.app(), "u")
			must.Succeed(t, err)
			s.expect(map[bool]int{true: 3, false: 0}[said.Grants["personal"]])
			s.clock += 2
			if goesOn {
				s.consent("personal", false)
			}
			s.expect(0)
			current := false
			err = s.eng.ReadChanged(ctx, s.app(), tickets, func(_ string, stored []byte, _ int64) error {
				current = stored == nil
				return nil
			})
			if err != nil || current {
				t.Errorf("after %d requests a copy of before is current, %v", requests, err)
			}
			s.purgeWithdrawn()
			s.expectRows(0)
			return goesOn
		})
	})
}

// packedTickets returns the ticket of the user, as one who packs the profile now.
func (s *harness) packedTickets() map[string]int64 {
	s.t.Helper()
	tickets := map[string]int64{}
	err := s.eng.ReadChanged(ctx, s.app(), map[string]int64{"u": 0}, func(user string, _ []byte, ticket int64) error {
		tickets[user] = ticket
		return nil
	})
	must.Succeed(s.t, err)
	return tickets
}

// An addition meets a change: what it is added to is of before.
func TestAdditionMeetsWithdrawal(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		atEvery(func(requests int) bool {
			s.clear()
			s.eng = s.fixture.engine() // it adds
			s.consent("views", true)
			s.apply(s.ahead(0))
			s.apply(s.view(second))
			c := s.startConsent("personal", false)
			goesOn := s.upTo(c, requests)
			s.clock += 2
			s.apply(s.view(2*second), s.ahead(3*second))
			s.finish(c)
			if r := s.read("u"); red(r) != 6 {
				t.Errorf("after %d requests: %+v, want two views", requests, r.Profile)
			}
			s.apply(s.view(4 * second))
			if r := s.read("u"); red(r) != 9 {
				t.Errorf("after %d requests: %+v, want three views", requests, r.Profile)
			}
			return goesOn
		})
	})
}

// Two changes and a deletion meet in the one cell: none takes another one back.
func TestChangesOfOneCellMeet(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		others := map[string]func() *actor{
			"a deletion": func() *actor { return s.startDelete(s.neverFolding()) },
			"an opt-out": func() *actor { return s.startOptOut(event.Conversion) },
			"a consent":  func() *actor { return s.startConsent("views", true) },
		}
		for name, start := range others {
			atEvery(func(requests int) bool {
				s.clear()
				s.apply(s.ahead(0))
				c := s.startConsent("ads", true)
				goesOn := s.upTo(c, requests)
				s.finish(start())
				s.finish(c)
				row, err := s.store.Users.ReadUser(ctx, appID, "u")
				must.Succeed(t, err)
				said, err := profile.ConsentsOf(s.eng).Read(ctx, s.app(), "u")
				held := map[string]bool{"a deletion": row.DeletedUntil > 0, "an opt-out": row.OptedOut.Has(event.Conversion), "a consent": said.Says["views"]}
				if err != nil || !said.Says["ads"] || !held[name] {
					t.Errorf("%s after %d requests: %+v, %+v, %v", name, requests, said, row, err)
				}
				return goesOn
			})
		}
	})
}

// Withdrawn or granted twice, a purpose stays as it is, and so does a profile.
func TestConsentTwiceChangesNothing(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		s.consent("ads", true)
		s.apply(s.ahead(0))
		before, err := s.store.Users.ReadUser(ctx, appID, "u")
		must.Succeed(t, err)
		s.consent("ads", true)
		s.consent("personal", true) // as by default
		after, err := s.store.Users.ReadUser(ctx, appID, "u")
		must.Succeed(t, err)
		if after.Marks != before.Marks || len(after.Profile) == 0 {
			t.Errorf("%+v after %+v", after, before)
		}
		if r := s.read("u"); !r.Stored || red(r) != 30 {
			t.Errorf("%+v (stored: %t)", r.Profile, r.Stored)
		}
		s.expect(1)
	})
}

// Taken back, an answer leaves the purpose to its default, and nothing from before counts.
func TestForgottenConsents(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		s.consent("personal", false)
		s.apply(s.ahead(0))
		c, err := profile.ConsentsOf(s.eng).Forget(ctx, s.app(), "u")
		if err != nil || !c.Changed || len(c.Says) != 0 || !c.Grants["personal"] {
			t.Errorf("%+v, %v", c, err)
		}
		s.clock += 2
		s.expect(0)
		s.apply(s.ahead(0))
		s.expect(1)
	})
}

// The purge of a withdrawal meets a grant, and an event that counts by it.
func TestPurgeMeetsGrant(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		app := s.app()
		atEvery(func(requests int) bool {
			s.clear()
			s.apply(s.ahead(0))
			s.consent("personal", false)
			p := s.start("purge", func(ctx context.Context) error {
				_, err := profile.ConsentsOf(s.neverFolding()).Purge(ctx, app, "u")
				return err
			})
			in := s.startConsent("personal", true)
			s.upTo(in, 1)
			s.clock += 10 * second
			var o profile.Outcome
			e := s.ahead(0)
			m := s.start("message", func(ctx context.Context) (err error) {
				o, err = s.neverFolding().Apply(ctx, app, []store.LogEvent{e})
				return err
			})
			s.step(m, 1) // it is in the log
			goesOn := s.upTo(p, requests)
			s.finish(in)
			s.finish(m)
			s.finish(p)
			s.outdate()
			s.expect(o.Applied)
			s.expectRows(o.Applied)
			s.clock += 2
			s.apply(s.ahead(second))
			s.expect(o.Applied + 1)
			return goesOn
		})
	})
}
