package page

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/lru"
)

const (
	// maxStale is the age up to which a list or a record is served while the store
	// fails.
	maxStale = 10 * time.Minute
	// readTimeout ends a read that the store does not answer. A read continues when the
	// request that began it ends, since other requests may wait for it.
	readTimeout = 10 * time.Second
	// heldWait is how long a request waits for newer values if it can go on with those
	// that are too old.
	heldWait = 200 * time.Millisecond
	// pause is how long the requests of an app do not wait for newer values than those
	// in memory after a read was slow or failed. Then one of them waits again.
	pause = 2 * time.Second
	// maxPaused bounds the apps whose slow reads are remembered.
	maxPaused = 1000
)

// errSlow says that a read has not ended in time. It goes on, and a later page has what
// it reads.
var errSlow = fmt.Errorf("the read takes too long: %w", context.DeadlineExceeded)

// reads is the method of a cache. A Reader holds no cache by its own type, since each package
// that uses a Reader would compile it, and the library below it, once more.
type reads[K comparable, V any] interface {
	get(ctx context.Context, a ask[K, V]) (map[K]V, error)
}

// cache keeps what was read from the store, up to a number of bytes. A value that is
// used is read again ahead of its end, one read at a time. While the store fails or is
// slow, it serves the value that it has, up to maxStale old. It is safe for concurrent
// use.
type cache[K comparable, V any] struct {
	kept *otter.Cache[K, held[V]]
	ttl  time.Duration // from which age a request waits for a newer value
	due  time.Duration // from which age a used value is read again ahead
	now  func() time.Time
	slow *slowApps
}

// held is a value and when the read of it began.
type held[V any] struct {
	value V
	began time.Time
}

// ask is one call of cache.get.
type ask[K comparable, V any] struct {
	app  string
	keys []K
	// load reads the values of keys, all of them: a value may say that there is nothing.
	load func(ctx context.Context, keys []K) (map[K]V, error)
	// usable reports whether a value that is not too old may be used; nil: any.
	usable func(V) bool
	late   <-chan struct{} // closed when the call must end; it may end earlier with values that are too old
}

func newCache[K comparable, V any](ttl time.Duration, maxBytes int, now func() time.Time, size func(K, V) int) *cache[K, V] {
	c := &cache[K, V]{ttl: ttl, due: ttl - ttl/5, now: now, slow: newSlowApps(1, now)}
	c.kept = otter.Must(&otter.Options[K, held[V]]{
		MaximumWeight:     uint64(maxBytes),
		Weigher:           func(k K, h held[V]) uint32 { return uint32(entryBytes + size(k, h.value)) },
		ExpiryCalculator:  otter.ExpiryWriting[K, held[V]](maxStale),
		RefreshCalculator: refreshAfter[K, held[V]](c.due),
		Clock:             clock(now),
		Logger:            &otter.NoopLogger{}, // callers get the errors
	})
	return c
}

// entryBytes estimates what an entry takes beside its key's text and its value.
const entryBytes = 240

// get returns the values of keys. If some are missing or older than they should be, the
// error says why: those that it returns may still be used.
func (c *cache[K, V]) get(ctx context.Context, a ask[K, V]) (map[K]V, error) {
	found := make(map[K]V, len(a.keys))
	var ahead, wanted []K
	now, absent := c.now(), false
	for _, k := range a.keys {
		h, ok := c.kept.GetIfPresent(k)
		if ok {
			found[k] = h.value
		}
		switch age := now.Sub(h.began); {
		case !ok, age >= c.ttl, a.usable != nil && !a.usable(h.value):
			wanted = append(wanted, k)
			absent = absent || !ok
		case age >= c.due:
			ahead = append(ahead, k)
		}
	}
	load := otter.BulkLoaderFunc[K, held[V]](func(ctx context.Context, keys []K) (map[K]held[V], error) {
		return c.read(ctx, keys, a.load)
	})
	if len(ahead) > 0 {
		_, _ = c.kept.BulkGet(ctx, ahead, load) // it returns at once, since all are there
	}
	if len(wanted) == 0 {
		return found, nil
	}
	if !c.slow.mayWait(a.app) && !absent {
		return found, errSlow
	}
	var held <-chan time.Time
	if !absent {
		timer := time.NewTimer(heldWait)
		defer timer.Stop()
		held = timer.C
	}
	select {
	case results := <-c.kept.BulkRefresh(ctx, wanted, load):
		var failed error
		for _, r := range results {
			if r.Err == nil {
				found[r.Key] = r.Value.value
			} else {
				failed = r.Err
			}
		}
		c.slow.note(a.app, failed == nil)
		return found, failed
	case <-held:
	case <-a.late:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.slow.note(a.app, false)
	return found, errSlow
}

// read reads values for the cache.
func (c *cache[K, V]) read(ctx context.Context, keys []K, load func(context.Context, []K) (map[K]V, error)) (map[K]held[V], error) {
	began := c.now()
	ctx, cancel := deadline.Detach(ctx, readTimeout)
	defer cancel()
	values, err := load(ctx, keys)
	if err != nil {
		return nil, err
	}
	read := make(map[K]held[V], len(values))
	for k, v := range values {
		read[k] = held[V]{v, began}
	}
	return read, nil
}

// slowApps are the apps for whose reads no request waits, because some in a row were
// slow or failed.
type slowApps struct {
	strikes int // so many reads in a row
	now     func() time.Time

	mu   sync.Mutex
	slow lru.Cache[string, slowApp]
}

type slowApp struct {
	strikes int
	until   time.Time // zero: requests wait
}

func newSlowApps(strikes int, now func() time.Time) *slowApps {
	return &slowApps{strikes: strikes, now: now, slow: lru.New[string, slowApp](maxPaused)}
}

// mayWait reports whether a request may wait for a read. After a pause only one may,
// until a read ends well.
func (s *slowApps) mayWait(app string) bool {
	if s.slow.Len() == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a, _ := s.slow.Get(app)
	now := s.now()
	if now.Before(a.until) {
		return false
	}
	if !a.until.IsZero() {
		a.until = now.Add(pause)
		s.slow.Add(app, a)
	}
	return true
}

// note remembers how a read has ended. paused says that requests stop to wait.
func (s *slowApps) note(app string, well bool) (paused bool) {
	if well && s.slow.Len() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if well {
		s.slow.Remove(app)
		return false
	}
	a, _ := s.slow.Get(app)
	if a.strikes++; a.strikes >= s.strikes {
		paused = a.until.IsZero()
		a.until = s.now().Add(pause)
	}
	s.slow.Add(app, a)
	return paused
}

// clock is the cache library's view of a clock. Without ticks, entries that nobody uses
// leave only when others need the room.
type clock func() time.Time

func (c clock) NowNano() int64                      { return c().UnixNano() }
func (c clock) Tick(time.Duration) <-chan time.Time { return nil }

// refreshAfter makes an entry due some time after it was read, and some seconds after a
// read of it has failed.
type refreshAfter[K comparable, V any] time.Duration

func (r refreshAfter[K, V]) RefreshAfterCreate(otter.Entry[K, V]) time.Duration {
	return time.Duration(r)
}

func (r refreshAfter[K, V]) RefreshAfterUpdate(otter.Entry[K, V], V) time.Duration {
	return time.Duration(r)
}

func (r refreshAfter[K, V]) RefreshAfterReload(otter.Entry[K, V], V) time.Duration {
	return time.Duration(r)
}

func (r refreshAfter[K, V]) RefreshAfterReloadFailure(otter.Entry[K, V], error) time.Duration {
	return pause
}
