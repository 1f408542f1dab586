package job

import (
	"context"
	"fmt"

	"github.com/affinityengine/affinity/shared/app/config"
)

func (d *detailed) Create(ctx context.Context, job Job) error {
	return create(ctx, d.apart, job.App, d.jobRow(job), job,
		func(j Job) error { return d.Jobs.Create(ctx, j) },
		func() (Job, error) { return d.Jobs.Job(ctx, job.App, job.ID) })
}

func (d *detailed) Job(ctx context.Context, app, id string) (Job, error) {
	return readOne(ctx, d.apart, app, d.jobRow, func() (Job, error) { return d.Jobs.Job(ctx, app, id) })
}

func (d *detailed) List(ctx context.Context, app string, limit int) ([]Job, error) {
	return d.list(ctx, app, func() ([]Job, error) { return d.Jobs.List(ctx, app, limit) }, func(Job) bool { return true })
}

func (d *detailed) Unfinished(ctx context.Context, app string) ([]Job, error) {
	return d.list(ctx, app, func() ([]Job, error) { return d.Jobs.Unfinished(ctx, app) },
		func(j Job) bool { return !j.State.Ended() })
}

func (d *detailed) list(ctx context.Context, app string,
	list func() ([]Job, error), fits func(Job) bool) ([]Job, error) {
	return readAll(ctx, d.apart, app, d.jobRow, list, func(j Job) (Job, error) { return d.Job(ctx, app, j.ID) }, fits)
}

func (d *detailed) Update(ctx context.Context, app, id string, change func(*Job) error) (Job, error) {
	c := changing[Job]{apart: d.apart, app: app, row: d.jobRow, apply: change}
	return c.change(ctx, func(f func(*Job) error) (Job, error) { return d.Jobs.Update(ctx, app, id, f) })
}

func (d *detailed) CreateShard(ctx context.Context, app, id string, shard Shard) error {
	if !config.ValidAppID(app) || !validID(id) { // which can be no part of a row's name
		return fmt.Errorf("job %q of app %q: %w", id, app, ErrNotFound)
	}
	return create(ctx, d.apart, app, d.shardRow(id)(shard), shard,
		func(s Shard) error { return d.Jobs.CreateShard(ctx, app, id, s) },
		func() (Shard, error) { return d.Jobs.Shard(ctx, app, id, shard.N) })
}

func (d *detailed) Shard(ctx context.Context, app, id string, n int) (Shard, error) {
	return readOne(ctx, d.apart, app, d.shardRow(id), func() (Shard, error) { return d.Jobs.Shard(ctx, app, id, n) })
}

func (d *detailed) LastShard(ctx context.Context, app, id string) (Shard, error) {
	return readOne(ctx, d.apart, app, d.shardRow(id), func() (Shard, error) { return d.Jobs.LastShard(ctx, app, id) })
}

func (d *detailed) ShardsIn(ctx context.Context, app, id string, state ShardState, limit int) ([]Shard, error) {
	return d.shards(ctx, app, id, func() ([]Shard, error) { return d.Jobs.ShardsIn(ctx, app, id, state, limit) },
		func(s Shard) bool { return s.State == state })
}

func (d *detailed) FaultyShards(ctx context.Context, app, id string, limit int) ([]Shard, error) {
	return d.shards(ctx, app, id, func() ([]Shard, error) { return d.Jobs.FaultyShards(ctx, app, id, limit) },
		func(Shard) bool { return true })
}

func (d *detailed) shards(ctx context.Context, app, id string,
	list func() ([]Shard, error), fits func(Shard) bool) ([]Shard, error) {
	return readAll(ctx, d.apart, app, d.shardRow(id), list,
		func(s Shard) (Shard, error) { return d.Shard(ctx, app, id, s.N) }, fits)
}

func (d *detailed) Faults(ctx context.Context, app, id string, limit int) ([]string, error) {
	faulty, err := d.FaultyShards(ctx, app, id, limit)
	return firstFaults(faulty, limit), err
}

func (d *detailed) UpdateShard(ctx context.Context, app, id string, n int, change func(*Shard) error) (Shard, error) {
	c := changing[Shard]{apart: d.apart, app: app, row: d.shardRow(id), apply: change}
	return c.change(ctx, func(f func(*Shard) error) (Shard, error) { return d.Jobs.UpdateShard(ctx, app, id, n, f) })
}

// Forget deletes the documents last. While the document of a job is there, the task that
// forgets it is retried.
func (d *detailed) Forget(ctx context.Context, app string) error {
	if config.ValidAppID(app) {
		if err := d.apart.ForgetJobDetails(ctx, app, d.collection+","); err != nil {
			return err
		}
	}
	return d.Jobs.Forget(ctx, app)
}
