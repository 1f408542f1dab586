package recompute_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/recompute"
)

// However deliveries of tasks run into each other, the same task more than once at
// a time, late ones among them, and whichever calls fail or processes end
// meanwhile: in the end the job is done and every user counts once.
func TestInterleavings(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := recompute.Config{
			ShardUsers: rapid.IntRange(1, 4).Draw(rt, "users a shard"),
			Budget:     time.Duration(rapid.IntRange(1, 6).Draw(rt, "seconds a task")) * time.Second,
			Attempts:   1 << 30,
		}
		w := started(rt, rapid.IntRange(0, 8).Draw(rt, "users"), cfg)
		for _, name := range slices.Sorted(maps.Keys(w.users)) {
			w.users[name].relapses = max(0, rapid.IntRange(-6, 3).Draw(rt, "relapses of "+name))
		}
		s := &stage{w: w, events: make(chan bool)}
		w.gate = s.gate
		for range rapid.IntRange(0, 120).Draw(rt, "steps") {
			s.step(rt)
		}
		for len(s.actors) > 0 {
			s.resume(0, none)
		}
		w.gate = nil
		w.drain()
		if s.newcomers == 0 {
			w.wantDone("strategy-1")
		}
		// How many of the newcomers are counted depends on when they came.
		w.wantCurrent("strategy-1")
	})
}

// stage has deliveries run one call at a time, each when it is told to.
type stage struct {
	w         *world
	newcomers int
	actors    []*actor
	events    chan bool // the actor that was told to go on has come to its next call; false: to its end
}

// actor is one delivery under way.
type actor struct {
	task    *task
	proceed chan fault
	dead    bool
}

type actorKey struct{}

// gate waits until the actor is told what becomes of its call.
func (s *stage) gate(ctx context.Context, _ string) fault {
	a, ok := ctx.Value(actorKey{}).(*actor)
	if !ok {
		return none
	}
	if a.dead {
		return failBefore
	}
	s.events <- true
	return <-a.proceed
}

// step lets something happen.
func (s *stage) step(rt *rapid.T) {
	const most = 3
	if rapid.IntRange(0, 30).Draw(rt, "newcomer") == 0 {
		s.newcomers++
		s.w.users[rapid.StringMatching(`[a-j][a-j]`).Draw(rt, "name")] = &user{known: true, version: 1}
	}
	if len(s.actors) == 0 || len(s.actors) < most && rapid.IntRange(0, 5).Draw(rt, "begin") == 0 {
		tasks := s.w.waiting()
		if len(tasks) == 0 || rapid.IntRange(0, 4).Draw(rt, "late") == 0 {
			tasks = s.w.tasks
		}
		s.begin(rapid.SampledFrom(tasks).Draw(rt, "task"))
		return
	}
	i := rapid.IntRange(0, len(s.actors)-1).Draw(rt, "who")
	what := rapid.SampledFrom([]fault{none, none, none, none, none, none, none, none, failBefore, failAfter}).Draw(rt, "what")
	if what == failBefore {
		s.actors[i].dead = rapid.Bool().Draw(rt, "dies")
	}
	s.resume(i, what)
}

// begin delivers a task and stops it at its first call.
func (s *stage) begin(k *task) {
	a := &actor{task: k, proceed: make(chan fault)}
	s.actors = append(s.actors, a)
	go func() {
		retries := k.retries
		if _, err := s.w.run(context.WithValue(s.w.t.Context(), actorKey{}, a), k); err == nil {
			k.over = true // also where it was delivered twice and the other fails
		} else {
			k.retries = retries + 1
		}
		s.events <- false
	}()
	<-s.events
}

// resume lets an actor make its call, and stops it at the next.
func (s *stage) resume(i int, what fault) {
	s.actors[i].proceed <- what
	if more := <-s.events; !more {
		s.actors = slices.Delete(s.actors, i, i+1)
	}
}
