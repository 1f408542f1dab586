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

// Each test here leads processes into the shortest interleaving in which some
// shortcut of the protocol would lose or resurrect an event.

// A fold has read past an event that is then logged and acknowledged.
func TestAFoldDoesNotCoverAnEventItHasNotRead(t *testing.T) {
	onEveryBigtable(t, testAFoldDoesNotCoverAnEventItHasNotRead)
}

func testAFoldDoesNotCoverAnEventItHasNotRead(t *testing.T, open opener) {
	t.Run("announced", func(t *testing.T) {
		s := newHarness(t, open)
		s.apply(s.at(1), s.at(5))
		f := s.folds()
		s.reaches(f, "MutateRow") // blocks: it has read the log
		s.apply(s.at(3))
		s.ends(f)
		s.counts(3)
	})
	t.Run("with a refresh", func(t *testing.T) {
		s := newHarness(t, open)
		s.apply(s.at(1))
		m := s.applies(s.folding(2), s.at(5))
		s.reaches(m, "CheckAndMutateRow")
		s.apply(s.at(3))
		s.ends(m)
		s.counts(3)
	})
	t.Run("announced after the event was logged", func(t *testing.T) {
		s := newHarness(t, open)
		s.apply(s.at(1), s.at(5))
		m := s.applies(s.calm(), s.at(3))
		s.reaches(m, "ReadModifyWriteRow") // logged, without a ticket
		s.fold()
		s.ends(m)
		s.counts(3)
	})
}

// An event of a covered range becomes visible with the uncovering, not when it
// is logged: a ticket drawn before would let a read of the old manifest hide it.
func TestTheTicketIsDrawnAfterTheUncovering(t *testing.T) {
	onEveryBigtable(t, testTheTicketIsDrawnAfterTheUncovering)
}

func testTheTicketIsDrawnAfterTheUncovering(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(5))
	s.fold()
	s.setStrategy(plainer)
	s.setStrategy(plain) // so that a read computes
	m := s.applies(s.calm(), s.at(3))
	s.reaches(m, "CheckAndMutateRow")
	r := s.reads()
	s.passes(r, 1) // the row with the old manifest
	s.ends(m)
	s.ends(r)
	s.counts(3)
}

// Ticket and manifest are of one instant: a duplicate that read the manifest
// before the uncovering must not write above one who read it after.
func TestTicketAndManifestAreOfOneInstant(t *testing.T) {
	onEveryBigtable(t, testTicketAndManifestAreOfOneInstant)
}

func testTicketAndManifestAreOfOneInstant(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(5))
	s.fold()
	first := s.applies(s.calm(), s.at(3))
	s.reaches(first, "CheckAndMutateRow") // logged, late, not uncovered
	duplicate := s.applies(s.calm(), s.at(3))
	s.reaches(duplicate, "ReadModifyWriteRow")
	other := s.applies(s.calm(), s.at(20))
	s.reaches(other, "ReadRows") // has its ticket, with the covering manifest
	s.passes(first, 1)           // uncovered
	s.ends(duplicate)
	s.ends(other)
	s.dies(first)
	s.counts(4)
}

// Whoever computes reads the row first: an event logged after that has a later
// ticket.
func TestAReaderWritesAtTheTicketItFoundBeforeTheLog(t *testing.T) {
	onEveryBigtable(t, testAReaderWritesAtTheTicketItFoundBeforeTheLog)
}

func testAReaderWritesAtTheTicketItFoundBeforeTheLog(t *testing.T, open opener) {
	for _, requests := range []int{1, 2} {
		s := newHarness(t, open)
		s.apply(s.at(1))
		s.setStrategy(plainer)
		s.setStrategy(plain)
		r := s.reads()
		s.passes(r, requests) // the row; and the log
		s.apply(s.at(2))
		s.ends(r)
		s.counts(2)
	}
}

func TestABulkWriterHidesNoRefresh(t *testing.T) { onEveryBigtable(t, testABulkWriterHidesNoRefresh) }

func testABulkWriterHidesNoRefresh(t *testing.T, open opener) {
	for requests := 1; requests <= 3; requests++ {
		s := newHarness(t, open)
		s.apply(s.at(1), s.at(5))
		s.fold()
		b := s.recomputes()
		s.passes(b, requests) // rows; what is outside; blocks
		s.apply(s.at(3))
		s.ends(b)
		s.counts(3)
	}
}

// Tombstone and counter are of one instant, too.
func TestABulkWriterResurrectsNobody(t *testing.T) {
	onEveryBigtable(t, testABulkWriterResurrectsNobody)
}

