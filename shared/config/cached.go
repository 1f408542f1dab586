package config

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/strategy"
)

// TTL is how long functions go without asking Firestore again. A change is in
// force for every request that begins this long after it; the price is one read
// of each document in that time, per process that uses it.
const TTL = 5 * time.Second

// How many answers a cache keeps. Strategies can have half a megabyte, so few of
// the old ones are kept: only recomputes ask for them. Unknown apps and keys take
// up room as well: guessing keys must cost the guesser, not Firestore.
const (
	cachedApps       = 1_000
	cachedKeys       = 10_000
	cachedIndexes    = 10_000
	cachedStrategies = 100
)

// cached answers from memory what it was asked shortly before.
type cached struct {
	Store      // Apps and Keys, which operators ask for, are never cached
	apps       *cache[string, App]
	keys       *cache[keyID, Key]
	strategies *cache[strategyID, strategy.Strategy]
	indexes    *cache[indexID, catalog.Settings]
}

type (
	keyID      struct{ app, hash string }
	indexID    struct{ app, index string }
	strategyID struct {
		app     string
		version int64
	}
)

var _ Store = (*cached)(nil)

// NewCached returns a store that answers App, Key, StrategyVersion and
// IndexSettings from reads of the inner store that began less than ttl ago, the
// answer ErrNotFound included. The time counts from before such a read began, so
// a read here that begins ttl or more after a change sees it. Reads of the same
// at once are one. Errors are passed on and not kept. Changes made through it are
// seen through it at once. How much it keeps is bounded.
func NewCached(inner Store, ttl time.Duration) Store {
	return newCached(inner, ttl, time.Now)
}

func newCached(inner Store, ttl time.Duration, now func() time.Time) Store {
	return &cached{
		Store:      inner,
		apps:       newCache[string, App](cachedApps, ttl, now),
		keys:       newCache[keyID, Key](cachedKeys, ttl, now),
		strategies: newCache[strategyID, strategy.Strategy](cachedStrategies, ttl, now),
		indexes:    newCache[indexID, catalog.Settings](cachedIndexes, ttl, now),
	}
}

func (c *cached) App(ctx context.Context, appID string) (App, error) {
	return c.apps.get(ctx, appID, func(ctx context.Context) (App, error) {
		return c.Store.App(ctx, appID)
	})
}

func (c *cached) Key(ctx context.Context, appID, hash string) (Key, error) {
	return c.keys.get(ctx, keyID{appID, hash}, func(ctx context.Context) (Key, error) {
		return c.Store.Key(ctx, appID, hash)
	})
}

func (c *cached) StrategyVersion(ctx context.Context, appID string, version int64) (strategy.Strategy, error) {
	return c.strategies.get(ctx, strategyID{appID, version}, func(ctx context.Context) (strategy.Strategy, error) {
		return c.Store.StrategyVersion(ctx, appID, version)
	})
}

func (c *cached) IndexSettings(ctx context.Context, appID, index string) (catalog.Settings, error) {
	return c.indexes.get(ctx, indexID{appID, index}, func(ctx context.Context) (catalog.Settings, error) {
		return c.Store.IndexSettings(ctx, appID, index)
	})
}

// The changes evict once they are made, whatever came of them: one that failed
// may have been made all the same.

func (c *cached) CreateApp(ctx context.Context, app App) error {
	defer c.apps.evict(app.ID)
	return c.Store.CreateApp(ctx, app)
}

func (c *cached) SetRetention(ctx context.Context, appID string, days int) error {
	defer c.apps.evict(appID)
	return c.Store.SetRetention(ctx, appID, days)
}

func (c *cached) UpdateLog(ctx context.Context, appID string, change func(*App) error) (App, error) {
	defer c.apps.evict(appID)
	return c.Store.UpdateLog(ctx, appID, change)
}

func (c *cached) PutKey(ctx context.Context, appID string, key Key) error {
	defer c.keys.evict(keyID{appID, key.Hash})
	return c.Store.PutKey(ctx, appID, key)
}

func (c *cached) DeleteKey(ctx context.Context, appID, hash string) error {
	defer c.keys.evict(keyID{appID, hash})
	return c.Store.DeleteKey(ctx, appID, hash)
}

func (c *cached) SetStrategy(ctx context.Context, appID string, s strategy.Strategy) (version int64, changed bool, err error) {
	defer func() {
		c.apps.evict(appID)
		c.strategies.evict(strategyID{appID, version})
	}()
	return c.Store.SetStrategy(ctx, appID, s)
}

func (c *cached) SetIndexSettings(ctx context.Context, appID, index string, attributesForFaceting []string) (int64, error) {
	defer c.indexes.evict(indexID{appID, index})
	return c.Store.SetIndexSettings(ctx, appID, index, attributesForFaceting)
}
