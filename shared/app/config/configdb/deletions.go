package configdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
)

// DeletionDocument returns the reference of an app's deletion. The jobs of the
// deletion lie below it. The id must be valid.
func DeletionDocument(client *firestore.Client, appID string) *firestore.DocumentRef {
	return client.Collection("deletions").Doc(documents.ID(appID))
}

// createApp creates the document of an app, in place of the deletion of one that had
// the id before.
func (s *store) createApp(ctx context.Context, appID string, d appDocument) error {
	ended := DeletionDocument(s.client, appID)
	return s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		var old config.Deletion
		snapshot, err := tx.Get(ended)
		if err := into(&old, snapshot, err); err == nil {
			if err := old.Reusable(time.Now()); err != nil {
				return err
			}
			if err := tx.Delete(ended); err != nil {
				return err
			}
		} else if !errors.Is(err, config.ErrNotFound) {
			return err
		}
		return tx.Create(s.appRef(appID), d)
	})
}

func (s *store) DeleteApp(ctx context.Context, appID string) (config.Deletion, error) {
	ended := DeletionDocument(s.client, appID)
	var d config.Deletion
	err := s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		snapshot, err := tx.Get(s.appRef(appID))
		var document appDocument
		if err := into(&document, snapshot, err); errors.Is(err, config.ErrNotFound) {
			snapshot, err := tx.Get(ended)
			return into(&d, snapshot, err)
		} else if err != nil && snapshot == nil {
			return err
		} // else the document is damaged, and goes as well
		app, _ := document.app() // of a damaged one, what can be read
		d = config.Deletion{App: appID, Region: app.Place().Read, StartedAt: config.Stamp(time.Time{}), Attempt: 1}
		if err := tx.Delete(s.appRef(appID)); err != nil {
			return err
		}
		return tx.Create(ended, d)
	})
	if err != nil {
		return config.Deletion{}, fmt.Errorf("delete app %q: %w", appID, err)
	}
	return normal(d), nil
}

func (s *store) Deletion(ctx context.Context, appID string) (config.Deletion, error) {
	var d config.Deletion
	if err := read(ctx, DeletionDocument(s.client, appID), &d); err != nil {
		return d, fmt.Errorf("read deletion of app %q: %w", appID, err)
	}
	return normal(d), nil
}

func (s *store) Deletions(ctx context.Context) ([]config.Deletion, error) {
	documents, err := s.client.Collection("deletions").Documents(ctx).GetAll()
	if err != nil {
		return nil, fmt.Errorf("list deletions: %w", err)
	}
	var all []config.Deletion
	for _, document := range documents {
		var d config.Deletion
		if err := document.DataTo(&d); err != nil {
			return nil, fmt.Errorf("list deletions: document %s: %w", document.Ref.ID, err)
		}
		all = append(all, normal(d))
	}
	slices.SortFunc(all, func(a, b config.Deletion) int { return strings.Compare(a.App, b.App) })
	return all, nil
}

func (s *store) UpdateDeletion(ctx context.Context, appID string, change func(*config.Deletion) error) (config.Deletion, error) {
	ref := DeletionDocument(s.client, appID)
	var to config.Deletion
	err := s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		var d config.Deletion
		snapshot, err := tx.Get(ref)
		if err := into(&d, snapshot, err); err != nil {
			return err
		}
		if to, err = normal(d).With(change); err != nil {
			return err
		}
		return tx.Set(ref, to)
	})
	if err != nil {
		return config.Deletion{}, fmt.Errorf("update deletion of app %q: %w", appID, err)
	}
	return to, nil
}

// normal returns a deletion with its times in UTC.
func normal(d config.Deletion) config.Deletion {
	d, _ = d.With(func(*config.Deletion) error { return nil })
	return d
}
