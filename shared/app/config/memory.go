package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// memory keeps the configuration in the process, which no other process shares.
type memory struct {
	after   int64             // the first version is after+1
	records documents.Records // nil: nothing outlives the process
	mu      sync.Mutex
	apps    map[string]*memoryApp
	ended   map[string]Deletion
}

type memoryApp struct {
	App
	keys       map[string]Key
	strategies []memoryStrategy // oldest first
	indexes    map[string]catalog.Settings
	feeds      map[string]Feed
	segments   map[string]SavedSegment
}

type memoryStrategy struct {
	Version
	strategy strategy.Strategy
}

var _ Store = (*memory)(nil)

// NewMemory returns an empty Store that keeps everything in memory.
func NewMemory() Store { return NewMemoryAfter(0) }

// NewMemoryAfter is NewMemory, except that the versions of strategies and settings
// begin after version. It is for a process whose data survive in an emulator:
// what an earlier process computed under a version must not be taken for the
// result of another strategy with the same version.
func NewMemoryAfter(version int64) Store {
	return &memory{after: version, apps: make(map[string]*memoryApp), ended: make(map[string]Deletion)}
}

// with calls f with an app while it holds the lock.
func (m *memory) with(ctx context.Context, appID string, f func(*memoryApp) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	app, ok := m.apps[appID]
	if !ok {
		return fmt.Errorf("app %q: %w", appID, ErrNotFound)
	}
	return f(app)
}

// change calls f with a copy of an app while it holds the lock, and replaces the app by
// it if f returns nil.
func (m *memory) change(ctx context.Context, appID string, f func(*memoryApp) error) error {
	return m.with(ctx, appID, func(a *memoryApp) error {
		changed := a.clone()
		if err := f(changed); err != nil {
			return err
		}
		return m.replace(appID, changed, nil)
	})
}

func (m *memory) App(ctx context.Context, appID string) (App, error) {
	var app App
	err := m.with(ctx, appID, func(a *memoryApp) error {
		app = a.App
		return nil
	})
	return app, err
}

func (m *memory) Apps(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.apps)), nil
}

func (m *memory) CreateApp(ctx context.Context, app App) error {
	app, err := app.Prepare()
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.apps[app.ID]; ok {
		return fmt.Errorf("app %q: %w", app.ID, ErrExists)
	}
	if d, ok := m.ended[app.ID]; ok {
		if err := d.Reusable(time.Now()); err != nil {
			return err
		}
	}
	app.PrivateFacets, app.NumericBands = nil, nil
	return m.replace(app.ID, newMemoryApp(app), nil)
}

