// Package rerank orders the candidates of a request for a user. It reads what
// package ranking needs and knows no request or answer of HTTP: the user's
// profile from the user row, and the candidates' filters from the table objects.
//
// It keeps no data. Objects stay in memory for 5 s, up to 64 MB an instance.
package rerank

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/ranking"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/strategy"
)

// Request asks for an order of candidates.
type Request struct {
	User, Index string
	// Candidates have their objectID and their relevancy. Order sets the rest.
	// No objectID occurs twice.
	Candidates []ranking.Candidate
	Impact     *int              // nil: that of the strategy
	Limit      int               // 0: all candidates
	HalfLife   strategy.HalfLife // one of the strategy's; zero: the first
	Explain    bool
	Seen       ranking.Seen
	Version    int64 // of the strategy; 0: the active one
}

// Answer is an order, and what it was made from.
type Answer struct {
	ranking.Result
	StrategyVersion int64
}

// Orderer orders candidates. It is safe for concurrent use.
type Orderer struct {
	profiles *profile.Engine
	config   *config.Cached
	now      func() time.Time
	objects  *objects
	rankers  *lru.Cache[rankerKey, *ranking.Ranker]
}

// rankerKey names a version of an app's strategy.
type rankerKey struct {
	app     string
	version int64
}

// keptRankers bounds the prepared strategies in memory. One takes some hundred
// bytes, or megabytes with the maximum of aliases.
const keptRankers = 100

// New returns an Orderer. now is the engine's clock.
func New(s *store.Store, c *config.Cached, profiles *profile.Engine, now func() time.Time) *Orderer {
	rankers, _ := lru.New[rankerKey, *ranking.Ranker](keptRankers) // fails only if the size is not positive
	return &Orderer{profiles: profiles, config: c, now: now, objects: newObjects(s, c, time.Now), rankers: rankers}
}

// Order returns the candidates in the order of their scores. A user without
// events, a candidate that the catalog does not hold and an index without
// statistics are no errors: the scores then have fewer features. The error is a
// *fault.Error if the request names a half-life or a version that does not
// exist.
func (o *Orderer) Order(ctx context.Context, app config.App, r Request) (Answer, error) {
	user, err := o.user(ctx, app, r)
	if err != nil {
		return Answer{}, err
	}
	app = user.app
	halfLife, err := indexOf(app.Strategy.HalfLives, r.HalfLife)
	if err != nil {
		return Answer{}, err
	}
	date := ""
	if f := app.Strategy.RankingOrDefault().Freshness; f.Weight > 0 {
		date = f.Attribute
	}
	if err := o.objects.fill(ctx, app.ID, r.Index, date, r.Candidates); err != nil {
		return Answer{}, err
	}
	result := o.ranker(app).Rank(&ranking.Query{
		Now: user.asOf, Affinities: user.affinities, HalfLife: halfLife, Candidates: r.Candidates,
		Impact: r.Impact, Seen: r.Seen, Limit: r.Limit, Explain: r.Explain,
	})
	return Answer{Result: result, StrategyVersion: app.StrategyVersion}, nil
}

// ranker returns the active strategy of app, prepared.
func (o *Orderer) ranker(app config.App) *ranking.Ranker {
	key := rankerKey{app.ID, app.StrategyVersion}
	if r, ok := o.rankers.Get(key); ok {
		return r
	}
	r := ranking.New(app.Strategy)
	o.rankers.Add(key, r)
	return r
}

// user is what a request reads of its user.
type user struct {
	app        config.App // with the strategy that ranks
	asOf       int64      // ms
	affinities []affinity.Affinity
}

func (o *Orderer) user(ctx context.Context, app config.App, r Request) (user, error) {
	if r.Version != 0 && r.Version != app.StrategyVersion {
		return o.userUnder(ctx, app, r)
	}
	p, err := o.profiles.Read(ctx, app, r.User, 0)
	if err != nil {
		return user{}, fmt.Errorf("read profile: %w", err)
	}
	if r.Version != 0 && r.Version != p.App.StrategyVersion { // the strategy has changed since
		return o.userUnder(ctx, p.App, r)
	}
	return user{app: p.App, asOf: max(p.Anchor, o.now().UnixMilli()), affinities: p.Affinities}, nil
}

// userUnder computes what the user's profile is under another version of the
// strategy.
func (o *Orderer) userUnder(ctx context.Context, app config.App, r Request) (user, error) {
	s, err := o.config.StrategyVersion(ctx, app.ID, r.Version)
	if errors.Is(err, config.ErrNotFound) {
		return user{}, fault.New(fault.Invalid, "strategy %d does not exist or is no longer kept", r.Version)
	}
	if err != nil {
		return user{}, fmt.Errorf("read strategy %d of %s: %w", r.Version, app.ID, err)
	}
	app.Strategy, app.StrategyVersion = s, r.Version
	computed, err := o.profiles.Compute(ctx, app, []string{r.User}, affinity.Compile(s))
	if err != nil {
		return user{}, fmt.Errorf("compute profile under strategy %d: %w", r.Version, err)
	}
	p := computed[r.User][0]
	return user{app: app, asOf: max(p.Anchor, o.now().UnixMilli()), affinities: p.Affinities}, nil
}

// indexOf returns the position of a half-life among the strategy's. The zero
// half-life stands for the first.
func indexOf(all []strategy.HalfLife, h strategy.HalfLife) (int, error) {
	if h.IsZero() {
		return 0, nil
	}
	if at := slices.IndexFunc(all, h.SameAs); at >= 0 {
		return at, nil
	}
	return 0, fault.New(fault.Invalid, "halfLife must be one of the strategy's halfLives: %s", list(all))
}

// list names the half-lives of a strategy.
func list(all []strategy.HalfLife) string {
	if len(all) == 0 {
		return "it has none"
	}
	texts := make([]string, len(all))
	for i, h := range all {
		texts[i] = h.String()
	}
	return strings.Join(texts, ", ")
}
