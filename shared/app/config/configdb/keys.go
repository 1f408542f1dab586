package configdb

import (
	"context"
	"fmt"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"

	"github.com/affinityengine/affinity/shared/app/config"
)

func (s *store) Key(ctx context.Context, appID, hash string) (config.Key, error) {
	var d keyDocument
	if err := read(ctx, s.keyRef(appID, hash), &d); err != nil {
		return config.Key{}, fmt.Errorf("read key %q of app %q: %w", hash, appID, err)
	}
	return d.key(), nil
}

func (s *store) Keys(ctx context.Context, appID string) ([]config.Key, error) {
	if err := s.mustExist(ctx, appID); err != nil {
		return nil, fmt.Errorf("list keys of app %q: %w", appID, err)
	}
	keys, err := readKeys(ctx, s.appRef(appID).Collection("keys").OrderBy("hash", firestore.Asc))
	if err != nil {
		return nil, fmt.Errorf("list keys of app %q: %w", appID, err)
	}
	return keys, nil
}

func (s *store) Parents(ctx context.Context, appID string) ([]config.Key, error) {
	// A document without the field is not in the result of a query that sorts by it.
	keys, err := readKeys(ctx, s.appRef(appID).Collection("keys").OrderBy("parent", firestore.Asc))
	if err != nil {
		return nil, fmt.Errorf("list parents of app %q: %w", appID, err)
	}
	return keys, nil
}

func readKeys(ctx context.Context, q firestore.Query) ([]config.Key, error) {
	documents, err := q.Documents(ctx).GetAll()
	if err != nil {
		return nil, err
	}
	var keys []config.Key
	for _, document := range documents {
		var d keyDocument
		if err := document.DataTo(&d); err != nil {
			return nil, fmt.Errorf("document %s: %w", document.Ref.ID, err)
		}
		keys = append(keys, d.key())
	}
	return keys, nil
}

func (s *store) PutKey(ctx context.Context, appID string, key config.Key) error {
	key, err := key.Prepare()
	if err == nil {
		err = s.changeApp(ctx, appID, func(tx *firestore.Transaction) error {
			if len(key.Parent) > 0 {
				parents, err := s.Parents(ctx, appID)
				if err == nil {
					err = key.CheckParents(parents)
				}
				if err != nil {
					return err
				}
			}
			return tx.Set(s.keyRef(appID, key.Hash), keyDocument(key))
		})
	}
	if err != nil {
		return fmt.Errorf("put key of app %q: %w", appID, err)
	}
	return nil
}

// changeApp commits what change writes below an app's document, if the app exists
// and no other changeApp has changed the app since change began. Otherwise it calls
// change again.
func (s *store) changeApp(ctx context.Context, appID string, change func(*firestore.Transaction) error) error {
	return retryOvertaken(ctx, func() error { return s.tryChangeApp(ctx, appID, change) })
}

// tryChangeApp takes no lock, like trySetStrategy.
func (s *store) tryChangeApp(ctx context.Context, appID string, change func(*firestore.Transaction) error) error {
	snapshot, err := s.appRef(appID).Get(ctx)
	if err := into(new(appDocument), snapshot, err); err != nil {
		return err
	}
	return s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		if err := change(tx); err != nil {
			return err
		}
		return tx.Update(s.appRef(appID), []firestore.Update{{Path: "keysChangedAt", Value: firestore.ServerTimestamp}},
			firestore.LastUpdateTime(snapshot.UpdateTime))
	}, firestore.MaxAttempts(1))
}

func (s *store) DeleteKey(ctx context.Context, appID, hash string) error {
	if _, err := s.keyRef(appID, hash).Delete(ctx, firestore.Exists); err != nil {
		return fmt.Errorf("delete key %q of app %q: %w", hash, appID, named(err, codes.NotFound, config.ErrNotFound))
	}
	return nil
}
