package stack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/web/auth"
)

var guarded = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Access-Control-Allow-Origin", "*") })

func TestGuardOnLoopback(t *testing.T) {
	customers := auth.Hosts{"api.acme.example": "acme"}
	for _, at := range []net.Addr{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, &net.TCPAddr{IP: net.IPv6loopback, Port: 8080}} {
		h := guardPublic(Options{}.answered(at), customers, []string{"http://shop.test:3000"}, guarded)
		for _, test := range []struct {
			name, host string
			origins    []string
			want       int
		}{
			{"a program", "localhost:8080", nil, 200},
			{"a program by address", "127.0.0.1:8080", nil, 200},
			{"a program by IPv6", "[::1]:8080", nil, 200},
			{"a forwarded port", "localhost:9999", nil, 200},
			{"a customer's host", "API.acme.example.:8080", nil, 200},
			{"a page of this machine", "localhost:8080", []string{"http://localhost:3000"}, 200},
			{"a page of this machine by TLS", "127.0.0.1:8080", []string{"https://127.0.0.1"}, 200},
			{"a page of this machine by IPv6", "[::1]:8080", []string{"http://[::1]:3000"}, 200},
			{"a page of an origin that is named", "localhost:8080", []string{"http://shop.test:3000"}, 200},

			{"no host", "", nil, 421},
			{"another host", "evil.example", nil, 421},
			{"a name that resolves to loopback, with its page", "evil.example:8080", []string{"http://evil.example:8080"}, 421},
			{"the address of everything", "0.0.0.0:8080", nil, 421},
			{"the host of an origin that is named", "shop.test:3000", nil, 421},
			{"another port of an origin that is named", "localhost:8080", []string{"http://shop.test"}, 403},
			{"another scheme of an origin that is named", "localhost:8080", []string{"https://shop.test:3000"}, 403},
			{"an origin that is named, and another one", "localhost:8080", []string{"http://shop.test:3000", "https://evil.example"}, 403},
			{"another page", "localhost:8080", []string{"https://evil.example"}, 403},
			{"another page by its address", "localhost:8080", []string{"http://192.168.0.7"}, 403},
			{"a sandboxed frame or a file", "localhost:8080", []string{"null"}, 403},
			{"an empty origin", "localhost:8080", []string{""}, 403},
			{"a name with a local part", "localhost:8080", []string{"https://localhost.evil.example"}, 403},
			{"a user named localhost", "localhost:8080", []string{"https://localhost@evil.example"}, 403},
			{"an extension", "localhost:8080", []string{"chrome-extension://localhost"}, 403},
			{"two origins", "localhost:8080", []string{"http://localhost:3000", "https://evil.example"}, 403},
		} {
			for _, target := range []string{"GET /1/strategies/personalization", "POST /1/strategies/personalization", "OPTIONS /1/strategies/personalization", "GET /", "GET /console/users", "GET /console/open?code=x", "POST /console/login"} {
				method, path, _ := strings.Cut(target, " ")
				r := httptest.NewRequest(method, path, nil)
				r.Host, r.Header["Origin"] = test.host, test.origins
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != test.want || test.want != 200 && (!json.Valid(w.Body.Bytes()) || w.Header().Get("Access-Control-Allow-Origin") != "") {
					t.Errorf("%s, %s: %d %s %v, want %d", test.name, target, w.Code, w.Body, w.Header(), test.want)
				}
			}
		}
	}
}

// Where other machines reach the engine, any host and origin pass.
func TestGuardBeyondLoopback(t *testing.T) {
	for _, at := range []net.Addr{&net.TCPAddr{IP: net.IPv6unspecified}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, &net.UnixAddr{Name: "/s"}} {
		r := httptest.NewRequest(http.MethodPost, "/1/events", nil)
		r.Host = "shop.example"
		r.Header.Set("Origin", "https://shop.example")
		w := httptest.NewRecorder()
		guardPublic(Options{}.answered(at), nil, nil, guarded).ServeHTTP(w, r)
		if w.Code != 200 {
			t.Errorf("%v: %d %s", at, w.Code, w.Body)
		}
	}
}

// Where other machines reach the engine, no entrance takes the key that everybody knows, although the
// engine has it from an earlier one on loopback; and its own keys open all of them.
func TestDemoKeyBeyondLoopback(t *testing.T) {
	const own = "a-key-of-ones-own"
	for _, test := range []struct {
		addr    string
		refused bool
	}{{"127.0.0.1:0", false}, {"0.0.0.0:0", true}} {
		s, err := Start(t.Context(), Options{Addr: test.addr, Apps: []App{{ID: "demo", Key: DemoKey}, {ID: "shop", Key: own}}})
		must.Succeed(t, err)
		must.CloseAtEnd(t, s)
		host, port, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
		if host != "127.0.0.1" {
			t.Errorf("%s: the engine prints %s, which a browser cannot open", test.addr, s.URL)
		}
		ask := func(method, path string, header http.Header, form url.Values) (int, string) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:"+port+path, strings.NewReader(form.Encode()))
			must.Succeed(t, err)
			if r.Header = header; form != nil {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			res, err := http.DefaultClient.Do(r)
			must.Succeed(t, err)
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			must.Succeed(t, err)
			return res.StatusCode, string(body)
		}
		for app, key := range map[string]string{"demo": DemoKey, "shop": own} {
			refused := test.refused && key == DemoKey
			mac := hmac.New(sha256.New, []byte(key))
			mac.Write([]byte("userToken=ann"))
			secured := base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString(mac.Sum(nil)) + "userToken=ann"))
			basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(app+":"+key+":"))
			const profile = "/1/profiles/personalization/ann"
			for name, entrance := range map[string]struct {
				method, path string
				header       http.Header
				form         url.Values
			}{
				"headers":      {"GET", "/1/app", http.Header{"X-Algolia-Application-Id": {app}, "X-Algolia-Api-Key": {key}}, nil},
				"query":        {"GET", "/1/app?x-algolia-api-key=" + key + "&X-Algolia-Application-Id=" + app, http.Header{}, nil},
				"write key":    {"GET", "/1/app", http.Header{"Authorization": {basic}}, nil},
				"secured key":  {"GET", profile, http.Header{"X-Algolia-Application-Id": {app}, "X-Algolia-Api-Key": {secured}}, nil},
				"login":        {"POST", "/console/login", http.Header{}, url.Values{"app": {app}, "key": {key}}},
				"console link": {"GET", strings.TrimPrefix(s.ConsoleLink(App{ID: app, Key: key}), s.URL), http.Header{}, nil},
			} {
				status, body := ask(entrance.method, entrance.path, entrance.header, entrance.form)
				if (status == http.StatusUnauthorized) != refused || !refused && status >= 400 && (entrance.path != profile || status != http.StatusNotFound) {
					t.Errorf("%s, %s of %s: %d, want that it is refused: %t; %s", test.addr, name, app, status, refused, body)
				}
				if refused && name != "console link" && !strings.Contains(body, "The key demokey is public, so only an engine on loopback accepts it") {
					t.Errorf("%s, %s of %s does not say why: %s", test.addr, name, app, body)
				}
			}
			// A session that began where the key was accepted.
			for _, a := range []*auth.Authenticator{s.Backends.Auth, s.Backends.AuthSecured} {
				if _, err := a.Resume(t.Context(), auth.Session{App: app, Key: auth.Hash(key), Permissions: auth.All}); errors.Is(err, auth.ErrCredentials) != refused || !refused && err != nil {
					t.Errorf("%s, a session of %s: %v, want that it has ended: %t", test.addr, app, err, refused)
				}
			}
		}
	}
}
