// Package jobtest tests jobs and their Work. Its Harness has an app with users,
// a store of jobs in memory, and a queue that creates a task only once for a
// name. Each call that a runner makes passes a gate, where a test can hold the
// call or make it fail. TestJobs is the suite that every store of jobs must
// pass.
//
// It is a package of its own because the packages that define jobs use it too.
// Everything lives in memory and ends with the test.
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

	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// App is the app of a harness.
const App = "shop"

// Noon is the time at which a harness begins.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Harness is an app, its users, and everything that a runner needs. Work on a
// user takes a second of its clock. Only one goroutine may use it at a time.
type Harness struct {
	T      T
	Runner *job.Runner
	Jobs   job.Jobs // without the gate
	Config *config.Store
	Now    time.Time
	Clock  func() time.Time
	Gate   func(ctx context.Context, what string) Fault
	// Version returns the version that a job gives to users. New sets it for
	// jobs with Params.
	Version func(job.Job) int64

	Users map[string]*User
	Tasks []*Task // in the order of their creation

	// VerifyTakes is the time that the verification of a user takes.
	VerifyTakes time.Duration

	// Poisoned is a user whose work fails with Poison.
	Poisoned string
	Poison   error

	mu    sync.Mutex // of the queue: the jobs of several apps start concurrently
	names map[string]bool
}

// T is what a harness needs of a *testing.T or *rapid.T.
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

// A call is made, or returns an error with or without an effect.
const (
	None       Fault = iota
	FailBefore       // an error without an effect
	FailAfter        // an error in spite of the effect
)

// ErrFault is in the error of a call that the gate made fail.
var ErrFault = errors.New("an injected fault")

// Call runs do, unless the gate makes the call fail.
func (h *Harness) Call(ctx context.Context, what string, do func() error) error {
	f := None
	if h.Gate != nil {
		f = h.Gate(ctx, what)
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

// process is a process that runs one attempt.
type process struct{ dead bool }

// Process returns the context of an attempt in a process of its own, which Dies
// can end.
func Process(ctx context.Context) context.Context {
	return context.WithValue(ctx, processKey{}, &process{})
}

// Dies ends the process of an attempt: its calls have no effect from here on.
func Dies(ctx context.Context) Fault {
	if p, ok := ctx.Value(processKey{}).(*process); ok {
		p.dead = true
	}
	return FailBefore
}

// Alive returns None, or FailBefore if the process of the attempt has ended.
func Alive(ctx context.Context) Fault {
	if p, ok := ctx.Value(processKey{}).(*process); ok && p.dead {
		return FailBefore
	}
	return None
}

// DieAt makes the process that makes the call with a number, from 0, die there, before or
// after its effect. It returns a function that counts the calls.
func (h *Harness) DieAt(at int, f Fault) func() int {
	calls := 0
	h.Gate = func(ctx context.Context, _ string) Fault {
		if Alive(ctx) != None {
			return FailBefore
		}
		if calls++; calls-1 != at {
			return None
		}
		Dies(ctx)
		return f
	}
	return func() int { return calls }
}

// FaultAt makes the call with a number, from 0, end with the fault that cause returns, and counts the
// calls. The later calls of a process that the cause has ended fail.
func (h *Harness) FaultAt(at int, calls *int, cause func(context.Context) Fault) {
	*calls = 0
	h.Gate = func(ctx context.Context, _ string) Fault {
		if *calls++; *calls-1 == at {
			return cause(ctx)
		}
		return Alive(ctx)
	}
}

// Dial returns options of a client of Bigtable whose requests pass the gate.
func (h *Harness) Dial() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
			invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			call := func() error { return invoke(ctx, method, req, reply, cc, opts...) }
			if _, ours := req.(interface{ GetTableName() string }); !ours {
				return call() // the client asks for its configuration at times of its own
			}
			return h.Call(ctx, method, call)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn,
			method string, open grpc.Streamer, opts ...grpc.CallOption) (s grpc.ClientStream, err error) {
			err = h.Call(ctx, method, func() error {
				s, err = open(ctx, desc, cc, method, opts...)
				return err
			})
			return s, err
		}),
	}
}

