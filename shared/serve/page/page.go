// Package page makes the pages of feeds. A page is a part of one of a feed's two
// orders: suggested, by the scores of package ranking, or latest, by date.
//
// It keeps no data. Candidates come from the table dated and records from the table
// objects, through caches in memory that the README describes; package rerank reads the
// user's row for every suggested page. It knows no HTTP.
package page

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/serve/ranker"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// userWait is how long a page waits for the user's row, and userStrikes after how
	// many slow ones in a row the pages of an app go without it for a while.
	userWait    = time.Second
	userStrikes = 5
	// maxStale is the age up to which a list or a record is served while the store
	// fails.
	maxStale = 10 * time.Minute
	// heldWait is how long a request waits for newer values if it can go on with those
	// that are too old.
	heldWait = 200 * time.Millisecond
	// extraCandidates is how many candidates beyond the limit a page may try, in the place of those
	// whose records are not there.
	extraCandidates = 64
	// maxPassed bounds a cursor of latest.
	maxPassed = 1000
)

// Source reads candidates and records. store.Catalog is one.
type Source interface {
	ListDated(ctx context.Context, app string, q store.DatedQuery) (list []store.DatedObject, truncated bool, err error)
	ScanRecords(ctx context.Context, app string, refs []store.ObjectRef, fn func(store.ObjectRef, []byte) error) error
}

// Orderer orders candidates. *ranker.Orderer is one.
type Orderer interface {
	Order(ctx context.Context, app config.App, r ranker.Request) (ranker.Answer, error)
}

// Settings reads the settings of an index. *config.Cached is one.
type Settings interface {
	IndexSettings(ctx context.Context, app, index string) (catalog.Settings, error)
}

// Request asks for a page.
type Request struct {
	Feed   feed.Definition
	Order  feed.Order
	User   string // for Suggested; empty: the order of a user without events
	Limit  int    // at most so many items, 1 to api.MaxFeedLimit
	Cursor string // of the page before; empty: the first page
	// Offset is how many items of the order, from 0, come before the page; with a Cursor, which
	// says that itself, it is of no use.
	Offset int
	// Counted says that the page ends where Offset + Limit items do, so that pages that are
	// asked for by their numbers never overlap: an item without a record leaves a gap. Total then
	// leaves out what the user has seen, if the feed does.
	Counted bool
	// Oldest says that the oldest items come first. It is for Latest without a Cursor, and
	// such a page names none.
	Oldest bool
	// Format is what the items are. With feed.WordPress only records with a post are
	// candidates.
	Format feed.Format
	// Exclude are objectIDs that the page does not have. A walk whose pages all exclude an object never
	// shows it, and each other record once.
	Exclude []string
}

// Page is a part of a feed.
type Page struct {
	Items []Item
	// Cursor is that of the next page. Empty: this is the last one.
	Cursor string
	// AsOf (ms) is when the candidates were listed.
	AsOf int64
	// Fallback is that of the ranking: not empty if the order knows nothing of the user.
	Fallback string
	// Person reports that the order is that of the known user who has signed in under the token.
	Person bool
	// Assigned is the arm whose order it is.
	Assigned experiment.Assignment
	// Total is the number of the walk's candidates.
	Total int
	// Stale is why the page was made from values that are older than they should be; nil:
	// it was not.
	Stale error
}

// Item is a record of a page.
type Item struct {
	ObjectID string
	// Text is the record as it was stored, or the post of WordPress. It is shared: nobody
	// may change it.
	Text []byte
}

// Reader reads pages. It is safe for concurrent use.
type Reader struct {
	store    Source
	settings Settings
	orderer  Orderer
	now      func() time.Time
	log      *slog.Logger
	lists    cache.Reads[listKey, *list]
	kept     cache.Reads[recordKey, record]
	users    *cache.Slow
	buffers  sync.Pool // of *[]ranking.Candidate
}

// New returns a Reader. now is the engine's clock.
func New(s Source, c Settings, o Orderer, now func() time.Time, log *slog.Logger) *Reader {
	// Caches go by the clock of the machine, like that of the configuration.
	return newReader(s, c, o, now, time.Now, log)
}

