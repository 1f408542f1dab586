package profiles

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/profile"
)

type profileView struct {
	UserToken       string         `json:"userToken"`
	LastEventAt     string         `json:"lastEventAt"`
	AsOf            string         `json:"asOf"`
	StrategyVersion int64          `json:"strategyVersion"`
	Source          string         `json:"source"`
	Total           int            `json:"total"`
	Affinities      []affinityView `json:"affinities"`
}

type affinityView struct {
	Facet    string             `json:"facet"`
	Operator string             `json:"operator"`
	Value    string             `json:"value"`
	Score    float64            `json:"score"`
	Scores   map[string]float64 `json:"scores,omitempty"`
}

// render is a profile as it is answered: at most limit affinities, `score` and
// order by the half-life of that many days, or by the strategy's first.
func render(user string, r profile.Result, limit, days int) (profileView, error) {
	at := 0
	if days != 0 {
		if at = slices.Index(r.HalfLives, days); at < 0 {
			return profileView{}, httpapi.Errorf(http.StatusUnprocessableEntity,
				"halfLife must be one of the strategy's halfLives: %s", listDays(r.HalfLives))
		}
	}
	if at > 0 {
		slices.SortStableFunc(r.Affinities, func(a, b affinity.Affinity) int {
			switch {
			case a.Scores[at] > b.Scores[at]:
				return -1
			case a.Scores[at] < b.Scores[at]:
				return 1
			}
			return strings.Compare(a.Facet+"\x00"+a.Value, b.Facet+"\x00"+b.Value)
		})
	}
	list := r.Affinities[:min(limit, len(r.Affinities))]
	view := profileView{
		UserToken: user, LastEventAt: rfc3339(r.LastEventAt), AsOf: rfc3339(r.Anchor),
		StrategyVersion: r.StrategyVersion, Source: "computed", Total: r.Total,
		Affinities: make([]affinityView, len(list)),
	}
	if r.Stored {
		view.Source = "stored"
	}
	for i, a := range list {
		view.Affinities[i] = affinityView{Facet: a.Facet, Operator: event.Operator, Value: a.Value, Score: a.Scores[at]}
		if len(r.HalfLives) > 0 {
			scores := make(map[string]float64, len(a.Scores))
			for j, d := range r.HalfLives {
				scores[strconv.Itoa(d)] = a.Scores[j]
			}
			view.Affinities[i].Scores = scores
		}
	}
	return view, nil
}

func listDays(days []int) string {
	if len(days) == 0 {
		return "it has none"
	}
	text := make([]string, len(days))
	for i, d := range days {
		text[i] = strconv.Itoa(d)
	}
	return strings.Join(text, ", ")
}

func rfc3339(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
