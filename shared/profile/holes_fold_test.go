package profile_test

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// An event is logged and acknowledged after a fold has read past its place.
func TestFoldCoversOnlyEventsItRead(t *testing.T) {
	onEveryBigtable(t, testFoldCoversOnlyEventsItRead)
}

func testFoldCoversOnlyEventsItRead(t *testing.T, open opener) {
	t.Run("announced", func(t *testing.T) {
		s := newHarness(t, open)
		s.apply(s.at(1), s.at(5))
		f := s.startFold()
		s.stepTo(f, "MutateRow") // blocks: it has read the log
		s.apply(s.at(3))
		s.finish(f)
		s.expect(3)
	})
	t.Run("with a refresh", func(t *testing.T) {
		s := newHarness(t, open)
		s.apply(s.at(1))
		m := s.startApply(s.folding(2), s.at(5))
		s.stepTo(m, "CheckAndMutateRow")
		s.apply(s.at(3))
		s.finish(m)
		s.expect(3)
	})
	t.Run("announced after the event was logged", func(t *testing.T) {
		s := newHarness(t, open)
		s.apply(s.at(1), s.at(5))
		m := s.startApply(s.neverFolding(), s.at(3))
		s.stepTo(m, "ReadModifyWriteRow") // logged, without a ticket
		s.fold()
		s.finish(m)
		s.expect(3)
	})
}

// A missing block was replaced; it is not empty.
func TestMissingBlockIsNotEmpty(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.applyFolded()
		s.outdate()
		r := s.startRead()
		s.step(r, 1) // the row names the block
		s.apply(s.at(6))
		s.fold() // merges it with the new event
		s.round(profile.RecomputeOptions{Maintain: true})
		if ids, err := s.store.Histories.ListBlocks(ctx, appID, "u"); err != nil || len(ids) != 1 {
			t.Fatalf("%v, %v: want the replaced block to be gone", ids, err)
		}
		s.finish(r)
		s.expect(3)
	})
}

// The answer to a commit is lost: the manifest may name the blocks.
func TestFoldKeepsBlocksAfterLostAnswer(t *testing.T) {
	onEveryBigtable(t, testFoldKeepsBlocksAfterLostAnswer)
}

func testFoldKeepsBlocksAfterLostAnswer(t *testing.T, open opener) {
	for _, at := range []int{1, 2} { // the announcement, the commit
		s := newHarness(t, open)
		s.apply(s.at(1), s.at(5))
		f := s.startFold()
		for range at - 1 {
			s.stepTo(f, "CheckAndMutateRow")
			s.step(f, 1)
		}
		s.stepTo(f, "CheckAndMutateRow")
		s.answer(f, lose)
		s.finish(f)
		if m := s.manifest(); m.Announced != nil || len(m.Blocks) == 0 {
			t.Errorf("after lost answer %d: %+v, want the fold to go on", at, m)
		}
		s.expect(2)
		s.round(profile.RecomputeOptions{Maintain: true})
		s.expect(2)
	}
}

// Folding deletes nothing: a reader with an older manifest finds the events in
// the log, and a late event has something to uncover.
func TestFoldKeepsTheLog(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.at(1), s.at(5))
		s.outdate()
		r := s.startRead()
		s.step(r, 1) // a row without a manifest
		s.fold()
		s.round(profile.RecomputeOptions{Maintain: true})
		s.finish(r)
		s.expect(2)
		s.apply(s.at(3))
		s.expect(3)
	})
}

// A block whose events have all left the window may be missing.
func TestExpiredBlockMayBeMissing(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.at(1))
		s.fold()
		s.clock += 91 * day
		id := s.manifest().Blocks[0].ID
		must.Succeed(t, s.store.Histories.DeleteBlocks(ctx, appID, "u", []history.BlockID{id}))
		s.apply(bought("u", s.clock))
		s.expect(1)
		if n := s.eng.Counters().Restarts.Load(); n != 0 {
			t.Errorf("%d restarts for a block that does not matter", n)
		}
	})
}