func newReader(s Source, c Settings, o Orderer, now, machine func() time.Time, log *slog.Logger) *Reader {
	return &Reader{
		store: s, settings: c, orderer: o, now: now, log: log,
		lists:   newReads(listTTL, listsBytes, machine, listSize),
		kept:    newReads(recordTTL, recordsBytes, machine, recordSize),
		users:   cache.NewSlow(userStrikes, machine),
		buffers: sync.Pool{New: func() any { return new([]ranking.Candidate) }},
	}
}

// newReads returns a cache that serves what it has, up to maxStale old, while the store fails
// or is slow.
func newReads[K comparable, V any](ttl time.Duration, maxBytes int, now func() time.Time,
	size func(K, V) int) cache.Reads[K, V] {
	return cache.NewReads(cache.Options[K, V]{Bytes: maxBytes, Size: size, Fresh: ttl, Ahead: true,
		Stale: maxStale, Wait: heldWait, Now: now})
}

// Read returns a page. The error is a *fault.Error if the cursor is of no use.
func (r *Reader) Read(ctx context.Context, app config.App, q Request) (Page, error) {
	walk := &feed.Walk{Order: q.Order, Feed: feed.HashOf(app.ID, q.Feed.Name), Version: q.Feed.Version}
	if q.Cursor != "" {
		var err error
		want := feed.Want{Order: walk.Order, Feed: walk.Feed, Version: walk.Version, Now: r.now()}
		if walk, err = feed.ParseCursor(q.Cursor, want); err != nil {
			return Page{}, err
		}
	}
	l, stale := r.candidates(ctx, app, q, walk.Start)
	if l == nil {
		return Page{}, stale
	}
	if q.Cursor == "" {
		walk.Start = l.asOf
	}
	p := pager{Reader: r, app: app, q: q, walk: walk, extra: extraCandidates, complete: l.asOf >= walk.Start}
	p.window = l.of(q.Format).from(q.Feed, walk.Start).without(q.Exclude)
	p.page = Page{AsOf: l.asOf, Total: len(p.window.all), Stale: stale, Items: []Item{}}
	if q.Cursor != "" {
		p.q.Offset = 0
	} else if q.Counted {
		p.extra = 0
	}
	var err error
	switch {
	case p.behind(): // there is nothing to order
	case q.Oldest:
		err = p.fromOldest(ctx)
	case q.Order == feed.Latest:
		err = p.latest(ctx)
	default:
		err = p.suggested(ctx)
	}
	return p.page, err
}

// pager makes one page.
type pager struct {
	*Reader
	app    config.App
	q      Request
	walk   *feed.Walk
	window window
	extra  int // candidates beyond the limit that the page may try
	// complete says that the window holds every record of the walk's start that still
	// exists.
	complete bool
	page     Page
}

// tried is what fill found of the candidates that it has tried.
type tried struct {
	n    int          // the first n of the order
	slow map[int]bool // of them, candidates whose read has not ended in time
}

// fill adds the records of candidates to the page, in the given order, until the page
// is full. It leaves out those that the catalog no longer holds or that wrong refuses,
// and those whose reads are slow.
func (p *pager) fill(ctx context.Context, order []int, wrong func(c candidate, r record) bool) (tried, error) {
	late, cancel := context.WithTimeout(ctx, recordsWait)
	defer cancel()
	t := tried{slow: map[int]bool{}}
	for t.n < len(order) && len(p.page.Items) < p.q.Limit {
		batch := order[t.n:min(t.n+p.q.Limit-len(p.page.Items), len(order))]
		ids := make([]string, len(batch))
		for i, at := range batch {
			ids[i] = p.window.all[at].id
		}
		records, err := p.records(ctx, p.app.ID, p.q, ids, late.Done())
		if ctx.Err() != nil {
			return t, ctx.Err()
		}
		if err != nil {
			p.page.Stale = err
		}
		for i, at := range batch {
			switch found, read := records[ids[i]]; {
			case !read:
				t.slow[at] = true
			case found.text != nil && !wrong(p.window.all[at], found):
				p.page.Items = append(p.page.Items, Item{ids[i], found.text})
			}
		}
		t.n += len(batch)
	}
	if len(p.page.Items) == 0 && len(t.slow) > 0 {
		// An empty page would look like the end of the feed.
		return t, &unread{fmt.Errorf("read the records of a page: %w", p.page.Stale)}
	}
	return t, nil
}

