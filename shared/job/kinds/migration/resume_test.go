package migration_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// huge is how many events one user has: many batches, and several checkpoints
// of a verification.
var huge = race.Or(8_000, 5_500)

// The tables of the schemas.
const (
	wideTable   = store.TableEvents
	narrowTable = store.TableEventsNarrow
)

// TestHugeUser migrates a user with very many events in tasks that end at
// their first checkpoint. Each continues within the user's log, and reads
// little more than it processes.
func TestHugeUser(t *testing.T) {
	t.Parallel()
	g := &gate{}
	s, client := storetest.NewDeployed(t, g.dial()...) // sends each row by itself
	w := newHarnessOn(t, s, client, g, schema.Wide, job.Settings{ShardUsers: 1, Budget: time.Second, Attempts: 3})
	w.apply(visits(t, []string{"b", "d"}, 3)...)
	w.apply(slices.Collect(minutely(t, "c", huge))...)
	w.hurried(2 * time.Second)
	if _, err := w.migrator.Start(t.Context(), jobtest.App, schema.Narrow); err != nil {
		t.Fatal(err)
	}

	// The first copy waits until the log is read as far ahead as possible.
	var read atomic.Int64
	var first, allRead sync.Once
	all, ahead := make(chan struct{}), int64(0)
	w.gate.watch(func(rows, _ map[string]int) {
		if read.Store(int64(rows[wideTable])); rows[wideTable] >= huge {
			allRead.Do(func() { close(all) })
		}
	})
	var cursors []string
	w.Gate = func(_ context.Context, what string) jobtest.Fault {
		if s, err := w.Harness.Jobs.Shard(t.Context(), jobtest.App, w.app().Migration.Job, 1); what == "update shard" && err == nil && !s.Processed {
			cursors = append(cursors, s.Next)
		}
		if what == "MutateRows" && read.Load() >= migration.BatchRows {
			first.Do(func() {
				select {
				case <-all:
				case <-time.After(200 * time.Millisecond):
				}
				ahead = read.Load()
			})
		}
		return jobtest.None
	}
	did := w.does(schema.Narrow, "backfill")
	w.Gate = nil
	w.gate.watch(nil)
	w.wantDone(did)
	if total := did.Job.Totals; total.Counts["rows"] != int64(huge)+6 || total.Counts["changed"] != int64(huge)+6 || total.Counts["users"] != 3 || total.PlannedUsers != 3 {
		t.Errorf("the backfill counts %+v", total)
	}
	if places := slices.Compact(cursors); len(places) <= huge/migration.BatchRows || !slices.IsSorted(places) {
		t.Errorf("the checkpoints of the user are %q", places)
	}
	if most := int64(5 * migration.BatchRows); ahead > most+100 {
		t.Errorf("%d rows were read while the first were copied, want %d at most", ahead, most)
	}

	apart := 0
	w.gate.watch(func(read, _ map[string]int) {
		apart = max(apart, read[wideTable]-read[narrowTable], read[narrowTable]-read[wideTable])
	})
	did = w.does(schema.Narrow, "verify")
	w.gate.watch(nil)
	w.wantDone(did)
	if did.Job.Totals.Counts["rows"] < int64(huge)+6 || did.Job.Totals.Counts["users"] != 3 || did.Job.Totals.Counts["profiles"] != 3 || apart > 3_000 {
		t.Errorf("the verification counts %+v; one log was read %d rows ahead of the other", did.Job.Totals, apart)
	}
	if shard, err := w.Harness.Jobs.Shard(t.Context(), jobtest.App, did.Job.ID, 1); err != nil || shard.Step < huge/migration.CheckRows {
		t.Errorf("the verification of the user took %d tasks, error %v", shard.Step+1, err)
	}

	did = w.does(schema.Narrow, "cutover", "drop")
	w.wantDone(did)
	if did.Job.Totals.Counts["rows"] != int64(huge)+6 || did.Job.Totals.Counts["changed"] != int64(huge)+6 {
		t.Errorf("the drop counts %+v", did.Job.Totals)
	}
	w.wantEmpty(schema.Wide)
	w.wantRows(schema.Narrow, 0)
}

