package job_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/race"
)

// One call fails, before or after its effect, alone or with all later calls of
// its process. After a retry the job is done and every user counts once.
func TestFaultAtEveryCall(t *testing.T) {
	for name, cause := range map[string]func(context.Context) jobtest.Fault{
		"fails":                 func(context.Context) jobtest.Fault { return jobtest.FailBefore },
		"fails, but was done":   func(context.Context) jobtest.Fault { return jobtest.FailAfter },
		"the process ends":      jobtest.Dies,
		"two processes end":     jobtest.Dies,
		"ends, but it was done": func(ctx context.Context) jobtest.Fault { jobtest.Dies(ctx); return jobtest.FailAfter },
	} {
		for inFlight := range 3 {
			t.Run(fmt.Sprintf("%s, %d in flight", name, inFlight), func(t *testing.T) {
				calls := 1
				for at := 0; at < calls; at += race.Or(1, 7) {
					w := jobtest.New(t, jobtest.Collection, 7, tight)
					w.Users["b"].Relapses, w.Users["f"].Relapses = 1, 2
					w.Users["c"].Fault, w.Users["f"].Fault, w.Users["f"].Waits = "bent", "broken", true
					calls = 0
					w.Gate = func(ctx context.Context, _ string) jobtest.Fault {
						calls++
						if calls-1 == at || name == "two processes end" && calls-1 == at+7 {
							return cause(ctx)
						}
						return jobtest.Alive(ctx)
					}
					untilStarted(t, w, inFlight)
					w.Drain()
					w.Gate = nil
					w.WantDone("strategy-1")
					if t.Failed() {
						t.Fatalf("with call %d", at)
					}
				}
				if calls < 100 {
					t.Errorf("only %d calls were tried", calls)
				}
			})
		}
	}
}

// The same for a job with a failing shard, and for a superseded job.
func TestFaultAtEveryCallUntilJobEnds(t *testing.T) {
	for _, want := range []job.State{job.Failed, job.Superseded} {
		for inFlight := range 2 {
			t.Run(fmt.Sprintf("%s, %d in flight", want, inFlight), func(t *testing.T) {
				calls := 1
				for at := 0; at < calls; at += race.Or(1, 7) {
					w := jobtest.New(t, jobtest.Collection, 7, tight)
					calls = 0
					w.Gate = func(ctx context.Context, _ string) jobtest.Fault {
						if calls++; want == job.Superseded && calls == 40 {
							w.SetStrategy(2)
						}
						if calls-1 == at {
							return jobtest.Dies(ctx)
						}
						return jobtest.Alive(ctx)
					}
					if want == job.Failed {
						w.Poisoned = "e"
					}
					untilStarted(t, w, inFlight)
					w.Drain()
					w.Gate = nil
					w.WantState("strategy-1", want, "")
					if t.Failed() {
						t.Fatalf("with call %d", at)
					}
				}
			})
		}
	}
}

// untilStarted starts a job as a client does that retries.
func untilStarted(t *testing.T, w *jobtest.Harness, inFlight int) {
	t.Helper()
	for {
		w.Now = w.Now.Add(time.Millisecond)
		if _, err := w.Runner.Start(jobtest.Process(t.Context()), draft(inFlight), 0); err == nil {
			return
		}
	}
}

// Two deliveries of the planning task that see different users end up with the
// same shards: those that are stored first.
func TestConcurrentPlanning(t *testing.T) {
	for at := range 4 {
		w := started(t, 10, roomy)
		creations := 0
		w.Gate = func(_ context.Context, what string) jobtest.Fault {
			if what != "create shard" {
				return jobtest.None
			}
			if creations++; creations-1 == at {
				w.Users[string(rune('a'+3*at))+"a"] = &jobtest.User{Known: true, Events: 5}
				w.Gate = func(ctx context.Context, what string) jobtest.Fault {
					if what == "create shard" {
						if creations++; creations > at+2 {
							return jobtest.Dies(ctx) // after it has stored one shard
						}
					}
					return jobtest.Alive(ctx)
				}
				_, _ = w.Run(jobtest.Process(t.Context()), w.Tasks[0])
				w.Gate = nil
			}
			return jobtest.None
		}
		w.Drain()
		w.WantDone("strategy-1")
	}
}
