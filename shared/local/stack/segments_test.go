package stack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

const viewsScore = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":%d}],"facetsScoring":[{"facetName":"brand","score":1}],"personalizationImpact":50}`

// segmented is an app with segments on, and a strategy of 10 points a view.
func segmented(t *testing.T) *stack.Stack {
	t.Helper()
	return segmentedWith(t, stack.Options{ConfigTTL: time.Nanosecond})
}

func segmentedWith(t *testing.T, opts stack.Options) *stack.Stack {
	t.Helper()
	s := start(t, opts)
	must.Succeed(t, s.Backends.Config.SetSegments(t.Context(), "demo", true))
	want(t, s, "POST", "/1/strategies/personalization", fmt.Sprintf(viewsScore, 10), 200, "")
	waitForJob(t, s)
	waitForJobs(t, s, s.Backends.Segments.Jobs)
	return s
}

// want sends a request and compares the status, and a part of the answer.
func want(t *testing.T, s *stack.Stack, method, path, body string, code int, part string) string {
	t.Helper()
	got, answer := call(t, s, method, path, body)
	if got != code || !strings.Contains(answer, part) {
		t.Fatalf("%s %s %s: %d %s, want %d with %s", method, path, body, got, answer, code, part)
	}
	return answer
}

// see sends an event of each user.
func see(t *testing.T, s *stack.Stack, filter string, users ...string) {
	t.Helper()
	for _, user := range users {
		want(t, s, "POST", "/1/events", fmt.Sprintf(`{"events":[{"eventType":"view","eventName":"Seen","index":"products","userToken":%q,"filters":[%q]}]}`, user, filter), 200, "")
	}
	idle(t, s)
}

// found returns the users who like Acme by more than a score, the best first.
func found(t *testing.T, s *stack.Stack, above int) string {
	t.Helper()
	answer := want(t, s, "POST", "/1/segments/query", fmt.Sprintf(`{"where":{"filter":"brand:Acme","above":%d}}`, above), 200, "")
	var page struct {
		Total int
		Users []struct{ UserToken string }
	}
	must.Succeed(t, json.Unmarshal([]byte(answer), &page))
	var users []string
	for _, u := range page.Users {
		users = append(users, u.UserToken)
	}
	if page.Total != len(users) {
		t.Errorf("total %d of %q", page.Total, users)
	}
	return strings.Join(users, " ")
}

// A segment follows events, deletions and opt-outs at once, and a new strategy after its
// build; until then queries say how far it is.
func TestSegmentsFollowUsers(t *testing.T) {
	t.Parallel()
	s := segmented(t)
	see(t, s, "brand:Acme", "ann", "ann", "ann+b", "cid", "cid")
	see(t, s, "brand:Zeta", "dan")
	want(t, s, "POST", "/1/segments/refresh", "", 200, `"state":"planning"`)
	waitForJobs(t, s, s.Backends.Segments.Jobs)
	expect := func(what string, above int, users string) {
		t.Helper()
		if got := found(t, s, above); got != users {
			t.Errorf("%s: above %d are %q, want %q", what, above, got, users)
		}
		var audit api.Audit
		answer := want(t, s, "POST", "/1/audits", `{"segments":true}`, 200, `"conditions":`)
		if err := json.Unmarshal([]byte(answer), &audit); err != nil || audit.Segments.Conditions == 0 || audit.Differing > 0 {
			t.Errorf("%s: audit %s, %v", what, answer, err)
		}
	}
	expect("built", 0, "ann cid ann+b")
	expect("built", 15, "ann cid")
	see(t, s, "brand:Acme", "ann+b", "ann+b", "dan")
	expect("after events", 0, "ann+b ann cid dan")
	want(t, s, "DELETE", "/1/profiles/cid", "", 200, "")
	expect("after a deletion", 0, "ann+b ann dan")
	want(t, s, "PUT", "/1/optouts/ann", "", 200, "")
	expect("after an opt-out", 0, "ann+b dan")
	want(t, s, "POST", "/1/strategies/personalization", fmt.Sprintf(viewsScore, 30), 200, "")
	code, answer := call(t, s, "POST", "/1/segments/query", `{"where":{"filter":"brand:Acme","above":80}}`)
	if !(code == 503 && strings.Contains(answer, "build")) && !(code == 200 && strings.Contains(answer, `"total":1`)) {
		t.Errorf("before the build under a new strategy: %d %s", code, answer)
	}
	waitForJob(t, s)
	waitForJobs(t, s, s.Backends.Segments.Jobs)
	expect("under a new strategy", 80, "ann+b")
	expect("under a new strategy", 25, "ann+b dan")
}