func testABulkWriterResurrectsNobody(t *testing.T, open opener) {
	for requests := 1; requests <= 3; requests++ {
		s := newHarness(t, open)
		s.apply(s.at(1), s.at(5))
		s.fold()
		b := s.recomputes()
		s.passes(b, requests)
		s.delete("u")
		s.ends(b)
		s.counts(0)
	}
}

func TestARefreshUnderWayResurrectsNobody(t *testing.T) {
	onEveryBigtable(t, testARefreshUnderWayResurrectsNobody)
}

func testARefreshUnderWayResurrectsNobody(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1))
	m := s.applies(s.calm(), s.at(2))
	s.reaches(m, "MutateRow") // computed
	s.delete("u")
	s.ends(m)
	s.counts(0)
}

// A deletion leaves a mark, not an empty profile.
func TestADeletionHidesNoNewerEvent(t *testing.T) { onEveryBigtable(t, testADeletionHidesNoNewerEvent) }

func testADeletionHidesNoNewerEvent(t *testing.T, open opener) {
	s := newHarness(t, open)
	d := s.leads("delete", func(ctx context.Context) error {
		_, err := s.calm().Delete(ctx, appID, "u")
		return err
	})
	s.clock += hour
	s.apply(bought("u", s.clock))
	s.ends(d)
	s.counts(1)
}

// A block that is gone was replaced; it is not empty.
func TestABlockThatWasReplacedIsNotEmpty(t *testing.T) {
	onEveryBigtable(t, testABlockThatWasReplacedIsNotEmpty)
}

func testABlockThatWasReplacedIsNotEmpty(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(5))
	s.fold()
	s.setStrategy(plainer)
	s.setStrategy(plain)
	r := s.reads()
	s.passes(r, 1) // the row names the block
	s.apply(s.at(6))
	s.fold() // joins it with the new event
	s.round(profile.RecomputeOptions{Maintain: true})
	if ids, err := s.store.ListBlocks(ctx, appID, "u"); err != nil || len(ids) != 1 {
		t.Fatalf("%v, %v: want the replaced block to be gone", ids, err)
	}
	s.ends(r)
	s.counts(3)
}

// The answer to a commit is lost: the blocks are named all the same.
func TestAFoldWhoseAnswerIsLostKeepsItsBlocks(t *testing.T) {
	onEveryBigtable(t, testAFoldWhoseAnswerIsLostKeepsItsBlocks)
}

func testAFoldWhoseAnswerIsLostKeepsItsBlocks(t *testing.T, open opener) {
	for _, at := range []int{1, 2} { // the announcement, the commit
		s := newHarness(t, open)
		s.apply(s.at(1), s.at(5))
		f := s.folds()
		for range at - 1 {
			s.reaches(f, "CheckAndMutateRow")
			s.passes(f, 1)
		}
		s.reaches(f, "CheckAndMutateRow")
		s.answers(f, lose)
		s.ends(f)
		s.counts(2)
		s.round(profile.RecomputeOptions{Maintain: true})
		s.counts(2)
	}
}

// Folding deletes nothing: a reader with an older manifest finds the events in
// the log, and a late event has something to uncover.
func TestAFoldLeavesTheLog(t *testing.T) { onEveryBigtable(t, testAFoldLeavesTheLog) }

func testAFoldLeavesTheLog(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(5))
	s.setStrategy(plainer)
	s.setStrategy(plain)
	r := s.reads()
	s.passes(r, 1) // a row without a manifest
	s.fold()
	s.round(profile.RecomputeOptions{Maintain: true})
	s.ends(r)
	s.counts(2)
	s.apply(s.at(3))
	s.counts(3)
}

// Tickets never begin again.
func TestTicketsOutliveADeletion(t *testing.T) { onEveryBigtable(t, testTicketsOutliveADeletion) }

func testTicketsOutliveADeletion(t *testing.T, open opener) {
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

// That a log row was there before does not make its event known: whoever wrote
// it may have died before a fold had read past it.
func TestADuplicateOfALostMessageIsNotSkipped(t *testing.T) {
	onEveryBigtable(t, testADuplicateOfALostMessageIsNotSkipped)
}

func testADuplicateOfALostMessageIsNotSkipped(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(5))
	f := s.folds()
	s.reaches(f, "MutateRow") // it has read the log
	m := s.applies(s.calm(), s.at(3))
	s.passes(m, 1) // logged
	s.dies(m)
	s.ends(f)
	s.apply(s.at(3)) // delivered again
	s.counts(3)
}

func TestALateEventUncoversAndAnOldOneDoesNotCount(t *testing.T) {
	onEveryBigtable(t, testALateEventUncoversAndAnOldOneDoesNotCount)
}

