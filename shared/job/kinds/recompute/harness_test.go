package recompute_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// harness is a harness of jobs, with an engine that computes its users.
type harness struct {
	*jobtest.Harness
	runner *recompute.Runner
	starts []string // with which a dictionary was last made
}

// Two configurations: tasks with enough time, and tasks that run out of time.
var (
	roomy = job.Settings{ShardUsers: 3, Budget: time.Hour, Attempts: 8}
	tight = job.Settings{ShardUsers: 3, Budget: 2 * time.Second, Attempts: 8}
)

func newHarness(t jobtest.T, users int, cfg job.Settings) *harness {
	w := &harness{Harness: jobtest.New(t, recompute.Collection, users, cfg)}
	w.runner = recompute.New(w.Parts(cfg), gatedEngine{w})
	w.Runner = w.runner.Runner
	w.Version = func(j job.Job) int64 { return job.ParamsOf[recompute.Params](j).Scoring() }
	return w
}

// started returns a harness with a job for its strategy.
func started(t jobtest.T, users int, cfg job.Settings) *harness {
	t.Helper()
	w := newHarness(t, users, cfg)
	if _, err := w.runner.StartStrategy(t.Context(), jobtest.App); err != nil {
		t.Fatal(err)
	}
	return w
}

// gatedEngine does the work of the harness.
type gatedEngine struct{ *harness }

func (w gatedEngine) Recompute(ctx context.Context, a config.App, part store.Range, o profile.RecomputeOptions,
	progress func(profile.Progress) error) (profile.Progress, error) {
	did := job.Progress{Next: part.From}
	for !did.Done && (did.Next == part.From || w.Now.Before(o.Until)) {
		step := func() error { return w.Step(a.ScoringVersion, part.To, o.OnlyStale, &did) }
		if err := w.Call(ctx, "engine", step); err != nil {
			return computed(did), err
		}
		if err := progress(computed(did)); err != nil {
			return computed(did), err
		}
	}
	return computed(did), nil
}

func (w gatedEngine) RenewDictionary(ctx context.Context, _ config.App, starts []string) {
	w.starts = starts
	_ = w.Call(ctx, "dictionary", func() error { return nil })
}

func computed(p job.Progress) profile.Progress {
	c := job.CountsOf[jobtest.Counts](p.Counts)
	return profile.Progress{Next: p.Next, Done: p.Done, Users: c.Users, Known: c.Known, Events: c.Events, Written: c.Written}
}

func (w gatedEngine) Verify(ctx context.Context, a config.App, part store.Range, until time.Time) (stale int64, next string, err error) {
	var v job.Verified
	err = w.Call(ctx, "verify", func() error {
		v = w.Harness.Verify(a.ScoringVersion, part.From, part.To, until)
		return nil
	})
	return v.Stale, v.Next, err
}

// A job with few or many tasks computes every user and adds up the engine's
// counts. It computes a user again whose profile an old process overwrites.
func TestRecompute(t *testing.T) {
	for relapses, stale := range map[int]int64{0: 0, 1: 0, 3: 0, 4: 1} {
		for name, cfg := range map[string]job.Settings{"roomy": roomy, "tight": tight} {
			t.Run(fmt.Sprint(relapses, name), func(t *testing.T) {
				w := started(t, 10, cfg)
				for _, k := range w.Tasks {
					if k.Path != "/recompute/plan" || !strings.HasSuffix(k.Name, "-recompute-plan-shop-strategy-1-0") {
						t.Errorf("task %s of %s", k.Name, k.Path)
					}
				}
				w.Users["e"].Relapses = relapses
				w.Drain()
				if stale == 0 {
					w.WantDone("strategy-1")
					return
				}
				j := w.WantState("strategy-1", job.Failed, "1 users still carry another strategy version or retention after 3 more passes")
				if j.Totals.Stale != stale || j.Totals.Counts["users"] != 10 || j.Totals.Counts["written"] != 10 {
					t.Errorf("got %+v, want %d stale users", j.Totals, stale)
				}
			})
		}
	}
}

// A task that arrives after a recompute of many shards waits for those that have tasks only.
func TestRecomputeConcurrency(t *testing.T) {
	settings := roomy
	settings.Concurrency = 2
	w := started(t, 26, settings) // 9 shards
	w.DeliverTask(w.Tasks[0])
	if queued := w.Waiting(); len(queued) != 2 {
		t.Errorf("%d tasks wait, want those of 2 shards", len(queued))
	}
	w.Drain() // fails if a shard beyond these has a task
	w.WantDone("strategy-1")
}

// Only the first pass maintains and folds histories, and only the first pass computes
// users with current profiles.
func TestPassOptions(t *testing.T) {
	for name, c := range map[string]struct {
		params recompute.Params
		pass   int
		want   profile.RecomputeOptions
	}{
		"all":                    {recompute.Params{}, 0, profile.RecomputeOptions{}},
		"all, again":             {recompute.Params{}, 1, profile.RecomputeOptions{OnlyStale: true}},
		"only stale":             {recompute.Params{OnlyStale: true}, 0, profile.RecomputeOptions{OnlyStale: true}},
		"with maintenance":       {recompute.Params{Maintain: true}, 0, profile.RecomputeOptions{Maintain: true}},
		"with folds":             {recompute.Params{OnlyStale: true, Fold: true}, 0, profile.RecomputeOptions{OnlyStale: true, Fold: true}},
		"with folds again":       {recompute.Params{Fold: true}, 1, profile.RecomputeOptions{OnlyStale: true}},
		"with maintenance again": {recompute.Params{Maintain: true}, 2, profile.RecomputeOptions{OnlyStale: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Until = jobtest.Noon
			shard := job.Shard{From: "a", Next: "c", To: "f", Pass: c.pass}
			e := &askedEngine{}
			if _, err := (recompute.Work{Engine: e}).Process(t.Context(), job.Job{Params: c.params}, config.App{}, shard, jobtest.Noon, nil); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(e.o, c.want) || e.part != (store.Range{From: "c", To: "f"}) {
				t.Errorf("asked for %+v of %+v, want %+v from c to f", e.o, e.part, c.want)
			}
		})
	}
}

// askedEngine records its last call.
type askedEngine struct {
	recompute.Engine
	part store.Range
	o    profile.RecomputeOptions
}

func (e *askedEngine) Recompute(_ context.Context, _ config.App, part store.Range, o profile.RecomputeOptions,
	_ func(profile.Progress) error) (profile.Progress, error) {
	e.part, e.o = part, o
	return profile.Progress{Done: true}, nil
}
