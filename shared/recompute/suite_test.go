package recompute_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/emulator/gcloudtest"
	"github.com/affinityengine/affinity/shared/recompute"
)

func TestMemory(t *testing.T) {
	testJobs(t, func(*testing.T) recompute.Jobs { return recompute.NewMemory() })
}

// The tests of Firestore run against one official emulator, each on a database of
// its own.
func TestFirestore(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", gcloudtest.Firestore(t))
	testJobs(t, func(t *testing.T) recompute.Jobs {
		client, err := firestore.NewClient(t.Context(), "affinity-"+strings.ToLower(rand.Text()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		})
		return recompute.NewFirestore(client)
	})
}

// testJobs holds a store to what every store promises. open returns an empty one.
func testJobs(t *testing.T, open func(*testing.T) recompute.Jobs) {
	for _, tt := range []struct {
		name string
		run  func(*testing.T, recompute.Jobs)
	}{
		{"Create", testCreate},
		{"CreateRefused", testCreateRefused},
		{"States", testStates},
		{"Update", testUpdate},
		{"UpdatesAtOnce", testUpdatesAtOnce},
		{"List", testList},
		{"Shards", testShards},
		{"ShardsEnd", testShardsEnd},
		{"ShardUpdatesAtOnce", testShardUpdatesAtOnce},
		{"Totals", testTotals},
		{"Unknown", testUnknown},
		{"Cancelled", testCancelled},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, open(t)) })
	}
}

var begun = time.Date(2026, 11, 21, 3, 0, 0, 123456000, time.UTC)

// job is a new one.
func job(app, id string) recompute.Job {
	return recompute.Job{
		App: app, ID: id, State: recompute.Planning, Trigger: recompute.ByStrategy, StrategyVersion: 7, RetentionDays: 90,
		OnlyStale: true, Maintain: true, StartedAt: begun,
	}
}

func create(t *testing.T, s recompute.Jobs, j recompute.Job) {
	t.Helper()
	if err := s.Create(t.Context(), j); err != nil {
		t.Fatal(err)
	}
}

// same checks what a call returned.
func same[T any](t *testing.T, what string, got T, err error, want T) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func testCreate(t *testing.T, s recompute.Jobs) {
	want := job("shop", "strategy-7")
	late := want
	late.StartedAt = want.StartedAt.Add(999).In(time.FixedZone("", 3600)) // ns, which no store keeps
	create(t, s, late)
	got, err := s.Job(t.Context(), "shop", "strategy-7")
	same(t, "job", got, err, want)

	again := want
	again.StrategyVersion = 8
	wantError(t, "create it again", s.Create(t.Context(), again), recompute.ErrExists)
	got, err = s.Job(t.Context(), "shop", "strategy-7")
	same(t, "job after the second creation", got, err, want)

	// Ids are the app's own, and an app may have any id.
	for _, app := range []string{"other", "__x__", "A-b_9"} {
		create(t, s, job(app, "strategy-7"))
		got, err := s.Job(t.Context(), app, "strategy-7")
		same(t, app, got, err, job(app, "strategy-7"))
	}
}

func testCreateRefused(t *testing.T, s recompute.Jobs) {
	running := job("shop", "strategy-1")
	running.State = recompute.Running
	for _, j := range []recompute.Job{job("sh/op", "strategy-1"), job("", "strategy-1"), job("shop", ""), job("shop", "a/b"),
		job("shop", "strategy-"+strings.Repeat("1", 101)), job("shop", "__x__"), running} {
		if err := s.Create(t.Context(), j); err == nil || errors.Is(err, recompute.ErrExists) {
			t.Errorf("create %q of %q, %s: got error %v, want it refused", j.ID, j.App, j.State, err)
		}
	}
	jobs, err := s.List(t.Context(), "shop", 10)
	same(t, "jobs", jobs, err, nil)
}

