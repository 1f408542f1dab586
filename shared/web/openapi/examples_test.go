package openapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/apicheck"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/web/openapi/spec"
)

// TestExamples sends the example of every operation to a fresh engine, whose
// clock starts at noon of 20 November 2026, and compares the answer with the
// recorded one. What differs between runs, such as times and ids, is not
// compared. With -rewrite it records answers that differ. Commands:
//
//	example OPERATION   title, METHOD PATH, a header if its name begins with x-, and body of a request
//	setup               the same, of a request that the document does not show
//	idle                waits until every event is in its profile, and usage is stored
//	wait PATH           waits until the job that is answered there has ended
//
// <id> in a path is the first id of the answer before.
func TestExamples(t *testing.T) {
	datadriven.Walk(t, "spec/examples", func(t *testing.T, path string) {
		o := stack.Options{
			Apps: []stack.App{{ID: "demo", Key: "demokey"}}, RetentionDays: 90, ConfigTTL: 100 * time.Millisecond,
			Now:       time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
			Recompute: job.Settings{ShardUsers: 1000, Budget: time.Minute, Attempts: 3},
		}
		switch filepath.Base(path) {
		case "1-shop", "3-waiting", "9-feeds":
			o.ConfigTTL = time.Hour // jobs do not begin
		case "4-schema":
			o.Layout = schema.Of(schema.Narrow)
		case "14-residency":
			o.Regions, o.Apps[0].Region = []string{"eu", "us"}, "eu"
		}
		s, err := stack.Start(t.Context(), o)
		must.Succeed(t, err)
		must.CloseAtEnd(t, s)
		if filepath.Base(path) == "10-segments" {
			must.Succeed(t, s.Backends.Config.SetSegments(t.Context(), "demo", true))
		}
		if filepath.Base(path) == "12-identities" {
			_, err := s.Backends.Config.SetIdentity(t.Context(), "demo", config.Identity{Mode: config.IdentityCollect, Lookback: time.Hour}, 0)
			must.Succeed(t, err)
		}
		if filepath.Base(path) == "14-residency" {
			for _, mode := range []config.ResidencyMode{config.ResidencyPrepare, config.ResidencyOn} {
				to := config.Residency{Mode: mode, Regions: []string{"eu", "us"}}
				_, err := s.Backends.CachedConfig.SetResidency(t.Context(), "demo", to, 0)
				must.Succeed(t, err)
			}
		}
		if name := filepath.Base(path); name == "18-reports" || name == "3-waiting" {
			_, err := s.Backends.CachedConfig.SetHoldout(t.Context(), "demo", experiment.Holdout{Share: 0.2, Seed: "q4"})
			must.Succeed(t, err)
		}
		if filepath.Base(path) == "15-consents" {
			_, err := s.Backends.CachedConfig.SetPurposes(t.Context(), "demo", []consent.Purpose{
				{Name: "personalization", Default: true, Surfaces: []consent.Surface{consent.Rank, consent.Boosts, consent.Feeds}},
				{Name: "analytics", Default: true, Surfaces: []consent.Surface{consent.Segments}},
				{Name: "ads", Types: []event.Type{event.View}, Surfaces: []consent.Surface{consent.Export}},
			})
			must.Succeed(t, err)
		}
		r := runner{url: apicheck.Proxy(t, s.URL), operator: s.Operator}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "idle":
				if err := errors.Join(s.Idle(t.Context()), s.Backends.Usage.Flush(t.Context())); err != nil {
					d.Fatalf(t, "%v", err)
				}
				return ""
			case "wait":
				r.wait(t, d.CmdArgs[0].Key)
				return ""
			}
			operation := "setup"
			if d.Cmd == "example" {
				operation = d.CmdArgs[0].Key
			}
			e, err := spec.ParseRequest(operation, d.Input, r.id)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			status, body := r.send(t, e.Method, e.Path, e.Body, e.Header)
			answer, err := spec.Format(status, body)
			if err != nil {
				d.Fatalf(t, "%v: %s", err, body)
			}
			r.id = spec.ID(answer, r.id)
			if operation == "setup" {
				if status != http.StatusOK {
					d.Fatalf(t, "%s", answer)
				}
				return ""
			}
			if sameAnswer(d.Expected, answer) {
				return d.Expected
			}
			return answer
		})
	})
}

// TestEveryOperationHasAnExample looks for an example that succeeds; TestExamples
// sends it.
func TestEveryOperationHasAnExample(t *testing.T) {
	answered := map[string]bool{}
	for _, e := range recorded(t) {
		if e.Status < http.StatusBadRequest {
			answered[e.Operation] = true
		}
	}
	checker, err := apicheck.Shared()
	must.Succeed(t, err)
	all, _ := checker.Operations()
	for _, operation := range all {
		if !answered[operation] {
			t.Errorf("%s has no example that succeeds", operation)
		}
	}
}

