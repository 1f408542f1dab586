package configtest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
)

func feedOf(name, index, date, definition string) config.Feed {
	return config.Feed{Name: name, Index: index, Date: date, Definition: definition}
}

// Feeds have versions that never repeat, and the app has the dates that they name.
func testFeeds(t *testing.T, s store) {
	ctx, now := t.Context(), time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	const odd = "__x__/~\x00\n\"é,"
	create(t, s, "shop")
	create(t, s, "other")
	feeds, err := s.Feeds(ctx, "shop")
	read(t, "no feeds", feeds, err, nil)
	_, err = s.Feed(ctx, "shop", "news")
	wantError(t, "a feed that does not exist yet", err, config.ErrNotFound)
	wantError(t, "delete it", s.DeleteFeed(ctx, "shop", "news", now), config.ErrNotFound)

	set := func(f config.Feed, hours int, version int64, changed bool) {
		t.Helper()
		got, did, err := s.SetFeed(ctx, "shop", f, now.Add(time.Duration(hours)*time.Hour))
		f.Version = version
		read(t, "set feed", got, err, f)
		if did != changed {
			t.Errorf("changed %v, want %v", did, changed)
		}
		got, err = s.Feed(ctx, "shop", f.Name)
		read(t, "feed", got, err, f)
	}
	dates := func(want config.Dates) {
		t.Helper()
		app, err := s.App(ctx, "shop")
		read(t, "dates", app.Dates, err, want)
	}
	at := func(hours int) time.Time { return now.Add(time.Duration(hours) * time.Hour) }
	set(feedOf("news", "posts", "date", `{"a":1}`), 1, 1, true)
	set(feedOf("news", "posts", "date", `{"a":1}`), 2, 1, false)
	dates(config.Dates{"posts": {"date": at(1)}})
	set(feedOf("news", "posts", "date", `{"a":2}`), 3, 2, true)
	set(feedOf("more", "posts", "date", `{"a":2}`), 4, 3, true)
	set(feedOf("by update", "posts", odd, `{}`), 5, 4, true)
	set(feedOf("odd", odd, "date", `{}`), 6, 5, true)
	dates(config.Dates{"posts": {"date": at(1), odd: at(5)}, odd: {"date": at(6)}})
	app, err := s.App(ctx, "shop")
	if diff := cmp.Diff([]string{odd, "date"}, app.Dates.Of("posts")); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}

	// An attribute is dated as long as a feed names it.
	set(feedOf("news", "posts", "updated", `{}`), 7, 6, true)
	dates(config.Dates{"posts": {"date": at(1), odd: at(5), "updated": at(7)}, odd: {"date": at(6)}})
	for _, name := range []string{"more", "odd"} {
		if err := s.DeleteFeed(ctx, "shop", name, at(8)); err != nil {
			t.Fatal(err)
		}
	}
	dates(config.Dates{"posts": {odd: at(5), "updated": at(7)}})
	set(feedOf("more", "posts", "date", `{"a":2}`), 9, 7, true)
	dates(config.Dates{"posts": {"date": at(9), odd: at(5), "updated": at(7)}})
	feeds, err = s.Feeds(ctx, "shop")
	want := []config.Feed{feedOf("by update", "posts", odd, `{}`), feedOf("more", "posts", "date", `{"a":2}`),
		feedOf("news", "posts", "updated", `{}`)}
	want[0].Version, want[1].Version, want[2].Version = 4, 7, 6
	read(t, "feeds", feeds, err, want)
	feeds, err = s.Feeds(ctx, "other")
	read(t, "feeds of another app", feeds, err, nil)

	// Other changes keep the dates.
	if err := s.SetRetention(ctx, "shop", 7); err != nil {
		t.Fatal(err)
	}
	setStrategy(t, s, "shop", scores(1), 1, true)
	dates(config.Dates{"posts": {"date": at(9), odd: at(5), "updated": at(7)}})
	for _, f := range want {
		if err := s.DeleteFeed(ctx, "shop", f.Name, at(10)); err != nil {
			t.Fatal(err)
		}
		_, err := s.Feed(ctx, "shop", f.Name)
		wantError(t, "a deleted feed", err, config.ErrNotFound)
	}
	dates(nil)
}

// A job that fills a new date waits until every function knows it, and only then.
func testFeedsChangeTheApp(t *testing.T, s store) {
	ctx := t.Context()
	create(t, s, "shop")
	last, err := s.App(ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		f       config.Feed
		changes bool
	}{
		{feedOf("a", "posts", "date", "1"), true},
		{feedOf("a", "posts", "date", "2"), false},
		{feedOf("b", "posts", "date", "2"), false},
		{feedOf("b", "posts", "other", "2"), true},
	} {
		time.Sleep(2 * time.Millisecond) // ChangedAt is exact to the millisecond
		if _, _, err := s.SetFeed(ctx, "shop", step.f, time.Now()); err != nil {
			t.Fatal(err)
		}
		app, err := s.App(ctx, "shop")
		if err != nil || app.ChangedAt.After(last.ChangedAt) != step.changes {
			t.Errorf("step %d: changed at %v, before at %v, error %v; want a change: %v", i, app.ChangedAt,
				last.ChangedAt, err, step.changes)
		}
		last = app
	}
}

// Feeds that are set at once have different versions, and the dates are theirs.
func testFeedsAtOnce(t *testing.T, s store) {
	ctx := t.Context()
	create(t, s, "shop")
	const n = 4
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if _, changed, err := s.SetFeed(ctx, "shop",
				feedOf(fmt.Sprint("feed", i), "posts", fmt.Sprint("date", i), "{}"), time.Now()); err != nil || !changed {
				t.Errorf("changed %v, error %v", changed, err)
			}
		})
	}
	group.Wait()
	feeds, err := s.Feeds(ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	app, err := s.App(ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	versions := map[int64]bool{}
	for _, f := range feeds {
		versions[f.Version] = true
	}
	if len(feeds) != n || len(versions) != n || len(app.Dates["posts"]) != n || app.FeedVersion != n {
		t.Errorf("feeds %+v, dates %v, highest version %d", feeds, app.Dates, app.FeedVersion)
	}
}
