package jobtest

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
)

type gatedUsers struct {
	*Harness
	region string // "": all
}

func (w gatedUsers) ScanUserKeys(ctx context.Context, id, from, to string, fn func(string) error) error {
	if id != App {
		return nil // other apps have no users
	}
	for _, name := range w.within(w.region, from, to) {
		w.Now = w.Now.Add(time.Second)
		if err := fn(name); err != nil {
			return err
		}
	}
	return w.Call(ctx, "scan", func() error { return nil })
}

type gatedConfig struct{ *Harness }

func (w gatedConfig) App(ctx context.Context, id string) (a config.App, err error) {
	err = w.Call(ctx, "app", func() (err error) { a, err = w.Harness.Config.App(ctx, id); return err })
	return a, err
}

// gatedJobs sends every call through the gate.
type gatedJobs struct {
	*Harness
	inner job.Jobs
}

// gated makes a call that returns a value.
func gated[T any](g gatedJobs, ctx context.Context, what string, do func() (T, error)) (answer T, err error) {
	err = g.Call(ctx, what, func() (err error) { answer, err = do(); return err })
	return answer, err
}

func (g gatedJobs) Create(ctx context.Context, j job.Job) error {
	return g.Call(ctx, "create", func() error { return g.inner.Create(ctx, j) })
}

func (g gatedJobs) Forget(ctx context.Context, app string) error {
	return g.Call(ctx, "forget", func() error { return g.inner.Forget(ctx, app) })
}

func (g gatedJobs) Job(ctx context.Context, app, id string) (job.Job, error) {
	return gated(g, ctx, "job", func() (job.Job, error) { return g.inner.Job(ctx, app, id) })
}

func (g gatedJobs) List(ctx context.Context, app string, limit int) ([]job.Job, error) {
	return gated(g, ctx, "list", func() ([]job.Job, error) { return g.inner.List(ctx, app, limit) })
}

func (g gatedJobs) Unfinished(ctx context.Context, app string) ([]job.Job, error) {
	return gated(g, ctx, "unfinished", func() ([]job.Job, error) { return g.inner.Unfinished(ctx, app) })
}

func (g gatedJobs) Before(ctx context.Context, queue string, due time.Time) (int, error) {
	return gated(g, ctx, "before", func() (int, error) { return g.inner.Before(ctx, queue, due) })
}

func (g gatedJobs) Update(ctx context.Context, app, id string, change func(*job.Job) error) (job.Job, error) {
	return gated(g, ctx, "update", func() (job.Job, error) { return g.inner.Update(ctx, app, id, change) })
}

func (g gatedJobs) CreateShard(ctx context.Context, app, id string, s job.Shard) error {
	return g.Call(ctx, "create shard", func() error { return g.inner.CreateShard(ctx, app, id, s) })
}

func (g gatedJobs) Shard(ctx context.Context, app, id string, n int) (job.Shard, error) {
	return gated(g, ctx, "shard", func() (job.Shard, error) { return g.inner.Shard(ctx, app, id, n) })
}

func (g gatedJobs) LastShard(ctx context.Context, app, id string) (job.Shard, error) {
	return gated(g, ctx, "last shard", func() (job.Shard, error) { return g.inner.LastShard(ctx, app, id) })
}

func (g gatedJobs) ShardsIn(ctx context.Context, app, id string, state job.ShardState, limit int) ([]job.Shard, error) {
	return gated(g, ctx, "shards in", func() ([]job.Shard, error) { return g.inner.ShardsIn(ctx, app, id, state, limit) })
}

func (g gatedJobs) UpdateShard(ctx context.Context, app, id string, n int,
	change func(*job.Shard) error) (job.Shard, error) {
	return gated(g, ctx, "update shard", func() (job.Shard, error) {
		return g.inner.UpdateShard(ctx, app, id, n, func(s *job.Shard) error {
			was := *s
			err := change(s)
			if err == nil && !forward(was, *s) {
				g.T.Errorf("a shard went back from %+v to %+v", was, *s)
			}
			return err
		})
	})
}

func (g gatedJobs) Totals(ctx context.Context, app, id string) (job.Totals, error) {
	return gated(g, ctx, "totals", func() (job.Totals, error) { return g.inner.Totals(ctx, app, id) })
}

func (g gatedJobs) Faults(ctx context.Context, app, id string, limit int) ([]string, error) {
	return gated(g, ctx, "faults", func() ([]string, error) { return g.inner.Faults(ctx, app, id, limit) })
}

func (g gatedJobs) FaultyShards(ctx context.Context, app, id string, limit int) ([]job.Shard, error) {
	return gated(g, ctx, "faulty shards", func() ([]job.Shard, error) { return g.inner.FaultyShards(ctx, app, id, limit) })
}

// forward reports whether a shard may become another: what is done stays done.
func forward(was, now job.Shard) bool {
	if now.Step < was.Step || now.Pass < was.Pass {
		return false
	}
	if now.Pass > was.Pass || now.Processed && !was.Processed {
		return true
	}
	return now.Processed == was.Processed && now.Next >= was.Next
}
