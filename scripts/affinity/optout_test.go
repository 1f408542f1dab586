package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

func TestOptOut(t *testing.T) {
	const in, out = `{"userToken":"ann","optedOut":false,"eventTypes":[]}`,
		`{"userToken":"ann","optedOut":true,"eventTypes":["view","click","conversion"],"deletedUntil":"2026-11-20T12:00:00.000Z"}`
	var sent []string
	answer := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, body))
		if answer == "" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"status":403,"message":"Method not allowed with this API key"}`)
			return
		}
		fmt.Fprint(w, answer)
	}))
	defer s.Close()
	for _, c := range []struct {
		args   []string
		answer string
		code   int
		want   string
		sent   string
	}{
		{[]string{"set", "ann"}, out, cli.ExitOK, "ann has opted out of all events; nothing received up to 2026-11-20T12:00:00.000Z counts\n", "PUT /1/optouts/ann {}"},
		{[]string{"set", "ann", "--type", "view", "--type", "click"}, `{"userToken":"ann","optedOut":true,"eventTypes":["view","click"]}`, cli.ExitOK,
			"ann has opted out of events of the types view, click\n", `PUT /1/optouts/ann {"eventTypes":["view","click"]}`},
		{[]string{"clear", "ann"}, in, cli.ExitOK, "ann has not opted out\n", "DELETE /1/optouts/ann "},
		{[]string{"show", "ann", "--json"}, out, cli.ExitOK, out, "GET /1/optouts/ann "},
		{[]string{"show", "ann"}, "", cli.ExitFailed, "Method not allowed with this API key", "GET /1/optouts/ann "},
		{[]string{"set", "ann", "--type", "purchase"}, "", cli.ExitUsage, `--type "purchase": must be view, click or conversion`, ""},
		{[]string{"set", ""}, "", cli.ExitUsage, "USER must not be empty", ""},
		{[]string{"set"}, "", cli.ExitUsage, "USER", ""},
		{nil, "", cli.ExitUsage, "set", ""},
	} {
		sent, answer = nil, c.answer
		affinity(t, "", append([]string{"optout", "--url", s.URL}, c.args...)...).wants(t, c.code, c.want)
		if c.sent == "" && len(sent) > 0 || c.sent != "" && !slices.Equal(sent, []string{c.sent}) {
			t.Errorf("%v sends %q, want %q", c.args, sent, c.sent)
		}
	}
}