type runner struct{ url, operator, id string }

func (r *runner) send(t *testing.T, method, path, body, header string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	must.Succeed(t, err)
	req.Header.Set("X-Algolia-Application-Id", "demo")
	req.Header.Set("X-Algolia-API-Key", "demokey")
	req.Header.Set("Authorization", "Bearer "+r.operator) // for /local
	if name, value, given := strings.Cut(header, ": "); given {
		req.Header.Set(name, value)
	}
	res, err := (&http.Client{CheckRedirect: apicheck.Stay}).Do(req)
	must.Succeed(t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	must.Succeed(t, err)
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") || path == "/openapi.json" {
		answer = nil // a page, or the document itself
	}
	return res.StatusCode, answer
}

// wait asks until the job at path has ended and every process follows.
func (r *runner) wait(t *testing.T, path string) {
	t.Helper()
	deadline := time.After(time.Minute)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		status, body := r.send(t, "GET", strings.ReplaceAll(path, "<id>", r.id), "", "")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, body)
		}
		if !working.Match(body) {
			return
		}
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("%s does not end: %s", path, body)
		}
	}
}

var (
	working  = regexp.MustCompile(`"state":"(planning|running)"|"settlesInMs":[1-9]`)
	volatile = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|(manual|export|backtest|linkpreview|report|reenrich[a-z-]*|migration|backfill|verify|drop)-\d{8}T\d{6}Z-[a-z0-9]+|import-\d{13}|127\.0\.0\.1:\d+|\d{16}-[0-9a-f]{16}|^[0-9a-f]{32}$|^[A-Z2-7]{26}$|^A[A-Za-z0-9_-]{20,}$`)
)

// sameAnswer reports whether two records agree, but for what differs between runs.
func sameAnswer(want, got string) bool {
	wantStatus, wantBody, _ := strings.Cut(want, "\n")
	gotStatus, gotBody, _ := strings.Cut(got, "\n")
	var a, b any
	errA, errB := json.Unmarshal([]byte(wantBody), &a), json.Unmarshal([]byte(gotBody), &b)
	if wantStatus != gotStatus || (errA == nil) != (errB == nil) {
		return false
	}
	if errA != nil {
		return strings.TrimSpace(wantBody) == strings.TrimSpace(gotBody)
	}
	if atWork.MatchString(wantBody) && !strings.Contains(gotBody, `"failed",`) {
		withoutProgress(a)
		withoutProgress(b)
	}
	return sameValue("", a, b)
}

var atWork = regexp.MustCompile(`"state": "(planning|running)"`)

// withoutProgress empties the keys of an answer that change while its job works:
// a job that has just been started may be any step further.
func withoutProgress(answer any) {
	m, _ := answer.(map[string]any)
	for key, value := range m {
		switch key {
		case "state", "shards", "users", "plannedUsers", "events", "rows", "changed", "trials", "finishedAt", "next":
			m[key] = nil
		case "jobsBefore", "estimatedEndAt":
			delete(m, key) // whether an answer has them changes too
		case "move", "job", "search":
			withoutProgress(value)
		}
	}
}

func sameValue(key string, a, b any) bool {
	switch key {
	case "taskID", "settlesInMs", "took", "processingTimeMS", "eventsPerSecond": // which follows from the cores of the machine
		return true
	case "ageDays": // of events in the past, on a machine that may be busy
		a, isA := a.(float64)
		b, isB := b.(float64)
		return isA && isB && math.Abs(a-b) < time.Hour.Hours()/24
	}
	switch a := a.(type) {
	case map[string]any:
		if _, ok := a["refusedEvents"]; ok { // rows depend on retries and caches
			a["rows"], a["bytes"] = 0, 0
			if b, ok := b.(map[string]any); ok {
				b["rows"], b["bytes"] = 0, 0
			}
		}
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			other, ok := b[k]
			if !ok || !sameValue(k, v, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue("", a[i], b[i]) {
				return false
			}
		}
		return true
	case float64: // what decays has another last digit each time
		b, ok := b.(float64)
		return ok && math.Abs(a-b) <= 1e-3*math.Max(math.Abs(a), math.Abs(b))
	case string:
		b, ok := b.(string)
		return ok && volatile.ReplaceAllString(a, "*") == volatile.ReplaceAllString(b, "*")
	}
	return fmt.Sprint(a) == fmt.Sprint(b)
}
