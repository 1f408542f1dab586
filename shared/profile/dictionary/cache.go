// Package dictionary finds, keeps and makes the dictionaries of apps: the lists of terms
// that many users of an app share, whose ids blocks hold in place of texts.
//
// It is a package of its own because a process keeps dictionaries beside the users whom
// it computes, and a job makes them for all users of an app. Dictionaries lie in the
// Bigtable table dictionaries, one row for each app and generation, and never change. A
// process keeps those that it has read, up to a number of bytes. Each is a cache: if it
// is lost, the log takes the place of the blocks that name it.
package dictionary

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/score/history"
)

const (
	// pollEvery is how often a process looks for a newer generation.
	pollEvery = time.Minute
	// absentFor is how long the cache remembers that a dictionary does not exist.
	absentFor = 10 * time.Second
	// newestWait is how long a fold that knows a dictionary waits for a newer one.
	newestWait = 200 * time.Millisecond
	// maxApps is the number of apps whose newest generation a process knows, and
	// maxLost that of dictionaries which do not exist.
	maxApps, maxLost = 10_000, 10_000
)

// Table keeps dictionaries. It is safe for concurrent use.
type Table interface {
	// Dictionaries returns the generations of an app, the newest first, at most limit.
	Dictionaries(ctx context.Context, app string, limit int) ([]int64, error)
	// ReadDictionary returns the stored form, nil if it does not exist.
	ReadDictionary(ctx context.Context, app string, generation int64) ([]byte, error)
	// CreateDictionary stores a dictionary unless the app has one of that generation.
	CreateDictionary(ctx context.Context, app string, generation int64, value []byte) (bool, error)
	DeleteDictionary(ctx context.Context, app string, generation int64) error
}

// Cache reads dictionaries and keeps some in memory. It is safe for concurrent use.
type Cache struct {
	store  Table
	now    func() time.Time
	log    *slog.Logger
	kept   cache.Reads[name, *history.Dictionary]
	newest cache.Reads[string, *history.Dictionary] // by app, nil if it has none
}

// name names a dictionary.
type name struct {
	app        string
	generation int64
}

// NewCache returns a cache of dictionaries that take up to bytes of memory.
func NewCache(s Table, bytes int64, now func() time.Time, log *slog.Logger) *Cache {
	return &Cache{
		store: s, now: now, log: log,
		kept: cache.NewReads(cache.Options[name, *history.Dictionary]{
			Bytes: int(bytes), Size: size, Absent: maxLost, AbsentFor: absentFor, Fresh: cache.Forever, Now: now,
			Nothing: func(d *history.Dictionary) bool { return d == nil },
		}),
		newest: cache.NewReads(cache.Options[string, *history.Dictionary]{
			Entries: maxApps, Fresh: pollEvery, Stale: cache.Forever, Wait: newestWait, Now: now,
		}),
	}
}

// Of returns the dictionaries of an app for one request.
func (c *Cache) Of(ctx context.Context, app string) history.Dictionaries { return of{ctx, c, app} }

type of struct {
	ctx   context.Context
	cache *Cache
	app   string
}

// Dictionary is that of history.Dictionaries.
func (o of) Dictionary(generation int64) (*history.Dictionary, error) {
	return o.cache.get(o.ctx, name{o.app, generation})
}

// get returns a dictionary. The error is history.ErrNoDictionary if it is lost, damaged,
// or of a format that this version does not know.
func (c *Cache) get(ctx context.Context, n name) (*history.Dictionary, error) {
	d, err := c.kept.One(ctx, n, cache.Ask[name, *history.Dictionary]{
		Group: n.app,
		Load: func(ctx context.Context, _ []name) (map[name]*history.Dictionary, error) {
			d, err := c.read(ctx, n)
			return map[name]*history.Dictionary{n: d}, err
		},
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("dictionary %d of %s: %w", n.generation, n.app, err)
	case d == nil:
		return nil, fmt.Errorf("dictionary %d of %s: %w", n.generation, n.app, history.ErrNoDictionary)
	}
	return d, nil
}

// read reads a dictionary, nil if it is lost.
func (c *Cache) read(ctx context.Context, n name) (*history.Dictionary, error) {
	value, err := c.store.ReadDictionary(ctx, n.app, n.generation)
	if err != nil {
		return nil, err
	}
	if value == nil {
		c.log.LogAttrs(ctx, slog.LevelError, "a dictionary does not exist: the log takes the place of what names it",
			slog.String("app", n.app), slog.Int64("generation", n.generation))
		return nil, nil
	}
	d, err := history.ParseDictionary(value)
	if err == nil && d.Generation() != n.generation {
		err = fmt.Errorf("it is of generation %d", d.Generation())
	}
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelError, "a dictionary cannot be read: the log takes the place of what names it",
			slog.String("app", n.app), slog.Int64("generation", n.generation), slog.Any("error", err))
		return nil, nil
	}
	return d, nil
}

// size estimates the memory of a dictionary: its stored form twice, the places and texts
// of its terms, and the maps of those that are written.
func size(_ name, d *history.Dictionary) int {
	const ofTerm = 90
	if d == nil {
		return 0
	}
	return 2*d.Bytes() + ofTerm*d.Len()
}

// Newest returns the dictionary for new blocks of an app: the newest of which the process
// knows, nil if there is none. It looks for a newer one once a minute. While Bigtable
// fails it keeps to the one before: no fold depends on a dictionary.
func (c *Cache) Newest(ctx context.Context, app string) *history.Dictionary {
	d, err := c.newest.One(ctx, app, cache.Ask[string, *history.Dictionary]{
		Group: app,
		Load: func(ctx context.Context, _ []string) (map[string]*history.Dictionary, error) {
			known, _ := c.newest.Last(app)
			d, err := c.look(ctx, app, known)
			if err != nil {
				c.log.LogAttrs(ctx, slog.LevelWarn, "the newest dictionary is not known, new blocks use the one before",
					slog.String("app", app), slog.Any("error", err))
				d = known // for the next minute
			}
			return map[string]*history.Dictionary{app: d}, nil
		},
	})
	if err != nil { // the process has none, and the request ends
		return nil
	}
	return d
}

// look returns the newest dictionary of an app, nil if there is none. One that cannot be
// read is none.
func (c *Cache) look(ctx context.Context, app string, known *history.Dictionary) (*history.Dictionary, error) {
	generations, err := c.store.Dictionaries(ctx, app, 1)
	if err != nil || len(generations) == 0 {
		return nil, err
	}
	if known != nil && known.Generation() == generations[0] {
		return known, nil
	}
	d, err := c.get(ctx, name{app, generations[0]})
	if errors.Is(err, history.ErrNoDictionary) {
		return nil, nil
	}
	return d, err
}
