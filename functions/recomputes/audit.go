package recomputes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/audit"
	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/httpapi"
)

const (
	defaultAudited = 100
	// auditTime is how long a request compares before it answers with what it has.
	auditTime = time.Minute
)

// audit compares profiles of a sample of users with the log.
func (rc recomputes) audit(w http.ResponseWriter, r *http.Request) error {
	app, err := httpapi.Tenant(rc.Auth, r, auth.Admin)
	if err != nil {
		return err
	}
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	sample, err := decodeAudit(body)
	if err != nil {
		return err
	}
	// Past the cache, which may not know of a strategy that profiles are of already.
	if app, err = rc.Apps.App(r.Context(), app.ID); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), auditTime)
	defer cancel()
	report, err := audit.New(rc.Store, rc.Profiles, rc.Apps).Sample(ctx, app, sample)
	if err != nil {
		return err
	}
	report.Tell(ctx, rc.Log, rc.Metrics, app.ID)
	return httpapi.WriteJSON(w, http.StatusOK, report)
}

// decodeAudit reads {"sample":N} or nothing at all.
func decodeAudit(body []byte) (int, error) {
	if body = bytes.TrimSpace(body); len(body) == 0 {
		return defaultAudited, nil
	}
	if !json.Valid(body) {
		return 0, httpapi.Errorf(http.StatusBadRequest, "Bad Request: the body is no JSON")
	}
	var order struct {
		Sample *int `json:"sample"`
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&order); err != nil || body[0] != '{' {
		return 0, httpapi.Errorf(http.StatusUnprocessableEntity, "The body must be empty or an object of no other key than sample, an integer")
	}
	switch {
	case order.Sample == nil:
		return defaultAudited, nil
	case *order.Sample < 1 || *order.Sample > audit.MaxSample:
		return 0, httpapi.Errorf(http.StatusUnprocessableEntity, "sample must be an integer from 1 to %d", audit.MaxSample)
	}
	return *order.Sample, nil
}
