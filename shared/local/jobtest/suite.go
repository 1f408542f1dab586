package jobtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/must"
)

// TestJobs checks that a store of jobs keeps what job.Jobs promises. open
// returns an empty store of jobs with Params.
func TestJobs(t *testing.T, open func(*testing.T) job.Jobs) {
	for _, tt := range []struct {
		name string
		run  func(*testing.T, job.Jobs)
	}{
		{"Create", testCreate},
		{"CreateRefused", testCreateRefused},
		{"States", testStates},
		{"Update", testUpdate},
		{"UpdatesAtOnce", testUpdatesAtOnce},
		{"List", testList},
		{"Before", testBefore},
		{"Shards", testShards},
		{"ShardsEnd", testShardsEnd},
		{"ShardUpdatesAtOnce", testShardUpdatesAtOnce},
		{"Expiry", testExpiry},
		{"ShardExpiry", testShardExpiry},
		{"Totals", testTotals},
		{"Faults", testFaults},
		{"Forget", testForget},
		{"Unknown", testUnknown},
		{"Cancelled", testCancelled},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, open(t)) })
	}
}

var begun = time.Date(2026, 11, 21, 3, 0, 0, 123456000, time.UTC)

// Draft returns a new job.
func Draft(app, id string) job.Job {
	return job.Job{
		App: app, ID: id, Kind: "backfill", State: job.Planning, Concurrency: 4, StartedAt: begun,
		Params: Params{
			Version: 7, OnlyStale: true,
			LogWindow: job.LogWindow{RetentionDays: 90, Since: begun.Add(-90 * 24 * time.Hour)},
		},
	}
}

// Create stores a job.
func Create(t *testing.T, s job.Jobs, j job.Job) {
	t.Helper()
	must.Succeed(t, s.Create(t.Context(), j))
}

// Same checks what a call returned.
func Same[T any](t *testing.T, what string, got T, err error, want T) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// WantError checks the error of a call.
func WantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func testCreate(t *testing.T, s job.Jobs) {
	want := Draft("shop", "strategy-7")
	late := want
	late.StartedAt = want.StartedAt.Add(999).In(time.FixedZone("", 3600)) // ns, which no store keeps
	Create(t, s, late)
	got, err := s.Job(t.Context(), "shop", "strategy-7")
	Same(t, "job", got, err, want)

	again := want
	again.Params = Params{Version: 8}
	WantError(t, "create it again", s.Create(t.Context(), again), job.ErrExists)
	got, err = s.Job(t.Context(), "shop", "strategy-7")
	Same(t, "job after the second creation", got, err, want)

	// Ids are unique within an app, and any app can have any id.
	for _, app := range []string{"other", "__x__", "A-b_9"} {
		Create(t, s, Draft(app, "strategy-7"))
		got, err := s.Job(t.Context(), app, "strategy-7")
		Same(t, app, got, err, Draft(app, "strategy-7"))
	}
}

func testCreateRefused(t *testing.T, s job.Jobs) {
	running := Draft("shop", "strategy-1")
	running.State = job.Running
	for _, j := range []job.Job{Draft("sh/op", "strategy-1"), Draft("", "strategy-1"), Draft("shop", ""),
		Draft("shop", "a/b"),
		Draft("shop", "strategy-"+strings.Repeat("1", 101)), Draft("shop", "__x__"), running} {
		if err := s.Create(t.Context(), j); err == nil || errors.Is(err, job.ErrExists) {
			t.Errorf("create %q of %q, %s: got error %v, want it refused", j.ID, j.App, j.State, err)
		}
	}
	jobs, err := s.List(t.Context(), "shop", 10)
	Same(t, "jobs", jobs, err, nil)
}

// Exactly the allowed changes of state are possible.
func testStates(t *testing.T, s job.Jobs) {
	states := []job.State{job.Planning, job.Running, job.Done, job.Failed, job.Superseded, job.Cancelled}
	ways := map[job.State][]job.State{ // how a job gets to a state
		job.Planning: {}, job.Running: {job.Running}, job.Done: {job.Running, job.Done},
		job.Failed: {job.Running, job.Failed}, job.Superseded: {job.Superseded}, job.Cancelled: {job.Cancelled},
	}
	allowed := "planning>running planning>failed planning>superseded planning>cancelled " +
		"running>done running>failed running>superseded running>cancelled"
	for i, from := range states {
		for k, to := range states {
			id := fmt.Sprintf("manual-%d-%d", i, k)
			Create(t, s, Draft("shop", id))
			for _, state := range ways[from] {
				move(t, s, id, state)
			}
			want := from
			got, err := s.Update(t.Context(), "shop", id, func(j *job.Job) error { j.State = to; return nil })
			switch {
			case strings.Contains(allowed, string(from+">"+to)):
				want = to
				if err != nil || got.State != to {
					t.Errorf("%s to %s: got %s, error %v", from, to, got.State, err)
				}
			case from.Ended():
				WantError(t, fmt.Sprintf("%s to %s", from, to), err, job.ErrEnded)
			case from != to && (err == nil || errors.Is(err, job.ErrEnded)):
				t.Errorf("%s to %s: got error %v, want it refused", from, to, err)
			}
			if now, err := s.Job(t.Context(), "shop", id); err != nil || now.State != want {
				t.Errorf("%s to %s: it is %s, error %v; want %s", from, to, now.State, err, want)
			}
		}
	}
}

