package console

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

func init() {
	pages = append(pages, page{pattern: "GET /console/users/{token}/why", section: "users", template: "userwhy",
		fragment: "why-fragment", load: ofUser(loadWhy)})
}

const (
	// whyShown is how many events an explanation below a bar lists, and whyListed how many
	// that on a page of its own.
	whyShown  = 8
	whyListed = 200
	// whyRead is how many events a chart is made of.
	whyRead = api.DefaultContributions
	// maxCommand is how many bytes a value may have for a command line that people read.
	maxCommand = 300
)

// why explains one score down to the events.
type why struct {
	Token, Path  string
	Facet, Value string
	Now          time.Time
	Score        float64
	HalfLife     string // by which the score decays; empty: it does not
	Events       int
	Rows         []whyRow
	// Earlier adds up the events before those of the rows; nil: there are none.
	Earlier *earlier
	// More is the page with more events, if they do not fit.
	More  string
	Chart *chart
}

// whyRow is what an event adds.
type whyRow struct {
	api.ContributedEvent
	Decay, Adds float64
}

type earlier struct {
	Events   int
	From, To time.Time
	Adds     float64
}

func loadWhy(v *visit, token string) (any, error) {
	query := v.URL.Query()
	facet, value, halfLife := query.Get("facet"), query.Get("value"), query.Get("halfLife")
	v.title = "Why " + shown(value)
	if len(facet)+len(value) <= maxCommand {
		v.command = "affinity explain --facet=" + shellArg(facet) + " --value=" + shellArg(value) + " " + userArg(token)
	}
	x, err := v.engine.Profiles().Explain(v.Context(), token, api.ExplainQuery{Facet: facet, Value: value, Limit: whyRead})
	if err != nil {
		return nil, fmt.Errorf("explain a score: %w", err)
	}
	listed := whyListed
	if v.Header.Get("Hx-Request") != "" {
		listed = whyShown
	}
	return newWhy(x, userPath(token, ""), halfLife, listed), nil
}

// newWhy returns an explanation whose rows are the newest events.
func newWhy(x api.Explanation, path, halfLife string, listed int) why {
	w := why{Token: x.UserToken, Path: path, Now: x.AsOf.Time}
	if x.ScoreExplanation == nil {
		return w
	}
	w.Facet, w.Value, w.Score, w.HalfLife = x.Facet, x.Value, x.Score, halfLife
	if chosen, ok := x.Scores[halfLife]; ok {
		w.Score = chosen
	} else {
		w.HalfLife = keyOf(x.Scores, x.Score)
	}
	rest := len(x.Contributions) - listed
	for i, c := range x.Contributions {
		adds := c.Contribution
		if chosen, ok := c.Contributions[halfLife]; ok {
			adds = chosen
		}
		if c.EarlierEvents != nil {
			w.addEarlier(c.Events, c.From.Time, c.To.Time, adds)
			continue
		}
		w.Events++
		if i < rest {
			w.addEarlier(1, c.Time.Time, c.Time.Time, adds)
			continue
		}
		decay := c.Decay
		if full := float64(c.Weight * c.Count); full > 0 {
			decay = adds / full
		}
		w.Rows = append(w.Rows, whyRow{*c.ContributedEvent, decay, adds})
	}
	if w.Earlier != nil {
		w.Events = len(w.Rows) + w.Earlier.Events
		if listed < whyListed {
			w.More = path + "/why?" + withHalfLife(url.Values{"facet": {w.Facet}, "value": {w.Value}}, halfLife).Encode()
		}
	}
	slices.Reverse(w.Rows)
	w.Chart = whyChart(x, halfLife)
	return w
}

func (w *why) addEarlier(events int, from, to time.Time, adds float64) {
	if w.Earlier == nil {
		w.Earlier = &earlier{From: from}
	}
	w.Earlier.Events += events
	w.Earlier.To = to
	w.Earlier.Adds += adds
}

// keyOf returns the half-life that a score is of: that of the only equal one.
func keyOf(scores map[string]float64, score float64) string {
	found := ""
	for name, of := range scores {
		if of == score && found != "" {
			return ""
		}
		if of == score {
			found = name
		}
	}
	return found
}

// whyChart draws what the events of each day add to a score.
func whyChart(x api.Explanation, halfLife string) *chart {
	var points []point
	for _, c := range x.Contributions {
		if c.ContributedEvent == nil {
			continue
		}
		adds := c.Contribution
		if chosen, ok := c.Contributions[halfLife]; ok {
			adds = chosen
		}
		points = append(points, point{c.Time.Time, c.Type, adds})
	}
	drawn := newChart(points, x.AsOf.Time, nil, score)
	if drawn != nil {
		drawn.Caption = "What the events of each day add to the score now"
	}
	return drawn
}
