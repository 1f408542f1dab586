package rank

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/rank/boost"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

const (
	// boostWeight is how many bytes an answer takes from the process's gate for each
	// byte of it: the query and its encoding.
	boostWeight = 3
	// termBytes is what rendering takes for each affinity of a profile beside its
	// names, which the profile has taken.
	termBytes = 256
)

// boosts answers a user's profile as a part of a request to a search engine. It
// reads one row. A plain search key gets none, whatever the app permits pages: the
// answer says what the user likes.
func (h handler) boosts(w http.ResponseWriter, r *http.Request, app config.App, grant auth.Grant) error {
	user, err := boostedUser(r)
	if err != nil {
		return err
	}
	// A profile is about no index, so a key may be restricted to some.
	if err := grant.User(user); err != nil {
		return err
	}
	in, err := decodeBoost(r.URL.RawQuery)
	if err != nil {
		return err
	}
	if err := in.check(&app); err != nil {
		return err
	}
	h.Usage.Reads(app.ID, 1)
	// All affinities: the limit counts those that the engine can express.
	read, err := profile.IdentitiesOf(h.Profiles).Read(r.Context(), app.For(consent.Boosts), user, 0)
	if err != nil {
		return fmt.Errorf("read profile: %w", err)
	}
	if err := admission.Take(r.Context(), termBytes*int64(len(read.Affinities))); err != nil {
		return err
	}
	request, err := in.request(read)
	if err != nil {
		return err
	}
	profile.ExposuresOf(h.Profiles).Note(user, read)
	rendered, err := h.renderBoost(r.Context(), read.App, request)
	if err != nil {
		return err
	}
	encoded, err := encodeBoost(boostView(user, request, read, rendered))
	if err != nil {
		return err
	}
	if err := admission.Take(r.Context(), boostWeight*int64(len(encoded))); err != nil {
		return err
	}
	return httpapi.WriteEncoded(w, http.StatusOK, encoded)
}

// check refuses what cannot be rendered for the app, before its rows are read, and
// sets how they are read.
func (q boostQuery) check(app *config.App) error {
	if q.consistency != "" {
		app.Consistency = q.consistency
	}
	// What is wrong with the engine, the mode or the mapping does not depend on the
	// profile.
	if _, err := boost.Render(q.Request); err != nil {
		return err
	}
	if q.Fields == nil {
		return nil
	}
	private := app.PrivateFacets.Union()
	var public []string
	for _, f := range app.Strategy.FacetsScoring {
		if !private[f.FacetName] {
			public = append(public, f.FacetName)
		}
	}
	for _, f := range q.Fields {
		if !slices.Contains(public, f) && !private[f] {
			return invalid("fields names the facet %s, which the strategy does not score: it scores %s", quote(f),
				facets(public))
		}
	}
	return nil
}

// facets lists the first facets in a message.
func facets(names []string) string {
	const most = 20
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// request returns what to render of a profile.
func (q boostQuery) request(read profile.Result) (boost.Request, error) {
	at, err := strategy.HalfLifeAt(read.HalfLives, q.halfLife)
	if err != nil {
		return boost.Request{}, err
	}
	r := q.Request
	if !q.impactGiven {
		r.Impact = read.App.Strategy.PersonalizationImpact
	}
	// The App of the profile: at least as new as the one by which the key was checked.
	r.Private = read.App.PrivateFacets.Union()
	r.Ranges = ranges(read.App.NumericBands)
	r.Affinities = make([]boost.Affinity, len(read.Affinities))
	for i, a := range read.Affinities {
		r.Affinities[i] = boost.Affinity{Facet: a.Facet, Value: a.Value, Score: a.Scores[at]}
	}
	return r, nil
}

// ranges returns what the numeric bands of an app mean; nil if it has none.
func ranges(bands config.NumericBands) func(facet, value string) (*boost.Range, bool) {
	if len(bands) == 0 {
		return nil
	}
	return func(facet, value string) (*boost.Range, bool) {
		band, ok := bands.Range(facet, value)
		if !ok {
			return nil, bands.Has(facet)
		}
		r := boost.Range{From: math.Inf(-1), Below: math.Inf(1)}
		if from, ok := band.From(); ok {
			r.From = from
		}
		if below, ok := band.Below(); ok {
			r.Below = below
		}
		return &r, true
	}
}

// renderBoost renders a request. Statistics are read for sentences alone.
func (h handler) renderBoost(ctx context.Context, app config.App, r boost.Request) (boost.Answer, error) {
	if boost.Speaks(r.Engine) && len(r.Affinities) > 0 {
		var err error
		if r.Spoken, err = h.Orderer.Spoken(ctx, app); err != nil {
			return boost.Answer{}, err
		}
	}
	return boost.Render(r)
}

func boostView(user string, r boost.Request, read profile.Result, a boost.Answer) api.Boost {
	view := api.Boost{
		UserToken: user, Person: read.Of != "" && !read.HeldOut, Holdout: read.HeldOut,
		Experiment: inArm(read.Assigned), Engine: r.Engine, Mode: a.Mode,
		StrategyVersion: read.App.StrategyVersion, AsOf: api.AtMillis(read.Anchor), Impact: r.Impact,
		Affinities: make([]api.BoostAffinity, len(a.Affinities)), Query: a.Query,
		Dropped: make([]api.DroppedAffinity, len(a.Dropped)),
	}
	for i, w := range a.Affinities {
		view.Affinities[i] = api.BoostAffinity(w)
	}
	for i, d := range a.Dropped {
		view.Dropped[i] = api.DroppedAffinity(d)
	}
	return view
}

// encodeBoost encodes an answer as people read queries: with < instead of \u003c.
func encodeBoost(view api.Boost) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(view); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
