package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/backend/answers"
	"github.com/affinityengine/affinity/shared/job/audit"
	"github.com/affinityengine/affinity/shared/serve/query"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// auditTime is the time after which an audit answers with the users it has
// compared.
const auditTime = time.Minute

// audit compares the profiles of a sample of users with the log.
func (h handler) audit(w http.ResponseWriter, r *http.Request, app config.App) error {
	request, err := httpapi.Decode(w, r, api.MaxAdminBody, decodeAudit)
	if err != nil {
		return err
	}
	if request.Segments && !app.Segments.On() {
		return answers.Segments(w, query.ErrOff)
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
	if request.Segments {
		answer, err := h.auditSegments(ctx, app, *request.Sample)
		if err != nil {
			return answers.Segments(w, err)
		}
		return httpapi.WriteJSON(w, http.StatusOK, answer)
	}
	report, err := audit.New(audit.RowsOf(h.Store), h.Profiles, h.Config).Sample(ctx, app, *request.Sample)
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

// auditSegments compares answers about segments with the profiles of a sample of users.
func (h handler) auditSegments(ctx context.Context, app config.App, n int) (api.Audit, error) {
	rnd := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	sample, err := h.Store.Users.SampleUsers(ctx, app.ID, n, audit.MaxKeys, rnd)
	if err != nil {
		return api.Audit{}, fmt.Errorf("audit segments: %w", err)
	}
	found, err := h.Query.Audit(ctx, app, sample.Users, rnd)
	if err != nil {
		return api.Audit{}, fmt.Errorf("audit segments: %w", err)
	}
	s := &api.SegmentsAudit{Planned: found.Planned, Conditions: found.Conditions, Judged: found.Judged,
		Differences: []api.SegmentsDifference{}}
	differing := map[string]bool{}
	for _, d := range found.Differences {
		differing[d.User] = true
		if len(s.Differences) == api.MaxAuditReport {
			s.Omitted++
			continue
		}
		where, err := json.Marshal(d.Where)
		if err != nil {
			return api.Audit{}, fmt.Errorf("audit segments: encode a condition: %w", err)
		}
		s.Differences = append(s.Differences, api.SegmentsDifference{Where: where, UserToken: d.User,
			What: string(d.What), Want: d.Want, Got: d.Got})
	}
	if len(found.Differences) > 0 {
		h.Log.LogAttrs(ctx, slog.LevelError, "answers about segments differ from profiles", slog.String("app", app.ID),
			slog.Int("differences", len(found.Differences)), slog.Int("users", len(differing)),
			slog.Int("conditions", found.Conditions))
	}
	return api.Audit{Sampled: len(sample.Users), Compared: len(sample.Users), Differing: len(differing),
		Differences: []api.AuditDifference{}, Segments: s}, nil
}

func renderAudit(r audit.Report) (api.Audit, error) {
	a := api.Audit{
		Sampled: r.Sampled, Compared: r.Compared, Stored: r.Stored, Events: r.Events, ByScorer: r.ByScorer,
		TooLarge:  r.TooLarge,
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
			UserToken: d.User, Region: d.Region, Which: d.Which, What: d.What, Facet: d.Facet, Value: d.Value,
			HalfLife: d.HalfLife, Want: want, Got: got,
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

// decodeAudit reads {"sample":N,"segments":true}, or an empty body. The request that it
// returns has a sample.
func decodeAudit(body []byte) (api.AuditRequest, error) {
	var request api.AuditRequest
	err := decodeBody(body, &request, "empty or an object with no other keys than sample, an integer, and "+
		"segments, true or false")
	switch {
	case err != nil:
		return request, err
	case request.Sample == nil:
		sample := api.DefaultAuditSample
		request.Sample = &sample
	case *request.Sample < 1 || *request.Sample > api.MaxAuditSample:
		return request, httpapi.Errorf(http.StatusUnprocessableEntity, "sample must be an integer from 1 to %d",
			api.MaxAuditSample)
	}
	return request, nil
}
