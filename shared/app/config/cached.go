package config

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// TTL is how long a function may use what it read from Firestore. Every request
// that begins this long after a change sees the change. In return, a process
// reads each document it uses at most once in that time.
const TTL = 5 * time.Second

// The number of answers that a Cached keeps, and as many answers that there is no
// such thing. A strategy can take half a megabyte, so few old ones are kept.
const (
	cachedApps       = 1_000
	cachedKeys       = 10_000
	cachedIndexes    = 10_000
	cachedStrategies = 100
	cachedDeletions  = 1_000
	cachedFeeds      = 1_000
	cachedSegments   = 1_000
)

// Source is what reads the current configuration: a *Store, or a type that embeds
// one and reads otherwise. A *Cached is not a Source.
type Source interface {
	App(ctx context.Context, appID string) (App, error)
	Deletion(ctx context.Context, appID string) (Deletion, error)
	Key(ctx context.Context, appID, hash string) (Key, error)
	Parents(ctx context.Context, appID string) ([]Key, error)
	StrategyVersion(ctx context.Context, appID string, version int64) (strategy.Strategy, error)
	IndexSettings(ctx context.Context, appID, index string) (catalog.Settings, error)
	Feed(ctx context.Context, appID, name string) (Feed, error)
	SavedSegments(ctx context.Context, appID string) ([]SavedSegment, error)
	// base returns the Store that makes the changes.
	base() *Store
}

func (s *Store) base() *Store { return s }

// Cached is the configuration as it was at most one TTL ago. It reads from memory
// what it has read from its Store within that time. Only Access, Limits and TrackNames may answer
// from five minutes ago, while the Store fails.
//
// Each guess of an app or a key costs the Store one read, evicts nothing that
// exists, and gets an error while too many guesses wait for the Store.
//
// It is deliberately not a *Store: code that takes a *Store gets the current
// configuration, code that takes a *Cached gets one that may be old, and passing
// the wrong one does not compile. It is safe for concurrent use.
type Cached struct {
	source     Source
	store      *Store // makes the changes
	apps       answers[string, App]
	keys       answers[keyID, Key]
	strategies answers[strategyID, strategy.Strategy]
	indexes    answers[indexID, catalog.Settings]
	deletions  answers[string, Deletion]
	feeds      answers[feedID, Feed]
	segments   answers[string, []SavedSegment]
	parents    *parents // nil without a Cipher
	ttl        time.Duration
	now        func() time.Time
}

type (
	keyID      struct{ app, hash string }
	indexID    struct{ app, index string }
	feedID     struct{ app, name string }
	strategyID struct {
		app     string
		version int64
	}
)

// NewCached returns a cache of source. A ttl of 0 caches nothing.
//
// App, Key, StrategyVersion, IndexSettings, Feed and SavedSegments return the result of a read that
// began less than ttl ago, ErrNotFound included. A call that begins ttl or more
// after a change sees that change. Concurrent calls for the same thing share one
// read. Other errors are returned and not cached. A change made through the
// Cached is visible through it at once. The memory it uses is bounded.
func NewCached(source Source, ttl time.Duration) *Cached {
	return newCached(source, ttl, time.Now)
}

func newCached(source Source, ttl time.Duration, now func() time.Time) *Cached {
	return &Cached{
		source: source,
		store:  source.base(),
		apps:   newAnswers[string, App](cachedApps, ttl, now, itself),
		keys:   newAnswers[keyID, Key](cachedKeys, ttl, now, func(k keyID) string { return k.app }),
		strategies: newAnswers[strategyID, strategy.Strategy](cachedStrategies, ttl, now,
			func(k strategyID) string { return k.app }),
		indexes:   newAnswers[indexID, catalog.Settings](cachedIndexes, ttl, now, func(k indexID) string { return k.app }),
		deletions: newAnswers[string, Deletion](cachedDeletions, ttl, now, itself),
		feeds:     newAnswers[feedID, Feed](cachedFeeds, ttl, now, func(k feedID) string { return k.app }),
		segments:  newAnswers[string, []SavedSegment](cachedSegments, ttl, now, itself),
		ttl:       ttl,
		now:       now,
	}
}

// itself is the app of answers by app.
func itself(app string) string { return app }

