package config

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/app/documents"
)

func keyPath(appID, hash string) string { return AppPath(appID) + "/keys/" + documents.ID(hash) }

// keyringPath returns the path of the document that changes with each new key of an app.
func keyringPath(appID string) string { return "keyrings/" + documents.ID(appID) }

// Key returns the key with that hash, or ErrNotFound.
func (s *Store) Key(ctx context.Context, appID, hash string) (Key, error) {
	var d keyDocument
	if err := read(ctx, s.keys, keyPath(appID, hash), &d); err != nil {
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
	all, err := list[keyDocument](ctx, s.keys, documents.Query{Collection: AppPath(appID) + "/keys", OrderBy: field})
	for _, d := range all {
		keys = append(keys, d.key())
	}
	return keys, err
}

// PutKey stores a key and replaces one with the same hash. A zero CreatedAt
// becomes the current time. It returns ErrNotFound if the app does not exist, and
// ErrTooManyParents if the key is a parent and the app has MaxParents others, also
// if several callers add one at once.
//
// No transaction spans the app and its keys, which lie in different stores. So a key is
// written on condition that its keyring is as it was before the app was read. A deletion of
// the app changes the keyring first and then deletes the keys: it finds those written before,
// and no later one is written by who has still read the app. The keyring stays, or it would be
// as before again. Each new key changes it too, so parents are counted one after another.
func (s *Store) PutKey(ctx context.Context, appID string, key Key) error {
	key, err := key.Prepare()
	if err == nil {
		err = documents.Retry(ctx, func() error { return s.putKey(ctx, appID, key) })
	}
	if err != nil {
		return fmt.Errorf("put key of app %q: %w", appID, err)
	}
	return nil
}

func (s *Store) putKey(ctx context.Context, appID string, key Key) error {
	changed := documents.Create(keyringPath(appID), keyringDocument{ID: appID})
	switch ring, err := s.keys.Get(ctx, changed.Path); {
	case err == nil:
		changed = documents.Change(ring, documents.Fields{"changedAt": documents.Now})
	case !errors.Is(err, ErrNotFound):
		return err
	}
	if err := s.mustExist(ctx, appID); err != nil {
		return err
	}
	if len(key.Parent) > 0 {
		parents, err := s.Parents(ctx, appID)
		if err == nil {
			err = key.CheckParents(parents)
		}
		if err != nil {
			return err
		}
	}
	err := s.keys.Commit(ctx, documents.Put(keyPath(appID, key.Hash), keyDocument(key)), changed)
	if errors.Is(err, documents.ErrExists) { // another change has created the keyring
		err = fmt.Errorf("%w: %v", documents.ErrOvertaken, err)
	}
	return err
}

// DeleteKey removes a key. It returns ErrNotFound if the key does not exist.
func (s *Store) DeleteKey(ctx context.Context, appID, hash string) error {
	if err := remove(ctx, s.keys, keyPath(appID, hash)); err != nil {
		return fmt.Errorf("delete key %q of app %q: %w", hash, appID, err)
	}
	return nil
}

// remove deletes a document, or returns ErrNotFound.
func remove(ctx context.Context, s documents.Store, path string) error {
	return documents.Retry(ctx, func() error {
		d, err := s.Get(ctx, path)
		if err != nil {
			return err
		}
		return s.Commit(ctx, documents.Delete(d))
	})
}
