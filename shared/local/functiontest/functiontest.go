// Package functiontest tests one function beside its code: it starts in-process
// backends, with an app and a key for each permission, and sends requests to the
// function's handler.
package functiontest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// App is the app of a test. Its keys are the names of the permissions that they hold,
// such as "search" and "admin".
const App = "shop"

// Start starts the backends of all functions for the duration of a test.
func Start(t testing.TB) *stack.Stack {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Options{Apps: []stack.App{{ID: App, Key: "all"}},
		ConfigTTL: time.Millisecond})
	must.Succeed(t, err)
	must.CloseAtEnd(t, s)
	for _, acl := range auth.All {
		must.Succeed(t, s.Backends.Config.PutKey(t.Context(), App, config.Key{Hash: auth.Hash(acl), ACL: []string{acl}}))
	}
	return s
}

// Call sends a request to a function and returns the status and the body of the
// answer. Without a key it names no app either.
func Call(h http.Handler, key, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, NewRequest(key, method, path, body))
	return w.Code, strings.TrimSpace(w.Body.String())
}

// NewRequest returns a request that names the app and a key. Without a key it names neither.
func NewRequest(key, method, path, body string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if key != "" {
		r.Header.Set("X-Algolia-Application-Id", App)
		r.Header.Set("X-Algolia-API-Key", key)
	}
	return r
}

// Do is Call for a request that a test needs: its answer must be 200.
func Do(t testing.TB, h http.Handler, key, method, path, body string) string {
	t.Helper()
	status, answer := Call(h, key, method, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return answer
}

// Answer is Do for an answer of a type.
func Answer[T any](t testing.TB, h http.Handler, key, method, path, body string) (answer T) {
	t.Helper()
	must.Succeed(t, json.Unmarshal([]byte(Do(t, h, key, method, path, body)), &answer))
	return answer
}

// SetStrategy makes a strategy that of the app.
func SetStrategy(t testing.TB, s *stack.Stack, of strategy.Strategy) {
	t.Helper()
	_, _, err := s.Backends.CachedConfig.SetStrategy(t.Context(), App, of)
	must.Succeed(t, err)
}

// Request is a request and what its answer must be.
type Request struct {
	key, method, path, body string
	status                  int
	want                    string
}

// Ask is a request, the status of its answer, and a part of it.
func Ask(key, method, path, body string, status int, want string) Request {
	return Request{key, method, path, body, status, want}
}

// Check sends requests one after the other and checks their answers.
func Check(t *testing.T, h http.Handler, requests ...Request) {
	t.Helper()
	for _, r := range requests {
		body := r.body
		if len(body) > 100 {
			body = body[:100] + "..."
		}
		t.Run(strings.TrimSpace(r.key+" "+r.method+" "+r.path+" "+body), func(t *testing.T) {
			if status, answer := Call(h, r.key, r.method, r.path, r.body); status != r.status ||
				!strings.Contains(answer, r.want) {
				t.Errorf("%d %s\nwant %d, with %s", status, answer, r.status, r.want)
			}
		})
	}
}

// Count checks that the engine's metrics have these lines.
func Count(t *testing.T, s *stack.Stack, lines ...string) {
	t.Helper()
	answer, err := http.Get(s.URL + "/metrics")
	must.Succeed(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must.Succeed(t, err)
	for _, line := range lines {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("the metrics lack %q:\n%s", line, text)
		}
	}
}
