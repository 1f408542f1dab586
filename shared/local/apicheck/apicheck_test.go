package apicheck_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/apicheck"
)

const (
	okMessage = `{"status":200,"message":"OK"}`
	refusal   = `{"status":422,"message":"no"}`
	oneEvent  = `{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["a:b"]}]}`
	oneLine   = `{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["a:b"]}`
	profile   = `{"userToken":"u","lastEventAt":"2026-11-20T12:00:00.000Z","asOf":"2026-11-20T12:00:00.000Z","strategyVersion":1,"source":"stored","total":0,"affinities":[]}`
)

func TestCheck(t *testing.T) {
	c, err := apicheck.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, method, path, request string
		status                      int
		answer                      string
		fault                       string // part of the error; "" for none
	}{
		{"as described", "POST", "/1/events", oneEvent, 200, okMessage, ""},
		{"null in place of an optional field", "POST", "/1/events", strings.Replace(oneEvent, `"index"`, `"queryID":null,"index"`, 1), 200, okMessage, ""},
		{"a refused request", "POST", "/1/events", `{}`, 422, refusal, ""},
		{"an escaped slash", "GET", "/1/profiles/a%2Fb", "", 200, profile, ""},
		{"unknown path that is refused", "GET", "/1/other", "", 404, refusal, ""},
		{"preflight", "OPTIONS", "/1/events", "", 204, "", ""},
		{"import with a refused line", "POST", "/1/events/import", oneLine + "\nx\n", 200,
			`{"accepted":1,"received":1,"deleted":0,"optedOut":0,"outsideRetention":0,"refused":[{"line":2,"message":"no"}]}`, ""},

		{"accepted without events", "POST", "/1/events", `{"events":[]}`, 200, okMessage, "description forbids"},
		{"accepted without a body", "POST", "/1/events", "", 200, okMessage, "without a body"},
		{"accepted with another type", "POST", "/1/events", strings.Replace(oneEvent, `"u"`, `12`, 1), 200, okMessage, "description forbids"},
		{"accepted with an unknown key", "POST", "/1/recomputes", `{"all":true}`, 200, okMessage, "description forbids"},
		{"accepted with a bad parameter", "GET", "/1/profiles/u?limit=0", "", 200, profile, "parameter limit"},
		{"import that accepts a bad line", "POST", "/1/events/import", `{}`, 200,
			`{"accepted":1,"received":1,"deleted":0,"optedOut":0,"outsideRetention":0,"refused":[]}`, "line 1"},
		{"another field", "GET", "/1/profiles/u", "", 200, strings.Replace(profile, `"total"`, `"more":1,"total"`, 1), "not as described"},
		{"a field less", "GET", "/1/profiles/u", "", 200, strings.Replace(profile, `"total":0,`, ``, 1), "not as described"},
		{"another source", "GET", "/1/profiles/u", "", 200, strings.Replace(profile, `stored`, `guessed`, 1), "not as described"},
		{"another status", "POST", "/1/events", oneEvent, 202, okMessage, "not described"},
		{"unknown path that is answered", "GET", "/1/other", "", 200, okMessage, "no such route"},
		{"unknown method that is answered", "PUT", "/1/events", oneEvent, 200, okMessage, "no such route"},
		{"a body with 204", "DELETE", "/1/usertokens/u", "", 204, okMessage, "with a body"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, test.path, nil)
			header := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
			if test.answer == "" {
				header.Del("Content-Type")
			}
			err := c.Check(r, []byte(test.request), test.status, header, []byte(test.answer))
			if (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
				t.Errorf("got %v, want an error with %q", err, test.fault)
			}
		})
	}
	all, answered := c.Operations()
	if len(all) < 40 || len(answered) == 0 || len(answered) >= len(all) {
		t.Errorf("%d operations, %d answered", len(all), len(answered))
	}
}
