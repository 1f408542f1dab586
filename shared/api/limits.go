package api

import (
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Limits of events: POST /1/events and the lines of POST /1/events/import.
// Larger bodies and batches are refused with 413 and 422.
const (
	MaxEventsBody = event.MaxBody  // bytes of one request, before and after unpacking
	MaxEvents     = event.MaxBatch // events of one request
	// MaxCalls is how many calls POST /v1/batch takes, in MaxEventsBody bytes.
	MaxCalls = 1000
	// MaxEventAge is how old the timestamp of an event may be. Imports take any
	// age.
	MaxEventAge = event.MaxEventAge

	MaxEventName     = 64   // visible ASCII characters and spaces of an eventName
	MaxUserToken     = 129  // characters of a user token
	MaxEventTargets  = 20   // objectIDs, or filters, of one event
	MaxEventFilter   = 2048 // bytes of one filter, after percent-decoding
	MaxEventID       = 128  // bytes of an eventId
	MaxEventValue    = 16   // characters of a value that is sent as a string
	MaxEventObjectID = 512  // bytes of an objectID or an index name in an event

	// MaxEventCounted and MaxEventCountedBytes are how many filters of its objects an
	// event counts, and how long their names are together. Objects that do not fit do
	// not count: package event has the rule.
	MaxEventCounted      = event.MaxCounted
	MaxEventCountedBytes = event.MaxCountedBytes
)

// Limits of one request to POST /1/events/import. A larger request is refused
// with 413; a client splits a file into several requests.
const (
	MaxImportLines = 5_000
	MaxImportBody  = 8 << 20 // bytes, before and after unpacking
	// An answer names unknown objects of so many indexes, and so many of each.
	MaxUnknownIndexes = 20
	MaxUnknownObjects = 100
)

// Limits of GET /1/events/refused.
const (
	MaxRefusedEvents = 100 // listed
	MaxRefusedDays   = 30  // age of what is listed and counted
)

// Limits of GET /1/events/seen.
const (
	DefaultSeenDays = 7   // days, today included
	MaxSeenDays     = 30  // days
	MaxSeen         = 200 // kinds of events, and facets, that the answer lists
)

// Limits of GET /1/events/recent and GET /1/usertokens/recent.
const (
	DefaultRecentEvents = 50
	MaxRecentEvents     = 200
	DefaultRecentUsers  = 20
	MaxRecentUsers      = 200
)

// Limits of profiles.
const (
	DefaultAffinities = 100     // affinities that a profile lists unless limit says otherwise
	MaxProfiles       = 1000    // user tokens of one POST /1/profiles/batch, and of a page of GET /1/usertokens
	DefaultUsers      = 100     // user tokens of a page of GET /1/usertokens
	MaxProfilesBody   = 1 << 20 // bytes of its body
	DefaultObjects    = 50      // objectIDs of a page of GET /1/indexes/{index}
	MaxObjects        = 1000    // objectIDs of a page of it
	MaxObjectsRead    = 10_000  // objects that it reads for a page with a filter
	ObjectsOfARead    = 100     // objects that it reads for each read that it counts
	// MaxProfilesAnswer is the maximum size in bytes of the profiles in its answer. A
	// larger one is refused with 422.
	MaxProfilesAnswer    = 16 << 20
	DefaultContributions = 1000   // contributions that GET /1/explain lists unless limit says otherwise
	MaxContributions     = 10_000 // the most that it lists: a higher limit is lowered to this
)

// Limits of POST /1/rank.
const (
	MaxCandidates = 5_000   // objectIDs, or items, of one request
	MaxRankBody   = 3 << 20 // bytes of its body: the candidates with the longest objectIDs fit
)

// Limits of strategies. Package strategy has the limits of the fields.
const (
	// MaxStrategyBody is the maximum size in bytes of a strategy as it is sent.
	// The maximum number of aliases fits.
	MaxStrategyBody = 900_000
	// MaxPreviewBody is the maximum size in bytes of a preview: a strategy and
	// the maximum number of user tokens.
	MaxPreviewBody = MaxStrategyBody + 200_000

	DefaultPreviewSample = 100  // users of a preview that names neither sample nor userTokens
	MaxPreviewSample     = 1000 // users of a preview, sampled or named
)

// Limits of boosts.
const (
	DefaultBoostAffinities = 20                  // affinities of a query
	MaxBoostAffinities     = 100                 // affinities of a query
	MaxBoostFields         = strategy.MaxEntries // facets of fields and of fieldMap
	MaxBoostField          = 500                 // bytes of a field of the engine
)

// Limits of the pages of feeds.
const (
	DefaultFeedItems  = 20    // items of a page
	DefaultPosts      = 10    // items of a page in the format wordpress, as in WordPress
	MaxFeedItems      = 100   // items of a page
	MaxFeedCandidates = 5_000 // records that a feed orders: its newest ones
)

// Limits of the catalog.
const (
	MaxCatalogBody    = catalog.MaxBody          // bytes of a batch, and of settings
	MaxActions        = catalog.MaxActions       // actions of a batch
	MaxRecord         = catalog.MaxRecord        // bytes of one record, without insignificant whitespace
	MaxObjectID       = catalog.MaxObjectID      // bytes
	MaxIndex          = catalog.MaxIndex         // bytes of the name of an index
	MaxFacet          = catalog.MaxFacet         // bytes of an entry of attributesForFaceting
	MaxFacetsDeclared = catalog.MaxFacets        // entries of attributesForFaceting
	MaxPrivateFacets  = catalog.MaxPrivateFacets // entries of privateFacets
	MaxBandedFacets   = catalog.MaxBandedFacets  // facets of numericBands
	MaxBandLimits     = catalog.MaxBandLimits    // numbers of a facet of numericBands
)

// Limits of the routes that operators use.
const (
	MaxAdminBody       = 10_000 // bytes of the body of a recompute, re-enrichment, audit or schema step
	MaxJobsListed      = 100    // jobs of a list: the newest
	MaxFaults          = 20     // faults that the answer of one job names: the first
	DefaultAuditSample = 100    // users of an audit unless sample says otherwise
	MaxAuditSample     = 10_000 // users of an audit
	MaxAuditReport     = 10_000 // differences that an audit names; further ones are counted

	// DefaultBackfillRate is how many rows a second a backfill copies unless
	// rate says otherwise: about what one node of Bigtable takes beside its
	// other work.
	DefaultBackfillRate = 10_000
	MaxBackfillRate     = 1_000_000 // rows a second: more than an instance takes
)
