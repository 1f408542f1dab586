package ingest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

const event = `{"eventType":"view","eventName":"Seen","index":"shoes","userToken":"ann","filters":["color:Red"]}`

func TestIngest(t *testing.T) {
	s := functiontest.Start(t)
	h := ingest.New(s.Backends.ForIngest())
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
	if err := s.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	app, err := s.Backends.Config.App(t.Context(), functiontest.App)
	if err != nil {
		t.Fatal(err)
	}
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
