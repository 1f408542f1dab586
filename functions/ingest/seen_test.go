package ingest_test

import (
	"testing"

	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

// What events contained is counted when they are accepted: with the filters of their
// objects, whether a strategy scores them or not, and not if they are refused or not kept.
func TestSeen(t *testing.T) {
	s := functiontest.Start(t)
	h := ingest.New(s.Backends.ForIngest())
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
	if err := s.Backends.Usage.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, days := range []string{"", "?days=1", "?days=30"} {
		functiontest.Check(t, h, functiontest.Ask("recommendation", "GET", "/1/events/seen"+days, "", 200,
			`"events":[{"eventType":"view","eventName":"Seen","count":2},{"eventType":"click","eventName":"Clicked","count":1},{"eventType":"view","eventName":"Product Viewed","count":1}],`+
				`"facets":[{"facet":"color","count":3},{"facet":"brand","count":1}],"truncated":false}`))
	}
}