// minutely returns events of a user, one a minute.
func minutely(t *testing.T, user string, n int) func(func(store.LogEvent) bool) {
	e := plain(t, user, 0, "red")
	return func(yield func(store.LogEvent) bool) {
		for i := range n {
			e.Time -= time.Minute.Milliseconds()
			e.ID = fmt.Sprintf("id%09d", i)
			if !yield(e) {
				return
			}
		}
	}
}

// TestRate divides the rate of a backfill among the shards in flight.
func TestRate(t *testing.T) {
	t.Parallel()
	w := newHarness(t, schema.Wide, usual)
	j := job.Job{App: jobtest.App, ID: "backfill-x", Kind: "backfill", State: job.Planning, StartedAt: jobtest.Noon, Concurrency: migration.Concurrency}
	if err := w.Harness.Jobs.Create(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	limit := func(rate int) (float64, int) {
		j.Params = migration.Params{Rate: rate}
		l, err := w.migrator.Limiter(t.Context(), j, w.app())
		if err != nil {
			t.Fatal(err)
		}
		return float64(l.Limit()), l.Burst()
	}
	for n := range 9 {
		if err := w.Harness.Jobs.CreateShard(t.Context(), jobtest.App, j.ID, job.Shard{N: n, From: fmt.Sprint(n), State: job.ShardOpen}); err != nil {
			t.Fatal(err)
		}
		tasks := min(n+1, migration.Concurrency)
		for _, rate := range []int{1, 3, 100, 3_999, 10_000, 1_000_000} {
			share, burst := limit(rate)
			if total := share * float64(tasks); total > float64(rate)+1e-6 || total < float64(rate)*0.999 {
				t.Errorf("%d shards of %d rows a second each, of %d", tasks, int(share), rate)
			}
			if burst < 1 || burst > migration.BatchRows || burst > 1 && float64(burst) > share {
				t.Errorf("rate %d: bursts of %d", rate, burst)
			}
		}
	}
	if share, burst := limit(0); share < 1e300 || burst != migration.BatchRows {
		t.Errorf("without a rate: %g rows a second in bursts of %d", share, burst)
	}
}

// A backfill with a rate copies no more rows in a second than the rate.
func TestRateIsKept(t *testing.T) {
	t.Parallel()
	w := newHarness(t, schema.Narrow, usual)
	w.apply(slices.Collect(minutely(t, "c", 250))...)
	w.does(schema.Wide, "start")
	most := 0
	last := 0
	w.gate.watch(func(_, written map[string]int) { most, last = max(most, written[wideTable]-last), written[wideTable] })
	began := time.Now()
	if _, err := w.migrator.Backfill(t.Context(), jobtest.App, 200); err != nil {
		t.Fatal(err)
	}
	w.Drain()
	w.gate.watch(nil)
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("250 rows took %v, at 200 a second after the first 200", took)
	}
	if most != 200 {
		t.Errorf("the largest batch has %d rows, want 200", most)
	}
	w.wantBoth()
	if s := w.status(); job.ParamsOf[migration.Params](*s.Job).Rate != 200 || s.Migration.Rate != 200 {
		t.Errorf("the rate is %d, of the migration %d", job.ParamsOf[migration.Params](*s.Job).Rate, s.Migration.Rate)
	}
}

// In every step with a job, at most concurrency shards have tasks at a time.
func TestMaxInFlight(t *testing.T) {
	t.Parallel()
	w := newHarness(t, schema.Narrow, job.Settings{ShardUsers: 1, Budget: time.Minute, Attempts: 3})
	w.apply(visits(t, users, 2)...)
	most := 0
	var serial sync.Mutex // requests to Bigtable are concurrent
	w.Gate = func(context.Context, string) jobtest.Fault {
		serial.Lock()
		defer serial.Unlock()
		most = max(most, len(w.Waiting()))
		return jobtest.None
	}
	w.moves(schema.Wide)
	if most != migration.Concurrency {
		t.Errorf("%d tasks were in the queue at a time, want %d", most, migration.Concurrency)
	}
	w.wantRows(schema.Wide, 0)
}
