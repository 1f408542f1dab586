package config

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/fault"
)

// Feed is the definition of a feed as it is stored. Package feed decodes it.
type Feed struct {
	Name string
	// Version is a number that no earlier definition of the app's feeds had.
	Version int64
	// Index and Date are those of the definition.
	Index, Date string
	Definition  string // JSON
}

// MaxFeeds is how many feeds an app may have.
const MaxFeeds = 50

// ErrTooManyFeeds says that an app has as many feeds as it may.
var ErrTooManyFeeds error = fault.New(fault.Invalid,
	"The app has %d feeds, as many as it may have: delete one first", MaxFeeds)

// Dates are the attributes by which feeds order the objects of indexes: by index and
// attribute, the instant at which the first feed named it, by the engine's clock.
// A writer of objects keeps their date rows (package store).
//
// They belong to the app and not to the settings of an index, as PrivateFacets do.
type Dates map[string]map[string]time.Time

// Of returns the attributes of an index, sorted.
func (d Dates) Of(index string) []string { return slices.Sorted(maps.Keys(d[index])) }

// WithFeed returns an app that has feeds after one of them is set, the feed with its
// version, and whether it differs from the one of that name. now is the engine's clock.
func (a App) WithFeed(feeds []Feed, f Feed, now time.Time) (App, Feed, bool, error) {
	i := slices.IndexFunc(feeds, func(other Feed) bool { return other.Name == f.Name })
	others := slices.Clone(feeds)
	if i >= 0 {
		if f.Version = feeds[i].Version; f == feeds[i] {
			return a, f, false, nil
		}
		others = slices.Delete(others, i, i+1)
	} else if len(feeds) >= MaxFeeds {
		return a, Feed{}, false, ErrTooManyFeeds
	}
	a.FeedVersion++
	f.Version = a.FeedVersion
	return a.withDates(append(others, f), now), f, true, nil
}

// WithoutFeed returns an app that has feeds after one of them is deleted, or
// ErrNotFound.
func (a App) WithoutFeed(feeds []Feed, name string, now time.Time) (App, error) {
	others := slices.DeleteFunc(slices.Clone(feeds), func(f Feed) bool { return f.Name == name })
	if len(others) == len(feeds) {
		return a, fmt.Errorf("feed %q: %w", name, ErrNotFound)
	}
	return a.withDates(others, now), nil
}

// withDates returns an app whose dates are those of feeds.
func (a App) withDates(feeds []Feed, now time.Time) App {
	var to Dates
	for _, f := range feeds {
		if to == nil {
			to = Dates{}
		}
		if to[f.Index] == nil {
			to[f.Index] = map[string]time.Time{}
		}
		since, known := a.Dates[f.Index][f.Date]
		if !known {
			since = Stamp(now)
		}
		to[f.Index][f.Date] = since
	}
	if !maps.EqualFunc(a.Dates, to, func(x, y map[string]time.Time) bool {
		return maps.EqualFunc(x, y,
			time.Time.Equal)
	}) {
		a.Dates, a.ChangedAt = to, Stamp(time.Time{})
	}
	return a
}

func feedPath(appID, name string) string { return AppPath(appID) + "/feeds/" + documents.ID(name) }

// Feed returns the feed of that name, or ErrNotFound.
func (s *Store) Feed(ctx context.Context, appID, name string) (Feed, error) {
	var d feedDocument
	if err := read(ctx, s.documents, feedPath(appID, name), &d); err != nil {
		return Feed{}, fmt.Errorf("read feed %q of app %q: %w", name, appID, err)
	}
	return Feed(d), nil
}

// Feeds returns all feeds of an app, sorted by name. It returns ErrNotFound if the
// app does not exist.
func (s *Store) Feeds(ctx context.Context, appID string) ([]Feed, error) {
	all, err := below[feedDocument](ctx, s, appID, documents.Query{Collection: "feeds"})
	if err != nil {
		return nil, fmt.Errorf("list feeds of app %q: %w", appID, err)
	}
	feeds := make([]Feed, len(all))
	for i, d := range all {
		feeds[i] = Feed(d)
	}
	slices.SortFunc(feeds, func(a, b Feed) int { return strings.Compare(a.Name, b.Name) })
	return feeds, nil
}

// SetFeed stores a feed under the app's next version, ignoring f.Version, and the
// dates that the app's feeds then name. now is the engine's clock. Setting the same
// feed again changes nothing. It returns the stored feed, ErrNotFound if the app
// does not exist, and ErrTooManyFeeds if it has MaxFeeds others.
func (s *Store) SetFeed(ctx context.Context, appID string, f Feed, now time.Time) (set Feed, changed bool, err error) {
	err = s.changeApp(ctx, appID, func(app App) (App, []documents.Write, error) {
		feeds, err := s.Feeds(ctx, appID)
		if err != nil {
			return app, nil, err
		}
		from := app
		from.FeedVersion = max(from.FeedVersion, s.after)
		var to App
		if to, set, changed, err = from.WithFeed(feeds, f, now); err != nil || !changed {
			return app, nil, err
		}
		return to, []documents.Write{documents.Put(feedPath(appID, f.Name), feedDocument(set))}, nil
	})
	if err != nil {
		return Feed{}, false, fmt.Errorf("set feed %q of app %q: %w", f.Name, appID, err)
	}
	return set, changed, nil
}

// DeleteFeed removes a feed, and the dates that no other feed names. It returns
// ErrNotFound if the feed does not exist.
func (s *Store) DeleteFeed(ctx context.Context, appID, name string, now time.Time) error {
	err := s.changeApp(ctx, appID, func(app App) (App, []documents.Write, error) {
		feeds, err := s.Feeds(ctx, appID)
		if err != nil {
			return app, nil, err
		}
		to, err := app.WithoutFeed(feeds, name, now)
		if err != nil {
			return app, nil, err
		}
		d, err := s.documents.Get(ctx, feedPath(appID, name))
		return to, []documents.Write{documents.Delete(d)}, err
	})
	if err != nil {
		return fmt.Errorf("delete feed %q of app %q: %w", name, appID, err)
	}
	return nil
}
