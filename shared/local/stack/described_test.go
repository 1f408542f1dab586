package stack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// outside are the tables of segments, which this app does not have, of jobs, whose details
// name some users at some times: see TestDatabaseNamesNoUser, and of locations, whose keys hold a
// keyed hash: all users of this app live in its region.
func outside(table string) bool {
	return table == store.TableSegments || table == store.TableChanges || table == store.TableJobs || table == store.TableLocations
}

// What an engine writes is what terraform/bigtable.json describes: each column has a
// format, and each value has it. The families that name a user are those that are
// described as personal. After the deletion of the user only those name them that are
// not removed by it.
func TestStoredDataIsDescribed(t *testing.T) {
	const app, user = "shop", "zoe-x9q"
	s := start(t, stack.Options{Apps: []stack.App{{ID: app, Key: "k"}}, ConfigTTL: time.Millisecond, LateWrites: time.Millisecond, Layout: schema.Of(schema.Wide)})
	client := bigtableOf(t, s)
	use(t, s, app, user)
	before := describedCells(t, s, client, app, user)
	personal, left := map[string]bool{}, map[string]bool{}
	tables, err := store.Tables()
	must.Succeed(t, err)
	for _, table := range tables {
		for _, f := range table.Families {
			if f.Personal && !outside(table.Name) {
				personal[table.Name+"/"+f.Name], left[table.Name+"/"+f.Name] = true, f.Erased != store.ByDeletion
			}
		}
	}
	if diff := cmp.Diff(keys(personal), keys(before)); diff != "" {
		t.Errorf("personal families (-described +seen):\n%s", diff)
	}
	if code, answer := callAs(t, s, app, "k", "DELETE", "/1/usertokens/"+user, ""); code/100 != 2 {
		t.Fatalf("delete the user: %d %s", code, answer)
	}
	if code, answer := callAs(t, s, app, "k", "DELETE", "/1/usertokens/"+user+"-2", ""); code/100 != 2 {
		t.Fatalf("delete the user: %d %s", code, answer)
	}
	idle(t, s)
	if diff := cmp.Diff(keys(left), keys(describedCells(t, s, client, app, user))); diff != "" {
		t.Errorf("families that name a deleted user (-described +seen):\n%s", diff)
	}
}

func keys(set map[string]bool) []string {
	var all []string
	for k, ok := range set {
		if ok {
			all = append(all, k)
		}
	}
	slices.Sort(all)
	return all
}

