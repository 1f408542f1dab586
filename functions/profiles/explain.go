package profiles

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/explain"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/store"
)

// Contributions that are told one by one, beyond which the oldest are one sum:
// where the request says nothing, and whatever it says, since they are held in
// memory.
const (
	defaultContributions = 1000
	maxContributions     = 10_000
)

// explain answers why a profile is as it is, or empty. It reads the user's whole
// log, and no block or stored score.
func (p profiles) explain(w http.ResponseWriter, r *http.Request) error {
	app, user, err := p.user(r, auth.Recommendation)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	q := explain.Question{Facet: query.Get("facet"), Value: query.Get("value")}
	if (q.Facet == "") != (q.Value == "") || query.Has("facet") != query.Has("value") || query.Has("facet") && q.Facet == "" {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "facet and value must be given both, and not be empty, or neither")
	}
	if q.Limit, err = positive(r, "limit", defaultContributions); err != nil {
		return err
	}
	q.Limit = min(q.Limit, maxContributions)
	if err := p.window(r.Context(), app, user, &q); err != nil {
		return fmt.Errorf("explain profile: %w", err)
	}
	x := explain.New(q)
	err = p.Store.Log(app.ID, app.Log).ReadOriginals(r.Context(), []store.UserRange{{User: user, To: history.End}},
		func(_ string, row store.LogRow, original []byte) error {
			e, err := row.Event()
			if err == nil {
				x.Add(e, original)
			}
			return err
		})
	if err == nil {
		err = p.Profiles.CheckSchema(r.Context(), app)
	}
	if err != nil {
		return fmt.Errorf("explain profile: %w", err)
	}
	return httpapi.WriteJSON(w, http.StatusOK, renderExplanation(user, q, x.Answer()))
}

// window settles under which configuration and as of when a user is explained:
// those a read would be answered under now. What was stored by a machine whose
// clock is ahead is answered as of its own time.
func (p profiles) window(ctx context.Context, app config.App, user string, q *explain.Question) error {
	row, err := p.Store.ReadUser(ctx, app.ID, user)
	if err != nil {
		return err
	}
	if row.Version > app.StrategyVersion {
		if app, err = p.Apps.App(ctx, app.ID); err != nil {
			return fmt.Errorf("read configuration of %s: %w", app.ID, err)
		}
	}
	q.Strategy, q.StrategyVersion = app.Strategy, app.StrategyVersion
	q.Window = affinity.Window{Now: p.Now().UnixMilli(), RetentionDays: app.RetentionDays, DeletedUntil: row.DeletedUntil}
	if len(row.Profile) == 0 {
		return nil
	}
	stored, err := affinity.ParseProfile(row.Profile, 1)
	if err != nil {
		return nil // a damaged profile is not served
	}
	served := stored.StrategyVersion == app.StrategyVersion && stored.RetentionDays == app.RetentionDays && stored.Anchor < stored.Until
	if served && stored.DeletedUntil == row.DeletedUntil {
		q.Window.Now = max(q.Window.Now, stored.Anchor)
	}
	return nil
}

type explanationView struct {
	UserToken       string         `json:"userToken"`
	AsOf            string         `json:"asOf"`
	Known           bool           `json:"known"`
	StrategyVersion int64          `json:"strategyVersion"`
	RetentionDays   int            `json:"retentionDays"`
	DeletedUntil    string         `json:"deletedUntil,omitempty"`
	Events          explain.Events `json:"events"`
	FirstEventAt    *string        `json:"firstEventAt"`
	LastEventAt     *string        `json:"lastEventAt"`
	Reasons         []string       `json:"reasons"`
	*scoreView
}

type scoreView struct {
	Facet         string             `json:"facet"`
	Value         string             `json:"value"`
	Score         float64            `json:"score"`
	Scores        map[string]float64 `json:"scores,omitempty"`
	Contributions []any              `json:"contributions"` // earlierView at first, if any, then contributionView
}

// earlierView sums up contributions that are too many to tell.
type earlierView struct {
	Events        int                `json:"events"`
	From          string             `json:"from"`
	To            string             `json:"to"`
	Contribution  float64            `json:"contribution"`
	Contributions map[string]float64 `json:"contributions,omitempty"`
}

type contributionView struct {
	Time          string             `json:"time"`
	Type          string             `json:"type"`
	Name          string             `json:"name"`
	Index         string             `json:"index"`
	ObjectIDs     []string           `json:"objectIDs,omitempty"`
	QueryID       string             `json:"queryID,omitempty"`
	Values        []string           `json:"values,omitempty"`
	EventScore    int                `json:"eventScore"`
	FacetScore    int                `json:"facetScore"`
	Weight        int                `json:"weight"`
	Count         int                `json:"count"`
	AgeDays       float64            `json:"ageDays"`
	Decay         float64            `json:"decay"`
	Contribution  float64            `json:"contribution"`
	Contributions map[string]float64 `json:"contributions,omitempty"`
}

func renderExplanation(user string, q explain.Question, a explain.Answer) explanationView {
	view := explanationView{
		UserToken: user, AsOf: rfc3339(q.Window.Now), Known: a.Known, StrategyVersion: q.StrategyVersion,
		RetentionDays: q.Window.RetentionDays, Events: a.Events, Reasons: a.Reasons,
	}
	if q.Window.DeletedUntil != 0 {
		view.DeletedUntil = rfc3339(q.Window.DeletedUntil)
	}
	if a.Events.Accepted > 0 {
		first, last := rfc3339(a.First), rfc3339(a.Last)
		view.FirstEventAt, view.LastEventAt = &first, &last
	}
	if a.Score != nil {
		view.scoreView = renderScore(q, *a.Score)
	}
	return view
}

func renderScore(q explain.Question, s explain.Score) *scoreView {
	days := q.Strategy.HalfLives
	view := &scoreView{
		Facet: q.Facet, Value: q.Value, Score: s.Scores[0], Scores: byHalfLife(days, s.Scores), Contributions: make([]any, len(s.Contributions)),
	}
	for i, c := range s.Contributions {
		if c.Events > 0 {
			view.Contributions[i] = earlierView{c.Events, rfc3339(c.Time), rfc3339(c.Until), c.Scores[0], byHalfLife(days, c.Scores)}
			continue
		}
		view.Contributions[i] = contributionView{
			Time: rfc3339(c.Time), Type: c.Type, Name: c.Name, Index: c.Index, ObjectIDs: c.ObjectIDs, QueryID: c.QueryID, Values: c.Values,
			EventScore: c.EventScore, FacetScore: c.FacetScore, Weight: c.Weight(), Count: c.Count,
			AgeDays: float64(c.Age) / (24 * 3_600_000), Decay: c.Decay, Contribution: c.Scores[0], Contributions: byHalfLife(days, c.Scores),
		}
	}
	return view
}

// byHalfLife names scores by their half-lives; nil where there is none.
func byHalfLife(days []int, scores []float64) map[string]float64 {
	if len(days) == 0 {
		return nil
	}
	named := make(map[string]float64, len(days))
	for i, d := range days {
		named[strconv.Itoa(d)] = scores[i]
	}
	return named
}
