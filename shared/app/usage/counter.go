package usage

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/event"
)

const (
	// Interval is the time between two flushes. A process that is killed loses what
	// it counted since its last one.
	Interval = 5 * time.Second
	// flushTime limits a flush, so that a slow table does not keep a process alive.
	flushTime = 5 * time.Second
	// maxDays, maxSketches, maxAllNames and maxKeys bound the memory of a process whose
	// table fails, or that serves very many apps: days of apps, sketches of their users,
	// names of all days, and keys. What is above them is not counted, and logged. Names
	// count as those beyond MaxNames.
	maxDays     = 20_000
	maxSketches = 400
	maxAllNames = 200_000
	maxKeys     = 50_000
)

// Counter counts for one process. It is safe for concurrent use. A nil Counter
// counts nothing.
type Counter struct {
	table   Table
	now     func() time.Time
	log     *slog.Logger
	process string
	shard   int

	mu      sync.RWMutex
	days    map[appDay]*entry
	keys    map[appKey]Day // the last day that was noted
	pending map[appKey]Day // the days that are not stored
	lost    int64          // counts above the bounds

	sketches int // guarded by mu
	names    atomic.Int64

	flushing sync.Mutex
	cancel   context.CancelFunc
	done     chan struct{}
}

type appDay struct {
	app string
	day Day
}

type appKey struct{ app, hash string }

// entry is what a process counted for an app's day.
type entry struct {
	mu      sync.Mutex
	counts  Counts // of no batch yet
	names   names
	sending *Batch // the batch that is not stored yet
	number  int64  // of batches
	users   *sketch
	changed bool // users, since they were stored
}

// NewCounter returns a counter. now is the engine's clock.
func NewCounter(table Table, now func() time.Time, log *slog.Logger) *Counter {
	return &Counter{
		table: table, now: now, log: log, process: rand.Text()[:10], shard: mathrand.IntN(shards),
		days: make(map[appDay]*entry), keys: make(map[appKey]Day), pending: make(map[appKey]Day),
	}
}

// Add adds to the counts of an app's day.
func (c *Counter) Add(app string, counts Counts) {
	if c == nil || app == "" {
		return
	}
	if e := c.entry(app); e != nil {
		e.mu.Lock()
		e.counts.Add(counts)
		e.mu.Unlock()
	}
}

// Reads counts users whose profile a request asks for.
func (c *Counter) Reads(app string, n int) { c.Add(app, Counts{Reads: int64(n)}) }

// Refused counts refused requests of events, or refused lines.
func (c *Counter) Refused(app string, n int) { c.Add(app, Counts{Refused: int64(n)}) }

// RefusedLink counts an event that asked for a link and got none.
func (c *Counter) RefusedLink(app string) { c.Add(app, Counts{RefusedLinks: 1}) }

// Events counts n accepted events. user returns the token of the i-th event's user,
// or "" for an event that no user is counted for. Tokens that name nobody are counted by
// name, too.
func (c *Counter) Events(app string, n int, user func(i int) string) {
	if c == nil || app == "" || n == 0 {
		return
	}
	e := c.entry(app)
	if e == nil {
		return
	}
	e.mu.Lock()
	e.counts.Events += int64(n)
	users := e.users
	e.mu.Unlock()
	if users == nil {
		if users = c.sketch(e); users == nil {
			return
		}
	}
	now := c.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range n {
		if token := user(i); token != "" {
			users.add(token, 1, now)
			e.changed = true
			if event.NamesNobody(token) {
				e.names.countNobody(c, token)
			}
		}
	}
}

// sketch returns the sketch of an entry, nil if the process has too many.
func (c *Counter) sketch(e *entry) *sketch {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.users == nil && c.sketches < maxSketches {
		e.users, c.sketches = &sketch{}, c.sketches+1
	}
	return e.users
}

// Key notes that a key of an app was used today.
func (c *Counter) Key(app, hash string) {
	if c == nil {
		return
	}
	key, today := appKey{app, hash}, DayOf(c.now())
	c.mu.RLock()
	noted := c.keys[key]
	c.mu.RUnlock()
	if noted == today {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.keys) >= maxKeys {
		clear(c.keys) // they are noted again
	}
	if _, ok := c.pending[key]; !ok && len(c.pending) >= maxKeys {
		c.lost++
		return
	}
	c.keys[key], c.pending[key] = today, today
}

// entry returns the entry of an app's today, or nil if there are too many.
func (c *Counter) entry(app string) *entry {
	at := appDay{app, DayOf(c.now())}
	c.mu.RLock()
	e := c.days[at]
	c.mu.RUnlock()
	if e != nil {
		return e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.days[at]; e != nil {
		return e
	}
	if len(c.days) >= maxDays {
		c.lost++
		return nil
	}
	e = &entry{}
	c.days[at] = e
	return e
}

// Start flushes every Interval until Close.
func (c *Counter) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel, c.done = cancel, make(chan struct{})
	go func() {
		defer close(c.done)
		tick := time.NewTicker(Interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := c.Flush(ctx); err != nil && ctx.Err() == nil {
					c.log.LogAttrs(ctx, slog.LevelWarn, "usage is not stored, and kept for the next attempt", slog.Any("error", err))
				}
			}
		}
	}()
}

