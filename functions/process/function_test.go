package process_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/process"
	"github.com/affinityengine/affinity/shared/intake/refused"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

// push is the body of a delivery of Pub/Sub.
func push(message string) string {
	return fmt.Sprintf(`{"message":{"data":%q,"messageId":"7"},"subscription":"s","deliveryAttempt":1}`, base64.StdEncoding.EncodeToString([]byte(message)))
}

func TestProcess(t *testing.T) {
	s := functiontest.Start(t)
	const message = `{"app":"shop","receivedAt":1700000000000,"resolved":true}
{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"ann","filters":["color:Red"]}]}`
	functiontest.Check(t, process.New(s.Backends.ForProcess()),
		functiontest.Ask("", "GET", "/", "", 405, "Method Not Allowed"),
		functiontest.Ask("", "POST", "/", "", 400, "Bad Request: decode push"),
		functiontest.Ask("", "POST", "/", `{"subscription":"s"}`, 400, "message.messageId is missing"),
		functiontest.Ask("", "POST", "/", push(message), 204, ""),
		functiontest.Ask("", "POST", "/", push("garbage"), 204, ""), // buried
	)
	functiontest.Count(t, s, `affinity_messages_total{outcome="applied"} 1`, `affinity_messages_total{outcome="dead"} 1`, `affinity_events_total{outcome="applied"} 1`)
	if _, err := s.Backends.Profiles.OptOut(t.Context(), functiontest.App, "bob"); err != nil {
		t.Fatal(err)
	}
	functiontest.Check(t, process.New(s.Backends.ForProcess()),
		functiontest.Ask("", "POST", "/", push(strings.Replace(message, "ann", "bob", 1)), 204, ""),
	)
	functiontest.Count(t, s, `affinity_events_total{outcome="refused"} 1`)
	if err := s.Backends.Refused.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, counts, err := s.Backends.Store.Refused.ReadRefused(t.Context(), functiontest.App, s.Backends.Now()); counts[refused.OptedOut] != 1 || err != nil {
		t.Errorf("refused %v, %v; want one", counts, err)
	}
	app, err := s.Backends.Config.App(t.Context(), functiontest.App)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := s.Backends.Profiles.Read(t.Context(), app, "ann", 0); err != nil || !p.Known {
		t.Errorf("the profile %+v, %v does not count the event", p, err)
	}
}
