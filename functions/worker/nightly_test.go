package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/backend/jobs"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/tasks/night"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/queue"
)

// called are documents of which every call goes through a hook, which may count it, wait, or
// make it fail.
type called struct {
	documents.Store
	hook func() error
}

func through[T any](c called, do func() (T, error)) (answer T, err error) {
	if err := c.hook(); err != nil {
		return answer, err
	}
	return do()
}

func (c called) Get(ctx context.Context, path string) (documents.Document, error) {
	return through(c, func() (documents.Document, error) { return c.Store.Get(ctx, path) })
}

func (c called) Find(ctx context.Context, q documents.Query) ([]documents.Document, error) {
	return through(c, func() ([]documents.Document, error) { return c.Store.Find(ctx, q) })
}

func (c called) Count(ctx context.Context, q documents.Query) (int, error) {
	return through(c, func() (int, error) { return c.Store.Count(ctx, q) })
}

func (c called) Commit(ctx context.Context, writes ...documents.Write) error {
	_, err := through(c, func() (any, error) { return nil, c.Store.Commit(ctx, writes...) })
	return err
}

// called makes every call of the configuration, of jobs and of the queue go through a hook.
func calledBackends(tb testing.TB, s *stack.Stack, kept documents.Store, q queue.Queue, hook func() error) worker.Backends {
	tb.Helper()
	b, docs := s.Backends.ForWorker(), called{kept, hook}
	b.Documents, b.Config = docs, config.New(docs, docs, slog.New(slog.DiscardHandler))
	b.Queue = hooked{q, hook}
	b.Jobs = jobs.Open(b.Base, b.Queue, job.Settings{ShardUsers: 100, Budget: time.Minute, Attempts: 3, Concurrency: 8}, b.Profiles, nil)
	return b
}

type hooked struct {
	queue.Queue
	hook func() error
}

func (h hooked) Create(ctx context.Context, t queue.Task) error {
	if err := h.hook(); err != nil {
		return err
	}
	return h.Queue.Create(ctx, t)
}

// names is a queue that knows only the names of its tasks.
type names struct {
	mu      sync.Mutex
	created map[string]queue.Task
}

func newNames() *names { return &names{created: map[string]queue.Task{}} }

func (q *names) Create(_ context.Context, t queue.Task) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, there := q.created[t.Name]; !there {
		q.created[t.Name] = t
	}
	return nil
}

// kinds returns the apps with a task of the night, sorted, and the number of other tasks.
func (q *names) nights(tb testing.TB) (apps []string, others int) {
	tb.Helper()
	for _, task := range q.created {
		if task.Path != night.Kind.Path {
			others++
			continue
		}
		request, err := night.Kind.Decode(task.Body)
		must.Succeed(tb, err)
		apps = append(apps, request.App)
	}
	slices.Sort(apps)
	return apps, others
}

// fill makes apps in documents, and returns their ids.
func fill(tb testing.TB, n int) (kept documents.Store, apps []string) {
	tb.Helper()
	kept = documents.NewMemory()
	store := config.New(kept, kept, slog.New(slog.DiscardHandler))
	for i := range n {
		apps = append(apps, fmt.Sprintf("app-%05d", i))
		must.Succeed(tb, store.CreateApp(tb.Context(), config.App{ID: apps[i], RetentionDays: 90}))
	}
	return kept, apps
}

func post(b worker.Backends, ctx context.Context, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	worker.New(b).ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)).WithContext(ctx))
	return w
}

const (
	manyApps = 5000
	callTime = 20 * time.Millisecond
)

