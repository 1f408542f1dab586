package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/serve/query"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// registerSegments registers the routes of segments. What names users needs the right
// admin; what counts them, recommendation.
func (h handler) registerSegments(rt *httpapi.Router) {
	rt.HandleOwn("POST /1/segments/query", h.querySegment)
	rt.HandleOwn("GET /1/segments/histogram", h.histogram, "facet", "value", "halfLife")
	rt.HandleOwn("POST /1/segments/refresh", h.refreshSegments)
	rt.HandleOwn("GET /1/segments/refresh/{id}", h.getSegmentBuild)
	rt.HandleOwn("GET /1/segments", h.listSegments)
	rt.HandleOwn("GET /1/segments/{name}", h.getSegment)
	rt.HandleOwn("PUT /1/segments/{name}", h.saveSegment, "create")
	rt.HandleOwn("DELETE /1/segments/{name}", h.deleteSegment)
	rt.HandleOwn("POST /1/segments/{name}/export", h.exportSegment)
	rt.HandleOwn("GET /1/segments/export/{id}", h.getSegmentExport)
	rt.HandleOwn("GET /1/segments/export/{id}/file", h.segmentFile)
	rt.HandleOwn("GET /1/values", h.values, "facet", "limit", "sample")
}

// segmentRetry is how many seconds a client waits before it asks again for lists that
// are not ready.
const segmentRetry = "5"

// segmentsAnswer answers an error of a query that is neither the client's fault nor one
// of the engine: segments are off, or their lists are not ready.
func segmentsAnswer(w http.ResponseWriter, err error) error {
	if errors.Is(err, query.ErrOff) {
		return httpapi.Errorf(http.StatusConflict, "Segments are off for this app. Its operator switches them on: affinity app segments APP on")
	}
	if message, is := query.IsNotReady(err); is {
		w.Header().Set("Retry-After", segmentRetry)
		return httpapi.WriteMessage(w, http.StatusServiceUnavailable, message)
	}
	return err
}

// counter returns the app of a key that may count users, and whether it may also know
// small counts and tokens.
func (h handler) counter(r *http.Request) (app config.App, key string, admin bool, err error) {
	app, grant, err := h.Auth.TenantGrant(r, auth.Recommendation, auth.Admin)
	if err == nil {
		err = grant.Index("")
	}
	return app, grant.Key, err == nil && grant.Require(auth.Admin) == nil, err
}

// countView hides a small number of users from keys below admin.
func countView(users int, admin bool) api.UserCount {
	if !admin && users < api.MinSegmentUsers {
		return api.UserCount{Fewer: true}
	}
	return api.UserCount{N: int64(users)}
}

// segmentBody is the body of a query or of a saved segment.
type segmentBody struct {
	where  segment.Condition
	limit  int
	cursor string
}

// decodeSegment decodes a body that has where and, of a query, limit and cursor.
func decodeSegment(body []byte, isQuery bool) (segmentBody, error) {
	b := segmentBody{limit: api.DefaultSegmentUsers}
	var keys map[string]jsontext.Value
	if err := jsonv2.Unmarshal(body, &keys); err != nil || keys == nil {
		if !json.Valid(body) {
			return b, httpapi.Errorf(http.StatusBadRequest, "Bad Request: the body is not valid JSON")
		}
		return b, fault.New(fault.Invalid, "The body must be an object with the key where, each key once")
	}
	if keys["where"] == nil {
		return b, fault.New(fault.Invalid, "where is missing: the condition")
	}
	var err error
	for key, value := range keys {
		switch {
		case key == "where":
		case isQuery && key == "limit":
			if b.limit, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || b.limit < 0 || b.limit > api.MaxSegmentUsers {
				return b, fault.New(fault.Invalid, "limit must be an integer from 0 to %d", api.MaxSegmentUsers)
			}
		case isQuery && key == "cursor":
			if err := json.Unmarshal(value, &b.cursor); err != nil {
				return b, fault.New(fault.Invalid, "cursor must be a string")
			}
		default:
			return b, fault.New(fault.Invalid, "Unknown field %q", key)
		}
	}
	b.where, err = segment.Parse(keys["where"])
	return b, err
}

// querySegment answers a page of users, or their number alone.
func (h handler) querySegment(w http.ResponseWriter, r *http.Request) error {
	app, _, admin, err := h.counter(r)
	if err != nil {
		return err
	}
	body, err := httpapi.ReadBody(w, r, api.MaxSegmentBody)
	if err != nil {
		return err
	}
	asked, err := decodeSegment(body, true)
	if err != nil {
		return err
	}
	if asked.limit > 0 && !admin {
		return fmt.Errorf("query users: %w", auth.ErrForbidden)
	}
	page, err := h.Query.Page(r.Context(), app, asked.where, asked.limit, asked.cursor)
	if err != nil {
		return segmentsAnswer(w, err)
	}
	answer := api.SegmentPage{Total: countView(page.Total, admin), AsOf: api.AtMillis(page.AsOf), Users: make([]api.SegmentUser, len(page.Users)), Cursor: page.Cursor}
	for i, u := range page.Users {
		answer.Users[i] = api.SegmentUser{UserToken: u.Token, Score: u.Score}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// histogram answers how the scores of a value are distributed.
func (h handler) histogram(w http.ResponseWriter, r *http.Request) error {
	app, _, admin, err := h.counter(r)
	if err != nil {
		return err
	}
	var filter segment.Filter
	filter.Facet, filter.Value = r.URL.Query().Get("facet"), r.URL.Query().Get("value")
	if filter.Facet == "" || filter.Value == "" {
		return fault.New(fault.Invalid, "facet and value are required: the value whose scores the histogram shows")
	}
	if text := r.URL.Query().Get("halfLife"); text != "" {
		if filter.HalfLife, err = strategy.ParseHalfLife(text); err != nil {
			return httpapi.Errorf(http.StatusUnprocessableEntity, "halfLife %v", err)
		}
	}
	s, asOf, err := h.Query.Histogram(r.Context(), app, filter)
	if err != nil {
		return segmentsAnswer(w, err)
	}
	answer := api.SegmentHistogram{Users: countView(s.Users, admin), AsOf: api.AtMillis(asOf)}
	if s.Users > 0 && !answer.Users.Fewer {
		answer.Mean, answer.Quantiles = s.Mean, &api.SegmentQuantiles{P10: s.P10, P50: s.P50, P90: s.P90, P99: s.P99}
		for _, b := range s.Buckets {
			answer.Buckets = append(answer.Buckets, api.SegmentBucket{From: b.From, To: b.To, Users: int64(b.Users)})
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}
