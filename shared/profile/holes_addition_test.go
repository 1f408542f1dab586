package profile_test

import (
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// adding is an engine of another process that adds events, and never folds.
func (s *harness) adding() *profile.Engine {
	e := s.fixture.engine()
	e.SetLimits(1000, 100, 100, 100, time.Minute)
	return e
}

// added checks how many refreshes of an engine have added events.
func added(t *testing.T, e *profile.Engine, want int64) {
	t.Helper()
	if got := e.Counters().Added.Load(); got != want {
		t.Errorf("%d refreshes have added events, want %d", got, want)
	}
}

// A message was received before a deletion, and is applied after another delivery of its
// event that was received later. It does not count, and the other one has its filters now.
func TestDeletedDeliveryReplacesFilters(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		early := s.ahead(10 * second)
		s.clock = s.delete("u") + 1
		late := inBlue(received(early, s.clock))
		e := s.adding()
		s.applyTo(e, late)
		s.expect(0) // in red
		s.applyTo(e, early)
		s.expect(1)
		added(t, e, 0)
		s.applyTo(e, s.ahead(20*second))
		s.expect(2)
		added(t, e, 1)
	})
}

// The owner of a ticket in between has an event that the base lacks.
func TestAdditionNeedsTheTicketBefore(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.at(1))
		slow := s.startApply(s.neverFolding(), s.at(2))
		s.stepToWrite(slow)
		e := s.adding()
		s.applyTo(e, s.at(3))
		s.finish(slow)
		s.expect(3)
		added(t, e, 0)
		s.applyTo(e, s.at(4))
		s.expect(4)
		added(t, e, 1)
	})
}

// So does what the process has written at an earlier ticket.
func TestMemoryNeedsTheTicketBefore(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		one, other := s.adding(), s.adding()
		s.applyTo(one, s.at(1))
		s.applyTo(other, s.at(2))
		s.applyTo(one, s.at(3))
		s.expect(3)
		s.applyTo(one, s.at(4))
		s.expect(4)
		if n := one.Counters().AddedFromMemory.Load(); n != 1 {
			t.Errorf("%d additions from memory, want the last", n)
		}
	})
}

// A message whose event another refresh, or the repair of a read, has counted adds
// nothing: without a crash and without another delivery.
func TestAdditionCountsNoEventTwice(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e := s.adding()
		m := s.startApply(e, s.at(2))
		s.stepTo(m, "ReadModifyWriteRow") // logged, without a ticket
		s.apply(s.at(1))
		s.finish(m)
		s.expect(2)
		added(t, e, 1)
	})
}

// The base lists only its newest events: an older one that arrives may be counted.
func TestEventBelowTheListIsComputed(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e := s.adding()
		e.SetSessionEvents(1)
		s.applyTo(e, s.at(1), s.at(3))
		s.applyTo(e, s.at(1))
		s.applyTo(e, s.at(2))
		s.expect(3)
		added(t, e, 0)
	})
}

// An event is counted, with the filters of another catalog.
func TestOtherFiltersAreNotAdded(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e, again := s.adding(), inBlue(s.at(1))
		s.applyTo(e, s.at(1))
		s.applyTo(e, again)
		s.expect(0)
	})
}

// uncoveredBetween leads to a base at the ticket of a late event, computed from a
// block that its writer then uncovers. All the time m stands before its ticket: its event
// lies in the range of the block.
func (s *harness) uncoveredBetween(m func() *actor, prepare func()) {
	s.t.Helper()
	s.applyFolded()
	prepare()
	s.outdate()
	message := m()
	s.stepTo(message, "ReadModifyWriteRow")
	blue := inBlue(s.at(2))
	late := s.startApply(s.neverFolding(), blue)
	s.stepTo(late, "CheckAndMutateRow")
	if _, err := s.eng.ReadRanking(ctx, s.app(), "u"); err != nil {
		s.t.Fatal(err)
	}
	s.step(late, 1) // uncovered
	s.finish(message)
	s.kill(late)
}

// A block holds no IDs: an event of its range may be one that it holds.
func TestEventOfBlockIsNotAddedAgain(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.uncoveredBetween(func() *actor { return s.startApply(s.adding(), s.at(5)) }, func() {})
		s.expect(2)
	})
}

