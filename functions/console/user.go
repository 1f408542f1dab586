package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() {
	pages = append(pages,
		page{pattern: "GET /console/users/{token}", section: "users", template: "user", load: ofUser(loadUser)},
		page{pattern: "GET /console/users/{token}/json", section: "users", template: "userjson",
			fragment: "profile-json", load: ofUser(loadUserJSON)},
	)
}

// maxValues is how many values of a profile a page reads.
const maxValues = 1000

// userPage is what the page of a user shows.
type userPage struct {
	Token, Path string
	Now         time.Time
	Profile     api.Profile
	Words       words
	Facets      []facetBars
	// HalfLives are the strategy's, if there is a choice.
	HalfLives []choice
	// Explained counts the user's events; nil if NotExplained says why not.
	Explained    *api.Explanation
	NotExplained string
	// OptOut is nil if the session may not see it.
	OptOut *api.OptOut
	// Consents are nil if the app has no purposes, or the session may not see them.
	Consents *api.Consents
	// Links are those of the token; nil if there are none, or the session may not see them.
	Links *userLinks
	// MayDelete, MayOptOut and MayExport say what the session may do with the user.
	MayDelete, MayOptOut, MayExport bool
	// HalfLifeQuery is the chosen half-life for other addresses.
	HalfLifeQuery string
}

// choice is an entry of a list of which one is chosen.
type choice struct {
	Text, Path string
	Current    bool
}

// loadUser loads the page of a user, or one that says why there is no profile.
func loadUser(v *visit, token string) (any, error) {
	v.title, v.command = shown(token), "affinity profile "+userArg(token)
	halfLife := v.URL.Query().Get("halfLife")
	p := &userPage{
		Token: token, Path: userPath(token, ""), Now: v.now(),
		MayDelete: v.may(auth.Recommendation, auth.DeleteObject), MayOptOut: v.may(auth.DeleteObject),
		MayExport: v.may(auth.Admin),
	}
	profile, err := v.engine.Profiles().Get(v.Context(), token, api.ProfileQuery{Limit: maxValues, HalfLife: halfLife})
	var refused *api.Error
	unknown := errors.As(err, &refused) && refused.Status == http.StatusNotFound
	if err != nil && !unknown {
		return nil, fmt.Errorf("read a profile: %w", err)
	}
	if p.MayOptOut {
		state, err := v.engine.Profiles().OptedOut(v.Context(), token)
		if err != nil {
			return nil, fmt.Errorf("read an opt-out: %w", err)
		}
		p.OptOut = &state
		if p.Consents, err = consentsOf(v, token); err != nil {
			return nil, err
		}
	}
	if p.Links, err = linksOf(v, token); err != nil {
		return nil, err
	}
	if unknown {
		v.status = http.StatusNotFound
		p.explain(v, api.ExplainQuery{Limit: 1})
		return p, nil
	}
	if halfLife != "" {
		p.HalfLifeQuery = "?" + url.Values{"halfLife": {halfLife}}.Encode()
		v.command = "affinity profile --half-life=" + shellArg(halfLife) + " " + userArg(token)
	}
	p.Profile = profile
	p.Facets = byFacet(p.Path, profile, halfLife, v.URL.Query().Get("all"))
	p.Words = inWords(p.Facets)
	p.HalfLives, err = halfLivesOf(v, p.Path, profile, halfLife)
	if err != nil {
		return nil, err
	}
	p.explainStrongest(v, halfLife)
	return p, nil
}

// consentsOf reads what a user grants; nil in an app without purposes.
func consentsOf(v *visit, token string) (*api.Consents, error) {
	state, err := v.engine.Profiles().Consents(v.Context(), token)
	if refused, ok := errors.AsType[*api.Error](err); ok && refused.Status == http.StatusUnprocessableEntity {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read consents: %w", err)
	}
	return &state, nil
}

// explain asks which events count. A page without the answer says so.
func (p *userPage) explain(v *visit, q api.ExplainQuery) {
	x, err := v.engine.Profiles().Explain(v.Context(), p.Token, q)
	if err != nil {
		p.NotExplained = strings.TrimSuffix(because(err), ".")
		return
	}
	p.Explained = &x
}

// explainStrongest explains the strongest value with the same request that counts the events.
func (p *userPage) explainStrongest(v *visit, halfLife string) {
	if len(p.Profile.Affinities) == 0 {
		p.explain(v, api.ExplainQuery{Limit: 1})
		return
	}
	strongest := p.Profile.Affinities[0]
	p.explain(v, api.ExplainQuery{Facet: strongest.Facet, Value: strongest.Value})
	if p.Explained == nil {
		return
	}
	for i := range p.Facets {
		bars := p.Facets[i].Values
		if p.Facets[i].Facet == strongest.Facet && len(bars) > 0 && bars[0].Value == strongest.Value {
			reason := newWhy(*p.Explained, p.Path, halfLife, whyShown)
			bars[0].Why = &reason
		}
	}
}

// because is what a part of a page says of an error.
func because(err error) string {
	if refused, ok := errors.AsType[*api.Error](err); ok {
		return refused.Message
	}
	return "The engine did not answer"
}

// userJSON is what the profile as the API answers it is shown as.
type userJSON struct{ Token, Path, Text string }

func loadUserJSON(v *visit, token string) (any, error) {
	v.title, v.command = "Profile of "+shown(token), "affinity profile --json "+userArg(token)
	path := "/1/profiles/" + url.PathEscape(token)
	if h := v.URL.Query().Get("halfLife"); h != "" {
		path += "?halfLife=" + url.QueryEscape(h)
	}
	raw, err := v.engine.Do(v.Context(), http.MethodGet, path, nil)
	if err != nil {
		return nil, fmt.Errorf("read a profile: %w", err)
	}
	text, err := readable(raw)
	if err != nil {
		return nil, fmt.Errorf("read a profile: %w", err)
	}
	return userJSON{token, userPath(token, ""), text}, nil
}
