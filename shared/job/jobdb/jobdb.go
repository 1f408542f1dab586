// Package jobdb keeps jobs and their shards in Firestore, beside the
// configuration of their app; package job describes the documents. It stores what
// it is given: job.Detailed takes out what may name a user. It is
// separate from package job so that a runner needs no cloud library.
package jobdb

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/config/configdb"
	"github.com/affinityengine/affinity/shared/job"
)

// maxAttempts bounds how often a change is tried that conflicts with other
// writers.
const maxAttempts = 20

// store keeps the jobs of a collection.
type store struct {
	client     *firestore.Client
	collection job.Collection
}

var _ job.Jobs = (*store)(nil)

// New returns the store of a collection in the client's database. It keeps
// nothing in memory and does not close the client. Before needs an index over the
// collections of all apps; the rest, those that Firestore keeps for every field.
func New(client *firestore.Client, collection job.Collection) job.Jobs {
	return &store{client, collection}
}

func (s *store) jobs(app string) *firestore.CollectionRef {
	if s.collection.BelowDeletion {
		return configdb.DeletionDocument(s.client, app).Collection(s.collection.Name)
	}
	return configdb.AppDocument(s.client, app).Collection(s.collection.Name)
}

func (s *store) Forget(ctx context.Context, app string) error {
	if err := configdb.Forget(ctx, s.client, s.jobs(app)); err != nil {
		return fmt.Errorf("delete %s of app %q: %w", s.collection.Name, app, err)
	}
	return nil
}

// jobRef is the document of a job; ErrNotFound for an id that no job can have.
func (s *store) jobRef(app, id string) (*firestore.DocumentRef, error) {
	if !config.ValidAppID(app) || !job.ValidID(id) {
		return nil, fmt.Errorf("job %q of app %q: %w", id, app, job.ErrNotFound)
	}
	return s.jobs(app).Doc(id), nil
}

// shardForm makes the names of shards sort as their numbers do.
const shardForm = "%07d"

func (s *store) shardRef(app, id string, n int) (*firestore.DocumentRef, error) {
	ref, err := s.jobRef(app, id)
	if err != nil {
		return nil, err
	}
	return ref.Collection("shards").Doc(fmt.Sprintf(shardForm, n)), nil
}

// decodeJob decodes the document of a job.
func (s *store) decodeJob(d *firestore.DocumentSnapshot) (j job.Job, err error) {
	if err := d.DataTo(&j); err != nil {
		return job.Job{}, err
	}
	j.Params, err = s.collection.Decode(d.DataTo)
	return j, err
}

// decodeShard decodes the document of a shard.
func decodeShard(d *firestore.DocumentSnapshot) (shard job.Shard, err error) {
	err = d.DataTo(&shard)
	return shard, err
}

// read decodes a document and returns when it was written last.
func read[T any](ctx context.Context, ref *firestore.DocumentRef,
	decode func(*firestore.DocumentSnapshot) (T, error)) (T, time.Time, error) {
	var none T
	snapshot, err := ref.Get(ctx)
	// A missing database answers NotFound too, but without a snapshot. That is
	// a fault of the deployment, not a missing document.
	if snapshot != nil && !snapshot.Exists() {
		return none, time.Time{}, job.ErrNotFound
	}
	if err != nil {
		return none, time.Time{}, err
	}
	v, err := decode(snapshot)
	return v, snapshot.UpdateTime, err
}

func (s *store) Create(ctx context.Context, j job.Job) error {
	j, err := j.Prepared()
	if err != nil {
		return err
	}
	document := fields(j)
	for name, value := range fields(j.Params) {
		document[name] = value
	}
	if _, err := s.jobs(j.App).Doc(j.ID).Create(ctx, document); err != nil {
		return fmt.Errorf("create job %s of app %q: %w", j.ID, j.App, existsError(err))
	}
	return nil
}

// existsError turns Firestore's AlreadyExists into ErrExists.
func existsError(err error) error {
	if status.Code(err) == codes.AlreadyExists {
		return job.ErrExists
	}
	return err
}

