package recomputes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/migration"
	"github.com/affinityengine/affinity/shared/schema"
)

// mountSchema takes the requests that move the app's log between schemas. All
// answer with how far the move is.
func (h handler) mountSchema(rt *httpapi.Router) {
	rt.Handle("GET /1/schema", h.getSchema)
	rt.Handle("POST /1/schema/start", schemaStep(h, decodeTo, h.Moves.Start))
	rt.Handle("POST /1/schema/backfill", schemaStep(h, decodeRate, h.Moves.Backfill))
	rt.Handle("POST /1/schema/verify", schemaStep(h, decodeNothing, alone(h.Moves.Verify)))
	rt.Handle("POST /1/schema/cutover", schemaStep(h, decodeNothing, alone(h.Moves.Cutover)))
	rt.Handle("POST /1/schema/rollback", schemaStep(h, decodeNothing, alone(h.Moves.Rollback)))
	rt.Handle("POST /1/schema/drop", schemaStep(h, decodeDropped, h.Moves.Drop))
}

func renderSchema(s migration.Status) api.Schema {
	v := api.Schema{
		Read: string(s.Log.Read), Encoding: string(s.Log.Encoding), Next: s.Next,
		SettlesInMs: int64((s.Propagation + time.Millisecond - 1) / time.Millisecond), // 0 only once it is in force
	}
	for _, n := range schema.Names {
		if s.Log.Writes(n) {
			v.Written = append(v.Written, string(n))
		}
	}
	if s.Move != (config.Move{}) {
		v.Move = &api.Migration{
			ID: s.Move.ID, From: string(s.Move.From), To: string(s.Move.To), Phase: string(s.Move.Phase), StartedAt: api.At(s.Move.StartedAt),
			Moving: s.Active(), Job: renderMoveJob(s),
		}
	}
	return v
}

func renderMoveJob(s migration.Status) *api.MigrationJob {
	if s.Job == nil {
		return nil
	}
	j := s.Job
	v := &api.MigrationJob{
		ID: j.ID, Kind: j.Kind, State: api.JobState(j.State), Shards: shards(*j),
		Users: j.Totals.Visited, PlannedUsers: j.Totals.PlannedUsers,
		Rows: j.Totals.Events, Changed: j.Totals.Changed, Faulty: j.Totals.Faulty, Faults: append([]string{}, s.Faults...),
		StartedAt: api.At(j.StartedAt), FinishedAt: finished(*j), Error: j.Error,
	}
	if j.ID == s.Move.Backfill {
		rate := job.ParamsOf[migration.Params](*j).Rate
		v.Rate = &rate
	}
	return v
}

func (h handler) getSchema(w http.ResponseWriter, r *http.Request) error {
	app, err := h.Auth.Tenant(r, auth.Admin)
	if err != nil {
		return err
	}
	s, err := h.Moves.Status(r.Context(), app.ID)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, renderSchema(s))
}

// schemaStep takes a step with what its body says.
func schemaStep[T any](h handler, decode func([]byte) (T, error), take func(context.Context, string, T) (migration.Status, error)) httpapi.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		app, err := h.Auth.Tenant(r, auth.Admin)
		if err != nil {
			return err
		}
		body, err := httpapi.ReadBody(w, r, api.MaxAdminBody)
		if err != nil {
			return err
		}
		order, err := decode(body)
		if err != nil {
			return err
		}
		s, err := take(r.Context(), app.ID, order)
		var early *migration.OutOfOrder
		if errors.As(err, &early) {
			return httpapi.Errorf(http.StatusConflict, "%s", early.Message)
		}
		if err != nil {
			return err
		}
		return httpapi.WriteJSON(w, http.StatusOK, renderSchema(s))
	}
}

// alone makes a step that is told nothing one that is told.
func alone(take func(context.Context, string) (migration.Status, error)) func(context.Context, string, struct{}) (migration.Status, error) {
	return func(ctx context.Context, app string, _ struct{}) (migration.Status, error) { return take(ctx, app) }
}

// decodeTo reads {"to":"wide"}.
func decodeTo(body []byte) (schema.Name, error) {
	var order api.SchemaStartRequest
	err := decodeStep(body, &order, "an object of no other key than to, the schema to move to")
	if err != nil {
		return "", err
	}
	return parseSchema("to", order.To)
}

// decodeDropped reads {"schema":"narrow"}.
func decodeDropped(body []byte) (schema.Name, error) {
	var order api.SchemaDropRequest
	err := decodeStep(body, &order, "an object of no other key than schema, the one to be dropped")
	if err != nil {
		return "", err
	}
	return parseSchema("schema", order.Schema)
}

func parseSchema(key, text string) (schema.Name, error) {
	n, err := schema.Parse(text)
	if err != nil {
		return "", httpapi.Errorf(http.StatusUnprocessableEntity, "%s: %v", key, err)
	}
	return n, nil
}

// decodeRate reads {"rate":5000} or nothing at all.
func decodeRate(body []byte) (int, error) {
	var order api.SchemaBackfillRequest
	err := decodeStep(body, &order, "empty or an object of no other key than rate, an integer")
	switch {
	case err != nil:
		return 0, err
	case order.Rate == nil:
		return api.DefaultBackfillRate, nil
	case *order.Rate < 0 || *order.Rate > api.MaxBackfillRate:
		return 0, httpapi.Errorf(http.StatusUnprocessableEntity, "rate must be an integer from 0, no limit, to %d rows a second", api.MaxBackfillRate)
	}
	return *order.Rate, nil
}

// decodeNothing reads {} or nothing at all.
func decodeNothing(body []byte) (struct{}, error) {
	var none struct{}
	return none, decodeStep(body, &none, "empty or an object without keys")
}

// decodeStep reads an object, or nothing at all; want says what the body must be.
func decodeStep(body []byte, order any, want string) error {
	if body = bytes.TrimSpace(body); len(body) == 0 {
		return nil
	}
	if !json.Valid(body) {
		return httpapi.Errorf(http.StatusBadRequest, "Bad Request: the body is no JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(order); err != nil || body[0] != '{' {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "The body must be %s", want)
	}
	return nil
}
