package page

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/rank/feed"
)

// real is a world whose clocks are those of a bubble of synctest.
func real(t *testing.T, posts int) *world {
	w := newWorld(0).fill(0)
	start := time.Now()
	for i := range posts {
		w.store.posts[fmt.Sprintf("post-%03d", i)] = post{start.UnixMilli() - int64(i)*hour, []string{"red", "green", "blue"}[i%3]}
	}
	w.orderer.now = time.Now
	t.Cleanup(func() { time.Sleep(20 * time.Second) }) // reads that hang end
	w.instances = []*Reader{New(w.store, w.settings, w.orderer, time.Now, slog.New(slog.DiscardHandler))}
	return w
}

// While the store fails or hangs for minutes, warm pages stay as they are, and the
// personal order, which needs the user's row, becomes popularity. Then all heals.
func TestOutage(t *testing.T) {
	for name, away := range map[string]func(*fakeStore){
		"fails": func(f *fakeStore) { f.fail = errAway },
		"hangs": func(f *fakeStore) { f.gate = make(chan struct{}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := real(t, 9)
				latest, suggested := Request{Order: feed.Latest, Limit: 3}, Request{Order: feed.Suggested, User: "ann", Limit: 3}
				warm, personal := w.read(t, 0, latest), w.read(t, 0, suggested)
				w.store.set(away)
				w.orderer.unread = errAway
				var slowest time.Duration
				for range 60 {
					time.Sleep(5 * time.Second)
					asked := time.Now()
					p := w.read(t, 0, latest)
					slowest = max(slowest, time.Since(asked))
					if diff := cmp.Diff(ids(warm), ids(p)); diff != "" {
						t.Fatalf("latest (-warm +now):\n%s", diff)
					}
					p = w.read(t, 0, Request{Order: feed.Suggested, User: "ann", Limit: 3})
					if p.Fallback != "catalog" || len(p.Items) != 3 {
						t.Fatalf("suggested: fallback %q, %v", p.Fallback, ids(p))
					}
				}
				if slowest > 2*heldWait {
					t.Errorf("a warm page took %v", slowest)
				}
				w.store.set(func(f *fakeStore) { f.fail, f.gate = nil, nil })
				w.orderer.unread = nil
				time.Sleep(12 * time.Second) // the last reads end
				w.read(t, 0, suggested)
				synctest.Wait()
				p := w.read(t, 0, suggested)
				if diff := cmp.Diff(ids(personal), ids(p)); diff != "" || p.Fallback != "" || p.Stale != nil {
					t.Errorf("healed: fallback %q, stale %v (-before +now):\n%s", p.Fallback, p.Stale, diff)
				}
				if p.AsOf < time.Now().Add(-listTTL).UnixMilli() {
					t.Errorf("healed, and the list is of %v", time.UnixMilli(p.AsOf))
				}
			})
		})
	}
}

// A list or a record is not served for ever while the store fails.
func TestStaleValuesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := real(t, 9)
		q := Request{Feed: w.feed, Order: feed.Latest, Limit: 3}
		w.read(t, 0, q)
		w.store.set(func(f *fakeStore) { f.fail = errAway })
		time.Sleep(maxStale - time.Second)
		w.read(t, 0, q)
		time.Sleep(2 * time.Second)
		if p, err := w.instances[0].Read(t.Context(), config.App{ID: "shop"}, q); !errors.Is(err, errAway) {
			t.Errorf("after %v: %v, %v", maxStale, ids(p), err)
		} else if !errors.As(err, new(interface{ Transient() bool })) {
			t.Errorf("error %v is no fault that may be gone at the next request", err)
		}
	})
}

