package profile_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// A stored profile may list more than the bounds. It is served from the list, within the
// bounds, and not written again. Only profiles that leave values out have the format that
// says so, and no summary has.
func TestProfileBeyondBoundsIsCut(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.eng.SetBounds(affinity.Bounds{FacetValues: 2})
	b.apply(bought("ordinary", b.clock), fatTo("fat", b.clock))
	for user, format := range map[string]byte{"ordinary": 2, "fat": 4} {
		row := readAll(t, b, user)
		if row.Profile[0] != format || row.Summary[0] != 2 {
			t.Errorf("%s: formats %d and %d, want %d and 2", user, row.Profile[0], row.Summary[0], format)
		}
	}

	p := affinity.Bounds{}.Reference([]affinity.Event{eventOf(fatTo("fat", b.clock))}, plain, affinity.Window{Now: b.clock, RetentionDays: 90})
	p.StrategyVersion = b.app().ScoringVersion
	whole := p.AppendBinary(nil)
	row, err := b.store.Users.ReadUser(ctx, appID, "fat")
	must.Succeed(t, err)
	w := store.ProfileWrite{User: "fat", Row: row, Version: p.StrategyVersion, Value: whole, Summary: readAll(t, b, "fat").Summary}
	must.Succeed(t, b.store.Users.WriteProfiles(ctx, appID, []store.ProfileWrite{w}))
	if r := b.read("fat"); !r.Stored || len(r.Affinities) != 2 || r.Total != 21 || !r.Truncated() {
		t.Errorf("the whole profile: stored %v, %d of %d, truncated %v; want 2 of 21", r.Stored, len(r.Affinities), r.Total, r.Truncated())
	}
	if _, err := b.eng.Recompute(ctx, b.app(), store.Range{}, profile.RecomputeOptions{OnlyStale: true}, func(profile.Progress) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, b, "fat").Profile; !bytes.Equal(got, whole) {
		t.Error("the profile was written again")
	}
}

// eventOf is an event of the log as the formula takes it.
func eventOf(e store.LogEvent) affinity.Event {
	return affinity.Event{Time: e.Time, Type: e.Type, Name: e.Name, Counts: e.Counts}
}

// readAll reads a row with profile and summary.
func readAll(t *testing.T, b *fixture, user string) store.User {
	t.Helper()
	row, err := b.store.Users.ReadServing(ctx, appID, user, store.UserProfile)
	if err == nil {
		err = b.store.Users.ScanUsers(ctx, appID, user, "", 1, store.UserSummary, func(token string, r store.User) error {
			if token != user {
				return fmt.Errorf("read the row of %s", token)
			}
			row.Summary = r.Summary
			return nil
		})
	}
	must.Succeed(t, err)
	return row
}
