package client_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// startEngine starts a whole engine and returns a client of it.
func startEngine(t *testing.T) (*stack.Stack, *client.Client) {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Options{Apps: []stack.App{{ID: "shop", Key: "s3cret"}}, ConfigTTL: time.Millisecond})
	must.Succeed(t, err)
	must.CloseAtEnd(t, s)
	return s, newClient(t, client.Config{URL: s.URL})
}

// check returns an answer, and fails the test if there is an error.
func check[T any](t *testing.T) func(answer T, err error) T {
	return func(answer T, err error) T {
		t.Helper()
		must.Succeed(t, err)
		return answer
	}
}

// wantStatus checks that a request was refused.
func wantStatus(t *testing.T, err error, status int) {
	t.Helper()
	var refused *api.Error
	if !errors.As(err, &refused) || refused.Status != status {
		t.Errorf("error %v, want status %d", err, status)
	}
}

func idle(t *testing.T, s *stack.Stack) {
	t.Helper()
	must.Succeed(t, s.Idle(t.Context()))
}

// await polls until a job has ended, and fails the test after a minute.
func await[T any](t *testing.T, look func() (T, error), state func(T) api.JobState) T {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		job := check[T](t)(look())
		if state(job).Ended() {
			return job
		}
		select {
		case <-deadline:
			t.Fatalf("not ended after a minute: %+v", job)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestEngineServesUsers(t *testing.T) {
	s, c := startEngine(t)
	ctx := t.Context()
	if h := check[api.Health](t)(c.Health(ctx)); h.Version != api.Version {
		t.Errorf("health %+v", h)
	}
	strategy := api.Strategy{
		EventsScoring: []api.EventScore{{EventName: "Viewed", EventType: api.EventView, Score: 2}},
		FacetsScoring: []api.FacetScore{{FacetName: "color", Score: 50}},
	}
	must.Succeed(t, c.Strategies().Set(ctx, strategy))
	if got := check[api.Strategy](t)(c.Strategies().Get(ctx)); !got.Equal(strategy) {
		t.Errorf("strategy %+v", got)
	}
	wantStatus(t, c.Strategies().SetJSON(ctx, json.RawMessage(`{"eventScoring":[]}`), client.SetOptions{}), 422)
	next := json.RawMessage(`{"eventsScoring":[{"eventName":"Viewed","eventType":"view","score":2}],"facetsScoring":[{"facetName":"color","score":50}],"personalizationImpact":1}`)
	wantStatus(t, c.Strategies().SetJSON(ctx, next, client.SetOptions{Note: "why", If: new(int64(0))}), 409)
	if err := c.Strategies().SetJSON(ctx, next, client.SetOptions{Note: "why", If: new(int64(1))}); err != nil {
		t.Error(err)
	}
	wantStatus(t, c.Strategies().Restore(ctx, 1, new(int64(1))), 409)
	if err := c.Strategies().Restore(ctx, 1, new(int64(2))); err != nil {
		t.Error(err)
	}

	put := api.BatchAction{Action: api.ActionAddObject, Body: json.RawMessage(`{"objectID":"1","color":"Red"}`)}
	if a := check[api.BatchAnswer](t)(c.Catalog().Batch(ctx, "shoes", put)); len(a.ObjectIDs) != 1 || a.ObjectIDs[0] != "1" {
		t.Errorf("batch %+v", a)
	}
	if o := check[json.RawMessage](t)(c.Catalog().Get(ctx, "shoes", "1")); string(o) != `{"objectID":"1","color":"Red"}` {
		t.Errorf("object %s", o)
	}
	for filter, want := range map[string]int{"color:Red": 1, "color:Blue": 0, "": 1} {
		if o := check[api.Objects](t)(c.Catalog().List(ctx, "shoes", api.ObjectsQuery{Filter: filter, Limit: 1, Cursor: "0"})); len(o.ObjectIDs) != want || o.Cursor != "" {
			t.Errorf("objects with %q: %+v", filter, o)
		}
	}
	view := api.Event{EventType: api.EventView, EventName: "Viewed", Index: "shoes", UserToken: "ann", ObjectIDs: []string{"1"}}
	view.Timestamp = time.Now().Add(-time.Hour).UnixMilli()
	must.Succeed(t, c.Events().Send(ctx, view))
	line, err := json.Marshal(view)
	must.Succeed(t, err)
	if a := check[api.ImportAnswer](t)(c.Events().ImportAll(ctx, "shoes", strings.NewReader(string(line)+"\n{}\n"))); a.Accepted != 1 || len(a.Refused) != 1 {
		t.Errorf("import %+v", a)
	}
	wantStatus(t, c.Events().Send(ctx, api.Event{}), 422)
	if a := check[api.RefusedEvents](t)(c.Events().Refused(ctx)); len(a.Refused) != 1 || a.Refused[0].Sequence < 1 {
		t.Errorf("refused events %+v", a)
	}
	idle(t, s)

	p := check[api.Profile](t)(c.Profiles().Get(ctx, "ann", api.ProfileQuery{Limit: 5}))
	if len(p.Affinities) != 1 || p.Affinities[0].Value != "Red" || p.Affinities[0].Score != 100 || p.LastEventAt.UnixMilli() != view.Timestamp {
		t.Errorf("profile %+v", p)
	}
	limit := 1
	many := check[api.Profiles](t)(c.Profiles().List(ctx, api.ProfilesRequest{UserTokens: []string{"bob", "ann"}, Limit: &limit}))
	if len(many.Profiles) != 1 || len(many.NotFound) != 1 {
		t.Errorf("profiles %+v", many)
	}
	none, half := 0, 50
	for user, want := range map[string]int{"ann": 1, "nobody": 0} {
		b := check[api.Boost](t)(c.Boost(ctx, user, api.BoostQuery{Engine: "algolia", Impact: &half, Limit: 5, Fields: []string{"color"}, FieldMap: map[string]string{"color": "c"}}))
		if b.UserToken != user || b.Engine != "algolia" || len(b.Affinities) != want || (len(b.Query) > 0) != (want > 0) {
			t.Errorf("boost %+v", b)
		}
	}
	if b := check[api.Boost](t)(c.Boost(ctx, "ann", api.BoostQuery{Engine: "elasticsearch", Mode: "rescore", Impact: &none, Consistency: "strong"})); b.Mode != "rescore" || len(b.Query) != 0 {
		t.Errorf("boost %+v", b)
	}
	_, none404 := c.Feeds().Page(ctx, "news", api.OrderSuggested, api.FeedQuery{User: "ann", Limit: 5, Cursor: "AAAA", Format: api.FormatIDs})
	wantStatus(t, none404, 404)
	_, refused := c.Boost(ctx, "ann", api.BoostQuery{Engine: "sphinx"})
	wantStatus(t, refused, 422)
	if a := check[api.PersonalizationProfile](t)(c.Profiles().Personalization(ctx, "ann")); a.Scores["color"]["Red"] != 20 {
		t.Errorf("personalization profile %+v", a)
	}
	x := check[api.Explanation](t)(c.Profiles().Explain(ctx, "ann", api.ExplainQuery{Facet: "color", Value: "Red", Limit: 3}))
	if !x.Known || x.ScoreExplanation == nil || x.Score != 100 || len(x.Contributions) != 1 || x.Contributions[0].ContributedEvent.Name != "Viewed" {
		t.Errorf("explanation %+v", x)
	}
	raw, err := json.Marshal(strategy)
	must.Succeed(t, err)
	preview := check[api.Preview](t)(c.Strategies().Preview(ctx, api.PreviewRequest{Strategy: raw, UserTokens: []string{"ann"}}))
	if preview.Known != 1 || preview.Unchanged != 1 {
		t.Errorf("preview %+v", preview)
	}
	if d := check[api.DeletedUser](t)(c.Profiles().Delete(ctx, "ann")); d.DeletedUntil.Before(p.LastEventAt.Time) {
		t.Errorf("deleted user %+v", d)
	}
	if err := c.Profiles().DeleteToken(ctx, "ann"); err != nil {
		t.Error(err)
	}
	if o := check[api.OptOut](t)(c.Profiles().OptOut(ctx, "bob", api.OptOutRequest{EventTypes: []event.Type{event.Click}})); !o.OptedOut || len(o.EventTypes) != 1 || o.DeletedUntil == nil {
		t.Errorf("opt-out %+v", o)
	}
	if o := check[api.OptOut](t)(c.Profiles().OptOut(ctx, "bob", api.OptOutRequest{})); len(o.EventTypes) != 3 {
		t.Errorf("opt-out %+v", o)
	}
	if o := check[api.OptOut](t)(c.Profiles().OptedOut(ctx, "bob")); len(o.EventTypes) != 3 {
		t.Errorf("opt-out %+v", o)
	}
	if o := check[api.OptOut](t)(c.Profiles().OptIn(ctx, "bob")); o.OptedOut || len(o.EventTypes) != 0 {
		t.Errorf("opt-out %+v", o)
	}
	_, err = c.Profiles().Get(ctx, "ann", api.ProfileQuery{})
	wantStatus(t, err, 404)
}

func TestEngineServesTheCatalog(t *testing.T) {
	_, c := startEngine(t)
	ctx := t.Context()
	if got := check[api.Settings](t)(c.Catalog().Settings(ctx, "shoes")); got.AttributesForFaceting != nil {
		t.Errorf("settings that were never set: %+v", got)
	}
	set := check[api.SettingsAnswer](t)(c.Catalog().SetSettings(ctx, "shoes", api.Settings{AttributesForFaceting: []string{"color"}}))
	if set.UpdatedAt.IsZero() {
		t.Errorf("settings %+v", set)
	}
	if got := check[api.Settings](t)(c.Catalog().Settings(ctx, "shoes")); len(got.AttributesForFaceting) != 1 {
		t.Errorf("settings %+v", got)
	}
	if task := check[api.TaskAnswer](t)(c.Catalog().Task(ctx, "shoes", set.TaskID)); task.PendingTask || task.Status != "published" {
		t.Errorf("task %+v", task)
	}
	if d := check[api.DeletedObject](t)(c.Catalog().Delete(ctx, "shoes", "1")); d.DeletedAt.IsZero() {
		t.Errorf("deleted object %+v", d)
	}
	_, err := c.Catalog().Get(ctx, "shoes", "1")
	wantStatus(t, err, 404)
}

func TestEngineServesOperators(t *testing.T) {
	_, c := startEngine(t)
	ctx := t.Context()
	started := check[api.Recompute](t)(c.Jobs().StartRecompute(ctx, api.RecomputeRequest{OnlyStale: true}))
	if started.Trigger != api.TriggerManual || !started.OnlyStale || started.State.Ended() {
		t.Errorf("recompute %+v", started)
	}
	ended := await(t, func() (api.Recompute, error) { return c.Jobs().Recompute(ctx, started.ID) }, func(r api.Recompute) api.JobState { return r.State })
	if ended.State != api.JobDone || ended.FinishedAt == nil {
		t.Errorf("recompute %+v", ended)
	}
	if list := check[api.Recomputes](t)(c.Jobs().Recomputes(ctx)); len(list.Recomputes) != 1 {
		t.Errorf("recomputes %+v", list)
	}
	_, err := c.Jobs().CancelRecompute(ctx, started.ID)
	wantStatus(t, err, 409)

	dry := check[api.Reenrichment](t)(c.Jobs().StartReenrichment(ctx, api.ReenrichRequest{DryRun: true}))
	dry = await(t, func() (api.Reenrichment, error) { return c.Jobs().Reenrichment(ctx, dry.ID) }, func(r api.Reenrichment) api.JobState { return r.State })
	if dry.State != api.JobDone || !dry.DryRun {
		t.Errorf("re-enrichment %+v", dry)
	}
	if list := check[api.Reenrichments](t)(c.Jobs().Reenrichments(ctx)); len(list.Reenrichments) != 1 {
		t.Errorf("re-enrichments %+v", list)
	}
	_, err = c.Jobs().CancelReenrichment(ctx, "none")
	wantStatus(t, err, 404)

	sample := 10
	if a := check[api.Audit](t)(c.Jobs().Audit(ctx, api.AuditRequest{Sample: &sample})); a.Differing != 0 || a.Differences == nil {
		t.Errorf("audit %+v", a)
	}
}

func TestEngineMigrates(t *testing.T) {
	_, c := startEngine(t)
	ctx := t.Context()
	before := check[api.Schema](t)(c.Schema().Get(ctx))
	if before.Read != api.SchemaWide || before.Migration != nil {
		t.Fatalf("schema %+v", before)
	}
	_, err := c.Schema().Verify(ctx)
	wantStatus(t, err, 409)
	rate := 0
	steps := []struct {
		phase string
		take  func() (api.Schema, error)
	}{
		{"dual", func() (api.Schema, error) { return c.Schema().Start(ctx, api.SchemaStartRequest{To: api.SchemaNarrow}) }},
		{"backfill", func() (api.Schema, error) { return c.Schema().Backfill(ctx, api.SchemaBackfillRequest{Rate: &rate}) }},
		{"verify", func() (api.Schema, error) { return c.Schema().Verify(ctx) }},
		{"cutover", func() (api.Schema, error) { return c.Schema().Cutover(ctx) }},
		{"drop", func() (api.Schema, error) { return c.Schema().Drop(ctx, api.SchemaDropRequest{Schema: api.SchemaWide}) }},
	}
	for _, step := range steps {
		a := check[api.Schema](t)(step.take())
		if a.Migration == nil || a.Migration.Phase != step.phase {
			t.Fatalf("after %s: %+v", step.phase, a)
		}
		await(t, func() (api.Schema, error) { return c.Schema().Get(ctx) }, func(a api.Schema) api.JobState {
			if a.SettlesInMs > 0 {
				return api.JobRunning
			}
			if a.Migration.Job == nil {
				return api.JobDone
			}
			return a.Migration.Job.State
		})
	}
	after := check[api.Schema](t)(c.Schema().Get(ctx))
	if after.Read != api.SchemaNarrow || after.Migration.Moving || after.Migration.Job.State != api.JobDone {
		t.Errorf("schema %+v, move %+v, job %+v", after, after.Migration, after.Migration.Job)
	}
	_, err = c.Schema().Rollback(ctx)
	wantStatus(t, err, 409)
}