// The round of 5,000 apps makes two requests of the configuration, and creates tasks together.
// The clock is that of synctest: it counts the calls that wait for each other, whatever the
// machine.
func TestRoundOfManyApps(t *testing.T) {
	s := functiontest.Start(t)
	kept, apps := fill(t, manyApps)
	q := newNames()
	synctest.Test(t, func(t *testing.T) {
		var calls, now, most atomic.Int64
		b := calledBackends(t, s, kept, q, func() error {
			calls.Add(1)
			for n := now.Add(1); n > most.Load(); {
				most.Store(n)
			}
			defer now.Add(-1)
			<-time.After(callTime)
			return nil
		})
		for _, attempt := range []string{"first", "second"} {
			calls.Store(0)
			begin := time.Now()
			w := post(b, t.Context(), "/nightly", `{"spread":"2h"}`)
			if took := time.Since(begin); w.Code != 200 || took > 2*time.Second {
				t.Errorf("the %s round takes %v: %d %s", attempt, took, w.Code, w.Body)
			}
			if calls.Load() != manyApps+2 || most.Load() > 64 {
				t.Errorf("the %s round makes %d calls, %d at a time", attempt, calls.Load(), most.Load())
			}
		}
	})
	got, others := q.nights(t)
	if diff := cmp.Diff(apps, got); diff != "" || others != 0 {
		t.Errorf("%d other tasks; apps with a task (-want +got):\n%s", others, diff)
	}
	delays := map[time.Duration]bool{}
	for _, task := range q.created {
		delays[task.Delay] = true
		if task.Delay < 0 || task.Delay >= 2*time.Hour || !task.Short || len(task.Body) > 200 {
			t.Fatalf("task %+v with %s", task, task.Body)
		}
	}
	if len(delays) != manyApps {
		t.Errorf("the tasks begin at %d times", len(delays))
	}
}

// A round whose process dies leaves some apps without a task. The next attempt creates these,
// and no task twice.
func TestRoundKilledMidway(t *testing.T) {
	s := functiontest.Start(t)
	kept, apps := fill(t, 150)
	for _, at := range []int64{0, 1, 2, 3, 70, 151} {
		q := newNames()
		ctx, die := context.WithCancel(t.Context())
		var calls atomic.Int64
		dying := calledBackends(t, s, kept, q, func() error {
			if calls.Add(1) > at {
				die()
				return errors.New("the process has ended")
			}
			return nil
		})
		if w := post(dying, ctx, "/nightly", ""); w.Code < 500 {
			t.Errorf("death at call %d: %d %s", at, w.Code, w.Body)
		}
		if got, _ := q.nights(t); int64(len(got)) != max(0, at-2) {
			t.Errorf("death at call %d: %d apps have a task", at, len(got))
		}
		alive := calledBackends(t, s, kept, q, func() error { return nil })
		if w := post(alive, t.Context(), "/nightly", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `{"apps":150}`) {
			t.Errorf("after the death at call %d: %d %s", at, w.Code, w.Body)
		}
		if got, others := q.nights(t); !slices.Equal(got, apps) || others != 0 || len(q.created) != len(apps) {
			t.Errorf("after the death at call %d: tasks of %d apps, %d others", at, len(got), others)
		}
	}
}

// A queue that takes no task of some apps keeps nobody from the others, and the caller hears of it.
func TestRoundWithAFaultyQueue(t *testing.T) {
	s := functiontest.Start(t)
	kept, apps := fill(t, 20)
	q := newNames()
	b := calledBackends(t, s, kept, q, func() error { return nil })
	b.Queue = refusing{q, apps[3]}
	if w := post(b, t.Context(), "/nightly", ""); w.Code < 500 {
		t.Errorf("%d %s, want the scheduler to try again", w.Code, w.Body)
	}
	if got, _ := q.nights(t); len(got) != 19 || slices.Contains(got, apps[3]) {
		t.Errorf("tasks of %v", got)
	}
}

type refusing struct {
	queue.Queue
	app string
}

func (r refusing) Create(ctx context.Context, t queue.Task) error {
	if t.App == r.app {
		return errors.New("no such queue")
	}
	return r.Queue.Create(ctx, t)
}

