package profile_test

import (
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
)

// Tombstone and ticket counter are of one instant, too.
func TestRecomputeResurrectsNoUser(t *testing.T) {
	onEveryBigtable(t, testRecomputeResurrectsNoUser)
}

func testRecomputeResurrectsNoUser(t *testing.T, open opener) {
	for requests := 1; requests <= 3; requests++ {
		s := newHarness(t, open)
		s.applyFolded()
		b := s.startRecompute()
		s.step(b, requests)
		s.delete("u")
		s.finish(b)
		s.expect(0)
	}
}

func TestRefreshResurrectsNoUser(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.at(1))
		m := s.startApply(s.neverFolding(), s.at(2))
		s.stepToWrite(m)
		s.delete("u")
		s.finish(m)
		s.expect(0)
	})
}

// A deletion leaves a marker, not an empty profile.
func TestDeletionHidesNoNewerEvent(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		d := s.startDelete(s.neverFolding())
		s.clock += hour
		s.apply(bought("u", s.clock))
		s.finish(d)
		s.expect(1)
	})
}

// Tickets never start again at 1.
func TestTicketsContinueAfterDeletion(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.at(1))
		s.apply(s.at(2))
		until := s.delete("u")
		s.purge(until)
		row, err := s.store.Users.TakeTicket(ctx, appID, "u")
		if err != nil || row.Ticket != 4 {
			t.Errorf("ticket %d after two refreshes and a deletion, %v; want 4", row.Ticket, err)
		}
	})
}

// A deletion meets a fold at each of its requests. A fold that drew its ticket
// before the deletion must not commit deleted events.
func TestFoldMeetsDeletion(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		atEvery(func(requests int) bool {
			s.clear()
			s.apply(s.at(1), s.at(5))
			f := s.startFold()
			goesOn := s.upTo(f, requests)
			until := s.delete("u")
			s.purge(until)
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
			return goesOn
		})
	})
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
		ended := false // the fold, after the requests of an earlier variant
		for variant := 0; !ended || variant%4 > 0; variant++ {
			requests, orphansFirst, busy := variant/4, variant&1 != 0, variant&2 != 0
			s.clear()
			s.apply(s.at(1), s.at(5))
			want := 2
			if name == "with a refresh" {
				want++
			}
			f := begin(s)
			ended = !s.upTo(f, requests)
			if busy { // another ticket is drawn in between
				s.apply(bought("u", s.clock))
				want++
			}
			w := s.startRound()
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

// A late event uncovers a block after a fold has read the manifest that names it. A
// sweep may delete the block only once the fold can no longer commit.
func TestOrphanDeletionMeetsOlderManifest(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		for _, foldFirst := range []bool{false, true} {
			s.clear()
			for i := range int64(11) { // more than a fold of one event merges
				s.apply(s.at(i))
			}
			s.fold()
			block := s.manifest().Blocks[0].ID
			late := s.startApply(s.neverFolding(), bought("u", s.clock-day+hour/2))
			s.stepTo(late, "CheckAndMutateRow")
			f := s.startApply(s.folding(1), s.at(20))
			s.stepTo(f, "CheckAndMutateRow") // it has drawn its ticket, and written its block
			s.step(late, 1)                  // uncovers the older block, and draws no ticket yet
			w := s.startRound()
			if foldFirst { // between the list and the rows
				s.step(w, 2)
				s.finish(f)
			}
			s.finish(w)
			s.finish(f)
			named := slices.ContainsFunc(s.manifest().Blocks, func(b history.Block) bool { return b.ID == block })
			if named != foldFirst {
				t.Errorf("fold first: %v: the manifest names the older block: %v", foldFirst, named)
			}
			if _, err := s.eng.Compute(ctx, s.app(), []string{"u"}, affinity.Compile(plain)); err != nil {
				t.Fatal(err)
			}
			if s.eng.Counters().CorruptBlocks.Load() != 0 {
				t.Errorf("fold first: %v: a named block was deleted", foldFirst)
			}
			s.finish(late)
			s.expect(13)
		}
	})
}
