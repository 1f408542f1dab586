package profile_test

import (
	"context"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// Each test here lets a process refresh a user twice, and changes in between what the
// second refresh must not take from the first.

// expectHits checks how many refreshes of an engine used rows of the one before.
func (s *harness) expectHits(e *profile.Engine, hits int64) {
	s.t.Helper()
	if got := e.Counters().TailHits.Load(); got != hits {
		s.t.Errorf("%d refreshes used rows of the one before, want %d", got, hits)
	}
}

// An event of another process, which has the ticket in between, counts.
func TestTailNeedsTheNextTicket(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e := s.neverFolding()
		s.applyTo(e, s.at(1))
		s.applyTo(e, s.at(3))
		s.expectHits(e, 1)
		s.applyTo(s.neverFolding(), s.at(2))
		s.applyTo(e, s.at(4))
		s.expectHits(e, 1)
		s.expect(4)
		s.applyTo(e, s.at(5))
		s.expectHits(e, 2)
		s.expect(5)
	})
}

// A refresh takes its own events as they stand in the log, where another process may
// have written other filters since.
func TestTailTakesOwnEventsFromLog(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		if _, err := s.apps.UpdateLog(ctx, appID, func(a *config.App) error { a.Log.Write = schema.Names; return nil }); err != nil {
			t.Fatal(err)
		}
		e := s.engine()
		e.NeverFold()
		blue := inBlue(s.at(2))
		first := s.startApply(e, s.at(2))
		s.step(first, 1) // in the schema that readers read
		s.applyTo(s.neverFolding(), blue)
		var others []store.LogEvent // so many that they do not wait for the first message's write
		for i := range int64(100) {
			others = append(others, bought("u", s.at(1).Time+i))
		}
		s.applyTo(e, others...)
		s.finish(first)
		s.expectHits(e, 1)
		s.expect(len(others))
	})
}

// A deletion that dies after its tombstone draws no ticket.
func TestTailEndsWithTombstone(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e := s.neverFolding()
		s.applyTo(e, s.at(1), s.ahead(second))
		d := s.startDelete(e)
		s.stepTo(d, "ReadModifyWriteRow") // the ticket
		s.kill(d)
		s.clock += 2 * second
		s.applyTo(e, s.ahead(0))
		s.expectHits(e, 0)
		s.expect(1)
	})
}

// A fold commits under a ticket that was drawn long before.
func TestTailEndsWithManifest(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e := s.neverFolding()
		s.applyTo(e, s.at(1), s.at(2))
		f := s.startFold()
		s.stepTo(f, "MutateRow")
		s.applyTo(e, bought("u", s.clock-2)) // too young for the fold
		s.finish(f)
		s.applyTo(e, bought("u", s.clock-1))
		s.expectHits(e, 0)
		s.expect(4)
	})
}

// The log of another schema may hold rows that the first one lacked.
func TestTailEndsWithSchema(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e := s.neverFolding()
		s.applyTo(e, s.at(1))
		if err := s.store.Events.Log(appID, schema.Of(schema.Narrow)).Append(ctx, []store.LogEvent{s.at(1), s.at(2)}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.apps.UpdateLog(ctx, appID, func(a *config.App) error { a.Log = schema.Of(schema.Narrow); return nil }); err != nil {
			t.Fatal(err)
		}
		s.applyTo(e, s.at(3))
		s.expectHits(e, 0)
		s.expect(3)
	})
}

// The window may begin earlier than before, if the operator sets another retention.
func TestTailEndsWithEarlierWindow(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e, short := s.neverFolding(), s.app()
		short.RetentionDays = 1
		for _, hours := range []int64{-48, 1} {
			if _, err := e.Apply(ctx, short, []store.LogEvent{s.at(hours)}); err != nil {
				t.Fatal(err)
			}
		}
		s.applyTo(e, s.at(2))
		s.expectHits(e, 1) // the second one
		s.expect(3)
	})
}

// Another process replaces a block that this one has in memory.
func TestKeptBlockGoesByItsName(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e := s.folding(3)
		s.applyTo(e, s.at(1), s.at(3), s.at(5)) // folds
		s.applyTo(e, s.at(20))
		s.expectHits(e, 1)
		s.expect(4)
		s.applyTo(s.neverFolding(), s.at(2)) // uncovers the block
		s.fold()
		s.applyTo(e, s.at(21))
		s.expect(6)
	})
}

// What the blocks of a process's own fold hold does not count again.
func TestTailFollowsOwnFold(t *testing.T) { onEveryBigtable(t, testTailFollowsOwnFold) }

func testTailFollowsOwnFold(t *testing.T, open opener) {
	for _, v := range []verdict{proceed, lose} {
		s := newHarness(t, open)
		e := s.folding(3)
		m := s.start("message", func(ctx context.Context) error {
			_, err := e.Apply(ctx, s.app(), []store.LogEvent{s.at(1), s.at(2), s.at(3)})
			return err
		})
		s.stepTo(m, "CheckAndMutateRow")
		s.answer(m, v)
		s.finish(m)
		s.applyTo(e, s.at(4))
		s.expect(4)
		s.applyTo(e, s.at(5))
		s.expect(5)
	}
}
