package ingest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/web/auth"
)

var sentAt = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)

// What SDKs and pages sent from Chromium is accepted, and counts. The tests of scripts/clients record it,
// with -rewrite.
func TestRequestsOfPages(t *testing.T) {
	s, h := started(t)
	page := config.Key{Hash: auth.Hash("pagekey"), ACL: []string{auth.Search}, Indexes: []string{"products"}}
	must.Succeed(t, s.Backends.Config.CreateApp(t.Context(), config.App{ID: "demo", RetentionDays: 90}))
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), "demo", page))
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), "demo", config.Key{Hash: auth.Hash("own"), ACL: []string{auth.Recommendation}}))
	files, err := filepath.Glob("testdata/pages/*.http")
	must.Succeed(t, err)
	if len(files) < 10 {
		t.Fatalf("%d files", len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.Succeed(t, err)
		now := s.Backends.Now().UTC().Format("2006-01-02T15:04:05.000Z")
		in := bufio.NewReader(strings.NewReader(sentAt.ReplaceAllString(string(text), now)))
		status := http.StatusNoContent
		for status != http.StatusOK {
			r, err := http.ReadRequest(in)
			if errors.Is(err, io.EOF) {
				t.Fatalf("%s: it has no request with an event", file)
			}
			must.Succeed(t, err)
			want := http.StatusOK
			if r.Method == http.MethodOptions {
				want = http.StatusNoContent
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if status = w.Code; status != want {
				t.Fatalf("%s: %s %s: %d %s", file, r.Method, r.URL, status, w.Body)
			}
			mayRead(t, file, r, w.Header())
		}
		user := strings.TrimSuffix(filepath.Base(file), ".http")
		must.Succeed(t, s.Idle(t.Context()))
		events := strings.Count(string(text), "Viewed") + strings.Count(string(text), "Order Completed")
		r := functiontest.NewRequest("own", "GET", "/1/explain/"+user, "")
		r.Header.Set("X-Algolia-Application-Id", "demo")
		w := httptest.NewRecorder()
		profiles.New(s.Backends.ForProfiles()).ServeHTTP(w, r)
		if want := fmt.Sprintf(`"accepted":%d`, events); events == 0 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s, want %s", file, w.Body, want)
		}
	}
}

// mayRead checks that a browser lets a page send a request, with credentials, and read the answer.
func mayRead(t *testing.T, name string, r *http.Request, answer http.Header) {
	t.Helper()
	if answer.Get("Access-Control-Allow-Origin") != r.Header.Get("Origin") || answer.Get("Access-Control-Allow-Credentials") != "true" || answer.Get("Vary") != "Origin" {
		t.Errorf("%s: %s %s: %v", name, r.Method, r.URL, answer)
	}
	allowed := strings.Split(strings.ReplaceAll(answer.Get("Access-Control-Allow-Headers"), " ", ""), ",")
	for header := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		if header != "" && !slices.Contains(allowed, header) {
			t.Errorf("%s: the page may not send %q to %s", name, header, r.URL)
		}
	}
	if method := r.Header.Get("Access-Control-Request-Method"); !strings.Contains(answer.Get("Access-Control-Allow-Methods"), method) {
		t.Errorf("%s: the page may not send a %s to %s", name, method, r.URL)
	}
}

