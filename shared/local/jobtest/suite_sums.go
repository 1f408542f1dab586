package jobtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/must"
)

func testTotals(t *testing.T, s job.Jobs) {
	Create(t, s, Draft("shop", "strategy-7"))
	Create(t, s, Draft("shop", "strategy-8"))
	totals, err := s.Totals(t.Context(), "shop", "strategy-7")
	Same(t, "of no shards", totals, err, job.Totals{})
	for n, state := range []job.ShardState{job.ShardDone, job.ShardOpen, job.ShardFailed, job.ShardDone} {
		by := int64(n + 1)
		shard := job.Shard{N: n, State: state, PlannedUsers: by, Stale: 1000 * by,
			Counts: job.Counts{"users": 10 * by, "known": 100 * by, "events": 1 << 40 * by, "written": 2 * by,
				"waiting": 3 * by, "faulty": 4 * by}}
		must.Succeed(t, s.CreateShard(t.Context(), "shop", "strategy-7", shard))
		must.Succeed(t, s.CreateShard(t.Context(), "shop", "strategy-8", shard))
	}
	totals, err = s.Totals(t.Context(), "shop", "strategy-7")
	Same(t, "totals", totals, err, job.Totals{Shards: 4, Done: 2, Failed: 1, PlannedUsers: 10, Stale: 10000,
		Counts: job.Counts{"users": 100, "known": 1000, "events": 10 << 40, "written": 20, "waiting": 30, "faulty": 40}})
}

func testFaults(t *testing.T, s job.Jobs) {
	Create(t, s, Draft("shop", "strategy-7"))
	Create(t, s, Draft("shop", "strategy-8"))
	none, err := s.Faults(t.Context(), "shop", "strategy-7", 10)
	Same(t, "of no shards", none, err, nil)
	var all []string
	for n := range 12 {
		shard := job.Shard{N: n, State: job.ShardOpen}
		if n%3 == 1 { // the later ones have fewer
			for i := range 12 - n {
				shard.Faults = append(shard.Faults, fmt.Sprintf("u%02d: fault %d", n, i))
			}
			shard.Counts = job.Counts{job.CountFaulty: int64(2 * len(shard.Faults))}
			all = append(all, shard.Faults...)
		}
		must.Succeed(t, s.CreateShard(t.Context(), "shop", "strategy-7", shard))
	}
	got, err := s.Faults(t.Context(), "shop", "strategy-7", 1000)
	Same(t, "all", got, err, all)
	few, err := s.Faults(t.Context(), "shop", "strategy-7", 3)
	if err != nil || len(few) != 3 || !slices.IsSorted(few) ||
		slices.ContainsFunc(few, func(f string) bool { return !slices.Contains(all, f) }) {
		t.Errorf("the first three: %q, error %v", few, err)
	}
	none, err = s.Faults(t.Context(), "shop", "strategy-8", 10)
	Same(t, "of another job", none, err, nil)
}

func testUnknown(t *testing.T, s job.Jobs) {
	ctx := t.Context()
	for _, id := range []string{"manual-1", "", "a/b", "..", "__x__", "manual-" + strings.Repeat("x", 2000), "\x00"} {
		for name, call := range map[string]func() error{
			"Job": func() error { _, err := s.Job(ctx, "shop", id); return err },
			"Update": func() error {
				_, err := s.Update(ctx, "shop", id, func(*job.Job) error { return nil })
				return err
			},
			"Shard": func() error { _, err := s.Shard(ctx, "shop", id, 0); return err },
			"UpdateShard": func() error {
				_, err := s.UpdateShard(ctx, "shop", id, 0, func(*job.Shard) error { return nil })
				return err
			},
			"LastShard": func() error { _, err := s.LastShard(ctx, "shop", id); return err },
		} {
			WantError(t, fmt.Sprintf("%s of %.20q", name, id), call(), job.ErrNotFound)
		}
	}
}

// A call whose context is cancelled returns an error, and not ErrNotFound.
func testCancelled(t *testing.T, s job.Jobs) {
	Create(t, s, Draft("shop", "strategy-7"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, readErr := s.Job(ctx, "shop", "strategy-7")
	_, listErr := s.List(ctx, "shop", 1)
	_, updateErr := s.Update(ctx, "shop", "strategy-7", func(j *job.Job) error { j.PlanStep = 1; return nil })
	_, totalsErr := s.Totals(ctx, "shop", "strategy-7")
	_, faultsErr := s.Faults(ctx, "shop", "strategy-7", 1)
	for name, err := range map[string]error{"Job": readErr, "List": listErr, "Update": updateErr,
		"Totals": totalsErr, "Faults": faultsErr} {
		if err == nil || errors.Is(err, job.ErrNotFound) {
			t.Errorf("%s: got error %v, want that of the context", name, err)
		}
	}
	got, err := s.Job(t.Context(), "shop", "strategy-7")
	Same(t, "afterwards", got, err, Draft("shop", "strategy-7"))
}
