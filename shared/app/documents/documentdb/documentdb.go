// Package documentdb keeps documents in Firestore. It is separate from package documents so
// that what lies above that needs no cloud library.
package documentdb

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/documents"
)

// maxAttempts bounds how often a change is tried that conflicts with other writers.
const maxAttempts = 20

type store struct{ client *firestore.Client }

// New returns a store in the client's database. It keeps nothing in memory and does not
// close the client.
func New(client *firestore.Client) documents.Store { return store{client} }

// read reads a document.
func (s store) read(ctx context.Context, path string) (*firestore.DocumentSnapshot, error) {
	snapshot, err := s.client.Doc(path).Get(ctx)
	// A missing database answers NotFound too, but without a snapshot. That is a fault of
	// the deployment, not a missing document.
	if snapshot != nil && !snapshot.Exists() {
		err = documents.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("document %s: %w", path, err)
	}
	return snapshot, nil
}

func document(path string, snapshot *firestore.DocumentSnapshot) documents.Document {
	return documents.NewDocument(path, func(into any) error {
		if err := snapshot.DataTo(into); err != nil {
			return fmt.Errorf("document %s: %w", path, err)
		}
		return nil
	})
}

func (s store) Get(ctx context.Context, path string) (documents.Document, error) {
	snapshot, err := s.read(ctx, path)
	return document(path, snapshot), err
}

// query returns a query of the client, and the path of a document that it finds.
func (s store) query(q documents.Query) (firestore.Query, func(*firestore.DocumentRef) string) {
	path := func(ref *firestore.DocumentRef) string { return q.Collection + "/" + ref.ID }
	var query firestore.Query
	if q.All {
		query = s.client.CollectionGroup(q.Collection).Query
		path = func(ref *firestore.DocumentRef) string { return ref.Path }
	} else {
		query = s.client.Collection(q.Collection).Query
	}
	for _, c := range q.Where {
		query = query.Where(c.Field, string(c.Is), c.Value)
	}
	if direction := firestore.Asc; q.OrderBy != "" {
		if q.Descending {
			direction = firestore.Desc
		}
		// Firestore orders documents of the same value by their ids, in the same direction.
		query = query.OrderBy(q.OrderBy, direction)
	}
	if q.Limit > 0 {
		query = query.Limit(q.Limit)
	}
	return query, path
}

func (s store) Find(ctx context.Context, q documents.Query) ([]documents.Document, error) {
	query, path := s.query(q)
	snapshots, err := query.Documents(ctx).GetAll()
	if err != nil {
		return nil, fmt.Errorf("find documents of %s: %w", q.Collection, err)
	}
	all := make([]documents.Document, len(snapshots))
	for i, snapshot := range snapshots {
		all[i] = document(path(snapshot.Ref), snapshot)
	}
	return all, nil
}

func (s store) Count(ctx context.Context, q documents.Query) (int, error) {
	query, _ := s.query(q)
	n, err := aggregate(ctx, query.NewAggregationQuery().WithCount(aggregated))
	if err != nil {
		return 0, fmt.Errorf("count documents of %s: %w", q.Collection, err)
	}
	return int(n), nil
}

func (s store) Sum(ctx context.Context, q documents.Query, field string) (int64, error) {
	query, _ := s.query(q)
	n, err := aggregate(ctx, query.NewAggregationQuery().WithSum(field, aggregated))
	if err != nil {
		return 0, fmt.Errorf("add up %s of documents of %s: %w", field, q.Collection, err)
	}
	return n, nil
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

func (s store) Create(ctx context.Context, path string, values ...any) error {
	fields := documents.FieldsOf(values...)
	for name, value := range fields {
		if value == documents.Removed {
			delete(fields, name)
		}
	}
	_, err := s.client.Doc(path).Create(ctx, map[string]any(fields))
	if status.Code(err) == codes.AlreadyExists {
		err = documents.ErrExists
	}
	if err != nil {
		return fmt.Errorf("create document %s: %w", path, err)
	}
	return nil
}

// Update writes on condition that nobody has written the document since it was read, and
// starts over after a conflict. A transaction would lock the document from its read on, and
// other writers would wait for seconds.
func (s store) Update(ctx context.Context, path string, change func(documents.Document) (documents.Fields, error)) error {
	backoff := gax.Backoff{Initial: 10 * time.Millisecond, Max: time.Second}
	for attempt := 1; ; attempt++ {
		snapshot, err := s.read(ctx, path)
		if err != nil {
			return err
		}
		fields, err := change(document(path, snapshot))
		if err != nil || len(fields) == 0 {
			return err
		}
		var updates []firestore.Update
		for name, value := range fields {
			if value == documents.Removed {
				value = firestore.Delete
			}
			updates = append(updates, firestore.Update{FieldPath: firestore.FieldPath{name}, Value: value})
		}
		_, err = s.client.Doc(path).Update(ctx, updates, firestore.LastUpdateTime(snapshot.UpdateTime))
		switch status.Code(err) {
		case codes.OK:
			return nil
		case codes.Aborted, codes.FailedPrecondition:
		default:
			return fmt.Errorf("update document %s: %w", path, err)
		}
		if attempt == maxAttempts {
			return fmt.Errorf("update document %s: %w", path, err)
		}
		if err := gax.Sleep(ctx, backoff.Pause()); err != nil {
			return err
		}
	}
}
