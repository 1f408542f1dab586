package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/catalog"
)

func indexPath(appID, index string) string { return AppPath(appID) + "/indexes/" + documents.ID(index) }

func (s *store) IndexSettings(ctx context.Context, appID, index string) (settings catalog.Settings, err error) {
	var d indexDocument
	if err = s.read(ctx, indexPath(appID, index), &d); err == nil {
		settings, err = d.settings()
	}
	if err != nil {
		return catalog.Settings{}, fmt.Errorf("read settings of index %q of app %q: %w", index, appID, err)
	}
	return settings, nil
}

func (s *store) SettingsIndexes(ctx context.Context, appID string) ([]string, error) {
	all, err := below[indexDocument](ctx, s, appID, documents.Query{Collection: "indexes", Only: []string{"index"}})
	if err != nil {
		return nil, fmt.Errorf("list the indexes with settings of app %q: %w", appID, err)
	}
	indexes := make([]string, len(all))
	for i, d := range all {
		indexes[i] = d.Index
	}
	slices.Sort(indexes)
	return indexes, nil
}

func (s *store) SetIndexSettings(ctx context.Context, appID, index string, c catalog.Change) (settings catalog.Settings, err error) {
	err = s.changeApp(ctx, appID, func(app App) (App, []documents.Write, error) {
		old, err := s.IndexSettings(ctx, appID, index)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return app, nil, err
		}
		var changed bool
		if settings, changed, err = c.After(old); err != nil || !changed {
			return app, nil, err
		}
		banded := settings.BandsVersion != old.BandsVersion
		if settings.Version == 1 {
			settings.Version += s.after
		}
		if banded {
			settings.BandsVersion = settings.Version
			if app.NumericBands, err = app.NumericBands.With(index, settings); err != nil {
				return app, nil, err
			}
			app.ChangedAt = Stamp(time.Time{})
		}
		d, err := newIndexDocument(index, settings)
		return app, []documents.Write{documents.Put(indexPath(appID, index), d)}, err
	})
	if err != nil {
		return catalog.Settings{}, fmt.Errorf("set settings of index %q of app %q: %w", index, appID, err)
	}
	return settings, nil
}

func (s *store) ApplyBands(ctx context.Context, appID string, versions map[string]int64) error {
	return s.setApp(ctx, appID, "applied bands", func(a *App) { a.NumericBands, _ = a.NumericBands.Apply(versions) })
}

func (s *store) SetPrivateFacets(ctx context.Context, appID, index string, facets []string) error {
	err := s.changeApp(ctx, appID, func(app App) (_ App, _ []documents.Write, err error) {
		app.PrivateFacets, err = app.PrivateFacets.With(index, facets)
		return app, nil, err
	})
	if err != nil {
		return fmt.Errorf("set private facets of index %q of app %q: %w", index, appID, err)
	}
	return nil
}