// App returns an app, or ErrNotFound.
func (c *Cached) App(ctx context.Context, appID string) (App, error) {
	return c.apps.get(ctx, appID, func(ctx context.Context) (App, error) {
		return c.source.App(ctx, appID)
	})
}

// Deletion returns the deletion of an app, or ErrNotFound.
func (c *Cached) Deletion(ctx context.Context, appID string) (Deletion, error) {
	return c.deletions.get(ctx, appID, func(ctx context.Context) (Deletion, error) {
		return c.source.Deletion(ctx, appID)
	})
}

// Key returns the key with that hash, or ErrNotFound.
func (c *Cached) Key(ctx context.Context, appID, hash string) (Key, error) {
	return c.keys.get(ctx, keyID{appID, hash}, func(ctx context.Context) (Key, error) {
		return c.source.Key(ctx, appID, hash)
	})
}

// Access returns the key with that hash if the app exists, and ErrNotFound if the
// app or the key does not. While the Store fails or hangs, it answers for an app
// and a key that it found within the last five minutes. No other part of an app
// may be that old: writers and readers of the log rely on the layout of one TTL
// ago.
//
// An unknown app costs one read, of the app. The read of the key follows that of
// an app which the cache does not know, and runs beside that of one it knows.
func (c *Cached) Access(ctx context.Context, appID, hash string) (Key, error) {
	id := keyID{appID, hash}
	app := func(ctx context.Context) (App, error) { return c.source.App(ctx, appID) }
	key := func(ctx context.Context) (Key, error) { return c.source.Key(ctx, appID, hash) }
	if c.apps.holds(appID) {
		c.keys.prefetch(ctx, id, key)
	}
	if _, err := c.apps.getStale(ctx, appID, app); err != nil {
		return Key{}, err
	}
	return c.keys.getStale(ctx, id, key)
}

// Limits returns what an app may ask for. While the Store fails or hangs, it answers
// what it found within the last five minutes, as Access does.
func (c *Cached) Limits(ctx context.Context, appID string) (limit.Numbers, error) {
	app, err := c.apps.getStale(ctx, appID, func(ctx context.Context) (App, error) { return c.source.App(ctx, appID) })
	return app.Limits, err
}

// Calls is what an app has set about the calls of SDKs.
type Calls struct {
	Names TrackNames // the types of events that it has given names of track calls
	Links bool       // whether calls that say who has signed in link tokens
}

// Calls returns what an app has set about the calls of SDKs. It may answer from five minutes ago, as Limits does.
func (c *Cached) Calls(ctx context.Context, appID string) (Calls, error) {
	app, err := c.apps.getStale(ctx, appID, func(ctx context.Context) (App, error) { return c.source.App(ctx, appID) })
	return Calls{app.TrackNames, app.Identity.On()}, err
}

// Holds reports whether the last read of that key found one. It reads nothing.
func (c *Cached) Holds(appID, hash string) bool { return c.keys.holds(keyID{appID, hash}) }

// StrategyVersion returns the strategy of that version, or ErrNotFound.
func (c *Cached) StrategyVersion(ctx context.Context, appID string, version int64) (strategy.Strategy, error) {
	return c.strategies.get(ctx, strategyID{appID, version}, func(ctx context.Context) (strategy.Strategy, error) {
		return c.source.StrategyVersion(ctx, appID, version)
	})
}

// Under returns an app with one of its kept strategies as the active one; 0 stands for the
// active one. A version that is not kept is a *fault.Error.
func (c *Cached) Under(ctx context.Context, app App, version int64) (App, error) {
	switch version {
	case 0:
		return app, nil
	case app.StrategyVersion:
		app.ScoringVersion = version
		return app, nil
	}
	s, err := c.StrategyVersion(ctx, app.ID, version)
	if errors.Is(err, ErrNotFound) {
		return app, fault.New(fault.Invalid, "strategy %d does not exist or is no longer kept", version)
	}
	if err != nil {
		return app, fmt.Errorf("read strategy %d of %s: %w", version, app.ID, err)
	}
	app.Strategy, app.StrategyVersion, app.ScoringVersion = s, version, version
	return app, nil
}