// A page does not wait for one slow record: it takes the next ones, and a later page
// shows the slow one.
func TestSlowRecord(t *testing.T) {
	for _, order := range []feed.Order{feed.Latest, feed.Suggested} {
		synctest.Test(t, func(t *testing.T) {
			w := real(t, 6)
			q := Request{Order: order, Limit: 1}
			first := w.read(t, 0, q).Items[0].ObjectID // it stays in memory for a while
			synctest.Wait()
			w.store.set(func(f *fakeStore) { f.slow = map[string]bool{first: true} })
			time.Sleep(recordTTL)
			if got := ids(w.read(t, 0, q)); got[0] != first {
				t.Errorf("%s: %v, want %s as it was", order, got, first)
			}
			w.instances[0] = New(w.store, w.settings, w.orderer, time.Now, slog.New(slog.DiscardHandler))
			for range 2 { // others are in memory
				q.Limit = 6
				_, _ = w.instances[0].records(t.Context(), "shop", Request{Feed: w.feed}, others(w, first), nil)
			}
			asked := time.Now()
			q.Limit = 3
			p := w.read(t, 0, q)
			if took := time.Since(asked); len(p.Items) != 3 || took > recordsWait || p.Stale == nil || p.Cursor == "" {
				t.Errorf("%s: %v after %v, stale %v, cursor %q", order, ids(p), took, p.Stale, p.Cursor)
			}
			w.store.set(func(f *fakeStore) { f.slow = nil })
			time.Sleep(10 * time.Second)
			q.Cursor, q.Limit = p.Cursor, 10
			rest := w.read(t, 0, q)
			if all := append(ids(p), ids(rest)...); len(all) != 6 || rest.Items[0].ObjectID != first || rest.Cursor != "" {
				t.Errorf("%s: then %v, want %s first", order, ids(rest), first)
			}
		})
	}
}

func others(w *world, but string) []string {
	var all []string
	for id := range w.store.posts {
		if id != but {
			all = append(all, id)
		}
	}
	return all
}

// A cold page whose records cannot be read is an error, not an empty page.
func TestNothingToShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := real(t, 6)
		w.store.slow = map[string]bool{}
		for id := range w.store.posts {
			w.store.slow[id] = true
		}
		q := Request{Feed: w.feed, Order: feed.Latest, Limit: 3}
		p, err := w.instances[0].Read(t.Context(), config.App{ID: "shop"}, q)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, %v; want a deadline", ids(p), err)
		}
	})
}

// Many requests at once read a list and a record once.
func TestCollapsedReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := real(t, 5)
		for _, limit := range []int{1, 5} { // the first requests need the list, the next ones records
			gate := make(chan struct{})
			w.store.set(func(f *fakeStore) { f.gate = gate })
			before := w.store.read
			var group sync.WaitGroup
			for range 50 {
				group.Go(func() { w.read(t, 0, Request{Order: feed.Latest, Limit: limit}) })
			}
			synctest.Wait()
			w.store.set(func(f *fakeStore) { f.gate = nil })
			close(gate)
			group.Wait()
			if read := w.store.read - before; w.store.lists != 1 || limit == 5 && read != 4 {
				t.Errorf("limit %d: 50 requests have read %d lists and %d records", limit, w.store.lists, read)
			}
		}
	})
}

// What is used is read again ahead of its end, so nobody waits for it.
func TestRefreshAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := real(t, 5)
		q := Request{Order: feed.Latest, Limit: 5}
		first := w.read(t, 0, q)
		for range 29 {
			time.Sleep(time.Second)
			w.read(t, 0, q)
			synctest.Wait()
		}
		w.store.set(func(f *fakeStore) { f.gate = make(chan struct{}) })
		time.Sleep(time.Second) // 30 s after the first list
		p := w.read(t, 0, q)
		if p.Stale != nil || p.AsOf == first.AsOf || w.store.lists != 2 {
			t.Errorf("stale %v, list of %d as of %d, %d lists read", p.Stale, p.AsOf, first.AsOf, w.store.lists)
		}
	})
}

// An empty list is read again soon: the feed may have just been set.
func TestFirstRecordAppearsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := real(t, 0)
		q := Request{Order: feed.Latest, Limit: 5}
		for second, lists := range []int{1, 1, 2, 2, 3} {
			if p := w.read(t, 0, q); len(ids(p)) > 0 || p.Stale != nil || w.store.lists != lists {
				t.Errorf("after %d s: %v, stale %v, %d lists read, want %d", second, ids(p), p.Stale, w.store.lists, lists)
			}
			time.Sleep(time.Second)
		}
		w.store.set(func(f *fakeStore) { f.posts["first"] = post{time.Now().UnixMilli(), "red"} })
		time.Sleep(time.Second) // two since the last list
		if p := w.read(t, 0, q); len(ids(p)) != 1 {
			t.Errorf("two seconds after the last list: %v, want the first record", ids(p))
		}
	})
}