// Every change of state that there is, and none besides.
func testStates(t *testing.T, s recompute.Jobs) {
	states := []recompute.State{recompute.Planning, recompute.Running, recompute.Done, recompute.Failed, recompute.Superseded, recompute.Cancelled}
	ways := map[recompute.State][]recompute.State{ // how to come to a state
		recompute.Planning: {}, recompute.Running: {recompute.Running}, recompute.Done: {recompute.Running, recompute.Done},
		recompute.Failed: {recompute.Running, recompute.Failed}, recompute.Superseded: {recompute.Superseded}, recompute.Cancelled: {recompute.Cancelled},
	}
	allowed := "planning>running planning>failed planning>superseded planning>cancelled " +
		"running>done running>failed running>superseded running>cancelled"
	for i, from := range states {
		for k, to := range states {
			id := fmt.Sprintf("manual-%d-%d", i, k)
			create(t, s, job("shop", id))
			for _, state := range ways[from] {
				move(t, s, id, state)
			}
			want := from
			got, err := s.Update(t.Context(), "shop", id, func(j *recompute.Job) error { j.State = to; return nil })
			switch {
			case strings.Contains(allowed, string(from+">"+to)):
				want = to
				if err != nil || got.State != to {
					t.Errorf("%s to %s: got %s, error %v", from, to, got.State, err)
				}
			case from.Ended():
				wantError(t, fmt.Sprintf("%s to %s", from, to), err, recompute.ErrEnded)
			case from != to && (err == nil || errors.Is(err, recompute.ErrEnded)):
				t.Errorf("%s to %s: got error %v, want it refused", from, to, err)
			}
			if now, err := s.Job(t.Context(), "shop", id); err != nil || now.State != want {
				t.Errorf("%s to %s: it is %s, error %v; want %s", from, to, now.State, err, want)
			}
		}
	}
}

func move(t *testing.T, s recompute.Jobs, id string, state recompute.State) {
	t.Helper()
	if _, err := s.Update(t.Context(), "shop", id, func(j *recompute.Job) error { j.State = state; return nil }); err != nil {
		t.Fatal(err)
	}
}

func testUpdate(t *testing.T, s recompute.Jobs) {
	create(t, s, job("shop", "strategy-7"))
	create(t, s, job("shop", "strategy-8"))
	want := job("shop", "strategy-7")
	want.State, want.PlanStep, want.Error, want.FinishedAt = recompute.Cancelled, 3, "why", begun.Add(time.Hour)
	want.Totals = recompute.Totals{Shards: 3, Done: 2, Failed: 1, PlannedUsers: 4, Visited: 5, Users: 6, Events: 7, Stale: 8}
	got, err := s.Update(t.Context(), "shop", "strategy-7", func(j *recompute.Job) error {
		j.State, j.PlanStep, j.Error, j.FinishedAt, j.Totals = want.State, want.PlanStep, want.Error, want.FinishedAt.Add(1), want.Totals
		return nil
	})
	same(t, "what Update returns", got, err, want)
	got, err = s.Job(t.Context(), "shop", "strategy-7")
	same(t, "job", got, err, want)

	refused := errors.New("refused")
	_, err = s.Update(t.Context(), "shop", "strategy-8", func(j *recompute.Job) error { j.PlanStep = 9; return refused })
	wantError(t, "a change that is given up", err, refused)
	got, err = s.Job(t.Context(), "shop", "strategy-8")
	same(t, "job after it", got, err, job("shop", "strategy-8"))
}

