package profile_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// A read, a refresh or a recompute that finds a damaged or lost block logs and
// counts it, and reads the log in its place. The next fold writes another block.
func TestDamagedBlock(t *testing.T) {
	finders := map[string]func(*harness){
		"read":      func(s *harness) { s.read("u") },
		"refresh":   func(s *harness) { s.apply(s.at(20)) },
		"recompute": func(s *harness) { s.recomputeAll() },
	}
	for name, find := range finders {
		for _, lost := range []bool{false, true} {
			s := newHarness(t, storetest.NewWithClient)
			s.apply(s.at(1), s.at(5))
			s.fold()
			id := s.manifest().Blocks[0].ID
			spoilt := []store.BlockWrite{{ID: id, Newest: s.clock, Value: []byte("no block")}}
			if lost {
				must.Succeed(t, s.store.Histories.DeleteBlocks(ctx, appID, "u", []history.BlockID{id}))
			} else if err := s.store.Histories.WriteBlocks(ctx, appID, "u", spoilt); err != nil {
				t.Fatal(err)
			}
			s.setStrategy(plainer)
			s.setStrategy(plain)
			find(s)
			want := 60.0
			if name == "refresh" {
				want = 90
			}
			if r := s.read("u"); red(r) != want || !r.Stored {
				t.Errorf("%s, lost: %v: %+v, want what the log says", name, lost, r)
			}
			if n := s.eng.Counters().CorruptBlocks.Load(); n != 1 {
				t.Errorf("%s, lost: %v: %d blocks counted as damaged, want 1", name, lost, n)
			}
			if m := s.manifest(); len(m.Blocks) != 0 {
				t.Errorf("%s, lost: %v: the manifest still names it: %+v", name, lost, m)
			}
			s.fold()
			s.expect(int(want) / 30)
		}
	}
}

// A damaged manifest names no block: the log is read, and the next fold packs it
// again.
func TestDamagedManifest(t *testing.T) {
	finders := map[string]func(*harness){
		"read": func(s *harness) {
			s.setStrategy(plainer)
			s.setStrategy(plain)
			s.read("u")
		},
		"refresh":   func(s *harness) { s.apply(s.at(5)) },
		"recompute": func(s *harness) { s.recomputeAll() },
		"fold":      func(s *harness) { s.fold() },
	}
	for name, find := range finders {
		s := newHarness(t, storetest.NewWithClient)
		s.apply(s.at(1), s.at(5))
		s.fold()
		m := bigtable.NewMutation()
		m.Set("u", "m", bigtable.Now(), append(s.manifest().AppendBinary(nil), 0))
		must.Succeed(t, s.client.Open(store.TableUsers).Apply(ctx, appID+",u,", m))
		find(s)
		if s.eng.Counters().CorruptManifests.Load() == 0 && name != "fold" {
			t.Errorf("%s: the damage is not counted", name)
		}
		s.expect(2)
		if name != "fold" {
			s.fold()
		}
		if m := s.manifest(); len(m.Blocks) != 1 {
			t.Errorf("%s: %+v, want it folded again", name, m)
		}
		s.expect(2)
	}
}

// Events that were outside the blocks before a trim are outside the blocks after it.
func TestTrimLosesNothing(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	for i := range int64(10) { // too many to be merged with one more
		s.apply(bought("u", s.clock-89*day-i))
	}
	s.fold()
	s.apply(s.at(1))
	s.fold()
	s.apply(s.at(5))
	s.clock += 2 * day
	lazy := s.engine()
	lazy.NeverFold()
	old := s.manifest()
	_, err := lazy.Recompute(ctx, s.app(), store.Range{}, profile.RecomputeOptions{Maintain: true}, func(profile.Progress) error { return nil })
	if m := s.manifest(); err != nil || len(old.Blocks) != 2 || len(m.Blocks) != 1 {
		t.Fatalf("%+v became %+v, %v; want the older of two blocks to be gone", old, m, err)
	}
	s.expect(2)
}

// A deletion died after its tombstone. A refresh that drew its ticket before
// stores a profile that was not computed under the tombstone.
func TestRefreshMeetsUnfinishedDeletion(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	s.apply(s.at(1))
	m := s.startApply(s.neverFolding(), bought("u", s.clock+2000)) // stamped by a clock that is ahead
	s.stepTo(m, "ReadRows")
	d := s.start("delete", func(ctx context.Context) error {
		_, err := s.neverFolding().Delete(ctx, appID, "u")
		return err
	})
	s.step(d, 2) // read and write the tombstone
	s.kill(d)
	s.finish(m)
	s.clock += 3000
	s.expect(1)
}

// A history that cannot be folded does not keep any profile from being computed.
func TestUnfoldableHistoryStopsNoOther(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	other := s.at(1)
	other.User = "z"
	s.apply(s.at(1), s.at(5), other)
	spoilt := bigtable.NewMutation()
	spoilt.Set("e", "conversion,Bought,size", bigtable.Timestamp(s.at(1).Time*1000), []byte("x"))
	key := "shop,u," + time.UnixMilli(s.at(1).Time).UTC().Format("2006-01-02T15:04:05.000Z") + "," + s.at(1).ID
	must.Succeed(t, s.client.Open(store.TableEvents).Apply(ctx, key, spoilt))
	e := s.folding(1)
	p, err := e.Recompute(ctx, s.app(), store.Range{}, profile.RecomputeOptions{Maintain: true}, func(profile.Progress) error { return nil })
	if err != nil || p.Written != 2 || p.Folded != 1 || e.Counters().FoldFaults.Load() != 1 {
		t.Errorf("%+v, %v, %d faults; want two profiles, and one of two histories folded", p, err, e.Counters().FoldFaults.Load())
	}
	s.expect(2)
}
