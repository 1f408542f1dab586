package stack_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// visitors are users of demo, whose app lives in eu. A header says the country of each.
type visitors struct {
	residents
	countries map[string]string // by user
}

const movers = 20

// newVisitors are users who come from two countries, and some who are going to move.
func newVisitors(t *testing.T) visitors {
	t.Helper()
	b := &burdened{}
	v := visitors{residents{t, start(t, stack.Options{Regions: []string{"eu", "us"}, ConfigTTL: time.Millisecond,
		Apps: []stack.App{{ID: "demo", Key: "demokey", Region: "eu"}, {ID: "plain", Key: "plainkey", Region: "eu"}},
	}), b}, map[string]string{}}
	v.live(config.Residency{Mode: config.ResidencyPrepare})
	v.live(config.Residency{Mode: config.ResidencyOn, Rule: config.ByHeader, Map: map[string]string{"US": "us"}})
	for i := range 6 {
		v.countries[fmt.Sprintf("eu-inhabitant-%d", i)] = "FR"
		v.countries[fmt.Sprintf("us-inhabitant-%d", i)] = "US"
	}
	for i := range movers {
		v.countries[fmt.Sprintf("mover-%02d", i)] = ""
	}
	v.both("POST", "/1/strategies/personalization", seenStrategy)
	v.both("PUT", "/1/indexes/i/settings", `{"attributesForFaceting":["color"]}`)
	v.both("POST", "/1/indexes/i/batch", `{"requests":[{"action":"addObject","body":{"objectID":"1","color":"Red"}}]}`)
	return v
}

// live sets the residency of demo.
func (v visitors) live(r config.Residency) {
	v.t.Helper()
	r.Regions = []string{"eu", "us"}
	_, err := v.s.Backends.CachedConfig.SetResidency(v.t.Context(), "demo", r, 0)
	must.Succeed(v.t, err)
}

// sees sends an event of a user to both apps, and returns an answer that is no success.
func (v visitors) sees(user string, n int) string {
	body := fmt.Sprintf(`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"objectIDs":["1"],`+
		`"timestamp":%d}]}`, user, time.Now().Add(-time.Duration(n+1)*time.Hour).Truncate(time.Hour).UnixMilli())
	for _, app := range []string{"demo", "plain"} {
		req, err := http.NewRequest("POST", v.s.URL+"/1/events", strings.NewReader(body))
		if err != nil {
			return err.Error()
		}
		req.Header.Set("X-Algolia-Application-Id", app)
		req.Header.Set("X-Algolia-API-Key", app+"key")
		req.Header.Set(config.DefaultResidencyHeader, v.countries[user])
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err.Error()
		}
		answer, _ := io.ReadAll(res.Body)
		if res.Body.Close(); res.StatusCode != http.StatusOK {
			return fmt.Sprintf("%d %s", res.StatusCode, answer)
		}
	}
	return ""
}

// livesIn checks where the user lives.
func (v visitors) livesIn(user, region string) {
	v.t.Helper()
	var at api.UserRegion
	must.Succeed(v.t, json.Unmarshal([]byte(wantStatus(v.t, v.s, http.StatusOK, "GET", "/1/users/"+user+"/region", "")), &at))
	if at.Region != region {
		v.t.Errorf("%s lives in %s, want %s", user, at.Region, region)
	}
}

// nothingOf checks that no table of an instance names users by how their tokens begin.
func (v visitors) nothingOf(instance string, tokens ...string) {
	v.t.Helper()
	eachRow(v.t, bigtableAt(v.t, v.s, instance), func(table store.Table, row bigtable.Row) {
		for _, token := range tokens {
			if text := textOf(row); strings.HasPrefix(row.Key(), "demo,") && strings.Contains(text, token) {
				v.t.Errorf("%s, table %s: %.300q", instance, table.Name, text)
			}
		}
	})
}

