package config_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// clock stands still until a test advances it.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) forward(d time.Duration) { c.ns.Add(int64(d)) }

var errBackend = errors.New("backend is down")

// watched is a store that counts its reads and can delay or fail them. newWatched also
// fails its changes.
type watched struct {
	*config.Store
	reads   atomic.Int64 // of apps and keys
	keys    atomic.Int64 // of keys
	failing atomic.Bool
	// held, if set, receives a channel from every App read that has seen the app
	// and not yet returned. Closing the channel lets the read return.
	held chan chan struct{}
}

func (w *watched) App(ctx context.Context, appID string) (config.App, error) {
	w.reads.Add(1)
	if w.failing.Load() {
		return config.App{}, errBackend
	}
	app, err := w.Store.App(ctx, appID)
	if w.held != nil {
		release := make(chan struct{})
		w.held <- release
		<-release
	}
	return app, err
}

func (w *watched) Key(ctx context.Context, appID, hash string) (config.Key, error) {
	w.reads.Add(1)
	w.keys.Add(1)
	if w.failing.Load() {
		return config.Key{}, errBackend
	}
	return w.Store.Key(ctx, appID, hash)
}

// lossy makes changes, and loses the answers while it fails.
type lossy struct {
	documents.Store
	failing *atomic.Bool
}

func (l lossy) Commit(ctx context.Context, writes ...documents.Write) error {
	if err := l.Store.Commit(ctx, writes...); err != nil || !l.failing.Load() {
		return err
	}
	return errBackend
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

// create adds an app with a retention of 90 days.
func create(t *testing.T, s *config.Store) {
	t.Helper()
	if err := s.CreateApp(t.Context(), config.App{ID: "shop", RetentionDays: 90}); err != nil {
		t.Fatalf("create app: %v", err)
	}
}

// newWatched returns a cache, its inner store and its clock. There is one app, with
// a retention of 90 days.
func newWatched(t *testing.T) (*config.Cached, *watched, *clock) {
	t.Helper()
	inner, at := new(watched), new(clock)
	inner.Store = config.New(lossy{documents.NewMemory(), &inner.failing}, lossy{documents.NewMemory(), &inner.failing}, slog.New(slog.DiscardHandler))
	create(t, inner.Store)
	return config.NewCachedAt(inner, config.TTL, at.now), inner, at
}

// retention is the retention of the app in a store, -1 if it is not found.
func retention(t *testing.T, s *config.Cached) int {
	t.Helper()
	app, err := s.App(t.Context(), "shop")
	switch {
	case errors.Is(err, config.ErrNotFound):
		return -1
	case err != nil:
		t.Errorf("read app: %v", err)
	}
	return app.RetentionDays
}

// wantRetention checks the retention, and the number of reads of the inner store.
func wantRetention(t *testing.T, when string, s *config.Cached, want int, w *watched, wantReads int64) {
	t.Helper()
	if got := retention(t, s); got != want {
		t.Errorf("%s: got retention %d, want %d", when, got, want)
	}
	if got := w.reads.Load(); got != wantReads {
		t.Errorf("%s: %d reads of the inner store, want %d", when, got, wantReads)
	}
}

func TestCachedUntilTTL(t *testing.T) {
	s, inner, at := newWatched(t)
	wantRetention(t, "first read", s, 90, inner, 1)
	if err := inner.SetRetention(t.Context(), "shop", 30); err != nil {
		t.Fatal(err)
	}
	at.forward(config.TTL - 1)
	wantRetention(t, "just before the TTL", s, 90, inner, 1)
	at.forward(1)
	wantRetention(t, "at the TTL", s, 30, inner, 2)
	wantRetention(t, "after it", s, 30, inner, 2)
}

func TestCachedAbsence(t *testing.T) {
	inner, at := &watched{Store: config.NewMemory()}, new(clock)
	s := config.NewCachedAt(inner, config.TTL, at.now)
	wantRetention(t, "first read", s, -1, inner, 1)
	create(t, inner.Store)
	at.forward(config.TTL - 1)
	wantRetention(t, "just before the TTL", s, -1, inner, 1)
	at.forward(1)
	wantRetention(t, "at the TTL", s, 90, inner, 2)
}

func TestCachedErrors(t *testing.T) {
	s, inner, at := newWatched(t)
	inner.failing.Store(true)
	for range 2 {
		_, err := s.App(t.Context(), "shop")
		wantError(t, "while the backend is down", err, errBackend)
	}
	if got := inner.reads.Load(); got != 2 {
		t.Errorf("%d reads of the inner store, want 2: errors are not cached", got)
	}
	inner.failing.Store(false)
	wantRetention(t, "once it is up", s, 90, inner, 3)
	inner.failing.Store(true)
	wantRetention(t, "down again, but known", s, 90, inner, 3)
	at.forward(config.TTL)
	_, err := s.App(t.Context(), "shop")
	wantError(t, "after the TTL", err, errBackend)
}

func TestConcurrentReadsShareOne(t *testing.T) {
	s, inner, _ := newWatched(t)
	inner.held = make(chan chan struct{})
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() { retention(t, s) })
	}
	close(<-inner.held)
	group.Wait()
	wantRetention(t, "afterwards", s, 90, inner, 1)
}

