package profile_test

import (
	"context"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/strategy"
)

// Each test here leads processes into the shortest interleaving in which a
// simpler protocol would lose or resurrect an event. PROTOCOL.md has a table of
// the rules that prevent it.

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

// A late event becomes visible when its range is uncovered, not when it is logged.
// With a ticket drawn before that, a read of the old manifest would hide it.
func TestTicketIsDrawnAfterUncovering(t *testing.T) {
	onEveryBigtable(t, testTicketIsDrawnAfterUncovering)
}

func testTicketIsDrawnAfterUncovering(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(5))
	s.fold()
	s.setStrategy(plainer)
	s.setStrategy(plain) // so that a read computes
	m := s.startApply(s.neverFolding(), s.at(3))
	s.stepTo(m, "CheckAndMutateRow")
	r := s.startRead()
	s.step(r, 1) // the row with the old manifest
	s.finish(m)
	s.finish(r)
	s.expect(3)
}

// Ticket and manifest are of one instant: a duplicate that read the manifest
// before the range was uncovered must not write above one that read it after.
func TestTicketAndManifestAreOneInstant(t *testing.T) {
	onEveryBigtable(t, testTicketAndManifestAreOneInstant)
}

func testTicketAndManifestAreOneInstant(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(5))
	s.fold()
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
		s.setStrategy(plainer)
		s.setStrategy(plain)
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
		s.apply(s.at(1), s.at(5))
		s.fold()
		b := s.startRecompute()
		s.step(b, requests) // rows; what is outside; blocks
		s.apply(s.at(3))
		s.finish(b)
		s.expect(3)
	}
}

// Tombstone and ticket counter are of one instant, too.
func TestRecomputeResurrectsNoUser(t *testing.T) {
	onEveryBigtable(t, testRecomputeResurrectsNoUser)
}

func testRecomputeResurrectsNoUser(t *testing.T, open opener) {
	for requests := 1; requests <= 3; requests++ {
		s := newHarness(t, open)
		s.apply(s.at(1), s.at(5))
		s.fold()
		b := s.startRecompute()
		s.step(b, requests)
		s.delete("u")
		s.finish(b)
		s.expect(0)
	}
}

func TestRefreshResurrectsNoUser(t *testing.T) {
	onEveryBigtable(t, testRefreshResurrectsNoUser)
}

func testRefreshResurrectsNoUser(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1))
	m := s.startApply(s.neverFolding(), s.at(2))
	s.stepToWrite(m)
	s.delete("u")
	s.finish(m)
	s.expect(0)
}

// A deletion leaves a marker, not an empty profile.
func TestDeletionHidesNoNewerEvent(t *testing.T) { onEveryBigtable(t, testDeletionHidesNoNewerEvent) }

func testDeletionHidesNoNewerEvent(t *testing.T, open opener) {
	s := newHarness(t, open)
	d := s.start("delete", func(ctx context.Context) error {
		_, err := s.neverFolding().Delete(ctx, appID, "u")
		return err
	})
	s.clock += hour
	s.apply(bought("u", s.clock))
	s.finish(d)
	s.expect(1)
}

// A missing block was replaced; it is not empty.
func TestMissingBlockIsNotEmpty(t *testing.T) {
	onEveryBigtable(t, testMissingBlockIsNotEmpty)
}

func testMissingBlockIsNotEmpty(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(5))
	s.fold()
	s.setStrategy(plainer)
	s.setStrategy(plain)
	r := s.startRead()
	s.step(r, 1) // the row names the block
	s.apply(s.at(6))
	s.fold() // merges it with the new event
	s.round(profile.RecomputeOptions{Maintain: true})
	if ids, err := s.store.ListBlocks(ctx, appID, "u"); err != nil || len(ids) != 1 {
		t.Fatalf("%v, %v: want the replaced block to be gone", ids, err)
	}
	s.finish(r)
	s.expect(3)
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
		s.expect(2)
		s.round(profile.RecomputeOptions{Maintain: true})
		s.expect(2)
	}
}

// Folding deletes nothing: a reader with an older manifest finds the events in
// the log, and a late event has something to uncover.
func TestFoldKeepsTheLog(t *testing.T) { onEveryBigtable(t, testFoldKeepsTheLog) }

func testFoldKeepsTheLog(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(5))
	s.setStrategy(plainer)
	s.setStrategy(plain)
	r := s.startRead()
	s.step(r, 1) // a row without a manifest
	s.fold()
	s.round(profile.RecomputeOptions{Maintain: true})
	s.finish(r)
	s.expect(2)
	s.apply(s.at(3))
	s.expect(3)
}

