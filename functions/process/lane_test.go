package process_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/process"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

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
