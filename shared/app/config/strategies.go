package config

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func strategyPath(appID string, version int64) string {
	return AppPath(appID) + "/strategies/" + strconv.FormatInt(version, 10)
}

// SetStrategy makes a strategy the active one and gives it the next version.
// Setting the active strategy again changes nothing. It returns the app
// afterwards, with a ChangedAt by the caller's clock, or ErrNotFound if the app
// does not exist.
func (s *Store) SetStrategy(ctx context.Context, appID string,
	active strategy.Strategy) (app App, changed bool, err error) {
	return s.PublishStrategy(ctx, appID, active, Publication{})
}

// PublishStrategy is SetStrategy with a note and a condition. It returns an
// *OtherVersionError, and changes nothing, if the condition does not hold.
func (s *Store) PublishStrategy(ctx context.Context, appID string, active strategy.Strategy,
	p Publication) (app App, changed bool, err error) {
	err = s.changeApp(ctx, appID, func(old App) (App, []documents.Write, error) {
		if app, changed, err = old.Publish(active, p); err != nil || !changed {
			return app, nil, err
		}
		if old.StrategyVersion == 0 {
			app.StrategyVersion, app.ScoringVersion = s.after+1, s.after+1
		}
		kept, err := newStrategyDocument(app, p.Note)
		// Create, not Put: no version is used twice.
		return app, []documents.Write{documents.Create(strategyPath(appID, app.StrategyVersion), kept)}, err
	})
	if err != nil {
		return App{}, false, fmt.Errorf("set strategy of app %q: %w", appID, err)
	}
	if changed {
		s.pruneAfter(ctx, app)
	}
	return app, changed, nil
}

// pruneAfter is prune after a strategy was set, which holds whatever happens to old versions: the next change tries to
// delete them again.
func (s *Store) pruneAfter(ctx context.Context, app App) {
	if err := s.prune(ctx, app); err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "old versions of the strategy are not deleted",
			slog.String("app", app.ID), slog.Any("error", err))
	}
}

// StrategyVersion returns the strategy with that version, or ErrNotFound if it
// never existed or is no longer kept.
func (s *Store) StrategyVersion(ctx context.Context, appID string, version int64) (kept strategy.Strategy, err error) {
	var d strategyDocument
	if err = read(ctx, s.documents, strategyPath(appID, version), &d); err == nil {
		kept, err = parseStrategy(d.Strategy, d.Ranking)
	}
	if err != nil {
		return strategy.Strategy{}, fmt.Errorf("read strategy version %d of app %q: %w", version, appID, err)
	}
	return kept, nil
}

// StrategyVersions returns the kept versions, newest first, at most MaxVersions.
// It returns ErrNotFound if the app does not exist.
func (s *Store) StrategyVersions(ctx context.Context, appID string) ([]Version, error) {
	kept, err := below[strategyDocument](ctx, s, appID, documents.Query{
		Collection: "strategies", OrderBy: "version", Descending: true, Limit: MaxVersions,
		Only: []string{"version", "scoringVersion", "createdAt", "note"},
	})
	if err != nil {
		return nil, fmt.Errorf("list strategies of app %q: %w", appID, err)
	}
	versions := make([]Version, len(kept))
	for i, d := range kept {
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
func (s *Store) prune(ctx context.Context, app App) error {
	if app.StrategyVersion <= KeptVersions {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pruneTime)
	defer cancel()
	found, err := s.documents.Find(ctx, documents.Query{
		Collection: AppPath(app.ID) + "/strategies", OrderBy: "version", Limit: maxPruned,
		Only:  []string{"version", "scoringVersion", "createdAt"},
		Where: []documents.Condition{{Field: "version", Is: documents.Less, Value: app.StrategyVersion - KeptVersions + 1}},
	})
	if err != nil {
		return err
	}
	var expired []documents.Write
	now := time.Now()
	for _, f := range found {
		var d strategyDocument
		if err := f.Decode(&d); err != nil {
			return err
		}
		if !app.Expired(d.kept(), now) {
			if app.compares(d.Version, now) {
				continue
			}
			break // the later ones were set later
		}
		expired = append(expired, documents.Delete(f))
	}
	if len(expired) == 0 {
		return nil
	}
	return s.documents.Commit(ctx, expired...)
}
