package crowdbuild_test

import (
	"encoding/json"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// A build over users of two regions equals one over all of them. The runs name users, each in the region in which they
// live, and are dropped in both.
func TestBuildOverRegions(t *testing.T) {
	h := newHarness(t, 11, crowdbuild.Work{})
	us, client := storetest.NewWithClient(t, h.Dial()...)
	clients := map[string]*bigtable.Client{"eu": h.client, "us": client}
	var err error
	h.store, err = store.Regional("eu", "eu", map[string]*store.Store{"eu": h.store, "us": us}, func(string) (store.Place, error) {
		return store.Place{Read: "eu", Write: []string{"eu"}, Users: []string{"eu", "us"}}, nil
	})
	must.Succeed(t, err)
	h.use(crowdbuild.Work{MaxDifferent: -1}) // a run of each user
	_, err = h.Config.UpdateMove(t.Context(), app, func(a *config.App) error { a.Region = "eu"; return nil })
	must.Succeed(t, err)
	for _, mode := range []config.ResidencyMode{config.ResidencyPrepare, config.ResidencyOn} {
		_, err := h.Config.SetResidency(t.Context(), app, config.Residency{Mode: mode, Regions: []string{"eu", "us"}}, 0)
		must.Succeed(t, err)
	}
	for name, u := range h.Users {
		u.Region = []string{"eu", "us"}[name[0]%2]
	}
	h.fill(1)
	j := h.start(t.Context())
	named := map[string]int{}
	for len(h.Waiting()) > 0 {
		h.DeliverNext(1)
		for region, client := range clients {
			err := client.Open(store.TableCrowd).ReadRows(t.Context(), bigtable.PrefixRange(app+","), func(r bigtable.Row) bool {
				for _, items := range r {
					for _, item := range items {
						var run struct{ From, To string }
						if !strings.Contains(r.Key(), ",h,") || json.Unmarshal(item.Value, &run) != nil {
							continue
						}
						for _, user := range []string{run.From, run.To} {
							if u := h.Users[user]; u != nil {
								if named[region]++; u.Region != region {
									t.Errorf("%s has a run from %q to %q", region, run.From, run.To)
								}
							}
						}
					}
				}
				return true
			})
			must.Succeed(t, err)
		}
	}
	h.WantState(j.ID, job.Done, "")
	h.wantBuilt(h.Find(j.ID), shoes, nil)
	h.wantBuilt(h.Find(j.ID), hats, nil)
	if named["eu"] == 0 || named["us"] == 0 {
		t.Errorf("runs have named users %v times", named)
	}
	left, err := us.Rows.FindRows(t.Context(), store.AppRows{App: jobtest.App, Table: store.TableCrowd}, 9)
	if err != nil || len(left) > 0 {
		t.Errorf("us has %q of the build (%v)", left, err)
	}
}