// New makes a harness with users named a, b, c ...; every fourth user is not
// known. Its strategy has version 1 and has propagated. Its runner gives users
// the version of Params.
func New(t T, c job.Collection, users int, cfg job.Settings) *Harness {
	w := &Harness{
		T: t, Jobs: job.In(documents.NewMemory(), c), Config: config.NewMemory(), Now: Noon,
		Users: map[string]*User{}, names: map[string]bool{}, Poison: errors.New("the user is poisoned"),
		Clock:   func() time.Time { return time.Now().Add(time.Hour) },
		Version: func(j job.Job) int64 { return job.ParamsOf[Params](j).Version },
	}
	for i := range users {
		w.Users[string(rune('a'+i))] = &User{Known: i%4 != 3, Events: int64(1000 + i)}
	}
	must.Succeed(t, w.Config.CreateApp(t.Context(), config.App{ID: App, RetentionDays: 90}))
	w.SetStrategy(1)
	parts := w.Parts(cfg)
	parts.Name, parts.Work, parts.StaleText = "test", gatedWork{w}, "users are still of another version"
	w.Runner = job.New(parts)
	return w
}

// Parts returns a runner of the harness without name and work.
func (h *Harness) Parts(cfg job.Settings) job.Runner {
	return job.Runner{
		Settings: cfg, Jobs: gatedJobs{h, h.Jobs}, Config: gatedConfig{h}, Queue: gatedQueue{h}, Users: gatedUsers{h, ""},
		UsersIn:     func(region string) job.Users { return gatedUsers{h, region} },
		Propagation: 10 * time.Second, Now: func() time.Time { return h.Now }, Log: slog.New(slog.DiscardHandler),
		CheckpointEvery: -1, Clock: func() time.Time { return h.Clock() },
	}
}

// SetStrategy sets a strategy, a different one for each score.
func (h *Harness) SetStrategy(score int) {
	h.T.Helper()
	if _, _, err := h.Config.SetStrategy(h.T.Context(), App, strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: score}},
	}); err != nil {
		h.T.Fatal(err)
	}
}

// Find returns a job with its current totals.
func (h *Harness) Find(id string) job.Job {
	h.T.Helper()
	j, err := h.Runner.Find(h.T.Context(), App, id)
	must.Succeed(h.T, err)
	return j
}

// WantState checks the state of a job and its error.
func (h *Harness) WantState(id string, want job.State, why string) job.Job {
	h.T.Helper()
	j := h.Find(id)
	if j.State != want || !strings.Contains(j.Error, why) || j.State.Ended() == j.FinishedAt.IsZero() {
		h.T.Errorf("%s is %s, error %q, finished %v; want %s, %q", id, j.State, j.Error, j.FinishedAt, want, why)
	}
	return j
}

// WantDone checks that a job is done and counted every user once, and that its shards cover every token once.
func (h *Harness) WantDone(id string) job.Job {
	h.T.Helper()
	h.wantCovered(id)
	return h.WantUsers(id)
}

// WantUsers checks that a job is done and counted every user once.
func (h *Harness) WantUsers(id string) job.Job {
	h.T.Helper()
	j := h.wantVersions(id)
	var want job.Totals
	var counts Counts
	var faults []string
	for name, u := range h.Users {
		want.PlannedUsers++
		counts.add(u, true)
		if u.Fault != "" {
			faults = append(faults, u.fault(name))
		}
	}
	want.Shards, want.Done = j.Totals.Shards, j.Totals.Shards
	want.Counts = job.Count(counts)
	if diff := cmp.Diff(want, j.Totals); diff != "" {
		h.T.Errorf("totals of %s (-want +got):\n%s", id, diff)
	}
	slices.Sort(faults)
	if got, err := h.Jobs.Faults(h.T.Context(), App, id, 1000); err != nil || !slices.Equal(got, faults) {
		h.T.Errorf("faults of %s, error %v (-want +got):\n%s", id, err, cmp.Diff(faults, got))
	}
	return j
}

// WantCurrent checks that a job is done and every user has its version.
func (h *Harness) WantCurrent(id string) job.Job {
	h.T.Helper()
	h.wantCovered(id)
	return h.wantVersions(id)
}

func (h *Harness) wantVersions(id string) job.Job {
	h.T.Helper()
	j := h.WantState(id, job.Done, "")
	for name, u := range h.Users {
		if version := h.Version(j); u.Version != version {
			h.T.Errorf("%s is done, but %s has version %d, not %d", id, name, u.Version, version)
		}
	}
	return j
}

// wantCovered checks that the shards cover every token once.
func (h *Harness) wantCovered(id string) {
	h.T.Helper()
	from := ""
	for n := 0; ; n++ {
		s, err := h.Jobs.Shard(h.T.Context(), App, id, n)
		if err != nil || s.From != from {
			h.T.Fatalf("shard %d of %s begins at %q, error %v; want %q", n, id, s.From, err, from)
		}
		if from = s.To; from == "" {
			return
		}
	}
}
