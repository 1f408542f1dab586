package ingest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

const event = `{"eventType":"view","eventName":"Seen","index":"shoes","userToken":"ann","filters":["color:Red"]}`

// started returns the backends of a test, and the function over them.
func started(t *testing.T) (*stack.Stack, http.Handler) {
	t.Helper()
	s := functiontest.Start(t)
	return s, ingest.New(s.Backends.ForIngest())
}

// scoring is a strategy by which each event counts 1.
var scoring = strategy.Strategy{
	EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: "view", Score: 1}},
	FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 1}},
}

// scores fails unless color:Red is the only affinity of ann, with a score.
func scores(t *testing.T, s *stack.Stack, want float64) {
	t.Helper()
	must.Succeed(t, s.Idle(t.Context()))
	app, err := s.Backends.Config.App(t.Context(), functiontest.App)
	must.Succeed(t, err)
	p, err := s.Backends.Profiles.Read(t.Context(), app, "ann", 0)
	if err != nil || len(p.Affinities) != 1 || p.Affinities[0].Scores[0] != want {
		t.Errorf("%+v, %v; want color:Red with %v", p, err, want)
	}
}

func TestIngest(t *testing.T) {
	s, h := started(t)
	events := `{"events":[` + event + `]}`
	functiontest.Check(t, h,
		functiontest.Ask("", "POST", "/1/events", events, 401, `{"status":401,"message":"Invalid credentials: send the headers X-Algolia-Application-Id and X-Algolia-API-Key"}`),
		functiontest.Ask("wrong", "POST", "/1/events", events, 401, `{"status":401,"message":"Invalid credentials"}`),
		functiontest.Ask("admin", "POST", "/1/events", events, 403, "Method not allowed with this API key"),
		functiontest.Ask("search", "GET", "/1/events", "", 405, "Method Not Allowed"),
		functiontest.Ask("search", "POST", "/1/event", events, 404, "Path not supported by Insights REST API"),
		functiontest.Ask("recommendation", "GET", "/1/events/refused", "", 200, `{"refused":[],"counts":{}}`),
		functiontest.Ask("search", "POST", "/1/events", `{"events":[`, 400, "Bad Request: JSON ends too early"),
		functiontest.Ask("search", "POST", "/1/events", `{}`, 422, "No events to process"),
		functiontest.Ask("search", "POST", "/1/events", `{"events":[{}]}`, 422, "EventName is required"),
		functiontest.Ask("search", "POST", "/1/events", strings.Repeat(" ", api.MaxEventsBody+1), 413, "Request Entity Too Large"),
		functiontest.Ask("search", "GET", "/1/events/refused", "", 403, ""),
		functiontest.Ask("recommendation", "GET", "/1/events/refused", "", 200, `"reason":"EventName is required","event":{},"sequence":`),
		functiontest.Ask("search", "POST", "/1/events", events, 200, `{"status":200,"message":"OK"}`),
		functiontest.Ask("search", "POST", "/1/events", `{"events":[{"eventType":"instantsearch","eventName":"x","userToken":"bob"}]}`, 200, "OK"),
	)
	must.Succeed(t, s.Idle(t.Context()))
	app, err := s.Backends.Config.App(t.Context(), functiontest.App)
	must.Succeed(t, err)
	for user, known := range map[string]bool{"ann": true, "bob": false} {
		if p, err := s.Backends.Profiles.Read(t.Context(), app, user, 0); err != nil || p.Known != known {
			t.Errorf("%s is known: %v, %v; want %v", user, p.Known, err, known)
		}
	}
}

func TestPagesOfOtherOriginsMaySendEvents(t *testing.T) {
	h := ingest.New(functiontest.Start(t).Backends.ForIngest())
	functiontest.Check(t, h,
		functiontest.Ask("", http.MethodOptions, "/1/events", "", 204, ""),
	)
}

// Events beyond twice the limit are answered 429, and say when to come again.
func TestLimitOfEvents(t *testing.T) {
	s, h := started(t)
	must.Succeed(t, s.Backends.CachedConfig.SetLimits(t.Context(), functiontest.App, limit.Numbers{EventsPerSecond: 3}))
	send := func(n int) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, functiontest.NewRequest("search", "POST", "/1/events", `{"events":[`+event+strings.Repeat(","+event, n-1)+`]}`))
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
	s, h := started(t)
	must.Succeed(t, s.Backends.CachedConfig.SetLimits(t.Context(), functiontest.App, limit.Numbers{UserEventsPerDay: 2}))
	bob := strings.Replace(event, "ann", "bob", 1)
	third := strings.Replace(event, "Seen", "Third", 1)
	functiontest.Check(t, h,
		functiontest.Ask("search", "POST", "/1/events", `{"events":[`+event+","+bob+","+event+","+third+`]}`, 200, "OK"),
		functiontest.Ask("search", "POST", "/1/events", `{"events":[`+event+`]}`, 200, "OK"),
	)
	must.Succeed(t, s.Idle(t.Context()))
	functiontest.Check(t, profiles.New(s.Backends.ForProfiles()),
		functiontest.Ask("recommendation", "GET", "/1/explain/ann", "", 200, `"accepted":2`),
		functiontest.Ask("recommendation", "GET", "/1/explain/bob", "", 200, `"accepted":1`),
	)
	must.Succeed(t, s.Backends.Refused.Flush(t.Context()))
	functiontest.Check(t, h, functiontest.Ask("recommendation", "GET", "/1/events/refused", "", 200, `"counts":{"UserToken has sent as many events today as the app's limit permits":2}`))
}

