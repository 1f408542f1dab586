package stack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/job/audit"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// setUp gives an engine a strategy with half-lives and an alias, and a user with
// some events.
func setUp(t *testing.T, s *stack.Stack) {
	t.Helper()
	wantStatus(t, s, http.StatusOK, "POST", "/1/strategies/personalization", `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":3}],
		"facetsScoring":[{"facetName":"color","score":7},{"facetName":"brand","score":5}],"personalizationImpact":50,"halfLives":[1,"720h"],
		"aliases":{"color":{"Rouge":"Red"}}}`)
	var events []string
	for i, color := range []string{"Red", "Rouge", "Blue", "Red", "Red", "Rouge", "Red"} {
		events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","timestamp":%d,"filters":["color:%s","brand:A&B"]}`,
			s.Backends.Now().Add(-time.Duration(i)*31*time.Hour).UnixMilli(), color))
	}
	wantStatus(t, s, http.StatusOK, "POST", "/1/events", `{"events":[`+strings.Join(events, ",")+`]}`)
	idle(t, s)
}

func getJSON(t *testing.T, s *stack.Stack, path string, v any) {
	t.Helper()
	code, answer := call(t, s, "GET", path, "")
	if code != 200 {
		t.Fatalf("GET %s: %d %s", path, code, answer)
	}
	must.Succeed(t, json.Unmarshal([]byte(answer), v))
}

// The parts of an explained score add up to it exactly. The score equals that of the
// profile, decayed from the time of the profile's read to that of the explanation.
func TestExplanationAddsUpToProfile(t *testing.T) {
	s := start(t, stack.Options{RetentionDays: 90})
	setUp(t, s)
	var profile struct {
		AsOf       time.Time
		Affinities []struct {
			Facet, Value string
			Score        float64
			Scores       map[string]float64
		}
	}
	getJSON(t, s, "/1/profiles/u", &profile)
	if len(profile.Affinities) != 3 {
		t.Fatalf("%+v", profile)
	}
	byHours := profile
	byHours.Affinities = nil
	getJSON(t, s, "/1/profiles/u?halfLife=720h", &byHours)
	for _, a := range byHours.Affinities {
		if score, ok := a.Scores["720h"]; !ok || a.Score != score {
			t.Errorf("%s:%s?halfLife=720h: score %v, scores %v", a.Facet, a.Value, a.Score, a.Scores)
		}
	}
	for _, a := range profile.Affinities {
		for _, limit := range []int{1, 3, 1000} {
			var x struct {
				AsOf          time.Time
				Score         float64
				Scores        map[string]float64
				Contributions []struct {
					Events        int
					Contribution  float64
					Contributions map[string]float64
				}
			}
			query := url.Values{"facet": {a.Facet}, "value": {a.Value}, "limit": {fmt.Sprint(limit)}}
			getJSON(t, s, "/1/explain/u?"+query.Encode(), &x)
			sum, sums := 0.0, map[string]float64{}
			for _, c := range x.Contributions {
				sum += c.Contribution
				for days, part := range c.Contributions {
					sums[days] += part
				}
			}
			if sum != x.Score || !maps.Equal(sums, x.Scores) || len(x.Contributions) > limit+1 {
				t.Errorf("%s:%s, limit %d: %v and %v add up to %v and %v", a.Facet, a.Value, limit, x.Score, x.Scores, sum, sums)
			}
			for text, days := range map[string]float64{"1": 1, "720h": 30} {
				want := a.Scores[text] * math.Exp2(-x.AsOf.Sub(profile.AsOf).Hours()/24/days)
				if got := x.Scores[text]; math.Abs(got-want) > 1e-9*want {
					t.Errorf("%s:%s under %s: explained %v, in the profile %v", a.Facet, a.Value, text, got, want)
				}
			}
		}
	}
}

// An audit names a profile that differs from the log, and the nightly audit counts
// it.
func TestAuditNamesWrongProfile(t *testing.T) {
	t.Parallel() // it waits until the difference has stood for some seconds
	s := start(t, stack.Options{RetentionDays: 90, ConfigTTL: time.Millisecond})
	setUp(t, s)
	ctx, b := t.Context(), s.Backends
	waitForJobs(t, s, b.Recompute.Jobs) // that of the strategy would correct the profile
	row, err := b.Store.Users.ReadUser(ctx, "demo", "u")
	must.Succeed(t, err)
	p, err := affinity.ParseProfile(row.Profile, 0)
	must.Succeed(t, err)
	p.Affinities = slices.DeleteFunc(p.Affinities, func(a affinity.Affinity) bool { return a.Value == "Red" })
	err = b.Store.Users.WriteProfiles(ctx, "demo", []store.ProfileWrite{{User: "u", Row: row, Value: p.AppendBinary(nil), Version: row.Version}})
	must.Succeed(t, err)
	code, answer := call(t, s, "POST", "/1/audits", `{"sample":10}`)
	var report struct {
		Sampled, Compared, Stored, Differing int
		Differences                          []struct {
			UserToken, Which, What, Facet, Value string
			Want, Got                            *float64
		}
	}
	if err := json.Unmarshal([]byte(answer), &report); err != nil || code != 200 {
		t.Fatalf("%d %s", code, answer)
	}
	if report.Compared != 1 || report.Stored != 1 || report.Differing != 1 || len(report.Differences) != 1 {
		t.Fatalf("%s", answer)
	}
	d := report.Differences[0]
	if d.UserToken != "u" || d.Which != "stored" || d.What != "missing" || d.Facet != "color" || d.Value != "Red" || d.Want == nil || d.Got != nil {
		t.Errorf("%s", answer)
	}
	for _, app := range []string{"demo", "none"} {
		task, err := audit.Task(app, "2026-11-20", 10)
		must.Succeed(t, err)
		must.Succeed(t, b.Queue.Create(ctx, task))
	}
	idle(t, s)
	// The request counts one user and one difference, and so does the task.
	scraped := metrics(t, s)
	for _, line := range []string{"affinity_audit_users_total 2\n", "affinity_audit_differences_total 2\n"} {
		if !strings.Contains(scraped, line) {
			t.Errorf("metrics do not say %q, but %q", line, regexp.MustCompile(`(?m)^affinity_audit.*$`).FindAllString(scraped, -1))
		}
	}
}

// The nightly round audits every app, once a day.
func TestNightlyAudit(t *testing.T) {
	s := start(t, stack.Options{RetentionDays: 90})
	setUp(t, s)
	functions := worker.New(s.Backends.ForWorker())
	for range 2 {
		w := httptest.NewRecorder()
		functions.ServeHTTP(w, httptest.NewRequest("POST", "/nightly", strings.NewReader(`{"spread":"0s"}`)))
		if w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		idle(t, s)
		if text := metrics(t, s); !strings.Contains(text, "\naffinity_audit_users_total 1\n") {
			t.Errorf("want the only user to be audited, once a day:\n%s", text)
		}
	}
}
