package stack_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/job/tasks/afterimport"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/store"
)

// loadReal loads objects and the first events of a real data set into the index
// products, and returns the events by user in the order of the log.
func loadReal(t *testing.T, s *stack.Stack, set string, n int, type_, name string) map[string][]crowd.Event {
	t.Helper()
	for chunk := range slices.Chunk(realdata.Decoded[json.RawMessage](t, set, realdata.ObjectsFile), 1000) {
		var batch strings.Builder
		for i, line := range chunk {
			fmt.Fprintf(&batch, `%s{"action":"addObject","body":%s}`, strings.Repeat(",", min(i, 1)), line)
		}
		wantStatus(t, s, http.StatusOK, "POST", "/1/indexes/products/batch", `{"requests":[`+batch.String()+`]}`)
	}
	var lines []string
	for line := range realdata.Lines(t, set, realdata.EventsFile) {
		if lines = append(lines, string(line)); len(lines) == n {
			break
		}
	}
	for chunk := range slices.Chunk(lines, 4000) {
		wantStatus(t, s, http.StatusOK, "POST", "/1/events/import?index=products", strings.Join(chunk, "\n"))
	}
	type logged struct {
		crowd.Event
		id string
	}
	byUser := map[string]map[string]logged{}
	for _, line := range lines {
		e, err := event.Decode([]byte(line), event.Rules{Now: s.Backends.Now(), Index: "products"})
		must.Succeed(t, err)
		if string(e.Type) != type_ || !strings.Contains(name, e.Name) {
			continue
		}
		if byUser[e.UserToken] == nil {
			byUser[e.UserToken] = map[string]logged{}
		}
		id := fmt.Sprintf("%020d %s", e.Time, e.ID())
		byUser[e.UserToken][id] = logged{crowd.Event{Time: e.Time, Bought: e.Type == event.Conversion, ObjectIDs: e.ObjectIDs}, id}
	}
	users := map[string][]crowd.Event{}
	for user, events := range byUser {
		var all []logged
		for _, e := range events {
			all = append(all, e)
		}
		slices.SortFunc(all, func(a, b logged) int { return cmp.Compare(a.id, b.id) })
		for _, e := range all {
			users[user] = append(users[user], e.Event)
		}
	}
	return users
}

// builds returns the builds of crowd statistics of the app.
func builds(t *testing.T, s *stack.Stack) []job.Job {
	t.Helper()
	jobs, err := s.Backends.Crowd.List(t.Context(), "demo", 100)
	must.Succeed(t, err)
	return jobs
}

