package job

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/googleapis/gax-go/v2"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/config/configdb"
)

// maxAttempts bounds the tries of a change that others get in the way of.
const maxAttempts = 20

// firestoreJobs keeps the jobs in Firestore.
type firestoreJobs struct {
	client     *firestore.Client
	collection string
}

var _ Jobs = (*firestoreJobs)(nil)

// NewFirestore returns the store that lies in the client's database, in a
// collection of that name under each app's document. It keeps nothing in memory
// and does not close the client. It needs no index but those that Firestore makes
// of every field.
func NewFirestore(client *firestore.Client, collection string) Jobs {
	return &firestoreJobs{client, collection}
}

func (f *firestoreJobs) jobs(app string) *firestore.CollectionRef {
	return configdb.AppDocument(f.client, app).Collection(f.collection)
}

// jobRef is where a job lies; an id that no job can have is not found.
func (f *firestoreJobs) jobRef(app, id string) (*firestore.DocumentRef, error) {
	if !config.ValidAppID(app) || !idForm.MatchString(id) {
		return nil, fmt.Errorf("job %q of app %q: %w", id, app, ErrNotFound)
	}
	return f.jobs(app).Doc(id), nil
}

// shardForm makes the names of shards sort as their numbers do.
const shardForm = "%07d"

func (f *firestoreJobs) shardRef(app, id string, n int) (*firestore.DocumentRef, error) {
	job, err := f.jobRef(app, id)
	if err != nil {
		return nil, err
	}
	return job.Collection("shards").Doc(fmt.Sprintf(shardForm, n)), nil
}

// read decodes a document and returns when it was written last.
func read(ctx context.Context, ref *firestore.DocumentRef, into any) (time.Time, error) {
	snapshot, err := ref.Get(ctx)
	// A missing database answers NotFound too, but without a snapshot: that is a
	// fault, and says nothing about the document.
	if snapshot != nil && !snapshot.Exists() {
		return time.Time{}, ErrNotFound
	}
	if err != nil {
		return time.Time{}, err
	}
	return snapshot.UpdateTime, snapshot.DataTo(into)
}

func (f *firestoreJobs) Create(ctx context.Context, job Job) error {
	job, err := job.prepared()
	if err != nil {
		return err
	}
	if _, err := f.jobs(job.App).Doc(job.ID).Create(ctx, job); err != nil {
		return fmt.Errorf("create job %s of app %q: %w", job.ID, job.App, existing(err))
	}
	return nil
}

func existing(err error) error {
	if status.Code(err) == codes.AlreadyExists {
		return ErrExists
	}
	return err
}

func (f *firestoreJobs) Job(ctx context.Context, app, id string) (Job, error) {
	ref, err := f.jobRef(app, id)
	if err != nil {
		return Job{}, err
	}
	var job Job
	if _, err := read(ctx, ref, &job); err != nil {
		return Job{}, fmt.Errorf("read job %s of app %q: %w", id, app, err)
	}
	return job, nil
}

func (f *firestoreJobs) List(ctx context.Context, app string, limit int) ([]Job, error) {
	// Of those that began at the same time the order is that of their names.
	query := f.jobs(app).OrderBy("startedAt", firestore.Desc).Limit(limit)
	return list[Job](ctx, query, f.collection+" of app "+app)
}

func (f *firestoreJobs) Unfinished(ctx context.Context, app string) ([]Job, error) {
	query := f.jobs(app).Where("state", "in", []State{Planning, Running})
	jobs, err := list[Job](ctx, query, "unfinished "+f.collection+" of app "+app)
	slices.SortFunc(jobs, NewestFirst)
	return jobs, err
}

// list decodes what a query finds.
func list[T any](ctx context.Context, query firestore.Query, what string) ([]T, error) {
	documents, err := query.Documents(ctx).GetAll()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	all := make([]T, len(documents))
	for i, document := range documents {
		if err := document.DataTo(&all[i]); err != nil {
			return nil, fmt.Errorf("list %s: document %s: %w", what, document.Ref.ID, err)
		}
	}
	return all, nil
}

func (f *firestoreJobs) Update(ctx context.Context, app, id string, change func(*Job) error) (Job, error) {
	ref, err := f.jobRef(app, id)
	if err != nil {
		return Job{}, err
	}
	job, err := update(ctx, ref, func(job Job) (Job, []firestore.Update, error) {
		job, err := job.changed(change)
		return job, []firestore.Update{
			{Path: "state", Value: job.State}, {Path: "planStep", Value: job.PlanStep}, {Path: "totals", Value: job.Totals},
			{Path: "finishedAt", Value: job.FinishedAt}, {Path: "error", Value: job.Error},
			{Path: "expiresAt", Value: expiryField(job.ExpiresAt)},
		}, err
	})
	if err != nil {
		return Job{}, fmt.Errorf("update job %s of app %q: %w", id, app, err)
	}
	return job, nil
}

// expiryField is a time of expiry as it is written: TTL would take a zero one for
// long over, so there is none at all.
func expiryField(at time.Time) any {
	if at.IsZero() {
		return firestore.Delete
	}
	return at
}