// A recompute writes a profile and no list, at the ticket of a list.
func TestListOfOtherProfileIsNotUsed(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.at(1))
		e := s.adding()
		m := s.startApply(e, s.at(2))
		s.stepTo(m, "ReadModifyWriteRow")
		s.writeAlone()
		s.finish(m)
		s.expect(2)
		added(t, e, 0)
	})
}

// An event that is added leaves the window earlier than those that were counted.
func TestAdditionLowersUntil(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e := s.adding()
		s.applyTo(e, s.at(1))
		s.applyTo(e, bought("u", s.clock-90*day+hour))
		added(t, e, 1)
		s.expect(2)
		s.clock += 2 * hour
		s.expect(1)
	})
}

// A value that a bounded profile leaves out may be the best of the sum.
func TestAdditionToBoundedProfile(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		bounds := affinity.StandardBounds()
		bounds.FacetValues = 1
		e, blue := s.adding(), inBlue(s.at(1))
		e.SetBounds(bounds)
		s.eng = e
		s.applyTo(e, blue, s.at(2))
		s.applyTo(e, s.at(3))
		if r := s.read("u"); red(r) != 60 || !r.Stored || len(r.Affinities) != 1 {
			t.Errorf("%+v, want Red", r)
		}
		s.applyTo(e, s.at(4))
		if r := s.read("u"); red(r) != 90 || !r.Stored {
			t.Errorf("%+v, want Red", r)
		}
		added(t, e, 1)
	})
}

// A deletion dies after its tombstone: neither what is stored nor what the process
// remembers may be added to.
func TestAdditionMeetsUnfinishedDeletion(t *testing.T) {
	onEveryBigtable(t, func(t *testing.T, open opener) {
		for _, remembered := range []bool{false, true} {
			s := newHarness(t, open)
			e := s.adding()
			s.applyTo(e, s.at(1))
			d := s.startDelete(s.neverFolding())
			s.stepTo(d, "ReadModifyWriteRow")
			s.kill(d)
			s.clock += hour
			if !remembered {
				e = s.adding()
			}
			s.applyTo(e, bought("u", s.clock))
			s.expect(1)
			added(t, e, 0)
		}
	})
}

// Additions leave events unfolded, until one of them folds under its ticket.
func TestAdditionsFold(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e := s.fixture.engine()
		e.SetLimits(3, 100, 100, 100, time.Minute)
		for i := range int64(8) {
			s.applyTo(e, s.at(i))
		}
		s.expect(8)
		if n := e.Counters().Folds.Load(); n != 2 {
			t.Errorf("%d folds, want one every 3 additions", n)
		}
		added(t, e, 7)
		e.SetMaxAdditions(7)
		s.applyTo(e, s.at(9))
		s.expect(9)
		added(t, e, 7)
	})
}

// One message holds events of every kind: new, counted, of a kind that scores nothing, older
// than the window, and ahead.
func TestAdditionOfManyEvents(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	e := s.adding()
	s.applyTo(e, s.at(1), s.at(2))
	other := s.at(4)
	other.ID, other.Name = "other", "Returned"
	events := []store.LogEvent{s.at(3), s.at(1), other, bought("u", s.clock-91*day), bought("u", s.clock+minute), s.at(3)}
	s.applyTo(e, events...)
	s.expect(4)
	added(t, e, 1)
	r, err := s.eng.ReadRanking(ctx, s.app(), "u")
	if err != nil || !r.Stored || len(r.Session.Events) != 4 || r.Session.Events[0].Time != s.clock+minute || r.Anchor != s.clock+minute {
		t.Errorf("%+v, %v: want a stored session of four events as of the newest", r, err)
	}
	if !slices.IsSortedFunc(r.Session.Events, func(a, b affinity.Event) int { return int(b.Time - a.Time) }) {
		t.Errorf("%+v is not in order", r.Session.Events)
	}
}

// A refresh holds only so many bases. The profiles of the other users are computed.
func TestBasesAreBounded(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	v := func(hours int64) store.LogEvent { return bought("v", s.clock-day+hours*hour) }
	s.applyTo(s.adding(), s.at(1), v(1))
	e := s.adding() // remembers nothing
	e.SetGroupBytes(4)
	s.applyTo(e, s.at(2), v(2))
	added(t, e, 1)
	s.expect(2)
	if r, err := s.eng.Read(ctx, s.app(), "v", 0); err != nil || !r.Stored || r.LastEventAt != v(2).Time {
		t.Errorf("%+v, %v: want the stored profile of both events", r, err)
	}
}
