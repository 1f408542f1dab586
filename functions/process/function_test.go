package process_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/affinityengine/affinity/functions/process"
	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/intake/refused"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
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
	must.Succeed(t, s.Backends.Refused.Flush(t.Context()))
	if _, counts, err := s.Backends.Store.Refused.ReadRefused(t.Context(), functiontest.App, s.Backends.Now()); counts[refused.OptedOut] != 1 || err != nil {
		t.Errorf("refused %v, %v; want one", counts, err)
	}
	app, err := s.Backends.Config.App(t.Context(), functiontest.App)
	must.Succeed(t, err)
	if p, err := s.Backends.Profiles.Read(t.Context(), app, "ann", 0); err != nil || !p.Known {
		t.Errorf("the profile %+v, %v does not count the event", p, err)
	}
}

// said takes what a process says to others.
type said chan string

func (s said) ExchangeRates(_ context.Context, app, _ string, text []byte) (map[string][]byte, error) {
	s <- app + " " + string(text)
	return nil, nil
}

// Ingest learns what was applied from a slow lane, and only that.
func TestSlowLaneIsSaidToBeApplied(t *testing.T) {
	s := functiontest.Start(t)
	b, board := s.Backends.ForProcess(), make(said)
	b.Limits = limit.New(time.Now, limit.Numbers{}, board, func(string, error) {})
	const fast = `{"app":"shop","receivedAt":1700000000000,"resolved":true}
{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"ann","filters":["color:Red"]}]}`
	slow := strings.Replace(fast, `"receivedAt":17`, `"lane":"slow","receivedAt":16`, 1)
	functiontest.Check(t, process.New(b),
		functiontest.Ask("", "POST", "/", push(fast), 204, ""),
		functiontest.Ask("", "POST", "/", push(slow), 204, ""),
	)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := ""
	select {
	case got = <-board:
	case <-ctx.Done():
	}
	if !strings.HasPrefix(got, "shop ") || !strings.Contains(got, `"lane":{"done":1600000000000}`) {
		t.Errorf("process says %q", got)
	}
}

// A delivery that is not light waits for memory longer than a client of the API would.
func TestDeliveryWaitsForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, leave := admission.Process().Enter(t.Context())
		must.Succeed(t, admission.Take(other, 1<<40))
		time.AfterFunc(30*time.Second, leave)
		began := time.Now()
		// It is not a push, so it needs no backends once it is read.
		code, answer := functiontest.Call(process.New(process.Backends{}), "", "POST", "/", `{"subscription":"s"}`+strings.Repeat(" ", admission.Light))
		if waited := time.Since(began); code != http.StatusBadRequest || waited != 30*time.Second {
			t.Errorf("%d %s after %v; want 400 after 30 s", code, answer, waited)
		}
	})
}
