package recompute_test

import (
	"context"

	"github.com/affinityengine/affinity/shared/recompute"
)

// gatedJobs sends every call through the gate.
type gatedJobs struct {
	*world
	inner recompute.Jobs
}

// gated is a call with an answer.
func gated[T any](g gatedJobs, ctx context.Context, what string, do func() (T, error)) (answer T, err error) {
	err = g.call(ctx, what, func() (err error) { answer, err = do(); return err })
	return answer, err
}

func (g gatedJobs) Create(ctx context.Context, job recompute.Job) error {
	return g.call(ctx, "create", func() error { return g.inner.Create(ctx, job) })
}

func (g gatedJobs) Job(ctx context.Context, app, id string) (recompute.Job, error) {
	return gated(g, ctx, "job", func() (recompute.Job, error) { return g.inner.Job(ctx, app, id) })
}

func (g gatedJobs) List(ctx context.Context, app string, limit int) ([]recompute.Job, error) {
	return gated(g, ctx, "list", func() ([]recompute.Job, error) { return g.inner.List(ctx, app, limit) })
}

func (g gatedJobs) Unfinished(ctx context.Context, app string) ([]recompute.Job, error) {
	return gated(g, ctx, "unfinished", func() ([]recompute.Job, error) { return g.inner.Unfinished(ctx, app) })
}

func (g gatedJobs) Update(ctx context.Context, app, id string, change func(*recompute.Job) error) (recompute.Job, error) {
	return gated(g, ctx, "update", func() (recompute.Job, error) { return g.inner.Update(ctx, app, id, change) })
}

func (g gatedJobs) CreateShard(ctx context.Context, app, id string, shard recompute.Shard) error {
	return g.call(ctx, "create shard", func() error { return g.inner.CreateShard(ctx, app, id, shard) })
}

func (g gatedJobs) Shard(ctx context.Context, app, id string, n int) (recompute.Shard, error) {
	return gated(g, ctx, "shard", func() (recompute.Shard, error) { return g.inner.Shard(ctx, app, id, n) })
}

func (g gatedJobs) LastShard(ctx context.Context, app, id string) (recompute.Shard, error) {
	return gated(g, ctx, "last shard", func() (recompute.Shard, error) { return g.inner.LastShard(ctx, app, id) })
}

func (g gatedJobs) ShardsIn(ctx context.Context, app, id string, state recompute.ShardState, limit int) ([]recompute.Shard, error) {
	return gated(g, ctx, "shards in", func() ([]recompute.Shard, error) { return g.inner.ShardsIn(ctx, app, id, state, limit) })
}

func (g gatedJobs) UpdateShard(ctx context.Context, app, id string, n int, change func(*recompute.Shard) error) (recompute.Shard, error) {
	return gated(g, ctx, "update shard", func() (recompute.Shard, error) {
		return g.inner.UpdateShard(ctx, app, id, n, func(s *recompute.Shard) error {
			was := *s
			err := change(s)
			if err == nil && !forward(was, *s) {
				g.t.Errorf("a shard went back from %+v to %+v", was, *s)
			}
			return err
		})
	})
}

func (g gatedJobs) Totals(ctx context.Context, app, id string) (recompute.Totals, error) {
	return gated(g, ctx, "totals", func() (recompute.Totals, error) { return g.inner.Totals(ctx, app, id) })
}

// forward tells whether a shard may become another: what is done stays done.
func forward(was, now recompute.Shard) bool {
	if now.Step < was.Step || now.Pass < was.Pass {
		return false
	}
	return now.Pass > was.Pass || now.Next >= was.Next && (now.Swept || !was.Swept)
}