// A fold covers no more than it announced: the gap before a block of young events
// ends later than the announcement.
func TestFoldCoversOnlyAnnouncedRange(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e := s.engine()
		e.SetLimits(2, 100, 2, 100, time.Minute)
		ago := func(seconds int64) store.LogEvent { return bought("u", s.clock-seconds*1000) }
		s.applyTo(e, ago(3600), ago(3000), ago(10), ago(9), ago(8))
		s.apply(ago(7200)) // late: uncovers the first of two blocks
		if m := s.manifest(); len(m.Blocks) == 0 || m.Blocks[0].From.Time < s.clock-60_000 {
			t.Fatalf("%+v: want young events alone in blocks", m)
		}
		f := s.startFold()
		s.stepTo(f, "MutateRow") // it has read the log
		s.apply(ago(30))         // in the gap, and younger than what is announced
		s.expect(7)
		s.finish(f)
		s.expect(7)
		s.apply(ago(1))
		s.expect(8)
	})
}

// The folds of several processes' refreshes leave each other's announcements
// alone. Otherwise none of them would ever commit.
func TestFoldsLeaveAnnouncementsAlone(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.at(1), s.at(2), s.at(3), s.at(4))
		app := s.app()
		f := s.startFold()
		s.stepTo(f, "CheckAndMutateRow")
		s.step(f, 1)
		for i := range int64(20) { // each finds enough for a fold, and is overtaken with its own
			m := s.startApply(s.folding(1), bought("u", s.clock-i*1000)) // outside what is announced
			s.stepTo(m, "CheckAndMutateRow")
			if _, err := s.store.Users.TakeTicket(ctx, app.ID, "u"); err != nil {
				t.Fatal(err)
			}
			s.finish(m)
			if a := s.manifest().Announced; a == nil {
				t.Fatalf("after %d others the announcement is missing: %+v", i, s.manifest())
			}
		}
		s.finish(f)
		if m := s.manifest(); len(m.Blocks) == 0 {
			t.Errorf("%+v: the fold that announced itself has not committed", m)
		}
		s.expect(24)
	})
}

// A busy user is folded when enough events are old enough, not with each event.
func TestBusyUserFoldsRarely(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.eng.SetLimits(20, 1000, 1000, 1000, 5*time.Second)
	b.eng.SetMaxYoung(1000)
	for range 100 { // ten a second: 50 at a time are too young
		b.clock += 100
		b.apply(bought("u", b.clock))
	}
	// Of the last 50 events one in 20 folds. Which one it is depends on the user.
	if n := b.eng.Counters().Folds.Load(); n != 2 && n != 3 {
		t.Errorf("%d folds, want two or three", n)
	}
	if r := b.read("u"); red(r) != 3_000 {
		t.Errorf("%v", red(r))
	}
}

// A fold merges a small block of any age with the events that follow it, without
// those that have left the window.
func TestSmallBlocksAreMerged(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(bought("u", s.clock-80*day), bought("u", s.clock-10*day))
		s.fold()
		s.apply(s.at(1))
		s.fold()
		if m := s.manifest(); len(m.Blocks) != 1 || m.Blocks[0].Events != 3 {
			t.Fatalf("%+v, want one block of three events", m)
		}
		s.expect(3)
		s.clock += 20 * day // the first leaves
		s.apply(s.at(1))
		s.fold()
		if m := s.manifest(); len(m.Blocks) != 1 || m.Blocks[0].Events != 3 || m.Blocks[0].From.Time < s.clock-90*day {
			t.Errorf("%+v, want one block of the three events that count", m)
		}
		s.expect(3)
		must.Succeed(t, s.apps.SetRetention(ctx, appID, 0))
		s.expect(4) // the event that was left to the log still counts
	})
}

// A hot user, with a message between any two requests of a fold, folds.
func TestHotUserFolds(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.at(1), s.at(2), s.at(3))
		f := s.startFold()
		n := 3
		for f.before != "" {
			s.apply(logEvent("u", s.clock+int64(n), "Bought", event.Conversion, affinity.Count{Facet: "color", Value: "Red", N: 1}))
			n++
			s.clock++
			s.step(f, 1)
		}
		if f.err != nil || len(s.manifest().Blocks) == 0 {
			t.Errorf("%v, %+v: the fold has not committed", f.err, s.manifest())
		}
		s.clock += hour
		s.expect(n)
	})
}
