package profiles

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/explain"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// explain says why a profile has its scores, or why it is empty. It computes
// the answer from all log events of the user, without blocks and the stored
// profile.
func (h handler) explain(w http.ResponseWriter, r *http.Request, app config.App, user string) error {
	query := r.URL.Query()
	q := explain.Question{Facet: query.Get("facet"), Value: query.Get("value")}
	if (q.Facet == "") != (q.Value == "") || query.Has("facet") != query.Has("value") ||
		query.Has("facet") && q.Facet == "" {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "facet and value must be given together and must not be empty")
	}
	limited, err := positive(r, "limit", api.DefaultContributions)
	if err != nil {
		return err
	}
	q.Limit = min(limited, api.MaxContributions)
	h.Usage.Reads(app.ID, 1)
	leave, err := h.Limits.Enter(app.ID, limit.Explain)
	if err != nil {
		return err
	}
	defer leave()
	of := explained{app: app}
	of.holder, err = h.Profiles.StoreOf(r.Context(), app, user)
	if err == nil {
		err = h.window(r.Context(), &of, user, &q)
	}
	if err != nil {
		return fmt.Errorf("explain profile: %w", err)
	}
	x := explain.New(q)
	if err := h.addAll(r.Context(), of, x, q.Facet); err != nil {
		return fmt.Errorf("explain profile: %w", err)
	}
	holders, err := h.holders(r.Context(), app.ID, x.Unknown())
	if err != nil {
		return fmt.Errorf("explain profile: %w", err)
	}
	return httpapi.WriteJSON(w, http.StatusOK, renderExplanation(user, q, x.Answer(holders)))
}

// explained is the user of an explanation.
type explained struct {
	app    config.App
	holder *store.Store
	row    store.User
	person profile.Person
}

// read calls fn for the events of the user within a range, and for those of other tokens that count for them.
func (e *explained) read(ctx context.Context, within history.Range,
	fn func(token string, row store.LogRow, original []byte) error) error {
	return e.person.ReadOriginals(ctx, e.holder.Events.Log(e.app.ID, e.app.Log), within, fn)
}

// addAll adds all events of the user to an explanation of a facet.
func (h handler) addAll(ctx context.Context, of explained, x *explain.Explanation, facet string) error {
	if err := admission.Take(ctx, explainBytes*int64(1+len(of.person.Others))); err != nil {
		return err
	}
	held, rows := 0, 0
	err := of.read(ctx, history.Range{To: history.End}, func(token string, row store.LogRow, original []byte) error {
		if rows++; rows == heavyRows {
			if err := admission.AwaitTurn(ctx, admission.TurnWait); err != nil {
				return err
			}
		}
		e, err := row.Event()
		if err == nil {
			l := explain.Logged{Event: e, Receipt: row.Receipt(), Original: original}
			if token != of.person.User {
				l.Token = token
			} else {
				l.Deleted = of.person.Dropped(row)
			}
			l.Counts, _ = of.person.Counts(token, e, l.Receipt)
			l.Purposes = of.person.Purposes(token, e, facet, l.Receipt)
			x.Add(l)
		}
		for ; err == nil && x.Held() > held; held += heldStep {
			err = admission.Take(ctx, heldWeight*heldStep)
		}
		return err
	})
	if err == nil {
		err = h.Profiles.CheckSchema(ctx, of.app)
	}
	return err
}

// maxHolders is in how many indexes an explanation looks for objects that the log calls unknown.
const maxHolders = 20

// holders returns the indexes whose catalog holds each object now: its own, and others that an
// event may have meant.
func (h handler) holders(ctx context.Context, app string,
	objects []explain.Object) (map[explain.Object][]string, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	indexes, err := h.Store.Catalog.FirstCatalogIndexes(ctx, app, maxHolders)
	if err != nil {
		return nil, err
	}
	held := map[store.ObjectRef]bool{}
	for _, o := range objects {
		for _, index := range append(indexes, o.Index) {
			held[store.ObjectRef{Index: index, ID: o.ID}] = false
		}
	}
	err = h.Store.Catalog.ScanFilters(ctx, app, slices.Collect(maps.Keys(held)),
		func(ref store.ObjectRef, _ store.ObjectFilters) error {
			held[ref] = true
			return nil
		})
	holders := map[explain.Object][]string{}
	for _, o := range objects {
		for _, index := range append(indexes, o.Index) {
			if held[store.ObjectRef{Index: index, ID: o.ID}] {
				holders[o] = append(holders[o], index)
			}
		}
	}
	return holders, err
}

const (
	// heavyRows is the number of events from which an explanation takes a turn.
	heavyRows = 1_000
	// explainBytes is what an explanation takes from the process's gate for each log that it
	// reads: the row of the log, and the names that it counts.
	explainBytes = 1 << 20
	// heldWeight is how many bytes it takes for each byte of the contributions that it
	// keeps, heldStep at a time: them, and the answer made of them.
	heldWeight = 4
	heldStep   = 64 << 10
)

