package recomputes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/audit"
	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/limit"
)

// auditTime is the time after which an audit answers with the users it has
// compared.
const auditTime = time.Minute

// audit compares the profiles of a sample of users with the log.
func (h handler) audit(w http.ResponseWriter, r *http.Request) error {
	app, err := h.Auth.Tenant(r, auth.Admin)
	if err != nil {
		return err
	}
	body, err := httpapi.ReadBody(w, r, api.MaxAdminBody)
	if err != nil {
		return err
	}
	sample, err := decodeAudit(body)
	if err != nil {
		return err
	}
	leave, err := h.Limits.Enter(app.ID, limit.Audit)
	if err != nil {
		return err
	}
	defer leave()
	// The cached app may be older than the strategy of the stored profiles.
	if app, err = h.Config.App(r.Context(), app.ID); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), auditTime)
	defer cancel()
	report, err := audit.New(h.Store, h.Profiles, h.Config).Sample(ctx, app, sample)
	if err != nil {
		return err
	}
	report.Log(ctx, h.Log, h.Metrics, app.ID)
	answer, err := renderAudit(report)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

func renderAudit(r audit.Report) (api.Audit, error) {
	a := api.Audit{
		Sampled: r.Sampled, Compared: r.Compared, Stored: r.Stored, Events: r.Events, ByScorer: r.ByScorer, TooLarge: r.TooLarge,
		Differing: r.Differing, Differences: make([]api.AuditDifference, len(r.Differences)), Omitted: r.Omitted,
	}
	for i, d := range r.Differences {
		want, err := found(d.Want)
		if err != nil {
			return api.Audit{}, err
		}
		got, err := found(d.Got)
		if err != nil {
			return api.Audit{}, err
		}
		a.Differences[i] = api.AuditDifference{
			UserToken: d.User, Which: d.Which, What: d.What, Facet: d.Facet, Value: d.Value, HalfLife: d.HalfLife, Want: want, Got: got,
		}
	}
	return a, nil
}

// found encodes one side of a difference, nil if that side has no value.
func found(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	return json.Marshal(v)
}

// decodeAudit reads {"sample":N}, or an empty body.
func decodeAudit(body []byte) (int, error) {
	var request api.AuditRequest
	err := decodeBody(body, &request, "empty or an object with no other key than sample, an integer")
	switch {
	case err != nil:
		return 0, err
	case request.Sample == nil:
		return api.DefaultAuditSample, nil
	case *request.Sample < 1 || *request.Sample > api.MaxAuditSample:
		return 0, httpapi.Errorf(http.StatusUnprocessableEntity, "sample must be an integer from 1 to %d", api.MaxAuditSample)
	}
	return *request.Sample, nil
}
