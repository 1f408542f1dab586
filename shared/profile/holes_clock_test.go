package profile_test

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

const year = 365 * day

// wrongly does something while the clock is a year ahead.
func (s *harness) wrongly(do func()) {
	s.clock += year
	do()
	s.clock -= year
}

// outcome applies events that are received now, of this time.
func (s *harness) outcome(events ...store.LogEvent) profile.Outcome {
	s.t.Helper()
	o, err := s.eng.Apply(ctx, s.app(), events)
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// Nobody counts an event that is further ahead than a right clock allows, until the clock
// comes near. Before, the event hides no other one, from wherever it is read.
func TestEventFarAheadIsIgnored(t *testing.T) { onEveryBigtable(t, testEventFarAheadIsIgnored) }

func testEventFarAheadIsIgnored(t *testing.T, open opener) {
	reach := (event.MaxAhead + profile.MinSlack).Milliseconds()
	for name, with := range map[string]func(*harness){
		"log": func(*harness) {},
		"block": func(s *harness) {
			s.apply(received(bought("u", s.clock+hour), s.clock+hour))
			s.clock += day
			s.fold()
			s.clock -= day
		},
		"profile": func(s *harness) { s.round(profile.RecomputeOptions{}); s.expect(1) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, open)
			s.apply(s.at(0))
			s.wrongly(func() {
				s.apply(s.ahead(0))
				with(s)
			})
			s.expect(1)
			s.apply(s.at(1))
			s.expect(2)
			s.round(profile.RecomputeOptions{OnlyStale: true, Maintain: true})
			s.expect(2)
			s.eng = s.fixture.engine() // that adds to profiles
			s.apply(s.ahead(0))
			s.apply(s.ahead(event.MaxAhead.Milliseconds()))
			s.expect(4)
			s.clock += year - reach - 1
			s.expect(0)
			s.clock++
			s.expect(1)
			if got, want := s.read("u").Anchor, s.clock+reach; got != want {
				t.Errorf("the profile is as of %d, want the time of the event, %d", got, want)
			}
		})
	}
}

// An event of up to MaxAhead ahead counts for a process whose clock is behind by the slack, as
// for the one that received it.
func TestEventAheadCountsWithinTheSlack(t *testing.T) {
	s := newHarness(t, storetest.NewDeployed)
	s.eng.SetSlack(3 * time.Second)
	s.apply(s.ahead(event.MaxAhead.Milliseconds()))
	s.clock -= 3 * second
	s.expect(1)
	s.clock--
	s.expect(0)
}

// A deletion by a clock that was ahead ends at the first event that a right clock receives. What
// was received before stays deleted, and all that follows counts.
func TestDeletionAheadIsSettled(t *testing.T) { onEveryBigtable(t, testDeletionAheadIsSettled) }

func testDeletionAheadIsSettled(t *testing.T, open opener) {
	for name, remove := range map[string]func(*harness){
		"deletion": func(s *harness) { s.delete("u") },
		"opt-out": func(s *harness) {
			if _, err := s.eng.OptOut(ctx, appID, "u"); err != nil {
				s.t.Fatal(err)
			}
			if _, err := s.eng.OptIn(ctx, appID, "u"); err != nil {
				s.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, open)
			s.apply(s.at(0))
			ofNow := received(bought("u", s.clock), s.clock+year)
			var ofThen, inFlight store.LogEvent
			s.wrongly(func() {
				ofThen, inFlight = s.ahead(0), s.ahead(second)
				s.apply(ofThen, ofNow)
				remove(s)
			})
			s.expect(0)
			s.clock += second
			if o := s.outcome(s.ahead(0)); o.Deleted != 1 || o.Ahead != 1 {
				t.Errorf("the first event: %+v, want it deleted because of a clock", o)
			}
			s.expect(0)
			for n := range 3 {
				s.clock += second
				if o := s.outcome(s.ahead(0)); o != (profile.Outcome{Applied: 1}) {
					t.Errorf("an event that follows: %+v, want it applied", o)
				}
				s.expect(n + 1)
			}
			for _, e := range []store.LogEvent{ofThen, inFlight, ofNow} { // deliveries that were on their way
				s.outcome(e)
				s.expect(3)
			}
			s.purge(s.clock + 2*year)
			s.expect(3)
			s.clock += year
			s.expect(0)
		})
	}
}

// A deletion by a right clock covers events that are far ahead: those in the log and those that
// are on their way.
func TestDeletionCoversWhatIsFarAhead(t *testing.T) {
	s := newHarness(t, storetest.NewDeployed)
	inLog, inFlight := received(bought("u", s.clock+year), s.clock+year), received(bought("u", s.clock+year+1), s.clock+year+1)
	s.apply(inLog)
	until := s.delete("u")
	s.purge(until)
	s.clock = until + 1
	if o := s.outcome(inFlight); o != (profile.Outcome{Deleted: 1, Ahead: 1}) {
		t.Errorf("a message that was on its way: %+v, want it dropped", o)
	}
	s.apply(s.ahead(0))
	s.expect(1)
	s.clock += year
	s.expect(0)
}

// The purge, the nightly round, another deletion and Settle end it, too: then the first event counts.
func TestDeletionAheadIsSettledWithoutEvents(t *testing.T) {
	for name, settle := range map[string]func(*harness){
		"purge":    func(s *harness) { s.purge(s.clock + 2*year) },
		"round":    func(s *harness) { s.round(profile.RecomputeOptions{OnlyStale: true, Maintain: true}) },
		"deletion": func(s *harness) { s.delete("u") },
		"Settle": func(s *harness) {
			if n, err := s.eng.Settle(ctx, s.app()); n != 1 || err != nil {
				s.t.Errorf("settled %d, %v", n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, storetest.NewDeployed)
			s.apply(s.at(0))
			s.wrongly(func() { s.delete("u") })
			settle(s)
			s.expect(0)
			s.clock += second
			s.apply(s.ahead(0))
			s.expect(1)
		})
	}
}

// Two processes meet a deletion that is ahead, one of them at any moment of the other, or after
// its death. An acknowledged event that was received after it was settled stays.
func TestSettlersMeet(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		for name, end := range map[string]func(*actor){"slow": s.finish, "dies": s.kill} {
			atEvery(func(requests int) bool {
				s.clear()
				s.apply(s.at(0))
				s.wrongly(func() { s.apply(s.ahead(0)); s.delete("u") })
				m := s.startApply(s.neverFolding(), s.ahead(0))
				goesOn := s.upTo(m, requests)
				s.clock += second
				first := s.outcome(s.ahead(0)).Applied // not if this message settles
				s.clock += second
				s.apply(s.ahead(0))
				s.expect(first + 1)
				end(m)
				s.expect(first + 1)
				s.purge(s.clock)
				s.expect(first + 1)
				if t.Failed() {
					t.Fatalf("the other one %s after %d requests", name, requests)
				}
				return goesOn
			})
		}
	})
}
