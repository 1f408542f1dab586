package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

var quiet = slog.New(slog.DiscardHandler)

func TestRouterAnswersEveryMistakeInJSON(t *testing.T) {
	rt := httpapi.NewRouter(quiet)
	rt.Handle("GET /1/things/{userToken}", func(w http.ResponseWriter, r *http.Request) error {
		token := r.PathValue("userToken")
		if token == "a,b" {
			return httpapi.Errorf(422, "no token")
		}
		return httpapi.WriteJSON(w, http.StatusOK, token)
	})
	rt.Handle("GET /crash", func(http.ResponseWriter, *http.Request) error {
		panic("a bug")
	})
	rt.Handle("GET /secret", func(http.ResponseWriter, *http.Request) error { return errors.New("password is 1234") })

	for _, test := range []struct {
		name, method, path string
		status             int
		body               string
	}{
		{"OK", "GET", "/1/things/abc", 200, `"abc"`},
		{"an escaped slash stays in its segment", "GET", "/1/things/a%2Fb%2Bc%3D", 200, `"a/b+c="`},
		{"a plus is a plus", "GET", "/1/things/a+b", 200, `"a+b"`},
		{"an error of the handler", "GET", "/1/things/a%2Cb", 422, `{"status":422,"message":"no token"}`},
		{"unknown path", "GET", "/2/things", 404, `{"status":404,"message":"Path not supported`},
		{"wrong method", "POST", "/1/things/abc", 405, `{"status":405,"message":"Method Not Allowed"}`},
		{"crash", "GET", "/crash", 500, `{"status":500,"message":"Internal error"}`},
		{"an inner error is not shown", "GET", "/secret", 500, `{"status":500,"message":"Internal error"}`},
		{"preflight", "OPTIONS", "/1/things/abc", 204, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			rt.ServeHTTP(w, httptest.NewRequest(test.method, test.path, nil))
			if w.Code != test.status || !strings.HasPrefix(w.Body.String(), test.body) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, test.status, test.body)
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "*" {
				t.Error("not readable from a web page")
			}
			if test.status == 405 && w.Header().Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
}

// A page may send its credentials, and any header, to the routes of AllowCredentials alone. Of the
// others it may only read the answers.
func TestPagesWithCredentials(t *testing.T) {
	rt := httpapi.NewRouter(quiet)
	answer := func(w http.ResponseWriter, r *http.Request) error {
		return httpapi.WriteJSON(w, http.StatusOK, r.URL.Path)
	}
	for _, pattern := range []string{"POST /in", "POST /v1/{call}", "GET /in"} {
		rt.Handle(pattern, answer)
	}
	rt.Handle("POST /v1/crash", func(http.ResponseWriter, *http.Request) error { panic("a bug") })
	rt.AllowCredentials("POST /in", "POST /v1/{call}", "POST /v1/crash")
	for _, test := range []struct {
		method, path, asked string // asked is the method of the request that a preflight is for
		origins             []string
		credentials         bool
	}{
		{"POST", "/in", "", []string{"https://shop.example"}, true},
		{"POST", "/in", "", []string{"null"}, true},
		{"POST", "/v1/track", "", []string{"https://shop.example"}, true},
		{"POST", "/v1/crash", "", []string{"https://shop.example"}, true},
		{"OPTIONS", "/in", "POST", []string{"https://shop.example"}, true},
		{"OPTIONS", "/v1/track", "POST", []string{"https://shop.example"}, true},

		{"POST", "/in", "", nil, false},
		{"POST", "/in", "", []string{"https://a.example", "https://b.example"}, false},
		{"OPTIONS", "/in", "POST", nil, false},
		{"GET", "/in", "", []string{"https://shop.example"}, false},
		{"DELETE", "/in", "", []string{"https://shop.example"}, false},
		{"POST", "/elsewhere", "", []string{"https://shop.example"}, false},
		{"OPTIONS", "/in", "GET", []string{"https://shop.example"}, false},
		{"OPTIONS", "/in", "DELETE", []string{"https://shop.example"}, false},
		{"OPTIONS", "/in", "", []string{"https://shop.example"}, false},
		{"OPTIONS", "/elsewhere", "POST", []string{"https://shop.example"}, false},
	} {
		r := httptest.NewRequest(test.method, test.path, nil)
		r.Header["Origin"] = test.origins
		if test.asked != "" {
			r.Header.Set("Access-Control-Request-Method", test.asked)
			r.Header.Set("Access-Control-Request-Headers", "anonymousid,x-of-the-page")
		}
		w := httptest.NewRecorder()
		rt.ServeHTTP(w, r)
		h := w.Header()
		origin, credentials := "*", ""
		if test.credentials {
			origin, credentials = test.origins[0], "true"
		}
		if h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Allow-Credentials") != credentials || test.credentials && h.Get("Vary") != "Origin" {
			t.Errorf("%+v: %d %v", test, w.Code, h)
		}
		if any := h.Get("Access-Control-Allow-Headers") == "anonymousid,x-of-the-page"; any != (test.credentials && test.method == "OPTIONS") && len(test.origins) > 0 {
			t.Errorf("%+v: the page may send %q", test, h.Get("Access-Control-Allow-Headers"))
		}
	}
}

func TestStatusOfErrors(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("doing: %w", err) }
	for _, test := range []struct {
		name   string
		err    error
		status int
	}{
		{"ours", httpapi.Errorf(409, "no"), 409},
		{"malformed", fault.New(fault.Malformed, "no"), 400},
		{"invalid", fault.New(fault.Invalid, "no"), 422},
		{"too large", fault.New(fault.TooLarge, "no"), 413},
		{"refused event", &event.Refusal{Kind: fault.Invalid, Message: "no"}, 422},
		{"credentials", auth.ErrCredentials, 401},
		{"forbidden", auth.ErrForbidden, 403},
		{"host", auth.ErrHost, 403},
		{"backend slow", context.DeadlineExceeded, 503},
		{"unknown", errors.New("x"), 500},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, _ := httpapi.Status(wrap(test.err)); got != test.status {
				t.Errorf("status %d, want %d", got, test.status)
			}
		})
	}
}

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.String()
}

func TestReadBody(t *testing.T) {
	const limit = 1000
	whole := strings.Repeat("a", limit)
	for _, test := range []struct {
		name, encoding, body string
		status               int // 0: read
	}{
		{"plain", "", "hello", 0},
		{"empty", "", "", 0},
		{"of just the limit", "", whole, 0},
		{"over the limit", "", whole + "a", 413},
		{"gzip", "gzip", gzipped("hello"), 0},
		{"gzip of just the limit", "gzip", gzipped(whole), 0},
		{"gzip that unpacks to more", "gzip", gzipped(strings.Repeat("a", 1_000_000)), 413},
		{"not gzip", "gzip", "hello", 400},
		{"gzip cut short", "gzip", gzipped(whole)[:15], 400},
		{"unknown encoding", "br", "hello", 415},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprint(test.name, " chunked=", chunked), func(t *testing.T) {
				r := httptest.NewRequest("POST", "/", strings.NewReader(test.body))
				r.Header.Set("Content-Encoding", test.encoding)
				if chunked {
					r.ContentLength = -1
				}
				body, err := httpapi.ReadBody(httptest.NewRecorder(), r, limit)
				if test.status == 0 {
					if err != nil {
						t.Fatal(err)
					}
					if test.encoding == "" && string(body) != test.body {
						t.Errorf("read %q", body)
					}
					return
				}
				if got, _ := httpapi.Status(err); err == nil || got != test.status {
					t.Errorf("%d (%v), want %d", got, err, test.status)
				}
			})
		}
	}
}
