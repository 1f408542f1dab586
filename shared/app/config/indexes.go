package config

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/catalog"
)

func (m *memory) IndexSettings(ctx context.Context, appID, index string) (catalog.Settings, error) {
	var settings catalog.Settings
	err := m.with(ctx, appID, func(a *memoryApp) error {
		var ok bool
		if settings, ok = a.indexes[index]; !ok {
			return fmt.Errorf("settings of index %q of app %q: %w", index, appID, ErrNotFound)
		}
		return nil
	})
	return settings, err
}

func (m *memory) SettingsIndexes(ctx context.Context, appID string) ([]string, error) {
	var indexes []string
	err := m.with(ctx, appID, func(a *memoryApp) error {
		indexes = slices.Sorted(maps.Keys(a.indexes))
		return nil
	})
	return indexes, err
}

func (m *memory) SetIndexSettings(ctx context.Context, appID, index string, c catalog.Change) (catalog.Settings, error) {
	var settings catalog.Settings
	err := m.change(ctx, appID, func(a *memoryApp) error {
		old := a.indexes[index]
		next, changed, err := c.After(old)
		if settings = next; err != nil || !changed {
			return err
		}
		banded := next.BandsVersion != old.BandsVersion
		if next.Version == 1 {
			next.Version += m.after
		}
		if banded {
			next.BandsVersion = next.Version
			bands, err := a.NumericBands.With(index, next)
			if err != nil {
				return err
			}
			a.NumericBands, a.ChangedAt = bands, Stamp(time.Time{})
		}
		a.indexes[index], settings = next, next
		return nil
	})
	return settings, err
}
