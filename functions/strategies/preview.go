package strategies

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/preview"
	"github.com/affinityengine/affinity/shared/strategy"
)

const (
	// maxPreviewBody is a strategy and the most user tokens.
	maxPreviewBody = maxBody + 200_000
	defaultSample  = 100
	maxSample      = 1000
	// maxSampledKeys are read at most to choose a sample from.
	maxSampledKeys = 50_000
	// previewChunk users are computed at a time.
	previewChunk = 100
)

// preview answers what a strategy would change, and changes nothing.
func (s strategies) preview(w http.ResponseWriter, r *http.Request) error {
	app, err := httpapi.Tenant(s.Auth, r, auth.Recommendation)
	if err != nil {
		return err
	}
	body, err := httpapi.ReadBody(w, r, maxPreviewBody)
	if err != nil {
		return err
	}
	wanted, err := decodePreview(body)
	if err != nil {
		return err
	}
	ctx := r.Context()
	// Past the cache: what is compared with must be what is set.
	if app, err = s.Apps.App(ctx, app.ID); err != nil {
		return fmt.Errorf("preview strategy: %w", err)
	}
	users := wanted.users
	if users == nil {
		rnd := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		if users, err = s.Store.SampleUsers(ctx, app.ID, wanted.sample, maxSampledKeys, rnd); err != nil {
			return fmt.Errorf("preview strategy: %w", err)
		}
	}
	report, err := s.compare(ctx, app, wanted.strategy, users)
	if err != nil {
		return fmt.Errorf("preview strategy: %w", err)
	}
	return httpapi.WriteJSON(w, http.StatusOK, renderPreview(app.StrategyVersion, report))
}

// compare computes users' profiles under the active strategy and another.
func (s strategies) compare(ctx context.Context, app config.App, other strategy.Strategy, users []string) (preview.Report, error) {
	before, after, p := affinity.Compile(app.Strategy), affinity.Compile(other), preview.New()
	for chunk := range slices.Chunk(users, previewChunk) {
		profiles, err := s.Profiles.Compute(ctx, app, chunk, before, after)
		if err != nil {
			return preview.Report{}, err
		}
		for _, user := range chunk {
			pair := profiles[user]
			// As of one instant: what has decayed differently has not changed.
			now := max(pair[0].Anchor, pair[1].Anchor)
			p.Add(user, pair[0].At(now), pair[1].At(now))
		}
	}
	return p.Report(), nil
}

// previewOrder is what to preview, for whom: sample users, or those named.
type previewOrder struct {
	strategy strategy.Strategy
	sample   int
	users    []string
}

func decodePreview(body []byte) (previewOrder, error) {
	var o previewOrder
	if !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)) {
		return o, httpapi.Errorf(http.StatusBadRequest, "Bad Request: the body is no JSON")
	}
	var in *struct {
		Strategy   jsontext.Value `json:"strategy"`
		Sample     *int           `json:"sample"`
		UserTokens *[]string      `json:"userTokens"`
	}
	if err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(true)); err != nil || in == nil {
		return o, httpapi.Errorf(http.StatusUnprocessableEntity,
			`The body must be {"strategy":{...}} with "sample":N or "userTokens":["..."], and no other key`)
	}
	switch {
	case len(in.Strategy) == 0 || bytes.Equal(in.Strategy, []byte("null")):
		return o, httpapi.Errorf(http.StatusUnprocessableEntity, "strategy is required")
	case in.Sample != nil && in.UserTokens != nil:
		return o, httpapi.Errorf(http.StatusUnprocessableEntity, "sample and userTokens must not be given both")
	case in.Sample != nil && (*in.Sample < 1 || *in.Sample > maxSample):
		return o, httpapi.Errorf(http.StatusUnprocessableEntity, "sample must be an integer from 1 to %d", maxSample)
	case in.UserTokens != nil && (len(*in.UserTokens) < 1 || len(*in.UserTokens) > maxSample):
		return o, httpapi.Errorf(http.StatusUnprocessableEntity, "userTokens must hold 1 to %d tokens", maxSample)
	}
	o.sample = defaultSample
	if in.Sample != nil {
		o.sample = *in.Sample
	}
	if in.UserTokens != nil {
		for _, user := range *in.UserTokens {
			if !event.ValidUserToken(user) {
				return o, httpapi.Errorf(http.StatusUnprocessableEntity, "userTokens holds a malformed token: %q", user)
			}
		}
		o.users = slices.Compact(slices.Sorted(slices.Values(*in.UserTokens)))
	}
	var err error
	o.strategy, err = strategy.Decode(in.Strategy)
	return o, err
}

type previewView struct {
	Sampled         int              `json:"sampled"`
	Known           int              `json:"known"`
	Changed         int              `json:"changed"`
	Unchanged       int              `json:"unchanged"`
	StrategyVersion int64            `json:"strategyVersion"`
	RankCorrelation *correlationView `json:"rankCorrelation"` // null: no user is known
	Facets          []facetView      `json:"facets"`
	Examples        []exampleView    `json:"examples"`
}

type correlationView struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	P10  float64 `json:"p10"`
}

type facetView struct {
	Facet  string      `json:"facet"`
	Movers []moverView `json:"movers"`
}

type moverView struct {
	Value  string  `json:"value"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Users  int     `json:"users"`
}

type exampleView struct {
	UserToken       string         `json:"userToken"`
	RankCorrelation float64        `json:"rankCorrelation"`
	Before          []affinityView `json:"before"`
	After           []affinityView `json:"after"`
}

type affinityView struct {
	Facet    string  `json:"facet"`
	Operator string  `json:"operator"`
	Value    string  `json:"value"`
	Score    float64 `json:"score"`
}

func renderPreview(version int64, r preview.Report) previewView {
	view := previewView{
		Sampled: r.Sampled, Known: r.Known, Changed: r.Changed, Unchanged: r.Unchanged, StrategyVersion: version,
		Facets: make([]facetView, len(r.Facets)), Examples: make([]exampleView, len(r.Examples)),
	}
	if c := r.Correlation; c != nil {
		view.RankCorrelation = &correlationView{c.Mean, c.Min, c.P10}
	}
	for i, f := range r.Facets {
		view.Facets[i] = facetView{f.Facet, make([]moverView, len(f.Movers))}
		for j, m := range f.Movers {
			view.Facets[i].Movers[j] = moverView(m)
		}
	}
	for i, e := range r.Examples {
		view.Examples[i] = exampleView{e.User, e.RankCorrelation, affinities(e.Before), affinities(e.After)}
	}
	return view
}

func affinities(list []affinity.Affinity) []affinityView {
	views := make([]affinityView, len(list))
	for i, a := range list {
		views[i] = affinityView{a.Facet, event.Operator, a.Value, a.Scores[0]}
	}
	return views
}
