package config

import (
	"context"
	"fmt"

	"github.com/affinityengine/affinity/shared/app/documents"
)

func keyPath(appID, hash string) string { return AppPath(appID) + "/keys/" + documents.ID(hash) }

// Key returns the key with that hash, or ErrNotFound.
func (s *Store) Key(ctx context.Context, appID, hash string) (Key, error) {
	var d keyDocument
	if err := s.read(ctx, keyPath(appID, hash), &d); err != nil {
		return Key{}, fmt.Errorf("read key %q of app %q: %w", hash, appID, err)
	}
	return d.key(), nil
}

// Keys returns all keys of an app, sorted by hash. It returns ErrNotFound if the
// app does not exist.
func (s *Store) Keys(ctx context.Context, appID string) ([]Key, error) {
	err := s.mustExist(ctx, appID)
	var keys []Key
	if err == nil {
		keys, err = s.keysBy(ctx, appID, "hash")
	}
	if err != nil {
		return nil, fmt.Errorf("list keys of app %q: %w", appID, err)
	}
	return keys, nil
}

// Parents returns the keys of an app that are parents, in any order. An app that
// does not exist has none.
func (s *Store) Parents(ctx context.Context, appID string) ([]Key, error) {
	// A document without the field is not in the result of a query that sorts by it.
	keys, err := s.keysBy(ctx, appID, "parent")
	if err != nil {
		return nil, fmt.Errorf("list parents of app %q: %w", appID, err)
	}
	return keys, nil
}

func (s *Store) keysBy(ctx context.Context, appID, field string) (keys []Key, err error) {
	all, err := list[keyDocument](ctx, s, documents.Query{Collection: AppPath(appID) + "/keys", OrderBy: field})
	for _, d := range all {
		keys = append(keys, d.key())
	}
	return keys, err
}

// PutKey stores a key and replaces one with the same hash. A zero CreatedAt
// becomes the current time. It returns ErrNotFound if the app does not exist, and
// ErrTooManyParents if the key is a parent and the app has MaxParents others, also
// if several callers add one at once.
func (s *Store) PutKey(ctx context.Context, appID string, key Key) error {
	key, err := key.Prepare()
	if err == nil {
		err = s.changeApp(ctx, appID, func(app App) (App, []documents.Write, error) {
			if len(key.Parent) > 0 {
				parents, err := s.Parents(ctx, appID)
				if err == nil {
					err = key.CheckParents(parents)
				}
				if err != nil {
					return app, nil, err
				}
			}
			return app, []documents.Write{documents.Put(keyPath(appID, key.Hash), keyDocument(key))}, nil
		})
	}
	if err != nil {
		return fmt.Errorf("put key of app %q: %w", appID, err)
	}
	return nil
}

// DeleteKey removes a key. It returns ErrNotFound if the key does not exist.
func (s *Store) DeleteKey(ctx context.Context, appID, hash string) error {
	if err := s.delete(ctx, keyPath(appID, hash)); err != nil {
		return fmt.Errorf("delete key %q of app %q: %w", hash, appID, err)
	}
	return nil
}

// delete deletes a document, or returns ErrNotFound.
func (s *Store) delete(ctx context.Context, path string) error {
	return documents.Retry(ctx, func() error {
		d, err := s.documents.Get(ctx, path)
		if err != nil {
			return err
		}
		return s.documents.Commit(ctx, documents.Delete(d))
	})
}
