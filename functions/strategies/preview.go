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

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/limit"
	"github.com/affinityengine/affinity/shared/preview"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/strategy"
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
)

// preview reports what a strategy would change, and changes nothing.
func (h handler) preview(w http.ResponseWriter, r *http.Request) error {
	app, err := h.Auth.Tenant(r, auth.Recommendation)
	if err != nil {
		return err
	}
	body, err := httpapi.ReadBody(w, r, api.MaxPreviewBody)
	if err != nil {
		return err
	}
	wanted, err := decodePreview(body)
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
		sample, err := h.Store.SampleUsers(ctx, app.ID, wanted.sample, maxSampledKeys, rnd)
		if err != nil {
			return fmt.Errorf("preview strategy: %w", err)
		}
		users, from = sample.Users, chosenFrom(sample)
	}
	report, err := h.compare(ctx, app, wanted.strategy, users)
	if err != nil {
		return fmt.Errorf("preview strategy: %w", err)
	}
	answer := renderPreview(app.StrategyVersion, report)
	answer.ChosenFrom = from
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// chosenFrom describes the users that a sample was chosen from.
func chosenFrom(s store.Sample) *api.ChosenFrom {
	from := &api.ChosenFrom{Users: s.Read, All: s.All}
	if !s.All {
		from.First, from.Last = s.First, s.Last
	}
	return from
}

// compare compares users' profiles under the active strategy and another.
func (h handler) compare(ctx context.Context, app config.App, other strategy.Strategy, users []string) (preview.Report, error) {
	before, after, p := affinity.Compile(app.Strategy), affinity.Compile(other), preview.New()
	for chunk := range slices.Chunk(users, previewChunk) {
		values := p.Values()
		if err := h.compareSome(ctx, app, p, before, after, chunk); err != nil {
			return preview.Report{}, err
		}
		if p.Values() > preview.MaxValues {
			return preview.Report{}, httpapi.Errorf(http.StatusUnprocessableEntity,
				"The profiles have more than %d different values: preview fewer users", preview.MaxValues)
		}
		if err := admission.Take(ctx, valueBytes*int64(p.Values()-values)); err != nil {
			return preview.Report{}, err
		}
	}
	return p.Report(), nil
}

// compareSome adds some users to a preview.
func (h handler) compareSome(ctx context.Context, app config.App, p *preview.Preview, before, after *affinity.Compiled, users []string) error {
	part, end := admission.Part(ctx) // of the profiles
	defer end()
	profiles, err := h.Profiles.Compute(ctx, app, users, before, after)
	var faulty profile.Faulty
	if err != nil && !errors.As(err, &faulty) {
		return err
	}
	for token, err := range faulty {
		h.Log.LogAttrs(ctx, slog.LevelError, "a preview leaves out a faulty user",
			slog.String("app", app.ID), slog.String("user", token), slog.Any("error", err))
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
	for _, user := range users {
		if pair := profiles[user]; len(pair) > 0 {
			// At one instant, so that a difference in decay is not reported as
			// a change.
			now := max(pair[0].Anchor, pair[1].Anchor)
			p.Add(user, pair[0].At(now), pair[1].At(now))
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
	if err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(true)); err != nil || in == nil {
		return p, httpapi.Errorf(http.StatusUnprocessableEntity,
			`The body must be {"strategy":{...}} with "sample":N or "userTokens":["..."], and no other key`)
	}
	switch {
	case len(in.Strategy) == 0 || bytes.Equal(in.Strategy, []byte("null")):
		return p, httpapi.Errorf(http.StatusUnprocessableEntity, "strategy is required")
	case in.Sample != nil && in.UserTokens != nil:
		return p, httpapi.Errorf(http.StatusUnprocessableEntity, "sample and userTokens must not both be given")
	case in.Sample != nil && (*in.Sample < 1 || *in.Sample > api.MaxPreviewSample):
		return p, httpapi.Errorf(http.StatusUnprocessableEntity, "sample must be an integer from 1 to %d", api.MaxPreviewSample)
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
		Facets: make([]api.FacetPreview, len(r.Facets)), Examples: make([]api.PreviewExample, len(r.Examples)),
	}
	if c := r.Correlation; c != nil {
		view.RankCorrelation = &api.RankCorrelation{Mean: c.Mean, Min: c.Min, P10: c.P10}
	}
	for i, f := range r.Facets {
		view.Facets[i] = api.FacetPreview{Facet: f.Facet, Movers: make([]api.Mover, len(f.Movers))}
		for j, m := range f.Movers {
			view.Facets[i].Movers[j] = api.Mover(m)
		}
	}
	for i, e := range r.Examples {
		view.Examples[i] = api.PreviewExample{
			UserToken: e.User, RankCorrelation: e.RankCorrelation, Before: affinities(e.Before), After: affinities(e.After),
		}
	}
	return view
}

func affinities(list []affinity.Affinity) []api.Affinity {
	views := make([]api.Affinity, len(list))
	for i, a := range list {
		views[i] = api.Affinity{Facet: a.Facet, Operator: event.Operator, Value: a.Value, Score: a.Scores[0]}
	}
	return views
}
