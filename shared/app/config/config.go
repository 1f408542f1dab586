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
	"regexp"
	"time"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/experiment"
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
	// Identity says whether tokens of one person are linked.
	Identity Identity
	// Residency says whether each user of the app has a region of their own.
	Residency Residency
	// Purposes are what the app uses events for.
	Purposes consent.Setting
	// Surface is the part of the app that reads, consent.Kept for none. It is not stored: see For.
	Surface consent.Surface
	// Holdout are the users who get no personalization. On a surface nothing counts of them.
	Holdout experiment.Holdout
	// HoldoutSince is from when on these users are held out, by the store's clock; zero if nobody is.
	HoldoutSince time.Time
	// Experiment is the one that runs, is planned, or was the last to; zero: there never was one.
	Experiment experiment.Experiment
	// ArmRankings are those of the arms of Experiment, in their order.
	ArmRankings []ArmRanking
	// HeldOutToo says that reads answer what counts of users who are held out, too. It is not stored.
	HeldOutToo bool
	// Limits are what the app may ask for. A zero is the deployment's default.
	Limits limit.Numbers
	// PrivateFacets are the facets that no boost shows.
	PrivateFacets PrivateFacets
	// NumericBands are the bands of facets that hold numbers.
	NumericBands NumericBands
	// TrackNames are the types of events that the app has given names of track calls.
	TrackNames TrackNames
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
	// ChangedAt is when the app was created, or when its retention, its strategy, its region, the
	// phase of its move, the schemas of its log, its dates, its numeric bands, its purposes, its holdout or its segments
	// last changed. It is by the store's clock, to the millisecond. A job that needs the change to have
	// reached every function waits until two TTLs after it.
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

var appIDForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ValidAppID reports whether s has the form of an app id: 1 to 64 of
// [A-Za-z0-9_-]. A row key holds such an id without escaping.
func ValidAppID(s string) bool { return appIDForm.MatchString(s) }
