package configdb

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
)

func (s *store) feeds(appID string) *firestore.CollectionRef {
	return s.appRef(appID).Collection("feeds")
}

func (s *store) feedRef(appID, name string) *firestore.DocumentRef {
	return s.feeds(appID).Doc(documents.ID(name))
}

func (s *store) Feed(ctx context.Context, appID, name string) (config.Feed, error) {
	var d feedDocument
	if err := read(ctx, s.feedRef(appID, name), &d); err != nil {
		return config.Feed{}, fmt.Errorf("read feed %q of app %q: %w", name, appID, err)
	}
	return config.Feed(d), nil
}

func (s *store) Feeds(ctx context.Context, appID string) ([]config.Feed, error) {
	feeds, err := feedsOf(s.feeds(appID).Documents(ctx))
	if err == nil && len(feeds) == 0 {
		err = s.mustExist(ctx, appID)
	}
	if err != nil {
		return nil, fmt.Errorf("list feeds of app %q: %w", appID, err)
	}
	return feeds, nil
}

func feedsOf(documents *firestore.DocumentIterator) ([]config.Feed, error) {
	snapshots, err := documents.GetAll()
	if err != nil {
		return nil, err
	}
	feeds := make([]config.Feed, len(snapshots))
	for i, snapshot := range snapshots {
		var d feedDocument
		if err := snapshot.DataTo(&d); err != nil {
			return nil, fmt.Errorf("document %s: %w", snapshot.Ref.ID, err)
		}
		feeds[i] = config.Feed(d)
	}
	slices.SortFunc(feeds, func(a, b config.Feed) int { return cmp.Compare(a.Name, b.Name) })
	return feeds, nil
}

func (s *store) SetFeed(ctx context.Context, appID string, f config.Feed, now time.Time) (set config.Feed, changed bool, err error) {
	err = s.changeFeeds(ctx, appID, func(tx *firestore.Transaction, app config.App, feeds []config.Feed) (config.App, error) {
		var to config.App
		var err error
		if to, set, changed, err = app.WithFeed(feeds, f, now); err != nil || !changed {
			return app, err
		}
		return to, tx.Set(s.feedRef(appID, f.Name), feedDocument(set))
	})
	if err != nil {
		return config.Feed{}, false, fmt.Errorf("set feed %q of app %q: %w", f.Name, appID, err)
	}
	return set, changed, nil
}

func (s *store) DeleteFeed(ctx context.Context, appID, name string, now time.Time) error {
	err := s.changeFeeds(ctx, appID, func(tx *firestore.Transaction, app config.App, feeds []config.Feed) (config.App, error) {
		to, err := app.WithoutFeed(feeds, name, now)
		if err != nil {
			return app, err
		}
		return to, tx.Delete(s.feedRef(appID, name))
	})
	if err != nil {
		return fmt.Errorf("delete feed %q of app %q: %w", name, appID, err)
	}
	return nil
}

// changeFeeds calls change with an app and its feeds, and stores what it changes of
// the app, all in one transaction. After a conflict it does so again.
func (s *store) changeFeeds(ctx context.Context, appID string, change func(*firestore.Transaction, config.App, []config.Feed) (config.App, error)) error {
	return s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		var d appDocument
		snapshot, err := tx.Get(s.appRef(appID))
		if err := into(&d, snapshot, err); err != nil {
			return err
		}
		app, err := d.app()
		if err != nil {
			return err
		}
		feeds, err := feedsOf(tx.Documents(s.feeds(appID)))
		if err != nil {
			return err
		}
		to, err := change(tx, app, feeds)
		if err != nil {
			return err
		}
		var updates []firestore.Update
		if to.FeedVersion != app.FeedVersion {
			updates = append(updates, firestore.Update{Path: "feedVersion", Value: to.FeedVersion})
		}
		if !to.ChangedAt.Equal(app.ChangedAt) {
			var dates any = firestore.Delete
			if to.Dates != nil {
				text, err := json.Marshal(to.Dates)
				if err != nil {
					return err
				}
				dates = string(text)
			}
			updates = append(updates, firestore.Update{Path: "dates", Value: dates}, changedNow)
		}
		if len(updates) == 0 {
			return nil
		}
		return tx.Update(s.appRef(appID), updates)
	}, firestore.MaxAttempts(maxAttempts))
}
