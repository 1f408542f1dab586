package job_test

import (
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

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/gcloudtest"
)

func TestMemory(t *testing.T) {
	testJobs(t, func(*testing.T) job.Jobs { return job.NewMemory() })
}

// The tests of Firestore run against one official emulator, each on a database of
// its own.
func TestFirestore(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", gcloudtest.Firestore(t))
	testJobs(t, func(t *testing.T) job.Jobs { return job.NewFirestore(database(t), "recomputes") })
	t.Run("Collections", func(t *testing.T) {
		client := database(t)
		create(t, job.NewFirestore(client, "recomputes"), draftOf("shop", "strategy-7"))
		_, err := job.NewFirestore(client, "moves").Job(t.Context(), "shop", "strategy-7")
		wantError(t, "in another collection", err, job.ErrNotFound)
		if _, err := client.Doc("apps/shop/recomputes/strategy-7").Get(t.Context()); err != nil {
			t.Errorf("where it lies: %v", err)
		}
	})
	t.Run("ExpiryFields", func(t *testing.T) { testExpiryFields(t, database(t)) })
}

// database is a new one.
func database(t *testing.T) *firestore.Client {
	client, err := firestore.NewClient(t.Context(), "affinity-"+strings.ToLower(rand.Text()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// Collections have stores of their own, and keep them.
func TestMemories(t *testing.T) {
	stores := job.NewMemories()
	create(t, stores("recomputes"), draftOf("shop", "strategy-7"))
	got, err := stores("recomputes").Job(t.Context(), "shop", "strategy-7")
	same(t, "the one it is in", got, err, draftOf("shop", "strategy-7"))
	_, err = stores("moves").Job(t.Context(), "shop", "strategy-7")
	wantError(t, "another", err, job.ErrNotFound)
}

// testJobs holds a store to what every store promises. open returns an empty one.
func testJobs(t *testing.T, open func(*testing.T) job.Jobs) {
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
		{"Shards", testShards},
		{"ShardsEnd", testShardsEnd},
		{"ShardUpdatesAtOnce", testShardUpdatesAtOnce},
		{"Expiry", testExpiry},
		{"ShardExpiry", testShardExpiry},
		{"Totals", testTotals},
		{"Faults", testFaults},
		{"Unknown", testUnknown},
		{"Cancelled", testCancelled},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, open(t)) })
	}
}

var begun = time.Date(2026, 11, 21, 3, 0, 0, 123456000, time.UTC)

// draftOf is a new job.
func draftOf(app, id string) job.Job {
	return job.Job{
		App: app, ID: id, State: job.Planning, Trigger: "strategy", StrategyVersion: 7, RetentionDays: 90,
		OnlyStale: true, Maintain: true, StartedAt: begun,
		Kind: "backfill", Lanes: 4, From: "wide", To: "narrow", Rate: 1000, Since: begun.Add(-90 * 24 * time.Hour),
	}
}