// Tickets never start again at 1.
func TestTicketsContinueAfterDeletion(t *testing.T) {
	onEveryBigtable(t, testTicketsContinueAfterDeletion)
}

func testTicketsContinueAfterDeletion(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1))
	s.apply(s.at(2))
	until := s.delete("u")
	if _, err := s.eng.Purge(ctx, appID, "u", time.UnixMilli(until)); err != nil {
		t.Fatal(err)
	}
	row, err := s.store.TakeTicket(ctx, appID, "u")
	if err != nil || row.Ticket != 4 {
		t.Errorf("ticket %d after two refreshes and a deletion, %v; want 4", row.Ticket, err)
	}
}

// A log row that exists does not mean that profiles count its event: its first
// writer may have died, and a fold may have read past it before.
func TestDuplicateIsNotSkipped(t *testing.T) {
	onEveryBigtable(t, testDuplicateIsNotSkipped)
}

func testDuplicateIsNotSkipped(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(5))
	f := s.startFold()
	s.stepTo(f, "MutateRow") // it has read the log
	m := s.startApply(s.neverFolding(), s.at(3))
	s.step(m, 1) // logged
	s.kill(m)
	s.finish(f)
	s.apply(s.at(3)) // delivered again
	s.expect(3)
}

func TestLateEventUncoversItsRange(t *testing.T) {
	onEveryBigtable(t, testLateEventUncoversItsRange)
}

func testLateEventUncoversItsRange(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(5))
	s.fold()
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
}

// A second resolution of an event replaces the first, in the log and in blocks.
func TestSecondResolutionReplacesFirst(t *testing.T) {
	onEveryBigtable(t, testSecondResolutionReplacesFirst)
}

func testSecondResolutionReplacesFirst(t *testing.T, open opener) {
	s := newHarness(t, open)
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
}

// A block whose events have all left the window may be missing.
func TestExpiredBlockMayBeMissing(t *testing.T) {
	onEveryBigtable(t, testExpiredBlockMayBeMissing)
}

func testExpiredBlockMayBeMissing(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1))
	s.fold()
	s.clock += 91 * day
	id := s.manifest().Blocks[0].ID
	if err := s.store.DeleteBlocks(ctx, appID, "u", []history.BlockID{id}); err != nil {
		t.Fatal(err)
	}
	s.apply(bought("u", s.clock))
	s.expect(1)
	if n := s.eng.Counters().Restarts.Load(); n != 0 {
		t.Errorf("%d restarts for a block that does not matter", n)
	}
}

// A deletion meets a fold at each of its requests. A fold that drew its ticket
// before the deletion must not commit deleted events.
func TestFoldMeetsDeletion(t *testing.T) { onEveryBigtable(t, testFoldMeetsDeletion) }

func testFoldMeetsDeletion(t *testing.T, open opener) {
	for requests := range 6 {
		s := newHarness(t, open)
		s.apply(s.at(1), s.at(5))
		f := s.startFold()
		for range requests {
			if f.before != "" {
				s.step(f, 1)
			}
		}
		until := s.delete("u")
		if _, err := s.eng.Purge(ctx, appID, "u", time.UnixMilli(until)); err != nil {
			t.Fatal(err)
		}
		s.finish(f)
		s.expect(0)
		s.clock += hour
		s.apply(bought("u", s.clock))
		s.expect(1)
		s.round(profile.RecomputeOptions{Maintain: true})
		s.expect(1)
		for _, b := range s.manifest().Blocks {
			if b.From.Time <= until {
				t.Errorf("after %d requests: block %+v covers deleted events", requests, b)
			}
		}
	}
}

// The deletion of orphans meets a fold at each of its requests, and either ends
// first. It deletes no block that the manifest names, then or later.
func TestOrphanDeletionMeetsFold(t *testing.T) { onEveryBigtable(t, testOrphanDeletionMeetsFold) }

