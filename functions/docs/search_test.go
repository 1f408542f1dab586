package docs

import (
	"strings"
	"testing"
)

// What a newcomer asks, and the page that answers.
var questions = []struct{ ask, page string }{
	{"how do I send events", "/docs/reference/events"},
	{"why is a profile empty", "/docs/reference/profiles"},
	{"delete a user", "/docs/reference/privacy"},
	{"boost search results in Elasticsearch", "/docs/guides/engines/elasticsearch"},
	{"what does it cost", "/docs/operate/costs"},
	{"opt out", "/docs/reference/privacy"},
	{"import from GA4", "/docs/guides/ga4"},
	{"start with my own data", "/docs/guides/quickstart"},
	{"restore a backup", "/docs/operate/restore"},
	{"make a key for each user", "/docs/guides/web-page"},
	{"deploy to Google Cloud", "/docs/operate/deploy"},
	{"related products", "/docs/guides/recommendations"},
	{"why was an event refused", "/docs/reference/events"},
	{"visitors who sign in later", "/docs/guides/sign-in"},
	{"what does a lift mean", "/docs/guides/lift"},
	{"Segment SDK", "/docs/reference/segment-sdks"},
}

func TestNewcomersFindPages(t *testing.T) {
	s, err := newSite(ForOperators)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range questions {
		found := s.index.search(q.ask)
		if len(found) == 0 {
			t.Errorf("%q finds nothing", q.ask)
			continue
		}
		if path, _, _ := strings.Cut(found[0].Path, "#"); path != q.page {
			var all []string
			for _, f := range found[:min(len(found), 5)] {
				all = append(all, f.Path)
			}
			t.Errorf("%q finds %s, want %s first", q.ask, all, q.page)
		}
	}
}
