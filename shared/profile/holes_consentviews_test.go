package profile_test

import (
	"context"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/store"
)

// A block of before a change holds an event of a time after it. Its receipt, which the block does not know, says that it is
// from before. Nobody uses the block, although the process of the change has died.
func TestBlockOfBeforeAChangeIsNotUsed(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.setPurposes([]consent.Purpose{{Name: "personal", Default: true}, {Name: "ads"}})
		app := s.app()
		atEvery(func(requests int) bool {
			s.clear()
			s.apply(s.ahead(60 * second))
			s.foldSoon()
			s.clock += second
			c := s.start("consent", func(ctx context.Context) error {
				_, err := profile.ConsentsOf(s.neverFolding()).Set(ctx, app, "u", map[string]bool{"personal": false, "ads": true})
				return err
			})
			goesOn := s.upTo(c, requests)
			if goesOn {
				s.kill(c)
			}
			said, err := profile.ConsentsOf(s.eng).Read(ctx, app, "u")
			must.Succeed(t, err)
			s.expect(map[bool]int{true: 1, false: 0}[said.Grants["personal"]])
			return goesOn
		})
	})
}

// A fold meets an event whose writer is about to drop it.
func TestFoldPacksNothingWithheld(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		m := s.startApply(s.neverFolding(), s.ahead(0), s.view(second))
		s.stepTo(m, "CheckAndMutateRow")
		s.foldSoon()
		s.finish(m)
		if blocks := s.manifest().Blocks; len(blocks) != 1 || blocks[0].Events != 1 {
			t.Errorf("blocks %+v, want one of one event", blocks)
		}
		s.expect(1)
		s.expectRows(1)
	})
}

// foldSoon folds by a clock that is minutes later.
func (s *harness) foldSoon() {
	s.t.Helper()
	s.clock += 3 * minute
	s.fold()
	s.clock -= 3 * minute
}

// A block holds an event of a time after a grant that was received before it: the event is kept for another purpose. The
// surfaces of the granted one do not use it.
func TestBlockInTheBandOfAGrant(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.setPurposes([]consent.Purpose{{Name: "personal", Default: true, Surfaces: []consent.Surface{consent.Rank}},
			{Name: "ads", Surfaces: []consent.Surface{consent.Export}}})
		s.apply(s.ahead(60 * second))
		s.clock += second
		s.consent("ads", true)
		s.foldSoon()
		s.apply(s.ahead(90 * second)) // behind the block
		for on, want := range map[consent.Surface]float64{consent.Kept: 60, consent.Rank: 60, consent.Export: 30, consent.Feeds: 0} {
			r, err := s.eng.Read(ctx, s.app().For(on), "u", 0)
			if err != nil || red(r) != want {
				t.Errorf("%q: %+v, %v; want %v", on, r.Profile, err, want)
			}
			ranked, err := s.eng.ReadRanking(ctx, s.app().For(on), "u")
			if err != nil || len(ranked.Session.Events) != int(want/30) || ranked.Stored != (want == 60) {
				t.Errorf("%q: the session is %+v (stored: %t), %v", on, ranked.Session, ranked.Stored, err)
			}
		}
	})
}

// For a purpose may count some facets of an event alone.
func TestFacetsOfAPurpose(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		s.eng = s.fixture.engine() // it adds
		both := func(by int64) store.LogEvent {
			e := s.view(by)
			e.Counts = append(e.Counts, affinity.Count{Facet: "brand", Value: "Acme", N: 1})
			return e
		}
		s.consent("ads", true)
		s.apply(both(0))
		s.apply(both(second))
		s.foldSoon()
		s.apply(both(2 * second))
		for name, r := range map[string]profile.Result{"stored": s.read("u"), "computed": s.refreshed()} {
			if red(r) != 9 || len(r.Affinities) != 1 {
				t.Errorf("%s: %+v, want the color alone", name, r.Profile)
			}
		}
		s.consent("views", true)
		s.apply(both(3 * second))
		if r := s.read("u"); red(r) != 12 || len(r.Affinities) != 2 {
			t.Errorf("%+v, want four of the color and one of the brand", r.Profile)
		}
	})
}

