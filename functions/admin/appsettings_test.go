package admin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func TestAppSettingsRequests(t *testing.T) {
	s := functiontest.Start(t)
	h := admin.New(s.Backends.ForAdmin())
	indexed := config.Key{Hash: auth.Hash("indexed"), ACL: auth.All, Indexes: []string{"products"}}
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), functiontest.App, indexed))
	functiontest.Check(t, h,
		functiontest.Ask("", "GET", "/1/app", "", 401, "Invalid credentials"),
		functiontest.Ask("usage", "GET", "/1/app", "", 403, "Method not allowed with this API key"),
		functiontest.Ask("indexed", "GET", "/1/app", "", 403, "This API key is restricted to indexes"),
		functiontest.Ask("admin", "POST", "/1/app", "", 405, "Method Not Allowed"),
		functiontest.Ask("admin", "GET", "/1/app/keys", "", 404, "Path not supported"),
		functiontest.Ask("admin", "GET", "/1/app?limit=0", "", 422, "limit must be an integer from 1 to 1000"),
		functiontest.Ask("admin", "GET", "/1/app?limit=1001", "", 422, "limit must be an integer from 1 to 1000"),
		functiontest.Ask("admin", "GET", "/1/app?cursor=", "", 422, "cursor must be the cursor of another answer of this route"),
		functiontest.Ask("admin", "GET", "/1/app?cursor=bnVsbA", "", 422, "cursor must be the cursor of another answer of this route"),
		functiontest.Ask("admin", "GET", "/1/app?app=other", "", 422, `Unknown query option \"app\"`),
		functiontest.Ask("admin", "GET", "/1/app", "", 200, `{"id":"shop","createdAt":"`),
	)
}

// The answer has what the operator has set, as it is now, and no secret.
func TestAppSettings(t *testing.T) {
	s := functiontest.Start(t)
	store := s.Backends.Config
	h := admin.New(s.Backends.ForAdmin())
	before := settings(t, h, "")
	if before.Region != "" || before.Isolated || before.Dedicated || before.Consistency != "eventual" || before.BrowserRanking || before.Segments || len(before.OwnLimits) > 0 {
		t.Errorf("a new app: %+v", before)
	}
	if before.Limits.ReadsPerSecond != limit.Defaults.ReadsPerSecond || before.Limits.UserEventsPerDay != limit.Defaults.UserEventsPerDay {
		t.Errorf("limits %+v, want the defaults", before.Limits)
	}
	until := time.Now().Add(time.Hour)
	web := config.Key{
		Hash: auth.Hash("web-key"), Name: "web", ACL: []string{auth.Search}, Description: "pages <b>", ValidUntil: until, CreatedAt: time.Now(),
		Indexes: []string{"products*"}, Referers: []string{"https://*.shop.example/*"}, AddressRate: 60,
	}
	for _, err := range []error{
		store.SetRetention(t.Context(), functiontest.App, 30), store.SetConsistency(t.Context(), functiontest.App, config.Strong),
		store.SetBrowserRanking(t.Context(), functiontest.App, true), store.SetSegments(t.Context(), functiontest.App, true),
		store.SetLimits(t.Context(), functiontest.App, limit.Numbers{JobsPerHour: 7, WriteWindowMs: 2000}), store.PutKey(t.Context(), functiontest.App, web),
	} {
		must.Succeed(t, err)
	}
	got := settings(t, h, "")
	if got.RetentionDays != 30 || got.Consistency != "strong" || !got.BrowserRanking || !got.Segments || got.Limits.JobsPerHour != 7 || got.Limits.WriteWindowMs != 2000 {
		t.Errorf("after changes: %+v", got)
	}
	if diff := cmp.Diff([]string{"jobsPerHour", "writeWindowMs"}, got.OwnLimits); diff != "" {
		t.Errorf("own limits (-want +got):\n%s", diff)
	}
	ends := api.At(until)
	want := api.AppKey{
		ID: web.Hash[:12], Name: "web", Description: "pages <b>", ACL: []string{"search"}, CreatedAt: got.Keys[len(got.Keys)-1].CreatedAt, ValidUntil: &ends,
		Indexes: web.Indexes, Referers: web.Referers, AddressRate: 60,
	}
	at := cmp.Comparer(func(a, b api.Time) bool { return a.UnixMilli() == b.UnixMilli() })
	if diff := cmp.Diff(want, got.Keys[len(got.Keys)-1], at); diff != "" {
		t.Errorf("the named key (-want +got):\n%s", diff)
	}
	current, parents := 0, 0
	for _, k := range got.Keys {
		if k.Current {
			current++
			if k.ID != auth.Hash("admin")[:12] {
				t.Errorf("the key %s is marked as that of the request", k.ID)
			}
		}
		if k.Parent {
			parents++
		}
	}
	if current != 1 || parents != 1 {
		t.Errorf("%d keys are current, and %d parents of secured keys; want one each", current, parents)
	}
	_, text := functiontest.Call(h, "admin", "GET", "/1/app", "")
	for _, k := range append([]string{"all", "web-key"}, auth.All...) {
		if strings.Contains(text, auth.Hash(k)[:13]) || strings.Contains(text, "web-key") {
			t.Errorf("the answer has the key %s, or its hash: %s", k, text)
		}
	}
}