// use makes an app use every table. user has many events, and so blocks that are rows;
// user-2 has few, and an inline block.
func use(t *testing.T, s *stack.Stack, app, user string) {
	t.Helper()
	ask := func(method, path, body string, want int) {
		t.Helper()
		if code, answer := callAs(t, s, app, "k", method, path, body); code != want {
			t.Fatalf("%s %s: %d %s", method, path, code, answer)
		}
	}
	old := time.Now().Add(-time.Hour).UnixMilli()
	var lines, few strings.Builder
	for i := range 300 {
		typ := []string{"view", "click", "conversion"}[i%3]
		fmt.Fprintf(&lines, `{"eventType":%q,"eventName":"Seen","index":"i","userToken":%q,"objectIDs":["1","unknown-%d"],"timestamp":%d}`+"\n", typ, user, i, old+int64(i))
	}
	fmt.Fprintf(&few, `{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"objectIDs":["1"],"timestamp":%d}`, user+"-2", old)
	ask("POST", "/1/strategies/personalization", seenStrategy, http.StatusOK)
	ask("POST", "/1/indexes/i/batch", `{"requests":[{"action":"addObject","body":{"objectID":"1","color":"Red"}}]}`, http.StatusOK)
	ask("PUT", "/1/indexes/i/settings", `{"attributesForFaceting":["color"]}`, http.StatusOK)
	ask("PUT", "/1/feeds/f", `{"index":"i","date":"at"}`, http.StatusOK)
	ask("POST", "/1/indexes/i/batch", `{"requests":[{"action":"addObject","body":{"objectID":"2","color":"Blue","at":"2026-11-20"}}]}`, http.StatusOK)
	ask("POST", "/1/schema/start", `{"to":"narrow"}`, http.StatusOK)
	idle(t, s)
	ask("POST", "/1/events/import", lines.String(), http.StatusOK)
	ask("POST", "/1/events/import", few.String(), http.StatusOK)
	ask("POST", "/1/events", seenBy(user), http.StatusOK)
	ask("POST", "/v1/batch?index=i", fmt.Sprintf(`{"batch":[{"type":"track","event":"Product Viewed","userId":%q,"messageId":"m1","properties":{"product_id":"1"}}]}`, user), http.StatusOK)
	ask("POST", "/1/events", fmt.Sprintf(`{"events":[{"eventType":"view","userToken":%q}]}`, user), http.StatusUnprocessableEntity)
	idle(t, s)
	ask("POST", "/1/recomputes", `{"fold":true}`, http.StatusOK)
	idle(t, s)
	ask("POST", "/1/crowd", "", http.StatusOK)
	ask("GET", "/1/export/"+user, "", http.StatusOK)
	_, err := s.Backends.CachedConfig.SetHoldout(t.Context(), app, experiment.Holdout{Share: experiment.MaxHoldout, Seed: "s"})
	must.Succeed(t, err)
	ask("POST", "/1/rank", fmt.Sprintf(`{"userToken":%q,"index":"i","objectIDs":["1","2"]}`, user), http.StatusOK)
	must.Succeed(t, profile.ExposuresOf(s.Backends.Profiles).Flush(t.Context()))
	idle(t, s)
	if _, err := s.Backends.Store.Rates.ExchangeRates(t.Context(), app, "p", []byte(`{"count":{"user,`+user+`":9}}`)); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, s.Backends.Usage.Flush(t.Context()))
	must.Succeed(t, s.Backends.Refused.Flush(t.Context()))
}

// describedCells checks each cell, and returns the families that name the user or a hash
// of them.
func describedCells(t *testing.T, s *stack.Stack, client *bigtable.Client, app, user string) map[string]bool {
	t.Helper()
	salt, err := s.Backends.Store.AuditLog.AuditSalt(t.Context(), app)
	must.Succeed(t, err)
	hash, names := auditlog.Hash(salt, user), map[string]bool{}
	eachRow(t, client, func(table store.Table, r bigtable.Row) {
		for family, cells := range r {
			f := table.Families[slices.IndexFunc(table.Families, func(f store.Family) bool { return f.Name == family })]
			for _, cell := range cells {
				checkFormat(t, table.Name, f, strings.TrimPrefix(cell.Column, family+":"), cell.Value)
				if text := cell.Row + cell.Column + string(cell.Value); !outside(table.Name) && len(cell.Value) > 0 && (strings.Contains(text, user) || strings.Contains(text, hash)) {
					names[table.Name+"/"+family] = true
				}
			}
		}
	})
	return names
}

func checkFormat(t *testing.T, table string, f store.Family, qualifier string, value []byte) {
	t.Helper()
	at := slices.IndexFunc(f.Formats, func(format store.Format) bool { return format.Has(qualifier) })
	if at < 0 {
		t.Errorf("%s/%s does not describe column %q", table, f.Name, qualifier)
		return
	}
	format, ok := f.Formats[at], true
	switch {
	case len(value) == 0:
	case format.Version > 0:
		ok = value[0] >= 1 && int(value[0]) <= format.Version
	case format.Encoding == store.JSON:
		ok = json.Valid(value)
	case format.Encoding == store.Number:
		ok = len(value) == 8
	case format.Encoding == store.Text:
		ok = utf8.Valid(value)
	}
	if !ok {
		t.Errorf("%s/%s column %q holds %.40q, described as %s", table, f.Name, qualifier, value, format)
	}
}