func TestReadDoesNotJoinExpiredRead(t *testing.T) {
	s, inner, at := newWatched(t)
	inner.held = make(chan chan struct{})
	old, young := make(chan int, 1), make(chan int, 1)
	go func() { old <- retention(t, s) }()
	releaseOld := <-inner.held

	// The first read saw 90 days and has not returned at the end of the TTL.
	if err := inner.SetRetention(t.Context(), "shop", 30); err != nil {
		t.Fatal(err)
	}
	at.forward(config.TTL)
	go func() { young <- retention(t, s) }()
	close(<-inner.held)
	if got := <-young; got != 30 {
		t.Errorf("read that began at the TTL: got %d, want 30", got)
	}
	close(releaseOld)
	if got := <-old; got != 90 {
		t.Errorf("read that began before the change: got %d, want 90", got)
	}
	wantRetention(t, "the late answer does not replace the newer one", s, 30, inner, 2)
}

func TestReadContinuesWithoutItsCaller(t *testing.T) {
	s, inner, _ := newWatched(t)
	inner.held = make(chan chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := s.App(ctx, "shop")
		first <- err
	}()
	release := <-inner.held
	cancel()
	wantError(t, "cancelled caller", <-first, context.Canceled)
	close(release)
	wantRetention(t, "next caller", s, 90, inner, 1)
}

// A call that is cancelled before it begins reads nothing, and does not return what
// the cache holds either.
func TestCancelledCallReadsNothing(t *testing.T) {
	s, inner, _ := newWatched(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.App(ctx, "shop")
	wantError(t, "unknown app", err, context.Canceled)
	wantRetention(t, "next caller", s, 90, inner, 1)
	_, err = s.App(ctx, "shop")
	wantError(t, "known app", err, context.Canceled)
	_, err = s.Access(ctx, "shop", hash(1))
	wantError(t, "access", err, context.Canceled)
	wantRetention(t, "afterwards", s, 90, inner, 1)
}

// A read in progress during a change may have seen the old state.
func TestChangeDiscardsReadsInProgress(t *testing.T) {
	s, inner, _ := newWatched(t)
	inner.held = make(chan chan struct{})
	before, after := make(chan int, 1), make(chan int, 1)
	go func() { before <- retention(t, s) }()
	releaseBefore := <-inner.held
	if err := s.SetRetention(t.Context(), "shop", 30); err != nil {
		t.Fatal(err)
	}
	go func() { after <- retention(t, s) }()
	close(<-inner.held)
	if got := <-after; got != 30 {
		t.Errorf("read that began after the change: got %d, want 30", got)
	}
	close(releaseBefore)
	if got := <-before; got != 90 {
		t.Errorf("read that began before the change: got %d, want 90", got)
	}
	wantRetention(t, "afterwards", s, 30, inner, 2)
}

// A change that returns an error may have been made.
func TestCachedFailedChange(t *testing.T) {
	s, inner, _ := newWatched(t)
	if _, err := s.App(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	inner.failing.Store(true)
	_, _, err := s.SetStrategy(t.Context(), "shop", strategy.Strategy{PersonalizationImpact: 70})
	wantError(t, "set strategy", err, errBackend)
	inner.failing.Store(false)
	app, err := s.App(t.Context(), "shop")
	if err != nil || app.StrategyVersion != 1 {
		t.Errorf("got version %d, error %v; want the strategy that was set", app.StrategyVersion, err)
	}
}

// The cache does not grow with the number of guessed keys.
func TestCachedIsBounded(t *testing.T) {
	s, inner, _ := newWatched(t)
	ask := func(i int) {
		t.Helper()
		_, err := s.Key(t.Context(), "shop", fmt.Sprintf("%064x", i))
		wantError(t, "unknown key", err, config.ErrNotFound)
	}
	wantReads := func(want int64) {
		t.Helper()
		if got := inner.reads.Load(); got != want {
			t.Errorf("%d reads of the inner store, want %d", got, want)
		}
	}
	for i := range config.CachedKeys + 1 {
		ask(i)
	}
	wantReads(config.CachedKeys + 1)
	ask(config.CachedKeys)
	wantReads(config.CachedKeys + 1)
	ask(0)
	wantReads(config.CachedKeys + 2)
}
