package stack_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/deletion"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// residents are an app whose users live in eu or us, demo, and one with the same users who all live in eu, plain.
type residents struct {
	t *testing.T
	s *stack.Stack
	*burdened
}

const residentUsers = 14

// residentToken returns the token of a user, which says where they live in demo.
func residentToken(i int) string {
	return fmt.Sprintf("%s-inhabitant-%02d", []string{"eu", "us"}[i%2], i)
}

func newResidents(t *testing.T) residents {
	t.Helper()
	b := &burdened{}
	r := residents{t, start(t, stack.Options{Bigtable: b.refuse(),
		Regions: []string{"eu", "us"}, Layout: schema.Of(schema.Wide), ConfigTTL: time.Millisecond, LateWrites: time.Millisecond,
		Apps:      []stack.App{{ID: "demo", Key: "demokey", Region: "eu"}, {ID: "plain", Key: "plainkey", Region: "eu"}},
		Recompute: job.Settings{ShardUsers: 3, Budget: time.Second, Attempts: 2, Concurrency: 2},
	}), b}
	for _, mode := range []config.ResidencyMode{config.ResidencyPrepare, config.ResidencyOn} {
		_, err := r.s.Backends.Config.SetResidency(t.Context(), "demo", config.Residency{Mode: mode, Regions: []string{"eu", "us"}}, 0)
		must.Succeed(t, err)
	}
	app, err := r.s.Backends.Config.App(t.Context(), "demo")
	must.Succeed(t, err)
	for i := range residentUsers {
		region := residentToken(i)[:2]
		must.Succeed(t, profile.ResidentsOf(r.s.Backends.Profiles).Move(t.Context(), app, residentToken(i), region, time.Now().Add(time.Hour)))
	}
	r.fill()
	return r
}

