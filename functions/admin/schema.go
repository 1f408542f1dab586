package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend/answers"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// registerSchema registers the routes that migrate the log of the app to
// another schema. Each answers with the state of the migration.
func (h handler) registerSchema(rt *httpapi.Router) {
	rt.HandleOwn("GET /1/schema", auth.Serve(h.Auth.Tenant, h.getSchema, auth.Admin))
	rt.HandleOwn("POST /1/schema/start", schemaStep(h, auditlog.SchemaStart, decodeTo, h.Migrations.Start))
	rt.HandleOwn("POST /1/schema/backfill", schemaStep(h, auditlog.SchemaBackfill, decodeRate, h.Migrations.Backfill))
	rt.HandleOwn("POST /1/schema/verify", schemaStep(h, auditlog.SchemaVerify, decodeNothing,
		withoutArgs(h.Migrations.Verify)))
	rt.HandleOwn("POST /1/schema/cutover", schemaStep(h, auditlog.SchemaCutover, decodeNothing,
		withoutArgs(h.Migrations.Cutover)))
	rt.HandleOwn("POST /1/schema/rollback", schemaStep(h, auditlog.SchemaRollback, decodeNothing,
		withoutArgs(h.Migrations.Rollback)))
	rt.HandleOwn("POST /1/schema/drop", schemaStep(h, auditlog.SchemaDrop, decodeDrop, h.Migrations.Drop))
}

func (h handler) renderSchema(ctx context.Context, s migration.Status) api.Schema {
	v := api.Schema{
		Read: string(s.Log.Read), Encoding: string(s.Log.Encoding), Next: s.Next,
		SettlesInMs: int64((s.Propagation + time.Millisecond - 1) / time.Millisecond), // 0 only after propagation
	}
	for _, n := range schema.Names {
		if s.Log.Writes(n) {
			v.Written = append(v.Written, string(n))
		}
	}
	if s.Migration != (config.Migration{}) {
		v.Migration = &api.Migration{
			ID: s.Migration.ID, From: string(s.Migration.From), To: string(s.Migration.To),
			Phase: string(s.Migration.Phase), StartedAt: api.At(s.Migration.StartedAt),
			Moving: s.Active(), Job: h.renderMoveJob(ctx, s),
		}
	}
	return v
}

func (h handler) renderMoveJob(ctx context.Context, s migration.Status) *api.MigrationJob {
	if s.Job == nil {
		return nil
	}
	j := s.Job
	c := job.CountsOf[migration.Counts](j.Totals.Counts)
	v := &api.MigrationJob{
		ID: j.ID, Kind: j.Kind, State: api.JobState(j.State), Shards: answers.Shards(*j),
		Users: c.Users, PlannedUsers: j.Totals.PlannedUsers,
		Rows: c.Rows, Changed: c.Changed, Faulty: c.Faulty, Faults: append([]string{}, s.Faults...),
		StartedAt: api.At(j.StartedAt), FinishedAt: answers.Finished(*j), Wait: h.jobs.Wait(ctx, *j), Error: j.Error,
	}
	if j.ID == s.Migration.Backfill {
		rate := job.ParamsOf[migration.Params](*j).Rate
		v.Rate = &rate
	}
	return v
}

func (h handler) getSchema(w http.ResponseWriter, r *http.Request, app config.App) error {
	s, err := h.Migrations.Status(r.Context(), app.ID)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, h.renderSchema(r.Context(), s))
}

// schemaStep returns the handler of a step of a migration, which the audit log
// records as action. decode reads the step's argument from the body, and run takes
// the step.
func schemaStep[T any](h handler, action auditlog.Action, decode func([]byte) (T, error),
	run func(context.Context, string, T) (migration.Status, error)) httpapi.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		app, key, err := h.Auth.TenantKey(r, auth.Admin)
		if err != nil {
			return err
		}
		arg, err := httpapi.Decode(w, r, api.MaxAdminBody, decode)
		if err != nil {
			return err
		}
		var s migration.Status
		err = auditlog.New(h.AuditLog()).Do(r.Context(), auditlog.Change{App: app.ID, Actor: key, Action: action},
			func() (end auditlog.End, err error) {
				s, err = run(r.Context(), app.ID, arg)
				if end.Subject = s.Migration.ID; end.Subject != "" {
					end.Detail = fmt.Sprintf("from %s to %s", s.Migration.From, s.Migration.To)
				}
				return end, err
			})
		var outOfOrder *migration.OutOfOrder
		if errors.As(err, &outOfOrder) {
			return httpapi.Errorf(http.StatusConflict, "%s", outOfOrder.Message)
		}
		if err != nil {
			return err
		}
		return httpapi.WriteJSON(w, http.StatusOK, h.renderSchema(r.Context(), s))
	}
}

// withoutArgs adapts a step that takes no argument.
func withoutArgs(
	run func(context.Context, string) (migration.Status, error),
) func(context.Context, string, struct{}) (migration.Status, error) {
	return func(ctx context.Context, app string, _ struct{}) (migration.Status, error) { return run(ctx, app) }
}

// decodeTo reads {"to":"wide"}.
func decodeTo(body []byte) (schema.Name, error) {
	var request api.SchemaStartRequest
	err := decodeBody(body, &request, "an object with no other key than to, the schema to migrate to")
	if err != nil {
		return "", err
	}
	return parseSchema("to", request.To)
}

// decodeDrop reads {"schema":"narrow"}.
func decodeDrop(body []byte) (schema.Name, error) {
	var request api.SchemaDropRequest
	err := decodeBody(body, &request, "an object with no other key than schema, the schema to drop")
	if err != nil {
		return "", err
	}
	return parseSchema("schema", request.Schema)
}

func parseSchema(key, text string) (schema.Name, error) {
	n, err := schema.Parse(text)
	if err != nil {
		return "", httpapi.Errorf(http.StatusUnprocessableEntity, "%s: %v", key, err)
	}
	return n, nil
}

// decodeRate reads {"rate":5000}, or an empty body.
func decodeRate(body []byte) (int, error) {
	var request api.SchemaBackfillRequest
	err := decodeBody(body, &request, "empty or an object with no other key than rate, an integer")
	switch {
	case err != nil:
		return 0, err
	case request.Rate == nil:
		return api.DefaultBackfillRate, nil
	case *request.Rate < 0 || *request.Rate > api.MaxBackfillRate:
		return 0, httpapi.Errorf(http.StatusUnprocessableEntity,
			"rate must be an integer from 0, no limit, to %d rows a second", api.MaxBackfillRate)
	}
	return *request.Rate, nil
}

// decodeNothing reads {} or an empty body.
func decodeNothing(body []byte) (struct{}, error) {
	var none struct{}
	return none, decodeBody(body, &none, "empty or an object without keys")
}