// Pages have every key once, in one order, also if keys come and go between two of them.
func TestPagesOfKeys(t *testing.T) {
	s := functiontest.Start(t)
	store := s.Backends.Config
	h := admin.New(s.Backends.ForAdmin())
	begun, hashes := time.Now().Add(-time.Hour), []string{}
	for i := range 25 {
		hashes = append(hashes, auth.Hash(fmt.Sprint("page-", i)))
		key := config.Key{Hash: hashes[i], Name: fmt.Sprintf("k%02d", i/3), ACL: []string{auth.Search}, CreatedAt: begun.Add(time.Duration(i) * time.Second)}
		must.Succeed(t, store.PutKey(t.Context(), functiontest.App, key))
	}
	seen, last, cursor := map[string]bool{}, api.AppKey{}, ""
	for pages := 0; pages == 0 || cursor != ""; pages++ {
		query := "?limit=4"
		if cursor != "" {
			query += "&cursor=" + url.QueryEscape(cursor)
		}
		page := settings(t, h, query)
		if len(page.Keys) == 0 || len(page.Keys) > 4 {
			t.Fatalf("a page has %d keys", len(page.Keys))
		}
		for _, k := range page.Keys {
			if seen[k.ID] {
				t.Errorf("key %s is there twice", k.ID)
			}
			if last.ID != "" && (k.Name < last.Name || k.Name == last.Name && k.CreatedAt.After(last.CreatedAt.Time)) {
				t.Errorf("key %s %s of %v is after %s of %v", k.ID, k.Name, k.CreatedAt, last.Name, last.CreatedAt)
			}
			seen[k.ID], last = true, k
		}
		if pages == 4 { // the key to which the cursor points
			gone := slices.IndexFunc(hashes, func(hash string) bool { return hash[:12] == last.ID })
			if gone < 0 {
				t.Fatalf("the last key of the page is %+v", last)
			}
			must.Succeed(t, store.DeleteKey(t.Context(), functiontest.App, hashes[gone]))
		}
		cursor = page.Cursor
	}
	for i, hash := range hashes {
		if !seen[hash[:12]] {
			t.Errorf("key %d is on no page", i)
		}
	}
	if want := 25 + len(auth.All) + 1; len(seen) != want {
		t.Errorf("%d keys, want %d", len(seen), want)
	}
}

func settings(t *testing.T, h http.Handler, query string) api.AppSettings {
	t.Helper()
	return functiontest.Answer[api.AppSettings](t, h, "admin", "GET", "/1/app"+query, "")
}