// The task of an app may die at each of its calls. The next attempt leaves the same jobs and
// tasks as one that nothing disturbed.
func TestNightKilledAtEveryCall(t *testing.T) {
	s := functiontest.Start(t)
	kept, apps := fill(t, 100)
	const tonight = `{"app":"%s","night":"2026-11-29"}`
	want := []string(nil)
	for at := range int64(len(apps)) {
		app, q, calls := apps[at], newNames(), int64(0)
		ctx, die := context.WithCancel(t.Context())
		dying := calledBackends(t, s, kept, q, func() error {
			if calls++; at > 0 && calls >= at { // the first app's task lives
				die()
				return errors.New("the process has ended")
			}
			return nil
		})
		first := post(dying, ctx, night.Kind.Path, fmt.Sprintf(tonight, app))
		alive := calledBackends(t, s, kept, q, func() error { return nil })
		for range 2 {
			if w := post(alive, t.Context(), night.Kind.Path, fmt.Sprintf(tonight, app)); w.Code != 200 {
				t.Fatalf("after a death at call %d: %d %s", at, w.Code, w.Body)
			}
		}
		var got []string
		for _, task := range q.created {
			got = append(got, task.Path+" "+strings.ReplaceAll(string(task.Body), app, "APP"))
		}
		slices.Sort(got)
		if at == 0 {
			if want = got; len(want) != 2 || first.Code != 200 {
				t.Fatalf("%d %s, tasks %v; want a recompute and an audit", first.Code, first.Body, want)
			}
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("tasks after a death at call %d (-want +got):\n%s", at, diff)
		}
		if first.Code == 200 {
			t.Logf("an app without data has %d calls", at-1)
			return
		}
	}
	t.Error("the task has too many calls for this test")
}

// The night of a deleted app goes on with its deletion, until its id is free.
func TestNightOfADeletedApp(t *testing.T) {
	s := functiontest.Start(t)
	b, q := s.Backends.ForWorker(), newNames()
	if _, err := b.Config.DeleteApp(t.Context(), functiontest.App); err != nil { // and the process dies
		t.Fatal(err)
	}
	b.Queue = q
	if w := post(b, t.Context(), "/nightly", ""); w.Code != 200 {
		t.Fatal(w.Code, w.Body)
	}
	if got, _ := q.nights(t); !slices.Equal(got, []string{functiontest.App}) {
		t.Fatalf("tasks of %v", got)
	}
	for _, task := range q.created {
		if w := post(b, t.Context(), task.Path, string(task.Body)); w.Code != 200 {
			t.Fatal(w.Code, w.Body)
		}
	}
	if status, err := b.Deletions.Status(t.Context(), functiontest.App); err != nil || status.State == "" {
		t.Errorf("the deletion is %+v, %v; want a job", status, err)
	}
	functiontest.Check(t, worker.New(b),
		functiontest.Ask("", "POST", "/nightly/app", `{"app":"elsewhere","night":"2026-11-29"}`, 200, `"app":"elsewhere"`),
		functiontest.Ask("", "POST", "/nightly/app", `{"app":"elsewhere","night":"today"}`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/nightly/app", `{"app":"a,b","night":"2026-11-29"}`, 200, `{"dropped":`),
		functiontest.Ask("", "POST", "/nightly/app", `{"app":"shop","night":"2026-11-29","auditSeconds":-1}`, 200, `{"dropped":`),
	)
}

// BenchmarkRound measures POST /nightly for 5,000 apps where each call of the configuration and
// of the queue takes 20 ms, and the task that it leaves for each app:
//
//	go test ./functions/worker -run - -bench Round -benchtime 3x
func BenchmarkRound(b *testing.B) {
	s := functiontest.Start(b)
	kept, apps := fill(b, manyApps)
	var calls atomic.Int64
	backends := calledBackends(b, s, kept, newNames(), func() error {
		calls.Add(1)
		time.Sleep(callTime)
		return nil
	})
	do := func(path, body string) {
		b.Helper()
		if w := post(backends, b.Context(), path, body); w.Code != 200 {
			b.Fatal(w.Code, w.Body)
		}
	}
	b.Run("apps=5000", func(b *testing.B) {
		for b.Loop() {
			do("/nightly", "")
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/round")
	})
	b.Run("app", func(b *testing.B) {
		calls.Store(0)
		for i := 0; b.Loop(); i++ {
			do(night.Kind.Path, fmt.Sprintf(`{"app":%q,"night":"2026-11-29"}`, apps[i]))
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/app")
		b.ReportMetric(float64(calls.Load())/float64(b.N), "calls/app")
	})
}