func (s *harness) refreshed() profile.Result {
	s.t.Helper()
	r, err := s.eng.Refresh(ctx, s.app(), "u")
	must.Succeed(s.t, err)
	return r
}

// Blocks of before a change of the purposes hold events that no purpose keeps any more. Nobody uses these.
func TestChangedPurposes(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.ahead(0), s.view(second))
		s.foldSoon()
		s.setPurposes([]consent.Purpose{{Name: "views", Default: true, Types: []event.Type{event.View}}})
		for name, r := range map[string]profile.Result{"read": s.read("u"), "computed": s.refreshed()} {
			if red(r) != 3 {
				t.Errorf("%s: %+v, want the view", name, r.Profile)
			}
		}
		s.purgeWithdrawn()
		s.expectRows(1)
	})
}

// The events of an anonymous token count for a known user for what both grant.
func TestConsentsOfLinkedTokens(t *testing.T) {
	onEveryLinked(t, testConsentsOfLinkedTokens)
}

func testConsentsOfLinkedTokens(t *testing.T, s *harness) {
	s.setPurposes([]consent.Purpose{{Name: "personal", Default: true, Surfaces: []consent.Surface{consent.Rank}},
		{Name: "ads", Default: true, Surfaces: []consent.Surface{consent.Export}}})
	set := func(user, name string, granted bool) {
		t.Helper()
		_, err := profile.ConsentsOf(s.eng).Set(ctx, s.app(), user, map[string]bool{name: granted})
		must.Succeed(t, err)
		s.clock += 2
	}
	expect := func(user string, on consent.Surface, events int) {
		t.Helper()
		r, err := s.eng.Read(ctx, s.app().For(on), user, 0)
		if err != nil || red(r) != 30*float64(events) {
			t.Errorf("%s on %q: %+v, %v; want %d events", user, on, r.Profile, err, events)
		}
	}
	s.apply(s.of("k", -5, ""), s.of("a", 3, "k"))
	expect("k", consent.Kept, 2)
	expect("k", consent.Rank, 2)
	set("a", "personal", false)
	expect("a", consent.Rank, 0)
	expect("k", consent.Kept, 2) // that of the token is kept for ads
	expect("k", consent.Rank, 1)
	expect("k", consent.Export, 2)
	set("k", "ads", false)
	expect("k", consent.Kept, 1)
	expect("k", consent.Export, 0)
	expect("a", consent.Export, 1) // the row of the token decides
	set("a", "ads", false)
	expect("a", consent.Kept, 0)
	expect("k", consent.Kept, 1)
}

// Events that serve no purpose which the user grants are dropped in each of the ways to the log.
func TestEventsOfNoPurposeAreDropped(t *testing.T) {
	onEveryConsent(t, func(t *testing.T, s *harness) {
		for name, apply := range map[string]func([]store.LogEvent) (profile.Outcome, error){
			"a message": func(e []store.LogEvent) (profile.Outcome, error) { return s.eng.Apply(ctx, s.app(), e) },
			"an import": func(e []store.LogEvent) (profile.Outcome, error) { return s.eng.Import(ctx, s.app(), e) },
			"a message that is given up": func(e []store.LogEvent) (profile.Outcome, error) {
				m := s.startApply(s.neverFolding(), e...)
				s.step(m, 1) // it is in the log
				s.kill(m)
				return profile.Outcome{Withheld: len(e)}, s.eng.Abandon(ctx, s.app(), e)
			},
		} {
			o, err := apply([]store.LogEvent{s.view(0), s.view(second)})
			if err != nil || o != (profile.Outcome{Withheld: 2}) {
				t.Errorf("%s: %+v, %v", name, o, err)
			}
			s.expect(0)
			s.expectRows(0)
		}
	})
}
