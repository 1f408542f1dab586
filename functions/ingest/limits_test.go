package ingest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

// Events beyond twice the limit are answered 429, and say when to come again.
func TestLimitOfEvents(t *testing.T) {
	s := functiontest.Start(t)
	h := ingest.New(s.Backends.ForIngest())
	if err := s.Backends.CachedConfig.SetLimits(t.Context(), functiontest.App, limit.Numbers{EventsPerSecond: 3}); err != nil {
		t.Fatal(err)
	}
	send := func(n int) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/1/events", strings.NewReader(`{"events":[`+event+strings.Repeat(","+event, n-1)+`]}`))
		r.Header.Set("X-Algolia-Application-Id", functiontest.App)
		r.Header.Set("X-Algolia-API-Key", "search")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	if w := send(1_000); w.Code != http.StatusOK || w.Header().Get("X-RateLimit-Limit") != "3" || w.Header().Get("X-RateLimit-Remaining") != "0" {
		t.Fatalf("%d %s %v", w.Code, w.Body, w.Header())
	}
	w := send(1) // the first request is not paid for before five minutes have passed
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "10" || !strings.Contains(w.Body.String(), "The app's limit is 3 events per second") {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
	functiontest.Check(t, h, functiontest.Ask("recommendation", "GET", "/1/events/refused", "", 200, `{"refused":[],"counts":{}}`))
}

// Events of a user beyond the limit of a day are accepted, counted and not applied.
func TestLimitOfAUser(t *testing.T) {
	s := functiontest.Start(t)
	h := ingest.New(s.Backends.ForIngest())
	if err := s.Backends.CachedConfig.SetLimits(t.Context(), functiontest.App, limit.Numbers{UserEventsPerDay: 2}); err != nil {
		t.Fatal(err)
	}
	bob := strings.Replace(event, "ann", "bob", 1)
	third := strings.Replace(event, "Seen", "Third", 1)
	functiontest.Check(t, h,
		functiontest.Ask("search", "POST", "/1/events", `{"events":[`+event+","+bob+","+event+","+third+`]}`, 200, "OK"),
		functiontest.Ask("search", "POST", "/1/events", `{"events":[`+event+`]}`, 200, "OK"),
	)
	if err := s.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	functiontest.Check(t, profiles.New(s.Backends.ForProfiles()),
		functiontest.Ask("recommendation", "GET", "/1/explain/ann", "", 200, `"accepted":2`),
		functiontest.Ask("recommendation", "GET", "/1/explain/bob", "", 200, `"accepted":1`),
	)
	if err := s.Backends.Refused.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	functiontest.Check(t, h, functiontest.Ask("recommendation", "GET", "/1/events/refused", "", 200, `"counts":{"UserToken has sent as many events today as the app's limit permits":2}`))
}
