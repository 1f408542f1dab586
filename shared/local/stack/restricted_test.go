package stack_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// seenIn is an event of index i.
const seenIn = `{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["color:Red"]}`

// seenCall is a call of an SDK of Segment, by the same user and in the same index.
const seenCall = `{"type":"track","event":"Product Viewed","userId":"u","properties":{"product_id":"1","search_index":"i"}}`

// aboutAnIndex are the requests that are about index i. Requests that read
// profiles are about none.
var aboutAnIndex = []struct{ method, path, body string }{
	{"POST", "/1/events", `{"events":[` + seenIn + `]}`},
	{"POST", "/v1/batch", `{"batch":[` + seenCall + `]}`},
	{"POST", "/v1/b", `{"batch":[` + seenCall + `]}`},
	{"POST", "/beacon/v1/batch", `{"batch":[` + seenCall + `]}`},
	{"POST", "/v1/track", seenCall},
	{"POST", "/v1/t", seenCall},
	{"POST", "/1/rank", `{"userToken":"u","index":"i","objectIDs":["1"]}`},
	{"POST", "/1/recommend", `{"model":"for-you","userToken":"u","index":"i"}`},
	{"POST", "/1/recommend/1/indexes/*/recommendations", `{"requests":[{"indexName":"i","model":"recommended-for-you","threshold":0,"queryParameters":{"userToken":"u"}}]}`},
	{"GET", "/1/feeds/f/suggested?userToken=u", ""},
	{"GET", "/1/feeds/f/latest?userToken=u", ""},
	{"PUT", "/1/feeds/f", `{"index":"i","date":"d"}`},
	{"GET", "/1/feeds/f", ""},
	{"POST", "/1/crowd", `{"index":"i"}`},
	{"POST", "/1/backtests", `{"index":"i","strategies":[` + seenStrategy + `]}`},
	{"POST", "/1/indexes/i/batch", addOne},
	{"POST", "/1/indexes/i/batch", removeOne},
	{"GET", "/1/indexes/i", ""},
	{"GET", "/1/indexes/i/1", ""},
	{"DELETE", "/1/indexes/i/1", ""},
	{"GET", "/1/indexes/i/settings", ""},
	{"PUT", "/1/indexes/i/settings", `{"attributesForFaceting":[]}`},
	{"GET", "/1/indexes/i/task/1", ""},
}

// A key that is for some indexes works in these, reads profiles, and opens no
// route that is about the whole app.
func TestKeysOfIndexes(t *testing.T) {
	s := start(t, stack.Options{})
	f := config.Feed{Name: "f", Index: "i", Date: "publishedAt", Definition: `{"index":"i","date":"publishedAt","seen":"keep","format":"records"}`}
	if _, _, err := s.Backends.Config.SetFeed(t.Context(), "demo", f, time.Now()); err != nil {
		t.Fatal(err)
	}
	for name, index := range map[string]string{"this": "i*", "other": "other"} {
		key := config.Key{Hash: auth.Hash(name), ACL: auth.All, Indexes: []string{index}}
		if err := s.Backends.Config.PutKey(t.Context(), "demo", key); err != nil {
			t.Fatal(err)
		}
	}
	check := func(key, method, path, body string, want error) {
		t.Helper()
		code, answer := callAs(t, s, "demo", key, method, path, body)
		if refused := want != nil && strings.Contains(answer, want.Error()); (code == http.StatusForbidden) != (want != nil) || refused != (want != nil) {
			t.Errorf("%s %s %s with the key %s: %d %s, want %v", method, path, body, key, code, answer, want)
		}
	}
	named := map[string]bool{}
	for _, route := range aboutAnIndex {
		named[route.method+" "+route.path] = true
		check("this", route.method, route.path, route.body, nil)
		check("other", route.method, route.path, route.body, auth.ErrIndex)
	}
	// One event of another index refuses the request.
	check("this", "POST", "/1/events", `{"events":[`+seenIn+`,`+strings.Replace(seenIn, `"i"`, `"other"`, 1)+`]}`, auth.ErrIndex)
	for _, route := range routes {
		ofUser := strings.HasPrefix(route.path, "/1/profiles/") || strings.HasPrefix(route.path, "/1/explain/") || strings.HasPrefix(route.path, "/1/boosts")
		readsProfiles := ofUser && route.method == "GET" || route.path == "/1/profiles/batch"
		switch {
		case named[route.method+" "+route.path], route.path == "/1/events/import", route.method == "DELETE" && route.path == "/1/feeds/f":
		case readsProfiles:
			check("this", route.method, route.path, route.body, nil)
			check("other", route.method, route.path, route.body, nil)
		default:
			check("this", route.method, route.path, route.body, auth.ErrAnyIndex)
		}
	}
	check("this", "POST", "/1/crowd", "", auth.ErrAnyIndex)
	// An import refuses lines, not the request.
	code, answer := callAs(t, s, "demo", "this", "POST", "/1/events/import", seenIn+"\n"+strings.Replace(seenIn, `"i"`, `"other"`, 1))
	if code != http.StatusOK || !strings.Contains(answer, `"accepted":1`) || !strings.Contains(answer, `{"line":2,"message":"`+auth.ErrIndex.Error()) {
		t.Errorf("import: %d %s", code, answer)
	}
}