// Users begin where the header says, and what they do is in no table of the other region. Users who move, while events
// come and profiles are read, lose nothing, and no request fails. Once they are cleaned, the region that they left holds
// nothing of them. A region that all users leave is empty in the end, and the app does not name it any more.
func TestUsersLiveInRegions(t *testing.T) {
	t.Parallel()
	v := newVisitors(t)
	for user := range v.countries {
		for n := range 3 {
			if failed := v.sees(user, n); failed != "" {
				t.Fatal(failed)
			}
		}
	}
	idle(t, v.s)
	for user := range v.countries {
		v.livesIn(user, map[bool]string{true: "us", false: "eu"}[strings.HasPrefix(user, "us")])
	}
	must.Succeed(t, v.s.Backends.Usage.Flush(t.Context()))
	v.nothingOf(stack.Instance, "us-inhabitant")
	v.nothingOf(stack.Instance+"-us", "eu-inhabitant", "mover-")

	stop, failed := v.underLoad()
	for i := range movers {
		code, answer := call(t, v.s, "PUT", fmt.Sprintf("/1/users/mover-%02d/region", i), `{"region":"us"}`)
		if code != http.StatusOK && code != http.StatusAccepted {
			t.Errorf("move: %d %s", code, answer)
		}
	}
	stop()
	if all := failed.Load(); all != nil {
		t.Errorf("a request failed: %s", *all)
	}
	idle(t, v.s)
	for user := range v.countries {
		v.livesIn(user, map[bool]string{true: "eu", false: "us"}[strings.HasPrefix(user, "eu")])
		v.sameProfile(user)
	}
	must.Succeed(t, v.s.Backends.Usage.Flush(t.Context())) // the wait would be long enough for it
	v.clean()
	v.nothingOf(stack.Instance, "us-inhabitant", "mover-")
	v.nothingOf(stack.Instance+"-us", "eu-inhabitant")

	v.s.Backends.Residents.SetSettle(0)
	v.live(config.Residency{Mode: config.ResidencyOn, Leave: map[string]string{"us": "eu"}})
	app, err := v.s.Backends.Config.App(t.Context(), "demo")
	must.Succeed(t, err)
	must.Succeed(t, v.s.Backends.Residents.Leave(t.Context(), app))
	waitForJobs(t, v.s, v.s.Backends.Residents.Jobs)
	app, err = v.s.Backends.Config.App(t.Context(), "demo")
	must.Succeed(t, err)
	if len(app.Residency.Regions) != 1 || len(app.Residency.Leave) > 0 {
		jobs, _ := v.s.Backends.Residents.Jobs.List(t.Context(), "demo", 10)
		t.Errorf("the setting is %s after %+v", app.Residency, jobs)
	}
	for user := range v.countries {
		v.livesIn(user, "eu")
		v.sameProfile(user)
	}
	eachRow(t, bigtableAt(t, v.s, stack.Instance+"-us"), func(table store.Table, row bigtable.Row) {
		if strings.HasPrefix(row.Key(), "demo,") && table.Name != store.TableJobs {
			t.Errorf("us has %s: %.200q", table.Name, textOf(row))
		}
	})
}

// sameProfile compares the profiles of a user. That of one who has just moved may be computed by its first read.
func (v visitors) sameProfile(user string) {
	v.t.Helper()
	answers := v.both("GET", "/1/profiles/"+user, "")
	for app, answer := range answers {
		answers[app] = strings.Replace(answer, `"source":"computed"`, `"source":"stored"`, 1)
	}
	v.same("profile of "+user, answers)
}

// underLoad sends events of all users and reads their profiles until stop. failed is an answer that is no success.
func (v visitors) underLoad() (stop func(), failed *atomic.Pointer[string]) {
	failed = &atomic.Pointer[string]{}
	var running sync.WaitGroup
	ended := make(chan struct{})
	for worker := range 4 {
		running.Go(func() {
			for n := 3; ; n++ {
				for i := worker; i < movers; i += 4 {
					select {
					case <-ended:
						return
					default:
					}
					user := fmt.Sprintf("mover-%02d", i)
					if answer := v.sees(user, n); answer != "" {
						failed.Store(&answer)
					}
					if code, answer := call(v.t, v.s, "GET", "/1/profiles/"+user, ""); code != http.StatusOK {
						failed.Store(&answer)
					}
				}
			}
		})
	}
	return func() { close(ended); running.Wait() }, failed
}

