package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/local/must"
)

// Only a stream whose last line agrees with the others is complete.
func TestCutExport(t *testing.T) {
	const user, event = `{"exportedUser":{}}` + "\n", `{"exportedEvent":{"time":1}}` + "\n"
	for body, complete := range map[string]bool{
		user + event + `{"exportEnd":{"events":1,"faults":0}}` + "\n":                                  true,
		user + event + `{"exportedFault":{"time":1}}` + "\n" + `{"exportEnd":{"events":1,"faults":1}}`: true,
		user + event: false,
		user + event + `{"exportEnd":{"events":2}}`:                             false,
		user + event + `{"exportEnd":{"events":1,`:                              false,
		user + `{"exportEnd":{"events":0}}` + "\n" + event:                      false,
		user + event + `{"exportCut":{"message":"The service is unavailable"}}`: false,
		"":           false,
		user[:5]:     false,
		"<html></p>": false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		c, err := client.New(client.Config{URL: server.URL, App: "shop", Key: "key", Retry: client.NoRetry})
		must.Succeed(t, err)
		var got strings.Builder
		if _, err := c.Export(t.Context(), "ann", &got); (err == nil) != complete || err != nil && !errors.Is(err, client.ErrCut) {
			t.Errorf("%s: %v", body, err)
		}
		if strings.TrimSpace(got.String()) != strings.TrimSpace(body) {
			t.Errorf("wrote %q, want %q", got.String(), body)
		}
		server.Close()
	}
}

// A connection that breaks is a cut, and a refusal is the engine's.
func TestBrokenExport(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.EscapedPath(), "/a%2Fb") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"status":404,"message":"No profile"}`))
			return
		}
		_, _ = w.Write([]byte(`{"exportedUser":{}}` + "\n"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	c, err := client.New(client.Config{URL: server.URL, App: "shop", Key: "key", Retry: client.NoRetry})
	must.Succeed(t, err)
	if _, err := c.Export(t.Context(), "ann", new(strings.Builder)); !errors.Is(err, client.ErrCut) {
		t.Errorf("a broken connection: %v", err)
	}
	var refused *api.Error
	if _, err := c.Export(t.Context(), "a/b", new(strings.Builder)); !errors.As(err, &refused) || refused.Status != 404 {
		t.Errorf("an unknown user: %v", err)
	}
}
