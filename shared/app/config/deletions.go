package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
)

// CreateApp stores a new app, or returns ErrExists, or a DeletedError if the id may
// not be used again yet. It ignores app's strategy, private facets, numeric bands,
// feeds, segments, consistency, browser ranking, migration and move. A zero
// CreatedAt becomes the current time, and a zero Log becomes schema.Default().
// ChangedAt is always set to the current time. The app's document takes the place
// of the deletion of one that had the id before.
func (s *Store) CreateApp(ctx context.Context, app App) error {
	app, err := app.Prepare()
	if err != nil {
		return fmt.Errorf("create app: %w", err)
	}
	d, err := newAppDocument(app)
	if err == nil {
		err = documents.Retry(ctx, func() error {
			writes := []documents.Write{documents.Create(AppPath(app.ID), d)}
			ended, old, err := s.readDeletion(ctx, app.ID)
			if err == nil {
				if err := old.Reusable(time.Now()); err != nil {
					return err
				}
				writes = append(writes, documents.Delete(ended))
			} else if errors.Is(err, ErrNotFound) {
				writes = append(writes, documents.Absent(DeletionPath(app.ID)))
			} else {
				return err
			}
			return s.documents.Commit(ctx, writes...)
		})
	}
	if err != nil {
		return fmt.Errorf("create app %q: %w", app.ID, err)
	}
	return nil
}

func (s *Store) readDeletion(ctx context.Context, appID string) (d documents.Document, ended Deletion, err error) {
	if d, err = s.documents.Get(ctx, DeletionPath(appID)); err == nil {
		err = d.Decode(&ended)
	}
	return d, ended.normal(), err
}

// DeleteApp removes an app and stores its Deletion as one change, and returns it.
// From then on no method finds the app or anything of it; what the store holds of
// it beside the app's own document remains until a job deletes it. For an app that
// is deleted already it returns the stored Deletion. It returns ErrNotFound if
// there is neither.
func (s *Store) DeleteApp(ctx context.Context, appID string) (ended Deletion, err error) {
	err = documents.Retry(ctx, func() error {
		d, err := s.documents.Get(ctx, AppPath(appID))
		if errors.Is(err, ErrNotFound) {
			_, ended, err = s.readDeletion(ctx, appID)
			return err
		}
		if err != nil {
			return err
		}
		var stored appDocument
		_ = d.Decode(&stored)  // a damaged document goes as well,
		app, _ := stored.app() // and tells what can be read of it
		ended = Deletion{App: appID, Region: app.Place().Read, StartedAt: Stamp(time.Time{}), Attempt: 1}
		return s.documents.Commit(ctx, documents.Delete(d), documents.Create(DeletionPath(appID), ended))
	})
	if err != nil {
		return Deletion{}, fmt.Errorf("delete app %q: %w", appID, err)
	}
	return ended, nil
}

// Deletion returns the deletion of an app, or ErrNotFound.
func (s *Store) Deletion(ctx context.Context, appID string) (Deletion, error) {
	_, ended, err := s.readDeletion(ctx, appID)
	if err != nil {
		return Deletion{}, fmt.Errorf("read deletion of app %q: %w", appID, err)
	}
	return ended, nil
}

// allDeletions returns all deletions, sorted by app.
func (s *Store) allDeletions(ctx context.Context) ([]Deletion, error) {
	all, err := list[Deletion](ctx, s.documents, documents.Query{Collection: "deletions"})
	if err != nil {
		return nil, fmt.Errorf("list deletions: %w", err)
	}
	for i := range all {
		all[i] = all[i].normal()
	}
	slices.SortFunc(all, func(a, b Deletion) int { return strings.Compare(a.App, b.App) })
	return all, nil
}

// UpdateDeletion applies change to a deletion as a compare-and-set, and returns it
// afterwards. If change fails it changes nothing and returns the error. It returns
// ErrNotFound if the app has no deletion.
func (s *Store) UpdateDeletion(ctx context.Context, appID string,
	change func(*Deletion) error) (to Deletion, err error) {
	err = documents.Update(ctx, s.documents, DeletionPath(appID), func(d documents.Document) (documents.Fields, error) {
		var old Deletion
		err := d.Decode(&old)
		if err == nil {
			to, err = old.normal().With(change)
		}
		return documents.FieldsOf(to), err
	})
	if err != nil {
		return Deletion{}, fmt.Errorf("update deletion of app %q: %w", appID, err)
	}
	return to, nil
}