// No change made at the same time as others is lost.
func testUpdatesAtOnce(t *testing.T, s recompute.Jobs) {
	create(t, s, job("shop", "strategy-7"))
	const n = 10
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			if _, err := s.Update(t.Context(), "shop", "strategy-7", func(j *recompute.Job) error { j.PlanStep++; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got, err := s.Job(t.Context(), "shop", "strategy-7"); err != nil || got.PlanStep != n {
		t.Errorf("got %d, error %v; want %d changes", got.PlanStep, err, n)
	}
}

func testList(t *testing.T, s recompute.Jobs) {
	none, err := s.List(t.Context(), "shop", 5)
	same(t, "no jobs", none, err, nil)
	create(t, s, job("other", "manual-1"))
	var all []recompute.Job
	for i, id := range []string{"nightly-2026-11-21", "strategy-10", "strategy-9", "manual-a", "manual-b"} {
		j := job("shop", id)
		j.StartedAt = begun.Add(time.Duration(min(i, 3)) * time.Hour) // the last two at the same time
		create(t, s, j)
		all = append(all, j)
	}
	slices.Reverse(all)
	got, err := s.List(t.Context(), "shop", 100)
	same(t, "all", got, err, all)
	got, err = s.List(t.Context(), "shop", 2)
	same(t, "the newest two", got, err, all[:2])

	move(t, s, "manual-b", recompute.Superseded)
	move(t, s, "strategy-10", recompute.Cancelled)
	move(t, s, "nightly-2026-11-21", recompute.Running)
	all[4].State = recompute.Running
	got, err = s.Unfinished(t.Context(), "shop")
	same(t, "unfinished", got, err, []recompute.Job{all[1], all[2], all[4]})
}

func testShards(t *testing.T, s recompute.Jobs) {
	create(t, s, job("shop", "strategy-7"))
	create(t, s, job("shop", "strategy-8"))
	_, err := s.LastShard(t.Context(), "shop", "strategy-7")
	wantError(t, "last of none", err, recompute.ErrNotFound)
	var all []recompute.Shard
	for n := range 12 { // beyond 10, where names and numbers may differ in order
		shard := recompute.Shard{N: n, From: fmt.Sprintf("u%02d", n), To: fmt.Sprintf("u%02d", n+1), State: recompute.ShardOpen,
			Next: fmt.Sprintf("u%02d", n), PlannedUsers: int64(n)}
		if err := s.CreateShard(t.Context(), "shop", "strategy-7", shard); err != nil {
			t.Fatal(err)
		}
		all = append(all, shard)
		last, err := s.LastShard(t.Context(), "shop", "strategy-7")
		same(t, "last", last, err, shard)
	}
	wantError(t, "create one again", s.CreateShard(t.Context(), "shop", "strategy-7", recompute.Shard{N: 3, State: recompute.ShardOpen}), recompute.ErrExists)
	got, err := s.Shard(t.Context(), "shop", "strategy-7", 3)
	same(t, "shard 3", got, err, all[3])

	want := all[3]
	want.Step, want.Pass, want.Next, want.Swept, want.LastTry = 1, 2, "u03x", true, true
	want.Visited, want.Users, want.Events, want.Stale = 5, 4, 3, 2
	got, err = s.UpdateShard(t.Context(), "shop", "strategy-7", 3, func(s *recompute.Shard) error { *s = want; return nil })
	same(t, "what UpdateShard returns", got, err, want)
	got, err = s.Shard(t.Context(), "shop", "strategy-7", 3)
	same(t, "changed shard", got, err, want)
	all[3] = want

	list, err := s.ShardsIn(t.Context(), "shop", "strategy-7", recompute.ShardOpen, 100)
	same(t, "open ones", list, err, all)
	list, err = s.ShardsIn(t.Context(), "shop", "strategy-7", recompute.ShardOpen, 3)
	same(t, "the first three", list, err, all[:3])
	list, err = s.ShardsIn(t.Context(), "shop", "strategy-8", recompute.ShardOpen, 100)
	same(t, "of another job", list, err, nil)
}

// A shard that has ended never changes.
func testShardsEnd(t *testing.T, s recompute.Jobs) {
	create(t, s, job("shop", "strategy-7"))
	for n, state := range []recompute.ShardState{recompute.ShardDone, recompute.ShardFailed} {
		shard := recompute.Shard{N: n, State: recompute.ShardOpen}
		if err := s.CreateShard(t.Context(), "shop", "strategy-7", shard); err != nil {
			t.Fatal(err)
		}
		end := func(s *recompute.Shard) error { s.State, s.Error = state, "why"; return nil }
		shard.State, shard.Error = state, "why"
		got, err := s.UpdateShard(t.Context(), "shop", "strategy-7", n, end)
		same(t, "end it", got, err, shard)
		_, err = s.UpdateShard(t.Context(), "shop", "strategy-7", n, func(s *recompute.Shard) error { s.State, s.Users = recompute.ShardOpen, 5; return nil })
		wantError(t, "change it", err, recompute.ErrEnded)
		got, err = s.Shard(t.Context(), "shop", "strategy-7", n)
		same(t, "it", got, err, shard)
		list, err := s.ShardsIn(t.Context(), "shop", "strategy-7", state, 5)
		same(t, "those of its state", list, err, []recompute.Shard{shard})
	}
}

// Of changes that all build upon the same state one is made.
func testShardUpdatesAtOnce(t *testing.T, s recompute.Jobs) {
	create(t, s, job("shop", "strategy-7"))
	if err := s.CreateShard(t.Context(), "shop", "strategy-7", recompute.Shard{State: recompute.ShardOpen}); err != nil {
		t.Fatal(err)
	}
	overtaken := errors.New("overtaken")
	const n = 8
	won := make([]bool, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			_, err := s.UpdateShard(t.Context(), "shop", "strategy-7", 0, func(s *recompute.Shard) error {
				if s.Step != 0 {
					return overtaken
				}
				s.Step, s.Users = 1, s.Users+1
				return nil
			})
			if won[i] = err == nil; !won[i] && !errors.Is(err, overtaken) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got, err := s.Shard(t.Context(), "shop", "strategy-7", 0)
	if err != nil || got.Users != 1 || got.Step != 1 {
		t.Errorf("got %+v, error %v; want one change", got, err)
	}
	if wins := len(slices.DeleteFunc(won, func(w bool) bool { return !w })); wins != 1 {
		t.Errorf("%d changes were told to have been made, want 1", wins)
	}
}

func testTotals(t *testing.T, s recompute.Jobs) {
	create(t, s, job("shop", "strategy-7"))
	create(t, s, job("shop", "strategy-8"))
	totals, err := s.Totals(t.Context(), "shop", "strategy-7")
	same(t, "of no shards", totals, err, recompute.Totals{})
	for n, state := range []recompute.ShardState{recompute.ShardDone, recompute.ShardOpen, recompute.ShardFailed, recompute.ShardDone} {
		by := int64(n + 1)
		shard := recompute.Shard{N: n, State: state, PlannedUsers: by, Visited: 10 * by, Users: 100 * by, Events: 1 << 40 * by, Stale: 1000 * by}
		if err := s.CreateShard(t.Context(), "shop", "strategy-7", shard); err != nil {
			t.Fatal(err)
		}
		if err := s.CreateShard(t.Context(), "shop", "strategy-8", shard); err != nil {
			t.Fatal(err)
		}
	}
	totals, err = s.Totals(t.Context(), "shop", "strategy-7")
	same(t, "totals", totals, err, recompute.Totals{Shards: 4, Done: 2, Failed: 1, PlannedUsers: 10, Visited: 100, Users: 1000, Events: 10 << 40, Stale: 10000})
}

func testUnknown(t *testing.T, s recompute.Jobs) {
	ctx := t.Context()
	for _, id := range []string{"manual-1", "", "a/b", "..", "__x__", "manual-" + strings.Repeat("x", 2000), "\x00"} {
		for name, call := range map[string]func() error{
			"Job": func() error { _, err := s.Job(ctx, "shop", id); return err },
			"Update": func() error {
				_, err := s.Update(ctx, "shop", id, func(*recompute.Job) error { return nil })
				return err
			},
			"Shard": func() error { _, err := s.Shard(ctx, "shop", id, 0); return err },
			"UpdateShard": func() error {
				_, err := s.UpdateShard(ctx, "shop", id, 0, func(*recompute.Shard) error { return nil })
				return err
			},
			"LastShard": func() error { _, err := s.LastShard(ctx, "shop", id); return err },
		} {
			wantError(t, fmt.Sprintf("%s of %.20q", name, id), call(), recompute.ErrNotFound)
		}
	}
}

// A caller that has gone is told so, and nothing is taken for missing.
func testCancelled(t *testing.T, s recompute.Jobs) {
	create(t, s, job("shop", "strategy-7"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, readErr := s.Job(ctx, "shop", "strategy-7")
	_, listErr := s.List(ctx, "shop", 1)
	_, updateErr := s.Update(ctx, "shop", "strategy-7", func(j *recompute.Job) error { j.PlanStep = 1; return nil })
	_, totalsErr := s.Totals(ctx, "shop", "strategy-7")
	for name, err := range map[string]error{"Job": readErr, "List": listErr, "Update": updateErr, "Totals": totalsErr} {
		if err == nil || errors.Is(err, recompute.ErrNotFound) {
			t.Errorf("%s: got error %v, want that of the context", name, err)
		}
	}
	got, err := s.Job(t.Context(), "shop", "strategy-7")
	same(t, "afterwards", got, err, job("shop", "strategy-7"))
}
