package job_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
)

// Concurrent deliveries make their calls in random order. Tasks are delivered
// several times and late, calls fail and processes die. In the end the job is
// done and every user counts once.
func TestInterleavings(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := job.Settings{
			ShardUsers: rapid.IntRange(1, 4).Draw(rt, "users a shard"),
			Budget:     time.Duration(rapid.IntRange(1, 6).Draw(rt, "seconds a task")) * time.Second,
			Attempts:   1 << 30,
		}
		w := startedIn(rt, rapid.IntRange(0, 3).Draw(rt, "inFlight"), rapid.IntRange(0, 8).Draw(rt, "users"), cfg)
		w.VerifyTakes = time.Duration(rapid.IntRange(0, 6).Draw(rt, "seconds a verified user")) * time.Second
		for _, name := range slices.Sorted(maps.Keys(w.Users)) {
			w.Users[name].Relapses = max(0, rapid.IntRange(-6, 3).Draw(rt, "relapses of "+name))
			if rapid.IntRange(0, 3).Draw(rt, name+" is faulty") == 0 {
				w.Users[name].Fault, w.Users[name].Waits = "bent", true
			}
		}
		s := &scheduler{w: w, events: make(chan bool)}
		w.Gate = s.gate
		for range rapid.IntRange(0, 120).Draw(rt, "steps") {
			s.step(rt)
		}
		for len(s.actors) > 0 {
			s.resume(0, jobtest.None)
		}
		w.Gate = nil
		w.Drain()
		if s.newcomers == 0 {
			w.WantDone("strategy-1")
		}
		// How many of the new users are counted depends on when they were
		// added.
		w.WantCurrent("strategy-1")
	})
}

// scheduler runs deliveries one call at a time.
type scheduler struct {
	w         *jobtest.Harness
	newcomers int
	actors    []*actor
	events    chan bool // an actor has reached its next call; false: its end
}

// actor is one delivery under way.
type actor struct {
	task    *jobtest.Task
	proceed chan jobtest.Fault
	dead    bool
}

type actorKey struct{}

// gate waits until the scheduler decides the outcome of the actor's call.
func (s *scheduler) gate(ctx context.Context, _ string) jobtest.Fault {
	a, ok := ctx.Value(actorKey{}).(*actor)
	if !ok {
		return jobtest.None
	}
	if a.dead {
		return jobtest.FailBefore
	}
	s.events <- true
	return <-a.proceed
}

// step starts a delivery or resumes one.
func (s *scheduler) step(rt *rapid.T) {
	const most = 3
	often := append(make([]jobtest.Fault, 8), jobtest.FailBefore, jobtest.FailAfter) // None, eight times
	if rapid.IntRange(0, 30).Draw(rt, "newcomer") == 0 {
		s.newcomers++
		s.w.Users[rapid.StringMatching(`[a-j][a-j]`).Draw(rt, "name")] = &jobtest.User{Known: true, Version: 1}
	}
	if len(s.actors) == 0 || len(s.actors) < most && rapid.IntRange(0, 5).Draw(rt, "begin") == 0 {
		tasks := s.w.Waiting()
		if len(tasks) == 0 || rapid.IntRange(0, 4).Draw(rt, "late") == 0 {
			tasks = s.w.Tasks
		}
		s.begin(rapid.SampledFrom(tasks).Draw(rt, "task"))
		return
	}
	i := rapid.IntRange(0, len(s.actors)-1).Draw(rt, "who")
	what := rapid.SampledFrom(often).Draw(rt, "what")
	if what == jobtest.FailBefore {
		s.actors[i].dead = rapid.Bool().Draw(rt, "dies")
	}
	s.resume(i, what)
}

// begin delivers a task and stops it at its first call.
func (s *scheduler) begin(k *jobtest.Task) {
	a := &actor{task: k, proceed: make(chan jobtest.Fault)}
	s.actors = append(s.actors, a)
	go func() {
		retries := k.Retries
		if _, err := s.w.Run(context.WithValue(s.w.T.Context(), actorKey{}, a), k); err == nil {
			k.Over = true // even if the task was delivered twice and the other delivery fails
		} else {
			k.Retries = retries + 1
		}
		s.events <- false
	}()
	<-s.events
}

// resume lets an actor make its call, and stops it at the next.
func (s *scheduler) resume(i int, what jobtest.Fault) {
	s.actors[i].proceed <- what
	if more := <-s.events; !more {
		s.actors = slices.Delete(s.actors, i, i+1)
	}
}
