package page

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// listTTL is how long a new record may go unnoticed.
	listTTL = 30 * time.Second
	// emptyTTL is the same for an empty list. A person who has just set a feed looks at it while
	// the rows of its attribute are still written.
	emptyTTL = 2 * time.Second
	// listWait is how long a page waits for a list of candidates.
	listWait = 5 * time.Second
	// listsBytes bounds the lists in memory, and listBytes one of them.
	listsBytes = 48 << 20
	listBytes  = 16 << 20
	// readBytes bounds the filters that a list is made from: an object may have 64 KB.
	readBytes = 2 * listBytes
	// recheck is the age up to which a list is not read again for a walk that began at
	// another instance.
	recheck = time.Second
)

// listKey names the candidates of a feed under one definition and one version of the
// settings of its index.
type listKey struct {
	app, feed         string
	version, settings int64
}

// list are the candidates of a feed. It is immutable.
type list struct {
	asOf      int64  // ms of the engine's clock, before the list was read
	window           // all candidates
	posts     window // those with a post of WordPress
	truncated bool   // older ones were left out
	bytes     int
}

// candidate is a record of a feed, as its date row shows it.
type candidate struct {
	id     string
	at     int64 // ms
	object *ranking.Object
}

func listSize(k listKey, l *list) int { return len(k.app) + len(k.feed) + l.bytes }

// candidateBytes is what a candidate takes besides its id and its object.
const candidateBytes = 40

// window is a part of a list.
type window struct {
	all  []candidate // the newest first, equal ones by objectID
	keys []uint64    // feed.KeyOf each candidate
}

// of returns the candidates of a format.
func (l *list) of(f feed.Format) window {
	if f == feed.WordPress {
		return l.posts
	}
	return l.window
}

// from returns the candidates of a walk that starts at an instant: those dated up to
// it, and not more than the definition's age before it.
func (w window) from(d feed.Definition, start int64) window {
	from := sort.Search(len(w.all), func(i int) bool { return w.all[i].at <= start })
	oldest := oldest(d, start)
	to := sort.Search(len(w.all), func(i int) bool { return w.all[i].at < oldest })
	to = max(from, to)
	return window{w.all[from:to], w.keys[from:to]}
}

// without returns the candidates but those of some objectIDs. To a walk these have left the feed.
func (w window) without(ids []string) window {
	if len(ids) == 0 {
		return w
	}
	out := make(map[uint64]bool, len(ids)) // a feed takes objects of one key for one
	for _, id := range ids {
		out[feed.KeyOf(id)] = true
	}
	if !slices.ContainsFunc(w.keys, func(k uint64) bool { return out[k] }) {
		return w
	}
	kept := window{make([]candidate, 0, len(w.all)), make([]uint64, 0, len(w.keys))}
	for i, k := range w.keys {
		if !out[k] {
			kept.add(w.all[i], k)
		}
	}
	return kept
}

func (w *window) add(c candidate, key uint64) { w.all, w.keys = append(w.all, c), append(w.keys, key) }

// minDate is not after any date that package catalog reads, in ms.
const minDate = -253_402_300_799_999

// oldest returns the date (ms) of the oldest candidates of a walk.
func oldest(d feed.Definition, start int64) int64 {
	if d.MaxAgeDays == 0 {
		return minDate
	}
	return start - int64(d.MaxAgeDays)*24*time.Hour.Milliseconds()
}

// candidates returns the list of a feed, if possible one that was read at or after an
// instant of a walk's start; 0: any. The list may be older than it should be: then the
// error says why. Without a list the error is final.
func (r *Reader) candidates(ctx context.Context, app config.App, q Request, start int64) (*list, error) {
	settings, err := r.settings.IndexSettings(ctx, app.ID, q.Feed.Index)
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return nil, fmt.Errorf("read settings of index %s/%s: %w", app.ID, q.Feed.Index, err)
	}
	key := listKey{app.ID, q.Feed.Name, q.Feed.Version, settings.Version}
	late, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	found, err := r.lists.Get(ctx, cache.Ask[listKey, *list]{
		Group: app.ID, Keys: []listKey{key}, Late: late.Done(),
		Usable: func(l *list) bool {
			age := time.Duration(r.now().UnixMilli()-l.asOf) * time.Millisecond
			return age < recheck || l.asOf >= start && (len(l.all) > 0 || age < emptyTTL)
		},
		Load: func(ctx context.Context, _ []listKey) (map[listKey]*list, error) {
			l, err := r.readList(ctx, app.ID, q.Feed, settings)
			return map[listKey]*list{key: l}, err
		},
	})
	if len(found) > 0 && found[0] != nil {
		return found[0].Value, err
	}
	return nil, &unread{fmt.Errorf("list candidates of feed %s/%s: %w", app.ID, q.Feed.Name, err)}
}

