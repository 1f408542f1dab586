package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
)

func init() {
	pages = append(pages, page{pattern: "GET /console/users/{token}/compare", section: "users", template: "usercompare",
		load: ofUser(loadComparison)})
}

// comparedShown is how many values of a facet a comparison has.
const comparedShown = 8

// comparison is what the page about two users shows.
type comparison struct {
	Token, Path    string
	With, WithPath string
	Problem        string
	Facets         []comparedFacet
}

// comparedFacet is a facet of two profiles. Overlap is the part of the shares that both have,
// 0 to 1.
type comparedFacet struct {
	Facet   string
	Overlap float64
	Values  []comparedValue
	More    int
}

// comparedValue has the shares of a value in the facet of each user.
type comparedValue struct {
	Value    string
	One, Two float64
}

func loadComparison(v *visit, token string) (any, error) {
	c := comparison{Token: token, Path: userPath(token, ""), With: strings.TrimSpace(v.URL.Query().Get("with"))}
	v.title = "Compare " + shown(token)
	if !event.ValidUserToken(c.With) || c.With == token {
		c.Problem = "Enter the token of another user: tokens have 1 to 129 letters, digits and = + / - _"
		if c.With == token {
			c.Problem = "This is the same user: enter the token of another one"
		}
		c.With, v.status = shown(c.With), http.StatusUnprocessableEntity
		return c, nil
	}
	c.WithPath = userPath(c.With, "")
	limit := maxValues
	answer, err := v.engine.Profiles().List(v.Context(),
		api.ProfilesRequest{UserTokens: []string{token, c.With}, Limit: &limit})
	if err != nil {
		return nil, fmt.Errorf("read two profiles: %w", err)
	}
	if slices.Contains(answer.NotFound, token) {
		return nil, redirect{c.Path} // which says why
	}
	if len(answer.Faulty) > 0 {
		c.Problem, v.status = "The profile of "+shown(answer.Faulty[0])+
			" cannot be read: part of what is stored of them is damaged, or of a newer version", http.StatusInternalServerError
		return c, nil
	}
	if len(answer.Profiles) != 2 {
		c.Problem, v.status = "The user "+shown(c.With)+" has no profile: no event of them counts", http.StatusNotFound
		return c, nil
	}
	c.Facets = compared(answer.Profiles[0], answer.Profiles[1])
	return c, nil
}

// compared returns the facets of two profiles: those of the first one, and then the others.
func compared(one, two api.Profile) []comparedFacet {
	var order []string
	shares := [2]map[string]map[string]float64{}
	for i, profile := range []api.Profile{one, two} {
		shares[i] = sharesOf(profile)
		for _, a := range profile.Affinities {
			if !slices.Contains(order, a.Facet) {
				order = append(order, a.Facet)
			}
		}
	}
	var list []comparedFacet
	for _, facet := range order {
		f := comparedFacet{Facet: facet}
		for value, share := range shares[0][facet] {
			f.Values = append(f.Values, comparedValue{value, share, shares[1][facet][value]})
			f.Overlap += min(share, shares[1][facet][value])
		}
		for value, share := range shares[1][facet] {
			if _, both := shares[0][facet][value]; !both {
				f.Values = append(f.Values, comparedValue{value, 0, share})
			}
		}
		slices.SortFunc(f.Values, func(a, b comparedValue) int {
			return cmp.Or(cmp.Compare(max(b.One, b.Two), max(a.One, a.Two)), strings.Compare(a.Value, b.Value))
		})
		f.Values, f.More = firstOf(f.Values, comparedShown)
		list = append(list, f)
	}
	return list
}

// sharesOf returns the part that each value has in the scores of its facet.
func sharesOf(profile api.Profile) map[string]map[string]float64 {
	sums, shares := map[string]float64{}, map[string]map[string]float64{}
	for _, a := range profile.Affinities {
		sums[a.Facet] += a.Score
	}
	for _, a := range profile.Affinities {
		if shares[a.Facet] == nil {
			shares[a.Facet] = map[string]float64{}
		}
		if sums[a.Facet] > 0 {
			shares[a.Facet][a.Value] = a.Score / sums[a.Facet]
		}
	}
	return shares
}