// update changes a document as it was read, and reads it again if somebody else
// has changed it meanwhile. A transaction that reads would hold a lock: then
// others wait for seconds where here they only try again.
func update[T any](ctx context.Context, ref *firestore.DocumentRef, change func(T) (T, []firestore.Update, error)) (T, error) {
	backoff := gax.Backoff{Initial: 10 * time.Millisecond, Max: time.Second}
	for attempt := 1; ; attempt++ {
		var was, none T
		at, err := read(ctx, ref, &was)
		if err != nil {
			return none, err
		}
		now, fields, err := change(was)
		if err != nil {
			return none, err
		}
		_, err = ref.Update(ctx, fields, firestore.LastUpdateTime(at))
		switch status.Code(err) {
		case codes.OK:
			return now, nil
		case codes.Aborted, codes.FailedPrecondition:
		default:
			return none, err
		}
		if attempt == maxAttempts {
			return none, err
		}
		if err := gax.Sleep(ctx, backoff.Pause()); err != nil {
			return none, err
		}
	}
}

func (f *firestoreJobs) CreateShard(ctx context.Context, app, id string, shard Shard) error {
	ref, err := f.shardRef(app, id, shard.N)
	if err != nil {
		return err
	}
	if _, err := ref.Create(ctx, shard.prepared()); err != nil {
		return fmt.Errorf("create shard %d of job %s: %w", shard.N, id, existing(err))
	}
	return nil
}

func (f *firestoreJobs) Shard(ctx context.Context, app, id string, n int) (Shard, error) {
	ref, err := f.shardRef(app, id, n)
	if err != nil {
		return Shard{}, err
	}
	var shard Shard
	if _, err := read(ctx, ref, &shard); err != nil {
		return Shard{}, fmt.Errorf("read shard %d of job %s: %w", n, id, err)
	}
	return shard, nil
}

// shards is where a job's shards lie.
func (f *firestoreJobs) shards(app, id string) (firestore.Query, error) {
	job, err := f.jobRef(app, id)
	if err != nil {
		return firestore.Query{}, err
	}
	return job.Collection("shards").Query, nil
}

func (f *firestoreJobs) LastShard(ctx context.Context, app, id string) (Shard, error) {
	query, err := f.shards(app, id)
	if err != nil {
		return Shard{}, err
	}
	last, err := list[Shard](ctx, query.OrderBy("n", firestore.Desc).Limit(1), "shards of job "+id)
	if err == nil && len(last) == 0 {
		err = fmt.Errorf("last shard of job %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return Shard{}, err
	}
	return last[0], nil
}

func (f *firestoreJobs) ShardsIn(ctx context.Context, app, id string, state ShardState, limit int) ([]Shard, error) {
	query, err := f.shards(app, id)
	if err != nil {
		return nil, err
	}
	return list[Shard](ctx, query.Where("state", "==", state).Limit(limit), "shards of job "+id)
}

func (f *firestoreJobs) UpdateShard(ctx context.Context, app, id string, n int, change func(*Shard) error) (Shard, error) {
	ref, err := f.shardRef(app, id, n)
	if err != nil {
		return Shard{}, err
	}
	shard, err := update(ctx, ref, func(s Shard) (Shard, []firestore.Update, error) {
		s, err := s.changed(change)
		return s, []firestore.Update{
			{Path: "state", Value: s.State}, {Path: "step", Value: s.Step}, {Path: "pass", Value: s.Pass}, {Path: "next", Value: s.Next},
			{Path: "swept", Value: s.Swept}, {Path: "lastTry", Value: s.LastTry}, {Path: "visited", Value: s.Visited},
			{Path: "users", Value: s.Users}, {Path: "events", Value: s.Events}, {Path: "changed", Value: s.Changed}, {Path: "left", Value: s.Left},
			{Path: "faulty", Value: s.Faulty}, {Path: "faults", Value: s.Faults}, {Path: "stale", Value: s.Stale}, {Path: "error", Value: s.Error},
			{Path: "expiresAt", Value: expiryField(s.ExpiresAt)},
		}, err
	})
	if err != nil {
		return Shard{}, fmt.Errorf("update shard %d of job %s: %w", n, id, err)
	}
	return shard, nil
}

func (f *firestoreJobs) Faults(ctx context.Context, app, id string, limit int) ([]string, error) {
	query, err := f.shards(app, id)
	if err != nil {
		return nil, err
	}
	// Each of them has one fault at least. Those of the fewest come first: by their
	// numbers would need an index of both fields.
	faulty, err := list[Shard](ctx, query.Where("faulty", ">", 0).Limit(limit), "faulty shards of job "+id)
	return firstFaults(faulty, limit), err
}

func (f *firestoreJobs) Totals(ctx context.Context, app, id string) (Totals, error) {
	query, err := f.shards(app, id)
	if err != nil {
		return Totals{}, err
	}
	var t Totals
	g, ctx := errgroup.WithContext(ctx)
	// Each by itself: sums of several fields at once would need an index of all.
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
	count(&t.Done, query.Where("state", "==", ShardDone))
	count(&t.Failed, query.Where("state", "==", ShardFailed))
	sum(&t.PlannedUsers, "plannedUsers")
	sum(&t.Visited, "visited")
	sum(&t.Users, "users")
	sum(&t.Events, "events")
	sum(&t.Changed, "changed")
	sum(&t.Left, "left")
	sum(&t.Faulty, "faulty")
	sum(&t.Stale, "stale")
	if err := g.Wait(); err != nil {
		return Totals{}, fmt.Errorf("sum up job %s: %w", id, err)
	}
	return t, nil
}

// aggregated is the name of the one number that is asked for.
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
