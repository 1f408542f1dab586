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
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/lru"
	"github.com/affinityengine/affinity/shared/score/history"
)

const (
	// pollEvery is how often a process looks for a newer generation.
	pollEvery = time.Minute
	// absentFor is how long the cache remembers that a dictionary does not exist.
	absentFor = 10 * time.Second
	// maxApps is the number of apps whose newest generation a process knows, and
	// maxKept that of dictionaries, lost ones among them, whatever their size.
	maxApps, maxKept = 10_000, 10_000
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

// Cache reads dictionaries and keeps the most recently used ones in memory. It is safe
// for concurrent use.
type Cache struct {
	store Table
	now   func() time.Time
	log   *slog.Logger
	most  int

	mu      sync.Mutex
	bytes   int // of kept
	kept    lru.Cache[name, *kept]
	reading map[name]*reading
	newest  lru.Cache[string, newest] // by app
}

// name names a dictionary.
type name struct {
	app        string
	generation int64
}

// kept is a dictionary, or nil since the time at which it was found to be lost.
type kept struct {
	*history.Dictionary
	at    time.Time
	bytes int
}

// reading is a reading of a dictionary that others may wait for. The fields are set when
// done is closed.
type reading struct {
	done      chan struct{}
	found     *history.Dictionary
	err       error
	abandoned bool // its request has ended
}

// newest is the newest dictionary of an app, nil if it has none, as of a time.
type newest struct {
	*history.Dictionary
	at time.Time
}

// NewCache returns a cache of dictionaries that take up to bytes of memory.
func NewCache(s Table, bytes int64, now func() time.Time, log *slog.Logger) *Cache {
	c := &Cache{store: s, now: now, log: log, most: int(bytes), reading: map[name]*reading{}}
	c.kept = lru.NewUnlocked(maxKept, func(_ name, k *kept) { c.bytes -= k.bytes })
	c.newest = lru.NewUnlocked[string, newest](maxApps, nil)
	return c
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
	for {
		c.mu.Lock()
		if k, ok := c.kept.Get(n); ok && (k.Dictionary != nil || c.within(k.at, absentFor)) {
			c.mu.Unlock()
			return found(n, k.Dictionary)
		}
		r := c.reading[n]
		leads := r == nil
		if leads {
			r = &reading{done: make(chan struct{})}
			c.reading[n] = r
		}
		c.mu.Unlock()
		if leads {
			c.read(ctx, n, r)
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for dictionary %d of %s: %w", n.generation, n.app, ctx.Err())
		}
		switch {
		case r.err == nil:
			return found(n, r.found)
		case leads || !r.abandoned:
			return nil, r.err
		}
	}
}

func found(n name, d *history.Dictionary) (*history.Dictionary, error) {
	if d == nil {
		return nil, fmt.Errorf("dictionary %d of %s: %w", n.generation, n.app, history.ErrNoDictionary)
	}
	return d, nil
}

// read reads a dictionary, keeps it, and ends the reading.
func (c *Cache) read(ctx context.Context, n name, r *reading) {
	r.err = errors.New("the reading of a dictionary ended early") // also after a panic
	defer func() {
		c.mu.Lock()
		delete(c.reading, n)
		if r.err == nil {
			c.keep(n, r.found)
		}
		c.mu.Unlock()
		r.abandoned = ctx.Err() != nil
		close(r.done)
	}()
	value, err := c.store.ReadDictionary(ctx, n.app, n.generation)
	if r.err = err; err != nil {
		return
	}
	if value == nil {
		c.log.LogAttrs(ctx, slog.LevelError, "a dictionary does not exist: the log takes the place of what names it",
			slog.String("app", n.app), slog.Int64("generation", n.generation))
		return
	}
	d, err := history.ParseDictionary(value)
	if err == nil && d.Generation() != n.generation {
		err = fmt.Errorf("it is of generation %d", d.Generation())
	}
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelError, "a dictionary cannot be read: the log takes the place of what names it",
			slog.String("app", n.app), slog.Int64("generation", n.generation), slog.Any("error", err))
		return
	}
	r.found = d
}

// keep keeps a dictionary, or that it is lost. The caller holds mu.
func (c *Cache) keep(n name, d *history.Dictionary) {
	c.kept.Remove(n)
	k := &kept{Dictionary: d, at: c.now(), bytes: size(d)}
	c.kept.Add(n, k)
	for c.bytes += k.bytes; c.bytes > c.most && c.kept.Len() > 1; {
		c.kept.RemoveOldest()
	}
}

// size estimates the memory of a dictionary: its stored form twice, the places and texts
// of its terms, and the maps of those that are written.
func size(d *history.Dictionary) int {
	const ofEntry, ofTerm = 200, 90
	if d == nil {
		return ofEntry
	}
	return ofEntry + 2*d.Bytes() + ofTerm*d.Len()
}

func (c *Cache) within(at time.Time, d time.Duration) bool {
	since := c.now().Sub(at)
	return since >= 0 && since < d
}

// Newest returns the dictionary for new blocks of an app: the newest of which the process
// knows, nil if there is none. It looks for a newer one once a minute. While Bigtable
// fails it keeps to the one before: no fold depends on a dictionary.
func (c *Cache) Newest(ctx context.Context, app string) *history.Dictionary {
	c.mu.Lock()
	last, _ := c.newest.Get(app)
	if c.within(last.at, pollEvery) {
		c.mu.Unlock()
		return last.Dictionary
	}
	last.at = c.now() // the others do not look at the same time
	c.newest.Add(app, last)
	c.mu.Unlock()
	d, err := c.look(ctx, app, last.Dictionary)
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "the newest dictionary is not known, new blocks use the one before",
			slog.String("app", app), slog.Any("error", err))
		return last.Dictionary
	}
	c.use(app, d)
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

// use makes a dictionary the newest of an app.
func (c *Cache) use(app string, d *history.Dictionary) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest.Add(app, newest{d, c.now()})
}