// window reads who the user is, and sets the strategy and the instant of an explanation to those
// that a read of the profile has now. A stored profile of a machine whose clock is
// ahead is read as of its own time.
func (h handler) window(ctx context.Context, of *explained, user string, q *explain.Question) error {
	app := of.app
	row, err := of.holder.Users.ReadUser(ctx, app.ID, user)
	if err == nil {
		err = h.Profiles.Admit(ctx, row)
	}
	if err == nil {
		of.row = row
		of.person, err = profile.IdentitiesOf(h.Profiles).Person(ctx, app, user, row)
	}
	if err != nil {
		return err
	}
	if row.Version > app.StrategyVersion {
		if app, err = h.Config.App(ctx, app.ID); err != nil {
			return fmt.Errorf("read configuration of %s: %w", app.ID, err)
		}
	}
	q.Strategy, q.StrategyVersion = app.Strategy, app.StrategyVersion
	q.OptedOut = row.OptedOut
	q.Window = affinity.Window{
		RetentionDays: app.RetentionDays, DeletedUntil: row.DeletedUntil, ReceivedUntil: row.ReceivedUntil,
	}
	now := h.Now().UnixMilli()
	q.Window.Clock, q.Window.Ahead = now, h.Profiles.Reach().Milliseconds()
	latest := now + q.Window.Ahead
	if q.Window.Now, err = of.asOf(ctx, now, latest); err != nil || row.Gone() {
		return err
	}
	if len(row.Profile) == 0 {
		return nil
	}
	stored, err := affinity.ParseProfile(row.Profile, 1)
	if err != nil {
		return nil // a damaged profile is not served
	}
	served := app.ScoresAs(stored.StrategyVersion) && stored.RetentionDays == app.RetentionDays &&
		stored.Anchor < stored.Until && stored.Anchor <= latest
	if served && stored.Tombstone() == row.Tombstone() && stored.Marks == row.Marks {
		q.Window.Now = max(q.Window.Now, stored.Anchor)
		if stored.Truncated() && q.Window.Now < stored.Until {
			if stored, err = affinity.ParseProfile(row.Profile, 0); err != nil {
				return err
			}
			stored = stored.At(q.Window.Now)
			q.Profile = &stored
		}
	}
	return nil
}

// asOf returns the time (ms) of an explanation: now or, if one is later, the newest event
// that counts.
func (e *explained) asOf(ctx context.Context, now, latest int64) (int64, error) {
	later := history.Range{From: history.Pos{Time: now + 1}, To: history.Pos{Time: latest + 1}}
	err := e.read(ctx, later, func(token string, row store.LogRow, _ []byte) error {
		if token == e.person.User && (row.Excluded(e.row) || e.person.Dropped(row)) {
			return nil
		}
		now = max(now, row.Time)
		return nil
	})
	return now, err
}

func renderExplanation(user string, q explain.Question, a explain.Answer) api.Explanation {
	x := api.Explanation{
		UserToken: user, AsOf: api.AtMillis(q.Window.Now), Known: a.Known, StrategyVersion: q.StrategyVersion,
		RetentionDays: q.Window.RetentionDays, Events: api.ExplainedEvents(a.Events), Reasons: a.Reasons,
	}
	if q.Window.DeletedUntil != 0 {
		until := api.AtMillis(q.Window.ReceivedUntil) // as the deletion answered
		x.DeletedUntil = &until
	}
	if a.Events.Accepted > 0 {
		first, last := api.AtMillis(a.First), api.AtMillis(a.Last)
		x.FirstEventAt, x.LastEventAt = &first, &last
	}
	if a.Score != nil {
		x.ScoreExplanation = renderScore(q, *a.Score)
	}
	return x
}

func renderScore(q explain.Question, s explain.Score) *api.ScoreExplanation {
	halfLives := q.Strategy.HalfLives
	x := &api.ScoreExplanation{
		Facet: q.Facet, Value: q.Value, Score: s.Scores[0], Scores: byHalfLife(halfLives, s.Scores),
		Contributions: make([]api.Contribution, len(s.Contributions)),
	}
	for i, c := range s.Contributions {
		entry := api.Contribution{Contribution: c.Scores[0], Contributions: byHalfLife(halfLives, c.Scores)}
		if c.Events > 0 {
			entry.EarlierEvents = &api.EarlierEvents{Events: c.Events, From: api.AtMillis(c.Time), To: api.AtMillis(c.Until)}
		} else {
			entry.ContributedEvent = &api.ContributedEvent{
				UserToken: c.Token, Purposes: c.Purposes, Time: api.AtMillis(c.Time), Type: c.Type, Name: c.Name, Index: c.Index,
				ObjectIDs: c.ObjectIDs, QueryID: c.QueryID,
				Values: c.Values, EventScore: c.EventScore, FacetScore: c.FacetScore, Weight: c.Weight(), Count: c.Count,
				AgeDays: float64(c.Age) / (24 * 3_600_000), Decay: c.Decay,
			}
		}
		x.Contributions[i] = entry
	}
	return x
}

// byHalfLife maps half-lives, as the strategy writes them, to scores. It is nil without half-lives.
func byHalfLife(halfLives []strategy.HalfLife, scores []float64) map[string]float64 {
	if len(halfLives) == 0 {
		return nil
	}
	named := make(map[string]float64, len(halfLives))
	for i, h := range halfLives {
		named[h.String()] = scores[i]
	}
	return named
}
