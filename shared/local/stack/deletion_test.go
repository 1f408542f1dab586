package stack_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/deletion"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// bigtableOf is a client of the engine's Bigtable.
func bigtableOf(t *testing.T, s *stack.Stack) *bigtable.Client {
	return bigtableAt(t, s, stack.Instance)
}

// bigtableAt is bigtableOf of another instance.
func bigtableAt(t *testing.T, s *stack.Stack, instance string) *bigtable.Client {
	t.Helper()
	at := place(t, s)
	client, err := bigtable.NewClientWithConfig(t.Context(), at.Project, instance, bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}},
		option.WithEndpoint(at.Bigtable), option.WithoutAuthentication(), option.WithGRPCDialOption(emulator.WithToken(at.Token)),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	must.Succeed(t, err)
	must.CloseAtEnd(t, client)
	return client
}

// eachRow calls f with every row of every table that terraform/bigtable.json names.
func eachRow(t *testing.T, client *bigtable.Client, f func(table store.Table, row bigtable.Row)) {
	t.Helper()
	eachRowIn(t, client, "", f)
}

// eachRowIn is eachRow of the set of tables whose names end so.
func eachRowIn(t *testing.T, client *bigtable.Client, ending string, f func(table store.Table, row bigtable.Row)) {
	t.Helper()
	tables, err := store.Tables()
	must.Succeed(t, err)
	for _, table := range tables {
		err := client.Open(table.Name+ending).ReadRows(t.Context(), bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
			f(table, r)
			return true
		})
		must.Succeed(t, err)
	}
}

// A deleted app is found in no table, no job and no setting, and the apps whose ids
// look like its own have lost nothing. Its messages that come later write nothing.
func TestDeletedAppIsFoundNowhere(t *testing.T) {
	const gone = "gone-7f3"
	apps := []string{gone, gone + "-", "gone-7f"}
	o := stack.Options{ConfigTTL: time.Millisecond, LateWrites: time.Millisecond, Layout: schema.Of(schema.Wide),
		Recompute: job.Settings{ShardUsers: 2, Budget: time.Minute, Attempts: 3, Concurrency: 2}}
	for _, app := range apps {
		o.Apps = append(o.Apps, stack.App{ID: app, Key: "k"})
	}
	s := start(t, o)
	client := bigtableOf(t, s)
	for _, app := range apps {
		fillApp(t, s, client, app)
	}
	idle(t, s)
	must.Succeed(t, s.Backends.Usage.Flush(t.Context()))
	before := rowsOfApps(t, client, apps)
	for table, of := range before {
		for _, app := range apps {
			if of[app] == 0 {
				t.Errorf("table %s has no row of app %s: the test does not show that the deletion reaches it", table, app)
			}
		}
	}

	// A recompute runs, and two operators delete at once.
	if code, answer := callAs(t, s, gone, "k", "POST", "/1/recomputes", ""); code/100 != 2 {
		t.Fatalf("recompute: %d %s", code, answer)
	}
	var operators sync.WaitGroup
	for range 2 {
		operators.Go(func() {
			if _, err := s.Backends.Deletions.Delete(t.Context(), gone, false); err != nil {
				t.Error(err)
			}
		})
	}
	operators.Wait()
	late := bus.Message{App: gone, ReceivedAt: time.Now().UnixMilli(), Request: 9, Resolved: true, Body: []byte(seenBy("late"))}
	must.Succeed(t, s.Backends.Bus.Publish(t.Context(), late))
	status := deleted(t, s, gone)
	must.Succeed(t, s.Backends.Bus.Publish(t.Context(), late))
	idle(t, s)
	if code, answer := callAs(t, s, gone, "k", "POST", "/1/events", seenBy("ann")); code != http.StatusUnauthorized {
		t.Errorf("the key of the deleted app: %d %s", code, answer)
	}
	must.Succeed(t, s.Backends.Usage.Flush(t.Context()))
	must.Succeed(t, s.Backends.Refused.Flush(t.Context()))

	eachRow(t, client, func(table store.Table, r bigtable.Row) {
		if strings.HasPrefix(r.Key(), gone+"-,") {
			return // an app whose id holds the deleted one's
		}
		for _, cells := range r {
			for _, cell := range cells {
				if strings.Contains(cell.Row+cell.Column+string(cell.Value), gone) {
					t.Errorf("row %q of %s holds the id in %s", cell.Row, table.Name, cell.Column)
				}
			}
		}
	})
	wantNoDocuments(t, s, gone)
	if status.Rows == 0 || status.ReusableFrom.Sub(status.EndedAt) != config.Reserved {
		t.Errorf("the deletion ended with %+v", status)
	}
	if err := s.Backends.Config.CreateApp(t.Context(), config.App{ID: gone}); err == nil || !strings.Contains(err.Error(), "can be used again from "+status.ReusableFrom.Format(time.RFC3339)) {
		t.Errorf("create it again: %v", err)
	}
	after := rowsOfApps(t, client, apps)
	for table, of := range before {
		for _, app := range apps[1:] {
			if after[table][app] < of[app] {
				t.Errorf("app %s had %d rows in %s, and has %d", app, of[app], table, after[table][app])
			}
		}
	}
	for _, app := range apps[1:] {
		if code, answer := callAs(t, s, app, "k", "GET", "/1/profiles/ann", ""); code != http.StatusOK {
			t.Errorf("profile of app %s: %d %s", app, code, answer)
		}
	}
	if got := metrics(t, s); !strings.Contains(got, `affinity_messages_total{outcome="dropped"} 2`) {
		t.Errorf("dropped messages are not counted: %s", got)
	}
}

