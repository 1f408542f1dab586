package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/intake/refused"
	"github.com/affinityengine/affinity/shared/job/tasks/afterimport"
	"github.com/affinityengine/affinity/shared/job/tasks/purge"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/store"
)

func TestWorker(t *testing.T) {
	h := worker.New(functiontest.Start(t).Backends.ForWorker())
	functiontest.Check(t, h,
		functiontest.Ask("", "GET", "/purge", "", 405, "Method Not Allowed"),
		functiontest.Ask("", "POST", "/other", "", 404, "Path not supported"),
		functiontest.Ask("", "POST", "/purge", `{"app":"shop","userToken":"ann","deletedUntil":1}`, 200, `{"purged":0,"refused":0}`),
		functiontest.Ask("", "POST", "/audit", `{"app":"shop","sample":10}`, 200, `"sampled":0`),
		// Tasks that can never run are answered 200, so that they are not
		// retried.
		functiontest.Ask("", "POST", "/purge", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/purge", `{"app":"shop"}`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/audit", `{"app":"elsewhere","sample":10}`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/recompute/plan", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/recompute/shard", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/backtest/plan", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/backtest/shard", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/reenrich/plan", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/reenrich/shard", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/crowd/plan", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/crowd/shard", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/segments/plan", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/segments/shard", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/segments/delta", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/segments/delta", `{"app":"elsewhere","version":1}`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/segments/delta", `{"app":"shop","version":1}`, 200, `{"users":0,"joined":0,"build":false}`),
		functiontest.Ask("", "POST", "/segments/clean", `{"app":"no app"}`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/segments/clean", `{"app":"shop"}`, 200, `{"cleaned":true}`),
		functiontest.Ask("", "POST", "/refresh", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/refresh", `{"app":"shop","userToken":"a,b"}`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/refresh", `{"app":"elsewhere","userToken":"ann"}`, 200, `{"refreshed":false}`),
		functiontest.Ask("", "POST", "/refresh", `{"app":"shop","userToken":"nobody"}`, 200, `{"refreshed":false}`),
		functiontest.Ask("", "POST", "/imported", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/imported", `{"app":"no app"}`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/imported", `{"app":"shop"}`, 200, `{"started":false}`),
		functiontest.Ask("", "POST", "/migration/plan", `{`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/migration/shard", `{`, 200, `{"dropped":`),
	)
}

// tasks keeps the tasks that are created, and refuses a second one of a name in
// silence, as the queue does.
type tasks struct{ created []queue.Task }

func (q *tasks) Create(_ context.Context, t queue.Task) error {
	if !slices.ContainsFunc(q.created, func(other queue.Task) bool { return other.Name == t.Name }) {
		q.created = append(q.created, t)
	}
	return nil
}

// A deletion also removes what was refused of its user, and looks again when no
// process can hold an older refusal.
func TestPurgeRemovesRefusedEvents(t *testing.T) {
	s, q := functiontest.Start(t), &tasks{}
	b := s.Backends.ForWorker()
	b.Queue = q
	h := worker.New(b)
	refuse := func() {
		t.Helper()
		s.Backends.Refused.Record(functiontest.App, store.Refused{At: time.Now(), Reason: "r", Event: []byte(`{"userToken":"ann"}`)})
		must.Succeed(t, s.Backends.Refused.Flush(t.Context()))
	}
	purgeRefused := func(body string) {
		t.Helper()
		refuse()
		if status, answer := functiontest.Call(h, "", "POST", purge.Kind.Path, body); status != 200 || answer != `{"purged":0,"refused":1}` {
			t.Fatal(status, answer)
		}
		if list, counts, err := s.Backends.Store.Refused.ReadRefused(t.Context(), functiontest.App, time.Now()); err != nil || len(list) != 0 || counts["r"] == 0 {
			t.Errorf("%v, %v, %v: want counts alone", list, counts, err)
		}
	}
	first := `{"app":"shop","userToken":"ann","deletedUntil":1}`
	purgeRefused(first)
	purgeRefused(first) // a retry
	if len(q.created) != 1 || q.created[0].Delay <= refused.MaxHeld {
		t.Fatalf("%+v, want one task after more than %s", q.created, refused.MaxHeld)
	}
	purgeRefused(string(q.created[0].Body))
	if len(q.created) != 1 {
		t.Errorf("%d tasks, want none after the last", len(q.created))
	}
}

// A deletion also takes its user from the hot users of the app: those that are stored, and those
// that a process still holds in memory.
func TestPurgeRemovesHotUsers(t *testing.T) {
	s := functiontest.Start(t)
	b := s.Backends.ForWorker()
	b.Queue = &tasks{}
	today := usage.DayOf(b.Now())
	count := func(user string, events int) {
		b.Usage.Events(functiontest.App, events, func(int) string { return user })
	}
	count("ann", 3)
	must.Succeed(t, b.Usage.Flush(t.Context()))
	count("ann", 1)
	count("bob", 2)
	body := fmt.Sprintf(`{"app":"shop","userToken":"ann","deletedUntil":%d}`, b.Now().UnixMilli())
	if status, answer := functiontest.Call(worker.New(b), "", "POST", purge.Kind.Path, body); status != 200 {
		t.Fatal(status, answer)
	}
	for _, when := range []string{"after the purge", "after the next flush"} {
		users, err := b.Store.Usage.HotUsers(t.Context(), functiontest.App, today-1, today+1)
		if err != nil || slices.ContainsFunc(users, func(u usage.User) bool { return u.Token == "ann" }) {
			t.Errorf("%s: %v, %v", when, users, err)
		}
		must.Succeed(t, b.Usage.Flush(t.Context()))
	}
	users, err := b.Store.Usage.HotUsers(t.Context(), functiontest.App, today-1, today+1)
	if err != nil || len(users) != 1 || users[0] != (usage.User{Token: "bob", Events: 2}) {
		t.Errorf("%v, %v: want bob alone", users, err)
	}
}

// A build follows an import also if the task that looks again runs before its
// time by the worker's clock. First tasks of several imports share the one that
// looks again.
func TestImportedRunsEarly(t *testing.T) {
	s, q := functiontest.Start(t), &tasks{}
	last := time.Now()
	must.Succeed(t, s.Backends.Store.Crowd.NoteImport(t.Context(), functiontest.App, "", last))
	b := s.Backends.ForWorker()
	b.Queue = q
	b.Now = func() time.Time { return last.Add(afterimport.Quiet - time.Millisecond) }
	h := worker.New(b)
	look := func(body string, created int) {
		t.Helper()
		if status, answer := functiontest.Call(h, "", "POST", afterimport.Kind.Path, body); status != 200 || answer != `{"started":false}` || len(q.created) != created {
			t.Fatalf("%d %s, %d tasks; want %d", status, answer, len(q.created), created)
		}
	}
	look(`{"app":"shop"}`, 1)
	look(`{"app":"shop","index":"none"}`, 1) // no objects were loaded into it
	look(`{"app":"shop"}`, 1)
	look(string(q.created[0].Body), 2)
	look(string(q.created[0].Body), 2) // a retry
	look(string(q.created[1].Body), 3)
}

func TestNightly(t *testing.T) {
	s := functiontest.Start(t)
	functiontest.Check(t, worker.New(s.Backends.ForWorker()),
		functiontest.Ask("", "POST", "/nightly", `{"spread":"2 hours"}`, 422, "spread must be a duration from 0s to 24h0m0s"),
		functiontest.Ask("", "POST", "/nightly", `{"app":"shop","except":["shop"]}`, 422, "app and except cannot both be given"),
		functiontest.Ask("", "POST", "/nightly", `{"app":"elsewhere"}`, 404, "No app"),
		functiontest.Ask("", "POST", "/nightly", `{"except":["shop"]}`, 200, `{"apps":0}`),
		functiontest.Ask("", "POST", "/nightly", `{"full":"yes"}`, 422, `and \"full\":true`),
		functiontest.Ask("", "POST", "/nightly", `{"spread":"24h"}`, 200, `{"apps":1}`),
	)
	must.Succeed(t, s.Idle(t.Context()))
	functiontest.Check(t, worker.New(s.Backends.ForWorker()),
		functiontest.Ask("", "POST", "/nightly", `{"app":"shop","full":true}`, 200, `{"apps":1}`),
	)
	must.Succeed(t, s.Idle(t.Context()))
	jobs, err := s.Backends.Recompute.List(t.Context(), functiontest.App, 10)
	if err != nil || len(jobs) != 2 || !strings.HasSuffix(jobs[0].ID, "-full") {
		t.Errorf("recomputes %+v, %v: want the nightly one and a full one", jobs, err)
	}
}

// The night of an app also enqueues what its move waits for.
func TestNightlyResumesMoves(t *testing.T) {
	s, err := stack.Start(t.Context(), stack.Options{Apps: []stack.App{{ID: functiontest.App, Key: "all"}}, Regions: []string{"eu", "us"}, ConfigTTL: time.Minute, Life: time.Minute})
	must.Succeed(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.Backends.Moves.Start(t.Context(), functiontest.App, "us"); err != nil {
		t.Fatal(err)
	}
	b, q := s.Backends.ForWorker(), &tasks{}
	b.Moves.Queue = q
	functiontest.Check(t, worker.New(b), functiontest.Ask("", "POST", "/nightly/app", `{"app":"shop","night":"2026-11-29"}`, 200, `"app":"shop"`))
	if len(q.created) != 1 || q.created[0].Path != b.Moves.Plans().Path {
		t.Errorf("the round creates %+v, want the task of the move", q.created)
	}
}