// work sends a task to the worker and returns the answer.
func work(t *testing.T, s *stack.Stack, path, body string) string {
	t.Helper()
	w := httptest.NewRecorder()
	worker.New(s.Backends.ForWorker()).ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
	if w.Code != 200 {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return strings.TrimSpace(w.Body.String())
}

// wantCrowd compares the statistics that the engine has with a brute-force count.
func wantCrowd(t *testing.T, s *stack.Stack, users map[string][]crowd.Event) {
	t.Helper()
	ctx := t.Context()
	rows := s.Backends.Store.Crowd
	m, _, err := crowd.ReadManifest(ctx, rows, s.Backends.Log, "demo", "products")
	if err != nil || m.Current.Name == "" {
		t.Fatalf("manifest %+v, %v", m, err)
	}
	ref := store.CrowdRef{App: "demo", Index: "products", Generation: m.Current.Name}
	x, err := m.Current.ReadIndex(1<<30, func(counts, frequencies func([]byte) error) error {
		return rows.ReadCrowdIndex(ctx, ref, counts, frequencies)
	})
	must.Succeed(t, err)
	var all [][]crowd.Event
	events := 0
	for _, of := range users {
		all = append(all, of)
		events += len(of)
	}
	wantCounts, want := crowd.Reference(all, x.AsOf, x.HalfLife)
	if diff := gocmp.Diff(wantCounts, x.Counts, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("counts (-reference +built):\n%s", diff)
	}
	if x.Events != int64(events) || x.Users != int64(len(users)) || x.Objects == 0 || len(x.Frequencies) == 0 {
		t.Errorf("%d events of %d users, %d objects with %d filters; want %d of %d", x.Events, x.Users, x.Objects, len(x.Frequencies), events, len(users))
	}
	var ids []string
	for id := range want {
		ids = append(ids, id)
	}
	stored, err := rows.ReadCrowdObjects(ctx, ref, ids)
	must.Succeed(t, err)
	got, err := crowd.ParseObjects(stored)
	must.Succeed(t, err)
	for id, o := range want {
		for kind, links := range o.Links {
			o.Links[kind] = links[:min(len(links), crowd.Best)]
		}
		if diff := gocmp.Diff(o, got[id], cmpopts.EquateEmpty()); diff != "" && got[id].Exact() {
			t.Errorf("%s (-reference +built):\n%s", id, diff)
		}
	}
}

// Crowd statistics of real events equal a brute-force count: read from the log,
// after an import, and read from blocks, after the nightly round.
func TestCrowdStatisticsOfRealEvents(t *testing.T) {
	for _, test := range []struct {
		set         string
		events      int
		type_, name string // of the events that the strategy scores
		now         time.Time
	}{
		{"clickstream", race.Or(6000, 2000), "click", "Product Clicked, Product Clicked Again", time.Date(2008, 6, 1, 0, 0, 0, 0, time.UTC)},
		{"onlineretail", race.Or(2000, 400), "conversion", "Products Purchased", time.Date(2011, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		t.Run(test.set, func(t *testing.T) {
			t.Parallel()
			s := start(t, stack.Options{ConfigTTL: time.Millisecond, Now: test.now})
			var scored []string
			for name := range strings.SplitSeq(test.name, ", ") {
				scored = append(scored, fmt.Sprintf(`{"eventName":%q,"eventType":%q,"score":1}`, name, test.type_))
			}
			strategy := `{"eventsScoring":[` + strings.Join(scored, ",") + `],"facetsScoring":[{"facetName":"colour","score":1}],"personalizationImpact":50}`
			wantStatus(t, s, http.StatusOK, "POST", "/1/strategies/personalization", strategy)
			users := loadReal(t, s, test.set, test.events, test.type_, test.name)
			last, err := s.Backends.Store.Crowd.LastImport(t.Context(), "demo", "")
			if err != nil || last.IsZero() {
				t.Fatalf("last import %s, %v", last, err)
			}
			if _, err := s.Backends.Crowd.StartImport(t.Context(), "demo", last); err != nil {
				t.Fatal(err)
			}
			waitForJobs(t, s, s.Backends.Crowd.Jobs)
			wantCrowd(t, s, users)

			// The night folds the log, and the build after it reads blocks.
			work(t, s, "/nightly", `{"spread":"0s"}`)
			waitForJobs(t, s, s.Backends.Crowd.Jobs)
			wantStatus(t, s, http.StatusOK, "POST", "/1/crowd", "")
			waitForJobs(t, s, s.Backends.Crowd.Jobs)
			wantCrowd(t, s, users)
			var answer api.Crowd
			getJSON(t, s, "/1/crowd", &answer)
			if len(answer.Generations) != 1 || answer.Generations[0].State != api.JobDone || len(answer.Builds) != 3 || answer.Builds[0].Trigger != "manual" {
				t.Errorf("the engine answers %+v", answer)
			}
		})
	}
}

// However many pieces an import has, one build follows the last one, and one
// recompute, which folds the users. While another recompute is under way, that one
// waits.
func TestOneBuildFollowsAnImport(t *testing.T) {
	const line = `{"eventType":"view","eventName":"Seen","index":"products","userToken":"u%d","objectIDs":["1"],"timestamp":%d}`
	s := start(t, stack.Options{ConfigTTL: time.Millisecond})
	wantStatus(t, s, http.StatusOK, "POST", "/1/indexes/products/batch", addOne)
	for i := range 50 {
		body := fmt.Sprintf(line, i, s.Backends.Now().UnixMilli()-120_000)
		wantStatus(t, s, http.StatusOK, "POST", "/1/events/import", body)
	}
	const task = `{"app":"demo"}`
	for range 3 { // too early: the import may go on
		if answer := work(t, s, afterimport.Kind.Path, task); answer != `{"started":false}` {
			t.Fatalf("the task answers %s", answer)
		}
	}
	if got := builds(t, s); len(got) != 0 || newest(t, s).ID != "" {
		t.Fatalf("%d builds and a recompute %q during the import", len(got), newest(t, s).ID)
	}
	last, err := s.Backends.Store.Crowd.LastImport(t.Context(), "demo", "")
	must.Succeed(t, err)
	// The import lies further back than the engine waits.
	s.Backends.Base.Now = func() time.Time { return last.Add(afterimport.Quiet) }
	s.Backends.Recompute.Now = s.Backends.Base.Now
	other := job.Job{App: "demo", ID: "manual-1", State: job.Planning, StartedAt: last, Params: recompute.Params{Trigger: recompute.Manual}}
	must.Succeed(t, s.Backends.Recompute.Jobs.Create(t.Context(), other))
	if answer := work(t, s, afterimport.Kind.Path, task); !strings.Contains(answer, `{"started":true,"crowd":"import-`) {
		t.Fatalf("beside another recompute the task answers %s", answer)
	}
	if _, err := s.Backends.Recompute.Cancel(t.Context(), "demo", other.ID); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if answer := work(t, s, afterimport.Kind.Path, task); !strings.Contains(answer, `{"started":true,"recompute":"import-`) || !strings.Contains(answer, `"crowd":"import-`) {
			t.Fatalf("the task answers %s", answer)
		}
	}
	got := builds(t, s)
	if len(got) != 1 || job.ParamsOf[crowdbuild.Params](got[0]).Trigger != crowdbuild.Import {
		t.Fatalf("builds %+v, want one", got)
	}
	waitForJobs(t, s, s.Backends.Crowd.Jobs)
	if j, err := s.Backends.Crowd.Find(t.Context(), "demo", got[0].ID); err != nil || j.State != job.Done {
		t.Errorf("the build is %s, %v", j.State, err)
	}
	if answer := waitForJob(t, s); !strings.Contains(answer, `"trigger":"import"`) || !strings.Contains(answer, `"fold":true,"foldedUsers":50`) {
		t.Errorf("the recompute: %s", answer)
	}
	jobs, err := s.Backends.Recompute.List(t.Context(), "demo", 10)
	if err != nil || len(jobs) != 2 {
		t.Errorf("%d recomputes, %v; want the one that was cancelled and the one of the import", len(jobs), err)
	}
}
