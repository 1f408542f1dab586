package stack_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/ports"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

const ownKey = "a-key-of-my-own-1234"

// served is an engine for production whose apps are shop and demo, with the socket of its operators.
type served struct {
	*stack.Stack
	socket string
}

func serving(t *testing.T, o stack.Options) served {
	t.Helper()
	folder, err := os.MkdirTemp("", "admin") // the path of a socket is short
	must.Succeed(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	s := served{socket: filepath.Join(folder, "socket")}
	o.Admin = "unix:" + s.socket
	o.Apps = []stack.App{{ID: "shop", Key: ownKey}, {ID: "demo", Key: stack.DemoKey}}
	s.Stack, err = stack.Start(t.Context(), o)
	must.Succeed(t, err)
	must.CloseAtEnd(t, s.Stack)
	return s
}

// operators returns a client of the operators' socket, to be called at http://localhost.
func (s served) operators() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", s.socket) }}}
}

// get sends GET with headers, given as name and value, and returns the status and the answer.
func get(t *testing.T, c *http.Client, url string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	must.Succeed(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Host = r.Header.Get("Host")
	answer, err := c.Do(r)
	must.Succeed(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must.Succeed(t, err)
	return answer.StatusCode, string(body)
}

func credentials(app, key string) []string {
	return []string{"X-Algolia-Application-Id", app, "X-Algolia-API-Key", key}
}

// What operators read is at their address alone, and what everybody knows opens nothing.
func TestOperatorsHaveAnAddressOfTheirOwn(t *testing.T) {
	s := serving(t, stack.Options{})
	own, operator := s.operators(), []string{"Authorization", "Bearer " + s.Operator}
	for _, test := range []struct {
		path            string
		headers         []string
		public, private int
		says            string // at the operators' address
	}{
		{"/metrics", nil, 404, 200, "affinity_"},
		{"/local", operator, 404, 200, "bigtable"},
		{"/local", nil, 404, 401, "needs the operator's token"},
		{"/debug/pprof/cmdline", nil, 404, 200, ""},
		{"/readyz", nil, 404, 200, "ready"},
		{"/healthz", nil, 200, 200, `"status":"ok"`},
		{"/1/strategies/personalization", credentials("demo", stack.DemoKey), 401, 401, "is public"},
		{"/metrics", []string{"Host", "evil.example"}, 421, 421, "localhost"},
		{"/metrics", []string{"Origin", "https://evil.example"}, 403, 403, "no web pages"},
	} {
		if code, answer := get(t, http.DefaultClient, s.URL+test.path, test.headers...); code != test.public {
			t.Errorf("%s %v in public: %d %s, want %d", test.path, test.headers, code, answer, test.public)
		}
		code, answer := get(t, own, "http://localhost"+test.path, test.headers...)
		if code != test.private || !strings.Contains(answer, test.says) {
			t.Errorf("%s %v for operators: %d %s, want %d and %q", test.path, test.headers, code, answer, test.private, test.says)
		}
	}
	info, err := os.Stat(s.socket)
	must.Succeed(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has mode %v, want that of its owner alone", info.Mode())
	}
}

// Each host serves its app, and no other host serves one. The operators' address serves all.
func TestOnlyNamedHosts(t *testing.T) {
	s := serving(t, stack.Options{Hosts: auth.Hosts{"shop.example.com": "shop"}})
	const profile = "/1/strategies/personalization"
	for host, want := range map[string]int{"shop.example.com": 200, "SHOP.example.com:8080": 200, "other.example.com": 421,
		"localhost": 421, "127.0.0.1": 421} {
		code, answer := get(t, http.DefaultClient, s.URL+profile, append(credentials("shop", ownKey), "Host", host)...)
		if code != want || want == 421 && !strings.Contains(answer, "does not answer for the host") {
			t.Errorf("at %s: %d %s, want %d", host, code, answer, want)
		}
	}
	if code, answer := get(t, http.DefaultClient, s.URL+"/healthz", "Host", "10.0.0.7"); code != 200 {
		t.Errorf("the health by address: %d %s", code, answer)
	}
	if code, answer := get(t, s.operators(), "http://localhost"+profile, credentials("shop", ownKey)...); code != 200 {
		t.Errorf("for operators: %d %s", code, answer)
	}
}

// Clients behind a proxy on the same machine have limits of their own.
func TestClientsBehindAProxy(t *testing.T) {
	for forwarded, want := range map[int][]int{0: {200, 429, 429, 429, 429, 429}, 1: {200, 200, 200, 200, 200, 200}} {
		s := serving(t, stack.Options{Forwarded: forwarded})
		limited := config.Key{Hash: auth.Hash("limited"), ACL: auth.All, AddressRate: 1}
		must.Succeed(t, s.Backends.Config.PutKey(t.Context(), "shop", limited))
		var got []int
		for client := range 6 {
			code, _ := get(t, http.DefaultClient, s.URL+"/1/strategies/personalization",
				append(credentials("shop", "limited"), "X-Forwarded-For", fmt.Sprintf("6.6.6.6, 192.0.2.%d", client))...)
			got = append(got, code)
		}
		if !slices.Equal(got, want) {
			t.Errorf("with %d proxies six clients get %v, want %v", forwarded, got, want)
		}
	}
}

// With the folder a session of the console goes on in the next process, and the operator keeps their token.
func TestSecretsSurviveARestart(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	address, err := ports.Free() // it is in the name of the cookie
	must.Succeed(t, err)
	s := serving(t, stack.Options{Data: data, Addr: address})
	answer, err := http.Get(s.ConsoleLink(stack.App{ID: "shop", Key: ownKey}))
	must.Succeed(t, err)
	defer answer.Body.Close()
	if len(answer.Cookies()) != 1 {
		t.Fatalf("the link: %d %v", answer.StatusCode, answer.Cookies())
	}
	cookie, token := answer.Cookies()[0], s.Operator
	must.Succeed(t, s.Close())
	s = serving(t, stack.Options{Data: data, Addr: address})
	if s.Operator != token {
		t.Errorf("the token was %q and is %q", token, s.Operator)
	}
	for value, want := range map[string]int{cookie.Name + "=" + cookie.Value: 200, "": 401} {
		if code, page := get(t, http.DefaultClient, s.URL+"/", "Cookie", value); code != want {
			t.Errorf("the first page with the cookie %q: %d %.300s, want %d", value, code, page, want)
		}
	}
	for _, file := range []string{stack.OperatorFile, "console.key"} {
		info, err := os.Stat(filepath.Join(data, file))
		must.Succeed(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", file, info.Mode())
		}
	}
	must.Succeed(t, s.Close())
	for file, says := range map[string]string{stack.OperatorFile: "16 to 200 letters", "console.key": "has 5 bytes, want 32: remove it"} {
		path := filepath.Join(data, file)
		right, err := os.ReadFile(path)
		must.Succeed(t, err)
		must.Succeed(t, os.WriteFile(path, []byte("wrong"), 0o600))
		if _, err := stack.Start(t.Context(), stack.Options{Data: data}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("with a wrong %s: %v, want %q", file, err, says)
		}
		must.Succeed(t, os.WriteFile(path, right, 0o600))
	}
}

// The public address has TLS, the operators' one does not. A client that speaks plain HTTP is refused.
func TestPublicAddressWithTLS(t *testing.T) {
	known := httptest.NewUnstartedServer(nil) // for its certificate and a client that trusts it
	known.EnableHTTP2 = true
	known.StartTLS()
	defer known.Close()
	s := serving(t, stack.Options{TLS: &tls.Config{Certificates: known.TLS.Certificates}})
	answer, err := known.Client().Get(s.URL + "/healthz")
	must.Succeed(t, err)
	defer answer.Body.Close()
	if !strings.HasPrefix(s.URL, "https://") || answer.StatusCode != 200 || answer.ProtoMajor != 2 {
		t.Errorf("%s: %d by %s, want 200 by HTTP/2", s.URL, answer.StatusCode, answer.Proto)
	}
	if code, _ := get(t, known.Client(), s.URL+"/1/strategies/personalization", credentials("shop", ownKey)...); code != 200 {
		t.Errorf("with a key: %d, want 200", code)
	}
	if code, _ := get(t, http.DefaultClient, strings.Replace(s.URL, "https:", "http:", 1)+"/healthz"); code != 400 {
		t.Errorf("plain HTTP: %d, want 400", code)
	}
	if code, _ := get(t, s.operators(), "http://localhost/readyz"); code != 200 {
		t.Errorf("the operators' address: %d, want 200", code)
	}
}
