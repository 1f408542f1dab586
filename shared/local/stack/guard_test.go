package stack

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/auth"
)

var guarded = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Access-Control-Allow-Origin", "*") })

func TestGuardOnLoopback(t *testing.T) {
	customers := auth.Hosts{"api.acme.example": "acme"}
	for _, at := range []net.Addr{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, &net.TCPAddr{IP: net.IPv6loopback, Port: 8080}} {
		h := guardPublic(at, customers, guarded)
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

			{"no host", "", nil, 421},
			{"another host", "evil.example", nil, 421},
			{"a name that resolves to loopback, with its page", "evil.example:8080", []string{"http://evil.example:8080"}, 421},
			{"the address of everything", "0.0.0.0:8080", nil, 421},
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

// Where other machines reach the engine, any host and origin pass, and a key that
// everybody knows does not.
func TestGuardBeyondLoopback(t *testing.T) {
	for _, at := range []net.Addr{&net.TCPAddr{IP: net.IPv6unspecified}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, &net.UnixAddr{Name: "/s"}} {
		h := guardPublic(at, nil, guarded)
		for _, test := range []struct {
			name, url, key string
			want           int
		}{
			{"a key of one's own", "/1/events", "s3cret", 200},
			{"no key", "/docs", "", 200},
			{"the key of the demo", "/1/events", "demokey", 401},
			{"the key of the demo in the query", "/1/events?X-Algolia-API-Key=demokey&x-algolia-application-id=demo", "", 401},
		} {
			r := httptest.NewRequest(http.MethodPost, test.url, nil)
			r.Host = "shop.example"
			r.Header.Set("Origin", "https://shop.example")
			r.Header.Set("X-Algolia-API-Key", test.key)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != test.want {
				t.Errorf("%v, %s: %d %s, want %d", at, test.name, w.Code, w.Body, test.want)
			}
		}
	}
}
