package jobdb

import (
	"context"
	"fmt"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/job"
)

func (s *store) CreateShard(ctx context.Context, app, id string, shard job.Shard) error {
	ref, err := s.shardRef(app, id, shard.N)
	if err != nil {
		return err
	}
	if _, err := ref.Create(ctx, shard.Prepared()); err != nil {
		return fmt.Errorf("create shard %d of job %s: %w", shard.N, id, existsError(err))
	}
	return nil
}

func (s *store) Shard(ctx context.Context, app, id string, n int) (job.Shard, error) {
	ref, err := s.shardRef(app, id, n)
	if err != nil {
		return job.Shard{}, err
	}
	shard, _, err := read(ctx, ref, decodeShard)
	if err != nil {
		return job.Shard{}, fmt.Errorf("read shard %d of job %s: %w", n, id, err)
	}
	return shard, nil
}

// shards is the query of all shards of a job.
func (s *store) shards(app, id string) (firestore.Query, error) {
	ref, err := s.jobRef(app, id)
	if err != nil {
		return firestore.Query{}, err
	}
	return ref.Collection("shards").Query, nil
}

func (s *store) LastShard(ctx context.Context, app, id string) (job.Shard, error) {
	query, err := s.shards(app, id)
	if err != nil {
		return job.Shard{}, err
	}
	last, err := list(ctx, query.OrderBy("n", firestore.Desc).Limit(1), decodeShard, "shards of job "+id)
	if err == nil && len(last) == 0 {
		err = fmt.Errorf("last shard of job %s: %w", id, job.ErrNotFound)
	}
	if err != nil {
		return job.Shard{}, err
	}
	return last[0], nil
}

func (s *store) ShardsIn(ctx context.Context, app, id string, state job.ShardState, limit int) ([]job.Shard, error) {
	query, err := s.shards(app, id)
	if err != nil {
		return nil, err
	}
	return list(ctx, query.Where("state", "==", state).Limit(limit), decodeShard, "shards of job "+id)
}

func (s *store) UpdateShard(ctx context.Context, app, id string, n int,
	change func(*job.Shard) error) (job.Shard, error) {
	ref, err := s.shardRef(app, id, n)
	if err != nil {
		return job.Shard{}, err
	}
	shard, err := update(ctx, ref, decodeShard, func(s job.Shard) (job.Shard, []firestore.Update, error) {
		s, err := s.Apply(change)
		return s, []firestore.Update{
			{Path: "state", Value: s.State}, {Path: "step", Value: s.Step}, {Path: "pass", Value: s.Pass},
			{Path: "from", Value: s.From}, {Path: "to", Value: s.To}, {Path: "details", Value: textField(s.Details)},
			{Path: "next", Value: s.Next}, {Path: "swept", Value: s.Processed}, {Path: "lastTry", Value: s.LastTry},
			{Path: "counts", Value: s.Counts}, {Path: "stale", Value: s.Stale}, {Path: "faults", Value: s.Faults},
			{Path: "result", Value: s.Result}, {Path: "error", Value: s.Error},
			{Path: "expiresAt", Value: timeField(s.ExpiresAt)},
		}, err
	})
	if err != nil {
		return job.Shard{}, fmt.Errorf("update shard %d of job %s: %w", n, id, err)
	}
	return shard, nil
}

func (s *store) Faults(ctx context.Context, app, id string, limit int) ([]string, error) {
	faulty, err := s.FaultyShards(ctx, app, id, limit)
	return job.FirstFaults(faulty, limit), err
}

func (s *store) FaultyShards(ctx context.Context, app, id string, limit int) ([]job.Shard, error) {
	query, err := s.shards(app, id)
	if err != nil {
		return nil, err
	}
	// Each of these shards has at least one fault, so limit shards suffice. The
	// query sorts them by their count of faults: to sort them by number would
	// need an index over both fields.
	return list(ctx, query.Where("counts."+job.CountFaulty, ">", 0).Limit(limit), decodeShard, "faulty shards of job "+id)
}

func (s *store) Totals(ctx context.Context, app, id string) (job.Totals, error) {
	query, err := s.shards(app, id)
	if err != nil {
		return job.Totals{}, err
	}
	var t job.Totals
	g, ctx := errgroup.WithContext(ctx)
	// One query for each sum: a query for several sums would need an index over
	// all their fields.
	count := func(into *int, q firestore.Query) {
		g.Go(func() error {
			n, err := aggregate(ctx, q.NewAggregationQuery().WithCount(aggregated))
			*into = int(n)
			return err
		})
	}
	sum := func(into *int64, field string) {
		g.Go(func() (err error) {
			*into, err = aggregate(ctx, query.NewAggregationQuery().WithSum(field, aggregated))
			return err
		})
	}
	count(&t.Shards, query)
	count(&t.Done, query.Where("state", "==", job.ShardDone))
	count(&t.Failed, query.Where("state", "==", job.ShardFailed))
	sum(&t.PlannedUsers, "plannedUsers")
	sum(&t.Stale, "stale")
	names := s.collection.Counts
	sums := make([]int64, len(names))
	for i, name := range names {
		sum(&sums[i], "counts."+name)
	}
	if err := g.Wait(); err != nil {
		return job.Totals{}, fmt.Errorf("sum up job %s: %w", id, err)
	}
	for i, name := range names {
		t.Counts = t.Counts.Plus(job.Counts{name: sums[i]})
	}
	return t, nil
}

// aggregated names the result of an aggregation query.
const aggregated = "n"

func aggregate(ctx context.Context, query *firestore.AggregationQuery) (int64, error) {
	result, err := query.Get(ctx)
	if err != nil {
		return 0, err
	}
	value, ok := result[aggregated].(*firestorepb.Value)
	if !ok {
		return 0, fmt.Errorf("an aggregation answered %T", result[aggregated])
	}
	return value.GetIntegerValue(), nil
}