func (s *store) Job(ctx context.Context, app, id string) (job.Job, error) {
	ref, err := s.jobRef(app, id)
	if err != nil {
		return job.Job{}, err
	}
	j, _, err := read(ctx, ref, s.decodeJob)
	if err != nil {
		return job.Job{}, fmt.Errorf("read job %s of app %q: %w", id, app, err)
	}
	return j, nil
}

func (s *store) List(ctx context.Context, app string, limit int) ([]job.Job, error) {
	// Firestore orders jobs of the same start by their names, in the same
	// direction.
	query := s.jobs(app).OrderBy("startedAt", firestore.Desc).Limit(limit)
	return list(ctx, query, s.decodeJob, s.collection.Name+" of app "+app)
}

var unfinished = []job.State{job.Planning, job.Running}

func (s *store) Unfinished(ctx context.Context, app string) ([]job.Job, error) {
	query := s.jobs(app).Where("state", "in", unfinished)
	jobs, err := list(ctx, query, s.decodeJob, "unfinished "+s.collection.Name+" of app "+app)
	slices.SortFunc(jobs, job.NewestFirst)
	return jobs, err
}

// Before reads the composite index of a collection group, which Terraform makes.
func (s *store) Before(ctx context.Context, queue string, due time.Time) (int, error) {
	query := s.client.CollectionGroup(s.collection.Name).Where("queue", "==", queue).
		Where("state", "in", unfinished).Where("queuedAt", "<", due)
	n, err := aggregate(ctx, query.NewAggregationQuery().WithCount(aggregated))
	if err != nil {
		return 0, fmt.Errorf("count the unfinished %s before: %w", s.collection.Name, err)
	}
	return int(n), nil
}

// list decodes the documents that a query finds.
func list[T any](ctx context.Context, query firestore.Query,
	decode func(*firestore.DocumentSnapshot) (T, error), what string) ([]T, error) {
	documents, err := query.Documents(ctx).GetAll()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	all := make([]T, len(documents))
	for i, document := range documents {
		if all[i], err = decode(document); err != nil {
			return nil, fmt.Errorf("list %s: document %s: %w", what, document.Ref.ID, err)
		}
	}
	return all, nil
}

func (s *store) Update(ctx context.Context, app, id string, change func(*job.Job) error) (job.Job, error) {
	ref, err := s.jobRef(app, id)
	if err != nil {
		return job.Job{}, err
	}
	j, err := update(ctx, ref, s.decodeJob, func(j job.Job) (job.Job, []firestore.Update, error) {
		j, err := j.Apply(change)
		return j, []firestore.Update{
			{Path: "state", Value: j.State}, {Path: "planStep", Value: j.PlanStep}, {Path: "totals", Value: j.Totals},
			{Path: "finishedAt", Value: j.FinishedAt}, {Path: "error", Value: j.Error}, {Path: "details", Value: textField(j.Details)},
			{Path: "expiresAt", Value: timeField(j.ExpiresAt)}, {Path: "runningAt", Value: timeField(j.RunningAt)},
		}, err
	})
	if err != nil {
		return job.Job{}, fmt.Errorf("update job %s of app %q: %w", id, app, err)
	}
	return j, nil
}

// timeField is the stored form of an optional time. A zero time removes the field:
// TTL would read it as a time long ago.
func timeField(at time.Time) any {
	if at.IsZero() {
		return firestore.Delete
	}
	return at
}

// textField is the stored form of an optional text.
func textField(text string) any {
	if text == "" {
		return firestore.Delete
	}
	return text
}

// update changes a document on condition that nobody has written it since
// update read it, and starts over after a conflict. A transaction would lock
// the document from its read on, and other writers would wait for seconds.
func update[T any](ctx context.Context, ref *firestore.DocumentRef, decode func(*firestore.DocumentSnapshot) (T, error),
	change func(T) (T, []firestore.Update, error)) (T, error) {
	var none T
	backoff := gax.Backoff{Initial: 10 * time.Millisecond, Max: time.Second}
	for attempt := 1; ; attempt++ {
		old, readAt, err := read(ctx, ref, decode)
		if err != nil {
			return none, err
		}
		changed, fields, err := change(old)
		if err != nil {
			return none, err
		}
		_, err = ref.Update(ctx, fields, firestore.LastUpdateTime(readAt))
		switch status.Code(err) {
		case codes.OK:
			return changed, nil
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
