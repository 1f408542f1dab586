package profile_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// A recompute that folds takes every user with an unfolded event, however young, also those
// whose profiles are current, and leaves the profiles as they were.
func TestRecomputeFolds(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.eng.SetInlineEvents(0)
	recompute := func(o profile.RecomputeOptions) profile.Progress {
		t.Helper()
		p, err := b.eng.Recompute(ctx, b.app(), store.Range{}, o, func(profile.Progress) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	b.apply(bought("current", b.clock-hour))
	b.apply(bought("gone", b.clock-hour))
	b.delete("gone")
	b.apply(bought("young", b.clock-minute/2))
	b.importEvents(bought("one", b.clock-hour), bought("one", b.clock-minute/2), bought("old", b.clock-100*day))
	if p := recompute(profile.RecomputeOptions{OnlyStale: true, Maintain: true}); p.Folded != 0 {
		t.Errorf("the nightly round folds %d histories, want none", p.Folded)
	}
	if p := recompute(profile.RecomputeOptions{OnlyStale: true, Fold: true}); p.Folded != 3 || p.Written != 0 {
		t.Errorf("%d histories folded, %d profiles written; want 3 and none", p.Folded, p.Written)
	}
	if p := recompute(profile.RecomputeOptions{Fold: true}); p.Folded != 0 {
		t.Errorf("again: %d histories folded, want none", p.Folded)
	}
	for user, want := range map[string]struct {
		blocks int
		score  float64
	}{"current": {1, 30}, "one": {1, 60}, "young": {1, 30}, "gone": {}, "old": {}} {
		blocks, err := b.store.Histories.ListBlocks(ctx, appID, user)
		if err != nil || len(blocks) != want.blocks || red(b.read(user)) != want.score {
			t.Errorf("%s: %d blocks, score %v, %v; want %+v", user, len(blocks), red(b.read(user)), err, want)
		}
	}
	b.apply(bought("young", b.clock-minute/4))
	if p := recompute(profile.RecomputeOptions{OnlyStale: true, Fold: true}); p.Folded != 1 {
		t.Errorf("%d histories folded, want that of the user with a new event", p.Folded)
	}
}

// BenchmarkReadAfterImport reads a user for the first time after the import of 100,000
// events: before the recompute that folds has run, after it, and after a new strategy
// as well.
func BenchmarkReadAfterImport(b *testing.B) {
	const events = 100_000
	imported := func(b *testing.B) (*fixture, *traffic) {
		var tr traffic
		f := benchFixture(b, &tr)
		piece := make([]store.LogEvent, 0, 5_000)
		for i := range events {
			if piece = append(piece, benchEvent(f.clock-80*day+int64(i)*60_000, i)); len(piece) < cap(piece) {
				continue
			}
			if _, err := f.eng.Import(ctx, f.app(), piece); err != nil {
				b.Fatal(err)
			}
			piece = piece[:0]
		}
		return f, &tr
	}
	job := func(b *testing.B, f *fixture) {
		p, err := f.eng.Recompute(ctx, f.app(), store.Range{}, profile.RecomputeOptions{OnlyStale: true, Fold: true}, func(profile.Progress) error { return nil })
		if err != nil || p.Folded != 1 {
			b.Fatalf("%+v, %v", p, err)
		}
	}
	for i, name := range []string{"before-job", "after-job", "after-job-and-strategy"} {
		b.Run(name, func(b *testing.B) {
			f, tr := imported(b)
			if i > 0 {
				job(b, f)
			}
			if i > 1 {
				st := plain
				st.FacetsScoring = []strategy.FacetScore{{FacetName: "brand", Score: 6}}
				f.setStrategy(st)
			}
			tr.received.Store(0)
			for n := 0; b.Loop(); n++ {
				if n == 1 {
					b.Fatal("only the first read is measured: run with -benchtime 1x")
				}
				r, err := f.eng.Read(ctx, f.app(), "u", 0)
				if err != nil || len(r.Affinities) == 0 {
					b.Fatalf("%+v, %v", r, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000, "ms")
			b.ReportMetric(float64(tr.received.Load()), "receivedB")
		})
	}
}
