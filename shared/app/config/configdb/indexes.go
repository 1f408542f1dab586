package configdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
)

func (s *store) IndexSettings(ctx context.Context, appID, index string) (catalog.Settings, error) {
	var d indexDocument
	err := read(ctx, s.indexRef(appID, index), &d)
	var settings catalog.Settings
	if err == nil {
		settings, err = d.settings()
	}
	if err != nil {
		return catalog.Settings{}, fmt.Errorf("read settings of index %q of app %q: %w", index, appID, err)
	}
	return settings, nil
}

func (s *store) SettingsIndexes(ctx context.Context, appID string) ([]string, error) {
	documents, err := s.appRef(appID).Collection("indexes").Documents(ctx).GetAll()
	if err == nil && len(documents) == 0 {
		err = s.mustExist(ctx, appID)
	}
	indexes := make([]string, len(documents))
	for i, snapshot := range documents {
		var d indexDocument
		if failed := snapshot.DataTo(&d); err == nil {
			err = failed
		}
		indexes[i] = d.Index
	}
	if err != nil {
		return nil, fmt.Errorf("list the indexes with settings of app %q: %w", appID, err)
	}
	slices.Sort(indexes)
	return indexes, nil
}

func (s *store) SetIndexSettings(ctx context.Context, appID, index string, c catalog.Change) (settings catalog.Settings, err error) {
	err = retryOvertaken(ctx, func() error {
		settings, err = s.trySetIndexSettings(ctx, appID, index, c)
		return err
	})
	if err != nil {
		return catalog.Settings{}, fmt.Errorf("set settings of index %q of app %q: %w", index, appID, err)
	}
	return settings, nil
}

// trySetIndexSettings changes the settings of an index, and the app if numeric bands
// change and no other caller changes the app at the same time. It does not lock the app,
// like trySetStrategy.
func (s *store) trySetIndexSettings(ctx context.Context, appID, index string, c catalog.Change) (settings catalog.Settings, err error) {
	snapshot, app, err := s.readApp(ctx, appID)
	if err != nil {
		return settings, err
	}
	ref := s.indexRef(appID, index)
	err = s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		var d indexDocument
		stored, err := tx.Get(ref)
		if err := into(&d, stored, err); err != nil && !errors.Is(err, config.ErrNotFound) {
			return err
		}
		old, err := d.settings()
		if err != nil {
			return err
		}
		var changed bool
		if settings, changed, err = c.After(old); err != nil || !changed {
			return err
		}
		next, err := newIndexDocument(index, settings)
		if err != nil {
			return err
		}
		if err := tx.Set(ref, next); err != nil || settings.BandsVersion == old.BandsVersion {
			return err
		}
		bands, err := app.NumericBands.With(index, settings)
		if err != nil {
			return err
		}
		update, err := bandsUpdate(bands)
		if err != nil {
			return err
		}
		return tx.Update(s.appRef(appID), []firestore.Update{update, changedNow}, firestore.LastUpdateTime(snapshot.UpdateTime))
	})
	return settings, err
}

func (s *store) ApplyBands(ctx context.Context, appID string, versions map[string]int64) error {
	err := retryOvertaken(ctx, func() error {
		snapshot, app, err := s.readApp(ctx, appID)
		if err != nil {
			return err
		}
		applied, changed := app.NumericBands.Apply(versions)
		if !changed {
			return nil
		}
		update, err := bandsUpdate(applied)
		if err != nil {
			return err
		}
		_, err = s.appRef(appID).Update(ctx, []firestore.Update{update}, firestore.LastUpdateTime(snapshot.UpdateTime))
		return err
	})
	if err != nil {
		return fmt.Errorf("store applied bands of app %q: %w", appID, err)
	}
	return nil
}

// bandsUpdate is the change of an app's numeric bands.
func bandsUpdate(bands config.NumericBands) (firestore.Update, error) {
	text, err := json.Marshal(bands)
	return firestore.Update{Path: "numericBands", Value: string(text)}, err
}
