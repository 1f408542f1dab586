package config

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/app/documents"
)

// AppPath returns the path of an app's document, below which all lies that belongs to it.
func AppPath(appID string) string { return "apps/" + documents.ID(appID) }

// DeletionPath returns the path of the document of an app's deletion. The jobs of the
// deletion lie below it.
func DeletionPath(appID string) string { return "deletions/" + documents.ID(appID) }

// Documents are all documents below those of apps, whatever collections they are in: of the
// configuration and of jobs in Store, and of keys in Keys.
type Documents struct{ Store, Keys documents.Store }

// Forget deletes the documents below that of an app which has been deleted. After an error
// some are left, and the next call continues.
func (d Documents) Forget(ctx context.Context, app string) error {
	// A key that is about to be written must not be: see PutKey.
	err := d.Keys.Commit(ctx, documents.Put(keyringPath(app), keyringDocument{ID: app}))
	for _, s := range []documents.Store{d.Keys, d.Store} {
		var names []string
		if err == nil {
			names, err = s.Below(ctx, AppPath(app))
		}
		for i, name := range names {
			names[i] = AppPath(app) + "/" + name
		}
		if err == nil {
			err = s.Forget(ctx, names...)
		}
	}
	if err != nil {
		return fmt.Errorf("delete the documents of app %q: %w", app, err)
	}
	return nil
}

// Holding names documents that are the app's or lie below its document: its own, and at most
// limit collections.
func (d Documents) Holding(ctx context.Context, app string, limit int) ([]string, error) {
	var names []string
	for _, s := range []documents.Store{d.Keys, d.Store} {
		below, err := s.Below(ctx, AppPath(app))
		if err != nil {
			return nil, fmt.Errorf("list the documents of app %q: %w", app, err)
		}
		names = append(names, below...)
	}
	names = names[:min(limit, len(names))]
	switch _, err := d.Store.Get(ctx, AppPath(app)); {
	case err == nil:
		names = append(names, "the app's own document")
	case !errors.Is(err, documents.ErrNotFound):
		return nil, fmt.Errorf("list the documents of app %q: %w", app, err)
	}
	return names, nil
}