// readList reads the candidates of a feed from the store.
func (r *Reader) readList(ctx context.Context, app string, d feed.Definition,
	settings catalog.Settings) (*list, error) {
	l := &list{asOf: r.now().UnixMilli()}
	// A walk that began a while ago has candidates that have become too old since.
	old := oldest(d, l.asOf-feed.CursorLife.Milliseconds())
	rows, truncated, err := r.store.ListDated(ctx, app, store.DatedQuery{
		Index: d.Index, Attribute: d.Date, Newest: l.asOf, Oldest: old, Limit: feed.MaxCandidates, MaxBytes: readBytes,
		Keep: func(o store.DatedObject) bool {
			return o.Filters.SettingsVersion != settings.Version || matches(d.Where, o.Filters.Filters)
		},
	})
	if err != nil {
		return nil, err
	}
	l.truncated = truncated
	whole, err := r.renew(ctx, app, d, settings, rows, readBytes)
	if err != nil {
		return nil, err
	}
	l.truncated = l.truncated || !whole
	l.all = make([]candidate, 0, len(rows))
	for _, row := range rows {
		if row.Filters.SettingsVersion != settings.Version || !matches(d.Where, row.Filters.Filters) {
			continue
		}
		c := candidate{id: row.ID, at: row.At, object: ranking.Compile(row.Filters.Filters)}
		size := candidateBytes + len(c.id) + c.object.Size()
		if l.bytes+size > listBytes {
			l.truncated = true
			break
		}
		if err := admission.Take(ctx, int64(size)); err != nil {
			return nil, err
		}
		l.bytes += size
		key := feed.KeyOf(c.id)
		l.add(c, key)
		if row.Post {
			l.posts.add(c, key)
		}
	}
	if len(l.posts.all) == len(l.all) { // as in a feed of a WordPress site
		l.posts = l.window
	} else {
		l.bytes += candidateBytes * len(l.posts.all)
	}
	return l, nil
}

// renewed is how many records are read at a time for the filters of rows.
const renewed = 500

// renew sets the filters of rows that were written under other settings of the index,
// from the objects' records. Rows of deleted objects and of damaged ones keep theirs,
// and so do those that have no room: then whole is false.
func (r *Reader) renew(ctx context.Context, app string, d feed.Definition, settings catalog.Settings,
	rows []store.DatedObject, maxBytes int) (whole bool, err error) {
	at := map[string]int{}
	var stale []store.ObjectRef
	for i, row := range rows {
		if row.Filters.SettingsVersion != settings.Version {
			at[row.ID] = i
			stale = append(stale, store.ObjectRef{Index: d.Index, ID: row.ID})
		}
	}
	size := 0
	for refs := range slices.Chunk(stale, renewed) {
		err := r.store.ScanRecords(ctx, app, refs, func(ref store.ObjectRef, record []byte) error {
			filters, err := catalog.Filters(record, settings)
			if err != nil {
				r.log.LogAttrs(ctx, slog.LevelError, "a damaged object is in no feed",
					slog.String("app", app), slog.String("index", ref.Index), slog.String("objectID", ref.ID), slog.Any("error", err))
				return nil
			}
			fresh := store.ObjectFilters{SettingsVersion: settings.Version, Filters: filters}
			if size += fresh.Size(); size <= maxBytes {
				row := &rows[at[ref.ID]]
				row.Filters, row.Post = fresh, catalog.Post(record) != nil
			}
			return nil
		})
		if err != nil || size > maxBytes {
			return false, err
		}
	}
	return true, nil
}

// matches reports whether an object has one filter of each list.
func matches(where [][]string, filters []event.Filter) bool {
	for _, anyOf := range where {
		if !slices.ContainsFunc(filters, func(f event.Filter) bool {
			return slices.ContainsFunc(anyOf, func(text string) bool {
				value, ok := strings.CutPrefix(text, f.Facet+":")
				return ok && value == f.Value
			})
		}) {
			return false
		}
	}
	return true
}
