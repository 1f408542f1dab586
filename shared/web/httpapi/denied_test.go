package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A flood of requests with wrong credentials is one line a minute for each app and
// reason. No line holds a key.
func TestDeniedRequestsAreOneLine(t *testing.T) {
	var out bytes.Buffer
	rt := NewRouter(slog.New(slog.NewJSONHandler(&out, nil)))
	timers := 0
	rt.denied.after = func(d time.Duration, _ func()) {
		if timers++; d != denialsEvery {
			t.Errorf("a line after %s", d)
		}
	}
	rt.Handle("GET /{status}", func(_ http.ResponseWriter, r *http.Request) error {
		status := http.StatusUnauthorized
		if r.PathValue("status") == "403" {
			status = http.StatusForbidden
		}
		return Errorf(status, "no")
	})
	ask := func(path, app string, times int) {
		for range times {
			r := httptest.NewRequest("GET", path, nil)
			if app != "" {
				r.Header.Set("X-Algolia-Application-Id", app)
			}
			r.Header.Set("X-Algolia-API-Key", "secret")
			rt.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	ask("/401", "shop", 1000)
	ask("/403", "shop", 2)
	ask("/401?x-algolia-application-id=blog&x-algolia-api-key=secret", "", 3)
	ask("/401", "a\nb", 1)
	ask("/401", strings.Repeat("a", 65), 1)
	if out.Len() > 0 || timers != 1 {
		t.Fatalf("%d timers, logged by requests: %s", timers, &out)
	}
	rt.denied.write()
	got := map[string]int64{}
	for line := range strings.Lines(out.String()) {
		var l struct {
			Msg, App, Reason string
			Status           int
			Requests         int64
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Msg != "requests are denied" || l.Reason != "no" {
			t.Errorf("%v: %s", err, line)
		}
		got[fmt.Sprint(l.App, " ", l.Status)] = l.Requests
	}
	if want := map[string]int64{"shop 401": 1000, "shop 403": 2, "blog 401": 3, " 401": 2}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if strings.Contains(out.String(), "secret") {
		t.Error("a line holds a key")
	}
	rt.denied.write()
	ask("/401", "shop", 1)
	if timers != 2 {
		t.Errorf("%d timers, want one for each minute with a denied request", timers)
	}
}

// Apps that strangers make up take a bounded memory and a bounded number of lines.
func TestDeniedAppsAreBounded(t *testing.T) {
	d := newDenials(slog.New(slog.DiscardHandler))
	d.after = func(time.Duration, func()) {}
	for i := range 3 * maxDenied {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Algolia-Application-Id", fmt.Sprint("app", i))
		d.count(r, 401, "no")
	}
	if len(d.counts) > maxDenied+1 || d.counts[denial{otherApps, 401, "no"}] != 2*maxDenied {
		t.Errorf("%d apps are counted", len(d.counts))
	}
}

// No cache may keep an answer, and no browser may guess its type. The log of a
// failure has the route, not the user token of the path.
func TestAnswersAreNotStored(t *testing.T) {
	var out bytes.Buffer
	rt := NewRouter(slog.New(slog.NewJSONHandler(&out, nil)))
	rt.Handle("GET /1/profiles/{userToken}", func(w http.ResponseWriter, r *http.Request) error {
		switch r.PathValue("userToken") {
		case "ann":
			return WriteJSON(w, http.StatusOK, "ok")
		case "bob":
			panic("a bug")
		}
		return fmt.Errorf("a fault")
	})
	for _, path := range []string{"/1/profiles/ann", "/1/profiles/bob", "/1/profiles/eve", "/1/unknown"} {
		w := httptest.NewRecorder()
		rt.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if h := w.Header(); h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, h)
		}
	}
	if n := strings.Count(out.String(), `"path":"/1/profiles/{userToken}"`); n != 2 || strings.Contains(out.String(), "/eve") {
		t.Errorf("logged %s", &out)
	}
}