// clean removes what movers have left, as if the wait were over.
func (v visitors) clean() {
	v.t.Helper()
	app, err := v.s.Backends.Config.App(v.t.Context(), "demo")
	must.Succeed(v.t, err)
	for user := range v.countries {
		for range 10 {
			gone, err := profile.ResidentsOf(v.s.Backends.Profiles).CleanAll(v.t.Context(), app, user, 0)
			must.Succeed(v.t, err)
			if gone {
				break
			}
		}
	}
}

// A job of the night forgets where users lived who were deleted long ago, and that they were.
func TestDeletedResidentsAreForgotten(t *testing.T) {
	t.Parallel()
	data, began := t.TempDir(), time.Now().Add(-92*24*time.Hour)
	open := func(now time.Time) visitors {
		return visitors{residents{t, start(t, stack.Options{Data: data, Regions: []string{"eu", "us"}, ConfigTTL: time.Millisecond, Now: now,
			Apps: []stack.App{{ID: "demo", Key: "demokey", Region: "eu"}}}), nil}, nil}
	}
	v := open(began)
	v.live(config.Residency{Mode: config.ResidencyPrepare})
	v.live(config.Residency{Mode: config.ResidencyOn})
	for _, user := range []string{"deleted", "living"} {
		wantStatus(t, v.s, http.StatusOK, "PUT", "/1/users/"+user+"/region", `{"region":"us"}`)
		wantStatus(t, v.s, http.StatusOK, "POST", "/1/events", `{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"`+user+`","objectIDs":["1"]}]}`)
	}
	wantStatus(t, v.s, http.StatusOK, "PUT", "/1/users/unborn/region", `{"region":"us"}`)
	idle(t, v.s)
	wantStatus(t, v.s, http.StatusOK, "DELETE", "/1/profiles/deleted", "")
	idle(t, v.s)
	must.Succeed(t, v.s.Close())

	v = open(began.Add(92 * 24 * time.Hour))
	v.s.Backends.Residents.SetSettle(0)
	must.Succeed(t, v.s.Backends.Residents.Nightly(t.Context(), "demo", job.Night{Date: "2026-11-30"}))
	waitForJobs(t, v.s, v.s.Backends.Residents.Jobs)
	v.forgotten(2)
	v.livesIn("living", "us")

	v.live(config.Residency{Mode: config.ResidencyOn, Leave: map[string]string{"us": "eu"}})
	app, err := v.s.Backends.Config.App(t.Context(), "demo")
	must.Succeed(t, err)
	must.Succeed(t, v.s.Backends.Residents.Leave(t.Context(), app))
	waitForJobs(t, v.s, v.s.Backends.Residents.Jobs)
	v.livesIn("living", "eu")
	v.livesIn("unborn", "eu")
	if app, err = v.s.Backends.Config.App(t.Context(), "demo"); err != nil || len(app.Residency.Regions) != 1 {
		t.Errorf("the setting is %s (%v)", app.Residency, err)
	}
}

// forgotten checks that nothing is left of a user who was deleted, and how many locations each region has.
func (v visitors) forgotten(want int) {
	v.t.Helper()
	for _, instance := range []string{stack.Instance, stack.Instance + "-us"} {
		users, locations := "", 0
		eachRow(v.t, bigtableAt(v.t, v.s, instance), func(table store.Table, row bigtable.Row) {
			switch table.Name {
			case store.TableUsers:
				users += row.Key()
			case store.TableLocations:
				locations++
			}
		})
		if strings.Contains(users, "deleted") || locations != want {
			v.t.Errorf("%s has %d locations, and of users the rows %s", instance, locations, users)
		}
	}
}
