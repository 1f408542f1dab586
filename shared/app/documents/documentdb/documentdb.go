// Package documentdb keeps documents in Firestore. It is separate from package documents so
// that what lies above that needs no cloud library.
package documentdb

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/documents"
)

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
	return documents.NewDocument(path, snapshot.UpdateTime, func(into any) error {
		if err := snapshot.DataTo(into); err != nil {
			return fmt.Errorf("document %s: %w", path, err)
		}
		return nil
	})
}

func (s store) Get(ctx context.Context, path string) (documents.Document, error) {
	snapshot, err := s.read(ctx, path)
	if err != nil {
		return documents.Document{}, err
	}
	return document(path, snapshot), nil
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
	if len(q.Only) > 0 {
		query = query.Select(q.Only...)
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

// Commit makes one write without a transaction, and several in one. A transaction reads only
// what must not exist: it locks what it reads, and other writers wait for seconds.
func (s store) Commit(ctx context.Context, writes ...documents.Write) error {
	var err error
	if w := writes[0]; len(writes) == 1 && !(w.New && w.Fields == nil) {
		err = s.write(ctx, w)
	} else {
		err = s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
			for _, w := range writes { // before all writes
				if w.New && w.Fields == nil {
					if snapshot, err := tx.Get(s.client.Doc(w.Path)); snapshot == nil {
						return err
					} else if snapshot.Exists() {
						return documents.ErrOvertaken
					}
				}
			}
			for _, w := range writes {
				if err := s.writeIn(tx, w); err != nil {
					return err
				}
			}
			return nil
		}, firestore.MaxAttempts(1))
	}
	switch status.Code(err) {
	case codes.OK:
		return nil
	case codes.Unknown: // of this package
	case codes.AlreadyExists:
		err = documents.ErrExists
	case codes.Aborted, codes.FailedPrecondition, codes.NotFound: // a document that was read is gone
		err = fmt.Errorf("%w: %v", documents.ErrOvertaken, err)
	}
	return fmt.Errorf("write document %s: %w", writes[0].Path, err)
}

func (s store) write(ctx context.Context, w documents.Write) (err error) {
	ref, data, updates, conditions := s.parts(w)
	switch {
	case w.Fields == nil:
		_, err = ref.Delete(ctx, conditions...)
	case w.New:
		_, err = ref.Create(ctx, data)
	case w.Whole:
		_, err = ref.Set(ctx, data)
	default:
		_, err = ref.Update(ctx, updates, conditions...)
	}
	return err
}

func (s store) writeIn(tx *firestore.Transaction, w documents.Write) error {
	ref, data, updates, conditions := s.parts(w)
	switch {
	case w.Fields == nil && w.New:
		return nil
	case w.Fields == nil:
		return tx.Delete(ref, conditions...)
	case w.New:
		return tx.Create(ref, data)
	case w.Whole:
		return tx.Set(ref, data)
	}
	return tx.Update(ref, updates, conditions...)
}

// parts returns a write in the terms of the client: the fields of a whole document, and the
// changes of another one.
func (s store) parts(w documents.Write) (
	ref *firestore.DocumentRef, data map[string]any, updates []firestore.Update, conditions []firestore.Precondition) {
	data = map[string]any{}
	for name, value := range w.Fields {
		if value == documents.Now {
			value = firestore.ServerTimestamp
		}
		if value == documents.Removed {
			updates = append(updates, firestore.Update{FieldPath: firestore.FieldPath{name}, Value: firestore.Delete})
			continue
		}
		data[name] = value
		updates = append(updates, firestore.Update{FieldPath: firestore.FieldPath{name}, Value: value})
	}
	if w.Read != nil {
		conditions = append(conditions, firestore.LastUpdateTime(w.Read.Version.(time.Time)))
	}
	return s.client.Doc(w.Path), data, updates, conditions
}
