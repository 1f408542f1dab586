// Package config holds what operators and customers set: the apps with their
// retention and strategy, the keys that open them, the strategies that an app
// had, and the settings of its indexes.
//
// It is separate because the configuration is small, every request reads it, and
// a change must take effect at one instant for the whole system. The tables of
// events and profiles do not offer that.
//
// A Store reads and changes the configuration itself. It lies in documents: in Firestore,
// or in memory for the local stack and for tests. Package configtest tests both.
package config

import (
	"context"
	"regexp"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// ErrNotFound reports that the requested item, or the app it belongs to, does not
// exist. A retry does not help.
var ErrNotFound = documents.ErrNotFound

// ErrExists reports that an app with that id already exists.
var ErrExists = documents.ErrExists

// App is a customer, with the settings that apply to all their users.
type App struct {
	// ID is part of the key of every row of the app; see ValidAppID.
	ID string
	// RetentionDays is how long an event counts. 0 means no limit.
	RetentionDays int
	// Strategy is the active strategy. It scores nothing until one is set.
	Strategy strategy.Strategy
	// StrategyVersion is the version of Strategy, 0 until one is set.
	StrategyVersion int64
	// ScoringVersion is the version at which the scoring of Strategy last changed;
	// see strategy.Strategy.SameScoring. It is at most StrategyVersion. Stored
	// profiles and recomputes go by it.
	ScoringVersion int64
	// Consistency is how reads of the app's profiles see replicas, unless a request
	// says otherwise. Empty means Eventual.
	Consistency Consistency
	// BrowserRanking lets keys that stand in web pages, which hold the permission search,
	// ask for the order of objects for any user whose token the page knows.
	BrowserRanking bool
	// Segments says whether users can be found by their affinities.
	Segments Segments
	// Limits are what the app may ask for. A zero is the deployment's default.
	Limits limit.Numbers
	// PrivateFacets are the facets that no boost shows.
	PrivateFacets PrivateFacets
	// NumericBands are the bands of facets that hold numbers.
	NumericBands NumericBands
	// Dates are the attributes by which feeds order objects. FeedVersion is the highest
	// version that a feed had.
	Dates       Dates
	FeedVersion int64
	// Log is the layout of the app's events in Bigtable. It is always valid.
	Log schema.Layout
	// Migration is the last migration of the log to the other schema; zero if there
	// was none.
	Migration Migration
	// Region is where the app lives; empty in a deployment without named regions.
	Region string
	// Move is the move to another region that is under way; zero if there is none.
	Move      Move
	CreatedAt time.Time // to the microsecond
	// ChangedAt is when the app was created, or when its retention, its strategy, its region, the phase
	// of its move, the schemas of its log, its dates, its numeric bands or its segments last changed. It is by the store's clock, to the
	// millisecond. A job that needs the change to have reached every function waits
	// until two TTLs after it.
	ChangedAt time.Time
}

// Consistency is how a read of a profile sees the replicas of a deployment with
// several clusters. With one cluster both are the same.
type Consistency string

const (
	// Eventual reads the nearest cluster. Its copy of a user may miss what process
	// or a deletion wrote a moment ago.
	Eventual Consistency = "eventual"
	// Strong reads the cluster that process and deletions write.
	Strong Consistency = "strong"
)

// Version names a strategy that an app has or had.
type Version struct {
	Version        int64
	ScoringVersion int64 // as in App
	SetAt          time.Time
	Note           string `json:",omitempty"` // why it was set, in the words of who set it
}

// A Store keeps the newest KeptVersions strategies of an app, and all that were
// set within KeptVersionTime.
const (
	KeptVersions    = 200
	KeptVersionTime = 90 * 24 * time.Hour
)

// MaxVersions is how many versions StrategyVersions lists.
const MaxVersions = 1_000

// Store reads and changes the current configuration. It is safe for concurrent
// use. Its arguments and results are shared and must not be modified. An error
// other than ErrNotFound and ErrExists is a fault of the backend, or reports a
// malformed argument.
type Store interface {
	// App returns an app, or ErrNotFound.
	App(ctx context.Context, appID string) (App, error)
	// Apps returns the ids of all apps, sorted.
	Apps(ctx context.Context) ([]string, error)
	// DeleteApp removes an app and stores its Deletion as one change, and returns it.
	// From then on no method finds the app or anything of it; what the store holds of
	// it beside the app's own document remains until a job deletes it. For an app that
	// is deleted already it returns the stored Deletion. It returns ErrNotFound if
	// there is neither.
	DeleteApp(ctx context.Context, appID string) (Deletion, error)
	// Deletion returns the deletion of an app, or ErrNotFound.
	Deletion(ctx context.Context, appID string) (Deletion, error)
	// Deletions returns all deletions, sorted by app.
	Deletions(ctx context.Context) ([]Deletion, error)
	// UpdateDeletion applies change to a deletion as a compare-and-set, and returns it
	// afterwards. If change fails it changes nothing and returns the error. It returns
	// ErrNotFound if the app has no deletion.
	UpdateDeletion(ctx context.Context, appID string, change func(*Deletion) error) (Deletion, error)
	// CreateApp stores a new app, or returns ErrExists, or a deletedError if the id may
	// not be used again yet. It ignores app's strategy,
	// private facets, numeric bands, feeds, segments, consistency, browser ranking, migration and move. A zero CreatedAt becomes the current time, and a zero Log
	// becomes schema.Default(). ChangedAt is always set to the current time.
	CreateApp(ctx context.Context, app App) error
	// SetRetention changes how long an app's events count. It returns ErrNotFound
	// if the app does not exist.
	SetRetention(ctx context.Context, appID string, days int) error
	// SetConsistency changes how reads of an app's profiles see replicas. It returns
	// ErrNotFound if the app does not exist.
	SetConsistency(ctx context.Context, appID string, c Consistency) error
	// SetBrowserRanking changes whether web pages may ask for orders. It does not set
	// ChangedAt. It returns ErrNotFound if the app does not exist.
	SetBrowserRanking(ctx context.Context, appID string, on bool) error
	// SetSegments turns segments on or off. To turn them on again changes nothing. It
	// returns ErrNotFound if the app does not exist.
	SetSegments(ctx context.Context, appID string, on bool) error
	// SetLimits changes what an app may ask for. It does not set ChangedAt. It
	// returns ErrNotFound if the app does not exist.
	SetLimits(ctx context.Context, appID string, n limit.Numbers) error
	// UpdateLog applies change to the Log and the Migration of an app as a
	// compare-and-set, and returns the app afterwards. After a conflict it calls
	// change again with the current app. change must be idempotent: after a lost
	// response it can see its own earlier write. It must not use the store, and
	// UpdateLog ignores what it does to other fields.
	//
	// UpdateLog returns ErrNotFound if the app does not exist. If change fails or
	// leaves an invalid Log, UpdateLog changes nothing and returns the error.
	// ChangedAt is set if the schemas change. A new encoding alone does not set it,
	// since a reader recognizes the encoding of each value.
	UpdateLog(ctx context.Context, appID string, change func(*App) error) (App, error)
	// UpdateMove is UpdateLog for the Region and the Move of an app. ChangedAt is set if
	// what requests go by changes: see Move.
	UpdateMove(ctx context.Context, appID string, change func(*App) error) (App, error)

	// Key returns the key with that hash, or ErrNotFound.
	Key(ctx context.Context, appID, hash string) (Key, error)
	// Keys returns all keys of an app, sorted by hash. It returns ErrNotFound if the
	// app does not exist.
	Keys(ctx context.Context, appID string) ([]Key, error)
	// Parents returns the keys of an app that are parents, in any order. An app that
	// does not exist has none.
	Parents(ctx context.Context, appID string) ([]Key, error)
	// PutKey stores a key and replaces one with the same hash. A zero CreatedAt
	// becomes the current time. It returns ErrNotFound if the app does not exist, and
	// ErrTooManyParents if the key is a parent and the app has MaxParents others, also
	// if several callers add one at once.
	PutKey(ctx context.Context, appID string, key Key) error
	// DeleteKey removes a key. It returns ErrNotFound if the key does not exist.
	DeleteKey(ctx context.Context, appID, hash string) error

	// SetStrategy makes a strategy the active one and gives it the next version.
	// Setting the active strategy again changes nothing. It returns the app
	// afterwards, with a ChangedAt by the caller's clock, or ErrNotFound if the app
	// does not exist.
	SetStrategy(ctx context.Context, appID string, s strategy.Strategy) (app App, changed bool, err error)
	// PublishStrategy is SetStrategy with a note and a condition. It returns an
	// *OtherVersionError, and changes nothing, if the condition does not hold.
	PublishStrategy(ctx context.Context, appID string, s strategy.Strategy, p Publication) (app App, changed bool, err error)
	// StrategyVersion returns the strategy with that version, or ErrNotFound if it
	// never existed or is no longer kept.
	StrategyVersion(ctx context.Context, appID string, version int64) (strategy.Strategy, error)
	// StrategyVersions returns the kept versions, newest first, at most MaxVersions.
	// It returns ErrNotFound if the app does not exist.
	StrategyVersions(ctx context.Context, appID string) ([]Version, error)

	// IndexSettings returns the settings of an index, or ErrNotFound if none were
	// set.
	IndexSettings(ctx context.Context, appID, index string) (catalog.Settings, error)
	// SettingsIndexes returns the indexes that have settings, sorted. It returns
	// ErrNotFound if the app does not exist.
	SettingsIndexes(ctx context.Context, appID string) ([]string, error)
	// SetIndexSettings applies a change, without its private facets, to the settings of
	// an index, gives them the next version, and returns them. Setting the same settings
	// again changes nothing. Numeric bands that change are those of the app at the same
	// instant, and set its ChangedAt. It returns ErrNotFound if the app does not exist,
	// ErrTooManyBands if the app would have too many, and a *fault.Error for bands of an
	// attribute that is no facet.
	SetIndexSettings(ctx context.Context, appID, index string, c catalog.Change) (catalog.Settings, error)
	// ApplyBands stores that all logged events of indexes have the numeric bands of these
	// versions; see NumericBands.Apply. It does not set ChangedAt. It returns ErrNotFound
	// if the app does not exist.
	ApplyBands(ctx context.Context, appID string, versions map[string]int64) error
	// SetPrivateFacets replaces the private facets of an index. It changes no version
	// of the settings and does not set ChangedAt. It returns ErrNotFound if the app
	// does not exist, and ErrTooManyPrivate if the app would have too many.
	SetPrivateFacets(ctx context.Context, appID, index string, facets []string) error

	// Feed returns the feed of that name, or ErrNotFound.
	Feed(ctx context.Context, appID, name string) (Feed, error)
	// Feeds returns all feeds of an app, sorted by name. It returns ErrNotFound if the
	// app does not exist.
	Feeds(ctx context.Context, appID string) ([]Feed, error)
	// SetFeed stores a feed under the app's next version, ignoring f.Version, and the
	// dates that the app's feeds then name. now is the engine's clock. Setting the same
	// feed again changes nothing. It returns the stored feed, ErrNotFound if the app
	// does not exist, and ErrTooManyFeeds if it has MaxFeeds others.
	SetFeed(ctx context.Context, appID string, f Feed, now time.Time) (set Feed, changed bool, err error)
	// DeleteFeed removes a feed, and the dates that no other feed names. It returns
	// ErrNotFound if the feed does not exist.
	DeleteFeed(ctx context.Context, appID, name string, now time.Time) error

	// SavedSegment returns the segment of that name, or ErrNotFound.
	SavedSegment(ctx context.Context, appID, name string) (SavedSegment, error)
	// SavedSegments returns all segments that an app has saved, sorted by name. It
	// returns ErrNotFound if the app does not exist.
	SavedSegments(ctx context.Context, appID string) ([]SavedSegment, error)
	// SaveSegment stores a segment in place of the one of its name; with create it
	// returns ErrExists if the name is in use. A segment with the same condition keeps
	// its SetAt. It returns the stored segment, ErrNotFound if the app does not exist,
	// and errTooManySegments if it has maxSavedSegments others.
	SaveSegment(ctx context.Context, appID string, s SavedSegment, create bool) (set SavedSegment, changed bool, err error)
	// DeleteSegment removes a segment. It returns ErrNotFound if the segment does not
	// exist.
	DeleteSegment(ctx context.Context, appID, name string) error
}

var appIDForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ValidAppID reports whether s has the form of an app id: 1 to 64 of
// [A-Za-z0-9_-]. A row key holds such an id without escaping.
func ValidAppID(s string) bool { return appIDForm.MatchString(s) }
