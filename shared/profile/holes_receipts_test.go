package profile_test

import (
	"context"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

const second = int64(1000)

// received is an event with its receipt.
func received(e store.LogEvent, at int64) store.LogEvent {
	e.Receipt = at
	return e
}

// ahead is an event received now, of a clock that is so much ahead.
func (s *harness) ahead(by int64) store.LogEvent { return received(bought("u", s.clock+by), s.clock) }

func (s *harness) startDelete(e *profile.Engine) *actor {
	return s.start("delete", func(ctx context.Context) error {
		_, err := e.Delete(ctx, appID, "u")
		return err
	})
}

func (s *harness) purge(until int64) {
	s.t.Helper()
	if _, err := s.eng.Purge(ctx, appID, "u", time.UnixMilli(until)); err != nil {
		s.t.Fatal(err)
	}
}

// A deletion covers an event that it finds ahead of it, received before.
func TestDeletionCoversEventsAhead(t *testing.T) { onEveryBigtable(t, testDeletionCoversEventsAhead) }

func testDeletionCoversEventsAhead(t *testing.T, open opener) {
	for requests := range 4 {
		s := newHarness(t, open)
		m := s.startApply(s.neverFolding(), s.ahead(2*second), s.ahead(event.MaxAhead.Milliseconds()))
		s.step(m, requests)
		s.delete("u")
		s.expect(0)
		s.finish(m)
		s.expect(0)
		s.clock += day
		s.expect(0)
	}
}

// An event received after a deletion counts at once, also if its time is in the band.
func TestDeletionCoversNoLaterReceipt(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.ahead(2 * second))
		s.clock = s.delete("u") + 1
		s.apply(s.ahead(0))
		s.expect(1)
		s.apply(s.ahead(4 * second))
		s.expect(2)
		s.purge(s.clock)
		s.expect(2)
		s.round(profile.RecomputeOptions{})
		s.expect(2)
	})
}

// Two deliveries of an event meet a deletion between their receipts. The one received
// before it must not drop the row of the other, in whatever order both come.
func TestEarlierReceiptDropsNoLaterOne(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		for requests := range 5 {
			s.clear()
			early := s.ahead(10 * second)
			m := s.startApply(s.neverFolding(), early)
			if requests > 0 {
				s.step(m, 1) // it is in the log
			}
			until := s.delete("u")
			s.purge(until)
			s.clock = until + 1
			s.apply(received(early, s.clock))
			s.expect(1)
			for range requests {
				if m.before != "" {
					s.step(m, 1)
					s.expect(1)
				}
			}
			s.finish(m)
			s.expect(1)
			s.apply(early) // once more
			s.purge(until)
			s.expect(1)
		}
	})
}

// A fold leaves the band in the log: its blocks know no receipts.
func TestFoldLeavesTheBand(t *testing.T) { onEveryBigtable(t, testFoldLeavesTheBand) }

func testFoldLeavesTheBand(t *testing.T, open opener) {
	for name, fold := range map[string]func(*harness){
		"announced":      func(s *harness) { s.fold() },
		"with a refresh": func(s *harness) { s.finish(s.startApply(s.folding(1), s.at(-1))) },
	} {
		s := newHarness(t, open)
		m := s.startApply(s.neverFolding(), s.ahead(2*second))
		s.step(m, 1)
		s.kill(m) // nobody drops its row
		until := s.delete("u")
		s.clock = until + 1
		s.apply(s.ahead(3 * second))
		s.clock += hour
		s.apply(received(bought("u", s.clock), s.clock))
		s.clock += hour
		s.expect(2)
		fold(s)
		s.expect(2)
		blocks := s.manifest().Blocks
		if len(blocks) == 0 {
			t.Errorf("%s: nothing was folded", name)
		}
		for _, b := range blocks {
			if b.From.Time <= until+event.MaxAhead.Milliseconds() {
				t.Errorf("%s: block %+v reaches into the band", name, b)
			}
		}
	}
}

// A deletion dies after its tombstone. A block of an older fold that begins in the band
// stays in the manifest, and is not used.
func TestLeftoverBlockIsNotUsed(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		e := s.engine()
		e.SetLimits(1, 100, 1, 100, 0) // a block for each event but the newest
		events := []store.LogEvent{s.ahead(second), s.ahead(2 * second), s.ahead(180 * second)}
		s.applyTo(e, events...)
		if n := len(s.manifest().Blocks); n != 2 {
			t.Fatalf("%d blocks, want 2", n)
		}
		s.expect(3)
		d := s.startDelete(s.neverFolding())
		s.step(d, 2) // read and write the tombstone
		s.kill(d)
		s.expect(0)
		s.round(profile.RecomputeOptions{})
		s.expect(0)
		s.clock += 2
		s.apply(received(events[1], s.clock))
		s.expect(1)
		if n := len(s.manifest().Blocks); n != 0 {
			t.Errorf("%d blocks are left, want none", n)
		}
	})
}

// The machine that receives is ahead of the one that deletes, by less than the slack.
func TestSlackCoversSkew(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		skewed := received(bought("u", s.clock+second/2), s.clock+second/2)
		m := s.startApply(s.neverFolding(), skewed)
		s.step(m, 1)
		e := s.neverFolding()
		e.SetSlack(time.Second)
		until, err := e.Delete(ctx, appID, "u")
		if err != nil || until.UnixMilli() != s.clock+second {
			t.Fatalf("deleted until %v, %v; want a second after now", until, err)
		}
		s.expect(0)
		s.finish(m)
		s.expect(0)
		s.clock = until.UnixMilli() + 1
		s.apply(s.ahead(0))
		s.expect(1)
	})
}

// A refresh whose own event is older does not hide an acknowledged event that is ahead,
// nor does a process whose clock is behind.
func TestRefreshHidesNoEventAhead(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.ahead(4 * second))
		s.expect(1)
		for n := 2; n < 5; n++ {
			s.clock -= second // of the next process
			s.eng = s.engine()
			s.apply(s.ahead(0))
			s.expect(n)
			s.round(profile.RecomputeOptions{})
			s.expect(n)
		}
	})
}

// What a deletion covers is what the audit of time says, also when the clock of the
// deletion is behind an earlier one.
func TestTombstoneOnlyRises(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	lax := s.engine()
	lax.SetSlack(time.Minute)
	if _, err := lax.Delete(ctx, appID, "u"); err != nil {
		t.Fatal(err)
	}
	s.clock += second
	s.delete("u") // with less slack
	row, err := s.store.Users.ReadUser(ctx, appID, "u")
	if err != nil || row.DeletedUntil != s.clock || row.ReceivedUntil != s.clock-second+60*second {
		t.Errorf("%+v, %v; want each number to be the greater one", row.Tombstone(), err)
	}
}