// A profile says to which saved segments it belongs.
func TestSegmentsOfAProfile(t *testing.T) {
	t.Parallel()
	s := segmented(t)
	see(t, s, "brand:Acme", "ann", "ann", "bob")
	want(t, s, "PUT", "/1/segments/fans", `{"where":{"filter":"brand:Acme","above":15}}`, 200, `"name":"fans"`)
	want(t, s, "PUT", "/1/segments/all", `{"where":{"filter":"brand:Acme"}}`, 200, "")
	want(t, s, "GET", "/1/profiles/ann?segments=true", "", 200, `"segments":["all","fans"]`)
	want(t, s, "GET", "/1/profiles/bob?segments=true", "", 200, `"segments":["all"]`)
	if answer := want(t, s, "GET", "/1/profiles/bob", "", 200, ""); strings.Contains(answer, "segments") {
		t.Errorf("segments that nobody asked for: %s", answer)
	}
	want(t, s, "POST", "/1/profiles/batch", `{"userTokens":["bob"],"segments":true}`, 200, `"segments":["all"]`)
	want(t, s, "GET", "/1/profiles/bob?segments=yes", "", 422, "segments must be true or false")
}

// Wrong requests for segments are refused with a sentence that names the fault.
func TestSegmentsRefuseWrongRequests(t *testing.T) {
	t.Parallel()
	s := segmented(t)
	want(t, s, "POST", "/1/segments/refresh", "", 200, "")
	waitForJobs(t, s, s.Backends.Segments.Jobs)
	filter := `{"filter":"brand:Acme"}`
	want(t, s, "PUT", "/1/segments/fans?create=true", `{"where":`+filter+`}`, 200, "")
	for _, c := range []struct {
		method, path, body string
		code               int
		part               string
	}{
		{"PUT", "/1/segments/fans?create=true", `{"where":` + filter + `}`, 409, "exists"},
		{"PUT", "/1/segments/histogram", `{"where":` + filter + `}`, 422, "histogram"},
		{"GET", "/1/segments/nobody", "", 404, "does not exist"},
		{"POST", "/1/segments/nobody/export", "", 404, "does not exist"},
		{"POST", "/1/segments/query", `{"where":{"not":` + filter + `}}`, 422, "bounded"},
		{"POST", "/1/segments/query", `{"where":{"and":[{"and":[{"and":[{"and":[` + filter + `]}]}]}]}}`, 422, "deeper than 4"},
		{"POST", "/1/segments/query", `{"where":{"or":[` + strings.Repeat(filter+",", 8) + filter + `]}}`, 422, "at most 8"},
		{"POST", "/1/segments/query", `{"where":{"filter":"brand:Acme","halfLife":7}}`, 422, "halfLife"},
		{"POST", "/1/segments/query", `{"where":` + filter + `,"limit":1001}`, 422, "limit"},
		{"POST", "/1/segments/query", `{"where":` + filter + `,"cursor":"AAAA"}`, 422, "cursor"},
		{"POST", "/1/segments/query", `{"where":` + filter + `,"page":2}`, 422, "page"},
		{"POST", "/1/segments/query", `{`, 400, "JSON"},
		{"GET", "/1/segments/histogram?facet=brand", "", 422, "value"},
		{"GET", "/1/segments/histogram?facet=brand&value=Acme&halfLife=7", "", 422, "halfLife"},
		{"GET", "/1/values", "", 422, "facet"},
		{"GET", "/1/values?facet=brand&sample=1001", "", 422, "sample must be an integer from 0 to 1000"},
	} {
		if code, answer := call(t, s, c.method, c.path, c.body); code != c.code || !strings.Contains(answer, c.part) {
			t.Errorf("%s %s %s: %d %s, want %d with %q", c.method, c.path, c.body, code, answer, c.code, c.part)
		}
	}
	must.Succeed(t, s.Backends.Config.SetSegments(t.Context(), "demo", false))
	want(t, s, "POST", "/1/segments/query", `{"where":`+filter+`}`, http.StatusConflict, "affinity app segments")
}

