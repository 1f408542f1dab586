package profile_test

import (
	"context"
	"testing"

	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// A recompute that packs the log of a new user while it reads it for the profile loses no event
// that is logged or deleted before any of its requests, and may die before any of them.
func TestRecomputeFoldsNewUser(t *testing.T) {
	onEveryHarness(t, func(t *testing.T, s *harness) {
		met := func(meet func(r *actor), events int) (blocks []int) {
			atEvery(func(requests int) bool {
				s.clear()
				if _, err := s.engine().Import(ctx, s.app(), []store.LogEvent{s.at(1), s.at(5)}); err != nil {
					t.Fatal(err)
				}
				app, e := s.app(), s.engine()
				r := s.start("recompute", func(ctx context.Context) error {
					_, err := e.Recompute(ctx, app, store.Range{}, profile.RecomputeOptions{OnlyStale: true, Fold: true}, func(profile.Progress) error { return nil })
					return err
				})
				more := s.upTo(r, requests)
				meet(r)
				s.expect(events)
				s.outdate()
				s.expect(events)
				blocks = append(blocks, len(s.manifest().Blocks))
				return more
			})
			return blocks
		}
		if blocks := met(func(r *actor) { s.finish(r) }, 2); len(blocks) < race.Or(5, 2) || blocks[0] != 1 {
			t.Errorf("undisturbed it makes %v blocks, want one", blocks)
		}
		met(func(r *actor) { s.apply(s.at(3)); s.finish(r) }, 3)
		met(func(r *actor) { s.apply(s.at(3)); s.kill(r) }, 3)
		met(func(r *actor) { s.kill(r) }, 2)
	})
}
