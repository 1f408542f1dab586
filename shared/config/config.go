// Package config holds what operators and customers set: the apps with their
// retention and strategy, the keys that open them, every strategy an app ever
// had, and the settings of its indexes.
//
// It is separate because the configuration is small, every request reads it, and
// a change must take effect at one instant for the whole system. The tables of
// events and profiles do not offer that.
//
// A Store reads and changes the configuration itself. There are two: configdb
// keeps it in Firestore, NewMemory in memory for the local stack and for tests.
// Package configtest tests both.
package config

import (
	"context"
	"errors"
	"regexp"
	"time"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/schema"
	"github.com/affinityengine/affinity/shared/strategy"
)

// ErrNotFound says that what was asked for, or the app it would belong to, does
// not exist. The caller must not try again.
var ErrNotFound = errors.New("not found")

// ErrExists says that the app to be created is there already.
var ErrExists = errors.New("already exists")

// App is a customer and what holds for all of his users.
type App struct {
	// ID is part of the key of every row the app has; see ValidAppID.
	ID string
	// RetentionDays is how long an event counts; 0 is without limit.
	RetentionDays int
	// Strategy is the active one; it scores nothing until one is set.
	Strategy strategy.Strategy
	// StrategyVersion is that of Strategy; 0 where none was ever set.
	StrategyVersion int64
	// Log is how the app's events lie in Bigtable; it is always valid.
	Log schema.Layout
	// Move is the last move of the log to the other schema, zero without any.
	Move      Move
	CreatedAt time.Time // to the microsecond
	// ChangedAt is when the app was created, or a retention, another strategy or
	// other schemas of the log were set since, by the clock of the store, to the
	// millisecond. What must find the change in force everywhere waits two TTLs
	// from it.
	ChangedAt time.Time
}

// Key is what opens an app: the hash of a secret, and what it is good for.
type Key struct {
	// Hash is the SHA-256 of the key in lower-case hex. The key itself is stored
	// nowhere.
	Hash string
	// ACL names what the key may do.
	ACL       []string
	CreatedAt time.Time // to the microsecond
}

// Store reads and changes the configuration. It is safe for concurrent use.
// What it takes and returns is shared and must not be modified. Apart from
// ErrNotFound and ErrExists its errors are faults of the backend, or say that
// an argument is malformed.
type Store interface {
	// App returns an app, or ErrNotFound.
	App(ctx context.Context, appID string) (App, error)
	// Apps returns the ids of all apps, sorted.
	Apps(ctx context.Context) ([]string, error)
	// CreateApp stores a new app, without a strategy or a move whatever it holds
	// of them; ErrExists if there is one of that id. A zero CreatedAt becomes now,
	// as ChangedAt always does; a zero Log becomes schema.Default().
	CreateApp(ctx context.Context, app App) error
	// SetRetention changes how long an app's events count; ErrNotFound without
	// the app.
	SetRetention(ctx context.Context, appID string, days int) error
	// UpdateLog changes the Log and the Move of an app in one step, unless somebody
	// else changes the app meanwhile: then change is called again with what that
	// left. That may be its own work, where the answer of a write was lost. Nothing
	// else that change does to the app is taken; it must not use the store. An error
	// of it, or a Log that is not valid, leaves the app alone and is returned. It
	// returns the app as it then is; ErrNotFound without the app. ChangedAt moves if
	// the schemas do; an encoding alone is in force whenever it arrives.
	UpdateLog(ctx context.Context, appID string, change func(*App) error) (App, error)

	// Key returns the key of that hash, or ErrNotFound.
	Key(ctx context.Context, appID, hash string) (Key, error)
	// Keys returns all keys of an app, sorted by hash; ErrNotFound without the app.
	Keys(ctx context.Context, appID string) ([]Key, error)
	// PutKey stores a key, replacing one of the same hash; ErrNotFound without
	// the app. A zero CreatedAt becomes now.
	PutKey(ctx context.Context, appID string, key Key) error
	// DeleteKey removes a key; ErrNotFound if it is not there.
	DeleteKey(ctx context.Context, appID, hash string) error

	// SetStrategy makes a strategy the active one. Each gets the next version,
	// except that setting the active one again changes nothing. ErrNotFound
	// without the app.
	SetStrategy(ctx context.Context, appID string, s strategy.Strategy) (version int64, changed bool, err error)
	// StrategyVersion returns the strategy that had this version, or ErrNotFound.
	StrategyVersion(ctx context.Context, appID string, version int64) (strategy.Strategy, error)

	// IndexSettings returns the settings of an index, or ErrNotFound if none
	// were ever set.
	IndexSettings(ctx context.Context, appID, index string) (catalog.Settings, error)
	// SetIndexSettings changes the settings of an index. Each change gets the
	// next version, except that setting what is set changes nothing. ErrNotFound
	// without the app.
	SetIndexSettings(ctx context.Context, appID, index string, attributesForFaceting []string) (version int64, err error)
}

var (
	appIDForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	hashForm  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// ValidAppID says whether s has the form of an app id: 1 to 64 of [A-Za-z0-9_-].
// Such an id may stand in a row key as it is.
func ValidAppID(s string) bool { return appIDForm.MatchString(s) }
