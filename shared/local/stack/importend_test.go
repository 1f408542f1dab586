package stack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/job/tasks/afterimport"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/history"
)

// importer imports events of users, and ends the import.
type importer struct {
	*testing.T
	*stack.Stack
}

func startImporter(t *testing.T) importer {
	s := start(t, stack.Options{ConfigTTL: time.Millisecond})
	wantStatus(t, s, http.StatusOK, "POST", "/1/strategies/personalization",
		`{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":10}],"facetsScoring":[{"facetName":"brand","score":1}],"personalizationImpact":50}`)
	wantStatus(t, s, http.StatusOK, "POST", "/1/indexes/products/batch", `{"requests":[{"action":"addObject","body":{"objectID":"1","brand":"A"}},{"action":"addObject","body":{"objectID":"2","brand":"B"}}]}`)
	return importer{t, s}
}

// send imports an event without a timestamp, which is young, of each user.
func (i importer) send(users ...string) {
	i.Helper()
	var lines strings.Builder
	for _, user := range users {
		fmt.Fprintf(&lines, `{"eventType":"view","eventName":"Seen","index":"products","userToken":"%s","objectIDs":["2"]}`+"\n", user)
	}
	wantStatus(i.T, i.Stack, http.StatusOK, "POST", "/1/events/import", lines.String()+"not an event\n")
}

func (i importer) end(body string) (end api.ImportEnd) {
	i.Helper()
	status, answer := call(i.T, i.Stack, "POST", "/1/imports/end", body)
	if status != http.StatusOK {
		i.Fatalf("%d %s", status, answer)
	}
	must.Succeed(i.T, json.Unmarshal([]byte(answer), &end))
	return end
}

// ended waits until the jobs that follow an import have ended. It asks as affinity import does.
func (i importer) ended(end api.ImportEnd) api.ImportEnd {
	i.Helper()
	at, err := json.Marshal(api.ImportEndRequest{At: end.At})
	must.Succeed(i.T, err)
	poll(i.T, time.Minute, func() (string, bool) {
		end = i.end(string(at))
		return fmt.Sprintf("%+v", end), end.Ended()
	})
	if end.Recompute.State != api.JobDone || end.Crowd == nil || end.Crowd.State != api.JobDone {
		i.Fatalf("the jobs end as %+v, %+v", end.Recompute, end.Crowd)
	}
	return end
}

// folded counts the events of a user in blocks.
func (i importer) folded(user string) (n int) {
	i.Helper()
	states, err := i.Backends.Profiles.StatesOf(i.Context(), "demo", []string{user})
	must.Succeed(i.T, err)
	m, err := history.ParseManifest(states[user].Manifest)
	must.Succeed(i.T, err)
	for _, b := range m.Blocks {
		n += b.Events
	}
	return n
}

// newcomer ranks for a user without events.
func (i importer) newcomer(index string) (answer api.RankAnswer) {
	i.Helper()
	status, text := call(i.T, i.Stack, "POST", "/1/rank", `{"userToken":"newcomer","index":"`+index+`","objectIDs":["1","2"]}`)
	if status != http.StatusOK {
		i.Fatalf("%d %s", status, text)
	}
	must.Succeed(i.T, json.Unmarshal([]byte(text), &answer))
	return answer
}

// The end of an import starts its jobs at once, however often it is named, and the task that
// follows a quiet minute starts none.
func TestImportEnds(t *testing.T) {
	t.Parallel()
	i := startImporter(t)
	i.send("ann", "bob")
	i.send("ann")
	if got := i.newcomer("shoes"); got.CrowdAsOf != nil || *got.Fallback != api.FallbackCatalog || got.Items[0].ObjectID != "1" {
		t.Errorf("without statistics the order is %+v", got)
	}
	first := i.end("")
	if again := i.end(""); again.Recompute.ID != first.Recompute.ID || again.Crowd.ID != first.Crowd.ID {
		t.Errorf("named again, the end starts %s and %s", again.Recompute.ID, again.Crowd.ID)
	}
	end := i.ended(first)
	if end.Recompute.FoldedUsers != 2 || end.Crowd.Events != 3 || !end.Recompute.Fold {
		t.Errorf("the jobs are %+v and %+v", *end.Recompute, *end.Crowd)
	}
	if got := i.newcomer("products"); got.CrowdAsOf == nil || *got.Fallback != api.FallbackPopularity || got.Items[0].ObjectID != "2" {
		t.Errorf("after the end the order is %+v", got)
	}
	i.quietTask(end.At.Time, end.Recompute.ID, end.Crowd.ID)
	if jobs := builds(t, i.Stack); len(jobs) != 1 {
		t.Errorf("%d builds, want one", len(jobs))
	}
}

