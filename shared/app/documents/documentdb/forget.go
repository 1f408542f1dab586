package documentdb

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/iterator"
)

// leaves are collections whose documents have none below them, and which may be
// large. If that were wrong of one, its collection would remain, and Below would
// name it.
var leaves = map[string]bool{"keys": true, "strategies": true, "indexes": true, "feeds": true,
	"savedSegments": true, "endedSessions": true, "shards": true}

// forgetBatch is how many deletions a forgetter waits for together.
const forgetBatch = 200

// forgetter deletes documents in batches.
type forgetter struct {
	writer  *firestore.BulkWriter
	waiting []*firestore.BulkWriterJob
}

// Forget finds a document also if only documents below it exist.
func (s store) Forget(ctx context.Context, collections ...string) error {
	f := &forgetter{writer: s.client.BulkWriter(ctx)}
	defer f.writer.End()
	for _, path := range collections {
		if err := f.collection(ctx, s.client.Collection(path)); err != nil {
			return fmt.Errorf("delete documents of %s: %w", path, err)
		}
	}
	return f.settle()
}

func (s store) Below(ctx context.Context, path string) ([]string, error) {
	collections, err := s.client.Doc(path).Collections(ctx).GetAll()
	if err != nil {
		return nil, fmt.Errorf("list the collections below %s: %w", path, err)
	}
	names := make([]string, len(collections))
	for i, c := range collections {
		names[i] = c.ID
	}
	return names, nil
}

func (f *forgetter) collection(ctx context.Context, c *firestore.CollectionRef) error {
	documents := c.DocumentRefs(ctx)
	for {
		ref, err := documents.Next()
		if errors.Is(err, iterator.Done) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f.document(ctx, ref, leaves[c.ID]); err != nil {
			return err
		}
	}
}

func (f *forgetter) document(ctx context.Context, ref *firestore.DocumentRef, leaf bool) error {
	if !leaf {
		below, err := ref.Collections(ctx).GetAll()
		if err != nil {
			return err
		}
		for _, c := range below {
			if err := f.collection(ctx, c); err != nil {
				return err
			}
		}
	}
	deletion, err := f.writer.Delete(ref)
	if err != nil {
		return err
	}
	if f.waiting = append(f.waiting, deletion); len(f.waiting) < forgetBatch {
		return nil
	}
	return f.settle()
}

// settle waits for the deletions that were begun.
func (f *forgetter) settle() error {
	f.writer.Flush()
	var failed []error
	for _, deletion := range f.waiting {
		if _, err := deletion.Results(); err != nil {
			failed = append(failed, err)
		}
	}
	f.waiting = f.waiting[:0]
	return errors.Join(failed...)
}