func testALateEventUncoversAndAnOldOneDoesNotCount(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(5))
	s.fold()
	s.apply(s.at(3))
	if m := s.manifest(); len(m.Blocks) != 0 {
		t.Errorf("%+v: the range of a late event is still covered", m)
	}
	s.counts(3)
	s.fold()
	s.apply(bought("u", s.clock-91*day)) // outside the window
	s.counts(3)
	s.clock += 90*day - 19*hour // the first three leave
	s.counts(0)
}

// A second resolution of an event takes the place of the first, in the log and
// in blocks.
func TestASecondResolutionReplacesTheFirst(t *testing.T) {
	onEveryBigtable(t, testASecondResolutionReplacesTheFirst)
}

func testASecondResolutionReplacesTheFirst(t *testing.T, open opener) {
	s := newHarness(t, open)
	e := s.at(3)
	e.Counts = []affinity.Count{{Facet: "color", Value: "Blue", N: 1}, {Facet: "brand", Value: "A", N: 1}}
	s.apply(s.at(1), e, s.at(5))
	s.fold()
	s.counts(2)
	s.apply(s.at(3))
	s.counts(3)
	if r := s.read("u"); len(r.Affinities) != 1 {
		t.Errorf("%+v: the first resolution is still there", r.Affinities)
	}
	s.fold()
	s.counts(3)
}

// A block of which nothing counts any more may be gone.
func TestALostBlockOutsideTheWindowIsNotMissed(t *testing.T) {
	onEveryBigtable(t, testALostBlockOutsideTheWindowIsNotMissed)
}

func testALostBlockOutsideTheWindowIsNotMissed(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1))
	s.fold()
	s.clock += 91 * day
	id := s.manifest().Blocks[0].ID
	if err := s.store.DeleteBlocks(ctx, appID, "u", []history.BlockID{id}); err != nil {
		t.Fatal(err)
	}
	s.apply(bought("u", s.clock))
	s.counts(1)
	if n := s.eng.Counters().Restarts.Load(); n != 0 {
		t.Errorf("%d restarts for a block that does not matter", n)
	}
}

// A deletion meets a fold at each of its requests, and a fold that had its
// ticket before the deletion must not commit what is deleted.
func TestAFoldAndADeletion(t *testing.T) { onEveryBigtable(t, testAFoldAndADeletion) }

func testAFoldAndADeletion(t *testing.T, open opener) {
	for requests := range 6 {
		s := newHarness(t, open)
		s.apply(s.at(1), s.at(5))
		f := s.folds()
		for range requests {
			if f.before != "" {
				s.passes(f, 1)
			}
		}
		until := s.delete("u")
		if _, err := s.eng.Purge(ctx, appID, "u", time.UnixMilli(until)); err != nil {
			t.Fatal(err)
		}
		s.ends(f)
		s.counts(0)
		s.clock += hour
		s.apply(bought("u", s.clock))
		s.counts(1)
		s.round(profile.RecomputeOptions{Maintain: true})
		s.counts(1)
		for _, b := range s.manifest().Blocks {
			if b.From.Time <= until {
				t.Errorf("after %d requests: %+v reaches to what is deleted", requests, b)
			}
		}
	}
}

// A sweep meets a fold at each of its requests, and either ends first: the sweep
// takes no block that is, or comes to be, named.
func TestASweepAndAFold(t *testing.T) { onEveryBigtable(t, testASweepAndAFold) }

func testASweepAndAFold(t *testing.T, open opener) {
	begins := map[string]func(*harness) *actor{
		"announced": func(s *harness) *actor { return s.folds() },
		// The event is old, and what is outside the blocks enough for a fold.
		"with a refresh": func(s *harness) *actor { return s.applies(s.folding(2), s.at(6)) },
	}
	s := newHarness(t, open)
	for name, begin := range begins {
		for variant := range 32 {
			requests, sweepFirst, busy := variant/4, variant&1 != 0, variant&2 != 0
			s.clear()
			s.apply(s.at(1), s.at(5))
			want := 2
			if name == "with a refresh" {
				want++
			}
			f := begin(s)
			for range requests {
				if f.before != "" {
					s.passes(f, 1)
				}
			}
			if busy { // another ticket is drawn meanwhile
				s.apply(bought("u", s.clock))
				want++
			}
			app := s.app()
			w := s.leads("sweep", func(ctx context.Context) error {
				e := s.engine()
				e.NeverFold() // which leaves the fold to the other
				_, err := e.Recompute(ctx, app, store.Range{}, profile.RecomputeOptions{OnlyStale: true, Maintain: true}, func(profile.Progress) error { return nil })
				return err
			})
			s.passes(w, 2) // rows; blocks
			if !sweepFirst {
				s.ends(f)
			}
			s.ends(w)
			s.ends(f)
			s.counts(want)
			if n := s.eng.Counters().CorruptBlocks.Load(); n != 0 {
				t.Errorf("%s, after %d requests of the fold, sweep first: %v, busy: %v: a named block was swept", name, requests, sweepFirst, busy)
			}
		}
	}
}

