package config_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/configtest"
)

// hash is the hash of a key that only this number stands for.
func hash(i int) string { return fmt.Sprintf("%064x", i) }

// addKey gives app shop the key of a number.
func addKey(t *testing.T, s *config.Store, i int) {
	t.Helper()
	if err := s.PutKey(t.Context(), "shop", config.Key{Hash: hash(i), ACL: []string{"search"}}); err != nil {
		t.Fatal(err)
	}
}

// access asks for a key, and checks the error.
func access(t *testing.T, what string, s *config.Cached, app string, key int, want error) {
	t.Helper()
	got, err := s.Access(t.Context(), app, hash(key))
	wantError(t, what, err, want)
	if err == nil && (got.Hash != hash(key) || len(got.ACL) != 1) {
		t.Errorf("%s: got key %+v", what, got)
	}
}

func TestGuessedAppsCostNoKeyReads(t *testing.T) {
	const strangers = 20_000
	s, inner, _ := newWatched(t)
	for i := range strangers {
		access(t, "unknown app", s, fmt.Sprint("guess", i), 1, config.ErrNotFound)
	}
	if reads, keys := inner.reads.Load(), inner.keys.Load(); reads != strangers || keys != 0 {
		t.Errorf("%d guesses cost %d reads of apps and %d of keys, want one of an app each", strangers, reads-keys, keys)
	}
	access(t, "the last one again", s, fmt.Sprint("guess", strangers-1), 2, config.ErrNotFound)
	if reads := inner.reads.Load(); reads != strangers {
		t.Error("a repeated guess is read again")
	}
}

func TestGuessesEvictNothing(t *testing.T) {
	s, inner, _ := newWatched(t)
	addKey(t, inner.Store, 1)
	access(t, "key", s, "shop", 1, nil)
	for i := range 1_100 {
		access(t, "unknown app", s, fmt.Sprint("guess", i), 1, config.ErrNotFound)
	}
	for i := range config.CachedKeys + 100 {
		access(t, "unknown key", s, "shop", 2+i, config.ErrNotFound)
	}
	before := inner.reads.Load()
	access(t, "key after many guesses", s, "shop", 1, nil)
	if reads := inner.reads.Load() - before; reads != 0 {
		t.Errorf("guesses evicted a key or its app: %d reads", reads)
	}
}

func TestKnownKeysSurviveAnOutage(t *testing.T) {
	s, inner, at := newWatched(t)
	addKey(t, inner.Store, 1)
	addKey(t, inner.Store, 2)
	access(t, "before", s, "shop", 1, nil)
	inner.failing.Store(true)
	for range 48 { // four minutes
		at.forward(5 * time.Second)
		access(t, "known key", s, "shop", 1, nil)
	}
	access(t, "key that was not read before", s, "shop", 2, errBackend)
	access(t, "unknown key", s, "shop", 3, errBackend)
	access(t, "unknown app", s, "zoo", 1, errBackend)
	_, err := s.App(t.Context(), "shop")
	wantError(t, "the app's settings", err, errBackend)
	_, err = s.Key(t.Context(), "shop", hash(1))
	wantError(t, "the key by itself", err, errBackend)
	at.forward(time.Minute)
	access(t, "known key after five minutes", s, "shop", 1, errBackend)

	inner.failing.Store(false)
	access(t, "known key once the store is back", s, "shop", 1, nil)
	inner.failing.Store(true)
	at.forward(config.TTL)
	access(t, "known key in the next outage", s, "shop", 1, nil)
	inner.failing.Store(false)
	if err := inner.DeleteKey(t.Context(), "shop", hash(1)); err != nil {
		t.Fatal(err)
	}
	at.forward(config.TTL)
	access(t, "deleted key once the store is back", s, "shop", 1, config.ErrNotFound)
	inner.failing.Store(true)
	at.forward(config.TTL)
	access(t, "deleted key in an outage", s, "shop", 1, errBackend)
}

// A change of the app is visible at once, in an outage as well.
func TestAccessAfterAChange(t *testing.T) {
	s, inner, at := newWatched(t)
	addKey(t, inner.Store, 1)
	access(t, "before", s, "shop", 1, nil)
	if err := s.DeleteKey(t.Context(), "shop", hash(1)); err != nil {
		t.Fatal(err)
	}
	inner.failing.Store(true)
	at.forward(config.TTL)
	access(t, "deleted through the cache", s, "shop", 1, errBackend)
}

// hanging makes the reads of a store hang until their context ends, once it hangs.
type hanging struct {
	hangs   atomic.Bool
	running atomic.Int64
}

func (h *hanging) hang(ctx context.Context, _ string) error {
	if !h.hangs.Load() {
		return nil
	}
	h.running.Add(1)
	defer h.running.Add(-1)
	<-ctx.Done()
	return ctx.Err()
}

func TestHangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, inner := config.NewMemory(), new(hanging)
		create(t, store)
		addKey(t, store, 1)
		s := config.NewCachedAt(configtest.Hooked(store, inner.hang), config.TTL, time.Now)
		access(t, "before", s, "shop", 1, nil)
		inner.hangs.Store(true)
		time.Sleep(config.TTL)

		began := time.Now()
		access(t, "known key", s, "shop", 1, nil)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("a known key waits %v for a store that hangs", took)
		}
		began = time.Now()
		access(t, "known key again", s, "shop", 1, nil)
		if took := time.Since(began); took != 0 {
			t.Errorf("a known key waits %v although the store is known to hang", took)
		}
		known := inner.running.Load()

		var busy atomic.Int64
		var strangers sync.WaitGroup
		for i := range 5_000 {
			strangers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				_, err := s.Access(ctx, fmt.Sprint("guess", i), hash(1))
				var transient interface{ Transient() bool }
				switch {
				case errors.As(err, &transient) && transient.Transient():
					busy.Add(1)
				case !errors.Is(err, context.DeadlineExceeded):
					t.Errorf("guess: %v", err)
				}
			})
		}
		strangers.Wait()
		if running := inner.running.Load() - known; running != config.MaxStrangers || busy.Load() != 5_000-config.MaxStrangers {
			t.Errorf("%d reads run, %d guesses were refused; want at most %d reads", running, busy.Load(), config.MaxStrangers)
		}
		access(t, "known key beside strangers", s, "shop", 1, nil)
		inner.hangs.Store(false)
		time.Sleep(time.Minute) // all reads end
		access(t, "unknown app afterwards", s, "zoo", 1, config.ErrNotFound)
		access(t, "known key afterwards", s, "shop", 1, nil)
	})
}

// Only guesses are limited: a process that has just started may read many apps and
// indexes at once.
func TestReadsOfKnownThingsAreNotLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := new(hanging)
		inner.hangs.Store(true)
		s := config.NewCachedAt(configtest.Hooked(config.NewMemory(), inner.hang), config.TTL, time.Now)
		const apps = 2 * config.MaxStrangers
		var reads sync.WaitGroup
		for i := range apps {
			reads.Go(func() {
				_, err := s.App(t.Context(), fmt.Sprint("app", i))
				wantError(t, "an app while the store hangs", err, context.DeadlineExceeded)
			})
		}
		synctest.Wait()
		if running := inner.running.Load(); running != apps {
			t.Errorf("%d reads run, want %d", running, apps)
		}
		reads.Wait()
	})
}