func seenBy(user string) string {
	return fmt.Sprintf(`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"objectIDs":["1"]}]}`, user)
}

// fillApp makes an app use every table: with requests, and with one row more in each,
// for tables that only time fills.
func fillApp(t *testing.T, s *stack.Stack, client *bigtable.Client, app string) {
	t.Helper()
	for _, r := range [][3]string{
		{"POST", "/1/strategies/personalization", seenStrategy},
		{"POST", "/1/indexes/i/batch", `{"requests":[{"action":"addObject","body":{"objectID":"1","color":"Red"}}]}`},
		{"PUT", "/1/indexes/i/settings", `{"attributesForFaceting":["color"]}`},
		{"PUT", "/1/feeds/f", `{"index":"i","date":"at"}`},
		{"POST", "/1/indexes/i/batch", `{"requests":[{"action":"addObject","body":{"objectID":"2","at":"2026-11-20"}}]}`},
		{"POST", "/1/events", seenBy("ann")},
		{"POST", "/1/events", seenBy("bob")},
		{"POST", "/1/events", `{"events":[{"eventType":"view"}]}`},
		{"POST", "/1/events/import", `{"eventType":"view","eventName":"Seen","index":"i","userToken":"old","objectIDs":["1"],"timestamp":1700000000000}`},
		{"POST", "/1/recomputes", ""},
		{"POST", "/1/crowd", ""},
		{"POST", "/1/reenrich", ""},
		{"DELETE", "/1/usertokens/bob", ""},
	} {
		if code, answer := callAs(t, s, app, "k", r[0], r[1], r[2]); code/100 != 2 && code != 422 {
			t.Fatalf("%s %s: %d %s", r[0], r[1], code, answer)
		}
	}
	tables, err := store.Tables()
	must.Succeed(t, err)
	for _, table := range tables {
		m := bigtable.NewMutation()
		m.Set(table.Families[0].Name, "later", 0, []byte(app))
		must.Succeed(t, client.Open(table.Name).Apply(t.Context(), app+",zoe,", m))
	}
}

// rowsOfApps counts the rows of apps by table. Each row must belong to one of them,
// or to none.
func rowsOfApps(t *testing.T, client *bigtable.Client, apps []string) map[string]map[string]int {
	t.Helper()
	counts := map[string]map[string]int{}
	eachRow(t, client, func(table store.Table, r bigtable.Row) {
		app, _, ok := strings.Cut(r.Key(), ",")
		if counts[table.Name] == nil {
			counts[table.Name] = map[string]int{}
		}
		counts[table.Name][app]++
		known := app == ""
		for _, a := range apps {
			known = known || a == app
		}
		if !ok || !known {
			t.Errorf("row %q of %s does not begin with an app and a comma: a deletion would not find it", r.Key(), table.Name)
		}
	})
	return counts
}

// deleted waits until an app is deleted.
func deleted(t *testing.T, s *stack.Stack, app string) deletion.Status {
	t.Helper()
	return waitForDeletion(t, s, app, deletion.Status.Ended)
}

// waitForDeletion waits until a deletion has come to a status.
func waitForDeletion(t *testing.T, s *stack.Stack, app string, until func(deletion.Status) bool) deletion.Status {
	t.Helper()
	var status deletion.Status
	poll(t, time.Minute, func() (string, bool) {
		var err error
		if status, err = s.Backends.Deletions.Status(t.Context(), app); err != nil || status.State == job.Failed {
			t.Fatalf("deletion %+v, %v", status, err)
		}
		return fmt.Sprintf("%+v", status), until(status)
	})
	return status
}

// wantNoDocuments checks that the configuration and the jobs know nothing of an app
// but its deletion.
func wantNoDocuments(t *testing.T, s *stack.Stack, app string) {
	t.Helper()
	names, err := s.Backends.Below.Holding(t.Context(), app, 99)
	if err != nil || len(names) != 0 {
		t.Errorf("documents %q (%v) are left", names, err)
	}
	if jobs, err := s.Backends.JobStore(deletion.Collection).List(t.Context(), app, 9); err != nil || len(jobs) != 0 {
		t.Errorf("jobs of the deletion %v (%v) are left", jobs, err)
	}
	ids, err := s.Backends.Config.Apps(t.Context())
	if err != nil || len(ids) != 2 {
		t.Errorf("apps %q, %v; want the two others", ids, err)
	}
	if d, err := s.Backends.Config.Deletion(t.Context(), app); err != nil || !d.Ended() {
		t.Errorf("deletion %+v, %v; want one that has ended", d, err)
	}
}
