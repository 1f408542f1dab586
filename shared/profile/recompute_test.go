package profile_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// crowd imports the events of many users: i%4+1 events each, of which some
// users' are folded.
func crowd(t *testing.T, b *fixture, users int) {
	t.Helper()
	var events []store.LogEvent
	for i := range users {
		for j := range i%4 + 1 {
			events = append(events, bought(fmt.Sprintf("u%04d", i), b.clock-int64(j+1)*hour))
		}
	}
	b.importEvents(events...)
	for i := 0; i < users; i += race.Or(3, 9) {
		if _, err := b.eng.Fold(ctx, b.app(), fmt.Sprintf("u%04d", i)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecompute(t *testing.T) {
	const users = 520 // more than two groups of 256
	b := newFixture(t, 90, plain)
	crowd(t, b, users)
	if stale, _, err := b.eng.Verify(ctx, b.app(), store.Range{}, time.Time{}); err != nil || stale != 0 {
		t.Errorf("%d stale, %v: profiles that are computed when read are not", stale, err)
	}
	b.delete("u0001")
	b.clock++
	var steps []profile.Progress
	p, err := b.eng.Recompute(ctx, b.app(), store.Range{}, profile.RecomputeOptions{}, func(p profile.Progress) error {
		steps = append(steps, p)
		return nil
	})
	must.Succeed(t, err)
	if !p.Done || p.Users != users || p.Known != users-1 || p.Written != users || p.Events != users/4*10-2 {
		t.Errorf("%+v", p)
	}
	if len(steps) != 3 || steps[0].Users != 256 || steps[0].Next != "u0256" || steps[0].Done || !reflect.DeepEqual(steps[2], p) {
		t.Errorf("%+v", steps)
	}
	check := func(version int64, each float64) {
		t.Helper()
		for i := range users {
			want := each * float64(i%4+1)
			if i == 1 {
				want = 0
			}
			if r := b.read(fmt.Sprintf("u%04d", i)); !r.Stored || red(r) != want || r.StrategyVersion != version {
				t.Fatalf("u%04d: %+v, want %v stored", i, r, want)
			}
		}
	}
	check(1, 30)

	twice := plain
	twice.FacetsScoring = []strategy.FacetScore{{FacetName: "color", Score: 6}}
	b.setStrategy(twice)
	if stale, _, err := b.eng.Verify(ctx, b.app(), store.Range{}, time.Time{}); err != nil || stale != users {
		t.Errorf("%d stale, %v; want all", stale, err)
	}
	for i := range 10 {
		b.read(fmt.Sprintf("u%04d", i)) // which stores them under the new strategy
	}
	p, err = b.eng.Recompute(ctx, b.app(), store.Range{}, profile.RecomputeOptions{OnlyStale: true}, func(profile.Progress) error { return nil })
	if err != nil || p.Written != users-10 || p.Users != users || p.Known != users-1 {
		t.Errorf("%+v, %v; want all but ten to be written", p, err)
	}
	check(2, 60)
}

func TestRecomputeResumes(t *testing.T) {
	const users = 600
	b := newFixture(t, 90, plain)
	crowd(t, b, users)
	seen, calls := int64(0), 0
	for part := (store.Range{To: "u0550"}); ; calls++ {
		// Time is up from the beginning: one group is done all the same.
		p, err := b.eng.Recompute(ctx, b.app(), part, profile.RecomputeOptions{Until: time.UnixMilli(b.clock)}, func(profile.Progress) error { return nil })
		must.Succeed(t, err)
		seen += p.Written
		if p.Done {
			break
		}
		part.From = p.Next
	}
	if seen != 550 || calls != 2 {
		t.Errorf("%d profiles in %d calls, want 550 in 3", seen, calls+1)
	}
	stop := errors.New("cancelled")
	p, err := b.eng.Recompute(ctx, b.app(), store.Range{}, profile.RecomputeOptions{}, func(profile.Progress) error { return stop })
	if !errors.Is(err, stop) || p.Done || p.Users != 256 {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := b.eng.Recompute(ctx, b.app(), store.Range{From: "v"}, profile.RecomputeOptions{}, func(profile.Progress) error { return nil }); err != nil || !p.Done || p.Users != 0 {
		t.Errorf("a part without users: %+v, %v", p, err)
	}
}

func TestNightlyRound(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	for i := range int64(10) {
		s.apply(s.at(i))
	}
	s.round(profile.RecomputeOptions{OnlyStale: true, Maintain: true})
	m := s.manifest()
	if len(m.Blocks) != 1 || m.Blocks[0].Events != 10 || m.Complete == 0 {
		t.Fatalf("%+v, want one block of ten events and nothing outside", m)
	}
	s.expect(10)
	s.clock += 60 * day
	s.apply(bought("u", s.clock-hour))
	s.round(profile.RecomputeOptions{OnlyStale: true, Maintain: true})
	if m = s.manifest(); len(m.Blocks) != 2 {
		t.Fatalf("%+v, want another block: the first is too large to be joined with one event", m)
	}
	s.expect(11)
	s.clock += 40 * day
	s.round(profile.RecomputeOptions{OnlyStale: true, Maintain: true}) // trims
	s.round(profile.RecomputeOptions{OnlyStale: true, Maintain: true}) // sweeps
	if m = s.manifest(); len(m.Blocks) != 1 || m.Complete == 0 {
		t.Errorf("%+v, want the first block to be gone, and still nothing outside", m)
	}
	if ids, err := s.store.Histories.ListBlocks(ctx, appID, "u"); err != nil || len(ids) != 1 {
		t.Errorf("%v, %v: want one block", ids, err)
	}
	s.expect(1)
}

// A fold of very many events goes on by parts, in blocks of bounded size.
func TestFoldOfManyEvents(t *testing.T) {
	const events = 3_000
	s := newHarness(t, storetest.NewWithClient)
	var all []store.LogEvent
	for i := range int64(events) {
		e := bought("u", s.clock-day+i/5) // several of one millisecond
		e.ID = fmt.Sprintf("%011d", i)
		all = append(all, e)
	}
	if _, err := s.eng.Import(ctx, s.app(), all); err != nil {
		t.Fatal(err)
	}
	e := s.engine()
	e.SetLimits(1000, 700, 300, 100, time.Minute)
	if done, err := e.Fold(ctx, s.app(), "u"); !done || err != nil {
		t.Fatal(done, err)
	}
	m := s.manifest()
	total := 0
	for _, b := range m.Blocks {
		if b.Events > 300 {
			t.Errorf("%+v: more than its limit", b)
		}
		total += b.Events
	}
	if total != events || len(m.Blocks) < 10 {
		t.Errorf("%d events in %d blocks", total, len(m.Blocks))
	}
	s.expect(events)
	// A late event costs the block that covers its time, and no other.
	s.apply(bought("u", all[1500].Time))
	if left := s.manifest(); len(left.Blocks) != len(m.Blocks)-1 {
		t.Errorf("%d of %d blocks are left", len(left.Blocks), len(m.Blocks))
	}
	s.expect(events + 1)
}

func TestPurgeRemovesBlocks(t *testing.T) {
	s := newHarness(t, storetest.NewWithClient)
	s.apply(s.at(1), s.at(5))
	s.fold()
	until := s.delete("u")
	n, err := s.eng.Purge(ctx, appID, "u", time.UnixMilli(until))
	if err != nil || n != 2 {
		t.Errorf("purged %d, %v", n, err)
	}
	if ids, err := s.store.Histories.ListBlocks(ctx, appID, "u"); err != nil || len(ids) != 0 {
		t.Errorf("%v, %v: a deleted user's blocks are left", ids, err)
	}
}

func TestCompute(t *testing.T) {
	b := newFixture(t, 90, plain)
	crowd(t, b, 5)
	got, err := b.eng.Compute(ctx, b.app(), []string{"u0003", "nobody"}, affinity.Compile(plain), affinity.Compile(decaying))
	must.Succeed(t, err)
	u := got["u0003"]
	if len(u) != 2 || red(profile.Result{Profile: u[0]}) != 120 || len(u[1].HalfLives) != 2 || len(got["nobody"]) != 2 || got["nobody"][0].Known {
		t.Errorf("%+v", got)
	}
	if r := b.read("u0003"); r.Stored {
		t.Error("computing stored a profile")
	}
}
