package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

const (
	// feedName is the feed that a run sets, and feedDate the date of its objects.
	feedName = "load"
	feedDate = "publishedAt"
	// feedLimit is how many items a page has, and feedPages how many pages a walk.
	feedLimit = 20
	feedPages = 5
	// listTime is how long the engine may take to list the objects by date.
	listTime = 2 * time.Minute
)

// walk is where a user is in the feed.
type walk struct {
	cursor string
	pages  int
}

// setFeed sets the feed of the index, and waits until its objects are listed by date and
// a first page is there.
func (l *loader) setFeed(ctx context.Context) error {
	if _, err := l.c.Feeds().Set(ctx, feedName, api.FeedRequest{Index: l.o.Index, Date: feedDate}); err != nil {
		return fmt.Errorf("set the feed %s: %w", feedName, err)
	}
	err := cli.Poll(ctx, listTime, func() (bool, error) {
		f, err := l.c.Feeds().Get(ctx, feedName)
		return err == nil && (f.Backfill == nil || f.Backfill.FinishedAt != nil), err
	})
	if err == nil {
		_, err = l.c.Feeds().Page(ctx, feedName, api.OrderSuggested, api.FeedQuery{Limit: feedLimit})
	}
	if err != nil {
		return fmt.Errorf("wait for the feed %s: %w", feedName, err)
	}
	return nil
}

// page reads a page for a random user: the next one of their walk, or the first of
// another one.
func (l *loader) page(ctx context.Context) error {
	user := l.user(rand.IntN(l.o.Users))
	l.mu.Lock()
	at := l.walks[user]
	l.mu.Unlock()
	p, err := l.c.Feeds().Page(ctx, feedName, api.OrderSuggested,
		api.FeedQuery{User: user, Limit: feedLimit, Cursor: at.cursor})
	if err != nil {
		return err
	}
	if at.pages++; p.Cursor == nil || at.pages == feedPages {
		at = walk{}
	} else {
		at.cursor = *p.Cursor
	}
	l.count(func() {
		l.walks[user] = at
		if p.Fallback != nil {
			l.fallback++
		}
	})
	return nil
}
