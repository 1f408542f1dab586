package backend

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/store"
)

// openStores opens the Bigtable of each region.
func openStores(ctx context.Context, log *slog.Logger, s Settings, c config.Store) (Base, error) {
	if len(s.Regions.All) == 0 {
		opened, err := store.Open(ctx, s.Store)
		return New(log, time.Now, opened, c, config.TTL), err
	}
	stores := map[string]*store.Store{}
	for _, region := range s.Regions.All {
		cfg := s.Store
		cfg.Instance, cfg.Ending = region.Instance, region.Ending()
		opened, err := store.Open(ctx, cfg)
		if err != nil {
			for _, at := range stores {
				err = errors.Join(err, at.Close())
			}
			return Base{}, err
		}
		stores[region.Name] = opened
	}
	return NewRegional(log, time.Now, s.Regions, stores, c, config.TTL)
}

// NewRegional is New over the Bigtables of several regions.
func NewRegional(log *slog.Logger, now func() time.Time, r RegionSettings, stores map[string]*store.Store, c config.Store, ttl time.Duration) (Base, error) {
	cached, home := config.NewCached(c, ttl), r.Own
	if home == "" {
		home = r.All.First()
	}
	all, err := store.Regional(home, r.All.First(), stores, func(appID string) (store.Place, error) {
		at, err := placeOf(cached, r.All, appID)
		return store.Place{Read: at.Read, Write: at.Write}, err
	})
	if err != nil {
		for _, at := range stores {
			err = errors.Join(err, at.Close())
		}
		return Base{}, err
	}
	b := newBase(log, now, all, c, cached, ttl)
	b.Regions = r.All
	return b, nil
}

// placeTimeout is how long a request waits to learn where its app lives. It has mostly read
// the configuration of the app before.
const placeTimeout = 10 * time.Second

func placeOf(cached *config.Cached, all config.Regions, appID string) (config.Place, error) {
	ctx, cancel := context.WithTimeout(context.Background(), placeTimeout)
	defer cancel()
	app, err := cached.App(ctx, appID)
	if errors.Is(err, config.ErrNotFound) {
		app, err = deletedApp(ctx, cached, appID)
	}
	return all.Place(app), err
}

// RegionOf returns the region where new users of an app begin, to which its messages and
// tasks go; empty in a deployment without regions, and for an app that names none.
func (b Base) RegionOf(ctx context.Context, appID string) (string, error) {
	if len(b.Regions) == 0 {
		return "", nil
	}
	app, err := b.CachedConfig.App(ctx, appID)
	if errors.Is(err, config.ErrNotFound) {
		app, err = deletedApp(ctx, b.CachedConfig, appID)
	}
	return app.Births(), err
}

// deletedApp returns where an app lived that has been deleted, and where its deletion works.
// An app that nobody knows is in the first region.
func deletedApp(ctx context.Context, cached *config.Cached, appID string) (config.App, error) {
	if !config.ValidAppID(appID) {
		return config.App{ID: appID}, nil
	}
	d, err := cached.Deletion(ctx, appID)
	if errors.Is(err, config.ErrNotFound) {
		err = nil
	}
	return config.App{ID: appID, Region: d.Region}, err
}
