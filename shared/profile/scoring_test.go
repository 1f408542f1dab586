package profile_test

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// reranked is the plain strategy with another impact and ranking, in versions
// that differ by n.
func reranked(n int) strategy.Strategy {
	s := plain
	s.PersonalizationImpact, s.Ranking = n, strategy.PlainRanking()
	return s
}

// storedVersion returns the version of a user's stored profile and that of their row.
func (b *fixture) storedVersion(user string) (profile, row int64) {
	b.t.Helper()
	u, err := b.store.Users.ReadUser(ctx, appID, user)
	must.Succeed(b.t, err)
	p, err := affinity.ParseProfile(u.Profile, 0)
	must.Succeed(b.t, err)
	return p.StrategyVersion, u.Version
}

// bulk recomputes all users and returns how many profiles it wrote, and how
// many verify finds stale afterwards.
func (b *fixture) bulk(o profile.RecomputeOptions) (written, stale int64) {
	b.t.Helper()
	p, err := b.eng.Recompute(ctx, b.app(), store.Range{}, o, func(profile.Progress) error { return nil })
	must.Succeed(b.t, err)
	if stale, _, err = b.eng.Verify(ctx, b.app(), store.Range{}, time.Time{}); err != nil {
		b.t.Fatal(err)
	}
	return p.Written, stale
}

func TestRankingLeavesStoredProfilesValid(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.apply(bought("u", b.clock), bought("v", b.clock))
	b.setStrategy(reranked(1))
	b.setStrategy(reranked(2))
	r := b.read("u")
	if !r.Stored || red(r) != 30 || r.App.StrategyVersion != 3 || r.App.ScoringVersion != 1 {
		t.Errorf("read: %+v, want the stored profile under version 3 of scoring version 1", r)
	}
	many, err := b.eng.ReadMany(ctx, b.app(), []string{"u", "v"}, 0)
	if err != nil || !many["u"].Stored || !many["v"].Stored {
		t.Errorf("read many: %+v, %v", many, err)
	}
	if ranking, err := b.eng.ReadRanking(ctx, b.app(), "u"); err != nil || !ranking.Stored {
		t.Errorf("read for a ranking: %+v, %v; want it stored", ranking, err)
	}
	if written, stale := b.bulk(profile.RecomputeOptions{OnlyStale: true, Maintain: true}); written != 0 || stale != 0 {
		t.Errorf("nightly recompute: %d written, %d stale; want none", written, stale)
	}
	b.apply(bought("u", b.clock-1))
	if of, row := b.storedVersion("u"); of != 1 || row != 1 {
		t.Errorf("refresh: the profile has version %d and the row %d, want the scoring version 1", of, row)
	}
	if written, stale := b.bulk(profile.RecomputeOptions{}); written != 2 || stale != 0 {
		t.Errorf("whole recompute: %d written, %d stale", written, stale)
	}
	if of, row := b.storedVersion("v"); of != 1 || row != 1 {
		t.Errorf("recompute: the profile has version %d and the row %d, want the scoring version 1", of, row)
	}

	b.setStrategy(decaying)
	if written, stale := b.bulk(profile.RecomputeOptions{OnlyStale: true}); written != 2 || stale != 0 {
		t.Errorf("recompute of another scoring: %d written, %d stale; want all and none", written, stale)
	}
	if of, row := b.storedVersion("v"); of != 4 || row != 4 {
		t.Errorf("recompute of another scoring: the profile has version %d and the row %d, want 4", of, row)
	}
}

// An engine that does not know scoring versions stores profiles with the version
// of the strategy.
func TestProfileOfEarlierEngineIsValid(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.setStrategy(reranked(1))
	b.apply(bought("u", b.clock))
	older := b.app()
	older.ScoringVersion = older.StrategyVersion
	if _, err := b.eng.Apply(ctx, older, []store.LogEvent{bought("u", b.clock-1)}); err != nil {
		t.Fatal(err)
	}
	if of, row := b.storedVersion("u"); of != 2 || row != 2 {
		t.Fatalf("the profile has version %d and the row %d, want 2", of, row)
	}
	b.setStrategy(reranked(2))
	if r := b.read("u"); !r.Stored || red(r) != 60 {
		t.Errorf("read: %+v, want the stored profile", r)
	}
	if written, stale := b.bulk(profile.RecomputeOptions{OnlyStale: true}); written != 0 || stale != 0 {
		t.Errorf("recompute: %d written, %d stale; want none", written, stale)
	}
	// This engine puts the scoring version in its place.
	b.apply(bought("u", b.clock-2))
	if of, row := b.storedVersion("u"); of != 1 || row != 1 {
		t.Errorf("refresh: the profile has version %d and the row %d, want the scoring version 1", of, row)
	}
	if r := b.read("u"); !r.Stored || red(r) != 90 {
		t.Errorf("read: %+v, want the refreshed profile", r)
	}
}

// A process whose cached configuration is older than another ranking works on,
// and notices another scoring.
func TestStaleCacheAndRanking(t *testing.T) {
	b := newFixture(t, 90, plain)
	stale := b.app()
	b.setStrategy(reranked(1))
	b.apply(bought("u", b.clock))
	r, err := b.eng.Read(ctx, stale, "u", 0)
	if err != nil || !r.Stored || r.App.StrategyVersion != 1 {
		t.Errorf("%+v, %v: want the stored profile under the cached configuration", r, err)
	}
	b.setStrategy(decaying)
	b.read("u")
	b.setStrategy(reranked(2)) // whose scoring is new: it follows another one
	b.read("u")
	if of, row := b.storedVersion("u"); of != 4 || row != 4 {
		t.Fatalf("the profile has version %d and the row %d, want 4", of, row)
	}
	if _, err := b.eng.Apply(ctx, stale, []store.LogEvent{bought("u", b.clock-1)}); err != nil {
		t.Fatal(err)
	}
	if of, row := b.storedVersion("u"); of != 4 || row != 4 {
		t.Errorf("a stale cache made version %d in a row of %d, want 4", of, row)
	}
}
