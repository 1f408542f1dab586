package profile_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Each test here leads processes into the shortest interleaving in which a
// simpler protocol would lose or resurrect an event. functions/docs/design/rules.md
// has a table of the rules that prevent it.

// A late event becomes visible when its range is uncovered, not when it is logged.
// With a ticket drawn before that, a read of the old manifest would hide it.
func TestTicketIsDrawnAfterUncovering(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.applyFolded()
		s.outdate()
		m := s.startApply(s.neverFolding(), s.at(3))
		s.stepTo(m, "CheckAndMutateRow")
		r := s.startRead()
		s.step(r, 1) // the row with the old manifest
		s.finish(m)
		s.finish(r)
		s.expect(3)
	})
}

// Ticket and manifest are of one instant: a duplicate that read the manifest
// before the range was uncovered must not write above one that read it after.
func TestTicketAndManifestAreOneInstant(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.applyFolded()
		first := s.startApply(s.neverFolding(), s.at(3))
		s.stepTo(first, "CheckAndMutateRow") // logged, late, not uncovered
		duplicate := s.startApply(s.neverFolding(), s.at(3))
		s.stepTo(duplicate, "ReadModifyWriteRow")
		other := s.startApply(s.neverFolding(), s.at(20))
		s.stepTo(other, "ReadRows") // has its ticket, with the covering manifest
		s.step(first, 1)            // uncovered
		s.finish(duplicate)
		s.finish(other)
		s.kill(first)
		s.expect(4)
	})
}

// A reader reads the row before the log: an event that is logged later has a later
// ticket.
func TestReaderStoresAtTicketReadBeforeLog(t *testing.T) {
	onEveryBigtable(t, testReaderStoresAtTicketReadBeforeLog)
}

func testReaderStoresAtTicketReadBeforeLog(t *testing.T, open opener) {
	for _, requests := range []int{1, 2} {
		s := newHarness(t, open)
		s.apply(s.at(1))
		s.outdate()
		r := s.startRead()
		s.step(r, requests) // the row; and the log
		s.apply(s.at(2))
		s.finish(r)
		s.expect(2)
	}
}

func TestRecomputeHidesNoRefresh(t *testing.T) { onEveryBigtable(t, testRecomputeHidesNoRefresh) }

func testRecomputeHidesNoRefresh(t *testing.T, open opener) {
	for requests := 1; requests <= 3; requests++ {
		s := newHarness(t, open)
		s.applyFolded()
		b := s.startRecompute()
		s.step(b, requests) // rows; what is outside; blocks
		s.apply(s.at(3))
		s.finish(b)
		s.expect(3)
	}
}

// A log row that exists does not mean that profiles count its event: its first
// writer may have died, and a fold may have read past it before.
func TestDuplicateIsNotSkipped(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.at(1), s.at(5))
		f := s.startFold()
		s.stepTo(f, "MutateRow") // it has read the log
		m := s.startApply(s.neverFolding(), s.at(3))
		s.step(m, 1) // logged
		s.kill(m)
		s.finish(f)
		s.apply(s.at(3)) // delivered again
		s.expect(3)
	})
}

func TestLateEventUncoversItsRange(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.applyFolded()
		s.apply(s.at(3))
		if m := s.manifest(); len(m.Blocks) != 0 {
			t.Errorf("%+v: the range of a late event is still covered", m)
		}
		s.expect(3)
		s.fold()
		s.apply(bought("u", s.clock-91*day)) // outside the window
		s.expect(3)
		s.clock += 90*day - 19*hour // the first three leave
		s.expect(0)
	})
}

// A second resolution of an event replaces the first, in the log and in blocks.
func TestSecondResolutionReplacesFirst(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e := s.at(3)
		e.Counts = []affinity.Count{{Facet: "color", Value: "Blue", N: 1}, {Facet: "brand", Value: "A", N: 1}}
		s.apply(s.at(1), e, s.at(5))
		s.fold()
		s.expect(2)
		s.apply(s.at(3))
		s.expect(3)
		if r := s.read("u"); len(r.Affinities) != 1 {
			t.Errorf("%+v: the first resolution is still there", r.Affinities)
		}
		s.fold()
		s.expect(3)
	})
}

// plainer is another strategy with the same scores.
var plainer = func() strategy.Strategy {
	s := plain
	s.HalfLives = strategy.InDays(365)
	return s
}()
