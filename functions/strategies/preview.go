package strategies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/judge/preview"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/serve/ranker"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

const (
	// maxSampledKeys is how many users a sample is chosen from at most.
	maxSampledKeys = 50_000
	// previewChunk is how many users are computed at a time. Each has two profiles of
	// up to 10,000 values.
	previewChunk = 20
	// affinityBytes is what an affinity of a profile holds while it is compared, and
	// valueBytes what a value holds until the preview ends.
	affinityBytes = 512
	valueBytes    = 256
	// comparedObjects is how many objects a preview orders for each user.
	comparedObjects = 20
)

// preview reports what a strategy would change, and changes nothing.
func (h handler) preview(w http.ResponseWriter, r *http.Request, app config.App) error {
	wanted, err := httpapi.Decode(w, r, api.MaxPreviewBody, decodePreview)
	if err != nil {
		return err
	}
	leave, err := h.Limits.Enter(app.ID, limit.Preview)
	if err != nil {
		return err
	}
	defer leave()
	ctx := r.Context()
	if err := admission.AwaitTurn(ctx, admission.TurnWait); err != nil {
		return err
	}
	// Not from the cache: the comparison is with the strategy that is set now.
	if app, err = h.Config.App(ctx, app.ID); err != nil {
		return fmt.Errorf("preview strategy: %w", err)
	}
	users := wanted.users
	var from *api.ChosenFrom
	if users == nil {
		rnd := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		sample, err := h.Store.Users.SampleUsers(ctx, app.ID, wanted.sample, maxSampledKeys, rnd)
		if err != nil {
			return fmt.Errorf("preview strategy: %w", err)
		}
		users, from = sample.Users, chosenFrom(sample)
	}
	index, candidates, err := ranker.SampleCandidates(ctx, h.Store.Catalog, app.ID, comparedObjects)
	if err != nil {
		return fmt.Errorf("preview strategy: %w", err)
	}
	c := &comparison{
		handler: h, app: app, before: affinity.Compile(app.Strategy), after: affinity.Compile(wanted.strategy),
		profiles: preview.New(), objects: preview.NewRanked(app.Strategy, wanted.strategy, candidates),
	}
	begun := time.Now()
	if err := c.compare(ctx, users); err != nil {
		return fmt.Errorf("preview strategy: %w", err)
	}
	answer := renderPreview(app.StrategyVersion, c.profiles.Report())
	answer.ChosenFrom, answer.Warnings = from, wanted.strategy.Warnings()
	answer.Cost = api.PreviewCost{Events: c.read.Events, Blocks: c.read.Blocks, Took: time.Since(begun).Milliseconds()}
	answer.Cost.Recompute = recomputeCost(from, answer.Known, c.read.Events)
	if len(candidates) > 0 {
		answer.Objects = &api.PreviewObjects{Index: index, Compared: len(candidates),
			PreviewOrders: orders(c.objects.Orders())}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// recomputeCost returns what a recompute takes if all users are like the known ones of a preview.
func recomputeCost(from *api.ChosenFrom, known, events int) *api.RecomputeCost {
	if known == 0 {
		return nil
	}
	users := preview.Million
	if from != nil && from.All {
		users = from.Users
	}
	cost := api.RecomputeCost(preview.Extrapolate(users, known, events))
	return &cost
}

// chosenFrom describes the users that a sample was chosen from.
func chosenFrom(s store.Sample) *api.ChosenFrom {
	from := &api.ChosenFrom{Users: s.Read, All: s.All}
	if !s.All {
		from.First, from.Last = s.First, s.Last
	}
	return from
}

// comparison is a preview that is made.
type comparison struct {
	handler
	app           config.App
	before, after *affinity.Compiled
	profiles      *preview.Preview
	objects       *preview.Ranked
	read          profile.Reading
}

// compare compares users' profiles under the active strategy and another.
func (c *comparison) compare(ctx context.Context, users []string) error {
	for chunk := range slices.Chunk(users, previewChunk) {
		values := c.profiles.Values()
		if err := c.compareSome(ctx, chunk); err != nil {
			return err
		}
		if c.profiles.Values() > preview.MaxValues {
			return httpapi.Errorf(http.StatusUnprocessableEntity,
				"The profiles have more than %d different values: preview fewer users", preview.MaxValues)
		}
		if err := admission.Take(ctx, valueBytes*int64(c.profiles.Values()-values)); err != nil {
			return err
		}
	}
	return nil
}

// compareSome adds some users to a preview.
func (c *comparison) compareSome(ctx context.Context, users []string) error {
	part, end := admission.Part(ctx) // of the profiles
	defer end()
	profiles, read, err := c.Profiles.ComputeCounting(ctx, c.app, users, c.before, c.after)
	var faulty profile.Faulty
	if err != nil && !errors.As(err, &faulty) {
		return err
	}
	for token, err := range faulty {
		c.Log.LogAttrs(ctx, slog.LevelError, "a preview leaves out a faulty user",
			slog.String("app", c.app.ID), slog.String("user", token), slog.Any("error", err))
	}
	held := 0
	for _, pair := range profiles {
		for _, computed := range pair {
			held += affinityBytes * len(computed.Affinities)
		}
	}
	if err := admission.Take(part, int64(held)); err != nil {
		return err
	}
	c.read.Events, c.read.Blocks = c.read.Events+read.Events, c.read.Blocks+read.Blocks
	for _, user := range users {
		if pair := profiles[user]; len(pair) > 0 {
			// At one instant, so that a difference in decay is not reported as
			// a change.
			now := max(pair[0].Anchor, pair[1].Anchor)
			before, after := pair[0].At(now), pair[1].At(now)
			c.profiles.Add(user, before, after)
			c.objects.Add(before, after)
		}
	}
	return nil
}

// previewRequest is a decoded request for a preview.
type previewRequest struct {
	strategy strategy.Strategy
	sample   int      // how many users to choose at random if users is nil
	users    []string // sorted
}

func decodePreview(body []byte) (previewRequest, error) {
	var p previewRequest
	if !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)) {
		return p, httpapi.Errorf(http.StatusBadRequest, "Bad Request: the body is not valid JSON")
	}
	var in *api.PreviewRequest
	if err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true),
		jsontext.AllowDuplicateNames(true)); err != nil || in == nil {
		return p, httpapi.Errorf(http.StatusUnprocessableEntity,
			`The body must be {"strategy":{...}} with "sample":N or "userTokens":["..."], and no other key`)
	}
	switch {
	case len(in.Strategy) == 0 || bytes.Equal(in.Strategy, []byte("null")):
		return p, httpapi.Errorf(http.StatusUnprocessableEntity, "strategy is required")
	case in.Sample != nil && in.UserTokens != nil:
		return p, httpapi.Errorf(http.StatusUnprocessableEntity, "sample and userTokens must not both be given")
	case in.Sample != nil && (*in.Sample < 1 || *in.Sample > api.MaxPreviewSample):
		return p, httpapi.Errorf(http.StatusUnprocessableEntity, "sample must be an integer from 1 to %d",
			api.MaxPreviewSample)
	case in.UserTokens != nil && (len(in.UserTokens) < 1 || len(in.UserTokens) > api.MaxPreviewSample):
		return p, httpapi.Errorf(http.StatusUnprocessableEntity, "userTokens must hold 1 to %d tokens", api.MaxPreviewSample)
	}
	p.sample = api.DefaultPreviewSample
	if in.Sample != nil {
		p.sample = *in.Sample
	}
	if in.UserTokens != nil {
		for _, user := range in.UserTokens {
			if !event.ValidUserToken(user) {
				return p, httpapi.Errorf(http.StatusUnprocessableEntity, "userTokens holds a malformed token: %q", user)
			}
		}
		p.users = slices.Compact(slices.Sorted(slices.Values(in.UserTokens)))
	}
	var err error
	p.strategy, err = strategy.Decode(in.Strategy)
	return p, err
}

