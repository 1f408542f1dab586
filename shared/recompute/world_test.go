package recompute_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/recompute"
	"github.com/affinityengine/affinity/shared/strategy"
)

// world is an app with its users, an engine that takes a second for a user, a
// queue that keeps to its contract, and jobs in memory. Whatever a runner does to
// it goes through a gate, where a test may stop it or have it fail.
//
// It is used by one goroutine at a time.
type world struct {
	t      tester
	runner *recompute.Runner
	jobs   recompute.Jobs // without the gate
	apps   config.Store
	now    time.Time
	clock  func() time.Time
	gate   func(ctx context.Context, what string) fault

	users map[string]*user
	mu    sync.Mutex // the queue's: the nightly round starts apps side by side
	tasks []*task    // in the order in which they were created
	names map[string]bool

	poisoned string // a user who cannot be computed
}

// tester is what a world needs of a test, its own or one of many that are drawn.
type tester interface {
	Helper()
	Context() context.Context
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
}

// user is what the fake engine knows of one.
type user struct {
	known   bool
	events  int64
	version int64 // of his profile
	// relapses is how often a process with an old configuration writes his profile
	// after it was computed.
	relapses int
}

// task is one in the queue.
type task struct {
	queue.Task
	retries int
	over    bool
}

// fault is what happens to a call.
type fault int

const (
	none       fault = iota
	failBefore       // nothing is done, and the caller is told so
	failAfter        // it is done, and the caller is told that it is not
)

var errFault = errors.New("an injected fault")

// call does something to the world, unless the gate has it fail.
func (w *world) call(ctx context.Context, what string, do func() error) error {
	f := none
	if w.gate != nil {
		f = w.gate(ctx, what)
	}
	if f == failBefore {
		return fmt.Errorf("%s: %w", what, errFault)
	}
	err := do()
	if f == failAfter {
		return fmt.Errorf("%s: %w", what, errFault)
	}
	return err
}

const app = "shop"

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// newWorld makes one with users named a, b, c ... of whom every fourth is not
// known. A strategy of version 1 is set, and long in force.
func newWorld(t tester, users int, cfg recompute.Config) *world {
	w := &world{
		t: t, jobs: recompute.NewMemory(), apps: config.NewMemory(), now: noon,
		users: map[string]*user{}, names: map[string]bool{},
		clock: func() time.Time { return time.Now().Add(time.Hour) },
	}
	for i := range users {
		w.users[string(rune('a'+i))] = &user{known: i%4 != 3, events: int64(1000 + i)}
	}
	if err := w.apps.CreateApp(t.Context(), config.App{ID: app, RetentionDays: 90}); err != nil {
		t.Fatal(err)
	}
	w.setStrategy(1)
	w.runner = recompute.New(recompute.Runner{
		Config: cfg, Jobs: gatedJobs{w, w.jobs}, Apps: gatedApps{w}, Queue: gatedQueue{w}, Users: gatedUsers{w}, Engine: gatedEngine{w},
		Settle: 10 * time.Second, Now: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler),
	}).Checkpointing(0, func() time.Time { return w.clock() })
	return w
}

func (w *world) setStrategy(score int) {
	w.t.Helper()
	if _, _, err := w.apps.SetStrategy(w.t.Context(), app, strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: score}},
	}); err != nil {
		w.t.Fatal(err)
	}
}

// deliver carries a task out once. A task that succeeds is over.
func (w *world) deliver(ctx context.Context, k *task) (recompute.Outcome, error) {
	o, err := w.run(context.WithValue(ctx, attemptKey{}, &attempt{}), k)
	if err != nil {
		k.retries++
	} else {
		k.over = true
	}
	return o, err
}

