package configdb

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/iterator"

	"github.com/affinityengine/affinity/shared/app/config"
)

// Documents are all documents below those of apps, whatever collections they are in.
type Documents struct{ client *firestore.Client }

// NewDocuments returns the documents of the client's database.
func NewDocuments(client *firestore.Client) Documents { return Documents{client} }

// Forget deletes the documents below that of an app. After an error some are left,
// and the next call continues.
func (d Documents) Forget(ctx context.Context, app string) error {
	collections, err := d.collections(ctx, app)
	if err != nil {
		return fmt.Errorf("delete the documents of app %q: %w", app, err)
	}
	if err := Forget(ctx, d.client, collections...); err != nil {
		return fmt.Errorf("delete the documents of app %q: %w", app, err)
	}
	return nil
}

// Holding names documents that are the app's or lie below its document, at most
// limit.
func (d Documents) Holding(ctx context.Context, app string, limit int) ([]string, error) {
	collections, err := d.collections(ctx, app)
	if err != nil {
		return nil, fmt.Errorf("list the documents of app %q: %w", app, err)
	}
	var names []string
	for _, c := range collections {
		if len(names) < limit {
			names = append(names, c.ID)
		}
	}
	switch err := read(ctx, AppDocument(d.client, app), new(appDocument)); {
	case err == nil:
		names = append(names, "the app's own document")
	case !errors.Is(err, config.ErrNotFound):
		return nil, fmt.Errorf("list the documents of app %q: %w", app, err)
	}
	return names, nil
}

func (d Documents) collections(ctx context.Context, app string) ([]*firestore.CollectionRef, error) {
	return AppDocument(d.client, app).Collections(ctx).GetAll()
}

// leaves are collections whose documents have none below them, and which may be
// large. If that were wrong of one, its collection would remain, and Holding would
// name it.
var leaves = map[string]bool{"keys": true, "strategies": true, "indexes": true, "feeds": true, "savedSegments": true, "shards": true}

// forgetBatch is how many deletions a forgetter waits for together.
const forgetBatch = 200

// forgetter deletes documents in batches.
type forgetter struct {
	writer  *firestore.BulkWriter
	waiting []*firestore.BulkWriterJob
}

// Forget deletes the documents of collections and those below them. It finds a
// document also if only documents below it exist.
func Forget(ctx context.Context, client *firestore.Client, collections ...*firestore.CollectionRef) error {
	f := &forgetter{writer: client.BulkWriter(ctx)}
	defer f.writer.End()
	for _, c := range collections {
		if err := f.collection(ctx, c); err != nil {
			return err
		}
	}
	return f.settle()
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
