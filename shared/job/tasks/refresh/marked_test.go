package refresh_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/job/tasks/refresh"
	"github.com/affinityengine/affinity/shared/queue"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func task(t *testing.T, user string, window time.Duration, now time.Time) queue.Task {
	t.Helper()
	k, err := refresh.Task(refresh.Request{App: "shop", User: user}, window, now)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The marks of a user in one window share a task, which is due at the end of the window.
// Another window, user or length of windows gives another name.
func TestTaskOfWindow(t *testing.T) {
	const window = 2 * time.Second
	start := startOf(t, "ann", window)
	first := task(t, "ann", window, start)
	if first.Delay != window || !first.Refresh || first.App != "shop" || first.Path != refresh.Kind.Path {
		t.Errorf("at the start of a window: %+v", first)
	}
	if same := task(t, "ann", window, start.Add(1500*time.Millisecond)); same.Name != first.Name || same.Delay != 500*time.Millisecond {
		t.Errorf("later in the window: %+v, want the same name in 0.5 s", same)
	}
	for what, other := range map[string]queue.Task{
		"next window":    task(t, "ann", window, start.Add(window)),
		"other user":     task(t, "bob", window, start),
		"other length":   task(t, "ann", time.Second, start.Add(time.Second)),
		"shorter length": task(t, "ann", time.Second, start),
	} {
		if other.Name == first.Name {
			t.Errorf("%s has the same name", what)
		}
	}
	if r, err := refresh.Kind.Decode(first.Body); err != nil || r != (refresh.Request{App: "shop", User: "ann"}) {
		t.Errorf("decoded %+v, %v", r, err)
	}
}

// startOf returns the start of a user's first window after noon.
func startOf(t *testing.T, user string, window time.Duration) time.Time {
	return noon.Add(task(t, user, window, noon).Delay)
}

// The windows of different users end at different times, spread over the window.
func TestUsersEndSpread(t *testing.T) {
	const window, users = 10 * time.Second, 1000
	var tenths [10]int
	for i := range users {
		at := noon.Add(task(t, fmt.Sprint("u", i), window, noon).Delay)
		tenths[at.Sub(noon)%window/time.Second]++
	}
	for i, n := range tenths {
		if n < users/20 || n > users/5 {
			t.Errorf("%d of %d users end in tenth %d of the window", n, users, i)
		}
	}
}

func TestMalformedTasksAreRefused(t *testing.T) {
	for _, body := range []string{``, `{`, `{"app":"shop"}`, `{"app":"a,b","userToken":"u"}`, `{"app":"shop","userToken":"a,b"}`} {
		if r, err := refresh.Kind.Decode([]byte(body)); err == nil {
			t.Errorf("%q decoded as %+v", body, r)
		}
	}
}

// tasks counts calls by user, and fails those of one.
type tasks struct{ calls map[string]int }

var errAway = errors.New("away")

func (q *tasks) Create(_ context.Context, k queue.Task) error {
	q.calls[string(k.Body)]++
	if string(k.Body) == `{"app":"shop","userToken":"bob"}` {
		return errAway
	}
	return nil
}

// A process asks for the task of a user and window once, unless that failed. An error
// stops nobody.
func TestProcessAsksOnceAWindow(t *testing.T) {
	q, now := &tasks{map[string]int{}}, noon
	e := refresh.New(q, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	app := config.App{ID: "shop", Limits: limit.Numbers{WriteWindowMs: 2000}}
	for range 3 {
		e.Enqueue(t.Context(), app, []string{"bob"})
		e.Enqueue(t.Context(), app, []string{"ann"})
	}
	now = now.Add(2 * time.Second)
	e.Enqueue(t.Context(), app, []string{"ann"})
	if ann, bob := q.calls[`{"app":"shop","userToken":"ann"}`], q.calls[`{"app":"shop","userToken":"bob"}`]; ann != 2 || bob != 3 {
		t.Errorf("ann's tasks were asked for %d times, bob's %d times; want 2 and 3", ann, bob)
	}
	counts := map[string]int64{}
	e.Each(func(name, _ string, read func() int64) { counts[name] = read() })
	if counts["affinity.window_tasks"] != 2 || counts["affinity.window_task_faults"] != 3 {
		t.Errorf("counted %v", counts)
	}
}