func (w *world) run(ctx context.Context, k *task) (recompute.Outcome, error) {
	if k.Path == recompute.PlanPath {
		t, err := recompute.DecodePlan(k.Body)
		if err != nil {
			w.t.Fatal(err)
		}
		return w.runner.Plan(ctx, t, k.retries)
	}
	t, err := recompute.DecodeShard(k.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.runner.Shard(ctx, t, k.retries)
}

// waiting returns the tasks that are not over.
func (w *world) waiting() []*task {
	return slices.DeleteFunc(slices.Clone(w.tasks), func(k *task) bool { return k.over })
}

// drain delivers tasks, the oldest first, until none is left.
func (w *world) drain() {
	w.t.Helper()
	for n := 0; ; n++ {
		left := w.waiting()
		if len(left) == 0 {
			return
		}
		if n == 10_000 {
			w.t.Fatalf("after %d deliveries there are still %d tasks, the first %s", n, len(left), left[0].Body)
		}
		_, _ = w.deliver(w.t.Context(), left[0]) // an error has it come again
	}
}

// find is a job as it is answered.
func (w *world) find(id string) recompute.Job {
	w.t.Helper()
	j, err := w.runner.Find(w.t.Context(), app, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// wantState checks how a job has ended.
func (w *world) wantState(id string, want recompute.State, why string) recompute.Job {
	w.t.Helper()
	j := w.find(id)
	if j.State != want || !strings.Contains(j.Error, why) || j.State.Ended() == j.FinishedAt.IsZero() {
		w.t.Errorf("%s is %s, error %q, finished %v; want %s, %q", id, j.State, j.Error, j.FinishedAt, want, why)
	}
	return j
}

// wantDone checks that a job has computed every user and counted each once.
func (w *world) wantDone(id string) recompute.Job {
	w.t.Helper()
	j := w.wantCurrent(id)
	var want recompute.Totals
	for _, u := range w.users {
		want.PlannedUsers++
		want.Visited++
		if u.known {
			want.Users++
		}
		want.Events += u.events
	}
	want.Shards, want.Done = j.Totals.Shards, j.Totals.Shards
	if j.Totals != want {
		w.t.Errorf("%s counts %+v, want %+v", id, j.Totals, want)
	}
	return j
}

// wantCurrent checks that a job is done and every user carries its version.
func (w *world) wantCurrent(id string) recompute.Job {
	w.t.Helper()
	j := w.wantState(id, recompute.Done, "")
	for name, u := range w.users {
		if u.version != j.StrategyVersion {
			w.t.Errorf("%s is done, but the profile of %s has version %d, not %d", id, name, u.version, j.StrategyVersion)
		}
	}
	w.wantCovered(id)
	return j
}

// wantCovered checks that the shards cover every token once.
func (w *world) wantCovered(id string) {
	w.t.Helper()
	from := ""
	for n := 0; ; n++ {
		s, err := w.jobs.Shard(w.t.Context(), app, id, n)
		if err != nil || s.From != from {
			w.t.Fatalf("shard %d of %s begins at %q, error %v; want %q", n, id, s.From, err, from)
		}
		if from = s.To; from == "" {
			return
		}
	}
}

type gatedEngine struct{ *world }

func (w gatedEngine) Recompute(ctx context.Context, a config.App, part profile.Part, o profile.RecomputeOptions,
	progress func(profile.Progress) error) (profile.Progress, error) {
	p := profile.Progress{Next: part.From}
	for !p.Done && (p.Next == part.From || w.now.Before(o.Until)) {
		if err := w.call(ctx, "engine", func() error { return w.compute(a, part, o, &p) }); err != nil {
			return p, err
		}
		if err := progress(p); err != nil {
			return p, err
		}
	}
	return p, nil
}

// compute does one user.
func (w *world) compute(a config.App, part profile.Part, o profile.RecomputeOptions, p *profile.Progress) error {
	part.From = p.Next
	names := w.within(part)
	if len(names) == 0 {
		p.Done = true
		return nil
	}
	if names[0] == w.poisoned {
		return errors.New("the user is poisoned")
	}
	u := w.users[names[0]]
	p.Users++
	if u.known {
		p.Known++
	}
	if !o.OnlyStale || u.version != a.StrategyVersion {
		p.Events += u.events
		if u.version = a.StrategyVersion; u.relapses > 0 {
			u.version, u.relapses = 0, u.relapses-1
		}
	}
	w.now = w.now.Add(time.Second)
	p.Next, p.Done = names[0]+"\x00", len(names) == 1
	return nil
}

// within returns the users of a part in their order.
func (w *world) within(part profile.Part) []string {
	var names []string
	for name := range w.users {
		if name >= part.From && (part.To == "" || name < part.To) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (w gatedEngine) Verify(ctx context.Context, a config.App, part profile.Part) (stale int64, err error) {
	err = w.call(ctx, "verify", func() error {
		for _, name := range w.within(part) {
			if w.users[name].version != a.StrategyVersion {
				stale++
			}
		}
		return nil
	})
	return stale, err
}

type gatedUsers struct{ *world }

func (w gatedUsers) ScanUserKeys(ctx context.Context, id, from, to string, fn func(string) error) error {
	if id != app {
		return nil // there may be other apps, without users
	}
	for _, name := range w.within(profile.Part{From: from, To: to}) {
		w.now = w.now.Add(time.Second)
		if err := fn(name); err != nil {
			return err
		}
	}
	return w.call(ctx, "scan", func() error { return nil })
}

type gatedApps struct{ *world }

func (w gatedApps) App(ctx context.Context, id string) (a config.App, err error) {
	err = w.call(ctx, "app", func() (err error) { a, err = w.apps.App(ctx, id); return err })
	return a, err
}

func (w gatedApps) Apps(ctx context.Context) (ids []string, err error) {
	err = w.call(ctx, "apps", func() (err error) { ids, err = w.apps.Apps(ctx); return err })
	return ids, err
}

type gatedQueue struct{ *world }

func (w gatedQueue) Create(ctx context.Context, k queue.Task) error {
	return w.call(ctx, "queue", func() error {
		if !json.Valid(k.Body) || k.Name == "" {
			w.t.Errorf("malformed task %q: %s", k.Name, k.Body)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.names[k.Name] {
			w.names[k.Name] = true
			w.tasks = append(w.tasks, &task{Task: k})
		}
		return nil
	})
}

// named returns the task of a shard and step, or of planning where shard is -1.
func (w *world) named(id string, shard, step int) *task {
	w.t.Helper()
	for _, k := range w.tasks {
		var body struct {
			Job   string
			Shard *int
			Step  int
		}
		if err := json.Unmarshal(k.Body, &body); err != nil {
			w.t.Fatal(err)
		}
		minusOne := -1
		if body.Job == id && *cmp.Or(body.Shard, &minusOne) == shard && body.Step == step {
			return k
		}
	}
	w.t.Fatalf("no task of shard %d, step %d of %s", shard, step, id)
	return nil
}
