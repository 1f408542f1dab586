package configdb

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func (s *store) SetStrategy(ctx context.Context, appID string, active strategy.Strategy) (app config.App, changed bool, err error) {
	return s.PublishStrategy(ctx, appID, active, config.Publication{})
}

func (s *store) PublishStrategy(ctx context.Context, appID string, active strategy.Strategy, p config.Publication) (app config.App, changed bool, err error) {
	err = retryOvertaken(ctx, func() error {
		app, changed, err = s.tryPublish(ctx, appID, active, p)
		return err
	})
	if err != nil {
		return config.App{}, false, fmt.Errorf("set strategy of app %q: %w", appID, err)
	}
	if changed {
		// The strategy is set, whatever happens to old versions: the next change
		// tries to delete them again.
		if err := s.prune(ctx, app); err != nil {
			s.log.LogAttrs(ctx, slog.LevelWarn, "old versions of the strategy are not deleted", slog.String("app", appID), slog.Any("error", err))
		}
	}
	return app, changed, nil
}

// tryPublish changes the strategy if no other caller changes the app at the
// same time. A transaction that reads the app would lock it, and the others would
// wait for seconds; without a lock they only try again.
func (s *store) tryPublish(ctx context.Context, appID string, active strategy.Strategy, p config.Publication) (config.App, bool, error) {
	snapshot, app, err := s.readApp(ctx, appID)
	if err != nil {
		return config.App{}, false, err
	}
	app, changed, err := app.Publish(active, p)
	if err != nil || !changed {
		return app, false, err
	}
	kept, err := newStrategyDocument(app)
	if err != nil {
		return config.App{}, false, err
	}
	kept.Note = p.Note
	err = s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		// Create, not Set: no version is used twice.
		if err := tx.Create(s.strategyRef(appID, kept.Version), kept); err != nil {
			return err
		}
		return tx.Update(s.appRef(appID), []firestore.Update{
			{Path: "strategy", Value: kept.Strategy},
			{Path: "strategyVersion", Value: kept.Version},
			{Path: "scoringVersion", Value: kept.ScoringVersion},
			{Path: "ranking", Value: kept.Ranking},
			changedNow,
		}, firestore.LastUpdateTime(snapshot.UpdateTime))
	}, firestore.MaxAttempts(1))
	return app, true, err
}

func (s *store) StrategyVersion(ctx context.Context, appID string, version int64) (strategy.Strategy, error) {
	var d strategyDocument
	err := read(ctx, s.strategyRef(appID, version), &d)
	if err != nil {
		return strategy.Strategy{}, fmt.Errorf("read strategy version %d of app %q: %w", version, appID, err)
	}
	kept, err := parseStrategy(d.Strategy, d.Ranking)
	if err != nil {
		return strategy.Strategy{}, fmt.Errorf("read strategy version %d of app %q: %w", version, appID, err)
	}
	return kept, nil
}

func (s *store) StrategyVersions(ctx context.Context, appID string) ([]config.Version, error) {
	snapshots, err := s.strategies(appID).Select("version", "scoringVersion", "createdAt", "note").
		OrderBy("version", firestore.Desc).Limit(config.MaxVersions).Documents(ctx).GetAll()
	if err == nil && len(snapshots) == 0 {
		err = s.mustExist(ctx, appID)
	}
	if err != nil {
		return nil, fmt.Errorf("list strategies of app %q: %w", appID, err)
	}
	versions := make([]config.Version, len(snapshots))
	for i, snapshot := range snapshots {
		var d strategyDocument
		if err := snapshot.DataTo(&d); err != nil {
			return nil, fmt.Errorf("list strategies of app %q: %w", appID, err)
		}
		versions[i] = d.kept()
	}
	return versions, nil
}

const (
	// maxPruned bounds how many versions one change deletes. It is more than 1, so
	// that the kept versions cannot grow by changes alone.
	maxPruned = 100
	// pruneTime bounds how long the request of a change waits for it.
	pruneTime = 5 * time.Second
)

// prune deletes the oldest versions that need not be kept after app was changed.
func (s *store) prune(ctx context.Context, app config.App) error {
	if app.StrategyVersion <= config.KeptVersions {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pruneTime)
	defer cancel()
	snapshots, err := s.strategies(app.ID).Select("version", "scoringVersion", "createdAt").
		Where("version", "<=", app.StrategyVersion-config.KeptVersions).
		OrderBy("version", firestore.Asc).Limit(maxPruned).Documents(ctx).GetAll()
	if err != nil {
		return err
	}
	var expired []*firestore.DocumentRef
	now := time.Now()
	for _, snapshot := range snapshots {
		var d strategyDocument
		if err := snapshot.DataTo(&d); err != nil {
			return err
		}
		if !app.Expired(d.kept(), now) {
			break // the later ones were set later
		}
		expired = append(expired, snapshot.Ref)
	}
	if len(expired) == 0 {
		return nil
	}
	return s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		for _, ref := range expired {
			if err := tx.Delete(ref); err != nil {
				return err
			}
		}
		return nil
	}, firestore.MaxAttempts(1))
}
