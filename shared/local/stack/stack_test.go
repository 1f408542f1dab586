package stack_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/apicheck"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
)

const day = 24 * time.Hour

// start starts an engine with the app demo and another one. Requests to its URL are
// checked against the description of the API.
func start(tb testing.TB, o stack.Options) *stack.Stack {
	tb.Helper()
	if o.Apps == nil {
		o.Apps = []stack.App{{ID: "demo", Key: "demokey"}, {ID: "other", Key: "otherkey"}}
	}
	if testing.Verbose() && o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	s, err := stack.Start(context.Background(), o)
	must.Succeed(tb, err)
	must.CloseAtEnd(tb, s)
	if _, ok := tb.(*testing.T); ok { // benchmarks measure the engine alone
		s.URL = apicheck.Proxy(tb, s.URL)
	}
	return s
}

func idle(tb testing.TB, s *stack.Stack) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	must.Succeed(tb, s.Idle(ctx))
}

// poll asks until the answer is the awaited one, and returns that. The test ends if it takes too long.
func poll(t *testing.T, atMost time.Duration, ask func() (answer string, awaited bool)) string {
	t.Helper()
	deadline, pause := time.After(atMost), time.NewTicker(2*time.Millisecond)
	defer pause.Stop()
	for {
		answer, awaited := ask()
		if awaited {
			return answer
		}
		select {
		case <-pause.C:
		case <-deadline:
			t.Fatalf("after %v the answer is still %s", atMost, answer)
		}
	}
}

// waitForJobs waits until no job of the app is unfinished.
func waitForJobs(t *testing.T, s *stack.Stack, jobs job.Jobs) {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		idle(t, s)
		unfinished, err := jobs.Unfinished(t.Context(), "demo")
		must.Succeed(t, err)
		if len(unfinished) == 0 {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("jobs do not end: %+v", unfinished)
		case <-time.After(5 * time.Millisecond): // its plan task is delayed
		}
	}
}

// call sends a request with the app's credentials and returns the answer.
func call(tb testing.TB, s *stack.Stack, method, path, body string) (int, string) {
	tb.Helper()
	return callAs(tb, s, "demo", "demokey", method, path, body)
}

func callAs(tb testing.TB, s *stack.Stack, app, key, method, path, body string) (int, string) {
	tb.Helper()
	return callAt(tb, s, "", app, key, method, path, body)
}

// wantStatus checks the status of an answer, and returns the answer.
func wantStatus(tb testing.TB, s *stack.Stack, want int, method, path, body string) string {
	tb.Helper()
	return wantStatusAs(tb, s, want, "demo", "demokey", method, path, body)
}

func wantStatusAs(tb testing.TB, s *stack.Stack, want int, app, key, method, path, body string) string {
	tb.Helper()
	code, answer := callAs(tb, s, app, key, method, path, body)
	if code != want {
		tb.Fatalf("%s %s: %d %s, want %d", method, path, code, answer, want)
	}
	return answer
}

// ask is call, three times more after an answer 503, as clients do: where requests may not take
// long and the machine is busy, one may pass its deadline.
func ask(tb testing.TB, s *stack.Stack, method, path, body string) (code int, answer string) {
	tb.Helper()
	for range 4 {
		if code, answer = call(tb, s, method, path, body); code != http.StatusServiceUnavailable {
			break
		}
	}
	return code, answer
}

// callAt is callAs at a host; "" is that of s.URL.
func callAt(tb testing.TB, s *stack.Stack, host, app, key, method, path, body string) (int, string) {
	tb.Helper()
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	must.Succeed(tb, err)
	req.Host = host
	if app != "" {
		req.Header.Set("X-Algolia-Application-Id", app)
		req.Header.Set("X-Algolia-API-Key", key)
	}
	res, err := http.DefaultClient.Do(req)
	must.Succeed(tb, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	must.Succeed(tb, err)
	return res.StatusCode, strings.TrimSpace(string(answer))
}