// A fold covers no more than it has announced: where a block holds young events,
// the gap before it ends later than that.
func TestAFoldCoversWhatItAnnouncedOnly(t *testing.T) {
	onEveryBigtable(t, testAFoldCoversWhatItAnnouncedOnly)
}

func testAFoldCoversWhatItAnnouncedOnly(t *testing.T, open opener) {
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
	f := s.folds()
	s.reaches(f, "MutateRow") // it has read the log
	s.apply(ago(30))          // in the gap, and younger than what is announced
	s.counts(7)
	s.ends(f)
	s.counts(7)
	s.apply(ago(1))
	s.counts(8)
}

// Folds beside the refreshes of several processes leave each other's
// announcement alone, or none of them would ever commit.
func TestFoldsOfManyProcesses(t *testing.T) { onEveryBigtable(t, testFoldsOfManyProcesses) }

func testFoldsOfManyProcesses(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(2), s.at(3), s.at(4))
	app := s.app()
	f := s.folds()
	s.reaches(f, "CheckAndMutateRow")
	s.passes(f, 1)
	for i := range int64(20) { // each finds enough for a fold, and is overtaken with its own
		m := s.applies(s.folding(1), bought("u", s.clock-i*1000)) // outside what is announced
		s.reaches(m, "CheckAndMutateRow")
		if _, err := s.store.TakeTicket(ctx, app.ID, "u"); err != nil {
			t.Fatal(err)
		}
		s.ends(m)
		if a := s.manifest().Announced; a == nil {
			t.Fatalf("after %d others the announcement is gone: %+v", i, s.manifest())
		}
	}
	s.ends(f)
	if m := s.manifest(); len(m.Blocks) == 0 {
		t.Errorf("%+v: the fold that announced itself has not committed", m)
	}
	s.counts(24)
}

// A busy user is folded when enough of his events have settled, not with each.
func TestABusyUserIsFoldedNowAndThen(t *testing.T) {
	onEveryBigtable(t, testABusyUserIsFoldedNowAndThen)
}

func testABusyUserIsFoldedNowAndThen(t *testing.T, open opener) {
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

// A small block is joined with what follows it whatever its age, but for what
// counts no more.
func TestSmallBlocksAreJoined(t *testing.T) { onEveryBigtable(t, testSmallBlocksAreJoined) }

func testSmallBlocksAreJoined(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(bought("u", s.clock-80*day), bought("u", s.clock-10*day))
	s.fold()
	s.apply(s.at(1))
	s.fold()
	if m := s.manifest(); len(m.Blocks) != 1 || m.Blocks[0].Events != 3 {
		t.Fatalf("%+v, want one block of three events", m)
	}
	s.counts(3)
	s.clock += 20 * day // the first leaves
	s.apply(s.at(1))
	s.fold()
	if m := s.manifest(); len(m.Blocks) != 1 || m.Blocks[0].Events != 3 || m.Blocks[0].From.Time < s.clock-90*day {
		t.Errorf("%+v, want one block of the three events that count", m)
	}
	s.counts(3)
	if err := s.apps.SetRetention(ctx, appID, 0); err != nil {
		t.Fatal(err)
	}
	s.counts(4) // what was left to the log is still there
}

// plainer is another strategy under which the same is to be seen.
var plainer = func() strategy.Strategy {
	s := plain

	s.HalfLives = []int{365}
	return s
}()

// A hot user, with a message between any two requests of a fold, folds.
func TestAHotUserFolds(t *testing.T) { onEveryBigtable(t, testAHotUserFolds) }

func testAHotUserFolds(t *testing.T, open opener) {
	s := newHarness(t, open)
	s.apply(s.at(1), s.at(2), s.at(3))
	f := s.folds()
	n := 3
	for f.before != "" {
		s.apply(logEvent("u", s.clock+int64(n), "Bought", event.Conversion, affinity.Count{Facet: "color", Value: "Red", N: 1}))
		n++
		s.clock++
		s.passes(f, 1)
	}
	if f.err != nil || len(s.manifest().Blocks) == 0 {
		t.Errorf("%v, %+v: a message between any two requests keeps the fold from committing", f.err, s.manifest())
	}
	s.clock += hour
	s.counts(n)
}
