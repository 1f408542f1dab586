package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
)

// stored keeps the jobs of a collection in documents.
type stored struct {
	documents  documents.Store
	collection Collection
}

var _ Jobs = stored{}

// In returns the jobs of a collection whose documents are in store. Before needs an index over
// the collections of all apps; the rest, those that Firestore keeps for every field.
func In(store documents.Store, c Collection) Jobs { return stored{store, c} }

// jobs is the path of the collection of an app.
func (s stored) jobs(app string) string {
	if s.collection.BelowDeletion {
		return config.DeletionPath(app) + "/" + s.collection.Name
	}
	return config.AppPath(app) + "/" + s.collection.Name
}

// path is the path of a job; ErrNotFound for an id that no job can have.
func (s stored) path(app, id string) (string, error) {
	if !config.ValidAppID(app) || !validID(id) {
		return "", ErrNotFound
	}
	return s.jobs(app) + "/" + id, nil
}

func (s stored) shards(app, id string) (string, error) {
	path, err := s.path(app, id)
	return path + "/shards", err
}

// shardForm makes the names of shards sort as their numbers do.
const shardForm = "%s/%07d"

func (s stored) shardPath(app, id string, n int) (string, error) {
	shards, err := s.shards(app, id)
	return fmt.Sprintf(shardForm, shards, n), err
}

// named turns the errors of documents into those of this package.
func named(err error) error {
	switch {
	case errors.Is(err, documents.ErrNotFound):
		return fmt.Errorf("%w: %v", ErrNotFound, err)
	case errors.Is(err, documents.ErrExists):
		return fmt.Errorf("%w: %v", ErrExists, err)
	}
	return err
}

// decodeJob decodes the document of a job.
func (s stored) decodeJob(d documents.Document) (j Job, err error) {
	if err := d.Decode(&j); err != nil {
		return Job{}, err
	}
	j.Params, err = s.collection.Decode(d.Decode)
	return j, err
}

// decodeShard decodes the document of a shard.
func decodeShard(d documents.Document) (shard Shard, err error) {
	err = d.Decode(&shard)
	return shard, err
}

func (s stored) Create(ctx context.Context, j Job) error {
	j, err := j.Prepared()
	if err != nil {
		return err
	}
	if err := s.documents.Commit(ctx, documents.Create(s.jobs(j.App)+"/"+j.ID, j, j.Params)); err != nil {
		return fmt.Errorf("create job %s of app %q: %w", j.ID, j.App, named(err))
	}
	return nil
}

// get reads the document of a path, or returns the error with which the path was made.
func get[T any](ctx context.Context, s documents.Store, path string, err error,
	decode func(documents.Document) (T, error)) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	d, err := s.Get(ctx, path)
	if err != nil {
		return none, named(err)
	}
	return decode(d)
}

func (s stored) Job(ctx context.Context, app, id string) (Job, error) {
	path, err := s.path(app, id)
	j, err := get(ctx, s.documents, path, err, s.decodeJob)
	if err != nil {
		return Job{}, fmt.Errorf("read job %q of app %q: %w", id, app, err)
	}
	return j, nil
}

// find decodes the documents that a query finds.
func find[T any](ctx context.Context, s documents.Store, q documents.Query,
	decode func(documents.Document) (T, error)) ([]T, error) {
	found, err := s.Find(ctx, q)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(found))
	for i, d := range found {
		if all[i], err = decode(d); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s stored) List(ctx context.Context, app string, limit int) ([]Job, error) {
	jobs, err := find(ctx, s.documents, documents.Query{Collection: s.jobs(app), OrderBy: "startedAt",
		Descending: true, Limit: limit}, s.decodeJob)
	if err != nil {
		return nil, fmt.Errorf("list %s of app %q: %w", s.collection.Name, app, err)
	}
	return jobs, nil
}

// unfinished is met by jobs that have not ended.
var unfinished = documents.Condition{Field: "state", Is: documents.In, Value: []State{Planning, Running}}

func (s stored) Unfinished(ctx context.Context, app string) ([]Job, error) {
	jobs, err := find(ctx, s.documents, documents.Query{Collection: s.jobs(app),
		Where: []documents.Condition{unfinished}}, s.decodeJob)
	if err != nil {
		return nil, fmt.Errorf("list unfinished %s of app %q: %w", s.collection.Name, app, err)
	}
	slices.SortFunc(jobs, NewestFirst)
	return jobs, nil
}

// Before reads the composite index of a collection group, which Terraform makes.
func (s stored) Before(ctx context.Context, queue string, due time.Time) (int, error) {
	return s.documents.Count(ctx, documents.Query{Collection: s.collection.Name, All: true, Where: []documents.Condition{
		{Field: "queue", Is: documents.Equal, Value: queue}, unfinished, {Field: "queuedAt", Is: documents.Less, Value: due},
	}})
}

// change applies a change to the document of a path as a compare-and-set.
func change[T any](ctx context.Context, s documents.Store, path string, err error,
	decode func(documents.Document) (T, error),
	apply func(T) (T, error)) (changed T, _ error) {
	if err != nil {
		return changed, err
	}
	err = documents.Update(ctx, s, path, func(d documents.Document) (documents.Fields, error) {
		old, err := decode(d)
		if err == nil {
			changed, err = apply(old)
		}
		return documents.FieldsOf(changed), err
	})
	if err != nil {
		var none T
		return none, named(err)
	}
	return changed, nil
}