// fill gives both apps the same objects and events.
func (r residents) fill() {
	r.t.Helper()
	now := time.Now()
	var events []string
	for i := range residentUsers {
		for n := range 3 + i%4 {
			known := ""
			if i%6 == 4 || i%6 == 5 {
				known = `,"authenticatedUserToken":"` + residentToken(i-4) + `"`
			}
			events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"objectIDs":["%d"],"eventID":"%d-%d","timestamp":%d%s}`,
				residentToken(i), (i+n)%5, i, n, now.Add(time.Duration(i+n-90)*time.Hour).UnixMilli(), known))
		}
	}
	var objects []string
	for i := range 5 {
		objects = append(objects, fmt.Sprintf(`{"action":"addObject","body":{"objectID":"%d","color":"Color%[1]d"}}`, i))
	}
	r.both("POST", "/1/strategies/personalization", seenStrategy)
	r.both("PUT", "/1/indexes/i/settings", `{"attributesForFaceting":["color"]}`)
	r.both("POST", "/1/indexes/i/batch", `{"requests":[`+strings.Join(objects[:4], ",")+`]}`)
	r.both("POST", "/1/events", `{"events":[`+strings.Join(events, ",")+`]}`)
	idle(r.t, r.s)
	r.both("POST", "/1/indexes/i/batch", `{"requests":[`+objects[4]+`]}`) // after its events
	idle(r.t, r.s)
	r.forget(store.TableRecent)
	m := bigtable.NewMutation()
	m.Set("m", "event", bigtable.Now(), []byte("x"))
	r.damage(m)
}

// damage changes an event of a user that nobody can decode.
func (r residents) damage(m *bigtable.Mutation) {
	r.t.Helper()
	for app, instance := range map[string]string{"demo": stack.Instance + "-us", "plain": stack.Instance} {
		key := app + "," + residentToken(5) + "," + time.Now().UTC().Format("2006-01-02")
		must.Succeed(r.t, bigtableAt(r.t, r.s, instance).Open(store.TableEvents).Apply(r.t.Context(), key, m))
	}
}

// forget removes what was written of demo while events came.
func (r residents) forget(table string) {
	r.t.Helper()
	for _, instance := range []string{stack.Instance, stack.Instance + "-us"} {
		at := bigtableAt(r.t, r.s, instance).Open(table)
		err := at.ReadRows(r.t.Context(), bigtable.PrefixRange("demo,"), func(row bigtable.Row) bool {
			m := bigtable.NewMutation()
			m.DeleteRow()
			must.Succeed(r.t, at.Apply(r.t.Context(), row.Key(), m))
			return true
		})
		must.Succeed(r.t, err)
	}
}

// both sends a request for each app, and returns the answers.
func (r residents) both(method, path, body string) map[string]string {
	r.t.Helper()
	answers := map[string]string{}
	for _, app := range []string{"demo", "plain"} {
		var code int
		answer := poll(r.t, time.Minute, func() (string, bool) { // until functions have read what was set
			var answer string
			code, answer = callAs(r.t, r.s, app, app+"key", method, path, body)
			return answer, code != http.StatusConflict
		})
		if code >= 300 {
			r.t.Fatalf("%s of %s: %d %s", path, app, code, answer)
		}
		answers[app] = answer
	}
	return answers
}

// volatile are members of answers that differ from one app to another.
var volatile = []string{"id", "startedAt", "finishedAt", "queuedAt", "runningAt", "asOf", "builtAt", "shards", "took", "seconds", "generation", "buildId", "job", "cursor",
	"profiles", "blocks", "cost", "changedAt", "logBytes"}

// stripped returns an answer without them.
func stripped(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if v[name] = stripped(member); slices.Contains(volatile, name) {
				delete(v, name)
			}
		}
	case []any:
		for i := range v {
			v[i] = stripped(v[i])
		}
	}
	return v
}

var named05 = regexp.MustCompile(`"us-inhabitant-05: [^]]*"`)

// same checks that the answers for both apps are the same.
func (r residents) same(what string, answers map[string]string) {
	r.t.Helper()
	decoded := map[string]any{}
	for app, answer := range answers {
		var v any
		answer = strings.ReplaceAll(answer, "plain,", "demo,") // in keys
		if app == "plain" && what == "/1/backtests" {
			// Its shard is in the region of the app, and names nobody of another one.
			answer = named05.ReplaceAllString(answer, `"there are users in us whose events could not be read"`)
		}
		decode(r.t, answer, &v)
		decoded[app] = stripped(v)
	}
	if diff := cmp.Diff(decoded["plain"], decoded["demo"]); diff != "" {
		r.t.Errorf("%s (-in one region +in two):\n%s", what, diff)
	}
}

// run starts a job of each app, waits for its end, and compares what it has done.
func (r residents) run(start, body, of string) { r.runTo(job.Done, start, body, of) }

// runTo is run of a job that ends in a state.
func (r residents) runTo(end job.State, start, body, of string) {
	r.t.Helper()
	started := r.both("POST", start, body)
	answers := map[string]string{}
	for app, answer := range started {
		path := of
		if strings.HasSuffix(of, "/") {
			var j struct{ ID string }
			decode(r.t, answer, &j)
			path += j.ID
		}
		poll(r.t, time.Minute, func() (string, bool) {
			answers[app] = wantStatusAs(r.t, r.s, http.StatusOK, app, app+"key", "GET", path, "")
			var j struct {
				State  string
				Move   struct{ Job struct{ State string } }
				Builds []struct{ State string }
			}
			decode(r.t, answers[app], &j)
			state := job.State(j.State + j.Move.Job.State)
			if len(j.Builds) > 0 {
				state = job.State(j.Builds[0].State)
			}
			if state.Ended() && state != end {
				r.t.Fatalf("%s of %s: %s", start, app, answers[app])
			}
			return answers[app], state == end
		})
	}
	idle(r.t, r.s)
	if end == job.Done {
		r.same(start, answers)
	} else if !strings.Contains(answers["demo"], "-inhabitant-") {
		r.t.Errorf("the error of %s names nobody: %s", start, answers["demo"])
	}
	r.apart()
}

// apart checks that no region has anything of demo that names a user of another region.
func (r residents) apart() {
	r.t.Helper()
	for instance, other := range map[string]string{stack.Instance: "us-inhabitant", stack.Instance + "-us": "eu-inhabitant"} {
		eachRow(r.t, bigtableAt(r.t, r.s, instance), func(table store.Table, row bigtable.Row) {
			if table.Name == store.TableUsage {
				return // events write it
			}
			if text := textOf(row); strings.HasPrefix(row.Key(), "demo,") && strings.Contains(text, other) {
				r.t.Errorf("%s, table %s: %.300q", instance, table.Name, text)
			}
		})
	}
}

// profiles compares the profiles of all users.
func (r residents) profiles() {
	r.t.Helper()
	for i := range residentUsers {
		if i == 5 {
			continue // nobody can compute it
		}
		r.same("profile", r.both("GET", "/1/profiles/"+residentToken(i), ""))
	}
}

// Jobs of all kinds do for users of two regions what they do for those of one, and no table of a region ever names a
// user of the other one.
func TestJobsOverTwoRegions(t *testing.T) {
	t.Parallel()
	r := newResidents(t)
	r.s.Backends.Migrations.SetPauses(0)
	r.apart()
	r.profiles()
	r.run("/1/recomputes", `{"fold":true}`, "/1/recomputes/")
	r.run("/1/backtests", `{"index":"i","strategies":[`+seenStrategy+`]}`, "/1/backtests/")
	r.run("/1/crowd", "", "/1/crowd")
	r.run("/1/reenrich", "{}", "/1/reenrich/")
	r.profiles()
	r.run("/1/identities/preview", "", "/1/identities/preview/")
	r.both("POST", "/1/schema/start", `{"to":"narrow"}`)
	r.run("/1/schema/backfill", "", "/1/schema")
	r.runTo(job.Failed, "/1/schema/verify", "", "/1/schema")
	repair := bigtable.NewMutation()
	repair.DeleteRow()
	r.damage(repair)
	r.run("/1/schema/verify", "", "/1/schema")
	r.both("POST", "/1/schema/cutover", "")
	r.run("/1/schema/drop", `{"schema":"wide"}`, "/1/schema")
	r.profiles()
	r.run("/1/recomputes", `{"onlyStale":true}`, "/1/recomputes/")
	r.same("audit", r.both("POST", "/1/audits", `{"sample":100}`))
	r.same("preview", r.both("POST", "/1/strategies/personalization/preview", `{"strategy":`+seenStrategy+`,"sample":100}`))
	r.reports()
	r.lists()
	r.dumps()
	for _, user := range []string{residentToken(2), residentToken(7)} {
		r.fails.Store(user)
		r.runTo(job.Failed, "/1/recomputes", "", "/1/recomputes/")
		r.fails.Store("")
	}
	r.wantDetails()
	if _, err := r.s.Backends.Deletions.Delete(t.Context(), "demo", false); err != nil {
		t.Fatal(err)
	}
	waitForDeletion(t, r.s, "demo", func(status deletion.Status) bool {
		r.apart()
		return status.Ended()
	})
	for _, instance := range []string{stack.Instance, stack.Instance + "-us"} {
		eachRow(t, bigtableAt(t, r.s, instance), func(table store.Table, row bigtable.Row) {
			if strings.HasPrefix(row.Key(), "demo,") {
				t.Errorf("%s has %.200q after the deletion", instance, textOf(row))
			}
		})
	}
}

// reports compares reports of the holdout.
func (r residents) reports() {
	r.t.Helper()
	for _, share := range []float64{0.2, 0} {
		for _, app := range []string{"plain", "demo"} {
			_, err := r.s.Backends.CachedConfig.SetHoldout(r.t.Context(), app, experiment.Holdout{Share: share, Seed: "q"})
			must.Succeed(r.t, err)
		}
		if share > 0 {
			r.run("/1/reports", `{"experiment":"holdout"}`, "/1/reports/")
		}
		r.same("report", r.both("GET", "/1/experiments/holdout/report?metric=clicks", ""))
	}
}

// lists compares the lists of users, page by page.
func (r residents) lists() {
	r.t.Helper()
	after := ""
	for pages := 0; pages == 0 || after != ""; pages++ {
		answers := r.both("GET", "/1/usertokens?limit=4&cursor="+after, "")
		r.same("list of users after "+after, answers)
		var page struct{ Cursor string }
		decode(r.t, answers["demo"], &page)
		if after = page.Cursor; pages > residentUsers {
			r.t.Fatal("the list has no end")
		}
	}
}

// receipt is when an event came.
var receipt = regexp.MustCompile(`"receivedAt":"[^"]*",`)

// dumps compares the dumps, whatever the order of the events.
func (r residents) dumps() {
	r.t.Helper()
	dumped := map[string][]string{}
	for app, text := range r.both("GET", "/1/dump", "") {
		lines := strings.Split(receipt.ReplaceAllString(strings.ReplaceAll(text, "plain", "demo"), ""), "\n")
		slices.Sort(lines)
		dumped[app] = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, `"asOf"`) })
	}
	if diff := cmp.Diff(dumped["plain"], dumped["demo"]); diff != "" || len(dumped["demo"]) < 60 {
		r.t.Errorf("dumps of %d lines (-in one region +in two):\n%s", len(dumped["demo"]), diff)
	}
}

// wantDetails checks that the details of jobs name users of each region there.
func (r residents) wantDetails() {
	r.t.Helper()
	for instance, own := range map[string]string{stack.Instance: "eu-inhabitant", stack.Instance + "-us": "us-inhabitant"} {
		named := map[string]bool{}
		eachRow(r.t, bigtableAt(r.t, r.s, instance), func(table store.Table, row bigtable.Row) {
			if key := row.Key(); table.Name == store.TableJobs && strings.HasPrefix(key, "demo,") && strings.Contains(textOf(row), own) {
				named[strings.Split(key, ",")[1]] = true
			}
		})
		for _, c := range []string{"recomputes", "migrations", "reenrichments", "linkPreviews"} {
			if !named[c] {
				r.t.Errorf("%s: no detail of %s names a user", instance, c)
			}
		}
	}
}
