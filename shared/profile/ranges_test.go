package profile_test

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// Each test here holds one edge of the ranges that blocks cover. A random
// history reaches these edges only now and then.

// An import draws its tickets like a message: an event in a covered range
// uncovers the range first.
func TestImportUncoversRange(t *testing.T) {
	s := newHarness(t, storetest.NewDeployed)
	s.apply(s.at(1), s.at(5))
	s.fold()
	if _, err := s.neverFolding().Import(ctx, s.app(), []store.LogEvent{s.at(3)}); err != nil {
		t.Fatal(err)
	}
	s.expect(3)
	if m := s.manifest(); len(m.Blocks) != 0 {
		t.Errorf("a block still covers the imported event: %+v", m)
	}
}

// A full block ends where the next event lies, so that the next block's range
// starts with that event. The range includes its start: the same event, logged
// again with other filters, uncovers it.
func TestRangeIncludesItsStart(t *testing.T) {
	s := newHarness(t, storetest.NewDeployed)
	s.apply(s.at(1), s.at(3), s.at(5))
	e := s.engine()
	e.SetLimits(1000, 100, 2, 100, time.Minute)
	if done, err := e.Fold(ctx, s.app(), "u"); !done || err != nil {
		t.Fatalf("fold: %v, %v", done, err)
	}
	third := s.at(5)
	start := history.Pos{Time: third.Time, ID: third.ID}
	if m := s.manifest(); len(m.Blocks) != 2 || m.Blocks[1].From != start {
		t.Fatalf("%+v, want two blocks of which the second starts at %+v", m, start)
	}
	third.Counts = []affinity.Count{{Facet: "color", Value: "Red", N: 2}}
	s.applyTo(s.neverFolding(), third)
	s.expect(4) // the third event counts twice now
}

// A manifest says at which ticket nothing lay outside its blocks. That does not
// hold for the blocks that are left when one is damaged: the log is read in its
// place.
func TestDamagedBlockOfCompleteManifest(t *testing.T) {
	s := newHarness(t, storetest.NewDeployed)
	s.apply(s.at(1), s.at(3), s.at(5))
	e := s.engine()
	e.SetLimits(1000, 100, 1, 100, time.Minute)
	if done, err := e.Fold(ctx, s.app(), "u"); !done || err != nil {
		t.Fatalf("fold: %v, %v", done, err)
	}
	m := s.manifest()
	row, err := s.store.Users.ReadUser(ctx, appID, "u")
	must.Succeed(t, err)
	if len(m.Blocks) != 3 || m.Complete != row.Ticket {
		t.Fatalf("%+v at ticket %d, want three blocks and nothing outside", m, row.Ticket)
	}
	damaged := []store.BlockWrite{{ID: m.Blocks[1].ID, Newest: s.clock, Value: []byte("no block")}}
	must.Succeed(t, s.store.Histories.WriteBlocks(ctx, appID, "u", damaged))
	s.expect(3)
}

// A new block replaces the blocks that it overlaps. A block that begins where it
// ends stays named: at a ticket with nothing outside the blocks, the log is not
// read in its place.
func TestTouchingBlocksStayNamed(t *testing.T) {
	s := newHarness(t, storetest.NewDeployed)
	e := s.engine()
	e.SetLimits(1000, 100, 1, 100, time.Minute)
	fold := func(blocks int) {
		t.Helper()
		if done, err := e.Fold(ctx, s.app(), "u"); !done || err != nil {
			t.Fatalf("fold: %v, %v", done, err)
		}
		if m := s.manifest(); len(m.Blocks) != blocks || m.Complete == 0 {
			t.Errorf("%+v, want %d blocks and nothing outside", m, blocks)
		}
	}
	s.apply(s.at(2), s.at(3), s.at(5))
	fold(3)
	if _, err := s.neverFolding().Import(ctx, s.app(), []store.LogEvent{s.at(1)}); err != nil {
		t.Fatal(err)
	}
	fold(4) // two blocks in the uncovered range, up to the second block of before
	s.expect(4)
}

// A refresh that keeps too many rows of the log for its fold keeps none of that
// user's. It must not keep the rows that follow: a fold of these would cover the
// earlier ones.
func TestRowsGivenUpStayGivenUp(t *testing.T) {
	for _, keep := range []int{1, 2, 3} {
		s := newHarness(t, storetest.NewDeployed)
		e := s.engine()
		e.SetLimits(1, 100, 100, keep, time.Minute)
		s.applyTo(e, s.at(1), s.at(2), s.at(3), s.at(4), s.at(5), s.at(6), s.at(7))
		s.expect(7)
		if m := s.manifest(); len(m.Blocks) != 1 || m.Blocks[0].Events != 7 {
			t.Errorf("%d rows kept: %+v, want one block of all seven events", keep, m)
		}
	}
}