// Close ends Start and flushes once more, for at most five seconds. It logs what
// cannot be stored.
func (c *Counter) Close() {
	if c.cancel != nil {
		c.cancel()
		<-c.done
	}
	ctx := context.Background()
	if err := c.Flush(ctx); err != nil {
		c.log.LogAttrs(ctx, slog.LevelWarn, "usage since the last flush is lost", slog.Any("error", err))
	}
}

// Flush stores what the process has counted. After an error it keeps the rest, and
// the next Flush stores it.
func (c *Counter) Flush(ctx context.Context) error {
	c.flushing.Lock()
	defer c.flushing.Unlock()
	ctx, cancel := deadline.Begin(ctx, flushTime)
	defer cancel()
	defer c.forget(ctx)
	return errors.Join(
		cache.WriteEach(c.snapshot(), func(at appDay, e *entry) error { return c.store(ctx, at, e) }),
		cache.WriteEach(c.unstored(), func(app string, days map[string]Day) error { return c.storeKeys(ctx, app, days) }),
	)
}

func (c *Counter) snapshot() map[appDay]*entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	days := make(map[appDay]*entry, len(c.days))
	for at, e := range c.days {
		days[at] = e
	}
	return days
}

// store writes an entry.
func (c *Counter) store(ctx context.Context, at appDay, e *entry) error {
	// A batch that failed may have been written, so it stays as it is and what was
	// counted since goes into the next one.
	for {
		if err := c.admitNames(ctx, at, e); err != nil {
			return err
		}
		batch := c.batch(at, e)
		if batch == nil {
			return c.storeUsers(ctx, at, e)
		}
		repeated := batch.Repeated
		if err := c.table.AddUsage(ctx, *batch); err != nil {
			batch.Repeated = true
			return err
		}
		e.mu.Lock()
		e.sending = nil
		e.mu.Unlock()
		if !repeated {
			return c.storeUsers(ctx, at, e)
		}
	}
}

// batch returns the batch to write, nil if nothing is new.
func (c *Counter) batch(at appDay, e *entry) *Batch {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sending != nil {
		return e.sending
	}
	if names := e.names.take(); e.counts != (Counts{}) || !names.Empty() {
		e.number++
		e.sending = &Batch{App: at.app, Day: at.day, Shard: c.shard, Counts: e.counts, Names: names,
			Process: c.process, Number: e.number}
		e.counts = Counts{}
	}
	return e.sending
}

// storeUsers writes the hot users of an entry. It looks for deleted users after the write: a
// deletion that comes later finds them in the table. Whom it finds it drops, and writes the
// others again.
func (c *Counter) storeUsers(ctx context.Context, at appDay, e *entry) (err error) {
	for range 2 {
		e.mu.Lock()
		changed := e.changed
		var users []User
		if changed {
			users = e.users.top()
		}
		e.changed = false
		e.mu.Unlock()
		if !changed {
			return nil
		}
		var deleted map[string]time.Time
		if err = c.table.PutHotUsers(ctx, at.app, at.day, c.shard, c.process, users); err == nil {
			deleted, err = c.table.Deleted(ctx, at.app, users)
		}
		e.mu.Lock()
		gone := e.users.forget(deleted)
		e.changed = e.changed || gone || err != nil
		e.mu.Unlock()
		if !gone {
			return err
		}
	}
	return nil
}

// unstored returns the days of keys that are not stored, by app.
func (c *Counter) unstored() map[string]map[string]Day {
	c.mu.RLock()
	defer c.mu.RUnlock()
	apps := make(map[string]map[string]Day)
	for key, day := range c.pending {
		if apps[key.app] == nil {
			apps[key.app] = make(map[string]Day)
		}
		apps[key.app][key.hash] = day
	}
	return apps
}

func (c *Counter) storeKeys(ctx context.Context, app string, days map[string]Day) error {
	if err := c.table.PutKeyDays(ctx, app, days); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for hash, day := range days {
		if key := (appKey{app, hash}); c.pending[key] == day {
			delete(c.pending, key)
		}
	}
	return nil
}

// forget removes the days before yesterday whose counts are stored: no request
// still counts in them.
func (c *Counter) forget(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	today := DayOf(c.now())
	for at, e := range c.days {
		e.mu.Lock()
		if at.day < today-1 && e.sending == nil && e.counts == (Counts{}) && !e.names.waiting() && !e.changed {
			delete(c.days, at)
			c.names.Add(-int64(e.names.size()))
			if e.users != nil {
				c.sketches--
			}
		}
		e.mu.Unlock()
	}
	if c.lost > 0 {
		c.log.LogAttrs(ctx, slog.LevelError, "usage is not counted: the process holds as much of it as it may",
			slog.Int64("counts", c.lost))
		c.lost = 0
	}
}