// quietTask runs the task that follows a minute without an import. It must find these jobs.
func (i importer) quietTask(last time.Time, recompute, build string) {
	i.Helper()
	i.Backends.Base.Now = func() time.Time { return last.Add(afterimport.Quiet) }
	want := fmt.Sprintf(`{"started":true,"recompute":%q,"crowd":%q}`, recompute, build)
	if answer := work(i.T, i.Stack, afterimport.Kind.Path, `{"app":"demo"}`); answer != want {
		i.Errorf("the task answers %s, want %s", answer, want)
	}
}

// What is written after the named end, such as by a request that the client gave up, is left to
// the task of the quiet minute. Reads count it at once.
func TestImportGoesOnAfterItsEnd(t *testing.T) {
	t.Parallel()
	i := startImporter(t)
	i.send("ann")
	end := i.ended(i.end(""))
	i.send("late")
	if n := i.folded("ann") + i.folded("late"); n != 1 {
		t.Fatalf("%d events are folded, want 1", n)
	}
	if status, answer := call(t, i.Stack, "GET", "/1/profiles/late", ""); status != http.StatusOK || !strings.Contains(answer, `"value":"B"`) {
		t.Errorf("the late event does not count: %d %s", status, answer)
	}
	if same := i.ended(end); same.Recompute.ID != end.Recompute.ID || same.Crowd.ID != end.Crowd.ID {
		t.Errorf("the old end starts %s and %s", same.Recompute.ID, same.Crowd.ID)
	}
	last, err := i.Backends.Store.Crowd.LastImport(t.Context(), "demo", "")
	must.Succeed(t, err)
	id := fmt.Sprintf("import-%d", last.UnixMilli())
	i.quietTask(last, id, id)
	waitForJob(t, i.Stack)
	if n := i.folded("late"); n != 1 {
		t.Errorf("%d late events are folded, want 1", n)
	}
}

// An import that ends while jobs of another one run waits for them, and then has its own.
func TestImportsEndSideBySide(t *testing.T) {
	t.Parallel()
	i := startImporter(t)
	i.send("ann")
	last, err := i.Backends.Store.Crowd.LastImport(t.Context(), "demo", "")
	must.Succeed(t, err)
	before := last.Add(-time.Millisecond)
	folds := job.Job{App: "demo", ID: "import-1", State: job.Planning, StartedAt: before, Params: recompute.Params{Trigger: recompute.Import, Fold: true}}
	must.Succeed(t, i.Backends.Recompute.Jobs.Create(t.Context(), folds))
	build := job.Job{App: "demo", ID: "import-1", State: job.Planning, StartedAt: before, Params: crowdbuild.Params{Trigger: crowdbuild.Import, Indexes: []string{"products"}}}
	must.Succeed(t, i.Backends.Crowd.Jobs.Create(t.Context(), build))
	for range 2 {
		if end := i.end(""); !end.Waiting || end.Ended() || end.Recompute.ID != "import-1" || end.Crowd.ID != "import-1" {
			t.Fatalf("beside other jobs the end is %+v", end)
		}
	}
	end := i.end("")
	for _, r := range []*job.Runner{i.Backends.Recompute.Runner, i.Backends.Crowd.Runner} {
		_, err := r.Cancel(t.Context(), "demo", "import-1")
		must.Succeed(t, err)
	}
	i.send("bob") // the other import goes on
	end = i.ended(end)
	if end.Waiting || end.At.UnixMilli() != last.UnixMilli() || end.Recompute.ID == "import-1" || end.Crowd.ID == "import-1" {
		t.Errorf("once they have ended it is %+v", end)
	}
}