// IndexSettings returns the settings of an index, or ErrNotFound.
func (c *Cached) IndexSettings(ctx context.Context, appID, index string) (catalog.Settings, error) {
	return c.indexes.get(ctx, indexID{appID, index}, func(ctx context.Context) (catalog.Settings, error) {
		return c.source.IndexSettings(ctx, appID, index)
	})
}

// Feed returns the feed of that name, or ErrNotFound.
func (c *Cached) Feed(ctx context.Context, appID, name string) (Feed, error) {
	return c.feeds.get(ctx, feedID{appID, name}, func(ctx context.Context) (Feed, error) {
		return c.source.Feed(ctx, appID, name)
	})
}

// SavedSegments returns all segments that an app has saved, sorted by name, or
// ErrNotFound.
func (c *Cached) SavedSegments(ctx context.Context, appID string) ([]SavedSegment, error) {
	return c.segments.get(ctx, appID, func(ctx context.Context) ([]SavedSegment, error) {
		return c.source.SavedSegments(ctx, appID)
	})
}

// Forget makes the next reads of an app and of the key with that hash see the changes that were
// made since by others.
func (c *Cached) Forget(appID, hash string) {
	c.deletions.Evict(appID)
	c.apps.Evict(appID)
	c.evictKey(appID, hash)
}

// A change evicts what it concerns even if it failed: it may have been made all
// the same.

// DeleteApp is DeleteApp of the Store.
func (c *Cached) DeleteApp(ctx context.Context, appID string) (Deletion, error) {
	defer c.deletions.Evict(appID)
	defer c.apps.Evict(appID)
	return c.store.DeleteApp(ctx, appID)
}

// UpdateDeletion is UpdateDeletion of the Store.
func (c *Cached) UpdateDeletion(ctx context.Context, appID string, change func(*Deletion) error) (Deletion, error) {
	defer c.deletions.Evict(appID)
	return c.store.UpdateDeletion(ctx, appID, change)
}

// CreateApp is CreateApp of the Store.
func (c *Cached) CreateApp(ctx context.Context, app App) error {
	defer c.deletions.Evict(app.ID)
	defer c.apps.Evict(app.ID)
	return c.store.CreateApp(ctx, app)
}

// SetRetention is SetRetention of the Store.
func (c *Cached) SetRetention(ctx context.Context, appID string, days int) error {
	defer c.apps.Evict(appID)
	return c.store.SetRetention(ctx, appID, days)
}

// SetConsistency is SetConsistency of the Store.
func (c *Cached) SetConsistency(ctx context.Context, appID string, to Consistency) error {
	defer c.apps.Evict(appID)
	return c.store.SetConsistency(ctx, appID, to)
}

// SetBrowserRanking is SetBrowserRanking of the Store.
func (c *Cached) SetBrowserRanking(ctx context.Context, appID string, on bool) error {
	defer c.apps.Evict(appID)
	return c.store.SetBrowserRanking(ctx, appID, on)
}

// SetSegments is SetSegments of the Store.
func (c *Cached) SetSegments(ctx context.Context, appID string, on bool) error {
	defer c.apps.Evict(appID)
	return c.store.SetSegments(ctx, appID, on)
}

// SetPurposes is SetPurposes of the Store.
func (c *Cached) SetPurposes(ctx context.Context, appID string, purposes []consent.Purpose) (App, error) {
	defer c.apps.Evict(appID)
	return c.store.SetPurposes(ctx, appID, purposes)
}

// SetHoldout is SetHoldout of the Store.
func (c *Cached) SetHoldout(ctx context.Context, appID string, to experiment.Holdout) (App, error) {
	defer c.apps.Evict(appID)
	return c.store.SetHoldout(ctx, appID, to)
}

// SetIdentity is SetIdentity of the Store.
func (c *Cached) SetIdentity(ctx context.Context, appID string, to Identity, settle time.Duration) (App, error) {
	defer c.apps.Evict(appID)
	return c.store.SetIdentity(ctx, appID, to, settle)
}

// SetResidency is SetResidency of the Store.
func (c *Cached) SetResidency(ctx context.Context, appID string, to Residency, settle time.Duration) (App, error) {
	defer c.apps.Evict(appID)
	return c.store.SetResidency(ctx, appID, to, settle)
}

// SetLimits is SetLimits of the Store.
func (c *Cached) SetLimits(ctx context.Context, appID string, n limit.Numbers) error {
	defer c.apps.Evict(appID)
	return c.store.SetLimits(ctx, appID, n)
}

