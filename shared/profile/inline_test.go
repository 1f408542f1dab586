package profile_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// inlining is an engine of another process whose refreshes fold from so many unfolded
// events on, and store up to ten events in the user's row.
func (s *harness) inlining(events int) *profile.Engine {
	e := s.folding(events)
	e.SetInlineEvents(10)
	return e
}

// foldInline folds all events that are old enough, with an announcement.
func (s *harness) foldInline() {
	s.t.Helper()
	if done, err := s.inlining(1000).Fold(ctx, s.app(), "u"); !done || err != nil {
		s.t.Fatalf("fold: %v, %v", done, err)
	}
}

func (s *harness) roundInline(e *profile.Engine) profile.Progress {
	s.t.Helper()
	p, err := e.Recompute(ctx, s.app(), store.Range{}, profile.RecomputeOptions{OnlyStale: true, Maintain: true}, func(profile.Progress) error { return nil })
	must.Succeed(s.t, err)
	return p
}

// inlineRow returns the row and its inline block, empty if the row holds none that the
// manifest names.
func (s *harness) inlineRow() (store.User, []byte) {
	s.t.Helper()
	row, err := s.store.Users.ReadPrimary(ctx, appID, "u", store.UserHistory)
	must.Succeed(s.t, err)
	m, err := history.ParseManifest(row.Manifest)
	must.Succeed(s.t, err)
	b, named := m.Inline()
	if !named {
		return row, nil
	}
	block, err := history.ParseInline(b, row.Inline)
	must.Succeed(s.t, err)
	return row, block
}

// wholeRow checks that the row holds an inline block, or none at all, and that no engine
// has found a damaged one.
func (s *harness) wholeRow(step string, inline bool, others ...*profile.Engine) {
	s.t.Helper()
	row, block := s.inlineRow()
	if (len(block) > 0) != inline || (len(row.Inline) > 0) != inline {
		s.t.Errorf("%s: the row holds %d bytes, of them %d of a block; want one: %v", step, len(row.Inline), len(block), inline)
	}
	for _, e := range append(others, s.eng) {
		if n := e.Counters().CorruptBlocks.Load(); n != 0 {
			s.t.Errorf("%s: %d blocks are lost or damaged", step, n)
		}
	}
}

// A history moves into the row, stays there with few events, and moves to rows of its
// own when it outgrows it.
func TestSmallHistoryMovesOut(t *testing.T) {
	s := newHarness(t, storetest.NewDeployed)
	e := s.inlining(1000)
	s.eng.SetInlineEvents(10)
	s.apply(s.at(1), s.at(2), s.at(3))
	for i, want := range []bool{true, true, true, false, false} {
		if p := s.roundInline(e); p.Folded != 1 {
			t.Errorf("round %d folded %d histories", i, p.Folded)
		}
		s.wholeRow(fmt.Sprint("round ", i), want)
		if ids, err := s.store.Histories.ListBlocks(ctx, appID, "u"); err != nil || want != (len(ids) == 0) {
			t.Errorf("round %d: rows of blocks: %v, %v", i, ids, err)
		}
		s.expect(3 * (i + 1))
		if p := s.roundInline(e); p.Folded != 0 {
			t.Errorf("round %d: folded again", i)
		}
		at := int64(3*i + 4)
		s.apply(s.at(at), s.at(at+1), s.at(at+2))
		s.expect(3 * (i + 2))
	}
}

// The manifest and its inline block change in one mutation, whatever a fold meets.
func TestInlineBlockChangesWithManifest(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		for _, announced := range []bool{false, true} {
			for requests, ended := 0, false; !ended; requests++ {
				for _, v := range []verdict{proceed, crash, lose} {
					if ended {
						break // no request is left to answer
					}
					s.clear()
					s.apply(s.at(1), s.at(5))
					e, app := s.inlining(1000), s.app()
					f := s.start("fold", func(ctx context.Context) error {
						if announced {
							_, err := e.Fold(ctx, app, "u")
							return err
						}
						_, err := e.Recompute(ctx, app, store.Range{}, profile.RecomputeOptions{Fold: true}, func(profile.Progress) error { return nil })
						return err
					})
					for range requests {
						if f.before != "" {
							s.step(f, 1)
						}
					}
					ended = f.before == ""
					s.apply(s.at(3)) // late, once the fold has read past it
					s.foldInline()
					if f.before != "" {
						s.answer(f, v)
					}
					for f.before != "" {
						s.step(f, 1)
					}
					s.expect(3)
					s.wholeRow(fmt.Sprintf("after %d requests of a fold, announced: %v, then %d", requests, announced, v), true, e)
					s.apply(s.at(4))
					s.wholeRow("a late event", false)
					s.expect(4)
				}
			}
		}
	})
}

// A message has drawn its ticket. Before it reads the inline block, another fold puts a
// newer one with more events into the row.
func TestInlineBlockOfAnotherTicketIsNotUsed(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.at(1))
		s.foldInline()
		s.apply(s.at(5))
		e := s.inlining(1000)
		m := s.startApply(e, bought("u", s.clock)) // too young for a fold
		s.stepTo(m, "ReadRows")
		s.foldInline()
		s.finish(m)
		s.expect(3)
		s.wholeRow("afterwards", true, e) // the newer block is not damage
	})
}