func (s stored) Update(ctx context.Context, app, id string, apply func(*Job) error) (Job, error) {
	path, err := s.path(app, id)
	j, err := change(ctx, s.documents, path, err, s.decodeJob, func(j Job) (Job, error) { return j.Apply(apply) })
	if err != nil {
		return Job{}, fmt.Errorf("update job %q of app %q: %w", id, app, err)
	}
	return j, nil
}

func (s stored) CreateShard(ctx context.Context, app, id string, shard Shard) error {
	path, err := s.shardPath(app, id, shard.N)
	if err == nil {
		err = named(s.documents.Commit(ctx, documents.Create(path, shard.Prepared())))
	}
	if err != nil {
		return fmt.Errorf("create shard %d of job %s: %w", shard.N, id, err)
	}
	return nil
}

func (s stored) Shard(ctx context.Context, app, id string, n int) (Shard, error) {
	path, err := s.shardPath(app, id, n)
	shard, err := get(ctx, s.documents, path, err, decodeShard)
	if err != nil {
		return Shard{}, fmt.Errorf("read shard %d of job %s: %w", n, id, err)
	}
	return shard, nil
}

// findShards returns shards of a job.
func (s stored) findShards(ctx context.Context, app, id string, q documents.Query) (shards []Shard, err error) {
	if q.Collection, err = s.shards(app, id); err == nil {
		shards, err = find(ctx, s.documents, q, decodeShard)
	}
	if err != nil {
		return nil, fmt.Errorf("list shards of job %s: %w", id, err)
	}
	return shards, nil
}

func (s stored) LastShard(ctx context.Context, app, id string) (Shard, error) {
	last, err := s.findShards(ctx, app, id, documents.Query{OrderBy: "n", Descending: true, Limit: 1})
	if err == nil && len(last) == 0 {
		err = fmt.Errorf("last shard of job %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return Shard{}, err
	}
	return last[0], nil
}

func (s stored) ShardsIn(ctx context.Context, app, id string, state ShardState, limit int) ([]Shard, error) {
	// Without an order, documents come in that of their names.
	return s.findShards(ctx, app, id, documents.Query{Limit: limit,
		Where: []documents.Condition{{Field: "state", Is: documents.Equal, Value: state}}})
}

func (s stored) UpdateShard(ctx context.Context, app, id string, n int, apply func(*Shard) error) (Shard, error) {
	path, err := s.shardPath(app, id, n)
	shard, err := change(ctx, s.documents, path, err, decodeShard, func(s Shard) (Shard, error) { return s.Apply(apply) })
	if err != nil {
		return Shard{}, fmt.Errorf("update shard %d of job %s: %w", n, id, err)
	}
	return shard, nil
}

func (s stored) Faults(ctx context.Context, app, id string, limit int) ([]string, error) {
	faulty, err := s.FaultyShards(ctx, app, id, limit)
	return firstFaults(faulty, limit), err
}

func (s stored) FaultyShards(ctx context.Context, app, id string, limit int) ([]Shard, error) {
	// Each of these shards has at least one fault, so limit shards suffice. Firestore sorts
	// them by their count of faults: to sort them by number would need an index over both
	// fields.
	return s.findShards(ctx, app, id, documents.Query{Limit: limit,
		Where: []documents.Condition{{Field: "counts." + CountFaulty, Is: documents.Greater, Value: 0}}})
}

func (s stored) Totals(ctx context.Context, app, id string) (Totals, error) {
	shards, err := s.shards(app, id)
	if err != nil {
		return Totals{}, fmt.Errorf("sum up job %s: %w", id, err)
	}
	var t Totals
	g, ctx := errgroup.WithContext(ctx)
	// One query for each sum: a query for several sums would need an index over all their
	// fields.
	count := func(into *int, where ...documents.Condition) {
		g.Go(func() (err error) {
			*into, err = s.documents.Count(ctx, documents.Query{Collection: shards, Where: where})
			return err
		})
	}
	sum := func(into *int64, field string) {
		g.Go(func() (err error) {
			*into, err = s.documents.Sum(ctx, documents.Query{Collection: shards}, field)
			return err
		})
	}
	count(&t.Shards)
	count(&t.Done, documents.Condition{Field: "state", Is: documents.Equal, Value: ShardDone})
	count(&t.Failed, documents.Condition{Field: "state", Is: documents.Equal, Value: ShardFailed})
	sum(&t.PlannedUsers, "plannedUsers")
	sum(&t.Stale, "stale")
	sums := make([]int64, len(s.collection.Counts))
	for i, name := range s.collection.Counts {
		sum(&sums[i], "counts."+name)
	}
	if err := g.Wait(); err != nil {
		return Totals{}, fmt.Errorf("sum up job %s: %w", id, err)
	}
	for i, name := range s.collection.Counts {
		t.Counts = t.Counts.Plus(Counts{name: sums[i]})
	}
	return t, nil
}

func (s stored) Forget(ctx context.Context, app string) error {
	if err := s.documents.Forget(ctx, s.jobs(app)); err != nil {
		return fmt.Errorf("delete %s of app %q: %w", s.collection.Name, app, err)
	}
	return nil
}