// While an app sends half as much again as its limit, every event is accepted and
// ends in a profile, by one lane or the other.
func TestBusyHourLosesNothing(t *testing.T) {
	s := functiontest.Start(t)
	ctx := t.Context()
	functiontest.SetStrategy(t, s, scoring)
	must.Succeed(t, s.Backends.CachedConfig.SetLimits(ctx, functiontest.App, limit.Numbers{EventsPerSecond: 2}))
	at := time.Now().Add(-2 * time.Hour)
	b := s.Backends.ForIngest()
	b.Now = func() time.Time { return at }
	b.Limits = limit.New(b.Now, limit.Numbers{}, nil, nil)
	h := ingest.New(b)
	const each = 3
	body, sent := `{"events":[`+event+strings.Repeat(","+event, each-1)+`]}`, 0
	for range 100 {
		if status, answer := functiontest.Call(h, "search", "POST", "/1/events", body); status != http.StatusOK {
			t.Fatalf("after %d events: %d %s", sent, status, answer)
		}
		sent += each
		at = at.Add(time.Second)
	}
	scores(t, s, float64(sent))
}

// Events of one user in requests that arrive together count once each, also if they are
// equal.
func TestRequestsAtOnceCountEach(t *testing.T) {
	s := functiontest.Start(t)
	functiontest.SetStrategy(t, s, scoring)
	h := ingest.New(s.Backends.ForIngest())
	const requests = 120
	var g errgroup.Group
	for range requests {
		g.Go(func() error {
			if status, answer := functiontest.Call(h, "search", "POST", "/1/events", `{"events":[`+event+`]}`); status != http.StatusOK {
				t.Errorf("%d %s", status, answer)
			}
			return nil
		})
	}
	must.Succeed(t, g.Wait())
	scores(t, s, requests)
}

// What events contained is counted when they are accepted: with the filters of their
// objects, whether a strategy scores them or not, and not if they are refused or not kept.
func TestSeen(t *testing.T) {
	s, h := started(t)
	send := func(body string, status int) functiontest.Request {
		return functiontest.Ask("search", "POST", "/1/events", `{"events":[`+body+`]}`, status, "")
	}
	functiontest.Check(t, h,
		functiontest.Ask("", "GET", "/1/events/seen", "", 401, "Invalid credentials"),
		functiontest.Ask("search", "GET", "/1/events/seen", "", 403, ""),
		functiontest.Ask("recommendation", "GET", "/1/events/seen", "", 200, `"events":[],"facets":[],"truncated":false}`),
		functiontest.Ask("recommendation", "GET", "/1/events/seen?days=0", "", 422, "days must be an integer from 1 to 30"),
		functiontest.Ask("recommendation", "GET", "/1/events/seen?days=31", "", 422, "days must be an integer from 1 to 30"),
		functiontest.Ask("recommendation", "GET", "/1/events/seen?days=many", "", 422, "days must be an integer from 1 to 30"),
		functiontest.Ask("recommendation", "GET", "/1/events/seen?day=1", "", 422, "Unknown query option"),
		send(event+","+event, 200),
		send(event+",{}", 422),
		send(`{"eventType":"instantsearch","eventName":"x","userToken":"bob"}`, 200),
		send(`{"eventType":"click","eventName":"Clicked","index":"shoes","userToken":"ann","filters":["brand:Acme","color:Red","color:Blue"]}`, 200),
		functiontest.Ask("search", "POST", "/v1/track?index=shoes", `{"type":"track","event":"Product Viewed","userId":"ann","properties":{"product_id":"unknown"}}`, 200, ""),
	)
	must.Succeed(t, s.Backends.Usage.Flush(t.Context()))
	for _, days := range []string{"", "?days=1", "?days=30"} {
		functiontest.Check(t, h, functiontest.Ask("recommendation", "GET", "/1/events/seen"+days, "", 200,
			`"events":[{"eventType":"view","eventName":"Seen","count":2},{"eventType":"click","eventName":"Clicked","count":1},{"eventType":"view","eventName":"Product Viewed","count":1}],`+
				`"facets":[{"facet":"color","count":3},{"facet":"brand","count":1}],"truncated":false}`))
	}
}