func renderPreview(version int64, r preview.Report) api.Preview {
	view := api.Preview{
		Sampled: r.Sampled, Known: r.Known, Changed: r.Changed, Unchanged: r.Unchanged, StrategyVersion: version,
		Values: orders(r.Values), Scale: r.Scale,
		Facets: make([]api.FacetPreview, len(r.Facets)), Examples: make([]api.PreviewExample, len(r.Examples)),
	}
	if c := r.Correlation; c != nil {
		view.RankCorrelation = &api.RankCorrelation{Mean: c.Mean, Min: c.Min, P10: c.P10}
	}
	for i, f := range r.Facets {
		view.Facets[i] = api.FacetPreview{Facet: f.Facet, Movers: make([]api.Mover, len(f.Movers))}
		for j, m := range f.Movers {
			view.Facets[i].Movers[j] = api.Mover{
				Value: m.Value, ShareBefore: m.ShareBefore, ShareAfter: m.ShareAfter, Before: m.Before, After: m.After,
				Users: m.Users,
			}
		}
	}
	for i, e := range r.Examples {
		view.Examples[i] = api.PreviewExample{
			UserToken: e.User, RankCorrelation: e.RankCorrelation, Before: affinities(e.Before), After: affinities(e.After),
		}
	}
	return view
}

func orders(o preview.Orders) api.PreviewOrders {
	return api.PreviewOrders{Changed: o.Changed, TopFiveChanged: o.TopFive, TopChanged: o.TopOne}
}

func affinities(list []affinity.Affinity) []api.Affinity {
	views := make([]api.Affinity, len(list))
	for i, a := range list {
		views[i] = api.Affinity{Facet: a.Facet, Operator: event.Operator, Value: a.Value, Score: a.Scores[0]}
	}
	return views
}