func move(t *testing.T, s job.Jobs, id string, state job.State) {
	t.Helper()
	if _, err := s.Update(t.Context(), "shop", id, func(j *job.Job) error { j.State = state; return nil }); err != nil {
		t.Fatal(err)
	}
}

func testUpdate(t *testing.T, s job.Jobs) {
	Create(t, s, Draft("shop", "strategy-7"))
	Create(t, s, Draft("shop", "strategy-8"))
	want := Draft("shop", "strategy-7")
	want.State, want.PlanStep, want.Error, want.FinishedAt = job.Cancelled, 3, "why", begun.Add(time.Hour)
	want.Totals = job.Totals{Shards: 3, Done: 2, Failed: 1, PlannedUsers: 4, Stale: 8,
		Counts: job.Counts{"users": 5, "known": 6, "events": 7, "written": 9, "faulty": 11}}
	got, err := s.Update(t.Context(), "shop", "strategy-7", func(j *job.Job) error {
		j.State, j.PlanStep, j.Error, j.Totals = want.State, want.PlanStep, want.Error, want.Totals
		j.FinishedAt = want.FinishedAt.Add(1)
		return nil
	})
	Same(t, "result of Update", got, err, want)
	got, err = s.Job(t.Context(), "shop", "strategy-7")
	Same(t, "job", got, err, want)

	refused := errors.New("refused")
	_, err = s.Update(t.Context(), "shop", "strategy-8", func(j *job.Job) error { j.PlanStep = 9; return refused })
	WantError(t, "a change that returns an error", err, refused)
	got, err = s.Job(t.Context(), "shop", "strategy-8")
	Same(t, "job after it", got, err, Draft("shop", "strategy-8"))
}

