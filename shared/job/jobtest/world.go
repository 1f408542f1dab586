// Package jobtest is a world for tests of jobs and of what they do to users: an app
// with its users, jobs in memory, and a queue that keeps to its contract. Whatever
// a runner does to it goes through a gate, where a test may stop it or have it
// fail. It is a package of its own because every work over all users is tested in
// it, whichever package does it. Everything lives in memory and ends with the test.
package jobtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/strategy"
)

// App is the app whose users there are.
const App = "shop"

// Noon is when a world begins.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// World is the app, its users, and all that a runner needs. It takes a second for a
// user. It is used by one goroutine at a time.
type World struct {
	T      T
	Runner *job.Runner
	Jobs   job.Jobs // without the gate
	Apps   config.Store
	Now    time.Time
	Clock  func() time.Time
	Gate   func(ctx context.Context, what string) Fault

	Users map[string]*User
	Tasks []*Task // in the order in which they were created

	// Poisoned is a user who cannot be worked on, and Poison the error of it.
	Poisoned string
	Poison   error

	mu    sync.Mutex // the queue's: apps may be started side by side
	names map[string]bool
}

// T is what a world needs of a test, its own or one of many that are drawn.
type T interface {
	Helper()
	Context() context.Context
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
}

// Fault is what happens to a call.
type Fault int

// A call is made, or the caller is told that it failed, though it may have been.
const (
	None       Fault = iota
	FailBefore       // nothing is done, and the caller is told so
	FailAfter        // it is done, and the caller is told that it is not
)

// ErrFault is in the error of a call that the gate had fail.
var ErrFault = errors.New("an injected fault")

// Call does something to the world, unless the gate has it fail.
func (w *World) Call(ctx context.Context, what string, do func() error) error {
	f := None
	if w.Gate != nil {
		f = w.Gate(ctx, what)
	}
	if f == FailBefore {
		return fmt.Errorf("%s: %w", what, ErrFault)
	}
	err := do()
	if f == FailAfter {
		return fmt.Errorf("%s: %w", what, ErrFault)
	}
	return err
}

type processKey struct{}

// process is one attempt at something.
type process struct{ dead bool }

// Process is the context of an attempt that may die.
func Process(ctx context.Context) context.Context {
	return context.WithValue(ctx, processKey{}, &process{})
}

// Dies ends the process of an attempt: nothing it does from here on happens.
func Dies(ctx context.Context) Fault {
	if p, ok := ctx.Value(processKey{}).(*process); ok {
		p.dead = true
	}
	return FailBefore
}

// Alive is None, unless the process of the attempt has ended.
func Alive(ctx context.Context) Fault {
	if p, ok := ctx.Value(processKey{}).(*process); ok && p.dead {
		return FailBefore
	}
	return None
}

// New makes a world with users named a, b, c ... of whom every fourth is not known.
// A strategy of version 1 is set, and long in force. Its runner has the work of the
// world itself.
func New(t T, users int, cfg job.Config) *World {
	w := &World{
		T: t, Jobs: job.NewMemory(), Apps: config.NewMemory(), Now: Noon,
		Users: map[string]*User{}, names: map[string]bool{}, Poison: errors.New("the user is poisoned"),
		Clock: func() time.Time { return time.Now().Add(time.Hour) },
	}
	for i := range users {
		w.Users[string(rune('a'+i))] = &User{Known: i%4 != 3, Events: int64(1000 + i)}
	}
	if err := w.Apps.CreateApp(t.Context(), config.App{ID: App, RetentionDays: 90}); err != nil {
		t.Fatal(err)
	}
	w.SetStrategy(1)
	parts := w.Parts(cfg)
	parts.Name, parts.Work, parts.Stale = "test", gatedWork{w}, "users are still of another version"
	w.Runner = job.New(parts)
	return w
}

// Parts are what a runner of the world is made of, but for its name and work.
func (w *World) Parts(cfg job.Config) job.Runner {
	return job.Runner{
		Config: cfg, Jobs: gatedJobs{w, w.Jobs}, Apps: gatedApps{w}, Queue: gatedQueue{w}, Users: gatedUsers{w},
		Settle: 10 * time.Second, Now: func() time.Time { return w.Now }, Log: slog.New(slog.DiscardHandler),
		Every: -1, Clock: func() time.Time { return w.Clock() },
	}
}

// SetStrategy sets another strategy for each score.
func (w *World) SetStrategy(score int) {
	w.T.Helper()
	if _, _, err := w.Apps.SetStrategy(w.T.Context(), App, strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: score}},
	}); err != nil {
		w.T.Fatal(err)
	}
}

// Find is a job as it is answered.
func (w *World) Find(id string) job.Job {
	w.T.Helper()
	j, err := w.Runner.Find(w.T.Context(), App, id)
	if err != nil {
		w.T.Fatal(err)
	}
	return j
}

// WantState checks how a job has ended.
func (w *World) WantState(id string, want job.State, why string) job.Job {
	w.T.Helper()
	j := w.Find(id)
	if j.State != want || !strings.Contains(j.Error, why) || j.State.Ended() == j.FinishedAt.IsZero() {
		w.T.Errorf("%s is %s, error %q, finished %v; want %s, %q", id, j.State, j.Error, j.FinishedAt, want, why)
	}
	return j
}

// WantDone checks that a job has done every user and counted each once.
func (w *World) WantDone(id string) job.Job {
	w.T.Helper()
	j := w.WantCurrent(id)
	var want job.Totals
	var faults []string
	for name, u := range w.Users {
		want.PlannedUsers++
		want.Visited++
		want.Changed++
		if u.Known {
			want.Users++
		}
		if u.Waits {
			want.Left++
		}
		want.Events += u.Events
		if u.Fault != "" {
			want.Faulty++
			faults = append(faults, u.fault(name))
		}
	}
	want.Shards, want.Done = j.Totals.Shards, j.Totals.Shards
	if j.Totals != want {
		w.T.Errorf("%s counts %+v, want %+v", id, j.Totals, want)
	}
	slices.Sort(faults)
	if got, err := w.Jobs.Faults(w.T.Context(), App, id, 1000); err != nil || !slices.Equal(got, faults) {
		w.T.Errorf("%s tells of faults, error %v (-want +got):\n%s", id, err, cmp.Diff(faults, got))
	}
	return j
}

// WantCurrent checks that a job is done and every user carries its version.
func (w *World) WantCurrent(id string) job.Job {
	w.T.Helper()
	j := w.WantState(id, job.Done, "")
	for name, u := range w.Users {
		if u.Version != j.StrategyVersion {
			w.T.Errorf("%s is done, but %s has version %d, not %d", id, name, u.Version, j.StrategyVersion)
		}
	}
	w.wantCovered(id)
	return j
}

// wantCovered checks that the shards cover every token once.
func (w *World) wantCovered(id string) {
	w.T.Helper()
	from := ""
	for n := 0; ; n++ {
		s, err := w.Jobs.Shard(w.T.Context(), App, id, n)
		if err != nil || s.From != from {
			w.T.Fatalf("shard %d of %s begins at %q, error %v; want %q", n, id, s.From, err, from)
		}
		if from = s.To; from == "" {
			return
		}
	}
}
