package stack_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// describeEntries returns entries in words, the oldest first, without ids and times.
func describeEntries(log api.AuditLog) []string {
	var lines []string
	for _, e := range log.Entries {
		user := ""
		if e.User != "" {
			user = " user"
		}
		line := fmt.Sprintf("%s %s%s [%s] %s: %s", e.Actor, e.Action, user, e.Subject, e.Outcome, e.Detail)
		lines = append([]string{line}, lines...)
	}
	return lines
}

// Every change that a request or the operator makes has an entry with the name of
// the key, and the token of a deleted user is in none.
func TestChangesAreInTheAuditLog(t *testing.T) {
	s := start(t, stack.Options{})
	c := auditlog.NewOperated(s.Backends.Config, auditlog.New(s.Backends.AuditLog()))
	keys, err := s.Backends.Config.Keys(t.Context(), "demo")
	must.Succeed(t, err)
	renamed := keys[0]
	renamed.Name, renamed.Parent = "boss", nil
	must.Succeed(t, c.PutKey(t.Context(), "demo", renamed))
	must.Succeed(t, c.PutKey(t.Context(), "demo", config.Key{Name: "boss", Hash: strings.Repeat("a", 64), ACL: []string{"admin"}}))
	const user = "hostile=+/-_token"
	for _, r := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/1/strategies/personalization", seenStrategy, 200},
		{"POST", "/1/strategies/personalization", seenStrategy, 200},
		{"POST", "/1/strategies/personalization", "{}}", 400}, // changes nothing
		{"POST", "/1/strategies/personalization/restore", `{"version":1}`, 200},
		{"PUT", "/1/indexes/shoes/settings", `{"attributesForFaceting":["brand","color"]}`, 200},
		{"POST", "/1/indexes/shoes/batch", addOne, 200}, // objects have no entries
		{"POST", "/1/indexes/shoes/batch", `{"requests":[{"action":"clear"},{"action":"addObject","body":{"objectID":"1"}}]}`, 200},
		{"PUT", "/1/feeds/news", `{"index":"shoes","date":"at"}`, 200},
		{"PUT", "/1/feeds/latest", `{"index":"shoes","date":"at"}`, 422},
		{"DELETE", "/1/feeds/news", "", 200},
		{"POST", "/1/reenrich", `{"dryRun":true}`, 200},
		{"POST", "/1/recomputes/no-such-job/cancel", "", 404},
		{"POST", "/1/schema/verify", "", 409},
		{"DELETE", "/1/profiles/" + url.PathEscape(user), "", 200},
		{"DELETE", "/1/usertokens/bob", "", 204},
	} {
		if status, answer := call(t, s, r.method, r.path, r.body); status != r.status {
			t.Fatalf("%s %s: %d %s", r.method, r.path, status, answer)
		}
	}
	var log api.AuditLog
	getJSON(t, s, "/1/audit-log", &log)
	got := describeEntries(log)
	for i, line := range got {
		if strings.Contains(line, "reenrich.start [") {
			got[i], _, _ = strings.Cut(line, "[") // the id of the job
		}
	}
	hash := keys[0].Hash[:12]
	want := []string{
		"operator key.change [boss] done: hash " + hash + ", permissions " + strings.Join(keys[0].ACL, ","),
		"operator key.rotate [boss] done: hash aaaaaaaaaaaa, permissions admin",
		"boss strategy.set [] done: version 0 to 1",
		"boss strategy.set [] done: version 1, unchanged",
		"boss strategy.restore [version 1] done: version 1, unchanged",
		"boss settings.set [shoes] done: version 1, attributesForFaceting brand,color",
		"boss index.clear [shoes] done: in a batch of 2 actions",
		`boss feed.set [news] done: version 1, {"index":"shoes","date":"at","seen":"keep","format":"records"}`,
		"boss feed.delete [news] done: index shoes",
		"boss reenrich.start ",
		"boss schema.verify [] failed: ",
		"boss user.delete user [] done: ",
		"boss user.delete user [] done: ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, answer := call(t, s, "GET", "/1/audit-log", ""); strings.Contains(answer, "hostile") || strings.Contains(answer, "bob") {
		t.Errorf("the log names a deleted user: %s", answer)
	}
	checkAuditFilters(t, s, user, len(want))
}

// checkAuditFilters reads the log by user, by action and page by page.
func checkAuditFilters(t *testing.T, s *stack.Stack, user string, all int) {
	t.Helper()
	var of api.AuditLog
	getJSON(t, s, "/1/audit-log?userToken="+url.QueryEscape(user), &of)
	if len(of.Entries) != 1 || of.Entries[0].Action != "user.delete" {
		t.Errorf("entries about the user: %+v", of)
	}
	var deleted api.AuditLog
	getJSON(t, s, "/1/audit-log?action=user.delete&limit=10", &deleted)
	if len(deleted.Entries) != 2 || deleted.Entries[0].User == deleted.Entries[1].User || deleted.Cursor != "" {
		t.Errorf("deletions: %+v", deleted)
	}
	seen, pages := map[string]bool{}, 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		var page api.AuditLog
		path := "/1/audit-log?limit=2"
		if cursor != "" {
			path += "&cursor=" + url.QueryEscape(cursor)
		}
		getJSON(t, s, path, &page)
		for _, e := range page.Entries {
			seen[e.ID] = true
		}
		if pages == 0 { // a change between two pages moves no entry to another page
			if status, answer := call(t, s, "DELETE", "/1/usertokens/carol", ""); status != 204 {
				t.Fatal(status, answer)
			}
		}
		cursor = page.Cursor
	}
	if len(seen) != all || pages != (all+1)/2 {
		t.Errorf("%d pages with %d entries, want %d with %d", pages, len(seen), (all+1)/2, all)
	}
	for _, query := range []string{
		"limit=0", "limit=1001", "limit=x", "cursor=", "cursor=x", "cursor=0000000000000000-000000000000000g", "cursor=demo,salt",
		"action=", "action=everything", "userToken=", "userToken=a%2Cb", "userToken=a%00", "user=ann",
	} {
		if status, answer := call(t, s, "GET", "/1/audit-log?"+query, ""); status != 422 {
			t.Errorf("%s: %d %s", query, status, answer)
		}
	}
}

// Deletions at one time have an entry each.
func TestAuditLogOfManyWriters(t *testing.T) {
	s := start(t, stack.Options{})
	const writers = 30
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			if status, answer := call(t, s, "DELETE", fmt.Sprint("/1/usertokens/user-", i), ""); status != 204 {
				t.Error(status, answer)
			}
		})
	}
	wg.Wait()
	var log api.AuditLog
	getJSON(t, s, "/1/audit-log?action=user.delete", &log)
	users := map[string]bool{}
	for i, e := range log.Entries {
		users[e.User] = true
		if i > 0 && e.At.After(log.Entries[i-1].At.Time) {
			t.Errorf("entry %d is newer than the one before it", i)
		}
	}
	if len(log.Entries) != writers || len(users) != writers {
		t.Errorf("%d entries about %d users, want %d", len(log.Entries), len(users), writers)
	}
}
