package recomputes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/migration"
	"github.com/affinityengine/affinity/shared/schema"
)

// maxRate is more rows a second than any instance takes.
const maxRate = 1_000_000

// mountSchema takes the requests that move the app's log between schemas. All
// answer with how far the move is.
func (rc recomputes) mountSchema(rt *httpapi.Router) {
	rt.Handle("GET /1/schema", rc.getSchema)
	rt.Handle("POST /1/schema/start", schemaStep(rc, decodeTo, rc.Moves.Begin))
	rt.Handle("POST /1/schema/backfill", schemaStep(rc, decodeRate, rc.Moves.Backfill))
	rt.Handle("POST /1/schema/verify", schemaStep(rc, decodeNothing, alone(rc.Moves.Verify)))
	rt.Handle("POST /1/schema/cutover", schemaStep(rc, decodeNothing, alone(rc.Moves.Cutover)))
	rt.Handle("POST /1/schema/rollback", schemaStep(rc, decodeNothing, alone(rc.Moves.Rollback)))
	rt.Handle("POST /1/schema/drop", schemaStep(rc, decodeDropped, rc.Moves.Drop))
}

// schemaView is how an app's log lies, as it is answered.
type schemaView struct {
	Read     schema.Name     `json:"read"`
	Written  []schema.Name   `json:"written"`
	Encoding schema.Encoding `json:"encoding"`
	Move     *moveView       `json:"move"`
	// SettlesInMs is how long it is not in force everywhere yet.
	SettlesInMs int64    `json:"settlesInMs"`
	Next        []string `json:"next"`
}

// moveView is the last move of an app, under way or over.
type moveView struct {
	ID        string       `json:"id"`
	From      schema.Name  `json:"from"`
	To        schema.Name  `json:"to"`
	Phase     config.Phase `json:"phase"`
	StartedAt string       `json:"startedAt"`
	Moving    bool         `json:"moving"`
	Job       *moveJobView `json:"job"`
}

// moveJobView is the job of a move's phase.
type moveJobView struct {
	ID     string    `json:"id"`
	Kind   string    `json:"kind"`
	State  job.State `json:"state"`
	Shards shards    `json:"shards"`
	// Rate is how many rows a second a backfill copies at most, 0 for no limit.
	Rate         *int  `json:"rate,omitempty"`
	Users        int64 `json:"users"` // come to so far; a drop counts none
	PlannedUsers int64 `json:"plannedUsers"`
	// Rows were read; Changed of them were written or removed. Faulty ones could not
	// be copied, or were not the same in both schemas: Faults are the first.
	Rows       int64    `json:"rows"`
	Changed    int64    `json:"changed"`
	Faulty     int64    `json:"faulty"`
	Faults     []string `json:"faults"`
	StartedAt  string   `json:"startedAt"`
	FinishedAt *string  `json:"finishedAt"`
	Error      string   `json:"error,omitempty"`
}

func renderSchema(s migration.Status) schemaView {
	v := schemaView{
		Read: s.Log.Read, Encoding: s.Log.Encoding, Next: s.Next,
		SettlesInMs: int64((s.Settles + time.Millisecond - 1) / time.Millisecond), // 0 only once it is in force
	}
	for _, n := range schema.Names {
		if s.Log.Writes(n) {
			v.Written = append(v.Written, n)
		}
	}
	if s.Move != (config.Move{}) {
		v.Move = &moveView{
			ID: s.Move.ID, From: s.Move.From, To: s.Move.To, Phase: s.Move.Phase, StartedAt: rfc3339(s.Move.StartedAt),
			Moving: s.Moving(), Job: renderMoveJob(s),
		}
	}
	return v
}

func renderMoveJob(s migration.Status) *moveJobView {
	if s.Job == nil {
		return nil
	}
	j := s.Job
	v := &moveJobView{
		ID: j.ID, Kind: j.Kind, State: j.State, Shards: shards{j.Totals.Shards, j.Totals.Done, j.Totals.Failed},
		Users: j.Totals.Visited, PlannedUsers: j.Totals.PlannedUsers,
		Rows: j.Totals.Events, Changed: j.Totals.Changed, Faulty: j.Totals.Faulty, Faults: append([]string{}, s.Faults...),
		StartedAt: rfc3339(j.StartedAt), Error: j.Error,
	}
	if j.ID == s.Move.Backfill {
		v.Rate = &j.Rate
	}
	if !j.FinishedAt.IsZero() {
		at := rfc3339(j.FinishedAt)
		v.FinishedAt = &at
	}
	return v
}

func (rc recomputes) getSchema(w http.ResponseWriter, r *http.Request) error {
	app, err := httpapi.Tenant(rc.Auth, r, auth.Admin)
	if err != nil {
		return err
	}
	s, err := rc.Moves.Status(r.Context(), app.ID)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, renderSchema(s))
}

// schemaStep takes a step with what its body says.
func schemaStep[T any](rc recomputes, decode func([]byte) (T, error), take func(context.Context, string, T) (migration.Status, error)) httpapi.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		app, err := httpapi.Tenant(rc.Auth, r, auth.Admin)
		if err != nil {
			return err
		}
		body, err := httpapi.ReadBody(w, r, maxBody)
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
	var order struct {
		To string `json:"to"`
	}
	err := decodeStep(body, &order, "an object of no other key than to, the schema to move to")
	if err != nil {
		return "", err
	}
	return parseSchema("to", order.To)
}

// decodeDropped reads {"schema":"narrow"}.
func decodeDropped(body []byte) (schema.Name, error) {
	var order struct {
		Schema string `json:"schema"`
	}
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
	var order struct {
		Rate *int `json:"rate"`
	}
	err := decodeStep(body, &order, "empty or an object of no other key than rate, an integer")
	switch {
	case err != nil:
		return 0, err
	case order.Rate == nil:
		return migration.DefaultRate, nil
	case *order.Rate < 0 || *order.Rate > maxRate:
		return 0, httpapi.Errorf(http.StatusUnprocessableEntity, "rate must be an integer from 0, no limit, to %d rows a second", maxRate)
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
