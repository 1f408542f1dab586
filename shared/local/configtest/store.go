package configtest

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// store is a *config.Store, or a *config.Cached with the methods of a Store that it lacks.
type store struct {
	config.Source
	apps
	keysAndStrategies
	indexesAndFeeds
	sessions
}

type (
	apps interface {
		Apps(ctx context.Context) ([]string, error)
		CreateApp(ctx context.Context, app config.App) error
		DeleteApp(ctx context.Context, appID string) (config.Deletion, error)
		UpdateDeletion(ctx context.Context, appID string, change func(*config.Deletion) error) (config.Deletion, error)
		SetRetention(ctx context.Context, appID string, days int) error
		SetConsistency(ctx context.Context, appID string, c config.Consistency) error
		SetBrowserRanking(ctx context.Context, appID string, on bool) error
		SetSegments(ctx context.Context, appID string, on bool) error
		SetIdentity(ctx context.Context, appID string, to config.Identity, settle time.Duration) (config.App, error)
		SetResidency(ctx context.Context, appID string, to config.Residency, settle time.Duration) (config.App, error)
		SetLimits(ctx context.Context, appID string, n limit.Numbers) error
		SetTrackNames(ctx context.Context, appID string, change config.TrackNames) (config.TrackNames, error)
		UpdateLog(ctx context.Context, appID string, change func(*config.App) error) (config.App, error)
		UpdateMove(ctx context.Context, appID string, change func(*config.App) error) (config.App, error)
	}
	keysAndStrategies interface {
		SetPurposes(ctx context.Context, appID string, purposes []consent.Purpose) (config.App, error)
		SetHoldout(ctx context.Context, appID string, to experiment.Holdout) (config.App, error)
		Keys(ctx context.Context, appID string) ([]config.Key, error)
		PutKey(ctx context.Context, appID string, key config.Key) error
		DeleteKey(ctx context.Context, appID, hash string) error
		SetStrategy(ctx context.Context, appID string, s strategy.Strategy) (config.App, bool, error)
		PublishStrategy(ctx context.Context, appID string, s strategy.Strategy, p config.Publication) (config.App,
			bool, error)
		StrategyVersions(ctx context.Context, appID string) ([]config.Version, error)
	}
	indexesAndFeeds interface {
		SettingsIndexes(ctx context.Context, appID string) ([]string, error)
		SetIndexSettings(ctx context.Context, appID, index string, c catalog.Change) (catalog.Settings, error)
		ApplyBands(ctx context.Context, appID string, versions map[string]int64) error
		SetPrivateFacets(ctx context.Context, appID, index string, facets []string) error
		Feeds(ctx context.Context, appID string) ([]config.Feed, error)
		SetFeed(ctx context.Context, appID string, f config.Feed, now time.Time) (config.Feed, bool, error)
		DeleteFeed(ctx context.Context, appID, name string, now time.Time) error
		SavedSegment(ctx context.Context, appID, name string) (config.SavedSegment, error)
		SaveSegment(ctx context.Context, appID string, s config.SavedSegment, create bool) (config.SavedSegment, bool, error)
		DeleteSegment(ctx context.Context, appID, name string) error
	}
)

func plain(s *config.Store) store { return store{s, s, s, s, s} }

// cached has the methods of a Cached, and of the Store those that the Cached lacks: Go
// prefers the methods that are embedded less deep.
type cached struct {
	*config.Cached
	behind
}

type behind struct{ *config.Store }

func (c cached) Parents(ctx context.Context, appID string) ([]config.Key, error) {
	return c.Store.Parents(ctx, appID)
}
