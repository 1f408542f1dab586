package backend

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/telemetry/export"
)

// openStores opens the Bigtable of each region.
func openStores(ctx context.Context, log *slog.Logger, s Settings, c *config.Store) (Base, error) {
	if len(s.Regions.All) == 0 {
		opened, err := store.Open(ctx, s.Store, export.ClientOptions()...)
		return New(log, time.Now, opened, c, config.TTL), err
	}
	return OpenRegional(ctx, log, s.Store, s.Regions, c)
}

// OpenRegional opens the Bigtable of each region. Instance and Suffix of cfg do not count. A
// region that does not answer keeps nobody from those of the others.
func OpenRegional(ctx context.Context, log *slog.Logger, cfg store.Config, r RegionSettings,
	c *config.Store) (Base, error) {
	stores := map[string]*store.Store{}
	for _, region := range r.All {
		cfg.Instance, cfg.Suffix = region.Instance, region.Suffix()
		opened, err := store.Open(ctx, cfg, append(export.ClientOptions(), store.Unreachable(log, region.Instance))...)
		if err != nil {
			for _, at := range stores {
				err = errors.Join(err, at.Close())
			}
			return Base{}, err
		}
		stores[region.Name] = opened
	}
	return NewRegional(log, time.Now, r, stores, c, config.TTL)
}

// NewRegional is New over the Bigtables of several regions.
func NewRegional(log *slog.Logger, now func() time.Time, r RegionSettings, stores map[string]*store.Store,
	c *config.Store, ttl time.Duration) (Base, error) {
	cached, home := config.NewCached(c, ttl), r.Own
	if home == "" {
		home = r.All.First()
	}
	all, err := store.Regional(home, r.All.First(), stores, func(appID string) (store.Place, error) {
		return placeOf(cached, r.All, appID)
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

func placeOf(cached *config.Cached, all config.Regions, appID string) (store.Place, error) {
	ctx, cancel := context.WithTimeout(context.Background(), placeTimeout)
	defer cancel()
	app, err := appOf(ctx, cached, appID)
	at := all.Place(app)
	place := store.Place{Read: at.Read, Write: at.Write}
	if app.Residency.On() {
		place.Users = app.Everywhere()
	}
	return place, err
}

// RegionOf returns the region where new users of an app begin, to which its messages and
// tasks go; empty in a deployment without regions, and for an app that names none.
func (b Base) RegionOf(ctx context.Context, appID string) (string, error) {
	if len(b.Regions) == 0 {
		return "", nil
	}
	return BirthsOf(ctx, b.CachedConfig, appID)
}

// Homes say where apps live: a config.Store does, and a config.Cached.
type Homes interface {
	App(ctx context.Context, appID string) (config.App, error)
	Deletion(ctx context.Context, appID string) (config.Deletion, error)
}

// BirthsOf returns the region where new users of an app begin, and of a deleted app that in
// which it lived; empty if it names none.
func BirthsOf(ctx context.Context, homes Homes, appID string) (string, error) {
	app, err := appOf(ctx, homes, appID)
	return app.Births(), err
}

// appOf returns an app, also one that has been deleted; see deletedApp.
func appOf(ctx context.Context, homes Homes, appID string) (config.App, error) {
	app, err := homes.App(ctx, appID)
	if errors.Is(err, config.ErrNotFound) {
		return deletedApp(ctx, homes, appID)
	}
	return app, err
}

// deletedApp returns where an app lived that has been deleted, and where its deletion works.
// An app that nobody knows is in the first region.
func deletedApp(ctx context.Context, homes Homes, appID string) (config.App, error) {
	if !config.ValidAppID(appID) {
		return config.App{ID: appID}, nil
	}
	d, err := homes.Deletion(ctx, appID)
	if errors.Is(err, config.ErrNotFound) {
		err = nil
	}
	return config.App{ID: appID, Region: d.Region}, err
}
