package crowdbuild_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/race"
)

func TestBuildEqualsReference(t *testing.T) {
	for name, work := range map[string]crowdbuild.Work{
		"one run a shard":  {},
		"one run a user":   {MaxDifferent: -1},
		"runs at any time": {MaxDifferent: 20},
		"runs by objects":  {MaxNamed: 3000}, // no user names more
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, 11, work)
			h.fill(1)
			j := h.build()
			h.WantState(j.ID, job.Done, "")
			h.wantBuilt(j, shoes, nil)
			h.wantBuilt(j, hats, nil)
			if c := job.CountsOf[crowdbuild.Counts](j.Totals.Counts); c.Users != 11 || j.Totals.PlannedUsers != 11 || c.Unknown == 0 || c.Counted >= c.Events {
				t.Errorf("counts %+v of %d users", c, j.Totals.PlannedUsers)
			}
			h.group = 100
			// The next build replaces the statistics, and keeps those of before.
			first, _, _ := h.read(shoes)
			h.fill(2)
			j = h.build()
			h.wantBuilt(j, shoes, nil)
			second, _, _ := h.read(shoes)
			j = h.build()
			h.wantBuilt(j, hats, nil)
			third, _, _ := h.read(shoes)
			if second.Previous != first.Current.Name || third.Previous != second.Current.Name {
				t.Errorf("previous generations %q and %q, want %q and %q", second.Previous, third.Previous, first.Current.Name, second.Current.Name)
			}
			if names, runs := h.generations(shoes); !slices.Equal(names, []string{second.Current.Name, third.Current.Name}) || runs {
				t.Errorf("generations %q, runs left: %v; want the last two without runs", names, runs)
			}
		})
	}
}

// A shard whose time or memory ends after each user continues in the next task,
// also within a group of users that are read together.
func TestBuildInManyTasks(t *testing.T) {
	for name, c := range map[string]struct{ group, different int }{"time": {}, "memory": {group: 100, different: -1}} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, 7, crowdbuild.Work{MaxDifferent: c.different})
			h.group = c.group
			h.Runner.Budget = time.Second
			h.fill(3)
			j := h.build()
			h.WantState(j.ID, job.Done, "")
			h.wantBuilt(j, shoes, nil)
			h.wantBuilt(j, hats, nil)
			if len(h.Tasks) < 7+j.Totals.Shards || j.Totals.Counts["users"] != 7 {
				t.Errorf("%d tasks for %d shards, %d users visited", len(h.Tasks), j.Totals.Shards, j.Totals.Counts["users"])
			}
		})
	}
}

// One request fails, or the process ends there. Until the build is done, readers
// have the statistics of before; afterwards those of the build, without rows of
// anything else.
func TestFaultAtEveryRequest(t *testing.T) {
	// The builds of a cause try every step-th request, from a first one.
	step := race.Or(27, 54)
	for i, c := range []struct {
		name  string
		cause func(context.Context) jobtest.Fault
	}{
		{"fails", func(context.Context) jobtest.Fault { return jobtest.FailBefore }},
		{"the process ends", jobtest.Dies},
		{"ends, but it was done", func(ctx context.Context) jobtest.Fault { jobtest.Dies(ctx); return jobtest.FailAfter }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, 5, crowdbuild.Work{MaxDifferent: 30})
			h.fill(4)
			before := h.build()
			calls := step
			for at := i * step / 3; at < calls; at += step {
				calls = 0
				h.Gate = func(ctx context.Context, _ string) jobtest.Fault {
					calls++
					switch {
					case calls-1 == at:
						return c.cause(ctx)
					case calls%50 == 0:
						h.checkWhole(before)
					}
					return jobtest.Alive(ctx)
				}
				j := h.start(t.Context())
				h.Drain()
				h.Gate = nil
				h.WantState(j.ID, job.Done, "")
				h.wantBuilt(j, shoes, nil)
				h.wantBuilt(j, hats, nil)
				if names, runs := h.generations(shoes); len(names) != 2 || runs {
					t.Errorf("generations %q, runs left: %v", names, runs)
				}
				if t.Failed() {
					t.Fatalf("with call %d", at)
				}
				before = j
			}
			if calls < 100 {
				t.Errorf("only %d calls were tried", calls)
			}
		})
	}
}

// checkWhole checks that the statistics of an index are whole: those of an
// earlier build, or of its successor.
func (h *harness) checkWhole(before job.Job) {
	h.t.Helper()
	m, x, _ := h.read(shoes)
	if m.Current.Job == before.ID && m.Current.Events != x.Events || len(x.Counts) == 0 || len(x.Frequencies) != 3 {
		h.t.Errorf("the statistics of %s are not whole: %+v", m.Current.Job, x)
	}
}

// An index that has lost its objects gets statistics without any.
func TestClearedIndex(t *testing.T) {
	h := newHarness(t, 3, crowdbuild.Work{})
	h.fill(9)
	h.build()
	if err := h.store.Catalog.ClearIndex(t.Context(), app, shoes); err != nil {
		t.Fatal(err)
	}
	j := h.build()
	h.WantState(j.ID, job.Done, "")
	m, x, objects := h.read(shoes)
	if m.Current.Job != j.ID || x.Objects != 0 || len(x.Counts)+len(x.Frequencies)+len(objects) != 0 || x.Highest != 0 {
		t.Errorf("statistics of an empty index: %+v, %d objects with pairs", x, len(objects))
	}
	h.wantBuilt(j, hats, nil)
}

// Without users the build is done too.
func TestNoUsers(t *testing.T) {
	h := newHarness(t, 0, crowdbuild.Work{})
	j := h.build()
	h.WantState(j.ID, job.Done, "")
	h.wantBuilt(j, shoes, nil)
}