// Refreshes and exports of segments count as jobs: beyond the app's limit they are refused,
// and queries still answer.
func TestSegmentJobsAreLimited(t *testing.T) {
	t.Parallel()
	s := segmentedWith(t, stack.Options{ConfigTTL: time.Nanosecond, Limits: limit.Numbers{JobsPerHour: 1}})
	want(t, s, "PUT", "/1/segments/vip", `{"where":{"filter":"brand:Acme"}}`, 200, "")
	want(t, s, "POST", "/1/segments/refresh", "", 200, "")
	want(t, s, "POST", "/1/segments/refresh", "", http.StatusTooManyRequests, "jobs per hour")
	want(t, s, "POST", "/1/segments/vip/export", "", http.StatusTooManyRequests, "jobs per hour")
	want(t, s, "POST", "/1/segments/query", `{"where":{"filter":"brand:Acme"}}`, 200, "")
	waitForJobs(t, s, s.Backends.Segments.Jobs)
}

// A key without the permission admin learns no number of fewer than 20 users, whichever route
// counts them; a key with it learns all.
func TestSmallSegmentsAreNotCounted(t *testing.T) {
	t.Parallel()
	s := segmented(t)
	var many []string
	for i := range 21 {
		many = append(many, fmt.Sprint("fan-", i))
	}
	see(t, s, "brand:Acme", many...)
	see(t, s, "brand:Zeta", many[:19]...)
	for _, brand := range []string{"Acme", "Zeta"} {
		want(t, s, "PUT", "/1/segments/"+brand, `{"where":{"filter":"brand:`+brand+`"}}`, 200, "")
	}
	want(t, s, "POST", "/1/segments/refresh", "", 200, "") // it stores the sizes too
	waitForJobs(t, s, s.Backends.Segments.Jobs)
	key := config.Key{Hash: auth.Hash("reader"), ACL: []string{auth.Recommendation}}
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), "demo", key))
	const fewer = `"fewer than 20"`
	for _, route := range []struct{ method, path, body string }{
		{"POST", "/1/segments/query", `{"where":{"filter":"brand:%s"}}`},
		{"GET", "/1/segments/histogram?facet=brand&value=%s", ""},
		{"GET", "/1/segments/%s", ""},
		{"GET", "/1/segments", ""},
		{"GET", "/1/values?facet=brand&sample=100", ""},
	} {
		for _, brand := range []string{"Acme", "Zeta"} {
			path, body := strings.ReplaceAll(route.path, "%s", brand), strings.ReplaceAll(route.body, "%s", brand)
			code, answer := callAs(t, s, "demo", "reader", route.method, path, body)
			all := !strings.Contains(route.path+route.body, "%s") // the answer has both
			switch {
			case code == 403:
				continue
			case code != 200:
				t.Errorf("%s %s: %d %s", route.method, path, code, answer)
			case (all || brand == "Zeta") && !strings.Contains(answer, fewer), !all && brand == "Acme" && strings.Contains(answer, fewer):
				t.Errorf("%s %s with a key that may not count: %s", route.method, path, answer)
			case regexp.MustCompile(`[^0-9]19[^0-9]`).MatchString(changing.ReplaceAllString(answer, "")):
				t.Errorf("%s %s says 19: %s", route.method, path, answer)
			}
			if answer := want(t, s, route.method, path, body, 200, ""); strings.Contains(answer, fewer) {
				t.Errorf("%s %s with the permission admin: %s", route.method, path, answer)
			}
		}
	}
}