// UpdateLog is UpdateLog of the Store.
func (c *Cached) UpdateLog(ctx context.Context, appID string, change func(*App) error) (App, error) {
	defer c.apps.Evict(appID)
	return c.store.UpdateLog(ctx, appID, change)
}

// UpdateMove is UpdateMove of the Store.
func (c *Cached) UpdateMove(ctx context.Context, appID string, change func(*App) error) (App, error) {
	defer c.apps.Evict(appID)
	return c.store.UpdateMove(ctx, appID, change)
}

// PutKey is PutKey of the Store.
func (c *Cached) PutKey(ctx context.Context, appID string, key Key) error {
	defer c.evictKey(appID, key.Hash)
	return c.store.PutKey(ctx, appID, key)
}

// DeleteKey is DeleteKey of the Store.
func (c *Cached) DeleteKey(ctx context.Context, appID, hash string) error {
	defer c.evictKey(appID, hash)
	return c.store.DeleteKey(ctx, appID, hash)
}

// SetStrategy is SetStrategy of the Store.
func (c *Cached) SetStrategy(ctx context.Context, appID string,
	s strategy.Strategy) (app App, changed bool, err error) {
	return c.PublishStrategy(ctx, appID, s, Publication{})
}

// PublishStrategy is PublishStrategy of the Store.
func (c *Cached) PublishStrategy(ctx context.Context, appID string, s strategy.Strategy,
	p Publication) (app App, changed bool, err error) {
	defer func() {
		c.apps.Evict(appID)
		c.strategies.Evict(strategyID{appID, app.StrategyVersion})
	}()
	return c.store.PublishStrategy(ctx, appID, s, p)
}

// SetIndexSettings is SetIndexSettings of the Store.
func (c *Cached) SetIndexSettings(ctx context.Context, appID, index string,
	change catalog.Change) (catalog.Settings, error) {
	defer c.apps.Evict(appID)
	defer c.indexes.Evict(indexID{appID, index})
	return c.store.SetIndexSettings(ctx, appID, index, change)
}

// ApplyBands is ApplyBands of the Store.
func (c *Cached) ApplyBands(ctx context.Context, appID string, versions map[string]int64) error {
	defer c.apps.Evict(appID)
	return c.store.ApplyBands(ctx, appID, versions)
}

// SetPrivateFacets is SetPrivateFacets of the Store.
func (c *Cached) SetPrivateFacets(ctx context.Context, appID, index string, facets []string) error {
	defer c.apps.Evict(appID)
	return c.store.SetPrivateFacets(ctx, appID, index, facets)
}

// SetTrackNames is SetTrackNames of the Store.
func (c *Cached) SetTrackNames(ctx context.Context, appID string, change TrackNames) (TrackNames, error) {
	defer c.apps.Evict(appID)
	return c.store.SetTrackNames(ctx, appID, change)
}

// SetFeed is SetFeed of the Store.
func (c *Cached) SetFeed(ctx context.Context, appID string, f Feed, now time.Time) (set Feed, changed bool, err error) {
	defer c.evictFeed(appID, f.Name)
	return c.store.SetFeed(ctx, appID, f, now)
}

// DeleteFeed is DeleteFeed of the Store.
func (c *Cached) DeleteFeed(ctx context.Context, appID, name string, now time.Time) error {
	defer c.evictFeed(appID, name)
	return c.store.DeleteFeed(ctx, appID, name, now)
}

// SaveSegment is SaveSegment of the Store.
func (c *Cached) SaveSegment(ctx context.Context, appID string, s SavedSegment,
	create bool) (set SavedSegment, changed bool, err error) {
	defer c.segments.Evict(appID)
	return c.store.SaveSegment(ctx, appID, s, create)
}

// DeleteSegment is DeleteSegment of the Store.
func (c *Cached) DeleteSegment(ctx context.Context, appID, name string) error {
	defer c.segments.Evict(appID)
	return c.store.DeleteSegment(ctx, appID, name)
}

// evictFeed evicts a feed, and its app, which has the dates of all feeds.
func (c *Cached) evictFeed(appID, name string) {
	c.feeds.Evict(feedID{appID, name})
	c.apps.Evict(appID)
}