// A refresh is about to commit a block beside the inline one of its manifest. Another fold
// puts a newer block into the row first, so the refresh must not name the older one.
func TestRefreshNamesNoReplacedBlock(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		s.apply(s.at(1), s.at(2), s.at(3))
		s.foldInline()
		s.apply(s.at(20))
		app, other := s.app(), s.inlining(1000)
		f := s.start("fold", func(ctx context.Context) error {
			_, err := other.Fold(ctx, app, "u")
			return err
		})
		s.stepTo(f, "CheckAndMutateRow")
		s.step(f, 1) // it is announced
		s.stepTo(f, "CheckAndMutateRow")

		e := s.inlining(1)
		e.SetLimits(1, 100, 3, 100, time.Minute) // it merges no block of three events
		m := s.startApply(e, bought("u", s.clock))
		s.stepTo(m, "CheckAndMutateRow")
		s.finish(f)
		s.wholeRow("after the fold", true)
		s.finish(m)
		s.expect(5)
		s.wholeRow("after the refresh", false, e, other)
		if b := s.manifest().Blocks; len(b) != 1 || b[0].Events != 1 {
			t.Errorf("the manifest names %+v, want the block of the refresh", b)
		}
	})
}

// A deletion removes the inline block, and so does an opt-out. The purge removes none that
// the manifest names.
func TestDeletionDropsInlineBlock(t *testing.T) {
	s := newHarness(t, storetest.NewDeployed)
	for name, forget := range map[string]func() error{
		"deletion": func() error { _, err := s.eng.Delete(ctx, appID, "u"); return err },
		"opt-out":  func() error { _, err := s.eng.OptOut(ctx, appID, "u"); return err },
	} {
		s.clear()
		s.apply(s.at(1), s.at(5))
		s.foldInline()
		must.Succeed(t, forget())
		s.wholeRow(name, false)
	}
	s.clear()
	s.apply(s.at(1))
	s.foldInline()
	if _, err := s.neverFolding().Purge(ctx, appID, "u", time.UnixMilli(s.clock)); err != nil {
		t.Fatal(err)
	}
	s.wholeRow("purge of a block that the manifest names", true)
}

// A damaged or lost inline block costs a read of the log, and nothing else. The next
// fold writes another one.
func TestDamagedInlineBlock(t *testing.T) {
	spoils := map[string]func(cell []byte) []byte{
		"lost":      func([]byte) []byte { return nil },
		"empty":     func([]byte) []byte { return []byte{} },
		"truncated": func(b []byte) []byte { return b[:len(b)-3] },
		"flipped":   func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"of another": func(b []byte) []byte {
			return history.AppendInline(nil, history.Block{ID: history.BlockID{Ticket: 99}}, b)
		},
	}
	finders := map[string]func(*harness) error{
		"read":      func(s *harness) error { s.read("u"); return nil },
		"many":      func(s *harness) error { _, err := s.eng.ReadMany(ctx, s.app(), []string{"u", "v"}, 0); return err },
		"rank":      func(s *harness) error { _, err := s.eng.ReadRanking(ctx, s.app(), "u"); return err },
		"refresh":   func(s *harness) error { s.apply(s.at(5)); return nil },
		"recompute": func(s *harness) error { s.recomputeAll(); return nil },
		"round": func(s *harness) error {
			return s.recompute(profile.RecomputeOptions{OnlyStale: true})
		},
		"sweep": func(s *harness) error {
			n := 0
			err := s.eng.ObjectsOf(ctx, s.app(), "u", nil, func(affinity.Event) error { n++; return nil })
			if n != 2 {
				err = errors.Join(err, fmt.Errorf("%d events, want 2", n))
			}
			return err
		},
	}
	s := newHarness(t, storetest.NewWithClient)
	for spoil, with := range spoils {
		for name, find := range finders {
			s.clear()
			s.apply(s.at(1), s.at(5))
			s.foldInline()
			row, _ := s.inlineRow()
			must.Succeed(t, spoilInline(s.client, appID, with(row.Inline)))
			s.outdate()
			if err := find(s); err != nil {
				t.Fatalf("%s, %s: %v", spoil, name, err)
			}
			if n := s.eng.Counters().CorruptBlocks.Load(); n != 1 && name != "refresh" {
				t.Errorf("%s, %s: %d blocks counted as damaged, want 1", spoil, name, n)
			}
			s.expect(2)
			s.eng = s.engine() // with other counters
			if m := s.manifest(); len(m.Blocks) > 0 && name != "sweep" {
				t.Errorf("%s, %s: the manifest still names it: %+v", spoil, name, m)
			}
			if name == "sweep" {
				continue // it changes nothing
			}
			s.foldInline()
			s.expect(2)
			s.wholeRow(spoil+", "+name, true)
		}
	}
}
