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

// IndexSettings returns the settings of an index, or ErrNotFound if none were
// set.
func (s *Store) IndexSettings(ctx context.Context, appID, index string) (settings catalog.Settings, err error) {
	var d indexDocument
	if err = read(ctx, s.documents, indexPath(appID, index), &d); err == nil {
		settings, err = d.settings()
	}
	if err != nil {
		return catalog.Settings{}, fmt.Errorf("read settings of index %q of app %q: %w", index, appID, err)
	}
	return settings, nil
}

// SettingsIndexes returns the indexes that have settings, sorted. It returns
// ErrNotFound if the app does not exist.
func (s *Store) SettingsIndexes(ctx context.Context, appID string) ([]string, error) {
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

// SetIndexSettings applies a change, without its private facets, to the settings of
// an index, gives them the next version, and returns them. Setting the same settings
// again changes nothing. Numeric bands that change are those of the app at the same
// instant, and set its ChangedAt. It returns ErrNotFound if the app does not exist,
// ErrTooManyBands if the app would have too many, and a *fault.Error for bands of an
// attribute that is no facet.
func (s *Store) SetIndexSettings(ctx context.Context, appID, index string,
	c catalog.Change) (settings catalog.Settings, err error) {
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

// ApplyBands stores that all logged events of indexes have the numeric bands of these
// versions; see NumericBands.Apply. It does not set ChangedAt. It returns ErrNotFound
// if the app does not exist.
func (s *Store) ApplyBands(ctx context.Context, appID string, versions map[string]int64) error {
	return s.setApp(ctx, appID, "applied bands", func(a *App) { a.NumericBands, _ = a.NumericBands.Apply(versions) })
}

// SetPrivateFacets replaces the private facets of an index. It changes no version
// of the settings and does not set ChangedAt. It returns ErrNotFound if the app
// does not exist, and ErrTooManyPrivate if the app would have too many.
func (s *Store) SetPrivateFacets(ctx context.Context, appID, index string, facets []string) error {
	err := s.changeApp(ctx, appID, func(app App) (_ App, _ []documents.Write, err error) {
		app.PrivateFacets, err = app.PrivateFacets.With(index, facets)
		return app, nil, err
	})
	if err != nil {
		return fmt.Errorf("set private facets of index %q of app %q: %w", index, appID, err)
	}
	return nil
}