// Concurrent updates all take effect.
func testUpdatesAtOnce(t *testing.T, s job.Jobs) {
	Create(t, s, Draft("shop", "strategy-7"))
	const n = 10
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			if _, err := s.Update(t.Context(), "shop", "strategy-7",
				func(j *job.Job) error { j.PlanStep++; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got, err := s.Job(t.Context(), "shop", "strategy-7"); err != nil || got.PlanStep != n {
		t.Errorf("got %d, error %v; want %d changes", got.PlanStep, err, n)
	}
}

func testList(t *testing.T, s job.Jobs) {
	none, err := s.List(t.Context(), "shop", 5)
	Same(t, "no jobs", none, err, nil)
	Create(t, s, Draft("other", "manual-1"))
	var all []job.Job
	for i, id := range []string{"nightly-2026-11-21", "strategy-10", "strategy-9", "manual-a", "manual-b"} {
		j := Draft("shop", id)
		j.StartedAt = begun.Add(time.Duration(min(i, 3)) * time.Hour) // the last two at the same time
		Create(t, s, j)
		all = append(all, j)
	}
	slices.Reverse(all)
	got, err := s.List(t.Context(), "shop", 100)
	Same(t, "all", got, err, all)
	got, err = s.List(t.Context(), "shop", 2)
	Same(t, "the newest two", got, err, all[:2])

	move(t, s, "manual-b", job.Superseded)
	move(t, s, "strategy-10", job.Cancelled)
	move(t, s, "nightly-2026-11-21", job.Running)
	all[4].State = job.Running
	got, err = s.Unfinished(t.Context(), "shop")
	Same(t, "unfinished", got, err, []job.Job{all[1], all[2], all[4]})
}

func testShards(t *testing.T, s job.Jobs) {
	Create(t, s, Draft("shop", "strategy-7"))
	Create(t, s, Draft("shop", "strategy-8"))
	_, err := s.LastShard(t.Context(), "shop", "strategy-7")
	WantError(t, "last shard of a job without shards", err, job.ErrNotFound)
	var all []job.Shard
	for n := range 12 { // beyond 10, where names and numbers could sort differently
		shard := job.Shard{N: n, From: fmt.Sprintf("u%02d", n), To: fmt.Sprintf("u%02d", n+1), State: job.ShardOpen,
			Next: fmt.Sprintf("u%02d", n), PlannedUsers: int64(n)}
		must.Succeed(t, s.CreateShard(t.Context(), "shop", "strategy-7", shard))
		all = append(all, shard)
		last, err := s.LastShard(t.Context(), "shop", "strategy-7")
		Same(t, "last", last, err, shard)
	}
	err = s.CreateShard(t.Context(), "shop", "strategy-7", job.Shard{N: 3, State: job.ShardOpen})
	WantError(t, "create shard 3 a second time", err, job.ErrExists)
	got, err := s.Shard(t.Context(), "shop", "strategy-7", 3)
	Same(t, "shard 3", got, err, all[3])

	want := all[3]
	want.Step, want.Pass, want.Next, want.Processed, want.LastTry = 1, 2, "u03x", true, true
	want.Counts, want.Stale = job.Counts{"users": 5, "known": 4, "events": 3, "written": 6, "waiting": 7, "faulty": 8}, 2
	want.Faults = []string{"u03: bent", "u03x: broken"}
	got, err = s.UpdateShard(t.Context(), "shop", "strategy-7", 3, func(s *job.Shard) error { *s = want; return nil })
	Same(t, "result of UpdateShard", got, err, want)
	got, err = s.Shard(t.Context(), "shop", "strategy-7", 3)
	Same(t, "changed shard", got, err, want)
	all[3] = want

	list, err := s.ShardsIn(t.Context(), "shop", "strategy-7", job.ShardOpen, 100)
	Same(t, "open shards", list, err, all)
	list, err = s.ShardsIn(t.Context(), "shop", "strategy-7", job.ShardOpen, 3)
	Same(t, "the first three", list, err, all[:3])
	list, err = s.ShardsIn(t.Context(), "shop", "strategy-8", job.ShardOpen, 100)
	Same(t, "of another job", list, err, nil)
}

// A shard that has ended never changes.
func testShardsEnd(t *testing.T, s job.Jobs) {
	Create(t, s, Draft("shop", "strategy-7"))
	for n, state := range []job.ShardState{job.ShardDone, job.ShardFailed} {
		shard := job.Shard{N: n, State: job.ShardOpen}
		must.Succeed(t, s.CreateShard(t.Context(), "shop", "strategy-7", shard))
		end := func(s *job.Shard) error { s.State, s.Error = state, "why"; return nil }
		shard.State, shard.Error = state, "why"
		got, err := s.UpdateShard(t.Context(), "shop", "strategy-7", n, end)
		Same(t, "end the shard", got, err, shard)
		reopen := func(s *job.Shard) error { s.State, s.Counts = job.ShardOpen, job.Counts{"users": 5}; return nil }
		_, err = s.UpdateShard(t.Context(), "shop", "strategy-7", n, reopen)
		WantError(t, "change an ended shard", err, job.ErrEnded)
		got, err = s.Shard(t.Context(), "shop", "strategy-7", n)
		Same(t, "ended shard", got, err, shard)
		list, err := s.ShardsIn(t.Context(), "shop", "strategy-7", state, 5)
		Same(t, "shards of its state", list, err, []job.Shard{shard})
	}
}

// Of concurrent changes to the same state of a shard exactly one succeeds.
func testShardUpdatesAtOnce(t *testing.T, s job.Jobs) {
	Create(t, s, Draft("shop", "strategy-7"))
	must.Succeed(t, s.CreateShard(t.Context(), "shop", "strategy-7", job.Shard{State: job.ShardOpen}))
	overtaken := errors.New("overtaken")
	const n = 8
	won := make([]bool, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			_, err := s.UpdateShard(t.Context(), "shop", "strategy-7", 0, func(s *job.Shard) error {
				if s.Step != 0 {
					return overtaken
				}
				s.Step, s.Counts = 1, s.Counts.Plus(job.Counts{"users": 1})
				return nil
			})
			if won[i] = err == nil; !won[i] && !errors.Is(err, overtaken) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got, err := s.Shard(t.Context(), "shop", "strategy-7", 0)
	if err != nil || got.Counts["users"] != 1 || got.Step != 1 {
		t.Errorf("got %+v, error %v; want one change", got, err)
	}
	if wins := len(slices.DeleteFunc(won, func(w bool) bool { return !w })); wins != 1 {
		t.Errorf("%d updates returned no error, want 1", wins)
	}
}

// The jobs of one app are deleted with their shards, and no others.
func testForget(t *testing.T, s job.Jobs) {
	for _, app := range []string{"shop", "shop-"} {
		Create(t, s, Draft(app, "strategy-7"))
		Create(t, s, Draft(app, "strategy-8"))
		must.Succeed(t, s.CreateShard(t.Context(), app, "strategy-7", job.Shard{State: job.ShardOpen}))
	}
	for range 2 {
		must.Succeed(t, s.Forget(t.Context(), "shop"))
	}
	jobs, err := s.List(t.Context(), "shop", 9)
	_, shardErr := s.Shard(t.Context(), "shop", "strategy-7", 0)
	if err != nil || len(jobs) != 0 {
		t.Errorf("left are %v (%v)", jobs, err)
	}
	WantError(t, "its shard", shardErr, job.ErrNotFound)
	if jobs, err := s.List(t.Context(), "shop-", 9); err != nil || len(jobs) != 2 {
		t.Errorf("the other app has %v (%v), want both jobs", jobs, err)
	}
	if _, err := s.Shard(t.Context(), "shop-", "strategy-7", 0); err != nil {
		t.Errorf("the other app's shard: %v", err)
	}
}