// unread says that the store did not give what a page needs. The next request may
// succeed, whatever the store's error is.
type unread struct{ error }

func (u *unread) Unwrap() error { return u.error }

// Transient is a method of errors that package httpapi answers with 503.
func (u *unread) Transient() bool { return true }

// outside reports whether a record is dated outside of the walk.
func (p *pager) outside(r record) bool {
	return !r.dated || r.at > p.walk.Start || r.at < oldest(p.q.Feed, p.walk.Start)
}

// suggested makes a page of the suggested order.
func (p *pager) suggested(ctx context.Context) error {
	w, n := p.window, 0
	shown := make([]bool, len(w.all))
	if p.walk.Shown == nil {
		p.walk.Shown = feed.NewShown(len(w.all), p.walk.Start)
	} else {
		for i, k := range w.keys {
			if shown[i] = p.walk.Shown.Has(k); shown[i] {
				n++
			}
		}
	}
	limit := n + p.q.Offset + p.q.Limit + extraCandidates
	exact := p.q.Counted && p.q.Feed.Seen == ranking.Exclude
	if exact { // only the whole order says how many are left
		limit = len(w.all) + 1
	}
	items, err := p.rank(ctx, limit)
	if err != nil {
		return err
	}
	order := make([]int, 0, p.q.Limit+extraCandidates)
	for _, item := range items {
		if !shown[item.Candidate] {
			order = append(order, item.Candidate)
		}
	}
	if exact {
		p.page.Total = n + len(order)
	}
	skipped := min(p.q.Offset, len(order))
	for _, at := range order[:skipped] {
		shown[at] = true
	}
	whole := len(items) < limit // the order has no further items
	order = order[skipped:]
	if most := p.q.Limit + p.extra; len(order) > most {
		order, whole = order[:most], false
	}
	t, err := p.fill(ctx, order, func(_ candidate, r record) bool { return p.outside(r) })
	if err != nil {
		return err
	}
	for _, at := range order[:t.n] {
		shown[at] = !t.slow[at] // also what is not there: or the next page would try it again
	}
	if t.n == len(order) && whole && len(t.slow) == 0 && p.complete {
		return nil
	}
	p.walk.Shown.Add(w.keys, func(i int) bool { return shown[i] }, p.complete)
	p.page.Cursor = p.walk.Cursor()
	return nil
}

// rank orders the candidates of the window for the user.
func (p *pager) rank(ctx context.Context, limit int) ([]ranking.Item, error) {
	buffer := p.buffers.Get().(*[]ranking.Candidate)
	defer p.buffers.Put(buffer)
	candidates := (*buffer)[:0]
	for _, c := range p.window.all {
		candidates = append(candidates, ranking.Candidate{ObjectID: c.id, Object: c.object, Published: c.at, Dated: true})
	}
	*buffer = candidates
	defer clear(candidates) // they must not stay in memory
	q := ranker.Request{
		User: p.q.User, Index: p.q.Feed.Index, Candidates: candidates, Prepared: true, UserWait: userWait, Limit: limit,
		Seen: p.q.Feed.Seen, Diversity: p.q.Feed.Diversity, Surface: consent.Feeds,
	}
	if q.User != "" && !p.users.MayWait(p.app.ID) {
		q.User = ""
	}
	answer, err := p.orderer.Order(ctx, p.app, q)
	if err != nil {
		return nil, fmt.Errorf("order feed %s/%s: %w", p.app.ID, p.q.Feed.Name, err)
	}
	if q.User != "" && p.users.Note(p.app.ID, answer.Unread == nil) {
		p.log.LogAttrs(ctx, slog.LevelError, "rows of users cannot be read, suggested feeds go by popularity",
			slog.String("app", p.app.ID), slog.Any("error", answer.Unread))
	}
	p.page.Fallback, p.page.Person, p.page.Assigned = answer.Fallback, answer.Person, answer.Assigned
	return answer.Items, nil
}
