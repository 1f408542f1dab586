package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/serve/ranker"
	"github.com/affinityengine/affinity/shared/store"
)

// began is the engine's clock at the start of a test.
var began = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const hour = int64(time.Hour / time.Millisecond)

// post is an object of the fake store.
type post struct {
	at    int64
	color string
}

func (p post) record(id string) string {
	return fmt.Sprintf(`{"objectID":%q,"color":%q,"publishedAt":%d}`, id, p.color, p.at)
}

// fakeStore holds posts in memory. Its date rows may say what the records do not.
type fakeStore struct {
	mu       sync.Mutex
	posts    map[string]post
	rows     map[string]int64 // date rows that the records do not confirm, by objectID
	settings int64            // version with which filters were stored
	fail     error            // of every read
	gate     chan struct{}    // reads wait until it is closed
	slow     map[string]bool  // objects whose records hang
	damaged  string           // an object whose record is not JSON
	lists    int              // reads
	read     int              // of records

	wordpress map[string]bool // objects whose records hold a post
}

var errAway = errors.New("the store is away")

func (f *fakeStore) enter(ctx context.Context) error {
	f.mu.Lock()
	fail, gate := f.fail, f.gate
	f.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fail
}

func (f *fakeStore) ListDated(ctx context.Context, _ string, q store.DatedQuery) ([]store.DatedObject, bool, error) {
	f.mu.Lock()
	f.lists++
	f.mu.Unlock()
	if err := f.enter(ctx); err != nil {
		return nil, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []store.DatedObject
	for id, p := range f.posts {
		at := p.at
		if row, ok := f.rows[id]; ok {
			at = row
		}
		o := store.DatedObject{ID: id, At: at, Filters: store.ObjectFilters{
			SettingsVersion: f.settings, Filters: []event.Filter{{Facet: "color", Value: p.color}},
		}, Post: f.wordpress[id]}
		if at <= q.Newest && at >= q.Oldest && q.Keep(o) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b store.DatedObject) int { return cmp.Or(cmp.Compare(b.At, a.At), strings.Compare(a.ID, b.ID)) })
	return all[:min(len(all), q.Limit)], false, nil
}

func (f *fakeStore) ScanRecords(ctx context.Context, _ string, refs []store.ObjectRef, fn func(store.ObjectRef, []byte) error) error {
	if err := f.enter(ctx); err != nil {
		return err
	}
	for _, ref := range refs {
		f.mu.Lock()
		f.read++
		p, ok := f.posts[ref.ID]
		slow := f.slow[ref.ID]
		f.mu.Unlock()
		if slow {
			<-ctx.Done()
			return ctx.Err()
		}
		if ok {
			text := f.text(ref.ID, p)
			if ref.ID == f.damaged {
				text = "damaged"
			}
			if err := fn(ref, []byte(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// set changes the store under its lock.
func (f *fakeStore) set(change func(*fakeStore)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// fakeOrderer ranks with package ranking. Users have affinities to colors.
type fakeOrderer struct {
	mu       sync.Mutex
	strategy strategy.Strategy
	users    map[string]map[string]float64
	counts   map[string]float64
	now      func() time.Time
	unread   error
	asked    int // with a user
}

func newOrderer(now func() time.Time) *fakeOrderer {
	s := strategy.Strategy{FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 10}}, PersonalizationImpact: 100}
	return &fakeOrderer{strategy: s, users: map[string]map[string]float64{}, counts: map[string]float64{}, now: now}
}

func (f *fakeOrderer) Order(_ context.Context, _ config.App, r ranker.Request) (ranker.Answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := &ranking.Query{Now: f.now().UnixMilli(), Candidates: r.Candidates, Limit: r.Limit, Seen: r.Seen}
	a := ranker.Answer{}
	if r.User != "" {
		f.asked++
		if a.Unread = f.unread; a.Unread == nil {
			for color, score := range f.users[r.User] {
				q.Affinities = append(q.Affinities, affinity.Affinity{Facet: "color", Value: color, Scores: []float64{score}})
			}
		}
	}
	for i := range q.Candidates {
		c := &q.Candidates[i]
		c.Count = f.counts[c.ObjectID]
		q.HighestCount = max(q.HighestCount, c.Count)
	}
	a.Result = ranking.New(f.strategy).Rank(q)
	return a, nil
}

// fakeSettings are those of every index.
type fakeSettings struct {
	mu sync.Mutex
	s  catalog.Settings
}

func (f *fakeSettings) IndexSettings(context.Context, string, string) (catalog.Settings, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.s.Version == 0 {
		return catalog.Settings{}, config.ErrNotFound
	}
	return f.s, nil
}

// clocks are the two clocks of a test: they go together.
type clocks struct {
	mu sync.Mutex
	at time.Time
}

func (c *clocks) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clocks) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// world is an engine with several instances of a reader.
type world struct {
	clock     *clocks
	store     *fakeStore
	orderer   *fakeOrderer
	settings  *fakeSettings
	instances []*Reader
	feed      feed.Definition
}

func newWorld(instances int) *world {
	w := &world{clock: &clocks{at: began}, store: &fakeStore{posts: map[string]post{}, rows: map[string]int64{}, slow: map[string]bool{}}, settings: &fakeSettings{}}
	w.orderer = newOrderer(w.clock.now)
	for range instances {
		w.instances = append(w.instances, newReader(w.store, w.settings, w.orderer, w.clock.now, w.clock.now, slog.New(slog.DiscardHandler)))
	}
	w.feed = feed.Definition{Name: "news", Version: 1, Index: "posts", Date: "publishedAt"}
	return w
}

// fill stores n posts, an hour apart, in three colors.
func (w *world) fill(n int) *world {
	for i := range n {
		w.store.posts[fmt.Sprintf("post-%03d", i)] = post{began.UnixMilli() - int64(i)*hour, []string{"red", "green", "blue"}[i%3]}
	}
	w.orderer.users["ann"] = map[string]float64{"blue": 5, "green": 1}
	return w
}

func (w *world) read(t testing.TB, instance int, q Request) Page {
	t.Helper()
	q.Feed = w.feed
	p, err := w.instances[instance].Read(t.Context(), config.App{ID: "shop"}, q)
	if err != nil {
		t.Fatalf("%s page of %q: %v", q.Order, q.User, err)
	}
	return p
}

func ids(p Page) []string {
	all := []string{}
	for _, item := range p.Items {
		all = append(all, item.ObjectID)
	}
	return all
}

// walkAll reads pages to the end.
func (w *world) walkAll(t testing.TB, q Request) []string {
	t.Helper()
	var all []string
	for range 1000 {
		p := w.read(t, 0, q)
		all = append(all, ids(p)...)
		if q.Cursor = p.Cursor; q.Cursor == "" {
			return all
		}
	}
	t.Fatal("the walk does not end")
	return nil
}
