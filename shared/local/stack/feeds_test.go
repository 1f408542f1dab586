package stack_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/store"
)

// A catalog that was there before the feed is listed by date, and follows what becomes
// of its objects from then on.
func TestCatalogBeforeFeed(t *testing.T) {
	s := start(t, stack.Options{ConfigTTL: time.Millisecond})
	batch := func(actions ...string) {
		t.Helper()
		wantStatus(t, s, http.StatusOK, "POST", "/1/indexes/posts/batch", `{"requests":[`+strings.Join(actions, ",")+`]}`)
	}
	object := func(kind, id string, days int) string {
		at := time.Now().AddDate(0, 0, -days).Format(time.RFC3339)
		return fmt.Sprintf(`{"action":%q,"body":{"objectID":%q,"meta":{"at":%q}}}`, kind, id, at)
	}
	listed := func(want ...string) {
		t.Helper()
		var got []string
		now := time.Now()
		list, truncated, err := s.Backends.Store.Catalog.ListDated(t.Context(), "demo", store.DatedQuery{
			Index: "posts", Attribute: "meta.at", Newest: now.UnixMilli(), Oldest: now.AddDate(0, 0, -30).UnixMilli()})
		for _, o := range list {
			got = append(got, o.ID)
		}
		if diff := cmp.Diff(want, got); err != nil || truncated || diff != "" {
			t.Errorf("truncated %v, error %v (-want +got):\n%s", truncated, err, diff)
		}
	}
	batch(object("addObject", "old", 3), object("addObject", "new", 1), object("addObject", "older", 40), object("addObject", "future", -2),
		`{"action":"addObject","body":{"objectID":"undated"}}`)
	listed()
	wantStatus(t, s, http.StatusOK, "PUT", "/1/feeds/news", `{"index":"posts","date":"meta.at"}`)
	waitForJobs(t, s, s.Backends.DateRows.Jobs)
	listed("new", "old")
	var feed api.Feed
	getJSON(t, s, "/1/feeds/news", &feed)
	if b := feed.Backfill; b == nil || b.State != api.JobDone || b.Objects != 5 || b.Inserted != 4 || b.Undated == nil || *b.Undated != 1 {
		t.Errorf("backfill %+v", b)
	}

	batch(object("updateObject", "newest", 0), object("partialUpdateObject", "old", 2), object("partialUpdateObject", "undated", 4))
	listed("newest", "new", "old", "undated")
	batch(object("partialUpdateObject", "old", 0), `{"action":"deleteObject","objectID":"new"}`)
	if list, _, err := s.Backends.Store.Catalog.ListDated(t.Context(), "demo", store.DatedQuery{Index: "posts", Attribute: "meta.at", Newest: time.Now().UnixMilli(), Limit: 2}); err != nil || len(list) != 2 {
		t.Errorf("%+v, error %v", list, err)
	}
	batch(`{"action":"clear"}`, object("addObject", "only", 1))
	// The night removes what the writers left: here of objects that lived for seconds.
	wantStatus(t, s, http.StatusOK, "DELETE", "/1/feeds/news", "")
	batch(object("addObject", "unlisted", 1))
	wantStatus(t, s, http.StatusOK, "PUT", "/1/feeds/news", `{"index":"posts","date":"meta.at"}`)
	waitForJobs(t, s, s.Backends.DateRows.Jobs)
	got, _, err := s.Backends.Store.Catalog.ListDated(t.Context(), "demo", store.DatedQuery{Index: "posts", Attribute: "meta.at", Newest: time.Now().UnixMilli()})
	ids := map[string]bool{}
	for _, o := range got {
		ids[o.ID] = true
	}
	if err != nil || !ids["only"] || !ids["unlisted"] {
		t.Errorf("listed %v, error %v", ids, err)
	}
}
