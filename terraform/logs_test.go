package terraform_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/web/openapi"
)

// TestURLsWithTokensAreNotLogged compares the exclusion of request logs with the
// routes of the API: no URL with a user token or a key is stored, and all others are.
func TestURLsWithTokensAreNotLogged(t *testing.T) {
	text, err := os.ReadFile("logs.tf")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`requestUrl=~\\"(.+)\\""`).FindSubmatch(text)
	if m == nil {
		t.Fatal("logs.tf has its filter in another form")
	}
	excluded := regexp.MustCompile(string(m[1]))
	var document struct{ Paths map[string]any }
	if err := json.Unmarshal(openapi.Document(), &document); err != nil {
		t.Fatal(err)
	}
	tokens := 0
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		token := strings.Contains(path, "{userToken}") // of /1/usertokens the query alone may hold one
		if url := "https://api.example.com" + strings.ReplaceAll(path, "{userToken}", "user-1"); excluded.MatchString(url) != token && path != "/1/profiles/batch" && path != "/1/identities/link" && path != "/1/identities/refused" && !strings.HasPrefix(path, "/1/identities/preview") && path != "/1/usertokens/recent" {
			t.Errorf("the URL of %s is logged: %v", path, token)
		}
		if token {
			tokens++
		}
	}
	if tokens < 4 {
		t.Errorf("%d routes have a user token", tokens)
	}
	for _, url := range []string{"https://api.example.com/1/usertokens?prefix=ann", "https://api.example.com/1/usertokens?limit=9&cursor=ann", "https://api.example.com/1/identities?cursor=ann"} {
		if !excluded.MatchString(url) {
			t.Errorf("%s is logged", url)
		}
	}
	for url, page := range map[string]bool{"/console/users/ann": true, "/console/users?q=ann": true, "/console/strategy?user=ann": true, "/console/jobs": false, "/": false} {
		if got := excluded.MatchString("https://console.example.com" + url); got == page {
			continue
		}
		t.Errorf("the page %s is logged: %v", url, page)
	}
	for _, query := range []string{"?x-algolia-application-id=a&x-algolia-api-key=k", "?X-Algolia-API-Key=k", "?usertoken=u", "?limit=1&userToken=u", "?writeKey=a:k", "?index=i&writeKey=a:k"} {
		if !excluded.MatchString("https://api.example.com/1/events" + query) {
			t.Errorf("a URL with %s is logged", query)
		}
	}
}
