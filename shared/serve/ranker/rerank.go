// Package ranker orders the candidates of a request for a user. It reads what
// package ranking needs: the user's profile and session from the user row, the
// candidates' filters from the table objects, and the statistics of their index
// from the table crowd. It knows no HTTP.
//
// It keeps no data. Objects stay in memory for 5 s, up to 64 MB an instance, and serve for up
// to 10 minutes while the store fails or is slow. What is used is read again ahead of its end.
// Statistics of indexes stay until newer ones replace them, up to 128 MB and as
// much again for the index that is read, with 16 MB of pairs. An index that
// exceeds 128 MB alone, some million objects, is ranked without statistics.
package ranker

import (
	"context"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// Request asks for an order of candidates.
type Request struct {
	User, Index string // without a User, nothing of a user is read
	// Candidates have their objectID and their relevancy. Order sets the rest.
	// No objectID occurs twice.
	Candidates []ranking.Candidate
	// Prepared says that the candidates also have their objects and dates. Order then
	// sets only Count and Seen, and freshness goes by these dates.
	Prepared bool
	// UserWait is how long the order may wait for what is read of the user. If that
	// takes longer or fails, the order is one for a user without events. 0: the order
	// waits, and fails with the error.
	UserWait  time.Duration
	Impact    *int              // nil: that of the strategy
	Limit     int               // 0: all candidates
	HalfLife  strategy.HalfLife // one of the strategy's; zero: the first
	Explain   bool
	Seen      ranking.Seen
	Diversity *strategy.Diversity // valid; nil: none
	Version   int64               // of the strategy; 0: the active one
	Draft     *strategy.Strategy  // valid, ranks instead of a stored strategy; nil: none
	// Surface is where the order is used; consent.Kept: in rankings.
	Surface consent.Surface
}

// asked is a request under way.
type asked struct {
	Request
	draft *prepared // nil: a stored strategy ranks
}

// Answer is an order, and what it was made from.
type Answer struct {
	ranking.Result
	StrategyVersion int64 // of the arm that the user is in; 0: the request brings a draft
	// ScoringVersion is that of the app. It equals StrategyVersion if the request
	// names a version or brings a draft.
	ScoringVersion int64
	CrowdAsOf      int64 // ms; 0: the index has no statistics
	// Unread is why the order knows nothing of the user, if UserWait permits that; nil:
	// it has read the user.
	Unread error
	// Person reports that the order is that of the known user who has signed in under the token.
	Person bool
	// Assigned is the arm whose strategy ranks.
	Assigned experiment.Assignment
}

// Orderer orders candidates. It is safe for concurrent use.
type Orderer struct {
	profiles   *profile.Engine
	config     *config.Cached
	now        func() time.Time
	objects    *objects
	statistics *statistics
	names      *names
	lists      *lists
	strategies cache.Map[strategyKey, *prepared]
}

// strategyKey names a version of an app's strategy.
type strategyKey struct {
	app     string
	version int64
}

// prepared is a strategy in the forms that a request needs.
type prepared struct {
	ranker  *ranking.Ranker
	scoring *affinity.Compiled
}

// keptStrategies bounds the prepared strategies in memory. One takes some
// kilobytes, or a megabyte with the maximum of aliases.
const keptStrategies = 100

// New returns an Orderer. now is the engine's clock.
func New(s *store.Store, c *config.Cached, profiles *profile.Engine, now func() time.Time, log *slog.Logger) *Orderer {
	return &Orderer{
		profiles: profiles, config: c, now: now, strategies: cache.New[strategyKey, *prepared](keptStrategies),
		// Caches go by the clock of the machine, like that of the configuration.
		objects: newObjects(s, c, log, time.Now), statistics: newStatistics(s, log, time.Now), names: newNames(s, time.Now),
		lists: newLists(s, now, time.Now),
	}
}

// Order returns the candidates in the order of their scores. A user without
// events, a candidate that the catalog does not hold and an index without
// statistics are no errors: the scores then have fewer features. The error is a
// *fault.Error if the request names a half-life or a version that does not
// exist, or if its candidates have too many filters. Order changes the candidates of the request.
func (o *Orderer) Order(ctx context.Context, app config.App, request Request) (Answer, error) {
	r := asked{Request: request}
	app, err := o.under(ctx, app, request)
	if err != nil {
		return Answer{}, err
	}
	if r.Draft != nil {
		r.draft = prepare(*r.Draft)
	}
	in, err := o.read(ctx, app, r)
	if err != nil {
		return Answer{}, err
	}
	return o.rank(ctx, r, in)
}

// rank orders the candidates of a request by what has been read for them.
func (o *Orderer) rank(ctx context.Context, r asked, in input) (Answer, error) {
	app := in.user.App
	halfLife, err := strategy.HalfLifeAt(app.Strategy.HalfLives, r.HalfLife)
	if err != nil {
		return Answer{}, err
	}
	for i := range r.Candidates {
		c := &r.Candidates[i]
		c.Count, c.Seen = in.counts[i], in.seen[c.ObjectID]
	}
	if r.Diversity != nil {
		if err := admitDiversified(ctx, r.Candidates); err != nil {
			return Answer{}, err
		}
	}
	if r.Explain {
		if err := admitExplained(ctx, r.Candidates); err != nil {
			return Answer{}, err
		}
	}
	result := o.prepare(app, r).ranker.Rank(&ranking.Query{
		Now: max(in.user.Anchor, o.now().UnixMilli()), Affinities: in.user.Affinities, HalfLife: halfLife,
		Session:    in.user.Session,
		Neighbours: in.neighbours, HighestCount: in.statistics.highest, Frequencies: in.statistics.frequencies,
		Candidates: r.Candidates, Impact: r.Impact, Seen: r.Seen, Diversity: r.Diversity, Limit: r.Limit, Explain: r.Explain,
	})
	if in.user.HeldOut {
		result.Fallback = heldOut
	}
	return Answer{
		Result: result, StrategyVersion: app.StrategyVersion, ScoringVersion: app.ScoringVersion,
		CrowdAsOf: in.statistics.asOf,
		Unread:    in.unread,
		Person:    in.user.Of != "" && !in.user.HeldOut,
		Assigned:  in.user.Assigned,
	}, nil
}

// heldOut is the Fallback of the order of users who get no personalization: it is that of a user without events.
const heldOut = "holdout"

// under returns app with the strategy that a request asks for.
func (o *Orderer) under(ctx context.Context, app config.App, r Request) (config.App, error) {
	if r.Draft != nil {
		app.Strategy, app.StrategyVersion, app.ScoringVersion = *r.Draft, 0, 0
		return app, nil
	}
	return o.config.Under(ctx, app, r.Version)
}

// active reports whether the strategy ranks that the app has when the user is read.
func (r *asked) active() bool { return r.Version == 0 && r.Draft == nil }

func prepare(s strategy.Strategy) *prepared {
	return &prepared{ranking.New(s), affinity.Compile(s)}
}

// prepare returns the strategy of app in the forms that a request needs.
func (o *Orderer) prepare(app config.App, r asked) *prepared {
	if r.draft != nil {
		return r.draft
	}
	key := strategyKey{app.ID, app.StrategyVersion}
	if p, ok := o.strategies.Get(key); ok {
		return p
	}
	p := prepare(app.Strategy)
	o.strategies.Set(key, p)
	return p
}