func testOrphanDeletionMeetsFold(t *testing.T, open opener) {
	begins := map[string]func(*harness) *actor{
		"announced": func(s *harness) *actor { return s.startFold() },
		// The event is old, and there are enough unfolded events for a fold.
		"with a refresh": func(s *harness) *actor { return s.startApply(s.folding(2), s.at(6)) },
	}
	s := newHarness(t, open)
	for name, begin := range begins {
		for variant := range 32 {
			requests, orphansFirst, busy := variant/4, variant&1 != 0, variant&2 != 0
			s.clear()
			s.apply(s.at(1), s.at(5))
			want := 2
			if name == "with a refresh" {
				want++
			}
			f := begin(s)
			for range requests {
				if f.before != "" {
					s.step(f, 1)
				}
			}
			if busy { // another ticket is drawn in between
				s.apply(bought("u", s.clock))
				want++
			}
			app := s.app()
			w := s.start("orphans", func(ctx context.Context) error {
				e := s.engine()
				e.NeverFold() // the other process folds
				_, err := e.Recompute(ctx, app, store.Range{}, profile.RecomputeOptions{OnlyStale: true, Maintain: true}, func(profile.Progress) error { return nil })
				return err
			})
			s.step(w, 2) // rows; blocks
			if !orphansFirst {
				s.finish(f)
			}
			s.finish(w)
			s.finish(f)
			s.expect(want)
			if n := s.eng.Counters().CorruptBlocks.Load(); n != 0 {
				t.Errorf("%s, after %d requests of the fold, orphans first: %v, busy: %v: a named block was deleted", name, requests, orphansFirst, busy)
			}
		}
	}
}

// A fold covers no more than it announced: the gap before a block of young events
// ends later than the announcement.
func TestFoldCoversOnlyAnnouncedRange(t *testing.T) {
	onEveryBigtable(t, testFoldCoversOnlyAnnouncedRange)
}

func testFoldCoversOnlyAnnouncedRange(t *testing.T, open opener) {
	s := newHarness(t, open)
	e := s.engine()
	e.SetLimits(2, 100, 2, 100, time.Minute)
	ago := func(seconds int64) store.LogEvent { return bought("u", s.clock-seconds*1000) }
	if _, err := e.Apply(ctx, s.app(), []store.LogEvent{ago(3600), ago(3000), ago(10), ago(9), ago(8)}); err != nil {
		t.Fatal(err)
	}
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
}

// The folds of several processes' refreshes leave each other's announcements
// alone. Otherwise none of them would ever commit.
func TestFoldsLeaveAnnouncementsAlone(t *testing.T) {
	onEveryBigtable(t, testFoldsLeaveAnnouncementsAlone)
}

func testFoldsLeaveAnnouncementsAlone(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(2), s.at(3), s.at(4))
	app := s.app()
	f := s.startFold()
	s.stepTo(f, "CheckAndMutateRow")
	s.step(f, 1)
	for i := range int64(20) { // each finds enough for a fold, and is overtaken with its own
		m := s.startApply(s.folding(1), bought("u", s.clock-i*1000)) // outside what is announced
		s.stepTo(m, "CheckAndMutateRow")
		if _, err := s.store.TakeTicket(ctx, app.ID, "u"); err != nil {
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
}

// A busy user is folded when enough events are old enough, not with each event.
func TestBusyUserFoldsRarely(t *testing.T) {
	onEveryBigtable(t, testBusyUserFoldsRarely)
}

func testBusyUserFoldsRarely(t *testing.T, open opener) {
	b := newFixture(t, 90, plain)
	b.eng.SetLimits(20, 1000, 1000, 1000, 5*time.Second)
	b.eng.SetMaxYoung(1000)
	for range 100 { // ten a second: 50 at a time are too young
		b.clock += 100
		b.apply(bought("u", b.clock))
	}
	if n := b.eng.Counters().Folds.Load(); n != 2 {
		t.Errorf("%d folds, want two", n)
	}
	if r := b.read("u"); red(r) != 3_000 {
		t.Errorf("%v", red(r))
	}
}

// A fold merges a small block of any age with the events that follow it, without
// those that have left the window.
func TestSmallBlocksAreMerged(t *testing.T) { onEveryBigtable(t, testSmallBlocksAreMerged) }

func testSmallBlocksAreMerged(t *testing.T, open opener) {
	s := newHarness(t, open)
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
	if err := s.apps.SetRetention(ctx, appID, 0); err != nil {
		t.Fatal(err)
	}
	s.expect(4) // the event that was left to the log still counts
}

// plainer is another strategy with the same scores.
var plainer = func() strategy.Strategy {
	s := plain
	s.HalfLives = strategy.InDays(365)
	return s
}()

// A hot user, with a message between any two requests of a fold, folds.
func TestHotUserFolds(t *testing.T) { onEveryBigtable(t, testHotUserFolds) }

func testHotUserFolds(t *testing.T, open opener) {
	s := newHarness(t, open)
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
}
