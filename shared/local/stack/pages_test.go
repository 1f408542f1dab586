package stack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// changing are the texts of answers that differ from one call to the next: ids and
// times.
var changing = regexp.MustCompile(`"[0-9a-f]{32}"|"\d{4}-\d\d-\d\dT[^"]*"`)

// TestPagesLearnNothing walks all public routes with a key as web pages have it, for
// a user who likes a secret color and for one who does not exist. The answers must
// be the same, whether the app permits orders or not; with the permission, the
// order of the objects alone may differ.
func TestPagesLearnNothing(t *testing.T) {
	s := start(t, stack.Options{})
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), "demo", config.Key{Hash: auth.Hash("page"), ACL: []string{auth.Search}}))
	f := config.Feed{Name: "f", Index: "i", Date: "at", Definition: `{"index":"i","date":"at","seen":"keep","format":"records"}`}
	if _, _, err := s.Backends.CachedConfig.SetFeed(t.Context(), "demo", f, time.Now()); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Add(-time.Minute).Format(time.RFC3339)
	secret := strings.NewReplacer(`"u"`, `"ann"`, "Red", "Secret").Replace(seenIn)
	for _, r := range [][3]string{
		{"POST", "/1/strategies/personalization", seenStrategy},
		{"POST", "/1/indexes/i/batch", `{"requests":[{"action":"addObject","body":{"objectID":"1","color":"Plain","at":"` + now +
			`"}},{"action":"addObject","body":{"objectID":"2","color":"Secret","at":"` + now + `"}}]}`},
		{"POST", "/1/events", `{"events":[` + secret + `]}`},
	} {
		wantStatusAs(t, s, http.StatusOK, "demo", "demokey", r[0], r[1], r[2])
	}
	must.Succeed(t, s.Idle(t.Context()))
	if _, answer := callAs(t, s, "demo", "demokey", "GET", "/1/profiles/ann", ""); !strings.Contains(answer, "Secret") {
		t.Fatalf("ann has no secret: %s", answer)
	}
	// ask asks as a page about a user of three letters.
	ask := func(user, method, path, body string) (int, string) {
		token := regexp.MustCompile(`(/|userToken=)u(/|\?|$)`)
		code, answer := callAs(t, s, "demo", "page", method, token.ReplaceAllString(path, "${1}"+user+"$2"), strings.ReplaceAll(body, `"u"`, `"`+user+`"`))
		return code, changing.ReplaceAllString(strings.ReplaceAll(answer, user, "USER"), `"-"`)
	}
	same := func(method, path, body string) {
		t.Helper()
		code, answer := ask("ann", method, path, body)
		unknown, other := ask("bob", method, path, body)
		if code != unknown || answer != other || strings.Contains(answer, "Secret") && !strings.HasPrefix(path, "/1/feeds") { // whose records are no secret
			t.Errorf("%s %s %s: %d %s\nof an unknown user: %d %s", method, path, body, code, answer, unknown, other)
		}
		if code < 300 && !strings.HasPrefix(path, "/1/rank") && !strings.HasPrefix(path, "/1/recommend") && !strings.HasPrefix(path, "/1/feeds") && path != "/1/events" && !strings.Contains(path, "/v1/") {
			t.Errorf("%s %s: %d, want a refusal", method, path, code)
		}
	}
	const rank = `{"userToken":"u","index":"i","objectIDs":["1","2"]`
	for _, on := range []bool{false, true} {
		must.Succeed(t, s.Backends.CachedConfig.SetBrowserRanking(t.Context(), "demo", on))
		for _, route := range routes {
			if !on || !strings.Contains(route.path, "/suggested") && !strings.HasPrefix(route.path, "/1/recommend") { // whose order differs
				same(route.method, route.path, route.body)
			}
		}
		for option, value := range map[string]string{"explain": "true", "impact": "1", "seen": `"exclude"`, "strategy": "1", "halfLife": "30"} {
			if same("POST", "/1/rank", rank+`,"`+option+`":`+value+`}`); on {
				if code, answer := ask("ann", "POST", "/1/rank", rank+`,"`+option+`":`+value+`}`); code != http.StatusForbidden || !strings.Contains(answer, option+" is not allowed") {
					t.Errorf("%s: %d %s, want 403 that names it", option, code, answer)
				}
			}
		}
	}
	for user, want := range map[string]string{"ann": `{"id":"-","items":[{"objectID":"2"},{"objectID":"1"}]}`, "bob": `{"id":"-","items":[{"objectID":"1"},{"objectID":"2"}]}`} {
		if code, answer := ask(user, "POST", "/1/rank", rank+`}`); code != http.StatusOK || answer != want {
			t.Errorf("the order for %s: %d %s, want %s", user, code, answer, want)
		}
	}
	// Suggested pages have the same records, in another order, and say nothing else.
	var pages [2]string
	for i, user := range []string{"ann", "bob"} {
		code, answer := ask(user, "GET", "/1/feeds/f/suggested?userToken=u", "")
		var page map[string]any
		if err := json.Unmarshal([]byte(answer), &page); err != nil || code != http.StatusOK || page["fallback"] != nil || len(answer) < 50 {
			t.Fatalf("a suggested page for %s: %d %s", user, code, answer)
		}
		items, _ := page["items"].([]any)
		slices.SortFunc(items, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		delete(page, "cursor")
		pages[i] = fmt.Sprint(page)
	}
	if pages[0] != pages[1] || !strings.Contains(pages[0], "2") {
		t.Errorf("suggested pages of two users say\n%s\n%s", pages[0], pages[1])
	}
	same("POST", "/1/events", `{"events":[`+seenIn+`]}`) // both are known from now on
}
