package operator_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/operator"
	"github.com/affinityengine/affinity/shared/local/seal"
)

// A request from elsewhere or from a web page finds no path, even with the token.
func TestHandlerServesThisMachine(t *testing.T) {
	token := operator.NewToken()
	h := operator.Handler(slog.New(slog.DiscardHandler), token, operator.Place{Project: "p"}, config.NewMemory(), nil, nil, time.Now, seal.New(), nil, nil, operator.Moves{})
	for _, test := range []struct {
		name, remote, host, origin, token string
		want                              int
	}{
		{"the operator", "127.0.0.1:5000", "127.0.0.1:8080", "", token, 200},
		{"the operator by IPv6", "[::1]:5000", "localhost:8080", "", token, 200},
		{"the operator behind a forwarded port", "127.0.0.1:5000", "localhost:9999", "", token, 200},
		{"another program", "127.0.0.1:5000", "localhost:8080", "", "", 401},
		{"another token", "127.0.0.1:5000", "localhost:8080", "", operator.NewToken(), 401},
		{"another machine", "192.0.2.1:5000", "127.0.0.1:8080", "", token, 404},
		{"another host", "127.0.0.1:5000", "evil.example:8080", "", token, 404},
		{"a web page", "127.0.0.1:5000", "127.0.0.1:8080", "https://evil.example", token, 404},
		{"a web page of this machine", "127.0.0.1:5000", "127.0.0.1:8080", "http://localhost:3000", token, 404},
	} {
		r := httptest.NewRequest(http.MethodGet, "/local", nil)
		r.RemoteAddr, r.Host = test.remote, test.host
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		if test.token != "" {
			r.Header.Set("Authorization", "Bearer "+test.token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%s: %d %s, want %d", test.name, w.Code, w.Body, test.want)
		}
	}
}

// The token does not follow a redirect.
func TestClientFollowsNoRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("redirected with the header %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	c, err := operator.NewClient(server.URL, operator.NewToken())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Place(t.Context()); err == nil {
		t.Error("a redirect was taken for an answer")
	}
}