func (m *memory) DeleteApp(ctx context.Context, appID string) (Deletion, error) {
	if err := ctx.Err(); err != nil {
		return Deletion{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.apps[appID]; a != nil {
		if err := m.replace(appID, nil, &Deletion{App: appID, Region: a.Place().Read, StartedAt: Stamp(time.Time{}), Attempt: 1}); err != nil {
			return Deletion{}, err
		}
	}
	return m.deletion(appID)
}

func (m *memory) deletion(appID string) (Deletion, error) {
	d, ok := m.ended[appID]
	if !ok {
		return d, fmt.Errorf("deletion of app %q: %w", appID, ErrNotFound)
	}
	return d, nil
}

func (m *memory) Deletion(ctx context.Context, appID string) (Deletion, error) {
	if err := ctx.Err(); err != nil {
		return Deletion{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deletion(appID)
}

func (m *memory) Deletions(ctx context.Context) ([]Deletion, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.ended), func(a, b Deletion) int { return strings.Compare(a.App, b.App) }), nil
}

func (m *memory) UpdateDeletion(ctx context.Context, appID string, change func(*Deletion) error) (Deletion, error) {
	if err := ctx.Err(); err != nil {
		return Deletion{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.deletion(appID)
	if err == nil {
		d, err = d.With(change)
	}
	if err == nil {
		err = m.replace(appID, m.apps[appID], &d)
	}
	if err != nil {
		return Deletion{}, err
	}
	return d, nil
}

func (m *memory) SetRetention(ctx context.Context, appID string, days int) error {
	if err := CheckRetention(days); err != nil {
		return err
	}
	return m.change(ctx, appID, func(a *memoryApp) error {
		a.RetentionDays, a.ChangedAt = days, Stamp(time.Time{})
		return nil
	})
}

func (m *memory) SetConsistency(ctx context.Context, appID string, c Consistency) error {
	if _, err := ParseConsistency(string(c)); err != nil {
		return err
	}
	return m.change(ctx, appID, func(a *memoryApp) error {
		a.Consistency = c
		return nil
	})
}

func (m *memory) SetBrowserRanking(ctx context.Context, appID string, on bool) error {
	return m.change(ctx, appID, func(a *memoryApp) error {
		a.BrowserRanking = on
		return nil
	})
}

func (m *memory) SetSegments(ctx context.Context, appID string, on bool) error {
	return m.change(ctx, appID, func(a *memoryApp) error {
		a.App, _ = a.WithSegments(on)
		return nil
	})
}

func (m *memory) SetLimits(ctx context.Context, appID string, n limit.Numbers) error {
	if err := n.Check(); err != nil {
		return err
	}
	return m.change(ctx, appID, func(a *memoryApp) error {
		a.Limits = n
		return nil
	})
}

func (m *memory) UpdateLog(ctx context.Context, appID string, change func(*App) error) (App, error) {
	var app App
	err := m.change(ctx, appID, func(a *memoryApp) error {
		to, _, err := a.WithLog(change)
		if err != nil {
			return fmt.Errorf("change log of app %q: %w", appID, err)
		}
		a.App, app = to, to
		return nil
	})
	return app, err
}

func (m *memory) UpdateMove(ctx context.Context, appID string, change func(*App) error) (App, error) {
	var app App
	err := m.change(ctx, appID, func(a *memoryApp) error {
		to, _, err := a.WithMove(change)
		if err != nil {
			return fmt.Errorf("change region of app %q: %w", appID, err)
		}
		a.App, app = to, to
		return nil
	})
	return app, err
}

func (m *memory) Key(ctx context.Context, appID, hash string) (Key, error) {
	var key Key
	err := m.with(ctx, appID, func(a *memoryApp) error {
		var ok bool
		if key, ok = a.keys[hash]; !ok {
			return fmt.Errorf("key %q of app %q: %w", hash, appID, ErrNotFound)
		}
		return nil
	})
	return key, err
}

func (m *memory) Keys(ctx context.Context, appID string) ([]Key, error) {
	var keys []Key
	err := m.with(ctx, appID, func(a *memoryApp) error {
		keys = slices.SortedFunc(maps.Values(a.keys), func(a, b Key) int { return strings.Compare(a.Hash, b.Hash) })
		return nil
	})
	return keys, err
}

func (m *memory) Parents(ctx context.Context, appID string) ([]Key, error) {
	var keys []Key
	err := m.with(ctx, appID, func(a *memoryApp) error {
		keys = a.parents()
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return keys, err
}

func (a *memoryApp) parents() []Key {
	return slices.DeleteFunc(slices.Collect(maps.Values(a.keys)), func(k Key) bool { return len(k.Parent) == 0 })
}

func (m *memory) PutKey(ctx context.Context, appID string, key Key) error {
	key, err := key.Prepare()
	if err != nil {
		return err
	}
	return m.change(ctx, appID, func(a *memoryApp) error {
		if err := key.CheckParents(a.parents()); err != nil {
			return fmt.Errorf("put key of app %q: %w", appID, err)
		}
		a.keys[key.Hash] = key
		return nil
	})
}

func (m *memory) DeleteKey(ctx context.Context, appID, hash string) error {
	return m.change(ctx, appID, func(a *memoryApp) error {
		if _, ok := a.keys[hash]; !ok {
			return fmt.Errorf("key %q of app %q: %w", hash, appID, ErrNotFound)
		}
		delete(a.keys, hash)
		return nil
	})
}

func (m *memory) SetStrategy(ctx context.Context, appID string, s strategy.Strategy) (app App, changed bool, err error) {
	return m.PublishStrategy(ctx, appID, s, Publication{})
}

func (m *memory) PublishStrategy(ctx context.Context, appID string, s strategy.Strategy, p Publication) (app App, changed bool, err error) {
	err = m.change(ctx, appID, func(a *memoryApp) (err error) {
		first := a.StrategyVersion == 0
		if a.App, changed, err = a.Publish(s, p); err != nil {
			return fmt.Errorf("set strategy of app %q: %w", appID, err)
		}
		if changed {
			if first {
				a.StrategyVersion, a.ScoringVersion = m.after+1, m.after+1
			}
			v := Version{Version: a.StrategyVersion, ScoringVersion: a.ScoringVersion, SetAt: a.ChangedAt, Note: p.Note}
			a.strategies = append(a.strategies, memoryStrategy{v, s})
			a.strategies = slices.DeleteFunc(a.strategies, func(old memoryStrategy) bool { return a.Expired(old.Version, a.ChangedAt) })
		}
		app = a.App
		return nil
	})
	return app, changed, err
}

func (m *memory) StrategyVersion(ctx context.Context, appID string, version int64) (strategy.Strategy, error) {
	var s strategy.Strategy
	err := m.with(ctx, appID, func(a *memoryApp) error {
		i := slices.IndexFunc(a.strategies, func(kept memoryStrategy) bool { return kept.Version.Version == version })
		if i < 0 {
			return fmt.Errorf("strategy version %d of app %q: %w", version, appID, ErrNotFound)
		}
		s = a.strategies[i].strategy
		return nil
	})
	return s, err
}

func (m *memory) StrategyVersions(ctx context.Context, appID string) ([]Version, error) {
	var versions []Version
	err := m.with(ctx, appID, func(a *memoryApp) error {
		for _, kept := range slices.Backward(a.strategies) {
			if len(versions) < MaxVersions {
				versions = append(versions, kept.Version)
			}
		}
		return nil
	})
	return versions, err
}

func (m *memory) ApplyBands(ctx context.Context, appID string, versions map[string]int64) error {
	return m.change(ctx, appID, func(a *memoryApp) error {
		a.NumericBands, _ = a.NumericBands.Apply(versions)
		return nil
	})
}

func (m *memory) SetPrivateFacets(ctx context.Context, appID, index string, facets []string) error {
	return m.change(ctx, appID, func(a *memoryApp) (err error) {
		to, err := a.PrivateFacets.With(index, facets)
		if err == nil {
			a.PrivateFacets = to
		}
		return err
	})
}
