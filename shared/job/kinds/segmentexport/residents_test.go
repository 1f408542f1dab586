package segmentexport_test

import (
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentexport"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// An export of users who live in two regions has a file in each, of those who live there. Whatever request its process
// dies at, both are of one look.
func TestExportOfResidents(t *testing.T) {
	for _, f := range []jobtest.Fault{jobtest.FailBefore, jobtest.FailAfter} {
		for at := 0; ; at += step() {
			settings := job.Settings{ShardUsers: 1, Budget: time.Minute, Attempts: 100}
			h := &harness{Harness: jobtest.New(t, segmentexport.Collection, 0, settings), users: []int{9, 6}, residents: true}
			stores := map[string]*store.Store{"eu": storetest.New(t, h.Dial()...), "us": storetest.New(t, h.Dial()...)}
			both, err := store.Regional("eu", "eu", stores, func(string) (store.Place, error) {
				return store.Place{Read: "eu", Write: []string{"eu"}, Users: []string{"eu", "us"}}, nil
			})
			must.Succeed(t, err)
			h.on(settings, both)
			_, err = h.Config.UpdateMove(t.Context(), jobtest.App, func(a *config.App) error { a.Region = "eu"; return nil })
			must.Succeed(t, err)
			_, err = h.Config.SetResidency(t.Context(), jobtest.App, config.Residency{Mode: config.ResidencyPrepare, Regions: []string{"us", "eu"}}, 0)
			must.Succeed(t, err)
			j := h.start()
			calls := h.DieAt(at, f)
			h.Drain()
			h.Gate = nil
			result, err := h.runner.Result(t.Context(), h.WantState(j.ID, job.Done, ""))
			must.Succeed(t, err)
			if !slices.Equal(result.Regions, []string{"eu", "us"}) {
				t.Fatalf("regions %v", result.Regions)
			}
			look, lines := int(result.AsOf.UnixMilli()-1000), int64(0)
			for r, region := range result.Regions {
				for n, u := range h.fileOf(region, result.File) {
					if u.UserToken != token(look, 2*n+r) {
						t.Fatalf("died at request %d: %s has line %d of %s, look %d", at, region, n, u.UserToken, look)
					}
					lines++
				}
			}
			if want := int64(h.users[min(look, 1)]); lines != want || result.Users != want {
				t.Fatalf("died at request %d: %d lines, and the result says %d; want %d of look %d", at, lines, result.Users, want, look)
			}
			if at >= calls() {
				break
			}
		}
	}
}