// A write key counts where an SDK sends it, the header before the query and that before the body, and
// only what its key permits.
func TestWriteKeys(t *testing.T) {
	_, h := started(t)
	call := func(writeKey string) string {
		return strings.Replace(viewed("ann", "1"), "{", `{"writeKey":`+writeKey+`,`, 1)
	}
	calls := func(writeKey string) string {
		return `{"batch":[` + viewed("ann", "1") + `],"writeKey":` + writeKey + `}`
	}
	for _, test := range []struct {
		name, path, header, body string
		status                   int
	}{
		{"body of a call", "/v1/t", "", call(`"shop:search"`), 200},
		{"body of a batch", "/v1/b", "", calls(`"shop:search"`), 200},
		{"body of a beacon", "/beacon/v1/batch", "", calls(`"shop:search"`), 200},
		{"body of a call by its long name", "/v1/track", "", call(`"shop:search"`), 200},
		{"query", "/v1/t?writeKey=shop:search", "", call(`""`), 200},
		{"query, beside an index", "/beacon/v1/batch?index=hats&writeKey=shop%3Asearch", "", calls(`null`), 200},
		{"query before the body", "/v1/b?writeKey=shop:search", "", calls(`"shop:wrong"`), 200},
		{"header before both", "/v1/b?writeKey=shop:wrong", "shop:search", calls(`"shop:wrong"`), 200},
		{"another call", "/v1/i", "", `{"writeKey":"shop:search","userId":"ann"}`, 200},

		{"none", "/v1/t", "", viewed("ann", "1"), 401},
		{"none in a batch", "/v1/b", "", batch(call(`"shop:search"`)), 401},
		{"wrong key", "/v1/t", "", call(`"shop:wrong"`), 401},
		{"another app", "/v1/t", "", call(`"zoo:search"`), 401},
		{"no app", "/v1/t", "", call(`"search"`), 401},
		{"empty", "/v1/t", "", call(`""`), 401},
		{"number", "/v1/t", "", call(`5`), 401},
		{"object", "/v1/b", "", calls(`{"key":"shop:search"}`), 401},
		{"body that is no JSON", "/v1/t", "", `shop:search`, 401},
		{"no body", "/v1/b", "", ``, 401},
		{"wrong header before the body", "/v1/t", "shop:wrong", call(`"shop:search"`), 401},
		{"wrong query before the body", "/v1/t?writeKey=shop:wrong", "", call(`"shop:search"`), 401},
		{"without the permission", "/v1/t", "", call(`"shop:admin"`), 403},
		{"in a batch that is none", "/v1/b", "", call(`"shop:search"`), 400},
		{"of an event", "/1/events", "", `{"writeKey":"shop:search","events":[]}`, 401},
		{"large body without a key", "/v1/b", "", strings.Repeat(" ", api.MaxEventsBody+1), 413},
		{"unknown path", "/v1/m", "", call(`"shop:search"`), 404},
	} {
		r := httptest.NewRequest("POST", test.path, strings.NewReader(test.body))
		if test.header != "" {
			r.SetBasicAuth(test.header, "")
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != test.status {
			t.Errorf("%s: %d %s, want %d", test.name, w.Code, w.Body, test.status)
		}
	}
}

// The first letters of calls, which Segment's SDK for browsers sends, are the calls.
func TestShortNamesOfCalls(t *testing.T) {
	s, h := started(t)
	for _, call := range "tipsga" {
		functiontest.Check(t, h, functiontest.Ask("search", "POST", "/v1/"+string(call), viewed("ann", "1"), 200, success))
	}
	want := map[string]int64{"Ignored: identify call": 1, "Ignored: page call": 1, "Ignored: screen call": 1, "Ignored: group call": 1, "Ignored: alias call": 1}
	if diff := cmp.Diff(want, counts(t, s)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	must.Succeed(t, s.Idle(t.Context()))
	functiontest.Check(t, profiles.New(s.Backends.ForProfiles()), functiontest.Ask("recommendation", "GET", "/1/explain/ann", "", 200, `"accepted":1`))
}

// Of the routes of ingest only those that take events may be called with credentials.
func TestCredentialsOfPages(t *testing.T) {
	_, h := started(t)
	for route, may := range map[string]bool{
		"POST /1/events": true, "POST /v1/batch": true, "POST /v1/b": true, "POST /v1/t": true, "POST /v1/track": true, "POST /beacon/v1/batch": true,
		"GET /1/events/refused": false, "GET /1/events/seen": false, "POST /1/events/refused": false, "POST /beacon/v1/t": false, "POST /other": false,
	} {
		method, path, _ := strings.Cut(route, " ")
		for _, preflight := range []bool{true, false} {
			r := functiontest.NewRequest("search", method, path, "{}")
			r.Header.Set("Origin", "https://shop.example")
			if preflight {
				r.Method = http.MethodOptions
				r.Header.Set("Access-Control-Request-Method", method)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if got := w.Header().Get("Access-Control-Allow-Credentials") == "true"; got != may || got != (w.Header().Get("Access-Control-Allow-Origin") == "https://shop.example") {
				t.Errorf("%s, preflight %v: %v", route, preflight, w.Header())
			}
		}
	}
}
