package crowdbuild_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/crowd"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/crowdbuild"
	"github.com/affinityengine/affinity/shared/job/jobtest"
)

func TestBuildEqualsReference(t *testing.T) {
	for name, work := range map[string]crowdbuild.Work{
		"one run a shard":  {},
		"one run a user":   {MaxDifferent: -1},
		"runs at any time": {MaxDifferent: 20},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, 11, work)
			h.fill(1)
			j := h.build()
			h.WantState(j.ID, job.Done, "")
			h.wantBuilt(j, shoes, nil)
			h.wantBuilt(j, hats, nil)
			if c := crowdbuild.CountsOf(j.Totals.Counts); c.Visited != 11 || j.Totals.PlannedUsers != 11 || c.Unknown == 0 || c.Counted >= c.Events {
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
			if len(h.Tasks) < 7+j.Totals.Shards || j.Totals.Visited != 7 {
				t.Errorf("%d tasks for %d shards, %d users visited", len(h.Tasks), j.Totals.Shards, j.Totals.Visited)
			}
		})
	}
}

// One request fails, or the process ends there. Until the build is done, readers
// have the statistics of before; afterwards those of the build, without rows of
// anything else.
func TestFaultAtEveryRequest(t *testing.T) {
	// The builds of a cause try every step-th request, from a first one.
	const step = 9
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

// A build that ends without its swap leaves rows that the next one drops.
func TestUnfinishedBuildIsDropped(t *testing.T) {
	for _, want := range []job.State{job.Superseded, job.Cancelled, job.Failed} {
		t.Run(string(want), func(t *testing.T) {
			h := newHarness(t, 7, crowdbuild.Work{})
			h.fill(6)
			before := h.build()
			lost := h.start(t.Context())
			for n := len(h.Tasks); len(h.Waiting()) > 0 && len(h.Tasks) < n+8; {
				if _, err := h.Deliver(t.Context(), h.Waiting()[0]); err != nil {
					t.Fatal(err)
				}
			}
			switch want {
			case job.Superseded:
				h.SetStrategy(2)
			case job.Cancelled:
				if _, err := h.Runner.Cancel(t.Context(), app, lost.ID); err != nil {
					t.Fatal(err)
				}
			case job.Failed:
				h.Gate = func(_ context.Context, what string) jobtest.Fault {
					if strings.HasPrefix(what, "/google.bigtable") {
						return jobtest.FailBefore
					}
					return jobtest.None
				}
			}
			h.Drain()
			h.Gate = nil
			h.WantState(lost.ID, want, "")
			h.wantBuilt(before, shoes, nil)
			if names, _ := h.generations(shoes); len(names) != 2 {
				t.Errorf("generations %q, want one and the rows of the lost build", names)
			}
			after := h.build()
			h.WantState(after.ID, job.Done, "")
			h.wantBuilt(after, shoes, nil)
			if names, runs := h.generations(shoes); len(names) != 2 || runs {
				t.Errorf("generations %q, runs left: %v; want the last two without runs", names, runs)
			}
		})
	}
}

// A newer build supersedes one that builds nothing more, and only such a one.
func TestNewerBuildTakesPlace(t *testing.T) {
	h := newHarness(t, 3, crowdbuild.Work{})
	h.fill(7)
	start := func(index string) job.Job {
		t.Helper()
		h.Now = h.Now.Add(time.Second)
		j, err := h.runner.StartManual(t.Context(), app, index)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	ofShoes, ofHats := start(shoes), start(hats)
	h.WantState(ofShoes.ID, job.Planning, "")
	ofAll := start("")
	h.WantState(ofShoes.ID, job.Superseded, ofAll.ID)
	h.WantState(ofHats.ID, job.Superseded, ofAll.ID)
	again := start(shoes)
	h.WantState(ofAll.ID, job.Planning, "")
	h.Drain()
	h.WantState(ofAll.ID, job.Done, "")
	h.WantState(again.ID, job.Done, "")
	h.wantBuilt(ofAll, hats, nil)
	h.wantBuilt(again, shoes, nil) // although the older build has ended too
}

// No build follows an import if one of all indexes has started since.
func TestBuildSinceTheImportIsEnough(t *testing.T) {
	h := newHarness(t, 3, crowdbuild.Work{})
	h.fill(13)
	at := h.Now
	h.Now = h.Now.Add(time.Second)
	manual, err := h.runner.StartManual(t.Context(), app, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []job.State{job.Planning, job.Done} {
		h.WantState(manual.ID, state, "")
		if j, err := h.runner.StartImport(t.Context(), app, at); err != nil || j.ID != manual.ID {
			t.Errorf("while the build is %s, the import starts %s, %v", state, j.ID, err)
		}
		h.Drain()
	}
	h.Now = h.Now.Add(time.Second)
	if _, err := h.runner.StartManual(t.Context(), app, shoes); err != nil { // of one index only
		t.Fatal(err)
	}
	if j, err := h.runner.StartImport(t.Context(), app, h.Now.Add(-time.Millisecond)); err != nil || j.ID == manual.ID {
		t.Errorf("a later import starts %s, %v", j.ID, err)
	}
}

func TestAnOlderBuildReplacesNothing(t *testing.T) {
	h := newHarness(t, 3, crowdbuild.Work{})
	h.fill(8)
	older, err := h.runner.StartManual(t.Context(), app, "")
	if err != nil {
		t.Fatal(err)
	}
	tasks := slices.Clone(h.Tasks)
	h.Now = h.Now.Add(time.Second)
	newer, err := h.runner.StartManual(t.Context(), app, shoes)
	if err != nil {
		t.Fatal(err)
	}
	for len(h.Find(newer.ID).FinishedAt.String()) == 0 || !h.Find(newer.ID).State.Ended() {
		for _, k := range h.Waiting() {
			if !slices.Contains(tasks, k) {
				_, _ = h.Deliver(t.Context(), k)
			}
		}
	}
	h.Drain()
	h.WantState(older.ID, job.Done, "")
	h.wantBuilt(newer, shoes, nil)
	h.wantBuilt(older, hats, nil)
}

func TestNothingToBuild(t *testing.T) {
	h := newHarness(t, 3, crowdbuild.Work{})
	for _, index := range []string{shoes, hats} {
		if err := h.store.ClearIndex(t.Context(), app, index); err != nil {
			t.Fatal(err)
		}
	}
	for _, index := range []string{"", shoes} {
		if _, err := h.runner.StartManual(t.Context(), app, index); !errors.Is(err, crowdbuild.ErrNoObjects) {
			t.Errorf("a build of %q: %v, want ErrNoObjects", index, err)
		}
	}
	if err := h.runner.Nightly(t.Context(), []string{app}, time.Hour); err != nil || len(h.Tasks) != 0 {
		t.Errorf("the nightly round: %v, %d tasks", err, len(h.Tasks))
	}
}

// An index that has lost its objects gets statistics without any.
func TestClearedIndex(t *testing.T) {
	h := newHarness(t, 3, crowdbuild.Work{})
	h.fill(9)
	h.build()
	if err := h.store.ClearIndex(t.Context(), app, shoes); err != nil {
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

func TestNightlyBuilds(t *testing.T) {
	h := newHarness(t, 3, crowdbuild.Work{})
	h.fill(10)
	for range 3 { // the scheduler may call twice
		if err := h.runner.Nightly(t.Context(), []string{app}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	h.Drain()
	jobs, err := h.Jobs.List(t.Context(), app, 10)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("jobs %+v, %v; want one", jobs, err)
	}
	h.wantBuilt(jobs[0], shoes, nil)
}

// Above the limit a build starts again with a sample of the users, and the next
// one begins with the sample.
func TestManyEventsAreSampled(t *testing.T) {
	const users = 26
	h := newHarness(t, users, crowdbuild.Work{MaxEvents: 100})
	h.fill(11)
	events := int64(0)
	for _, of := range h.events {
		events += int64(len(of))
	}
	j := h.build()
	h.WantState(j.ID, job.Superseded, "reads a sample")
	sampled := h.WantState(j.ID+"-sampled", job.Done, "")
	share := job.ParamsOf[crowdbuild.Params](sampled).Share
	if want := 100 / float64(events); share < want/2 || share > want*2 {
		t.Errorf("share %g, want about %g", share, want)
	}
	selected := func(user string) bool { return crowdbuild.Selects(user, share) }
	h.wantBuilt(sampled, shoes, selected)
	h.wantBuilt(sampled, hats, selected)
	m, x, _ := h.read(shoes)
	if !m.Current.Sampled() || !x.Sampled || sampled.Totals.Events >= events {
		t.Errorf("manifest %+v does not say that %d of %d events were read", m.Current, sampled.Totals.Events, events)
	}
	next := h.build()
	h.WantState(next.ID, job.Done, "")
	p := job.ParamsOf[crowdbuild.Params](next)
	if !p.Sampled() {
		t.Errorf("the next build reads a share of %g", p.Share)
	}
	h.wantBuilt(next, shoes, func(user string) bool { return crowdbuild.Selects(user, p.Share) })

	// An app whose events fit again is read whole.
	h.use(crowdbuild.Work{MaxEvents: 2 * events})
	whole := h.build()
	h.WantState(whole.ID, job.Done, "")
	h.wantBuilt(whole, hats, nil)
}

func TestSamples(t *testing.T) {
	for _, share := range []float64{0, 0.01, 0.3, 0.999, 1} {
		n := 0
		for i := range 10_000 {
			user := fmt.Sprintf("user-%d", i)
			if crowdbuild.Selects(user, share) {
				n++
				if !crowdbuild.Selects(user, min(1, share*1.5)) {
					t.Fatalf("%s is in a sample of %g, but not in a larger one", user, share)
				}
			}
		}
		if want := share * 10_000; float64(n) < want-150 || float64(n) > want+150 {
			t.Errorf("a share of %g contains %d of 10000 users", share, n)
		}
	}
}

// With a cut of five pairs a run, the bounds hold and are stored.
func TestStoredBoundHolds(t *testing.T) {
	h := newHarness(t, 20, crowdbuild.Work{Kept: 5, MaxDifferent: -1})
	h.fill(12)
	j := h.build()
	h.WantState(j.ID, job.Done, "")
	_, _, objects := h.read(shoes)
	_, full := h.expected(j, shoes, nil)
	inexact := 0
	for id, o := range objects {
		if !o.Exact() {
			inexact++
		}
		counts := map[string]int64{}
		for _, p := range o.Pairs {
			counts[p.ObjectID] = p.Count
		}
		for _, p := range full[id].Pairs {
			if n := counts[p.ObjectID]; n > p.Count || p.Count > n+o.Bound {
				t.Errorf("pair %s, %s: %d, bound %d; it occurs %d times", id, p.ObjectID, n, o.Bound, p.Count)
			}
		}
		if o.Events != full[id].Events {
			t.Errorf("%s has %d events, want %d", id, o.Events, full[id].Events)
		}
	}
	if inexact == 0 {
		t.Error("a cut of five lost nothing: the test shows nothing")
	}
	if crowd.Kept <= crowd.Best {
		t.Error("a run keeps fewer pairs than statistics list")
	}
}