func create(t *testing.T, s job.Jobs, j job.Job) {
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

func testCreate(t *testing.T, s job.Jobs) {
	want := draftOf("shop", "strategy-7")
	late := want
	late.StartedAt = want.StartedAt.Add(999).In(time.FixedZone("", 3600)) // ns, which no store keeps
	late.Since = want.Since.Add(999).In(time.FixedZone("", 3600))
	create(t, s, late)
	got, err := s.Job(t.Context(), "shop", "strategy-7")
	same(t, "job", got, err, want)

	again := want
	again.StrategyVersion = 8
	wantError(t, "create it again", s.Create(t.Context(), again), job.ErrExists)
	got, err = s.Job(t.Context(), "shop", "strategy-7")
	same(t, "job after the second creation", got, err, want)

	// Ids are the app's own, and an app may have any id.
	for _, app := range []string{"other", "__x__", "A-b_9"} {
		create(t, s, draftOf(app, "strategy-7"))
		got, err := s.Job(t.Context(), app, "strategy-7")
		same(t, app, got, err, draftOf(app, "strategy-7"))
	}
}

func testCreateRefused(t *testing.T, s job.Jobs) {
	running := draftOf("shop", "strategy-1")
	running.State = job.Running
	for _, j := range []job.Job{draftOf("sh/op", "strategy-1"), draftOf("", "strategy-1"), draftOf("shop", ""), draftOf("shop", "a/b"),
		draftOf("shop", "strategy-"+strings.Repeat("1", 101)), draftOf("shop", "__x__"), running} {
		if err := s.Create(t.Context(), j); err == nil || errors.Is(err, job.ErrExists) {
			t.Errorf("create %q of %q, %s: got error %v, want it refused", j.ID, j.App, j.State, err)
		}
	}
	jobs, err := s.List(t.Context(), "shop", 10)
	same(t, "jobs", jobs, err, nil)
}

// Every change of state that there is, and none besides.
func testStates(t *testing.T, s job.Jobs) {
	states := []job.State{job.Planning, job.Running, job.Done, job.Failed, job.Superseded, job.Cancelled}
	ways := map[job.State][]job.State{ // how to come to a state
		job.Planning: {}, job.Running: {job.Running}, job.Done: {job.Running, job.Done},
		job.Failed: {job.Running, job.Failed}, job.Superseded: {job.Superseded}, job.Cancelled: {job.Cancelled},
	}
	allowed := "planning>running planning>failed planning>superseded planning>cancelled " +
		"running>done running>failed running>superseded running>cancelled"
	for i, from := range states {
		for k, to := range states {
			id := fmt.Sprintf("manual-%d-%d", i, k)
			create(t, s, draftOf("shop", id))
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
				wantError(t, fmt.Sprintf("%s to %s", from, to), err, job.ErrEnded)
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
	create(t, s, draftOf("shop", "strategy-7"))
	create(t, s, draftOf("shop", "strategy-8"))
	want := draftOf("shop", "strategy-7")
	want.State, want.PlanStep, want.Error, want.FinishedAt = job.Cancelled, 3, "why", begun.Add(time.Hour)
	want.Totals = job.Totals{Shards: 3, Done: 2, Failed: 1, PlannedUsers: 4, Visited: 5, Users: 6, Events: 7, Stale: 8,
		Changed: 9, Left: 10, Faulty: 11}
	got, err := s.Update(t.Context(), "shop", "strategy-7", func(j *job.Job) error {
		j.State, j.PlanStep, j.Error, j.FinishedAt, j.Totals = want.State, want.PlanStep, want.Error, want.FinishedAt.Add(1), want.Totals
		return nil
	})
	same(t, "what Update returns", got, err, want)
	got, err = s.Job(t.Context(), "shop", "strategy-7")
	same(t, "job", got, err, want)

	refused := errors.New("refused")
	_, err = s.Update(t.Context(), "shop", "strategy-8", func(j *job.Job) error { j.PlanStep = 9; return refused })
	wantError(t, "a change that is given up", err, refused)
	got, err = s.Job(t.Context(), "shop", "strategy-8")
	same(t, "job after it", got, err, draftOf("shop", "strategy-8"))
}

// No change made at the same time as others is lost.
func testUpdatesAtOnce(t *testing.T, s job.Jobs) {
	create(t, s, draftOf("shop", "strategy-7"))
	const n = 10
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			if _, err := s.Update(t.Context(), "shop", "strategy-7", func(j *job.Job) error { j.PlanStep++; return nil }); err != nil {
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
	same(t, "no jobs", none, err, nil)
	create(t, s, draftOf("other", "manual-1"))
	var all []job.Job
	for i, id := range []string{"nightly-2026-11-21", "strategy-10", "strategy-9", "manual-a", "manual-b"} {
		j := draftOf("shop", id)
		j.StartedAt = begun.Add(time.Duration(min(i, 3)) * time.Hour) // the last two at the same time
		create(t, s, j)
		all = append(all, j)
	}
	slices.Reverse(all)
	got, err := s.List(t.Context(), "shop", 100)
	same(t, "all", got, err, all)
	got, err = s.List(t.Context(), "shop", 2)
	same(t, "the newest two", got, err, all[:2])

	move(t, s, "manual-b", job.Superseded)
	move(t, s, "strategy-10", job.Cancelled)
	move(t, s, "nightly-2026-11-21", job.Running)
	all[4].State = job.Running
	got, err = s.Unfinished(t.Context(), "shop")
	same(t, "unfinished", got, err, []job.Job{all[1], all[2], all[4]})
}

func testShards(t *testing.T, s job.Jobs) {
	create(t, s, draftOf("shop", "strategy-7"))
	create(t, s, draftOf("shop", "strategy-8"))
	_, err := s.LastShard(t.Context(), "shop", "strategy-7")
	wantError(t, "last of none", err, job.ErrNotFound)
	var all []job.Shard
	for n := range 12 { // beyond 10, where names and numbers may differ in order
		shard := job.Shard{N: n, From: fmt.Sprintf("u%02d", n), To: fmt.Sprintf("u%02d", n+1), State: job.ShardOpen,
			Next: fmt.Sprintf("u%02d", n), PlannedUsers: int64(n)}
		if err := s.CreateShard(t.Context(), "shop", "strategy-7", shard); err != nil {
			t.Fatal(err)
		}
		all = append(all, shard)
		last, err := s.LastShard(t.Context(), "shop", "strategy-7")
		same(t, "last", last, err, shard)
	}
	wantError(t, "create one again", s.CreateShard(t.Context(), "shop", "strategy-7", job.Shard{N: 3, State: job.ShardOpen}), job.ErrExists)
	got, err := s.Shard(t.Context(), "shop", "strategy-7", 3)
	same(t, "shard 3", got, err, all[3])

	want := all[3]
	want.Step, want.Pass, want.Next, want.Swept, want.LastTry = 1, 2, "u03x", true, true
	want.Visited, want.Users, want.Events, want.Stale = 5, 4, 3, 2
	want.Changed, want.Left, want.Faulty, want.Faults = 6, 7, 8, []string{"u03: bent", "u03x: broken"}
	got, err = s.UpdateShard(t.Context(), "shop", "strategy-7", 3, func(s *job.Shard) error { *s = want; return nil })
	same(t, "what UpdateShard returns", got, err, want)
	got, err = s.Shard(t.Context(), "shop", "strategy-7", 3)
	same(t, "changed shard", got, err, want)
	all[3] = want

	list, err := s.ShardsIn(t.Context(), "shop", "strategy-7", job.ShardOpen, 100)
	same(t, "open ones", list, err, all)
	list, err = s.ShardsIn(t.Context(), "shop", "strategy-7", job.ShardOpen, 3)
	same(t, "the first three", list, err, all[:3])
	list, err = s.ShardsIn(t.Context(), "shop", "strategy-8", job.ShardOpen, 100)
	same(t, "of another job", list, err, nil)
}

// A shard that has ended never changes.
func testShardsEnd(t *testing.T, s job.Jobs) {
	create(t, s, draftOf("shop", "strategy-7"))
	for n, state := range []job.ShardState{job.ShardDone, job.ShardFailed} {
		shard := job.Shard{N: n, State: job.ShardOpen}
		if err := s.CreateShard(t.Context(), "shop", "strategy-7", shard); err != nil {
			t.Fatal(err)
		}
		end := func(s *job.Shard) error { s.State, s.Error = state, "why"; return nil }
		shard.State, shard.Error = state, "why"
		got, err := s.UpdateShard(t.Context(), "shop", "strategy-7", n, end)
		same(t, "end it", got, err, shard)
		_, err = s.UpdateShard(t.Context(), "shop", "strategy-7", n, func(s *job.Shard) error { s.State, s.Users = job.ShardOpen, 5; return nil })
		wantError(t, "change it", err, job.ErrEnded)
		got, err = s.Shard(t.Context(), "shop", "strategy-7", n)
		same(t, "it", got, err, shard)
		list, err := s.ShardsIn(t.Context(), "shop", "strategy-7", state, 5)
		same(t, "those of its state", list, err, []job.Shard{shard})
	}
}

// Of changes that all build upon the same state one is made.
func testShardUpdatesAtOnce(t *testing.T, s job.Jobs) {
	create(t, s, draftOf("shop", "strategy-7"))
	if err := s.CreateShard(t.Context(), "shop", "strategy-7", job.Shard{State: job.ShardOpen}); err != nil {
		t.Fatal(err)
	}
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
