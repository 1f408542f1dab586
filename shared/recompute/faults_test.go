package recompute_test

import (
	"context"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/recompute"
)

type attemptKey struct{}

// attempt is one delivery of a task.
type attempt struct{ dead bool }

// dies ends the process of an attempt: nothing it does from here on happens.
func dies(ctx context.Context) fault {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		a.dead = true
	}
	return failBefore
}

// alive is none, unless the process of the attempt has ended.
func alive(ctx context.Context) fault {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok && a.dead {
		return failBefore
	}
	return none
}

// Whichever call fails, before or after it had its effect, alone or with all that
// follow in its process: started and delivered again, the job gets done and every
// user counts once.
func TestAFaultAtEveryCall(t *testing.T) {
	for name, cause := range map[string]func(context.Context) fault{
		"fails":                 func(context.Context) fault { return failBefore },
		"fails, but was done":   func(context.Context) fault { return failAfter },
		"the process ends":      dies,
		"two processes end":     dies,
		"ends, but it was done": func(ctx context.Context) fault { dies(ctx); return failAfter },
	} {
		t.Run(name, func(t *testing.T) {
			calls := 1
			for at := 0; at < calls; at++ {
				w := newWorld(t, 7, tight)
				w.users["b"].relapses, w.users["f"].relapses = 1, 2
				calls = 0
				w.gate = func(ctx context.Context, _ string) fault {
					calls++
					if calls-1 == at || name == "two processes end" && calls-1 == at+7 {
						return cause(ctx)
					}
					return alive(ctx)
				}
				for {
					w.now = w.now.Add(time.Millisecond)
					if _, err := w.runner.StartStrategy(context.WithValue(t.Context(), attemptKey{}, &attempt{}), app); err == nil {
						break
					}
				}
				w.drain()
				w.gate = nil
				w.wantDone("strategy-1")
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

// The same for a job that has a failing shard, and for one that is superseded.
func TestAFaultAtEveryCallToTheOtherEnds(t *testing.T) {
	for _, want := range []recompute.State{recompute.Failed, recompute.Superseded} {
		t.Run(string(want), func(t *testing.T) {
			calls := 1
			for at := 0; at < calls; at++ {
				w := newWorld(t, 7, tight)
				calls = 0
				w.gate = func(ctx context.Context, _ string) fault {
					if calls++; want == recompute.Superseded && calls == 40 {
						w.setStrategy(2)
					}
					if calls-1 == at {
						return dies(ctx)
					}
					return alive(ctx)
				}
				if want == recompute.Failed {
					w.poisoned = "e"
				}
				for {
					w.now = w.now.Add(time.Millisecond)
					if _, err := w.runner.StartStrategy(context.WithValue(t.Context(), attemptKey{}, &attempt{}), app); err == nil {
						break
					}
				}
				w.drain()
				w.gate = nil
				w.wantState("strategy-1", want, "")
				if t.Failed() {
					t.Fatalf("with call %d", at)
				}
			}
		})
	}
}

// Two deliveries of the planning that see different users agree on the shards:
// those that are written first.
func TestPlanningAtTheSameTime(t *testing.T) {
	for at := range 4 {
		w := started(t, 10, roomy)
		creations := 0
		w.gate = func(_ context.Context, what string) fault {
			if what != "create shard" {
				return none
			}
			if creations++; creations-1 == at {
				w.users[string(rune('a'+3*at))+"a"] = &user{known: true, events: 5}
				w.gate = func(ctx context.Context, what string) fault {
					if what == "create shard" {
						if creations++; creations > at+2 {
							return dies(ctx) // when it has written one
						}
					}
					return alive(ctx)
				}
				_, _ = w.run(context.WithValue(t.Context(), attemptKey{}, &attempt{}), w.tasks[0])
				w.gate = nil
			}
			return none
		}
		w.drain()
		w.wantDone("strategy-1")
	}
}
